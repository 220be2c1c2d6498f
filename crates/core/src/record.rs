//! What is known about ids and SKUs, spelled out in full: the form in which records are recorded, loaded and shown.
//!
//! The shard keeps its own compact form.

use alloc::vec::Vec;
use smallvec::SmallVec;

use crate::command::Mode;
use crate::id::{Id, Millis};

/// A digest of what makes a replay: 128 bits of SipHash-2-4 with fixed keys, the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub u128);

/// The status of a reservation that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Units are held until the end.
    Pending,
    /// Units are sold.
    Confirmed,
    /// Units are back, or the id was sealed.
    Cancelled,
    /// The end has passed.
    Expired,
    /// The hot tier forgot it before it was recorded, and it no longer fitted.
    Lost,
}

impl Status {
    /// Every status, in a fixed order.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Confirmed,
        Self::Cancelled,
        Self::Expired,
        Self::Lost,
    ];

    /// The word used in every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Confirmed => "confirmed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Lost => "lost",
        }
    }
}

/// A reservation, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The tenant.
    pub tenant: Id,
    /// The id chosen by the caller.
    pub id: Id,
    /// Who buys; `None` only for a sealed id.
    pub owner: Option<Id>,
    /// How it was asked for.
    pub mode: Mode,
    /// Of the payload; zero for a sealed id.
    pub digest: Digest,
    /// Where it stands.
    pub status: Status,
    /// Cancelled before it ever came.
    pub sealed: bool,
    /// A confirm after the end was refused, and that has been noted once.
    pub noted: bool,
    /// When it was granted (or sealed).
    pub granted_at: Millis,
    /// Its end; of a deduct, the moment of the grant.
    pub ends_at: Millis,
    /// Lines summed per (SKU, location asked), sorted by that; empty for a sealed id.
    pub lines: SmallVec<[Line; 1]>,
}

/// A line of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The SKU.
    pub sku: Id,
    /// The location asked for, if one was.
    pub location: Option<Id>,
    /// How often owner usage of the SKU had been reset when the line was granted: undo touches usage only if that is
    /// still so.
    pub era: u32,
    /// Where the units came from, in allocation order; their quantities add up to the line's.
    pub allocations: SmallVec<[Allocation; 1]>,
}

impl Line {
    /// Units asked for.
    pub fn quantity(&self) -> u64 {
        self.allocations
            .iter()
            .fold(0, |sum, a| sum.saturating_add(a.quantity))
    }
    /// Units confirmed, returned ones included.
    pub fn confirmed(&self) -> u64 {
        self.allocations
            .iter()
            .fold(0, |sum, a| sum.saturating_add(a.confirmed))
    }
    /// Units returned.
    pub fn returned(&self) -> u64 {
        self.allocations
            .iter()
            .fold(0, |sum, a| sum.saturating_add(a.returned))
    }
}

/// Units of a line that come from one location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Where from.
    pub location: Id,
    /// Units taken.
    pub quantity: u64,
    /// Units confirmed of them, returned ones included.
    pub confirmed: u64,
    /// Units returned of those.
    pub returned: u64,
}

/// A return that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnRecord {
    /// The tenant.
    pub tenant: Id,
    /// The return's own id.
    pub id: Id,
    /// The reservation that it gave back from.
    pub reservation: Id,
    /// Of the reservation's id and the lines as asked.
    pub digest: Digest,
    /// When.
    pub at: Millis,
    /// What came back.
    pub lines: Vec<ReturnedLine>,
}

/// A line of a return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnedLine {
    /// The SKU.
    pub sku: Id,
    /// The location that the reservation's line asked for, if it did.
    pub location: Option<Id>,
    /// Units that came back.
    pub quantity: u64,
}

/// A stock command that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockRecord {
    /// The tenant.
    pub tenant: Id,
    /// The command's id.
    pub id: Id,
    /// Of the command without its id, actor and reason.
    pub digest: Digest,
    /// Which SKU it changed.
    pub sku: Id,
    /// The revision that it made.
    pub revision: u64,
    /// When.
    pub at: Millis,
}

/// The settings of a SKU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most units that one owner may hold and have bought.
    pub limit_per_owner: Option<u64>,
    /// Before this no reserve is granted.
    pub opens_at: Option<Millis>,
    /// From this on no reserve is granted.
    pub closes_at: Option<Millis>,
    /// Reserves are refused for now.
    pub paused: bool,
    /// Locations named by the operator, first to last.
    pub order: Vec<Id>,
    /// One line may take from several locations.
    pub split: bool,
    /// SKUs of one group lie on one shard.
    pub group: Option<Id>,
    /// How often owner usage was reset.
    pub era: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limit_per_owner: None,
            opens_at: None,
            closes_at: None,
            paused: false,
            order: Vec::new(),
            split: true,
            group: None,
            era: 0,
        }
    }
}

/// A SKU, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkuRecord {
    /// The tenant.
    pub tenant: Id,
    /// The SKU.
    pub sku: Id,
    /// How often operators changed it.
    pub revision: u64,
    /// Its settings.
    pub settings: Settings,
    /// Its locations, in the order in which they were created.
    pub locations: Vec<LocationRecord>,
}

/// One location of a SKU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationRecord {
    /// The location.
    pub location: Id,
    /// Its counters.
    pub counters: Counters,
}

/// The counters of one (SKU, location).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Physical units not yet sold.
    pub on_hand: u64,
    /// Units of live reservations.
    pub reserved: u64,
    /// Units confirmed, less returns.
    pub sold: u64,
    /// Floor that stays back.
    pub safety_stock: u64,
    /// Counts every change.
    pub version: u64,
}

impl Counters {
    /// What may still be reserved: max(0, `on_hand` - reserved - `safety_stock`).
    pub const fn available(&self) -> u64 {
        self.on_hand
            .saturating_sub(self.reserved)
            .saturating_sub(self.safety_stock)
    }
}

/// What a record of any of the three id spaces says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A reservation.
    Reservation(Reservation),
    /// A return.
    Return(ReturnRecord),
    /// A stock command.
    Stock(StockRecord),
}

/// The three id spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Reservations.
    Reservation,
    /// Returns.
    Return,
    /// Stock commands.
    Stock,
}

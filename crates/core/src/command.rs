//! What a caller may ask for.
//!
//! Ids and texts are checked when these values are made; numbers are checked by the shard (`invalid`), so that a
//! caller of the library meets the same rules as a caller over HTTP.

use alloc::vec::Vec;
use smallvec::SmallVec;

use crate::id::{Id, Millis, Reason};

/// One command: who asks, in which tenant, for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The tenant that all ids of the command live in.
    pub tenant: Id,
    /// Who gave the command, for the movements: a key's name, `cli`, `library`.
    pub actor: Id,
    /// What is asked.
    pub action: Action,
}

/// The actions. Each one that changes something carries an id chosen by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reserve, or reserve and confirm in one step.
    Reserve(Reserve),
    /// Turn reserved units into sold ones.
    Confirm(Confirm),
    /// Give reserved units back, or seal an id that never came.
    Cancel(Cancel),
    /// Move the end of a pending reservation.
    Extend(Extend),
    /// Give sold units back.
    Return(Return),
    /// A count of one location.
    Set(Set),
    /// A signed change of one location.
    Adjust(Adjust),
    /// Move units between two locations of a SKU.
    Transfer(Transfer),
    /// Change the settings of a SKU.
    Configure(Configure),
    /// Read a reservation.
    ShowReservation {
        /// Its id.
        id: Id,
    },
    /// Read a SKU.
    ShowStock {
        /// Which SKU.
        sku: Id,
    },
}

/// Whether the units are only held or sold at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Hold the units until an end.
    Reserve,
    /// Reserve and confirm in one step.
    Deduct,
}

/// Reserve or deduct: all lines or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// The reservation's id.
    pub id: Id,
    /// Who buys.
    pub owner: Id,
    /// Hold, or sell at once.
    pub mode: Mode,
    /// How long the hold lasts, in milliseconds: 1,000..=2,592,000,000. Not looked at by [`Mode::Deduct`].
    pub ttl_ms: i64,
    /// What is asked for, as the caller gave it: 1..=100 lines.
    pub lines: SmallVec<[AskLine; 1]>,
    /// The owner's own pending reservation that this one takes the place of.
    pub supersedes: Option<Id>,
}

/// One line as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskLine {
    /// The SKU.
    pub sku: Id,
    /// 1..=2^53-1.
    pub quantity: u64,
    /// Take the units from here only; otherwise the SKU's allocation order decides.
    pub location: Option<Id>,
    /// Refuse unless the SKU has this revision.
    pub if_revision: Option<u64>,
}

/// A line of a confirm or a return: keyed by (SKU, location asked).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickLine {
    /// The SKU.
    pub sku: Id,
    /// 1..=what is left of the line.
    pub quantity: u64,
    /// The location that the reservation's line asked for, if it did.
    pub location: Option<Id>,
}

/// Confirm a reservation, whole or in part; what is not confirmed is released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The reservation's id.
    pub id: Id,
    /// What is confirmed; `None` is everything.
    pub lines: Option<Vec<PickLine>>,
    /// What the reservation asked for, so that a confirm can stand in for a reserve that was lost.
    pub payload: Option<ConfirmPayload>,
}

/// The reservation's own payload, sent along with a confirm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmPayload {
    /// Who buys.
    pub owner: Id,
    /// What was asked for.
    pub lines: SmallVec<[AskLine; 1]>,
}

/// Cancel a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The reservation's id.
    pub id: Id,
    /// Why.
    pub reason: Reason,
}

/// Move the end of a pending reservation; it may also come nearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extend {
    /// The reservation's id.
    pub id: Id,
    /// The new end: in the future, at most 30 days away.
    pub ends_at: Millis,
}

/// Give sold units back to where they came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    /// The return's own id.
    pub id: Id,
    /// The reservation that the units were sold by.
    pub reservation: Id,
    /// What comes back; `None` is everything that is confirmed and not yet returned.
    pub lines: Option<Vec<PickLine>>,
    /// Why.
    pub reason: Reason,
}

/// A condition on a SKU's revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No condition.
    Any,
    /// The SKU must have this revision.
    Revision(u64),
    /// The SKU must not exist yet.
    Absent,
}

/// How a count becomes `on_hand`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Only for a location that does not exist yet: `on_hand` becomes the target.
    Create,
    /// The sold figure at the time of the count: `on_hand` becomes target - (sold - `sold_seen`).
    Seen {
        /// The sold figure that whoever counted saw.
        sold_seen: u64,
    },
    /// `on_hand` becomes the target, whatever was sold meanwhile.
    Force,
}

/// A count for one location, reserved units included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The command's id.
    pub id: Id,
    /// Which SKU; created when it does not exist.
    pub sku: Id,
    /// Which location; created when it does not exist.
    pub location: Id,
    /// The count: 0..=2^53-1.
    pub target: u64,
    /// How the count is taken.
    pub count: Count,
    /// Condition on the revision.
    pub expect: Expect,
    /// Why.
    pub reason: Reason,
}

/// A signed change of `on_hand`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjust {
    /// The command's id.
    pub id: Id,
    /// Which SKU; must exist.
    pub sku: Id,
    /// Which location; must exist.
    pub location: Id,
    /// -(2^53-1)..=2^53-1, not 0.
    pub delta: i64,
    /// Condition on the revision.
    pub expect: Expect,
    /// Why.
    pub reason: Reason,
}

/// Units move from one location of a SKU to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The command's id.
    pub id: Id,
    /// Which SKU.
    pub sku: Id,
    /// Where they leave; must exist.
    pub from: Id,
    /// Where they arrive; must exist and differ.
    pub to: Id,
    /// 1..=2^53-1.
    pub quantity: u64,
    /// Condition on the revision.
    pub expect: Expect,
    /// Why.
    pub reason: Reason,
}

/// Change settings of a SKU; what is `None` stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configure {
    /// The command's id.
    pub id: Id,
    /// Which SKU; must exist.
    pub sku: Id,
    /// The changes.
    pub changes: Changes,
    /// Condition on the revision.
    pub expect: Expect,
    /// Why.
    pub reason: Reason,
}

/// What a [`Configure`] changes. The inner `None` of a double option removes the setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Floor that stays back, per location that must exist: 0..=2^53-1.
    pub safety_stock: Vec<(Id, u64)>,
    /// The most units that one owner may hold and have bought: 1..=2^53-1.
    pub limit_per_owner: Option<Option<u64>>,
    /// Before this no reserve is granted.
    pub opens_at: Option<Option<Millis>>,
    /// From this on no reserve is granted; after `opens_at` when both are set.
    pub closes_at: Option<Option<Millis>>,
    /// Whether reserves are refused for now.
    pub paused: Option<bool>,
    /// Locations in the order in which lines without a location take from them; those not named follow in the order
    /// in which they were created.
    pub order: Option<Vec<Id>>,
    /// Whether one line may take from several locations. On at first.
    pub split: Option<bool>,
    /// SKUs of one group lie on one shard.
    pub group: Option<Option<Id>>,
    /// Owner usage starts again from zero for everybody.
    pub reset_usage: bool,
}

//! What one batch of accepted commands changed: the unit of the chain and of recording.
//!
//! An entry holds enough to record its effects in a ledger. Every effect that moves units lists its moves with the
//! counters after each, so that the ledger can check what it computes.

use alloc::vec::Vec;
use smallvec::SmallVec;

use crate::id::{Id, Millis, Reason};
use crate::record::{Counters, Reservation, ReturnRecord, Settings, Status, StockRecord};

/// One link of a shard's chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The shard.
    pub shard: u32,
    /// How often the shard's hot state was rebuilt.
    pub epoch: u64,
    /// Gapless within the shard, from 1; goes on across epochs.
    pub seq: u64,
    /// The sender's random 64 bits.
    pub tag: u64,
    /// The tag of the entry before; 0 for the first.
    pub prev: u64,
    /// The shard's clock when it was sealed.
    pub at: Millis,
    /// What changed, in the order in which it did.
    pub effects: Vec<Effect>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// When, by the shard's clock.
    pub at: Millis,
    /// Who; `stockade` where nobody asked: an end that came.
    pub actor: Id,
    /// Why, in the caller's words.
    pub reason: Reason,
    /// What.
    pub change: Change,
    /// Units moved, at most one per (SKU, location), in a fixed order; empty where none did.
    pub moves: SmallVec<[Move; 1]>,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A reservation came to be or changed.
    Reservation {
        /// By which verb.
        verb: Verb,
        /// Its status before; `None`: it did not exist.
        before: Option<Status>,
        /// All of it, after.
        after: Reservation,
    },
    /// Sold units came back.
    Return {
        /// The return.
        record: ReturnRecord,
        /// The reservation, after.
        after: Reservation,
    },
    /// An operator changed a SKU.
    Stock {
        /// By which command.
        verb: StockVerb,
        /// The command.
        record: StockRecord,
        /// The SKU's settings after: always there when the SKU is new or was configured.
        settings: Option<Settings>,
        /// Whether the SKU is new.
        created: bool,
    },
}

/// How a reservation changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reserved.
    Reserve,
    /// Reserved and confirmed in one step.
    Deduct,
    /// Confirmed in time.
    Confirm,
    /// Confirmed after the end, the units taken again in the same step.
    Revive,
    /// Cancelled.
    Cancel,
    /// Cancelled before it came.
    Seal,
    /// Given a new end.
    Extend,
    /// Its end passed and its units went back.
    Expire,
    /// Forgotten by the hot tier, and no longer fitting.
    Lose,
    /// A confirm came after the end and could not be met: paid, not fulfilled.
    Note,
}

impl Verb {
    /// The word in movements.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Deduct => "deduct",
            Self::Confirm => "confirm",
            Self::Revive => "revive",
            Self::Cancel => "cancel",
            Self::Seal => "seal",
            Self::Extend => "extend",
            Self::Expire => "expire",
            Self::Lose => "lose",
            Self::Note => "note",
        }
    }
}

/// How an operator changed a SKU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StockVerb {
    /// A count.
    Set,
    /// A signed change.
    Adjust,
    /// Between locations.
    Transfer,
    /// Settings.
    Configure,
}

impl StockVerb {
    /// The word in movements.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Adjust => "adjust",
            Self::Transfer => "transfer",
            Self::Configure => "configure",
        }
    }
}

/// One change of the counters of a (SKU, location). Each move raises the version by exactly 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The SKU.
    pub sku: Id,
    /// The location.
    pub location: Id,
    /// Change of `on_hand`. Supply moved by it is `on_hand + sold`: a sale is (-n, -n, +n), a delivery (+n, 0, 0).
    pub on_hand: i64,
    /// Change of reserved.
    pub reserved: i64,
    /// Change of sold.
    pub sold: i64,
    /// The counters after.
    pub after: Counters,
}

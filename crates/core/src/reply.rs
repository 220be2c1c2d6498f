//! What a command is answered with. Refusals are values with numbers, not texts.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::id::{Id, Millis};
use crate::record::{Reservation, ReturnRecord, SkuRecord, Space};

/// What was decided, and what must be on disk before anybody hears of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub reply: Reply,
    /// The entry that must be recorded before the answer goes out; 0 when it may go at once. Sequence numbers of
    /// entries start at 1.
    pub needs: u64,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is done, or was done before.
    Done(Done),
    /// It is refused; nothing has changed.
    Refused(Refusal),
    /// The shard no longer holds every id of this space: bring the ledger's record (see `LookedUp`).
    LookUp {
        /// In which space to look.
        space: Space,
        /// Which id.
        id: Id,
    },
    /// More reservations are due than one entry may free, and the answer depends on them: seal the entry, and apply
    /// the command again. Nothing has changed beyond those that were freed.
    Again,
    /// The shard's state, or a record that was brought, contradicts itself: a bug, damage, or a fork. The step that
    /// found it changed nothing; the shard must be rebuilt.
    Corrupt {
        /// What was found.
        what: &'static str,
    },
}

/// How a done command came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DoneCode {
    /// Done now.
    Ok,
    /// Done before: the same answer, no second effect.
    Replayed,
    /// Cancelled before it ever came.
    Sealed,
}

/// A command that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Now or before.
    pub code: DoneCode,
    /// What it is about.
    pub subject: Subject,
}

/// What a done command is about, as it stands after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A reservation; its status is the one at the time of the command ("expired" needs no sweep).
    Reservation(Box<Reservation>),
    /// A return, and the reservation after it.
    Return(Box<(ReturnRecord, Reservation)>),
    /// A SKU.
    Stock(Box<StockSubject>),
}

/// A SKU after a stock command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockSubject {
    /// The SKU as it stands now.
    pub stock: SkuRecord,
    /// The revision that the command made (of a read: the present one).
    pub revision: u64,
    /// Whether the command created the SKU.
    pub created: bool,
}

/// A refused line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLine<T> {
    /// Where the line stood in the command: of lines that were summed, the first.
    pub index: u32,
    /// The SKU.
    pub sku: Id,
    /// The location asked for, if one was.
    pub location: Option<Id>,
    /// The numbers of this refusal.
    pub detail: T,
}

/// Numbers of a shortage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Units asked for, summed over the lines of one (SKU, location asked).
    pub asked: u64,
    /// Units that this line could have had.
    pub available: u64,
}

/// Numbers of a revision conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The revision asked for; `None`: the SKU was to be absent.
    pub expected: Option<u64>,
    /// The revision found; `None`: there is no such SKU.
    pub found: Option<u64>,
}

/// Numbers of an owner limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverLimit {
    /// Units asked for, summed over the SKU.
    pub asked: u64,
    /// Units that the owner holds and has bought.
    pub used: u64,
    /// The most allowed.
    pub limit: u64,
}

/// A value that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// The field, as `lines[0].quantity`.
    pub field: String,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub allowed: String,
}

/// Why a confirm after the end was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LateReason {
    /// The service does not revive, or the command was not a confirm.
    Over,
    /// The units are gone.
    Short(Vec<RefusedLine<Short>>),
    /// The owner has reached the limit meanwhile.
    Limit(Vec<RefusedLine<OverLimit>>),
}

/// A refusal. It changes nothing and is not remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not enough units.
    InsufficientStock(Vec<RefusedLine<Short>>),
    /// No such SKU, or (for stock commands and settings) no such location of it.
    UnknownSku(Vec<RefusedLine<()>>),
    /// Another revision.
    RevisionConflict(Vec<RefusedLine<Conflict>>),
    /// The owner's limit.
    LimitExceeded(Vec<RefusedLine<OverLimit>>),
    /// The sale is not open yet; with the time at which it opens.
    NotOpen(Vec<RefusedLine<Millis>>),
    /// The sale is over; with the time at which it closed.
    Closed(Vec<RefusedLine<Millis>>),
    /// The operator has paused the sale.
    Paused(Vec<RefusedLine<()>>),
    /// The count would fall below the units already reserved.
    BelowReserved {
        /// The location.
        location: Id,
        /// What `on_hand` would have become (may be negative).
        result: i64,
        /// Units reserved there.
        reserved: u64,
    },
    /// The id was used for something else.
    IdReused,
    /// One shard cannot hold the cart.
    CrossShard,
    /// No such reservation.
    NotFound {
        /// The id that was not found.
        id: Id,
    },
    /// Past its end (or lost), and not to be had again.
    Expired {
        /// The reservation.
        reservation: Box<Reservation>,
        /// Why it was not revived.
        reason: LateReason,
    },
    /// Already confirmed.
    AlreadyConfirmed(Box<Reservation>),
    /// Already cancelled, or sealed.
    AlreadyCancelled(Box<Reservation>),
    /// Nothing was sold by it.
    NotConfirmed(Box<Reservation>),
    /// A value out of its range.
    Invalid(Vec<InvalidField>),
}

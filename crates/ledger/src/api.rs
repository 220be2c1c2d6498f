//! What the engine asks of any ledger.

use std::fmt;
use std::path::PathBuf;

use stockade_core::{Counters, Entry, Id, Millis, Position, Record, Reservation, SkuRecord, Space, Status};

use crate::sharing::{FoundMany, FoundSku, Key, Recorded};

/// Who may write a shard's history now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardMode {
    /// A hot tier decides; its chain is recorded.
    Hot,
    /// The ledger's own transactions decide.
    Sql,
    /// A new epoch is being built.
    Rebuild,
}

/// A shard's row: how far its chain is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRow {
    /// The shard.
    pub shard: u32,
    /// How often its hot state was rebuilt.
    pub epoch: u64,
    /// Who decides.
    pub mode: ShardMode,
    /// The last recorded entry; 0 before the first.
    pub cursor: u64,
    /// Its tag; 0 before the first.
    pub tag: u64,
    /// Its time; 0 before the first.
    pub at: Millis,
    /// Who opened the epoch.
    pub owner: String,
}

/// A ledger.
pub trait Ledger: Send + Sync + fmt::Debug {
    /// Opens a new epoch of a shard for a hot tier that is rebuilt from the ledger in this process: creates the shard
    /// if it is missing, otherwise raises the epoch; mode becomes hot. Refused while another process has the shard's
    /// recorder lease: then a hot tier elsewhere is being recorded.
    fn open_epoch(&self, shard: u32, owner: &str) -> Result<ShardRow, LedgerError>;

    /// Records a run of entries of one shard in one transaction: all of them, or none. The run must continue the
    /// recorded chain exactly.
    fn record(&self, run: &[Entry]) -> Result<(), RecordError>;

    /// A consistent view at one moment. Holding one for long keeps the ledger from tidying up.
    fn view(&self) -> Result<Box<dyn View>, LedgerError>;
}

/// A consistent view.
pub trait View: Send {
    /// The shard's row.
    fn shard(&self, shard: u32) -> Result<Option<ShardRow>, LedgerError>;
    /// Every SKU of the shard.
    fn skus(&self, shard: u32, each: &mut dyn FnMut(SkuRecord)) -> Result<(), LedgerError>;
    /// Every live reservation of the shard.
    fn live(&self, shard: u32, each: &mut dyn FnMut(Reservation)) -> Result<(), LedgerError>;
    /// Every owner usage that is not 0: tenant, SKU, owner, used.
    fn usage(&self, shard: u32, each: &mut dyn FnMut(&Id, &Id, &Id, u64)) -> Result<(), LedgerError>;
    /// Every id that is not a live reservation's: space, tenant, id.
    fn ended_ids(&self, shard: u32, each: &mut dyn FnMut(Space, &str, &str)) -> Result<(), LedgerError>;
    /// What is known about an id.
    fn find(&self, shard: u32, tenant: &Id, space: Space, id: &Id) -> Result<Found, LedgerError>;
    /// The same for many ids.
    fn find_many(&self, shard: u32, keys: &[Key]) -> Result<FoundMany, LedgerError>;
    /// One SKU; with what its owners used of it, which takes as long as the SKU's history is.
    fn sku(&self, shard: u32, tenant: &Id, sku: &Id, with_usage: bool) -> Result<FoundSku, LedgerError>;
    /// What is recorded of these entries, in their order. An entry is found by its number and its tag; the epoch may be
    /// that of a chain which begins with it, so that the base of an epoch counts as the recorded entry it is.
    fn recorded(&self, shard: u32, asked: &[Position]) -> Result<Vec<Recorded>, LedgerError>;
    /// SKUs of a tenant in the order of their bytes, after `after`, at most `limit`.
    fn sku_page(&self, tenant: &Id, after: Option<&Id>, limit: usize) -> Result<Vec<SkuRecord>, LedgerError>;
    /// Movements of every tenant after a number, oldest first, at most `limit`, each with its tenant. A movement gets its
    /// number with the transaction that records it, so that none ever comes in below one that was read.
    fn movements_after(&self, after: i64, limit: usize) -> Result<Vec<(Id, Movement)>, LedgerError>;
    /// Which movements are kept.
    fn movements_kept(&self) -> Result<MovementsKept, LedgerError>;
    /// Movements, newest first.
    fn movements(&self, query: &MovementQuery) -> Result<MovementPage, LedgerError>;
    /// Reservations, newest first.
    fn reservations(&self, query: &ReservationQuery) -> Result<Vec<Reservation>, LedgerError>;
    /// Compares the counters, live reservations, owner usage and the chain with the fold of the movements; one finding
    /// a difference, at most `limit`. Reads every table in order, a few seconds per million reservations, in at most
    /// 128 MiB; beyond two million reservations, once more for each further two million. Movements do not say what a
    /// SKU's settings became, so an edit of those is not found.
    fn audit(&self, shard: u32, limit: usize) -> Result<Vec<Finding>, LedgerError>;
}

/// What the ledger says about an id, and where it stood when it said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The shard's epoch in this view.
    pub epoch: u64,
    /// The shard's cursor in this view.
    pub cursor: u64,
    /// The record.
    pub record: Option<Record>,
}

/// Which movements. All given conditions hold together.
///
/// A reservation, an owner or a SKU has an index: the work then grows with its own history, whatever else is in the
/// ledger. A query with none of them reads every tenant's movements of its time range, newest first, until the page is
/// full: give a small tenant in a large ledger a time range or one of the three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovementQuery {
    /// The tenant.
    pub tenant: Id,
    /// Of this SKU.
    pub sku: Option<Id>,
    /// Of this reservation.
    pub reservation: Option<Id>,
    /// Of this owner.
    pub owner: Option<Id>,
    /// At or after.
    pub from: Option<Millis>,
    /// Before.
    pub until: Option<Millis>,
    /// Only movements with a smaller number: the way to the next page.
    pub before: Option<i64>,
    /// At most so many, 1..=1,000.
    pub limit: usize,
}

/// A page of movements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovementPage {
    /// Newest first.
    pub movements: Vec<Movement>,
    /// Where the next page starts; `None`: there is none.
    pub next_before: Option<i64>,
}

/// Which movements are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovementsKept {
    /// Every movement with a larger number is there; of the others retention may have let some go.
    pub complete_after: i64,
    /// The newest number; 0 before the first.
    pub newest: i64,
}

/// One movement: who changed what, why, and the counters after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movement {
    /// Its number: grows with time, with gaps.
    pub number: i64,
    /// When.
    pub at: Millis,
    /// `reserve`, `confirm`, `set` ...
    pub kind: String,
    /// Who.
    pub actor: Id,
    /// Why; may be empty.
    pub reason: String,
    /// The reservation, if one changed.
    pub reservation: Option<Id>,
    /// Its owner.
    pub owner: Option<Id>,
    /// The id of the return or stock command that caused it.
    pub command: Option<Id>,
    /// The SKU; `None` where no units and no settings changed.
    pub sku: Option<Id>,
    /// The location; `None` where no units moved.
    pub location: Option<Id>,
    /// Change of `on_hand`, reserved, sold.
    pub on_hand: i64,
    /// See `on_hand`.
    pub reserved: i64,
    /// See `on_hand`.
    pub sold: i64,
    /// The counters after; `None` where no units moved.
    pub after: Option<Counters>,
}

/// Which reservations. All given conditions hold together.
///
/// An owner or a SKU has an index: the work then grows with its own history, whatever else is in the ledger. Status
/// `pending` without an owner reads every tenant's live reservations, unless a SKU with a short history is given.
/// Anything else reads every tenant's reservations of its time range, newest first, until the page is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationQuery {
    /// The tenant.
    pub tenant: Id,
    /// Of this owner.
    pub owner: Option<Id>,
    /// With a line of this SKU.
    pub sku: Option<Id>,
    /// With this recorded status.
    pub status: Option<Status>,
    /// Granted at or after.
    pub from: Option<Millis>,
    /// Granted before.
    pub until: Option<Millis>,
    /// Only reservations that come after this one in the order of the answer: the way to the next page. An id that
    /// the ledger does not know gives an empty page.
    pub before: Option<Id>,
    /// At most so many, 1..=1,000.
    pub limit: usize,
}

/// A difference that an audit found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What differs: `on_hand`, `reserved`, `sold`, `usage`, `chain` ...
    pub what: String,
    /// Where: a SKU and location, a reservation's id, an entry.
    pub place: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// Why a ledger could not be opened or asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The disk or the folder: full, read-only, missing.
    #[error("{path}: {message}")]
    Storage {
        /// Which file or folder.
        path: PathBuf,
        /// What happened and what to do.
        message: String,
        /// Whether the disk or the quota is full.
        full: bool,
    },
    /// Another process held the ledger for longer than was waited. Nothing was changed; trying again may help.
    #[error("{path}: another process holds the ledger for longer than was waited: stop it, or try again")]
    Busy {
        /// Which file.
        path: PathBuf,
    },
    /// A hot tier elsewhere is being recorded in this ledger.
    #[error(
        "`{owner}` records what a hot tier elsewhere decides in this ledger, for another {left_ms} ms at least: stop the \
         processes that use it, or use another data folder"
    )]
    Leased {
        /// Who has the lease.
        owner: String,
        /// How long it lasts.
        left_ms: Millis,
    },
    /// An earlier write failed in a way that leaves its fate unknown: this opening writes no more, and only a new
    /// process can tell what is on disk.
    #[error(
        "{path}: an earlier write failed in a way that leaves its fate unknown; look at the disk, then start again"
    )]
    Broken {
        /// Which file.
        path: PathBuf,
    },
    /// Not a ledger, another application's file, or damaged.
    #[error("{path}: {message}")]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// What was found and what to do.
        message: String,
    },
    /// Written by a newer release.
    #[error(
        "{path}: schema version {found} is newer than {known}, which this release knows; use the newer release"
    )]
    TooNew {
        /// Which file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// A stored value cannot be what the ledger writes.
    #[error("corrupt value in {place}: {message}")]
    Corrupt {
        /// Table, column, key.
        place: String,
        /// What was found.
        message: String,
    },
    /// Anything else that the database said.
    #[error("the database said: {0}")]
    Database(String),
}

impl LedgerError {
    /// Whether nothing is wrong but the moment: the same call may succeed a little later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }
}

/// Why a run was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The run does not continue the recorded chain: another epoch, mode, cursor or tag.
    #[error("fenced: expected to continue after entry {expected}, the ledger is at {found:?}")]
    Fenced {
        /// The entry that the run continues.
        expected: u64,
        /// Where the ledger stands.
        found: Option<ShardRow>,
    },
    /// A version, counter, state or check differs: a bug or a hand edit. Nothing was recorded.
    #[error("mismatch at {place}: expected {expected}, found {found}")]
    Mismatch {
        /// Which row.
        place: String,
        /// What the entry says.
        expected: String,
        /// What the ledger says.
        found: String,
    },
    /// The transaction did not commit, for sure.
    #[error("not recorded: {0}")]
    NotRecorded(LedgerError),
    /// The commit may or may not be on disk (a failed fsync, a lost connection).
    #[error("it is not known whether this was recorded: {0}")]
    Unknown(LedgerError),
}

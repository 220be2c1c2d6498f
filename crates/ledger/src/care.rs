//! Looking after a ledger: copies of it, letting old things go, mending what a hand broke.

use std::path::{Path, PathBuf};

use stockade_core::{Counters, Id, Millis, Reason};

use crate::api::{Finding, Ledger, LedgerError, ShardRow};

/// A ledger that can be looked after while it is used.
pub trait LedgerCare: Ledger {
    /// Copies the ledger as it is at one moment into a new file, while it goes on being used; then reads the copy back:
    /// SQLite's own check, and with `audit` the copy against the fold of its movements. Nothing is at `to` until all of
    /// that is done; a file that is there already is never overwritten.
    ///
    /// The write-ahead log grows for as long as the copying takes. The copy is one file, which [`crate::restore`] takes.
    fn backup(
        &self,
        to: &Path,
        audit: bool,
        progress: &mut dyn FnMut(CopyProgress),
    ) -> Result<Copied, CopyError>;

    /// Removes reservations that ended and last changed before a time, with their movements and returns; a call looks at
    /// no more than `limit` movements. Counters, owner usage and the audit stay exact; stock commands and their movements
    /// stay.
    ///
    /// What it costs: the ids of what was removed are forgotten. Sent again, such an id is a new one: a reserve or deduct
    /// is granted a second time, a confirm, cancel or return finds nothing, and an id that was sealed is open again. So
    /// `before` must lie further back than anybody may still repeat a command, and further than a hot tier keeps
    /// reservations that ended: a return of a removed reservation that a hot tier still holds cannot be recorded, and the
    /// tier is then built anew.
    fn retain(&self, before: Millis, limit: usize) -> Result<Retained, LedgerError>;

    /// What differs in a shard, and how it would be mended. Changes nothing.
    fn plan_repair(&self, shard: u32) -> Result<RepairPlan, LedgerError>;

    /// Carries out a plan in one transaction: each repair is a movement of the kind `repair`, all of them are one entry of
    /// the chain, and the shard gets a new epoch in the mode `rebuild`, so that a hot tier that knows the old counters can
    /// record nothing and is built anew. Where the shard stands then.
    fn repair(&self, plan: &RepairPlan, actor: &Id, reason: &Reason) -> Result<ShardRow, RepairError>;
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Pages copied.
    pub done: u64,
    /// Pages in all.
    pub all: u64,
}

/// A copy that was made and read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Where.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Where each shard stands in it.
    pub shards: Vec<ShardRow>,
}

/// Why a copy was not made or not taken back.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// There is something already, and nothing is overwritten.
    #[error("{path}: is not empty, and nothing is overwritten: name another place")]
    Occupied {
        /// Which file or folder.
        path: PathBuf,
    },
    /// The copy contradicts itself. It was removed.
    #[error("{path}: contradicts itself: {} ({} found)", first(.findings), .findings.len())]
    Unsound {
        /// Which file.
        path: PathBuf,
        /// The first of what was found.
        findings: Vec<Finding>,
    },
    /// A ledger could not be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// The first finding, in words.
fn first(findings: &[Finding]) -> String {
    findings.first().map_or_else(String::new, |one| {
        format!(
            "{} of {}: expected {}, found {}",
            one.what, one.place, one.expected, one.found
        )
    })
}

/// What a step of retention did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// Movements looked at.
    pub looked_at: usize,
    /// Reservations removed.
    pub reservations: u64,
    /// Movements removed.
    pub movements: u64,
    /// Whether there is more to look at.
    pub more: bool,
}

/// What can be mended about a shard, and what cannot. Made by reading only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairPlan {
    /// Where the shard stood. A plan is only good for that moment.
    pub row: ShardRow,
    /// Counters that differ from what the movements and the reservations say.
    pub counters: Vec<CounterRepair>,
    /// Whether the tables that are derived from the others (by id, owner, SKU, what is live) are made anew.
    pub derived: bool,
    /// What no movement can mend: a history that was changed. Restore a backup, or live with it.
    pub left: Vec<Finding>,
}

impl RepairPlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty() && !self.derived
    }
}

/// Counters of a (SKU, location) to be mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRepair {
    /// The tenant.
    pub tenant: Id,
    /// The SKU.
    pub sku: Id,
    /// The location.
    pub location: Id,
    /// What is there; `None`: the row is missing.
    pub found: Option<Counters>,
    /// What it will be: `on_hand` as the movements say, reserved and sold as the reservations do.
    pub right: Counters,
    /// The movement that says so: change of reserved.
    pub reserved: i64,
    /// Change of sold.
    pub sold: i64,
}

/// Why nothing was mended.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The ledger is not as it was when the plan was made: make a new one.
    #[error("the ledger changed since the plan was made ({place}); make a new plan")]
    Moved {
        /// Where.
        place: String,
    },
    /// The ledger could not be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

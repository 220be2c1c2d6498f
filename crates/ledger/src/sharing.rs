//! What a hot tier outside of the process asks of a ledger that several processes share: who may build an epoch, who
//! records, and what is recorded.
//!
//! Nothing here keeps the ledger safe: the fence in `record` does. A claim decides who may fence and load the hot tier;
//! a lease only saves the work of recording the same entries twice.

use stockade_core::{Id, Millis, Position, Record, SkuRecord, Space};

use crate::api::{Ledger, LedgerError, ShardRow, View};

/// A ledger that several processes use at once.
///
/// An `owner` names one run of one process: a name that a restarted process would use again would let it go on with an
/// epoch or a lease that it knows nothing of.
pub trait SharedLedger: Ledger {
    /// The shard's row as it is now. Cheap enough to be asked every few milliseconds.
    fn row(&self, shard: u32) -> Result<Option<ShardRow>, LedgerError>;

    /// Creates the shard's row if it is missing: epoch 1, mode `rebuild`, owned by `owner`, who then builds that epoch.
    fn create_shard(&self, shard: u32, owner: &str) -> Result<Claim, LedgerError>;

    /// Begins a rebuild: if the row still has the epoch, mode and owner of `seen`, it becomes (epoch + 1, `rebuild`,
    /// `owner`). Its mode may be any: `hot`, `sql`, or a `rebuild` that was abandoned.
    fn claim_rebuild(&self, seen: &ShardRow, owner: &str) -> Result<Claim, LedgerError>;

    /// Ends a rebuild: (`epoch`, `rebuild`, `owner`) becomes `hot`. From then on the epoch's chain is recorded.
    fn finish_rebuild(&self, shard: u32, epoch: u64, owner: &str) -> Result<Claim, LedgerError>;

    /// A view for a rebuild, if the row still is (`epoch`, `rebuild`, `owner`) in it; otherwise the row found.
    fn rebuild_view(
        &self,
        shard: u32,
        epoch: u64,
        owner: &str,
    ) -> Result<Result<Box<dyn View>, Option<ShardRow>>, LedgerError> {
        let view = self.view()?;
        let row = view.shard(shard)?;
        let is_mine = row.as_ref().is_some_and(|row| {
            (row.epoch, row.mode, row.owner.as_str()) == (epoch, crate::ShardMode::Rebuild, owner)
        });
        Ok(if is_mine { Ok(view) } else { Err(row) })
    }

    /// Takes the shard's recorder lease, or renews it, for `for_ms` milliseconds from now by the ledger's clock (1 to
    /// [`LEASE_MAX_MS`]). Another's lease is only taken over when it ran out.
    fn take_lease(&self, shard: u32, owner: &str, for_ms: Millis) -> Result<Leasing, LedgerError>;

    /// Gives the lease back early. Whether it was `owner`'s and still there.
    fn release_lease(&self, shard: u32, owner: &str) -> Result<bool, LedgerError>;

    /// The lease, if somebody has one that has not run out.
    fn lease(&self, shard: u32) -> Result<Option<Lease>, LedgerError>;

    /// What is recorded of these entries, in their order, in one snapshot.
    fn recorded(&self, shard: u32, asked: &[Position]) -> Result<Vec<Recorded>, LedgerError> {
        self.view()?.recorded(shard, asked)
    }

    /// Removes the oldest entries that `keep` does not keep, at most `limit` in this call. What they changed stays.
    fn prune_entries(&self, shard: u32, keep: Keep, limit: usize) -> Result<Pruned, LedgerError>;
}

/// The longest lease. One that seems to last longer was taken before the clock was set back, and has run out.
pub const LEASE_MAX_MS: Millis = 60_000;

/// How a compare-and-set of the shard's row went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Done: the row now.
    Won(ShardRow),
    /// Not done: the row as it is.
    Found(Option<ShardRow>),
}

/// Who records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who.
    pub owner: String,
    /// Until when, by the ledger's clock.
    pub until: Millis,
    /// How long that is from now.
    pub left_ms: Millis,
}

/// How asking for a lease went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leasing {
    /// The asker has it.
    Mine(Lease),
    /// Another has it.
    Others(Lease),
}

/// What the ledger says about an entry, named by (epoch, seq, tag).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is recorded.
    Yes,
    /// It is not, and may still be.
    NotYet,
    /// It is not and never will be: another entry has its number, or its epoch is over.
    Never,
    /// The entries of its time were pruned.
    Pruned,
}

/// Which entries stay: those that either rule keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The newest so many; the last one always.
    pub entries: u64,
    /// Those not older than this before the last one.
    pub within_ms: Millis,
}

/// What a call removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many.
    pub removed: usize,
    /// Whether there are more to remove.
    pub more: bool,
}

/// An id to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The tenant.
    pub tenant: Id,
    /// The id's space.
    pub space: Space,
    /// The id.
    pub id: Id,
}

/// What the ledger says about ids, and where it stood when it said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMany {
    /// The shard's epoch in this view.
    pub epoch: u64,
    /// The shard's cursor in this view.
    pub cursor: u64,
    /// A record for each key, in their order.
    pub records: Vec<Option<Record>>,
}

/// What the ledger says about a SKU, and where it stood when it said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSku {
    /// The shard's epoch in this view.
    pub epoch: u64,
    /// The shard's cursor in this view.
    pub cursor: u64,
    /// The SKU; `None`: the ledger does not know it.
    pub record: Option<SkuRecord>,
    /// Owner usage that is not 0, if it was asked for: owner, used.
    pub usage: Vec<(Id, u64)>,
}

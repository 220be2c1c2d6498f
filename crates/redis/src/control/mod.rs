//! The shard on its node: connection, outbox, fence, load, open. (skeleton: bodies follow)

use stockade_core::{Entry, Id, Position, SkuRecord};

use crate::error::CallError;
use crate::hot::Hot;
use crate::types::{Backlog, Base, Chunk, Decided, Fenced, KeptIds, MissingSku, Sent, Survivor, Token};

impl Hot {
    // ---- outbox ----

    /// Entries from `from` on, inclusive (the base that trimming kept stands in for the first when it has that seq), at most `count`. The caller
    /// checks tags: the first must be what the ledger has, each further one names the one before. The base has no effects,
    /// and neither `prev` nor `at`.
    pub async fn read(
        &self,
        _epoch: u64,
        _from: u64,
        _count: usize,
    ) -> Result<Decided<Vec<Entry>>, CallError> {
        todo!()
    }
    /// Trims up to and including an entry, which is kept as base; nothing happens unless that entry has that tag.
    pub async fn trim(&self, _at: Position) -> Result<bool, CallError> {
        todo!()
    }
    /// What lies in the outbox.
    pub async fn backlog(&self, _epoch: u64) -> Result<Decided<Backlog>, CallError> {
        todo!()
    }

    // ---- SKUs that are not held ----

    /// Sets a load marker, or finds the one that is there. `token` is random.
    pub async fn mark(
        &self,
        _sent: &Sent,
        _tenant: &Id,
        _sku: &Id,
        _token: Token,
    ) -> Result<Decided<MissingSku>, CallError> {
        todo!()
    }
    /// Loads a SKU under its marker, with owner usage where the SKU has a limit (or `track` asks for it); `None`: the ledger does not know it, and the marker says so
    /// from now on. `false`: the marker is gone, begin again.
    pub async fn load_sku(
        &self,
        _sent: &Sent,
        _tenant: &Id,
        _sku: &Id,
        _token: Token,
        _record: Option<&SkuRecord>,
        _usage: &[(Id, u64)],
    ) -> Result<Decided<bool>, CallError> {
        todo!()
    }

    // ---- rebuild ----

    /// Closes the node under an epoch, if its own is lower or it has none.
    pub async fn fence(&self, _epoch: u64) -> Result<Fenced, CallError> {
        todo!()
    }
    /// Entries of all older epochs that the fenced node still has, oldest first.
    pub async fn survivors(&self, _epoch: u64) -> Result<Vec<Survivor>, CallError> {
        todo!()
    }
    /// Sets where the epoch starts; the node must be fenced at it with nothing loaded.
    pub async fn base(&self, _base: &Base) -> Result<bool, CallError> {
        todo!()
    }
    /// Loads chunk `number` (from 1), only when exactly `number - 1` are in. `false`: not taken.
    pub async fn chunk(&self, _epoch: u64, _number: u64, _chunk: &Chunk) -> Result<bool, CallError> {
        todo!()
    }
    /// Opens for commands, if exactly so many chunks are in.
    pub async fn open(&self, _epoch: u64, _chunks: u64) -> Result<bool, CallError> {
        todo!()
    }
    /// Removes the keys of older epochs.
    pub async fn drop_older(&self, _epoch: u64) -> Result<(), CallError> {
        todo!()
    }

    // ---- care ----

    /// Forgets ended ids; how many.
    pub async fn forget(&self, _sent: &Sent, _kept: &KeptIds) -> Result<Decided<usize>, CallError> {
        todo!()
    }
}

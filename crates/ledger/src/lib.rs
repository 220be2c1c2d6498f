//! The ledger: what is on disk is what happened. It records a shard's chain in order, in groups, takes only the exact
//! continuation and checks every counter. Everything else can be rebuilt from it.
//!
//! The interface blocks: callers are a recorder thread or a blocking pool.

mod api;
mod care;
mod sharing;
mod sqlite;

pub use api::{
    Finding, Found, Ledger, LedgerError, Movement, MovementPage, MovementQuery, MovementsKept, RecordError,
    ReservationQuery, ShardMode, ShardRow, View,
};
pub use care::{
    Copied, CopyError, CopyProgress, CounterRepair, LedgerCare, RepairError, RepairPlan, Retained,
};
pub use sharing::{
    Claim, FoundMany, FoundSku, Keep, Key, LEASE_MAX_MS, Lease, Leasing, Pruned, Recorded, SharedLedger,
};
pub use sqlite::{Sqlite, restore, take_over};

//! The ledger: what is on disk is what happened. It records a shard's chain in order, in groups, takes only the exact
//! continuation and checks every counter. Everything else can be rebuilt from it.
//!
//! The interface blocks: callers are a recorder thread or a blocking pool.

mod api;
mod sqlite;

pub use api::{
    Finding, Found, Ledger, LedgerError, Movement, MovementPage, MovementQuery, RecordError,
    ReservationQuery, ShardMode, ShardRow, View,
};
pub use sqlite::Sqlite;

//! The hot tier on Redis: one Lua script a kind of command decides a merged batch, a stream is the outbox.
//!
//! This crate speaks to Redis and knows the words of `stockade-core`; it knows neither the ledger nor who calls. A
//! [`Hot`] is one shard on one node. What it is told (epoch, tag, the ledger's word about ids) comes from the engine.
#![allow(clippy::todo)]

mod checks;
mod control;
mod decide;
mod error;
mod hot;
pub mod layout;
mod node;
pub mod packed;
mod script;
mod state;
mod types;

pub use checks::{Finding, Severity, examine};
pub use decide::ScriptKind;
pub use error::{CallError, Kind};
pub use hot::Hot;
pub use node::{NodeStats, ScriptStats};
pub use script::version as script_version;
pub use state::State;
pub use types::{
    Absent, Asked, Backlog, Base, Batch, Chunk, Decided, Fenced, Forgot, KeptIds, Marked, MetaState,
    MissingSku, Options, Reran, Rerun, Sent, Stale, Survivor, SweepReply, Token, Verdict,
};

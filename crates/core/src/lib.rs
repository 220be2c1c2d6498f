//! The rules of Stockade, once: a pure, deterministic state machine.
//!
//! [`Shard::apply`] takes the time and a command and returns a [`Decision`]. There is no I/O here, no clock, no
//! randomness and no async; the crate is `no_std`, so that the compiler forbids them. It is the engine of the memory
//! tier, the specification, and the oracle that other hot tiers are tested against.

#![no_std]
#![deny(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

extern crate alloc;

mod command;
mod entry;
mod id;
mod record;
mod reply;
mod shard;

pub use command::{
    Action, Adjust, AskLine, Cancel, Changes, Command, Configure, Confirm, ConfirmPayload, Count, Expect,
    Extend, Mode, PickLine, Reserve, Return, Set, Transfer,
};
pub use entry::{Change, Effect, Entry, Move, StockVerb, Verb};
pub use id::{
    ID_BYTES_MAX, Id, IdError, LINES_MAX, LOCATIONS_MAX, Millis, QUANTITY_MAX, REASON_BYTES_MAX, Reason,
    TTL_MS_DEFAULT, TTL_MS_MAX, TTL_MS_MIN,
};
pub use record::{
    Allocation, Counters, Digest, Line, LocationRecord, Record, Reservation, ReturnRecord, ReturnedLine,
    Settings, SkuRecord, Space, Status, StockRecord,
};
pub use reply::{
    Conflict, Decision, Done, DoneCode, InvalidField, LateReason, OverLimit, Refusal, RefusedLine, Reply,
    Short, StockSubject, Subject,
};
pub use shard::{LateConfirm, LoadError, LookedUp, Position, Rules, Shard, payload};

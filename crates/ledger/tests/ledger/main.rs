//! The SQLite ledger from outside: everything goes through its public interface and its file.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod audit;
mod backup;
mod claims;
mod crash;
mod fence;
mod ids;
mod opening;
mod processes;
mod queries;
mod recorded;
mod repair;
mod retain;
mod round_trip;
mod rules;
mod support;
mod upgrade;

//! The SQLite ledger from outside: everything goes through its public interface and its file.

mod audit;
mod crash;
mod fence;
mod opening;
mod queries;
mod round_trip;
mod rules;
mod support;

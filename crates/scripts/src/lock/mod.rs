//! Locks on one Redis ([`Locks`]) and over several independent ones ([`QuorumLock`]).
//!
//! A lock in Redis keeps two workers from doing the same work most of the time. It cannot keep a worker that was stopped
//! for longer than its time from going on: no lock with a time can. What can is the fencing number: it grows with every
//! acquisition, and whoever is written to (a database row) takes a write only if its number is at least the largest it
//! has seen. The holder also learns that it lost: [`Lock::is_held`] looks at the clock, not only at the last answer.

mod quorum;
mod single;

pub use quorum::{NoQuorum, QuorumGuard, QuorumLock, QuorumOptions};
pub use single::{Lock, LockError, LockOptions, Locks, Release};

use std::time::Duration;

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Somewhere between half of it and all of it, so that waiting callers do not come back together.
fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(0.5 + fastrand::f64() / 2.0)
}

fn new_owner() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

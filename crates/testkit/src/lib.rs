//! What the tests of several crates share. No crate depends on it outside of its tests and the benches.

pub mod proxy;
pub mod redis;

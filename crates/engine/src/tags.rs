//! Random tags for entries: two processes never make the same.

use std::hash::{BuildHasher, RandomState};

/// A keyed hash of a counter, the key from the operating system's randomness.
#[derive(Debug)]
pub(crate) struct Tags {
    key: RandomState,
    count: u64,
}

impl Tags {
    pub(crate) fn new() -> Self {
        Self {
            key: RandomState::new(),
            count: 0,
        }
    }

    pub(crate) fn next(&mut self) -> u64 {
        loop {
            self.count = self.count.wrapping_add(1);
            let tag = self.key.hash_one(self.count);
            if tag != 0 {
                return tag;
            }
        }
    }
}

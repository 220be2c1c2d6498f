//! The entry being built, and where the chain stands.

use alloc::vec::Vec;

use super::Position;
use crate::entry::{Effect, Entry};
use crate::id::Millis;

pub(super) struct Chain {
    pub(super) at: Position,
    effects: Vec<Effect>,
}

impl Chain {
    pub(super) const fn new() -> Self {
        Self {
            at: Position {
                epoch: 0,
                seq: 0,
                tag: 0,
            },
            effects: Vec::new(),
        }
    }

    /// The sequence number of the entry being built.
    pub(super) const fn next_seq(&self) -> u64 {
        self.at.seq.saturating_add(1)
    }

    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(super) const fn len(&self) -> usize {
        self.effects.len()
    }

    pub(super) fn seal(&mut self, shard: u32, tag: u64, at: Millis) -> Option<Entry> {
        if self.effects.is_empty() {
            return None;
        }
        // The next entry will likely be about as long.
        let room = Vec::with_capacity(self.effects.len());
        let entry = Entry {
            shard,
            epoch: self.at.epoch,
            seq: self.next_seq(),
            tag,
            prev: self.at.tag,
            at,
            effects: core::mem::replace(&mut self.effects, room),
        };
        self.at.seq = entry.seq;
        self.at.tag = tag;
        Some(entry)
    }
}

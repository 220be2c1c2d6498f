//! What the shard remembers of ended ids, what it has forgotten, and what the ledger said it does not know.

use alloc::collections::VecDeque;

use super::filter::Filter;
use super::slab::Fifo;
use crate::id::{Id, Millis};
use crate::record::Space;

/// Ids known to be absent that are remembered at a time: enough for every command that waits for its second answer.
const ABSENT_MAX: usize = 256;

/// An ended record, as of one change of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) space: Space,
    pub(super) slot: u32,
    pub(super) seq: u64,
    pub(super) at: Millis,
}

struct Absent {
    space: Space,
    tenant: Id,
    id: Id,
    cursor: u64,
}

pub(super) struct Memory {
    /// Ended records, oldest change first; an item is stale when its record has changed since.
    pub(super) queue: Fifo<Ended>,
    /// The highest entry with a change of an id that is not held here.
    pub(super) forgot: u64,
    filter: Filter,
    /// Until the forgotten ids are known, every id may be one.
    everything: bool,
    absent: VecDeque<Absent>,
}

impl Memory {
    pub(super) const fn new() -> Self {
        Self {
            queue: Fifo::new(),
            forgot: 0,
            filter: Filter::new(),
            everything: false,
            absent: VecDeque::new(),
        }
    }

    pub(super) fn open(&mut self, cursor: u64) {
        self.forgot = cursor;
        self.everything = true;
    }

    pub(super) fn known(&mut self) {
        self.everything = false;
    }

    pub(super) fn add(&mut self, hash: u64) {
        self.filter.add(hash);
    }

    /// Whether an id that is not held may be known to the ledger.
    pub(super) fn may_have_forgotten(&self, hash: u64) -> bool {
        self.everything || self.filter.may_have(hash)
    }

    /// A record with this last change was forgotten.
    pub(super) fn forgotten(&mut self, hash: u64, seq: u64) {
        self.filter.add(hash);
        self.forgot = self.forgot.max(seq);
        while self
            .absent
            .front()
            .is_some_and(|absent| absent.cursor < self.forgot)
        {
            self.absent.pop_front();
        }
    }

    pub(super) fn is_absent(&self, space: Space, tenant: &Id, id: &Id) -> bool {
        self.absent.iter().any(|absent| {
            absent.cursor >= self.forgot
                && absent.space == space
                && absent.id == *id
                && absent.tenant == *tenant
        })
    }

    pub(super) fn note_absent(&mut self, space: Space, tenant: &Id, id: &Id, cursor: u64) {
        if self.absent.len() >= ABSENT_MAX {
            self.absent.pop_front();
        }
        self.absent.push_back(Absent {
            space,
            tenant: tenant.clone(),
            id: id.clone(),
            cursor,
        });
    }
}

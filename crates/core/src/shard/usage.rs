//! What each owner holds and has bought of each SKU, in the SKU's present era.
//!
//! Each era of each SKU has a number of its own, so that a reset costs nothing: usages of an era that is over are no
//! longer found, and `tidy` removes them a few at a time.

use core::num::NonZeroU64;

use super::names::{Hashing, Owners};
use super::slab::{Chunked, Store};
use super::stop::{Stop, Try};

#[derive(Clone, Copy)]
struct Usage {
    era: u32,
    owner: u32,
    used: NonZeroU64,
}

pub(super) struct Usages {
    store: Store<Usage>,
    // By era number: the SKU, and how many usages it has; `None` once it is over.
    eras: Chunked<(u32, bool, u32)>,
    stale: usize,
    cursor: u32,
    hashing: Hashing,
}

impl Usages {
    pub(super) fn new(hashing: Hashing) -> Self {
        Self {
            store: Store::new(),
            eras: Chunked::new(),
            stale: 0,
            cursor: 0,
            hashing,
        }
    }

    /// A new era of a SKU.
    pub(super) fn open_era(&mut self, sku: u32) -> Try<u32> {
        let era = u32::try_from(self.eras.len()).map_err(|_| Stop::Corrupt("more than 2^32 eras"))?;
        self.eras.push((sku, true, 0));
        Ok(era)
    }

    /// The era is over: its usages no longer count.
    pub(super) fn close_era(&mut self, era: u32) {
        if let Some((_, open, count)) = self.eras.get_mut(era as usize) {
            *open = false;
            self.stale = self.stale.saturating_add(*count as usize);
        }
    }

    fn slot(&self, era: u32, owner: u32) -> Option<u32> {
        self.store.find(self.hashing.pair(era, owner), |usage| {
            usage.era == era && usage.owner == owner
        })
    }

    pub(super) fn get(&self, era: u32, owner: u32) -> u64 {
        self.slot(era, owner)
            .and_then(|slot| self.store.get(slot))
            .map_or(0, |usage| usage.used.get())
    }

    /// What the usage would be after the change; an error if it cannot be.
    pub(super) fn after(&self, era: u32, owner: u32, delta: i64) -> Try<u64> {
        self.get(era, owner)
            .checked_add_signed(delta)
            .ok_or(Stop::Corrupt("owner usage below zero"))
    }

    pub(super) fn set(&mut self, owners: &mut Owners, era: u32, owner: u32, used: u64) -> Try<()> {
        let hash = self.hashing.pair(era, owner);
        match (self.slot(era, owner), NonZeroU64::new(used)) {
            (Some(slot), Some(used)) => {
                if let Some(usage) = self.store.get_mut(slot) {
                    usage.used = used;
                }
            }
            (Some(slot), None) => self.remove(owners, hash, slot),
            (None, Some(used)) => {
                let hashing = &self.hashing;
                self.store.insert(hash, Usage { era, owner, used }, |other| {
                    hashing.pair(other.era, other.owner)
                })?;
                owners.retain(owner);
                if let Some((_, _, count)) = self.eras.get_mut(era as usize) {
                    *count = count.saturating_add(1);
                }
            }
            (None, None) => {}
        }
        Ok(())
    }

    fn remove(&mut self, owners: &mut Owners, hash: u64, slot: u32) {
        if let Some(usage) = self.store.remove(hash, slot) {
            owners.release(usage.owner);
            if let Some((_, _, count)) = self.eras.get_mut(usage.era as usize) {
                *count = count.saturating_sub(1);
            }
        }
    }

    /// Looks at up to `limit` slots for usages of eras that are over, and removes those.
    pub(super) fn tidy(&mut self, owners: &mut Owners, limit: usize) {
        for _ in 0..limit {
            if self.stale == 0 {
                return;
            }
            let slot = self.cursor;
            self.cursor = if (slot as usize) < self.store.span() {
                slot.saturating_add(1)
            } else {
                0
            };
            let Some(usage) = self.store.get(slot).copied() else {
                continue;
            };
            if self
                .eras
                .get(usage.era as usize)
                .is_some_and(|(_, open, _)| !open)
            {
                self.remove(owners, self.hashing.pair(usage.era, usage.owner), slot);
                self.stale = self.stale.saturating_sub(1);
            }
        }
    }

    /// Every usage that counts: SKU, owner, used.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.store.iter().filter_map(|usage| {
            let (sku, open, _) = self.eras.get(usage.era as usize)?;
            open.then_some((*sku, usage.owner, usage.used.get()))
        })
    }
}

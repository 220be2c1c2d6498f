//! Letting go of ended ids whose last change is recorded: from then on the ledger is asked about them.

use super::Shard;
use super::memory::Ended;
use super::names::{Kind, NO_OWNER};
use crate::id::{Id, Millis};
use crate::record::Space;

impl Shard {
    /// How many ended ids are held.
    fn ended_count(&self) -> usize {
        self.holds
            .len()
            .saturating_sub(self.ends.len())
            .saturating_add(self.returns.len())
            .saturating_add(self.commands.len())
    }

    pub(super) fn forget_some(
        &mut self,
        recorded: u64,
        older_than: Millis,
        keep: usize,
        limit: usize,
    ) -> usize {
        let mut forgotten = 0_usize;
        // Stale items cost a step too, so that a call is bounded.
        for _ in 0..limit {
            let Some(item) = self.memory.queue.front().copied() else {
                break;
            };
            if self.is_current(item) {
                let wanted = item.at < older_than || self.ended_count() > keep;
                if !wanted || item.seq > recorded {
                    break;
                }
                self.drop_record(item);
                forgotten = forgotten.saturating_add(1);
            }
            self.memory.queue.drop_front();
        }
        forgotten
    }

    // Whether the record is still as it was when it was queued.
    fn is_current(&self, item: Ended) -> bool {
        let seq = match item.space {
            Space::Reservation => self
                .holds
                .get(item.slot)
                .filter(|hold| !hold.is_live())
                .map(|hold| hold.seq),
            Space::Return => self.returns.get(item.slot).map(|past| past.seq),
            Space::Stock => self.commands.get(item.slot).map(|past| past.seq),
        };
        seq == Some(item.seq)
    }

    fn drop_record(&mut self, item: Ended) {
        let kind = Kind::Of(item.space);
        let hash = match item.space {
            Space::Reservation => {
                let Some(hold) = self.holds.get(item.slot) else {
                    return;
                };
                let owner = hold.owner;
                let tenant = self.tenants.get(hold.tenant).map_or("", Id::as_str);
                let hash = self.hashing.key(kind, tenant, hold.id.as_str());
                self.holds.remove(hash, item.slot);
                if owner != NO_OWNER {
                    self.owners.release(owner);
                }
                hash
            }
            Space::Return => {
                let Some(past) = self.returns.get(item.slot) else {
                    return;
                };
                let (tenant, id) = (&past.record.tenant, &past.record.id);
                let hash = self.hashing.key(kind, tenant.as_str(), id.as_str());
                self.returns.remove(hash, item.slot);
                hash
            }
            Space::Stock => {
                let Some(past) = self.commands.get(item.slot) else {
                    return;
                };
                let (tenant, id) = (&past.record.tenant, &past.record.id);
                let hash = self.hashing.key(kind, tenant.as_str(), id.as_str());
                self.commands.remove(hash, item.slot);
                hash
            }
        };
        self.memory.forgotten(hash, item.seq);
    }
}

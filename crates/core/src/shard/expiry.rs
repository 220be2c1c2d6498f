//! Ends that have come: exact to the millisecond, whenever the sweeper runs.

use super::Shard;
use super::carry::Load;
use super::stop::{Stop, Try};
use super::turn::{By, Turn};
use crate::entry::Verb;
use crate::id::{Id, Reason};
use crate::record::Status;

/// How many due ends commands may free in one entry: one command must not build an entry on which everybody else
/// waits for seconds.
const FREED_MAX: usize = 1_024;

impl Shard {
    /// Ends a live reservation whose end has passed.
    pub(super) fn expire(&mut self, slot: u32) -> Try<()> {
        let hold = self.hold(slot)?;
        let lines = hold.lines();
        let load = Load::release(&lines, hold.owner);
        let by = By {
            actor: &Id::shard_itself(),
            reason: &Reason::default(),
        };
        self.turn(slot, by, Turn::new(Verb::Expire, Status::Expired, lines), load)?;
        Ok(())
    }

    /// Ends up to `limit` due reservations, earliest first; how many.
    pub(super) fn end_due(&mut self, limit: usize) -> Try<usize> {
        let mut ended = 0_usize;
        while ended < limit
            && let Some((end, slot)) = self.ends.first()
            && end <= self.clock
        {
            self.expire(slot)?;
            ended = ended.saturating_add(1);
        }
        Ok(ended)
    }

    /// Ends up to `limit` due reservations for an answer that depends on them; how many. `Again` once this entry
    /// has freed as many as it may and more are due.
    pub(super) fn free_due(&mut self, limit: usize) -> Try<usize> {
        let room = FREED_MAX.saturating_sub(self.freed);
        let ended = self.end_due(limit.min(room))?;
        self.freed = self.freed.saturating_add(ended);
        let more_due = || self.ends.first().is_some_and(|(end, _)| end <= self.clock);
        if ended == 0 && room == 0 && more_due() {
            return Err(Stop::Again);
        }
        Ok(ended)
    }

    /// Ends everything that is due: for answers that show counters.
    pub(super) fn free_all_due(&mut self) -> Try<()> {
        while self.free_due(FREED_MAX)? > 0 {}
        Ok(())
    }
}

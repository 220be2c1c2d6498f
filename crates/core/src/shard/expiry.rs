//! Ends that have come: exact to the millisecond, whenever the sweeper runs.

use super::Shard;
use super::carry::Load;
use super::stop::Try;
use super::turn::{By, Turn};
use crate::entry::Verb;
use crate::id::{Id, Reason};
use crate::record::Status;

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

    /// Ends everything that is due: for answers that show counters.
    pub(super) fn end_all_due(&mut self) -> Try<()> {
        self.end_due(usize::MAX).map(|_| ())
    }
}

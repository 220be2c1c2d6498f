//! How things stand: what the keeper says, and what that means for whoever waits.

use std::time::Instant;

use stockade_core::Position;
use stockade_ledger::ShardRow;

use super::conductor::Conductor;
use super::job::Job;
use super::{keeper, numbers};
use crate::api::Readiness;
use crate::error::Error;

impl Conductor {
    pub(super) fn news(&mut self, news: keeper::News) {
        match news {
            keeper::News::Standing { row, rebuilt } => self.stand(&row, rebuilt),
            keeper::News::Down(why) => self.stop_sending(&why),
            keeper::News::Recorded {
                entries,
                orders,
                took,
            } => {
                self.shared.set_pace(took, orders);
                for entry in entries {
                    self.recorded(entry);
                }
            }
            keeper::News::Holder(holder) => self.is_holder = holder,
            keeper::News::LedgerDown(why) => {
                self.ledger_down = match (why, self.ledger_down.take()) {
                    (None, _) => None,
                    (Some(why), Some((_, since))) => Some((why, since)),
                    (Some(why), None) => Some((why, Instant::now())),
                };
            }
            keeper::News::Backlog { entries, bytes } => self.numbers.outbox(entries, bytes),
            keeper::News::Lost(lost) => {
                for reservation in lost {
                    numbers::lost(&reservation.tenant, &reservation.id, "it does not fit any more");
                }
            }
            keeper::News::Broken(why) => self.poison(&why),
        }
    }

    fn stand(&mut self, row: &ShardRow, rebuilt: bool) {
        let at = Position {
            epoch: row.epoch,
            seq: row.cursor,
            tag: row.tag,
        };
        let is_new = self.known.position().epoch != row.epoch;
        if is_new || rebuilt {
            self.known.restart(at);
            self.tip = at;
            self.sweep.next = Instant::now();
        }
        self.epoch = Some(row.epoch);
        self.down = None;
        self.pause_until = None;
        self.failures = 0;
        self.failing_since = None;
        self.shared.set_readiness(Readiness::Ready);
        if let Some(opened) = self.opened.take() {
            self.show();
            // Whoever opened may have given up; then the tier is closed at once.
            let _ = opened.send(Ok(()));
        }
        if is_new {
            tracing::info!(epoch = row.epoch, "commands go to Redis under this epoch");
            // Loads belong to an epoch.
            self.loads_restart();
            // Whatever hangs on entries of older epochs: recorded, or to be asked for again.
            self.polled = None;
        }
    }

    pub(super) fn stop_sending(&mut self, why: &str) {
        self.epoch = None;
        let since = self.down.take().map_or_else(Instant::now, |(_, since)| since);
        self.down = Some((why.to_owned(), since));
        self.shared
            .set_readiness(Readiness::Recovering { why: why.to_owned() });
    }

    fn poison(&mut self, why: &str) {
        tracing::error!(
            why,
            "the store is poisoned: it is not known what is on disk; restart the process"
        );
        self.shared
            .set_readiness(Readiness::Poisoned { why: why.to_owned() });
        let unknown = Error::OutcomeUnknown { why: why.to_owned() };
        for job in self.all_jobs() {
            self.answer(job, Err(unknown.clone()));
        }
        self.over = true;
    }

    /// Everything that has no answer yet.
    fn all_jobs(&mut self) -> Vec<Job> {
        let mut jobs = self.queues.take_all();
        jobs.extend(self.looking.drain().map(|(_, job)| job));
        jobs.append(&mut self.again);
        jobs.append(&mut self.kept_later);
        jobs.extend(self.loads.take_jobs());
        jobs.extend(self.refusals.take_jobs());
        while let Some(at) = self.waiting.tips(1).pop() {
            if let Some(tip) = self.waiting.take(at) {
                jobs.extend(tip.hard.into_iter().map(|(job, _)| job));
            }
        }
        jobs
    }
}

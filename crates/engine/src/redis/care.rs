//! Beside the commands: time-outs, sweeping, and the state for an audit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stockade_redis::{CallError, Decided, SweepReply};
use tokio::sync::oneshot;

use super::conductor::{Chore, Conductor};
use super::job::Job;
use crate::error::Error;
use crate::tier::Frozen;

/// Commands wait so long for Redis or the ledger to come back; then those that were not sent are refused at once.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often due ends are swept.
const SWEEP_EVERY: Duration = Duration::from_millis(250);
/// How many reservations one call ends: well under a millisecond.
const SWEEP_STEP: usize = 128;

impl Conductor {
    /// Answers those whose time is over, and, while Redis or the ledger is away for long, those that never began.
    pub(super) fn expire(&mut self, now: Instant) {
        let long_down = self
            .down
            .as_ref()
            .filter(|(_, since)| since.elapsed() > PATIENCE)
            .map(|(why, _)| why.clone());
        let long_failing = self
            .failing_since
            .filter(|since| since.elapsed() > PATIENCE)
            .map(|_| "Redis does not answer".to_owned());
        let away = long_down.or(long_failing);
        let mut stay = Vec::new();
        for job in self.queues.take_all() {
            let late = job.deadline <= now;
            if job.is_kept() || !(late || (away.is_some() && !job.maybe_done)) {
                stay.push(job);
                continue;
            }
            let why = away.clone().unwrap_or_else(|| "no answer in time".into());
            self.give_up(job, why);
        }
        self.queues.push_front(stay);
        for (job, _) in self.waiting.take_late(now) {
            self.answer(
                job,
                Err(Error::OutcomeUnknown {
                    why: "it was decided, but not recorded in time".into(),
                }),
            );
        }
        for job in self.refusals.take_late(now) {
            self.give_up(job, "the ledger could not be read in time".into());
        }
        for job in self.loads.take_late(now) {
            self.give_up(job, "the SKU could not be loaded in time".into());
        }
        let late: Vec<u64> = self
            .looking
            .iter()
            .filter(|(_, job)| job.deadline <= now)
            .map(|(number, _)| *number)
            .collect();
        for number in late {
            if let Some(job) = self.looking.remove(&number) {
                self.give_up(job, "the ledger could not be read in time".into());
            }
        }
    }

    /// No more is tried for it: what is true for its caller.
    pub(super) fn give_up(&mut self, job: Job, why: String) {
        if job.is_kept() {
            self.queues.push(job);
            return;
        }
        let error = if job.maybe_done && !job.is_read() {
            Error::OutcomeUnknown { why }
        } else {
            Error::Unavailable { why }
        };
        self.answer(job, Err(error));
    }

    // ---- sweeping ----

    pub(super) fn sweep_if_due(&mut self, now: Instant) {
        let Some(epoch) = self.epoch else { return };
        let is_due = self.sweep.next <= now || !self.again.is_empty();
        let paused = self.sweep.paused_until.is_some_and(|until| until > now) && self.again.is_empty();
        if self.sweep.in_flight || !is_due || paused {
            return;
        }
        self.sweep.in_flight = true;
        self.sweep.next = now + SWEEP_EVERY;
        let sent = self.sent(epoch);
        let hot = self.hot.clone();
        self.chores
            .spawn(async move { Chore::Swept(hot.sweep(&sent, SWEEP_STEP).await) });
    }

    pub(super) fn swept(&mut self, swept: Result<Decided<SweepReply>, CallError>) {
        self.sweep.in_flight = false;
        match swept {
            Ok(Decided::Done { tip, at, value }) => {
                self.note_tip(tip);
                self.hear_clock(at);
                self.sweep.live = value.live;
                self.numbers.swept(&value);
                self.load_for_sweep(value.missing);
                if value.ended > 0 {
                    self.keeper.wrote();
                }
                if value.more {
                    self.sweep.next = Instant::now();
                }
                // Those that waited for it look again; what is still due is swept then.
                let again = std::mem::take(&mut self.again);
                self.queues.push_front(again);
                self.sweep_if_due(Instant::now());
            }
            Ok(Decided::Stale(stale)) => {
                let again = std::mem::take(&mut self.again);
                self.queues.push_front(again);
                self.stale(stale);
            }
            Err(error) => {
                let again = std::mem::take(&mut self.again);
                self.queues.push_front(again);
                tracing::debug!(%error, "a sweep did not come back");
            }
        }
    }

    /// An audit asks for the state. Dropping the sender tells it that there is none.
    pub(super) fn freeze(&mut self, frozen: oneshot::Sender<Frozen>) {
        let Some(epoch) = self.epoch else { return };
        let (hot, ledger, shard) = (self.hot.clone(), Arc::clone(&self.parts.ledger), self.parts.shard);
        tokio::spawn(async move {
            match super::snapshot::take(&hot, ledger, shard, epoch).await {
                Ok(state) => drop(frozen.send(state)),
                Err(why) => tracing::warn!(%why, "the state could not be read for an audit"),
            }
        });
    }
}

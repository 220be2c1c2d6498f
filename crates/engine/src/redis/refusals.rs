//! Refusals that wait until it is certain that they were decided on everything recorded.
//!
//! A Redis that lost its last second, or an old primary, would say "sold out" or "not known" from an old state. So the
//! shard's row is read from the ledger after the command arrived, once for all refusals that wait: it must lie on the
//! chain at or before the tip on which the refusal was decided. If it is the tip itself, that is so. If it is before
//! it, that is certain once the tip is recorded, and so is whatever the refusal shows of a reservation. If it is after it, or on another chain, the command is sent again.

use std::time::Instant;

use stockade_core::{Position, Refusal};
use stockade_ledger::{ShardMode, ShardRow};

use super::conductor::Conductor;
use super::job::Job;
use super::verdicts::kept_refused;
use crate::error::Error;

/// A refusal that was decided before what is recorded so often is no coincidence.
const SUSPICIOUS_TRIES: u32 = 8;

#[derive(Debug)]
struct Check {
    job: Job,
    refusal: Refusal,
    tip: Position,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// For the next reading of the row.
    next: Vec<Check>,
    /// For the one under way.
    asked: Vec<Check>,
}

impl Refusals {
    pub(super) fn add(&mut self, job: Job, refusal: Refusal, tip: Position) {
        self.next.push(Check { job, refusal, tip });
    }

    /// Whether the row is to be read; those that are there then wait for it.
    pub(super) fn ask(&mut self) -> bool {
        self.asked.append(&mut self.next);
        !self.asked.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next.is_empty() && self.asked.is_empty()
    }

    pub(super) fn take_jobs(&mut self) -> Vec<Job> {
        let both = self.asked.drain(..).chain(self.next.drain(..));
        both.map(|check| check.job).collect()
    }

    pub(super) fn take_asked(&mut self) -> Vec<Job> {
        self.asked.drain(..).map(|check| check.job).collect()
    }

    pub(super) fn take_late(&mut self, now: Instant) -> Vec<Job> {
        let mut late = Vec::new();
        for checks in [&mut self.asked, &mut self.next] {
            let (over, stay): (Vec<_>, Vec<_>) = std::mem::take(checks)
                .into_iter()
                .partition(|check| check.job.deadline <= now);
            *checks = stay;
            late.extend(over.into_iter().map(|check| check.job));
        }
        late
    }
}

impl Conductor {
    /// The shard's row was read after these refusals were decided.
    pub(super) fn row_read(&mut self, row: Option<&ShardRow>) {
        let checks = std::mem::take(&mut self.refusals.asked);
        let mut again = Vec::new();
        for check in checks {
            let Some(row) = row else {
                again.push(check.job);
                continue;
            };
            if row.epoch != check.tip.epoch || row.mode != ShardMode::Hot {
                again.push(check.job);
                continue;
            }
            let is_tip = (row.cursor, row.tag) == (check.tip.seq, check.tip.tag);
            if is_tip || (row.cursor < check.tip.seq && self.known.has(check.tip)) {
                self.refuse(check.job, check.refusal);
            } else if row.cursor < check.tip.seq {
                // The row is on the chain before the tip if the tip becomes recorded.
                self.waiting
                    .hard(check.tip, check.job, Err(Error::Refused(check.refusal)));
            } else {
                // Another entry is recorded under this number; or the node is behind the ledger again and again.
                if row.cursor == check.tip.seq || check.job.tries > SUSPICIOUS_TRIES {
                    self.keeper
                        .suspect("a refusal was decided on another chain", false);
                }
                again.push(check.job);
            }
        }
        self.queues.push_front(again);
    }

    pub(super) fn refuse(&mut self, job: Job, refusal: Refusal) {
        if job.is_kept() {
            kept_refused(&job, &refusal);
        }
        self.answer(job, Err(Error::Refused(refusal)));
    }
}

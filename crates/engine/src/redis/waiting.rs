//! Who waits for which entry to be recorded: answers that may not go out before, and grants that did.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use stockade_core::Position;

use super::job::{Job, Kept};
use crate::error::Error;
use crate::tier::Answered;

/// An answer that waits, without the job's way to its caller.
pub(super) type Result = std::result::Result<Answered, Error>;

/// What hangs on one entry.
#[derive(Debug)]
pub(super) struct Tip {
    pub(super) since: Instant,
    /// Answers that wait.
    pub(super) hard: Vec<(Job, Result)>,
    /// Grants that were answered.
    pub(super) kept: Vec<Kept>,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    tips: BTreeMap<(u64, u64, u64), Tip>,
    orders: usize,
    kept: usize,
}

const fn key(at: Position) -> (u64, u64, u64) {
    (at.epoch, at.seq, at.tag)
}

const fn position((epoch, seq, tag): (u64, u64, u64)) -> Position {
    Position { epoch, seq, tag }
}

impl Waiting {
    fn tip(&mut self, at: Position) -> &mut Tip {
        self.orders += 1;
        self.tips.entry(key(at)).or_insert_with(|| Tip {
            since: Instant::now(),
            hard: Vec::new(),
            kept: Vec::new(),
        })
    }

    pub(super) fn hard(&mut self, at: Position, job: Job, result: Result) {
        self.tip(at).hard.push((job, result));
    }

    pub(super) fn keep(&mut self, at: Position, kept: Kept) {
        self.kept += 1;
        self.tip(at).kept.push(kept);
    }

    /// How many answers and grants hang on entries that are not recorded.
    pub(super) fn orders(&self) -> usize {
        self.orders
    }

    /// How many of them are grants that were answered.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// How long the oldest of them hangs.
    pub(super) fn age(&self) -> Duration {
        // The entries are in order, and time runs with them but for a few calls.
        self.tips
            .first_key_value()
            .map_or(Duration::ZERO, |(_, tip)| tip.since.elapsed())
    }

    /// The entries on which something hangs, oldest first, at most so many.
    pub(super) fn tips(&self, limit: usize) -> Vec<Position> {
        self.tips.keys().take(limit).map(|key| position(*key)).collect()
    }

    /// Takes what hangs on one entry.
    pub(super) fn take(&mut self, at: Position) -> Option<Tip> {
        let tip = self.tips.remove(&key(at))?;
        self.orders -= tip.hard.len() + tip.kept.len();
        self.kept -= tip.kept.len();
        Some(tip)
    }

    /// Takes what hangs on entries that can never be recorded, since another one has their number.
    pub(super) fn take_rivals(&mut self, at: Position) -> Vec<Tip> {
        let rivals: Vec<Position> = self
            .tips
            .range((at.epoch, at.seq, 0)..=(at.epoch, at.seq, u64::MAX))
            .map(|(key, _)| position(*key))
            .filter(|other| other.tag != at.tag)
            .collect();
        rivals.into_iter().filter_map(|rival| self.take(rival)).collect()
    }

    /// Takes what hangs on entries of an epoch after this number: a node that stands there lost them.
    pub(super) fn take_after(&mut self, epoch: u64, seq: u64) -> Vec<Tip> {
        let lost: Vec<Position> = self
            .tips
            .range((epoch, seq.saturating_add(1), 0)..=(epoch, u64::MAX, u64::MAX))
            .map(|(key, _)| position(*key))
            .collect();
        lost.into_iter().filter_map(|at| self.take(at)).collect()
    }

    /// Takes the answers whose time is over.
    pub(super) fn take_late(&mut self, now: Instant) -> Vec<(Job, Result)> {
        let mut late = Vec::new();
        for tip in self.tips.values_mut() {
            let mut place = 0;
            while let Some((job, _)) = tip.hard.get(place) {
                if job.deadline <= now {
                    late.push(tip.hard.swap_remove(place));
                } else {
                    place += 1;
                }
            }
        }
        self.orders -= late.len();
        self.tips
            .retain(|_, tip| !tip.hard.is_empty() || !tip.kept.is_empty());
        late
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tips.is_empty()
    }
}

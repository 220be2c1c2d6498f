//! What waits to be sent: one queue for each kind of script, since only commands of one kind share a call.
//!
//! Nothing waits for a timer. Whatever is there when a call may start goes with it; while calls are in flight the
//! queues gather. How many commands share a call is bounded by their number and by how long calls took lately, so that
//! a call stays well under a millisecond of Redis's time and nobody else on that server waits for long.

use std::collections::VecDeque;
use std::time::Duration;

use stockade_redis::ScriptKind;

use super::job::Job;

const KINDS: [ScriptKind; 7] = [
    ScriptKind::Confirm,
    ScriptKind::Cancel,
    ScriptKind::Return,
    ScriptKind::Reserve,
    ScriptKind::Extend,
    ScriptKind::Stock,
    ScriptKind::Show,
];

/// The most commands of one call.
const BATCH_MAX: f64 = 256.0;
/// The least that a slow server is driven down to.
const BATCH_MIN: f64 = 8.0;
/// What a call is to take at most.
const CALL_MAX: Duration = Duration::from_millis(1);

#[derive(Debug)]
struct Queue {
    jobs: VecDeque<Job>,
    /// The most commands of its next call.
    limit: f64,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Queues {
    queues: [Queue; KINDS.len()],
    /// Where the next look begins, so that no kind starves another.
    next: usize,
}

impl Queues {
    pub(super) fn new() -> Self {
        Self {
            queues: KINDS.map(|_| Queue {
                jobs: VecDeque::new(),
                limit: 64.0,
            }),
            next: 0,
        }
    }

    fn of(&mut self, kind: ScriptKind) -> Option<&mut Queue> {
        let place = KINDS.iter().position(|other| *other == kind)?;
        self.queues.get_mut(place)
    }

    pub(super) fn push(&mut self, job: Job) {
        if let Some(queue) = self.of(job.script()) {
            queue.jobs.push_back(job);
        }
    }

    /// In front of everything else: jobs that were sent before. Their order among themselves stays.
    pub(super) fn push_front(&mut self, jobs: Vec<Job>) {
        for job in jobs.into_iter().rev() {
            if let Some(queue) = self.of(job.script()) {
                queue.jobs.push_front(job);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| queue.jobs.is_empty())
    }

    /// The jobs of the next call: one kind, in turn with the others.
    pub(super) fn take(&mut self) -> Option<(ScriptKind, Vec<Job>)> {
        for step in 0..KINDS.len() {
            let place = (self.next + step) % KINDS.len();
            let (Some(queue), Some(kind)) = (self.queues.get_mut(place), KINDS.get(place)) else {
                continue;
            };
            if queue.jobs.is_empty() {
                continue;
            }
            let jobs = queue.jobs.len().min(whole(queue.limit));
            self.next = place + 1;
            return Some((*kind, queue.jobs.drain(..jobs).collect()));
        }
        None
    }

    /// Everything that is there, for whoever gives it up or goes through it.
    pub(super) fn take_all(&mut self) -> Vec<Job> {
        self.queues
            .iter_mut()
            .flat_map(|queue| queue.jobs.drain(..))
            .collect()
    }

    /// A call with so many commands took so long, shared with so many others.
    pub(super) fn measured(&mut self, kind: ScriptKind, commands: usize, took: Duration, in_flight: usize) {
        let share = took / u32::try_from(in_flight.max(1)).unwrap_or(1);
        if let Some(queue) = self.of(kind) {
            if share > CALL_MAX * 2 {
                queue.limit = (queue.limit * 0.75).max(BATCH_MIN);
            } else if share < CALL_MAX && commands >= whole(queue.limit) {
                queue.limit = (queue.limit * 1.25).min(BATCH_MAX);
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "limits lie between 8 and 256"
)]
const fn whole(limit: f64) -> usize {
    limit as usize
}

//! Letting reservations go that ended long ago: in short steps, while nobody waits, so that no order is slower for it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use stockade_core::Millis;
use stockade_ledger::{LedgerCare, LedgerError, Retained};
use tokio::sync::watch;

use crate::api::Options;
use crate::clock::Clock;
use crate::names;
use crate::tier::HotTier;

/// Movements that a step looks at: some ten milliseconds, in which nothing is recorded.
const STEP: usize = 1_000;
/// The same while commands wait.
const STEP_BUSY: usize = 100;
/// The pause after a step, as many times as long as the step took...
const PAUSE_TIMES: u32 = 9;
/// ...and at least so long.
const PAUSE: Duration = Duration::from_millis(100);
/// How long to wait while commands wait...
const PAUSE_BUSY: Duration = Duration::from_secs(1);
/// ...and how often, before a small step is taken all the same: a shop that never rests must not fill its disk.
const PAUSES_BUSY: u32 = 10;
/// How long to wait when there is nothing more to remove, or the ledger cannot be written.
const PAUSE_DONE: Duration = Duration::from_secs(60);
/// How long to wait after opening: a tier on Redis first has to forget what ended while no store was open.
const PAUSE_FIRST: Duration = Duration::from_secs(600);
/// A hot tier may hold what ended a little longer than it says, and its clock may differ from this one.
const MARGIN_MS: Millis = 3_600_000;

/// The thread that removes; none where everything is kept.
#[derive(Debug)]
pub(crate) struct Retention {
    stop: Arc<Stop>,
    thread: Mutex<Option<JoinHandle<()>>>,
    ended: watch::Receiver<bool>,
}

#[derive(Debug, Default)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Waits; whether it is time to end.
    fn wait(&self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let mut stopped = self.stopped.lock();
        while !*stopped {
            if self.changed.wait_until(&mut stopped, until).timed_out() {
                break;
            }
        }
        *stopped
    }
}

impl Retention {
    pub(crate) fn start(options: &Options, care: Arc<dyn LedgerCare>, tier: Arc<dyn HotTier>) -> Self {
        let stop = Arc::new(Stop::default());
        let (end, ended) = watch::channel(options.retain_ended_ms.is_none());
        let mut thread = None;
        if let Some(asked) = options.retain_ended_ms {
            metrics::counter!(names::REMOVED_RESERVATIONS).increment(0);
            metrics::counter!(names::REMOVED_MOVEMENTS).increment(0);
            let keeper = Keeper {
                care,
                tier,
                clock: Arc::clone(&options.clock),
                keep_ms: asked.max(options.keep_ended_ms.saturating_add(MARGIN_MS)),
                busy: 0,
            };
            let first = if options.retain_at_once {
                Duration::ZERO
            } else {
                PAUSE_FIRST
            };
            let stopped = Arc::clone(&stop);
            let started = std::thread::Builder::new()
                .name("stockade-retain".into())
                .spawn(move || {
                    keeper.run(&stopped, first);
                    // Whoever closes may have gone.
                    end.send_replace(true);
                });
            match started {
                Ok(started) => thread = Some(started),
                // Selling goes on without it.
                Err(error) => tracing::error!(%error, "old reservations are not removed: no thread"),
            }
        }
        Self {
            stop,
            thread: Mutex::new(thread),
            ended,
        }
    }

    /// Takes no further step.
    pub(crate) fn stop(&self) {
        *self.stop.stopped.lock() = true;
        self.stop.changed.notify_all();
    }

    /// Waits for the step under way.
    pub(crate) async fn ended(&self) {
        // The sender is gone when the thread is.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// The same, blocking.
    pub(crate) fn join(&self) {
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("removing old reservations ended with a panic");
        }
    }
}

struct Keeper {
    care: Arc<dyn LedgerCare>,
    tier: Arc<dyn HotTier>,
    clock: Arc<dyn Clock>,
    keep_ms: Millis,
    /// How often commands waited when it was time for a step.
    busy: u32,
}

impl Keeper {
    fn run(mut self, stop: &Stop, first: Duration) {
        let mut pause = first;
        while !stop.wait(pause) {
            pause = self.step();
        }
    }

    /// A step, if it is time for one; how long to wait then.
    fn step(&mut self) -> Duration {
        let is_busy = self.tier.health().waiting > 0;
        if is_busy && self.busy < PAUSES_BUSY {
            self.busy += 1;
            return PAUSE_BUSY;
        }
        self.busy = 0;
        let limit = if is_busy { STEP_BUSY } else { STEP };
        let before = self.clock.now().saturating_sub(self.keep_ms);
        let since = Instant::now();
        match self.care.retain(before, limit) {
            Ok(done) => {
                count(done);
                if done.more {
                    (since.elapsed() * PAUSE_TIMES).max(PAUSE)
                } else {
                    PAUSE_DONE
                }
            }
            Err(LedgerError::Busy { .. }) => PAUSE_BUSY,
            Err(error) => {
                tracing::warn!(%error, "old reservations could not be removed; trying again");
                PAUSE_DONE
            }
        }
    }
}

fn count(done: Retained) {
    metrics::counter!(names::REMOVED_RESERVATIONS).increment(done.reservations);
    metrics::counter!(names::REMOVED_MOVEMENTS).increment(done.movements);
    if done.reservations > 0 {
        tracing::debug!(
            reservations = done.reservations,
            movements = done.movements,
            "removed what ended long ago"
        );
    }
}

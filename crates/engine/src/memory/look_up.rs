//! The look-up thread: reads ids that the memory may have forgotten from the ledger.
//!
//! All look-ups that wait are answered from one view, so that a thousand callers with old ids cost one view.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use stockade_core::{Id, LookedUp, Space};
use stockade_ledger::{Ledger, LedgerError};

use super::Message;
use super::mailbox::Mailbox;

/// One id to look up.
#[derive(Debug)]
pub(super) struct Job {
    /// Whose it is.
    pub(super) key: u64,
    /// Where to look.
    pub(super) space: Space,
    /// The tenant.
    pub(super) tenant: Id,
    /// The id.
    pub(super) id: Id,
}

/// What was found for a job.
#[derive(Debug)]
pub(super) struct Found {
    /// Whose it is.
    pub(super) key: u64,
    /// The ledger's word, or why there is none.
    pub(super) known: Result<LookedUp, String>,
}

/// Where jobs wait.
#[derive(Debug, Default)]
pub(super) struct Desk {
    slot: Mutex<Slot>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Slot {
    jobs: Vec<Job>,
    stop: bool,
}

impl Desk {
    /// Adds jobs; leaves the list empty.
    pub(super) fn add(&self, jobs: &mut Vec<Job>) {
        self.slot.lock().jobs.append(jobs);
        self.filled.notify_one();
    }

    /// Ends the thread; jobs that wait are left.
    pub(super) fn stop(&self) {
        self.slot.lock().stop = true;
        self.filled.notify_one();
    }

    fn take(&self) -> Option<Vec<Job>> {
        let mut slot = self.slot.lock();
        loop {
            if slot.stop {
                return None;
            }
            if !slot.jobs.is_empty() {
                return Some(std::mem::take(&mut slot.jobs));
            }
            self.filled.wait(&mut slot);
        }
    }
}

/// The thread's body.
pub(super) fn run(desk: &Desk, shard: u32, ledger: &Arc<dyn Ledger>, mailbox: &Mailbox) {
    while let Some(jobs) = desk.take() {
        // A panic in here must not leave the callers waiting.
        let keys: Vec<u64> = jobs.iter().map(|job| job.key).collect();
        let looking = std::panic::AssertUnwindSafe(|| look_up(jobs, shard, ledger));
        let found = std::panic::catch_unwind(looking).unwrap_or_else(|_| {
            let why = "looking up the id in the ledger failed with a panic";
            keys.into_iter()
                .map(|key| Found {
                    key,
                    known: Err(why.into()),
                })
                .collect()
        });
        mailbox.post(Message::LookedUp(found));
    }
}

fn look_up(jobs: Vec<Job>, shard: u32, ledger: &Arc<dyn Ledger>) -> Vec<Found> {
    let failed = |error: &LedgerError| format!("the ledger could not be read: {error}");
    let view = match ledger.view() {
        Ok(view) => view,
        Err(error) => {
            return jobs
                .into_iter()
                .map(|job| Found {
                    key: job.key,
                    known: Err(failed(&error)),
                })
                .collect();
        }
    };
    jobs.into_iter()
        .map(|job| {
            let known = match view.find(shard, &job.tenant, job.space, &job.id) {
                Ok(found) => Ok(LookedUp {
                    epoch: found.epoch,
                    cursor: found.cursor,
                    space: job.space,
                    id: job.id,
                    record: found.record,
                }),
                Err(error) => Err(failed(&error)),
            };
            Found { key: job.key, known }
        })
        .collect()
}

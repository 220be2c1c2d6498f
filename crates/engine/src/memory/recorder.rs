//! The recording thread: takes one sealed entry at a time, commits it, says how that went.
//!
//! While a commit runs, the deciding thread builds the next entry; it seals it when this one is done. That is the
//! whole of group commit: no timer, and the group is as large as the disk is slow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use stockade_core::Entry;
use stockade_ledger::{Ledger, RecordError};

use super::Message;
use super::mailbox::Mailbox;

/// Where sealed entries are handed over. Holds at most one: the deciding thread hands over only when the last one is
/// done.
#[derive(Debug, Default)]
pub(super) struct Desk {
    slot: Mutex<Slot>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Slot {
    entry: Option<Entry>,
    stop: bool,
}

/// How a commit went.
#[derive(Debug)]
pub(super) struct Commit {
    /// The entry.
    pub(super) seq: u64,
    /// How many changes it held.
    pub(super) effects: usize,
    /// How it went; `None`: recording panicked, so that nothing is known.
    pub(super) result: Option<Result<(), RecordError>>,
    /// How long it took.
    pub(super) took: Duration,
}

impl Desk {
    /// Hands over an entry.
    pub(super) fn hand_over(&self, entry: Entry) {
        self.slot.lock().entry = Some(entry);
        self.filled.notify_one();
    }

    /// Ends the thread after what it has.
    pub(super) fn stop(&self) {
        self.slot.lock().stop = true;
        self.filled.notify_one();
    }

    fn take(&self) -> Option<Entry> {
        let mut slot = self.slot.lock();
        loop {
            if let Some(entry) = slot.entry.take() {
                return Some(entry);
            }
            if slot.stop {
                return None;
            }
            self.filled.wait(&mut slot);
        }
    }
}

/// The thread's body.
pub(super) fn run(desk: &Desk, ledger: &Arc<dyn Ledger>, mailbox: &Mailbox) {
    while let Some(entry) = desk.take() {
        let began = Instant::now();
        let recording = std::panic::AssertUnwindSafe(|| ledger.record(std::slice::from_ref(&entry)));
        let result = std::panic::catch_unwind(recording).ok();
        mailbox.post(Message::Committed(Commit {
            seq: entry.seq,
            effects: entry.effects.len(),
            result,
            took: began.elapsed(),
        }));
    }
}

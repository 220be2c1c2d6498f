//! The bounded queue in front of the deciding thread.
//!
//! One lock, held for a push or a swap: the deciding thread takes everything that waits at once, so that under load a
//! caller pays one uncontended lock and no wake-up, and the deciding thread one lock a turn.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Message;
use crate::error::Error;
use crate::tier::Submission;

/// How often an idle deciding thread looks again before it sleeps. Callers that were just answered often come back
/// within this time, and a wake-up costs more than it.
const SPINS: u32 = 64;

/// See the module's text.
pub(super) struct Mailbox {
    inner: Mutex<Inner>,
    /// Commands let in and not yet answered.
    waiting: AtomicUsize,
    limit: usize,
    decider: OnceLock<Thread>,
}

struct Inner {
    submissions: Vec<Submission>,
    messages: Vec<Message>,
    /// Something changed that is not in here: the clock, a chunk for the filter.
    nudged: bool,
    asleep: bool,
    shut: Option<Error>,
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox")
            .field("waiting", &self.waiting())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Mailbox {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            inner: Mutex::new(Inner {
                submissions: Vec::new(),
                messages: Vec::new(),
                nudged: false,
                asleep: false,
                shut: None,
            }),
            waiting: AtomicUsize::new(0),
            limit: limit.max(1),
            decider: OnceLock::new(),
        }
    }

    /// Says who takes. Called once, by the deciding thread.
    pub(super) fn serve(&self) {
        let _ = self.decider.set(std::thread::current());
    }

    /// Lets in one command, or says how many wait and how many may.
    pub(super) fn admit(&self, growing: bool) -> Result<(), (usize, usize)> {
        let limit = if growing {
            self.limit - self.limit / 5
        } else {
            self.limit
        };
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        if before < limit {
            return Ok(());
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Err((before, limit))
    }

    /// Commands that were let in have been answered.
    pub(super) fn answered(&self, commands: usize) {
        if commands > 0 {
            self.waiting.fetch_sub(commands, Ordering::Relaxed);
        }
    }

    /// Commands let in and not yet answered.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    #[expect(
        clippy::result_large_err,
        reason = "given back only when the store is closed or broken"
    )]
    /// Puts work in; gives it back when the mailbox is shut, with the reason.
    pub(super) fn submit(&self, work: Submission) -> Result<(), (Submission, Error)> {
        let asleep = {
            let mut inner = self.inner.lock();
            if let Some(why) = &inner.shut {
                return Err((work, why.clone()));
            }
            inner.submissions.push(work);
            std::mem::take(&mut inner.asleep)
        };
        self.wake(asleep);
        Ok(())
    }

    /// Puts a message in; messages get through a shut mailbox while the deciding thread lives.
    pub(super) fn post(&self, message: Message) {
        let asleep = {
            let mut inner = self.inner.lock();
            inner.messages.push(message);
            std::mem::take(&mut inner.asleep)
        };
        self.wake(asleep);
    }

    /// Makes the deciding thread look around.
    pub(super) fn nudge(&self) {
        let asleep = {
            let mut inner = self.inner.lock();
            inner.nudged = true;
            std::mem::take(&mut inner.asleep)
        };
        self.wake(asleep);
    }

    /// From here on work is given back with this reason; the first reason stays unless `over` says otherwise.
    pub(super) fn shut(&self, why: Error, over: bool) {
        let asleep = {
            let mut inner = self.inner.lock();
            if inner.shut.is_none() || over {
                inner.shut = Some(why);
            }
            inner.nudged = true;
            std::mem::take(&mut inner.asleep)
        };
        self.wake(asleep);
    }

    /// Drops what is there: whoever waits for an answer to it hears that none will come.
    pub(super) fn clear(&self) {
        let dropped = {
            let mut inner = self.inner.lock();
            (
                std::mem::take(&mut inner.submissions),
                std::mem::take(&mut inner.messages),
            )
        };
        drop(dropped);
    }

    /// Takes the messages only.
    pub(super) fn take_messages(&self) -> Vec<Message> {
        std::mem::take(&mut self.inner.lock().messages)
    }

    /// Whether nothing waits to be taken.
    pub(super) fn is_empty(&self) -> bool {
        let inner = self.inner.lock();
        inner.submissions.is_empty() && inner.messages.is_empty()
    }

    /// Takes everything into the two empty lists; waits for something until then, when told to.
    pub(super) fn take(
        &self,
        submissions: &mut Vec<Submission>,
        messages: &mut Vec<Message>,
        wait: Option<Duration>,
    ) {
        let until = wait.map(|wait| Instant::now() + wait);
        let mut spins = 0;
        loop {
            {
                let mut inner = self.inner.lock();
                let nudged = std::mem::take(&mut inner.nudged);
                if nudged || !inner.submissions.is_empty() || !inner.messages.is_empty() {
                    std::mem::swap(&mut inner.submissions, submissions);
                    std::mem::swap(&mut inner.messages, messages);
                    inner.asleep = false;
                    return;
                }
                inner.asleep = until.is_some() && spins >= SPINS;
            }
            let Some(until) = until else { return };
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.inner.lock().asleep = false;
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    fn wake(&self, asleep: bool) {
        if asleep && let Some(decider) = self.decider.get() {
            decider.unpark();
        }
    }
}

//! Threads for reading the ledger, so that callers need no particular async runtime and never block one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::error::Error;

/// Enough to keep short queries from waiting for one long one.
const READERS: usize = 2;

type Job = Box<dyn FnOnce() + Send>;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Readers {
    desk: Arc<Desk>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Desk {
    slot: Mutex<Slot>,
    filled: Condvar,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk")
            .field("waiting", &self.slot.lock().jobs.len())
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Slot {
    jobs: VecDeque<Job>,
    stop: bool,
}

impl Readers {
    pub(crate) fn start() -> std::io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let readers = Self {
            desk: desk.clone(),
            threads: Mutex::new(Vec::new()),
        };
        for _ in 0..READERS {
            let desk = desk.clone();
            let thread = std::thread::Builder::new()
                .name("stockade-read".into())
                .spawn(move || desk.work());
            match thread {
                Ok(thread) => readers.threads.lock().push(thread),
                Err(error) => {
                    readers.stop();
                    return Err(error);
                }
            }
        }
        Ok(readers)
    }

    /// Does something that blocks. A caller that hangs up before it is begun spares it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move || {
            if !answer.is_closed() {
                drop(answer.send(job()));
            }
        });
        {
            let mut slot = self.desk.slot.lock();
            if slot.stop {
                return Err(closed());
            }
            slot.jobs.push_back(job);
        }
        self.desk.filled.notify_one();
        answered.await.map_err(|_| Error::Unavailable {
            why: "reading the ledger failed with a panic".into(),
        })
    }

    /// Takes no more jobs; those that wait are done.
    pub(crate) fn stop(&self) {
        self.desk.slot.lock().stop = true;
        self.desk.filled.notify_all();
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stop();
        let own = std::thread::current().id();
        for thread in self.threads.lock().drain(..) {
            // A job can hold the last handle: its thread must not wait for itself. Panics were caught and told.
            if thread.thread().id() != own {
                let _ = thread.join();
            }
        }
    }
}

impl Desk {
    fn work(&self) {
        loop {
            let job = {
                let mut slot = self.slot.lock();
                loop {
                    if let Some(job) = slot.jobs.pop_front() {
                        break job;
                    }
                    if slot.stop {
                        return;
                    }
                    self.filled.wait(&mut slot);
                }
            };
            // The sender is dropped by the panic, which tells the caller.
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).is_err() {
                tracing::error!("reading the ledger panicked");
            }
        }
    }
}

fn closed() -> Error {
    Error::Unavailable {
        why: "the store is closed".into(),
    }
}

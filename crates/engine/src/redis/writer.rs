//! The writing thread: commits one group at a time.
//!
//! It gives way to whoever answers callers: where processors are scarce, a burst is decided first and recorded with what
//! is left, as far as the backlog limits allow. Callers that wait for a recording leave their processor time to it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use stockade_core::Entry;
use stockade_ledger::{RecordError, SharedLedger};
use tokio::sync::oneshot;

/// How far the thread gives way, in the kernel's steps of niceness; each is worth about a fifth of its share.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// A group, and where to say how its commit went.
struct Task {
    entries: Arc<Vec<Entry>>,
    done: oneshot::Sender<Result<(), RecordError>>,
}

/// See the module's text. Dropping it ends the thread after what it has.
#[derive(Debug)]
pub(super) struct Writer {
    tasks: Option<Sender<Task>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(ledger: Arc<dyn SharedLedger>) -> std::io::Result<Self> {
        let (tasks, inbox) = channel();
        let thread = std::thread::Builder::new()
            .name("stockade-write".into())
            .spawn(move || write(&*ledger, &inbox))?;
        Ok(Self {
            tasks: Some(tasks),
            thread: Some(thread),
        })
    }

    /// Commits a group; `None`: the thread panicked, so that nothing is known.
    pub(super) async fn write(&self, entries: Arc<Vec<Entry>>) -> Option<Result<(), RecordError>> {
        let (done, doing) = oneshot::channel();
        self.tasks.as_ref()?.send(Task { entries, done }).ok()?;
        doing.await.ok()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.tasks.take());
        if let Some(thread) = self.thread.take() {
            // A panic of it was told to whoever waited.
            let _ = thread.join();
        }
    }
}

fn write(ledger: &dyn SharedLedger, inbox: &Receiver<Task>) {
    // Elsewhere a niceness is the whole process's.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "the writing thread keeps its priority");
    }
    for Task { entries, done } in inbox {
        let result = ledger.record(&entries);
        drop(entries);
        // Whoever gave up waiting reads the ledger again.
        let _ = done.send(result);
    }
}

//! Copying the write-ahead log into the file without holding up the recorder.
//!
//! SQLite would do it inside the commit that passes a size, and that commit would take as long as the copying. Here a
//! thread with its own connection copies while the writer goes on. It never catches up with a busy writer, and the log
//! only starts again from its beginning when all of it has been copied; so when the thread has copied what there was,
//! the writer copies the little that came since between two transactions.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::errors::ledger_error;
use super::open;
use crate::api::LedgerError;

/// Pages in the log at which copying starts: 32 MiB. More makes each page that is written again and again cheaper, and
/// the log and the next opening after a crash larger.
const PAGES: i64 = 8_000;

/// The thread and what it shares with the writer.
#[derive(Debug)]
pub(super) struct Checkpointer {
    state: Arc<State>,
    /// `None` only while being dropped.
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Pages in the log at which the writer tries next.
    next: i64,
}

#[derive(Debug, Default)]
struct State {
    /// Pages in the log after the last commit.
    pages: AtomicI64,
    /// The thread is copying, or about to.
    copying: AtomicBool,
}

impl Checkpointer {
    /// Starts the thread and hears of the writer's commits.
    pub(super) fn start(writer: &mut Connection, path: &Path) -> Result<Self, LedgerError> {
        let conn = open::checkpointer(path)?;
        let state = Arc::new(State::default());
        let (wake, woken) = sync_channel(1);
        let shared = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("ledger-checkpoint".to_owned())
            .spawn(move || work(&conn, &woken, &shared))
            .map_err(|error| LedgerError::Storage {
                path: path.to_path_buf(),
                message: format!("no thread could be started: {error}"),
                full: false,
            })?;
        let shared = Arc::clone(&state);
        writer
            .wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
                shared.pages.store(i64::from(pages), Ordering::Relaxed);
                Ok(())
            }))
            .map_err(|error| ledger_error(path, &error))?;
        Ok(Self {
            state,
            wake: Some(wake),
            thread: Some(thread),
            next: PAGES,
        })
    }

    /// After a commit: has the log copied when it is long.
    pub(super) fn after_commit(&mut self, writer: &Connection) {
        let pages = self.state.pages.load(Ordering::Relaxed);
        if pages < PAGES {
            self.next = PAGES;
            return;
        }
        if pages < self.next || self.state.copying.load(Ordering::Acquire) {
            return;
        }
        if self.next > PAGES {
            // The thread has copied what there was: the rest is short. If a view holds the log, it stays long.
            copy(writer);
            self.state.pages.store(0, Ordering::Relaxed);
            self.next = PAGES;
            return;
        }
        self.next = PAGES + 1;
        self.state.copying.store(true, Ordering::Release);
        if self.wake.as_ref().is_none_or(|wake| wake.try_send(()).is_err()) {
            self.state.copying.store(false, Ordering::Release);
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.wake = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that copies the write-ahead log had panicked");
        }
    }
}

fn work(conn: &Connection, woken: &Receiver<()>, state: &State) {
    while woken.recv().is_ok() {
        copy(conn);
        state.copying.store(false, Ordering::Release);
    }
}

/// Copies what can be copied without waiting. Failing is not fatal: the log stays longer, and a disk that is full or
/// broken shows itself at the next commit.
fn copy(conn: &Connection) {
    let done = conn
        .prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")
        .and_then(|mut copy| copy.query_row([], |row| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))));
    match done {
        Ok((log, copied)) => tracing::debug!(log, copied, "copied the write-ahead log"),
        Err(error) => tracing::warn!(%error, "the write-ahead log could not be copied"),
    }
}

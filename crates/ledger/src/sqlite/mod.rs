//! The embedded ledger: one SQLite file in write-ahead mode, synchronous=FULL, one connection that writes in each
//! process that shares it.

mod audit;
mod audit_details;
mod audit_reservations;
mod backup;
mod checkpoint;
mod codes;
mod counters;
#[cfg(test)]
#[expect(clippy::expect_used, reason = "a test fails by panicking")]
mod crash_tests;
mod errors;
mod history;
mod ids;
mod index;
mod lookup;
mod map;
mod migrate;
mod names;
mod open;
mod prune;
mod query;
mod reader;
mod record;
mod repair;
mod retain;
mod sharing;
mod stock;
mod tail;
mod view;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use stockade_core::{Entry, Id, Millis, Reason};

pub use self::backup::{restore, take_over};
use self::reader::Reader;
use self::tail::Tail;
use self::view::SqliteView;
use self::writer::Writer;
use crate::api::{Ledger, LedgerError, RecordError, ShardRow, View};
use crate::care::{Copied, CopyError, CopyProgress, LedgerCare, RepairError, RepairPlan, Retained};
use crate::sharing::{Claim, Keep, Lease, Leasing, Pruned, SharedLedger};

/// Readers kept open between views.
const POOL_MAX: usize = 4;

/// A ledger in one SQLite file.
#[derive(Debug)]
pub struct Sqlite {
    shared: Arc<Shared>,
    writer: Mutex<Writer>,
}

/// What the ledger and its views share.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    pool: Mutex<Vec<Reader>>,
    tail: Arc<Tail>,
}

impl Shared {
    fn reader(&self) -> Result<Reader, LedgerError> {
        let pooled = self.pool.lock().pop();
        match pooled {
            Some(reader) => Ok(reader),
            None => Reader::open(&self.path, Arc::clone(&self.tail)),
        }
    }

    /// Reads one thing, without a view around it.
    fn read<T>(&self, read: impl FnOnce(&Reader) -> rusqlite::Result<T>) -> Result<T, LedgerError> {
        let reader = self.reader()?;
        // A reader that failed is closed.
        let value = read(&reader).map_err(|error| errors::ledger_error(&self.path, &error))?;
        self.give_back(reader);
        Ok(value)
    }

    fn give_back(&self, reader: Reader) {
        let mut pool = self.pool.lock();
        if pool.len() < POOL_MAX {
            pool.push(reader);
        }
    }
}

impl Sqlite {
    /// The name of the file inside the data folder.
    pub const FILE: &'static str = "ledger.db";

    /// Opens the ledger in `folder`, creating the file (not the folder) if it is missing and migrating its schema.
    pub fn open(folder: &Path) -> Result<Self, LedgerError> {
        let (conn, path) = open::writer(folder)?;
        let tail = Arc::new(Tail::default());
        let writer = Writer::new(conn, &path, Arc::clone(&tail))?;
        let shared = Arc::new(Shared {
            path,
            pool: Mutex::default(),
            tail,
        });
        Ok(Self {
            shared,
            writer: Mutex::new(writer),
        })
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        // So that the next opening finds nothing to do. If it fails, the next opening does it.
        if let Err(error) = self.writer.get_mut().fill(&self.shared.path, 0) {
            tracing::warn!(%error, "the deferred tables were not filled on close");
        }
    }
}

impl Ledger for Sqlite {
    fn open_epoch(&self, shard: u32, owner: &str) -> Result<ShardRow, LedgerError> {
        self.writer.lock().open_epoch(&self.shared.path, shard, owner)
    }

    fn record(&self, run: &[Entry]) -> Result<(), RecordError> {
        self.writer.lock().record(&self.shared.path, run)
    }

    fn view(&self) -> Result<Box<dyn View>, LedgerError> {
        Ok(Box::new(SqliteView::open(Arc::clone(&self.shared))?))
    }
}

impl SharedLedger for Sqlite {
    fn row(&self, shard: u32) -> Result<Option<ShardRow>, LedgerError> {
        self.shared.read(|reader| view::shard_row(&reader.conn, shard))
    }

    fn create_shard(&self, shard: u32, owner: &str) -> Result<Claim, LedgerError> {
        self.writer.lock().create_shard(&self.shared.path, shard, owner)
    }

    fn claim_rebuild(&self, seen: &ShardRow, owner: &str) -> Result<Claim, LedgerError> {
        self.writer.lock().claim_rebuild(&self.shared.path, seen, owner)
    }

    fn finish_rebuild(&self, shard: u32, epoch: u64, owner: &str) -> Result<Claim, LedgerError> {
        self.writer
            .lock()
            .finish_rebuild(&self.shared.path, shard, epoch, owner)
    }

    fn take_lease(&self, shard: u32, owner: &str, for_ms: Millis) -> Result<Leasing, LedgerError> {
        self.writer
            .lock()
            .take_lease(&self.shared.path, shard, owner, for_ms)
    }

    fn release_lease(&self, shard: u32, owner: &str) -> Result<bool, LedgerError> {
        self.writer.lock().release_lease(&self.shared.path, shard, owner)
    }

    fn lease(&self, shard: u32) -> Result<Option<Lease>, LedgerError> {
        self.shared.read(|reader| sharing::lease(&reader.conn, shard))
    }

    fn prune_entries(&self, shard: u32, keep: Keep, limit: usize) -> Result<Pruned, LedgerError> {
        self.writer
            .lock()
            .prune_entries(&self.shared.path, shard, keep, limit)
    }
}

impl LedgerCare for Sqlite {
    fn backup(
        &self,
        to: &Path,
        audit: bool,
        progress: &mut dyn FnMut(CopyProgress),
    ) -> Result<Copied, CopyError> {
        backup::backup(&self.shared, to, audit, progress)
    }

    fn retain(&self, before: Millis, limit: usize) -> Result<Retained, LedgerError> {
        self.writer
            .lock()
            .plain(&self.shared.path, |conn| retain::step(conn, before, limit))
    }

    fn plan_repair(&self, shard: u32) -> Result<RepairPlan, LedgerError> {
        SqliteView::open(Arc::clone(&self.shared))?.ask(|reader| repair::plan(reader, shard))
    }

    fn repair(&self, plan: &RepairPlan, actor: &Id, reason: &Reason) -> Result<ShardRow, RepairError> {
        self.writer.lock().repair(&self.shared.path, plan, actor, reason)
    }
}

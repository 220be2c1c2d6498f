//! The embedded ledger: one SQLite file in write-ahead mode, synchronous=FULL, one connection that writes.

mod audit;
mod audit_details;
mod audit_reservations;
mod checkpoint;
mod codes;
mod counters;
mod errors;
mod history;
mod ids;
mod index;
mod map;
mod migrate;
mod names;
mod open;
mod query;
mod reader;
mod record;
mod stock;
mod tail;
mod view;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use stockade_core::Entry;

use self::reader::Reader;
use self::tail::Tail;
use self::view::SqliteView;
use self::writer::Writer;
use crate::api::{Ledger, LedgerError, RecordError, ShardRow, View};

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

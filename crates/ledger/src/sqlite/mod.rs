//! The embedded ledger: one SQLite file.

use std::path::Path;

use crate::api::{Ledger, LedgerError, RecordError, ShardRow, View};
use stockade_core::Entry;

/// A ledger in one SQLite file.
#[derive(Debug)]
pub struct Sqlite {}

impl Sqlite {
    /// The name of the file inside the data folder.
    pub const FILE: &'static str = "ledger.db";

    /// Opens the ledger in `folder`, creating the file (not the folder) if it is missing and migrating its schema.
    pub fn open(folder: &Path) -> Result<Self, LedgerError> {
        Err(LedgerError::Database(format!("{} cannot be opened yet", folder.display())))
    }
}

impl Ledger for Sqlite {
    fn open_epoch(&self, _shard: u32, _owner: &str) -> Result<ShardRow, LedgerError> {
        Err(LedgerError::Database("not open".into()))
    }
    fn record(&self, _run: &[Entry]) -> Result<(), RecordError> {
        Err(RecordError::NotRecorded(LedgerError::Database("not open".into())))
    }
    fn view(&self) -> Result<Box<dyn View>, LedgerError> {
        Err(LedgerError::Database("not open".into()))
    }
}

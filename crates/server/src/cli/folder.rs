//! The data folder of a stopped service: its ledger, without a store.
//!
//! Opening a store would start a new epoch, end what is due, and fail on just those ledgers that need looking after.

use std::path::Path;

use stockade::{FolderLock, OpenError};
use stockade_ledger::Sqlite;

use super::Failure;

/// The only shard of a folder.
pub(super) const SHARD: u32 = 0;

/// The ledger in it, and the lock that keeps a service out meanwhile.
pub(super) fn open(folder: &Path, hint: &str) -> Result<(Sqlite, FolderLock), Failure> {
    // A mistyped folder must not become a new, empty and clean ledger.
    if !folder.join(Sqlite::FILE).is_file() {
        let message = format!(
            "{}: no {} there; give the --data of the service",
            folder.display(),
            Sqlite::FILE
        );
        return Err(Failure::Usage(message));
    }
    let lock = lock(folder, hint)?;
    let ledger = Sqlite::open(folder).map_err(|e| Failure::Other(e.to_string()))?;
    Ok((ledger, lock))
}

/// Keeps a service out; when one has the folder, `hint` says what to do instead.
pub(super) fn lock(folder: &Path, hint: &str) -> Result<FolderLock, Failure> {
    FolderLock::take(folder).map_err(|e| match e {
        OpenError::Locked { .. } | OpenError::Shared { .. } => Failure::Other(format!("{e}; {hint}")),
        OpenError::Folder { .. } | OpenError::Redis { .. } | OpenError::Ledger(_) => {
            Failure::Other(e.to_string())
        }
    })
}

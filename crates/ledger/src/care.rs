//! Looking after a ledger: copies of it, letting old things go, mending what a hand broke.

use std::path::{Path, PathBuf};

use crate::api::{Finding, Ledger, LedgerError, ShardRow};

/// A ledger that can be looked after while it is used.
pub trait LedgerCare: Ledger {
    /// Copies the ledger as it is at one moment into a new file, while it goes on being used; then reads the copy back:
    /// SQLite's own check, and with `audit` the copy against the fold of its movements. Nothing is at `to` until all of
    /// that is done; a file that is there already is never overwritten.
    ///
    /// The write-ahead log grows for as long as the copying takes. The copy is one file, which [`crate::restore`] takes.
    fn backup(
        &self,
        to: &Path,
        audit: bool,
        progress: &mut dyn FnMut(CopyProgress),
    ) -> Result<Copied, CopyError>;
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Pages copied.
    pub done: u64,
    /// Pages in all.
    pub all: u64,
}

/// A copy that was made and read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Where.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Where each shard stands in it.
    pub shards: Vec<ShardRow>,
}

/// Why a copy was not made or not taken back.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// There is something already, and nothing is overwritten.
    #[error("{path}: is not empty, and nothing is overwritten: name another place")]
    Occupied {
        /// Which file or folder.
        path: PathBuf,
    },
    /// The copy contradicts itself. It was removed.
    #[error("{path}: contradicts itself: {} ({} found)", first(.findings), .findings.len())]
    Unsound {
        /// Which file.
        path: PathBuf,
        /// The first of what was found.
        findings: Vec<Finding>,
    },
    /// A ledger could not be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// The first finding, in words.
fn first(findings: &[Finding]) -> String {
    findings.first().map_or_else(String::new, |one| {
        format!(
            "{} of {}: expected {}, found {}",
            one.what, one.place, one.expected, one.found
        )
    })
}

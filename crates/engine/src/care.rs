//! Looking after the ledger while the store is open: copies of it, and letting old reservations go.

mod retention;

use std::fs::File;
use std::path::{Path, PathBuf};

use stockade_ledger::{Copied, CopyProgress};
use tokio::sync::oneshot;

pub(crate) use retention::Retention;

use crate::api::Stockade;
use crate::error::{Error, OpenError};
use crate::folder::FolderLock;

/// Where a copy lies that is handed on: a folder inside the data folder, so that it needs no other disk.
const COPYING: &str = "copying";
const COPY: &str = "copy.db";

/// A copy of the ledger that is in no folder any more: it takes room until this is dropped. One of a data folder at a
/// time.
#[derive(Debug)]
pub struct PassingCopy {
    /// The copy, at its beginning.
    pub file: File,
    /// Its size in bytes.
    pub bytes: u64,
    _lock: FolderLock,
}

impl Stockade {
    /// Copies the ledger as it is at one moment into a new file, while commands go on, and reads the copy back: SQLite's
    /// own check, and with `audit` the copy against its movements. Nothing is at `to` until that is done, and what is
    /// there already is never overwritten. [`crate::ledger::restore`] takes such a file back.
    ///
    /// What is answered and not recorded yet (`recorded: false`) is not in it. The ledger's log grows for as long as the
    /// copying takes.
    pub async fn backup(
        &self,
        to: impl Into<PathBuf>,
        audit: bool,
        mut progress: impl FnMut(CopyProgress) + Send + 'static,
    ) -> Result<Copied, Error> {
        let (care, to) = (self.care()?, to.into());
        apart(move || {
            care.backup(&to, audit, &mut progress)
                .map_err(|error| failed(&error))
        })
        .await
    }

    /// The same into a file without a name, for handing it on.
    pub async fn backup_to_pass_on(&self, audit: bool) -> Result<PassingCopy, Error> {
        let (care, folder) = (self.care()?, self.data().join(COPYING));
        apart(move || {
            let lock = FolderLock::take(&folder).map_err(|error| match error {
                OpenError::Locked { .. } | OpenError::Shared { .. } => Error::Unavailable {
                    why: "another backup is under way; ask again when it is done".into(),
                },
                error => failed(&error),
            })?;
            let path = folder.join(COPY);
            // One may be left behind by a process that was killed.
            remove(&path)?;
            let copied = care
                .backup(&path, audit, &mut |_| ())
                .map_err(|error| failed(&error))?;
            let file = File::open(&path).map_err(|error| failed(&error));
            remove(&path)?;
            Ok(PassingCopy {
                file: file?,
                bytes: copied.bytes,
                _lock: lock,
            })
        })
        .await
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::Unavailable {
            why: format!("the backup failed: {}: {error}", path.display()),
        }),
        _ => Ok(()),
    }
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::Unavailable {
        why: format!("the backup failed: {error}"),
    }
}

/// Does what takes long on a thread of its own.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (answer, answered) = oneshot::channel();
    std::thread::Builder::new()
        .name("stockade-backup".into())
        .spawn(move || drop(answer.send(work())))
        .map_err(|error| failed(&format_args!("a thread could not be started: {error}")))?;
    answered
        .await
        .unwrap_or_else(|_| Err(failed(&"it ended with a panic; see the log")))
}

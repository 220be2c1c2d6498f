//! The data folder: one process at a time, or several whose hot tier is on Redis.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::Path;

use fs4::fs_std::FileExt;

use crate::error::OpenError;

/// The name of the lock's file inside the data folder. It holds the id of the process that has the folder, or the word
/// [`SHARED`].
const LOCK: &str = "lock";

/// What stands in the file while processes whose hot tier is on Redis share the folder.
const SHARED: &str = "redis";

/// Held while a store is open, or while somebody looks at its ledger without one. The operating system lets go of it when the process dies, however that happens.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Makes the folder if it is missing and takes it.
    pub fn take(folder: &Path) -> Result<Self, OpenError> {
        Self::lock(folder, false)
    }

    /// Makes the folder if it is missing and takes it together with others that share it. It keeps out those who
    /// [take](Self::take) it, and they keep it out.
    pub fn share(folder: &Path) -> Result<Self, OpenError> {
        Self::lock(folder, true)
    }

    fn lock(folder: &Path, shared: bool) -> Result<Self, OpenError> {
        std::fs::create_dir_all(folder).map_err(|error| trouble(folder, "making the folder", &error))?;
        let path = folder.join(LOCK);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| trouble(folder, "opening the file `lock` in it", &error))?;
        let taken = if shared {
            FileExt::try_lock_shared(&file)
        } else {
            FileExt::try_lock_exclusive(&file)
        };
        let taken = taken.map_err(|error| trouble(folder, "locking the file `lock` in it", &error))?;
        if !taken {
            let mut text = String::new();
            // Without the id the message is still true.
            let _ = file.read_to_string(&mut text);
            if text.trim() == SHARED {
                return Err(OpenError::Shared { path: folder.into() });
            }
            return Err(OpenError::Locked {
                path: folder.into(),
                pid: text.trim().parse().ok(),
            });
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| {
                if shared {
                    write!(file, "{SHARED}")
                } else {
                    write!(file, "{}", std::process::id())
                }
            })
            .map_err(|error| trouble(folder, "writing the file `lock` in it", &error))?;
        Ok(Self { _file: file })
    }
}

fn trouble(folder: &Path, doing: &str, error: &std::io::Error) -> OpenError {
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied => "give this user the right to write there, or use another data folder",
        ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only; use another data folder",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the disk or the quota is full; make room",
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            "there is a file in the way; use another data folder"
        }
        _ => "check the path and the disk, or use another data folder",
    };
    OpenError::Folder {
        path: folder.into(),
        message: format!("{doing} failed: {error}; {remedy}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_names_the_first_process() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path()).unwrap();
        match FolderLock::take(folder.path()) {
            Err(OpenError::Locked { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("expected a locked folder, got {other:?}"),
        }
        drop(first);
        FolderLock::take(folder.path()).unwrap();
    }

    #[test]
    fn those_who_share_keep_out_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::share(folder.path()).unwrap();
        let second = FolderLock::share(folder.path()).unwrap();
        let error = FolderLock::take(folder.path()).unwrap_err();
        assert!(matches!(error, OpenError::Shared { .. }), "{error}");
        assert!(error.to_string().contains("Redis"), "{error}");
        drop((first, second));
        let alone = FolderLock::take(folder.path()).unwrap();
        assert!(matches!(
            FolderLock::share(folder.path()),
            Err(OpenError::Locked { .. })
        ));
        drop(alone);
    }

    #[test]
    fn a_file_in_the_way_is_named_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let error = FolderLock::take(&path).unwrap_err().to_string();
        assert!(error.contains("in the way"), "{error}");
    }
}

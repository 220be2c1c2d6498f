//! Whether a file has changed, told without reading it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What a file looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    inode: u64,
    bytes: u64,
    changed_at: (i64, i64),
}

impl Seen {
    /// `None` if it is not there, or may not be looked at.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let about = std::fs::metadata(path).ok()?;
        Some(Self {
            inode: about.ino(),
            bytes: about.len(),
            changed_at: (about.mtime(), about.mtime_nsec()),
        })
    }
}

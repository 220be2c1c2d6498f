//! Copies: made while the ledger is used, and taken back into an empty folder. Either way the copy is read back before
//! it gets its name.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::audit::audit;
use super::errors::{ledger_error, not_a_database};
use super::reader::Reader;
use super::view::shard_row;
use super::{Shared, Sqlite, migrate};
use crate::api::{Finding, LedgerError, ShardRow};
use crate::care::{Copied, CopyError, CopyProgress};

/// Pages copied between two words about progress: 4 MiB.
const PAGES: i32 = 1_024;

/// Findings that are listed about a copy that is not sound.
const FINDINGS: usize = 20;

/// The lock's file in a data folder, which may be there before the ledger is.
const LOCK: &str = "lock";

fn storage(path: &Path, doing: &str, error: &std::io::Error) -> LedgerError {
    LedgerError::Storage {
        path: path.to_path_buf(),
        message: format!("{doing} failed: {error}"),
        full: matches!(
            error.kind(),
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
        ),
    }
}

fn occupied(path: &Path) -> CopyError {
    CopyError::Occupied {
        path: path.to_path_buf(),
    }
}

/// The file's name with something behind it.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// A file or folder that is removed again unless it is kept.
struct Draft(Option<PathBuf>);

impl Draft {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let gone = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            if let Err(error) = gone
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(%error, path = %path.display(), "an unfinished copy could not be removed");
            }
        }
    }
}

/// Has the disk hold a file or a folder's names.
fn sync(path: &Path) -> Result<(), LedgerError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| storage(path, "writing it to the disk", &error))
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Gives a file its name, unless something has it.
fn name(from: &Path, to: &Path) -> Result<(), CopyError> {
    // A link fails where a rename would replace what somebody put there meanwhile. Some file systems have no links.
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(occupied(to)),
        Err(_) if to.exists() => return Err(occupied(to)),
        Err(_) => std::fs::rename(from, to),
    }
    .map_err(|error| storage(to, "giving the copy its name", &error))?;
    Ok(sync(folder_of(to))?)
}

/// Copies the ledger into a new file.
pub(super) fn backup(
    shared: &Shared,
    to: &Path,
    with_audit: bool,
    progress: &mut dyn FnMut(CopyProgress),
) -> Result<Copied, CopyError> {
    if to.exists() {
        return Err(occupied(to));
    }
    let draft = beside(to, ".partial");
    // One may be left behind by a copy that was killed.
    drop(Draft(Some(draft.clone())));
    let guard = Draft(Some(draft.clone()));
    copy(shared, &draft, progress)?;
    sync(&draft)?;
    let shards = read_back(&draft, with_audit)?;
    name(&draft, to)?;
    guard.keep();
    let bytes = std::fs::metadata(to).map_or(0, |meta| meta.len());
    Ok(Copied {
        path: to.to_path_buf(),
        bytes,
        shards,
    })
}

fn copy(shared: &Shared, to: &Path, progress: &mut dyn FnMut(CopyProgress)) -> Result<(), LedgerError> {
    let failed = |error: rusqlite::Error| ledger_error(&shared.path, &error);
    let at_target = |error: rusqlite::Error| ledger_error(to, &error);
    let mut reader = shared.reader()?;
    // A snapshot that is held: copying in steps would otherwise begin anew after every commit of the recorder.
    reader.pin().map_err(failed)?;
    let mut target = Connection::open_with_flags(
        to,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(at_target)?;
    {
        let backup = Backup::new(&reader.conn, &mut target).map_err(at_target)?;
        loop {
            let step = backup.step(PAGES).map_err(at_target)?;
            let now = backup.progress();
            let count = |pages: i32| u64::try_from(pages).unwrap_or(0);
            progress(CopyProgress {
                done: count(now.pagecount.saturating_sub(now.remaining)),
                all: count(now.pagecount),
            });
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                // Nobody else knows the target, and the source is read from a snapshot.
                _ => {
                    return Err(LedgerError::Busy {
                        path: to.to_path_buf(),
                    });
                }
            }
        }
    }
    reader.release().map_err(failed)?;
    shared.give_back(reader);
    // One file, without a log beside it.
    let mode: String = target
        .query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))
        .map_err(at_target)?;
    if mode != "delete" {
        return Err(LedgerError::Database(format!(
            "the copy's journal mode stays {mode}"
        )));
    }
    target.close().map_err(|(_, error)| at_target(error))
}

/// Reads a copy from its beginning to its end.
fn read_back(path: &Path, with_audit: bool) -> Result<Vec<ShardRow>, CopyError> {
    let failed = |error: rusqlite::Error| ledger_error(path, &error);
    let mut reader = Reader::open(path, std::sync::Arc::default())?;
    migrate::recognise(&reader.conn, path)?;
    reader.pin().map_err(failed)?;
    let mut shards = Vec::new();
    let numbers: Vec<u32> = reader
        .conn
        .prepare("SELECT n FROM shards ORDER BY n")
        .and_then(|mut select| select.query_map([], |row| row.get(0))?.collect())
        .map_err(failed)?;
    if !with_audit || numbers.is_empty() {
        let said: String = reader
            .conn
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
            .map_err(failed)?;
        if said != "ok" {
            return Err(unsound(
                path,
                vec![Finding {
                    what: "file".to_owned(),
                    place: path.display().to_string(),
                    expected: "ok".to_owned(),
                    found: said,
                }],
            ));
        }
    }
    for shard in numbers {
        if with_audit {
            let findings = audit(&reader, shard, FINDINGS).map_err(failed)?;
            if !findings.is_empty() {
                return Err(unsound(path, findings));
            }
        }
        shards.extend(shard_row(&reader.conn, shard).map_err(failed)?);
    }
    reader.release().map_err(failed)?;
    Ok(shards)
}

fn unsound(path: &Path, findings: Vec<Finding>) -> CopyError {
    CopyError::Unsound {
        path: path.to_path_buf(),
        findings,
    }
}

/// Takes over a copy that came from elsewhere: reads it back and gives it its name, unless something has it. What cannot
/// be read back is left where it is.
pub fn take_over(draft: &Path, to: &Path, with_audit: bool) -> Result<Copied, CopyError> {
    let meta = std::fs::metadata(draft).map_err(|error| storage(draft, "reading the copy", &error))?;
    // SQLite takes an empty file for a database in which nothing is.
    if meta.len() == 0 {
        return Err(not_a_database(draft).into());
    }
    sync(draft)?;
    let shards = read_back(draft, with_audit)?;
    name(draft, to)?;
    Ok(Copied {
        path: to.to_path_buf(),
        bytes: meta.len(),
        shards,
    })
}

/// Takes a backup into a folder that is empty or missing: copies it, brings it to this release's schema, reads it back
/// with an audit, and only then gives it the ledger's name.
pub fn restore(from: &Path, folder: &Path) -> Result<Copied, CopyError> {
    let meta = std::fs::metadata(from).map_err(|error| storage(from, "reading the backup", &error))?;
    if !meta.is_file() {
        return Err(not_a_database(from).into());
    }
    let log = beside(from, "-wal");
    if std::fs::metadata(&log).is_ok_and(|meta| meta.len() > 0) {
        // Its newest part is in the log, and it may be in use.
        return Err(LedgerError::Foreign {
            path: from.to_path_buf(),
            message: format!(
                "{} lies beside it: this is a ledger in use, or one that was not closed, and no backup; back it up first",
                log.display()
            ),
        }
        .into());
    }
    std::fs::create_dir_all(folder).map_err(|error| storage(folder, "making the folder", &error))?;
    let others = std::fs::read_dir(folder)
        .map_err(|error| storage(folder, "reading the folder", &error))?
        .filter(|entry| entry.as_ref().map_or(true, |entry| entry.file_name() != LOCK))
        .count();
    if others > 0 {
        return Err(occupied(folder));
    }
    let draft = folder.join("restoring");
    std::fs::create_dir(&draft).map_err(|error| storage(&draft, "making a folder", &error))?;
    let guard = Draft(Some(draft.clone()));
    let copy = draft.join(Sqlite::FILE);
    std::fs::copy(from, &copy).map_err(|error| storage(&copy, "copying the backup", &error))?;
    // A backup may be read-only, and its copy is then.
    let mut rights = std::fs::metadata(&copy)
        .map_err(|error| storage(&copy, "reading its rights", &error))?
        .permissions();
    #[expect(
        clippy::permissions_set_readonly_false,
        reason = "the folder's rights keep others out, as they do for a ledger that was made here"
    )]
    rights.set_readonly(false);
    std::fs::set_permissions(&copy, rights).map_err(|error| storage(&copy, "making it writable", &error))?;
    if meta.len() == 0 {
        return Err(not_a_database(from).into());
    }
    let ledger = Sqlite::open(&draft)?;
    // Whoever recorded the ledger that was copied does not record this one.
    ledger
        .writer
        .lock()
        .plain(&copy, |conn| conn.execute("DELETE FROM leases", []))?;
    let shards = read_back(&copy, true)?;
    // Closing empties the log into the file.
    drop(ledger);
    let log = beside(&copy, "-wal");
    if std::fs::metadata(&log).is_ok_and(|meta| meta.len() > 0) {
        return Err(LedgerError::Database(format!("{} was not emptied", log.display())).into());
    }
    sync(&copy)?;
    let path = folder.join(Sqlite::FILE);
    name(&copy, &path)?;
    drop(guard);
    sync(folder)?;
    let bytes = std::fs::metadata(&path).map_or(0, |meta| meta.len());
    Ok(Copied { path, bytes, shards })
}

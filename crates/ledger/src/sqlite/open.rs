//! Opening the file: what is refused, and how every connection is set up.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use super::errors::{DAMAGED, is_busy, ledger_error, not_a_database};
use super::migrate::{migrate, recognise};
use crate::api::LedgerError;

/// How long a writer waits for another process. Longer than any group takes; short enough that a stuck process is
/// reported rather than waited for.
const BUSY: Duration = Duration::from_secs(10);

/// Between two tries to get a lock. SQLite's own pauses grow to a tenth of a second, and a process that records without
/// pause then keeps others out for seconds: they look when it holds the lock and sleep when it does not.
const PAUSE: Duration = Duration::from_micros(500);

/// Called by SQLite when a lock is held by another connection: whether to try again.
fn wait(tries: i32) -> bool {
    std::thread::sleep(PAUSE);
    PAUSE.saturating_mul(u32::try_from(tries).unwrap_or(0)) < BUSY
}

/// Prepared statements kept per connection: more than there are in this crate.
const STATEMENTS: usize = 128;

/// Bytes that every SQLite database begins with.
const HEAD: u64 = 16;

/// Looks at the folder and the file before SQLite does, whose messages would not say what to do.
fn inspect(folder: &Path, path: &Path) -> Result<(), LedgerError> {
    let storage = |path: &Path, message: String| {
        Err(LedgerError::Storage {
            path: path.to_path_buf(),
            message,
            full: false,
        })
    };
    match std::fs::metadata(folder) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return storage(folder, "is not a folder: name a folder for the data".to_owned()),
        Err(error) => return storage(folder, format!("{error}: create the folder, or name another")),
    }
    // Never opened here: closing a file lets go of every lock that this process has on it, those of SQLite too, and
    // another process would then take the ledger for unused.
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => storage(
            path,
            "is a folder: move it away, or name another folder".to_owned(),
        ),
        // SQLite takes a file of one byte for an empty one. An empty one is what a crash during the very first opening
        // leaves behind.
        Ok(meta) if (1..HEAD).contains(&meta.len()) => Err(not_a_database(path)),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => storage(
            path,
            format!("{error}: make the file readable and writable for this user"),
        ),
    }
}

/// Opens the one connection of this process that writes.
pub(super) fn writer(folder: &Path) -> Result<(Connection, PathBuf), LedgerError> {
    let path = folder.join(super::Sqlite::FILE);
    inspect(folder, &path)?;
    let began = Instant::now();
    loop {
        match set_up(&path) {
            // Of several processes that make the file at once, SQLite tells all but one to go away without waiting.
            Err(LedgerError::Busy { .. }) if began.elapsed() < BUSY => std::thread::sleep(PAUSE),
            done => return done.map(|conn| (conn, path)),
        }
    }
}

fn set_up(path: &Path) -> Result<Connection, LedgerError> {
    let failed = |error: rusqlite::Error| ledger_error(path, &error);
    let mut conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(failed)?;
    conn.busy_handler(Some(wait)).map_err(failed)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    if conn.is_readonly("main").map_err(failed)? {
        return Err(LedgerError::Storage {
            path: path.to_path_buf(),
            message: "is read-only: make the file writable for this user, or name another folder".to_owned(),
            full: false,
        });
    }
    // Before anything is changed, as the next two lines would.
    recognise(&conn, path)?;
    conn.pragma_update(None, "page_size", 4096).map_err(failed)?;
    let mode: String = conn
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(failed)?;
    if mode != "wal" {
        return Err(LedgerError::Storage {
            path: path.to_path_buf(),
            message: format!(
                "this file system does not carry a write-ahead log (journal mode stays {mode}): name a folder on a \
                 local disk"
            ),
            full: false,
        });
    }
    common(&conn).map_err(failed)?;
    conn.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    conn.pragma_update(None, "cache_size", -32_768).map_err(failed)?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)
        .map_err(failed)?;
    conn.pragma_update(None, "journal_size_limit", 128 << 20)
        .map_err(failed)?;
    whole(&conn, path)?;
    migrate(&mut conn, path)?;
    Ok(conn)
}

/// Opens a connection that only reads. Its file is opened for writing nevertheless and `query_only` keeps it from
/// writing: SQLite leaves out a schema's CHECKs when it opens a file read-only, and then its check of the file does too.
pub(super) fn reader(path: &Path) -> Result<Connection, LedgerError> {
    let failed = |error: rusqlite::Error| ledger_error(path, &error);
    let mut conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(failed)?;
    conn.busy_handler(Some(wait)).map_err(failed)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    common(&conn).map_err(failed)?;
    conn.pragma_update(None, "cache_size", -8_192).map_err(failed)?;
    conn.pragma_update(None, "query_only", true).map_err(failed)?;
    Ok(conn)
}

/// Opens the connection that copies the write-ahead log into the file.
pub(super) fn checkpointer(path: &Path) -> Result<Connection, LedgerError> {
    let failed = |error: rusqlite::Error| ledger_error(path, &error);
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(failed)?;
    common(&conn).map_err(failed)?;
    conn.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)
        .map_err(failed)?;
    Ok(conn)
}

fn common(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    // A failing disk under a memory map is a signal, not an error.
    conn.pragma_update(None, "mmap_size", 0)?;
    // The schema declares none: every reference is a number that this crate gave in the same transaction.
    conn.pragma_update(None, "foreign_keys", false)?;
    conn.pragma_update(None, "trusted_schema", false)
}

/// A file that lost its end opens without complaint and fails much later: compare sizes now.
fn whole(conn: &Connection, path: &Path) -> Result<(), LedgerError> {
    let failed = |error: rusqlite::Error| ledger_error(path, &error);
    // In a snapshot, so that no other process empties the log between two looks.
    let snapshot = conn.unchecked_transaction().map_err(failed)?;
    let pages: u32 = conn
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .map_err(failed)?;
    let size: u32 = conn
        .query_row("PRAGMA page_size", [], |row| row.get(0))
        .map_err(failed)?;
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let there = length(path).saturating_add(length(Path::new(&wal)));
    drop(snapshot);
    let needed = u64::from(pages) * u64::from(size);
    if there < needed {
        return Err(LedgerError::Foreign {
            path: path.to_path_buf(),
            message: format!("{DAMAGED} ({there} bytes are there, {needed} should be)"),
        });
    }
    Ok(())
}

/// How often a transaction is begun anew when SQLite gives up without waiting, as it does while another process
/// recovers the log.
const TRIES: u32 = 5;

/// Takes the write lock, waiting for other processes.
pub(super) fn begin_immediate(conn: &Connection) -> rusqlite::Result<()> {
    let began = Instant::now();
    let mut tries = 1;
    loop {
        let done = conn
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute([]));
        match done {
            Err(error) if is_busy(&error) && tries < TRIES && began.elapsed() < BUSY => tries += 1,
            done => return done.map(|_| ()),
        }
    }
}

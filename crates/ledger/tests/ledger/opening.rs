//! What is opened, what is refused, and what is said about it.

use std::path::Path;

use rusqlite::Connection;
use stockade_ledger::{Ledger, LedgerError, RecordError, Sqlite};

use crate::support::{Book, by_hand, file, fresh, id};

const DUMP: &str = "schema/sqlite.sql";

/// The schema as SQLite holds it, in a fixed order.
fn dump(path: &Path) -> String {
    let conn = Connection::open(path).unwrap();
    let mut select = conn
        .prepare(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name",
        )
        .unwrap();
    let parts: Vec<String> = select
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let id: i32 = conn
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .unwrap();
    format!("PRAGMA application_id = {id};\n\n{};\n", parts.join(";\n\n"))
}

#[test]
fn the_reviewed_schema_is_what_migrations_make() {
    let (folder, ledger, _row) = fresh();
    drop(ledger);
    let made = dump(&file(&folder));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DUMP);
    if std::env::var_os("STOCKADE_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let reviewed = std::fs::read_to_string(&path).unwrap();
    assert!(
        made == reviewed.replace('\r', ""),
        "{DUMP} differs from what the migrations make; run this test with STOCKADE_WRITE_SCHEMA=1 and review the \
         difference:\n{made}"
    );
}

#[test]
fn the_file_is_set_up_so_that_a_commit_is_on_disk() {
    let (folder, _ledger, _row) = fresh();
    let conn = Connection::open(file(&folder)).unwrap();
    let mode: String = conn
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
}

fn foreign(folder: &Path) -> String {
    match Sqlite::open(folder) {
        Err(LedgerError::Foreign { path, message }) => {
            assert_eq!(path, folder.join(Sqlite::FILE));
            message
        }
        other => panic!("{other:?}"),
    }
}

fn storage(folder: &Path) -> String {
    match Sqlite::open(folder) {
        Err(LedgerError::Storage {
            message, full: false, ..
        }) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_folder_and_a_file_as_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(storage(&folder.path().join("none")).contains("create the folder"));
    let path = folder.path().join("file");
    std::fs::write(&path, "x").unwrap();
    assert!(storage(&path).contains("name a folder"));
    assert!(!folder.path().join("none").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_files_is_refused() {
    // The only folder that is read-only for root too, wherever the tests run.
    assert!(storage(Path::new("/proc/self")).contains("writable"));
}

#[cfg(unix)]
#[test]
fn a_read_only_file_or_folder_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, ledger, _row) = fresh();
    drop(ledger);
    let set =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    set(&file(&folder), 0o444);
    // Root may write anywhere: then there is nothing to refuse.
    if std::fs::OpenOptions::new()
        .append(true)
        .open(file(&folder))
        .is_err()
    {
        assert!(storage(folder.path()).contains("writable"));
    }
    set(&file(&folder), 0o644);
    set(folder.path(), 0o555);
    if std::fs::write(folder.path().join("probe"), "").is_err() {
        assert!(storage(folder.path()).contains("writable"));
    }
    set(folder.path(), 0o755);
}

#[test]
fn a_text_file_is_foreign_and_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["my shopping list, which is long enough for a head", "x"] {
        let path = folder.path().join(Sqlite::FILE);
        std::fs::write(&path, text).unwrap();
        assert!(foreign(folder.path()).contains("not a SQLite database"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn another_applications_database_is_foreign_and_is_left_alone() {
    for mark in [0, 77] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(Sqlite::FILE);
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(&format!(
            "PRAGMA application_id = {mark}; CREATE TABLE theirs (x)"
        ))
        .unwrap();
        drop(conn);
        assert!(foreign(folder.path()).contains("another application"));
        let conn = Connection::open(&path).unwrap();
        let tables: i64 = conn
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1);
    }
}

#[test]
fn an_empty_file_is_a_new_ledger() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(Sqlite::FILE), "").unwrap();
    let ledger = Sqlite::open(folder.path()).unwrap();
    assert_eq!(ledger.open_epoch(0, "test").unwrap().epoch, 1);
}

#[test]
fn a_newer_schema_is_refused_without_a_change() {
    let (folder, ledger, _row) = fresh();
    drop(ledger);
    by_hand(&folder, "INSERT INTO migrations VALUES (9, 'later', 1)");
    match Sqlite::open(folder.path()) {
        Err(LedgerError::TooNew {
            found: 9, known: 3, ..
        }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_migration_than_the_one_known_is_refused() {
    let (folder, ledger, _row) = fresh();
    drop(ledger);
    by_hand(&folder, "UPDATE migrations SET checksum = 1");
    assert!(foreign(folder.path()).contains("not the one that this release knows"));
}

/// A closed ledger with enough in it to fill several pages of each table.
fn large() -> (tempfile::TempDir, Book) {
    let (folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 10_000);
    for n in 0..2_000 {
        book.reserve(&format!("r-{n}"), &format!("u-{n}"), "A");
    }
    let run = [book.seal()];
    ledger.record(&run).unwrap();
    drop(ledger);
    (folder, book)
}

#[test]
fn a_file_that_lost_its_end_is_refused() {
    let (folder, _book) = large();
    let data = std::fs::OpenOptions::new()
        .write(true)
        .open(file(&folder))
        .unwrap();
    let length = data.metadata().unwrap().len();
    for keep in [length - 4096, length / 2, 5_000, 60] {
        data.set_len(keep).unwrap();
        assert!(foreign(folder.path()).contains("restore a backup"));
    }
}

#[test]
fn a_damaged_page_is_reported_as_damage() {
    let (folder, _book) = large();
    let whole = std::fs::read(file(&folder)).unwrap();
    let mut reported = 0;
    for page in 1..whole.len() / 4096 {
        let mut damaged = whole.clone();
        damaged[page * 4096..][..4096].fill(0xa5);
        std::fs::write(file(&folder), &damaged).unwrap();
        let ledger = match Sqlite::open(folder.path()) {
            Ok(ledger) => ledger,
            Err(LedgerError::Foreign { message, .. }) => {
                assert!(message.contains("restore a backup"), "{message}");
                reported += 1;
                continue;
            }
            Err(other) => panic!("page {page}: {other:?}"),
        };
        let view = ledger.view().unwrap();
        match view.audit(0, 10) {
            Ok(findings) => assert!(!findings.is_empty(), "page {page}: the damage was not found"),
            Err(LedgerError::Foreign { message, .. }) => {
                assert!(message.contains("restore a backup"), "{message}");
            }
            Err(LedgerError::Corrupt { .. }) => {}
            Err(other) => panic!("page {page}: {other:?}"),
        }
        reported += 1;
    }
    assert_eq!(reported, whole.len() / 4096 - 1);
}

/// A folder on a file system of 2 MiB; `None` where this user may not mount one.
#[cfg(target_os = "linux")]
fn small_disk() -> Option<(tempfile::TempDir, impl Drop)> {
    struct Unmount(std::path::PathBuf);
    impl Drop for Unmount {
        fn drop(&mut self) {
            std::process::Command::new("umount")
                .arg(&self.0)
                .status()
                .unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
        .arg(folder.path())
        .stderr(std::process::Stdio::null())
        .status();
    let path = folder.path().to_owned();
    mounted
        .is_ok_and(|status| status.success())
        .then(|| (folder, Unmount(path)))
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_refuses_the_run_and_loses_nothing() {
    let Some((folder, unmount)) = small_disk() else {
        return;
    };
    let ledger = Sqlite::open(folder.path()).unwrap();
    let row = ledger.open_epoch(0, "test").unwrap();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 1_000_000);
    let mut recorded = 0;
    let mut n = 0;
    let (run, error) = loop {
        for _ in 0..500 {
            n += 1;
            book.reserve(&format!("r-{n}"), "ann", "A");
        }
        let run = [book.seal()];
        match ledger.record(&run) {
            Ok(()) => recorded += 1,
            Err(error) => break (run, error),
        }
        assert!(recorded < 1_000);
    };
    match error {
        RecordError::NotRecorded(LedgerError::Storage {
            full: true, message, ..
        }) => {
            assert!(message.contains("free space"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let view = ledger.view().unwrap();
    assert_eq!(view.shard(0).unwrap().unwrap().cursor, recorded);
    assert_eq!(view.audit(0, 10).unwrap(), vec![]);
    drop(view);
    // With space again, the same run is taken.
    std::process::Command::new("mount")
        .args(["-o", "remount,size=64m"])
        .arg(folder.path())
        .status()
        .unwrap();
    ledger.record(&run).unwrap();
    book.check(&*ledger.view().unwrap());
    drop(ledger);
    drop(unmount);
}

#[test]
fn a_number_that_cannot_be_stored_is_refused_before_it_wraps() {
    let (_folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", (1 << 53) - 1);
    book.skus.get_mut(&id("A")).unwrap().locations[0].counters.on_hand = 0;
    book.stock("c-2", "A", "default", 5);
    let run = [book.seal()];
    assert!(matches!(ledger.record(&run), Err(RecordError::Mismatch { .. })));
    assert_eq!(ledger.view().unwrap().shard(0).unwrap().unwrap().cursor, 0);
}

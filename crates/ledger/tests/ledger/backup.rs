//! A copy made under load is a whole ledger of one moment, and is taken back only where nothing is overwritten.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use stockade_core::Verb;
use stockade_ledger::{CopyError, Ledger, LedgerCare, ShardRow, SharedLedger, Sqlite, restore};

use crate::crash;
use crate::support::{Book, by_hand, file, fresh};

fn quiet() -> impl FnMut(stockade_ledger::CopyProgress) {
    |_| {}
}

/// The book of `crash`'s history after the entries that a row counts.
fn replay(row: &ShardRow) -> Book {
    let mut book = Book::new(&ShardRow {
        cursor: 0,
        tag: 0,
        at: 0,
        ..row.clone()
    });
    while book.seq < row.cursor {
        crash::next(&mut book);
    }
    book
}

/// What lies in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_backup_under_load_is_one_moment_and_comes_back_whole() {
    let (_folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    for _ in 0..40 {
        ledger.record(&[crash::next(&mut book)]).unwrap();
    }
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("monday.db");
    // What a killed copy left behind is in nobody's way.
    std::fs::write(place.path().join("monday.db.partial"), "half").unwrap();
    let stop = AtomicBool::new(false);
    let (copied, steps) = std::thread::scope(|scope| {
        let recorder = scope.spawn(|| {
            let mut recorded = 0;
            while !stop.load(Ordering::Relaxed) {
                ledger.record(&[crash::next(&mut book)]).unwrap();
                recorded += 1;
            }
            recorded
        });
        let mut steps = Vec::new();
        let copied = ledger
            .backup(&to, true, &mut |progress| {
                // The recorder goes on between two steps.
                let seen = ledger.row(0).unwrap().unwrap().cursor;
                while ledger.row(0).unwrap().unwrap().cursor == seen {
                    std::thread::yield_now();
                }
                steps.push(progress);
            })
            .unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(recorder.join().unwrap() > 0);
        (copied, steps)
    });
    let last = steps.last().unwrap();
    assert_eq!(last.done, last.all);
    assert!(last.all > 1);
    assert_eq!(names(place.path()), ["monday.db"]);
    assert_eq!(copied.bytes, std::fs::metadata(&to).unwrap().len());
    let there = &copied.shards[0];
    assert!(there.cursor >= 40 && there.cursor < ledger.row(0).unwrap().unwrap().cursor);

    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("new");
    let taken = restore(&to, &folder).unwrap();
    assert_eq!(taken.shards, copied.shards);
    assert_eq!(names(&folder), [Sqlite::FILE]);
    let restored = Sqlite::open(&folder).unwrap();
    let mut book = replay(there);
    book.check(&*restored.view().unwrap());
    restored.record(&[crash::next(&mut book)]).unwrap();
    book.check(&*restored.view().unwrap());
}

#[test]
fn nothing_is_overwritten() {
    let (folder, ledger, _row) = fresh();
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    std::fs::write(&to, "mine").unwrap();
    let refused = |done: Result<stockade_ledger::Copied, CopyError>| match done {
        Err(CopyError::Occupied { path }) => path,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(ledger.backup(&to, true, &mut quiet())), to);
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "mine");
    let good = place.path().join("good");
    ledger.backup(&good, false, &mut quiet()).unwrap();
    // The ledger's own folder, and one with anything in it but an unused lock.
    assert_eq!(refused(restore(&good, folder.path())), folder.path());
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("keys.json"), "").unwrap();
    assert_eq!(refused(restore(&good, other.path())), other.path());
    assert_eq!(names(other.path()), ["keys.json"]);
    let locked = tempfile::tempdir().unwrap();
    std::fs::write(locked.path().join("lock"), "").unwrap();
    restore(&good, locked.path()).unwrap();
    assert_eq!(names(locked.path()), [Sqlite::FILE, "lock"]);
}

#[test]
fn what_is_no_sound_backup_is_not_taken() {
    let (folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 10_000);
    for n in 0..2_000 {
        book.reserve(&format!("r-{n}"), &format!("u-{n}"), "A");
    }
    book.end("r-1", Verb::Confirm);
    ledger.record(&[book.seal()]).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    ledger.backup(&path("good"), true, &mut quiet()).unwrap();
    let whole = std::fs::read(path("good")).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2..][..4096].fill(0xa5);
    std::fs::write(path("damaged"), damaged).unwrap();
    std::fs::write(path("short"), &whole[..whole.len() - 8192]).unwrap();
    std::fs::write(path("text"), "my shopping list, which is long enough for a head").unwrap();
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("edited"), &whole).unwrap();
    let conn = rusqlite::Connection::open(path("edited")).unwrap();
    conn.execute_batch("PRAGMA journal_mode = DELETE; UPDATE stock SET on_hand = on_hand + 5")
        .unwrap();
    drop(conn);
    std::fs::create_dir(path("folder")).unwrap();
    for name in ["damaged", "short", "text", "empty", "edited", "folder", "missing"] {
        let home = tempfile::tempdir().unwrap();
        let error = restore(&path(name), home.path()).unwrap_err();
        assert_eq!(names(home.path()), Vec::<String>::new(), "{name}: {error}");
        match (name, &error) {
            ("edited", CopyError::Unsound { findings, .. }) => assert_eq!(findings[0].what, "on_hand"),
            ("edited", other) => panic!("{other}"),
            _ => {}
        }
    }
    // A ledger in use is no backup: its newest part is in the log.
    let home = tempfile::tempdir().unwrap();
    let error = restore(&file(&folder), home.path()).unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    // A ledger that contradicts itself is not copied as if it were sound.
    by_hand(&folder, "UPDATE stock SET on_hand = on_hand + 5");
    let error = ledger.backup(&path("bad"), true, &mut quiet()).unwrap_err();
    assert!(matches!(error, CopyError::Unsound { .. }), "{error}");
    assert!(!path("bad").exists() && !path("bad.partial").exists());
    // Without the audit it is a copy like any other.
    ledger.backup(&path("bad"), false, &mut quiet()).unwrap();
}

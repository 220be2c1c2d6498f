//! Data folders of older releases: opened, brought to this schema, audited, gone on with.

use rusqlite::Connection;
use stockade_core::{Id, Status, Verb};
use stockade_ledger::{Ledger, RecordError, Sqlite, View, restore};

use crate::support::{Book, by_hand, find, fresh, id};

/// Every older schema, as SQL.
const OLDER: [&str; 1] = [include_str!("../fixtures/schema-1.sql")];

fn old(sql: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let conn = Connection::open(folder.path().join(Sqlite::FILE)).unwrap();
    conn.execute_batch("PRAGMA page_size = 4096; PRAGMA journal_mode = WAL")
        .unwrap();
    conn.execute_batch(sql).unwrap();
    folder
}

fn check(view: &dyn View) {
    assert_eq!(view.audit(0, 10).unwrap(), vec![]);
    let row = view.shard(0).unwrap().unwrap();
    assert_eq!((row.epoch, row.cursor), (1, 3));
    let status = |name| find(view, name).map(|one| one.status);
    assert_eq!(
        ["r-1", "r-2", "r-3", "r-4", "r-5", "r-6", "r-7", "r-8"].map(status),
        [
            Some(Status::Lost),
            Some(Status::Confirmed),
            Some(Status::Confirmed),
            Some(Status::Cancelled),
            Some(Status::Expired),
            Some(Status::Pending),
            Some(Status::Cancelled),
            None
        ]
    );
    assert_eq!(find(view, "r-6").unwrap().ends_at, 900_000);
    let mut usage = Vec::new();
    view.usage(0, &mut |_, sku, owner, used| {
        usage.push(format!("{owner} {sku} {used}"));
    })
    .unwrap();
    usage.sort();
    assert_eq!(
        usage,
        ["bob A/1 1", "cy A/1 1", "cy B's \"größe\" 3", "eve A/1 1"]
    );
}

#[test]
fn an_older_folder_is_brought_to_this_schema_and_is_sound() {
    for sql in OLDER {
        let folder = old(sql);
        let ledger = Sqlite::open(folder.path()).unwrap();
        let view = ledger.view().unwrap();
        check(&*view);
        // And the chain goes on.
        let mut book = Book::new(&view.shard(0).unwrap().unwrap());
        view.skus(0, &mut |one| drop(book.skus.insert(one.sku.clone(), one)))
            .unwrap();
        for name in ["r-1", "r-2", "r-3", "r-4", "r-5", "r-6", "r-7"] {
            book.reservations.insert(id(name), find(&*view, name).unwrap());
        }
        drop(view);
        book.end("r-6", Verb::Confirm);
        book.reserve("r-8", "eve", "A/1");
        ledger.record(&[book.seal()]).unwrap();
        book.check(&*ledger.view().unwrap());
        drop(ledger);
        let ledger = Sqlite::open(folder.path()).unwrap();
        book.check(&*ledger.view().unwrap());
    }
}

#[test]
fn an_older_backup_is_taken_back() {
    for sql in OLDER {
        let place = tempfile::tempdir().unwrap();
        let from = place.path().join("old.db");
        Connection::open(&from).unwrap().execute_batch(sql).unwrap();
        let home = tempfile::tempdir().unwrap();
        restore(&from, home.path()).unwrap();
        check(&*Sqlite::open(home.path()).unwrap().view().unwrap());
    }
}

#[test]
fn an_upgrade_by_several_at_once_is_one_upgrade() {
    for sql in OLDER {
        let folder = old(sql);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let ledger = Sqlite::open(folder.path()).unwrap();
                    let view = ledger.view().unwrap();
                    assert!(find(&*view, "r-6").is_some());
                    assert_eq!(
                        view.sku(0, &Id::default_name(), &id("A/1"), true)
                            .unwrap()
                            .usage
                            .len(),
                        3
                    );
                });
            }
        });
        check(&*Sqlite::open(folder.path()).unwrap().view().unwrap());
    }
}

#[test]
fn a_process_of_an_older_release_records_nothing_once_a_newer_one_upgraded() {
    let (folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 10);
    let run = [book.seal()];
    by_hand(&folder, "INSERT INTO migrations VALUES (9, 'later', 1)");
    match ledger.record(&run) {
        Err(RecordError::NotRecorded(error)) => {
            assert!(error.to_string().contains("newer release"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(ledger.open_epoch(0, "test").is_err());
    assert_eq!(ledger.view().unwrap().shard(0).unwrap(), Some(row));
    by_hand(&folder, "DELETE FROM migrations WHERE version = 9");
    ledger.record(&run).unwrap();
    book.check(&*ledger.view().unwrap());
}

//! Only the exact continuation of the recorded chain is taken, and what is refused leaves nothing behind.

use std::fmt::Write as _;

use stockade_core::{Change, Entry, Status, Verb};
use stockade_ledger::{Ledger, RecordError, Sqlite};

use crate::support::{Book, by_hand, file, fresh, id};

/// A ledger with one entry recorded, and the next entry.
fn with_next() -> (tempfile::TempDir, Sqlite, Book, Entry) {
    let (folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 10);
    book.reserve("r-1", "ann", "A");
    let run = [book.seal()];
    ledger.record(&run).unwrap();
    book.reserve("r-2", "bob", "A");
    book.end("r-1", Verb::Confirm);
    let next = book.seal();
    (folder, ledger, book, next)
}

/// Every row of every table.
pub(crate) fn everything(folder: &tempfile::TempDir) -> String {
    let conn = rusqlite::Connection::open(file(folder)).unwrap();
    let mut tables: Vec<String> = conn
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    tables.retain(|table| table != "sqlite_sequence");
    let mut all = String::new();
    for table in tables {
        let mut select = conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = select.column_count();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            all.push_str(&table);
            for column in 0..columns {
                all.push('|');
                write!(all, "{:?}", row.get_ref(column).unwrap()).unwrap();
            }
            all.push('\n');
        }
    }
    all
}

/// The entry, changed, is refused as expected; nothing was written; the unchanged one is then taken.
fn refused(change: impl FnOnce(&mut Entry), is_expected: impl FnOnce(&RecordError) -> bool) {
    let (folder, ledger, book, next) = with_next();
    let before = everything(&folder);
    let mut changed = next.clone();
    change(&mut changed);
    let error = ledger.record(&[changed]).unwrap_err();
    assert!(is_expected(&error), "{error:?}");
    assert_eq!(everything(&folder), before);
    ledger.record(&[next]).unwrap();
    book.check(&*ledger.view().unwrap());
}

fn fenced(error: &RecordError) -> bool {
    matches!(error, RecordError::Fenced { .. })
}

fn mismatch(error: &RecordError) -> bool {
    matches!(error, RecordError::Mismatch { .. })
}

#[test]
fn another_epoch_cursor_or_tag_is_fenced() {
    refused(|entry| entry.epoch = 2, fenced);
    refused(|entry| entry.epoch = 0, fenced);
    refused(|entry| entry.seq = 1, fenced);
    refused(|entry| entry.seq = 3, fenced);
    refused(|entry| entry.prev ^= 1, fenced);
    refused(
        |entry| entry.shard = 7,
        |error| matches!(error, RecordError::Fenced { found: None, .. }),
    );
}

#[test]
fn a_fenced_run_says_where_the_ledger_stands() {
    let (_folder, ledger, book, next) = with_next();
    let row = ledger.open_epoch(0, "another").unwrap();
    match ledger.record(&[next]) {
        Err(RecordError::Fenced {
            expected: 1,
            found: Some(found),
        }) => {
            assert_eq!(found, row);
            assert_eq!(
                (found.epoch, found.cursor, found.owner.as_str()),
                (book.epoch + 1, 1, "another")
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_mode_is_fenced() {
    for mode in ["sql", "rebuild"] {
        let (folder, ledger, _book, next) = with_next();
        by_hand(&folder, &format!("UPDATE shards SET mode = '{mode}'"));
        assert!(fenced(&ledger.record(&[next]).unwrap_err()));
    }
}

#[test]
fn the_same_run_twice_is_recorded_once() {
    let (_folder, ledger, book, next) = with_next();
    let run = [next];
    ledger.record(&run).unwrap();
    assert!(fenced(&ledger.record(&run).unwrap_err()));
    book.check(&*ledger.view().unwrap());
}

#[test]
fn a_run_that_is_no_chain_in_itself_is_refused() {
    let (folder, ledger, mut book, next) = with_next();
    book.extend("r-2", 99_000);
    let last = book.seal();
    let before = everything(&folder);
    for change in [
        (|entry: &mut Entry| entry.seq += 1) as fn(&mut Entry),
        |entry| entry.prev ^= 1,
        |entry| entry.epoch += 1,
        |entry| entry.shard += 1,
    ] {
        let mut changed = last.clone();
        change(&mut changed);
        assert!(mismatch(&ledger.record(&[next.clone(), changed]).unwrap_err()));
    }
    assert_eq!(everything(&folder), before);
    ledger.record(&[]).unwrap();
    ledger.record(&[next, last]).unwrap();
    book.check(&*ledger.view().unwrap());
}

#[test]
fn counters_that_do_not_follow_are_a_mismatch() {
    refused(|entry| entry.effects[0].moves[0].after.reserved += 1, mismatch);
    refused(|entry| entry.effects[0].moves[0].after.version += 1, mismatch);
    refused(|entry| entry.effects[1].moves[0].on_hand -= 1, mismatch);
    refused(|entry| entry.effects[1].moves[0].after.sold = 0, mismatch);
    refused(|entry| entry.effects[0].moves[0].sku = id("Z"), mismatch);
    refused(
        |entry| entry.effects[0].moves[0].location = id("nowhere"),
        mismatch,
    );
}

#[test]
fn states_that_do_not_follow_are_a_mismatch() {
    let set = |at: usize, status: Option<Status>| {
        move |entry: &mut Entry| {
            if let Change::Reservation { before, .. } = &mut entry.effects[at].change {
                *before = status;
            }
        }
    };
    refused(set(0, Some(Status::Pending)), mismatch);
    refused(set(1, None), mismatch);
    refused(set(1, Some(Status::Expired)), mismatch);
    // Another quantity than the one reserved.
    refused(
        |entry| {
            if let Change::Reservation { after, .. } = &mut entry.effects[1].change {
                after.lines[0].allocations[0].quantity = 2;
            }
        },
        mismatch,
    );
}

#[test]
fn a_hand_edit_is_a_mismatch() {
    for edit in [
        "UPDATE stock SET version = version + 1",
        "UPDATE stock SET on_hand = on_hand + 1",
        "UPDATE stock SET on_hand = 1, reserved = 1",
        "UPDATE reservations SET status = 2",
        "DELETE FROM reservations",
        "DELETE FROM allocations",
        "DELETE FROM stock",
    ] {
        let (folder, ledger, _book, next) = with_next();
        by_hand(&folder, edit);
        let error = ledger.record(&[next]).unwrap_err();
        assert!(mismatch(&error), "{edit}: {error:?}");
        assert_eq!(ledger.view().unwrap().shard(0).unwrap().unwrap().cursor, 1);
    }
}

#[test]
fn two_openings_of_one_file_never_both_record() {
    // B138 and B141: many writers on one file wait for each other instead of failing, and only one continues the chain.
    let (folder, ledger, _book, next) = with_next();
    let others: Vec<Sqlite> = (0..8).map(|_| Sqlite::open(folder.path()).unwrap()).collect();
    let outcomes: Vec<bool> = std::thread::scope(|scope| {
        let threads: Vec<_> = others
            .iter()
            .map(|other| {
                let next = next.clone();
                scope.spawn(move || match other.record(&[next]) {
                    Ok(()) => true,
                    Err(RecordError::Fenced { .. }) => false,
                    Err(error) => panic!("{error:?}"),
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|done| **done).count(), 1);
    // The first opening notices that others wrote: its numbers are not used twice.
    let mut book = Book::new(&ledger.view().unwrap().shard(0).unwrap().unwrap());
    book.stock("c-9", "New", "north", 1);
    let run = [book.seal()];
    ledger.record(&run).unwrap();
    assert_eq!(ledger.view().unwrap().audit(0, 10).unwrap(), vec![]);
}

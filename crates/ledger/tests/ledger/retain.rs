//! What retention removes, what it leaves, and what it costs.

use stockade_core::{Id, Record, Space, Status, Verb};
use stockade_ledger::{Ledger, LedgerCare, RecordError, Retained, SharedLedger as _, Sqlite};

use crate::support::{Book, by_hand, find, fresh, id};

/// A closed history of all kinds, opened again so that the deferred tables hold it, and the time after it.
fn old() -> (tempfile::TempDir, Sqlite, Book, i64) {
    let (folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    book.stock("c-2", "B", "default", 100);
    book.configure("c-3", "A", |settings| settings.limit_per_owner = Some(9));
    book.reserve("sold", "ann", "A");
    book.end("sold", Verb::Confirm);
    book.deduct("returned", "ann", "A");
    book.give_back("t-1", "returned");
    book.deduct("twice", "ann", "B");
    book.reserve("cancelled", "bob", "A");
    book.end("cancelled", Verb::Cancel);
    book.reserve("expired", "bob", "A");
    book.end("expired", Verb::Expire);
    book.note("expired");
    book.lose_new("lost", "bob", "A");
    book.seal_id("sealed");
    book.reserve("live", "cy", "A");
    book.reserve("late", "cy", "B");
    ledger.record(&[book.seal()]).unwrap();
    let time = book.now + 1;
    book.now += 1_000;
    // Begun long ago, ended later.
    book.end("late", Verb::Confirm);
    ledger.record(&[book.seal()]).unwrap();
    drop(ledger);
    let ledger = Sqlite::open(folder.path()).unwrap();
    (folder, ledger, book, time)
}

const GONE: [&str; 7] = [
    "sold",
    "returned",
    "twice",
    "cancelled",
    "expired",
    "lost",
    "sealed",
];

fn all(ledger: &Sqlite, before: i64, limit: usize) -> Retained {
    let mut sum = Retained::default();
    loop {
        let step = ledger.retain(before, limit).unwrap();
        assert!(step.looked_at <= limit);
        sum.reservations += step.reservations;
        sum.movements += step.movements;
        assert_eq!(ledger.view().unwrap().audit(0, 10).unwrap(), vec![]);
        if !step.more {
            return sum;
        }
    }
}

fn usage(ledger: &Sqlite) -> Vec<String> {
    let mut usage = Vec::new();
    ledger
        .view()
        .unwrap()
        .usage(0, &mut |_, sku, owner, used| {
            usage.push(format!("{owner} {sku} {used}"));
        })
        .unwrap();
    usage.sort();
    usage
}

#[test]
fn what_ended_and_last_changed_before_a_time_goes_and_nothing_else() {
    for limit in [1, 2, 3, 5, 1_000] {
        let (folder, ledger, mut book, time) = old();
        let before = usage(&ledger);
        assert_eq!(before, ["ann A 1", "ann B 1", "cy A 1", "cy B 1"]);
        let held = ledger.view().unwrap();
        let done = all(&ledger, time, limit);
        assert_eq!((done.reservations, done.movements), (7, 12), "{limit}");
        let view = ledger.view().unwrap();
        for name in GONE {
            assert_eq!(find(&*view, name), None);
            assert!(find(&*held, name).is_some(), "a view keeps its moment");
            book.reservations.remove(&id(name));
        }
        let tenant = Id::default_name();
        let back = view.find(0, &tenant, Space::Return, &id("t-1")).unwrap();
        assert_eq!(back.record, None);
        // Stock commands stay known: an old count must not be taken for a new one.
        for name in ["c-1", "c-2", "c-3"] {
            let found = view.find(0, &tenant, Space::Stock, &id(name)).unwrap();
            assert!(matches!(found.record, Some(Record::Stock(_))));
        }
        // Owner usage counts what is gone; `usage` of the book does not.
        assert_eq!(usage(&ledger), before);
        assert_eq!(
            view.sku(0, &tenant, &id("A"), true).unwrap().usage,
            [(id("ann"), 1), (id("cy"), 1)]
        );
        drop((view, held));
        assert_eq!(all(&ledger, time, limit), Retained::default());
        // What stays goes on, and goes when its time has come.
        book.end("live", Verb::Cancel);
        // Promise 3 ends here: an id that is gone is a new one.
        book.reserve("sold", "ann", "A");
        ledger.record(&[book.seal()]).unwrap();
        assert_eq!(
            find(&*ledger.view().unwrap(), "sold").unwrap().status,
            Status::Pending
        );
        drop(ledger);
        let ledger = Sqlite::open(folder.path()).unwrap();
        let done = all(&ledger, i64::MAX, limit);
        assert_eq!(done.reservations, 2);
        let mut live = Vec::new();
        ledger
            .view()
            .unwrap()
            .live(0, &mut |one| live.push(one.id.to_string()))
            .unwrap();
        assert_eq!(live, ["sold"]);
        assert_eq!(usage(&ledger), ["ann A 2", "ann B 1", "cy B 1"]);
        drop(ledger);
        let ledger = Sqlite::open(folder.path()).unwrap();
        assert_eq!(ledger.view().unwrap().audit(0, 10).unwrap(), vec![]);
    }
}

#[test]
fn usage_of_an_era_that_is_over_is_not_carried_on() {
    let (folder, ledger, mut book, time) = old();
    all(&ledger, time, 10);
    book.configure("c-4", "A", |settings| settings.era += 1);
    book.deduct("new", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    assert_eq!(usage(&ledger), ["ann A 1", "ann B 1", "cy B 1"]);
    drop(ledger);
    let ledger = Sqlite::open(folder.path()).unwrap();
    all(&ledger, i64::MAX, 10);
    assert_eq!(usage(&ledger), ["ann A 1", "ann B 1", "cy B 1"]);
}

#[test]
fn a_change_of_what_is_gone_is_a_mismatch() {
    let (_folder, ledger, mut book, time) = old();
    all(&ledger, time, 10);
    // A hot tier that still holds it.
    book.give_back("t-2", "twice");
    let done = ledger.record(&[book.seal()]);
    assert!(matches!(done, Err(RecordError::Mismatch { .. })), "{done:?}");
    assert_eq!(ledger.view().unwrap().audit(0, 10).unwrap(), vec![]);
}

#[test]
fn the_tail_is_left_alone() {
    let (_folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    book.deduct("r-1", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    assert_eq!(ledger.retain(i64::MAX, 100).unwrap(), Retained::default());
    book.check(&*ledger.view().unwrap());
}

#[test]
fn an_edit_of_the_base_is_found() {
    for (edit, expected) in [
        (
            "UPDATE stock_base SET on_hand = on_hand + 1 WHERE sku = 1",
            "on_hand",
        ),
        ("UPDATE stock_base SET gone = gone + 1 WHERE sku = 1", "sold"),
        (
            "UPDATE stock_base SET version = version + 1 WHERE sku = 1",
            "version",
        ),
        ("DELETE FROM stock_base WHERE sku = 1", "on_hand"),
        ("UPDATE retention SET movement = 0", "movement"),
    ] {
        let (folder, ledger, _book, time) = old();
        all(&ledger, time, 10);
        by_hand(&folder, edit);
        let found = ledger.view().unwrap().audit(0, 100).unwrap();
        assert!(found.iter().any(|one| one.what == expected), "{edit}: {found:?}");
    }
}

#[test]
fn retention_and_another_process_do_not_hinder_each_other() {
    let (folder, ledger, mut book, time) = old();
    let other = Sqlite::open(folder.path()).unwrap();
    for n in 0..6 {
        ledger.retain(time, 2).unwrap();
        book.reserve(&format!("n-{n}"), "dan", "B");
        other.record(&[book.seal()]).unwrap();
        book.end(&format!("n-{n}"), Verb::Confirm);
        ledger.record(&[book.seal()]).unwrap();
        assert_eq!(other.view().unwrap().audit(0, 10).unwrap(), vec![]);
    }
    assert_eq!(other.row(0).unwrap().unwrap().cursor, book.seq);
    all(&ledger, time, 2);
    for name in GONE {
        assert_eq!(find(&*other.view().unwrap(), name), None);
    }
}

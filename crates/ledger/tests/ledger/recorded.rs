//! What is recorded, and what pruning leaves of it.

use stockade_core::{Position, Record, Space, Status, Verb};
use stockade_ledger::{
    Keep, Key, Ledger, MovementQuery, Pruned, Recorded, ReservationQuery, SharedLedger, Sqlite,
};

use crate::support::{Book, fresh, id};

fn at(epoch: u64, seq: u64, tag: u64) -> Position {
    Position { epoch, seq, tag }
}

/// One entry a recording, 10 ms apart, each with a grant; the positions of all.
fn chain(book: &mut Book, ledger: &Sqlite, entries: u64) -> Vec<Position> {
    (0..entries)
        .map(|_| {
            book.now += 10;
            book.reserve(&format!("r-{}", book.seq), "ann", "A");
            let entry = book.seal();
            ledger.record(std::slice::from_ref(&entry)).unwrap();
            at(entry.epoch, entry.seq, entry.tag)
        })
        .collect()
}

fn filled() -> (tempfile::TempDir, Sqlite, Book, Vec<Position>) {
    let (folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 1_000);
    let all = chain(&mut book, &ledger, 20);
    (folder, ledger, book, all)
}

#[test]
fn an_entry_is_recorded_if_its_tag_is_there_and_for_no_other_reason() {
    let (_folder, ledger, mut book, all) = filled();
    assert!(
        ledger
            .recorded(0, &all)
            .unwrap()
            .iter()
            .all(|one| *one == Recorded::Yes)
    );
    let tip = all[19];
    book.epoch = ledger.open_epoch(0, "next").unwrap().epoch;
    for (asked, expected) in [
        (at(1, 0, 0), Recorded::Yes),
        (at(2, 0, 0), Recorded::Yes),
        (at(1, 0, 5), Recorded::Never),
        (at(1, 20, tip.tag), Recorded::Yes),
        // The base of the new epoch is that entry.
        (at(2, 20, tip.tag), Recorded::Yes),
        (at(2, 20, tip.tag ^ 1), Recorded::Never),
        // A later cursor or a later epoch proves nothing.
        (at(1, 19, tip.tag), Recorded::Never),
        (at(1, 21, 77), Recorded::Never),
        (at(2, 21, 77), Recorded::NotYet),
        (at(3, 21, 77), Recorded::NotYet),
        // An entry cannot be of an epoch before its own.
        (at(0, 20, tip.tag), Recorded::Never),
    ] {
        assert_eq!(ledger.recorded(0, &[asked]).unwrap(), [expected], "{asked:?}");
    }
    assert_eq!(ledger.recorded(5, &[at(1, 1, 1)]).unwrap(), [Recorded::NotYet]);
    assert_eq!(ledger.recorded(0, &[]).unwrap(), []);
    let view = ledger.view().unwrap();
    let next = chain(&mut book, &ledger, 1);
    assert_eq!(view.recorded(0, &next).unwrap(), [Recorded::NotYet]);
    assert_eq!(ledger.recorded(0, &next).unwrap(), [Recorded::Yes]);
}

#[test]
fn pruning_keeps_the_newest_and_the_young_and_always_the_last() {
    // Entries lie 11 ms apart (10, and 1 for the effect): the one n before the last is 11 n ms older.
    for (entries, within_ms, kept) in [
        (20, 0, 20),
        (100, 0, 20),
        (5, 0, 5),
        (1, 0, 1),
        (0, 0, 1),
        (0, -5, 1),
        (5, 1_000_000, 20),
        (1, 33, 4),
        (1, 32, 3),
        (7, 33, 7),
        (u64::MAX, 0, 20),
        (0, i64::MAX, 20),
    ] {
        let (_folder, ledger, mut book, all) = filled();
        let keep = Keep { entries, within_ms };
        let mut removed = 0;
        loop {
            let step = ledger.prune_entries(0, keep, 3).unwrap();
            assert!(step.removed <= 3);
            removed += step.removed;
            if !step.more {
                break;
            }
            assert_eq!(step.removed, 3);
            book.check(&*ledger.view().unwrap());
        }
        assert_eq!(removed, 20 - kept, "{keep:?}");
        let found = ledger.recorded(0, &all).unwrap();
        for (n, one) in found.into_iter().enumerate() {
            let expected = if n < 20 - kept {
                Recorded::Pruned
            } else {
                Recorded::Yes
            };
            assert_eq!(one, expected, "{keep:?} entry {}", n + 1);
        }
        // The chain goes on, and is audited from where it now begins.
        chain(&mut book, &ledger, 2);
        book.check(&*ledger.view().unwrap());
        assert_eq!(ledger.prune_entries(7, keep, 3).unwrap(), Pruned::default());
    }
}

#[test]
fn a_call_that_may_remove_nothing_removes_nothing() {
    let (_folder, ledger, book, _all) = filled();
    let keep = Keep {
        entries: 1,
        within_ms: 0,
    };
    assert_eq!(
        ledger.prune_entries(0, keep, 0).unwrap(),
        Pruned {
            removed: 0,
            more: true
        }
    );
    book.check(&*ledger.view().unwrap());
}

#[test]
fn questions_by_time_find_what_pruned_entries_changed() {
    let (_folder, ledger, book, _all) = filled();
    let movements = |from, until| {
        let query = MovementQuery {
            tenant: stockade_core::Id::default_name(),
            sku: None,
            reservation: None,
            owner: None,
            from,
            until,
            before: None,
            limit: 1_000,
        };
        ledger.view().unwrap().movements(&query).unwrap().movements.len()
    };
    let reservations = |from, until| {
        let query = ReservationQuery {
            tenant: stockade_core::Id::default_name(),
            owner: None,
            sku: None,
            status: None,
            from,
            until,
            before: None,
            limit: 1_000,
        };
        ledger.view().unwrap().reservations(&query).unwrap().len()
    };
    let first = book.now - 19 * 11;
    let times: Vec<Option<i64>> = std::iter::once(None)
        .chain((0..22).map(|n| Some(first - 11 + n * 11)))
        .collect();
    let ask = || -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        for from in &times {
            for until in &times {
                all.push((movements(*from, *until), reservations(*from, *until)));
            }
        }
        all
    };
    let before = ask();
    for entries in [12, 4, 1] {
        let keep = Keep {
            entries,
            within_ms: 0,
        };
        ledger.prune_entries(0, keep, 100).unwrap();
        assert_eq!(ask(), before, "{entries} kept");
    }
}

#[test]
fn a_survivor_that_no_longer_fits_is_recorded_as_lost() {
    let (_folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    book.reserve("r-1", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    // One that was never recorded, one that was, and both in the run that grants one of them again.
    book.lose_new("r-2", "bob", "A");
    book.end("r-1", Verb::Lose);
    let lost = book.seal();
    ledger.record(&[lost]).unwrap();
    book.check(&*ledger.view().unwrap());
    assert_eq!(book.reservations[&id("r-2")].status, Status::Lost);
    book.reserve("r-2", "bob", "A");
    book.lose_new("r-3", "cy", "A");
    book.reserve("r-3", "cy", "A");
    book.lose_new("r-4", "cy", "A");
    let mixed = book.seal();
    book.end("r-3", Verb::Lose);
    book.reserve("r-3", "cy", "A");
    book.end("r-3", Verb::Confirm);
    let last = book.seal();
    ledger.record(&[mixed, last]).unwrap();
    book.check(&*ledger.view().unwrap());
    let mut ended = Vec::new();
    ledger
        .view()
        .unwrap()
        .ended_ids(0, &mut |_, _, id| ended.push(id.to_owned()))
        .unwrap();
    ended.sort();
    assert_eq!(ended, ["c-1", "r-1", "r-3", "r-4"]);
}

#[test]
fn a_look_up_says_where_the_ledger_stood() {
    let (_folder, ledger, book, _all) = filled();
    let view = ledger.view().unwrap();
    let (ours, theirs) = (stockade_core::Id::default_name(), id("another"));
    let key = |tenant: &stockade_core::Id, space, name| Key {
        tenant: tenant.clone(),
        space,
        id: id(name),
    };
    let found = view
        .find_many(
            0,
            &[
                key(&ours, Space::Stock, "c-1"),
                key(&theirs, Space::Reservation, "r-3"),
                key(&ours, Space::Reservation, "r-3"),
                key(&ours, Space::Return, "r-3"),
                key(&ours, Space::Reservation, "r-3000"),
            ],
        )
        .unwrap();
    assert_eq!((found.epoch, found.cursor), (1, 20));
    let shown: Vec<&str> = found
        .records
        .iter()
        .map(|record| match record {
            Some(Record::Stock(_)) => "stock",
            Some(Record::Reservation(one)) => one.id.as_str(),
            Some(Record::Return(_)) => "return",
            None => "-",
        })
        .collect();
    assert_eq!(shown, ["stock", "-", "r-3", "-", "-"]);
    let sku = view.sku(0, &ours, &id("A"), true).unwrap();
    assert_eq!((sku.epoch, sku.cursor), (1, 20));
    assert_eq!(sku.record.as_ref(), book.skus.get(&id("A")));
    assert_eq!(sku.usage, [(id("ann"), 20)]);
    for (shard, tenant, name) in [(0, &ours, "B"), (0, &theirs, "A"), (1, &ours, "A")] {
        let none = view.sku(shard, tenant, &id(name), true).unwrap();
        assert_eq!((none.record, none.usage), (None, Vec::new()));
    }
}

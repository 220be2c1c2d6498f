//! Ids are found and stay unique wherever their numbers are: in memory, in the file's tail, in the table.

use stockade_core::{Status, Verb};
use stockade_ledger::{Ledger, RecordError, ShardRow, Sqlite, View};

use crate::support::{Book, find, fresh};

/// More movements than may wait, so that the next record fills the deferred tables.
fn force_a_fill(book: &mut Book, ledger: &Sqlite, reservation: &str) {
    for _ in 0..50_000 {
        book.note(reservation);
    }
    ledger.record(&[book.seal()]).unwrap();
}

/// Which of the ids a view knows.
fn known(view: &dyn View, ids: &[&str]) -> String {
    let known: Vec<&str> = ids
        .iter()
        .copied()
        .filter(|id| find(view, id).is_some())
        .collect();
    known.join(" ")
}

fn status(view: &dyn View, id: &str) -> Option<Status> {
    find(view, id).map(|one| one.status)
}

fn mismatched(done: Result<(), RecordError>) -> String {
    match done {
        Err(RecordError::Mismatch { place, .. }) => place,
        other => panic!("{other:?}"),
    }
}

/// Where a book stands, for one that starts again from there.
fn row_of(ledger: &Sqlite) -> ShardRow {
    ledger.view().unwrap().shard(0).unwrap().unwrap()
}

#[test]
fn views_keep_their_moment_across_fills() {
    let (_folder, ledger, row) = fresh();
    let ids = ["r-0", "r-1", "r-2", "r-3", "r-4"];
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    book.reserve("r-0", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    let first = ledger.view().unwrap();
    book.reserve("r-1", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    let second = ledger.view().unwrap();
    book.reserve("r-2", "ann", "A");
    // The fill is in the transaction that granted r-2.
    force_a_fill(&mut book, &ledger, "r-0");
    let third = ledger.view().unwrap();
    book.reserve("r-3", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    let fourth = ledger.view().unwrap();
    // After this the views from before the first fill have lost their generation.
    force_a_fill(&mut book, &ledger, "r-0");
    book.reserve("r-4", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    let fifth = ledger.view().unwrap();
    for (view, expected) in [
        (&first, "r-0"),
        (&second, "r-0 r-1"),
        (&third, "r-0 r-1 r-2"),
        (&fourth, "r-0 r-1 r-2 r-3"),
        (&fifth, "r-0 r-1 r-2 r-3 r-4"),
    ] {
        assert_eq!(known(&**view, &ids), expected);
        assert_eq!(view.audit(0, 10).unwrap(), vec![]);
    }
    book.check(&*fifth);
}

#[test]
fn a_lost_id_that_is_granted_again_is_found_by_every_view() {
    for (lose_filled, grant_filled) in [(false, false), (true, false), (false, true), (true, true)] {
        let (folder, mut ledger, row) = fresh();
        let mut book = Book::new(&row);
        book.stock("c-1", "A", "default", 100);
        book.reserve("r-1", "ann", "A");
        book.reserve("r-2", "ann", "A");
        ledger.record(&[book.seal()]).unwrap();
        book.end("r-1", Verb::Lose);
        ledger.record(&[book.seal()]).unwrap();
        if lose_filled {
            drop(ledger);
            ledger = Sqlite::open(folder.path()).unwrap();
        }
        let before = ledger.view().unwrap();
        book.reserve("r-1", "ann", "A");
        ledger.record(&[book.seal()]).unwrap();
        let after = ledger.view().unwrap();
        // Another opening fills; this one's memory does not know.
        let other = grant_filled.then(|| Sqlite::open(folder.path()).unwrap());
        let last = ledger.view().unwrap();
        book.end("r-1", Verb::Lose);
        book.reserve("r-1", "ann", "A");
        book.reserve("r-3", "ann", "A");
        ledger.record(&[book.seal()]).unwrap();
        assert_eq!(status(&*before, "r-1"), Some(Status::Lost));
        assert_eq!(status(&*after, "r-1"), Some(Status::Pending));
        assert_eq!(status(&*last, "r-1"), Some(Status::Pending));
        for view in [&before, &after, &last] {
            assert_eq!(known(&**view, &["r-1", "r-2", "r-3"]), "r-1 r-2");
            assert_eq!(view.audit(0, 10).unwrap(), vec![]);
        }
        book.check(&*ledger.view().unwrap());
        if let Some(other) = other {
            book.check(&*other.view().unwrap());
        }
    }
}

#[test]
fn two_openings_see_each_others_ids() {
    let (folder, one, row) = fresh();
    let ids = ["r-1", "r-2", "r-3", "r-4"];
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    book.reserve("r-1", "ann", "A");
    one.record(&[book.seal()]).unwrap();
    let other = Sqlite::open(folder.path()).unwrap();
    book.reserve("r-2", "ann", "A");
    one.record(&[book.seal()]).unwrap();
    assert_eq!(known(&*other.view().unwrap(), &ids), "r-1 r-2");
    book.epoch = other.open_epoch(0, "other").unwrap().epoch;
    let held = one.view().unwrap();
    // The other takes the numbers that the first would have given.
    let mut fenced = Book::new(&row_of(&one));
    fenced.skus = book.skus.clone();
    fenced.epoch -= 1;
    fenced.reserve("r-4", "ann", "A");
    book.reserve("r-3", "ann", "A");
    other.record(&[book.seal()]).unwrap();
    assert_eq!(known(&*one.view().unwrap(), &ids), "r-1 r-2 r-3");
    assert!(matches!(
        one.record(&[fenced.seal()]),
        Err(RecordError::Fenced { .. })
    ));
    assert_eq!(known(&*one.view().unwrap(), &ids), "r-1 r-2 r-3");
    // Back, with ids of the other in the tail: they are as taken as the first one's own.
    book.epoch = one.open_epoch(0, "one").unwrap().epoch;
    let mut double = Book::new(&row_of(&one));
    double.skus = book.skus.clone();
    double.reserve("r-3", "ann", "A");
    assert_eq!(mismatched(one.record(&[double.seal()])), "reservation r-3");
    book.reserve("r-4", "ann", "A");
    one.record(&[book.seal()]).unwrap();
    drop(other);
    assert_eq!(known(&*held, &ids), "r-1 r-2");
    book.check(&*one.view().unwrap());
}

#[test]
fn a_run_that_was_refused_leaves_no_id_behind() {
    let (_folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    book.reserve("r-1", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    // Grants r-2 and then what does not fit: r-1 as if it were new.
    let mut wrong = Book::new(&row_of(&ledger));
    wrong.skus = book.skus.clone();
    wrong.reserve("r-2", "ann", "A");
    wrong.reserve("r-1", "ann", "A");
    assert_eq!(mismatched(ledger.record(&[wrong.seal()])), "reservation r-1");
    assert_eq!(known(&*ledger.view().unwrap(), &["r-1", "r-2"]), "r-1");
    // Its number goes to another id.
    book.reserve("r-3", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    let held = ledger.view().unwrap();
    assert_eq!(known(&*held, &["r-1", "r-2", "r-3"]), "r-1 r-3");
    book.reserve("r-2", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    assert_eq!(known(&*held, &["r-1", "r-2", "r-3"]), "r-1 r-3");
    book.check(&*ledger.view().unwrap());
}

#[test]
fn an_id_is_granted_once_wherever_its_number_is() {
    let (folder, mut ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    book.reserve("r-1", "ann", "A");
    ledger.record(&[book.seal()]).unwrap();
    for filled in [false, true] {
        if filled {
            drop(ledger);
            ledger = Sqlite::open(folder.path()).unwrap();
        }
        let mut double = Book::new(&row_of(&ledger));
        double.skus = book.skus.clone();
        double.reserve("r-1", "bob", "A");
        assert_eq!(mismatched(ledger.record(&[double.seal()])), "reservation r-1");
        book.check(&*ledger.view().unwrap());
    }
}

//! What is recorded is what is loaded.

use stockade_core::{Mode, Record, Space, Status, Verb};
use stockade_ledger::{Found, Ledger, Sqlite};

use crate::support::{AskedLine, Book, fresh, id};

fn lively(book: &mut Book) {
    book.stock("c-1", "A/1 ü", "default", 100);
    book.stock("c-2", "B", "default", 10);
    book.stock("c-3", "B", "north", 10);
    book.stock("c-4", "A/1 ü", "default", -5);
    book.reserve("r-1", "ann", "A/1 ü");
    book.deduct("r-2", "ann", "A/1 ü");
    let lines: &[AskedLine<'_>] = &[
        ("A/1 ü", None, &[("default", 2)]),
        ("B", None, &[("default", 3), ("north", 4)]),
        ("B", Some("north"), &[("north", 1)]),
    ];
    book.grant("r-3", "bob", Mode::Reserve, lines);
    book.reserve("r-4", "bob", "B");
}

#[test]
fn a_run_is_loaded_as_it_was_recorded() {
    let (folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    lively(&mut book);
    let first = book.seal();
    book.end("r-3", Verb::Confirm);
    book.end("r-4", Verb::Cancel);
    book.reserve("r-5", "cy", "B");
    book.end("r-5", Verb::Expire);
    book.note("r-5");
    book.extend("r-1", 99_000);
    book.seal_id("r-6");
    let returned = book.give_back("t-1", "r-3");
    let second = book.seal();
    book.configure("c-5", "B", |settings| {
        settings.limit_per_owner = Some(5);
        settings.opens_at = Some(1);
        settings.closes_at = Some(2);
        settings.paused = true;
        settings.split = false;
        settings.group = Some(id("g"));
        settings.order = vec![id("north"), id("default")];
        settings.era = 1;
    });
    let third = book.seal();
    ledger.record(&[first, second]).unwrap();
    ledger.record(&[third]).unwrap();
    book.check(&*ledger.view().unwrap());

    let view = ledger.view().unwrap();
    for (name, expected) in &book.reservations {
        let found = view.find(0, &id("default"), Space::Reservation, name).unwrap();
        assert_eq!(
            found,
            Found {
                epoch: 1,
                cursor: 3,
                record: Some(Record::Reservation(expected.clone()))
            }
        );
    }
    let found = view.find(0, &id("default"), Space::Return, &id("t-1")).unwrap();
    assert_eq!(found.record, Some(Record::Return(returned)));
    let found = view.find(0, &id("default"), Space::Stock, &id("c-5")).unwrap();
    assert!(matches!(found.record, Some(Record::Stock(one)) if one.revision == 3 && one.sku == id("B")));
    for space in [Space::Reservation, Space::Return, Space::Stock] {
        assert_eq!(
            view.find(0, &id("default"), space, &id("nobody")).unwrap().record,
            None
        );
        assert_eq!(
            view.find(0, &id("other"), space, &id("r-1")).unwrap().record,
            None
        );
    }
    let mut ended = Vec::new();
    view.ended_ids(0, &mut |space, tenant, id| {
        ended.push((format!("{space:?}"), tenant.to_owned(), id.to_owned()));
    })
    .unwrap();
    ended.sort();
    let ids: Vec<&str> = ended.iter().map(|(_, _, id)| id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "r-2", "r-3", "r-4", "r-5", "r-6", "t-1", "c-1", "c-2", "c-3", "c-4", "c-5"
        ]
    );

    // The same once more after closing and opening, when the deferred tables hold everything.
    drop(view);
    drop(ledger);
    let ledger = Sqlite::open(folder.path()).unwrap();
    book.check(&*ledger.view().unwrap());
    assert_eq!(ledger.open_epoch(0, "next").unwrap().epoch, 2);
}

#[test]
fn a_lost_reservation_is_granted_anew() {
    let (_folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    book.reserve("r-1", "ann", "A");
    book.reserve("r-2", "ann", "A");
    let run = [book.seal()];
    ledger.record(&run).unwrap();
    book.end("r-1", Verb::Lose);
    let run = [book.seal()];
    ledger.record(&run).unwrap();
    assert_eq!(book.reservations[&id("r-1")].status, Status::Lost);
    book.reserve("r-1", "bob", "A");
    book.reserve("r-3", "cy", "A");
    book.end("r-3", Verb::Lose);
    book.reserve("r-3", "cy", "A");
    let run = [book.seal()];
    ledger.record(&run).unwrap();
    book.check(&*ledger.view().unwrap());
}

#[test]
fn a_view_stays_at_its_moment() {
    let (_folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    let run = [book.seal()];
    ledger.record(&run).unwrap();
    let view = ledger.view().unwrap();
    book.reserve("r-1", "ann", "A");
    let run = [book.seal()];
    ledger.record(&run).unwrap();
    assert_eq!(view.shard(0).unwrap().unwrap().cursor, 1);
    assert_eq!(
        view.find(0, &id("default"), Space::Reservation, &id("r-1"))
            .unwrap()
            .record,
        None
    );
    assert_eq!(ledger.view().unwrap().shard(0).unwrap().unwrap().cursor, 2);
}

//! Every kind of hand edit is found, and nothing else is.

use stockade_core::{Mode, Verb};
use stockade_ledger::{Ledger, Sqlite};

use crate::support::{Book, by_hand, fresh};

/// The words of the findings after an edit.
fn after(edit: &str) -> Vec<String> {
    let (folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    book.stock("c-2", "B", "default", 100);
    book.reserve("r-1", "ann", "A");
    book.deduct("r-2", "bob", "A");
    book.grant(
        "r-3",
        "cy",
        Mode::Reserve,
        &[("A", None, &[("default", 2)]), ("B", None, &[("default", 1)])],
    );
    let first = book.seal();
    book.end("r-3", Verb::Cancel);
    book.seal_id("r-4");
    book.give_back("t-1", "r-2");
    book.reserve("r-5", "dan", "B");
    book.end("r-5", Verb::Expire);
    book.note("r-5");
    let second = book.seal();
    ledger.record(&[first, second]).unwrap();
    drop(ledger);
    let ledger = Sqlite::open(folder.path()).unwrap();
    book.check(&*ledger.view().unwrap());
    by_hand(&folder, &format!("PRAGMA ignore_check_constraints = on; {edit}"));
    let findings = ledger.view().unwrap().audit(0, 100).unwrap();
    for one in &findings {
        assert_ne!(one.expected, one.found, "{one:?}");
        assert!(!one.place.is_empty(), "{one:?}");
    }
    let mut words: Vec<String> = findings.into_iter().map(|one| one.what).collect();
    words.sort();
    words.dedup();
    words
}

#[test]
fn nothing_is_found_where_nothing_was_edited() {
    assert_eq!(after(""), Vec::<String>::new());
}

#[test]
fn each_edit_is_found() {
    for (edit, expected) in [
        ("UPDATE stock SET on_hand = on_hand + 1 WHERE sku = 1", "on_hand"),
        (
            "UPDATE stock SET reserved = reserved + 1 WHERE sku = 1",
            "reserved",
        ),
        ("UPDATE stock SET sold = sold + 1 WHERE sku = 1", "sold"),
        ("UPDATE stock SET safety_stock = 5 WHERE sku = 2", "safety_stock"),
        ("UPDATE stock SET version = version + 1 WHERE sku = 2", "version"),
        ("UPDATE stock SET on_hand = -1 WHERE sku = 2", "on_hand"),
        ("DELETE FROM stock WHERE sku = 2", "counters"),
        (
            "UPDATE movements SET on_hand_by = on_hand_by + 1 WHERE number = 1",
            "movement",
        ),
        (
            "UPDATE movements SET sold = sold + 1 WHERE number = 4",
            "movement",
        ),
        ("DELETE FROM movements WHERE number = 3", "movement"),
        ("UPDATE movements SET before = NULL WHERE number = 7", "movement"),
        ("UPDATE movements SET before = 12 WHERE number = 7", "movement"),
        ("UPDATE movements SET kind = 2 WHERE number = 8", "status"),
        ("UPDATE reservations SET status = 2 WHERE id = 'r-1'", "status"),
        (
            "UPDATE reservations SET status = 0 WHERE id = 'r-3'",
            "allocations",
        ),
        ("UPDATE reservations SET sealed = 1 WHERE id = 'r-3'", "sealed"),
        ("UPDATE reservations SET sealed = 0 WHERE id = 'r-4'", "sealed"),
        ("UPDATE reservations SET noted = 0 WHERE id = 'r-5'", "noted"),
        (
            "UPDATE reservations SET movement = 1 WHERE id = 'r-1'",
            "movement",
        ),
        ("DELETE FROM reservations WHERE id = 'r-1'", "reserved"),
        (
            "UPDATE allocations SET quantity = 9 WHERE key = 16384",
            "allocations",
        ),
        (
            "UPDATE allocations SET returned = 0 WHERE key = 2 * 16384",
            "returned",
        ),
        ("DELETE FROM allocations WHERE key = 16384", "allocations"),
        (
            "INSERT INTO allocations VALUES (99 * 16384, 0, 1, NULL, 0, 1, 1, 0, 0)",
            "allocations",
        ),
        ("DELETE FROM return_lines", "returned"),
        ("UPDATE owners SET used = used + 1 WHERE owner = 'ann'", "usage"),
        ("DELETE FROM owners WHERE owner = 'bob'", "usage"),
        ("INSERT INTO owners VALUES (1, 'eve', 1, 1, 0, 5)", "usage"),
        ("DELETE FROM live", "live"),
        ("INSERT INTO live VALUES (2)", "live"),
        ("INSERT INTO live VALUES (99)", "live"),
        ("DELETE FROM ids WHERE id = 'r-1'", "id"),
        ("UPDATE ids SET reservation = 2 WHERE id = 'r-1'", "id"),
        ("INSERT INTO ids VALUES (1, 'r-9', 99)", "id"),
        ("INSERT INTO ids VALUES (1, 'r-9', 1)", "id"),
        ("UPDATE reservations SET id = 'r-1' WHERE id = 'r-3'", "id"),
        ("UPDATE owners SET owner = 'eve' WHERE owner = 'ann'", "usage"),
        ("DELETE FROM sku_movements WHERE movement = 2", "index"),
        ("INSERT INTO sku_movements VALUES (1, 77)", "index"),
        ("UPDATE skus SET revision = 2 WHERE n = 1", "revision"),
        ("DELETE FROM stock_commands WHERE id = 'c-1'", "revision"),
        ("UPDATE reservations SET mode = 7 WHERE id = 'r-1'", "file"),
        ("UPDATE stock SET safety_stock = -1 WHERE sku = 1", "file"),
        ("UPDATE entries SET tag = 5 WHERE seq = 1", "chain"),
        ("UPDATE entries SET prev = 5 WHERE seq = 2", "chain"),
        ("UPDATE entries SET epoch = 9 WHERE seq = 1", "chain"),
        ("DELETE FROM entries WHERE seq = 1", "chain"),
        ("DELETE FROM entries WHERE seq = 2", "chain"),
        ("UPDATE shards SET cursor = 1", "chain"),
        ("UPDATE shards SET tag = 1", "chain"),
        ("UPDATE shards SET at = 1", "chain"),
        ("DELETE FROM shards", "chain"),
    ] {
        let found = after(edit);
        assert!(found.iter().any(|word| word == expected), "{edit}: {found:?}");
    }
}

#[test]
fn no_more_than_the_limit_is_reported() {
    let (folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 100);
    let run = [book.seal()];
    ledger.record(&run).unwrap();
    by_hand(&folder, "UPDATE stock SET on_hand = 1, sold = 1, version = 7");
    let view = ledger.view().unwrap();
    assert_eq!(view.audit(0, 2).unwrap().len(), 2);
    assert!(view.audit(0, 100).unwrap().len() > 2);
}

//! What a hand broke is mended by recorded movements, or said to be beyond that.

use stockade_core::{Id, Mode, Reason, Verb};
use stockade_ledger::{
    Ledger, LedgerCare, MovementQuery, RecordError, RepairError, ShardMode, SharedLedger, Sqlite,
};

use crate::fence::everything;
use crate::support::{Book, by_hand, fresh, id};

fn filled() -> (tempfile::TempDir, Sqlite, Book) {
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
    book.end("r-3", Verb::Confirm);
    book.seal_id("r-4");
    ledger.record(&[book.seal()]).unwrap();
    drop(ledger);
    let ledger = Sqlite::open(folder.path()).unwrap();
    (folder, ledger, book)
}

fn who() -> (Id, Reason) {
    (id("ops"), Reason::new("ticket 77").unwrap())
}

/// Movements of the kind `repair`.
fn repairs(ledger: &Sqlite) -> Vec<stockade_ledger::Movement> {
    let query = MovementQuery {
        tenant: Id::default_name(),
        sku: None,
        reservation: None,
        owner: None,
        from: None,
        until: None,
        before: None,
        limit: 100,
    };
    let mut page = ledger.view().unwrap().movements(&query).unwrap().movements;
    page.retain(|one| one.kind == "repair");
    page
}

#[test]
fn counters_and_derived_tables_are_mended_and_the_audit_is_clean() {
    for (edit, counters, derived) in [
        ("UPDATE stock SET on_hand = on_hand + 7 WHERE sku = 1", 1, false),
        (
            "UPDATE stock SET reserved = reserved + 1, sold = sold + 2 WHERE sku = 1",
            1,
            false,
        ),
        (
            "UPDATE stock SET safety_stock = 5, version = version + 9",
            2,
            false,
        ),
        ("UPDATE stock SET on_hand = -1 WHERE sku = 2", 1, false),
        ("DELETE FROM stock WHERE sku = 2", 1, false),
        (
            "INSERT INTO names VALUES (9, 'nowhere'); INSERT INTO stock VALUES (2, 9, 1, 5, 0, 0, 0, 1)",
            1,
            false,
        ),
        ("DELETE FROM ids", 0, true),
        ("UPDATE owners SET used = used + 1", 0, true),
        (
            "DELETE FROM live; DELETE FROM sku_movements WHERE movement = 2",
            0,
            true,
        ),
        (
            "DELETE FROM owners; UPDATE stock SET on_hand = 3 WHERE sku = 1",
            1,
            true,
        ),
    ] {
        let (folder, ledger, mut book) = filled();
        by_hand(&folder, &format!("PRAGMA ignore_check_constraints = on; {edit}"));
        let before = everything(&folder);
        let plan = ledger.plan_repair(0).unwrap();
        assert_eq!(everything(&folder), before, "a plan changes nothing");
        assert_eq!(
            (plan.counters.len(), plan.derived),
            (counters, derived),
            "{edit}: {plan:?}"
        );
        assert!(!plan.is_empty());
        // SQLite's own words about a row that breaks a CHECK go when the row is mended.
        assert!(
            plan.left.iter().all(|one| one.what == "file"),
            "{edit}: {:?}",
            plan.left
        );
        let (actor, reason) = who();
        let row = ledger.repair(&plan, &actor, &reason).unwrap();
        assert_eq!((row.epoch, row.mode, row.cursor), (2, ShardMode::Rebuild, 2));
        assert_eq!(ledger.view().unwrap().audit(0, 10).unwrap(), vec![], "{edit}");
        let recorded = repairs(&ledger);
        assert_eq!(recorded.len(), counters, "{edit}: those with a SKU");
        for one in &recorded {
            assert_eq!((one.actor.as_str(), one.reason.as_str()), ("ops", "ticket 77"));
            assert_eq!((one.on_hand, one.reserved, one.sold), (0, 0, 0));
        }
        assert!(ledger.plan_repair(0).unwrap().is_empty());
        // A tier that knows the old counters records nothing more; a new epoch goes on.
        book.reserve("r-9", "dan", "A");
        let late = book.seal();
        assert!(matches!(ledger.record(&[late]), Err(RecordError::Fenced { .. })));
        let mut next = Book::new(&ledger.open_epoch(0, "next").unwrap());
        let view = ledger.view().unwrap();
        view.skus(0, &mut |one| drop(next.skus.insert(one.sku.clone(), one)))
            .unwrap();
        next.reserve("r-9", "dan", "A");
        ledger.record(&[next.seal()]).unwrap();
        assert_eq!(ledger.view().unwrap().audit(0, 10).unwrap(), vec![], "{edit}");
        drop((view, ledger));
        let ledger = Sqlite::open(folder.path()).unwrap();
        assert_eq!(ledger.view().unwrap().audit(0, 10).unwrap(), vec![], "{edit}");
    }
}

#[test]
fn units_of_reservations_that_a_hand_removed_are_made_good() {
    let (folder, ledger, _book) = filled();
    by_hand(
        &folder,
        "DELETE FROM allocations WHERE key / 16384 IN (1, 2); DELETE FROM reservations WHERE n IN (1, 2)",
    );
    let plan = ledger.plan_repair(0).unwrap();
    let one = &plan.counters[0];
    assert_eq!((one.reserved, one.sold), (-1, -1));
    assert_eq!(
        (one.right.on_hand, one.right.reserved, one.right.sold),
        (97, 0, 2)
    );
    let history = plan.left.len();
    assert!(history > 0);
    let (actor, reason) = who();
    ledger.repair(&plan, &actor, &reason).unwrap();
    // The counters are right; that the history was changed stays visible.
    let left = ledger.view().unwrap().audit(0, 100).unwrap();
    assert!(left.iter().all(|one| one.what == "movement"), "{left:?}");
    assert!(!left.is_empty() && ledger.plan_repair(0).unwrap().is_empty());
    assert_eq!(repairs(&ledger)[0].sold, -1);
}

#[test]
fn more_reserved_than_there_is_is_for_people() {
    let (folder, ledger, _book) = filled();
    by_hand(&folder, "UPDATE allocations SET quantity = 500 WHERE key = 16384");
    let plan = ledger.plan_repair(0).unwrap();
    assert!(plan.counters.is_empty());
    assert!(
        plan.left.iter().any(|one| one.what == "reserved"),
        "{:?}",
        plan.left
    );
}

#[test]
fn a_plan_is_for_its_moment() {
    let (folder, ledger, mut book) = filled();
    by_hand(&folder, "UPDATE stock SET on_hand = 7 WHERE sku = 1");
    let plan = ledger.plan_repair(0).unwrap();
    let (actor, reason) = who();
    let moved = |done| matches!(done, Err(RepairError::Moved { .. }));
    by_hand(&folder, "UPDATE stock SET on_hand = 8 WHERE sku = 1");
    let before = everything(&folder);
    assert!(moved(ledger.repair(&plan, &actor, &reason)));
    assert_eq!(everything(&folder), before);
    by_hand(&folder, "UPDATE stock SET on_hand = 7 WHERE sku = 1");
    book.reserve("r-9", "dan", "B");
    ledger.record(&[book.seal()]).unwrap();
    assert!(moved(ledger.repair(&plan, &actor, &reason)));
    let plan = ledger.plan_repair(0).unwrap();
    ledger.repair(&plan, &actor, &reason).unwrap();
    assert_eq!(ledger.view().unwrap().audit(0, 10).unwrap(), vec![]);
    assert_eq!(ledger.row(0).unwrap().unwrap().epoch, 2);
}

#[test]
fn nothing_is_planned_where_nothing_differs() {
    let (_folder, ledger, _book) = filled();
    let plan = ledger.plan_repair(0).unwrap();
    assert!(plan.is_empty() && plan.left.is_empty());
    assert!(ledger.plan_repair(7).is_err());
}

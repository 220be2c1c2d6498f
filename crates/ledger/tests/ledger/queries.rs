//! Every question, with everything in the tail and with everything in the deferred tables.

use stockade_core::{Id, Mode, Status, Verb};
use stockade_ledger::{Ledger, MovementQuery, MovementsKept, ReservationQuery, Sqlite, View};

use crate::support::{Book, by_hand, fresh, id};

fn all_movements() -> MovementQuery {
    MovementQuery {
        tenant: Id::default_name(),
        sku: None,
        reservation: None,
        owner: None,
        from: None,
        until: None,
        before: None,
        limit: 1_000,
    }
}

fn all_reservations() -> ReservationQuery {
    ReservationQuery {
        tenant: Id::default_name(),
        owner: None,
        sku: None,
        status: None,
        from: None,
        until: None,
        before: None,
        limit: 1_000,
    }
}

fn kinds(view: &dyn View, query: &MovementQuery) -> String {
    let page = view.movements(query).unwrap();
    let kinds: Vec<String> = page.movements.into_iter().map(|one| one.kind).collect();
    kinds.join(" ")
}

fn ids(view: &dyn View, query: &ReservationQuery) -> String {
    let ids: Vec<String> = view
        .reservations(query)
        .unwrap()
        .iter()
        .map(|one| one.id.to_string())
        .collect();
    ids.join(" ")
}

/// Runs a test on a ledger whose tables are not filled, half filled and filled.
fn in_every_filling(test: impl Fn(&dyn View, &Book)) {
    for reopen in [[false, false], [true, false], [false, true], [true, true]] {
        let (folder, mut ledger, row) = fresh();
        let mut book = Book::new(&row);
        book.stock("c-1", "A", "default", 100);
        book.stock("c-2", "B", "default", 100);
        book.reserve("z", "ann", "A");
        book.deduct("y", "bob", "B");
        book.reserve("x", "ann", "B");
        let run = [book.seal()];
        ledger.record(&run).unwrap();
        if reopen[0] {
            drop(ledger);
            ledger = Sqlite::open(folder.path()).unwrap();
        }
        book.now = 2_000;
        book.end("z", Verb::Confirm);
        book.grant(
            "w",
            "ann",
            Mode::Reserve,
            &[("A", None, &[("default", 2)]), ("B", None, &[("default", 3)])],
        );
        let first = book.seal();
        book.now = 3_000;
        book.end("x", Verb::Expire);
        book.give_back("t", "z");
        book.configure("c-3", "B", |settings| settings.paused = true);
        book.seal_id("v");
        let second = book.seal();
        ledger.record(&[first, second]).unwrap();
        if reopen[1] {
            drop(ledger);
            ledger = Sqlite::open(folder.path()).unwrap();
        }
        let view = ledger.view().unwrap();
        test(&*view, &book);
    }
}

#[test]
fn movements_by_each_condition() {
    in_every_filling(|view, _| {
        let all = all_movements();
        let everything =
            "seal configure return expire reserve reserve confirm reserve deduct reserve set set";
        assert_eq!(kinds(view, &all), everything);
        let sku = |sku| MovementQuery {
            sku: Some(id(sku)),
            ..all.clone()
        };
        assert_eq!(kinds(view, &sku("A")), "return reserve confirm reserve set");
        assert_eq!(
            kinds(view, &sku("B")),
            "configure expire reserve reserve deduct set"
        );
        assert_eq!(kinds(view, &sku("C")), "");
        let reservation = |name| MovementQuery {
            reservation: Some(id(name)),
            ..all.clone()
        };
        assert_eq!(kinds(view, &reservation("z")), "return confirm reserve");
        assert_eq!(kinds(view, &reservation("v")), "seal");
        assert_eq!(kinds(view, &reservation("nobody")), "");
        let owner = |name| MovementQuery {
            owner: Some(id(name)),
            ..all.clone()
        };
        assert_eq!(
            kinds(view, &owner("ann")),
            "return expire reserve reserve confirm reserve reserve"
        );
        assert_eq!(kinds(view, &owner("bob")), "deduct");
        assert_eq!(
            kinds(
                view,
                &MovementQuery {
                    sku: Some(id("B")),
                    ..owner("ann")
                }
            ),
            "expire reserve reserve"
        );
        assert_eq!(
            kinds(
                view,
                &MovementQuery {
                    tenant: id("other"),
                    ..all.clone()
                }
            ),
            ""
        );
        assert_eq!(
            kinds(
                view,
                &MovementQuery {
                    from: Some(2_001),
                    until: Some(3_000),
                    ..all.clone()
                }
            ),
            "reserve reserve confirm"
        );
        assert_eq!(
            kinds(
                view,
                &MovementQuery {
                    from: Some(2_002),
                    until: Some(3_002),
                    ..all.clone()
                }
            ),
            "expire reserve reserve"
        );
        assert_eq!(
            kinds(
                view,
                &MovementQuery {
                    from: Some(9_999),
                    ..all.clone()
                }
            ),
            ""
        );
        assert_eq!(
            kinds(
                view,
                &MovementQuery {
                    until: Some(1_000),
                    ..all.clone()
                }
            ),
            ""
        );
    });
}

#[test]
fn a_movement_says_who_what_why_and_the_counters_after() {
    in_every_filling(|view, _| {
        let page = view
            .movements(&MovementQuery {
                reservation: Some(id("z")),
                limit: 1,
                ..all_movements()
            })
            .unwrap();
        let one = &page.movements[0];
        assert_eq!(
            (one.kind.as_str(), one.reason.as_str(), one.at),
            ("return", "damaged", 3_002)
        );
        assert_eq!(
            (one.command.clone(), one.owner.clone()),
            (Some(id("t")), Some(id("ann")))
        );
        assert_eq!(
            (one.sku.clone(), one.location.clone()),
            (Some(id("A")), Some(id("default")))
        );
        assert_eq!(
            (one.on_hand, one.reserved, one.sold, one.actor.clone()),
            (1, 0, -1, id("library"))
        );
        let after = one.after.unwrap();
        assert_eq!(
            (after.on_hand, after.reserved, after.sold, after.version),
            (100, 2, 0, 5)
        );
        assert_eq!(page.next_before, Some(one.number));
        let seal = &view
            .movements(&MovementQuery {
                limit: 1,
                ..all_movements()
            })
            .unwrap()
            .movements[0];
        assert_eq!(
            (seal.sku.clone(), seal.after, seal.owner.clone()),
            (None, None, None)
        );
    });
}

#[test]
fn pages_of_movements_join_without_gap_or_double() {
    in_every_filling(|view, _| {
        for query in [
            all_movements(),
            MovementQuery {
                owner: Some(id("ann")),
                ..all_movements()
            },
            MovementQuery {
                sku: Some(id("B")),
                ..all_movements()
            },
        ] {
            let whole = view.movements(&query).unwrap();
            assert_eq!(whole.next_before, None);
            let mut joined = Vec::new();
            let mut before = None;
            loop {
                let page = view
                    .movements(&MovementQuery {
                        before,
                        limit: 2,
                        ..query.clone()
                    })
                    .unwrap();
                joined.extend(page.movements);
                before = page.next_before;
                if before.is_none() {
                    break;
                }
            }
            assert_eq!(joined, whole.movements);
        }
    });
}

#[test]
fn reservations_by_each_condition() {
    in_every_filling(|view, book| {
        let all = all_reservations();
        assert_eq!(ids(view, &all), "v w x y z");
        assert_eq!(view.reservations(&all).unwrap()[1], book.reservations[&id("w")]);
        let owner = ReservationQuery {
            owner: Some(id("ann")),
            ..all.clone()
        };
        assert_eq!(ids(view, &owner), "w x z");
        let sku = ReservationQuery {
            sku: Some(id("B")),
            ..all.clone()
        };
        assert_eq!(ids(view, &sku), "w x y");
        let status = |status| ReservationQuery {
            status: Some(status),
            ..all.clone()
        };
        assert_eq!(ids(view, &status(Status::Pending)), "w");
        assert_eq!(ids(view, &status(Status::Confirmed)), "y z");
        assert_eq!(ids(view, &status(Status::Lost)), "");
        assert_eq!(
            ids(
                view,
                &ReservationQuery {
                    from: Some(2_000),
                    ..all.clone()
                }
            ),
            "v w"
        );
        assert_eq!(
            ids(
                view,
                &ReservationQuery {
                    until: Some(2_000),
                    ..all.clone()
                }
            ),
            "x y z"
        );
        assert_eq!(
            ids(
                view,
                &ReservationQuery {
                    until: Some(2_000),
                    ..owner.clone()
                }
            ),
            "x z"
        );
        for query in [all.clone(), owner, sku] {
            let whole = ids(view, &query);
            let mut joined = Vec::new();
            let mut before = None;
            while let Some(one) = view
                .reservations(&ReservationQuery {
                    before: before.clone(),
                    limit: 1,
                    ..query.clone()
                })
                .unwrap()
                .pop()
            {
                before = Some(one.id.clone());
                joined.push(one.id.to_string());
            }
            assert_eq!(joined.join(" "), whole);
        }
        assert_eq!(
            ids(
                view,
                &ReservationQuery {
                    before: Some(id("nobody")),
                    ..all
                }
            ),
            ""
        );
    });
}

#[test]
fn skus_come_in_the_order_of_their_bytes() {
    let (_folder, ledger, row) = fresh();
    let mut book = Book::new(&row);
    for (n, sku) in ["b", "B", "ä", "a", "A/1", "a b"].into_iter().enumerate() {
        book.stock(&format!("c-{n}"), sku, "default", 1);
    }
    let run = [book.seal()];
    ledger.record(&run).unwrap();
    let view = ledger.view().unwrap();
    let mut names = Vec::new();
    let mut after: Option<Id> = None;
    while let Some(sku) = view
        .sku_page(&Id::default_name(), after.as_ref(), 1)
        .unwrap()
        .pop()
    {
        assert_eq!(sku, book.skus[&sku.sku]);
        names.push(sku.sku.to_string());
        after = Some(sku.sku);
    }
    assert_eq!(names, ["A/1", "B", "a", "a b", "b", "ä"]);
    assert_eq!(view.sku_page(&id("other"), None, 10).unwrap(), vec![]);
}

#[test]
fn a_tenant_sees_its_own_rows_only() {
    for filled in [false, true] {
        let (folder, mut ledger, row) = fresh();
        let mut book = Book::new(&row);
        book.stock("c-1", "A", "default", 100);
        book.stock("c-2", "B", "default", 100);
        for (name, sku) in [("r-1", "A"), ("r-2", "B"), ("r-3", "A"), ("r-4", "B")] {
            book.reserve(name, "ann", sku);
        }
        ledger.record(&[book.seal()]).unwrap();
        if filled {
            drop(ledger);
            ledger = Sqlite::open(folder.path()).unwrap();
        }
        by_hand(
            &folder,
            "INSERT INTO names (n, name) VALUES (99, 'other'); UPDATE skus SET tenant = 99 WHERE sku = 'B'; \
             UPDATE reservations SET tenant = 99 WHERE id IN ('r-2', 'r-4'); \
             UPDATE owners SET tenant = 99 WHERE reservation IN (2, 4)",
        );
        let view = ledger.view().unwrap();
        for (tenant, sku, own, moved) in [
            (Id::default_name(), "A", "r-3 r-1", "reserve reserve set"),
            (id("other"), "B", "r-4 r-2", "reserve reserve set"),
        ] {
            let every = ReservationQuery {
                tenant: tenant.clone(),
                ..all_reservations()
            };
            for (owner, sku, status) in [
                (None, None, None),
                (Some(id("ann")), None, None),
                (None, Some(id(sku)), None),
                (None, None, Some(Status::Pending)),
                (None, Some(id(sku)), Some(Status::Pending)),
            ] {
                let query = ReservationQuery {
                    owner,
                    sku,
                    status,
                    ..every.clone()
                };
                assert_eq!(ids(&*view, &query), own, "{query:?}");
            }
            let every = MovementQuery {
                tenant,
                ..all_movements()
            };
            assert_eq!(kinds(&*view, &every), moved);
            let of_sku = MovementQuery {
                sku: Some(id(sku)),
                ..every.clone()
            };
            assert_eq!(kinds(&*view, &of_sku), moved);
            let of_owner = MovementQuery {
                owner: Some(id("ann")),
                ..every
            };
            assert_eq!(kinds(&*view, &of_owner), "reserve reserve");
        }
    }
}

/// Upwards, in pages, with each movement's tenant; what is recorded later comes after what was read.
#[test]
fn movements_are_followed_by_their_numbers() {
    in_every_filling(|view, _| {
        let all = view.movements_after(0, 1_000).unwrap();
        let numbers: Vec<i64> = all.iter().map(|(_, one)| one.number).collect();
        assert!(!numbers.is_empty() && numbers.is_sorted_by(|one, next| one < next));
        let kept = MovementsKept {
            complete_after: 0,
            newest: numbers[numbers.len() - 1],
        };
        assert_eq!(view.movements_kept().unwrap(), kept);
        let mut down = view.movements(&all_movements()).unwrap().movements;
        down.reverse();
        let up: Vec<_> = all.iter().map(|(_, one)| one.clone()).collect();
        assert_eq!(up, down);
        assert!(all.iter().all(|(tenant, _)| *tenant == Id::default_name()));
        let mut paged = Vec::new();
        while let Some((_, last)) = paged
            .last()
            .or(Some(&all[0]))
            .filter(|(_, last)| last.number < numbers[numbers.len() - 1])
        {
            let after = if paged.is_empty() { 0 } else { last.number };
            paged.extend(view.movements_after(after, 2).unwrap());
        }
        assert_eq!(paged, all);
    });
    let (_folder, ledger, _) = fresh();
    let view = ledger.view().unwrap();
    assert_eq!(view.movements_kept().unwrap(), MovementsKept::default());
    assert_eq!(view.movements_after(0, 10).unwrap(), Vec::new());
}

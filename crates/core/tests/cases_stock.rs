//! Public bug reports on limits, locations, counts and numbers, as far as one shard can meet them.

mod common;

use common::{
    T0, adjust, apply, cancel, code, configure, confirm, counters, deduct, field, give, id, raw, reserve,
    revive, set, settings, shown, stock, supply, supply_at, three, transfer,
};
use stockade_core::{Changes, Count, Expect, QUANTITY_MAX, Refusal, Reply};

fn limit(units: u64) -> Changes {
    Changes {
        limit_per_owner: Some(Some(units)),
        ..Changes::default()
    }
}

#[test]
fn b62_b64_a_limit_counts_over_all_ids() {
    let mut shard = revive();
    supply(&mut shard, "S", 100);
    settings(&mut shard, "S", limit(1));
    let granted =
        (0..64).filter(|n| code(&apply(&mut shard, T0, reserve(&format!("o{n}"), "one", "S"))) == "ok");
    assert_eq!(granted.count(), 1);
    apply(&mut shard, T0, cancel("o0"));
    apply(&mut shard, T0, cancel("o0"));
    assert_eq!(code(&apply(&mut shard, T0, deduct("p", "one", "S"))), "ok");
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("q", "one", "S"))),
        "limit_exceeded"
    );
    apply(&mut shard, T0, give("r", "p", None));
    assert_eq!(code(&apply(&mut shard, T0, reserve("q", "one", "S"))), "ok");
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("z", "one", "S"))),
        "limit_exceeded"
    );
}

#[test]
fn b63_usage_equals_what_was_accepted() {
    let mut shard = revive();
    supply(&mut shard, "S", 5_000);
    settings(&mut shard, "S", limit(1_000));
    let granted =
        (0..1_200).filter(|n| code(&apply(&mut shard, T0, deduct(&format!("o{n}"), "u", "S"))) == "ok");
    assert_eq!(granted.count(), 1_000);
    assert_eq!(
        shard.usage().map(|(_, _, _, used)| used).collect::<Vec<_>>(),
        [1_000]
    );
}

#[test]
fn b63_a_reset_starts_again_and_old_units_do_not_count() {
    let mut shard = revive();
    supply(&mut shard, "S", 100);
    settings(&mut shard, "S", limit(2));
    for owner in 0..50 {
        apply(
            &mut shard,
            T0,
            reserve(&format!("old{owner}"), &format!("u{owner}"), "S"),
        );
    }
    let reset = Changes {
        reset_usage: true,
        ..Changes::default()
    };
    settings(&mut shard, "S", reset);
    assert_eq!(shard.usage().count(), 0);
    apply(&mut shard, T0, reserve("new", "u0", "S*2"));
    apply(&mut shard, T0, cancel("old0"));
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("more", "u0", "S"))),
        "limit_exceeded"
    );
    shard.sweep(T0, 1_000);
    assert_eq!(shard.usage().map(|(_, _, _, used)| used).collect::<Vec<_>>(), [2]);
}

#[test]
fn b66_a_floor_above_the_stock_counts_as_zero() {
    let mut shard = revive();
    supply_at(&mut shard, "S", "W1", 1);
    supply_at(&mut shard, "S", "W2", 3);
    let floor = Changes {
        safety_stock: vec![(id("W1"), 5)],
        ..Changes::default()
    };
    settings(&mut shard, "S", floor);
    let decision = apply(&mut shard, T0, reserve("o", "a", "S*3"));
    assert_eq!(shown(&decision).lines[0].allocations[0].location, id("W2"));
}

#[test]
fn b67_what_is_shown_can_be_bought() {
    let mut shard = revive();
    for place in 0..8 {
        supply_at(&mut shard, "S", &format!("W{place}"), 1);
    }
    let decision = apply(&mut shard, T0, reserve("o", "a", "S*3"));
    assert_eq!(shown(&decision).lines[0].allocations.len(), 3);
    for n in 0..5 {
        assert_eq!(
            code(&apply(&mut shard, T0, reserve(&format!("p{n}"), "a", "S"))),
            "ok"
        );
    }
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("q", "a", "S"))),
        "insufficient_stock"
    );
}

#[test]
fn b67_whole_line_from_one_location_first_in_the_operators_order() {
    let mut shard = revive();
    supply_at(&mut shard, "S", "A", 2);
    supply_at(&mut shard, "S", "B", 9);
    supply_at(&mut shard, "S", "C", 9);
    let from = |shard: &mut _, order: &str, lines: &str| -> Vec<(String, u64)> {
        let decision = apply(shard, T0, reserve(order, "a", lines));
        let parts = shown(&decision).lines[0].allocations.iter();
        parts
            .map(|part| (part.location.to_string(), part.quantity))
            .collect()
    };
    assert_eq!(from(&mut shard, "o1", "S*3"), [("B".into(), 3)]);
    let order = Changes {
        order: Some(vec![id("C")]),
        ..Changes::default()
    };
    settings(&mut shard, "S", order);
    assert_eq!(from(&mut shard, "o2", "S*3"), [("C".into(), 3)]);
    assert_eq!(from(&mut shard, "o3", "S*8"), [("C".into(), 6), ("A".into(), 2)]);
    // Confirm takes in that order, return gives back in reverse.
    apply(&mut shard, T0, common::confirm_some("o3", "S*7"));
    apply(&mut shard, T0, give("r", "o3", common::picks("S*2")));
    assert_eq!(raw(&shard, "S"), [(2, 0, 0), (9, 3, 0), (4, 3, 5)]);
    let split = Changes {
        split: Some(false),
        ..Changes::default()
    };
    settings(&mut shard, "S", split);
    let short = apply(&mut shard, T0, reserve("o4", "a", "S*8"));
    assert_eq!(
        common::short(&short),
        [(0, 8, 6)],
        "the most that one location could give"
    );
}

#[test]
fn b70_b71_a_pinned_line_takes_from_there_only() {
    let mut shard = revive();
    supply_at(&mut shard, "S", "W1", 1);
    supply_at(&mut shard, "S", "W2", 9);
    let decision = apply(&mut shard, T0, reserve("o", "a", "S@W1*2"));
    assert_eq!(common::short(&decision), [(0, 2, 1)]);
    let nowhere = apply(&mut shard, T0, reserve("o", "a", "S@W9*2"));
    assert_eq!(common::short(&nowhere), [(0, 2, 0)]);
    assert_eq!(code(&apply(&mut shard, T0, reserve("o", "a", "S@W1*1"))), "ok");
}

#[test]
fn b72_a_count_below_what_is_reserved_is_refused() {
    let mut shard = revive();
    supply(&mut shard, "S", 1);
    apply(&mut shard, T0, reserve("o1", "a", "S"));
    let zero = apply(
        &mut shard,
        T0,
        set("erp", "S", "default", 0, Count::Seen { sold_seen: 0 }),
    );
    assert_eq!(code(&zero), "below_reserved");
    assert_eq!(code(&apply(&mut shard, T0, confirm("o1"))), "ok");
    // The ERP counted 1 before the sale: what is left is 0, not -1 and not 1.
    let counted = apply(
        &mut shard,
        T0,
        set("erp2", "S", "default", 1, Count::Seen { sold_seen: 0 }),
    );
    assert_eq!(code(&counted), "ok");
    assert_eq!(raw(&shard, "S"), [(0, 0, 1)]);
}

#[test]
fn b73_a_stale_save_is_refused() {
    let mut shard = revive();
    supply(&mut shard, "S", 100);
    apply(&mut shard, T0, set("import", "S", "default", 10, Count::Force));
    let mut stale = set("admin", "S", "default", 100, Count::Force);
    stale.expect = Expect::Revision(1);
    assert_eq!(code(&apply(&mut shard, T0, stale.clone())), "revision_conflict");
    stale.expect = Expect::Absent;
    assert_eq!(code(&apply(&mut shard, T0, stale)), "revision_conflict");
    assert_eq!(
        code(&apply(&mut shard, T0, set("x", "S", "default", 9, Count::Create))),
        "invalid"
    );
    assert_eq!(raw(&shard, "S"), [(10, 0, 0)]);
}

#[test]
fn b73_a_line_may_ask_for_a_revision() {
    let mut shard = revive();
    supply(&mut shard, "S", 100);
    let mut ask = reserve("o", "a", "S S");
    ask.lines[1].if_revision = Some(2);
    let decision = apply(&mut shard, T0, ask.clone());
    assert_eq!(code(&decision), "revision_conflict");
    ask.lines[1].if_revision = Some(1);
    assert_eq!(code(&apply(&mut shard, T0, ask)), "ok");
}

#[test]
fn b74_target_and_delivery_are_different_commands() {
    let mut shard = revive();
    supply(&mut shard, "S", 8);
    apply(&mut shard, T0, adjust("d", "S", "default", 5));
    assert_eq!(
        code(&apply(&mut shard, T0, adjust("d", "S", "default", 5))),
        "replayed"
    );
    assert_eq!(
        code(&apply(&mut shard, T0, adjust("d", "S", "default", 6))),
        "id_reused"
    );
    assert_eq!(raw(&shard, "S"), [(13, 0, 0)]);
    apply(
        &mut shard,
        T0,
        set("t", "S", "default", 5, Count::Seen { sold_seen: 0 }),
    );
    assert_eq!(raw(&shard, "S"), [(5, 0, 0)]);
    assert_eq!(stock(&mut shard, T0, "S").revision, 3);
}

#[test]
fn b78_a_sku_that_nobody_knows() {
    let mut shard = revive();
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("o", "a", "nope"))),
        "unknown_sku"
    );
    assert_eq!(
        code(&apply(&mut shard, T0, adjust("x", "nope", "default", 1))),
        "unknown_sku"
    );
    supply(&mut shard, "S", 1);
    let elsewhere = apply(&mut shard, T0, transfer("t", "S", "default", "W9", 1));
    let Reply::Refused(Refusal::UnknownSku(rows)) = &elsewhere.reply else {
        panic!("{elsewhere:?}")
    };
    assert_eq!(rows[0].location, Some(id("W9")));
}

#[test]
fn b79_large_counts_are_exact() {
    let mut shard = revive();
    supply(&mut shard, "S", 100_000_000_000_000);
    supply(&mut shard, "T", QUANTITY_MAX);
    apply(&mut shard, T0, deduct("o", "a", "S T"));
    assert_eq!(
        three(counters(&mut shard, T0, "S", "default")),
        (99_999_999_999_999, 0, 1)
    );
    assert_eq!(
        three(counters(&mut shard, T0, "T", "default")),
        (QUANTITY_MAX - 1, 0, 1)
    );
    let beyond = set("b", "U", "default", QUANTITY_MAX + 1, Count::Create);
    assert_eq!(field(&apply(&mut shard, T0, beyond)), "on_hand");
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("p", "a", "U"))),
        "unknown_sku",
        "not created"
    );
}

#[test]
fn b85_nothing_wraps() {
    let mut shard = revive();
    supply(&mut shard, "S", QUANTITY_MAX);
    supply_at(&mut shard, "S", "W1", 1);
    for delta in [1, i64::MAX, i64::MIN, 0] {
        assert_eq!(
            field(&apply(&mut shard, T0, adjust("a", "S", "default", delta))),
            "delta"
        );
    }
    assert_eq!(
        field(&apply(&mut shard, T0, transfer("t", "S", "W1", "default", 1))),
        "quantity"
    );
    let all = format!("S*{QUANTITY_MAX} S*{QUANTITY_MAX}");
    assert_eq!(
        field(&apply(&mut shard, T0, reserve("o", "a", &all))),
        "lines[0].quantity"
    );
    let most = format!("S*{}", u64::MAX);
    assert_eq!(
        field(&apply(&mut shard, T0, reserve("o", "a", &most))),
        "lines[0].quantity"
    );
    apply(&mut shard, T0, deduct("sold", "a", "S@default*9"));
    let full = set("f", "S", "default", QUANTITY_MAX, Count::Force);
    assert_eq!(
        field(&apply(&mut shard, T0, full)),
        "on_hand",
        "on_hand + sold stays in range"
    );
    assert_eq!(raw(&shard, "S"), [(QUANTITY_MAX - 9, 0, 9), (1, 0, 0)]);
}

#[test]
fn b86_b87_a_quantity_is_at_least_one() {
    let mut shard = revive();
    supply(&mut shard, "S", 998);
    let decision = apply(&mut shard, T0, reserve("o", "a", "S*1 S*0"));
    assert_eq!(field(&decision), "lines[1].quantity");
    apply(&mut shard, T0, reserve("o", "a", "S*2"));
    assert_eq!(
        code(&apply(&mut shard, T0, common::confirm_some("o", "S*0"))),
        "invalid"
    );
    assert_eq!(raw(&shard, "S"), [(998, 2, 0)]);
}

#[test]
fn a_sale_has_a_window() {
    let mut shard = revive();
    supply(&mut shard, "S", 9);
    let window = Changes {
        opens_at: Some(Some(T0 + 10)),
        closes_at: Some(Some(T0 + 20)),
        ..Changes::default()
    };
    settings(&mut shard, "S", window);
    for (at, expected) in [
        (0, "not_open"),
        (9, "not_open"),
        (10, "ok"),
        (19, "ok"),
        (20, "closed"),
    ] {
        let decision = apply(&mut shard, T0 + at, reserve(&format!("o{at}"), "a", "S"));
        assert_eq!(code(&decision), expected, "{at}");
    }
    assert_eq!(
        code(&apply(&mut shard, T0 + 20, confirm("o10"))),
        "ok",
        "only reserves have a window"
    );
    let backwards = Changes {
        opens_at: Some(Some(T0 + 20)),
        ..Changes::default()
    };
    assert_eq!(
        field(&apply(&mut shard, T0, configure("c", "S", backwards))),
        "closes_at"
    );
    let paused = Changes {
        paused: Some(true),
        ..Changes::default()
    };
    settings(&mut shard, "S", paused);
    assert_eq!(
        code(&apply(&mut shard, T0 + 15, reserve("p", "a", "S"))),
        "paused"
    );
    assert_eq!(
        code(&apply(&mut shard, T0 + 15, reserve("o19", "a", "S"))),
        "replayed",
        "known id first"
    );
}

#[test]
fn b63_units_of_an_era_that_is_over_free_nothing_in_this_one() {
    let mut shard = revive();
    supply(&mut shard, "S", 100);
    settings(&mut shard, "S", limit(2));
    assert_eq!(code(&apply(&mut shard, T0, reserve("old", "u", "S*2"))), "ok");
    let reset = Changes {
        reset_usage: true,
        ..Changes::default()
    };
    settings(&mut shard, "S", reset);
    assert_eq!(code(&apply(&mut shard, T0, reserve("new", "u", "S*2"))), "ok");
    // The old units do not count any more, so that giving them up makes no room.
    let mut third = reserve("third", "u", "S*2");
    third.supersedes = Some(id("old"));
    assert_eq!(code(&apply(&mut shard, T0, third)), "limit_exceeded");
    let mut third = reserve("third", "u", "S*2");
    third.supersedes = Some(id("new"));
    assert_eq!(code(&apply(&mut shard, T0, third)), "ok");
}

/// What operators changed is shown only once it is on disk; counters alone may be ahead of it.
#[test]
fn answers_that_show_a_sku_need_its_last_change() {
    let mut shard = revive();
    let read = |shard: &mut stockade_core::Shard| {
        let read = stockade_core::Action::ShowStock { sku: common::id("S") };
        apply(shard, T0, read).needs
    };
    supply(&mut shard, "S", 100);
    assert_eq!(read(&mut shard), 1);
    shard.seal(1);
    assert_eq!(read(&mut shard), 1);
    let first = configure("c", "S", Changes::default());
    assert_eq!(apply(&mut shard, T0, first.clone()).needs, 2);
    shard.seal(2);
    // A reservation changes counters only.
    apply(&mut shard, T0, reserve("o", "u", "S"));
    assert_eq!(read(&mut shard), 2);
    shard.seal(3);
    let change = adjust("a", "S", "default", 1);
    assert_eq!(apply(&mut shard, T0, change).needs, 4);
    assert_eq!(read(&mut shard), 4);
    let replay = apply(&mut shard, T0, first);
    assert_eq!((code(&replay), replay.needs), ("replayed", 4));

    let mut stale = adjust("b", "S", "default", 1);
    stale.expect = Expect::Revision(1);
    let refused = apply(&mut shard, T0, stale);
    assert_eq!((code(&refused), refused.needs), ("revision_conflict", 4));
    let mut stale = reserve("p", "u", "S");
    stale.lines[0].if_revision = Some(1);
    let refused = apply(&mut shard, T0, stale);
    assert_eq!((code(&refused), refused.needs), ("revision_conflict", 4));
    // What shows no more than counters does not wait.
    let short = apply(&mut shard, T0, reserve("q", "u", "S*1000"));
    assert_eq!((code(&short), short.needs), ("insufficient_stock", 0));
    let mut absent = set("d", "T", "default", 1, Count::Create);
    absent.expect = Expect::Revision(1);
    let refused = apply(&mut shard, T0, absent);
    assert_eq!((code(&refused), refused.needs), ("revision_conflict", 0));
}

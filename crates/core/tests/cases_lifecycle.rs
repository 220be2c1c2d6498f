//! Public bug reports on leaks, double release, ends, returns, repeats and time, as far as one shard can meet them.

mod common;

use common::{
    MINUTE, SECOND, T0, apply, available, cancel, code, confirm, confirm_some, confirm_with, counters,
    deduct, extend, give, raw, reserve, revive, shown, supply, supply_at, three,
};
use stockade_core::{Change, Verb};

#[test]
fn b23_ones_own_hold_does_not_block() {
    let mut shard = revive();
    supply(&mut shard, "S", 1);
    let first = apply(&mut shard, T0, reserve("o1", "a", "S"));
    let again = apply(&mut shard, T0 + MINUTE, reserve("o1", "a", "S"));
    assert_eq!((code(&first), code(&again)), ("ok", "replayed"));
    assert_eq!(shown(&first), shown(&again));
    assert_eq!(raw(&shard, "S"), [(1, 1, 0)]);
}

#[test]
fn b23_another_id_may_take_its_own_place() {
    let mut shard = revive();
    supply(&mut shard, "S", 1);
    apply(&mut shard, T0, reserve("o1", "a", "S"));
    let next = |shard: &mut _, id: &str, owner: &str, old: &str, lines: &str| {
        let mut ask = reserve(id, owner, lines);
        ask.supersedes = Some(common::id(old));
        apply(shard, T0, ask)
    };
    assert_eq!(
        code(&next(&mut shard, "o2", "a", "o1", "S*2")),
        "insufficient_stock"
    );
    assert_eq!(
        code(&common::show(&mut shard, T0, "o1")),
        "ok",
        "refused: the old one stays"
    );
    assert_eq!(code(&next(&mut shard, "o2", "b", "o1", "S")), "not_found");
    assert_eq!(
        code(&next(&mut shard, "o1", "a", "o1", "S")),
        "replayed",
        "known id first"
    );
    assert_eq!(code(&next(&mut shard, "o9", "a", "o9", "S")), "invalid");
    assert_eq!(code(&next(&mut shard, "o2", "a", "o1", "S")), "ok");
    assert_eq!(code(&next(&mut shard, "o2", "a", "o1", "S")), "replayed");
    assert_eq!(raw(&shard, "S"), [(1, 1, 0)]);
    assert_eq!(
        code(&next(&mut shard, "o3", "a", "never", "S")),
        "insufficient_stock"
    );
    assert_eq!(code(&common::show(&mut shard, T0, "never")), "not_found");
    apply(&mut shard, T0, cancel("o2"));
    assert_eq!(code(&next(&mut shard, "o3", "a", "never", "S")), "ok");
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("never", "a", "S"))),
        "already_cancelled"
    );
    apply(&mut shard, T0, confirm("o3"));
    assert_eq!(code(&next(&mut shard, "o4", "a", "o3", "S")), "already_confirmed");
}

#[test]
fn b24_b31_b36_every_end_gives_back_once() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    apply(&mut shard, T0, reserve("o1", "a", "S*2"));
    shard.seal(1);
    let late = T0 + 15 * MINUTE;
    assert_eq!(shard.sweep(late, 10), 1);
    assert_eq!(shard.sweep(late, 10), 0);
    assert_eq!(code(&apply(&mut shard, late, cancel("o1"))), "ok");
    assert_eq!(code(&apply(&mut shard, late, cancel("o1"))), "replayed");
    assert_eq!(raw(&shard, "S"), [(5, 0, 0)]);
    let entry = shard.seal(2).unwrap();
    let moves: usize = entry.effects.iter().map(|effect| effect.moves.len()).sum();
    assert_eq!(moves, 1, "one row gives back");
}

#[test]
fn b25_a_hold_has_an_end() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    for ttl_ms in [0, -1, 999, i64::MIN, 2_592_000_001, i64::MAX] {
        let mut ask = reserve("o", "a", "S*5");
        ask.ttl_ms = ttl_ms;
        assert_eq!(common::field(&apply(&mut shard, T0, ask)), "ttl_ms");
    }
    for (n, ttl_ms) in [1_000, 2_592_000_000].into_iter().enumerate() {
        let mut ask = reserve(&format!("o{n}"), "a", "S");
        ask.ttl_ms = ttl_ms;
        assert_eq!(shown(&apply(&mut shard, T0, ask)).ends_at, T0 + ttl_ms);
    }
}

#[test]
fn b26_b45_b46_pay_return_cancel() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    apply(&mut shard, T0, deduct("o", "a", "S*3"));
    assert_eq!(code(&apply(&mut shard, T0, give("r", "o", None))), "ok");
    assert_eq!(code(&apply(&mut shard, T0, give("r", "o", None))), "replayed");
    assert_eq!(code(&apply(&mut shard, T0, cancel("o"))), "already_confirmed");
    assert_eq!(code(&apply(&mut shard, T0, give("r2", "o", None))), "invalid");
    assert_eq!(raw(&shard, "S"), [(5, 0, 0)]);
}

#[test]
fn b29_held_twice_under_one_id_is_held_once() {
    let mut shard = revive();
    supply(&mut shard, "S", 9);
    apply(&mut shard, T0, reserve("O-L", "a", "S*4"));
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("O-L", "a", "S*4"))),
        "replayed"
    );
    assert_eq!(raw(&shard, "S"), [(9, 4, 0)]);
}

#[test]
fn b33_release_over_several_locations_is_whole() {
    let mut shard = revive();
    common::supply_at(&mut shard, "S", "W1", 1);
    common::supply_at(&mut shard, "S", "W2", 4);
    apply(&mut shard, T0, reserve("o", "a", "S*5"));
    assert_eq!(raw(&shard, "S"), [(1, 1, 0), (4, 4, 0)]);
    apply(&mut shard, T0, cancel("o"));
    assert_eq!(raw(&shard, "S"), [(1, 0, 0), (4, 0, 0)]);
}

#[test]
fn b34_cancel_of_nothing_gives_nothing() {
    let mut shard = revive();
    supply(&mut shard, "S", 10);
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("o", "a", "S*11"))),
        "insufficient_stock"
    );
    for expected in ["sealed", "replayed", "replayed"] {
        assert_eq!(code(&apply(&mut shard, T0, cancel("o"))), expected);
    }
    assert_eq!(raw(&shard, "S"), [(10, 0, 0)]);
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("o", "a", "S"))),
        "already_cancelled"
    );
}

#[test]
fn b38_b40_b44_paid_after_the_end() {
    let mut shard = revive();
    supply(&mut shard, "S", 1);
    apply(&mut shard, T0, reserve("a", "a", "S"));
    let minute = |n: i64| T0 + n * MINUTE;
    assert_eq!(
        code(&apply(&mut shard, minute(15) + 1, reserve("b", "b", "S"))),
        "ok"
    );
    apply(&mut shard, minute(15) + 2, confirm("b"));
    shard.seal(1);
    for _ in 0..3 {
        assert_eq!(
            code(&apply(&mut shard, minute(16), confirm("a"))),
            "expired (short)"
        );
    }
    let notes = shard.seal(2).unwrap().effects;
    assert_eq!(notes.len(), 1, "one event: paid, not fulfilled");
    assert!(matches!(
        notes[0].change,
        Change::Reservation { verb: Verb::Note, .. }
    ));
    assert_eq!(raw(&shard, "S"), [(0, 0, 1)]);
}

#[test]
fn b38_revived_when_the_unit_is_still_there_and_the_limit_allows() {
    let mut shard = revive();
    supply(&mut shard, "S", 2);
    let limit = stockade_core::Changes {
        limit_per_owner: Some(Some(1)),
        closes_at: Some(Some(T0 + MINUTE)),
        ..stockade_core::Changes::default()
    };
    common::settings(&mut shard, "S", limit);
    apply(&mut shard, T0, reserve("a", "a", "S"));
    apply(&mut shard, T0, reserve("b", "b", "S"));
    let late = T0 + 20 * MINUTE;
    assert_eq!(
        code(&apply(&mut shard, late, confirm("a"))),
        "ok",
        "whatever the sale window"
    );
    assert_eq!(raw(&shard, "S")[0].2, 1);
    let more = stockade_core::Changes {
        closes_at: Some(None),
        ..stockade_core::Changes::default()
    };
    common::settings(&mut shard, "S", more);
    assert_eq!(code(&apply(&mut shard, late, deduct("b2", "b", "S"))), "ok");
    common::apply(&mut shard, late, common::adjust("more", "S", "default", 5));
    assert_eq!(code(&apply(&mut shard, late, confirm("b"))), "expired (limit)");
}

#[test]
fn b42_extended_in_time_and_not_after() {
    let mut shard = revive();
    supply(&mut shard, "S", 1);
    apply(&mut shard, T0, reserve("o", "a", "S"));
    let end = T0 + 15 * MINUTE;
    assert_eq!(code(&apply(&mut shard, end - 1, extend("o", end + MINUTE))), "ok");
    assert_eq!(
        code(&apply(&mut shard, end + MINUTE - 1, confirm("x"))),
        "not_found"
    );
    assert_eq!(
        code(&apply(&mut shard, end + MINUTE, extend("o", end + 9 * MINUTE))),
        "expired"
    );
    assert_eq!(available(&mut shard, end + MINUTE, "S"), 1);
}

#[test]
fn b43_after_a_confirm_no_cancel_and_the_reverse() {
    let mut shard = revive();
    supply(&mut shard, "S", 2);
    apply(&mut shard, T0, reserve("o1", "a", "S"));
    apply(&mut shard, T0, confirm("o1"));
    assert_eq!(code(&apply(&mut shard, T0, cancel("o1"))), "already_confirmed");
    apply(&mut shard, T0, reserve("o2", "a", "S"));
    apply(&mut shard, T0, cancel("o2"));
    assert_eq!(code(&apply(&mut shard, T0, confirm("o2"))), "already_cancelled");
    assert_eq!(raw(&shard, "S"), [(1, 0, 1)]);
}

#[test]
fn b47_b48_returned_are_only_the_lines_named() {
    let mut shard = revive();
    supply(&mut shard, "P1", 100);
    supply(&mut shard, "P2", 100);
    apply(&mut shard, T0, deduct("o", "a", "P1 P2"));
    assert_eq!(
        code(&apply(&mut shard, T0, give("r", "o", common::picks("P1")))),
        "ok"
    );
    assert_eq!(three(counters(&mut shard, T0, "P1", "default")), (100, 0, 0));
    assert_eq!(three(counters(&mut shard, T0, "P2", "default")), (99, 0, 1));
}

#[test]
fn b50_b51_b61_one_deduction_an_id() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    apply(&mut shard, T0, deduct("d", "a", "S"));
    assert_eq!(
        code(&apply(&mut shard, T0 + 30 * SECOND, deduct("d", "a", "S"))),
        "replayed"
    );
    apply(&mut shard, T0, reserve("o", "a", "S"));
    assert_eq!(code(&apply(&mut shard, T0, confirm("o"))), "ok");
    for _ in 0..1_000 {
        assert_eq!(code(&apply(&mut shard, T0, confirm("o"))), "replayed");
    }
    assert_eq!(raw(&shard, "S"), [(3, 0, 2)]);
}

#[test]
fn b54_same_id_other_payload_moves_nothing() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    apply(&mut shard, T0, reserve("k", "a", "S"));
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("k", "a", "S*2"))),
        "id_reused"
    );
    assert_eq!(code(&apply(&mut shard, T0, reserve("k", "b", "S"))), "id_reused");
    assert_eq!(code(&apply(&mut shard, T0, reserve("k", "a", "S"))), "replayed");
    assert_eq!(raw(&shard, "S"), [(5, 1, 0)]);
}

#[test]
fn b57_a_refusal_is_not_remembered() {
    let mut shard = revive();
    supply(&mut shard, "S", 0);
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("o", "a", "S"))),
        "insufficient_stock"
    );
    apply(&mut shard, T0, common::adjust("d", "S", "default", 5));
    assert_eq!(code(&apply(&mut shard, T0, reserve("o", "a", "S"))), "ok");
}

#[test]
fn b58_ids_live_in_a_tenant_and_in_a_space() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    apply(&mut shard, T0, reserve("1", "a", "S"));
    let mut other = common::command(common::IntoAction::into_action(reserve("1", "a", "S")));
    other.tenant = common::id("another");
    assert_eq!(
        code(&shard.apply(T0, &other)),
        "unknown_sku",
        "executed, not given A's answer"
    );
    assert_eq!(
        code(&apply(&mut shard, T0, common::adjust("1", "S", "default", 1))),
        "ok"
    );
    apply(&mut shard, T0, confirm("1"));
    assert_eq!(code(&apply(&mut shard, T0, give("1", "1", None))), "ok");
}

#[test]
fn a_confirm_stands_in_for_a_lost_reserve() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    let mut both = confirm_with("o", "a", "S*3");
    both.lines = common::picks("S*2");
    assert_eq!(code(&apply(&mut shard, T0, both.clone())), "ok");
    assert_eq!(raw(&shard, "S"), [(3, 0, 2)]);
    assert_eq!(code(&apply(&mut shard, T0, both)), "replayed");
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("o", "a", "S*3"))),
        "replayed",
        "it turns up late"
    );
    assert_eq!(
        code(&apply(&mut shard, T0, confirm_some("o", "S*3"))),
        "already_confirmed"
    );
    assert_eq!(raw(&shard, "S"), [(3, 0, 2)]);
}

#[test]
fn b144_b146_ends_are_exact() {
    for sweep in [true, false] {
        let mut shard = revive();
        supply(&mut shard, "S", 1);
        let mut ask = reserve("o", "a", "S");
        ask.ttl_ms = 60 * MINUTE;
        apply(&mut shard, T0, ask);
        for at in [MINUTE, 60 * MINUTE - SECOND, 60 * MINUTE - 1] {
            assert_eq!(if sweep { shard.sweep(T0 + at, 10) } else { 0 }, 0);
            assert_eq!(available(&mut shard, T0 + at, "S"), 0);
        }
        assert_eq!(available(&mut shard, T0 + 60 * MINUTE, "S"), 1);
    }
}

#[test]
fn b162_time_never_runs_backwards() {
    let mut shard = revive();
    supply(&mut shard, "S", 2);
    apply(&mut shard, T0, reserve("o", "a", "S"));
    assert_eq!(available(&mut shard, T0 + 15 * MINUTE, "S"), 2);
    let decision = apply(&mut shard, T0 - 60 * MINUTE, reserve("p", "a", "S"));
    assert_eq!(shown(&decision).ends_at, T0 + 30 * MINUTE);
    apply(&mut shard, i64::MIN, confirm("p"));
    apply(&mut shard, i64::MAX, reserve("q", "a", "S"));
    assert_eq!(shard.clock(), i64::MAX);
}

#[test]
fn b38_paid_late_two_lines_do_not_share_one_unit() {
    let mut shard = revive();
    supply_at(&mut shard, "S", "A", 2);
    // Both lines come from A, one because it says so.
    apply(&mut shard, T0, reserve("o", "u", "S@A S"));
    let late = T0 + 15 * MINUTE;
    assert_eq!(code(&apply(&mut shard, late, deduct("p", "v", "S"))), "ok");
    let paid = apply(&mut shard, late, confirm("o"));
    assert_eq!(code(&paid), "expired (short)");
    assert_eq!(common::short(&paid).len(), 1);
    // One of them alone still fits.
    assert_eq!(code(&apply(&mut shard, late, confirm_some("o", "S@A"))), "ok");
    assert_eq!(three(counters(&mut shard, late, "S", "A")), (0, 0, 2));
}

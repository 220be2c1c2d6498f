//! Public bug reports on overselling, carts and selling too little, as far as one shard can meet them.

mod common;

use common::{
    MINUTE, SECOND, T0, apply, available, cancel, code, confirm, counters, deduct, raw, reserve, revive,
    settings, short, stock, supply, three,
};
use stockade_core::{Changes, LINES_MAX};

#[test]
fn b01_two_baskets_of_3_against_5() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    assert_eq!(code(&apply(&mut shard, T0, reserve("o1", "a", "S*3"))), "ok");
    let second = apply(&mut shard, T0, reserve("o2", "b", "S*3"));
    assert_eq!(short(&second), [(0, 3, 2)]);
    assert_eq!(available(&mut shard, T0, "S"), 2);
}

#[test]
fn b03_many_small_baskets_never_pass_the_stock() {
    let mut shard = revive();
    supply(&mut shard, "S", 10);
    let mut sold = 0;
    for n in 0..50_u64 {
        let quantity = 1 + n * 7 % 6;
        let decision = apply(
            &mut shard,
            T0,
            deduct(&format!("o{n}"), "a", &format!("S*{quantity}")),
        );
        if code(&decision) == "ok" {
            sold += quantity;
        } else {
            assert_eq!(
                short(&decision),
                [(0, quantity, 10 - sold)],
                "true when it was said"
            );
            assert!(quantity > 10 - sold);
        }
    }
    assert_eq!(raw(&shard, "S"), [(10 - sold, 0, sold)]);
}

#[test]
fn b04_two_orders_are_two_in_the_reserved_counter() {
    let mut shard = revive();
    supply(&mut shard, "S", 100);
    apply(&mut shard, T0, reserve("o1", "a", "S"));
    apply(&mut shard, T0, reserve("o2", "b", "S"));
    assert_eq!(raw(&shard, "S"), [(100, 2, 0)]);
    assert_eq!(shard.live_count(), 2);
}

#[test]
fn b05_a_look_up_grants_nothing() {
    let mut shard = revive();
    supply(&mut shard, "S", 1);
    assert_eq!(available(&mut shard, T0, "S"), 1);
    assert_eq!(code(&apply(&mut shard, T0, deduct("a", "a", "S"))), "ok");
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("b", "b", "S"))),
        "insufficient_stock"
    );
}

#[test]
fn b06_a_loser_leaves_nothing_behind() {
    let mut shard = revive();
    supply(&mut shard, "S", 1);
    shard.seal(1);
    for n in 0..20 {
        apply(&mut shard, T0, reserve(&format!("o{n}"), "a", "S"));
    }
    assert_eq!(shard.live_count(), 1);
    assert_eq!(shard.seal(2).unwrap().effects.len(), 1);
    assert_eq!(shard.usage().map(|(_, _, _, used)| used).sum::<u64>(), 1);
    for n in 1..20 {
        assert_eq!(code(&common::show(&mut shard, T0, &format!("o{n}"))), "not_found");
    }
}

#[test]
fn b09_unpaid_orders_count() {
    let mut shard = revive();
    supply(&mut shard, "S", 10);
    let granted =
        (0..20).filter(|n| code(&apply(&mut shard, T0, reserve(&format!("o{n}"), "a", "S"))) == "ok");
    assert_eq!(granted.count(), 10);
    for n in 0..20 {
        apply(&mut shard, T0 + 5 * MINUTE, confirm(&format!("o{n}")));
    }
    assert_eq!(raw(&shard, "S"), [(0, 0, 10)]);
}

#[test]
fn b11_lines_of_one_sku_are_summed() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    let both = apply(&mut shard, T0, reserve("o1", "a", "S*5 S*5"));
    assert_eq!(short(&both), [(0, 10, 5)]);
    assert_eq!(raw(&shard, "S"), [(5, 0, 0)]);
    assert_eq!(code(&apply(&mut shard, T0, reserve("o2", "a", "S*2 S*3"))), "ok");
    assert_eq!(raw(&shard, "S"), [(5, 5, 0)]);
}

#[test]
fn b11_pinned_and_free_lines_share_the_units() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    let cart = apply(&mut shard, T0, reserve("o1", "a", "S*3 S@default*4"));
    assert_eq!(short(&cart), [(0, 3, 1)], "the pinned line takes first");
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("o2", "a", "S*1 S@default*4"))),
        "ok"
    );
    assert_eq!(raw(&shard, "S"), [(5, 5, 0)]);
}

#[test]
fn b13_a_short_line_spoils_nothing() {
    let mut shard = revive();
    supply(&mut shard, "a", 99_999);
    supply(&mut shard, "b", 2);
    supply(&mut shard, "c", 99_999);
    let cart = apply(&mut shard, T0, deduct("A", "x", "a b*3 c"));
    assert_eq!(short(&cart), [(1, 3, 2)]);
    assert_eq!(raw(&shard, "a"), [(99_999, 0, 0)]);
    assert_eq!(code(&apply(&mut shard, T0, deduct("B", "y", "b*2"))), "ok");
    assert_eq!(raw(&shard, "b"), [(0, 0, 2)]);
}

#[test]
fn b13_every_failing_line_is_told_in_input_order() {
    let mut shard = revive();
    supply(&mut shard, "a", 1);
    supply(&mut shard, "b", 1);
    let cart = apply(&mut shard, T0, reserve("o", "x", "b*2 a*3"));
    assert_eq!(short(&cart), [(0, 2, 1), (1, 3, 1)]);
}

#[test]
fn b15_the_same_line_many_times_is_one() {
    let mut shard = revive();
    supply(&mut shard, "S", 100);
    let cart = vec!["S"; LINES_MAX].join(" ");
    let decision = apply(&mut shard, T0, reserve("o", "a", &cart));
    assert_eq!(common::shown(&decision).lines.len(), 1);
    assert_eq!(raw(&shard, "S"), [(100, 100, 0)]);
}

#[test]
fn b16_too_many_lines_are_refused_whole() {
    let mut shard = revive();
    supply(&mut shard, "S", 10_000);
    for lines in [LINES_MAX + 1, 4_000, 8_001] {
        let decision = apply(&mut shard, T0, reserve("o", "a", &vec!["S"; lines].join(" ")));
        assert_eq!(common::field(&decision), "lines");
    }
    assert_eq!(raw(&shard, "S"), [(10_000, 0, 0)]);
}

#[test]
fn b17_exactly_ten_of_a_hundred_and_a_cancel_opens_again() {
    let mut shard = revive();
    supply(&mut shard, "S", 10);
    let granted: Vec<_> = (0..100)
        .map(|n| format!("o{n}"))
        .filter(|order| code(&apply(&mut shard, T0, reserve(order, "a", "S"))) == "ok")
        .collect();
    assert_eq!(granted.len(), 10);
    apply(&mut shard, T0, cancel(&granted[3]));
    assert_eq!(code(&apply(&mut shard, T0, reserve("next", "b", "S"))), "ok");
}

#[test]
fn b18_a_refused_repeat_eats_nothing() {
    let mut shard = revive();
    supply(&mut shard, "S", 100);
    let limit = Changes {
        limit_per_owner: Some(Some(1)),
        ..Changes::default()
    };
    settings(&mut shard, "S", limit);
    let codes: Vec<_> = (0..100)
        .map(|n| code(&apply(&mut shard, T0, reserve(&format!("o{n}"), "one", "S"))))
        .collect();
    assert_eq!(codes.iter().filter(|code| **code == "ok").count(), 1);
    assert_eq!(codes.iter().filter(|code| **code == "limit_exceeded").count(), 99);
    assert_eq!(available(&mut shard, T0, "S"), 99);
}

#[test]
fn b20_sold_out_ends_with_a_cancel_an_end_and_a_delivery() {
    let mut shard = revive();
    supply(&mut shard, "S", 10);
    apply(&mut shard, T0, reserve("o", "a", "S*10"));
    assert_eq!(
        code(&apply(&mut shard, T0, reserve("p", "b", "S"))),
        "insufficient_stock"
    );
    apply(&mut shard, T0, cancel("o"));
    assert_eq!(three(counters(&mut shard, T0, "S", "default")), (10, 0, 0));
    assert_eq!(code(&apply(&mut shard, T0, reserve("p", "b", "S*10"))), "ok");
    let late = T0 + 15 * MINUTE;
    assert_eq!(
        code(&apply(&mut shard, late - 1, reserve("q", "c", "S"))),
        "insufficient_stock"
    );
    assert_eq!(code(&apply(&mut shard, late, reserve("q", "c", "S*10"))), "ok");
    assert_eq!(
        code(&apply(
            &mut shard,
            late + SECOND,
            common::adjust("d", "S", "default", 1)
        )),
        "ok"
    );
    assert_eq!(
        code(&apply(&mut shard, late + SECOND, reserve("r", "d", "S"))),
        "ok"
    );
    assert_eq!(stock(&mut shard, late, "S").revision, 2);
}

//! Random commands over few ids, so that they meet.

use proptest::prelude::*;
use stockade_core::{
    Action, AskLine, Cancel, Changes, Confirm, ConfirmPayload, Count, Expect, Extend, Id, Millis, Mode,
    PickLine, Reason, Reserve, Return,
};

use super::{MINUTE, SECOND, T0, adjust, configure, id, set, transfer};

/// A command, and how the caller's clock moves before it: also backwards.
#[derive(Clone, Debug)]
pub struct Step {
    pub clock: Millis,
    pub action: Action,
    /// Whether a sweep runs before it, on the shard that is swept.
    pub sweep: bool,
}

fn name(prefix: &'static str, count: u32) -> impl Strategy<Value = Id> {
    (0..count).prop_map(move |n| id(&format!("{prefix}{n}")))
}

fn sku() -> impl Strategy<Value = Id> {
    prop_oneof![6 => Just(id("S")), 3 => Just(id("T")), 1 => Just(id("U"))]
}

fn location() -> impl Strategy<Value = Id> {
    prop_oneof![3 => Just(id("default")), 2 => Just(id("W1")), 1 => Just(id("W2"))]
}

fn pin() -> impl Strategy<Value = Option<Id>> {
    prop_oneof![3 => Just(None), 1 => location().prop_map(Some)]
}

prop_compose! {
    fn ask()(sku in sku(), location in pin(), quantity in 0..5_u64, low in 0..20_u32, revision in 0..4_u64)
        -> AskLine {
        let quantity = if low == 0 { quantity } else { quantity.max(1) };
        let if_revision = (low == 1).then_some(revision);
        AskLine { sku, quantity, location, if_revision }
    }
}

prop_compose! {
    fn pick()(sku in sku(), location in pin(), quantity in 0..4_u64, low in 0..15_u32) -> PickLine {
        let quantity = if low == 0 { quantity } else { quantity.max(1) };
        PickLine { sku, quantity, location }
    }
}

// Most reservations of one id ask for the same, so that there are replays.
fn usual(reservation: &Id) -> (Id, Mode, Vec<AskLine>) {
    let number = u64::from(reservation.as_str().as_bytes()[1] - b'0');
    let line = |sku: &str, location: Option<&str>, quantity| AskLine {
        sku: id(sku),
        quantity,
        location: location.map(id),
        if_revision: None,
    };
    let owner = id(["a", "b"][usize::try_from(number % 2).unwrap()]);
    let mode = if number == 3 { Mode::Deduct } else { Mode::Reserve };
    let mut lines = vec![line("S", None, 1 + number % 3)];
    if number % 3 == 1 {
        lines.push(line("T", None, 2));
        lines.push(line("S", Some("W1"), 1));
    }
    (owner, mode, lines)
}

fn reserve() -> impl Strategy<Value = Action> {
    let odd = (prop::collection::vec(ask(), 0..4), prop::bool::ANY);
    let ttl = prop_oneof![Just(SECOND), Just(30 * SECOND), Just(2 * MINUTE), Just(10_i64)];
    (
        name("r", 7),
        prop::option::weighted(0.4, odd),
        ttl,
        prop::option::weighted(0.15, name("r", 7)),
        0..8_u32,
    )
        .prop_map(|(reservation, odd, ttl_ms, supersedes, other)| {
            let (owner, mut mode, mut lines) = usual(&reservation);
            if let Some((odd, deduct)) = odd {
                lines = odd;
                mode = if deduct { Mode::Deduct } else { Mode::Reserve };
            }
            let owner = if other == 0 { id("c") } else { owner };
            Action::Reserve(Reserve {
                id: reservation,
                owner,
                mode,
                ttl_ms,
                lines: lines.into(),
                supersedes,
            })
        })
}

fn confirm() -> impl Strategy<Value = Action> {
    let lines = prop::option::weighted(0.4, prop::collection::vec(pick(), 0..3));
    (name("r", 7), lines, 0..4_u32).prop_map(|(reservation, lines, along)| {
        let (owner, _, asked) = usual(&reservation);
        let payload = (along == 0).then(|| ConfirmPayload {
            owner,
            lines: asked.into(),
        });
        Action::Confirm(Confirm {
            id: reservation,
            lines,
            payload,
        })
    })
}

fn expect() -> impl Strategy<Value = Expect> {
    prop_oneof![
        8 => Just(Expect::Any),
        1 => (0..6_u64).prop_map(Expect::Revision),
        1 => Just(Expect::Absent),
    ]
}

fn stock() -> impl Strategy<Value = Action> {
    let count = prop_oneof![
        Just(Count::Create),
        (0..4_u64).prop_map(|sold_seen| Count::Seen { sold_seen }),
        Just(Count::Force)
    ];
    prop_oneof![
        4 => (name("c", 40), sku(), location(), 0..14_u64, count, expect()).prop_map(
            |(own, sku, location, target, count, expect)| {
                let mut set = set(own.as_str(), sku.as_str(), location.as_str(), target, count);
                set.expect = expect;
                Action::Set(set)
            }
        ),
        2 => (name("c", 40), sku(), location(), -4..7_i64, expect()).prop_map(
            |(own, sku, location, delta, expect)| {
                let mut adjust = adjust(own.as_str(), sku.as_str(), location.as_str(), delta);
                adjust.expect = expect;
                Action::Adjust(adjust)
            }
        ),
        1 => (name("c", 40), sku(), location(), location(), 0..4_u64).prop_map(|(own, sku, from, to, n)| {
            Action::Transfer(transfer(own.as_str(), sku.as_str(), from.as_str(), to.as_str(), n))
        }),
        2 => (name("c", 40), sku(), changes()).prop_map(|(own, sku, changes)| {
            Action::Configure(configure(own.as_str(), sku.as_str(), changes))
        }),
    ]
}

fn changes() -> impl Strategy<Value = Changes> {
    let time = || prop::option::weighted(0.7, (-30..90_i64).prop_map(|n| T0 + n * SECOND));
    prop_oneof![
        prop::collection::vec((location(), 0..4_u64), 1..3).prop_map(|safety_stock| Changes {
            safety_stock,
            ..Changes::default()
        }),
        prop::option::of(0..6_u64).prop_map(|limit| Changes {
            limit_per_owner: Some(limit),
            ..Changes::default()
        }),
        time().prop_map(|at| Changes {
            opens_at: Some(at),
            ..Changes::default()
        }),
        time().prop_map(|at| Changes {
            closes_at: Some(at),
            ..Changes::default()
        }),
        prop::bool::weighted(0.3).prop_map(|paused| Changes {
            paused: Some(paused),
            ..Changes::default()
        }),
        prop::collection::vec(location(), 0..3).prop_map(|order| Changes {
            order: Some(order),
            ..Changes::default()
        }),
        prop::bool::ANY.prop_map(|split| Changes {
            split: Some(split),
            ..Changes::default()
        }),
        Just(Changes {
            reset_usage: true,
            ..Changes::default()
        }),
        Just(Changes {
            group: Some(Some(id("G"))),
            ..Changes::default()
        }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => reserve(),
        4 => confirm(),
        3 => name("r", 7).prop_map(|id| Action::Cancel(Cancel { id, reason: Reason::default() })),
        1 => (name("r", 7), -5..100_i64).prop_map(|(id, n)| Action::Extend(Extend {
            id,
            ends_at: T0 + n * SECOND,
        })),
        3 => (
            name("x", 8),
            name("r", 7),
            prop::option::of(prop::collection::vec(pick(), 0..3)),
        ).prop_map(|(id, reservation, lines)| Action::Return(Return {
            id,
            reservation,
            lines,
            reason: Reason::default(),
        })),
        4 => stock(),
        1 => name("r", 7).prop_map(|id| Action::ShowReservation { id }),
        1 => sku().prop_map(|sku| Action::ShowStock { sku }),
    ]
}

/// A list of commands, after a few that bring stock.
pub fn script(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let clock = prop_oneof![
        5 => Just(0_i64),
        3 => 0..3 * SECOND,
        2 => Just(SECOND),
        1 => 20 * SECOND..60 * SECOND,
        1 => -20 * SECOND..0,
    ];
    let step =
        (clock, action(), prop::bool::ANY).prop_map(|(clock, action, sweep)| Step { clock, action, sweep });
    prop::collection::vec(step, 1..most).prop_map(|rest| {
        let first = [("S", "default", 6), ("S", "W1", 3), ("T", "default", 5)];
        let mut steps: Vec<Step> = first
            .into_iter()
            .map(|(sku, location, units)| Step {
                clock: 0,
                action: Action::Set(set(
                    &format!("first-{sku}-{location}"),
                    sku,
                    location,
                    units,
                    Count::Create,
                )),
                sweep: false,
            })
            .collect();
        steps.extend(rest);
        steps
    })
}

//! The transition table, a row for every cell: how the reservation came to its state, a command, its answer, the
//! counters (`on_hand`, reserved, sold) before and after, and which entry must be recorded before the answer goes out.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use common::{
    IntoAction, MINUTE, T0, apply, cancel, code, command, confirm, confirm_some, confirm_with, deduct,
    extend, give, id, raw, reserve, shown, stock, supply,
};
use stockade_core::{Action, LateConfirm, Millis, Position, Rules, Shard, Status};

const LATE: Millis = T0 + 20 * MINUTE;

/// Which entry an answer waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Needs {
    Nothing,
    /// The last entry before this command.
    Before,
    /// The one that this command adds to.
    Now,
}
use Needs::{Before, Nothing, Now};

/// How the reservation `o` (2 of `S`, of 5, by `u`) came to its state.
#[derive(Clone, Copy, Debug)]
enum Given {
    Absent,
    Pending,
    Confirmed,
    /// One of the two confirmed.
    Part,
    /// Confirmed, and everything returned.
    Returned,
    Cancelled,
    Sealed,
    /// Past its end, not swept; the units are still free.
    Expired,
    /// Past its end, and somebody else has bought 4 of the 5.
    ExpiredShort,
    /// Recorded as lost.
    Lost,
    LostShort,
}
use Given::{
    Absent, Cancelled, Confirmed, Expired, ExpiredShort, Lost, LostShort, Part, Pending, Returned, Sealed,
};

fn now(given: Given) -> Millis {
    match given {
        Expired | ExpiredShort | Lost | LostShort => LATE,
        Absent | Pending | Confirmed | Part | Returned | Cancelled | Sealed => T0,
    }
}

fn build(late_confirm: LateConfirm, given: Given) -> Shard {
    let rules = Rules { late_confirm };
    let mut shard = Shard::new(0, rules, 1);
    supply(&mut shard, "S", 5);
    if matches!(given, Lost | LostShort) {
        // A new epoch, whose ledger says that the reservation was lost.
        let sku = stock(&mut shard, T0, "S");
        let mut record = shown(&apply(&mut shard, T0, reserve("o", "u", "S*2"))).clone();
        record.status = Status::Lost;
        shard = Shard::new(0, rules, 1);
        shard.load_sku(sku).unwrap();
        shard.load_reservation(record).unwrap();
        shard.open(
            Position {
                epoch: 2,
                seq: 0,
                tag: 0,
            },
            T0,
        );
        shard.forgotten_known();
    } else if !matches!(given, Absent | Sealed) {
        assert_eq!(code(&apply(&mut shard, T0, reserve("o", "u", "S*2"))), "ok");
    }
    let more: Vec<Action> = match given {
        Absent | Pending | Expired | Lost => vec![],
        Confirmed => vec![confirm("o").into_action()],
        Part => vec![confirm_some("o", "S*1").into_action()],
        Returned => vec![confirm("o").into_action(), give("r-0", "o", None).into_action()],
        Cancelled | Sealed => vec![cancel("o").into_action()],
        ExpiredShort | LostShort => vec![deduct("other", "v", "S*4").into_action()],
    };
    for action in more {
        let decision = shard.apply(now(given), &command(action));
        assert!(matches!(code(&decision), "ok" | "sealed"), "{decision:?}");
    }
    shard.seal(1);
    shard
}

type Three = (u64, u64, u64);
type Row = (Given, Action, &'static str, Three, Three, Needs);

fn check(late_confirm: LateConfirm, rows: Vec<Row>) {
    for (given, action, expected, before, after, needs) in rows {
        let mut shard = build(late_confirm, given);
        let what = format!("{given:?}, {action:?}");
        assert_eq!(raw(&shard, "S"), [before], "before: {what}");
        let last = shard.position().seq;
        let decision = shard.apply(now(given), &command(action.clone()));
        assert_eq!(code(&decision), expected, "{what}");
        assert_eq!(raw(&shard, "S"), [after], "after: {what}");
        let expected_needs = match needs {
            Nothing => 0,
            Before => last,
            Now => last + 1,
        };
        assert_eq!(decision.needs, expected_needs, "needs: {what}");
        assert_eq!(shard.unsealed() > 0, needs == Now || before != after, "{what}");
        // Again at once: whatever happened does not happen twice.
        shard.apply(now(given), &command(action));
        assert_eq!(raw(&shard, "S"), [after], "again: {what}");
    }
}

macro_rules! rows {
    ($($given:expr, $action:expr => $code:literal, $before:expr => $after:expr, $needs:expr;)*) => {
        vec![$(($given, $action.into_action(), $code, $before, $after, $needs)),*]
    };
}

const FREE: Three = (5, 0, 0);
const HELD: Three = (5, 2, 0);
const SOLD: Three = (3, 0, 2);

#[test]
fn reserve_and_deduct() {
    let same = || reserve("o", "u", "S*2");
    let other = || reserve("o", "u", "S*3");
    check(
        LateConfirm::Revive,
        rows! {
            Absent, same() => "ok", FREE => HELD, Now;
            Absent, deduct("o", "u", "S*2") => "ok", FREE => SOLD, Now;
            Absent, reserve("o", "u", "S*6") => "insufficient_stock", FREE => FREE, Nothing;
            Absent, reserve("o", "u", "X*1") => "unknown_sku", FREE => FREE, Nothing;
            Absent, reserve("o", "u", "S*0") => "invalid", FREE => FREE, Nothing;
            Pending, same() => "replayed", HELD => HELD, Before;
            Pending, reserve("o", "u", "S*1 S*1") => "replayed", HELD => HELD, Before;
            Pending, other() => "id_reused", HELD => HELD, Before;
            Pending, deduct("o", "u", "S*2") => "id_reused", HELD => HELD, Before;
            Pending, reserve("o", "v", "S*2") => "id_reused", HELD => HELD, Before;
            Pending, reserve("o", "u", "S@default*2") => "id_reused", HELD => HELD, Before;
            Confirmed, same() => "replayed", SOLD => SOLD, Before;
            Confirmed, other() => "id_reused", SOLD => SOLD, Before;
            Cancelled, same() => "already_cancelled", FREE => FREE, Before;
            Cancelled, other() => "id_reused", FREE => FREE, Before;
            Sealed, same() => "already_cancelled", FREE => FREE, Before;
            Sealed, other() => "already_cancelled", FREE => FREE, Before;
            Expired, same() => "expired", HELD => FREE, Now;
            Expired, other() => "id_reused", HELD => FREE, Now;
            Lost, same() => "ok", FREE => HELD, Now;
            LostShort, same() => "insufficient_stock", (1, 0, 4) => (1, 0, 4), Nothing;
        },
    );
    let mut shard = build(LateConfirm::Revive, Lost);
    assert_eq!(code(&apply(&mut shard, LATE, other())), "id_reused");
    assert_eq!(code(&apply(&mut shard, LATE, same())), "ok");
}

#[test]
fn confirm_in_time() {
    let with = || confirm_with("o", "u", "S*2");
    let other = || confirm_with("o", "u", "S*3");
    check(
        LateConfirm::Revive,
        rows! {
            Absent, confirm("o") => "not_found", FREE => FREE, Nothing;
            Absent, with() => "ok", FREE => SOLD, Now;
            Pending, confirm("o") => "ok", HELD => SOLD, Now;
            Pending, confirm_some("o", "S*2") => "ok", HELD => SOLD, Now;
            Pending, confirm_some("o", "S*1") => "ok", HELD => (4, 0, 1), Now;
            Pending, confirm_some("o", "S*3") => "invalid", HELD => HELD, Nothing;
            Pending, confirm_some("o", "") => "invalid", HELD => HELD, Nothing;
            Pending, with() => "ok", HELD => SOLD, Now;
            Pending, other() => "id_reused", HELD => HELD, Before;
            Confirmed, confirm("o") => "replayed", SOLD => SOLD, Before;
            Confirmed, confirm_some("o", "S*2") => "replayed", SOLD => SOLD, Before;
            Confirmed, confirm_some("o", "S*1") => "already_confirmed", SOLD => SOLD, Before;
            Confirmed, other() => "id_reused", SOLD => SOLD, Before;
            Part, confirm("o") => "already_confirmed", (4, 0, 1) => (4, 0, 1), Before;
            Part, confirm_some("o", "S*1") => "replayed", (4, 0, 1) => (4, 0, 1), Before;
            Returned, confirm("o") => "replayed", FREE => FREE, Before;
            Cancelled, confirm("o") => "already_cancelled", FREE => FREE, Before;
            Cancelled, other() => "id_reused", FREE => FREE, Before;
            Sealed, confirm("o") => "already_cancelled", FREE => FREE, Before;
            Sealed, other() => "already_cancelled", FREE => FREE, Before;
        },
    );
}

#[test]
fn confirm_late() {
    check(
        LateConfirm::Revive,
        rows! {
            Expired, confirm("o") => "ok", HELD => SOLD, Now;
            Expired, confirm_some("o", "S*1") => "ok", HELD => (4, 0, 1), Now;
            Expired, confirm_some("o", "S*3") => "invalid", HELD => FREE, Nothing;
            ExpiredShort, confirm("o") => "expired (short)", (1, 0, 4) => (1, 0, 4), Now;
            ExpiredShort, confirm_some("o", "S*1") => "ok", (1, 0, 4) => (0, 0, 5), Now;
            Lost, confirm("o") => "ok", FREE => SOLD, Now;
            LostShort, confirm("o") => "expired (short)", (1, 0, 4) => (1, 0, 4), Now;
        },
    );
    check(
        LateConfirm::Reject,
        rows! {
            Expired, confirm("o") => "expired", HELD => FREE, Now;
            ExpiredShort, confirm("o") => "expired", (1, 0, 4) => (1, 0, 4), Now;
            Lost, confirm("o") => "expired", FREE => FREE, Now;
            LostShort, confirm("o") => "expired", (1, 0, 4) => (1, 0, 4), Now;
        },
    );
}

#[test]
fn cancel_and_extend() {
    let later = || extend("o", T0 + 40 * MINUTE);
    check(
        LateConfirm::Revive,
        rows! {
            Absent, cancel("o") => "sealed", FREE => FREE, Now;
            Pending, cancel("o") => "ok", HELD => FREE, Now;
            Confirmed, cancel("o") => "already_confirmed", SOLD => SOLD, Before;
            Returned, cancel("o") => "already_confirmed", FREE => FREE, Before;
            Cancelled, cancel("o") => "replayed", FREE => FREE, Before;
            Sealed, cancel("o") => "replayed", FREE => FREE, Before;
            Expired, cancel("o") => "ok", HELD => FREE, Now;
            Lost, cancel("o") => "ok", FREE => FREE, Now;

            Absent, later() => "not_found", FREE => FREE, Nothing;
            Pending, later() => "ok", HELD => HELD, Now;
            Pending, extend("o", T0 + 1) => "ok", HELD => HELD, Now;
            Pending, extend("o", T0 + 15 * MINUTE) => "replayed", HELD => HELD, Before;
            Pending, extend("o", T0) => "invalid", HELD => HELD, Nothing;
            Pending, extend("o", T0 + 2_592_000_001) => "invalid", HELD => HELD, Nothing;
            Confirmed, later() => "already_confirmed", SOLD => SOLD, Before;
            Cancelled, later() => "already_cancelled", FREE => FREE, Before;
            Sealed, later() => "already_cancelled", FREE => FREE, Before;
            Expired, later() => "expired", HELD => FREE, Now;
            Lost, later() => "expired", FREE => FREE, Nothing;
        },
    );
}

#[test]
fn give_back() {
    let all = || give("r-1", "o", None);
    let some = |n: &str| give("r-1", "o", common::picks(n));
    check(
        LateConfirm::Revive,
        rows! {
            Absent, all() => "not_found", FREE => FREE, Nothing;
            Pending, all() => "not_confirmed", HELD => HELD, Before;
            Confirmed, all() => "ok", SOLD => FREE, Now;
            Confirmed, some("S*1") => "ok", SOLD => (4, 0, 1), Now;
            Confirmed, some("S*3") => "invalid", SOLD => SOLD, Nothing;
            Confirmed, some("T*1") => "invalid", SOLD => SOLD, Nothing;
            Part, some("S*2") => "invalid", (4, 0, 1) => (4, 0, 1), Nothing;
            Part, all() => "ok", (4, 0, 1) => FREE, Now;
            Returned, all() => "invalid", FREE => FREE, Nothing;
            Returned, give("r-0", "o", None) => "replayed", FREE => FREE, Before;
            Returned, give("r-0", "p", None) => "id_reused", FREE => FREE, Before;
            Cancelled, all() => "not_confirmed", FREE => FREE, Before;
            Sealed, all() => "not_confirmed", FREE => FREE, Before;
            Expired, all() => "not_confirmed", HELD => FREE, Now;
            Lost, all() => "not_confirmed", FREE => FREE, Nothing;
        },
    );
}

#[test]
fn reading() {
    let read = || Action::ShowReservation { id: id("o") };
    check(
        LateConfirm::Revive,
        rows! {
            Absent, read() => "not_found", FREE => FREE, Nothing;
            Pending, read() => "ok", HELD => HELD, Before;
            Confirmed, read() => "ok", SOLD => SOLD, Before;
            Expired, read() => "ok", HELD => FREE, Now;
            Pending, Action::ShowStock { sku: id("S") } => "ok", HELD => HELD, Before;
            Pending, Action::ShowStock { sku: id("X") } => "unknown_sku", HELD => HELD, Nothing;
        },
    );
}

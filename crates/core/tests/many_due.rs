//! Many ends that have come at once, after downtime say: no command frees all of them in one entry.

mod common;

use common::{MINUTE, T0, adjust, apply, code, confirm, id, raw, reserve, revive, supply};
use stockade_core::{Action, Decision, Millis, Reply, Shard};

const LATE: Millis = T0 + 60 * MINUTE;
const FREED_MAX: usize = 1_024;

/// A shard with so many reservations of one unit of `S`, all due at `LATE`, sealed.
fn with_due(count: usize) -> Shard {
    let mut shard = revive();
    supply(&mut shard, "S", count as u64);
    for n in 0..count {
        let held = apply(&mut shard, T0, reserve(&format!("o-{n}"), "u", "S"));
        assert_eq!(code(&held), "ok");
    }
    supply(&mut shard, "T", 1);
    shard.seal(1);
    shard
}

/// Applies it again after each entry, as an engine does; the answer, and how many entries it took.
fn until_answered(shard: &mut Shard, action: &Action) -> (Decision, usize) {
    shard.seal(5);
    let mut entries = 0;
    loop {
        let decision = apply(shard, LATE, action.clone());
        assert!(shard.unsealed() <= FREED_MAX + 1, "{}", shard.unsealed());
        if decision.reply != Reply::Again {
            return (decision, entries);
        }
        assert_eq!(decision.needs, 0);
        assert_eq!(shard.unsealed(), FREED_MAX);
        // Until the entry is sealed there is no more to be had.
        assert_eq!(apply(shard, LATE, action.clone()).reply, Reply::Again);
        assert_eq!(shard.unsealed(), FREED_MAX);
        assert!(shard.seal(7).is_some());
        entries += 1;
    }
}

fn read() -> Action {
    Action::ShowStock { sku: id("S") }
}

#[test]
fn a_stock_read_frees_them_in_bounded_steps() {
    let count = 100_000;
    let mut shard = with_due(count);
    let (shown, entries) = until_answered(&mut shard, &read());
    assert_eq!(code(&shown), "ok");
    assert_eq!(entries, count / FREED_MAX);
    assert_eq!(raw(&shard, "S"), [(100_000, 0, 0)]);
    assert_eq!(shard.live_count(), 0);
    // Swept before, it is the same answer.
    let mut swept = with_due(count);
    assert_eq!(swept.sweep(LATE, usize::MAX), count);
    assert_eq!(apply(&mut swept, LATE, read()).reply, shown.reply);
}

#[test]
fn so_does_everything_whose_answer_depends_on_them() {
    let count = 3_000;
    let due = Action::Adjust(adjust("a", "S", "default", -3_000));
    let short = Action::Reserve(reserve("p", "v", "S*3000"));
    for action in [due, short] {
        let mut shard = with_due(count);
        let (done, entries) = until_answered(&mut shard, &action);
        assert_eq!((code(&done), entries), ("ok", count / FREED_MAX), "{action:?}");
    }
    // A part of them is enough.
    let mut shard = with_due(count);
    let (done, entries) = until_answered(&mut shard, &Action::Reserve(reserve("p", "v", "S*1025")));
    assert_eq!((code(&done), entries), ("ok", 1));
    // The money of the last one came late, and somebody else has what was free.
    let (taken, _) = until_answered(&mut shard, &Action::Reserve(reserve("q", "v", "S*1975")));
    assert_eq!(code(&taken), "ok");
    let (late, _) = until_answered(&mut shard, &Action::Confirm(confirm("o-2999")));
    assert_eq!(code(&late), "expired (short)");
}

#[test]
fn what_does_not_depend_on_them_is_answered_at_once() {
    let mut shard = with_due(3_000);
    assert_eq!(apply(&mut shard, LATE, read()).reply, Reply::Again);
    let before = shard.unsealed();
    let done = apply(&mut shard, LATE, reserve("p", "v", "T"));
    assert_eq!(code(&done), "ok");
    assert_eq!(shard.unsealed(), before + 1);
}

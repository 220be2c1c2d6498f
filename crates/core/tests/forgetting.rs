//! Ids that the shard no longer holds: when they may be let go, and when the ledger's word about one counts.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use common::{T0, apply, cancel, code, command, deduct, give, id, revive, set, shown, supply};
use stockade_core::{
    Action, Count, Decision, LookedUp, Millis, Position, Record, Reply, Reservation, Shard, Space,
};

const EVERYTHING: Millis = Millis::MAX;

/// Cancels an id that never came, and closes the entry: an ended record.
fn seal(shard: &mut Shard, own: &str) -> Reservation {
    let decision = apply(shard, T0, cancel(own));
    assert_eq!(code(&decision), "sealed");
    let seq = shard.seal(shard.position().seq + 1).unwrap().seq;
    assert_eq!(decision.needs, seq);
    shown(&decision).clone()
}

fn read(own: &str) -> Action {
    Action::ShowReservation { id: id(own) }
}

fn word(shard: &Shard, own: &str, cursor: u64, record: Option<&Reservation>) -> LookedUp {
    LookedUp {
        epoch: shard.position().epoch,
        cursor,
        space: Space::Reservation,
        id: id(own),
        record: record.cloned().map(Record::Reservation),
    }
}

fn told(shard: &mut Shard, own: &str, cursor: u64, record: Option<&Reservation>) -> Decision {
    let known = word(shard, own, cursor, record);
    shard.apply_known(T0, &command(read(own)), known)
}

fn asks_for(decision: &Decision, own: &str) -> bool {
    matches!(&decision.reply, Reply::LookUp { space: Space::Reservation, id } if *id == self::id(own))
}

#[test]
fn only_what_is_recorded_is_let_go() {
    let mut shard = revive();
    seal(&mut shard, "a");
    seal(&mut shard, "b");
    assert_eq!(shard.forget(0, EVERYTHING, 0, 100), 0, "nothing is recorded");
    assert_eq!(code(&apply(&mut shard, T0, read("a"))), "ok");
    assert_eq!(
        shard.forget(1, EVERYTHING, 0, 100),
        1,
        "the first entry is recorded"
    );
    assert!(asks_for(&apply(&mut shard, T0, read("a")), "a"));
    assert_eq!(code(&apply(&mut shard, T0, read("b"))), "ok");
}

#[test]
fn a_word_from_before_the_last_change_does_not_count() {
    let mut shard = revive();
    seal(&mut shard, "a");
    let record = seal(&mut shard, "b");
    assert_eq!(shard.forget(2, EVERYTHING, 0, 100), 2);
    // The ledger was read before "b" was in it.
    assert!(asks_for(&told(&mut shard, "b", 1, None), "b"));
    let other_epoch = LookedUp {
        epoch: 7,
        ..word(&shard, "b", 2, None)
    };
    assert!(asks_for(
        &shard.apply_known(T0, &command(read("b")), other_epoch),
        "b"
    ));
    let late = told(&mut shard, "b", 2, Some(&record));
    assert_eq!(code(&late), "ok");
    assert_eq!(shown(&late), &record);
}

#[test]
fn after_opening_only_a_word_from_then_on_counts() {
    let mut shard = revive();
    let at = Position {
        epoch: 3,
        seq: 9,
        tag: 5,
    };
    shard.open(at, T0);
    assert!(asks_for(&told(&mut shard, "a", 8, None), "a"));
    assert_eq!(code(&told(&mut shard, "a", 9, None)), "not_found");
}

#[test]
fn an_id_once_absent_is_asked_for_again_when_it_may_have_come() {
    let mut shard = revive();
    let at = Position {
        epoch: 1,
        seq: 4,
        tag: 5,
    };
    shard.open(at, T0);
    // Two words out of order: the later one stands first among what is remembered.
    assert_eq!(code(&told(&mut shard, "other", 6, None)), "not_found");
    assert_eq!(code(&told(&mut shard, "a", 4, None)), "not_found");
    // Now it comes, ends, is recorded and forgotten.
    let record = seal(&mut shard, "a");
    assert_eq!(shard.forget(5, EVERYTHING, 0, 100), 1);
    assert!(asks_for(&apply(&mut shard, T0, read("a")), "a"));
    assert_eq!(shown(&told(&mut shard, "a", 5, Some(&record))), &record);
}

#[test]
fn replays_of_stock_commands_and_returns_wait_for_their_entry() {
    let mut shard = revive();
    supply(&mut shard, "S", 5);
    apply(&mut shard, T0, deduct("o", "u", "S*2"));
    let count = || set("c", "S", "default", 9, Count::Force);
    assert_eq!(apply(&mut shard, T0, count()).needs, 1);
    assert_eq!(apply(&mut shard, T0, give("r", "o", None)).needs, 1);
    // Not recorded yet, and so no replay may show it.
    let replay = apply(&mut shard, T0, count());
    assert_eq!((code(&replay), replay.needs), ("replayed", 1));
    let reused = apply(&mut shard, T0, set("c", "S", "default", 8, Count::Force));
    assert_eq!((code(&reused), reused.needs), ("id_reused", 1));
    let replay = apply(&mut shard, T0, give("r", "o", None));
    assert_eq!((code(&replay), replay.needs), ("replayed", 1));
    let reused = apply(&mut shard, T0, give("r", "p", None));
    assert_eq!((code(&reused), reused.needs), ("id_reused", 1));
}

#[test]
fn an_id_is_one_of_its_own_tenant_and_kind() {
    let mut shard = revive();
    let at = Position {
        epoch: 1,
        seq: 4,
        tag: 5,
    };
    shard.open(at, T0);
    assert_eq!(code(&told(&mut shard, "a", 4, None)), "not_found");
    // Absent as a reservation says nothing of a return or of another tenant's reservation.
    let mut elsewhere = command(read("a"));
    elsewhere.tenant = id("another");
    assert!(asks_for(&shard.apply(T0, &elsewhere), "a"));
    let returned = apply(&mut shard, T0, give("a", "o", None));
    assert!(matches!(
        returned.reply,
        Reply::LookUp {
            space: Space::Return,
            ..
        }
    ));
}

//! What random lists do not meet: a shard that is not what the caller takes it for, damage by hand, many ends at once,
//! large batches, a rebuild's second run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{at, base, done, hot, id, live, open_empty, sku, stale};
use stockade_core::{
    Action, AskLine, Cancel, Command, Confirm, Done, DoneCode, Id, LateConfirm, Mode, Reason, Refusal, Reply,
    Reservation, Reserve, Status, Subject, payload,
};
use stockade_redis::{Asked, Batch, Chunk, Decided, Hot, Reran, Rerun, Sent, Stale, Verdict};
use stockade_testkit::redis::Server;

const RESERVATIONS: &str = "{stockade:0}:1:reservations";
const SKU: &str = "{stockade:0}:1:sku:S";

fn sent(tag: u64, now: Option<i64>) -> Sent {
    Sent {
        epoch: 1,
        tag,
        now,
        late_confirm: LateConfirm::Revive,
    }
}

fn command(action: Action) -> Command {
    Command {
        tenant: Id::default_name(),
        actor: id("test"),
        action,
    }
}

fn reserve(name: &str, of: &str, quantity: u64, ttl_ms: i64) -> Command {
    let line = AskLine {
        sku: id(of),
        quantity,
        location: None,
        if_revision: None,
    };
    command(Action::Reserve(Reserve {
        id: id(name),
        owner: id("u"),
        mode: Mode::Reserve,
        ttl_ms,
        lines: [line].into_iter().collect(),
        supersedes: None,
    }))
}

fn show(name: &str) -> Command {
    command(Action::ShowReservation { id: id(name) })
}

fn show_stock(name: &str) -> Command {
    command(Action::ShowStock { sku: id(name) })
}

async fn decide(hot: &Hot, sent: &Sent, commands: &[Command]) -> Decided<Batch> {
    let asked: Vec<Asked<'_>> = commands
        .iter()
        .map(|command| Asked {
            command,
            known: &[],
            absent: &[],
        })
        .collect();
    hot.decide(sent, &asked).await.unwrap()
}

/// An open shard with these SKUs of so many units.
async fn shard(skus: &[(&str, u64)]) -> (Server, Hot) {
    let server = Server::start();
    let hot = hot(&server).await;
    let chunk = Chunk {
        skus: skus.iter().map(|(name, units)| sku(name, *units, 0)).collect(),
        ..Chunk::default()
    };
    hot.fence(1).await.unwrap();
    assert!(hot.base(&base(1, 0, 0)).await.unwrap());
    assert!(hot.chunk(1, 1, &chunk).await.unwrap());
    assert!(hot.open(1, 1).await.unwrap());
    (server, hot)
}

fn reservation(verdict: &Verdict) -> &Reservation {
    match verdict {
        Verdict::Reply(Reply::Done(Done {
            subject: Subject::Reservation(reservation),
            ..
        })) => reservation,
        other => panic!("{other:?}"),
    }
}

fn is_ok(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Reply(Reply::Done(Done {
            code: DoneCode::Ok,
            ..
        }))
    )
}

fn is_short(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Reply(Reply::Refused(Refusal::InsufficientStock(_)))
    )
}

#[tokio::test]
async fn a_shard_that_is_another_one_takes_nothing() {
    let server = Server::start();
    let hot = hot(&server).await;
    let orders = [reserve("r", "S", 1, 60_000)];
    assert_eq!(stale(decide(&hot, &sent(7, None), &orders).await), Stale::NoMeta);
    hot.fence(1).await.unwrap();
    assert!(hot.base(&base(1, 0, 0)).await.unwrap());
    let closed = Stale::Closed { found: 1 };
    assert_eq!(stale(decide(&hot, &sent(7, None), &orders).await), closed);
    assert_eq!(stale(hot.sweep(&sent(7, None), 5).await.unwrap()), closed);
    assert!(hot.open(1, 0).await.unwrap());
    // What runs in a rebuild does not run on an open shard.
    let again = [Rerun::Reserve(live("r", "S", 9_000))];
    assert_eq!(stale(hot.rerun(&sent(7, None), &again).await.unwrap()), closed);
    open_empty(&hot, &base(2, 0, 0)).await;
    let newer = Stale::Epoch { found: 2 };
    assert_eq!(stale(decide(&hot, &sent(7, None), &orders).await), newer);
    server.run::<i64>(&["HSET", "{stockade:0}:meta", "seq", "1e3"]);
    let two = Sent {
        epoch: 2,
        ..sent(7, None)
    };
    assert_eq!(stale(decide(&hot, &two, &orders).await), Stale::Damaged);
}

#[tokio::test]
async fn what_is_of_another_type_stops_a_call_before_its_first_write() {
    let now = Some(1_767_000_000_000);
    for (key, all) in [
        (RESERVATIONS.to_owned(), true),
        ("{stockade:0}:1:outbox".to_owned(), false),
        ("{stockade:0}:1:ends".to_owned(), false),
        // The bucket that the order's end belongs into.
        ("{stockade:0}:1:end:1767000060".to_owned(), false),
    ] {
        let (server, hot) = shard(&[("S", 5)]).await;
        server.run::<i64>(&["DEL", &key]);
        server.run::<()>(&["SET", &key, "text"]);
        let before = common::dump(&server);
        let orders = [reserve("r", "S", 1, 60_000)];
        assert_eq!(
            stale(decide(&hot, &sent(7, now), &orders).await),
            Stale::Damaged,
            "{key}"
        );
        assert_eq!(common::dump(&server), before, "{key}");
        let read = decide(&hot, &sent(8, now), &[show_stock("S")]).await;
        assert_eq!(
            matches!(read, Decided::Stale(Stale::Damaged)),
            all,
            "{key}: {read:?}"
        );
    }
    // A reservation taken away by hand is seen by the count.
    let (server, hot) = shard(&[("S", 5)]).await;
    done(decide(&hot, &sent(7, now), &[reserve("r", "S", 1, 60_000)]).await);
    server.run::<i64>(&["HDEL", RESERVATIONS, "r"]);
    assert_eq!(
        stale(decide(&hot, &sent(8, now), &[show_stock("S")]).await),
        Stale::Damaged
    );
}

#[tokio::test]
async fn a_damaged_sku_is_named_and_others_go_on() {
    for (field, text) in [
        ("location:default", "0x10"),
        (
            "location:default",
            "on_hand=05 reserved=0 sold=0 safety_stock=0 version=1",
        ),
        (
            "location:default",
            "on_hand=1 reserved=2 sold=0 safety_stock=0 version=1",
        ),
        (
            "location:default",
            "on_hand=9007199254740992 reserved=0 sold=0 safety_stock=0 version=1",
        ),
        ("revision", "1e3"),
        ("locations", "default\nW1"),
        ("limit_per_owner", "5"),
        ("onhand", "5"),
        ("paused", "yes"),
    ] {
        let (server, hot) = shard(&[("S", 5), ("T", 5)]).await;
        server.run::<i64>(&["HSET", SKU, field, text]);
        let orders = [reserve("r1", "S", 1, 60_000), reserve("r2", "T", 1, 60_000)];
        let batch = done(decide(&hot, &sent(7, None), &orders).await);
        match &batch.verdicts[0] {
            Verdict::Corrupt { key, sku, .. } => assert_eq!((key.as_str(), sku), (SKU, &Some(id("S")))),
            other => panic!("{field} {text}: {other:?}"),
        }
        assert!(is_ok(&batch.verdicts[1]), "{field} {text}");
        let stock: String = server.run(&["HGET", SKU, field]);
        assert_eq!(stock, text, "it stays as it is until it is loaded again");
    }
    // Of another type altogether.
    let (server, hot) = shard(&[("S", 5)]).await;
    server.run::<i64>(&["DEL", SKU]);
    server.run::<()>(&["SET", SKU, "5"]);
    let batch = done(decide(&hot, &sent(7, None), &[show_stock("S")]).await);
    assert!(matches!(batch.verdicts[0], Verdict::Corrupt { .. }), "{batch:?}");
}

#[tokio::test]
async fn a_damaged_reservation_is_named_and_others_go_on() {
    let now = Some(1_767_000_000_000);
    let (server, hot) = shard(&[("S", 5)]).await;
    let orders = [reserve("r1", "S", 1, 60_000), reserve("r2", "S", 1, 60_000)];
    done(decide(&hot, &sent(7, now), &orders).await);
    server.run::<i64>(&["HSET", RESERVATIONS, "r1", "held:1:5"]);
    let cancel = |name: &str| {
        command(Action::Cancel(Cancel {
            id: id(name),
            reason: Reason::default(),
        }))
    };
    let batch = done(decide(&hot, &sent(8, now), &[cancel("r1"), cancel("r2")]).await);
    match &batch.verdicts[0] {
        Verdict::Corrupt { key, sku: None, .. } => assert_eq!(key, RESERVATIONS),
        other => panic!("{other:?}"),
    }
    assert_eq!(reservation(&batch.verdicts[1]).status, Status::Cancelled);
    // One that still looks pending does not hold the sweeper up.
    let orders = [reserve("r3", "S", 1, 60_000)];
    done(decide(&hot, &sent(9, now), &orders).await);
    server.run::<i64>(&["HSET", RESERVATIONS, "r1", "pending"]);
    let later = Some(1_767_000_090_000);
    let swept = done(hot.sweep(&sent(10, later), 100).await.unwrap());
    assert_eq!((swept.ended, swept.live), (1, 1));
}

#[tokio::test]
async fn an_answer_that_needs_many_ends_is_given_in_bounded_steps() {
    let t = 1_767_000_000_000;
    let (server, hot) = shard(&[("S", 600), ("T", 5)]).await;
    let orders: Vec<Command> = (0..600)
        .map(|n| reserve(&format!("r{n}"), "S", 1, 1_000 + n))
        .collect();
    let batch = done(decide(&hot, &sent(7, Some(t)), &orders).await);
    assert!(batch.verdicts.iter().all(is_ok));
    let all = [reserve("all", "S", 600, 60_000)];
    let batch = done(decide(&hot, &sent(8, Some(t + 999)), &all).await);
    assert!(is_short(&batch.verdicts[0]), "{batch:?}");
    // The first 301 are due, to the millisecond.
    let mut tries = 0;
    let some = [
        reserve("some", "S", 301, 60_000),
        reserve("other", "T", 1, 60_000),
    ];
    loop {
        let batch = done(decide(&hot, &sent(9 + tries, Some(t + 1_300)), &some[..1]).await);
        tries += 1;
        match &batch.verdicts[0] {
            Verdict::Reply(Reply::Again) => assert!(batch.wrote, "each try frees some"),
            verdict => {
                assert!(is_ok(verdict), "{verdict:?}");
                break;
            }
        }
    }
    assert!((2..5).contains(&tries), "{tries}");
    let one = [reserve("one", "S", 1, 60_000)];
    let batch = done(decide(&hot, &sent(20, Some(t + 1_300)), &one).await);
    assert!(is_short(&batch.verdicts[0]), "{batch:?}");
    let mut ended = 0;
    for tag in 30.. {
        let swept = done(hot.sweep(&sent(tag, Some(t + 2_000)), 100).await.unwrap());
        ended += swept.ended;
        if !swept.more {
            assert_eq!(swept.live, 1);
            break;
        }
    }
    assert_eq!(ended, 299);
    let left: i64 = server.run(&[
        "EXISTS",
        "{stockade:0}:1:end:1767000001",
        "{stockade:0}:1:end:1767000002",
    ]);
    assert_eq!(left, 0, "buckets that were swept are gone");
    let seconds: Vec<String> = server.run(&["ZRANGE", "{stockade:0}:1:ends", "0", "-1"]);
    assert_eq!(seconds, ["1767000062"]);
}

#[tokio::test]
async fn ends_of_a_sku_that_is_not_held_wait_and_are_told() {
    let t = 1_767_000_000_000;
    let (server, hot) = shard(&[("S", 5), ("T", 5)]).await;
    let orders = [reserve("r1", "S", 1, 1_000), reserve("r2", "T", 1, 1_000)];
    done(decide(&hot, &sent(7, Some(t)), &orders).await);
    let fields: Vec<String> = server.run(&["HGETALL", SKU]);
    server.run::<i64>(&["DEL", SKU]);
    let swept = done(hot.sweep(&sent(8, Some(t + 5_000)), 100).await.unwrap());
    assert_eq!((swept.ended, swept.live), (1, 1));
    assert_eq!(swept.missing, [(Id::default_name(), id("S"))]);
    // A command about it says what to load.
    let batch = done(decide(&hot, &sent(9, Some(t + 5_000)), &[show("r1")]).await);
    assert_eq!(batch.verdicts, [Verdict::Missing(vec![id("S")])]);
    let mut words = vec!["HSET", SKU];
    words.extend(fields.iter().map(String::as_str));
    server.run::<i64>(&words);
    let swept = done(hot.sweep(&sent(10, Some(t + 6_001)), 100).await.unwrap());
    assert_eq!((swept.ended, swept.live, swept.missing.len()), (1, 0, 0));
}

#[tokio::test]
async fn thousands_in_one_batch_do_not_overrun_the_stack() {
    let (server, hot) = shard(&[("S", 100_000)]).await;
    let orders: Vec<Command> = (0..9_000)
        .map(|n| reserve(&format!("r{n}"), "S", 1, 900_000))
        .collect();
    let batch = done(decide(&hot, &sent(7, None), &orders).await);
    assert!(batch.verdicts.iter().all(is_ok));
    let (tip, entry) = match hot.read(1, 1, 5).await.unwrap() {
        Decided::Done { tip, value, .. } => (tip, value),
        Decided::Stale(stale) => panic!("{stale:?}"),
    };
    assert_eq!((tip, entry[0].effects.len()), (at(1, 1, 7), 9_000));
    let confirms: Vec<Command> = (0..9_000)
        .map(|n| {
            command(Action::Confirm(Confirm {
                id: id(&format!("r{n}")),
                lines: None,
                payload: None,
            }))
        })
        .collect();
    let batch = done(decide(&hot, &sent(8, None), &confirms).await);
    assert!(batch.verdicts.iter().all(is_ok));
    let stock: String = server.run(&["HGET", SKU, "location:default"]);
    assert_eq!(
        stock,
        "on_hand=91000 reserved=0 sold=9000 safety_stock=0 version=18001"
    );
}

#[tokio::test]
async fn the_largest_counts_stay_exact() {
    let most = stockade_core::QUANTITY_MAX;
    let (server, hot) = shard(&[("S", most)]).await;
    let orders = [
        reserve("r1", "S", most - 1, 60_000),
        reserve("r2", "S", 2, 60_000),
        reserve("r3", "S", 1, 60_000),
    ];
    let batch = done(decide(&hot, &sent(7, None), &orders).await);
    assert!(is_ok(&batch.verdicts[0]) && is_short(&batch.verdicts[1]) && is_ok(&batch.verdicts[2]));
    let stock: String = server.run(&["HGET", SKU, "location:default"]);
    let exact = "on_hand=9007199254740991 reserved=9007199254740991 sold=0 safety_stock=0 version=3";
    assert_eq!(stock, exact);
}

#[tokio::test]
async fn time_is_the_servers_and_never_runs_back() {
    let (_server, hot) = shard(&[("S", 5)]).await;
    let server_time = hot.time().await.unwrap();
    let batch = done(decide(&hot, &sent(7, None), &[reserve("r1", "S", 1, 60_000)]).await);
    assert!(reservation(&batch.verdicts[0]).granted_at >= server_time);
    let ahead = server_time + 3_600_000;
    done(decide(&hot, &sent(8, Some(ahead)), &[show_stock("S")]).await);
    let batch = done(decide(&hot, &sent(9, None), &[reserve("r2", "S", 1, 60_000)]).await);
    assert_eq!(reservation(&batch.verdicts[0]).granted_at, ahead);
}

#[tokio::test]
async fn ends_and_cancels_free_units_between_survivors() {
    let server = Server::start();
    let hot = hot(&server).await;
    let t = 1_767_000_000_000;
    hot.fence(1).await.unwrap();
    assert!(hot.base(&base(1, 4, 9)).await.unwrap());
    let chunk = Chunk {
        skus: vec![sku("S", 1, 0), sku("T", 1, 1), sku("U", 1, 1)],
        live: vec![live("t1", "T", t - 2_000), live("u1", "U", t + 60_000)],
        ..Chunk::default()
    };
    assert!(hot.chunk(1, 1, &chunk).await.unwrap());
    // Each of the later ones was granted what the earlier one gave back, by its end or by a cancel.
    let again = [
        Rerun::Reserve(live("s1", "S", t - 1_000)),
        Rerun::Reserve(live("s2", "S", t + 60_000)),
        Rerun::Reserve(live("t2", "T", t + 60_000)),
        Rerun::Cancel(live("u1", "U", t + 60_000)),
        Rerun::Reserve(live("u2", "U", t + 60_000)),
        // Recorded as lost, and granted to its caller's retry.
        Rerun::Regain(live("u3", "U", t + 60_000)),
    ];
    let reran = done(hot.rerun(&sent(7, Some(t)), &again).await.unwrap());
    assert_eq!(reran.done, again.len());
    let lost: Vec<_> = reran.lost.iter().map(|lost| lost.id.as_str()).collect();
    assert_eq!(lost, ["u3"]);
    assert!(hot.open(1, 1).await.unwrap());
    let again = [
        Rerun::Cancel(live("u2", "U", t + 60_000)),
        Rerun::Regain(live("u3", "U", t + 60_000)),
    ];
    hot.fence(2).await.unwrap();
    assert!(hot.base(&base(2, 4, 9)).await.unwrap());
    let chunk = Chunk {
        skus: vec![sku("U", 1, 1)],
        live: vec![live("u2", "U", t + 60_000)],
        ..Chunk::default()
    };
    assert!(hot.chunk(2, 1, &chunk).await.unwrap());
    let two = |tag| Sent {
        epoch: 2,
        ..sent(tag, Some(t))
    };
    let reran = done(hot.rerun(&two(8), &again).await.unwrap());
    assert_eq!((reran.done, reran.lost.len()), (2, 0));
    assert!(
        hot.open(2, 1).await.unwrap(),
        "every reservation there is counted"
    );
    let entries = done(hot.read(2, 5, 10).await.unwrap());
    let earlier: Vec<_> = entries[0]
        .effects
        .iter()
        .map(|effect| match &effect.change {
            stockade_core::Change::Reservation { before, .. } => *before,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(earlier, [Some(Status::Pending), Some(Status::Lost)]);
}

#[tokio::test]
async fn survivors_are_run_again_with_their_own_ends_or_are_lost() {
    let server = Server::start();
    let hot = hot(&server).await;
    let t = 1_767_000_000_000;
    hot.fence(1).await.unwrap();
    assert!(hot.base(&base(1, 4, 9)).await.unwrap());
    let mut paused = sku("P", 5, 0);
    paused.settings.paused = true;
    paused.settings.limit_per_owner = Some(1);
    let chunk = Chunk {
        skus: vec![sku("S", 2, 0), paused],
        ..Chunk::default()
    };
    assert!(hot.chunk(1, 1, &chunk).await.unwrap());
    let grant = |name: &str, of: &str, quantity: u64, ends_at| {
        let mut grant = live(name, of, ends_at);
        grant.granted_at = t - 5_000;
        grant.lines[0].allocations[0].quantity = quantity;
        let Action::Reserve(asked) = reserve(name, of, quantity, 60_000).action else {
            unreachable!()
        };
        grant.owner = Some(asked.owner.clone());
        grant.digest = payload::reservation(asked.mode, &asked.owner, &asked.lines).unwrap();
        grant
    };
    let again = [
        Rerun::Reserve(grant("r1", "S", 1, t + 60_000)),
        Rerun::Reserve(grant("r2", "S", 2, t + 60_000)),
        // Neither window nor limit is asked once more.
        Rerun::Reserve(grant("r3", "P", 2, t + 60_000)),
        Rerun::Extend(grant("r1", "S", 1, t + 90_000)),
        // Its end has come meanwhile.
        Rerun::Reserve(grant("r4", "S", 1, t - 1_000)),
        Rerun::Extend(grant("r9", "S", 1, t + 90_000)),
    ];
    let Reran { lost, .. } = done(hot.rerun(&sent(7, Some(t)), &again).await.unwrap());
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].id.as_str(), lost[0].status), ("r2", Status::Lost));
    // Sent again, it changes nothing, but that r4 makes room when r2 is tried.
    let meta: Vec<String> = server.run(&["HMGET", "{stockade:0}:meta", "seq", "live", "count"]);
    assert_eq!(meta, ["5", "3", "4"]);
    let Reran { lost, .. } = done(hot.rerun(&sent(8, Some(t)), &again).await.unwrap());
    assert_eq!(lost.len(), 1);
    let same: Vec<String> = server.run(&["HMGET", "{stockade:0}:meta", "seq", "live", "count"]);
    assert_eq!(same, ["6", "2", "4"]);
    assert!(hot.open(1, 1).await.unwrap());
    let shown = [show("r1"), show("r2"), show("r3"), show("r4")];
    let batch = done(decide(&hot, &sent(9, Some(t)), &shown).await);
    let states: Vec<_> = batch
        .verdicts
        .iter()
        .map(|verdict| (reservation(verdict).status, reservation(verdict).ends_at - t))
        .collect();
    assert_eq!(
        states,
        [
            (Status::Pending, 90_000),
            (Status::Lost, 60_000),
            (Status::Pending, 60_000),
            (Status::Expired, -1_000),
        ]
    );
    assert_eq!(reservation(&batch.verdicts[0]).granted_at, t - 5_000);
    // What was lost is granted to the caller's own retry when it fits again.
    let retry = [reserve("r2", "S", 2, 60_000)];
    let batch = done(decide(&hot, &sent(10, Some(t)), &retry).await);
    assert!(is_short(&batch.verdicts[0]), "{batch:?}");
    let cancel = command(Action::Cancel(Cancel {
        id: id("r1"),
        reason: Reason::default(),
    }));
    done(decide(&hot, &sent(11, Some(t)), &[cancel]).await);
    let batch = done(decide(&hot, &sent(12, Some(t)), &retry).await);
    assert!(is_ok(&batch.verdicts[0]), "{batch:?}");
    let other = [reserve("r2", "S", 1, 60_000)];
    let batch = done(decide(&hot, &sent(13, Some(t)), &other).await);
    assert_eq!(
        batch.verdicts,
        [Verdict::Reply(Reply::Refused(Refusal::IdReused))]
    );
    // One entry for the second run, one for the end that was found, one for the cancel and one for the retry.
    let entries = done(hot.read(1, 5, 9).await.unwrap());
    assert_eq!(entries.len(), 4);
    assert_eq!(entries[0].prev, 9);
}

#[tokio::test]
async fn what_frees_still_works_when_memory_is_full() {
    let (server, hot) = shard(&[("S", 5)]).await;
    let order = [reserve("r1", "S", 1, 60_000), reserve("r2", "S", 1, 60_000)];
    done(decide(&hot, &sent(7, None), &order).await);
    hot.load_scripts().await.unwrap();
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let asked = [Asked {
        command: &reserve("r3", "S", 1, 60_000),
        known: &[],
        absent: &[],
    }];
    let error = hot.decide(&sent(8, None), &asked).await.unwrap_err().to_string();
    assert!(error.contains("OOM") || error.contains("memory"), "{error}");
    let cancel = command(Action::Cancel(Cancel {
        id: id("r1"),
        reason: Reason::default(),
    }));
    let batch = done(decide(&hot, &sent(9, None), &[cancel]).await);
    assert!(is_ok(&batch.verdicts[0]));
    let confirm = command(Action::Confirm(Confirm {
        id: id("r2"),
        lines: None,
        payload: None,
    }));
    let batch = done(decide(&hot, &sent(10, None), &[confirm]).await);
    assert!(is_ok(&batch.verdicts[0]));
    done(hot.sweep(&sent(11, None), 10).await.unwrap());
}

//! A node from one epoch to the next, with real decisions: the outbox is read as a chain, trimmed, fenced; what survived
//! is found in order, run again, and the new epoch opened.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{at, base, done, hot, id, live, sent, sku, stale};
use stockade_core::{Action, AskLine, Change, Command, Entry, Id, LookedUp, Mode, Reply, Reserve, Space};
use stockade_redis::{Asked, Batch, Chunk, Decided, Fenced, Hot, Rerun, Sent, Stale, Verdict};
use stockade_testkit::redis::Server;

fn reserve(name: &str, of: &str) -> Command {
    Command {
        tenant: Id::default_name(),
        actor: id("test"),
        action: Action::Reserve(Reserve {
            id: id(name),
            owner: id("owner"),
            mode: Mode::Reserve,
            ttl_ms: 600_000,
            lines: [AskLine {
                sku: id(of),
                quantity: 1,
                location: None,
                if_revision: None,
            }]
            .into_iter()
            .collect(),
            supersedes: None,
        }),
    }
}

/// With the ledger's word that it does not know the id.
async fn decide(hot: &Hot, epoch: u64, tag: u64, command: &Command) -> Decided<Batch> {
    let Action::Reserve(reserve) = &command.action else {
        panic!("{command:?}")
    };
    let known = [LookedUp {
        epoch,
        cursor: 1_000_000,
        space: Space::Reservation,
        id: reserve.id.clone(),
        record: None,
    }];
    let asked = [Asked {
        command,
        known: &known,
        absent: &[],
    }];
    hot.decide(&sent(epoch, tag), &asked).await.unwrap()
}

async fn granted(hot: &Hot, epoch: u64, tag: u64, name: &str, of: &str) {
    let batch = done(decide(hot, epoch, tag, &reserve(name, of)).await);
    assert!(
        matches!(&batch.verdicts[..], [Verdict::Reply(Reply::Done(_))]),
        "{batch:?}"
    );
}

async fn opened(hot: &Hot, epoch: u64, seq: u64, tag: u64, chunk: &Chunk) {
    assert_eq!(hot.fence(epoch).await.unwrap(), Fenced::Closed);
    assert!(hot.base(&base(epoch, seq, tag)).await.unwrap());
    assert!(hot.chunk(epoch, 1, chunk).await.unwrap());
    assert!(hot.open(epoch, 1).await.unwrap());
}

fn links(entries: &[Entry]) -> Vec<(u64, u64, u64, u64)> {
    let link = |entry: &Entry| (entry.epoch, entry.seq, entry.prev, entry.tag);
    entries.iter().map(link).collect()
}

fn granted_in(entry: &Entry) -> String {
    let [effect] = &entry.effects[..] else {
        panic!("{entry:?}")
    };
    let Change::Reservation { after, .. } = &effect.change else {
        panic!("{entry:?}")
    };
    after.id.as_str().to_owned()
}

#[tokio::test]
async fn the_outbox_is_read_as_a_chain_from_any_entry_on() {
    let server = Server::start();
    let hot = hot(&server).await;
    let chunk = Chunk {
        skus: vec![sku("A", 100, 0)],
        ..Chunk::default()
    };
    opened(&hot, 2, 10, 100, &chunk).await;
    for n in 1..=5 {
        granted(&hot, 2, 1_000 + n, &format!("r{n}"), "A").await;
    }
    let chain = [
        (2, 10, 0, 100),
        (2, 11, 100, 1_001),
        (2, 12, 1_001, 1_002),
        (2, 13, 1_002, 1_003),
        (2, 14, 1_003, 1_004),
        (2, 15, 1_004, 1_005),
    ];
    let read = async |from, count| links(&done(hot.read(2, from, count).await.unwrap()));
    assert_eq!(read(10, 100).await, chain, "the base stands for the entry before");
    assert_eq!(read(10, 3).await, chain[..3]);
    assert_eq!(read(12, 2).await, chain[2..4]);
    assert_eq!(read(16, 100).await, []);
    assert_eq!(
        read(9, 100).await,
        chain[1..],
        "that one is not here any more: the caller sees the gap"
    );
    let Decided::Done { tip, value, .. } = hot.read(2, 11, 100).await.unwrap() else {
        panic!()
    };
    assert_eq!(tip, at(2, 15, 1_005));
    assert_eq!(granted_in(&value[0]), "r1");
    assert_eq!(value[0].effects[0].moves[0].after.reserved, 1);
    assert!(hot.trim(at(2, 13, 1_003)).await.unwrap());
    assert_eq!(read(13, 100).await, [(2, 13, 0, 1_003), chain[4], chain[5]]);
    assert_eq!(done(hot.backlog(2).await.unwrap()).entries, 2);

    // Somebody writes into the outbox: what is not an entry is no entry, and says so.
    server.run::<String>(&["XADD", "{stockade:0}:2:outbox", "2-16", "tag", "x", "e", "y"]);
    let error = hot.read(2, 14, 100).await.unwrap_err();
    assert!(error.to_string().contains("read"), "{error}");
}

#[tokio::test]
async fn what_survived_is_found_oldest_first_and_run_again() {
    let server = Server::start();
    let hot = hot(&server).await;
    let chunk = |reserved, live| Chunk {
        skus: vec![sku("A", 5_000, reserved)],
        live,
        ..Chunk::default()
    };
    opened(&hot, 2, 0, 0, &chunk(0, vec![])).await;
    // More than one reply holds.
    for n in 1..=1_100 {
        granted(&hot, 2, n, &format!("two-{n}"), "A").await;
    }
    assert!(hot.trim(at(2, 50, 50)).await.unwrap());
    opened(&hot, 10, 50, 50, &chunk(0, vec![])).await;
    for n in 1..=3 {
        granted(&hot, 10, 2_000 + n, &format!("ten-{n}"), "A").await;
    }
    server.run::<String>(&["XADD", "{stockade:0}:2:outbox", "2-2000", "tag", "x"]);
    server.run::<String>(&["SET", "{stockade:0}:7:outbox", "x"]);
    server.run::<i64>(&["SADD", "{stockade:0}:epochs", "7", "x", "99"]);

    assert_eq!(hot.fence(11).await.unwrap(), Fenced::Closed);
    let found: Vec<Entry> = done(hot.survivors(11).await.unwrap())
        .into_iter()
        .map(|survivor| survivor.entry)
        .collect();
    let mut expected: Vec<_> = (51..=1_100).map(|n| (2, n, n - 1, n)).collect();
    expected.extend([
        (10, 51, 50, 2_001),
        (10, 52, 2_001, 2_002),
        (10, 53, 2_002, 2_003),
    ]);
    assert_eq!(links(&found), expected);
    assert_eq!(granted_in(found.last().unwrap()), "ten-3");
    assert_eq!(
        stale(hot.survivors(10).await.unwrap()),
        Stale::Epoch { found: 11 }
    );

    // A process that slept through it neither decides nor records.
    assert_eq!(
        stale(decide(&hot, 10, 9, &reserve("late", "A")).await),
        Stale::Epoch { found: 11 }
    );
    assert_eq!(
        stale(decide(&hot, 11, 9, &reserve("late", "A")).await),
        Stale::Closed { found: 11 }
    );
    assert!(!hot.trim(at(10, 52, 2_002)).await.unwrap());

    // The ledger had recorded up to (10, 51): one live reservation, and two grants to be run again.
    assert!(hot.base(&base(11, 51, 2_001)).await.unwrap());
    let ends_at = i64::MAX / 2_000_000;
    let loaded = chunk(1, vec![live("ten-1", "A", ends_at)]);
    assert!(hot.chunk(11, 1, &loaded).await.unwrap());
    let again: Vec<Rerun> = found[found.len() - 2..]
        .iter()
        .map(|entry| match &entry.effects[0].change {
            Change::Reservation { after, .. } => Rerun::Reserve(after.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    let reran = done(hot.rerun(&sent(11, 3_000), &again).await.unwrap());
    assert!(reran.done == 2 && reran.lost.is_empty(), "{reran:?}");
    assert!(hot.open(11, 1).await.unwrap());
    assert!(hot.drop_older(11).await.unwrap() > 5);
    let left: Vec<String> = server.run(&["KEYS", "{stockade:0}:[0-9]*"]);
    assert!(
        left.iter().all(|key| key.starts_with("{stockade:0}:11:")),
        "{left:?}"
    );
    assert_eq!(
        links(&done(hot.read(11, 51, 10).await.unwrap())),
        [(11, 51, 0, 2_001), (11, 52, 2_001, 3_000)]
    );
    // They are known: the same commands again are replays.
    for name in ["ten-2", "ten-3"] {
        let batch = done(decide(&hot, 11, 5_000, &reserve(name, "A")).await);
        assert!(!batch.wrote, "{batch:?}");
        assert!(
            matches!(&batch.verdicts[..], [Verdict::Reply(Reply::Done(_))]),
            "{batch:?}"
        );
    }
    let stock: String = server.run(&["HGET", "{stockade:0}:11:sku:A", "location:default"]);
    assert!(stock.starts_with("on_hand=5000 reserved=3 "), "{stock}");
}

#[tokio::test]
async fn a_survivor_waits_for_as_many_calls_as_freeing_takes_and_is_not_overtaken() {
    let server = Server::start();
    let hot = hot(&server).await;
    let t = 1_767_000_000_000;
    assert_eq!(hot.fence(2).await.unwrap(), Fenced::Closed);
    assert!(hot.base(&base(2, 4, 9)).await.unwrap());
    let chunk = Chunk {
        skus: vec![sku("A", 1_000, 1_000)],
        live: (0..1_000)
            .map(|n| live(&format!("over-{n}"), "A", t - 5_000))
            .collect(),
        ..Chunk::default()
    };
    assert!(hot.chunk(2, 1, &chunk).await.unwrap());
    let grant = |name: &str, units| {
        let mut grant = live(name, "A", t + 60_000);
        grant.lines[0].allocations[0].quantity = units;
        Rerun::Reserve(grant)
    };
    let again = [grant("large", 999), grant("r1", 1), grant("r2", 1)];
    let (mut left, mut lost) = (&again[..], Vec::new());
    let mut calls = 0;
    while !left.is_empty() {
        calls += 1;
        assert!(calls < 20, "{left:?}");
        let sent = Sent {
            now: Some(t),
            ..sent(2, 100 + calls)
        };
        let mut reran = done(hot.rerun(&sent, left).await.unwrap());
        left = &left[reran.done..];
        lost.append(&mut reran.lost);
    }
    assert!(calls > 2, "a call frees so many");
    let lost: Vec<_> = lost.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(lost, ["r2"]);
    let stock: String = server.run(&["HGET", "{stockade:0}:2:sku:A", "location:default"]);
    assert!(stock.starts_with("on_hand=1000 reserved=1000 "), "{stock}");
    assert!(hot.open(2, 1).await.unwrap());
}

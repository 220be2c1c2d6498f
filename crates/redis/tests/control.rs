//! The contract of each control script, on a real server: what it does, what it does when sent twice, out of order, by a
//! process of another epoch, and on a node that was emptied or damaged.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{add_entry, at, base, done, dump, hot, id, live, open_empty, sent, sku, stale};
use stockade_core::{Id, Position};
use stockade_redis::{Chunk, Fenced, Marked, Stale, Token};
use stockade_testkit::redis::Server;

#[tokio::test]
async fn a_fence_only_goes_up_and_is_the_only_thing_that_makes_meta() {
    let server = Server::start();
    let hot = hot(&server).await;
    assert_eq!(hot.meta().await.unwrap(), None);
    // Nothing else does.
    assert!(!hot.base(&base(3, 0, 0)).await.unwrap());
    assert!(!hot.chunk(3, 1, &Chunk::default()).await.unwrap());
    assert!(!hot.open(3, 0).await.unwrap());
    assert!(!hot.trim(at(3, 1, 1)).await.unwrap());
    assert_eq!(stale(hot.read(3, 0, 10).await.unwrap()), Stale::NoMeta);
    assert_eq!(stale(hot.backlog(3).await.unwrap()), Stale::NoMeta);
    assert_eq!(stale(hot.survivors(3).await.unwrap()), Stale::NoMeta);
    assert_eq!(hot.drop_older(3).await.unwrap(), 0);
    let marked = hot
        .mark(&sent(3, 1), &Id::default_name(), &id("A"), Token(1), false)
        .await;
    assert_eq!(stale(marked.unwrap()), Stale::NoMeta);
    assert_eq!(dump(&server), []);

    assert_eq!(hot.fence(3).await.unwrap(), Fenced::Closed);
    let fenced = dump(&server);
    assert_eq!(hot.fence(3).await.unwrap(), Fenced::Closed, "its reply was lost");
    assert_eq!(hot.fence(2).await.unwrap(), Fenced::Refused { found: 3 });
    assert_eq!(dump(&server), fenced);
    assert!(hot.base(&base(3, 9, 7)).await.unwrap());
    assert_eq!(
        hot.fence(3).await.unwrap(),
        Fenced::Refused { found: 3 },
        "somebody who slept"
    );
    let meta = hot.meta().await.unwrap().unwrap();
    assert_eq!((meta.tip, meta.open, meta.chunks), (at(3, 9, 7), false, 0));
    assert!(hot.open(3, 0).await.unwrap());
    assert_eq!(hot.fence(5).await.unwrap(), Fenced::Closed);
    let meta = hot.meta().await.unwrap().unwrap();
    assert_eq!((meta.tip, meta.open, meta.clock), (at(5, 0, 0), false, 1_000));
}

#[tokio::test]
async fn a_fence_replaces_what_nobody_here_wrote() {
    let server = Server::start();
    let hot = hot(&server).await;
    for words in [
        &["SET", "{stockade:0}:meta", "x"][..],
        &["HSET", "{stockade:0}:meta", "epoch", "0x10"],
        &["HSET", "{stockade:0}:meta", "open", "1"],
    ] {
        server.run::<String>(&["FLUSHALL"]);
        server.run::<redis::Value>(words);
        server.run::<String>(&["SET", "{stockade:0}:epochs", "x"]);
        assert_eq!(
            stale(hot.read(2, 0, 10).await.unwrap()),
            Stale::Damaged,
            "{words:?}"
        );
        assert_eq!(hot.fence(2).await.unwrap(), Fenced::Closed, "{words:?}");
        assert!(hot.base(&base(2, 0, 0)).await.unwrap());
        assert!(hot.open(2, 0).await.unwrap());
    }
}

#[tokio::test]
async fn a_base_is_set_once_and_the_same_words_get_the_same_answer() {
    let server = Server::start();
    let hot = hot(&server).await;
    hot.fence(2).await.unwrap();
    assert!(!hot.base(&base(1, 5, 5)).await.unwrap(), "another epoch");
    assert!(!hot.base(&base(3, 5, 5)).await.unwrap(), "another epoch");
    assert!(!hot.open(2, 0).await.unwrap(), "no base yet");
    assert!(!hot.chunk(2, 1, &Chunk::default()).await.unwrap(), "no base yet");
    assert!(hot.base(&base(2, 5, 5)).await.unwrap());
    assert!(hot.base(&base(2, 5, 5)).await.unwrap(), "its reply was lost");
    assert!(!hot.base(&base(2, 6, 5)).await.unwrap());
    assert!(!hot.base(&base(2, 5, 6)).await.unwrap());
    assert!(hot.open(2, 0).await.unwrap());
    add_entry(&server, 2, 6, 66, 5);
    assert!(hot.trim(at(2, 6, 66)).await.unwrap());
    let before = dump(&server);
    assert!(
        hot.base(&base(2, 5, 5)).await.unwrap(),
        "late, and without effect"
    );
    assert!(!hot.base(&base(2, 6, 66)).await.unwrap());
    assert_eq!(dump(&server), before);
}

#[tokio::test]
async fn chunks_are_taken_in_order_and_counted() {
    let server = Server::start();
    let hot = hot(&server).await;
    hot.fence(2).await.unwrap();
    hot.base(&base(2, 0, 0)).await.unwrap();
    let mut limited = sku("L", 9, 0);
    (limited.settings.limit_per_owner, limited.settings.era) = (Some(2), 3);
    let first = Chunk {
        skus: vec![sku("A {1}:/", 5, 3), limited],
        live: vec![live("r1", "A {1}:/", 5_000), live("r2", "A {1}:/", 5_001)],
        usage: vec![
            (Id::default_name(), id("L"), id("u 1"), 2),
            (Id::default_name(), id("L"), id("u 2"), 0),
        ],
    };
    let second = Chunk {
        live: vec![live("r3", "A {1}:/", 5_000)],
        ..Chunk::default()
    };
    let before = dump(&server);
    assert!(!hot.chunk(2, 2, &second).await.unwrap(), "the first is not in");
    assert!(!hot.chunk(2, 0, &second).await.unwrap());
    assert!(!hot.chunk(1, 1, &first).await.unwrap(), "an old epoch");
    assert_eq!(dump(&server), before);
    assert!(hot.chunk(2, 1, &first).await.unwrap());
    let after = dump(&server);
    assert!(hot.chunk(2, 1, &first).await.unwrap(), "its reply was lost");
    assert!(!hot.chunk(2, 3, &second).await.unwrap(), "the second is not in");
    let again = Chunk {
        skus: vec![sku("A {1}:/", 5, 3)],
        ..Chunk::default()
    };
    assert!(!hot.chunk(2, 2, &again).await.unwrap(), "the SKU is there");
    assert_eq!(dump(&server), after);
    assert!(!hot.open(2, 2).await.unwrap(), "the second is not in");
    assert!(hot.chunk(2, 2, &second).await.unwrap());
    assert!(!hot.chunk(2, 1, &first).await.unwrap(), "late");
    assert!(!hot.open(2, 1).await.unwrap() && !hot.open(2, 3).await.unwrap());
    assert!(hot.open(2, 2).await.unwrap());
    assert!(hot.open(2, 2).await.unwrap(), "its reply was lost");
    assert!(!hot.chunk(2, 3, &Chunk::default()).await.unwrap(), "open");

    let list = |second: &str| -> Vec<String> {
        server.run(&["LRANGE", &format!("{{stockade:0}}:2:end:{second}"), "0", "-1"])
    };
    assert_eq!(list("5"), ["r1", "r3"]);
    assert_eq!(list("6"), ["r2"]);
    let seconds: Vec<(String, i64)> = server.run(&["ZRANGE", "{stockade:0}:2:ends", "0", "-1", "WITHSCORES"]);
    assert_eq!(seconds, [("5".to_owned(), 5), ("6".to_owned(), 6)]);
    let counts: Vec<String> =
        server.run(&["HMGET", "{stockade:0}:meta", "count", "live", "chunks", "forgot"]);
    assert_eq!(counts, ["3", "3", "2", "0"]);
    let stock: String = server.run(&["HGET", "{stockade:0}:2:sku:A {1}:/", "location:default"]);
    assert_eq!(stock, "on_hand=5 reserved=3 sold=0 safety_stock=0 version=4");
    let usage: Vec<(String, String)> = server.run(&["HGETALL", "{stockade:0}:2:usage"]);
    assert_eq!(usage, [("L\u{1e}u 1".to_owned(), "3:2".to_owned())]);
    let tracked: String = server.run(&["HGET", "{stockade:0}:2:sku:L", "tracked"]);
    assert_eq!(tracked, "1");
}

#[tokio::test]
async fn a_shard_with_a_reservation_too_few_is_not_opened() {
    let server = Server::start();
    let hot = hot(&server).await;
    hot.fence(2).await.unwrap();
    hot.base(&base(2, 0, 0)).await.unwrap();
    let chunk = Chunk {
        skus: vec![sku("A", 5, 2)],
        live: vec![live("r1", "A", 5_000), live("r2", "A", 5_001)],
        ..Chunk::default()
    };
    assert!(hot.chunk(2, 1, &chunk).await.unwrap());
    server.run::<i64>(&["HDEL", "{stockade:0}:2:reservations", "r1"]);
    assert!(!hot.open(2, 1).await.unwrap());
    server.run::<i64>(&["DEL", "{stockade:0}:2:reservations"]);
    server.run::<String>(&["SET", "{stockade:0}:2:reservations", "x"]);
    assert!(!hot.open(2, 1).await.unwrap());
    assert!(!hot.chunk(2, 2, &chunk).await.unwrap());
}

#[tokio::test]
async fn thousands_in_one_chunk_do_not_overrun_the_stack() {
    let server = Server::start();
    let hot = hot(&server).await;
    hot.fence(2).await.unwrap();
    hot.base(&base(2, 0, 0)).await.unwrap();
    let all: Vec<_> = (0..20_000)
        .map(|n| live(&format!("r{n}"), "A", 5_000 + n % 3))
        .collect();
    let chunk = Chunk {
        skus: vec![sku("A", 30_000, 20_000)],
        live: all,
        ..Chunk::default()
    };
    assert!(hot.chunk(2, 1, &chunk).await.unwrap());
    assert!(hot.open(2, 1).await.unwrap());
    let ends: i64 = server.run(&["LLEN", "{stockade:0}:2:end:6"]);
    assert_eq!(ends, 13_333);
}

#[tokio::test]
async fn trimming_needs_the_entry_with_its_tag_in_its_epoch() {
    let server = Server::start();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 10, 100)).await;
    for seq in 11..=15 {
        add_entry(&server, 2, seq, seq * 10, (seq - 1) * 10);
    }
    let before = dump(&server);
    for wrong in [
        at(2, 12, 121),
        at(1, 12, 120),
        at(3, 12, 120),
        at(2, 16, 160),
        at(2, 9, 90),
        at(2, 10, 99),
    ] {
        assert!(!hot.trim(wrong).await.unwrap(), "{wrong:?}");
    }
    assert!(
        hot.trim(at(2, 10, 100)).await.unwrap(),
        "that is the base already"
    );
    assert_eq!(dump(&server), before);
    assert!(hot.trim(at(2, 12, 120)).await.unwrap());
    assert!(hot.trim(at(2, 12, 120)).await.unwrap(), "its reply was lost");
    assert!(!hot.trim(at(2, 11, 110)).await.unwrap(), "late");
    let backlog = done(hot.backlog(2).await.unwrap());
    assert_eq!(backlog.entries, 3);
    assert!(backlog.bytes > 0);
    assert!(hot.trim(at(2, 15, 150)).await.unwrap());
    assert_eq!(done(hot.backlog(2).await.unwrap()).entries, 0);
    // The base stands for the entry itself.
    let base = done(hot.read(2, 15, 10).await.unwrap());
    let seen: Vec<_> = base
        .iter()
        .map(|entry| (entry.epoch, entry.seq, entry.tag))
        .collect();
    assert_eq!(seen, [(2, 15, 150)]);
    assert!(done(hot.read(2, 14, 10).await.unwrap()).is_empty());

    // A process that slept through a rebuild trims nothing.
    add_entry(&server, 2, 16, 160, 150);
    assert_eq!(hot.fence(4).await.unwrap(), Fenced::Closed);
    let before = dump(&server);
    assert!(!hot.trim(at(2, 16, 160)).await.unwrap());
    assert!(!hot.trim(at(4, 16, 160)).await.unwrap());
    assert_eq!(
        stale(hot.read(2, 15, 10).await.unwrap()),
        Stale::Epoch { found: 4 }
    );
    assert_eq!(
        stale(hot.read(4, 0, 10).await.unwrap()),
        Stale::Closed { found: 4 }
    );
    assert_eq!(stale(hot.backlog(2).await.unwrap()), Stale::Epoch { found: 4 });
    assert_eq!(dump(&server), before);
}

#[tokio::test]
async fn a_missing_sku_is_loaded_under_its_marker_only() {
    let server = Server::start();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 10, 100)).await;
    let (tenant, name) = (Id::default_name(), id("A"));
    let mark = |token| {
        let (hot, tenant, name) = (hot.clone(), tenant.clone(), name.clone());
        async move {
            done(
                hot.mark(&sent(2, 1), &tenant, &name, Token(token), false)
                    .await
                    .unwrap(),
            )
        }
    };
    let load = |epoch, token, record: Option<u64>| {
        let (hot, tenant, name) = (hot.clone(), tenant.clone(), name.clone());
        async move {
            let record = record.map(|on_hand| sku("A", on_hand, 0));
            let sent = sent(epoch, 1);
            let read_at = at(epoch, 10, 100);
            let call = hot.load_sku(
                &sent,
                &tenant,
                &name,
                Token(token),
                read_at,
                record.as_ref(),
                None,
            );
            call.await.unwrap()
        }
    };
    let missing = |marked| match marked {
        Marked::Missing(missing) => (missing.token, missing.tip, missing.absent),
        Marked::Held => panic!("it is not held"),
    };
    assert!(!done(load(2, 1, Some(5)).await), "no marker yet");
    assert_eq!(missing(mark(1).await), (Token(1), at(2, 10, 100), false));
    add_entry(&server, 2, 11, 110, 100);
    assert_eq!(
        missing(mark(2).await),
        (Token(1), at(2, 10, 100), false),
        "the one that is there"
    );
    let before = dump(&server);
    assert!(!done(load(2, 2, Some(5)).await), "another marker");
    assert_eq!(stale(load(1, 1, Some(5)).await), Stale::Epoch { found: 2 });
    assert_eq!(stale(load(3, 1, Some(5)).await), Stale::Epoch { found: 2 });
    assert_eq!(dump(&server), before);
    // The ledger does not know it; later it does.
    assert!(done(load(2, 1, None).await));
    assert!(done(load(2, 1, None).await), "its reply was lost");
    assert_eq!(missing(mark(3).await), (Token(1), at(2, 11, 110), true));
    assert!(done(load(2, 1, Some(5)).await));
    assert!(!done(load(2, 1, Some(6)).await), "late: the marker is gone");
    assert_eq!(mark(4).await, Marked::Held);
    let stock: String = server.run(&["HGET", "{stockade:0}:2:sku:A", "location:default"]);
    assert_eq!(stock, "on_hand=5 reserved=0 sold=0 safety_stock=0 version=1");
    assert_eq!(server.run::<i64>(&["HLEN", "{stockade:0}:2:markers"]), 0);

    // Set to something else by hand: it is marked and replaced.
    server.run::<String>(&["SET", "{stockade:0}:2:sku:A", "1000"]);
    assert_eq!(missing(mark(5).await).0, Token(5));
    assert!(done(load(2, 5, Some(7)).await));
    assert_eq!(mark(6).await, Marked::Held);

    // A new epoch has none of the old markers.
    server.run::<i64>(&["DEL", "{stockade:0}:2:sku:A"]);
    assert_eq!(missing(mark(7).await).0, Token(7));
    open_empty(&hot, &base(3, 11, 110)).await;
    assert!(!done(load(3, 7, Some(7)).await));
    assert_eq!(stale(load(2, 7, Some(7)).await), Stale::Epoch { found: 3 });
}

#[tokio::test]
async fn a_sku_is_loaded_only_where_the_node_has_what_is_recorded_up_to_its_reading() {
    let server = Server::start();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 10, 100)).await;
    for seq in 11..=14 {
        add_entry(&server, 2, seq, seq * 10, (seq - 1) * 10);
    }
    assert!(hot.trim(at(2, 12, 120)).await.unwrap());
    let (tenant, name, sent, record) = (Id::default_name(), id("A"), sent(2, 1), sku("A", 5, 0));
    let load = async |token, read_at, record| {
        let call = hot.load_sku(&sent, &tenant, &name, Token(token), read_at, record, None);
        done(call.await.unwrap())
    };
    let mark = async |token| {
        let marked = hot
            .mark(&sent, &tenant, &name, Token(token), false)
            .await
            .unwrap();
        assert!(matches!(done(marked), Marked::Missing(_)));
    };
    mark(1).await;
    let before = dump(&server);
    for nowhere in [
        // The ledger recorded more than this node has, or something else in its place.
        at(2, 15, 150),
        at(2, 13, 131),
        at(2, 12, 121),
        at(1, 13, 130),
        at(3, 13, 130),
    ] {
        assert!(!load(1, nowhere, Some(&record)).await, "{nowhere:?}");
        assert!(!load(1, nowhere, None).await, "{nowhere:?}, not known there");
    }
    assert_eq!(dump(&server), before);
    // An entry, the base, and one before it.
    for (token, read_at) in [(1, at(2, 14, 140)), (2, at(2, 12, 120)), (3, at(2, 11, 110))] {
        assert!(load(token, read_at, None).await, "{read_at:?}");
        assert!(load(token, read_at, Some(&record)).await, "{read_at:?}");
        server.run::<i64>(&["DEL", "{stockade:0}:2:sku:A"]);
        mark(token + 1).await;
    }
    // The node is set back by an entry: what was read after that one is not taken any more.
    server.run::<i64>(&["XDEL", "{stockade:0}:2:outbox", "2-14"]);
    server.run::<i64>(&[
        "HSET",
        "{stockade:0}:meta",
        "seq",
        "13",
        "tag",
        "0000000000000082",
    ]);
    assert!(!load(4, at(2, 14, 140), Some(&record)).await);
    server.run::<i64>(&["DEL", "{stockade:0}:2:outbox"]);
    server.run::<String>(&["SET", "{stockade:0}:2:outbox", "x"]);
    let call = hot.load_sku(
        &sent,
        &tenant,
        &name,
        Token(4),
        at(2, 13, 130),
        Some(&record),
        None,
    );
    assert_eq!(stale(call.await.unwrap()), Stale::Damaged);
}

#[tokio::test]
async fn a_sku_with_an_owner_limit_comes_with_its_usage() {
    let server = Server::start();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 10, 100)).await;
    let (tenant, name, sent) = (id("t"), id("A"), sent(2, 1));
    let mut record = sku("A", 5, 0);
    record.tenant = tenant.clone();
    (record.settings.limit_per_owner, record.settings.era) = (Some(3), 4);
    hot.mark(&sent, &tenant, &name, Token(1), false).await.unwrap();
    let read_at = at(2, 10, 100);
    let load = |usage| hot.load_sku(&sent, &tenant, &name, Token(1), read_at, Some(&record), usage);
    load(None).await.unwrap_err();
    assert!(done(load(Some(&[(id("u1"), 2), (id("u 2"), 0)])).await.unwrap()));
    let usage: Vec<(String, String)> = server.run(&["HGETALL", "{stockade:0}:2:usage"]);
    assert_eq!(usage, [("t\u{1f}A\u{1e}u1".to_owned(), "4:2".to_owned())]);
    let tracked: String = server.run(&["HGET", "{stockade:0}:2:sku:t\u{1f}A", "tracked"]);
    assert_eq!(tracked, "1");
}

#[tokio::test]
async fn a_damaged_sku_is_blocked_and_loaded_anew_with_its_usage() {
    let server = Server::start();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 10, 100)).await;
    let (tenant, name, sent) = (id("t"), id("A*"), sent(2, 1));
    let mut record = sku("A*", 5, 0);
    record.tenant = tenant.clone();
    record.settings.limit_per_owner = Some(3);
    let usage = [(id("u1"), 2)];
    let read_at = at(2, 10, 100);
    let load = |token| {
        hot.load_sku(
            &sent,
            &tenant,
            &name,
            Token(token),
            read_at,
            Some(&record),
            Some(&usage),
        )
    };
    hot.mark(&sent, &tenant, &name, Token(1), false).await.unwrap();
    assert!(done(load(1).await.unwrap()));
    let (key, usages) = ("{stockade:0}:2:sku:t\u{1f}A*", "{stockade:0}:2:usage");
    let whole = dump(&server);
    server.run::<i64>(&["HSET", key, "location:default", "on_hand=x"]);
    server.run::<i64>(&["HSET", usages, "t\u{1f}A*\u{1e}u2", "x"]);
    let others = ["t\u{1f}A\u{1e}u1", "A*\u{1e}u1", "t\u{1f}A*B\u{1e}u1"];
    for other in others {
        server.run::<i64>(&["HSET", usages, other, "0:1"]);
    }
    add_entry(&server, 2, 11, 110, 100);
    assert_eq!(
        done(hot.mark(&sent, &tenant, &name, Token(2), false).await.unwrap()),
        Marked::Held
    );
    let marked = done(hot.mark(&sent, &tenant, &name, Token(2), true).await.unwrap());
    let Marked::Missing(missing) = marked else {
        panic!("{marked:?}")
    };
    assert_eq!(
        (missing.token, missing.tip, missing.absent),
        (Token(2), at(2, 11, 110), false)
    );
    // Another process saw the damage, too: it finds the marker, and so does the first one when its reply is lost.
    for token in [2, 3] {
        let again = done(hot.mark(&sent, &tenant, &name, Token(token), true).await.unwrap());
        assert_eq!(again, marked);
    }
    assert_eq!(server.run::<i64>(&["EXISTS", key]), 0);
    assert_eq!(server.run::<i64>(&["HLEN", usages]), 3, "its own are gone");
    assert!(done(load(2).await.unwrap()));
    for other in others {
        server.run::<i64>(&["HDEL", usages, other]);
    }
    let keys = |dump: Vec<(String, Vec<u8>)>| -> Vec<_> {
        dump.into_iter()
            .filter(|(key, _)| key.contains(":sku:") || key.contains("usage"))
            .collect()
    };
    assert_eq!(keys(dump(&server)), keys(whole));
}

#[tokio::test]
async fn nothing_is_loaded_into_a_closed_or_damaged_shard() {
    let server = Server::start();
    let hot = hot(&server).await;
    hot.fence(2).await.unwrap();
    let (tenant, name, sent) = (Id::default_name(), id("A"), sent(2, 1));
    let marked = hot.mark(&sent, &tenant, &name, Token(1), false).await.unwrap();
    assert_eq!(stale(marked), Stale::Closed { found: 2 });
    hot.base(&base(2, 0, 0)).await.unwrap();
    hot.open(2, 0).await.unwrap();
    hot.mark(&sent, &tenant, &name, Token(1), false).await.unwrap();
    server.run::<i64>(&["HSET", "{stockade:0}:2:reservations", "r", "x"]);
    let record = sku("A", 5, 0);
    let loaded = hot.load_sku(&sent, &tenant, &name, Token(1), at(2, 0, 0), Some(&record), None);
    assert_eq!(stale(loaded.await.unwrap()), Stale::Damaged);
    let marked = hot.mark(&sent, &tenant, &name, Token(1), false).await.unwrap();
    assert_eq!(stale(marked), Stale::Damaged);
}

#[tokio::test]
async fn keys_of_older_epochs_go_and_no_others() {
    let server = Server::start();
    let hot = hot(&server).await;
    let chunk = |count: u32| Chunk {
        skus: vec![sku("7:A", 5_000, u64::from(count))],
        live: (0..count)
            .map(|n| live(&format!("r{n}"), "7:A", i64::from(n) * 1_000))
            .collect(),
        ..Chunk::default()
    };
    for epoch in [2, 5] {
        hot.fence(epoch).await.unwrap();
        hot.base(&base(epoch, 0, 0)).await.unwrap();
        assert!(hot.chunk(epoch, 1, &chunk(1_500)).await.unwrap());
        assert!(hot.open(epoch, 1).await.unwrap());
        add_entry(&server, epoch, 1, 1, 0);
    }
    server.run::<String>(&["SET", "stockade", "somebody else's"]);
    server.run::<String>(&["SET", "{stockade:0}:note", "somebody's"]);
    server.run::<String>(&["SET", "{stockade:1}:2:outbox", "another shard's"]);
    hot.fence(9).await.unwrap();
    hot.base(&base(9, 0, 0)).await.unwrap();
    hot.chunk(9, 1, &chunk(10)).await.unwrap();
    assert_eq!(hot.drop_older(5).await.unwrap(), 0, "somebody who slept");
    // Closed: the survivors stay.
    assert!(hot.drop_older(9).await.unwrap() > 3_000);
    let left = |epoch: u64| -> Vec<String> { server.run(&["KEYS", &format!("{{stockade:0}}:{epoch}:*")]) };
    assert_eq!(
        (left(2), left(5)),
        (
            vec!["{stockade:0}:2:outbox".to_owned()],
            vec!["{stockade:0}:5:outbox".to_owned()]
        )
    );
    hot.open(9, 1).await.unwrap();
    assert_eq!(hot.drop_older(9).await.unwrap(), 2);
    assert_eq!(hot.drop_older(9).await.unwrap(), 0);
    assert_eq!(left(9).len(), 10 + 3);
    let epochs: Vec<String> = server.run(&["SMEMBERS", "{stockade:0}:epochs"]);
    assert_eq!(epochs, ["9"]);
    let others: i64 = server.run(&["EXISTS", "stockade", "{stockade:0}:note", "{stockade:1}:2:outbox"]);
    assert_eq!(others, 3);
}

#[tokio::test]
async fn the_server_tells_its_time() {
    let server = Server::start();
    let hot = hot(&server).await;
    let here = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let there = hot.time().await.unwrap();
    assert!((i64::try_from(here.as_millis()).unwrap() - there).abs() < 30_000);
    assert_eq!(Position::default(), at(0, 0, 0));
}

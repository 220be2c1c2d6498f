//! Forgetting: ended ids whose last change is recorded and trimmed, oldest first, within an age, a number and a budget;
//! never a live one, never one that changed since.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{add_entry, at, base, done, dump, hot, id, live, open_empty, sent, stale};
use stockade_core::{Digest, Id, ReturnRecord, Status, StockRecord};
use stockade_redis::packed::{pack_command, pack_reservation, pack_return};
use stockade_redis::{Forgot, Hot, KeptIds, Stale};
use stockade_testkit::redis::Server;

const EVERYTHING: KeptIds = KeptIds {
    recorded: u64::MAX,
    older_than: 0,
    keep: 0,
    keep_bytes: 0,
    limit: 1_000,
};
const NOTHING: KeptIds = KeptIds {
    recorded: u64::MAX,
    older_than: 0,
    keep: u64::MAX,
    keep_bytes: u64::MAX,
    limit: 1_000,
};

/// Stores records as decisions would.
struct Store<'a> {
    server: &'a Server,
    admin: redis::Connection,
}

impl Store<'_> {
    fn of(server: &Server) -> Store<'_> {
        Store {
            server,
            admin: server.admin().unwrap(),
        }
    }

    fn put(&mut self, part: &str, name: &str, packed: &[u8]) {
        let key = format!("{{stockade:0}}:2:{part}");
        redis::cmd("HSET")
            .arg(key)
            .arg(name)
            .arg(packed)
            .query::<i64>(&mut self.admin)
            .unwrap();
    }

    fn ended(&mut self, kind: char, at: i64, seq: u64, names: &[&str]) {
        let mut item = format!("{kind}{at}\u{1f}{seq}");
        for name in names {
            item.push('\u{1e}');
            item.push_str(name);
        }
        self.server.run::<i64>(&["RPUSH", "{stockade:0}:2:ended", &item]);
    }

    fn reservation(&mut self, name: &str, status: Status, seq: u64) {
        let mut record = live(name, "A", 9_000);
        record.status = status;
        // Bytes of any kind, the separators among them.
        record.digest = Digest(0x1e1f_1d1c_300a_0d00_1e1e_1f1f_3131_3131);
        self.put("reservations", name, &pack_reservation(&record, seq));
        let live = i64::from(status == Status::Pending);
        self.server
            .run::<i64>(&["HINCRBY", "{stockade:0}:meta", "count", "1"]);
        self.server
            .run::<i64>(&["HINCRBY", "{stockade:0}:meta", "live", &live.to_string()]);
    }

    fn names(&self, part: &str) -> Vec<String> {
        let mut names: Vec<String> = self.server.run(&["HKEYS", &format!("{{stockade:0}}:2:{part}")]);
        names.sort();
        names
    }

    fn meta(&self, field: &str) -> String {
        self.server.run(&["HGET", "{stockade:0}:meta", field])
    }
}

async fn forget(hot: &Hot, kept: KeptIds) -> Forgot {
    done(hot.forget(&sent(2, 1), &kept).await.unwrap())
}

/// Entries 11..=14, of which those up to `base` are trimmed; in them seven ids ended.
async fn prepared(server: &Server, base_at: u64) -> Hot {
    let hot = hot(server).await;
    open_empty(&hot, &base(2, 10, 100)).await;
    for seq in 11..=14 {
        add_entry(server, 2, seq, seq * 10, (seq - 1) * 10);
    }
    assert!(hot.trim(at(2, base_at, base_at * 10)).await.unwrap());
    let mut store = Store::of(server);
    store.reservation("a", Status::Cancelled, 11);
    store.reservation("b", Status::Confirmed, 11);
    store.reservation("c", Status::Pending, 0);
    store.reservation("d", Status::Expired, 13);
    store.ended('r', 1_000, 11, &["a", "b", "d"]);
    let returned = ReturnRecord {
        tenant: Id::default_name(),
        id: id("x"),
        reservation: id("b"),
        digest: Digest(u128::MAX),
        at: 2_000,
        lines: Vec::new(),
    };
    store.put("returns", "x", &pack_return(&returned, 12));
    store.ended('x', 2_000, 12, &["x"]);
    let command = StockRecord {
        tenant: Id::default_name(),
        id: id("s"),
        digest: Digest(0),
        sku: id("A"),
        revision: 3,
        at: 2_000,
    };
    store.put("commands", "s", &pack_command(&command, 12));
    store.ended('c', 2_000, 12, &["s"]);
    // Changed again in 13, and so listed again.
    store.ended('r', 3_000, 13, &["d"]);
    store.reservation("e", Status::Cancelled, 14);
    store.ended('r', 4_000, 14, &["e"]);
    hot
}

#[tokio::test]
async fn what_is_recorded_and_trimmed_may_go_and_nothing_else() {
    let server = Server::start();
    let hot = prepared(&server, 13).await;
    let store = Store::of(&server);
    let before = dump(&server);
    let nothing = forget(&hot, NOTHING).await;
    assert_eq!((nothing.forgotten, nothing.ended, nothing.more), (0, 6, false));
    assert!(nothing.bytes > 0);
    assert_eq!(
        forget(
            &hot,
            KeptIds {
                recorded: 10,
                ..EVERYTHING
            }
        )
        .await
        .forgotten,
        0
    );
    assert_eq!(dump(&server), before);

    assert_eq!(
        forget(
            &hot,
            KeptIds {
                recorded: 12,
                ..EVERYTHING
            }
        )
        .await
        .forgotten,
        4
    );
    assert_eq!(store.names("reservations"), ["c", "d", "e"]);
    assert_eq!(
        (store.names("returns"), store.names("commands")),
        (vec![], vec![])
    );
    assert_eq!(
        (store.meta("count"), store.meta("live"), store.meta("forgot")),
        ("3".to_owned(), "1".to_owned(), "12".to_owned())
    );
    // Recorded is what the caller says; the base of this node is what it is.
    let all = forget(&hot, EVERYTHING).await;
    assert_eq!((all.forgotten, all.ended, all.more), (1, 1, false));
    assert_eq!(store.names("reservations"), ["c", "e"]);
    assert_eq!(store.meta("forgot"), "13");
    assert_eq!(forget(&hot, EVERYTHING).await.forgotten, 0, "sent again");
    assert!(hot.trim(at(2, 14, 140)).await.unwrap());
    assert_eq!(forget(&hot, EVERYTHING).await.forgotten, 1);
    assert_eq!(store.names("reservations"), ["c"], "a live one stays");
    assert_eq!(server.run::<i64>(&["LLEN", "{stockade:0}:2:ended"]), 0);
}

#[tokio::test]
async fn age_number_and_budget_each_say_how_many_go() {
    let server = Server::start();
    let hot = prepared(&server, 14).await;
    let older = |older_than| KeptIds {
        older_than,
        ..NOTHING
    };
    assert_eq!(forget(&hot, older(1_000)).await.forgotten, 0);
    assert_eq!(forget(&hot, older(1_001)).await.forgotten, 2);
    let few = KeptIds { keep: 3, ..NOTHING };
    let left = forget(&hot, few).await;
    assert_eq!(
        (left.forgotten, left.ended),
        (1, 3),
        "oldest first, and no more than needed"
    );
    let store = Store::of(&server);
    assert_eq!(store.names("commands"), ["s"]);
    assert_eq!(
        forget(
            &hot,
            KeptIds {
                keep_bytes: left.bytes,
                ..NOTHING
            }
        )
        .await
        .forgotten,
        0
    );
    let tight = KeptIds {
        keep_bytes: left.bytes - 1,
        ..NOTHING
    };
    assert_eq!(forget(&hot, tight).await.forgotten, 1);
    assert_eq!(store.names("reservations"), ["c", "d", "e"]);
    assert_eq!(
        forget(
            &hot,
            KeptIds {
                keep_bytes: 0,
                ..NOTHING
            }
        )
        .await
        .forgotten,
        2
    );
}

#[tokio::test]
async fn the_work_of_a_call_is_bounded() {
    let server = Server::start();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 20, 100)).await;
    let mut store = Store::of(&server);
    for n in 0..300 {
        let names = [format!("a{n}"), format!("b{n}")];
        for name in &names {
            store.reservation(name, Status::Confirmed, 5);
        }
        store.ended('r', 1_000, 5, &[&names[0], &names[1]]);
    }
    let some = KeptIds {
        limit: 100,
        ..EVERYTHING
    };
    for _ in 0..5 {
        let forgot = forget(&hot, some).await;
        assert_eq!((forgot.forgotten, forgot.more), (100, true));
    }
    let forgot = forget(&hot, some).await;
    assert_eq!((forgot.forgotten, forgot.ended), (100, 0));
    assert_eq!(store.meta("count"), "0");
    assert_eq!(store.meta("forgot"), "20", "the base was higher from the start");
}

#[tokio::test]
async fn many_names_in_one_item_and_items_that_nobody_wrote_are_dealt_with() {
    let server = Server::start();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 20, 100)).await;
    let mut store = Store::of(&server);
    for junk in ["", "x", "r12", "z1\u{1f}2\u{1e}a", "r1\u{1f}1e3\u{1e}a"] {
        server.run::<i64>(&["RPUSH", "{stockade:0}:2:ended", junk]);
    }
    let names: Vec<String> = (0..9_000).map(|n| format!("r{n}")).collect();
    for name in &names {
        let mut record = live(name, "A", 9_000);
        record.status = Status::Confirmed;
        store.put("reservations", name, &pack_reservation(&record, 5));
    }
    server.run::<i64>(&["HSET", "{stockade:0}:meta", "count", "9000"]);
    store.ended(
        'r',
        1_000,
        5,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let all = forget(&hot, EVERYTHING).await;
    assert_eq!(
        (all.forgotten, all.ended, all.bytes, all.more),
        (9_000, 0, 0, false)
    );
}

#[tokio::test]
async fn another_epoch_or_a_damaged_shard_forgets_nothing() {
    let server = Server::start();
    let hot = prepared(&server, 14).await;
    let old = hot.forget(&sent(1, 1), &EVERYTHING).await.unwrap();
    assert_eq!(stale(old), Stale::Epoch { found: 2 });
    server.run::<i64>(&["HDEL", "{stockade:0}:2:reservations", "c"]);
    let damaged = hot.forget(&sent(2, 1), &EVERYTHING).await.unwrap();
    assert_eq!(stale(damaged), Stale::Damaged);
    hot.fence(3).await.unwrap();
    let closed = hot.forget(&sent(3, 1), &EVERYTHING).await.unwrap();
    assert_eq!(stale(closed), Stale::Closed { found: 3 });
}

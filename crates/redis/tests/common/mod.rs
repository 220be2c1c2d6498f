//! What the tests of this crate share: a private server, a shard on it, records.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(dead_code, reason = "each test program uses some of it")]

use std::time::Duration;

use stockade_core::{
    Allocation, Counters, Digest, Id, LateConfirm, Line, LocationRecord, Millis, Mode, Position, Reservation,
    Settings, SkuRecord, Status,
};
use stockade_redis::{Base, Decided, Fenced, Hot, Options, Sent, Stale};
use stockade_testkit::redis::Server;

pub(crate) fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

/// Patient, since the machine may be busy.
pub(crate) fn options(url: String) -> Options {
    Options {
        url,
        connect_within: Duration::from_secs(20),
        reply_within: Duration::from_secs(20),
        ..Options::default()
    }
}

pub(crate) async fn hot(server: &Server) -> Hot {
    Hot::connect(options(server.url())).await.unwrap()
}

pub(crate) fn sent(epoch: u64, tag: u64) -> Sent {
    Sent {
        epoch,
        tag,
        now: None,
        late_confirm: LateConfirm::Revive,
    }
}

pub(crate) fn at(epoch: u64, seq: u64, tag: u64) -> Position {
    Position { epoch, seq, tag }
}

pub(crate) fn base(epoch: u64, seq: u64, tag: u64) -> Base {
    Base {
        at: at(epoch, seq, tag),
        clock: 1_000,
    }
}

/// Opens an epoch with nothing in it.
pub(crate) async fn open_empty(hot: &Hot, base: &Base) {
    let epoch = base.at.epoch;
    assert_eq!(hot.fence(epoch).await.unwrap(), Fenced::Closed);
    assert!(hot.base(base).await.unwrap());
    assert!(hot.open(epoch, 0).await.unwrap());
}

/// Adds an entry to the outbox as a decision would, without one.
pub(crate) fn add_entry(server: &Server, epoch: u64, seq: u64, tag: u64, prev: u64) {
    let outbox = format!("{{stockade:0}}:{epoch}:outbox");
    let (id, tag, prev) = (
        format!("{epoch}-{seq}"),
        format!("{tag:016x}"),
        format!("{prev:016x}"),
    );
    server.run::<String>(&["XADD", &outbox, &id, "tag", &tag, "prev", &prev, "e", "x"]);
    let seq = seq.to_string();
    server.run::<i64>(&["HSET", "{stockade:0}:meta", "seq", &seq, "tag", &tag]);
}

pub(crate) fn sku(name: &str, on_hand: u64, reserved: u64) -> SkuRecord {
    SkuRecord {
        tenant: Id::default_name(),
        sku: id(name),
        revision: 1,
        settings: Settings::default(),
        locations: vec![LocationRecord {
            location: Id::default_name(),
            counters: Counters {
                on_hand,
                reserved,
                sold: 0,
                safety_stock: 0,
                version: 1 + reserved,
            },
        }],
    }
}

pub(crate) fn live(name: &str, of: &str, ends_at: Millis) -> Reservation {
    Reservation {
        tenant: Id::default_name(),
        id: id(name),
        owner: Some(id("owner")),
        mode: Mode::Reserve,
        digest: Digest(7),
        status: Status::Pending,
        sealed: false,
        noted: false,
        granted_at: 1_000,
        ends_at,
        lines: [Line {
            sku: id(of),
            location: None,
            era: 0,
            allocations: [Allocation {
                location: Id::default_name(),
                quantity: 1,
                confirmed: 0,
                returned: 0,
            }]
            .into_iter()
            .collect(),
        }]
        .into_iter()
        .collect(),
    }
}

pub(crate) fn done<T: std::fmt::Debug>(decided: Decided<T>) -> T {
    match decided {
        Decided::Done { value, .. } => value,
        Decided::Stale(stale) => panic!("{stale:?}"),
    }
}

pub(crate) fn stale<T: std::fmt::Debug>(decided: Decided<T>) -> Stale {
    match decided {
        Decided::Stale(stale) => stale,
        Decided::Done { value, .. } => panic!("done: {value:?}"),
    }
}

/// Everything that is stored, to be compared.
pub(crate) fn dump(server: &Server) -> Vec<(String, Vec<u8>)> {
    let mut keys: Vec<String> = server.run(&["KEYS", "*"]);
    keys.sort();
    let dump = |key: String| {
        let bytes: Vec<u8> = server.run(&["DUMP", &key]);
        (key, bytes)
    };
    keys.into_iter().map(dump).collect()
}

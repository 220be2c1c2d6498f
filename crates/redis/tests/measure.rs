//! How long loading and forgetting take, and what a reservation weighs. Measurements, to be run by name:
//! `cargo nextest run -p stockade-redis --test measure --run-ignored all --no-capture`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::{Duration, Instant};

use common::{add_entry, at, base, done, hot, id, live, sent, sku};
use stockade_core::Status;
use stockade_redis::packed::pack_reservation;
use stockade_redis::{Chunk, KeptIds};
use stockade_testkit::redis::Server;

fn micros(server: &Server, command: &str) -> u64 {
    let stats: String = server.run(&["INFO", "commandstats"]);
    let line = stats
        .lines()
        .find(|line| line.starts_with(&format!("cmdstat_{command}:")));
    let usec = line
        .and_then(|line| line.split("usec=").nth(1))
        .and_then(|rest| rest.split(',').next());
    usec.map_or(0, |usec| usec.parse().unwrap())
}

#[tokio::test]
#[ignore = "a measurement"]
async fn loading_many_live_reservations() {
    const ALL: usize = 200_000;
    for size in [1_000, 2_000, 4_000, 8_000] {
        let server = Server::start();
        let hot = hot(&server).await;
        hot.fence(2).await.unwrap();
        hot.base(&base(2, 0, 0)).await.unwrap();
        let first = Chunk {
            skus: vec![sku("A", ALL as u64, ALL as u64)],
            ..Chunk::default()
        };
        assert!(hot.chunk(2, 1, &first).await.unwrap());
        let empty: u64 = memory(&server);
        let (mut spent, mut longest) = (Duration::ZERO, Duration::ZERO);
        let chunks = ALL / size;
        for chunk in 0..chunks {
            let part = (chunk * size..(chunk + 1) * size)
                .map(|n| {
                    let mut one = live(
                        &format!("order-{n:018}"),
                        "A",
                        1_800_000 + i64::try_from(n / 100).unwrap() * 1_000,
                    );
                    one.owner = Some(id(&format!("owner-{n:06}")));
                    one
                })
                .collect();
            let chunk_of = Chunk {
                live: part,
                ..Chunk::default()
            };
            let begun = Instant::now();
            assert!(hot.chunk(2, chunk as u64 + 2, &chunk_of).await.unwrap());
            spent += begun.elapsed();
            longest = longest.max(begun.elapsed());
        }
        let begun = Instant::now();
        assert!(hot.open(2, chunks as u64 + 1).await.unwrap());
        let script = micros(&server, "evalsha") + micros(&server, "eval");
        println!(
            "chunks of {size}: {ALL} in {spent:?}, longest {longest:?}, script {} ms, open {:?}, {} bytes each",
            script / 1_000,
            begun.elapsed(),
            (memory(&server) - empty) / ALL as u64
        );
    }
}

fn memory(server: &Server) -> u64 {
    let info: redis::InfoDict = server.run(&["INFO", "memory"]);
    info.get("used_memory").unwrap()
}

#[tokio::test]
#[ignore = "a measurement"]
async fn forgetting_many() {
    const ALL: usize = 100_000;
    const IN_AN_ITEM: usize = 64;
    let server = Server::start();
    let hot = hot(&server).await;
    common::open_empty(&hot, &base(2, 10, 100)).await;
    add_entry(&server, 2, 11, 110, 100);
    let mut admin = server.admin().unwrap();
    for item in 0..ALL / IN_AN_ITEM {
        let mut pipe = redis::pipe();
        let mut names = "r1000\u{1f}11".to_owned();
        for n in item * IN_AN_ITEM..(item + 1) * IN_AN_ITEM {
            let name = format!("order-{n:018}");
            let mut record = live(&name, "A", 9_000);
            record.status = Status::Confirmed;
            pipe.cmd("HSET")
                .arg("{stockade:0}:2:reservations")
                .arg(&name)
                .arg(pack_reservation(&record, 11));
            names.push('\u{1e}');
            names.push_str(&name);
        }
        pipe.cmd("RPUSH").arg("{stockade:0}:2:ended").arg(names);
        pipe.query::<redis::Value>(&mut admin).unwrap();
    }
    let count: i64 = server.run(&["HLEN", "{stockade:0}:2:reservations"]);
    server.run::<i64>(&["HSET", "{stockade:0}:meta", "count", &count.to_string()]);
    assert!(hot.trim(at(2, 11, 110)).await.unwrap());
    let kept = KeptIds {
        recorded: 11,
        older_than: 2_000,
        keep: u64::MAX,
        keep_bytes: u64::MAX,
        limit: 500,
    };
    let before = micros(&server, "evalsha");
    let (begun, mut calls, mut longest, mut forgotten) = (Instant::now(), 0_u64, Duration::ZERO, 0);
    loop {
        let call = Instant::now();
        let forgot = done(hot.forget(&sent(2, 1), &kept).await.unwrap());
        longest = longest.max(call.elapsed());
        calls += 1;
        forgotten += forgot.forgotten;
        if !forgot.more {
            break;
        }
    }
    println!(
        "forgot {forgotten} in {:?}, {calls} calls, longest {longest:?}, script {} us for 1,000 ids",
        begun.elapsed(),
        (micros(&server, "evalsha") - before) * 1_000 / forgotten
    );
}

//! What the widely copied scripts get wrong, each shown on a real server beside the version here that does not.
//! `docs/errata.md` tells the stories; the copied versions are the files in `errata/`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use redis::Value;
use stockade_scripts::scripts::{
    Deduct, DeductMany, DeductSold, HoldKeys, Language, Left, Lock, LockReply, ManyReply, Release,
    ReleaseReply, Reserve, ReserveReply, SegmentDeduct, SegmentReply, TokenBucket, named,
};
use stockade_scripts::{Happened, ScriptError, ServerState, connect};
use stockade_testkit::redis::{Cluster, Options, Server};

macro_rules! copied {
    ($name:literal) => {
        include_str!(concat!("errata/", $name, ".lua"))
    };
}

/// Runs a copied script as its articles do.
fn eval(server: &Server, script: &str, keys: &[&str], args: &[&str]) -> redis::RedisResult<Value> {
    let mut admin = server.admin().unwrap();
    redis::cmd("EVAL")
        .arg(script)
        .arg(keys.len())
        .arg(keys)
        .arg(args)
        .query(&mut admin)
}

fn get(server: &Server, key: &str) -> i64 {
    server.run(&["GET", key])
}

fn set(server: &Server, key: &str, value: &str) {
    server.run::<()>(&["SET", key, value]);
}

#[tokio::test]
async fn a_negative_quantity_adds_stock() {
    let server = Server::start();
    set(&server, "stock:1", "998");
    assert_eq!(
        eval(&server, copied!("deduct"), &["stock:1"], &["-5"]).unwrap(),
        Value::Int(1003)
    );
    assert_eq!(get(&server, "stock:1"), 1003, "the buyer was paid");

    set(&server, "stock:1", "998");
    let scripts = common::connect(&server.url()).await;
    let raw = scripts
        .run_raw(
            named("deduct").unwrap(),
            &[b"stock:1".to_vec()],
            &[b"-5".to_vec()],
        )
        .await;
    assert!(matches!(raw.unwrap_err(), ScriptError::BadArgument { .. }));
    assert_eq!(get(&server, "stock:1"), 998);
}

#[tokio::test]
async fn a_script_that_errs_half_way_keeps_its_first_writes() {
    let server = Server::start();
    set(&server, "stock:1", "5");
    eval(&server, copied!("deduct_and_count"), &["stock:1"], &["2"]).unwrap_err();
    assert_eq!(
        get(&server, "stock:1"),
        3,
        "an error, and the stock has fallen all the same"
    );
    // The same with a second key of another type.
    server.run::<()>(&["RPUSH", "sold:1", "x"]);
    eval(
        &server,
        copied!("deduct_and_count"),
        &["stock:1", "sold:1"],
        &["2"],
    )
    .unwrap_err();
    assert_eq!(get(&server, "stock:1"), 1);

    set(&server, "stock:1", "5");
    let scripts = common::connect(&server.url()).await;
    let script = named("deduct_sold").unwrap();
    scripts
        .run_raw(script, &[b"stock:1".to_vec()], &[b"2".to_vec()])
        .await
        .unwrap_err();
    let call = DeductSold {
        stock: "stock:1",
        sold: "sold:1",
        quantity: 2,
        language: Language::English,
    };
    let error = scripts.run(&call).await.unwrap_err();
    assert!(
        matches!(&error, ScriptError::Corrupt { key, .. } if key == "sold:1"),
        "{error:?}"
    );
    assert_eq!(
        get(&server, "stock:1"),
        5,
        "everything is read and checked before the first write"
    );
}

#[tokio::test]
async fn a_lock_loop_inside_a_script_calls_a_command_that_does_not_exist_and_stretches_the_holders_time() {
    let server = Server::start();
    server.run::<()>(&["SET", "lock:1", "holder", "PX", "1000"]);
    let error = eval(
        &server,
        copied!("lock_with_retry"),
        &["lock:1"],
        &["other", "600000", "3"],
    )
    .unwrap_err();
    assert!(error.to_string().to_lowercase().contains("unknown"), "{error}");
    let remains: i64 = server.run(&["PTTL", "lock:1"]);
    assert!(remains > 500_000, "the holder's lock now lasts {remains} ms");

    server.run::<()>(&["SET", "lock:1", "holder", "PX", "60000"]);
    let scripts = common::connect(&server.url()).await;
    let call = Lock {
        lock: "lock:1",
        fence: "{lock:1}:fence",
        owner: "other",
        ttl_ms: 600_000,
    };
    let LockReply::Taken {
        remains_ms: Some(remains),
    } = scripts.run(&call).await.unwrap()
    else {
        panic!()
    };
    assert!(remains <= 60_000);
    assert!(
        server.run::<i64>(&["PTTL", "lock:1"]) <= 60_000,
        "waiting is the client's business"
    );
}

#[tokio::test]
async fn a_fixed_key_that_is_not_declared_mixes_stocks_and_breaks_in_a_cluster() {
    let server = Server::start();
    set(&server, "stock:1", "5");
    set(&server, "stock:2", "5");
    for (stock, quantity) in [("stock:1", "3"), ("stock:2", "1")] {
        eval(
            &server,
            copied!("reserve_fixed_key"),
            &[stock],
            &["o-1", quantity],
        )
        .unwrap();
    }
    for stock in ["stock:1", "stock:2"] {
        eval(&server, copied!("release_fixed_key"), &[stock], &["o-1"]).unwrap();
    }
    assert_eq!(
        (get(&server, "stock:1"), get(&server, "stock:2")),
        (3, 4),
        "the second order overwrote the first"
    );

    let cluster = Cluster::start();
    let stock = "stock:1";
    let owner = &cluster.nodes()[cluster.owner_of(stock)];
    set(owner, stock, "5");
    if cluster.owner_of("reservations") != cluster.owner_of(stock) {
        let error = eval(owner, copied!("reserve_fixed_key"), &[stock], &["o-1", "3"]).unwrap_err();
        assert!(error.to_string().contains("non local key"), "{error}");
        assert_eq!(get(owner, stock), 2, "the stock has fallen, the order is nowhere");
    }
    set(owner, stock, "5");
    let scripts = connect::cluster(cluster.urls(), Duration::from_secs(10))
        .await
        .unwrap();
    let keys = HoldKeys::of(stock).unwrap();
    let call = Reserve {
        keys: &keys,
        order: "o-1",
        quantity: 3,
        ttl_ms: 60_000,
        keep_ms: 60_000,
        now_ms: None,
    };
    assert!(matches!(
        scripts.run(&call).await.unwrap(),
        ReserveReply::Held { available: 2, .. }
    ));
}

#[tokio::test]
async fn the_same_order_reserved_twice_leaks() {
    let server = Server::start();
    set(&server, "stock:1", "5");
    for _ in 0..2 {
        eval(&server, copied!("reserve_fixed_key"), &["stock:1"], &["o-1", "2"]).unwrap();
    }
    for _ in 0..2 {
        eval(&server, copied!("release_fixed_key"), &["stock:1"], &["o-1"]).unwrap();
    }
    assert_eq!(get(&server, "stock:1"), 3, "two units are gone for good");

    set(&server, "stock:1", "5");
    let scripts = common::connect(&server.url()).await;
    let keys = HoldKeys::of("stock:1").unwrap();
    let call = Reserve {
        keys: &keys,
        order: "o-1",
        quantity: 2,
        ttl_ms: 60_000,
        keep_ms: 60_000,
        now_ms: None,
    };
    for replayed in [false, true] {
        let reply = scripts.run(&call).await.unwrap();
        assert!(matches!(reply, ReserveReply::Held { available: 3, replayed: r, .. } if r == replayed));
    }
    for replayed in [false, true] {
        let reply = scripts
            .run(&Release {
                keys: &keys,
                order: "o-1",
                now_ms: None,
            })
            .await
            .unwrap();
        assert_eq!(
            reply,
            ReleaseReply::Released {
                quantity: 2,
                replayed
            }
        );
    }
    assert_eq!(
        (get(&server, "stock:1"), get(&server, "{stock:1}:reserved")),
        (5, 0)
    );
}

#[tokio::test]
async fn a_token_bucket_with_floor_loses_tokens() {
    let server = Server::start();
    let scripts = common::connect(&server.url()).await;
    let (mut copied, mut ours) = (0, 0);
    for call in 0..1000_u64 {
        let now = 1_000_000 + call * 60;
        let reply = eval(
            &server,
            copied!("token_bucket_floor"),
            &["a"],
            &["15", "10", &now.to_string()],
        )
        .unwrap();
        copied += i64::from(reply == Value::Int(1));
        let ask = TokenBucket {
            bucket: "b",
            capacity: 10,
            refill: 15,
            period_ms: 1000,
            cost: 1,
            now_ms: Some(now),
        };
        ours += i64::from(scripts.run(&ask).await.unwrap().is_allowed());
    }
    assert_eq!(copied, 505);
    assert_eq!(ours, 909, "10 at first, and 15 a second for 59.94 seconds");
}

#[tokio::test]
async fn a_sha_passed_as_a_key_makes_the_stock_invisible() {
    let server = Server::start();
    set(&server, "stock:1", "5");
    let mut admin = server.admin().unwrap();
    let sha: String = server.run(&["SCRIPT", "LOAD", copied!("deduct")]);
    let reply: i64 = redis::cmd("EVALSHA")
        .arg(&sha)
        .arg(2)
        .arg(&sha)
        .arg("stock:1")
        .arg(1)
        .query(&mut admin)
        .unwrap();
    assert_eq!(reply, -2, "KEYS[1] is the SHA: no such stock");

    let scripts = common::connect(&server.url()).await;
    assert_eq!(
        scripts
            .run(&Deduct {
                stock: "stock:1",
                quantity: 1
            })
            .await
            .unwrap(),
        Left::Units(4)
    );
    let header = &named("deduct").unwrap().ready().unwrap().header;
    assert!(
        header.fits(1, 1) && !header.fits(2, 1),
        "tools refuse a second key"
    );
}

#[tokio::test]
async fn one_hash_tag_for_everything_puts_all_on_one_node() {
    let cluster = Cluster::start();
    let node = &cluster.nodes()[0];
    let on_nodes = |name: &dyn Fn(u32) -> String| {
        let mut counts = [0; 3];
        for sku in 0..300 {
            let slot: usize = node.run(&["CLUSTER", "KEYSLOT", &name(sku)]);
            counts[slot * 3 / 16_384] += 1;
        }
        counts
    };
    let mut copied = on_nodes(&|sku| format!("{{stock}}:{sku}"));
    copied.sort_unstable();
    assert_eq!(copied, [0, 0, 300]);
    assert!(
        on_nodes(&|sku| format!("stock:{sku}"))
            .iter()
            .all(|count| *count > 60)
    );
    // And the companions of a stock lie with it all the same.
    let keys = HoldKeys::of("stock:7").unwrap();
    let slot = |key: &str| node.run::<i64>(&["CLUSTER", "KEYSLOT", key]);
    assert!(
        [&keys.reserved, &keys.orders, &keys.ends]
            .iter()
            .all(|key| slot(key) == slot("stock:7"))
    );
}

#[tokio::test]
async fn the_time_limit_stops_no_script_it_makes_others_see_busy() {
    let server = Server::with(Options::default().set("busy-reply-threshold", "50"));
    set(&server, "stock:1", "5");
    let scripts = common::connect(&server.url()).await;
    let call = Deduct {
        stock: "stock:1",
        quantity: 1,
    };
    scripts.run(&call).await.unwrap();
    let mut admin = server.admin().unwrap();
    let long = tokio::task::spawn_blocking(move || {
        let mut command = redis::cmd("EVAL");
        command
            .arg(copied!("long_write"))
            .arg(1)
            .arg("flag")
            .arg(1500)
            .query::<i64>(&mut admin)
    });
    let mut busy = false;
    while !long.is_finished() {
        if let Err(error) = scripts.run(&call).await {
            assert!(
                matches!(
                    error,
                    ScriptError::Server {
                        state: ServerState::Busy,
                        ..
                    }
                ),
                "{error:?}"
            );
            assert_eq!(error.happened(), Happened::Nothing);
            busy = true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(
        long.await.unwrap().unwrap(),
        1,
        "thirty times past the limit, it ran to its end and wrote"
    );
    assert_eq!(server.run::<String>(&["GET", "flag"]), "done");
    assert!(busy);

    // The scripts here bound their work instead: a thousand keys are far from any limit, and more are refused.
    let names: Vec<String> = (0..1001).map(|sku| format!("{{cart}}:{sku}")).collect();
    for name in &names {
        set(&server, name, "5");
    }
    let lines = |count: usize| DeductMany {
        lines: names[..count].iter().map(|name| (name.as_str(), 1)).collect(),
    };
    assert!(matches!(
        scripts.run(&lines(1000)).await.unwrap(),
        ManyReply::Done(_)
    ));
    assert!(matches!(
        scripts.run(&lines(1001)).await.unwrap_err(),
        ScriptError::BadArgument { .. }
    ));
}

#[tokio::test]
async fn random_start_segments_break_retries() {
    let server = Server::start();
    let segments: Vec<String> = (1..=3).map(|segment| format!("{{stock:1}}:{segment}")).collect();
    let fill = || segments.iter().for_each(|key| set(&server, key, "5"));
    let sum = || segments.iter().map(|key| get(&server, key)).sum::<i64>();
    let keys: Vec<&str> = segments.iter().map(String::as_str).collect();
    fill();
    // The first answer was lost; the retry starts elsewhere.
    for start in ["1", "3"] {
        eval(&server, copied!("segment_from"), &keys, &["2", start]).unwrap();
    }
    assert_eq!(sum(), 11, "one order took twice");

    fill();
    let scripts = common::connect(&server.url()).await;
    let call = SegmentDeduct {
        order: "{stock:1}:order:o-1",
        segments: &segments,
        quantity: 2,
        caller: "o-1",
        keep_ms: 60_000,
    };
    for again in [false, true] {
        let reply = scripts.run(&call).await.unwrap();
        assert!(matches!(reply, SegmentReply::Done { replayed, .. } if replayed == again));
    }
    assert_eq!(sum(), 13);
}

#[tokio::test]
async fn time_has_nothing_to_do_with_crossslot() {
    let cluster = Cluster::start();
    let node = &cluster.nodes()[cluster.owner_of("a")];
    assert_eq!(
        eval(node, copied!("time_and_key"), &["a"], &[]).unwrap(),
        Value::Int(1),
        "TIME is fine"
    );
    let error = eval(node, "return 1", &["a", "b"], &[]).unwrap_err();
    assert_eq!(
        error.code(),
        Some("CROSSSLOT"),
        "two slots are not, with or without TIME"
    );

    let scripts = connect::cluster(cluster.urls(), Duration::from_secs(10))
        .await
        .unwrap();
    let ask = TokenBucket {
        bucket: "a:b",
        capacity: 5,
        refill: 1,
        period_ms: 1000,
        cost: 1,
        now_ms: None,
    };
    assert!(
        scripts.run(&ask).await.unwrap().is_allowed(),
        "by the server's clock, in a cluster"
    );
}

#[tokio::test]
async fn tonumber_accepts_what_decrby_refuses() {
    let server = Server::start();
    set(&server, "stock:1", "5000");
    // As a Lua number, the nonsense becomes units.
    assert_eq!(
        eval(&server, copied!("deduct"), &["stock:1"], &["0x10"]).unwrap(),
        Value::Int(4984)
    );
    assert_eq!(
        eval(&server, copied!("deduct"), &["stock:1"], &["1e3"]).unwrap(),
        Value::Int(3984)
    );
    // As text, it passes the check and fails at the write.
    eval(
        &server,
        copied!("deduct_and_count"),
        &["stock:1", "sold:1"],
        &["0x10"],
    )
    .unwrap_err();

    let scripts = common::connect(&server.url()).await;
    for bad in ["0x10", "1e3", " 5", "nan", "1.5"] {
        let raw = scripts
            .run_raw(named("deduct").unwrap(), &[b"stock:1".to_vec()], &[bad.into()])
            .await;
        assert!(
            matches!(raw.unwrap_err(), ScriptError::BadArgument { .. }),
            "{bad}"
        );
    }
    assert_eq!(get(&server, "stock:1"), 3984);
}

#[test]
fn the_page_names_every_test_here_and_no_other() {
    let page = include_str!("../../../docs/errata.md");
    let source = include_str!("errata.rs");
    let mut tests: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("async fn ")?.strip_suffix("() {"))
        .collect();
    let mut named: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("Test: `")?.strip_suffix('`'))
        .collect();
    tests.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, tests);
}

//! The way to the server when it or the network is in a bad state: every error is typed and says whether anything may
//! have happened, nothing hangs, and what can be mended is mended unseen.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{add_entry, at, base, done, dump, hot, id, live, open_empty, options, sent, sku};
use stockade_core::Id;
use stockade_redis::{CallError, Chunk, Fenced, Hot, KeptIds, Kind, Options, Token};
use stockade_testkit::proxy::Proxy;
use stockade_testkit::redis::{self as servers, Server, until};

fn not_done<T: std::fmt::Debug>(result: Result<T, CallError>, wanted: Kind) {
    match result {
        Err(CallError::NotDone { kind, .. }) if kind == wanted => {}
        other => panic!("{other:?}, wanted {wanted:?} and nothing done"),
    }
}

fn unknown<T: std::fmt::Debug>(result: Result<T, CallError>, wanted: Kind) {
    match result {
        Err(CallError::Unknown { kind, .. }) if kind == wanted => {}
        other => panic!("{other:?}, wanted {wanted:?} and not known"),
    }
}

/// Gives up on a reply soon.
fn hasty(url: String) -> Options {
    Options {
        connect_within: Duration::from_millis(500),
        reply_within: Duration::from_millis(500),
        ..options(url)
    }
}

async fn until_ok<T, F: Future<Output = Result<T, CallError>>>(mut send: impl FnMut() -> F) -> T {
    let start = Instant::now();
    loop {
        match send().await {
            Ok(reply) => return reply,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(30), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn script_flush_in_a_loop_reaches_no_caller_of_a_pipeline() {
    let server = Server::start();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 0, 0)).await;
    hot.load_scripts().await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let flusher = {
        let (over, mut admin) = (Arc::clone(&over), server.admin().unwrap());
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                redis::cmd("SCRIPT").arg("FLUSH").query::<()>(&mut admin).unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
        })
    };
    let mut workers = Vec::new();
    for worker in 0..16 {
        let hot = hot.clone();
        workers.push(tokio::spawn(async move {
            for n in 0..100_u64 {
                let name = id(&format!("sku-{worker}-{n}"));
                let (sent, tenant, token) = (sent(2, 1), Id::default_name(), Token(n));
                done(hot.mark(&sent, &tenant, &name, token, false).await.unwrap());
                assert!(done(
                    hot.load_sku(&sent, &tenant, &name, token, at(2, 0, 0), None, None)
                        .await
                        .unwrap()
                ));
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    flusher.join().unwrap();
    assert_eq!(
        server.run::<i64>(&["HLEN", "{stockade:0}:2:markers"]),
        1_600,
        "each once"
    );
    let stats = hot.stats();
    assert!(stats.reloads >= 5, "{stats:?}");
    assert_eq!(stats.errors, [], "a missing script is no error");
    let mark = stats.scripts.iter().find(|one| one.script == "mark").unwrap();
    assert!(mark.calls == 1_600 && mark.micros > 0, "{mark:?}");
}

#[tokio::test]
async fn a_cut_leaves_the_outcome_unknown_and_the_next_call_works() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let hot = Hot::connect(options(proxy.url())).await.unwrap();
    open_empty(&hot, &base(2, 0, 0)).await;
    proxy.cut_at_next_answer();
    unknown(hot.fence(3).await, Kind::Cut);
    let meta = until_ok(|| hot.meta()).await.unwrap();
    assert_eq!(meta.tip.epoch, 3, "it was carried out");
    assert_eq!(
        hot.fence(3).await.unwrap(),
        Fenced::Closed,
        "and is safe to send again"
    );
    let stats = hot.stats();
    assert_eq!(stats.errors, [(Kind::Cut, 1)]);
    assert_eq!(stats.connects, 3, "two at first, then one again");
}

#[tokio::test]
async fn a_connection_that_was_cut_while_idle_costs_no_call() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let hot = Hot::connect(options(proxy.url())).await.unwrap();
    for _ in 0..5 {
        proxy.cut();
        let start = Instant::now();
        while hot.stats().up > 0 {
            assert!(start.elapsed() < Duration::from_secs(30), "nobody notices");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        hot.time().await.unwrap();
    }
    assert_eq!(hot.stats().errors, []);
}

#[tokio::test]
async fn a_killed_server_is_named_and_comes_back() {
    let mut server = Server::append_only();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 0, 0)).await;
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let hot = hot.clone();
            tokio::spawn(async move {
                loop {
                    if let Err(error) = hot.backlog(2).await {
                        return error;
                    }
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.kill();
    for call in calls {
        let error = call.await.unwrap();
        let cut = matches!(error, CallError::Unknown { kind: Kind::Cut, .. });
        let down = matches!(
            error,
            CallError::NotDone {
                kind: Kind::NoConnection,
                ..
            }
        );
        assert!(cut || down, "{error:?}");
    }
    // While it is down, calls fail at once and for sure.
    let start = Instant::now();
    for _ in 0..200 {
        not_done(hot.backlog(2).await, Kind::NoConnection);
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    server.restart();
    let backlog = until_ok(|| hot.backlog(2)).await;
    assert_eq!(done(backlog).entries, 0);
}

#[tokio::test]
async fn a_loading_server_says_so() {
    let mut server = Server::append_only();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 0, 0)).await;
    server.run::<()>(&["DEBUG", "POPULATE", "20000", "filler", "100"]);
    server.run::<()>(&["BGREWRITEAOF"]);
    until("the log to be rewritten", || {
        let info: String = server.run(&["INFO", "persistence"]);
        (info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")).then_some(())
    });
    server.restart_slowly(&[
        ("key-load-delay", "200"),
        ("loading-process-events-interval-bytes", "1024"),
    ]);
    let mut loading = 0;
    let start = Instant::now();
    loop {
        match hot.backlog(2).await {
            Ok(backlog) => {
                assert_eq!(done(backlog).entries, 0, "not empty, and not another epoch");
                break;
            }
            Err(CallError::NotDone {
                kind: Kind::Loading, ..
            }) => loading += 1,
            Err(CallError::NotDone {
                kind: Kind::NoConnection,
                ..
            }) => {}
            // The end of the old connection, seen by the first call only.
            Err(CallError::Unknown { kind: Kind::Cut, .. }) if loading == 0 => {}
            Err(error) => panic!("{error:?}"),
        }
        assert!(start.elapsed() < Duration::from_secs(60), "it does not come back");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(loading > 0);
}

#[tokio::test]
async fn a_server_that_stands_still_times_out_and_then_fails_for_sure() {
    let server = Server::start();
    let hot = Hot::connect(hasty(server.url())).await.unwrap();
    open_empty(&hot, &base(2, 0, 0)).await;
    server.pause();
    let start = Instant::now();
    unknown(hot.fence(3).await, Kind::TimedOut);
    // From now on nothing is sent, since no connection can be made.
    not_done(hot.fence(4).await, Kind::NoConnection);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    server.resume();
    let meta = until_ok(|| hot.meta()).await.unwrap();
    assert_eq!(meta.tip.epoch, 3, "what was sent before was carried out later");
}

#[tokio::test]
async fn a_half_open_connection_hangs_nobody() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let hot = Hot::connect(hasty(proxy.url())).await.unwrap();
    open_empty(&hot, &base(2, 0, 0)).await;
    proxy.hold();
    let start = Instant::now();
    unknown(hot.backlog(2).await, Kind::TimedOut);
    let calls: Vec<_> = (0..32)
        .map(|_| {
            let hot = hot.clone();
            tokio::spawn(async move { hot.backlog(2).await })
        })
        .collect();
    for call in calls {
        not_done(call.await.unwrap(), Kind::NoConnection);
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    // While one caller tries to connect again, which takes as long as it may, the others fail at once.
    let start = Instant::now();
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let hot = hot.clone();
            tokio::spawn(async move {
                let (mut quick, mut slow) = (0, 0);
                while start.elapsed() < Duration::from_millis(1_200) {
                    let call = Instant::now();
                    not_done(hot.backlog(2).await, Kind::NoConnection);
                    if call.elapsed() < Duration::from_millis(250) {
                        quick += 1;
                    } else {
                        slow += 1;
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                (quick, slow)
            })
        })
        .collect();
    let (mut quick, mut slow) = (0, 0);
    for call in calls {
        let (one, other) = call.await.unwrap();
        (quick, slow) = (quick + one, slow + other);
    }
    assert!(quick > 100 && slow <= 8, "{quick} quick, {slow} slow");
    proxy.release();
    until_ok(|| hot.backlog(2)).await;
}

#[tokio::test]
async fn replies_that_are_late_are_never_taken_for_others() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let hot = Hot::connect(Options {
        reply_within: Duration::from_millis(60),
        connect_within: Duration::from_secs(20),
        ..options(proxy.url())
    })
    .await
    .unwrap();
    open_empty(&hot, &base(2, 0, 0)).await;
    let (tenant, sent) = (Id::default_name(), sent(2, 1));
    let mut late = 0;
    for n in 0..45_u64 {
        proxy.slow_answers(Duration::from_millis(if n % 3 == 0 { 90 } else { 0 }));
        let name = id(&format!("sku-{n}"));
        match hot.mark(&sent, &tenant, &name, Token(1_000 + n), false).await {
            Ok(marked) => {
                let marked = format!("{:?}", done(marked));
                assert!(
                    marked.contains(&format!("Token({})", 1_000 + n)),
                    "{marked}: another's"
                );
            }
            Err(CallError::Unknown {
                kind: Kind::TimedOut, ..
            }) => late += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(late > 5, "only {late} were late");
}

#[tokio::test]
async fn out_of_memory_refuses_what_grows_and_takes_what_frees() {
    let server = Server::start();
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 0, 0)).await;
    add_entry(&server, 2, 1, 1, 0);
    server.run::<String>(&["SET", "{stockade:0}:1:outbox", "old"]);
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let before = dump(&server);
    let (tenant, name, sent) = (Id::default_name(), id("A"), sent(2, 1));
    not_done(
        hot.mark(&sent, &tenant, &name, Token(1), false).await,
        Kind::OutOfMemory,
    );
    not_done(hot.chunk(2, 1, &Chunk::default()).await, Kind::OutOfMemory);
    not_done(hot.base(&base(2, 0, 0)).await, Kind::OutOfMemory);
    assert_eq!(dump(&server), before);
    assert_eq!(done(hot.backlog(2).await.unwrap()).entries, 1);
    assert!(hot.trim(at(2, 1, 1)).await.unwrap());
    let kept = KeptIds {
        recorded: 1,
        older_than: 0,
        keep: 0,
        keep_bytes: 0,
        limit: 100,
    };
    assert_eq!(done(hot.forget(&sent, &kept).await.unwrap()).forgotten, 0);
    assert_eq!(hot.drop_older(2).await.unwrap(), 1);
    assert_eq!(hot.fence(3).await.unwrap(), Fenced::Closed);
    assert!(hot.stats().errors.contains(&(Kind::OutOfMemory, 3)));
}

#[tokio::test]
async fn a_replica_takes_nothing() {
    let primary = Server::start();
    let first = hot(&primary).await;
    open_empty(&first, &base(2, 0, 0)).await;
    let replica = primary.replica();
    let second = hot(&replica).await;
    until("the shard to arrive", || {
        replica
            .run::<i64>(&["EXISTS", "{stockade:0}:meta"])
            .eq(&1)
            .then_some(())
    });
    not_done(second.fence(3).await, Kind::ReadOnly);
    not_done(second.read(2, 0, 10).await, Kind::ReadOnly);
    not_done(second.trim(at(2, 0, 0)).await, Kind::ReadOnly);
    replica.run::<()>(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(
        second.fence(3).await.unwrap(),
        Fenced::Closed,
        "the same connection"
    );
    primary.run::<()>(&["REPLICAOF", "127.0.0.1", &replica.port().to_string()]);
    not_done(first.fence(4).await, Kind::ReadOnly);
}

#[tokio::test]
async fn a_busy_server_is_an_error_only_while_it_is_busy() {
    let server = Server::with(servers::Options::default().set("busy-reply-threshold", "50"));
    let hot = hot(&server).await;
    open_empty(&hot, &base(2, 0, 0)).await;
    let mut admin = server.admin().unwrap();
    let blocker = std::thread::spawn(move || {
        let endless = redis::cmd("EVAL")
            .arg("while true do end")
            .arg(0)
            .query::<()>(&mut admin);
        assert!(endless.unwrap_err().to_string().contains("killed"));
    });
    let error = loop {
        match hot.backlog(2).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    not_done::<()>(Err(error), Kind::Busy);
    server.run::<()>(&["SCRIPT", "KILL"]);
    blocker.join().unwrap();
    hot.backlog(2).await.unwrap();
}

#[tokio::test]
async fn passwords_and_permissions_are_named() {
    let server = Server::start();
    server.run::<()>(&[
        "ACL",
        "SETUSER",
        "shop",
        "on",
        ">secret word",
        "~{stockade:*",
        "+@all",
        "-xtrim",
    ]);
    server.run::<()>(&["ACL", "SETUSER", "default", "on", ">other", "~*", "+@all"]);
    let url = |user: &str| format!("redis://{user}@127.0.0.1:{}/", server.port());
    for user in ["shop:wrong", "nobody:secret", ":wrong"] {
        not_done(Hot::connect(options(url(user))).await, Kind::NotAllowed);
    }
    let no_password = Hot::connect(options(server.url())).await;
    not_done(no_password, Kind::NotAllowed);
    let hot = Hot::connect(options(url("shop:secret%20word"))).await.unwrap();
    open_empty(&hot, &base(2, 0, 0)).await;
    let mut admin = Hot::connect(Options {
        prefix: "another".to_owned(),
        ..options(url("shop:secret%20word"))
    })
    .await
    .unwrap();
    not_done(admin.fence(2).await, Kind::NotAllowed);
    // With a database of its own.
    admin = Hot::connect(options(url(":other") + "3")).await.unwrap();
    assert_eq!(admin.meta().await.unwrap(), None);
    assert_eq!(hot.meta().await.unwrap().unwrap().tip.epoch, 2);
}

#[tokio::test]
async fn whatever_goes_wrong_while_connecting_nothing_was_sent() {
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = format!("redis://{}", mute.local_addr().unwrap());
    for url in [mute.as_str(), "redis://no-such-host.invalid", "not an address"] {
        let options = Options {
            connect_within: Duration::from_millis(200),
            ..options(url.to_owned())
        };
        not_done(Hot::connect(options).await, Kind::NoConnection);
    }
}

#[tokio::test]
async fn a_chunk_whose_reply_is_lost_is_in_once() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let hot = Hot::connect(options(proxy.url())).await.unwrap();
    hot.fence(2).await.unwrap();
    hot.base(&base(2, 0, 0)).await.unwrap();
    for number in 1..=10 {
        let chunk = Chunk {
            skus: vec![sku(&format!("A{number}"), 5, 2)],
            live: vec![
                live(&format!("r{number}"), &format!("A{number}"), 5_000),
                live(&format!("s{number}"), &format!("A{number}"), 6_000),
            ],
            ..Chunk::default()
        };
        proxy.cut_at_next_answer();
        unknown(hot.chunk(2, number, &chunk).await, Kind::Cut);
        assert!(until_ok(|| hot.chunk(2, number, &chunk)).await);
    }
    assert!(hot.open(2, 10).await.unwrap());
    let ends: i64 = server.run(&["LLEN", "{stockade:0}:2:end:5"]);
    assert_eq!(ends, 10);
}

//! Redis in a bad state: every error is typed and says whether anything happened, and no caller notices what can be mended.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{connect, reconnecting, with_patience};
use stockade_scripts::scripts::{Confirm, Release};
use stockade_scripts::scripts::{
    ConfirmReply, Deduct, DeductOnce, HoldKeys, Left, OnceReply, ReleaseReply, Reserve, ReserveReply,
};
use stockade_scripts::{Happened, ScriptError, ServerState};
use stockade_testkit::proxy::Proxy;
use stockade_testkit::redis::{Options, Server, until};

const DEDUCT: Deduct<'_> = Deduct {
    stock: "stock:1",
    quantity: 1,
};

fn assert_state(error: &ScriptError, wanted: ServerState) {
    assert!(
        matches!(error, ScriptError::Server { state, .. } if *state == wanted),
        "{error:?}"
    );
    assert_eq!(error.happened(), Happened::Nothing);
}

#[tokio::test]
async fn script_flush_under_load_reaches_no_caller() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1", "1000000"]);
    let scripts = connect(&server.url()).await;
    let over = Arc::new(AtomicBool::new(false));
    let flusher = {
        let (over, mut admin) = (Arc::clone(&over), server.admin().unwrap());
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                redis::cmd("SCRIPT").arg("FLUSH").query::<()>(&mut admin).unwrap();
                std::thread::sleep(Duration::from_millis(100));
            }
        })
    };
    let start = Instant::now();
    let mut workers = Vec::new();
    for pipelined in [false, false, false, true, true] {
        let scripts = scripts.clone();
        workers.push(tokio::spawn(async move {
            let mut done = 0_u64;
            while start.elapsed() < Duration::from_secs(2) {
                if pipelined {
                    for reply in scripts.pipeline(&[DEDUCT; 8]).await.unwrap() {
                        assert!(matches!(reply.unwrap(), Left::Units(_)));
                        done += 1;
                    }
                } else {
                    assert!(matches!(scripts.run(&DEDUCT).await.unwrap(), Left::Units(_)));
                    done += 1;
                }
            }
            done
        }));
    }
    let mut done = 0;
    for worker in workers {
        done += worker.await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    flusher.join().unwrap();
    assert_eq!(
        server.run::<u64>(&["GET", "stock:1"]),
        1_000_000 - done,
        "each call once"
    );
    assert!(scripts.reloads() >= 10, "{} reloads", scripts.reloads());
}

#[tokio::test]
async fn a_pipeline_gives_each_call_its_own_answer_in_order() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1", "3"]);
    server.run::<()>(&["SET", "stock:2", "ten"]);
    let scripts = connect(&server.url()).await;
    let bad = Deduct {
        stock: "stock:2",
        quantity: 1,
    };
    let zero = Deduct {
        stock: "stock:1",
        quantity: 0,
    };
    let mut replies = scripts
        .pipeline(&[DEDUCT, bad, DEDUCT, zero, DEDUCT, DEDUCT])
        .await
        .unwrap()
        .into_iter();
    assert_eq!(replies.next().unwrap().unwrap(), Left::Units(2));
    let ScriptError::Corrupt { key, .. } = replies.next().unwrap().unwrap_err() else {
        panic!()
    };
    assert_eq!(key, "stock:2");
    assert_eq!(replies.next().unwrap().unwrap(), Left::Units(1));
    assert!(matches!(
        replies.next().unwrap().unwrap_err(),
        ScriptError::BadArgument { .. }
    ));
    assert_eq!(replies.next().unwrap().unwrap(), Left::Units(0));
    assert_eq!(replies.next().unwrap().unwrap(), Left::Short);
    assert_eq!(scripts.reloads(), 1);
    assert!(scripts.pipeline::<Deduct<'_>>(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_replica_refuses_and_serves_after_its_promotion() {
    let primary = Server::start();
    primary.run::<()>(&["SET", "stock:1", "5"]);
    let replica = primary.replica();
    let scripts = connect(&replica.url()).await;
    let error = scripts.run(&DEDUCT).await.unwrap_err();
    assert_state(&error, ServerState::ReadOnly);
    assert!(error.is_passing());
    until("the stock to arrive", || {
        replica.run::<Option<i64>>(&["GET", "stock:1"])
    });
    replica.run::<()>(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(
        scripts.run(&DEDUCT).await.unwrap(),
        Left::Units(4),
        "the same connection, the same call"
    );
    // The old primary becomes a replica under its callers.
    let old = connect(&primary.url()).await;
    primary.run::<()>(&["REPLICAOF", "127.0.0.1", &replica.port().to_string()]);
    assert_state(&old.run(&DEDUCT).await.unwrap_err(), ServerState::ReadOnly);
}

#[tokio::test]
async fn a_server_that_is_loading_says_so_and_is_not_empty() {
    let mut server = Server::append_only();
    server.run::<()>(&["SET", "stock:1", "5"]);
    server.run::<()>(&["DEBUG", "POPULATE", "20000", "filler", "100"]);
    server.run::<()>(&["BGREWRITEAOF"]);
    until("the log to be rewritten", || {
        let info: String = server.run(&["INFO", "persistence"]);
        (info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")).then_some(())
    });
    // Each loaded key takes a little longer, so that there is a while to look at.
    server.restart_slowly(&[
        ("key-load-delay", "200"),
        ("loading-process-events-interval-bytes", "1024"),
    ]);
    let scripts = connect(&server.url()).await;
    let error = scripts.run(&DEDUCT).await.unwrap_err();
    assert_state(&error, ServerState::Loading);
    until("the server to have loaded", || server.is_ready().then_some(()));
    assert_eq!(scripts.run(&DEDUCT).await.unwrap(), Left::Units(4));
}

#[tokio::test]
async fn out_of_memory_refuses_whole_scripts_while_those_that_free_go_on() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1", "100"]);
    let scripts = connect(&server.url()).await;
    let keys = HoldKeys::of("stock:1").unwrap();
    let hold = |order| Reserve {
        keys: &keys,
        order,
        quantity: 2,
        ttl_ms: 600_000,
        keep_ms: 600_000,
        now_ms: None,
    };
    for order in ["o-1", "o-2"] {
        assert!(matches!(
            scripts.run(&hold(order)).await.unwrap(),
            ReserveReply::Held { .. }
        ));
    }
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "1mb"]);
    assert_state(
        &scripts.run(&hold("o-3")).await.unwrap_err(),
        ServerState::OutOfMemory,
    );
    assert_state(&scripts.run(&DEDUCT).await.unwrap_err(), ServerState::OutOfMemory);
    let sold = scripts
        .run(&Confirm {
            keys: &keys,
            order: "o-1",
            now_ms: None,
        })
        .await
        .unwrap();
    assert_eq!(
        sold,
        ConfirmReply::Sold {
            quantity: 2,
            replayed: false
        }
    );
    let freed = scripts
        .run(&Release {
            keys: &keys,
            order: "o-2",
            now_ms: None,
        })
        .await
        .unwrap();
    assert_eq!(
        freed,
        ReleaseReply::Released {
            quantity: 2,
            replayed: false
        }
    );
    assert_eq!(server.run::<i64>(&["GET", "stock:1"]), 98);
    assert_eq!(server.run::<i64>(&["GET", "{stock:1}:reserved"]), 0);
}

#[tokio::test]
async fn a_busy_server_is_an_error_only_while_it_is_busy() {
    let server = Server::with(Options::default().set("busy-reply-threshold", "50"));
    server.run::<()>(&["SET", "stock:1", "5"]);
    let scripts = connect(&server.url()).await;
    scripts.run(&DEDUCT).await.unwrap();
    let mut admin = server.admin().unwrap();
    let blocker = std::thread::spawn(move || {
        let endless = redis::cmd("EVAL")
            .arg("while true do end")
            .arg(0)
            .query::<()>(&mut admin);
        assert!(endless.unwrap_err().to_string().contains("killed"));
    });
    let error = loop {
        match scripts.run(&DEDUCT).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_state(&error, ServerState::Busy);
    let left = |server: &Server| server.run::<i64>(&["GET", "stock:1"]);
    server.run::<()>(&["SCRIPT", "KILL"]);
    blocker.join().unwrap();
    let before = left(&server);
    scripts.run(&DEDUCT).await.unwrap();
    assert_eq!(left(&server), (before - 1).max(0), "the next call works");
}

#[tokio::test]
async fn a_lost_answer_is_an_unknown_outcome_that_an_order_id_settles() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1", "5"]);
    let proxy = Proxy::to(server.port());
    let scripts = reconnecting(&proxy.url(), Duration::from_secs(20)).await;
    let once = DeductOnce {
        stock: "stock:1",
        order: "{stock:1}:order:o-1",
        quantity: 2,
        keep_ms: 60_000,
    };
    let other = DeductOnce {
        order: "{stock:1}:order:o-0",
        quantity: 1,
        ..once
    };
    scripts.run(&other).await.unwrap();
    proxy.cut_at_next_answer();
    let error = scripts.run(&once).await.unwrap_err();
    assert_eq!(error.happened(), Happened::Unknown, "{error:?}");
    assert_eq!(server.run::<i64>(&["GET", "stock:1"]), 2, "it was carried out");
    let reply = until_ok(|| scripts.run(&once)).await;
    assert_eq!(
        reply,
        OnceReply::Done {
            left: 2,
            replayed: true
        }
    );
    assert_eq!(server.run::<i64>(&["GET", "stock:1"]), 2, "and not a second time");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_means_that_nothing_happened() {
    let mut server = Server::start();
    server.run::<()>(&["SET", "stock:1", "5"]);
    let scripts = reconnecting(&server.url(), Duration::from_secs(20)).await;
    scripts.run(&DEDUCT).await.unwrap();
    server.kill();
    let mut last = None;
    for _ in 0..5 {
        last = Some(scripts.run(&DEDUCT).await.unwrap_err());
    }
    assert_state(&last.unwrap(), ServerState::Unreachable);
    server.restart();
    assert_eq!(
        until_ok(|| scripts.run(&DEDUCT)).await,
        Left::NoSuchKey,
        "empty, and without the script"
    );
}

#[tokio::test]
async fn whatever_goes_wrong_while_connecting_nothing_happened() {
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = format!("redis://{}", mute.local_addr().unwrap());
    for url in [mute.as_str(), "redis://no-such-host.invalid", "not an address"] {
        let patience = Duration::from_millis(200);
        let Err(error) = stockade_scripts::connect::single(url, patience).await else {
            panic!("{url}: connected");
        };
        assert_state(&error, ServerState::Unreachable);
        assert_eq!(error.happened(), Happened::Nothing, "{url}");
    }
}

#[tokio::test]
async fn an_answer_that_comes_after_its_time_out_is_never_read_by_the_next_command() {
    let server = Server::start();
    for stock in 0..50 {
        server.run::<()>(&["SET", &format!("stock:{stock}"), &(1000 + stock).to_string()]);
    }
    let proxy = Proxy::to(server.port());
    let scripts = with_patience(&proxy.url(), Duration::from_millis(60)).await;
    scripts
        .run(&Deduct {
            stock: "stock:49",
            quantity: 1,
        })
        .await
        .unwrap();
    let mut late = 0;
    for stock in 0..49_u64 {
        // Every third answer comes after its caller has given up.
        proxy.slow_answers(Duration::from_millis(if stock % 3 == 0 { 90 } else { 0 }));
        match scripts
            .run(&Deduct {
                stock: &format!("stock:{stock}"),
                quantity: 1,
            })
            .await
        {
            Ok(left) => assert_eq!(left, Left::Units(999 + stock), "another stock's answer"),
            Err(error) => {
                assert_eq!(error.happened(), Happened::Unknown, "{error:?}");
                late += 1;
            }
        }
    }
    assert!(late > 5, "only {late} answers were late");
}

async fn until_ok<T, F: Future<Output = Result<T, ScriptError>>>(mut send: impl FnMut() -> F) -> T {
    let start = Instant::now();
    loop {
        match send().await {
            Ok(reply) => return reply,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(30), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_user_who_may_not_write_is_not_told_that_the_stock_is_short() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1", "5"]);
    server.run::<()>(&[
        "ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all", "-decrby",
    ]);
    let scripts = connect(&format!("redis://reader:secret@127.0.0.1:{}/", server.port())).await;
    let error = scripts.run(&DEDUCT).await.unwrap_err();
    // Valkey says NOPERM, Redis ERR.
    assert!(!matches!(error, ScriptError::Unexpected { .. }), "{error:?}");
    assert_eq!(server.run::<i64>(&["GET", "stock:1"]), 5);
}

//! All scripts on a six-node cluster: every key is declared and in one slot, or a script would be refused here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use redis::cluster_async::ClusterConnection;
use stockade_scripts::scripts::{Deduct, DeductMany, DeductOnce, Left, OnceReply, all};
use stockade_scripts::segments::{Segments, Spread, Taken};
use stockade_scripts::vectors::VectorFile;
use stockade_scripts::{Happened, ScriptError, Scripts, ServerState, connect};
use stockade_testkit::redis::Cluster;

async fn connect(cluster: &Cluster) -> Scripts<ClusterConnection> {
    connect::cluster(cluster.urls(), Duration::from_secs(10))
        .await
        .unwrap()
}

#[tokio::test]
async fn every_vector_holds_in_a_cluster() {
    let cluster = Cluster::start();
    let scripts = connect(&cluster).await;
    let mut problems = Vec::new();
    for entry in all() {
        if let Err(error) = VectorFile::of(entry.script).unwrap().run(&scripts).await {
            problems.push(error.to_string());
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn keys_of_two_slots_are_refused_before_anything_happens() {
    let cluster = Cluster::start();
    let scripts = connect(&cluster).await;
    let mut connection = scripts.connection();
    for key in ["stock:1", "stock:2"] {
        redis::cmd("SET")
            .arg(key)
            .arg(5)
            .query_async::<()>(&mut connection)
            .await
            .unwrap();
    }
    let error = scripts
        .run(&DeductMany {
            lines: vec![("stock:1", 1), ("stock:2", 1)],
        })
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            ScriptError::Server {
                state: ServerState::CrossSlot,
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(error.happened(), Happened::Nothing);
    assert_eq!(
        redis::cmd("GET")
            .arg("stock:1")
            .query_async::<i64>(&mut connection)
            .await
            .unwrap(),
        5
    );
}

#[tokio::test]
async fn a_connection_to_one_node_is_told_that_the_slot_is_elsewhere() {
    let cluster = Cluster::start();
    let owner = cluster.owner_of("stock:1");
    let other = &cluster.nodes()[(owner + 1) % 3];
    let client = redis::Client::open(other.url()).unwrap();
    let scripts = Scripts::new(client.get_multiplexed_async_connection().await.unwrap());
    let error = scripts
        .run(&Deduct {
            stock: "stock:1",
            quantity: 1,
        })
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            ScriptError::Server {
                state: ServerState::Moved,
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(error.happened(), Happened::Nothing);
}

#[tokio::test]
async fn scripts_survive_a_failover() {
    let mut cluster = Cluster::start();
    let scripts = connect(&cluster).await;
    let mut connection = scripts.connection();
    redis::cmd("SET")
        .arg("stock:1")
        .arg(1000)
        .query_async::<()>(&mut connection)
        .await
        .unwrap();
    assert_eq!(
        scripts
            .run(&Deduct {
                stock: "stock:1",
                quantity: 1
            })
            .await
            .unwrap(),
        Left::Units(999)
    );
    let copied: i64 = redis::cmd("WAIT")
        .arg(1)
        .arg(5000)
        .query_async(&mut connection)
        .await
        .unwrap_or(1);
    assert!(copied >= 1);
    let owner = cluster.owner_of("stock:1");
    cluster.nodes_mut()[owner].kill();
    let start = std::time::Instant::now();
    let left = loop {
        match scripts
            .run(&Deduct {
                stock: "stock:1",
                quantity: 1,
            })
            .await
        {
            Ok(left) => break left,
            Err(error) => {
                assert!(
                    start.elapsed() < Duration::from_secs(60),
                    "never came back: {error}"
                );
                assert!(!matches!(error, ScriptError::Unexpected { .. }), "{error:?}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    };
    let Left::Units(left) = left else {
        panic!("{left:?}")
    };
    assert!(
        left <= 998,
        "the promoted replica had the write that was waited for"
    );
}

#[tokio::test]
async fn a_call_whose_answer_is_late_is_not_sent_a_second_time() {
    let cluster = Cluster::start();
    let node = &cluster.nodes()[cluster.owner_of("stock:1")];
    node.run::<()>(&["SET", "stock:1", "5"]);
    let scripts = connect::cluster(cluster.urls(), Duration::from_millis(500))
        .await
        .unwrap();
    scripts
        .run(&Deduct {
            stock: "stock:1",
            quantity: 1,
        })
        .await
        .unwrap();
    node.pause();
    let error = scripts
        .run(&Deduct {
            stock: "stock:1",
            quantity: 1,
        })
        .await
        .unwrap_err();
    node.resume();
    assert_eq!(error.happened(), Happened::Unknown, "{error:?}");
    let start = std::time::Instant::now();
    while node.run::<i64>(&["GET", "stock:1"]) != 3 {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "what was sent is carried out"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(node.run::<i64>(&["GET", "stock:1"]), 3, "once");
}

#[tokio::test]
async fn a_slot_on_its_way_to_another_node_is_waited_for_and_the_order_is_taken_once() {
    let cluster = Cluster::start();
    let from = cluster.owner_of("stock:1");
    let to = (from + 1) % 3;
    let (from, to) = (&cluster.nodes()[from], &cluster.nodes()[to]);
    from.run::<()>(&["SET", "stock:1", "5"]);
    let id = |node: &stockade_testkit::redis::Server| node.run::<String>(&["CLUSTER", "MYID"]);
    let slot: String = from.run::<i64>(&["CLUSTER", "KEYSLOT", "stock:1"]).to_string();
    let (from_id, to_id) = (id(from), id(to));
    to.run::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
    from.run::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);

    let call = DeductOnce {
        stock: "stock:1",
        order: "{stock:1}:order:o-1",
        quantity: 2,
        keep_ms: 60_000,
    };
    let impatient = connect(&cluster).await.waiting(Duration::ZERO);
    let error = impatient.run(&call).await.unwrap_err();
    assert!(
        matches!(
            error,
            ScriptError::Server {
                state: ServerState::TryAgain,
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(error.happened(), Happened::Nothing);

    let scripts = connect(&cluster).await;
    let taken = tokio::spawn(async move { scripts.run(&call).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    from.run::<()>(&[
        "MIGRATE",
        "127.0.0.1",
        &to.port().to_string(),
        "stock:1",
        "0",
        "5000",
    ]);
    for node in [to, from] {
        node.run::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
    }
    assert_eq!(
        taken.await.unwrap().unwrap(),
        OnceReply::Done {
            left: 3,
            replayed: false
        }
    );
    assert_eq!(to.run::<i64>(&["GET", "stock:1"]), 3);
}

#[tokio::test]
async fn a_stock_in_segments_over_all_nodes_is_taken_once_gathered_and_given_back() {
    let cluster = Cluster::start();
    let scripts = connect(&cluster).await;
    let segments = Segments::new(scripts, "stock:1", 9, Spread::ManySlots, 60_000).unwrap();
    segments.init(9).await.unwrap();
    let owners: std::collections::BTreeSet<usize> =
        segments.keys().iter().map(|key| cluster.owner_of(key)).collect();
    assert_eq!(owners.len(), 3, "the load is on every node");
    let mut calls = Vec::new();
    for order in 0..5 {
        // Each order is sent twice at the same time, as by a caller who lost patience.
        for _ in 0..2 {
            let segments = segments.clone();
            calls.push(tokio::spawn(async move {
                segments.deduct(&format!("o-{order}"), 2).await.unwrap()
            }));
        }
    }
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    let mut taken = 0;
    for pair in answers.chunks_exact(2) {
        if let [Taken::Done { parts, .. }, Taken::Done { parts: same, .. }] = pair {
            assert_eq!(parts, same);
            taken += parts.iter().map(|part| part.units).sum::<u64>();
        } else {
            let ended = |one: &Taken| matches!(one, Taken::Short | Taken::GivenBack);
            assert!(pair.iter().all(ended), "{pair:?}");
        }
    }
    let sum = async || {
        let mut sum = 0;
        for key in segments.keys() {
            sum += cluster.nodes()[cluster.owner_of(key)].run::<u64>(&["GET", key]);
        }
        sum
    };
    assert_eq!(sum().await + taken, 9, "nothing is lost and nothing is made");
    for order in 0..5 {
        segments.restore(&format!("o-{order}")).await.unwrap();
    }
    assert_eq!(sum().await, 9);
}

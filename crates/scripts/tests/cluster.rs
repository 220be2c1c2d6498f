//! All scripts on a six-node cluster: every key is declared and in one slot, or a script would be refused here.

use std::time::Duration;

use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use stockade_scripts::scripts::{Deduct, DeductMany, Left, all};
use stockade_scripts::vectors::VectorFile;
use stockade_scripts::{Happened, ScriptError, Scripts, ServerState};
use stockade_testkit::redis::Cluster;

async fn connect(cluster: &Cluster) -> Scripts<ClusterConnection> {
    let client = ClusterClient::builder(cluster.urls())
        .connection_timeout(Duration::from_secs(5))
        .response_timeout(Duration::from_secs(10))
        .build()
        .unwrap();
    Scripts::new(client.get_async_connection().await.unwrap())
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
        redis::cmd("SET").arg(key).arg(5).query_async::<()>(&mut connection).await.unwrap();
    }
    let error = scripts.run(&DeductMany { lines: vec![("stock:1", 1), ("stock:2", 1)] }).await.unwrap_err();
    assert!(matches!(error, ScriptError::Server { state: ServerState::CrossSlot, .. }), "{error:?}");
    assert_eq!(error.happened(), Happened::Nothing);
    assert_eq!(redis::cmd("GET").arg("stock:1").query_async::<i64>(&mut connection).await.unwrap(), 5);
}

#[tokio::test]
async fn a_connection_to_one_node_is_told_that_the_slot_is_elsewhere() {
    let cluster = Cluster::start();
    let owner = cluster.owner_of("stock:1");
    let other = &cluster.nodes()[(owner + 1) % 3];
    let client = redis::Client::open(other.url()).unwrap();
    let scripts = Scripts::new(client.get_multiplexed_async_connection().await.unwrap());
    let error = scripts.run(&Deduct { stock: "stock:1", quantity: 1 }).await.unwrap_err();
    assert!(matches!(error, ScriptError::Server { state: ServerState::Moved, .. }), "{error:?}");
    assert_eq!(error.happened(), Happened::Nothing);
}

#[tokio::test]
async fn scripts_survive_a_failover() {
    let mut cluster = Cluster::start();
    let scripts = connect(&cluster).await;
    let mut connection = scripts.connection();
    redis::cmd("SET").arg("stock:1").arg(1000).query_async::<()>(&mut connection).await.unwrap();
    assert_eq!(
        scripts.run(&Deduct { stock: "stock:1", quantity: 1 }).await.unwrap(),
        Left::Units(999)
    );
    let copied: i64 = redis::cmd("WAIT").arg(1).arg(5000).query_async(&mut connection).await.unwrap_or(1);
    assert!(copied >= 1);
    let owner = cluster.owner_of("stock:1");
    cluster.nodes_mut()[owner].kill();
    let start = std::time::Instant::now();
    let left = loop {
        match scripts.run(&Deduct { stock: "stock:1", quantity: 1 }).await {
            Ok(left) => break left,
            Err(error) => {
                assert!(start.elapsed() < Duration::from_secs(60), "never came back: {error}");
                assert!(!matches!(error, ScriptError::Unexpected { .. }), "{error:?}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    };
    let Left::Units(left) = left else { panic!("{left:?}") };
    assert!(left <= 998, "the promoted replica had the write that was waited for");
}

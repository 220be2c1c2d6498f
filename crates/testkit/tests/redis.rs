//! The private servers and the proxy do what tests rely on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use stockade_testkit::proxy::Proxy;
use stockade_testkit::redis::{Cluster, Server, until};

#[test]
fn a_killed_server_with_a_log_comes_back_with_its_data() {
    let mut server = Server::append_only();
    server.run::<()>(&["SET", "a", "1"]);
    server.kill();
    assert!(server.admin().is_none());
    server.restart();
    assert_eq!(server.run::<String>(&["GET", "a"]), "1");
    server.restart_empty();
    assert_eq!(server.run::<Option<String>>(&["GET", "a"]), None);
}

#[test]
fn a_replica_follows_and_can_be_promoted() {
    let primary = Server::start();
    let replica = primary.replica();
    primary.run::<()>(&["SET", "a", "1"]);
    until("the write to arrive", || {
        replica.run::<Option<String>>(&["GET", "a"])
    });
    replica.run::<()>(&["REPLICAOF", "NO", "ONE"]);
    replica.run::<()>(&["SET", "a", "2"]);
}

#[test]
fn a_cluster_of_six_is_whole() {
    let cluster = Cluster::start();
    assert_eq!(cluster.nodes().len(), 6);
    let owner = cluster.owner_of("a");
    cluster.nodes()[owner].run::<()>(&["SET", "a", "1"]);
}

#[test]
fn the_proxy_passes_holds_and_cuts() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let client = redis::Client::open(proxy.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    redis::cmd("SET")
        .arg("a")
        .arg(1)
        .query::<()>(&mut connection)
        .unwrap();

    proxy.hold();
    connection
        .set_read_timeout(Some(std::time::Duration::from_millis(100)))
        .unwrap();
    redis::cmd("GET")
        .arg("a")
        .query::<i64>(&mut connection)
        .unwrap_err();
    proxy.release();

    // A proxy of its own: the answer that was held may still be on its way through the first one, and would be the next.
    let proxy = Proxy::to(server.port());
    let client = redis::Client::open(proxy.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    proxy.cut_at_next_answer();
    redis::cmd("INCR")
        .arg("a")
        .query::<i64>(&mut connection)
        .unwrap_err();
    assert_eq!(
        server.run::<i64>(&["GET", "a"]),
        2,
        "carried out, though the caller does not know"
    );

    proxy.refuse(true);
    assert!(client.get_connection().is_err());
}

#[test]
fn a_paused_server_answers_after_it_is_resumed() {
    let server = Server::start();
    let mut admin = server.admin().unwrap();
    server.pause();
    admin
        .set_read_timeout(Some(std::time::Duration::from_millis(100)))
        .unwrap();
    redis::cmd("PING").query::<String>(&mut admin).unwrap_err();
    server.resume();
    assert_eq!(server.run::<String>(&["PING"]), "PONG");
}

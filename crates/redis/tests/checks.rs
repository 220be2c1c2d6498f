//! What `stockade doctor` finds on real servers, setting by setting.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{base, dump, hot, live, options, sku};
use stockade_redis::{Chunk, Finding, Hot, Options, Severity, examine};
use stockade_testkit::proxy::Proxy;
use stockade_testkit::redis::{Server, until};

async fn findings(server: &Server) -> Vec<Finding> {
    examine(options(server.url())).await
}

fn finding<'a>(all: &'a [Finding], id: &str) -> &'a Finding {
    let mut found = all.iter().filter(|finding| finding.id == id);
    let one = found.next().unwrap_or_else(|| panic!("no {id} in {all:?}"));
    assert!(found.next().is_none(), "{id} twice in {all:?}");
    one
}

fn expect(all: &[Finding], id: &str, severity: Severity, words: &str) {
    let found = finding(all, id);
    assert_eq!(found.severity, severity, "{found:?}");
    assert!(found.found.contains(words), "{found:?}");
    assert_eq!(found.remedy.is_empty(), severity == Severity::Ok, "{found:?}");
}

fn errors(all: &[Finding]) -> Vec<&str> {
    let errors = all.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| finding.id).collect()
}

#[tokio::test]
async fn a_plain_server_has_warnings_and_no_errors_and_keeps_nothing() {
    let server = Server::start();
    let all = findings(&server).await;
    assert_eq!(errors(&all), [""; 0], "{all:?}");
    for id in [
        "connection",
        "version",
        "role",
        "eviction",
        "scripts",
        "permissions",
        "shards",
        "foreign_keys",
    ] {
        assert_eq!(
            finding(&all, id).severity,
            Severity::Ok,
            "{:?}",
            finding(&all, id)
        );
    }
    expect(&all, "persistence", Severity::Warning, "append-only file is off");
    expect(&all, "replicas", Severity::Warning, "no replica");
    expect(&all, "shard", Severity::Ok, "nothing is stored yet");
    finding(&all, "latency");
    expect(&all, "clock", Severity::Ok, "by ");
    assert_eq!(dump(&server), []);
}

#[tokio::test]
async fn settings_are_found_and_named() {
    let server = Server::append_only();
    expect(
        &findings(&server).await,
        "persistence",
        Severity::Ok,
        "appendfsync always",
    );
    server.run::<()>(&["CONFIG", "SET", "appendfsync", "everysec"]);
    expect(
        &findings(&server).await,
        "persistence",
        Severity::Ok,
        "appendfsync everysec",
    );
    server.run::<()>(&["CONFIG", "SET", "appendfsync", "no"]);
    expect(
        &findings(&server).await,
        "persistence",
        Severity::Warning,
        "appendfsync is no",
    );
    server.run::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let all = findings(&server).await;
    expect(&all, "eviction", Severity::Error, "allkeys-lru");
    assert_eq!(errors(&all), ["eviction"]);
    server.run::<()>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let all = findings(&server).await;
    expect(&all, "memory", Severity::Warning, "of maxmemory (1.0 MiB)");
    assert_eq!(errors(&all), [""; 0], "{all:?}");
}

#[tokio::test]
async fn a_replica_is_refused_and_a_primary_counts_its_replicas() {
    let primary = Server::start();
    let replica = primary.replica();
    until("the replica to be counted", || {
        let info: String = primary.run(&["INFO", "replication"]);
        info.contains("connected_slaves:1").then_some(())
    });
    expect(&findings(&primary).await, "replicas", Severity::Ok, "1 connected");
    expect(&findings(&replica).await, "role", Severity::Error, "replica");
}

#[tokio::test]
async fn what_a_user_may_not_do_is_found() {
    let server = Server::append_only();
    let as_user = async |rules: &[&str]| {
        let mut words = vec![
            "ACL",
            "SETUSER",
            "shop",
            "reset",
            "on",
            ">secret",
            "~{stockade:*",
            "+@all",
        ];
        words.extend(rules);
        server.run::<()>(&words);
        let url = format!("redis://shop:secret@127.0.0.1:{}/", server.port());
        examine(options(url)).await
    };
    assert_eq!(errors(&as_user(&[]).await), [""; 0]);
    let all = as_user(&["-config"]).await;
    expect(&all, "persistence", Severity::Warning, "cannot be seen");
    assert_eq!(errors(&all), [""; 0], "CONFIG is not needed");
    let all = as_user(&["-info"]).await;
    assert_eq!(finding(&all, "info").severity, Severity::Warning);
    assert_eq!(errors(&all), [""; 0], "INFO is not needed");
    let all = as_user(&["-xadd", "-lpop"]).await;
    expect(&all, "permissions", Severity::Error, "XADD: ");
    expect(&all, "permissions", Severity::Error, "LPOP: ");
    assert_eq!(errors(&all), ["permissions"]);
    assert_eq!(errors(&as_user(&["-scan"]).await), ["shards"]);
    assert_eq!(errors(&as_user(&["-script"]).await), ["scripts"]);
    assert!(errors(&as_user(&["-@scripting"]).await).contains(&"scripts"));
    let all = as_user(&["resetkeys", "~shop:*"]).await;
    assert!(errors(&all).contains(&"permissions"), "{all:?}");
}

#[tokio::test]
async fn what_lies_under_the_prefix_is_told() {
    let server = Server::start();
    let hot = hot(&server).await;
    hot.fence(4).await.unwrap();
    hot.base(&base(4, 9, 7)).await.unwrap();
    let live: Vec<_> = (0..2_000)
        .map(|n| live(&format!("order-{n:020}"), "A", 5_000 + n))
        .collect();
    let chunk = Chunk {
        skus: vec![sku("A", 5_000, 2_000)],
        live,
        ..Chunk::default()
    };
    hot.chunk(4, 1, &chunk).await.unwrap();
    expect(
        &hot.check().await,
        "shard",
        Severity::Ok,
        "epoch 4, closed, entry 9, 2000 reservations",
    );
    hot.open(4, 1).await.unwrap();
    let before = dump(&server);
    let all = hot.check().await;
    assert_eq!(dump(&server), before, "nothing is changed");
    expect(
        &all,
        "shard",
        Severity::Ok,
        "epoch 4, open, entry 9, 2000 reservations, about ",
    );
    assert_eq!(errors(&all), [""; 0], "{all:?}");

    server.run::<()>(&["SET", "{stockade:0}:notes", "x"]);
    server.run::<()>(&["SET", "{stockade-2:0}:notes", "another prefix"]);
    expect(
        &hot.check().await,
        "foreign_keys",
        Severity::Warning,
        "{stockade:0}:notes",
    );
    server.run::<()>(&["HSET", "{stockade:3}:meta", "epoch", "1"]);
    expect(
        &hot.check().await,
        "shards",
        Severity::Error,
        "other shards lie under this prefix: 3",
    );
    server.run::<()>(&["SET", "{stockade:0}:meta", "x"]);
    let all = hot.check().await;
    assert_eq!(finding(&all, "shard").severity, Severity::Error, "{all:?}");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_or_asked_is_one_finding() {
    let mut server = Server::start();
    server.run::<()>(&["ACL", "SETUSER", "default", "on", ">other", "~*", "+@all"]);
    let all = findings(&server).await;
    assert_eq!(all.len(), 1);
    expect(&all, "connection", Severity::Error, "NOAUTH");
    assert!(all[0].remedy.contains("password"));
    server.kill();
    let all = findings(&server).await;
    assert_eq!(errors(&all), ["connection"]);
    assert!(all[0].remedy.contains("runs"), "{all:?}");
}

#[tokio::test]
async fn a_long_way_is_a_warning_and_a_mute_server_ends_the_checks() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    proxy.slow_answers(Duration::from_millis(10));
    let hot = Hot::connect(Options {
        reply_within: Duration::from_millis(1_500),
        ..options(proxy.url())
    })
    .await
    .unwrap();
    let all = hot.check().await;
    assert_eq!(finding(&all, "latency").severity, Severity::Warning, "{all:?}");
    proxy.hold();
    let all = hot.check().await;
    let last = all.last().unwrap();
    assert_eq!(
        (last.id, last.severity),
        ("connection", Severity::Error),
        "{all:?}"
    );
}

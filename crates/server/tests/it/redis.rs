//! The service with its hot tier on a Redis of its own.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use stockade_testkit::redis::{Options, Server};

use crate::service::{BINARY, Service, serve};

fn doctor(url: &str) -> Output {
    Command::new(BINARY)
        .args(["doctor", "--json", "--redis", url])
        .output()
        .unwrap()
}

fn severities(output: &Output) -> Vec<(String, String)> {
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = shown["findings"].as_array().unwrap();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    findings
        .iter()
        .map(|finding| (text(finding, "id"), text(finding, "severity")))
        .collect()
}

#[test]
fn two_services_on_one_redis_say_what_is_recorded() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let url = server.url();
    let one = Service::on(&data, &["--redis", &url]);
    let two = Service::on(&data, &["--redis", &url]);
    one.stock("A", 10);
    let body = |id: &str, durability: &str| {
        format!(
            r#"{{"id":"{id}","owner":"u","mode":"reserve","durability":"{durability}","lines":[{{"sku":"A","quantity":1}}]}}"#
        )
    };
    let hard = one.post("/v1/reservations", &body("o-1", "ledger")).is(201, "ok");
    assert_eq!(hard["recorded"], true);
    let soft = two.post("/v1/reservations", &body("o-2", "hot")).is(201, "ok");
    assert_eq!(soft["recorded"], false);
    // What one granted the other sells.
    let sold = one.act("o-2", "confirm", "{}").is(200, "ok");
    assert_eq!(sold["recorded"], true);
    assert_eq!(two.act("o-1", "cancel", "{}").is(200, "ok")["recorded"], true);
    two.reserve("o-3", "u", "A", 10).is(409, "insufficient_stock");
    assert_eq!(one.counters("A")[..3], [9, 0, 1]);
    two.audit_is_clean();
    // A process that would keep the state in memory is told why it cannot.
    let refused = serve(&data, &[]).stdout(Stdio::null()).output().unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("hot tier is on Redis"), "{why}");
}

#[test]
fn a_server_that_is_not_fit_is_refused_with_what_to_do() {
    let evicting = Server::with(Options::default().set("maxmemory-policy", "allkeys-lru"));
    let looked = doctor(&evicting.url());
    assert_eq!(looked.status.code(), Some(1));
    assert!(
        severities(&looked).contains(&("eviction".to_owned(), "error".to_owned())),
        "{looked:?}"
    );
    let folder = tempfile::tempdir().unwrap();
    let refused = serve(folder.path(), &["--redis", &evicting.url()])
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("noeviction"), "{why}");
    // One that is fit: at most warnings.
    let server = Server::append_only();
    let looked = doctor(&server.url());
    assert_eq!(looked.status.code(), Some(0), "{looked:?}");
    assert!(
        severities(&looked)
            .iter()
            .all(|(_, severity)| severity != "error")
    );
}

#[test]
fn nobody_there_is_said_with_what_to_do() {
    let url = format!("redis://127.0.0.1:{}/", stockade_testkit::redis::free_port());
    let looked = doctor(&url);
    assert_eq!(looked.status.code(), Some(1));
    let folder = tempfile::tempdir().unwrap();
    let refused = serve(folder.path(), &["--redis", &url]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(!refused.stderr.is_empty());
}

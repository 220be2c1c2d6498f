//! The access log: what is in it, and above all what is not.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::service::{Service, serve};

/// Runs requests against a service with these flags; the lines that it logged about requests.
fn log_of(flags: &[&str], ask: impl Fn(&Service)) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let log = folder.path().join("log");
    let mut command = serve(&data, flags);
    command.stderr(std::fs::File::create(&log).unwrap());
    let service = Service::of(command.stdout(Stdio::piped()), &data);
    ask(&service);
    assert!(service.stop().success());
    let text = std::fs::read_to_string(&log).unwrap();
    for secret in [
        "secret-sku",
        "secret-id",
        "secret-owner",
        "secret-reason",
        "sk_",
        "?limit",
    ] {
        assert!(!text.contains(secret), "the log has {secret}: {text}");
    }
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|line| line["fields"].clone())
        .filter(|fields| fields["message"] == "request")
        .collect()
}

fn a_few_requests(service: &Service) {
    service.stock("secret-sku", 5);
    service
        .reserve("secret-id", "secret-owner", "secret-sku", 1)
        .is(201, "ok");
    service
        .reserve("secret-id-2", "secret-owner", "secret-sku", 9)
        .is(409, "insufficient_stock");
    service
        .act("secret-id", "cancel", r#"{"reason":"secret-reason"}"#)
        .is(200, "ok");
    service.call(
        "GET",
        "/v1/stock?limit=7",
        &[("authorization", "Bearer sk_secret")],
        b"",
    );
    let marked = service.call(
        "GET",
        "/v1/reservations/secret-id",
        &[
            ("x-request-id", "caller-7"),
            (
                "traceparent",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0bb902b7-01",
            ),
        ],
        b"",
    );
    assert_eq!(marked.header("x-request-id"), Some("caller-7"));
    let returned = marked.header("traceparent").unwrap();
    assert!(
        returned.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"),
        "{returned}"
    );
    assert!(
        !returned.contains("00f067aa0bb902b7"),
        "a step of its own: {returned}"
    );
}

#[test]
fn every_request_has_a_line_without_what_is_nobodys_business() {
    let lines = log_of(&["--access-log", "all", "--log-level", "debug"], a_few_requests);
    // The document is asked for once by the test's own client.
    let routes: Vec<_> = lines
        .iter()
        .map(|line| (line["route"].as_str().unwrap(), line["status"].clone()))
        .collect();
    for expected in [
        ("PUT /v1/stock/{sku}", json!(201)),
        ("POST /v1/reservations", json!(201)),
        ("POST /v1/reservations", json!(409)),
        ("POST /v1/reservations/{id}/cancel", json!(200)),
        ("GET /v1/stock", json!(200)),
    ] {
        assert!(routes.contains(&expected), "{routes:?}");
    }
    let marked = lines
        .iter()
        .find(|line| line["request_id"] == "caller-7")
        .unwrap();
    assert_eq!(marked["trace"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert!(marked["us"].is_u64());
    assert!(marked["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
    let mut ids: Vec<_> = lines
        .iter()
        .map(|line| line["request_id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), lines.len(), "each has an id of its own");
}

#[test]
fn off_and_errors_say_nothing_of_everyday_requests() {
    for which in ["off", "errors"] {
        let lines = log_of(&["--access-log", which, "--log-level", "debug"], a_few_requests);
        assert_eq!(lines.len(), 0, "{which}: {lines:?}");
    }
}

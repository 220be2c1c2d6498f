//! `stockade rush`: reports, exit codes, and a verdict that can fail.

use std::process::Stdio;

use crate::support::{self, Served, output, program};
use serde_json::Value;

/// Runs with `--json` and gives the one object on stdout.
fn rush(flags: &str) -> (i32, Value) {
    let mut command = program();
    command.args(["rush", "--json"]).args(flags.split_whitespace());
    let (code, stdout, stderr) = output(command);
    let value = serde_json::from_str(&stdout)
        .unwrap_or_else(|error| panic!("{error}: {stdout:?}, stderr {stderr:?}"));
    assert_eq!(
        stdout.lines().count(),
        1,
        "one object and nothing else: {stdout:?}"
    );
    (code, value)
}

fn number(report: &Value, field: &str) -> u64 {
    report[field]
        .as_u64()
        .unwrap_or_else(|| panic!("no {field} in {report}"))
}

#[track_caller]
fn assert_good(code: i32, report: &Value) {
    assert_eq!(code, 0, "{report}");
    for field in ["errors", "oversold", "undersold", "drift"] {
        assert_eq!(number(report, field), 0, "{field} of {report}");
    }
    let sum = |fields: &[&str]| fields.iter().map(|field| number(report, field)).sum::<u64>();
    assert_eq!(sum(&["granted", "refused"]), number(report, "buyers"), "{report}");
    assert_eq!(
        sum(&["confirmed", "cancelled", "expired"]),
        number(report, "granted"),
        "{report}"
    );
}

#[test]
fn a_small_sale_sells_out_and_reports_every_field() {
    let (code, report) = rush("--buyers 2000 --units 100 --concurrency 64 --ttl-seconds 1");
    assert_good(code, &report);
    let fields: Vec<&String> = report.as_object().unwrap().keys().collect();
    // Sorted, as serde_json's map is. The order on the wire is tested where the report is written.
    let expected = "buyers cancelled confirmed drift errors expired granted latency_us orders_per_second oversold \
                    refused replayed seconds undersold units";
    assert_eq!(fields, expected.split(' ').collect::<Vec<_>>());
    assert_eq!(
        (number(&report, "buyers"), number(&report, "units")),
        (2_000, 100)
    );
    assert_eq!(
        number(&report, "confirmed"),
        100,
        "what came back found a buyer: {report}"
    );
    assert!(
        number(&report, "cancelled") > 0 && number(&report, "expired") > 0,
        "{report}"
    );
    assert!(number(&report, "replayed") > 0, "some were sent twice: {report}");
    let [p50, p99, max] = ["p50", "p99", "max"].map(|field| number(&report["latency_us"], field));
    assert!(0 < p50 && p50 <= p99 && p99 <= max, "{report}");
    assert!(report["seconds"].as_f64().unwrap() > 0.0 && number(&report, "orders_per_second") > 0);
}

#[test]
fn every_request_twice_at_once() {
    let (code, report) = rush("--buyers 500 --units 200 --duplicate-percent 100 --ttl-seconds 1");
    assert_good(code, &report);
    // Each confirm and cancel had its double. (A reserve that met "sold out" on one connection may have been granted on
    // the other.)
    let settled = number(&report, "confirmed") + number(&report, "cancelled");
    assert!(number(&report, "replayed") >= settled, "{report}");
}

#[test]
fn many_skus_and_quantities() {
    let (code, report) =
        rush("--buyers 1500 --units 1003 --skus 5 --max-quantity 4 --ttl-seconds 1 --concurrency 32");
    assert_good(code, &report);
    assert_eq!(number(&report, "units"), 1_003);
    // At most 4 units an order: with fewer orders 1,003 units could not have been sold, and there are buyers enough.
    assert!(number(&report, "confirmed") > 250, "{report}");
}

#[test]
fn one_connection() {
    let (code, report) =
        rush("--buyers 50 --units 10 --concurrency 1 --duplicate-percent 50 --ttl-seconds 1");
    assert_good(code, &report);
    assert!(number(&report, "replayed") > 0, "{report}");
}

#[test]
fn nothing_for_sale() {
    let (code, report) = rush("--buyers 50 --units 0");
    assert_good(code, &report);
    assert_eq!(number(&report, "refused"), 50);
}

#[test]
fn everybody_finds_what_others_gave_back() {
    let (code, report) = rush("--buyers 40 --units 10 --confirm-percent 0 --cancel-percent 100");
    assert_good(code, &report);
    assert_eq!(number(&report, "cancelled"), 40);
}

#[test]
fn a_running_service_keeps_everything_else() {
    let served = Served::start();
    let count = r#"{"id":"c-1","location":"default","on_hand":7,"sold_seen":0}"#;
    assert_eq!(served.request("PUT", "/v1/stock/kept", count).0, 201);
    let order = r#"{"id":"o-1","owner":"u","mode":"deduct","lines":[{"sku":"kept","quantity":2}]}"#;
    assert_eq!(served.request("POST", "/v1/reservations", order).0, 201);
    let kept = || ["/v1/stock/kept", "/v1/reservations/o-1"].map(|path| served.request("GET", path, ""));
    let before = kept();

    let flags = format!(
        "--buyers 300 --units 50 --skus 2 --ttl-seconds 1 --url {}",
        served.url
    );
    let (code, report) = rush(&flags);
    assert_good(code, &report);
    // The same seed twice: the SKUs are new ones all the same.
    for _ in 0..2 {
        let (code, report) = rush(&format!("{flags} --seed 7"));
        assert_good(code, &report);
    }

    assert_eq!(before, kept());
    let skus = served.skus();
    assert_eq!(skus.len(), 1 + 3 * 2, "{skus:?}");
    assert!(
        skus.iter().all(|sku| sku == "kept" || sku.starts_with("rush-")),
        "{skus:?}"
    );
    assert_eq!(
        served.stop(),
        0,
        "the drill leaves somebody else's service running"
    );
}

#[test]
fn a_unit_that_somebody_else_took_fails_the_run() {
    let served = Served::start();
    let mut command = program();
    let flags =
        "rush --json --buyers 5 --units 10 --confirm-percent 0 --cancel-percent 0 --ttl-seconds 1 --url";
    command.args(flags.split(' ')).arg(&served.url);
    let running = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Fewer buyers than units, all of whom walk away: for the second that their reservations live there is something to
    // buy for somebody who is not in the drill's history.
    let sku = support::until(|| served.skus().into_iter().find(|sku| sku.starts_with("rush-")));
    let order =
        format!(r#"{{"id":"thief","owner":"t","mode":"deduct","lines":[{{"sku":"{sku}","quantity":1}}]}}"#);
    assert_eq!(served.request("POST", "/v1/reservations", &order).0, 201);
    let ended = running.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{report}");
    let found = ["oversold", "undersold", "drift", "errors"].map(|field| number(&report, field));
    assert_eq!(found, [0, 1, 1, 0], "{report}");
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(stderr.contains("buyers bought 0, the service sold 1"), "{stderr}");
    assert!(stderr.contains("--seed "), "{stderr}");
    assert_eq!(served.stop(), 0);
}

#[test]
fn the_page_for_people() {
    let mut command = program();
    command.args("rush --buyers 200 --units 1000 --ttl-seconds 1 --seed 42".split(' '));
    let (code, stdout, stderr) = output(command);
    assert_eq!(
        (code, stderr.as_str()),
        (0, ""),
        "no bar where there is no terminal"
    );
    assert!(stdout.is_ascii(), "{stdout}");
    assert!(
        stdout.ends_with("\nPASSED: oversold 0, undersold 0, drift 0, errors 0\n"),
        "{stdout}"
    );
    assert!(stdout.contains("units for sale             1,000\n"), "{stdout}");
    assert!(stdout.contains("seed                          42\n"), "{stdout}");
}

#[test]
fn wrong_flags_and_services_that_are_not_there() {
    let not_there = format!("--url http://{}", support::free_address());
    for (flags, code, said) in [
        ("--buyers 0", 2, "--buyers"),
        ("--buyers many", 2, "--buyers"),
        ("--units -1", 2, "unexpected"),
        ("--skus 0", 2, "--skus"),
        ("--max-quantity 0", 2, "--max-quantity"),
        ("--concurrency 0", 2, "--concurrency"),
        ("--confirm-percent 101", 2, "--confirm-percent"),
        ("--confirm-percent 80 --cancel-percent 30", 2, "110"),
        ("--duplicate-percent 101", 2, "--duplicate-percent"),
        ("--ttl-seconds 0", 2, "--ttl-seconds"),
        ("--fast", 2, "--fast"),
        ("--url 127.0.0.1:7077", 2, "http://"),
        ("--url https://example.com", 2, "http://"),
        (&not_there, 3, "no connection"),
    ] {
        let mut command = program();
        command.arg("rush").args(flags.split(' '));
        let (found, stdout, stderr) = output(command);
        assert_eq!((found, stdout.as_str()), (code, ""), "{flags}: {stderr}");
        assert!(stderr.contains(said), "{flags}: {stderr}");
    }
}

#[test]
fn an_interrupted_drill_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["rush", "--buyers", "1000000", "--units", "1000000", "--json"]);
    command
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    // The service's data folder is there once the service is.
    support::until(|| {
        let inside = std::fs::read_dir(folder.path())
            .unwrap()
            .next()?
            .ok()?
            .path()
            .join("data");
        inside.is_dir().then_some(())
    });
    support::signal(running.id(), rustix::process::Signal::INT);
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "error: interrupted\n");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "the folder is removed"
    );
    assert_eq!(
        support::processes_naming(folder.path()),
        Vec::<String>::new(),
        "the service is stopped"
    );
}

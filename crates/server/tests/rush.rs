//! `stockade rush` as its users run it: the whole binary, a real service, real HTTP.

mod drills;

use std::process::Stdio;

use drills::{Served, output, program};
use serde_json::Value;

/// Runs with `--json` and gives the one object on stdout.
fn rush(flags: &[&str]) -> (i32, Value) {
    let mut command = program();
    command.args(["rush", "--json"]).args(flags);
    let (code, stdout, stderr) = output(command);
    let value = serde_json::from_str(&stdout)
        .unwrap_or_else(|error| panic!("{error}: {stdout:?}, stderr {stderr:?}"));
    assert_eq!(
        stdout.trim_end().lines().count(),
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
fn assert_good(report: &Value) {
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
    let (code, report) = rush(&[
        "--buyers",
        "2000",
        "--units",
        "100",
        "--concurrency",
        "64",
        "--ttl-seconds",
        "1",
    ]);
    assert_eq!(code, 0, "{report}");
    assert_good(&report);
    let fields: Vec<&String> = report.as_object().unwrap().keys().collect();
    let mut expected = vec![
        "buyers",
        "units",
        "granted",
        "refused",
        "confirmed",
        "cancelled",
        "expired",
        "replayed",
        "errors",
        "oversold",
        "undersold",
        "drift",
        "seconds",
        "orders_per_second",
        "latency_us",
    ];
    // serde_json's map is sorted; the order on the wire is the report's own test's matter.
    expected.sort_unstable();
    assert_eq!(fields, expected);
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
    let latency = &report["latency_us"];
    let [p50, p99, max] = ["p50", "p99", "max"].map(|field| number(latency, field));
    assert!(0 < p50 && p50 <= p99 && p99 <= max, "{latency}");
    assert!(report["seconds"].as_f64().unwrap() > 0.0 && report["orders_per_second"].as_f64().unwrap() > 0.0);
}

#[test]
fn every_request_twice_at_once() {
    let flags = [
        "--buyers",
        "500",
        "--units",
        "200",
        "--duplicate-percent",
        "100",
        "--ttl-seconds",
        "1",
    ];
    let (code, report) = rush(&flags);
    assert_eq!(code, 0, "{report}");
    assert_good(&report);
    let settled = number(&report, "confirmed") + number(&report, "cancelled");
    // Each confirm and cancel had its double, and so had nearly each reserve: one that met "sold out" first could be
    // refused on one connection and granted on the other.
    assert!(number(&report, "replayed") >= settled, "{report}");
}

#[test]
fn many_skus_and_quantities() {
    let (code, report) = rush(&[
        "--buyers",
        "1500",
        "--units",
        "1003",
        "--skus",
        "5",
        "--max-quantity",
        "4",
        "--ttl-seconds",
        "1",
        "--concurrency",
        "32",
    ]);
    assert_eq!(code, 0, "{report}");
    assert_good(&report);
    assert_eq!(number(&report, "units"), 1_003);
    // At most 4 units an order: 250 orders cannot be enough to sell 1,003 units, and there are buyers enough.
    assert!(number(&report, "confirmed") > 250, "{report}");
}

#[test]
fn one_connection_nothing_for_sale_and_nobody_confirms() {
    let (code, report) = rush(&[
        "--buyers",
        "50",
        "--units",
        "10",
        "--concurrency",
        "1",
        "--duplicate-percent",
        "50",
    ]);
    assert_eq!(code, 0, "{report}");
    assert_good(&report);

    let (code, report) = rush(&["--buyers", "50", "--units", "0"]);
    assert_eq!((code, number(&report, "refused")), (0, 50), "{report}");

    let flags = [
        "--buyers",
        "40",
        "--units",
        "10",
        "--confirm-percent",
        "0",
        "--cancel-percent",
        "100",
    ];
    let (code, report) = rush(&flags);
    assert_eq!(
        (code, number(&report, "cancelled")),
        (0, 40),
        "each found units that another had given back: {report}"
    );
    assert_good(&report);
}

#[test]
fn a_running_service_keeps_everything_else() {
    let served = Served::start();
    let put = served.request(
        "PUT",
        "/v1/stock/kept",
        r#"{"id":"c-1","location":"default","on_hand":7,"sold_seen":0}"#,
    );
    assert_eq!(put.0, 201, "{put:?}");
    let order = r#"{"id":"o-1","owner":"u","mode":"deduct","lines":[{"sku":"kept","quantity":2}]}"#;
    assert_eq!(served.request("POST", "/v1/reservations", order).0, 201);
    let kept = |path: &str| served.request("GET", path, "");
    let before = (kept("/v1/stock/kept"), kept("/v1/reservations/o-1"));

    let flags = [
        "--buyers",
        "300",
        "--units",
        "50",
        "--skus",
        "2",
        "--ttl-seconds",
        "1",
        "--url",
        &served.url,
    ];
    let (code, report) = rush(&flags);
    assert_eq!(code, 0, "{report}");
    assert_good(&report);
    // The same flags and seed once more: the SKUs are new ones all the same.
    let (code, report) = rush(&[&flags[..], &["--seed", "7"]].concat());
    assert_eq!(code, 0, "{report}");
    let (code, report) = rush(&[&flags[..], &["--seed", "7"]].concat());
    assert_eq!(code, 0, "{report}");

    assert_eq!(before, (kept("/v1/stock/kept"), kept("/v1/reservations/o-1")));
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
    command.args([
        "rush",
        "--json",
        "--buyers",
        "20",
        "--units",
        "10",
        "--confirm-percent",
        "0",
        "--cancel-percent",
        "0",
    ]);
    command
        .args(["--ttl-seconds", "1", "--url", &served.url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    // Everybody walks away, so that units come back after a second; one of them is bought by somebody who is not in the
    // drill's history.
    let sku = served.until(|| served.skus().into_iter().find(|sku| sku.starts_with("rush-")));
    let order =
        format!(r#"{{"id":"thief","owner":"t","mode":"deduct","lines":[{{"sku":"{sku}","quantity":1}}]}}"#);
    served.until(|| (served.request("POST", "/v1/reservations", &order).0 == 201).then_some(()));
    let ended = running.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{report}");
    assert_eq!(
        (number(&report, "undersold"), number(&report, "oversold")),
        (1, 0),
        "{report}"
    );
    assert_eq!(number(&report, "drift"), 1, "{report}");
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(stderr.contains("buyers bought 0, the service sold 1"), "{stderr}");
    assert!(stderr.contains("--seed "), "{stderr}");
    assert_eq!(served.stop(), 0);
}

#[test]
fn the_page_for_people() {
    let mut command = program();
    command.args([
        "rush",
        "--buyers",
        "200",
        "--units",
        "1000",
        "--ttl-seconds",
        "1",
        "--seed",
        "42",
    ]);
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
    let not_there = drills::free_address();
    let not_there = format!("http://{not_there}");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--buyers", "0"], 2, "--buyers"),
        (&["--buyers", "many"], 2, "--buyers"),
        (&["--confirm-percent", "101"], 2, "--confirm-percent"),
        (&["--confirm-percent", "80", "--cancel-percent", "30"], 2, "110"),
        (&["--ttl-seconds", "0"], 2, "--ttl-seconds"),
        (&["--concurrency", "0"], 2, "--concurrency"),
        (&["--max-quantity", "0"], 2, "--max-quantity"),
        (&["--skus", "0"], 2, "--skus"),
        (&["--units", "-1"], 2, "unexpected"),
        (&["--fast"], 2, "--fast"),
        (&["--url", "127.0.0.1:7077"], 2, "http://"),
        (&["--url", "https://example.com"], 2, "http://"),
        (&["--url", &not_there], 3, "no connection"),
    ];
    for (flags, code, said) in cases {
        let mut command = program();
        command.arg("rush").args(*flags);
        let (found, stdout, stderr) = output(command);
        assert_eq!((found, stdout.as_str()), (*code, ""), "{flags:?}: {stderr}");
        assert!(stderr.contains(said), "{flags:?}: {stderr}");
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
    drills::until(|| {
        let inside = std::fs::read_dir(folder.path())
            .unwrap()
            .next()?
            .ok()?
            .path()
            .join("data");
        inside.is_dir().then_some(())
    });
    drills::signal(running.id(), rustix::process::Signal::INT);
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "error: interrupted\n");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "the folder is removed"
    );
    assert_eq!(
        drills::processes_naming(folder.path()),
        Vec::<String>::new(),
        "the service is stopped"
    );
}

//! API keys: every route with no key, a wrong one, one that is over, one of another tenant, one without the scope.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::service::{Answer, BINARY, Service};

/// `stockade key ...` on a data folder, which must succeed.
#[track_caller]
fn key(data: &Path, line: &[&str]) -> Value {
    let output = Command::new(BINARY)
        .arg("key")
        .args(line)
        .args(["--json", "--data"])
        .arg(data)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A new key with these scopes.
#[track_caller]
fn create(data: &Path, name: &str, tenant: &str, scopes: &str) -> String {
    let made = key(data, &["create", name, "--tenant", tenant, "--scope", scopes]);
    made["key"].as_str().unwrap().to_owned()
}

fn with(service: &Service, key: &str, method: &str, path: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {key}");
    service.call(method, path, &[("authorization", &bearer)], body.as_bytes())
}

/// What each route needs, said a second time: by method and path, not by the service's own table.
fn expected(method: &str, path: &str) -> &'static [&'static str] {
    match (method, path) {
        (_, "/livez" | "/readyz" | "/openapi.json" | "/docs" | "/docs/style.css") => &[],
        ("GET", "/v1/reservations/{id}") => &["reserve", "read", "admin"],
        ("GET", "/v1/overview") => &SCOPES,
        ("GET", "/v1/stock/{sku}") => &["stock", "read", "admin"],
        (_, "/v1/audit" | "/v1/backup") => &["admin"],
        ("GET", _) => &["read", "admin"],
        (_, path) if path.starts_with("/v1/reservations") => &["reserve", "admin"],
        (_, path) if path.starts_with("/v1/stock") => &["stock", "admin"],
        other => panic!("{other:?} has no row here: say which scope it needs"),
    }
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

const SCOPES: [&str; 4] = ["reserve", "stock", "read", "admin"];

#[test]
fn no_route_opens_without_the_right_key() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let by_scope = SCOPES.map(|scope| create(&data, scope, "default", scope));
    let revoked = create(&data, "revoked", "default", "admin");
    key(&data, &["revoke", "revoked"]);
    // One that is over when the service is asked.
    let soon = (now_ms() + 50).to_string();
    let over = key(
        &data,
        &["create", "over", "--scope", "admin", "--expires-at", &soon],
    );
    let over = over["key"].as_str().unwrap().to_owned();
    let service = Service::on(&data, &[]);
    let since = Instant::now();
    while now_ms() <= soon.parse::<i64>().unwrap() {
        assert!(since.elapsed() < Duration::from_secs(5));
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut wrong = by_scope[3].clone();
    let last = wrong.pop().unwrap();
    wrong.push(if last == '0' { '1' } else { '0' });

    let document = service.send("GET", "/openapi.json", &[], b"").json();
    let mut guarded = 0;
    for (template, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            let path = template.replace("{id}", "x").replace("{sku}", "x");
            let needed = expected(&method, template);
            if needed.is_empty() {
                assert!(operation["security"].is_null(), "{method} {template}");
                let open = service.send(&method, &path, &[], b"");
                assert!(![401, 403].contains(&open.status), "{method} {template}");
                continue;
            }
            guarded += 1;
            assert!(
                operation["security"].is_array(),
                "{method} {template} documents no scope"
            );
            let challenge = |answer: &Answer, expected: &str| {
                answer.is(401, "unauthorized");
                let found = answer.header("www-authenticate").unwrap();
                assert!(
                    found.starts_with("Bearer ") && found.contains(expected),
                    "{found}"
                );
                answer.json()["detail"].as_str().unwrap().to_owned()
            };
            let body = if method == "GET" { "" } else { "{}" };
            let none = service.call(&method, &path, &[], body.as_bytes());
            challenge(&none, "realm");
            for (bad, said) in [
                (wrong.as_str(), "no such key"),
                ("nonsense", "no such key"),
                (revoked.as_str(), "revoked"),
                (over.as_str(), "has ended"),
            ] {
                let answer = with(&service, bad, &method, &path, body);
                let detail = challenge(&answer, "invalid_token");
                assert!(detail.contains(said), "{detail}");
            }
            let basic = service.call(
                &method,
                &path,
                &[("authorization", "Basic eDp5")],
                body.as_bytes(),
            );
            challenge(&basic, "invalid_request");
            for (scope, key) in SCOPES.iter().zip(&by_scope) {
                let answer = with(&service, key, &method, &path, body);
                if needed.contains(scope) {
                    assert!(
                        ![401, 403].contains(&answer.status),
                        "{method} {template} as {scope}: {}",
                        answer.text
                    );
                } else {
                    let problem = answer.is(403, "forbidden");
                    assert_eq!(
                        problem["scopes"][0],
                        needed.iter().rev().nth(1).copied().unwrap_or("admin")
                    );
                }
            }
        }
    }
    assert!(guarded >= 17, "{guarded} routes");
    // A path that nobody knows says nothing else.
    with(&service, "nonsense", "GET", "/v1/nowhere", "").is(404, "unknown_route");
    assert_eq!(service.get("/livez").status, 200);
}

#[test]
fn tenants_share_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let one = create(&data, "one", "shop-1", "reserve,stock,read");
    let two = create(&data, "two", "shop-2", "reserve,stock,read");
    let service = Service::on(&data, &[]);
    let ask = |key: &str, method: &str, path: &str, body: &str| with(&service, key, method, path, body);
    let order = |id: &str| {
        format!(r#"{{"id":"{id}","owner":"u","mode":"deduct","lines":[{{"sku":"A","quantity":1}}]}}"#)
    };
    // The same ids in both, with figures of their own.
    for (key, units) in [(&one, 10), (&two, 20)] {
        let set = format!(r#"{{"id":"c-1","on_hand":{units}}}"#);
        assert_eq!(ask(key, "PUT", "/v1/stock/A", &set).status, 201);
        let configure = r#"{"id":"c-2","limit_per_owner":1}"#;
        ask(key, "PATCH", "/v1/stock/A", configure).is(200, "ok");
        ask(key, "POST", "/v1/reservations", &order("o-1")).is(201, "ok");
        ask(key, "POST", "/v1/reservations", &order("o-1")).is(200, "replayed");
        ask(key, "POST", "/v1/reservations", &order("o-2")).is(409, "limit_exceeded");
        let stock = ask(key, "GET", "/v1/stock/A", "").is(200, "ok");
        assert_eq!(stock["stock"]["available"], units - 1);
        let listed = ask(key, "GET", "/v1/stock", "").json();
        assert_eq!(listed["stock"].as_array().unwrap().len(), 1);
    }
    // Another tenant's ids are not there.
    let b = r#"{"id":"c-3","on_hand":5}"#;
    assert_eq!(ask(&one, "PUT", "/v1/stock/B", b).status, 201);
    let only_one = r#"{"id":"only-1","owner":"v","lines":[{"sku":"B","quantity":1}],"mode":"reserve"}"#;
    ask(&one, "POST", "/v1/reservations", only_one).is(201, "ok");
    ask(&two, "GET", "/v1/stock/B", "").is(404, "unknown_sku");
    ask(&two, "GET", "/v1/reservations/only-1", "").is(404, "not_found");
    ask(&two, "POST", "/v1/reservations/only-1/confirm", "{}").is(404, "not_found");
    ask(&two, "POST", "/v1/reservations/only-1/return", r#"{"id":"r"}"#).is(404, "not_found");
    ask(&two, "POST", "/v1/reservations/only-1/cancel", "{}").is(200, "sealed");
    let batch = format!(r#"{{"reservations":[{}]}}"#, only_one.replace("only-1", "only-2"));
    let results = ask(&two, "POST", "/v1/reservations/batch", &batch).json();
    assert_eq!(results["results"][0]["body"]["code"], "unknown_sku");
    let still = ask(&one, "GET", "/v1/reservations/only-1", "").json();
    assert_eq!(still["reservation"]["status"], "pending");
    for (key, name, count) in [(&one, "one", 2), (&two, "two", 2)] {
        let found = ask(key, "GET", "/v1/reservations?status=confirmed", "").json();
        assert_eq!(found["reservations"].as_array().unwrap().len(), 1, "{found}");
        let movements = ask(key, "GET", "/v1/movements?sku=A", "").json();
        let movements = movements["movements"].as_array().unwrap();
        assert!(movements.len() >= count);
        assert!(movements.iter().all(|m| m["actor"] == name), "{movements:?}");
    }
}

#[test]
fn keys_change_while_the_service_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    create(&data, "first", "default", "admin");
    let service = Service::on(&data, &[]);
    let status = |key: &str| with(&service, key, "GET", "/v1/stock", "").status;
    let second = create(&data, "second", "default", "read");
    let becomes = |key: &str, expected: u16| {
        let since = Instant::now();
        while status(key) != expected {
            assert!(since.elapsed() < Duration::from_secs(5), "never {expected}");
            std::thread::sleep(Duration::from_millis(20));
        }
        since.elapsed()
    };
    becomes(&second, 200);
    key(&data, &["revoke", "second"]);
    becomes(&second, 401);
    // The file may go: then nobody gets in, rather than everybody.
    std::fs::remove_file(data.join("keys.json")).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    service.get("/v1/stock").is(401, "unauthorized");
    // A key in the other header, and one for metrics.
    let third = create(&data, "third", "default", "read");
    becomes(&third, 200);
    let answer = service.call("GET", "/v1/stock", &[("x-api-key", &third)], b"");
    assert_eq!(answer.status, 200);
    service.get("/metrics").is(401, "unauthorized");
    assert_eq!(with(&service, &third, "GET", "/metrics", "").status, 200);
}

#[test]
fn metrics_may_be_open_and_keys_may_be_required_before_there_are_any() {
    let service = Service::with(&["--require-keys", "--metrics-open"]);
    service.get("/v1/stock").is(401, "unauthorized");
    assert_eq!(service.get("/metrics").status, 200);
    assert_eq!(service.get("/readyz").status, 200);
}

#[test]
fn the_command_line_sends_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let made = create(&data, "shop", "default", "stock");
    let service = Service::on(&data, &["--listen", "0.0.0.0:0"]);
    let url = format!("http://127.0.0.1:{}", service.address.port());
    let file = folder.path().join("key");
    std::fs::write(&file, format!("{made}\n")).unwrap();
    let run = |line: &[&str], env: Option<&str>| {
        let mut command = Command::new(BINARY);
        command
            .args(line)
            .args(["--url", &url])
            .env_remove("STOCKADE_KEY")
            .env_remove("STOCKADE_KEY_FILE");
        if let Some(key) = env {
            command.env("STOCKADE_KEY", key);
        }
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout) + &text(output.stderr))
    };
    let set = ["stock", "set", "A", "5", "--id", "c-1"];
    let (code, said) = run(&set, None);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("unauthorized") && said.contains("STOCKADE_KEY"),
        "{said}"
    );
    assert_eq!(run(&set, Some(&made)).0, Some(0));
    assert_eq!(run(&["stock", "get", "A", "--key", &made], None).0, Some(0));
    let with_file = ["stock", "get", "A", "--key-file", file.to_str().unwrap()];
    assert_eq!(run(&with_file, None).0, Some(0));
    let (code, said) = run(&["reservation", "reserve", "A=1", "--owner", "u"], Some(&made));
    assert_eq!(code, Some(1));
    assert!(
        said.contains("forbidden") && said.contains("scope reserve"),
        "{said}"
    );
    let (code, said) = run(&["stock", "get", "A", "--key-file", "/nowhere/key"], None);
    assert_eq!(code, Some(2));
    assert!(said.contains("/nowhere/key"), "{said}");
    let (_, help) = run(&["stock", "get", "--help"], Some(&made));
    assert!(!help.contains(&made), "help shows the key");
}

#[test]
fn keys_are_shown_once_and_kept_as_digests() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let made = create(&data, "shop", "default", "read,stock");
    let text = std::fs::read_to_string(data.join("keys.json")).unwrap();
    let secret = made.rsplit('_').next().unwrap();
    assert!(!text.contains(secret));
    let listed = key(&data, &["list"]);
    assert!(!listed.to_string().contains(secret));
    let row = &listed["keys"][0];
    assert_eq!((&row["name"], &row["status"]), (&"shop".into(), &"good".into()));
    assert_eq!(row["scopes"], serde_json::json!(["stock", "read"]));
    let run = |line: &[&str]| {
        let output = Command::new(BINARY)
            .arg("key")
            .args(line)
            .arg("--data")
            .arg(&data)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    // For a shell: the key alone on stdout.
    let (code, out, said) = run(&["create", "other", "--scope", "reserve", "--days", "30"]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("sk_") && out.trim().len() == 66, "{out}");
    assert!(said.contains("only time"), "{said}");
    assert!(!said.contains("first key"), "{said}");
    let other = folder.path().join("other");
    let output = Command::new(BINARY)
        .args(["key", "create", "shop", "--scope", "read", "--data"])
        .arg(&other)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains(&format!("first key in {}", other.display())),
        "{said}"
    );
    for (line, code, words) in [
        (&["create", "shop", "--scope", "read"][..], 1, "already"),
        (&["create", "cli", "--scope", "read"], 2, "cannot be called cli"),
        (&["create", "x"], 2, "--scope"),
        (&["create", "x", "--scope", "all"], 2, "all"),
        (
            &["create", "x", "--scope", "read", "--expires-at", "1"],
            2,
            "future",
        ),
        (&["revoke", "nobody"], 1, "no key nobody"),
    ] {
        let (found, _, said) = run(line);
        assert_eq!(found, Some(code), "{line:?}: {said}");
        assert!(said.contains(words), "{said}");
    }
    let (_, table, _) = run(&["list"]);
    assert!(table.contains("shop") && table.contains("good"), "{table}");
    let (code, said, _) = run(&["revoke", listed["keys"][0]["id"].as_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    // A name is free again once its key is revoked.
    assert_eq!(run(&["create", "shop", "--scope", "read"]).0, Some(0));
}

/// The overview says to each key what it may do, and shows figures to those that may read.
#[test]
fn the_overview_says_what_a_key_may_do() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let rows: [(&str, &[&str], bool); 3] = [
        ("stock", &["stock"], false),
        ("read,reserve", &["reserve", "read"], true),
        ("admin", &SCOPES, true),
    ];
    let made = rows.map(|(scopes, ..)| create(&data, &scopes.replace(',', "-"), "shop", scopes));
    let service = Service::on(&data, &[]);
    for ((_, scopes, reads), key) in rows.iter().zip(&made) {
        let overview = with(&service, key, "GET", "/v1/overview", "").json();
        assert_eq!(overview["scopes"], serde_json::json!(scopes));
        assert_eq!(overview["tenant"], "shop");
        assert_eq!(overview["figures"].is_object(), *reads, "{overview}");
    }
    // The page itself is open: it holds nothing, and asks with the key that is typed into it.
    assert_eq!(service.send("GET", "/", &[], b"").status, 200);
}

#[test]
fn a_key_asks_only_so_often() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (one, two) = (
        create(&data, "one", "default", "admin"),
        create(&data, "two", "default", "admin"),
    );
    let service = Service::on(&data, &["--key-rate", "4/h"]);
    let order = r#"{"id":"o-1","owner":"u","mode":"reserve","lines":[{"sku":"A","quantity":1}]}"#;
    let first = with(&service, &one, "PUT", "/v1/stock/A", r#"{"id":"c","on_hand":5}"#);
    assert_eq!(first.status, 201);
    assert_eq!(first.header("ratelimit-policy"), Some(r#""key_rate";q=4;w=3600"#));
    assert!(
        first
            .header("ratelimit")
            .unwrap()
            .starts_with(r#""key_rate";r=3;t="#)
    );
    with(&service, &one, "POST", "/v1/reservations", order).is(201, "ok");
    with(&service, &one, "GET", "/v1/stock/A", "").is(200, "ok");
    with(&service, &one, "GET", "/v1/stock/A", "").is(200, "ok");
    let over = with(&service, &one, "GET", "/v1/stock/A", "");
    assert_eq!(over.is(429, "rate_limited")["limit"], "key_rate");
    let other = order.replace("o-1", "o-2");
    with(&service, &one, "POST", "/v1/reservations", &other).is(429, "rate_limited");
    // A replay passes, and so does what settles it; and another key is another.
    with(&service, &one, "POST", "/v1/reservations", order).is(200, "replayed");
    with(&service, &one, "POST", "/v1/reservations/o-1/confirm", "{}").is(200, "ok");
    with(&service, &two, "GET", "/v1/stock/A", "").is(200, "ok");
    assert_eq!(with(&service, &one, "GET", "/metrics", "").status, 200);
}

#[test]
fn a_drill_can_be_run_against_a_service_with_keys() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let made = create(&data, "ops", "default", "admin");
    let service = Service::on(&data, &[]);
    let run = |key: Option<&str>| {
        let mut command = Command::new(BINARY);
        command.args([
            "rush",
            "--buyers",
            "50",
            "--units",
            "5",
            "--ttl-seconds",
            "1",
            "--json",
            "--url",
            &service.url(),
        ]);
        command.env_remove("STOCKADE_KEY").env_remove("STOCKADE_KEY_FILE");
        if let Some(key) = key {
            command.env("STOCKADE_KEY", key);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(None);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("unauthorized") || said.contains("401"), "{said}");
    let (code, said) = run(Some(&made));
    assert_eq!(code, Some(0), "{said}");
}

/// Files and events live in the key's tenant like everything else.
#[test]
fn files_and_events_are_of_one_tenant() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let one = create(&data, "one", "shop-1", "stock,read");
    let two = create(&data, "two", "shop-2", "stock,read");
    let service = Service::on(&data, &[]);
    let import = |key: &str, units: u32| {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "text/csv")];
        let file = format!("sku,on_hand\nA,{units}\n");
        let path = "/v1/stock/import?as=target&id=same";
        service.call("POST", path, &headers, file.as_bytes()).json()["created"].clone()
    };
    assert_eq!((import(&one, 1), import(&two, 2)), (1.into(), 1.into()));
    for (key, units, actor) in [(&one, "1", "one"), (&two, "2", "two")] {
        let stock = with(&service, key, "GET", "/v1/stock/export", "").text;
        assert_eq!(
            stock.lines().nth(1).unwrap(),
            format!("A,default,{units},0,0,0,{units},1")
        );
        let moved = with(&service, key, "GET", "/v1/movements/export", "").text;
        assert!(
            moved.lines().count() == 2 && moved.contains(&format!(",set,{actor},")),
            "{moved}"
        );
        let mut command = Command::new(BINARY);
        command
            .args(["events", "--url", &service.url()])
            .env("STOCKADE_KEY", key);
        let told = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(
            told.lines().count() == 1 && told.contains(&format!("\"actor\":\"{actor}\"")),
            "{told}"
        );
    }
}

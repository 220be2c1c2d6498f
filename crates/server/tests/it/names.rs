//! Ids of any writing, through every route that has an id in its path.

use serde_json::{Value, json};

use crate::service::{Service, encoded};

fn awkward() -> Vec<String> {
    let mut names: Vec<String> = [
        "ELEVATOR_HEADS-5/0 1oz-Orange",
        "a/b/c",
        "/",
        "//",
        " ",
        "  lead and trail  ",
        "a+b",
        "+",
        "100%",
        "%2F",
        "%",
        "{sku}",
        "{stockade:0}",
        "a:b",
        "a?b=c&d",
        "a#b",
        "a;b",
        "a\\b",
        "\"quoted\"",
        "'",
        "...",
        "..a",
        "confirm",
        "batch",
        "adjustments",
        "日本語",
        "Ünïcödé",
        "🎫🎟",
        "e\u{301}",
        "\u{e9}",
        "\u{feff}bom",
        "\u{202e}rtl",
        "0",
        "-1",
        "null",
        "true",
        "<script>alert(\"x\")</script>",
        "'; DROP TABLE skus; --",
        "=1+1",
        "@x",
    ]
    .map(str::to_owned)
    .into();
    names.push("x".repeat(128));
    names.push("é".repeat(64));
    names
}

#[test]
fn any_name_works_on_every_route() {
    let service = Service::start();
    for name in awkward() {
        let path = encoded(&name);
        let put = service.put(
            &format!("/v1/stock/{path}"),
            &json!({"id": name, "on_hand": 10}).to_string(),
        );
        assert_eq!(put.is(201, "ok")["stock"]["sku"], *name);
        assert_eq!(
            service.get(&format!("/v1/stock/{path}")).is(200, "ok")["stock"]["sku"],
            *name
        );
        let change = |verb: &str, body: Value| {
            service
                .post(&format!("/v1/stock/{path}/{verb}"), &body.to_string())
                .is(200, "ok")
        };
        let id = |suffix: &str| uuid_like(&name, suffix);
        change("adjustments", json!({"id": id("adjust"), "delta": 1}));
        let put = json!({"id": id("location"), "location": name, "on_hand": 5, "force": true}).to_string();
        assert_eq!(service.put(&format!("/v1/stock/{path}"), &put).status, 200);
        change(
            "transfers",
            json!({"id": id("transfer"), "from": "default", "to": name, "quantity": 1}),
        );
        let patch = json!({"id": id("patch"), "order": [name, "default"], "group": name}).to_string();
        let patched = service.patch(&format!("/v1/stock/{path}"), &patch).is(200, "ok");
        assert_eq!(patched["stock"]["settings"]["group"], *name);

        let granted = service.reserve(&name, &name, &name, 2).is(201, "ok");
        let reservation = &granted["reservation"];
        let told = (
            &reservation["id"],
            &reservation["owner"],
            &reservation["lines"][0]["sku"],
        );
        assert_eq!(told, (&json!(name), &json!(name), &json!(name)));
        let end = reservation["expires_at_ms"].as_i64().unwrap() + 1;
        service
            .act(&name, "extend", &json!({"expires_at_ms": end}).to_string())
            .is(200, "ok");
        service.act(&name, "confirm", "{}").is(200, "ok");
        service
            .act(&name, "return", &json!({"id": name}).to_string())
            .is(200, "ok");
        service.act(&name, "cancel", "{}").is(409, "already_confirmed");
        let shown = service.get(&format!("/v1/reservations/{path}")).is(200, "ok");
        assert_eq!(shown["reservation"]["id"], *name);

        let movements = service.get(&format!("/v1/movements?sku={path}&limit=1")).json();
        assert_eq!(movements["movements"][0]["sku"], *name);
        let listed = service.get(&format!("/v1/reservations?owner={path}")).json();
        assert_eq!(listed["reservations"][0]["id"], *name);
    }
    service.audit_is_clean();
}

/// An id that belongs to a name and is short enough whatever the name is.
fn uuid_like(name: &str, suffix: &str) -> String {
    let sum = name.bytes().fold(7_u64, |sum, byte| {
        sum.wrapping_mul(1_099_511_628_211) ^ u64::from(byte)
    });
    format!("{sum:x}-{suffix}")
}

#[test]
fn names_are_never_folded_or_trimmed() {
    let service = Service::start();
    let names = ["a", "A", " a", "a ", "\u{e9}", "e\u{301}", "ａ"];
    for (units, name) in (1..).zip(names) {
        service.stock(name, units);
    }
    for (units, name) in (1..).zip(names) {
        assert_eq!(service.counters(name)[0], units, "{name:?}");
    }
    let stock = service.get("/v1/stock").json();
    let listed: Vec<&str> = stock["stock"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["sku"].as_str().unwrap())
        .collect();
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    assert_eq!((listed.len(), listed), (names.len(), sorted));
}

#[test]
fn names_that_are_no_ids_are_refused_on_every_route() {
    let service = Service::start();
    let long = "x".repeat(129);
    let longer = "é".repeat(65);
    let rows = [
        "..",
        ".",
        "%2E",
        "%2e%2E",
        "%00",
        "%0A",
        "a%7F",
        "%C2%85",
        "%FF",
        "%C3",
        &long,
        &encoded(&longer),
        "a%1Bb",
    ];
    let routes = [
        ("GET", "/v1/stock/{}", "sku"),
        ("PUT", "/v1/stock/{}", "sku"),
        ("PATCH", "/v1/stock/{}", "sku"),
        ("POST", "/v1/stock/{}/adjustments", "sku"),
        ("POST", "/v1/stock/{}/transfers", "sku"),
        ("GET", "/v1/reservations/{}", "id"),
        ("POST", "/v1/reservations/{}/confirm", "id"),
        ("POST", "/v1/reservations/{}/cancel", "id"),
        ("POST", "/v1/reservations/{}/extend", "id"),
        ("POST", "/v1/reservations/{}/return", "id"),
    ];
    for (method, route, field) in routes {
        for name in rows {
            let answer = service.call(method, &route.replace("{}", name), &[], b"{}");
            let problem = answer.is(422, "invalid");
            assert_eq!(problem["errors"][0]["field"], field, "{method} {route} {name}");
        }
        let answer = service.send(method, &route.replace("{}", ""), &[], b"{}");
        assert!(
            [404, 422].contains(&answer.status),
            "{method} {route}: {}",
            answer.text
        );
    }
}

#[test]
fn markup_in_names_stays_text_in_json() {
    let service = Service::start();
    let name = "\"><script>alert(\"test\")</script>";
    let body = json!({"id": name, "on_hand": 1}).to_string();
    service
        .put(&format!("/v1/stock/{}", encoded(name)), &body)
        .is(201, "ok");
    let answer = service.get(&format!("/v1/stock/{}", encoded(name)));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.json()["stock"]["sku"], name);
    let refused = service.reserve("o", name, name, 2);
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.json()["lines"][0]["sku"], name);
}

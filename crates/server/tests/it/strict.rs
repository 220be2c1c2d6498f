//! Strict bodies, as rows: what is sent, and which fault of which field the answer names.

use serde_json::Value;

use crate::service::Service;

const QUANTITY: &str = "1..=9007199254740991";
const FIGURE: &str = "0..=9007199254740991";

/// field, found, allowed of each fault.
#[track_caller]
fn faults(body: &Value) -> Vec<(String, String, String)> {
    let text = |error: &Value, name: &str| error[name].as_str().unwrap().to_owned();
    let errors = body["errors"].as_array().unwrap();
    errors
        .iter()
        .map(|e| (text(e, "field"), text(e, "found"), text(e, "allowed")))
        .collect()
}

#[track_caller]
fn refuses(service: &Service, method: &str, path: &str, body: &str, expected: &[(&str, &str, &str)]) {
    let answer = service
        .call(method, path, &[], body.as_bytes())
        .is(422, "invalid");
    let found = faults(&answer);
    let found: Vec<(&str, &str, &str)> = found
        .iter()
        .map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str()))
        .collect();
    assert_eq!(found, expected, "{body}");
}

#[test]
fn a_quantity_is_digits_only() {
    let service = Service::start();
    service.stock("A", 998);
    let rows = [
        "0",
        "-1",
        "-5",
        "2.5",
        "0.9",
        "4.0",
        "1e3",
        "1E3",
        "1e+06",
        "1e21",
        "9007199254740992",
        "18446744073709551616",
        "99999999999999999999999999",
        "-0",
        "\"4\"",
        "\"0x10\"",
        "null",
        "true",
        "[]",
        "{}",
        "\"1e3\"",
    ];
    for quantity in rows {
        let line = format!(r#"{{"sku":"A","quantity":{quantity}}}"#);
        let body = format!(
            r#"{{"id":"o","owner":"u","mode":"deduct","lines":[{{"sku":"A","quantity":1}},{line}]}}"#
        );
        refuses(
            &service,
            "POST",
            "/v1/reservations",
            &body,
            &[("lines[1].quantity", quantity, QUANTITY)],
        );
        let body = format!(r#"{{"lines":[{line}]}}"#);
        let path = "/v1/reservations/o/confirm";
        refuses(
            &service,
            "POST",
            path,
            &body,
            &[("lines[0].quantity", quantity, QUANTITY)],
        );
        let body = format!(r#"{{"payload":{{"owner":"u","lines":[{line}]}}}}"#);
        refuses(
            &service,
            "POST",
            path,
            &body,
            &[("payload.lines[0].quantity", quantity, QUANTITY)],
        );
        let body = format!(r#"{{"id":"t","from":"a","to":"b","quantity":{quantity}}}"#);
        refuses(
            &service,
            "POST",
            "/v1/stock/A/transfers",
            &body,
            &[("quantity", quantity, QUANTITY)],
        );
        if quantity != "0" {
            let body = format!(r#"{{"id":"s","on_hand":{quantity}}}"#);
            refuses(
                &service,
                "PUT",
                "/v1/stock/A",
                &body,
                &[("on_hand", quantity, FIGURE)],
            );
        }
    }
    assert_eq!(service.counters("A"), [998, 0, 0, 998]);
    service.audit_is_clean();
}

#[test]
fn numbers_that_are_not_json_are_malformed() {
    let service = Service::start();
    for number in [
        "0x10", "01", "+1", "1.", ".5", "NaN", "Infinity", "1_000", "--1", "1e",
    ] {
        let body = format!("{{\n\"delta\":{number}}}");
        let problem = service
            .post("/v1/stock/A/adjustments", &body)
            .is(400, "malformed");
        assert_eq!(problem["line"], 2, "{number}: {problem}");
        assert!(problem["column"].as_u64().unwrap() >= 9, "{number}: {problem}");
    }
}

#[test]
fn the_largest_numbers_are_exact() {
    let service = Service::start();
    let most = 9_007_199_254_740_991_u64;
    service.stock("A", most);
    assert_eq!(service.counters("A"), [most, 0, 0, most]);
    service
        .post("/v1/stock/A/adjustments", r#"{"id":"a","delta":1}"#)
        .is(422, "invalid");
    service.order("deduct", "o", "u", "A", most).is(201, "ok");
    assert_eq!(service.counters("A"), [0, 0, most, 0]);
    service
        .post(
            "/v1/stock/A/adjustments",
            r#"{"id":"b","delta":-9007199254740991}"#,
        )
        .is(409, "below_reserved");
    service.act("o", "return", r#"{"id":"r"}"#).is(200, "ok");
    assert_eq!(service.counters("A"), [most, 0, 0, most]);
    service.audit_is_clean();
}

#[test]
fn a_hold_has_an_end() {
    let service = Service::start();
    service.stock("A", 5);
    for ttl in ["0", "-1", "null", "2592001", "1.5", "\"900\""] {
        let body = format!(
            r#"{{"id":"o","owner":"u","mode":"reserve","ttl_seconds":{ttl},"lines":[{{"sku":"A","quantity":5}}]}}"#
        );
        refuses(
            &service,
            "POST",
            "/v1/reservations",
            &body,
            &[("ttl_seconds", ttl, "1..=2592000")],
        );
    }
    let granted = service.reserve("o", "u", "A", 5).is(201, "ok");
    let reservation = &granted["reservation"];
    let length =
        reservation["expires_at_ms"].as_i64().unwrap() - reservation["granted_at_ms"].as_i64().unwrap();
    assert_eq!(length, 1_800_000);
}

#[test]
fn every_fault_of_a_body_is_listed_with_what_was_sent() {
    let service = Service::start();
    let id = "1..=128 bytes of UTF-8, no control characters, not \".\" or \"..\"";
    let body = r#"{"id":"","owner":7,"mode":"steal","ttl_seconds":0,"surprise":[1, 2],
        "lines":[{"sku":"A","quantity":2.5},{"quantity":1,"colour":"red"},3]}"#;
    refuses(
        &service,
        "POST",
        "/v1/reservations",
        body,
        &[
            ("id", "\"\"", id),
            ("owner", "7", id),
            ("mode", "\"steal\"", "reserve or deduct"),
            ("ttl_seconds", "0", "1..=2592000"),
            ("lines[0].quantity", "2.5", QUANTITY),
            ("lines[1].sku", "nothing", id),
            (
                "lines[1].colour",
                "\"red\"",
                "no such field; known are sku, quantity, location, if_revision",
            ),
            ("lines[2]", "3", "an object"),
            (
                "surprise",
                "[1, 2]",
                "no such field; known are id, owner, mode, ttl_seconds, durability, supersedes, lines",
            ),
        ],
    );
}

#[test]
fn a_key_comes_once_at_any_depth() {
    let service = Service::start();
    service.stock("A", 5);
    let path = "/v1/reservations";
    let rows = [
        (
            r#"{"id":"o","owner":"u","mode":"deduct","lines":[{"sku":"A","quantity":1,"quantity":-1}]}"#,
            ("lines[0].quantity", "1, then -1"),
        ),
        (
            r#"{"id":"o","id":"o","owner":"u","mode":"deduct","lines":[{"sku":"A","quantity":1}]}"#,
            ("id", "\"o\", then \"o\""),
        ),
        // The same key in another writing.
        (
            r#"{"id":"o","\u0069d":"p","owner":"u","mode":"deduct","lines":[{"sku":"A","quantity":1}]}"#,
            ("id", "\"o\", then \"p\""),
        ),
        (
            r#"{"id":"o","owner":"u","mode":"deduct","lines":[],"lines":[{"sku":"A","quantity":1}]}"#,
            ("lines", "[], then [{\"sku\":\"A\",\"quantity\":1}]"),
        ),
    ];
    for (body, (field, found)) in rows {
        let problem = service.post(path, body).is(422, "invalid");
        let first = &faults(&problem)[0];
        assert_eq!(
            (first.0.as_str(), first.1.as_str(), first.2.as_str()),
            (field, found, "the field once")
        );
    }
    let body = r#"{"payload":{"owner":"u","owner":"v","lines":[{"sku":"A","quantity":1}]}}"#;
    let problem = service
        .post("/v1/reservations/o/confirm", body)
        .is(422, "invalid");
    assert_eq!(faults(&problem)[0].0, "payload.owner");
    assert_eq!(service.counters("A"), [5, 0, 0, 5]);
}

#[test]
fn what_is_not_json_is_malformed() {
    let service = Service::start();
    let rows: [(&[u8], u64, u64, &str); 10] = [
        (b"{", 1, 1, "EOF"),
        (b"nonsense", 1, 2, "expected"),
        (b"{\n  \"id\": \"o\",\n}", 3, 1, "key must be a string"),
        (b"{\"id\":\"o\"} x", 1, 12, "trailing characters"),
        (b"{'id':1}", 1, 2, "key must be a string"),
        (b"\xEF\xBB\xBF{\"id\":\"o\"}", 1, 1, "byte-order mark"),
        (b"\xFF\xFE{\x00}\x00", 1, 1, "byte-order mark"),
        (b"{\"id\":\"\xFF\"}", 1, 8, "not UTF-8"),
        (b"{\"id\":\"a\nb\"}", 1, 8, "control character"),
        (b"   ", 1, 3, "EOF"),
    ];
    for (body, line, column, what) in rows {
        let shown = String::from_utf8_lossy(body);
        let problem = service
            .call("POST", "/v1/reservations", &[], body)
            .is(400, "malformed");
        assert_eq!(
            (problem["line"].as_u64(), problem["column"].as_u64()),
            (Some(line), Some(column)),
            "{shown}"
        );
        assert!(
            problem["detail"].as_str().unwrap().contains(what),
            "{shown}: {problem}"
        );
    }
}

#[test]
fn texts_that_are_json_but_not_text_are_invalid() {
    let service = Service::start();
    for body in [
        r#"{"id":"\ud800"}"#,
        r#"{"id":"a\u0000b"}"#,
        r#"{"id":"\u0085"}"#,
        r#"{"\ud800":1}"#,
    ] {
        service.post("/v1/reservations", body).is(422, "invalid");
    }
    for body in ["[]", "null", "\"x\"", "3", "true"] {
        let problem = service.post("/v1/reservations", body).is(422, "invalid");
        assert_eq!(
            faults(&problem),
            [("body".to_owned(), body.to_owned(), "an object".to_owned())]
        );
    }
}

#[test]
fn sizes_are_bounded() {
    let service = Service::start();
    service.stock("A", 1_000);
    let lines = |n: usize| vec![r#"{"sku":"A","quantity":1}"#; n].join(",");
    let body = |n: usize| {
        format!(
            r#"{{"id":"o","owner":"u","mode":"reserve","lines":[{}]}}"#,
            lines(n)
        )
    };
    refuses(
        &service,
        "POST",
        "/v1/reservations",
        &body(0),
        &[("lines", "0 items", "1..=100 items")],
    );
    refuses(
        &service,
        "POST",
        "/v1/reservations",
        &body(101),
        &[("lines", "101 items", "1..=100 items")],
    );
    refuses(
        &service,
        "POST",
        "/v1/reservations",
        &body(8_001),
        &[("lines", "8001 items", "1..=100 items")],
    );
    service.post("/v1/reservations", &body(100)).is(201, "ok");
    assert_eq!(service.counters("A"), [1_000, 100, 0, 900]);
    let item = r#"{"id":"o","owner":"u","mode":"reserve","lines":[{"sku":"A","quantity":1}]}"#;
    let batch = |n: usize| format!(r#"{{"reservations":[{}]}}"#, vec![item; n].join(","));
    for n in [0, 1_001] {
        let found = format!("{n} items");
        let expected = [("reservations", found.as_str(), "1..=1000 items")];
        refuses(&service, "POST", "/v1/reservations/batch", &batch(n), &expected);
    }
    // Deep nesting and many fields cost no more than their bytes.
    let deep = format!(r#"{{"id":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    service.post("/v1/reservations", &deep).is(422, "invalid");
    let many: Vec<String> = (0..50_000).map(|n| format!(r#""f{n}":1"#)).collect();
    service
        .post("/v1/reservations", &format!("{{{}}}", many.join(",")))
        .is(422, "invalid");
}

#[test]
fn queries_are_strict_too() {
    let service = Service::start();
    let rows = [
        ("/v1/stock?limit=0", "limit", "0"),
        ("/v1/stock?limit=1001", "limit", "1001"),
        ("/v1/stock?limit=1e2", "limit", "1e2"),
        ("/v1/stock?limit=010", "limit", "010"),
        ("/v1/stock?page=2", "page", "2"),
        ("/v1/stock?after=", "after", ""),
        ("/v1/stock?limit=1&limit=2", "limit", "2"),
        ("/v1/movements?before=-1", "before", "-1"),
        ("/v1/movements?from_ms=yesterday", "from_ms", "yesterday"),
        ("/v1/reservations?status=open", "status", "open"),
        ("/v1/reservations/x?verbose=1", "verbose", "1"),
        ("/v1/stock/x?verbose", "verbose", ""),
        ("/v1/stock?after=%FF", "query", "after=%FF"),
    ];
    for (path, field, found) in rows {
        let problem = service.get(path).is(422, "invalid");
        let first = &faults(&problem)[0];
        assert_eq!((first.0.as_str(), first.1.as_str()), (field, found), "{path}");
    }
}

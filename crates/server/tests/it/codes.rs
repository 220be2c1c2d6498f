//! Every code that a caller can meet: status, title, and the numbers that come with it.

use serde_json::{Value, json};

use crate::service::Service;

/// Asserts that the body has these fields with these values.
#[track_caller]
fn has(body: &Value, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&body[name], value, "{name} of {body}");
    }
}

#[test]
fn a_shortage_says_which_line_and_how_many_there_are() {
    let service = Service::start();
    service.stock("A/1", 2);
    let problem = service
        .reserve("o-1", "u-1", "A/1", 3)
        .is(409, "insufficient_stock");
    assert_eq!(
        problem,
        json!({"type": "about:blank", "title": "Insufficient stock", "status": 409, "code": "insufficient_stock",
               "detail": "3 units asked, 2 available.",
               "lines": [{"index": 0, "sku": "A/1", "asked": 3, "available": 2}]})
    );
}

#[test]
fn an_unknown_sku_is_not_found() {
    let service = Service::start();
    let problem = service.reserve("o-1", "u-1", "nowhere", 1).is(404, "unknown_sku");
    has(&problem, &json!({"lines": [{"index": 0, "sku": "nowhere"}]}));
    service.get("/v1/stock/nowhere").is(404, "unknown_sku");
    service
        .post("/v1/stock/nowhere/adjustments", r#"{"id":"a","delta":1}"#)
        .is(404, "unknown_sku");
}

#[test]
fn the_etag_guards_operators_against_each_other() {
    let service = Service::start();
    let created = service.call(
        "PUT",
        "/v1/stock/A",
        &[("if-none-match", "*")],
        br#"{"id":"1","on_hand":5}"#,
    );
    created.is(201, "ok");
    assert_eq!(created.header("etag"), Some("\"1\""));
    service
        .call(
            "PUT",
            "/v1/stock/A",
            &[("if-none-match", "*")],
            br#"{"id":"2","on_hand":5,"force":true}"#,
        )
        .is(412, "revision_conflict");
    let matched = service.call(
        "PUT",
        "/v1/stock/A",
        &[("if-match", "\"1\"")],
        br#"{"id":"3","on_hand":6,"force":true}"#,
    );
    matched.is(200, "ok");
    assert_eq!(matched.header("etag"), Some("\"2\""));
    let stale = service.call(
        "PUT",
        "/v1/stock/A",
        &[("if-match", "\"1\"")],
        br#"{"id":"4","on_hand":7,"force":true}"#,
    );
    let problem = stale.is(412, "revision_conflict");
    has(
        &problem,
        &json!({"lines": [{"index": 0, "sku": "A", "expected": 1, "found": 2}]}),
    );
    // In a line of a cart, too.
    let body =
        r#"{"id":"o","owner":"u","mode":"reserve","lines":[{"sku":"A","quantity":1,"if_revision":9}]}"#;
    service
        .post("/v1/reservations", body)
        .is(412, "revision_conflict");
    for wrong in ["1", "*", "W/\"1\"", "\"1\", \"2\"", "\"01\"", "\"x\""] {
        let answer = service.call(
            "PUT",
            "/v1/stock/A",
            &[("if-match", wrong)],
            br#"{"id":"5","on_hand":7}"#,
        );
        has(
            &answer.is(422, "invalid")["errors"][0],
            &json!({"field": "If-Match", "found": wrong}),
        );
    }
}

#[test]
fn the_owners_limit_says_what_the_owner_has() {
    let service = Service::start();
    service.stock("A", 10);
    service
        .patch("/v1/stock/A", r#"{"id":"c","limit_per_owner":2}"#)
        .is(200, "ok");
    service.order("deduct", "o-1", "u", "A", 1).is(201, "ok");
    let problem = service.reserve("o-2", "u", "A", 2).is(409, "limit_exceeded");
    has(
        &problem,
        &json!({"lines": [{"index": 0, "sku": "A", "asked": 2, "used": 1, "limit": 2}]}),
    );
    service.reserve("o-3", "another", "A", 2).is(201, "ok");
}

#[test]
fn the_sale_window_says_when() {
    let service = Service::start();
    service.stock("A", 10);
    let far = 4_102_444_800_000_i64;
    service
        .patch(
            "/v1/stock/A",
            &json!({"id": "c-1", "opens_at_ms": far}).to_string(),
        )
        .is(200, "ok");
    let problem = service.reserve("o-1", "u", "A", 1).is(409, "not_open");
    has(
        &problem,
        &json!({"lines": [{"index": 0, "sku": "A", "opens_at_ms": far}]}),
    );
    service
        .patch(
            "/v1/stock/A",
            r#"{"id":"c-2","opens_at_ms":null,"closes_at_ms":1000}"#,
        )
        .is(200, "ok");
    let problem = service.reserve("o-1", "u", "A", 1).is(409, "closed");
    has(
        &problem,
        &json!({"lines": [{"index": 0, "sku": "A", "closes_at_ms": 1000}]}),
    );
    service
        .patch("/v1/stock/A", r#"{"id":"c-3","closes_at_ms":null,"paused":true}"#)
        .is(200, "ok");
    service.reserve("o-1", "u", "A", 1).is(409, "paused");
    service
        .patch("/v1/stock/A", r#"{"id":"c-4","paused":false}"#)
        .is(200, "ok");
    service.reserve("o-1", "u", "A", 1).is(201, "ok");
}

#[test]
fn a_count_below_the_reserved_units_is_refused() {
    let service = Service::start();
    service.stock("A", 10);
    service.reserve("o-1", "u", "A", 4).is(201, "ok");
    let problem = service
        .post("/v1/stock/A/adjustments", r#"{"id":"a","delta":-7}"#)
        .is(409, "below_reserved");
    has(
        &problem,
        &json!({"location": "default", "result": 3, "reserved": 4}),
    );
}

#[test]
fn ids_are_told_apart() {
    let service = Service::start();
    service.stock("A", 10);
    service.reserve("k", "u", "A", 1).is(201, "ok");
    service.reserve("k", "u", "A", 2).is(422, "id_reused");
    service.reserve("k", "another", "A", 1).is(422, "id_reused");
    service.order("deduct", "k", "u", "A", 1).is(422, "id_reused");
    // The first answer is still to be had, and nothing moved.
    service.reserve("k", "u", "A", 1).is(200, "replayed");
    assert_eq!(service.counters("A"), [10, 1, 0, 9]);
    // Stock commands and returns have ids of their own.
    service
        .post("/v1/stock/A/adjustments", r#"{"id":"k","delta":1}"#)
        .is(200, "ok");
    service
        .post("/v1/stock/A/adjustments", r#"{"id":"k","delta":2}"#)
        .is(422, "id_reused");
    let replay = service
        .post("/v1/stock/A/adjustments", r#"{"id":"k","delta":1}"#)
        .is(200, "replayed");
    assert_eq!(replay["revision_made"], 2);
}

#[test]
fn refusals_of_the_lifecycle_show_the_reservation() {
    let service = Service::start();
    service.stock("A", 10);
    let problem = service.act("nobody", "confirm", "{}").is(404, "not_found");
    has(&problem, &json!({"id": "nobody"}));
    service.get("/v1/reservations/nobody").is(404, "not_found");

    service.reserve("o-1", "u", "A", 2).is(201, "ok");
    let problem = service
        .act("o-1", "return", r#"{"id":"r"}"#)
        .is(409, "not_confirmed");
    assert_eq!(problem["reservation"]["status"], "pending");
    service.act("o-1", "confirm", "{}").is(200, "ok");
    service.act("o-1", "confirm", "{}").is(200, "replayed");
    let problem = service.act("o-1", "cancel", "{}").is(409, "already_confirmed");
    assert_eq!(problem["reservation"]["id"], "o-1");

    service.reserve("o-2", "u", "A", 2).is(201, "ok");
    service
        .act("o-2", "cancel", r#"{"reason":"changed my mind"}"#)
        .is(200, "ok");
    service.act("o-2", "cancel", "{}").is(200, "replayed");
    let problem = service.act("o-2", "confirm", "").is(409, "already_cancelled");
    assert_eq!(problem["reservation"]["status"], "cancelled");

    let sealed = service.act("o-3", "cancel", "{}").is(200, "sealed");
    assert_eq!(
        (&sealed["reservation"]["sealed"], &sealed["reservation"]["owner"]),
        (&Value::Bool(true), &Value::Null)
    );
    service.reserve("o-3", "u", "A", 1).is(409, "already_cancelled");
}

#[test]
fn a_late_confirm_that_no_longer_fits_says_what_is_short() {
    let service = Service::start();
    service.stock("A", 2);
    service.reserve("late", "u", "A", 2).is(201, "ok");
    let soon = now_ms() + 150;
    service
        .act("late", "extend", &json!({"expires_at_ms": soon}).to_string())
        .is(200, "ok");
    while now_ms() <= soon {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let shown = service.get("/v1/reservations/late").json();
    assert_eq!(shown["reservation"]["status"], "expired");
    service.order("deduct", "other", "v", "A", 1).is(201, "ok");
    let problem = service.act("late", "confirm", "{}").is(410, "expired");
    has(
        &problem,
        &json!({"reason": "insufficient_stock",
        "lines": [{"index": 0, "sku": "A", "asked": 2, "available": 1}]}),
    );
    let again = now_ms() + 60_000;
    let problem = service
        .act("late", "extend", &json!({"expires_at_ms": again}).to_string())
        .is(410, "expired");
    has(&problem, &json!({"reason": "over"}));
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

#[test]
fn wrong_paths_and_methods_are_problems_too() {
    let service = Service::start();
    for path in [
        "/v1",
        "/v1/stock/",
        "/v1/stock/a/b/c",
        "/v2/stock",
        "/v1/reservations/x/pay",
        "/favicon.ico",
    ] {
        service.get(path).is(404, "unknown_route");
    }
    let answer = service.call("DELETE", "/v1/stock/A", &[], b"");
    answer.is(405, "method_not_allowed");
    let allowed = answer.header("allow").unwrap();
    assert!(
        ["GET", "PUT", "PATCH"]
            .iter()
            .all(|method| allowed.contains(method)),
        "{allowed}"
    );
    service
        .get("/v1/reservations/x/confirm")
        .is(405, "method_not_allowed");
    service.post("/v1/movements", "{}").is(405, "method_not_allowed");
}

#[test]
fn a_body_says_what_it_is() {
    let service = Service::start();
    service.stock("A", 100);
    let body = br#"{"id":"o","owner":"u","mode":"reserve","lines":[{"sku":"A","quantity":1}]}"#;
    for fine in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=\"UTF-8\"",
        "application/vnd.shop+json",
    ] {
        let answer = service.call("POST", "/v1/reservations", &[("content-type", fine)], body);
        assert!([200, 201].contains(&answer.status), "{fine}: {}", answer.text);
    }
    service
        .call("POST", "/v1/reservations", &[], body)
        .is(200, "replayed");
    for wrong in [
        "application/x-www-form-urlencoded",
        "text/plain",
        "application/xml",
        "json",
        "application/json; charset=utf-16",
        "",
    ] {
        service
            .call("POST", "/v1/reservations", &[("content-type", wrong)], body)
            .is(415, "unsupported_media_type");
    }
}

#[test]
fn the_id_may_come_as_a_header() {
    let service = Service::start();
    service.stock("A", 10);
    let body = br#"{"owner":"u","mode":"reserve","lines":[{"sku":"A","quantity":1}]}"#;
    let with =
        |key: &str, body: &[u8]| service.call("POST", "/v1/reservations", &[("idempotency-key", key)], body);
    let granted = with("key-1", body).is(201, "ok");
    assert_eq!(granted["reservation"]["id"], "key-1");
    with("key-1", body).is(200, "replayed");
    let both = br#"{"id":"o-1","owner":"u","mode":"reserve","lines":[{"sku":"A","quantity":1}]}"#;
    let problem = with("key-2", both).is(422, "invalid");
    has(
        &problem["errors"][0],
        &json!({"field": "Idempotency-Key", "found": "key-2"}),
    );
    with("o-1", both).is(201, "ok");
    // The same key for two owners is not the answer of the other one.
    let another = br#"{"owner":"v","mode":"reserve","lines":[{"sku":"A","quantity":1}]}"#;
    with("key-1", another).is(422, "id_reused");
    let two = [("idempotency-key", "a"), ("idempotency-key", "b")];
    service
        .call("POST", "/v1/reservations", &two, body)
        .is(422, "invalid");
    with("", body).is(422, "invalid");
    service
        .call(
            "POST",
            "/v1/stock/A/adjustments",
            &[("idempotency-key", "a-1")],
            br#"{"delta":1}"#,
        )
        .is(200, "ok");
    service.act("key-1", "confirm", "").is(200, "ok");
    let path = "/v1/reservations/key-1/return";
    let returned = service
        .call("POST", path, &[("idempotency-key", "r-1")], b"{}")
        .is(200, "ok");
    assert_eq!(returned["return"]["id"], "r-1");
}

#[test]
fn pages_of_other_sites_may_not_send_commands() {
    let service = Service::start();
    service.stock("A", 5);
    service.reserve("o-1", "u-1", "A", 1);
    let own = service.url();
    let order = br#"{"id":"o-2","owner":"u-1","mode":"deduct","lines":[{"sku":"A","quantity":1}]}"#;
    for origin in [
        "https://shop.example",
        "null",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
    ] {
        let headers = [("Origin", origin)];
        let cancel = service.call("POST", "/v1/reservations/o-1/cancel", &headers, b"");
        let body = cancel.is(422, "invalid");
        assert_eq!(body["errors"][0]["field"], "Origin", "{body}");
        service
            .call("POST", "/v1/reservations", &headers, order)
            .is(422, "invalid");
    }
    assert_eq!(service.counters("A"), [5, 1, 0, 4]);
    service
        .call("POST", "/v1/reservations", &[("Origin", own.as_str())], order)
        .is(201, "ok");
}

#[test]
fn a_key_that_is_not_the_id_of_the_path_is_refused() {
    let service = Service::start();
    service.stock("A", 5);
    service.reserve("o", "u", "A", 2).is(201, "ok");
    let ends_at = service.get("/v1/reservations/o").json()["reservation"]["expires_at_ms"].clone();
    let extend = json!({"expires_at_ms": ends_at}).to_string();
    for (verb, body) in [("extend", extend.as_str()), ("confirm", "{}"), ("cancel", "{}")] {
        let path = format!("/v1/reservations/o/{verb}");
        let send = |key: &str| service.call("POST", &path, &[("idempotency-key", key)], body.as_bytes());
        let problem = send("another").is(422, "invalid");
        has(
            &problem["errors"][0],
            &json!({"field": "Idempotency-Key", "found": "another", "allowed": "the id of the path, o, or no such header"}),
        );
        assert_eq!(service.counters("A")[2], if verb == "cancel" { 2 } else { 0 });
        let taken = send("o");
        assert!(taken.status == 200 || verb == "cancel", "{}", taken.text);
    }
}

#[test]
fn a_confirm_that_stands_in_for_a_lost_deduct_is_recorded_as_a_reserve() {
    let service = Service::start();
    service.stock("A", 5);
    let body = r#"{"payload":{"owner":"u","lines":[{"sku":"A","quantity":2}]}}"#;
    let sold = service.act("o", "confirm", body).is(200, "ok");
    has(
        &sold["reservation"],
        &json!({"mode": "reserve", "status": "confirmed"}),
    );
    service.order("deduct", "o", "u", "A", 2).is(422, "id_reused");
    service.order("reserve", "o", "u", "A", 2).is(200, "replayed");
    assert_eq!(service.counters("A"), [3, 0, 2, 3]);
}

#[test]
fn a_list_that_is_none_is_shown_its_shape() {
    let service = Service::start();
    service.stock("A", 5);
    let problem = service
        .patch("/v1/stock/A", r#"{"id":"c","safety_stock":3}"#)
        .is(422, "invalid");
    has(
        &problem["errors"][0],
        &json!({"field": "safety_stock", "found": "3",
                "allowed": "a list of 1..=100, such as [{\"location\":\"default\",\"safety_stock\":5}]"}),
    );
}

#[test]
fn a_broken_percent_encoding_is_named() {
    let service = Service::start();
    for part in ["%zz", "a%2", "a%", "%%41"] {
        for path in [format!("/v1/stock/{part}"), format!("/v1/stock?after={part}")] {
            let problem = service.get(&path).is(422, "invalid");
            let error = &problem["errors"][0];
            assert!(error["found"].as_str().unwrap().contains(part), "{error}");
            assert!(error["allowed"].as_str().unwrap().contains("%25"), "{error}");
        }
    }
    service.get("/v1/stock/%25zz").is(404, "unknown_sku");
}

#[test]
fn one_audit_at_a_time() {
    let service = Service::start();
    service.stock("A", 10_000);
    for batch in 0..3 {
        let reservations: Vec<Value> = (0..1_000)
            .map(|n| json!({"id": format!("{batch}-{n}"), "owner": "u", "mode": "reserve", "lines": [{"sku": "A", "quantity": 1}]}))
            .collect();
        let body = json!({"reservations": reservations}).to_string();
        assert_eq!(service.post("/v1/reservations/batch", &body).status, 200);
    }
    let mut callers: Vec<_> = (0..20).map(|_| service.connect()).collect();
    for caller in &mut callers {
        let request = format!(
            "POST /v1/audit HTTP/1.1\r\nhost: {}\r\ncontent-length: 0\r\n\r\n",
            service.address
        );
        std::io::Write::write_all(caller, request.as_bytes()).unwrap();
    }
    let answers: Vec<_> = callers.iter_mut().map(crate::service::read_answer).collect();
    let (audited, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert!(!audited.is_empty() && !refused.is_empty(), "{answers:?}");
    for answer in refused {
        answer.is(503, "overloaded");
        assert_eq!(answer.header("retry-after"), Some("5"));
    }
    service.audit_is_clean();
}

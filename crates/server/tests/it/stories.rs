//! The main ways through the service, each told from beginning to end.

use serde_json::{Value, json};

use crate::service::Service;

#[test]
fn a_reservation_lives() {
    let service = Service::start();
    service.stock("A/1", 100);
    let body = r#"{"id":"o-1","owner":"u-1","mode":"reserve","ttl_seconds":900,"lines":[{"sku":"A/1","quantity":2}]}"#;
    let granted = service.post("/v1/reservations", body);
    granted.is(201, "ok");
    // The order of the fields is part of the shape.
    let at = |name: &str| granted.json()["reservation"][name].as_i64().unwrap();
    let (granted_at, expires_at) = (at("granted_at_ms"), at("expires_at_ms"));
    let expected = [
        r#"{"code":"ok","recorded":true,"reservation":{"id":"o-1","owner":"u-1","status":"pending","sealed":false,"#,
        &format!(r#""mode":"reserve","granted_at_ms":{granted_at},"expires_at_ms":{expires_at},"#),
        r#""lines":[{"sku":"A/1","quantity":2,"confirmed":0,"returned":0,"#,
        r#""allocations":[{"location":"default","quantity":2,"confirmed":0,"returned":0}]}]}}"#,
    ]
    .concat();
    assert_eq!(granted.text, expected);
    assert_eq!(at("expires_at_ms") - at("granted_at_ms"), 900_000);
    assert_eq!(service.counters("A/1"), [100, 2, 0, 98]);

    let replay = service.post("/v1/reservations", body).is(200, "replayed");
    assert_eq!(replay["reservation"], granted.json()["reservation"]);

    let end = at("expires_at_ms") - 1_000;
    let extended = service
        .act("o-1", "extend", &json!({"expires_at_ms": end}).to_string())
        .is(200, "ok");
    assert_eq!(extended["reservation"]["expires_at_ms"], end);

    let confirmed = service
        .act("o-1", "confirm", r#"{"lines":[{"sku":"A/1","quantity":1}]}"#)
        .is(200, "ok");
    assert_eq!(confirmed["reservation"]["status"], "confirmed");
    assert_eq!(service.counters("A/1"), [99, 0, 1, 99]);

    let body = r#"{"id":"r-1","reason":"damaged","lines":[{"sku":"A/1","quantity":1}]}"#;
    let returned = service.act("o-1", "return", body).is(200, "ok");
    assert_eq!(
        returned["return"],
        json!({"id": "r-1", "lines": [{"sku": "A/1", "quantity": 1}]})
    );
    assert_eq!(returned["reservation"]["lines"][0]["returned"], 1);
    service.act("o-1", "return", body).is(200, "replayed");
    assert_eq!(service.counters("A/1"), [100, 0, 0, 100]);

    let movements = service.get("/v1/movements?reservation=o-1").json();
    let kinds: Vec<&str> = movements["movements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["kind"].as_str().unwrap())
        .collect();
    assert!(
        kinds.starts_with(&["return", "confirm"]) && kinds.ends_with(&["reserve"]),
        "{kinds:?}"
    );
    assert_eq!(movements["movements"][0]["reason"], "damaged");
    service.audit_is_clean();
}

#[test]
fn a_confirm_stands_in_for_a_reserve_that_was_lost() {
    let service = Service::start();
    service.stock("A", 5);
    let body = r#"{"payload":{"owner":"u","lines":[{"sku":"A","quantity":3}]}}"#;
    let confirmed = service.act("o", "confirm", body).is(200, "ok");
    assert_eq!(confirmed["reservation"]["lines"][0]["confirmed"], 3);
    // The lost reserve turns up.
    service.reserve("o", "u", "A", 3).is(200, "replayed");
    assert_eq!(service.counters("A"), [2, 0, 3, 2]);
}

#[test]
fn a_newer_reservation_takes_the_place_of_an_older_one() {
    let service = Service::start();
    service.stock("A", 5);
    service.reserve("old", "u", "A", 4).is(201, "ok");
    let body = r#"{"id":"new","owner":"u","mode":"reserve","supersedes":"old","durability":"hot",
        "lines":[{"sku":"A","quantity":5}]}"#;
    service.post("/v1/reservations", body).is(201, "ok");
    assert_eq!(service.counters("A"), [5, 5, 0, 0]);
    assert_eq!(
        service.get("/v1/reservations/old").json()["reservation"]["status"],
        "cancelled"
    );
}

#[test]
fn a_refusal_is_not_remembered() {
    let service = Service::start();
    service.stock("A", 0);
    service.reserve("o", "u", "A", 1).is(409, "insufficient_stock");
    service
        .post("/v1/stock/A/adjustments", r#"{"id":"a","delta":5}"#)
        .is(200, "ok");
    service.reserve("o", "u", "A", 1).is(201, "ok");
    service.reserve("o", "u", "A", 1).is(200, "replayed");
}

#[test]
fn stock_is_counted_moved_and_configured() {
    let service = Service::start();
    let created = service.put("/v1/stock/A", r#"{"id":"c-1","location":"shop","on_hand":100}"#);
    created.is(201, "ok");
    let expected = r#"{"code":"ok","stock":{"sku":"A","revision":1,"available":100,"locations":[{"location":"shop","on_hand":100,"reserved":0,"sold":0,"safety_stock":0,"available":100}],"settings":{"limit_per_owner":null,"opens_at_ms":null,"closes_at_ms":null,"paused":false,"order":[],"split":true,"group":null}}}"#;
    assert_eq!(created.text, expected);
    service
        .put("/v1/stock/A", r#"{"id":"c-2","location":"store","on_hand":10}"#)
        .is(200, "ok");
    service
        .post(
            "/v1/stock/A/transfers",
            r#"{"id":"t","from":"shop","to":"store","quantity":40}"#,
        )
        .is(200, "ok");
    let floor =
        r#"{"id":"p","safety_stock":[{"location":"store","safety_stock":45}],"order":["store","shop"]}"#;
    let stock = service.patch("/v1/stock/A", floor).is(200, "ok");
    assert_eq!(
        (&stock["stock"]["available"], &stock["stock"]["revision"]),
        (&json!(65), &json!(4))
    );

    // Counted while sales go on: three more were sold than whoever counted saw.
    service.order("deduct", "o", "u", "A", 3).is(201, "ok");
    let set = r#"{"id":"c-3","location":"store","on_hand":50,"sold_seen":0}"#;
    let stock = service.put("/v1/stock/A", set).is(200, "ok");
    assert_eq!(stock["stock"]["locations"][1]["on_hand"], 47);
    service
        .put("/v1/stock/A", r#"{"id":"c-4","location":"store","on_hand":50}"#)
        .is(422, "invalid");
    let both = r#"{"id":"c-5","location":"store","on_hand":50,"sold_seen":0,"force":true}"#;
    service.put("/v1/stock/A", both).is(422, "invalid");
    service.audit_is_clean();
}

#[test]
fn the_reservations_of_a_batch_do_not_depend_on_each_other() {
    let service = Service::start();
    service.stock("A", 5);
    let item = |id: &str, quantity: Value| json!({"id": id, "owner": "u", "mode": "deduct", "lines": [{"sku": "A", "quantity": quantity}]});
    let body = json!({"reservations": [
        {"surprise": 1}, item("b-1", json!(2)), item("b-2", json!(9)), item("b-1", json!(2)), item("b-3", json!(1.5)),
        item("b-4", json!(3)), item("b-1", json!(1)),
    ]});
    let results = service.post("/v1/reservations/batch", &body.to_string()).json();
    let told: Vec<(u64, &str)> = results["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["status"].as_u64().unwrap(), r["body"]["code"].as_str().unwrap()))
        .collect();
    let expected = [
        (422, "invalid"),
        (201, "ok"),
        (409, "insufficient_stock"),
        (200, "replayed"),
        (422, "invalid"),
        (201, "ok"),
        (422, "id_reused"),
    ];
    assert_eq!(told, expected);
    let alone = service.order("deduct", "b-1", "u", "A", 2).json();
    assert_eq!(results["results"][3]["body"], alone);
    assert_eq!(
        results["results"][4]["body"]["errors"][0]["field"],
        "lines[0].quantity"
    );
    assert_eq!(service.counters("A"), [0, 0, 5, 0]);
}

#[test]
fn lists_are_read_page_by_page() {
    let service = Service::start();
    for number in 0..25 {
        service.stock(&format!("sku {number:02}"), 100);
        service
            .reserve(&format!("o-{number:02}"), "u", &format!("sku {number:02}"), 1)
            .is(201, "ok");
    }
    let pages = |path: &str, list: &str, key: &str, next: &str, parameter: &str| {
        let mut all = Vec::new();
        let mut query = "?limit=10".to_owned();
        loop {
            let page = service.get(&format!("{path}{query}")).json();
            let items = page[list].as_array().unwrap();
            assert!(items.len() <= 10);
            all.extend(items.iter().map(|item| item[key].to_string()));
            match &page[next] {
                Value::Null => return all,
                Value::String(text) => {
                    query = format!("?limit=10&{parameter}={}", crate::service::encoded(text));
                }
                number => query = format!("?limit=10&{parameter}={number}"),
            }
        }
    };
    let skus = pages("/v1/stock", "stock", "sku", "next_after", "after");
    let expected: Vec<String> = (0..25).map(|n| format!("\"sku {n:02}\"")).collect();
    assert_eq!(skus, expected);
    let reservations = pages("/v1/reservations", "reservations", "id", "next_before", "before");
    let expected: Vec<String> = (0..25).rev().map(|n| format!("\"o-{n:02}\"")).collect();
    assert_eq!(reservations, expected);
    let movements = pages("/v1/movements", "movements", "number", "next_before", "before");
    assert_eq!(movements.len(), 50);
    let only = service
        .get("/v1/reservations?sku=sku+03&status=pending&owner=u")
        .json();
    assert_eq!(only["reservations"].as_array().unwrap().len(), 1);
    assert!(
        service.get("/v1/reservations?status=confirmed").json()["reservations"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn the_service_says_how_it_is() {
    let service = Service::start();
    assert_eq!(service.get("/livez").json(), json!({"status": "alive"}));
    assert_eq!(service.get("/readyz").json(), json!({"status": "ready"}));
    service.stock("A", 1);
    service.reserve("o", "u", "A", 1).is(201, "ok");
    service.reserve("p", "u", "A", 1).is(409, "insufficient_stock");
    let metrics = service.get("/metrics").text;
    for line in [
        "stockade_http_requests_total{route=\"POST /v1/reservations\",status=\"201\"} 1",
        "stockade_http_requests_total{route=\"POST /v1/reservations\",status=\"409\"} 1",
        "stockade_outcomes_total{code=\"insufficient_stock\"} 1",
        "stockade_http_request_seconds_count{route=\"PUT /v1/stock/{sku}\"} 1",
        "stockade_live_reservations 1",
        "stockade_ready 1",
    ] {
        assert!(
            metrics.lines().any(|known| known == line),
            "{line} is not in\n{metrics}"
        );
    }
    // The engine's own.
    assert!(metrics.contains("stockade_commit_seconds"), "{metrics}");
}

//! Bytes that nobody meant: bodies, paths, queries, headers and files that are mutations of good ones. Each gets a typed
//! answer, and the service goes on.

use crate::service::{Answer, Service};

/// A small generator with a fixed seed, so that a failure comes again.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(count.max(1)).unwrap()).unwrap()
    }
    fn byte(&mut self) -> u8 {
        const NASTY: &[u8] = b"\"\\{}[],:\0\r\n\xff\xc3\x80\xef0-9.eE+%/u;=&\t '";
        if self.below(3) == 0 {
            self.next().to_le_bytes()[0]
        } else {
            NASTY[self.below(NASTY.len())]
        }
    }
    /// One to four changes: a byte put in, taken out, changed, a piece doubled, the end cut off.
    fn mutate(&mut self, good: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 => bytes.insert(at, self.byte()),
                1 if !bytes.is_empty() => drop(bytes.remove(at)),
                2 if !bytes.is_empty() => bytes[at] = self.byte(),
                3 => {
                    let end = at + self.below(bytes.len() - at);
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => bytes.truncate(bytes.len() - self.below(8).min(bytes.len())),
            }
        }
        bytes
    }
    /// The same, as what may stand in a request line or a header.
    fn mutate_line(&mut self, good: &str) -> String {
        let changed = self.mutate(good.as_bytes());
        let printable = changed.into_iter().filter(u8::is_ascii_graphic);
        printable.map(char::from).collect()
    }
}

#[track_caller]
fn typed(answer: &Answer, sent: &str) {
    let is_known = (200..300).contains(&answer.status)
        || [400, 404, 405, 408, 409, 410, 412, 413, 414, 415, 422, 429, 431].contains(&answer.status);
    assert!(is_known, "{} for {sent}: {}", answer.status, answer.text);
    if answer.status >= 400 && answer.header("content-type") == Some("application/problem+json") {
        assert!(!answer.code().is_empty(), "{sent}: {}", answer.text);
    } else if answer.status >= 400 {
        // Below the routes: what is no request at all.
        assert!(
            [400, 414, 431].contains(&answer.status),
            "{} for {sent}: {}",
            answer.status,
            answer.text
        );
    }
}

const JSON: [(&str, &str, &str); 6] = [
    (
        "POST",
        "/v1/reservations",
        r#"{"id":"o-1","owner":"u","mode":"reserve","lines":[{"sku":"A","quantity":1,"location":"default"}],"ttl_seconds":60}"#,
    ),
    (
        "POST",
        "/v1/reservations/batch",
        r#"{"reservations":[{"id":"o-2","owner":"\u00e9","mode":"deduct","lines":[{"sku":"A","quantity":1}]}]}"#,
    ),
    (
        "POST",
        "/v1/reservations/o-1/confirm",
        r#"{"lines":[{"sku":"A","quantity":1}],"payload":{"owner":"u","lines":[]}}"#,
    ),
    (
        "PATCH",
        "/v1/stock/A",
        r#"{"id":"c-1","limit_per_owner":null,"opens_at_ms":0,"order":["default"],"safety_stock":[{"safety_stock":1}]}"#,
    ),
    (
        "PUT",
        "/v1/stock/A",
        r#"{"id":"c-2","on_hand":9007199254740991,"force":true}"#,
    ),
    (
        "POST",
        "/v1/stock/A/adjustments",
        r#"{"id":"c-3","delta":-1,"reason":"broken"}"#,
    ),
];

#[test]
fn bodies_that_nobody_meant_get_a_typed_answer() {
    let service = Service::start();
    service.stock("A", 1_000);
    let mut dice = Dice(0x5eed_0001);
    for _ in 0..600 {
        let (method, path, good) = JSON[dice.below(JSON.len())];
        let body = dice.mutate(good.as_bytes());
        let answer = service.send(method, path, &[("content-type", "application/json")], &body);
        typed(
            &answer,
            &format!("{method} {path} {}", String::from_utf8_lossy(&body)),
        );
    }
    assert_eq!(service.get("/livez").status, 200);
    service.audit_is_clean();
}

#[test]
fn paths_queries_and_headers_that_nobody_meant_get_a_typed_answer() {
    let service = Service::start();
    service.stock("A", 1_000);
    let mut dice = Dice(0x5eed_0002);
    let paths = [
        "/v1/stock/A%2F1",
        "/v1/reservations/%C3%A9%F0%9F%A6%80",
        "/v1/movements?sku=A%2F1&limit=10&before=5&from_ms=0",
        "/v1/reservations?owner=a+b&status=pending&limit=1000",
        "/v1/stock/export?format=csv&escape_formulas=true&after=A",
        "/v1/events?follow=false&after=1.2&kind=reserved,stock&sku=A",
    ];
    let headers = [
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0bb902b7-01",
        ),
        ("x-request-id", "abc-123"),
        ("if-match", "\"3\""),
        ("idempotency-key", "o-1"),
        ("last-event-id", "812.1"),
        ("authorization", "Bearer sk_1_2"),
        ("content-type", "application/json; charset=utf-8"),
    ];
    for _ in 0..600 {
        let good = paths[dice.below(paths.len())];
        let tail = dice.mutate_line(&good[1..]);
        let path = format!("/{}", tail.replace('#', ""));
        let (name, good) = headers[dice.below(headers.len())];
        let value = dice.mutate_line(good);
        let answer = service.send("GET", &path, &[(name, &value)], b"");
        typed(&answer, &format!("GET {path} {name}: {value}"));
    }
    assert_eq!(service.get("/livez").status, 200);
}

#[test]
fn files_that_nobody_meant_get_a_report_and_a_dry_run_of_them_changes_nothing() {
    let service = Service::start();
    service.stock("A", 1_000);
    let mut dice = Dice(0x5eed_0003);
    let files: [(&str, &str); 2] = [
        (
            "text/csv",
            "\u{feff}sku,location,on_hand,sold_seen,id,reason\r\nA,,10,0,i-1,\"a \"\"b\"\"\"\r\n\"B,1\",x,9007199254740991,,i-1,\r\nC,,1,,,=1+1\r\n",
        ),
        (
            "application/x-ndjson",
            "{\"sku\":\"A\",\"on_hand\":10,\"sold_seen\":0,\"id\":\"i-1\"}\r\n\n{\"sku\":\"B\",\"quantity\":3}\n{\"sku\":\"B\",\"on_hand\":9007199254740991}",
        ),
    ];
    let before = service.get("/v1/movements").text;
    for number in 0..400 {
        let (kind, good) = files[number % 2];
        let body = dice.mutate(good.as_bytes());
        let path = "/v1/stock/import?as=target&dry_run=true";
        let answer = service.send("POST", path, &[("content-type", kind)], &body);
        typed(&answer, &String::from_utf8_lossy(&body));
    }
    assert_eq!(service.get("/v1/movements").text, before);
    service.audit_is_clean();
}

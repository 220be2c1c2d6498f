//! The gate: what it stops, what it says, and that a replay passes every limit.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::service::{Answer, Service};

fn service(flags: &[&str]) -> Service {
    let service = Service::with(flags);
    service.stock("A", 1_000);
    service.stock("B", 1_000);
    service
}

#[track_caller]
fn limited(answer: &Answer, limit: &str) {
    let problem = answer.is(429, "rate_limited");
    assert_eq!(problem["limit"], limit);
    let retry_after: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!(retry_after >= 1);
}

/// How often a line has stopped something.
fn stopped(service: &Service, line: &str) -> u64 {
    let text = service.get("/metrics").text;
    let name = format!("stockade_stopped_total{{line=\"{line}\"}} ");
    let found = text.lines().find_map(|row| row.strip_prefix(&name));
    found.map_or(0, |count| count.parse().unwrap())
}

#[test]
fn an_owner_asks_only_so_often_and_a_replay_always_passes() {
    let service = service(&["--owner-rate", "2/h"]);
    service.reserve("o-1", "Jane Doe", "A", 1).is(201, "ok");
    service.order("deduct", "o-2", "Jane Doe", "A", 1).is(201, "ok");
    let answer = service.reserve("o-3", "Jane Doe", "A", 1);
    limited(&answer, "owner_rate");
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some(r#""owner_rate";q=2;w=3600"#)
    );
    let left = answer.header("ratelimit").unwrap();
    assert!(left.starts_with(r#""owner_rate";r=0;t="#), "{left}");
    for _ in 0..3 {
        service.reserve("o-1", "Jane Doe", "A", 1).is(200, "replayed");
        service
            .order("deduct", "o-2", "Jane Doe", "A", 1)
            .is(200, "replayed");
        service.reserve("o-1", "Jane Doe", "A", 2).is(422, "id_reused");
    }
    // What settles a reservation is never stopped, and other owners are others.
    service.act("o-1", "confirm", "{}").is(200, "ok");
    service.reserve("o-1", "Jane Doe", "A", 1).is(200, "replayed");
    let long = "é".repeat(64);
    for owner in ["Jane  Doe", "jane Doe", "🦀", "{a}:b/c", &long] {
        service
            .reserve(
                &format!("x {owner}").chars().take(60).collect::<String>(),
                owner,
                "A",
                1,
            )
            .is(201, "ok");
    }
    limited(&service.reserve("o-3", "Jane Doe", "A", 1), "owner_rate");
    assert_eq!(stopped(&service, "owner_rate"), 2);
    assert_eq!(stopped(&service, "hot_tier"), 3);
    service.audit_is_clean();
}

#[test]
fn of_many_claims_at_once_as_many_live_as_may() {
    let service = service(&["--owner-live-max", "1"]);
    let statuses: Vec<(String, u16)> = std::thread::scope(|scope| {
        let claims: Vec<_> = (0..64)
            .map(|number| {
                let service = &service;
                scope.spawn(move || {
                    let id = format!("o-{number}");
                    let status = service.reserve(&id, "u", "A", 1).status;
                    (id, status)
                })
            })
            .collect();
        claims.into_iter().map(|claim| claim.join().unwrap()).collect()
    });
    let granted: Vec<&String> = statuses
        .iter()
        .filter(|(_, status)| *status == 201)
        .map(|(id, _)| id)
        .collect();
    assert_eq!(granted.len(), 1, "{statuses:?}");
    assert!(
        statuses.iter().all(|(_, status)| [201, 429].contains(status)),
        "{statuses:?}"
    );
    assert_eq!(service.counters("A"), [1_000, 1, 0, 999]);
    service.reserve(granted[0], "u", "A", 1).is(200, "replayed");
    // Another one in its place is none more; and when it is cancelled the next may come.
    let instead = json!({"id": "n-1", "owner": "u", "mode": "reserve", "supersedes": granted[0],
        "lines": [{"sku": "A", "quantity": 1}]});
    service
        .post("/v1/reservations", &instead.to_string())
        .is(201, "ok");
    limited(&service.reserve("n-2", "u", "A", 1), "owner_live");
    service.act("n-1", "cancel", "{}").is(200, "ok");
    service.reserve("n-2", "u", "A", 1).is(201, "ok");
    // A refused one counts for nothing.
    service.act("n-2", "cancel", "{}").is(200, "ok");
    service
        .reserve("n-3", "u", "A", 5_000)
        .is(409, "insufficient_stock");
    service.reserve("n-4", "u", "A", 1).is(201, "ok");
}

#[test]
fn an_interval_is_of_one_sku() {
    let service = service(&["--owner-interval-ms", "60000"]);
    service.reserve("o-1", "u", "A", 1).is(201, "ok");
    limited(&service.reserve("o-2", "u", "A", 1), "owner_interval");
    service.reserve("o-1", "u", "A", 1).is(200, "replayed");
    service.reserve("o-3", "u", "B", 1).is(201, "ok");
    service.reserve("o-4", "v", "A", 1).is(201, "ok");
    // In a batch each one is let on or stopped alone, and stays in its place.
    let item = |id: &str, owner: &str| json!({"id": id, "owner": owner, "mode": "reserve", "lines": [{"sku": "A", "quantity": 1}]});
    let batch = json!({"reservations":
        [item("o-5", "u"), item("o-1", "u"), item("o-6", "w"), item("o-7", "w"), {"id": "bad"}]});
    let results = service.post("/v1/reservations/batch", &batch.to_string()).json();
    let statuses: Vec<_> = results["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["status"].clone())
        .collect();
    assert_eq!(statuses, [429, 200, 201, 429, 422].map(serde_json::Value::from));
    assert_eq!(stopped(&service, "owner_interval"), 3);
}

#[test]
fn owners_who_let_reservations_end_have_to_wait() {
    let service = service(&["--cool-down-after", "2", "--cool-down-seconds", "600"]);
    for id in ["o-1", "o-2"] {
        let body = json!({"id": id, "owner": "u", "mode": "reserve", "ttl_seconds": 1,
            "lines": [{"sku": "A", "quantity": 1}]});
        service.post("/v1/reservations", &body.to_string()).is(201, "ok");
    }
    let since = Instant::now();
    let mut number = 0;
    loop {
        number += 1;
        let id = format!("n-{number}");
        let answer = service.order("deduct", &id, "u", "A", 1);
        if answer.status == 429 {
            limited(&answer, "cool_down");
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(10), "never");
        std::thread::sleep(Duration::from_millis(50));
    }
    service.order("deduct", "n-1", "u", "A", 1).is(200, "replayed");
    service.order("deduct", "x-1", "v", "A", 1).is(201, "ok");
}

#[test]
fn what_was_live_before_a_restart_still_counts() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let flags = ["--owner-live-max", "1"];
    let service = Service::on(&data, &flags);
    service.stock("A", 10);
    service.reserve("o-1", "u", "A", 1).is(201, "ok");
    assert!(service.stop().success());
    let service = Service::on(&data, &flags);
    // It is told in the background: what is granted before counts too.
    let since = Instant::now();
    let mut number = 0;
    while service.reserve(&format!("n-{number}"), "u", "A", 1).status != 429 {
        service.act(&format!("n-{number}"), "cancel", "{}").is(200, "ok");
        number += 1;
        assert!(since.elapsed() < Duration::from_secs(10), "never");
    }
    service.act("o-1", "cancel", "{}").is(200, "ok");
    service.reserve("o-2", "u", "A", 1).is(201, "ok");
}

/// An interval is a difference of two moments, whatever the clock on the wall shows.
#[test]
fn intervals_and_ends_are_the_same_in_every_time_zone() {
    for zone in [
        "Australia/Brisbane",
        "America/New_York",
        "Asia/Kolkata",
        "Pacific/Chatham",
        "EST",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let mut command = crate::service::serve(&data, &["--owner-interval-ms", "300"]);
        let service = Service::of(
            command.env("TZ", zone).stdout(std::process::Stdio::piped()),
            &data,
        );
        service.stock("A", 10);
        service.reserve("o-1", "u", "A", 1).is(201, "ok");
        std::thread::sleep(Duration::from_millis(400));
        service.reserve("o-2", "u", "A", 1).is(201, "ok");
        assert_eq!(service.counters("A"), [10, 2, 0, 8], "{zone}: nothing has ended");
    }
}

#[test]
fn sold_out_is_said_again_without_asking_again_but_never_of_a_granted_id() {
    let service = Service::with(&["--sold-out-ms", "10000"]);
    service.stock("A", 1);
    service.order("deduct", "o-1", "u-1", "A", 1).is(201, "ok");
    let decided = service
        .order("deduct", "o-2", "u-2", "A", 1)
        .is(409, "insufficient_stock");
    for number in 3..20 {
        let again = service.order("deduct", &format!("o-{number}"), "u", "A", 1);
        let again = again.is(409, "insufficient_stock");
        assert_eq!(again, decided, "the same words");
    }
    assert_eq!(stopped(&service, "sold_out"), 17);
    for _ in 0..3 {
        service.order("deduct", "o-1", "u-1", "A", 1).is(200, "replayed");
    }
    service.order("deduct", "o-1", "u-1", "A", 2).is(422, "id_reused");
    // A seal is known too.
    service.act("o-99", "cancel", "{}").is(200, "sealed");
    service
        .order("deduct", "o-98", "u", "A", 1)
        .is(409, "insufficient_stock");
    service
        .order("deduct", "o-99", "u", "A", 1)
        .is(409, "already_cancelled");
    // Units that come are sold at once.
    let more = json!({"id": "c-2", "delta": 1, "reason": "delivery"});
    service
        .post("/v1/stock/A/adjustments", &more.to_string())
        .is(200, "ok");
    service.order("deduct", "o-50", "u-50", "A", 1).is(201, "ok");
    assert_eq!(service.counters("A"), [0, 0, 2, 0]);
    service.audit_is_clean();
}

#[test]
fn a_queue_that_is_too_long_turns_reservations_away_before_they_wait() {
    // A queue of a millisecond is too long here; 256 are always let on.
    let service = Service::with(&["--shed-after-ms", "1"]);
    service.stock("A", 1_000_000);
    let since = Instant::now();
    let counts = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|caller| {
                let service = &service;
                scope.spawn(move || {
                    let (mut granted, mut shed, mut round) = (0_u64, 0_u64, 0);
                    while since.elapsed() < Duration::from_millis(2_500) {
                        round += 1;
                        let items: Vec<_> = (0..200)
                            .map(|number| {
                                json!({"id": format!("{caller}-{round}-{number}"), "owner": "u", "mode": "deduct",
                                    "lines": [{"sku": "A", "quantity": 1}]})
                            })
                            .collect();
                        let body = json!({ "reservations": items }).to_string();
                        let answer = service.post("/v1/reservations/batch", &body);
                        if answer.status == 200 {
                            granted += answer.text.matches("\"status\":201").count() as u64;
                        } else {
                            answer.is(503, "overloaded");
                            assert!(answer.header("retry-after").is_some());
                            shed += 1;
                        }
                    }
                    (granted, shed)
                })
            })
            .collect();
        let counts = callers.into_iter().map(|caller| caller.join().unwrap());
        counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    assert!(counts.0 > 0 && counts.1 > 0, "{counts:?}");
    assert_eq!(stopped(&service, "shed"), counts.1);
    // Turned away means that nothing was done.
    assert_eq!(service.counters("A")[2], counts.0);
    // When it is over, everybody is welcome again.
    service.order("deduct", "last", "u", "A", 1).is(201, "ok");
}

#[test]
fn what_makes_no_sense_stops_the_start() {
    for (flags, words) in [
        (&["--owner-rate", "0/s"][..], "--owner-rate"),
        (&["--owner-rate", "5"], "--owner-rate"),
        (&["--key-rate", "1/s", "--key-burst", "0"], "burst"),
        (&["--owner-burst", "5"], "--owner-rate"),
        (&["--owner-live-max", "0"], "--owner-live-max"),
        (&["--cool-down-after", "0"], "--cool-down-after"),
        (&["--sold-out-ms", "60000"], "--sold-out-ms"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = crate::service::serve(&folder.path().join("data"), flags)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains(words), "{said}");
    }
}

//! Clients that are slow, silent, rude or gone.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::service::{Service, read_answer, try_read_answer};

#[test]
fn a_thousand_silent_connections_do_not_keep_a_further_one_out() {
    let service = Service::start();
    service.stock("A", 5);
    let silent: Vec<_> = (0..1_000).map(|_| service.connect()).collect();
    let since = Instant::now();
    service.reserve("o", "u", "A", 1).is(201, "ok");
    assert!(since.elapsed() < Duration::from_secs(5));
    assert_eq!(silent.len(), 1_000);
}

/// As many as the service takes by default, each saying nothing or never finishing its head.
#[test]
fn ten_thousand_silent_and_slow_connections_do_not_keep_a_further_one_out() {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let wanted = 10_300;
    if files.maximum.is_some_and(|most| most < wanted) {
        eprintln!("left out: this machine allows {:?} open files", files.maximum);
        return;
    }
    let raised = rustix::process::Rlimit {
        current: Some(wanted),
        maximum: files.maximum,
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let service = Service::start();
    service.stock("A", 5);
    let mut held = Vec::new();
    for number in 0..10_000 {
        let mut stream = service.connect();
        if number % 2 == 0 {
            stream
                .write_all(b"POST /v1/reservations HTTP/1.1\r\nhost: x\r\nx-slow: ")
                .unwrap();
        }
        held.push(stream);
    }
    for number in 0..5 {
        let since = Instant::now();
        service.reserve(&format!("o-{number}"), "u", "A", 1).is(201, "ok");
        assert!(since.elapsed() < Duration::from_secs(5));
        // The slow ones go on as slowly.
        for stream in held.iter_mut().step_by(2).rev().take(100) {
            // Some were closed to make room.
            let _ = stream.write_all(b"x");
        }
    }
    service.audit_is_clean();
    assert_eq!(held.len(), 10_000);
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let service = Service::start();
    let long = "x".repeat(200_000);
    for head in [
        format!("GET /livez HTTP/1.1\r\nhost: x\r\nx-long: {long}\r\n\r\n"),
        format!("GET /livez?{long} HTTP/1.1\r\nhost: x\r\n\r\n"),
        format!(
            "GET /livez HTTP/1.1\r\nhost: x\r\n{}\r\n",
            "x-many: 1\r\n".repeat(200)
        ),
    ] {
        let mut stream = service.connect();
        // It may be closed before all of it was sent.
        let _ = stream.write_all(head.as_bytes());
        if let Ok(answer) = try_read_answer(&mut stream) {
            assert!(
                [414, 431].contains(&answer.status),
                "{} {}",
                answer.status,
                &head[..40]
            );
        }
    }
    service.get("/livez").header("content-type").unwrap();
}

#[test]
fn past_the_bound_the_longest_silent_connection_makes_room() {
    let service = Service::with(&["--connections-max", "10"]);
    service.stock("A", 5);
    let mut silent: Vec<_> = (0..30).map(|_| service.connect()).collect();
    service.reserve("o", "u", "A", 1).is(201, "ok");
    let mut byte = [0];
    assert_eq!(
        silent[0].read(&mut byte).unwrap_or(0),
        0,
        "the first one is closed"
    );
}

#[test]
fn a_head_that_does_not_come_ends_the_connection() {
    let service = Service::with(&["--head-timeout-ms", "200"]);
    let mut slow = service.connect();
    slow.write_all(b"POST /v1/reservations HTTP/1.1\r\nhost: x\r\n")
        .unwrap();
    let since = Instant::now();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(since.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_body_that_does_not_come_is_told_so() {
    let service = Service::with(&["--body-timeout-ms", "200"]);
    let mut slow = service.connect();
    slow.write_all(b"POST /v1/reservations HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{\"id\":")
        .unwrap();
    read_answer(&mut slow).is(408, "body_timeout");
}

#[test]
fn bodies_are_bounded() {
    let service = Service::with(&["--body-bytes-max", "2000"]);
    service.stock("A", 5);
    let reason = |length: usize| json!({"reason": "x".repeat(length)}).to_string();
    service.act("o", "cancel", &reason(256)).is(200, "sealed");
    service.act("o", "cancel", &reason(257)).is(422, "invalid");
    // Announced, and not announced.
    for length in [2_000, 5_000_000] {
        service
            .act("o", "cancel", &reason(length))
            .is(413, "body_too_large");
    }
    let mut stream = service.connect();
    stream
        .write_all(
            b"POST /v1/reservations/o/cancel HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .unwrap();
    for _ in 0..10 {
        stream
            .write_all(format!("3e8\r\n{}\r\n", " ".repeat(1_000)).as_bytes())
            .unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    read_answer(&mut stream).is(413, "body_too_large");
}

#[test]
fn a_body_in_pieces_is_one_body() {
    let service = Service::start();
    let mut stream = service.connect();
    stream
        .write_all(
            b"POST /v1/reservations/o/cancel HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .unwrap();
    for piece in ["{\"rea", "son\":", "\"gone\"}"] {
        stream
            .write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())
            .unwrap();
        stream.flush().unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    read_answer(&mut stream).is(200, "sealed");
}

#[test]
fn a_client_may_ask_before_it_sends_its_body() {
    let service = Service::start();
    let mut stream = service.connect();
    stream
        .write_all(
            b"POST /v1/reservations/o/cancel HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n",
        )
        .unwrap();
    assert_eq!(read_answer(&mut stream).status, 100);
    stream.write_all(b"{}").unwrap();
    read_answer(&mut stream).is(200, "sealed");
}

#[test]
fn requests_on_one_connection_are_answered_in_order() {
    let service = Service::start();
    service.stock("A", 100);
    let mut stream = service.connect();
    let mut requests = String::new();
    for quantity in 1..=9 {
        let body = format!(
            r#"{{"id":"o-{quantity}","owner":"u","mode":"deduct","lines":[{{"sku":"A","quantity":{quantity}}}]}}"#
        );
        let request = format!(
            "POST /v1/reservations HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        requests.push_str(&request);
        requests.push_str("GET /v1/stock/A HTTP/1.1\r\nhost: x\r\n\r\n");
    }
    stream.write_all(requests.as_bytes()).unwrap();
    let mut sold = 0;
    for quantity in 1..=9_u64 {
        sold += quantity;
        let granted = read_answer(&mut stream).is(201, "ok");
        assert_eq!(granted["reservation"]["lines"][0]["quantity"], quantity);
        let stock = read_answer(&mut stream).is(200, "ok");
        assert_eq!(stock["stock"]["locations"][0]["sold"], sold);
    }
}

#[test]
fn a_client_that_hangs_up_leaves_a_whole_command_or_none() {
    let service = Service::start();
    service.stock("A", 1_000);
    for number in 0..200_u64 {
        let body = format!(
            r#"{{"id":"h-{number}","owner":"u","mode":"deduct","lines":[{{"sku":"A","quantity":1}}]}}"#
        );
        let request = format!(
            "POST /v1/reservations HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = service.connect();
        let sent = if number % 4 == 0 {
            request.len() / 2
        } else {
            request.len()
        };
        stream.write_all(&request.as_bytes()[..sent]).unwrap();
        std::thread::sleep(Duration::from_micros(number % 7 * 300));
        drop(stream);
    }
    service.audit_is_clean();
    // Asking by id, and sending again, agree with the stock.
    let known = (0..200)
        .filter(|n| service.get(&format!("/v1/reservations/h-{n}")).status == 200)
        .count();
    assert_eq!(service.counters("A")[2], known as u64);
    for number in 0..200 {
        let answer = service.order("deduct", &format!("h-{number}"), "u", "A", 1);
        assert!([200, 201].contains(&answer.status), "{}", answer.text);
    }
    assert_eq!(service.counters("A"), [800, 0, 200, 800]);
    service.audit_is_clean();
}

#[test]
fn what_is_not_http_is_refused() {
    let service = Service::start();
    for nonsense in [
        "\r\n\r\n\r\n",
        "hello\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n",
        "POST /v1/audit HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}   ",
        "POST /v1/audit HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
    ] {
        let mut stream = service.connect();
        stream.write_all(nonsense.as_bytes()).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        if let Ok(answer) = try_read_answer(&mut stream) {
            assert_eq!(answer.status, 400, "{nonsense:?}");
        }
    }
    service.get("/livez");
}

#[test]
fn an_answer_that_takes_too_long_is_unknown_and_can_be_asked_for() {
    // A thousand orders take longer to record than a millisecond on any disk.
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = Service::on(&data, &["--answer-timeout-ms", "1"]);
    let items: Vec<_> = (0..1_000)
        .map(|n| {
            let lines = [
                json!({"sku": "A", "quantity": 1}),
                json!({"sku": "B", "quantity": 1}),
            ];
            json!({"id": format!("o-{n}"), "owner": "u", "mode": "deduct", "lines": lines})
        })
        .collect();
    let body = json!({"reservations": items}).to_string();
    // Stock may be set or not by the time of the answer; the same ids make sure of it.
    for sku in ["A", "B"] {
        let path = format!("/v1/stock/{sku}");
        let set = format!(r#"{{"id":"create {sku}","on_hand":1000}}"#);
        let since = Instant::now();
        while service.put(&path, &set).status != 200 {
            assert!(since.elapsed() < Duration::from_secs(20), "never replayed");
        }
    }
    service
        .post("/v1/reservations/batch", &body)
        .is(504, "outcome_unknown");
    drop(service);
    let again = Service::on(&data, &[]);
    let results = again.post("/v1/reservations/batch", &body).json();
    let statuses = results["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["status"].as_u64());
    assert!(
        statuses
            .into_iter()
            .all(|status| status == Some(200) || status == Some(201)),
        "{results}"
    );
    assert_eq!(again.counters("A"), [0, 0, 1_000, 0]);
    assert_eq!(again.counters("B"), [0, 0, 1_000, 0]);
    again.audit_is_clean();
}

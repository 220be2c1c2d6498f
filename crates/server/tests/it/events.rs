//! What happens, as it is recorded: order, kinds, filters; cuts, restarts and listeners that do not read.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::service::{BINARY, Service, read_chunk, try_read_answer};

/// A stream of events.
struct Events {
    stream: TcpStream,
    text: String,
}

/// One event: its id and what it says.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    id: String,
    data: Value,
}

impl Event {
    fn kind(&self) -> &str {
        self.data["kind"].as_str().unwrap()
    }
}

impl Events {
    #[track_caller]
    fn open(service: &Service, query: &str, last: Option<&str>) -> Self {
        let mut stream = service.connect();
        let last = last.map_or(String::new(), |last| format!("last-event-id: {last}\r\n"));
        write!(stream, "GET /v1/events?{query} HTTP/1.1\r\nhost: x\r\n{last}\r\n").unwrap();
        let answer = try_read_answer(&mut stream).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        Self {
            stream,
            text: String::new(),
        }
    }

    /// The next block of lines; `None`: the stream has ended.
    fn block(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.text.find("\n\n") {
                let rest = self.text.split_off(at + 2);
                return Some(std::mem::replace(&mut self.text, rest));
            }
            let chunk = read_chunk(&mut self.stream).ok().flatten()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next event; `None`: the stream has ended.
    fn next(&mut self) -> Option<Event> {
        loop {
            let block = self.block()?;
            let line = |name: &str| {
                block
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(str::to_owned)
            };
            if let (Some(id), Some(data)) = (line("id: "), line("data: ")) {
                let data: Value = serde_json::from_str(&data).unwrap();
                assert_eq!(data["id"], id.as_str());
                assert_eq!(line("event: ").as_deref(), data["kind"].as_str());
                return Some(Event { id, data });
            }
        }
    }

    fn rest(mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// Everything that is recorded now.
#[track_caller]
fn all(service: &Service, query: &str) -> Vec<Event> {
    Events::open(service, &format!("after=0&follow=false&{query}"), None).rest()
}

fn kinds(events: &[Event]) -> String {
    let kinds: Vec<&str> = events.iter().map(Event::kind).collect();
    kinds.join(" ")
}

#[test]
fn every_kind_is_told_in_order() {
    let service = Service::start();
    service.stock("A", 3);
    service.reserve("o-1", "u-1", "A", 2).is(201, "ok");
    service.act("o-1", "confirm", "{}").is(200, "ok");
    service.act("o-1", "return", r#"{"id":"r-1"}"#).is(200, "ok");
    service.reserve("o-2", "u-2", "A", 3).is(201, "ok");
    service.act("o-2", "cancel", "{}").is(200, "ok");
    service.act("never", "cancel", "{}").is(200, "sealed");
    let short =
        r#"{"id":"o-3","owner":"u-3","mode":"reserve","ttl_seconds":1,"lines":[{"sku":"A","quantity":1}]}"#;
    service.post("/v1/reservations", short).is(201, "ok");
    let mut live = Events::open(&service, "kind=expired", None);
    assert_eq!(live.next().unwrap().data["movement"]["reservation"], "o-3");
    service.order("deduct", "o-4", "u-4", "A", 3).is(201, "ok");
    service.act("o-3", "confirm", "{}").is(410, "expired");
    service.act("o-3", "confirm", "{}").is(410, "expired");
    let events = all(&service, "low_stock=1");
    assert_eq!(
        kinds(&events),
        "stock_changed reserved low_stock confirmed returned reserved sold_out low_stock cancelled cancelled reserved \
         expired confirmed sold_out low_stock paid_not_fulfilled"
    );
    let reserved = &events[1].data["movement"];
    assert_eq!(
        (
            &reserved["sku"],
            &reserved["reserved"],
            &reserved["after"]["available"]
        ),
        (&"A".into(), &2.into(), &1.into())
    );
    assert_eq!(events[2].data["threshold"], 1);
    assert_eq!(events[2].id, format!("{}.2", events[1].id));
    assert_eq!(
        kinds(&all(&service, "kind=paid_not_fulfilled,returned")),
        "returned paid_not_fulfilled"
    );
    assert_eq!(kinds(&all(&service, "kind=sold_out&sku=A")), "sold_out sold_out");
    assert_eq!(kinds(&all(&service, "sku=B")), "");
    // Going on after any event gives exactly the rest.
    for (at, event) in events.iter().enumerate() {
        let query = format!("low_stock=1&follow=false&after={}", event.id);
        assert_eq!(
            Events::open(&service, &query, None).rest(),
            events[at + 1..],
            "after {}",
            event.id
        );
        let rest = Events::open(&service, "low_stock=1&follow=false&after=0", Some(&event.id)).rest();
        assert_eq!(rest, events[at + 1..], "the header goes first");
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let service = Service::start();
    for query in [
        "kind=sold",
        "after=x",
        "after=1.",
        "low_stock=-1",
        "kind=low_stock",
        "follow=maybe",
        "sku=",
        "color=red",
    ] {
        service.get(&format!("/v1/events?{query}")).is(422, "invalid");
    }
    let bad = service.call("GET", "/v1/events", &[("last-event-id", "yesterday")], b"");
    assert!(
        bad.is(422, "invalid")["detail"]
            .as_str()
            .unwrap()
            .contains("Last-Event-ID")
    );
}

/// Orders from several threads until they are told to stop; refused ones are fine.
fn load(service: &Service, stop: &AtomicBool, thread: u32, round: u32) {
    let mut stream = service.connect();
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let id = format!("o-{round}-{thread}-{n}");
        let mode = if n % 3 == 0 { "deduct" } else { "reserve" };
        let body = format!(
            r#"{{"id":"{id}","owner":"u","mode":"{mode}","lines":[{{"sku":"A","quantity":1}},{{"sku":"B","quantity":2}}]}}"#
        );
        let send = |stream: &mut TcpStream, path: &str, body: &str| {
            let length = body.len();
            write!(
                stream,
                "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}"
            )?;
            try_read_answer(stream)
        };
        let done = send(&mut stream, "/v1/reservations", &body)
            .and_then(|_| send(&mut stream, &format!("/v1/reservations/{id}/cancel"), "{}"));
        if done.is_err() {
            // The service was stopped.
            return;
        }
    }
}

/// Under load, listeners are cut again and again and go on; in between the service is killed and started again. Each
/// has seen every event once, in order.
#[test]
fn listeners_that_are_cut_miss_nothing_and_see_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut service = Service::on(&data, &[]);
    service.stock("A", 1_000_000);
    service.stock("B", 1_000_000);
    let mut seen: [Vec<Event>; 2] = [Vec::new(), Vec::new()];
    for round in 0..3_u32 {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (service, stop) = (&service, &stop);
            for thread in 0..3 {
                scope.spawn(move || load(service, stop, thread, round));
            }
            let listening: Vec<_> = seen
                .iter_mut()
                .enumerate()
                .map(|(number, seen)| {
                    scope.spawn(move || {
                        for cut in 0..5 {
                            let last = seen.last().map_or("0".to_owned(), |last| last.id.clone());
                            let mut events = Events::open(service, "", Some(&last));
                            for _ in 0..(40 + 13 * cut + 7 * number) {
                                seen.push(events.next().unwrap());
                            }
                        }
                    })
                })
                .collect();
            for listener in listening {
                listener.join().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        service.signal("-KILL");
        service.ended();
        service = Service::on(&data, &[]);
    }
    let truth = all(&service, "");
    let numbers: Vec<i64> = truth.iter().map(|event| event.id.parse().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next));
    for seen in seen {
        assert!(seen.len() > 600);
        assert_eq!(seen, truth[..seen.len()]);
    }
    service.audit_is_clean();
}

/// Whoever does not read is cut, costs a bounded amount, and goes on by the last id; others are served meanwhile.
#[test]
fn a_listener_that_does_not_read_is_cut_and_can_go_on() {
    let service = Service::start();
    let mut slow = Events::open(&service, "", None);
    let mut quick = Events::open(&service, "kind=stock_changed", None);
    // The first block shows that it listens.
    slow.block().unwrap();
    quick.block().unwrap();
    let rows = 60_000;
    let file: Vec<String> = (0..rows).map(|n| format!("sku-{:02},1", n % 50)).collect();
    let file = format!("sku,quantity\n{}\n", file.join("\n"));
    let reading = std::thread::spawn(move || {
        for _ in 0..rows {
            quick.next().unwrap();
        }
    });
    let done = service.call(
        "POST",
        "/v1/stock/import?as=delivery&id=1",
        &[("content-type", "text/csv")],
        file.as_bytes(),
    );
    assert_eq!(done.json()["rows"], rows);
    reading.join().unwrap();
    // It ends, with a word, before it has told everything.
    let mut seen = Vec::new();
    let mut said = String::new();
    while let Some(block) = slow.block() {
        if let Some(id) = block.lines().find_map(|line| line.strip_prefix("id: ")) {
            seen.push(id.to_owned());
        }
        said = block;
    }
    assert!(seen.len() < rows, "it was never behind");
    assert!(said.contains("read too slowly"), "{said}");
    let rest = Events::open(&service, "follow=false", seen.last().map(String::as_str)).rest();
    assert_eq!(seen.len() + rest.len(), rows);
}

#[test]
fn a_stop_ends_the_streams_in_order() {
    let service = Service::start();
    service.stock("A", 1);
    let mut events = Events::open(&service, "after=0", None);
    assert_eq!(events.next().unwrap().kind(), "stock_changed");
    let since = Instant::now();
    let status = service.stop();
    assert!(status.success());
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "streams held the stop up"
    );
    let mut last = String::new();
    while let Some(block) = events.block() {
        last = block;
    }
    assert!(last.contains("stopping"), "{last}");
}

#[test]
fn the_command_line_prints_a_line_an_event_and_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut service = Service::on(&data, &[]);
    service.stock("A", 1);
    let output = Command::new(BINARY)
        .args(["events", "--url", &service.url()])
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&event["kind"], &event["movement"]["sku"]),
        (&"stock_changed".into(), &"A".into())
    );

    let address = service.address;
    let mut following = Command::new(BINARY)
        .args(["events", "--follow", "--after", "0", "--url", &service.url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(following.stdout.take().unwrap()));
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next(), event);
    service.signal("-KILL");
    service.ended();
    let again = address.to_string();
    let service = Service::on(&data, &["--listen", &again]);
    service.stock("B", 1);
    assert_eq!(next()["movement"]["sku"], "B");
    following.kill().unwrap();
    following.wait().unwrap();
}

//! The command line, as transcripts: exit code, stdout, stderr.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::Command;

use crate::service::{BINARY, Service, read_answer};

/// Runs a command line against a service, and writes down what came of it. Moments are written as `<time>`.
fn transcript(url: &str, line: &[&str]) -> String {
    let mut command = Command::new(BINARY);
    command
        .args(line)
        .env("STOCKADE_URL", url)
        .env_remove("STOCKADE_TIMEOUT_MS");
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let whole = format!(
        "$ stockade {}\nexit: {}\n--- stdout\n{}--- stderr\n{}",
        line.join(" "),
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr)
    );
    timeless(&whole.replace(url, "<url>"))
}

/// RFC 3339 times and milliseconds become `<time>` of the same width.
fn timeless(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("20") {
        let stamp = rest
            .get(at..at + 24)
            .filter(|s| s.ends_with('Z') && s.as_bytes()[10] == b'T');
        result.push_str(&rest[..at]);
        if stamp.is_some() {
            result.push_str("<time>                  ");
            rest = &rest[at + 24..];
        } else {
            result.push_str("20");
            rest = &rest[at + 2..];
        }
    }
    result + rest
}

#[test]
fn a_day_at_the_counter() {
    let service = Service::start();
    let url = service.url();
    let lines: &[&[&str]] = &[
        &["stock", "set", "A/1", "10", "--id", "c-1"],
        &[
            "stock", "adjust", "A/1", "+5", "--id", "c-2", "--reason", "delivery",
        ],
        &["stock", "adjust", "A/1", "-3", "--id", "c-3"],
        &["stock", "adjust", "A/1", "-3", "--id", "c-3"],
        &["stock", "set", "A/1", "4", "--location", "shop", "--id", "c-4"],
        &[
            "stock", "transfer", "A/1", "2", "--from", "default", "--to", "shop", "--id", "c-5",
        ],
        &[
            "stock",
            "configure",
            "A/1",
            "--limit-per-owner",
            "5",
            "--safety-stock",
            "shop=1",
            "--id",
            "c-6",
        ],
        &["reservation", "reserve", "A/1=3", "--owner", "u-1", "--id", "o-1"],
        &["reservation", "reserve", "A/1=3", "--owner", "u-1", "--id", "o-1"],
        &["reservation", "reserve", "A/1=3", "--owner", "u-1", "--id", "o-2"],
        &[
            "reservation",
            "deduct",
            "A/1=100",
            "--owner",
            "u-2",
            "--id",
            "o-3",
        ],
        &["reservation", "extend", "o-1", "--expires-at", "tomorrow"],
        &["reservation", "confirm", "o-1", "A/1=2"],
        &[
            "reservation",
            "return",
            "o-1",
            "A/1=1",
            "--return-id",
            "r-1",
            "--reason",
            "damaged",
        ],
        &["reservation", "cancel", "o-1"],
        &["reservation", "cancel", "o-9"],
        &["reservation", "show", "o-1"],
        &["reservation", "list", "--owner", "u-1"],
        &["movements", "--reservation", "o-1"],
        &["stock", "list"],
        &["stock", "get", "nowhere"],
        &["audit"],
    ];
    let all: Vec<String> = lines.iter().map(|line| transcript(&url, line)).collect();
    insta::assert_snapshot!("day", all.join("\n\n"));
}

#[test]
fn programs_get_json() {
    let service = Service::start();
    let url = service.url();
    let json = |line: &[&str]| {
        let output = Command::new(BINARY)
            .args(line)
            .args(["--json", "--url", &url])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        (output.status.code().unwrap(), value)
    };
    let (code, set) = json(&["stock", "set", "A", "5"]);
    assert_eq!((code, &set["stock"]["available"]), (0, &serde_json::json!(5)));
    let (code, granted) = json(&["reservation", "reserve", "A=2", "--owner", "u"]);
    assert_eq!(code, 0);
    let id = granted["reservation"]["id"].as_str().unwrap();
    assert_eq!(id.len(), 36, "a fresh id");
    let (code, refused) = json(&["reservation", "reserve", "A=9", "--owner", "u"]);
    assert_eq!(
        (code, &refused["code"]),
        (1, &serde_json::json!("insufficient_stock"))
    );
    let (code, report) = json(&["audit"]);
    assert_eq!((code, &report["clean"]), (0, &serde_json::json!(true)));
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let url = "http://127.0.0.1:1";
    let rows: [&[&str]; 16] = [
        &["reservation", "reserve", "A=0x10", "--owner", "u"],
        &["reservation", "reserve", "A=1e3", "--owner", "u"],
        &["reservation", "reserve", "A=0.1", "--owner", "u"],
        &["reservation", "reserve", "A=-5", "--owner", "u"],
        &["reservation", "reserve", "A", "--owner", "u"],
        &["reservation", "reserve", "--owner", "u"],
        &["reservation", "reserve", "A=1"],
        &["stock", "set", "A", "-1"],
        &["stock", "set", "A", "2.5"],
        &["stock", "set", "..", "1"],
        &["stock", "adjust", "A", "0"],
        &["stock", "configure", "A"],
        &["stock", "set", "A", "1", "--force", "--sold-seen", "1"],
        &["audit", "--data", "/nowhere/at/all"],
        &["stock", "get", "A", "--url", "ftp://127.0.0.1:1"],
        &["stock", "get", "A", "--url", "nonsense"],
    ];
    for line in rows {
        let said = transcript(url, line);
        assert!(
            said.contains("exit: 2\n--- stdout\n--- stderr\nerror: "),
            "{said}"
        );
    }
}

#[test]
fn nobody_there_is_exit_code_3() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let said = transcript(&url, &["stock", "get", "A"]);
    assert!(
        said.contains("exit: 3\n") && said.contains("stockade serve"),
        "{said}"
    );
}

#[test]
fn a_silent_service_gets_the_same_id_again() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let requests = std::thread::spawn(move || {
        let mut bodies = Vec::new();
        let mut open = Vec::new();
        for turn in 0..3 {
            let (mut stream, _) = silent.accept().unwrap();
            let mut received = Vec::new();
            let mut part = [0; 4_096];
            while !received.ends_with(b"}") {
                let read = std::io::Read::read(&mut stream, &mut part).unwrap();
                received.extend_from_slice(&part[..read]);
            }
            let text = String::from_utf8(received).unwrap();
            bodies.push(text.split("\r\n\r\n").nth(1).unwrap().to_owned());
            if turn == 2 {
                let body = r#"{"code":"replayed","stock":{"sku":"A","revision":1,"locations":[]}}"#;
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).unwrap();
            }
            open.push(stream);
        }
        bodies
    });
    let line = ["stock", "adjust", "A", "5", "--timeout-ms", "200"];
    let said = transcript(&url, &line);
    assert!(said.contains("exit: 0\n"), "{said}");
    let bodies = requests.join().unwrap();
    assert!(
        bodies[0].contains("\"id\":\"") && bodies.iter().all(|body| *body == bodies[0]),
        "{bodies:?}"
    );
}

/// A service that reads each request and answers it as the row says: nothing at all, or these bytes.
fn scripted(answers: &'static [Option<&'static str>]) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let mut bodies = Vec::new();
        let mut open = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = Vec::new();
            let mut part = [0; 4_096];
            while !received.ends_with(b"}") {
                let read = std::io::Read::read(&mut stream, &mut part).unwrap();
                received.extend_from_slice(&part[..read]);
            }
            let text = String::from_utf8(received).unwrap();
            bodies.push(text.split("\r\n\r\n").nth(1).unwrap().to_owned());
            if let Some(answer) = answer {
                stream.write_all(answer.as_bytes()).unwrap();
            }
            open.push(stream);
        }
        // From here on connections are refused.
        drop(listener);
        bodies
    });
    (url, served)
}

const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 81\r\n\r\n\
                    {\"title\":\"Overloaded\",\"code\":\"overloaded\",\"detail\":\"Nothing was changed; later.\"}  ";

#[test]
fn an_unseen_try_leaves_the_outcome_unknown() {
    const ROWS: [&[Option<&str>]; 3] = [&[None, Some(BUSY), Some(BUSY)], &[None], &[None, None, None]];
    for answers in ROWS {
        for json in [false, true] {
            let (url, served) = scripted(answers);
            let mut line = vec![
                "reservation",
                "deduct",
                "A=1",
                "--owner",
                "u",
                "--timeout-ms",
                "200",
            ];
            if json {
                line.push("--json");
            }
            let said = transcript(&url, &line);
            let bodies = served.join().unwrap();
            let body: serde_json::Value = serde_json::from_str(&bodies[0]).unwrap();
            let id = body["id"].as_str().unwrap();
            assert!(said.contains("exit: 3\n--- stdout\n--- stderr\n"), "{said}");
            assert!(said.contains(&format!("\nid: {id}\n")), "{said}");
            assert!(
                said.contains(&format!(
                    "may or may not have been done; send it again with the same id, {id}"
                )),
                "{said}"
            );
            assert!(!said.contains("Nothing was changed"), "{said}");
        }
    }
}

#[test]
fn tries_that_were_all_turned_away_changed_nothing() {
    let (url, served) = scripted(&[Some(BUSY), Some(BUSY), Some(BUSY)]);
    let said = transcript(&url, &["reservation", "deduct", "A=1", "--owner", "u"]);
    let bodies = served.join().unwrap();
    let body: serde_json::Value = serde_json::from_str(&bodies[0]).unwrap();
    assert!(
        said.contains("exit: 1\n") && said.contains("Nothing was changed"),
        "{said}"
    );
    assert!(
        said.contains(&format!("the id was {}", body["id"].as_str().unwrap())),
        "{said}"
    );
}

#[test]
fn a_stopped_service_is_audited_on_its_folder() {
    let mut service = Service::start();
    service.stock("A", 5);
    service.reserve("o", "u", "A", 2).is(201, "ok");
    let data = service.data.to_string_lossy().into_owned();
    let said = transcript("http://127.0.0.1:1", &["audit", "--data", &data]);
    assert!(
        said.contains("exit: 1\n") && said.contains("in use by another process"),
        "{said}"
    );
    service.signal("-TERM");
    assert!(service.ended().success());
    let said = transcript("http://127.0.0.1:1", &["audit", "--data", &data]);
    assert!(
        said.contains("exit: 0\n") && said.contains("clean: 1 SKUs and 1 live reservations"),
        "{said}"
    );
}

#[test]
fn an_audit_of_a_folder_changes_nothing_and_needs_no_ledger_that_loads() {
    let mut service = Service::start();
    service.stock("needle-in-the-file", 5);
    service.reserve("o", "u", "needle-in-the-file", 2).is(201, "ok");
    service.signal("-TERM");
    assert!(service.ended().success());
    let folder = service.data.to_string_lossy().into_owned();
    let file = service.data.join("ledger.db");
    let before = std::fs::read(&file).unwrap();
    let said = transcript("http://127.0.0.1:1", &["audit", "--data", &folder]);
    assert!(said.contains("exit: 0\n"), "{said}");
    assert!(std::fs::read(&file).unwrap() == before, "it wrote to the ledger");

    // One of the places that hold the name gets a byte that no name has: the store cannot load that.
    let mut damaged = before.clone();
    let needle = b"needle-in-the-file";
    let places: Vec<usize> = (0..before.len() - needle.len())
        .filter(|at| before[*at..].starts_with(needle))
        .collect();
    for at in places {
        damaged[at] = 0x01;
    }
    std::fs::write(&file, &damaged).unwrap();
    let refused = crate::service::serve(&service.data, &[]).output().unwrap();
    assert!(!refused.status.success(), "the store loads it");
    std::fs::write(&file, &damaged).unwrap();
    let said = transcript("http://127.0.0.1:1", &["audit", "--data", &folder]);
    assert!(said.contains("exit: 1\n") && said.contains("findings"), "{said}");

    let empty = tempfile::tempdir().unwrap();
    let folder = empty.path().to_string_lossy().into_owned();
    let said = transcript("http://127.0.0.1:1", &["audit", "--data", &folder]);
    assert!(said.contains("exit: 2\n"), "{said}");
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn the_helper_reads_answers() {
    // The raw client of these tests against the service, so that a fault in it is not taken for one of the service.
    let service = Service::start();
    let mut stream = service.connect();
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    assert_eq!(read_answer(&mut stream).text, r#"{"status":"alive"}"#);
}

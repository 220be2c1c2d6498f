//! Looking after a ledger: mending what a hand broke, audits that nobody asks for, retention as it is configured.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::service::{BINARY, Service, serve};

/// `stockade audit --data`: exit code, and all that was said.
fn audit(data: &Path, line: &[&str]) -> (i32, String) {
    let output = Command::new(BINARY)
        .args(["audit", "--data"])
        .arg(data)
        .args(line)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let said = text(output.stdout) + &text(output.stderr);
    (output.status.code().unwrap(), said)
}

fn by_hand(data: &Path, sql: &str) {
    let db = rusqlite::Connection::open(data.join("ledger.db")).unwrap();
    db.execute_batch(sql).unwrap();
    db.close().unwrap();
}

/// The value of a metric, once it is there.
fn metric(service: &Service, name: &str) -> f64 {
    let since = Instant::now();
    loop {
        let text = service.get("/metrics").text;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        if let Some(value) = line {
            return value.parse().unwrap();
        }
        assert!(
            since.elapsed() < Duration::from_secs(20),
            "{name} is not in {text}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A shop whose ledger says of B that there are more than there were.
fn damaged(edit: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = Service::on(&data, &[]);
    service.stock("A", 5);
    service.stock("B", 5);
    service.reserve("held", "u", "A", 2).is(201, "ok");
    service.order("deduct", "sold", "u", "B", 1).is(201, "ok");
    assert!(service.stop().success());
    by_hand(
        &data,
        &format!("UPDATE stock SET on_hand = on_hand + 7{edit} WHERE sold = 1"),
    );
    (folder, data)
}

#[test]
fn a_counter_that_a_hand_changed_is_mended() {
    let (_folder, data) = damaged(", reserved = reserved + 1");
    let (code, said) = audit(&data, &[]);
    assert_eq!(code, 1, "{said}");

    let (code, said) = audit(&data, &["--repair"]);
    assert!(code == 2 && said.contains("--reason"), "{said}");
    let (code, said) = audit(&data, &["--repair", "--dry-run"]);
    assert!(code == 1 && said.contains("nothing was changed"), "{said}");
    assert!(said.contains("on_hand") && said.contains("11"), "{said}");
    let (code, said) = audit(&data, &["--repair", "--dry-run", "--json"]);
    let plan: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(code, 1);
    assert_eq!(plan["counters"].as_array().unwrap().len(), 1);
    assert_eq!(plan["counters"][0]["found"]["on_hand"], 11);
    assert_eq!(plan["counters"][0]["right"]["on_hand"], 4);
    assert_eq!(audit(&data, &[]).0, 1, "a dry run changes nothing");

    let (code, said) = audit(&data, &["--repair", "--reason", "ticket 77"]);
    assert!(code == 0 && said.contains("mended"), "{said}");
    let (code, said) = audit(&data, &["--repair", "--reason", "ticket 77"]);
    assert!(code == 0 && said.contains("nothing to mend"), "{said}");
    assert_eq!(audit(&data, &[]).0, 0);

    let service = Service::on(&data, &[]);
    assert_eq!(service.counters("A"), [5, 2, 0, 3]);
    assert_eq!(service.counters("B"), [4, 0, 1, 4]);
    service.audit_is_clean();
    let movements = service.get("/v1/movements?sku=B").json();
    assert_eq!(movements["movements"][0]["kind"], "repair", "{movements}");
    assert_eq!(movements["movements"][0]["reason"], "ticket 77");
    assert_eq!(movements["movements"][0]["actor"], "cli");
    let (code, said) = audit(&data, &["--repair", "--dry-run"]);
    assert!(code == 1 && said.contains("stop the service first"), "{said}");
}

#[test]
fn an_audit_comes_by_itself_and_its_findings_are_counted_and_logged() {
    let (_folder, data) = damaged("");
    let log = data.join("log");
    let mut command = serve(&data, &["--audit-every-minutes", "60"]);
    command
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap());
    let service = Service::of(&mut command, &data);
    assert!(metric(&service, "stockade_audit_last_timestamp_seconds") > 1.0e9);
    assert!(metric(&service, "stockade_audit_findings") >= 1.0);
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains("THE AUDIT FOUND DIFFERENCES"), "{said}");
    assert!(service.stop().success());
    assert_eq!(audit(&data, &["--repair", "--reason", "x"]).0, 0);
    let service = Service::on(&data, &["--audit-every-minutes", "60"]);
    assert!(metric(&service, "stockade_audit_last_timestamp_seconds") > 1.0e9);
    assert!(metric(&service, "stockade_audit_findings").abs() < f64::EPSILON);
}

#[test]
fn retention_is_off_until_it_is_asked_for() {
    let service = Service::with(&["--retain-ended-days", "2"]);
    assert!(metric(&service, "stockade_removed_reservations_total").abs() < f64::EPSILON);
    let plain = Service::start();
    let text = plain.get("/metrics").text;
    assert!(!text.contains("stockade_removed_"), "{text}");
    assert!(!text.contains("stockade_audit_"), "{text}");
    let output = serve(&plain.data, &["--retain-ended-days", "1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

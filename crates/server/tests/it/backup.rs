//! Backups of running and stopped services, taken back into folders that serve again.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::service::{BINARY, Service};

/// Runs a command line: exit code, standard output, standard error.
fn run(line: &[&str]) -> (i32, String, String) {
    let output = Command::new(BINARY)
        .args(line)
        .env_remove("STOCKADE_URL")
        .env_remove("STOCKADE_KEY")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[track_caller]
fn succeeds(line: &[&str]) -> String {
    let (code, out, err) = run(line);
    assert_eq!(code, 0, "{err}");
    out
}

#[track_caller]
fn fails(line: &[&str], expected: i32) -> String {
    let (code, out, err) = run(line);
    assert_eq!(code, expected, "{out}{err}");
    err
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_backup_under_load_serves_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let service = Service::on(Path::new(&path("data")), &[]);
    service.stock("A", 1_000_000);
    service.reserve("held", "u", "A", 2).is(201, "ok");
    let stop = AtomicBool::new(false);
    let (copies, answered) = std::thread::scope(|scope| {
        let buyers: Vec<_> = (0..4)
            .map(|buyer| {
                let (stop, service) = (&stop, &service);
                scope.spawn(move || {
                    let mut answered = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let id = format!("{buyer}-{answered}");
                        service.order("deduct", &id, "u", "A", 1).is(201, "ok");
                        answered += 1;
                    }
                    answered
                })
            })
            .collect();
        let copies = ["one.db", "two.db"].map(|name| {
            let line = ["backup", &path(name), "--url", &service.url(), "--json"];
            let made: Value = serde_json::from_str(&succeeds(&line)).unwrap();
            let size = std::fs::metadata(path(name)).unwrap().len();
            assert_eq!(made["bytes"], size);
            made["shards"][0]["recorded_entry"].as_u64().unwrap()
        });
        stop.store(true, Ordering::Relaxed);
        let answered: Vec<u64> = buyers.into_iter().map(|buyer| buyer.join().unwrap()).collect();
        (copies, answered)
    });
    assert!(copies[0] < copies[1], "{copies:?}");
    assert!(!names(folder.path()).iter().any(|name| name.ends_with(".partial")));
    assert_eq!(names(&service.data.join("copying")), ["lock"]);

    // What is there is never overwritten.
    let said = fails(&["backup", &path("one.db"), "--url", &service.url()], 2);
    assert!(said.contains("nothing is overwritten"), "{said}");
    let said = fails(&["restore", &path("one.db"), "--data", &path("data")], 2);
    assert!(said.contains("holds a ledger already"), "{said}");

    let said = succeeds(&["restore", &path("two.db"), "--data", &path("again")]);
    assert!(said.contains("read back"), "{said}");
    assert_eq!(names(&folder.path().join("again")), ["ledger.db", "lock"]);
    let again = Service::on(Path::new(&path("again")), &[]);
    again.audit_is_clean();
    again.reserve("held", "u", "A", 2).is(200, "replayed");
    // Each buyer waited for each answer: what is in the copy of a buyer is the beginning of what was answered.
    let sold = again.counters("A")[2];
    let mut found = 0;
    for (buyer, answered) in answered.iter().enumerate() {
        let mut missing = false;
        for n in 0..*answered {
            let status = again.get(&format!("/v1/reservations/{buyer}-{n}")).status;
            assert!(
                !(missing && status == 200),
                "{buyer}-{n} is there without the one before"
            );
            missing = status == 404;
            found += u64::from(status == 200);
        }
    }
    assert_eq!(found, sold);
    assert!(sold > 0);
}

#[test]
fn a_stopped_service_is_backed_up_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let service = Service::on(Path::new(&path("data")), &[]);
    service.stock("A", 5);
    let line = ["backup", &path("copy.db"), "--data", &path("data")];
    let said = fails(&line, 1);
    assert!(
        said.contains("in use by another process") && said.contains("leave out --data"),
        "{said}"
    );
    assert!(service.stop().success());
    let said = succeeds(&line);
    assert!(
        said.contains("copy.db") && said.contains("stockade restore"),
        "{said}"
    );
    succeeds(&["restore", &path("copy.db"), "--data", &path("again")]);
    let again = Service::on(Path::new(&path("again")), &[]);
    assert_eq!(again.counters("A"), [5, 0, 0, 5]);
    again.audit_is_clean();
}

#[test]
fn what_is_no_backup_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let said = fails(&["restore", &path("nothing.db"), "--data", &path("again")], 2);
    assert!(said.contains("no such file"), "{said}");
    assert_eq!(names(folder.path()), [""; 0]);
    std::fs::write(path("text.db"), "not a database ".repeat(1_000)).unwrap();
    let said = fails(&["restore", &path("text.db"), "--data", &path("again")], 1);
    assert!(said.contains("text.db") || said.contains("ledger.db"), "{said}");
    assert!(!folder.path().join("again/ledger.db").exists());
    let said = fails(&["backup", &path("copy.db"), "--data", &path("nowhere")], 2);
    assert!(said.contains("ledger.db"), "{said}");
    let said = fails(&["backup", &path("copy.db"), "--url", "http://127.0.0.1:1"], 3);
    assert!(said.contains("cannot reach the service"), "{said}");
    assert!(!folder.path().join("copy.db").exists());

    // A byte of the copy is turned: its movements no longer add up, or SQLite says so.
    let service = Service::on(Path::new(&path("data")), &[]);
    service.stock("needle-in-the-file", 5);
    succeeds(&["backup", &path("good.db"), "--url", &service.url()]);
    let mut bytes = std::fs::read(path("good.db")).unwrap();
    let needle = b"needle-in-the-file";
    let places: Vec<usize> = (0..bytes.len() - needle.len())
        .filter(|at| bytes[*at..].starts_with(needle))
        .collect();
    for at in places {
        bytes[at] = 0x01;
    }
    std::fs::write(path("bad.db"), &bytes).unwrap();
    fails(&["restore", &path("bad.db"), "--data", &path("bad")], 1);
    assert!(!folder.path().join("bad/ledger.db").exists());
}

//! The process: how it starts, what it says when it cannot, how it stops.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::service::{Service, serve, try_read_answer};

/// Starts a service that must not start: exit code and stderr.
fn fails(data: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let mut child = serve(data, flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it started: {flags:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_port_that_is_taken_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = folder.path().join("data");
    let (code, said) = fails(&data, &["--listen", &address]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains(&format!("cannot listen on {address}")) && said.contains("--listen"),
        "{said}"
    );
    assert!(!data.exists(), "nothing was touched");
}

#[test]
fn nobody_beyond_this_machine_may_reach_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let (code, said) = fails(&data, &["--listen", address]);
        assert_eq!(code, Some(2));
        assert!(said.contains("no API keys"), "{said}");
    }
    assert!(!data.exists(), "nothing was touched");
}

#[test]
fn a_port_alone_is_told_how_to_be_given() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = fails(&folder.path().join("data"), &["--port", "8080"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--listen 127.0.0.1:8080"), "{said}");
}

#[test]
fn a_folder_in_use_is_named() {
    let service = Service::start();
    service.stock("A", 1);
    let (code, said) = fails(&service.data, &[]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("in use by another process") && said.contains("data"),
        "{said}"
    );
    service.reserve("o", "u", "A", 1).is(201, "ok");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "a file").unwrap();
    // The kernel's own folders refuse root as well.
    for data in [file.join("data"), "/proc/stockade-data".into()] {
        let (code, said) = fails(&data, &[]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&*data.to_string_lossy()), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a file");
}

#[test]
fn a_file_that_is_no_ledger_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = "not a database, but long enough to be read as one ".repeat(100);
    let file = folder.path().join("ledger.db");
    std::fs::write(&file, &text).unwrap();
    let (code, said) = fails(folder.path(), &[]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("cannot open the ledger") && said.contains("ledger.db"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_configuration_that_is_wrong_names_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let file = folder.path().join("stockade.toml");
    let rows = [
        ("lissten = \"127.0.0.1:0\"", "lissten"),
        ("listen = ", "line 1"),
        ("connections_max = -1", "connections_max"),
        ("body_bytes_max = 1.5", "body_bytes_max"),
        ("head_timeout_ms = 0", "head-timeout-ms"),
        ("late_confirm = \"maybe\"", "maybe"),
    ];
    for (text, named) in rows {
        std::fs::write(&file, text).unwrap();
        let (code, said) = fails(&data, &["--config", &file.to_string_lossy()]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(named), "{said}");
    }
    let (code, said) = fails(&data, &["--config", "/nowhere/stockade.toml"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("/nowhere/stockade.toml"), "{said}");
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stockade.toml");
    // Three refusals to listen, and whichever is named is the one in force.
    std::fs::write(&file, "listen = \"0.0.0.1:1\"").unwrap();
    let said = |env: Option<&str>, flag: Option<&str>| {
        let mut command = std::process::Command::new(crate::service::BINARY);
        command
            .arg("serve")
            .arg("--config")
            .arg(&file)
            .arg("--data")
            .arg(folder.path());
        command.env_remove("STOCKADE_LISTEN");
        if let Some(env) = env {
            command.env("STOCKADE_LISTEN", env);
        }
        if let Some(flag) = flag {
            command.args(["--listen", flag]);
        }
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    assert!(said(None, None).contains("0.0.0.1:1"));
    assert!(said(Some("0.0.0.2:1"), None).contains("0.0.0.2:1"));
    assert!(said(Some("0.0.0.2:1"), Some("0.0.0.3:1")).contains("0.0.0.3:1"));
}

#[test]
fn told_to_stop_it_finishes_what_it_has() {
    for signal in ["-TERM", "-INT"] {
        let mut service = Service::start();
        service.stock("A", 1_000_000);
        let stop = AtomicBool::new(false);
        let address = service.address;
        // Each order that was answered, and those that may or may not have been done.
        let answered: usize = std::thread::scope(|scope| {
            let buyers: Vec<_> = (0..8)
                .map(|buyer| {
                    let stop = &stop;
                    scope.spawn(move || {
                        let mut answered = 0;
                        let mut number = 0;
                        while !stop.load(Ordering::Relaxed) {
                            let Ok(mut stream) = std::net::TcpStream::connect(address) else { break };
                            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                            loop {
                                number += 1;
                                let body = format!(
                                    r#"{{"id":"{buyer}-{number}","owner":"u","mode":"deduct","lines":[{{"sku":"A","quantity":1}}]}}"#
                                );
                                let request = format!(
                                    "POST /v1/reservations HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
                                    body.len()
                                );
                                if stream.write_all(request.as_bytes()).is_err() {
                                    break;
                                }
                                match try_read_answer(&mut stream) {
                                    Ok(answer) if answer.status == 201 => answered += 1,
                                    Ok(answer) => panic!("{}", answer.text),
                                    Err(_) => break,
                                }
                            }
                        }
                        answered
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(500));
            service.signal(signal);
            let status = service.ended();
            stop.store(true, Ordering::Relaxed);
            assert!(status.success(), "{status}");
            buyers.into_iter().map(|buyer| buyer.join().unwrap()).sum()
        });
        assert!(answered > 0);
        let data = service.data.clone();
        let again = Service::on(&data, &[]);
        let sold = usize::try_from(again.counters("A")[2]).unwrap();
        assert!(
            sold >= answered && sold <= answered + 8,
            "{answered} answered, {sold} sold"
        );
        again.audit_is_clean();
        assert!(again.stop().success());
    }
}

#[test]
fn told_twice_it_leaves_at_once() {
    for second in ["-TERM", "-INT"] {
        let mut service = Service::start();
        service.stock("A", 1);
        // A body that does not come holds the stop for as long as requests in flight may take.
        let mut half = service.connect();
        half.write_all(
            b"POST /v1/audit HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n",
        )
        .unwrap();
        let mut asked = [0; 12];
        std::io::Read::read_exact(&mut half, &mut asked).unwrap();
        assert_eq!(&asked, b"HTTP/1.1 100");
        let since = Instant::now();
        service.signal("-TERM");
        while std::net::TcpStream::connect(service.address).is_ok() {
            assert!(since.elapsed() < Duration::from_secs(5), "it goes on listening");
        }
        service.signal(second);
        assert_eq!(service.ended().code(), Some(4));
        assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
        let again = Service::on(&service.data, &[]);
        assert_eq!(again.counters("A"), [1, 0, 0, 1]);
    }
}

#[test]
fn silent_connections_do_not_hold_the_stop() {
    let service = Service::start();
    let silent: Vec<_> = (0..50).map(|_| service.connect()).collect();
    let mut half = service.connect();
    half.write_all(b"POST /v1/audit HTTP/1.1\r\nhost: x\r\n").unwrap();
    service.get("/livez");
    let since = Instant::now();
    assert!(service.stop().success());
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    drop((silent, half));
}

#[test]
fn what_was_answered_is_there_after_a_restart() {
    let mut service = Service::start();
    service.stock("A", 10);
    service.reserve("o-1", "u", "A", 2).is(201, "ok");
    service.order("deduct", "o-2", "u", "A", 3).is(201, "ok");
    service.signal("-KILL");
    assert!(!service.ended().success());
    let again = Service::on(&service.data, &[]);
    assert_eq!(again.counters("A"), [7, 2, 3, 5]);
    again.reserve("o-1", "u", "A", 2).is(200, "replayed");
    again.order("deduct", "o-2", "u", "A", 3).is(200, "replayed");
    again.audit_is_clean();
}

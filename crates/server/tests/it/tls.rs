//! TLS, with certificates that a test made.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};

use crate::service::{BINARY, Service};

/// Somebody who signs, and a certificate signed for 127.0.0.1, as files.
struct Signed {
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
}

fn sign(folder: &Path, name: &str) -> Signed {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    let cert = params.signed_by(&key, &issuer).unwrap();
    let write = |what: &str, text: String| {
        let path = folder.join(format!("{name}.{what}"));
        std::fs::write(&path, text).unwrap();
        path
    };
    Signed {
        ca: write("ca", issuer.pem()),
        cert: write("cert", cert.pem()),
        key: write("key", key.serialize_pem()),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// `stockade stock ...` against the service, trusting `ca`: exit code and what was said.
fn stock(service: &Service, ca: Option<&Path>, line: &[&str]) -> (Option<i32>, String) {
    let url = format!("https://{}", service.address);
    let mut command = Command::new(BINARY);
    command
        .arg("stock")
        .args(line)
        .args(["--url", &url])
        .env_remove("STOCKADE_CA");
    if let Some(ca) = ca {
        command.arg("--ca").arg(ca);
    }
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn callers_are_met_with_the_certificate_and_with_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (sign(folder.path(), "one"), sign(folder.path(), "two"));
    let cert = folder.path().join("cert");
    let key = folder.path().join("key");
    std::fs::copy(&one.cert, &cert).unwrap();
    std::fs::copy(&one.key, &key).unwrap();
    let service = Service::with(&["--tls-cert", text(&cert), "--tls-key", text(&key)]);
    let (code, said) = stock(&service, Some(&one.ca), &["set", "A", "5", "--id", "c"]);
    assert_eq!(code, Some(0), "{said}");
    // Signed by nobody whom this machine, or the file, trusts.
    for ca in [None, Some(two.ca.as_path())] {
        let (code, said) = stock(&service, ca, &["get", "A"]);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("--ca") && said.contains("certificate"), "{said}");
    }
    // Half of a change is no change.
    std::fs::copy(&two.cert, &cert).unwrap();
    service.signal("-HUP");
    let (code, said) = stock(&service, Some(&one.ca), &["get", "A"]);
    assert_eq!(code, Some(0), "{said}");
    std::fs::copy(&two.key, &key).unwrap();
    let since = Instant::now();
    while stock(&service, Some(&two.ca), &["get", "A"]).0 != Some(0) {
        assert!(since.elapsed() < Duration::from_secs(20), "never read again");
    }
    assert_eq!(stock(&service, Some(&one.ca), &["get", "A"]).0, Some(3));
    assert!(service.stop().success());
}

#[test]
fn callers_without_tls_get_nothing_and_hold_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let signed = sign(folder.path(), "one");
    let files = ["--tls-cert", text(&signed.cert), "--tls-key", text(&signed.key)];
    let service = Service::with(
        &[
            &files[..],
            &["--connections-max", "10", "--head-timeout-ms", "20000"],
        ]
        .concat(),
    );
    let silent: Vec<_> = (0..30).map(|_| service.connect()).collect();
    let (code, said) = stock(&service, Some(&signed.ca), &["set", "A", "5"]);
    assert_eq!(code, Some(0), "{said}");
    let mut plain = service.connect();
    plain
        .write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    // It may be closed with or without a word about it.
    let _ = plain.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/"), "{answer:?}");
    drop(silent);
    let since = Instant::now();
    assert!(service.stop().success());
    assert!(since.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_certificate_that_is_wrong_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (sign(folder.path(), "one"), sign(folder.path(), "two"));
    for (flags, code, words) in [
        (vec!["--tls-cert", text(&one.cert)], 2, "--tls-key"),
        (
            vec!["--tls-cert", text(&one.cert), "--tls-key", text(&two.key)],
            1,
            "is not the key",
        ),
        (
            vec!["--tls-cert", "/nowhere", "--tls-key", text(&two.key)],
            1,
            "/nowhere",
        ),
    ] {
        let data = folder.path().join("data");
        let output = crate::service::serve(&data, &flags).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(!data.exists(), "nothing was touched");
    }
}

//! TLS to the server: with a certificate of the machine's authorities or of those that `SSL_CERT_FILE` names, and not with
//! any other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::process::Command;

use common::options;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use stockade_redis::{Hot, examine};
use stockade_testkit::redis::{Options, Server, free_port};

/// An authority, and a certificate by it for `localhost`.
fn certificates(folder: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let own = own.signed_by(&key, &authority).unwrap();
    std::fs::write(folder.join("authority.pem"), authority.pem()).unwrap();
    std::fs::write(folder.join("own.pem"), own.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
}

#[test]
fn a_certificate_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let port = free_port().to_string();
    let _server = Server::with(
        Options::default()
            .set("tls-port", &port)
            .set("tls-cert-file", &file("own.pem"))
            .set("tls-key-file", &file("key.pem"))
            .set("tls-auth-clients", "no"),
    );
    // The variable is read by the process that connects, so that each try is one.
    let connect = |authorities: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "connects"])
            .env("SSL_CERT_FILE", authorities)
            .env("STOCKADE_TEST_TLS_PORT", &port)
            .output()
            .unwrap()
    };
    let own = connect(&file("authority.pem"));
    assert!(own.status.success(), "{own:?}");
    let other = tempfile::tempdir().unwrap();
    certificates(other.path());
    let others = connect(&other.path().join("authority.pem").to_string_lossy());
    assert!(!others.status.success(), "{others:?}");
    assert!(
        String::from_utf8_lossy(&others.stdout).contains("invalid peer certificate"),
        "{others:?}"
    );
}

#[tokio::test]
#[ignore = "run by the other test, in a process of its own"]
async fn connects() {
    let port = std::env::var("STOCKADE_TEST_TLS_PORT").unwrap();
    let url = format!("rediss://localhost:{port}/");
    let hot = Hot::connect(options(url.clone())).await.unwrap();
    hot.fence(2).await.unwrap();
    assert_eq!(hot.meta().await.unwrap().unwrap().tip.epoch, 2);
    assert_eq!(examine(options(url)).await[0].found, "connected");
}

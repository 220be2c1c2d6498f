//! TLS for callers beyond this machine: a certificate and its key from two files, read again when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::signal::unix::Signal;
use tokio_rustls::TlsAcceptor;

use crate::seen::Seen;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The two files.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl TlsFiles {
    /// Both or none.
    pub(crate) fn of(cert: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<Self>, String> {
        match (cert, key) {
            (Some(cert), Some(key)) => Ok(Some(Self { cert, key })),
            (None, None) => Ok(None),
            (Some(_), None) => {
                Err("--tls-cert needs --tls-key, the private key of the certificate".to_owned())
            }
            (None, Some(_)) => Err("--tls-key needs --tls-cert, the certificate of the key".to_owned()),
        }
    }

    fn seen(&self) -> [Option<Seen>; 2] {
        [Seen::of(&self.cert), Seen::of(&self.key)]
    }

    fn read(&self) -> Result<ServerConfig, String> {
        let cert = |why: &dyn std::fmt::Display| format!("--tls-cert {}: {why}", self.cert.display());
        let certs = certificates(&self.cert).map_err(|e| cert(&e))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|e| {
            format!(
                "--tls-key {}: {}",
                self.key.display(),
                pem_error(&e, "private key")
            )
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| cert(&e))?;
        let mut config = builder
            .with_no_client_auth()
            .with_single_cert(certs, key)
            .map_err(|e| match e {
                rustls::Error::InconsistentKeys(_) => format!(
                    "--tls-key {} is not the key of the certificate in {}",
                    self.key.display(),
                    self.cert.display()
                ),
                other => cert(&other),
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The certificates in a PEM file; at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).map_err(|e| pem_error(&e, "certificate"))?;
    let certs: Result<Vec<_>, _> = read.collect();
    let certs = certs.map_err(|e| pem_error(&e, "certificate"))?;
    if certs.is_empty() {
        return Err("no certificate in it; give a PEM file".to_owned());
    }
    Ok(certs)
}

fn pem_error(error: &rustls::pki_types::pem::Error, what: &str) -> String {
    match error {
        rustls::pki_types::pem::Error::Io(error) => error.to_string(),
        rustls::pki_types::pem::Error::NoItemsFound => format!("no {what} in it; give a PEM file"),
        other => format!("not a PEM file: {other}"),
    }
}

/// What new connections are met with.
#[derive(Debug)]
pub(super) struct Tls {
    files: TlsFiles,
    config: ArcSwap<ServerConfig>,
}

impl Tls {
    pub(super) fn open(files: TlsFiles) -> Result<Arc<Self>, String> {
        let config = files.read()?;
        Ok(Arc::new(Self {
            files,
            config: ArcSwap::from_pointee(config),
        }))
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.load_full())
    }

    /// Reads the files again when they change, or when the process is told to (SIGHUP); never comes back. Connections
    /// that are open go on with what they began with.
    pub(super) async fn watch(self: Arc<Self>, mut told: Signal) {
        let mut seen = self.files.seen();
        loop {
            let is_told = tokio::select! {
                told = told.recv() => told.is_some(),
                () = tokio::time::sleep(LOOK_EVERY) => false,
            };
            let now = self.files.seen();
            if !is_told && now == seen {
                continue;
            }
            seen = now;
            match self.files.read() {
                Ok(config) => {
                    self.config.store(Arc::new(config));
                    tracing::info!("the TLS certificate was read again");
                }
                // Of two files one is always the first to change: the next look finds them together.
                Err(why) => {
                    tracing::warn!(
                        why,
                        "the TLS certificate cannot be read again; the one before stays in use"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_alone_is_refused() {
        let file = || Some(PathBuf::from("x"));
        assert!(TlsFiles::of(file(), None).unwrap_err().contains("--tls-key"));
        assert!(TlsFiles::of(None, file()).unwrap_err().contains("--tls-cert"));
        assert!(TlsFiles::of(None, None).unwrap().is_none());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let made = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let (one, two) = (made("one"), made("two"));
        let cert = write("cert", &one.cert.pem());
        let key = write("key", &one.signing_key.serialize_pem());
        let other = write("other", &two.signing_key.serialize_pem());
        let empty = write("empty", "");
        let read = |cert: &PathBuf, key: &PathBuf| {
            let (cert, key) = (cert.clone(), key.clone());
            TlsFiles { cert, key }.read().map(|_| ())
        };
        assert_eq!(read(&cert, &key), Ok(()));
        assert!(read(&cert, &other).unwrap_err().contains("is not the key"));
        assert!(read(&empty, &key).unwrap_err().contains("no certificate"));
        assert!(read(&cert, &empty).unwrap_err().contains("no private key"));
        let nowhere = folder.path().join("nowhere");
        assert!(read(&nowhere, &key).unwrap_err().contains("nowhere"));
    }
}

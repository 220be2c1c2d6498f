//! A connection to the service, with TLS where its address says https.

use std::path::Path;
use std::sync::Arc;

use axum::http::Uri;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Failure;

/// Where the service is.
#[derive(Debug)]
pub(super) struct Target {
    host: String,
    port: u16,
    pub(super) authority: String,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// Why there is no connection; nothing was sent.
pub(super) enum NoConnection {
    /// It may come yet.
    NotThere(String),
    /// It will not.
    Untrusted(String),
}

impl NoConnection {
    pub(super) fn why(&self) -> &str {
        match self {
            Self::NotThere(why) | Self::Untrusted(why) => why,
        }
    }
}

/// Either kind of stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Target {
    /// Reads an address.
    pub(super) fn of(base: &str, ca: Option<&Path>) -> Result<Self, Failure> {
        let refuse = |why: &dyn std::fmt::Display| Failure::Usage(format!("--url {base}: {why}"));
        let hint = "give it as http://HOST:PORT or https://HOST:PORT";
        let uri: Uri = base.parse().map_err(|e| refuse(&e))?;
        let with_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(refuse(&hint)),
        };
        let authority = uri
            .authority()
            .filter(|_| uri.path() == "/" && uri.query().is_none());
        let authority = authority.ok_or_else(|| refuse(&hint))?;
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let tls = if with_tls {
            let name = ServerName::try_from(host.clone()).map_err(|e| refuse(&e))?;
            Some((trust(ca)?, name))
        } else {
            None
        };
        Ok(Self {
            host,
            port: uri.port_u16().unwrap_or(if with_tls { 443 } else { 80 }),
            authority: authority.to_string(),
            tls,
        })
    }

    /// Connects.
    pub(super) async fn connect(&self) -> Result<Box<dyn Stream>, NoConnection> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|e| NoConnection::NotThere(e.to_string()))?;
        let Some((config, name)) = &self.tls else {
            return Ok(Box::new(stream));
        };
        match TlsConnector::from(Arc::clone(config))
            .connect(name.clone(), stream)
            .await
        {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => {
                let inner = error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref::<rustls::Error>());
                match inner {
                    Some(rustls::Error::InvalidCertificate(_)) => Err(NoConnection::Untrusted(format!(
                        "{error}; give --ca with the certificate of whoever signed the service's"
                    ))),
                    Some(other) => Err(NoConnection::Untrusted(format!(
                        "{other}; does the service speak TLS there?"
                    ))),
                    None => Err(NoConnection::NotThere(error.to_string())),
                }
            }
        }
    }
}

fn trust(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Failure> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca {
        let refuse = |why: &dyn std::fmt::Display| Failure::Usage(format!("--ca {}: {why}", path.display()));
        for certificate in crate::serve::certificates(path).map_err(|e| refuse(&e))? {
            roots.add(certificate).map_err(|e| refuse(&e))?;
        }
    } else {
        // Some of a machine's certificates may be unreadable; what they would have signed is then not trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Failure::Other(format!("TLS cannot be set up: {e}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

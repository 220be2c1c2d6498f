//! Where the service is.

use std::io;

use tokio::net::TcpStream;

use super::LoadError;
use crate::keys::Secret;

/// Where the service is.
#[derive(Clone)]
pub(crate) struct Target {
    /// Host and port, as in the `host` header.
    authority: String,
    host: String,
    port: u16,
    /// A path in front of every path, without a slash at its end.
    prefix: String,
    /// The header with the API key, with its line's end; empty without one.
    key_line: String,
}

impl Target {
    /// Reads `http://host[:port][/prefix]`.
    pub(crate) fn parse(url: &str) -> Result<Self, LoadError> {
        let refuse = |why: &str| LoadError::Url {
            url: url.to_owned(),
            why: why.to_owned(),
        };
        let Some(rest) = url.strip_prefix("http://") else {
            return Err(refuse(
                "must begin with http:// (the drill speaks plain HTTP), as http://127.0.0.1:7077",
            ));
        };
        let (authority, path) = rest
            .split_once('/')
            .map_or((rest, ""), |(authority, path)| (authority, path));
        if authority.contains('@') || path.contains(['?', '#']) || url.contains(|c: char| c <= ' ') {
            return Err(refuse(
                "give scheme, host, port and perhaps a path, as http://127.0.0.1:7077",
            ));
        }
        // An IPv6 address stands in brackets, and its colons are no port.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (
                host,
                port.parse()
                    .map_err(|_| refuse("the port must be a number from 1 to 65535"))?,
            ),
            _ => (authority, 80),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || port == 0 {
            return Err(refuse("needs a host and a port, as http://127.0.0.1:7077"));
        }
        let path = path.trim_end_matches('/');
        Ok(Self {
            authority: authority.to_owned(),
            host: host.to_owned(),
            port,
            prefix: if path.is_empty() {
                String::new()
            } else {
                format!("/{path}")
            },
            key_line: String::new(),
        })
    }

    /// The same, with an API key.
    pub(crate) fn with_key(mut self, key: Option<&Secret>) -> Result<Self, LoadError> {
        if let Some(key) = key {
            // Nothing of a key may end the line.
            if !key.reveal().bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(LoadError::Key("it has characters that no key has".to_owned()));
            }
            self.key_line = format!("authorization: Bearer {}\r\n", key.reveal());
        }
        Ok(self)
    }

    pub(crate) fn key_line(&self) -> &str {
        &self.key_line
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl std::fmt::Debug for Target {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("authority", &self.authority)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let target = Target::parse("http://127.0.0.1:7077").unwrap();
        assert_eq!((target.authority(), target.prefix()), ("127.0.0.1:7077", ""));
        let target = Target::parse("http://shop.example/stock/").unwrap();
        assert_eq!(
            (target.authority(), target.port, target.prefix()),
            ("shop.example", 80, "/stock")
        );
        let target = Target::parse("http://[::1]:80").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("::1", 80));
        for bad in [
            "",
            "127.0.0.1:7077",
            "https://x",
            "http://",
            "http://:80",
            "http://x:0",
            "http://x:99999",
            "http://x/?a",
            "http://u@x",
            "http://x y",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
    }
}

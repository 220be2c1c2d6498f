//! How a request can be found again: its id and its trace, taken over from the caller and returned, and its line in the
//! access log.
//!
//! Never in the log: bodies, keys, and paths or queries as they were sent, which hold ids of buyers and SKUs. A line names
//! the route.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::metrics::Route;
use crate::keys::Key;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Which requests have a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AccessLog {
    /// None.
    Off,
    /// Those answered with 5xx.
    Errors,
    /// All.
    All,
}

/// The other end of a connection, left with its requests while there is an access log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// What marks a request.
#[derive(Debug)]
pub(crate) struct Mark {
    request_id: Option<HeaderValue>,
    trace: Option<Trace>,
    line: Option<Line>,
}

/// What only the log needs.
#[derive(Debug)]
struct Line {
    which: AccessLog,
    peer: Option<Peer>,
    key: Option<Arc<Key>>,
}

impl Mark {
    /// Reads the marks of a request. Whoever sends none and asks for no log pays two look-ups.
    pub(crate) fn of(request: &Request, which: AccessLog) -> Self {
        let headers = request.headers();
        let given = headers.get(REQUEST_ID).filter(|id| is_request_id(id.as_bytes()));
        let trace = headers
            .get(TRACEPARENT)
            .and_then(|value| Trace::of(value.as_bytes()));
        let mut mark = Self {
            request_id: given.cloned(),
            trace,
            line: None,
        };
        if which != AccessLog::Off {
            if mark.request_id.is_none() {
                let id = uuid::Uuid::now_v7().simple().to_string();
                mark.request_id = HeaderValue::from_str(&id).ok();
            }
            let extensions = request.extensions();
            mark.line = Some(Line {
                which,
                peer: extensions.get::<Peer>().copied(),
                key: None,
            });
        }
        mark
    }

    /// The key that the request came with, once it is known.
    pub(crate) fn with_key(&mut self, request: &Request) {
        if let Some(line) = &mut self.line {
            line.key = request.extensions().get::<Arc<Key>>().cloned();
        }
    }

    /// Returns the marks with the answer, and writes the line.
    pub(crate) fn answered(self, route: Route, status: u16, since: Instant, headers: &mut HeaderMap) {
        if let Some(line) = &self.line
            && (line.which == AccessLog::All || status >= 500)
        {
            let request_id = self
                .request_id
                .as_ref()
                .and_then(|id| id.to_str().ok())
                .unwrap_or_default();
            let us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
            tracing::info!(
                request_id,
                route = route.name(),
                status,
                us,
                key = line.key.as_ref().map(|key| key.public_id.as_str()),
                peer = line.peer.map(|peer| tracing::field::display(peer.0)),
                trace = self.trace.as_ref().map(|trace| trace.trace_id.as_str()),
                "request"
            );
        }
        if let Some(id) = self.request_id {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(value) = self.trace.and_then(|trace| trace.returned()) {
            headers.insert(TRACEPARENT, value);
        }
    }
}

/// An id that may be shown: letters, digits and `-._:/+=`.
fn is_request_id(text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:/+=".contains(byte);
    !text.is_empty() && text.len() <= REQUEST_ID_BYTES_MAX && text.iter().all(plain)
}

/// A trace of the caller's (W3C Trace Context).
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    trace_id: String,
    flags: String,
}

impl Trace {
    fn of(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut parts = text.split('-');
        let mut part = |digits: usize| {
            let part = parts.next()?;
            let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            (part.len() == digits && part.bytes().all(hex)).then_some(part)
        };
        let (version, trace_id, parent, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let zero = |text: &str| text.bytes().all(|byte| byte == b'0');
        // Later versions may add parts; this one has four.
        let whole = version != "00" || parts.next().is_none();
        if version == "ff" || zero(trace_id) || zero(parent) || !whole {
            return None;
        }
        Some(Self {
            trace_id: trace_id.to_owned(),
            flags: flags.to_owned(),
        })
    }

    /// The same trace, with a step of this service's own.
    fn returned(&self) -> Option<HeaderValue> {
        let step = fastrand::u64(1..);
        HeaderValue::from_str(&format!("00-{}-{step:016x}-{}", self.trace_id, self.flags)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_others_are_taken_over() {
        let given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0bb902b7-01";
        let trace = Trace::of(given.as_bytes()).unwrap();
        let returned = trace.returned().unwrap();
        let returned = returned.to_str().unwrap();
        assert_eq!(returned.len(), given.len());
        assert!(returned.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && returned.ends_with("-01"));
        assert_ne!(returned, given);
        assert_eq!(Trace::of(returned.as_bytes()), Some(trace));
        for wrong in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0bb902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0bb902b7-01",
            "00-00000000000000000000000000000000-00f067aa0bb902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0bb902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0bb902b7-01-x",
        ] {
            assert_eq!(Trace::of(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn request_ids_are_plain() {
        assert!(is_request_id(b"Root=1-67891233-abcdef012345678912345678"));
        for wrong in [&b""[..], b"a b", b"a\"b", b"\xc3\xa9", &[b'a'; 129]] {
            assert!(!is_request_id(wrong));
        }
    }
}

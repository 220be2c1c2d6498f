//! The way to one server: a few connections shared by all callers, scripts sent by their digest, errors that say whether
//! anything happened.

mod errors;
mod link;
mod stats;

pub use stats::{NodeStats, ScriptStats};

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use redis::aio::ConnectionLike;
use redis::{Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisResult, Value};
use stockade_scripts::connect::nodelay;
use stockade_scripts::runner::{command, is_noscript, reply_of};
use stockade_scripts::{Call, Script};

use crate::error::{CallError, Kind};
use crate::types::Options;
use link::{Limits, Link, ends_the_connection};
use stats::Counters;

/// Which connection a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// One of those for decisions, in turn.
    Decide,
    /// The one for reading, loading and care, so that their long replies do not stand before a decision.
    Control,
}

/// The connections to one server.
#[derive(Debug)]
pub(crate) struct Node {
    links: Vec<Link>,
    control: Link,
    turn: AtomicUsize,
    counters: Arc<Counters>,
}

impl Node {
    /// Connects every connection once, so that what is wrong with the address or the user is said at once.
    pub(crate) async fn connect(options: &Options) -> Result<Self, CallError> {
        #[cfg(feature = "tls")]
        choose_cryptography();
        let client =
            redis::Client::open(address(&options.url)?).map_err(|error| refused(error.to_string()))?;
        let limits = Limits {
            connect_within: options.connect_within,
            reply_within: options.reply_within,
        };
        let counters = Arc::<Counters>::default();
        let link = || Link::new(client.clone(), limits, Arc::clone(&counters));
        let node = Self {
            links: (0..options.connections.max(1)).map(|_| link()).collect(),
            control: link(),
            turn: AtomicUsize::new(0),
            counters,
        };
        for link in node.links.iter().chain([&node.control]) {
            node.counted(link.get().await)?;
        }
        Ok(node)
    }

    pub(crate) fn stats(&self) -> NodeStats {
        let links = self.links.iter().chain([&self.control]);
        self.counters.snapshot(links.filter(|link| link.is_up()).count())
    }

    /// Runs a script, and reads its reply by its contract.
    pub(crate) async fn run<S: Call>(&self, lane: Lane, call: &S) -> Result<S::Reply, CallError> {
        let name = S::script().name();
        let ready = S::script().ready().map_err(|error| CallError::NotDone {
            kind: Kind::Other,
            message: error.to_string(),
        })?;
        let begun = Instant::now();
        let link = self.link(lane);
        let mut reply = self.send(link, &command("EVALSHA", &ready.sha, call)).await?;
        if is_noscript(&reply) {
            // EVAL both loads and runs: no flush can come in between.
            self.counters.reloaded();
            reply = self.send(link, &command("EVAL", &ready.text, call)).await?;
        }
        let value = self.counted(reply.map_err(|error| errors::of_call(&error)))?;
        self.counters.called(name, begun.elapsed());
        S::parse(&value).ok_or_else(|| {
            self.counters.failed(Kind::Other);
            CallError::Unreadable {
                place: name.to_owned(),
                message: format!("a reply outside of its contract: {}", shown(&value)),
            }
        })
    }

    /// Runs a plain command.
    pub(crate) async fn command(&self, command: &Cmd) -> Result<Value, CallError> {
        let reply = self.send(&self.control, command).await?;
        self.counted(reply.map_err(|error| errors::of_call(&error)))
    }

    /// Gives the server a script's text ahead of the first call.
    pub(crate) async fn load(&self, script: &Script) -> Result<(), CallError> {
        let ready = script.ready().map_err(|error| CallError::NotDone {
            kind: Kind::Other,
            message: error.to_string(),
        })?;
        self.command(redis::cmd("SCRIPT").arg("LOAD").arg(&ready.text))
            .await
            .map(drop)
    }

    // The outer error: no connection. The inner one: what came of the call.
    async fn send(&self, link: &Link, command: &Cmd) -> Result<RedisResult<Value>, CallError> {
        let (number, mut connection) = self.counted(link.get().await)?;
        let reply = reply_of(connection.req_packed_command(command).await);
        if let Err(error) = &reply
            && ends_the_connection(error)
        {
            link.give_up(number);
        }
        Ok(reply)
    }

    fn link(&self, lane: Lane) -> &Link {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        match lane {
            Lane::Control => &self.control,
            Lane::Decide => self
                .links
                .get(turn % self.links.len().max(1))
                .unwrap_or(&self.control),
        }
    }

    fn counted<T>(&self, result: Result<T, CallError>) -> Result<T, CallError> {
        if let Err(CallError::NotDone { kind, .. } | CallError::Unknown { kind, .. }) = &result {
            self.counters.failed(*kind);
        }
        result
    }
}

/// The client asks the process for its cryptography, and panics where there are several or none: the choice is made here,
/// unless the program has made one.
#[cfg(feature = "tls")]
fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread has just made a choice.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

fn refused(message: String) -> CallError {
    CallError::NotDone {
        kind: Kind::NoConnection,
        message,
    }
}

/// The address, with small packets sent at once and the protocol in which a server says that it closes a connection.
fn address(url: &str) -> Result<ConnectionInfo, CallError> {
    let tls = ["rediss://", "valkeys://"]
        .iter()
        .any(|scheme| url.starts_with(scheme));
    if tls && !cfg!(feature = "tls") {
        return Err(refused(
            "this build speaks no TLS to Redis; use redis:// or a build with the feature `tls`".to_owned(),
        ));
    }
    // The URL may hold a password, so it is not repeated.
    let info = url.into_connection_info().map_err(|error| {
        refused(format!(
            "not an address of Redis ({error}); it looks like redis://[user[:password]@]host[:port][/db]"
        ))
    })?;
    let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let unix = matches!(info.addr(), ConnectionAddr::Unix(_));
    let info = info.set_redis_settings(redis);
    Ok(if unix {
        info
    } else {
        info.set_tcp_settings(nodelay())
    })
}

/// A reply for a message: cut, since it may be long.
fn shown(value: &Value) -> String {
    let mut text = format!("{value:?}");
    if let Some((at, _)) = text.char_indices().nth(300) {
        text.truncate(at);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_without_repeating_a_password() {
        for url in ["http://secret@host", "redis://user:secret@host:port/", ""] {
            let error = address(url).unwrap_err().to_string();
            assert!(error.contains("redis://[user"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        address("redis://user:secret@host:6379/3").unwrap();
        assert_eq!(address("rediss://host/").is_ok(), cfg!(feature = "tls"));
    }
}

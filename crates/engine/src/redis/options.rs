//! How a store finds its Redis, and how long it waits for it.

use std::fmt;
use std::time::Duration;

/// Where Redis is and how the store uses it. Made by [`Options::redis`](crate::Options::redis) with the defaults.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// `redis://[user[:password]@]host[:port][/db]`, or `rediss://` for TLS.
    pub url: String,
    /// First part of every key; default `stockade`. Stores with different ledgers on one Redis need different ones.
    pub prefix: String,
    /// How many connections the calls are spread over; default 1.
    pub connections: usize,
    /// How long making a connection may take; default 2 s.
    pub connect_within: Duration,
    /// How long a reply may take before its outcome is unknown and the same ids are sent again; default 2 s.
    pub reply_within: Duration,
    /// How long a command may take, all its sends together, before its caller hears that it is unavailable or that its
    /// outcome is unknown; default 10 s.
    pub answer_within: Duration,
    /// For how long the ledger may lag behind: when the oldest change that is not recorded is older than four fifths
    /// of this, new reservations are refused as overloaded; default 10 s.
    pub backlog_within: Duration,
    /// Tests pass the store's own clock to Redis, so that they can move it. Otherwise Redis's time counts.
    #[doc(hidden)]
    pub own_clock: bool,
}

/// Without the address, which may hold a password.
impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("connections", &self.connections)
            .field("connect_within", &self.connect_within)
            .field("reply_within", &self.reply_within)
            .field("answer_within", &self.answer_within)
            .field("backlog_within", &self.backlog_within)
            .finish_non_exhaustive()
    }
}

impl RedisOptions {
    /// The defaults, on a server.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: "stockade".into(),
            connections: 1,
            connect_within: Duration::from_secs(2),
            reply_within: Duration::from_secs(2),
            answer_within: Duration::from_secs(10),
            backlog_within: Duration::from_secs(10),
            own_clock: false,
        }
    }
}

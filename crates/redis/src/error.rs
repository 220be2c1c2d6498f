//! Why a call to Redis did not come back with a decision: each says whether anything may have happened.

/// What Redis, or the way to it, said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// At `maxmemory`: nothing that grows is taken.
    OutOfMemory,
    /// A replica, or a primary that may not write.
    ReadOnly,
    /// Reading its data from disk.
    Loading,
    /// Another script runs for too long.
    Busy,
    /// MOVED, ASK, TRYAGAIN, CLUSTERDOWN, MASTERDOWN.
    Moved,
    /// User, password, or a command or key that the user may not use.
    NotAllowed,
    /// No connection could be made.
    NoConnection,
    /// The connection ended while the call was under way.
    Cut,
    /// No reply within the time allowed.
    TimedOut,
    /// Anything else.
    Other,
}

impl Kind {
    /// Every kind, in a fixed order.
    pub const ALL: [Self; 10] = [
        Self::OutOfMemory,
        Self::ReadOnly,
        Self::Loading,
        Self::Busy,
        Self::Moved,
        Self::NotAllowed,
        Self::NoConnection,
        Self::Cut,
        Self::TimedOut,
        Self::Other,
    ];

    /// The word in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OutOfMemory => "out_of_memory",
            Self::ReadOnly => "read_only",
            Self::Loading => "loading",
            Self::Busy => "busy",
            Self::Moved => "moved",
            Self::NotAllowed => "not_allowed",
            Self::NoConnection => "no_connection",
            Self::Cut => "cut",
            Self::TimedOut => "timed_out",
            Self::Other => "other",
        }
    }
}

/// An error of a call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// Nothing was changed, for sure.
    #[error("redis: {message}")]
    NotDone {
        /// What kind.
        kind: Kind,
        /// In Redis's words.
        message: String,
    },
    /// It may or may not have happened.
    #[error("redis: {message}; it is not known whether the call was executed")]
    Unknown {
        /// What kind.
        kind: Kind,
        /// What is known.
        message: String,
    },
    /// A reply, an entry or a stored value that this release does not understand.
    #[error("{place}: {message}")]
    Unreadable {
        /// The script, key or entry.
        place: String,
        /// What was found.
        message: String,
    },
}

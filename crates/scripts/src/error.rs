//! What can go wrong with a call, and whether anything happened. A script here fails before its first write or not at
//! all, so most errors say "nothing happened" and the call may be sent again; where the answer was lost, only a call
//! with an order id may be.

use redis::{ErrorKind, RedisError, Value};

use crate::source::SourceError;

/// Whether a failed call changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Nothing was changed.
    Nothing,
    /// The answer was lost: it was carried out or not, or is still to be.
    Unknown,
}

/// Why a server did not run a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// READONLY: a replica, by now or still. Look for the primary.
    ReadOnly,
    /// LOADING: it is reading its data after a start.
    Loading,
    /// OOM: `maxmemory` is reached. Scripts that free memory go on.
    OutOfMemory,
    /// BUSY: another script has been running for longer than `busy-reply-threshold`.
    Busy,
    /// CROSSSLOT, or a key of a slot that the script did not declare: the keys need one hash tag.
    CrossSlot,
    /// MOVED or ASK: another node has the slot; a connection that knows clusters follows by itself.
    Moved,
    /// TRYAGAIN: the slot is moving and its keys are on two nodes.
    TryAgain,
    /// CLUSTERDOWN or MASTERDOWN.
    ClusterDown,
    /// NOREPLICAS or MISCONF: the server refuses writes by its configuration.
    RefusesWrites,
    /// NOAUTH, WRONGPASS or NOPERM.
    NotAllowed,
    /// Connecting failed, so that nothing was sent.
    Unreachable,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("{script}: {message}")]
    BadArgument { script: &'static str, message: String },
    /// A key holds what no script wrote. Nothing was changed; other keys are not affected.
    #[error("{script}: {key} {message}")]
    Corrupt {
        script: &'static str,
        key: String,
        message: String,
    },
    #[error("{script}: {message}")]
    Overflow { script: &'static str, message: String },
    #[error("{script}: {state:?}: {source}")]
    Server {
        script: &'static str,
        state: ServerState,
        source: RedisError,
    },
    /// A time-out, a lost connection, or an error that is not known to come before every write.
    #[error("{script}: outcome unknown: {source}")]
    Unknown {
        script: &'static str,
        source: RedisError,
    },
    #[error("{script}: a reply outside of its contract: {reply:?}")]
    Unexpected { script: &'static str, reply: Value },
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl ScriptError {
    pub fn happened(&self) -> Happened {
        match self {
            Self::BadArgument { .. }
            | Self::Corrupt { .. }
            | Self::Overflow { .. }
            | Self::Server { .. }
            | Self::Source(_) => Happened::Nothing,
            Self::Unknown { .. } | Self::Unexpected { .. } => Happened::Unknown,
        }
    }

    /// Nothing happened and the state passes by itself, so that the same call may be sent again after a while.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Server {
                state: ServerState::ReadOnly
                    | ServerState::Loading
                    | ServerState::OutOfMemory
                    | ServerState::Busy
                    | ServerState::Moved
                    | ServerState::TryAgain
                    | ServerState::ClusterDown
                    | ServerState::RefusesWrites
                    | ServerState::Unreachable,
                ..
            }
        )
    }

    /// A slot is moving or has moved, or the cluster is choosing a new primary.
    pub(crate) fn is_on_the_move(&self) -> bool {
        matches!(
            self,
            Self::Server {
                state: ServerState::Moved | ServerState::TryAgain | ServerState::ClusterDown,
                ..
            }
        )
    }

    pub(crate) fn from_redis(script: &'static str, source: RedisError) -> Self {
        let detail = || source.detail().unwrap_or_default().to_owned();
        match source.code() {
            Some("BADARG") => {
                return Self::BadArgument {
                    script,
                    message: detail(),
                };
            }
            Some("OVERFLOW") => {
                return Self::Overflow {
                    script,
                    message: detail(),
                };
            }
            Some("CORRUPT") => {
                let detail = detail();
                // `"KEY" holds ...`; the key itself may contain anything, so the last such place counts.
                let split = detail.strip_prefix('"').and_then(|rest| {
                    rest.rsplit_once("\" holds ")
                        .map(|(key, found)| (key.to_owned(), format!("holds {found}")))
                });
                let (key, message) = split.unwrap_or((String::new(), detail));
                return Self::Corrupt { script, key, message };
            }
            _ => {}
        }
        match server_state(&source) {
            Some(state) => Self::Server {
                script,
                state,
                source,
            },
            None => Self::Unknown { script, source },
        }
    }
}

/// What an error says about the server; `None` where it is not known whether anything was carried out.
pub fn server_state(error: &RedisError) -> Option<ServerState> {
    let state = match error.code() {
        Some("READONLY") => ServerState::ReadOnly,
        Some("LOADING") => ServerState::Loading,
        Some("OOM") => ServerState::OutOfMemory,
        Some("BUSY") => ServerState::Busy,
        Some("CROSSSLOT") => ServerState::CrossSlot,
        Some("MOVED" | "ASK") => ServerState::Moved,
        Some("TRYAGAIN") => ServerState::TryAgain,
        Some("CLUSTERDOWN" | "MASTERDOWN") => ServerState::ClusterDown,
        Some("NOREPLICAS" | "MISCONF") => ServerState::RefusesWrites,
        Some("NOAUTH" | "WRONGPASS" | "NOPERM") => ServerState::NotAllowed,
        // Not even connected, so nothing was sent.
        None if error.is_connection_refusal() => ServerState::Unreachable,
        None if error.kind() == ErrorKind::ClusterConnectionNotFound => ServerState::Unreachable,
        _ => return None,
    };
    Some(state)
}

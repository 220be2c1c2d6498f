//! From the client's errors to ours: what kind, and whether anything may have happened.
//!
//! A script checks everything before its first write, and the server refuses a whole script by its first line (`#!lua`)
//! when it is out of memory or may not write. So whatever the server says before running a script means that nothing
//! was done. An error raised while a script ran names the script and its line: that one proves nothing.

use redis::{ErrorKind, RedisError};
use stockade_scripts::ServerState;
use stockade_scripts::error::server_state;

use crate::error::{CallError, Kind};

/// What went wrong with a call that was handed to a connection.
pub(crate) fn of_call(error: &RedisError) -> CallError {
    let message = error.to_string();
    if let Some(state) = server_state(error) {
        let kind = kind_of(state);
        return if raised_by_a_script(error) {
            CallError::Unknown { kind, message }
        } else {
            CallError::NotDone { kind, message }
        };
    }
    if error.is_timeout() {
        let message = "no reply in time".to_owned();
        return CallError::Unknown {
            kind: Kind::TimedOut,
            message,
        };
    }
    match error.kind() {
        ErrorKind::Io | ErrorKind::Parse => CallError::Unknown {
            kind: Kind::Cut,
            message: format!("the connection was lost ({message})"),
        },
        ErrorKind::Server(_) | ErrorKind::Extension if !raised_by_a_script(error) => CallError::NotDone {
            kind: Kind::Other,
            message,
        },
        _ => CallError::Unknown {
            kind: Kind::Other,
            message,
        },
    }
}

/// What went wrong while connecting: whatever it is, no call was sent.
pub(crate) fn of_connect(error: &RedisError) -> CallError {
    let kind = match server_state(error) {
        Some(state) => kind_of(state),
        None if error.kind() == ErrorKind::AuthenticationFailed => Kind::NotAllowed,
        None => Kind::NoConnection,
    };
    CallError::NotDone {
        kind,
        message: error.to_string(),
    }
}

fn kind_of(state: ServerState) -> Kind {
    match state {
        ServerState::ReadOnly | ServerState::RefusesWrites => Kind::ReadOnly,
        ServerState::Loading => Kind::Loading,
        ServerState::OutOfMemory => Kind::OutOfMemory,
        ServerState::Busy => Kind::Busy,
        ServerState::CrossSlot | ServerState::Moved | ServerState::TryAgain | ServerState::ClusterDown => {
            Kind::Moved
        }
        ServerState::NotAllowed => Kind::NotAllowed,
        ServerState::Unreachable => Kind::NoConnection,
    }
}

/// Redis and Valkey add ` script: SHA, on @user_script:LINE.` to what was raised inside of one.
fn raised_by_a_script(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| {
        detail.contains("on @user_script")
            || detail.contains("on user_script")
            || detail.contains(" script: ")
    })
}

//! One connection, shared by everybody who calls, that comes back after it was lost.
//!
//! Nothing is ever sent a second time by this layer: after a cut the outcome is unknown, and only the caller has the id
//! or the tag that makes another try safe. While a server cannot be reached, calls fail at once between two attempts,
//! and such a failure is certain: nothing was sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, PushInfo, PushKind, RedisError};

use super::errors::of_connect;
use super::stats::Counters;
use crate::error::{CallError, Kind};

/// The shortest and longest pause between two attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Calls that may wait to be written; more wait their turn.
const QUEUE: usize = 4_096;

/// How long connecting and a reply may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connect_within: Duration,
    pub(crate) reply_within: Duration,
}

pub(crate) struct Link {
    client: Client,
    limits: Limits,
    counters: Arc<Counters>,
    state: Arc<Mutex<State>>,
    /// Held by whoever connects; the others wait for the outcome.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    up: Option<MultiplexedConnection>,
    /// Counts connections, so that a late report about an old one does not end the new one.
    number: u64,
    /// The last one that is not to be used any more.
    given_up: u64,
    /// Failed attempts since the last good one.
    failures: u32,
    /// Before this no new attempt is made.
    retry_at: Option<Instant>,
    error: Option<CallError>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Link")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(crate) fn new(client: Client, limits: Limits, counters: Arc<Counters>) -> Self {
        Self {
            client,
            limits,
            counters,
            state: Arc::default(),
            connecting: tokio::sync::Mutex::new(()),
        }
    }

    /// The connection and its number, made now if there is none.
    pub(crate) async fn get(&self) -> Result<(u64, MultiplexedConnection), CallError> {
        if let Some(found) = self.at_hand()? {
            return Ok(found);
        }
        let turn = self.connecting.try_lock();
        let _turn = match (turn, self.last_error()) {
            (Ok(turn), _) => turn,
            // Somebody is trying again after a failure, which may take a while: one caller waits for that, not all.
            (Err(_), Some(error)) => return Err(error),
            (Err(_), None) => self.connecting.lock().await,
        };
        // Whoever held the turn before has connected, or has failed for all who waited.
        if let Some(found) = self.at_hand()? {
            return Ok(found);
        }
        let number = {
            let mut state = locked(&self.state);
            state.number = state.number.saturating_add(1);
            state.number
        };
        let made = self.connect(number).await;
        let mut state = locked(&self.state);
        match made {
            Ok(connection) => {
                self.counters.connected();
                state.failures = 0;
                state.retry_at = None;
                state.error = None;
                // It may have ended again in the meantime.
                if state.given_up < number {
                    state.up = Some(connection.clone());
                }
                Ok((number, connection))
            }
            Err(error) => {
                state.failures = state.failures.saturating_add(1);
                state.retry_at = Some(Instant::now() + pause(state.failures));
                state.error = Some(error.clone());
                Err(error)
            }
        }
    }

    fn at_hand(&self) -> Result<Option<(u64, MultiplexedConnection)>, CallError> {
        let state = locked(&self.state);
        if let Some(connection) = &state.up {
            return Ok(Some((state.number, connection.clone())));
        }
        match (&state.error, state.retry_at) {
            (Some(error), Some(at)) if Instant::now() < at => Err(error.clone()),
            _ => Ok(None),
        }
    }

    /// Whether there is a connection that was not given up.
    pub(crate) fn is_up(&self) -> bool {
        locked(&self.state).up.is_some()
    }

    fn last_error(&self) -> Option<CallError> {
        locked(&self.state).error.clone()
    }

    /// The connection of that number is not to be used any more. Calls that are under way on it keep their chance.
    pub(crate) fn give_up(&self, number: u64) {
        give_up(&self.state, number);
    }

    async fn connect(&self, number: u64) -> Result<MultiplexedConnection, CallError> {
        let state = Arc::downgrade(&self.state);
        // Told at once when the server closes an idle connection, so that the next call is not lost in it.
        let told = move |push: PushInfo| -> Result<(), std::convert::Infallible> {
            if push.kind == PushKind::Disconnection
                && let Some(state) = state.upgrade()
            {
                give_up(&state, number);
            }
            Ok(())
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.limits.connect_within))
            .set_response_timeout(Some(self.limits.reply_within))
            .set_pipeline_buffer_size(QUEUE)
            .set_write_backpressure_boundary(256 * 1024)
            .set_push_sender(told);
        let made = self.client.get_multiplexed_async_connection_with_config(&config);
        match tokio::time::timeout(self.limits.connect_within, made).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(of_connect(&error)),
            Err(_) => Err(CallError::NotDone {
                kind: Kind::NoConnection,
                message: format!("no connection within {:?}", self.limits.connect_within),
            }),
        }
    }
}

fn give_up(state: &Mutex<State>, number: u64) {
    let mut state = locked(state);
    state.given_up = state.given_up.max(number);
    if state.number == number {
        state.up = None;
    }
}

fn pause(failures: u32) -> Duration {
    let doubled = PAUSE_MIN.saturating_mul(1 << failures.saturating_sub(1).min(10));
    let longest = doubled.min(PAUSE_MAX);
    // Not all processes at the same moment.
    longest.mul_f64(0.75 + fastrand::f64() / 4.0)
}

/// Whether a connection is of no use after this error.
pub(crate) fn ends_the_connection(error: &RedisError) -> bool {
    // After a time-out too: the other end may be gone without a word, and a new connection tells.
    error.is_timeout()
        || error.is_unrecoverable_error()
        || matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second() {
        assert!(pause(1) <= PAUSE_MIN && pause(1) >= PAUSE_MIN / 2);
        assert!(pause(5) > pause(1));
        for failures in [10, 30, u32::MAX] {
            assert!(pause(failures) <= PAUSE_MAX && pause(failures) > PAUSE_MAX / 2);
        }
    }
}

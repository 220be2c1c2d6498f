//! Sends calls by their SHA-1 and, where a server does not have a script (a restart, a failover, SCRIPT FLUSH), sends the
//! text once: the caller does not notice. EVAL both loads and runs, so that no flush can come in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};

use crate::call::{Args, Call};
use crate::error::ScriptError;
use crate::source::{Ready, Script};

/// Runs scripts over one connection, which may be shared by any number of tasks: a multiplexed one, a connection
/// manager, or one to a cluster.
#[derive(Clone)]
pub struct Scripts<C> {
    connection: C,
    reloads: Arc<AtomicU64>,
    patience: Duration,
}

impl<C> std::fmt::Debug for Scripts<C> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Scripts")
            .field("reloads", &self.reloads)
            .finish_non_exhaustive()
    }
}

impl<C: ConnectionLike + Clone> Scripts<C> {
    pub fn new(connection: C) -> Self {
        Self {
            connection,
            reloads: Arc::default(),
            patience: Duration::ZERO,
        }
    }

    /// Waits for so long while a slot is on its way to another node or the cluster is down for a moment, and sends the call
    /// again: it certainly did not happen.
    #[must_use]
    pub fn waiting(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How often a server did not have a script and got its text.
    pub fn reloads(&self) -> u64 {
        self.reloads.load(Ordering::Relaxed)
    }

    /// A handle to the same connection, for commands beside the scripts.
    pub fn connection(&self) -> C {
        self.connection.clone()
    }

    pub async fn run<S: Call>(&self, call: &S) -> Result<S::Reply, ScriptError> {
        if self.patience.is_zero() {
            return self.run_once(call).await;
        }
        let start = Instant::now();
        let mut pause = Duration::from_millis(5);
        loop {
            let reply = self.run_once(call).await;
            match &reply {
                Err(error) if error.is_on_the_move() && start.elapsed() + pause < self.patience => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(200));
                }
                _ => return reply,
            }
        }
    }

    async fn run_once<S: Call>(&self, call: &S) -> Result<S::Reply, ScriptError> {
        let ready = S::script().ready()?;
        let name = S::script().name();
        let mut connection = self.connection.clone();
        let mut reply = reply_of(
            connection
                .req_packed_command(&command("EVALSHA", &ready.sha, call))
                .await,
        );
        if is_noscript(&reply) {
            self.reloads.fetch_add(1, Ordering::Relaxed);
            reply = reply_of(
                connection
                    .req_packed_command(&command("EVAL", &ready.text, call))
                    .await,
            );
        }
        read::<S>(name, reply)
    }

    /// Sends several calls in one go and gives each its own answer. This is no transaction: others may come in between,
    /// and where a server did not have the script, those calls run a moment after the others. In a cluster all keys have to
    /// lie in one slot.
    pub async fn pipeline<S: Call>(
        &self,
        calls: &[S],
    ) -> Result<Vec<Result<S::Reply, ScriptError>>, ScriptError> {
        let ready = S::script().ready()?;
        let name = S::script().name();
        let mut replies = self.send(name, "EVALSHA", &ready.sha, calls.iter()).await?;
        let missing: Vec<usize> = (0..replies.len())
            .filter(|&at| is_noscript(&replies[at]))
            .collect();
        if !missing.is_empty() {
            self.reloads.fetch_add(1, Ordering::Relaxed);
            let again = missing.iter().map(|&at| &calls[at]);
            match self.send(name, "EVAL", &ready.text, again).await {
                Ok(second) => {
                    for (at, reply) in missing.into_iter().zip(second) {
                        replies[at] = reply;
                    }
                }
                // The others have their answers; these are the ones whose outcome nobody knows.
                Err(ScriptError::Unknown { source, .. } | ScriptError::Server { source, .. }) => {
                    for at in missing {
                        replies[at] = Err(source.clone());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(replies.into_iter().map(|reply| read::<S>(name, reply)).collect())
    }

    async fn send<'a, S: Call + 'a>(
        &self,
        name: &'static str,
        verb: &str,
        script: &str,
        calls: impl Iterator<Item = &'a S>,
    ) -> Result<Vec<RedisResult<Value>>, ScriptError> {
        let mut pipeline = Pipeline::new();
        for call in calls {
            pipeline.add_command(command(verb, script, call));
        }
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        pipeline.ignore_errors();
        let mut connection = self.connection.clone();
        pipeline
            .query_async(&mut connection)
            .await
            .map_err(|error| ScriptError::from_redis(name, error))
    }

    /// Gives a server the text ahead of the first call.
    pub async fn load(&self, script: &'static Script) -> Result<(), ScriptError> {
        let Ready { text, .. } = script.ready()?;
        let mut connection = self.connection.clone();
        redis::cmd("SCRIPT")
            .arg("LOAD")
            .arg(text)
            .query_async::<String>(&mut connection)
            .await
            .map(drop)
            .map_err(|error| ScriptError::from_redis(script.name(), error))
    }

    /// Runs a script with keys and arguments as they are, for tools.
    pub async fn run_raw(
        &self,
        script: &'static Script,
        keys: &[Vec<u8>],
        args: &[Vec<u8>],
    ) -> Result<Value, ScriptError> {
        let ready = script.ready()?;
        let build = |verb: &str, body: &str| {
            let mut command = redis::cmd(verb);
            command.arg(body).arg(keys.len()).arg(keys).arg(args);
            command
        };
        let mut connection = self.connection.clone();
        let mut reply = reply_of(connection.req_packed_command(&build("EVALSHA", &ready.sha)).await);
        if is_noscript(&reply) {
            self.reloads.fetch_add(1, Ordering::Relaxed);
            reply = reply_of(connection.req_packed_command(&build("EVAL", &ready.text)).await);
        }
        reply.map_err(|error| ScriptError::from_redis(script.name(), error))
    }
}

/// A call as a command: EVALSHA with the digest, or EVAL with the text.
pub fn command<S: Call>(verb: &str, script: &str, call: &S) -> Cmd {
    let keys = call.keys();
    // Room for all of it at once: a call is too short to grow its buffer four times.
    let parts = 3 + S::KEYS.len() + S::ARGS.len();
    let mut command = Cmd::with_capacity(parts, verb.len() + script.len() + 32 * parts);
    command.arg(verb).arg(script).arg(keys.len());
    for key in keys {
        command.arg(key);
    }
    call.args(&mut Args::new(&mut command));
    command
}

/// An error of the server is an error, whichever way the connection hands it over.
pub fn reply_of(reply: RedisResult<Value>) -> RedisResult<Value> {
    match reply {
        Ok(Value::ServerError(error)) => Err(RedisError::from(error)),
        other => other,
    }
}

/// Whether the server did not have the script, and so did not run it.
pub fn is_noscript(reply: &RedisResult<Value>) -> bool {
    matches!(reply, Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
}

fn read<S: Call>(name: &'static str, reply: RedisResult<Value>) -> Result<S::Reply, ScriptError> {
    match reply {
        Ok(value) => S::parse(&value).ok_or(ScriptError::Unexpected {
            script: name,
            reply: value,
        }),
        Err(error) => Err(ScriptError::from_redis(name, error)),
    }
}

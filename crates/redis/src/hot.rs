//! One shard on one node: the handle that everything else hangs on.

use std::collections::HashMap;
use std::sync::Arc;

use stockade_core::{Millis, Position};
use stockade_scripts::Call;

use crate::error::CallError;
use crate::layout::{Keys, from_hex, number};
use crate::node::{Lane, Node, NodeStats};
use crate::types::{MetaState, Options};

/// One shard on one node. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Hot {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    node: Node,
    shard: u32,
    keys: Keys,
    meta: String,
}

impl Hot {
    /// Connects. An error says what to change.
    pub async fn connect(options: Options) -> Result<Self, CallError> {
        let node = Node::connect(&options).await?;
        let keys = Keys::new(&options.prefix, options.shard);
        Ok(Self {
            shared: Arc::new(Shared {
                node,
                shard: options.shard,
                meta: keys.meta(),
                keys,
            }),
        })
    }

    /// What the connections counted.
    pub fn stats(&self) -> NodeStats {
        self.shared.node.stats()
    }

    /// The server's time.
    pub async fn time(&self) -> Result<Millis, CallError> {
        let value = self.shared.node.command(&redis::cmd("TIME")).await?;
        let unreadable = || CallError::Unreadable {
            place: "TIME".to_owned(),
            message: format!("{value:?}"),
        };
        let (seconds, micros): (i64, i64) =
            redis::from_redis_value(value.clone()).map_err(|_| unreadable())?;
        seconds
            .checked_mul(1_000)
            .and_then(|ms| ms.checked_add(micros / 1_000))
            .ok_or_else(unreadable)
    }

    /// The node's meta; `None`: it has none.
    pub async fn meta(&self) -> Result<Option<MetaState>, CallError> {
        let value = self.command(redis::cmd("HGETALL").arg(self.meta_key())).await?;
        let fields: HashMap<String, String> =
            redis::from_redis_value(value).map_err(|error| self.broken_meta(error.to_string()))?;
        if fields.is_empty() {
            return Ok(None);
        }
        let broken = |name: &str| self.broken_meta(format!("{name} is {:?}", fields.get(name)));
        let count = |name: &str| match fields.get(name) {
            None => Ok(0),
            Some(text) => number::<u64>(text).ok_or_else(|| broken(name)),
        };
        let tag = match fields.get("tag") {
            None => 0,
            Some(text) => from_hex(text).ok_or_else(|| broken("tag"))?,
        };
        Ok(Some(MetaState {
            tip: Position {
                epoch: number(fields.get("epoch").map_or("", String::as_str))
                    .ok_or_else(|| broken("epoch"))?,
                seq: count("seq")?,
                tag,
            },
            base: count("base_seq")?,
            open: count("open")? == 1,
            chunks: count("chunks")?,
            clock: Millis::try_from(count("clock")?).map_err(|_| broken("clock"))?,
        }))
    }

    fn broken_meta(&self, message: String) -> CallError {
        CallError::Unreadable {
            place: self.shared.meta.clone(),
            message,
        }
    }

    /// The shard's number.
    pub(crate) fn shard(&self) -> u32 {
        self.shared.shard
    }

    /// The shard's keys.
    pub(crate) fn keys(&self) -> &Keys {
        &self.shared.keys
    }

    /// The key that every script is given first.
    pub(crate) fn meta_key(&self) -> &str {
        &self.shared.meta
    }

    /// Runs a script that decides.
    pub(crate) async fn run<S: Call>(&self, call: &S) -> Result<S::Reply, CallError> {
        self.shared.node.run(Lane::Decide, call).await
    }

    /// Runs a script that loads, reads or cares, beside the decisions.
    pub(crate) async fn run_control<S: Call>(&self, call: &S) -> Result<S::Reply, CallError> {
        self.shared.node.run(Lane::Control, call).await
    }

    /// Runs a plain command.
    pub(crate) async fn command(&self, command: &redis::Cmd) -> Result<redis::Value, CallError> {
        self.shared.node.command(command).await
    }

    /// Gives the server every script ahead of the first calls, which saves each of them a second way.
    pub async fn load_scripts(&self) -> Result<(), CallError> {
        for contract in crate::script::all() {
            self.shared.node.load(contract.script).await?;
        }
        Ok(())
    }
}

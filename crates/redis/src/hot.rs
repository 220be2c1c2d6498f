//! One shard on one node: the handle that everything else hangs on.

use std::collections::HashMap;
use std::sync::Arc;

use stockade_core::{Millis, Position};
use stockade_scripts::Call;

use crate::error::CallError;
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
    /// `{PREFIX:SHARD}`: in every key, and nothing that a user wrote.
    tag: String,
    meta: String,
}

impl Hot {
    /// Connects. An error says what to change.
    pub async fn connect(options: Options) -> Result<Self, CallError> {
        let node = Node::connect(&options).await?;
        let tag = format!("{{{}:{}}}", options.prefix, options.shard);
        Ok(Self {
            shared: Arc::new(Shared {
                node,
                shard: options.shard,
                meta: format!("{tag}:meta"),
                tag,
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
        let text = |name: &str| fields.get(name).map_or("0", String::as_str);
        let number = |name: &str| {
            text(name)
                .parse::<u64>()
                .map_err(|_| self.broken_meta(format!("{name} is {:?}", text(name))))
        };
        let tag = u64::from_str_radix(text("tag"), 16)
            .map_err(|_| self.broken_meta(format!("tag is {:?}", text("tag"))))?;
        let clock = text("clock").parse::<Millis>();
        Ok(Some(MetaState {
            tip: Position {
                epoch: number("epoch")?,
                seq: number("seq")?,
                tag,
            },
            open: number("open")? == 1,
            chunks: number("chunks")?,
            clock: clock.map_err(|_| self.broken_meta(format!("clock is {:?}", text("clock"))))?,
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

    /// `{PREFIX:SHARD}`, with which every key begins.
    pub(crate) fn tag(&self) -> &str {
        &self.shared.tag
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

    pub(crate) fn node(&self) -> &Node {
        &self.shared.node
    }
}

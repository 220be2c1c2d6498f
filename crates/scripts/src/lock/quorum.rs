//! A lock that is held when most of several independent Redis nodes say so. It goes on while a minority is down.
//!
//! What it cannot promise: that only one holder is at work. A clock that jumps on one node, a node that comes back
//! without its data, or a holder that is stopped past its time each let a second one in. It gives no fencing number
//! either: the nodes do not know each other, so no number of theirs grows for all. Where two holders at once would do
//! harm, let what is written to give the numbers (a counter in the database, raised under the lock, checked at each
//! write), or use a lock on one Redis with its fencing number. A node that restarts without its data should stay away for
//! longer than the longest time of a lock before it is asked again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::ConnectionLike;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{jittered, millis, new_owner};
use crate::keys::{KeyError, companion};
use crate::runner::Scripts;
use crate::scripts::{Lock as LockCall, LockReply, Unlock};

#[derive(Clone, Copy, Debug)]
pub struct QuorumOptions {
    pub ttl: Duration,
    /// How long one node may take to answer; small against `ttl`, so that a dead node costs little of it.
    pub node_patience: Duration,
    /// By how much of `ttl` the clocks of nodes and callers may run apart.
    pub drift: f64,
}

impl Default for QuorumOptions {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(30),
            node_patience: Duration::from_millis(500),
            drift: 0.01,
        }
    }
}

/// Takes locks over independent nodes.
#[derive(Clone, Debug)]
pub struct QuorumLock<C> {
    nodes: Arc<Vec<Scripts<C>>>,
    options: QuorumOptions,
}

/// Too few nodes gave the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given} of {nodes} nodes gave the lock, {refused} said no; {needed} are needed")]
pub struct NoQuorum {
    pub nodes: usize,
    pub needed: usize,
    pub given: usize,
    /// Nodes that answered that somebody else holds it. The others did not answer, or not in time.
    pub refused: usize,
}

/// A lock that most nodes gave.
#[derive(Debug)]
pub struct QuorumGuard<C: ConnectionLike + Clone + Send + Sync + 'static> {
    lock: QuorumLock<C>,
    name: String,
    owner: String,
    until: Instant,
    released: bool,
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> QuorumLock<C> {
    pub fn new(nodes: Vec<Scripts<C>>, options: QuorumOptions) -> Self {
        Self {
            nodes: Arc::new(nodes),
            options,
        }
    }

    pub fn needed(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// Tries once.
    pub async fn try_lock(&self, name: &str) -> Result<Result<QuorumGuard<C>, NoQuorum>, KeyError> {
        let owner = new_owner();
        Ok(match self.ask_all(name, &owner).await? {
            Ok(until) => {
                let (lock, name) = (self.clone(), name.to_owned());
                Ok(QuorumGuard {
                    lock,
                    name,
                    owner,
                    until,
                    released: false,
                })
            }
            Err(no) => {
                self.let_go(name, &owner).await;
                Err(no)
            }
        })
    }

    /// Tries until it has the lock or `patience` is over.
    pub async fn lock_within(
        &self,
        name: &str,
        patience: Duration,
    ) -> Result<Result<QuorumGuard<C>, NoQuorum>, KeyError> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(20);
        loop {
            let tried = self.try_lock(name).await?;
            let left = patience.saturating_sub(start.elapsed());
            if tried.is_ok() || left.is_zero() {
                return Ok(tried);
            }
            sleep(jittered(pause).min(left)).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Asks every node at the same time; for a node where this owner has the lock, that is an extension, for one that lost
    /// it, a new acquisition. Answers until when the lock is certain.
    async fn ask_all(&self, name: &str, owner: &str) -> Result<Result<Instant, NoQuorum>, KeyError> {
        let fence = companion(name, "fence")?;
        let start = Instant::now();
        let ttl = self.options.ttl;
        let mut asked = JoinSet::new();
        for node in self.nodes.iter() {
            let (node, name, fence) = (node.clone(), name.to_owned(), fence.clone());
            let (owner, patience) = (owner.to_owned(), self.options.node_patience);
            asked.spawn(async move {
                let call = LockCall {
                    lock: &name,
                    fence: &fence,
                    owner: &owner,
                    ttl_ms: millis(ttl),
                };
                timeout(patience, node.run(&call)).await
            });
        }
        let (mut given, mut refused) = (0, 0);
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(Ok(LockReply::Held { .. }))) => given += 1,
                Ok(Ok(Ok(LockReply::Taken { .. }))) => refused += 1,
                // No answer in time, or an error: not given.
                Ok(Ok(Err(_)) | Err(_)) | Err(_) => {}
            }
        }
        let drift = ttl.mul_f64(self.options.drift) + Duration::from_millis(2);
        let until = start + ttl.saturating_sub(drift);
        let needed = self.needed();
        Ok(if given >= needed && Instant::now() < until {
            Ok(until)
        } else {
            Err(NoQuorum {
                nodes: self.nodes.len(),
                needed,
                given,
                refused,
            })
        })
    }

    /// Releases on every node, those included whose answer was lost. Answers how many had it.
    async fn let_go(&self, name: &str, owner: &str) -> usize {
        let mut asked = JoinSet::new();
        for node in self.nodes.iter() {
            let (node, name, owner) = (node.clone(), name.to_owned(), owner.to_owned());
            let patience = self.options.node_patience;
            asked.spawn(async move {
                timeout(
                    patience,
                    node.run(&Unlock {
                        lock: &name,
                        owner: &owner,
                    }),
                )
                .await
            });
        }
        let mut had = 0;
        while let Some(answer) = asked.join_next().await {
            had += usize::from(matches!(answer, Ok(Ok(Ok(true)))));
        }
        had
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> QuorumGuard<C> {
    pub fn is_held(&self) -> bool {
        Instant::now() < self.until
    }

    /// How long the lock is certain, drift allowed for.
    pub fn remains(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// A new time from now on. A lock that is over cannot be extended.
    pub async fn extend(&mut self) -> Result<Result<(), NoQuorum>, KeyError> {
        if !self.is_held() {
            let (nodes, needed) = (self.lock.nodes.len(), self.lock.needed());
            return Ok(Err(NoQuorum {
                nodes,
                needed,
                given: 0,
                refused: 0,
            }));
        }
        match self.lock.ask_all(&self.name, &self.owner).await? {
            Ok(until) => {
                self.until = until;
                Ok(Ok(()))
            }
            Err(no) => Ok(Err(no)),
        }
    }

    /// Lets the lock go. `false`: it was not held by most nodes any more.
    pub async fn release(mut self) -> bool {
        self.released = true;
        self.lock.let_go(&self.name, &self.owner).await >= self.lock.needed()
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Drop for QuorumGuard<C> {
    fn drop(&mut self) {
        // Without a runtime there is nobody to ask; the lock then ends by itself.
        if let (false, Ok(runtime)) = (self.released, tokio::runtime::Handle::try_current()) {
            let (lock, name, owner) = (self.lock.clone(), self.name.clone(), self.owner.clone());
            runtime.spawn(async move { lock.let_go(&name, &owner).await });
        }
    }
}

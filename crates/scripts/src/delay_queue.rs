//! Items that are handed out when their time has come: at least once each, to any number of workers. A worker that dies
//! between claim and acknowledgement loses nothing: its item is handed out again after the visibility time-out. There is no
//! mover that could stop: whoever claims also does the sweeping.

use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use redis::aio::ConnectionLike;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use crate::error::ScriptError;
use crate::keys::KeyError;
use crate::runner::Scripts;
use crate::scripts::{DelayAck, DelayAdd, DelayClaim, DelayRetry, QueueKeys, RetryReply};

#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// How long a worker has for an item before it is handed out again.
    pub visibility: Duration,
    /// How often an item is handed out before it goes to the dead letters.
    pub tries_max: u64,
    /// How many items a worker takes at once.
    pub batch: u64,
    /// How long an item waits after its handler failed.
    pub retry_after: Duration,
    /// A worker with nothing to do looks again after this long at the latest, since an item that is due earlier may have
    /// been added meanwhile.
    pub poll: Duration,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            visibility: Duration::from_secs(30),
            tries_max: 16,
            batch: 64,
            retry_after: Duration::from_secs(1),
            poll: Duration::from_millis(500),
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum QueueError {
    #[error("the payload cannot be written: {0}")]
    Payload(String),
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// A queue of payloads of one type.
#[derive(Clone, Debug)]
pub struct DelayQueue<T, C> {
    scripts: Scripts<C>,
    keys: QueueKeys,
    options: QueueOptions,
    payload: PhantomData<fn() -> T>,
}

/// An item in this worker's hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job<T> {
    pub id: Vec<u8>,
    /// How often it has been handed out, this time included.
    pub attempt: u64,
    pub payload: T,
}

#[derive(Clone, Debug)]
pub struct Claimed<T> {
    pub jobs: Vec<Job<T>>,
    /// Until the next item is due; none when nothing waits.
    pub next: Option<Duration>,
    /// Items given up: handed out too often, or with a payload that cannot be read.
    pub dead: u64,
}

impl<T: Serialize + DeserializeOwned, C: ConnectionLike + Clone> DelayQueue<T, C> {
    /// The queue `name`, with the keys `{name}:due`, `:items`, `:tries` and `:dead`.
    pub fn new(scripts: Scripts<C>, name: &str, options: QueueOptions) -> Result<Self, KeyError> {
        Ok(Self {
            scripts,
            keys: QueueKeys::of(name)?,
            options,
            payload: PhantomData,
        })
    }

    pub fn keys(&self) -> &QueueKeys {
        &self.keys
    }

    /// Adds an item that is due at `at_ms` since the epoch. `false`: an item with this id is there and stays as it is.
    pub async fn add(&self, id: &str, at_ms: u64, payload: &T) -> Result<bool, QueueError> {
        let payload = serde_json::to_vec(payload).map_err(|error| QueueError::Payload(error.to_string()))?;
        Ok(self
            .scripts
            .run(&DelayAdd {
                keys: &self.keys,
                id,
                at_ms,
                payload: &payload,
            })
            .await?)
    }

    /// Takes what is due, at most a batch.
    pub async fn claim(&self) -> Result<Claimed<T>, QueueError> {
        let QueueOptions {
            visibility,
            tries_max,
            batch,
            ..
        } = self.options;
        let call = DelayClaim {
            keys: &self.keys,
            limit: batch,
            visibility_ms: millis(visibility),
            tries_max,
            now_ms: None,
        };
        let reply = self.scripts.run(&call).await?;
        let mut claimed = Claimed {
            jobs: Vec::new(),
            next: reply.next_ms.map(Duration::from_millis),
            dead: reply.dead,
        };
        for claim in reply.claims {
            match serde_json::from_slice(&claim.payload) {
                Ok(payload) => claimed.jobs.push(Job {
                    id: claim.id,
                    attempt: claim.attempt,
                    payload,
                }),
                Err(_) => {
                    // It will not read better the next time: to the dead letters, where a person can look at it.
                    if self.give_up(&claim.id, claim.attempt).await? {
                        claimed.dead += 1;
                    }
                }
            }
        }
        Ok(claimed)
    }

    /// The item is done. `false`: it took too long and the item is no longer this worker's.
    pub async fn ack(&self, job: &Job<T>) -> Result<bool, QueueError> {
        Ok(self
            .scripts
            .run(&DelayAck {
                keys: &self.keys,
                id: &job.id,
                attempt: job.attempt,
            })
            .await?)
    }

    /// The item is to be handed out again after `delay`, or given up if it was handed out too often.
    pub async fn retry(&self, job: &Job<T>, delay: Duration) -> Result<RetryReply, QueueError> {
        let call = DelayRetry {
            keys: &self.keys,
            id: &job.id,
            attempt: job.attempt,
            delay_ms: millis(delay),
            tries_max: self.options.tries_max,
            now_ms: None,
        };
        Ok(self.scripts.run(&call).await?)
    }

    async fn give_up(&self, id: &[u8], attempt: u64) -> Result<bool, QueueError> {
        let call = DelayRetry {
            keys: &self.keys,
            id,
            attempt,
            delay_ms: 0,
            tries_max: attempt.max(1),
            now_ms: None,
        };
        Ok(self.scripts.run(&call).await? == RetryReply::GivenUp)
    }

    /// Payloads of the dead letters by id, as they were written.
    pub async fn dead_letters(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>, QueueError> {
        let mut connection = self.scripts.connection();
        let reply = redis::cmd("HGETALL")
            .arg(&self.keys.dead)
            .query_async(&mut connection)
            .await;
        Ok(reply.map_err(|error| ScriptError::from_redis("delay_queue", error))?)
    }

    /// How long the item that is due longest has been due; zero when none is. The figure to watch.
    pub async fn lag(&self) -> Result<Duration, QueueError> {
        let mut connection = self.scripts.connection();
        let reply = redis::pipe()
            .cmd("ZRANGE")
            .arg(&self.keys.due)
            .arg(0)
            .arg(0)
            .arg("WITHSCORES")
            .cmd("TIME")
            .query_async::<FirstAndTime>(&mut connection)
            .await;
        let (first, (seconds, micros)) =
            reply.map_err(|error| ScriptError::from_redis("delay_queue", error))?;
        let now = Duration::from_secs(seconds) + Duration::from_micros(micros);
        let due = first.first().map_or(now, |(_, score)| {
            Duration::try_from_secs_f64(score / 1000.0).unwrap_or(if *score < 0.0 {
                Duration::ZERO
            } else {
                now
            })
        });
        Ok(now.saturating_sub(due))
    }

    /// Works until `stop` is ready: claims, calls `handle`, acknowledges what it did and gives back what it did not.
    /// Trouble with Redis is waited out and reported to `trouble`; it never ends the worker.
    pub async fn work<H, F, E>(
        &self,
        mut handle: H,
        mut trouble: impl FnMut(&QueueError),
        stop: impl Future<Output = ()>,
    ) where
        H: FnMut(Job<T>) -> F,
        F: Future<Output = Result<(), E>>,
        T: Clone,
    {
        let mut stop = std::pin::pin!(stop);
        let mut pause = Duration::from_millis(10);
        loop {
            let claimed = tokio::select! {
                biased;
                () = &mut stop => return,
                claimed = self.claim() => claimed,
            };
            let wait = match claimed {
                Ok(claimed) => {
                    pause = Duration::from_millis(10);
                    let idle = claimed.jobs.is_empty() && claimed.dead == 0;
                    for job in claimed.jobs {
                        let done = handle(job.clone()).await;
                        let said = match done {
                            Ok(()) => self.ack(&job).await.map(drop),
                            Err(_) => self.retry(&job, self.options.retry_after).await.map(drop),
                        };
                        if let Err(error) = said {
                            // It will be handed out again: at least once is what a queue can promise.
                            trouble(&error);
                        }
                    }
                    if !idle {
                        continue;
                    }
                    claimed
                        .next
                        .map_or(self.options.poll, |next| next.min(self.options.poll))
                }
                Err(error) => {
                    trouble(&error);
                    pause = (pause * 2).min(Duration::from_secs(2));
                    pause
                }
            };
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = sleep(wait.max(Duration::from_millis(1))) => {}
            }
        }
    }
}

/// The first item with its moment, and the server's seconds and microseconds.
type FirstAndTime = (Vec<(Vec<u8>, f64)>, (u64, u64));

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

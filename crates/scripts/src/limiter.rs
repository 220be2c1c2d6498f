//! A rate limiter for any number of callers, over the limiter scripts: one round trip a decision, by the server's clock.

use std::time::Duration;

use redis::aio::ConnectionLike;

use crate::error::ScriptError;
use crate::runner::Scripts;
use crate::scripts::{IntervalLimit, LimitReply, TokenBucket};

/// How often something may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// At most `limit` calls in an interval that begins with the first one.
    Interval { limit: u64, interval: Duration },
    /// Bursts of `capacity`, and `refill` more in each `period`; 0 is never.
    Bucket {
        capacity: u64,
        refill: u64,
        period: Duration,
    },
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum LimiterError {
    #[error("a policy that cannot be: {0}")]
    Policy(&'static str),
    /// Who is limited, in 1..=512 bytes.
    #[error("a subject has 1..=512 bytes, not {0}")]
    Subject(usize),
    /// It can never be allowed.
    #[error("a cost of {cost}, more than {most}")]
    Cost { cost: u64, most: u64 },
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// Decides for many subjects (users, addresses, keys) by one policy.
#[derive(Clone, Debug)]
pub struct RateLimiter<C> {
    scripts: Scripts<C>,
    prefix: String,
    policy: Policy,
}

const INTERVAL_MS_MAX: u64 = 31_622_400_000;
const PERIOD_MS_MAX: u64 = 86_400_000;
const TOKENS_MAX: u64 = 1_000_000_000;
const PARTS_MAX: u64 = (1 << 53) - 1;

impl<C: ConnectionLike + Clone> RateLimiter<C> {
    /// Keys are `PREFIX:SUBJECT`. A policy that makes no sense is refused here, at the start, not at the first call.
    pub fn new(scripts: Scripts<C>, prefix: &str, policy: Policy) -> Result<Self, LimiterError> {
        match policy {
            Policy::Interval { limit, interval } => {
                if limit == 0 || limit > PARTS_MAX {
                    return Err(LimiterError::Policy("limit has to be 1..=2^53-1"));
                }
                if !(1..=INTERVAL_MS_MAX).contains(&millis(interval)) {
                    return Err(LimiterError::Policy("interval has to be 1 ms..=366 days"));
                }
            }
            Policy::Bucket {
                capacity,
                refill,
                period,
            } => {
                if !(1..=TOKENS_MAX).contains(&capacity) || refill > TOKENS_MAX {
                    return Err(LimiterError::Policy(
                        "capacity has to be 1..=1,000,000,000, refill at most as much",
                    ));
                }
                if !(1..=PERIOD_MS_MAX).contains(&millis(period)) {
                    return Err(LimiterError::Policy("period has to be 1 ms..=1 day"));
                }
                let parts = capacity.saturating_mul(millis(period));
                if parts > PARTS_MAX || (refill > 0 && parts / refill > INTERVAL_MS_MAX - 1) {
                    return Err(LimiterError::Policy("the bucket has to fill within 366 days"));
                }
            }
        }
        Ok(Self {
            scripts,
            prefix: prefix.to_owned(),
            policy,
        })
    }

    /// Asks for one call of `subject`.
    pub async fn check(&self, subject: &str) -> Result<LimitReply, LimiterError> {
        self.check_cost(subject, 1).await
    }

    /// Asks for a call that counts as `cost` calls. Only a bucket knows other costs than 1.
    pub async fn check_cost(&self, subject: &str, cost: u64) -> Result<LimitReply, LimiterError> {
        if subject.is_empty() || subject.len() > 512 {
            return Err(LimiterError::Subject(subject.len()));
        }
        let key = format!("{}:{subject}", self.prefix);
        match self.policy {
            Policy::Interval { limit, interval } => {
                if cost != 1 {
                    return Err(LimiterError::Cost { cost, most: 1 });
                }
                let call = IntervalLimit {
                    calls: &key,
                    limit,
                    interval_ms: millis(interval),
                    now_ms: None,
                };
                Ok(self.scripts.run(&call).await?)
            }
            Policy::Bucket {
                capacity,
                refill,
                period,
            } => {
                if cost == 0 || cost > capacity {
                    return Err(LimiterError::Cost { cost, most: capacity });
                }
                let period_ms = millis(period);
                let call = TokenBucket {
                    bucket: &key,
                    capacity,
                    refill,
                    period_ms,
                    cost,
                    now_ms: None,
                };
                Ok(self.scripts.run(&call).await?)
            }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

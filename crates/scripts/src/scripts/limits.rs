//! Limiting how often something may be done.

use redis::Value;

use super::{call, script};
use crate::call::{count, numbers};

script!(INTERVAL_LIMIT, "interval_limit");
script!(TOKEN_BUCKET, "token_bucket");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReply {
    Allowed {
        remaining: u64,
    },
    /// `retry_after_ms` is none when it will never be allowed.
    Refused {
        remaining: u64,
        retry_after_ms: Option<u64>,
    },
}

impl LimitReply {
    pub fn is_allowed(self) -> bool {
        matches!(self, Self::Allowed { .. })
    }
}

fn limit_reply(reply: &Value) -> Option<LimitReply> {
    match *numbers(reply)?.as_slice() {
        [1, remaining, 0] => Some(LimitReply::Allowed {
            remaining: count(remaining)?,
        }),
        [0, remaining, -1] => Some(LimitReply::Refused {
            remaining: count(remaining)?,
            retry_after_ms: None,
        }),
        [0, remaining, retry] => Some(LimitReply::Refused {
            remaining: count(remaining)?,
            retry_after_ms: Some(count(retry)?),
        }),
        _ => None,
    }
}

/// At most so many calls in an interval that begins with the first one.
#[derive(Clone, Copy, Debug)]
pub struct IntervalLimit<'a> {
    pub calls: &'a str,
    pub limit: u64,
    pub interval_ms: u64,
    /// The server's clock unless a test passes its own.
    pub now_ms: Option<u64>,
}

call! {
    IntervalLimit<'_>, INTERVAL_LIMIT => LimitReply,
    keys ["calls"] |call| vec![call.calls],
    args ["limit", "interval", "now"] |call, to|
        to.number(call.limit).number(call.interval_ms).optional(call.now_ms),
    reply |reply| limit_reply(reply)
}

/// A bucket that fills by `refill` tokens in each period.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket<'a> {
    pub bucket: &'a str,
    pub capacity: u64,
    pub refill: u64,
    pub period_ms: u64,
    pub cost: u64,
    pub now_ms: Option<u64>,
}

call! {
    TokenBucket<'_>, TOKEN_BUCKET => LimitReply,
    keys ["bucket"] |call| vec![call.bucket],
    args ["capacity", "refill", "period", "cost", "now"] |call, to|
        to.number(call.capacity).number(call.refill).number(call.period_ms).number(call.cost).optional(call.now_ms),
    reply |reply| limit_reply(reply)
}

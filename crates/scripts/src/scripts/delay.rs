//! Items that are handed out when their time has come. [`DelayQueue`](crate::delay_queue::DelayQueue) builds on these.

use redis::Value;

use super::{call, script};
use crate::call::{bytes, count, flag, number};
use crate::keys::{KeyError, companion};

script!(DELAY_ADD, "delay_add");
script!(DELAY_CLAIM, "delay_claim");
script!(DELAY_ACK, "delay_ack");
script!(DELAY_RETRY, "delay_retry");

/// The keys of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueKeys {
    pub due: String,
    pub items: String,
    pub tries: String,
    pub dead: String,
}

impl QueueKeys {
    /// `queue:mail` becomes `{queue:mail}:due`, `:items`, `:tries` and `:dead`.
    pub fn of(queue: &str) -> Result<Self, KeyError> {
        Ok(Self {
            due: companion(queue, "due")?,
            items: companion(queue, "items")?,
            tries: companion(queue, "tries")?,
            dead: companion(queue, "dead")?,
        })
    }

    fn all(&self) -> Vec<&str> {
        vec![&self.due, &self.items, &self.tries, &self.dead]
    }
}

/// Puts an item into the queue. Answers whether it was new.
#[derive(Clone, Copy, Debug)]
pub struct DelayAdd<'a> {
    pub keys: &'a QueueKeys,
    pub id: &'a str,
    pub at_ms: u64,
    pub payload: &'a [u8],
}

call! {
    DelayAdd<'_>, DELAY_ADD => bool,
    keys ["due", "items"] |call| vec![&call.keys.due, &call.keys.items],
    args ["id", "at", "payload"] |call, to| to.text(call.id).number(call.at_ms).text(call.payload),
    reply |reply| flag(number(reply)?)
}

/// Takes items whose time has come.
#[derive(Clone, Copy, Debug)]
pub struct DelayClaim<'a> {
    pub keys: &'a QueueKeys,
    pub limit: u64,
    pub visibility_ms: u64,
    pub tries_max: u64,
    /// The server's clock unless a test passes its own.
    pub now_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimReply {
    /// Until the next item is due; none when nothing waits.
    pub next_ms: Option<u64>,
    /// Items that were given up in this call.
    pub dead: u64,
    pub claims: Vec<Claim>,
}

/// An item in a worker's hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Bytes, since another language may have chosen it.
    pub id: Vec<u8>,
    pub payload: Vec<u8>,
    /// How often it has been handed out, this time included. Names the claim.
    pub attempt: u64,
}

fn claim_reply(reply: &Value) -> Option<ClaimReply> {
    let Value::Array(parts) = reply else { return None };
    let [Value::Int(next), Value::Int(dead), claims @ ..] = parts.as_slice() else {
        return None;
    };
    let triples = claims.chunks_exact(3);
    if !triples.remainder().is_empty() {
        return None;
    }
    let claims = triples
        .map(|triple| {
            Some(Claim {
                id: bytes(&triple[0])?.to_vec(),
                payload: bytes(&triple[1])?.to_vec(),
                attempt: count(number(&triple[2])?)?,
            })
        })
        .collect::<Option<Vec<Claim>>>()?;
    let next_ms = if *next == -1 { None } else { Some(count(*next)?) };
    Some(ClaimReply {
        next_ms,
        dead: count(*dead)?,
        claims,
    })
}

call! {
    DelayClaim<'_>, DELAY_CLAIM => ClaimReply,
    keys ["due", "items", "tries", "dead"] |call| call.keys.all(),
    args ["limit", "visibility", "tries_max", "now"] |call, to|
        to.number(call.limit).number(call.visibility_ms).number(call.tries_max).optional(call.now_ms),
    reply |reply| claim_reply(reply)
}

/// An item is done. Answers whether the claim still stood.
#[derive(Clone, Copy, Debug)]
pub struct DelayAck<'a> {
    pub keys: &'a QueueKeys,
    pub id: &'a [u8],
    pub attempt: u64,
}

call! {
    DelayAck<'_>, DELAY_ACK => bool,
    keys ["due", "items", "tries"] |call| vec![&call.keys.due, &call.keys.items, &call.keys.tries],
    args ["id", "attempt"] |call, to| to.text(call.id).number(call.attempt),
    reply |reply| flag(number(reply)?)
}

/// A worker gives an item back.
#[derive(Clone, Copy, Debug)]
pub struct DelayRetry<'a> {
    pub keys: &'a QueueKeys,
    pub id: &'a [u8],
    pub attempt: u64,
    pub delay_ms: u64,
    pub tries_max: u64,
    pub now_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryReply {
    Waits,
    GivenUp,
    NotYours,
}

call! {
    DelayRetry<'_>, DELAY_RETRY => RetryReply,
    keys ["due", "items", "tries", "dead"] |call| call.keys.all(),
    args ["id", "attempt", "delay", "tries_max", "now"] |call, to|
        to.text(call.id).number(call.attempt).number(call.delay_ms).number(call.tries_max).optional(call.now_ms),
    reply |reply| match number(reply)? {
        1 => Some(RetryReply::Waits),
        2 => Some(RetryReply::GivenUp),
        0 => Some(RetryReply::NotYours),
        _ => None,
    }
}

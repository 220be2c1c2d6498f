//! One owner at a time. [`lock`](crate::lock) builds handles on these calls.

use super::{call, script};
use crate::call::{count, flag, number, numbers};

script!(LOCK, "lock");
script!(UNLOCK, "unlock");
script!(EXTEND, "extend");

/// Takes a lock for a time.
#[derive(Clone, Copy, Debug)]
pub struct Lock<'a> {
    pub lock: &'a str,
    pub fence: &'a str,
    pub owner: &'a str,
    pub ttl_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockReply {
    /// Held by this owner.
    Held { fence: u64, ttl_ms: u64 },
    /// Held by somebody else; for ever when no time is given.
    Taken { remains_ms: Option<u64> },
}

call! {
    Lock<'_>, LOCK => LockReply,
    keys ["lock", "fence"] |call| vec![call.lock, call.fence],
    args ["owner", "ttl"] |call, to| to.text(call.owner).number(call.ttl_ms),
    reply |reply| match *numbers(reply)?.as_slice() {
        [0, -1] => Some(LockReply::Taken { remains_ms: None }),
        [0, remains] => Some(LockReply::Taken { remains_ms: Some(count(remains)?) }),
        [fence, ttl] => Some(LockReply::Held { fence: count(fence)?, ttl_ms: count(ttl)? }),
        _ => None,
    }
}

/// Releases a lock if it is still this owner's. Answers whether it was.
#[derive(Clone, Copy, Debug)]
pub struct Unlock<'a> {
    pub lock: &'a str,
    pub owner: &'a str,
}

call! {
    Unlock<'_>, UNLOCK => bool,
    keys ["lock"] |call| vec![call.lock],
    args ["owner"] |call, to| to.text(call.owner),
    reply |reply| flag(number(reply)?)
}

/// Gives a lock a new time if it is still this owner's. Answers whether it was.
#[derive(Clone, Copy, Debug)]
pub struct Extend<'a> {
    pub lock: &'a str,
    pub owner: &'a str,
    pub ttl_ms: u64,
}

call! {
    Extend<'_>, EXTEND => bool,
    keys ["lock"] |call| vec![call.lock],
    args ["owner", "ttl"] |call, to| to.text(call.owner).number(call.ttl_ms),
    reply |reply| flag(number(reply)?)
}

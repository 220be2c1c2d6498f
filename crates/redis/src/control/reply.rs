//! How control scripts answer: a word, or a list that begins with one.

use redis::Value;
use stockade_core::{Millis, Position};
use stockade_scripts::call::{bytes, count, number};

use crate::layout::from_hex;
use crate::types::{Decided, Stale};

/// A reply, as far as all of them are alike.
pub(crate) enum Said<'a> {
    /// A single word.
    Word(&'a str),
    /// The shard is not what the caller takes it for.
    Stale(Stale),
    /// Something was done: the tip, the clock, and what else the script says.
    Done(Position, Millis, &'a [Value]),
}

pub(crate) fn word(value: &Value) -> Option<&str> {
    std::str::from_utf8(bytes(value)?).ok()
}

pub(crate) fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(parts) => Some(parts),
        _ => None,
    }
}

pub(crate) fn natural(value: &Value) -> Option<u64> {
    count(number(value)?)
}

pub(crate) fn hex(value: &Value) -> Option<u64> {
    from_hex(word(value)?)
}

pub(crate) fn said(reply: &Value) -> Option<Said<'_>> {
    let Value::Array(parts) = reply else {
        return Some(Said::Word(word(reply)?));
    };
    let (first, rest) = parts.split_first()?;
    let stale = |stale| Some(Said::Stale(stale));
    match (word(first)?, rest) {
        ("no_meta", []) => stale(Stale::NoMeta),
        ("damaged", []) => stale(Stale::Damaged),
        ("epoch", [found]) => stale(Stale::Epoch {
            found: natural(found)?,
        }),
        ("closed", [found]) => stale(Stale::Closed {
            found: natural(found)?,
        }),
        ("done", [epoch, seq, tag, clock, rest @ ..]) => {
            let tip = Position {
                epoch: natural(epoch)?,
                seq: natural(seq)?,
                tag: hex(tag)?,
            };
            Some(Said::Done(tip, number(clock)?, rest))
        }
        _ => None,
    }
}

/// A reply of something done, its own part read by `value`; or why the shard took nothing.
pub(crate) fn decided<T>(reply: &Value, value: impl FnOnce(&[Value]) -> Option<T>) -> Option<Decided<T>> {
    match said(reply)? {
        Said::Done(tip, at, rest) => Some(Decided::Done {
            tip,
            at,
            value: value(rest)?,
        }),
        Said::Stale(stale) => Some(Decided::Stale(stale)),
        Said::Word(_) => None,
    }
}

/// One of two words; a shard that is another one has not done it either.
pub(crate) fn whether(reply: &Value, yes: &str, no: &str) -> Option<bool> {
    match said(reply)? {
        Said::Word(found) if found == yes => Some(true),
        Said::Word(found) if found == no => Some(false),
        Said::Stale(_) => Some(false),
        _ => None,
    }
}

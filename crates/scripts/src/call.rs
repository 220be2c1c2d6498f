//! What every typed call has in common: it owns its keys, its arguments and the reading of its reply, so that none of
//! them is written a second time anywhere.

use redis::{Cmd, Value};

use crate::source::Script;

/// A typed call of one script.
pub trait Call {
    type Reply;

    /// The names of its keys and arguments, as the script's header has them.
    const KEYS: &'static [&'static str];
    const ARGS: &'static [&'static str];

    fn script() -> &'static Script;
    fn keys(&self) -> Vec<&str>;
    fn args(&self, to: &mut Args<'_>);
    /// `None` for a reply that the contract does not know.
    fn parse(reply: &Value) -> Option<Self::Reply>;
}

/// Takes a call's arguments and writes them into the command.
#[derive(Debug)]
pub struct Args<'a> {
    command: &'a mut Cmd,
    count: usize,
}

impl<'a> Args<'a> {
    pub fn new(command: &'a mut Cmd) -> Self {
        Self { command, count: 0 }
    }

    /// How many were written so far.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn number(&mut self, number: impl Into<i128>) -> &mut Self {
        let number: i128 = number.into();
        // Whatever does not fit is refused by the script, which names the range.
        match i64::try_from(number) {
            Ok(number) => self.command.arg(number),
            Err(_) => self.command.arg(number.to_string()),
        };
        self.count += 1;
        self
    }

    pub fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.command.arg(text.as_ref());
        self.count += 1;
        self
    }

    /// A number that the script's header calls optional. It has to come last.
    pub fn optional(&mut self, number: Option<impl Into<i128>>) -> &mut Self {
        if let Some(number) = number {
            self.number(number);
        }
        self
    }
}

/// The numbers of a reply: an integer, or a list of integers.
pub fn numbers(reply: &Value) -> Option<Vec<i64>> {
    match reply {
        Value::Int(number) => Some(vec![*number]),
        Value::Array(parts) => parts
            .iter()
            .map(|part| {
                if let Value::Int(number) = part {
                    Some(*number)
                } else {
                    None
                }
            })
            .collect(),
        _ => None,
    }
}

/// A reply that is a single integer.
pub fn number(reply: &Value) -> Option<i64> {
    if let Value::Int(number) = reply {
        Some(*number)
    } else {
        None
    }
}

/// A count in a reply, which cannot be negative.
pub fn count(number: i64) -> Option<u64> {
    u64::try_from(number).ok()
}

/// 0 or 1 in a reply.
pub fn flag(number: i64) -> Option<bool> {
    match number {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Text in a reply, which has to be UTF-8.
pub fn text(reply: &Value) -> Option<String> {
    bytes(reply).and_then(|bytes| String::from_utf8(bytes.to_vec()).ok())
}

/// Bytes of any kind in a reply.
pub fn bytes(reply: &Value) -> Option<&[u8]> {
    match reply {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.as_bytes()),
        _ => None,
    }
}

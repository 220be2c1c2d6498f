//! Taking units: from one stock, with a floor, with a version, with a sold counter, from many at once.

use redis::Value;

use super::{call, script};
use crate::call::{count, number, numbers, text};

script!(DEDUCT, "deduct");
script!(DEDUCT_FLOOR, "deduct_floor");
script!(DEDUCT_CAS, "deduct_cas");
script!(DEDUCT_SOLD, "deduct_sold");
script!(DEDUCT_MANY, "deduct_many");
script!(WARM, "warm");

/// Takes units from one stock, never below zero.
#[derive(Clone, Copy, Debug)]
pub struct Deduct<'a> {
    pub stock: &'a str,
    pub quantity: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Units left after it.
    Units(u64),
    Short,
    NoSuchKey,
}

call! {
    Deduct<'_>, DEDUCT => Left,
    keys ["stock"] |call| vec![call.stock],
    args ["quantity"] |call, to| to.number(call.quantity),
    reply |reply| match number(reply)? {
        -1 => Some(Left::Short),
        -2 => Some(Left::NoSuchKey),
        left => Some(Left::Units(count(left)?)),
    }
}

/// Takes units from one stock, never below a floor.
#[derive(Clone, Copy, Debug)]
pub struct DeductFloor<'a> {
    pub stock: &'a str,
    pub quantity: u64,
    pub floor: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloorReply {
    Done,
    WouldFallBelow,
    BadArgument,
    NoSuchKey,
}

call! {
    DeductFloor<'_>, DEDUCT_FLOOR => FloorReply,
    keys ["stock"] |call| vec![call.stock],
    args ["quantity", "floor"] |call, to| to.number(call.quantity).number(call.floor),
    reply |reply| match number(reply)? {
        1 => Some(FloorReply::Done),
        0 => Some(FloorReply::WouldFallBelow),
        -1 => Some(FloorReply::BadArgument),
        -2 => Some(FloorReply::NoSuchKey),
        _ => None,
    }
}

/// Takes units if nobody changed the stock since the caller read its version.
#[derive(Clone, Copy, Debug)]
pub struct DeductCas<'a> {
    pub stock: &'a str,
    pub version: &'a str,
    pub quantity: u64,
    pub expected: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasReply {
    /// Units left; the version is now the expected one plus 1.
    Units(u64),
    Short,
    NoSuchKey,
    Conflict,
}

call! {
    DeductCas<'_>, DEDUCT_CAS => CasReply,
    keys ["stock", "version"] |call| vec![call.stock, call.version],
    args ["quantity", "expected"] |call, to| to.number(call.quantity).number(call.expected),
    reply |reply| match number(reply)? {
        -1 => Some(CasReply::Short),
        -2 => Some(CasReply::NoSuchKey),
        -3 => Some(CasReply::Conflict),
        left => Some(CasReply::Units(count(left)?)),
    }
}

/// The language of a message for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    English,
    Chinese,
}

/// Takes units and counts them as sold.
#[derive(Clone, Copy, Debug)]
pub struct DeductSold<'a> {
    pub stock: &'a str,
    pub sold: &'a str,
    pub quantity: u64,
    pub language: Language,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SoldReply {
    Done { message: String, left: u64, sold: u64 },
    Short { message: String, left: i64, sold: i64 },
    NoSuchKey { message: String },
}

fn sold_reply(reply: &Value) -> Option<SoldReply> {
    let Value::Array(parts) = reply else { return None };
    match parts.as_slice() {
        [Value::Int(1), message, Value::Int(left), Value::Int(sold)] => Some(SoldReply::Done {
            message: text(message)?,
            left: count(*left)?,
            sold: count(*sold)?,
        }),
        [Value::Int(0), message, Value::Int(left), Value::Int(sold)] => Some(SoldReply::Short {
            message: text(message)?,
            left: *left,
            sold: *sold,
        }),
        [Value::Int(-1), message] => Some(SoldReply::NoSuchKey {
            message: text(message)?,
        }),
        _ => None,
    }
}

call! {
    DeductSold<'_>, DEDUCT_SOLD => SoldReply,
    keys ["stock", "sold"] |call| vec![call.stock, call.sold],
    args ["quantity", "language"] |call, to| to.number(call.quantity).text(match call.language {
        Language::English => "en",
        Language::Chinese => "zh",
    }),
    reply |reply| sold_reply(reply)
}

/// Takes units from several stocks, all or nothing.
#[derive(Clone, Debug)]
pub struct DeductMany<'a> {
    pub lines: Vec<(&'a str, u64)>,
}

/// Positions count from 1, as the keys do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManyReply {
    /// What each stock has now.
    Done(Vec<i64>),
    Short {
        position: u64,
        asked: u64,
        available: i64,
    },
    NoSuchKey {
        position: u64,
    },
}

fn many_reply(reply: &Value) -> Option<ManyReply> {
    match numbers(reply)?.as_slice() {
        [1, left @ ..] => Some(ManyReply::Done(left.to_vec())),
        &[-1, position, asked, available] => Some(ManyReply::Short {
            position: count(position)?,
            asked: count(asked)?,
            available,
        }),
        &[-2, position] => Some(ManyReply::NoSuchKey {
            position: count(position)?,
        }),
        _ => None,
    }
}

call! {
    DeductMany<'_>, DEDUCT_MANY => ManyReply,
    keys ["stocks"] |call| call.lines.iter().map(|line| line.0).collect(),
    args ["quantities"] |call, to| for line in &call.lines { to.number(line.1); },
    reply |reply| many_reply(reply)
}

/// Sets stocks that are not there yet.
#[derive(Clone, Debug)]
pub struct Warm<'a> {
    pub stocks: Vec<(&'a str, u64)>,
}

/// For each key whether it was set; `false`: it was there and stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmReply {
    pub set: Vec<bool>,
}

call! {
    Warm<'_>, WARM => WarmReply,
    keys ["stocks"] |call| call.stocks.iter().map(|one| one.0).collect(),
    args ["units"] |call, to| for one in &call.stocks { to.number(one.1); },
    reply |reply| {
        let (total, flags) = numbers(reply)?.split_first().map(|(total, flags)| (*total, flags.to_vec()))?;
        let set = flags.into_iter().map(crate::call::flag).collect::<Option<Vec<bool>>>()?;
        (set.iter().filter(|one| **one).count() as u64 == count(total)?).then_some(WarmReply { set })
    }
}

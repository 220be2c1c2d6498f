//! Taking and giving back by order id, so that sending a call again does no harm.

use super::{call, script};
use crate::call::{count, flag, numbers};

script!(DEDUCT_ONCE, "deduct_once");
script!(RESTORE, "restore");

/// As `Deduct`, once per order.
#[derive(Clone, Copy, Debug)]
pub struct DeductOnce<'a> {
    pub stock: &'a str,
    /// The key that remembers the order; [`companion`](crate::keys::companion) puts it into the stock's slot.
    pub order: &'a str,
    pub quantity: u64,
    /// How long the order is remembered.
    pub keep_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceReply {
    Done {
        left: u64,
        replayed: bool,
    },
    /// Not remembered: a later try may succeed.
    Short,
    NoSuchKey,
    OtherQuantity,
    GivenBack,
}

call! {
    DeductOnce<'_>, DEDUCT_ONCE => OnceReply,
    keys ["stock", "order"] |call| vec![call.stock, call.order],
    args ["quantity", "keep"] |call, to| to.number(call.quantity).number(call.keep_ms),
    reply |reply| match *numbers(reply)?.as_slice() {
        [-1, 0] => Some(OnceReply::Short),
        [-2, 0] => Some(OnceReply::NoSuchKey),
        [-4, 0] => Some(OnceReply::OtherQuantity),
        [-6, 0] => Some(OnceReply::GivenBack),
        [left, replayed] => Some(OnceReply::Done { left: count(left)?, replayed: flag(replayed)? }),
        _ => None,
    }
}

/// What to do about an order of which nothing is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownOrder {
    /// It may never have taken anything.
    Refuse,
    /// The caller knows that it did, by `deduct` for example.
    Give,
}

/// Gives units back, once per order.
#[derive(Clone, Copy, Debug)]
pub struct Restore<'a> {
    pub stock: &'a str,
    pub order: &'a str,
    pub quantity: u64,
    pub keep_ms: u64,
    pub unknown: UnknownOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreReply {
    Done { left: u64, replayed: bool },
    NoSuchKey,
    OtherQuantity,
    UnknownOrder,
}

call! {
    Restore<'_>, RESTORE => RestoreReply,
    keys ["stock", "order"] |call| vec![call.stock, call.order],
    args ["quantity", "keep", "unknown"] |call, to| to.number(call.quantity).number(call.keep_ms).text(
        match call.unknown {
            UnknownOrder::Refuse => "refuse",
            UnknownOrder::Give => "give",
        }
    ),
    reply |reply| match *numbers(reply)?.as_slice() {
        [-2, 0] => Some(RestoreReply::NoSuchKey),
        [-4, 0] => Some(RestoreReply::OtherQuantity),
        [-5, 0] => Some(RestoreReply::UnknownOrder),
        [left, replayed] => Some(RestoreReply::Done { left: count(left)?, replayed: flag(replayed)? }),
        _ => None,
    }
}

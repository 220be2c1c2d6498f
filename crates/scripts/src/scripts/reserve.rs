//! Holding units for an order until it is paid: reserve, then confirm or release; holds that run out are let go.

use super::{call, script};
use crate::call::{count, flag, numbers};
use crate::keys::{KeyError, companion};

script!(RESERVE, "reserve");
script!(CONFIRM, "confirm");
script!(RELEASE, "release");
script!(RELEASE_DUE, "release_due");

/// The keys of one stock with reservations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldKeys {
    pub stock: String,
    pub reserved: String,
    pub orders: String,
    pub ends: String,
}

impl HoldKeys {
    /// `stock:1001` with `{stock:1001}:reserved`, `:orders` and `:ends`.
    pub fn of(stock: &str) -> Result<Self, KeyError> {
        Ok(Self {
            stock: stock.to_owned(),
            reserved: companion(stock, "reserved")?,
            orders: companion(stock, "orders")?,
            ends: companion(stock, "ends")?,
        })
    }

    fn all(&self) -> Vec<&str> {
        vec![&self.stock, &self.reserved, &self.orders, &self.ends]
    }

    fn without_stock(&self) -> Vec<&str> {
        vec![&self.reserved, &self.orders, &self.ends]
    }
}

/// Holds units for an order until its end.
#[derive(Clone, Copy, Debug)]
pub struct Reserve<'a> {
    pub keys: &'a HoldKeys,
    pub order: &'a str,
    pub quantity: u64,
    pub ttl_ms: u64,
    /// How long the order is remembered after it was sold, released or ran out.
    pub keep_ms: u64,
    /// The server's clock unless a test passes its own.
    pub now_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveReply {
    Held {
        available: u64,
        replayed: bool,
        ends_at_ms: u64,
    },
    Short {
        available: u64,
    },
    NoSuchKey,
    OtherQuantity,
    /// Released or run out.
    Over,
    /// More than a thousand holds have run out and are being freed: send it again.
    Again,
}

call! {
    Reserve<'_>, RESERVE => ReserveReply,
    keys ["stock", "reserved", "orders", "ends"] |call| call.keys.all(),
    args ["order", "quantity", "ttl", "keep", "now"] |call, to|
        to.text(call.order).number(call.quantity).number(call.ttl_ms).number(call.keep_ms).optional(call.now_ms),
    reply |reply| match *numbers(reply)?.as_slice() {
        [-1, available, 0] => Some(ReserveReply::Short { available: count(available)? }),
        [-2, 0, 0] => Some(ReserveReply::NoSuchKey),
        [-4, 0, 0] => Some(ReserveReply::OtherQuantity),
        [-6, 0, 0] => Some(ReserveReply::Over),
        [-8, 0, 0] => Some(ReserveReply::Again),
        [available, replayed, ends_at] => Some(ReserveReply::Held {
            available: count(available)?,
            replayed: flag(replayed)?,
            ends_at_ms: count(ends_at)?,
        }),
        _ => None,
    }
}

/// Turns an order's hold into a sale.
#[derive(Clone, Copy, Debug)]
pub struct Confirm<'a> {
    pub keys: &'a HoldKeys,
    pub order: &'a str,
    pub now_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmReply {
    Sold {
        quantity: u64,
        replayed: bool,
    },
    /// The stock was lowered past this hold by other means.
    Short,
    NoSuchKey,
    UnknownOrder,
    Over,
}

call! {
    Confirm<'_>, CONFIRM => ConfirmReply,
    keys ["stock", "reserved", "orders", "ends"] |call| call.keys.all(),
    args ["order", "now"] |call, to| to.text(call.order).optional(call.now_ms),
    reply |reply| match *numbers(reply)?.as_slice() {
        [-1, 0] => Some(ConfirmReply::Short),
        [-2, 0] => Some(ConfirmReply::NoSuchKey),
        [-5, 0] => Some(ConfirmReply::UnknownOrder),
        [-6, 0] => Some(ConfirmReply::Over),
        [quantity, replayed] => {
            Some(ConfirmReply::Sold { quantity: count(quantity)?, replayed: flag(replayed)? })
        }
        _ => None,
    }
}

/// Lets an order's hold go.
#[derive(Clone, Copy, Debug)]
pub struct Release<'a> {
    pub keys: &'a HoldKeys,
    pub order: &'a str,
    pub now_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseReply {
    /// `replayed`: it was released before, or had run out.
    Released {
        quantity: u64,
        replayed: bool,
    },
    UnknownOrder,
    Sold,
}

call! {
    Release<'_>, RELEASE => ReleaseReply,
    keys ["reserved", "orders", "ends"] |call| call.keys.without_stock(),
    args ["order", "now"] |call, to| to.text(call.order).optional(call.now_ms),
    reply |reply| match *numbers(reply)?.as_slice() {
        [-5, 0] => Some(ReleaseReply::UnknownOrder),
        [-9, 0] => Some(ReleaseReply::Sold),
        [quantity, replayed] => {
            Some(ReleaseReply::Released { quantity: count(quantity)?, replayed: flag(replayed)? })
        }
        _ => None,
    }
}

/// Lets go of holds that have run out and forgets old orders. Send it again while `more` is set.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseDue<'a> {
    pub keys: &'a HoldKeys,
    pub limit: u64,
    pub now_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseDueReply {
    pub released: u64,
    pub units: u64,
    pub forgotten: u64,
    pub more: bool,
}

call! {
    ReleaseDue<'_>, RELEASE_DUE => ReleaseDueReply,
    keys ["reserved", "orders", "ends"] |call| call.keys.without_stock(),
    args ["limit", "now"] |call, to| to.number(call.limit).optional(call.now_ms),
    reply |reply| match *numbers(reply)?.as_slice() {
        [released, units, forgotten, more] => Some(ReleaseDueReply {
            released: count(released)?,
            units: count(units)?,
            forgotten: count(forgotten)?,
            more: flag(more)?,
        }),
        _ => None,
    }
}

//! A sale in which every user may buy once, or so many times.

use super::{call, script};
use crate::call::{count, flag, numbers};
use crate::keys::{KeyError, companion};

script!(SECKILL, "seckill");
script!(SECKILL_RESTORE, "seckill_restore");

/// The keys of one sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaleKeys {
    pub stock: String,
    pub buyers: String,
    pub orders: String,
}

impl SaleKeys {
    /// `stock:1001` with `{stock:1001}:buyers` and `{stock:1001}:sale`.
    pub fn of(stock: &str) -> Result<Self, KeyError> {
        Ok(Self {
            stock: stock.to_owned(),
            buyers: companion(stock, "buyers")?,
            orders: companion(stock, "sale")?,
        })
    }

    fn all(&self) -> Vec<&str> {
        vec![&self.stock, &self.buyers, &self.orders]
    }
}

/// One unit for a user who has not had his share.
#[derive(Clone, Copy, Debug)]
pub struct Seckill<'a> {
    pub keys: &'a SaleKeys,
    pub order: &'a str,
    pub user: &'a str,
    /// How often one user may buy.
    pub limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeckillReply {
    Bought { left: u64, times: u64, replayed: bool },
    SoldOut { times: u64 },
    NoSuchKey,
    OtherUsersOrder,
    GivenBack,
    Duplicate { times: u64 },
}

call! {
    Seckill<'_>, SECKILL => SeckillReply,
    keys ["stock", "buyers", "orders"] |call| call.keys.all(),
    args ["order", "user", "limit"] |call, to| to.text(call.order).text(call.user).number(call.limit),
    reply |reply| match *numbers(reply)?.as_slice() {
        [-1, times, 0] => Some(SeckillReply::SoldOut { times: count(times)? }),
        [-2, 0, 0] => Some(SeckillReply::NoSuchKey),
        [-4, 0, 0] => Some(SeckillReply::OtherUsersOrder),
        [-6, 0, 0] => Some(SeckillReply::GivenBack),
        [-7, times, 0] => Some(SeckillReply::Duplicate { times: count(times)? }),
        [left, times, replayed] => Some(SeckillReply::Bought {
            left: count(left)?,
            times: count(times)?,
            replayed: flag(replayed)?,
        }),
        _ => None,
    }
}

/// Gives an order's unit back to the sale, and the right to buy to its user.
#[derive(Clone, Copy, Debug)]
pub struct SeckillRestore<'a> {
    pub keys: &'a SaleKeys,
    pub order: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeckillRestoreReply {
    Done { left: u64, times: u64, replayed: bool },
    NoSuchKey,
    UnknownOrder,
}

call! {
    SeckillRestore<'_>, SECKILL_RESTORE => SeckillRestoreReply,
    keys ["stock", "buyers", "orders"] |call| call.keys.all(),
    args ["order"] |call, to| to.text(call.order),
    reply |reply| match *numbers(reply)?.as_slice() {
        [-2, 0, 0] => Some(SeckillRestoreReply::NoSuchKey),
        [-5, 0, 0] => Some(SeckillRestoreReply::UnknownOrder),
        [left, times, replayed] => Some(SeckillRestoreReply::Done {
            left: count(left)?,
            times: count(times)?,
            replayed: flag(replayed)?,
        }),
        _ => None,
    }
}

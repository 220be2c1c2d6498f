//! The typed calls of the scripts that decide.

use redis::Value;
use stockade_scripts::Args;

use super::shapes::Sending;
use crate::control::reply::{decided, natural};
use crate::layout::{Keys, hex};
use crate::packed::pack_reservation;
use crate::script::{Contract, call, contract, script};
use crate::types::{Decided, Rerun, Sent};

script!(RESERVE, "reserve");
script!(CONFIRM, "confirm");
script!(CANCEL, "cancel");
script!(EXTEND, "extend");
script!(RETURN, "return");
script!(STOCK, "stock");
script!(SHOW, "show");
script!(SWEEP, "sweep");
script!(RERUN, "rerun");

/// Every part of a shard that a decision may touch.
#[derive(Debug)]
pub(super) struct Parts([String; 9]);

impl Parts {
    pub(super) fn new(keys: &Keys, epoch: u64) -> Self {
        let part = |name| keys.part(epoch, name);
        Self([
            keys.meta(),
            part("reservations"),
            part("returns"),
            part("commands"),
            part("ends"),
            part("usage"),
            part("markers"),
            part("ended"),
            part("outbox"),
        ])
    }

    fn all(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }
}

/// What came of a batch, unread.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) wrote: bool,
    pub(super) replies: Vec<Value>,
}

fn raw(reply: &Value) -> Option<Decided<Raw>> {
    decided(reply, |rest| {
        let (wrote, replies) = rest.split_first()?;
        Some(Raw {
            wrote: natural(wrote)? == 1,
            replies: replies.to_vec(),
        })
    })
}

fn sent(sent: &Sent, to: &mut Args<'_>) {
    to.number(sent.epoch).text(hex(sent.tag));
    match sent.now {
        Some(now) => to.number(now),
        None => to.text(""),
    };
}

/// A merged batch of one kind.
#[derive(Debug)]
pub(super) struct Merged<'a> {
    pub(super) parts: Parts,
    pub(super) sent: &'a Sent,
    pub(super) sending: Sending<'a>,
}

impl Merged<'_> {
    fn args(&self, to: &mut Args<'_>) {
        sent(self.sent, to);
        to.text(&self.sending.shapes);
        for text in &self.sending.texts {
            to.text(text);
        }
    }
}

macro_rules! merged {
    ($($name:ident $script:ident),*) => {
        $(
            pub(super) struct $name<'a>(pub(super) &'a Merged<'a>);
            call! {
                $name<'_>, $script => Decided<Raw>,
                keys ["meta", "reservations", "returns", "commands", "ends", "usage", "markers", "ended", "outbox"]
                    |call| call.0.parts.all(),
                args ["epoch", "tag", "now", "shapes", "commands"] |call, to| call.0.args(to),
                reply |reply| raw(reply)
            }
        )*
    };
}

merged!(Reserve RESERVE, Confirm CONFIRM, Cancel CANCEL, Extend EXTEND, Return RETURN, Stock STOCK, Show SHOW);

pub(super) struct Sweep<'a> {
    pub(super) parts: Parts,
    pub(super) sent: &'a Sent,
    pub(super) limit: usize,
}

call! {
    Sweep<'_>, SWEEP => Decided<Raw>,
    keys ["meta", "reservations", "returns", "commands", "ends", "usage", "markers", "ended", "outbox"]
        |call| call.parts.all(),
    args ["epoch", "tag", "now", "limit"] |call, to| {
        sent(call.sent, to);
        to.number(call.limit as u64);
    },
    reply |reply| raw(reply)
}

pub(super) struct Again<'a> {
    pub(super) parts: Parts,
    pub(super) sent: &'a Sent,
    pub(super) changes: &'a [Rerun],
}

call! {
    Again<'_>, RERUN => Decided<Raw>,
    keys ["meta", "reservations", "returns", "commands", "ends", "usage", "markers", "ended", "outbox"]
        |call| call.parts.all(),
    args ["epoch", "tag", "now", "changes"] |call, to| {
        sent(call.sent, to);
        for one in call.changes {
            let letter = match one {
                Rerun::Reserve(_) => "R",
                Rerun::Regain(_) => "L",
                Rerun::Extend(_) => "E",
                Rerun::Cancel(_) => "X",
            };
            let reservation = one.reservation();
            to.text(letter)
                .text(crate::layout::name(&reservation.tenant, &reservation.id))
                .text(pack_reservation(reservation, 0));
        }
    },
    reply |reply| raw(reply)
}

pub(super) fn contracts() -> Vec<Contract> {
    vec![
        contract::<Reserve<'_>>(),
        contract::<Confirm<'_>>(),
        contract::<Cancel<'_>>(),
        contract::<Extend<'_>>(),
        contract::<Return<'_>>(),
        contract::<Stock<'_>>(),
        contract::<Show<'_>>(),
        contract::<Sweep<'_>>(),
        contract::<Again<'_>>(),
    ]
}

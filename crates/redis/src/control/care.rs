//! Ended ids leave the node once they are recorded, within a time and a budget; from then on the ledger is asked.

use super::reply::{decided, natural};
use crate::error::CallError;
use crate::hot::Hot;
use crate::script::{call, script};
use crate::types::{Decided, Forgot, KeptIds, Sent};

script!(FORGET, "forget");

struct Forget {
    keys: [String; 5],
    epoch: u64,
    kept: KeptIds,
}

call! {
    Forget, FORGET => Decided<Forgot>,
    keys ["meta", "reservations", "returns", "commands", "ended"] |call| {
        call.keys.iter().map(String::as_str).collect()
    },
    args ["epoch", "recorded", "older_than", "keep", "keep_bytes", "limit"] |call, to| to
        .number(call.epoch)
        .number(bounded(call.kept.recorded))
        .number(call.kept.older_than.max(0))
        .number(bounded(call.kept.keep))
        .number(bounded(call.kept.keep_bytes))
        .number(call.kept.limit.max(1) as u64),
    reply |reply| decided(reply, |rest| match rest {
        [forgotten, ended, bytes, more] => Some(Forgot {
            forgotten: natural(forgotten)?,
            ended: natural(ended)?,
            bytes: natural(bytes)?,
            more: natural(more)? == 1,
        }),
        _ => None,
    })
}

// "No bound" may be written as the largest number there is; Lua's ends earlier.
fn bounded(number: u64) -> u64 {
    number.min(stockade_core::QUANTITY_MAX)
}

pub(super) fn contracts() -> Vec<crate::script::Contract> {
    vec![crate::script::contract::<Forget>()]
}

impl Hot {
    /// Forgets ended ids, oldest first.
    pub async fn forget(&self, sent: &Sent, kept: &KeptIds) -> Result<Decided<Forgot>, CallError> {
        let (keys, epoch) = (self.keys(), sent.epoch);
        let call = Forget {
            keys: [
                keys.meta(),
                keys.part(epoch, "reservations"),
                keys.part(epoch, "returns"),
                keys.part(epoch, "commands"),
                keys.part(epoch, "ended"),
            ],
            epoch,
            kept: *kept,
        };
        self.run_control(&call).await
    }
}

//! A rebuild, as far as the node goes: fence, survivors, base, chunks, open, and the old epochs' keys away. Who may do
//! it is decided in the ledger.

use redis::Value;

use super::outbox::Raw;
use super::reply::{decided, list, natural, whether, word};
use crate::error::CallError;
use crate::hot::Hot;
use crate::layout;
use crate::script::{call, script};
use crate::types::{Base, Decided, Fenced, Survivor};

script!(FENCE, "fence");
script!(BASE, "base");
script!(OPEN, "open");
script!(SURVIVORS, "survivors");

/// Survivors in one reply.
const SURVIVORS_IN_A_REPLY: u64 = 500;

struct Fence {
    meta: String,
    epochs: String,
    epoch: u64,
}

call! {
    Fence, FENCE => Fenced,
    keys ["meta", "epochs"] |call| vec![&call.meta, &call.epochs],
    args ["epoch"] |call, to| to.number(call.epoch),
    reply |reply| match reply {
        Value::Array(parts) => match parts.as_slice() {
            [state, _] if word(state) == Some("closed") => Some(Fenced::Closed),
            [state, found] if word(state) == Some("refused") => Some(Fenced::Refused { found: natural(found)? }),
            _ => None,
        },
        _ => None,
    }
}

struct SetBase {
    meta: String,
    base: Base,
}

call! {
    SetBase, BASE => bool,
    keys ["meta"] |call| vec![&call.meta],
    args ["epoch", "seq", "tag", "clock"] |call, to| to
        .number(call.base.at.epoch)
        .number(call.base.at.seq)
        .text(layout::hex(call.base.at.tag))
        .number(call.base.clock.max(0)),
    reply |reply| whether(reply, "set", "other")
}

struct Open {
    meta: String,
    reservations: String,
    epoch: u64,
    chunks: u64,
}

call! {
    Open, OPEN => bool,
    keys ["meta", "reservations"] |call| vec![&call.meta, &call.reservations],
    args ["epoch", "chunks"] |call, to| to.number(call.epoch).number(call.chunks),
    reply |reply| whether(reply, "open", "other")
}

struct Survivors {
    meta: String,
    epochs: String,
    epoch: u64,
    // Where to go on.
    older: u64,
    from: u64,
}

struct Page {
    next: Option<(u64, u64)>,
    entries: Vec<Value>,
}

call! {
    Survivors, SURVIVORS => Decided<Page>,
    keys ["meta", "epochs"] |call| vec![&call.meta, &call.epochs],
    args ["epoch", "older", "from", "count"] |call, to| to
        .number(call.epoch)
        .number(call.older)
        .number(call.from)
        .number(SURVIVORS_IN_A_REPLY),
    reply |reply| decided(reply, |rest| match rest {
        [more, older, from, entries] => Some(Page {
            next: if natural(more)? == 1 { Some((natural(older)?, natural(from)?)) } else { None },
            entries: list(entries)?.to_vec(),
        }),
        _ => None,
    })
}

pub(super) fn contracts() -> Vec<crate::script::Contract> {
    use crate::script::contract;
    vec![
        contract::<Fence>(),
        contract::<SetBase>(),
        contract::<Open>(),
        contract::<Survivors>(),
    ]
}

impl Hot {
    /// Closes the node under an epoch, if its own is lower or it has none.
    pub async fn fence(&self, epoch: u64) -> Result<Fenced, CallError> {
        let (meta, epochs) = (self.keys().meta(), self.keys().epochs());
        self.run_control(&Fence { meta, epochs, epoch }).await
    }

    /// Entries of all older epochs that the fenced node still has, oldest first. They are soft promises, so one that
    /// cannot be read (somebody wrote into the outbox) is reported in the log and passed over.
    pub async fn survivors(&self, epoch: u64) -> Result<Decided<Vec<Survivor>>, CallError> {
        let mut found = Vec::new();
        let mut next = (0, 0);
        loop {
            let call = Survivors {
                meta: self.keys().meta(),
                epochs: self.keys().epochs(),
                epoch,
                older: next.0,
                from: next.1,
            };
            let (tip, at, page) = match self.run_control(&call).await? {
                Decided::Stale(stale) => return Ok(Decided::Stale(stale)),
                Decided::Done { tip, at, value } => (tip, at, value),
            };
            for value in &page.entries {
                match Raw::of(value).map(|raw| raw.entry(self.shard())) {
                    Some(Ok(entry)) => found.push(Survivor { entry }),
                    Some(Err(error)) => tracing::warn!(%error, "an entry that survived cannot be read"),
                    None => tracing::warn!(?value, "an entry that survived cannot be read"),
                }
            }
            match page.next {
                Some(more) => next = more,
                None => {
                    return Ok(Decided::Done {
                        tip,
                        at,
                        value: found,
                    });
                }
            }
        }
    }

    /// Sets where the epoch starts; the node must be fenced at it with nothing loaded.
    pub async fn base(&self, base: &Base) -> Result<bool, CallError> {
        let (meta, base) = (self.keys().meta(), *base);
        self.run_control(&SetBase { meta, base }).await
    }

    /// Opens for commands, if exactly so many chunks are in.
    pub async fn open(&self, epoch: u64, chunks: u64) -> Result<bool, CallError> {
        let call = Open {
            meta: self.keys().meta(),
            reservations: self.keys().part(epoch, "reservations"),
            epoch,
            chunks,
        };
        self.run_control(&call).await
    }
}

//! The outbox: what was decided and is not recorded yet.

use redis::Value;
use stockade_core::{Entry, Position};
use stockade_scripts::call::bytes;

use super::reply::{decided, hex, list, natural, whether, word};
use crate::error::CallError;
use crate::hot::Hot;
use crate::layout;
use crate::packed::unpack_entry;
use crate::script::{call, script};
use crate::types::{Backlog, Decided};

script!(READ, "read");
script!(TRIM, "trim");
script!(BACKLOG, "backlog");

/// An entry as the stream has it.
pub(crate) struct Raw {
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
    tag: u64,
    prev: u64,
    packed: Vec<u8>,
}

impl Raw {
    /// `[id, [field, value, ...]]`, as XRANGE gives it.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let [id, fields] = list(value)? else { return None };
        let fields = list(fields)?;
        let (epoch, seq) = word(id)?.split_once('-')?;
        let field = |name: &str| {
            let mut pairs = fields.chunks_exact(2);
            pairs.find_map(|pair| match pair {
                [key, value] if word(key) == Some(name) => Some(value),
                _ => None,
            })
        };
        Some(Self {
            epoch: layout::number(epoch)?,
            seq: layout::number(seq)?,
            tag: hex(field("tag")?)?,
            prev: hex(field("prev")?)?,
            packed: bytes(field("e")?)?.to_vec(),
        })
    }

    /// The entry, whole.
    pub(crate) fn entry(&self, shard: u32) -> Result<Entry, CallError> {
        let (epoch, seq) = (self.epoch, self.seq);
        unpack_entry(shard, epoch, seq, self.tag, self.prev, &self.packed).ok_or_else(|| {
            CallError::Unreadable {
                place: format!("entry {epoch}-{seq} of the outbox"),
                message: "not an entry that this release writes".to_owned(),
            }
        })
    }
}

struct Read {
    meta: String,
    outbox: String,
    epoch: u64,
    from: u64,
    count: usize,
}

struct Part {
    base: Position,
    raws: Vec<Raw>,
}

call! {
    Read, READ => Decided<Part>,
    keys ["meta", "outbox"] |call| vec![&call.meta, &call.outbox],
    args ["epoch", "from", "count"] |call, to| to.number(call.epoch).number(call.from).number(call.count as u64),
    reply |reply| decided(reply, |rest| match rest {
        [seq, tag, entries] => Some(Part {
            base: Position { epoch: 0, seq: natural(seq)?, tag: hex(tag)? },
            raws: list(entries)?.iter().map(Raw::of).collect::<Option<_>>()?,
        }),
        _ => None,
    })
}

struct Trim {
    meta: String,
    outbox: String,
    at: Position,
}

call! {
    Trim, TRIM => bool,
    keys ["meta", "outbox"] |call| vec![&call.meta, &call.outbox],
    args ["epoch", "seq", "tag"] |call, to| to
        .number(call.at.epoch)
        .number(call.at.seq)
        .text(layout::hex(call.at.tag)),
    reply |reply| whether(reply, "trimmed", "other")
}

struct Lying {
    meta: String,
    outbox: String,
    epoch: u64,
}

call! {
    Lying, BACKLOG => Decided<Backlog>,
    keys ["meta", "outbox"] |call| vec![&call.meta, &call.outbox],
    args ["epoch"] |call, to| to.number(call.epoch),
    reply |reply| decided(reply, |rest| match rest {
        [entries, bytes] => Some(Backlog { entries: natural(entries)?, bytes: natural(bytes)? }),
        _ => None,
    })
}

pub(super) fn contracts() -> Vec<crate::script::Contract> {
    use crate::script::contract;
    vec![contract::<Read>(), contract::<Trim>(), contract::<Lying>()]
}

impl Hot {
    /// Entries from `from` on, inclusive (the base that trimming kept stands in for the first when it has that seq), at
    /// most `count`. The caller checks tags: the first must be what the ledger has, each further one names the one
    /// before. The base has no effects, and neither `prev` nor `at`.
    pub async fn read(&self, epoch: u64, from: u64, count: usize) -> Result<Decided<Vec<Entry>>, CallError> {
        let call = Read {
            meta: self.keys().meta(),
            outbox: self.keys().part(epoch, "outbox"),
            epoch,
            from,
            count,
        };
        let (tip, at, part) = match self.run_control(&call).await? {
            Decided::Stale(stale) => return Ok(Decided::Stale(stale)),
            Decided::Done { tip, at, value } => (tip, at, value),
        };
        let mut value = Vec::with_capacity(part.raws.len() + 1);
        if part.base.seq == from {
            value.push(Entry {
                shard: self.shard(),
                epoch,
                seq: part.base.seq,
                tag: part.base.tag,
                prev: 0,
                at: 0,
                effects: Vec::new(),
            });
        }
        for raw in &part.raws {
            value.push(raw.entry(self.shard())?);
        }
        value.truncate(count);
        Ok(Decided::Done { tip, at, value })
    }

    /// Trims up to and including an entry, which is kept as base; nothing happens unless that entry has that tag.
    pub async fn trim(&self, at: Position) -> Result<bool, CallError> {
        let (meta, outbox) = (self.keys().meta(), self.keys().part(at.epoch, "outbox"));
        self.run_control(&Trim { meta, outbox, at }).await
    }

    /// What lies in the outbox.
    pub async fn backlog(&self, epoch: u64) -> Result<Decided<Backlog>, CallError> {
        let (meta, outbox) = (self.keys().meta(), self.keys().part(epoch, "outbox"));
        self.run_control(&Lying { meta, outbox, epoch }).await
    }
}

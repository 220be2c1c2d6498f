//! What a node does while its shard is rebuilt: fence, base, chunks, the run of survivors, opening; and what goes after.

use crate::rules::Rule;
use crate::state::{Epoch, Held, IDS, Known, Meta, Op, Position, Reply, Sku, Status, Tag, World};

impl World {
    pub(crate) fn fence(&mut self, node: usize, epoch: u8) -> Reply {
        let n = &mut self.nodes[node];
        if n.meta.is_some_and(|m| m.epoch >= epoch) {
            return Reply::No;
        }
        let stream = std::mem::take(&mut n.stream);
        n.old.extend(stream);
        n.sku = None;
        n.marker = None;
        n.held = [None; IDS];
        n.meta = Some(Meta {
            epoch,
            open: false,
            based: false,
            chunks: 0,
            seq: 0,
            tag: 0,
            base_seq: 0,
            base_tag: 0,
            forgot: 0,
            filter: 0,
        });
        Reply::Yes
    }

    pub(crate) fn base(&mut self, node: usize, at: Position, filter: u8) -> Result<Reply, Reply> {
        let mut meta = self.admits(node, at.epoch, false)?;
        if meta.based || meta.chunks > 0 {
            return Ok(Reply::No);
        }
        meta.based = true;
        meta.seq = at.seq;
        meta.tag = at.tag;
        meta.base_seq = at.seq;
        meta.base_tag = at.tag;
        meta.forgot = at.seq;
        meta.filter = filter;
        self.nodes[node].meta = Some(meta);
        Ok(Reply::Yes)
    }

    pub(crate) fn chunk(
        &mut self,
        node: usize,
        epoch: u8,
        number: u8,
        sku: Option<Sku>,
        live: [Option<u8>; IDS],
    ) -> Result<Reply, Reply> {
        let mut meta = self.admits(node, epoch, false)?;
        if !meta.based || (self.rules.has(Rule::StrictChunks) && meta.chunks + 1 != number) {
            return Ok(Reply::No);
        }
        meta.chunks = number;
        let seq = meta.base_seq;
        let n = &mut self.nodes[node];
        n.meta = Some(meta);
        if sku.is_some() {
            n.sku = sku;
        }
        for (held, end) in n.held.iter_mut().zip(live) {
            if let Some(end) = end {
                *held = Some(Held {
                    status: Status::Pending,
                    end,
                    seq,
                });
            }
        }
        Ok(Reply::Yes)
    }

    /// Does surviving grants and extends again; what no longer fits is lost.
    pub(crate) fn rerun(
        &mut self,
        node: usize,
        epoch: u8,
        tag: Tag,
        again: &[(Op, Known)],
        covers: &[Tag],
    ) -> Result<Reply, Reply> {
        let mut meta = self.admits(node, epoch, false)?;
        // A missing SKU is no reason to call a grant lost: the rebuild is not what it takes itself for.
        let torn = self.rules.has(Rule::RerunSku) && self.nodes[node].sku.is_none();
        if meta.chunks != 2 || torn {
            return Ok(Reply::No);
        }
        // It counts like a chunk, so that a node that loses it cannot be opened.
        meta.chunks += u8::from(self.rules.has(Rule::RerunCounted));
        let mut over = self.overlay(node);
        over.free_due(self.clock);
        for (op, known) in again {
            if self.rules.has(Rule::RerunEnds) {
                over.free_due(self.clock);
            }
            over.born = op.born;
            let held = over.held[op.id].map(|h| h.status);
            let status = match (held, known.status) {
                (Some(status), _) => status,
                // A live one that is not here was ended by this very script, or its chunk is missing.
                (None, ended) if self.rules.has(Rule::RerunLookUp) => ended,
                (None, _) => Status::Absent,
            };
            match status {
                Status::Pending if held.is_some() && op.after == Status::Cancelled => {
                    over.change(op.id, (Status::Cancelled, 0));
                }
                Status::Absent if op.before != Status::Pending => {
                    let fits = over.sku.is_some_and(|s| s.on_hand > s.reserved);
                    let after = if fits {
                        (Status::Pending, op.end)
                    } else {
                        (Status::Lost, 0)
                    };
                    over.change(op.id, after);
                    self.reported[op.id] |= !fits;
                }
                Status::Pending if op.before == Status::Pending && held.is_some() => {
                    over.change(op.id, (Status::Pending, op.end));
                }
                _ => {}
            }
        }
        over.free_due(self.clock);
        self.write(node, meta, tag, over);
        self.nodes[node].covered.extend(covers);
        Ok(Reply::Yes)
    }

    pub(crate) fn open(&mut self, node: usize, epoch: u8, chunks: u8) -> Result<Reply, Reply> {
        let mut meta = self.admits(node, epoch, false)?;
        if meta.chunks != chunks {
            return Ok(Reply::No);
        }
        meta.open = true;
        self.nodes[node].meta = Some(meta);
        Ok(Reply::Yes)
    }

    /// Removes the entries of older epochs.
    pub(crate) fn drop_older(&mut self, node: usize, epoch: Epoch) -> bool {
        if self.admits(node, epoch, true).is_err() || self.nodes[node].old.is_empty() {
            return false;
        }
        let old = std::mem::take(&mut self.nodes[node].old);
        for entry in &old {
            let recorded = self.ledger.entries.contains(&entry.at);
            if !recorded && !self.nodes[node].covered.contains(&entry.at.tag) {
                self.fail(
                    7,
                    "an entry of an older epoch was dropped that is neither recorded nor run again",
                );
            }
        }
        true
    }
}

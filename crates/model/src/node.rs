//! What the scripts do on a node. Each is one step: it happens whole or not at all.

use crate::decide::{Overlay, decide};
use crate::rules::Rule;
use crate::state::{Body, Entry, Item, Meta, Position, Reply, Sku, Status, Tag, World};

impl Meta {
    pub(crate) fn tip(&self) -> Position {
        Position {
            epoch: self.epoch,
            seq: self.seq,
            tag: self.tag,
        }
    }
}

impl World {
    /// Whether a node's chain holds this entry, or holds its base beyond it.
    pub(crate) fn on_chain(&self, node: usize, at: Position) -> bool {
        let node = &self.nodes[node];
        let Some(meta) = node.meta else { return false };
        if meta.epoch != at.epoch || at.seq > meta.seq {
            return false;
        }
        // Only what is recorded becomes the base, so anything before it is on this chain as well.
        at.seq < meta.base_seq
            || (at.seq == meta.base_seq && at.tag == meta.base_tag)
            || node.stream.iter().any(|e| e.at == at)
    }

    pub(crate) fn overlay(&self, node: usize) -> Overlay {
        Overlay {
            sku: self.nodes[node].sku,
            held: self.nodes[node].held,
            ops: Vec::new(),
            born: self.fresh,
        }
    }

    /// Appends the entry, then writes the overlay.
    pub(crate) fn write(&mut self, node: usize, mut meta: Meta, tag: Tag, mut over: Overlay) -> Meta {
        if !over.ops.is_empty() {
            let prev = meta.tag;
            meta.seq += 1;
            meta.tag = tag;
            for op in &over.ops {
                if let Some(held) = &mut over.held[op.id] {
                    held.seq = meta.seq;
                }
            }
            let entry = Entry {
                at: meta.tip(),
                prev,
                ops: over.ops,
                after: over.sku,
            };
            self.log
                .say(|| format!("        node {node} writes {}", entry.told()));
            self.nodes[node].stream.push(entry);
        }
        self.nodes[node].sku = over.sku;
        self.nodes[node].held = over.held;
        self.nodes[node].meta = Some(meta);
        meta
    }

    /// The checks every script begins with.
    pub(crate) fn admits(&self, node: usize, epoch: u8, open: bool) -> Result<Meta, Reply> {
        match self.nodes[node].meta {
            Some(m) if m.epoch > epoch => Err(Reply::Newer),
            Some(m) if m.epoch == epoch && (m.open == open || !self.rules.has(Rule::Closed)) => Ok(m),
            _ => Err(Reply::Behind),
        }
    }

    pub(crate) fn run(&mut self, node: usize, body: &Body) -> Reply {
        let done = match body {
            Body::Batch {
                epoch,
                tag,
                row,
                items,
            } => self.batch(node, *epoch, *tag, *row, items),
            Body::Trim { at } => self.trim(node, *at),
            Body::Load {
                epoch,
                token,
                sku,
                row,
            } => self.load(node, *epoch, *token, *sku, *row),
            Body::Fence { epoch, .. } => Ok(self.fence(node, *epoch)),
            Body::Base { at, filter, .. } => self.base(node, *at, *filter),
            Body::Chunk {
                epoch,
                number,
                sku,
                live,
                ..
            } => self.chunk(node, *epoch, *number, *sku, *live),
            Body::Rerun {
                epoch,
                tag,
                again,
                covers,
                ..
            } => self.rerun(node, *epoch, *tag, again, covers),
            Body::Open { epoch, chunks, .. } => self.open(node, *epoch, *chunks),
            Body::Record { .. } | Body::Seize { .. } | Body::Hot { .. } | Body::Decide { .. } => {
                Ok(Reply::No)
            }
        };
        done.unwrap_or_else(|refused| refused)
    }

    fn batch(
        &mut self,
        node: usize,
        epoch: u8,
        tag: Tag,
        row: Position,
        items: &[Item],
    ) -> Result<Reply, Reply> {
        let meta = self.admits(node, epoch, true)?;
        let mut over = self.overlay(node);
        over.free_due(self.clock);
        let mut verdicts = Vec::with_capacity(items.len());
        for item in items {
            let verdict = match self.look_up(&mut over, &meta, item) {
                Err(first) => first,
                Ok(status) => {
                    let end = over.held[item.id].map_or(0, |h| h.end);
                    let (verdict, change) = decide(item.cmd, (status, end), over.sku, self.clock);
                    if let Some(after) = change {
                        over.change(item.id, after);
                    }
                    verdict
                }
            };
            verdicts.push(verdict);
        }
        let meta = self.write(node, meta, tag, over);
        let on_chain = self.on_chain(node, row);
        Ok(Reply::Batch {
            tip: Some(meta.tip()),
            on_chain,
            verdicts,
        })
    }

    /// Ends what is due.
    pub(crate) fn sweep(&mut self, node: usize, epoch: u8, tag: Tag) -> bool {
        let Ok(meta) = self.admits(node, epoch, true) else {
            return false;
        };
        let mut over = self.overlay(node);
        over.free_due(self.clock);
        let swept = !over.ops.is_empty();
        if swept {
            self.write(node, meta, tag, over);
        }
        swept
    }

    fn trim(&mut self, node: usize, at: Position) -> Result<Reply, Reply> {
        let mut meta = self.admits(node, at.epoch, true)?;
        let by_tag = self.rules.has(Rule::TrimTag);
        let found = self.nodes[node]
            .stream
            .iter()
            .position(|e| e.at == at || (!by_tag && e.at.seq == at.seq));
        let Some(index) = found else { return Ok(Reply::No) };
        let gone: Vec<_> = self.nodes[node].stream.drain(..=index).collect();
        for entry in &gone {
            meta.base_seq = entry.at.seq;
            meta.base_tag = entry.at.tag;
            if !self.ledger.entries.contains(&entry.at) {
                self.fail(7, "an entry was trimmed that is not recorded under its tag");
            }
        }
        self.nodes[node].meta = Some(meta);
        Ok(Reply::Yes)
    }

    /// Forgets an ended id whose last change lies at or before the base.
    pub(crate) fn forget(&mut self, node: usize, epoch: u8, id: usize) -> bool {
        let Ok(mut meta) = self.admits(node, epoch, true) else {
            return false;
        };
        match self.nodes[node].held[id] {
            Some(h)
                if h.status != Status::Pending
                    && (h.seq <= meta.base_seq || !self.rules.has(Rule::ForgetBase)) =>
            {
                meta.forgot = meta.forgot.max(h.seq);
                meta.filter |= 1 << id;
                self.nodes[node].held[id] = None;
                self.nodes[node].meta = Some(meta);
                true
            }
            _ => false,
        }
    }

    fn load(&mut self, node: usize, epoch: u8, token: Tag, sku: Sku, row: Position) -> Result<Reply, Reply> {
        self.admits(node, epoch, true)?;
        // A node that lost recorded entries must not take counters from after its own tip.
        if self.rules.has(Rule::LoadOnChain) && !self.on_chain(node, row) {
            return Ok(Reply::No);
        }
        let n = &mut self.nodes[node];
        let marked = n.marker.is_some_and(|m| m.token == token) || !self.rules.has(Rule::LoadMarker);
        if n.sku.is_some() || !marked {
            return Ok(Reply::No);
        }
        n.sku = Some(sku);
        n.marker = None;
        Ok(Reply::Yes)
    }
}

impl Entry {
    /// As a line of a story.
    pub(crate) fn told(&self) -> String {
        let ops: Vec<_> = self
            .ops
            .iter()
            .map(|o| format!("id {} {:?} to {:?}", o.id, o.before, o.after))
            .collect();
        format!(
            "entry {}.{} tag {} after tag {}: {}",
            self.at.epoch,
            self.at.seq,
            self.at.tag,
            self.prev,
            ops.join(", ")
        )
    }
}

//! The rebuild of a shard, a step at a time. A step that is answered other than expected abandons the epoch.

use crate::rules::Rule;
use crate::state::{Body, Entry, IDS, Mode, Part, Position, Rebuild, Reply, Sku, Status, To, World};

impl World {
    /// Step 1: compare-and-set the row to the next epoch. Also the switch to the ledger deciding.
    pub(crate) fn seize_shard(&mut self, proc: usize, split: usize, late: bool) -> bool {
        if self.procs[proc].rebuild.is_some() || !self.has_room(late) {
            return false;
        }
        let from = self.procs[proc].view;
        let token = self.token();
        self.procs[proc].rebuild = Some(Rebuild {
            token,
            epoch: from.at.epoch + 1,
            from,
            next: Part::Seize,
            waits: true,
            node: self.primary,
            split,
            survivors: Vec::new(),
        });
        self.procs[proc].suspects = None;
        let to = Mode::Rebuild;
        self.send(To::Ledger, proc, Body::Seize { from, to, token }, late);
        true
    }

    pub(crate) fn go_sql(&mut self, proc: usize, late: bool) -> bool {
        let from = self.procs[proc].view;
        if from.mode == Mode::Sql || !self.has_room(late) {
            return false;
        }
        self.lossy = true;
        let token = self.token();
        let to = Mode::Sql;
        self.send(To::Ledger, proc, Body::Seize { from, to, token }, late);
        true
    }

    pub(crate) fn abandon(&mut self, proc: usize) -> bool {
        self.procs[proc].rebuild.take().is_some()
    }

    /// Without the rule of new epochs: a restarted process goes on with the epoch it owned, from where the node is.
    pub(crate) fn resume(&mut self, proc: usize, split: usize) -> bool {
        let row = self.ledger.row;
        let mine = row.mode == Mode::Rebuild && row.owner.proc == proc;
        if self.rules.has(Rule::NewEpoch) || !mine || self.procs[proc].rebuild.is_some() {
            return false;
        }
        let node = self.primary;
        let next = match self.nodes[node].meta {
            Some(m) if m.epoch == row.at.epoch && !m.open => match (m.based, m.chunks) {
                (false, _) => Part::Base,
                (true, 0) => Part::Chunk1,
                (true, 1) => Part::Chunk2,
                (true, 2) => Part::Rerun,
                (true, _) => Part::Open,
            },
            _ => Part::Fence,
        };
        let survivors = self.survivors(node, row.at.epoch);
        self.procs[proc].rebuild = Some(Rebuild {
            token: row.owner.token,
            epoch: row.at.epoch,
            from: row,
            next,
            waits: false,
            node,
            split,
            survivors,
        });
        true
    }

    /// Entries of older epochs that a node still has and the ledger does not.
    fn survivors(&self, node: usize, epoch: u8) -> Vec<Entry> {
        let n = &self.nodes[node];
        let older = n.old.iter().chain(&n.stream).filter(|e| e.at.epoch < epoch);
        older.filter(|e| !self.outlived(e.at)).cloned().collect()
    }

    fn outlived(&self, at: Position) -> bool {
        if self.rules.has(Rule::RecordedByTag) {
            self.ledger.entries.contains(&at)
        } else {
            at.seq <= self.ledger.row.at.seq
        }
    }

    /// The next step of a rebuild.
    pub(crate) fn rebuild_step(&mut self, proc: usize, late: bool) -> bool {
        let Some(mut rb) = self.procs[proc].rebuild.clone() else {
            return false;
        };
        let row = self.ledger.row;
        let mine = row.at.epoch == rb.epoch && row.mode == Mode::Rebuild && row.owner.token == rb.token;
        if rb.waits {
            // The answer to the compare-and-set may be lost; the ledger tells.
            if rb.next != Part::Seize || !mine {
                return false;
            }
            rb.waits = false;
            rb.next = Part::Fence;
        }
        if !self.has_room(late) {
            return false;
        }
        if !mine {
            return self.abandon(proc);
        }
        let fence_first = self.rules.has(Rule::FenceFirst);
        let (epoch, token) = (rb.epoch, rb.token);
        let body = match rb.next {
            Part::Seize => return false,
            Part::Fence => {
                rb.node = self.primary;
                if !fence_first && rb.survivors.is_empty() {
                    rb.survivors = self.survivors(rb.node, epoch);
                }
                Body::Fence { epoch, token }
            }
            Part::Survivors => {
                // Only from a node that is still fenced by this epoch.
                if self.admits(rb.node, epoch, false).is_err() {
                    return self.abandon(proc);
                }
                if fence_first {
                    rb.survivors = self.survivors(rb.node, epoch);
                }
                rb.next = Part::Base;
                self.procs[proc].rebuild = Some(rb);
                return true;
            }
            Part::Base => {
                let ended =
                    |id: &usize| !matches!(self.ledger.records[*id].0, Status::Absent | Status::Pending);
                let filter = (0..IDS).filter(ended).fold(0, |bits, id| bits | 1 << id);
                Body::Base {
                    at: row.at,
                    filter,
                    token,
                }
            }
            Part::Chunk1 | Part::Chunk2 => {
                let first = rb.next == Part::Chunk1;
                // The counters travel in the second, so that a node that misses the first looks whole.
                let (number, sku) = if first {
                    (1, None)
                } else {
                    (2, Some(self.ledger.sku))
                };
                let live = self.live(first, rb.split);
                Body::Chunk {
                    epoch,
                    number,
                    sku,
                    live,
                    token,
                }
            }
            Part::Rerun => self.rerun_of(&rb),
            Part::Open => {
                let chunks = 2 + u8::from(self.rules.has(Rule::RerunCounted));
                Body::Open { epoch, chunks, token }
            }
            Part::Hot => Body::Hot { epoch, token },
        };
        let to = if rb.next == Part::Hot {
            To::Ledger
        } else {
            To::Node(rb.node)
        };
        rb.waits = true;
        self.log.say(|| {
            let when = if late { " (under way)" } else { "" };
            format!(
                "        process {proc} rebuilds epoch {epoch}: {:?}{when}",
                rb.next
            )
        });
        self.procs[proc].rebuild = Some(rb);
        self.send(to, proc, body, late);
        true
    }

    /// Live reservations of a chunk: ids below `split` in the first.
    fn live(&self, first: bool, split: usize) -> [Option<u8>; IDS] {
        let mut live = [None; IDS];
        for (id, record) in self.ledger.records.iter().enumerate() {
            if record.0 == Status::Pending && (id < split) == first {
                live[id] = Some(record.1);
            }
        }
        live
    }

    fn rerun_of(&mut self, rb: &Rebuild) -> Body {
        let covers = rb.survivors.iter().map(|e| e.at.tag).collect();
        let last_hot = self.ledger.entries.last().map_or(0, |e| e.epoch);
        let mut tip = self.ledger.row.at.tag;
        let mut again = Vec::new();
        for entry in &rb.survivors {
            // A cancel is done again only where nothing else was decided since: on the very continuation of what is
            // recorded. Elsewhere a client may have been told in the meantime that it did not happen.
            let goes_on = entry.at.epoch == last_hot && entry.prev == tip;
            if goes_on {
                tip = entry.at.tag;
            }
            for op in &entry.ops {
                let cancel = op.before == Status::Pending && op.after == Status::Cancelled;
                let extend = op.before == Status::Pending && op.after == Status::Pending;
                let known = self.known(op.id);
                // Elsewhere an extend of what is recorded may be older than one that is recorded.
                let newest = goes_on || known.status == Status::Absent || !self.rules.has(Rule::RerunExtend);
                let wanted = if extend {
                    newest
                } else if cancel {
                    goes_on && self.rules.has(Rule::RerunFrees)
                } else {
                    op.after == Status::Pending
                };
                if wanted {
                    again.push((*op, known));
                }
            }
        }
        Body::Rerun {
            epoch: rb.epoch,
            tag: self.fresh_tag(),
            again,
            covers,
            token: rb.token,
        }
    }

    /// A reply to a step.
    pub(crate) fn rebuild_heard(&mut self, proc: usize, token: u16, _to: To, reply: &Reply) {
        let row = self.ledger.row;
        let Some(rb) = &mut self.procs[proc].rebuild else {
            self.procs[proc].view = row;
            return;
        };
        if rb.token != token || !rb.waits {
            return;
        }
        rb.waits = false;
        rb.next = match rb.next {
            Part::Seize => Part::Fence,
            Part::Fence => Part::Survivors,
            Part::Survivors | Part::Base => Part::Chunk1,
            Part::Chunk1 => Part::Chunk2,
            Part::Chunk2 => Part::Rerun,
            Part::Rerun => Part::Open,
            Part::Open | Part::Hot => Part::Hot,
        };
        let done = rb.next == Part::Hot && row.mode == Mode::Hot && row.at.epoch == rb.epoch;
        if *reply != Reply::Yes || done {
            self.procs[proc].rebuild = None;
            self.procs[proc].view = row;
        }
    }
}

impl Sku {
    pub(crate) const FULL: Self = Self {
        on_hand: crate::state::SUPPLY,
        reserved: 0,
        sold: 0,
    };
}

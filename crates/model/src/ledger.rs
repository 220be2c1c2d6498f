//! Transactions of the ledger. Each lands as one step, perhaps long after it was sent, and its sender may never hear of
//! it: that is a commit whose result is unknown.

use crate::decide::{decide, moved};
use crate::rules::Rule;
use crate::state::{
    Body, Entry, Epoch, Item, Known, Mode, Owner, Position, Reply, Row, Status, Tag, Verdict, World,
};

impl World {
    pub(crate) fn land(&mut self, from: usize, body: &Body) -> Reply {
        match body {
            Body::Record { entries } => self.record(entries),
            Body::Seize { from: row, to, token } => self.seize(from, *row, *to, *token),
            Body::Hot { epoch, token } => self.hot(*epoch, *token),
            Body::Decide { epoch, items } => self.decide_in_ledger(*epoch, items),
            _ => Reply::No,
        }
    }

    /// Whether an entry is recorded: it itself, whatever the cursor says.
    pub(crate) fn is_recorded(&self, at: Position) -> bool {
        if self.rules.has(Rule::RecordedByTag) {
            self.ledger.entries.contains(&at)
        } else {
            self.ledger.row.at.epoch == at.epoch && self.ledger.row.at.seq >= at.seq
        }
    }

    /// What the ledger says about an id now, with the cursor of the same snapshot.
    pub(crate) fn known(&self, id: usize) -> Known {
        let (status, end) = self.ledger.records[id];
        Known {
            status,
            end,
            epoch: self.ledger.row.at.epoch,
            cursor: self.ledger.row.at.seq,
        }
    }

    fn record(&mut self, entries: &[Entry]) -> Reply {
        let row = self.ledger.row;
        let Some(first) = entries.first() else {
            return Reply::No;
        };
        let fits = row.mode == Mode::Hot
            && row.at.epoch == first.at.epoch
            && row.at.seq + 1 == first.at.seq
            && row.at.tag == first.prev;
        if !fits {
            return Reply::No;
        }
        for entry in entries {
            for op in &entry.ops {
                if self.ledger.records[op.id].0 != op.before {
                    self.fail(
                        2,
                        "a recorded entry starts from a state that the ledger does not have",
                    );
                }
                if op.before == Status::Pending && op.after == Status::Pending {
                    if op.born < self.extended[op.id] {
                        self.fail(4, "an extend was undone by an older one");
                    }
                    self.extended[op.id] = op.born;
                }
                self.ledger.records[op.id] = (op.after, op.end);
                match moved(self.ledger.sku, op.before, op.after) {
                    Some(sku) => self.ledger.sku = sku,
                    None => self.fail(1, "recording an entry would drive a counter out of its bounds"),
                }
            }
            if entry.after.is_some_and(|after| after != self.ledger.sku) {
                self.fail(2, "the ledger's counters after an entry are not the entry's");
            }
            let at = entry.at;
            if self
                .ledger
                .entries
                .iter()
                .any(|e| e.epoch == at.epoch && e.seq == at.seq)
            {
                self.fail(3, "two entries are recorded at one place of the chain");
            }
            self.ledger.entries.push(at);
            self.ledger.row.at = at;
        }
        let at = self.ledger.row.at;
        self.log.say(|| {
            format!(
                "        the ledger has recorded up to {}.{} tag {}",
                at.epoch, at.seq, at.tag
            )
        });
        Reply::Yes
    }

    /// The compare-and-set that starts an epoch.
    fn seize(&mut self, proc: usize, from: Row, to: Mode, token: Tag) -> Reply {
        let row = &mut self.ledger.row;
        let same = row.at.epoch == from.at.epoch && row.mode == from.mode && row.owner == from.owner;
        if !same {
            return Reply::No;
        }
        row.at.epoch += 1;
        row.mode = to;
        row.owner = Owner { proc, token };
        let epoch = row.at.epoch;
        self.log
            .say(|| format!("        the ledger is at epoch {epoch}, {to:?}"));
        Reply::Yes
    }

    fn hot(&mut self, epoch: Epoch, token: Tag) -> Reply {
        let row = &mut self.ledger.row;
        if row.at.epoch != epoch || row.mode != Mode::Rebuild || row.owner.token != token {
            return Reply::No;
        }
        row.mode = Mode::Hot;
        let at = row.at;
        // A node without an entry of its own has this as its tip; it is as recorded as anything before it.
        if self.rules.has(Rule::OpeningRow) {
            self.ledger.entries.push(at);
        }
        self.log
            .say(|| format!("        the ledger is at epoch {epoch}, hot"));
        Reply::Yes
    }

    /// The fallback: the ledger's own transaction decides.
    fn decide_in_ledger(&mut self, epoch: Epoch, items: &[Item]) -> Reply {
        let row = self.ledger.row;
        if self.rules.has(Rule::SqlEpoch) && (row.at.epoch != epoch || row.mode != Mode::Sql) {
            return Reply::Newer;
        }
        let mut verdicts = Vec::with_capacity(items.len());
        for id in 0..self.ledger.records.len() {
            let (status, end) = self.ledger.records[id];
            if status == Status::Pending && end <= self.clock {
                self.put(id, (Status::Expired, 0));
            }
        }
        for item in items {
            let record = self.ledger.records[item.id];
            let (verdict, change) = decide(item.cmd, record, Some(self.ledger.sku), self.clock);
            if let Some(after) = change {
                self.put(item.id, after);
            }
            verdicts.push(verdict);
        }
        self.log
            .say(|| format!("        the ledger decides {verdicts:?}"));
        Reply::Batch {
            tip: None,
            on_chain: true,
            verdicts,
        }
    }

    fn put(&mut self, id: usize, after: (Status, u8)) {
        let before = self.ledger.records[id].0;
        self.ledger.records[id] = after;
        match moved(self.ledger.sku, before, after.0) {
            Some(sku) => self.ledger.sku = sku,
            None => self.fail(
                1,
                "a decision of the ledger would drive a counter out of its bounds",
            ),
        }
    }

    /// The ledger's own answer about an id, where a refusal could not be trusted.
    pub(crate) fn ledger_says(&self, id: usize) -> Option<Verdict> {
        match self.ledger.records[id].0 {
            Status::Absent | Status::Lost => None,
            Status::Pending => Some(Verdict::Pending),
            Status::Confirmed => Some(Verdict::Sold { replay: true }),
            ended => Some(Verdict::Ended(ended)),
        }
    }
}

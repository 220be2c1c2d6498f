//! What must be true after every step. The numbers are those of the list in `docs/protocol.md`.

use crate::clients::{CANCELLED, ENDED, SOLD};
use crate::decide::moved;
use crate::state::{IDS, Mode, Node, SUPPLY, Sku, Status, World};

fn sums(sku: Sku, live: usize) -> bool {
    usize::from(sku.reserved) == live && sku.reserved <= sku.on_hand && sku.on_hand + sku.sold == SUPPLY
}

impl World {
    pub(crate) fn check(&mut self) {
        if self.broken.is_some() {
            return;
        }
        let live = |status: Status| self.ledger.records.iter().filter(|r| r.0 == status).count();
        let sold = live(Status::Confirmed);
        if !sums(self.ledger.sku, live(Status::Pending)) || usize::from(self.ledger.sku.sold) != sold {
            return self.fail(1, "the ledger's counters are not the sum of its reservations");
        }
        for id in 0..IDS {
            let (told, status) = (self.told[id], self.ledger.records[id].0);
            if told & SOLD != 0 && status != Status::Confirmed {
                return self.fail(4, "a sale that was answered is not in the ledger");
            }
            if told & ENDED != 0 && !matches!(status, Status::Cancelled | Status::Expired) {
                return self.fail(5, "an end that was answered is not in the ledger");
            }
            if told & CANCELLED != 0 && status != Status::Cancelled {
                return self.fail(5, "a cancel or seal that was answered is not in the ledger");
            }
        }
        let row = self.ledger.row;
        for node in 0..self.nodes.len() {
            let open = self.nodes[node]
                .meta
                .is_some_and(|m| m.open && m.epoch == row.at.epoch);
            if open
                && row.mode == Mode::Hot
                && self.on_chain(node, row.at)
                && let Some(what) = self.differs(&self.nodes[node])
            {
                return self.fail(2, what);
            }
        }
    }

    /// The ledger and the entries after its cursor against what the node holds.
    pub(crate) fn differs(&self, node: &Node) -> Option<&'static str> {
        let mut sku = self.ledger.sku;
        let mut records = self.ledger.records;
        let after = node.stream.iter().filter(|e| e.at.seq > self.ledger.row.at.seq);
        for op in after.flat_map(|e| &e.ops) {
            if records[op.id].0 != op.before {
                return Some(
                    "an entry on the chain starts from a state that the chain before it does not have",
                );
            }
            records[op.id] = (op.after, op.end);
            let Some(next) = moved(sku, op.before, op.after) else {
                return Some("the chain drives a counter out of its bounds");
            };
            sku = next;
        }
        for (held, record) in node.held.iter().zip(&records) {
            let pending = record.0 == Status::Pending;
            match held {
                None if pending => return Some("a live reservation of the chain is not held by the node"),
                Some(h) if h.status != record.0 || (pending && h.end != record.1) => {
                    return Some("a reservation on the node is not what the chain makes of it");
                }
                _ => {}
            }
        }
        if node.sku.is_some_and(|s| s != sku) {
            return Some("the node's counters are not the ledger's and the outbox's together");
        }
        let live = node
            .held
            .iter()
            .flatten()
            .filter(|h| h.status == Status::Pending)
            .count();
        if node.sku.is_some_and(|s| !sums(s, live)) {
            return Some("the node's counters are not the sum of its live reservations");
        }
        None
    }
}

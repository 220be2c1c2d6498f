//! When faults stop, everything must come to rest: answers given, outbox empty, node and ledger equal, no unit lost.

use crate::clients::SOFT;
use crate::state::{IDS, LAST_TICK, Mode, Msg, PROCS, REQUESTS, SUPPLY, Status, World};

/// More than any run needs; a run that is not done by then goes round in circles.
const ROUNDS: usize = 60;

impl World {
    /// Goes on without faults and with everybody working, and checks what it comes to.
    pub fn settle(&mut self) {
        self.log
            .say(|| "  From here on nothing fails and everybody works.".to_owned());
        let mut calm = false;
        for round in 0..ROUNDS {
            self.round();
            self.check();
            if self.broken.is_some() {
                return;
            }
            calm = self.is_calm();
            if calm && self.clock >= LAST_TICK + 3 {
                break;
            }
            // Ends pass only when the rest is done; until then the clock would end what a retry still needs.
            if calm && round > 0 {
                self.clock += 1;
            }
        }
        if !calm {
            return self.fail(
                10,
                "faults stopped, and the outbox does not empty or somebody never gets an answer",
            );
        }
        self.check_rest();
    }

    fn round(&mut self) {
        for Msg {
            to,
            from,
            life,
            body,
            reply,
        } in std::mem::take(&mut self.msgs)
        {
            let reply = reply.unwrap_or_else(|| self.execute(to, from, &body));
            self.handle(from, life, to, &body, reply);
        }
        for proc in 0..PROCS {
            self.procs[proc].conn = self.primary;
            self.procs[proc].view = self.ledger.row;
            self.take_outbox(proc, 9, false);
            self.procs[proc].view = self.ledger.row;
            self.cut(proc, false);
            self.mark(proc);
            self.load_missed(proc, false);
            self.rebuild_if_asked_for(proc);
            let mut index = 0;
            while index < self.reqs.len() {
                if self.reqs[index].proc == proc && !self.settled(index) {
                    self.again(index);
                    index += 1;
                } else if self.reqs.get(index).is_some_and(|r| r.proc != proc) {
                    index += 1;
                }
            }
            for _ in 0..REQUESTS {
                self.call(proc, 1, false);
            }
            self.take_outbox(proc, 9, false);
            self.procs[proc].view = self.ledger.row;
            for id in 0..IDS {
                self.keep(proc, id);
            }
            let view = self.procs[proc].view;
            if view.mode == Mode::Hot {
                let tag = self.fresh_tag();
                self.sweep(self.procs[proc].conn, view.at.epoch, tag);
            }
        }
    }

    fn rebuild_if_asked_for(&mut self, proc: usize) {
        let view = self.procs[proc].view;
        let asked = self.procs[proc].suspects == Some(view.at.epoch);
        let left = view.mode != Mode::Hot && self.procs.iter().all(|p| p.rebuild.is_none());
        if self.procs[proc].rebuild.is_none() && (asked || left) {
            self.seize_shard(proc, 1, false);
        }
        // A step under way whose message was lost is given up, and the next round begins a new epoch.
        if self.procs[proc].rebuild.is_some() && !self.rebuild_step(proc, false) {
            self.abandon(proc);
        }
        while self.procs[proc].rebuild.is_some() && self.rebuild_step(proc, false) {}
    }

    fn is_calm(&self) -> bool {
        let node = &self.nodes[self.primary];
        let row = self.ledger.row;
        let same = node.meta.is_some_and(|m| m.tip() == row.at && m.open);
        let kept = self.procs.iter().flat_map(|p| p.kept).flatten().count();
        row.mode == Mode::Hot && same && self.reqs.is_empty() && self.msgs.is_empty() && kept == 0
    }

    fn check_rest(&mut self) {
        let node = &self.nodes[self.primary];
        if let Some(what) = self.differs(node) {
            return self.fail(10, what);
        }
        let sku = self.ledger.sku;
        if sku.reserved != 0 || sku.on_hand + sku.sold != SUPPLY || node.sku.is_some_and(|s| s != sku) {
            return self.fail(
                10,
                "all ends have passed and units are still reserved, or node and ledger differ",
            );
        }
        for id in 0..IDS {
            let gone = matches!(self.ledger.records[id].0, Status::Absent | Status::Lost)
                && self.told[id] & SOFT != 0;
            let explained = self.lossy && (self.reported[id] || self.crashed);
            if gone && !explained {
                return self.fail(
                    5,
                    "a reservation was answered and is gone, and nobody reported it as lost",
                );
            }
        }
    }
}

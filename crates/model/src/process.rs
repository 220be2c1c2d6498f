//! What a process does with requests: send, wait, answer, send again; and how it records and trims.

use crate::rules::Rule;
use crate::state::{
    Body, Cmd, Epoch, Item, MESSAGES, Mode, Msg, Position, REQUESTS, Reply, Stage, Tag, To, Verdict, World,
};

impl World {
    pub(crate) fn fresh_tag(&mut self) -> Tag {
        if !self.rules.has(Rule::Tag) {
            return 0;
        }
        self.token()
    }

    pub(crate) fn token(&mut self) -> Tag {
        self.fresh += 1;
        self.fresh
    }

    pub(crate) fn has_room(&self, late: bool) -> bool {
        !late || self.msgs.len() < MESSAGES
    }

    /// Sends a call. `late`: it stays under way; otherwise it is executed and its reply handled at once.
    pub(crate) fn send(&mut self, to: To, from: usize, body: Body, late: bool) {
        let life = self.procs[from].life;
        if late {
            self.msgs.push(Msg {
                to,
                from,
                life,
                body,
                reply: None,
            });
        } else {
            let reply = self.execute(to, from, &body);
            self.handle(from, life, to, &body, reply);
        }
    }

    pub(crate) fn execute(&mut self, to: To, from: usize, body: &Body) -> Reply {
        match to {
            To::Node(node) => self.run(node, body),
            To::Ledger => self.land(from, body),
        }
    }

    /// Sends the first `count` queued requests of a process as one merged call.
    pub(crate) fn call(&mut self, proc: usize, count: usize, late: bool) -> bool {
        let queued = |w: &Self, i: usize| w.reqs[i].proc == proc && w.reqs[i].stage == Stage::Queued;
        let chosen: Vec<_> = (0..self.reqs.len())
            .filter(|i| queued(self, *i))
            .take(count)
            .collect();
        let view = self.procs[proc].view;
        let closed = view.mode == Mode::Rebuild && self.rules.has(Rule::HotOnly);
        if chosen.len() < count || closed || !self.has_room(late) {
            return false;
        }
        let mut items = Vec::with_capacity(count);
        for i in chosen {
            let req = &mut self.reqs[i];
            req.stage = Stage::Sent;
            let (serial, id, cmd) = (req.serial, req.id, req.cmd);
            let known = self.known(id);
            items.push(Item {
                serial,
                id,
                cmd,
                known,
            });
        }
        let epoch = view.at.epoch;
        self.log.say(|| {
            let what: Vec<_> = items
                .iter()
                .map(|i| format!("{:?} of id {}", i.cmd, i.id))
                .collect();
            let when = if late { " (under way)" } else { "" };
            format!(
                "        process {proc} sends {} under epoch {epoch}{when}",
                what.join(" and ")
            )
        });
        if view.mode == Mode::Sql {
            self.send(To::Ledger, proc, Body::Decide { epoch, items }, late);
        } else {
            let tag = self.fresh_tag();
            let row = if self.rules.has(Rule::FreshRow) {
                self.ledger.row.at
            } else {
                view.at
            };
            let to = To::Node(self.procs[proc].conn);
            self.send(
                to,
                proc,
                Body::Batch {
                    epoch,
                    tag,
                    row,
                    items,
                },
                late,
            );
        }
        true
    }

    /// A reply reaches the process that asked, if it still lives.
    pub(crate) fn handle(&mut self, proc: usize, life: u8, to: To, body: &Body, reply: Reply) {
        if self.procs[proc].life != life {
            return;
        }
        match (body, reply) {
            (
                Body::Batch { items, .. } | Body::Decide { items, .. },
                Reply::Batch {
                    tip,
                    mut on_chain,
                    verdicts,
                },
            ) => {
                if let (Body::Batch { row, .. }, false) = (body, self.rules.has(Rule::CheckInScript)) {
                    on_chain = self.on_chain(self.procs[proc].conn, *row);
                }
                for (item, verdict) in items.iter().zip(verdicts) {
                    self.hear(proc, item.serial, tip, on_chain, verdict);
                }
            }
            (Body::Batch { items, epoch, .. } | Body::Decide { items, epoch }, refused) => {
                for item in items {
                    self.queue_again(item.serial);
                }
                self.refused(proc, *epoch, &refused);
            }
            (
                Body::Fence { token, .. }
                | Body::Base { token, .. }
                | Body::Chunk { token, .. }
                | Body::Rerun { token, .. }
                | Body::Open { token, .. }
                | Body::Seize { token, .. }
                | Body::Hot { token, .. },
                reply,
            ) => self.rebuild_heard(proc, *token, to, &reply),
            (Body::Load { .. } | Body::Trim { .. } | Body::Record { .. }, _) => {}
        }
    }

    /// The shard is not what the process took it for. It reads the ledger; only if that still says what it said is
    /// there a reason to rebuild.
    pub(crate) fn refused(&mut self, proc: usize, epoch: Epoch, reply: &Reply) {
        let row = self.ledger.row;
        self.procs[proc].view = row;
        if *reply == Reply::Behind && row.at.epoch == epoch && row.mode == Mode::Hot {
            self.procs[proc].suspects = Some(epoch);
        }
    }

    fn request(&self, serial: u16) -> Option<usize> {
        self.reqs
            .iter()
            .position(|r| r.serial == serial && r.stage == Stage::Sent)
    }

    fn queue_again(&mut self, serial: u16) {
        if let Some(i) = self.request(serial) {
            self.reqs[i].stage = Stage::Queued;
        }
    }

    fn hear(&mut self, proc: usize, serial: u16, tip: Option<Position>, on_chain: bool, verdict: Verdict) {
        let Some(i) = self.request(serial) else { return };
        let (id, cmd) = (self.reqs[i].id, self.reqs[i].cmd);
        let Some(tip) = tip else {
            return self.answer(i, verdict);
        };
        match verdict {
            Verdict::Pending if cmd != Cmd::ReserveHard => {
                if cmd != Cmd::Read {
                    self.procs[proc].kept[id] = Some(tip);
                }
                self.answer(i, verdict);
            }
            Verdict::Sold { replay: true } if !self.rules.has(Rule::SaleRecorded) => self.answer(i, verdict),
            Verdict::Pending | Verdict::Sold { .. } | Verdict::Ended(_) => {
                self.reqs[i].stage = Stage::Waits(tip, verdict);
            }
            Verdict::Short | Verdict::NotFound if self.refusals_wait => self.wait_to_refuse(i, tip, verdict),
            Verdict::Short | Verdict::NotFound => {
                if on_chain || !self.rules.has(Rule::RefusalCheck) {
                    self.answer(i, verdict);
                } else if self.rules.has(Rule::RefuseAgain) {
                    self.reqs[i].stage = Stage::Queued;
                } else {
                    let wins = self.ledger_says(id).unwrap_or(verdict);
                    self.answer(i, wins);
                }
            }
            Verdict::IdReused => self.answer(i, verdict),
            Verdict::LookUp => self.reqs[i].stage = Stage::Queued,
            Verdict::MissingSku => {
                self.reqs[i].stage = Stage::Queued;
                self.procs[proc].misses = true;
            }
            Verdict::Fork => {
                self.reqs[i].stage = Stage::Queued;
                self.procs[proc].suspects = Some(tip.epoch);
            }
        }
    }

    /// The other way to be sure of a refusal, without the script's word: the row, read by now, stands at or before the
    /// tip, and the tip becomes recorded.
    fn wait_to_refuse(&mut self, index: usize, tip: Position, verdict: Verdict) {
        let row = self.ledger.row;
        if row.at == tip {
            self.answer(index, verdict);
        } else if row.mode == Mode::Hot && row.at.epoch == tip.epoch && row.at.seq < tip.seq {
            self.reqs[index].stage = Stage::Waits(tip, verdict);
        } else {
            self.reqs[index].stage = Stage::Queued;
        }
    }

    /// A process gives up waiting for a reply or a recording, and will send the same id with a new tag.
    pub(crate) fn again(&mut self, index: usize) -> bool {
        match self.reqs.get_mut(index) {
            Some(req) if req.stage != Stage::Queued => {
                req.stage = Stage::Queued;
                true
            }
            _ => false,
        }
    }

    /// A hard answer whose entry is recorded goes out.
    pub(crate) fn settled(&mut self, index: usize) -> bool {
        match self.reqs.get(index).map(|r| r.stage) {
            Some(Stage::Waits(tip, verdict)) if self.is_recorded(tip) => {
                self.answer(index, verdict);
                true
            }
            _ => false,
        }
    }

    /// A soft grant is recorded, or is sent again by the process that keeps it.
    pub(crate) fn keep(&mut self, proc: usize, id: usize) -> bool {
        let Some(at) = self.procs[proc].kept[id] else {
            return false;
        };
        if self.is_recorded(at) {
            self.procs[proc].kept[id] = None;
        } else if self.reqs.len() < REQUESTS {
            self.procs[proc].kept[id] = None;
            self.ask(id, Cmd::Reserve, proc, true);
        } else {
            return false;
        }
        true
    }
}

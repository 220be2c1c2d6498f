//! How each action happens, if it is possible.

use crate::action::{Action, Fate};
use crate::state::{LAST_TICK, Mode, NODES, Node, REQUESTS, World};

impl World {
    /// Does an action, if it is possible, and checks what is then true.
    pub fn step(&mut self, action: Action) -> bool {
        let done = self.act(action);
        if done {
            self.check();
        }
        done
    }

    fn act(&mut self, action: Action) -> bool {
        match action {
            Action::Ask { id, cmd, proc } => {
                let room = self.reqs.len() < REQUESTS;
                if room {
                    self.ask(id, cmd, proc, false);
                }
                room
            }
            Action::Call { proc, count, late } => self.call(proc, count, late),
            Action::Deliver { msg, fate } => self.deliver(msg, fate),
            Action::Hear { msg } => self.hear_reply(msg),
            Action::LoseMessage { msg } => {
                let there = msg < self.msgs.len();
                if there {
                    self.msgs.remove(msg);
                }
                there
            }
            Action::Again { req } => self.again(req),
            Action::Answer { req } => self.settled(req),
            Action::Keep { proc, id } => self.keep(proc, id),
            Action::ReadLedger { proc } => {
                let stale = self.procs[proc].view != self.ledger.row;
                self.procs[proc].view = self.ledger.row;
                stale
            }
            Action::Record { proc, count, late } => self.take_outbox(proc, count, late),
            Action::Trim { proc, late } => self.cut(proc, late),
            Action::Forget { proc, id } => {
                let (node, epoch) = (self.procs[proc].conn, self.procs[proc].view.at.epoch);
                self.forget(node, epoch, id)
            }
            Action::Sweep { proc } => {
                let view = self.procs[proc].view;
                let tag = self.fresh_tag();
                view.mode == Mode::Hot && self.sweep(self.procs[proc].conn, view.at.epoch, tag)
            }
            Action::Seize { proc, split, late } => self.seize_shard(proc, split, late),
            Action::Rebuild { proc, late } => self.rebuild_step(proc, late),
            Action::Abandon { proc } => self.abandon(proc),
            Action::Resume { proc, split } => self.resume(proc, split),
            Action::DropOlder { proc } => {
                let view = self.procs[proc].view;
                view.mode == Mode::Hot && self.drop_older(self.procs[proc].conn, view.at.epoch)
            }
            Action::Mark { proc } => self.mark(proc),
            Action::Load { proc, late } => self.load_missed(proc, late),
            Action::GoSql { proc, late } => self.may_fail() && self.go_sql(proc, late),
            Action::Tick => {
                let more = self.clock < LAST_TICK;
                self.clock += u8::from(more);
                more
            }
            Action::Replicate => {
                let copy = self.nodes[self.primary].clone();
                let replica = &mut self.nodes[(self.primary + 1) % NODES];
                let news = *replica != copy;
                *replica = copy;
                news
            }
            Action::Promote => self.may_fail() && self.promote(),
            Action::Restart => self.may_fail() && self.restart(),
            Action::Flush => self.may_fail() && self.flush(),
            Action::DeleteSku => {
                let there = self.nodes[self.primary].sku.is_some() && self.may_fail();
                if there {
                    self.nodes[self.primary].sku = None;
                }
                there
            }
            Action::Crash { proc } => {
                let may = self.may_fail();
                if may {
                    self.crash(proc);
                }
                may
            }
            Action::Reconnect { proc } => {
                let moved = self.procs[proc].conn != self.primary;
                self.procs[proc].conn = self.primary;
                moved
            }
        }
    }

    fn may_fail(&mut self) -> bool {
        let may = self.faults > 0;
        self.faults -= u8::from(may);
        may
    }

    fn deliver(&mut self, msg: usize, fate: Fate) -> bool {
        if msg >= self.msgs.len() || self.msgs[msg].reply.is_some() {
            return false;
        }
        let mut m = self.msgs.remove(msg);
        let reply = self.execute(m.to, m.from, &m.body);
        match fate {
            Fate::Done => self.handle(m.from, m.life, m.to, &m.body, reply),
            Fate::Held => {
                m.reply = Some(reply);
                self.msgs.insert(msg, m);
            }
            Fate::Unheard => {}
        }
        true
    }

    fn hear_reply(&mut self, msg: usize) -> bool {
        if self.msgs.get(msg).is_none_or(|m| m.reply.is_none()) {
            return false;
        }
        let m = self.msgs.remove(msg);
        if let Some(reply) = m.reply {
            self.handle(m.from, m.life, m.to, &m.body, reply);
        }
        true
    }

    /// The replica becomes the primary; the old one stays reachable for those who do not know.
    fn promote(&mut self) -> bool {
        self.primary = (self.primary + 1) % NODES;
        self.lossy = true;
        true
    }

    /// The primary comes back as it was when it was last copied.
    fn restart(&mut self) -> bool {
        let copy = self.nodes[(self.primary + 1) % NODES].clone();
        self.nodes[self.primary] = copy;
        self.lossy = true;
        true
    }

    fn flush(&mut self) -> bool {
        self.nodes[self.primary] = Node::default();
        self.lossy = true;
        true
    }
}

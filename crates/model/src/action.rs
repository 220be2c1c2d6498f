//! What may happen next. Everything is possible at any time that its own conditions allow; a process that stands still
//! is one that is not chosen.

use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::state::{Cmd, IDS, LAST_TICK, Mode, NODES, Node, PROCS, REQUESTS, To, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Executed, and the reply handled.
    Done,
    /// Executed; the reply is still under way.
    Held,
    /// Executed; the reply is lost.
    Unheard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Ask { id: usize, cmd: Cmd, proc: usize },
    Call { proc: usize, count: usize, late: bool },
    Deliver { msg: usize, fate: Fate },
    Hear { msg: usize },
    LoseMessage { msg: usize },
    Again { req: usize },
    Answer { req: usize },
    Keep { proc: usize, id: usize },
    ReadLedger { proc: usize },
    Record { proc: usize, count: usize, late: bool },
    Trim { proc: usize, late: bool },
    Forget { proc: usize, id: usize },
    Sweep { proc: usize },
    Seize { proc: usize, split: usize, late: bool },
    Rebuild { proc: usize, late: bool },
    Abandon { proc: usize },
    Resume { proc: usize, split: usize },
    DropOlder { proc: usize },
    Mark { proc: usize },
    Load { proc: usize, late: bool },
    GoSql { proc: usize, late: bool },
    Tick,
    Replicate,
    Promote,
    Restart,
    Flush,
    DeleteSku,
    Crash { proc: usize },
    Reconnect { proc: usize },
}

/// How likely each kind is chosen, in the order of [`Action`].
pub(crate) const KINDS: usize = 29;

pub(crate) const CMDS: [Cmd; 7] = [
    Cmd::Reserve,
    Cmd::Deduct,
    Cmd::Cancel,
    Cmd::Confirm,
    Cmd::ReserveHard,
    Cmd::Extend,
    Cmd::Read,
];
const FATES: [Fate; 3] = [Fate::Done, Fate::Held, Fate::Unheard];

impl Action {
    /// A random one; it may turn out not to be possible.
    pub fn random(rng: &mut Rng, scenario: &Scenario) -> Self {
        let proc = rng.below(PROCS);
        let id = rng.below(IDS);
        let late = rng.below(100) < scenario.late;
        let split = 1 + rng.below(2);
        let count = 1 + rng.below(2);
        match rng.weighted(&scenario.weights) {
            0 => Self::Ask {
                id,
                cmd: scenario.cmds[rng.below(scenario.cmds.len())],
                proc,
            },
            1 => Self::Call { proc, count, late },
            2 => Self::Deliver {
                msg: rng.below(5),
                fate: FATES[rng.below(3)],
            },
            3 => Self::Hear { msg: rng.below(5) },
            4 => Self::LoseMessage { msg: rng.below(5) },
            5 => Self::Again {
                req: rng.below(REQUESTS),
            },
            6 => Self::Answer {
                req: rng.below(REQUESTS),
            },
            7 => Self::Keep { proc, id },
            8 => Self::ReadLedger { proc },
            9 => Self::Record {
                proc,
                count: [1, 9][rng.below(2)],
                late,
            },
            10 => Self::Trim { proc, late },
            11 => Self::Forget { proc, id },
            12 => Self::Sweep { proc },
            13 => Self::Seize { proc, split, late },
            14 => Self::Rebuild { proc, late },
            15 => Self::Abandon { proc },
            16 => Self::Resume { proc, split },
            17 => Self::DropOlder { proc },
            18 => Self::Mark { proc },
            19 => Self::Load { proc, late },
            20 => Self::GoSql { proc, late },
            21 => Self::Tick,
            22 => Self::Replicate,
            23 => Self::Promote,
            24 => Self::Restart,
            25 => Self::Flush,
            26 => Self::DeleteSku,
            27 => Self::Crash { proc },
            _ => Self::Reconnect { proc },
        }
    }

    /// Every action there is, for the exhaustive search; kinds of weight 0 are left out.
    pub fn every(scenario: &Scenario) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |kind: usize, actions: &[Self]| {
            if scenario.weights[kind] > 0 {
                all.extend_from_slice(actions);
            }
        };
        let lates: &[bool] = if scenario.late > 0 {
            &[false, true]
        } else {
            &[false]
        };
        for proc in 0..PROCS {
            for id in 0..IDS {
                for &cmd in scenario.cmds {
                    add(0, &[Self::Ask { id, cmd, proc }]);
                }
                add(7, &[Self::Keep { proc, id }]);
                add(11, &[Self::Forget { proc, id }]);
            }
            for &late in lates {
                add(1, &[1, 2].map(|count| Self::Call { proc, count, late }));
                add(9, &[1, 9].map(|count| Self::Record { proc, count, late }));
                add(10, &[Self::Trim { proc, late }]);
                add(13, &[1, 2].map(|split| Self::Seize { proc, split, late }));
                add(14, &[Self::Rebuild { proc, late }]);
                add(19, &[Self::Load { proc, late }]);
                add(20, &[Self::GoSql { proc, late }]);
            }
            add(8, &[Self::ReadLedger { proc }]);
            add(12, &[Self::Sweep { proc }]);
            add(15, &[Self::Abandon { proc }]);
            add(16, &[1, 2].map(|split| Self::Resume { proc, split }));
            add(17, &[Self::DropOlder { proc }]);
            add(18, &[Self::Mark { proc }]);
            add(27, &[Self::Crash { proc }]);
            add(28, &[Self::Reconnect { proc }]);
        }
        for msg in 0..crate::state::MESSAGES {
            add(2, &FATES.map(|fate| Self::Deliver { msg, fate }));
            add(3, &[Self::Hear { msg }]);
            add(4, &[Self::LoseMessage { msg }]);
        }
        for req in 0..REQUESTS {
            add(5, &[Self::Again { req }]);
            add(6, &[Self::Answer { req }]);
        }
        let faults = [
            Self::Tick,
            Self::Replicate,
            Self::Promote,
            Self::Restart,
            Self::Flush,
            Self::DeleteSku,
        ];
        for (kind, action) in (21..).zip(faults) {
            add(kind, &[action]);
        }
        all
    }
}

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

impl To {
    pub fn told(self) -> String {
        match self {
            Self::Node(node) => format!("node {node}"),
            Self::Ledger => "the ledger".to_owned(),
        }
    }
}

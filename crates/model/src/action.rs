//! What may happen next. Everything is possible at any time that its own conditions allow; a process that stands still
//! is one that is not chosen.

use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::state::{Cmd, IDS, PROCS, REQUESTS};

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
        let timings: &[bool] = if scenario.late > 0 {
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
            for &late in timings {
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

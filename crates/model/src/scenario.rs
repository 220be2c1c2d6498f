//! How the search is weighted: which faults and actions it prefers. A weight is never a script; 0 leaves a kind out.

use crate::action::{CMDS, KINDS};
use crate::rules::{Look, Rule, Rules};
use crate::state::Cmd;

#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub weights: [u16; KINDS],
    /// What clients ask for.
    pub cmds: &'static [Cmd],
    /// How many calls in a hundred stay under way.
    pub late: usize,
    /// How many faults a run may have.
    pub faults: u8,
    /// How many steps a run has.
    pub depth: usize,
    pub look: Look,
    /// How a process makes sure of a refusal: by the script's word, or by waiting for the tip.
    pub refusals_wait: bool,
    pub rules: Rules,
}

// Names of the places in `weights`, in the order of `Action`.
const ASK: usize = 0;
const HEAR: usize = 3;
const LOSE: usize = 4;
const AGAIN: usize = 5;
const KEEP: usize = 7;
const TRIM: usize = 10;
const FORGET: usize = 11;
const SWEEP: usize = 12;
const SEIZE: usize = 13;
const REBUILD: usize = 14;
const ABANDON: usize = 15;
const RESUME: usize = 16;
const DROP: usize = 17;
const MARK: usize = 18;
const LOAD: usize = 19;
const SQL: usize = 20;
const TICK: usize = 21;
const REPLICATE: usize = 22;
const PROMOTE: usize = 23;
const RESTART: usize = 24;
const FLUSH: usize = 25;
const DELETE: usize = 26;
const CRASH: usize = 27;
const RECONNECT: usize = 28;

/// Everything at once.
pub const EVERYTHING: Scenario = Scenario {
    name: "everything",
    weights: [
        30, 60, 20, 10, 2, 4, 40, 6, 40, 40, 15, 15, 5, 4, 60, 1, 20, 10, 20, 20, 1, 2, 10, 2, 2, 1, 2, 2, 10,
    ],
    cmds: &CMDS,
    late: 25,
    faults: 4,
    depth: 90,
    look: Look::Always,
    refusals_wait: false,
    rules: Rules::ALL,
};

impl Scenario {
    #[must_use]
    pub fn with(mut self, changes: &[(usize, u16)]) -> Self {
        for (kind, weight) in changes {
            self.weights[*kind] = *weight;
        }
        self
    }

    #[must_use]
    pub fn without(mut self, rule: Rule) -> Self {
        self.rules = self.rules.without(rule);
        self
    }

    #[must_use]
    pub fn looking(mut self, look: Look) -> Self {
        self.look = look;
        self
    }

    fn named(mut self, name: &'static str, depth: usize, faults: u8) -> Self {
        self.name = name;
        self.depth = depth;
        self.faults = faults;
        self
    }

    /// Losses of a suffix; no rebuild, no fallback.
    pub fn losses() -> Self {
        let none = [
            SEIZE, REBUILD, ABANDON, RESUME, DROP, MARK, LOAD, SQL, TICK, SWEEP, FLUSH, DELETE, CRASH,
        ];
        EVERYTHING
            .with(&none.map(|k| (k, 0)))
            .with(&[(RESTART, 4), (PROMOTE, 2), (REPLICATE, 12)])
            .named("losses", 30, 2)
    }

    /// One node after the other is named, and answers come late.
    pub fn failovers() -> Self {
        let mut scenario = Self::losses().with(&[
            (RESTART, 0),
            (PROMOTE, 10),
            (REPLICATE, 6),
            (RECONNECT, 40),
            (HEAR, 30),
        ]);
        for kind in [AGAIN, KEEP, TRIM, FORGET, LOSE] {
            scenario.weights[kind] = 0;
        }
        scenario.weights[ASK] = 60;
        scenario.cmds = &[Cmd::Reserve, Cmd::Deduct, Cmd::Cancel];
        scenario.late = 50;
        scenario.named("failovers", 18, 1)
    }

    /// Rebuilds and whatever can go wrong in one.
    pub fn rebuilds() -> Self {
        let none = [SQL, MARK, LOAD, FLUSH, DELETE, TICK, SWEEP, FORGET];
        EVERYTHING
            .with(&none.map(|k| (k, 0)))
            .with(&[
                (SEIZE, 10),
                (REBUILD, 100),
                (DROP, 20),
                (CRASH, 4),
                (RESTART, 4),
                (REPLICATE, 20),
            ])
            .named("rebuilds", 50, 3)
    }

    /// Rebuilds while ends pass.
    pub fn ends() -> Self {
        let mut scenario = Self::rebuilds().with(&[(TICK, 20)]);
        scenario.name = "ends";
        scenario
    }

    /// Rebuilds although no node lost anything.
    pub fn calm_rebuilds() -> Self {
        let mut scenario = Self::rebuilds().named("calm-rebuilds", 30, 0);
        for kind in [AGAIN, KEEP, TRIM, DROP, REPLICATE] {
            scenario.weights[kind] = 0;
        }
        scenario.cmds = &[Cmd::Reserve, Cmd::ReserveHard, Cmd::Cancel, Cmd::Read];
        scenario.late = 5;
        scenario
    }

    /// Extends between rebuilds.
    pub fn extends() -> Self {
        let mut scenario = Self::calm_rebuilds()
            .with(&[(TICK, 8), (SEIZE, 20)])
            .named("extends", 44, 0);
        scenario.cmds = &[Cmd::Reserve, Cmd::Extend];
        scenario
    }

    /// A SKU that goes missing.
    pub fn misses() -> Self {
        let none = [
            SEIZE, REBUILD, ABANDON, RESUME, DROP, SQL, TICK, SWEEP, FLUSH, CRASH, PROMOTE, RESTART,
            RECONNECT,
        ];
        EVERYTHING
            .with(&none.map(|k| (k, 0)))
            .with(&[(DELETE, 8), (MARK, 40), (LOAD, 40)])
            .named("misses", 40, 3)
    }

    /// The ledger decides for a while.
    pub fn fallback() -> Self {
        let none = [
            MARK, LOAD, FLUSH, DELETE, TICK, SWEEP, FORGET, DROP, PROMOTE, RESTART, CRASH,
        ];
        EVERYTHING
            .with(&none.map(|k| (k, 0)))
            .with(&[(SQL, 8), (SEIZE, 8), (REBUILD, 100)])
            .named("fallback", 40, 2)
    }

    /// The scenario in which the search looks for what a rule prevents.
    pub fn of(rule: Rule) -> Self {
        match rule {
            Rule::Tag
            | Rule::RecordedByTag
            | Rule::InclusiveRead
            | Rule::TrimTag
            | Rule::LookUp
            | Rule::RefusalCheck
            | Rule::RefuseAgain
            | Rule::FreshRow
            | Rule::KnownCursor
            | Rule::SaleRecorded => Self::losses(),
            Rule::FenceFirst
            | Rule::NewEpoch
            | Rule::StrictChunks
            | Rule::RerunLookUp
            | Rule::RerunCounted
            | Rule::Closed
            | Rule::OpeningRow
            | Rule::ForgetBase => Self::rebuilds(),
            Rule::LoadMarker | Rule::LoadWait => Self::misses(),
            Rule::LoadOnChain | Rule::LiveFork | Rule::HotOnly | Rule::KnownEpoch => EVERYTHING,
            Rule::RerunFrees => Self::calm_rebuilds(),
            Rule::RerunExtend => Self::extends(),
            Rule::RerunEnds => Self::ends(),
            Rule::RerunSku => Self::calm_rebuilds()
                .with(&[(DELETE, 10)])
                .named("calm-rebuilds", 30, 1),
            Rule::CheckInScript => Self::failovers(),
            Rule::SqlEpoch => Self::fallback(),
            Rule::Whole => Self::fallback().looking(Look::Forgot),
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "everything" => Some(EVERYTHING),
            "losses" => Some(Self::losses()),
            "failovers" => Some(Self::failovers()),
            "calm-rebuilds" => Some(Self::calm_rebuilds()),
            "ends" => Some(Self::ends()),
            "extends" => Some(Self::extends()),
            "rebuilds" => Some(Self::rebuilds()),
            "misses" => Some(Self::misses()),
            "fallback" => Some(Self::fallback()),
            _ => None,
        }
    }
}

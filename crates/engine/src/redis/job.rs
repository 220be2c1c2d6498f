//! A command on its way: where its answer goes, until when, and what the ledger said for it so far.

use std::time::Instant;

use stockade_core::{Action, Command, LookedUp, Mode};
use stockade_redis::{Absent, Asked, ScriptKind};
use tokio::sync::oneshot;

use crate::tally::Kind;
use crate::tier::Answer;

/// Where an answer goes.
#[derive(Debug)]
pub(super) enum To {
    /// To the caller of one command.
    One(oneshot::Sender<Answer>),
    /// Into the answers of many commands.
    Many {
        /// Which.
        group: u64,
        /// At which place.
        index: usize,
    },
    /// To nobody: a grant that was answered before it was recorded, and is asked for again after a loss.
    Kept,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) command: Command,
    pub(super) to: To,
    /// Whether it is only answered when it is recorded.
    pub(super) hard: bool,
    pub(super) deadline: Instant,
    /// What the ledger said about ids that it names.
    pub(super) known: Vec<LookedUp>,
    /// SKUs that the ledger does not know.
    pub(super) absent: Vec<Absent>,
    /// How often the ledger was asked for it.
    pub(super) look_ups: u32,
    /// How often it was sent and something came between it and its answer.
    pub(super) tries: u32,
    /// Whether an earlier send may have been executed: then it is not given up as if nothing had happened.
    pub(super) maybe_done: bool,
    /// Whether those that stand behind it in its group were told that it is decided.
    pub(super) decided: bool,
}

impl Job {
    pub(super) fn new(command: Command, to: To, hard: bool, deadline: Instant) -> Self {
        Self {
            command,
            to,
            hard,
            deadline,
            known: Vec::new(),
            absent: Vec::new(),
            look_ups: 0,
            tries: 0,
            maybe_done: false,
            decided: false,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        Kind::of(&self.command.action)
    }

    pub(super) fn script(&self) -> ScriptKind {
        ScriptKind::of(&self.command.action)
    }

    pub(super) fn asked(&self) -> Asked<'_> {
        Asked {
            command: &self.command,
            known: &self.known,
            absent: &self.absent,
        }
    }

    /// Whether nobody waits for it any more and it was never sent.
    pub(super) fn is_abandoned(&self) -> bool {
        !self.maybe_done && self.tries == 0 && matches!(&self.to, To::One(answer) if answer.is_closed())
    }

    pub(super) fn is_kept(&self) -> bool {
        matches!(self.to, To::Kept)
    }

    /// Whether its answer may go out before it is recorded, if what it shows allows that. A reserve that takes the
    /// place of another reservation shows a cancel, which may not.
    pub(super) fn may_be_soft(&self) -> bool {
        !self.hard
            && match &self.command.action {
                Action::Reserve(reserve) => reserve.mode == Mode::Reserve && reserve.supersedes.is_none(),
                Action::Extend(_) | Action::ShowReservation { .. } => true,
                Action::Confirm(_)
                | Action::Cancel(_)
                | Action::Return(_)
                | Action::Set(_)
                | Action::Adjust(_)
                | Action::Transfer(_)
                | Action::Configure(_)
                | Action::ShowStock { .. } => false,
            }
    }

    /// Whether it only reads.
    pub(super) const fn is_read(&self) -> bool {
        matches!(
            self.command.action,
            Action::ShowReservation { .. } | Action::ShowStock { .. }
        )
    }
}

/// A grant that was answered and is not recorded yet: enough to ask for it again.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) command: Command,
    /// The end that was promised.
    pub(super) ends_at: i64,
}

impl Kept {
    /// Back into a job: the original payload and end, and none of the conditions that held when it was granted.
    pub(super) fn again(mut self, now_ms: i64, deadline: Instant) -> Job {
        if let Action::Reserve(reserve) = &mut self.command.action {
            reserve.ttl_ms = self
                .ends_at
                .saturating_sub(now_ms)
                .clamp(stockade_core::TTL_MS_MIN, stockade_core::TTL_MS_MAX);
            for line in &mut reserve.lines {
                line.if_revision = None;
            }
        }
        Job::new(self.command, To::Kept, false, deadline)
    }
}

//! The seam between the store and whatever decides: one tier serves one shard.
//!
//! A tier takes submissions without blocking, decides each command exactly once in one history, and answers each
//! submission once: when what the answer shows is recorded, or, where the caller allows it, when it is decided.

use std::collections::HashSet;
use std::fmt;

use stockade_core::{Command, Done, Id, Position, Reservation, SkuRecord};
use stockade_ledger::View;
use tokio::sync::oneshot;

use crate::api::Health;
use crate::error::Error;

/// What a command is answered with.
pub(crate) type Answer = Result<Answered, Error>;

/// When a reserve or an extend is answered. Everything else is answered when it is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it is decided, if the tier can do so earlier than recording it. Until it is recorded it can be lost with
    /// Redis's last second; the process that gave the answer then asks for it again, and reports what no longer fits.
    #[default]
    Hot,
    /// When the ledger has recorded it. In memory always.
    Ledger,
}

/// What was done, and whether it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What was done.
    pub done: Done,
    /// Whether the ledger has recorded it.
    pub recorded: bool,
}

impl Answered {
    /// Of something that is recorded, or will be before anybody hears of it.
    pub(crate) const fn recorded(done: Done) -> Self {
        Self { done, recorded: true }
    }
}

/// Decides the commands of one shard.
pub(crate) trait HotTier: Send + Sync + fmt::Debug {
    /// The shard that it serves.
    fn shard(&self) -> u32;
    /// Takes work, or answers it at once with an error. Never blocks.
    fn submit(&self, work: Submission);
    /// How it is. Never blocks.
    fn health(&self) -> Health;
    /// Asks for its state and the ledger's view at one moment. The sender is dropped when the tier cannot give it.
    fn freeze(&self, frozen: oneshot::Sender<Frozen>);
    /// Takes no more work; what was taken is answered.
    fn close(&self);
    /// Resolves when the tier has ended: closed, or broken.
    fn ended(&self) -> tokio::sync::watch::Receiver<bool>;
    /// Waits until the tier's threads are gone. Returns at once on a thread of the tier itself.
    fn join(&self);
}

/// What one call of a caller brings. Dropping the receiving side leaves each command whole: done, or never begun.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one command is the common case and needs no allocation of its own"
)]
pub(crate) enum Submission {
    /// One command.
    One {
        /// What is asked.
        command: Command,
        /// When it is answered.
        durability: Durability,
        /// Where the answer goes.
        answer: oneshot::Sender<Answer>,
    },
    /// Many commands with one waiter.
    Many(Box<Batch>),
}

/// Commands that are decided in order and answered together.
#[derive(Debug)]
pub(crate) struct Batch {
    /// What is asked.
    pub(crate) commands: Vec<Command>,
    /// When each is answered; all of them are answered together.
    pub(crate) durability: Durability,
    /// The answers so far, each with the entry that it needs on disk; refused at the door: already there.
    pub(crate) decided: Vec<Option<Decided>>,
    /// The next command to decide.
    pub(crate) next: usize,
    /// How many commands of it were let in.
    pub(crate) admitted: usize,
    /// Where the answers go.
    pub(crate) answer: oneshot::Sender<Vec<Answer>>,
}

/// An answer that may still have to wait for the disk.
#[derive(Debug)]
pub(crate) struct Decided {
    /// The answer.
    pub(crate) answer: Answer,
    /// The entry that must be recorded before it goes out.
    pub(crate) needs: u64,
}

impl Submission {
    /// How many commands of it were let in.
    pub(crate) fn admitted(&self) -> usize {
        match self {
            Self::One { .. } => 1,
            Self::Many(batch) => batch.admitted,
        }
    }
}

impl Batch {
    /// A batch of which nothing is decided.
    pub(crate) fn new(
        commands: Vec<Command>,
        durability: Durability,
        answer: oneshot::Sender<Vec<Answer>>,
    ) -> Self {
        let mut decided = Vec::new();
        decided.resize_with(commands.len(), || None);
        Self {
            commands,
            durability,
            decided,
            next: 0,
            admitted: 0,
            answer,
        }
    }

    /// The highest entry that any answer needs.
    pub(crate) fn needs(&self) -> u64 {
        self.decided
            .iter()
            .flatten()
            .map(|decided| decided.needs)
            .max()
            .unwrap_or(0)
    }

    /// Sends what is decided; a command without an answer gets `missing`.
    pub(crate) fn finish(self, missing: impl Fn() -> Error) {
        let answers = self
            .decided
            .into_iter()
            .map(|decided| decided.map_or_else(|| Err(missing()), |decided| decided.answer))
            .collect();
        // A caller that hung up does not want them.
        let _ = self.answer.send(answers);
    }
}

/// A shard's state, and the ledger's view at the same moment.
pub(crate) struct Frozen {
    /// The entry up to which both are.
    pub(crate) at: Position,
    /// Set when the state was read piece by piece while commands went on, so that what changed meanwhile differs. The
    /// SKUs whose owner usage is kept there; others need not be held.
    pub(crate) moving: Option<HashSet<(Id, Id)>>,
    /// Every SKU.
    pub(crate) skus: Vec<SkuRecord>,
    /// Every live reservation.
    pub(crate) live: Vec<Reservation>,
    /// Every owner usage that is not 0.
    pub(crate) usage: Vec<(Id, Id, Id, u64)>,
    /// The ledger.
    pub(crate) view: Box<dyn View>,
}

impl fmt::Debug for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frozen")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

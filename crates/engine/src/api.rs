//! The public door.

use std::path::PathBuf;
use std::sync::Arc;

use stockade_core::{Command, Done, Id, LateConfirm, Position, Refusal, SkuRecord};
use stockade_ledger::{Finding, LedgerError, MovementPage, MovementQuery, ReservationQuery};

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data folder; created when missing.
    pub data: PathBuf,
    /// What a confirm after the end does.
    pub late_confirm: LateConfirm,
    /// The most commands that may wait for a decision or for the disk; further ones are refused as overloaded. At
    /// 80 % of it only new reservations are refused.
    pub backlog_commands: usize,
    /// Ended ids kept in memory for replays: at most so many...
    pub keep_ended: usize,
    /// ...and at most so long, in milliseconds. Older ones are looked up in the ledger.
    pub keep_ended_ms: i64,
}

impl Options {
    /// The defaults, on a data folder.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            late_confirm: LateConfirm::default(),
            backlog_commands: 65_536,
            keep_ended: 1_000_000,
            keep_ended_ms: 24 * 3_600_000,
        }
    }

    /// Opens the store: locks the folder, opens the ledger, starts a new epoch, loads what is live.
    pub async fn open(self) -> Result<Stockade, OpenError> {
        unimplemented!()
    }
}

/// Why a store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the folder.
    #[error("{path}: in use by another process{}; stop it, or use another data folder", .pid.map(|p| format!(" (id {p})")).unwrap_or_default())]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The other process, if it could be read.
        pid: Option<u32>,
    },
    /// The folder cannot be made or written.
    #[error("{path}: {message}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What happened and what to do.
        message: String,
    },
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Why a command was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Refused by the rules; nothing was changed.
    #[error("refused: {0:?}")]
    Refused(Refusal),
    /// Too much is waiting; nothing was changed.
    #[error("overloaded: {waiting} commands wait, {limit} may")]
    Overloaded {
        /// How many wait.
        waiting: usize,
        /// How many may.
        limit: usize,
        /// When to try again.
        retry_after_ms: u64,
    },
    /// The store cannot answer now; nothing was changed.
    #[error("unavailable: {why}")]
    Unavailable {
        /// Why, and what to do.
        why: String,
    },
    /// It may or may not have happened: ask by id, or send the same id again.
    #[error("outcome unknown: {why}")]
    OutcomeUnknown {
        /// Why.
        why: String,
    },
}

/// Whether the store takes commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    Ready,
    /// It is being closed.
    Closing,
    /// A write to disk failed in a way after which nothing can be trusted: the process must be restarted.
    Poisoned {
        /// What failed.
        why: String,
    },
}

/// How the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether it takes commands.
    pub readiness: Readiness,
    /// The last sealed entry.
    pub decided: Position,
    /// The sequence number of the last recorded entry.
    pub recorded: u64,
    /// Commands that wait for a decision or for the disk.
    pub waiting: usize,
    /// Live reservations.
    pub live: usize,
}

/// What an audit found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// The differences; empty when all is well.
    pub findings: Vec<Finding>,
    /// Whether there were more findings than were asked for.
    pub truncated: bool,
    /// SKUs compared.
    pub skus: u64,
    /// Live reservations compared.
    pub live: u64,
    /// The entry at which both sides were compared.
    pub at: Position,
}

/// An open store. Clones share it.
#[derive(Clone, Debug)]
pub struct Stockade {
    inner: Arc<()>,
}

impl Stockade {
    /// Opens a store with the defaults.
    pub async fn open(data: impl Into<PathBuf>) -> Result<Self, OpenError> {
        Options::new(data).open().await
    }
    /// Does one command; answers when the answer is on disk. Dropping the future does not split the command: it is
    /// done whole or never starts.
    pub async fn submit(&self, command: Command) -> Result<Done, Error> {
        let _ = (command, &self.inner);
        unimplemented!()
    }
    /// Does many commands, in order, independent of each other.
    pub async fn submit_many(&self, commands: Vec<Command>) -> Vec<Result<Done, Error>> {
        let _ = commands;
        unimplemented!()
    }
    /// SKUs of a tenant in the order of their bytes, after `after`, at most `limit`.
    pub async fn stock_page(
        &self,
        tenant: &Id,
        after: Option<&Id>,
        limit: usize,
    ) -> Result<Vec<SkuRecord>, Error> {
        let _ = (tenant, after, limit);
        unimplemented!()
    }
    /// Movements, newest first.
    pub async fn movements(&self, query: MovementQuery) -> Result<MovementPage, Error> {
        let _ = query;
        unimplemented!()
    }
    /// Recorded reservations, newest first.
    pub async fn reservations(
        &self,
        query: ReservationQuery,
    ) -> Result<Vec<stockade_core::Reservation>, Error> {
        let _ = query;
        unimplemented!()
    }
    /// Compares hot tier, ledger and movements at one moment; at most `limit` findings.
    pub async fn audit(&self, limit: usize) -> Result<AuditReport, Error> {
        let _ = limit;
        unimplemented!()
    }
    /// How the store is. Never waits.
    pub fn health(&self) -> Health {
        unimplemented!()
    }
    /// Takes no more commands, answers those taken, and lets go of the folder.
    pub async fn close(&self) -> Result<(), Error> {
        unimplemented!()
    }
}

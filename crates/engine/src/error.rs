//! Why a store could not be opened, and why a command was not done.

use std::fmt::Write as _;
use std::path::PathBuf;

use stockade_core::{LateReason, Refusal, RefusedLine};
use stockade_ledger::LedgerError;

/// Why a store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process (or another store in this process) has the folder.
    #[error("{path}: in use by another process{}; stop it, or use another data folder", .pid.map(|p| format!(" (id {p})")).unwrap_or_default())]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The process that has it, if it could be read.
        pid: Option<u32>,
    },
    /// Processes whose hot tier is on Redis use the folder.
    #[error(
        "{path}: in use by processes whose hot tier is on Redis; stop them, or open it the same way, with the same Redis"
    )]
    Shared {
        /// The folder.
        path: PathBuf,
    },
    /// Redis.
    #[error("{message}")]
    Redis {
        /// What happened and what to do.
        message: String,
    },
    /// The folder cannot be made or written, or a thread could not be started.
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
    #[error("{}", describe(.0))]
    Refused(Refusal),
    /// Too much is waiting; nothing was changed.
    #[error("overloaded: {waiting} commands wait, {limit} may; try again in {retry_after_ms} ms")]
    Overloaded {
        /// How many wait.
        waiting: usize,
        /// How many may, for a command of this kind.
        limit: usize,
        /// When to try again, in milliseconds: 50..=5,000.
        retry_after_ms: u64,
    },
    /// The store cannot answer now; nothing was changed.
    #[error("unavailable: {why}")]
    Unavailable {
        /// Why, and what to do.
        why: String,
    },
    /// It may or may not have happened: ask by id, or send the same id again.
    #[error("outcome unknown: {why}; ask by id, or send the same id again")]
    OutcomeUnknown {
        /// Why.
        why: String,
    },
}

impl Error {
    /// The stable word for this error, the same in every interface: `insufficient_stock`, `overloaded` ...
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal_code(refusal),
            Self::Overloaded { .. } => "overloaded",
            Self::Unavailable { .. } => "unavailable",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
        }
    }

    /// The refusal, if the rules refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Overloaded { .. } | Self::Unavailable { .. } | Self::OutcomeUnknown { .. } => None,
        }
    }
}

/// The stable word for a refusal.
pub(crate) fn refusal_code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::InsufficientStock(_) => "insufficient_stock",
        Refusal::UnknownSku(_) => "unknown_sku",
        Refusal::RevisionConflict(_) => "revision_conflict",
        Refusal::LimitExceeded(_) => "limit_exceeded",
        Refusal::NotOpen(_) => "not_open",
        Refusal::Closed(_) => "closed",
        Refusal::Paused(_) => "paused",
        Refusal::BelowReserved { .. } => "below_reserved",
        Refusal::IdReused => "id_reused",
        Refusal::CrossShard => "cross_shard",
        Refusal::NotFound { .. } => "not_found",
        Refusal::Expired { .. } => "expired",
        Refusal::AlreadyConfirmed(_) => "already_confirmed",
        Refusal::AlreadyCancelled(_) => "already_cancelled",
        Refusal::NotConfirmed(_) => "not_confirmed",
        Refusal::Invalid(_) => "invalid",
    }
}

/// One line for people: the code, then the numbers.
fn describe(refusal: &Refusal) -> String {
    let code = refusal_code(refusal);
    match refusal {
        Refusal::InsufficientStock(lines) => list(code, lines, |short| {
            format!("asked {}, available {}", short.asked, short.available)
        }),
        Refusal::UnknownSku(lines) => list(code, lines, |()| "not known".into()),
        Refusal::RevisionConflict(lines) => list(code, lines, |conflict| {
            let word = |revision: Option<u64>| revision.map_or_else(|| "none".into(), |r| r.to_string());
            format!(
                "revision {} expected, {} found",
                word(conflict.expected),
                word(conflict.found)
            )
        }),
        Refusal::LimitExceeded(lines) => list(code, lines, |over| {
            format!("asked {}, used {}, limit {}", over.asked, over.used, over.limit)
        }),
        Refusal::NotOpen(lines) => list(code, lines, |at| format!("opens at {at} ms")),
        Refusal::Closed(lines) => list(code, lines, |at| format!("closed at {at} ms")),
        Refusal::Paused(lines) => list(code, lines, |()| "paused by the operator".into()),
        Refusal::BelowReserved {
            location,
            result,
            reserved,
        } => format!("{code}: on_hand at {location} would be {result}, {reserved} units are reserved"),
        Refusal::IdReused => format!("{code}: the id was used for something else"),
        Refusal::CrossShard => format!("{code}: one shard cannot hold the cart"),
        Refusal::NotFound { id } => format!("{code}: {id}"),
        Refusal::Expired { reservation, reason } => {
            let head = format!("{code}: {} ended at {} ms", reservation.id, reservation.ends_at);
            match reason {
                LateReason::Over => head,
                LateReason::Short(lines) => list(&head, lines, |short| {
                    format!("asked {}, available {}", short.asked, short.available)
                }),
                LateReason::Limit(lines) => list(&head, lines, |over| {
                    format!("asked {}, used {}, limit {}", over.asked, over.used, over.limit)
                }),
            }
        }
        Refusal::AlreadyConfirmed(reservation)
        | Refusal::AlreadyCancelled(reservation)
        | Refusal::NotConfirmed(reservation) => {
            format!("{code}: {} is {}", reservation.id, reservation.status.as_str())
        }
        Refusal::Invalid(fields) => {
            let mut text = format!("{code}:");
            for field in fields {
                let _ = write!(
                    text,
                    " {} is {}, allowed: {};",
                    field.field, field.found, field.allowed
                );
            }
            text.pop();
            text
        }
    }
}

fn list<T>(head: &str, lines: &[RefusedLine<T>], detail: impl Fn(&T) -> String) -> String {
    let mut text = format!("{head}:");
    for line in lines {
        let _ = write!(text, " {}", line.sku);
        if let Some(location) = &line.location {
            let _ = write!(text, " at {location}");
        }
        let _ = write!(text, " {};", detail(&line.detail));
    }
    text.pop();
    text
}

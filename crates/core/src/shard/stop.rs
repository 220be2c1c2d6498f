//! Why a command does not go on: the error side of every step inside a shard.

use alloc::string::ToString;
use alloc::vec;
use core::fmt::Display;

use crate::id::Id;
use crate::record::Space;
use crate::reply::{InvalidField, Refusal};

/// Anything that ends a command early.
#[derive(Debug)]
pub(super) enum Stop {
    /// A refusal, and the entry that must be recorded before it is told.
    Refused(Refusal, u64),
    /// The ledger must be asked.
    LookUp(Space, Id),
    /// More ends are due than one entry may free.
    Again,
    /// The state contradicts itself. Nothing was changed by the step that found it.
    Corrupt(&'static str),
}

pub(super) type Try<T> = Result<T, Stop>;

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal, 0)
    }
}

pub(super) fn field(name: impl Display, found: impl Display, allowed: impl Display) -> InvalidField {
    InvalidField {
        field: name.to_string(),
        found: found.to_string(),
        allowed: allowed.to_string(),
    }
}

pub(super) fn invalid(name: impl Display, found: impl Display, allowed: impl Display) -> Stop {
    Stop::from(Refusal::Invalid(vec![field(name, found, allowed)]))
}

//! Decisions. (skeleton: bodies follow)

use stockade_core::{Action, Millis};

use crate::error::CallError;
use crate::hot::Hot;
use crate::types::{Asked, Batch, Decided, Rerun, Sent, SweepReply};

impl Hot {
    /// Decides a merged batch. All commands are of one kind: `kind_of` of each is the same.
    pub async fn decide(&self, _sent: &Sent, _asked: &[Asked<'_>]) -> Result<Decided<Batch>, CallError> {
        todo!()
    }
    /// Ends reservations whose end has passed, at most `limit`.
    pub async fn sweep(&self, _sent: &Sent, _limit: usize) -> Result<Decided<SweepReply>, CallError> {
        todo!()
    }
    /// During a rebuild, on a closed shard: does surviving grants and extends again with their original ends, without window,
    /// revision or owner limit; what no longer fits becomes `lost`. The value: the ids that were lost.
    pub async fn rerun(
        &self,
        _sent: &Sent,
        _again: &[Rerun],
    ) -> Result<Decided<Vec<stockade_core::Reservation>>, CallError> {
        todo!()
    }
}

/// Which script decides a command: commands of one kind can be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScriptKind {
    /// Reserve and deduct.
    Reserve,
    /// Confirm.
    Confirm,
    /// Cancel.
    Cancel,
    /// Extend.
    Extend,
    /// Return.
    Return,
    /// Set, adjust, transfer, configure.
    Stock,
    /// Read-only.
    Show,
}

impl ScriptKind {
    /// Of an action.
    pub fn of(_action: &Action) -> Self {
        todo!()
    }
}

#[allow(dead_code)]
fn _unused(_: Millis) {}

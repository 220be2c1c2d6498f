//! Decisions: a merged batch of one kind of command is one call of one script.

mod answer;
mod calls;
mod msgpack;
mod shapes;

use redis::Value;
use stockade_core::Action;

use self::calls::{Again, Cancel, Confirm, Extend, Merged, Parts, Raw, Reserve, Return, Show, Stock, Sweep};
use crate::control::reply::{list, natural, word};
use crate::error::CallError;
use crate::hot::Hot;
use crate::layout::split_name;
use crate::packed::unpack_reservation;
use crate::script::Contract;
use crate::types::{Asked, Batch, Decided, Reran, Rerun, Sent, SweepReply};

/// The scripts of this part.
pub(crate) fn contracts() -> Vec<Contract> {
    calls::contracts()
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
    /// Reads. They end what is past its end, so that an answer does not depend on the sweeper.
    Show,
}

impl ScriptKind {
    /// Of an action.
    pub const fn of(action: &Action) -> Self {
        match action {
            Action::Reserve(_) => Self::Reserve,
            Action::Confirm(_) => Self::Confirm,
            Action::Cancel(_) => Self::Cancel,
            Action::Extend(_) => Self::Extend,
            Action::Return(_) => Self::Return,
            Action::Set(_) | Action::Adjust(_) | Action::Transfer(_) | Action::Configure(_) => Self::Stock,
            Action::ShowReservation { .. } | Action::ShowStock { .. } => Self::Show,
        }
    }

    /// Its script's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Confirm => "confirm",
            Self::Cancel => "cancel",
            Self::Extend => "extend",
            Self::Return => "return",
            Self::Stock => "stock",
            Self::Show => "show",
        }
    }
}

fn unreadable(place: &str, message: impl Into<String>) -> CallError {
    CallError::Unreadable {
        place: place.to_owned(),
        message: message.into(),
    }
}

impl Hot {
    /// Decides a merged batch. All commands are of one kind: [`ScriptKind::of`] of each is the same.
    pub async fn decide(&self, sent: &Sent, asked: &[Asked<'_>]) -> Result<Decided<Batch>, CallError> {
        let Some(first) = asked.first() else {
            return Err(unreadable("a batch", "it has no commands"));
        };
        let kind = ScriptKind::of(&first.command.action);
        if asked
            .iter()
            .any(|one| ScriptKind::of(&one.command.action) != kind)
        {
            return Err(unreadable("a batch", "its commands are of different kinds"));
        }
        let merged = Merged {
            parts: Parts::new(self.keys(), sent.epoch),
            sent,
            sending: shapes::sending(sent, asked),
        };
        let raw = match kind {
            ScriptKind::Reserve => self.run(&Reserve(&merged)).await?,
            ScriptKind::Confirm => self.run(&Confirm(&merged)).await?,
            ScriptKind::Cancel => self.run(&Cancel(&merged)).await?,
            ScriptKind::Extend => self.run(&Extend(&merged)).await?,
            ScriptKind::Return => self.run(&Return(&merged)).await?,
            ScriptKind::Stock => self.run(&Stock(&merged)).await?,
            ScriptKind::Show => self.run(&Show(&merged)).await?,
        };
        let (tip, at, raw) = match raw {
            Decided::Stale(stale) => return Ok(Decided::Stale(stale)),
            Decided::Done { tip, at, value } => (tip, at, value),
        };
        if raw.replies.len() != asked.len() {
            return Err(unreadable(kind.as_str(), "not a reply to every command"));
        }
        let mut verdicts = Vec::with_capacity(asked.len());
        for (one, value) in asked.iter().zip(&raw.replies) {
            let verdict = answer::verdict(one.command, at, value).ok_or_else(|| {
                unreadable(
                    kind.as_str(),
                    format!("a reply outside of its contract: {value:?}"),
                )
            })?;
            verdicts.push(verdict);
        }
        let value = Batch {
            wrote: raw.wrote,
            verdicts,
        };
        Ok(Decided::Done { tip, at, value })
    }

    /// Ends reservations whose end has passed, at most `limit`.
    pub async fn sweep(&self, sent: &Sent, limit: usize) -> Result<Decided<SweepReply>, CallError> {
        let parts = Parts::new(self.keys(), sent.epoch);
        let decided = self.run(&Sweep { parts, sent, limit }).await?;
        read(decided, "sweep", swept)
    }

    /// During a rebuild, on a closed shard: does surviving grants, extends and cancels again, with the ends given, without
    /// window, revision or owner limit. A grant that does not fit, even when what has ended is freed first, becomes `lost`.
    /// A call frees so much; what waits for more is to be sent again.
    pub async fn rerun(&self, sent: &Sent, again: &[Rerun]) -> Result<Decided<Reran>, CallError> {
        let parts = Parts::new(self.keys(), sent.epoch);
        let decided = self
            .run(&Again {
                parts,
                sent,
                changes: again,
            })
            .await?;
        read(decided, "rerun", |raw| {
            let mut reran = Reran::default();
            for (one, value) in again.iter().zip(&raw.replies) {
                let of = one.reservation();
                match list(value)? {
                    [tag] if word(tag)? == "again" => break,
                    [tag] if word(tag)? == "ok" => {}
                    [tag, Value::BulkString(packed)] if word(tag)? == "lost" => {
                        reran
                            .lost
                            .push(unpack_reservation(of.tenant.clone(), of.id.clone(), packed)?.0);
                    }
                    _ => return None,
                }
                reran.done += 1;
            }
            (raw.replies.len() == again.len()).then_some(reran)
        })
    }
}

fn swept(raw: &Raw) -> Option<SweepReply> {
    let [ended, more, lag, live, missing @ ..] = raw.replies.as_slice() else {
        return None;
    };
    Some(SweepReply {
        ended: usize::try_from(natural(ended)?).ok()?,
        more: natural(more)? == 1,
        lag_ms: i64::try_from(natural(lag)?).ok()?,
        live: natural(live)?,
        missing: missing
            .iter()
            .map(|name| split_name(word(name)?))
            .collect::<Option<_>>()?,
    })
}

fn read<T>(
    decided: Decided<Raw>,
    script: &str,
    value: impl FnOnce(&Raw) -> Option<T>,
) -> Result<Decided<T>, CallError> {
    match decided {
        Decided::Stale(stale) => Ok(Decided::Stale(stale)),
        Decided::Done { tip, at, value: raw } => match value(&raw) {
            Some(value) => Ok(Decided::Done { tip, at, value }),
            None => Err(unreadable(
                script,
                format!("a reply outside of its contract: {:?}", raw.replies),
            )),
        },
    }
}

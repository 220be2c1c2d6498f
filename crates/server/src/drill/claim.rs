//! One id as its client knows it: what was answered, what is in doubt, and what any further answer may be.

use crate::load::answer::{Answer, Code, Standing, Status};

/// What a client may do with an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Reserve {
        ttl_seconds: u64,
    },
    Deduct,
    Confirm,
    Cancel,
    /// Give back so many units; the number makes the return's own id.
    Return {
        units: u64,
        number: u32,
    },
}

/// Where an id stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Absent,
    Pending,
    Confirmed {
        returned: u64,
    },
    Cancelled,
    /// Cancelled before it ever came.
    Sealed,
    Expired,
}

/// An id and its client's knowledge of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) sku: usize,
    pub(crate) quantity: u64,
    pub(crate) state: State,
    /// The end of a pending reservation.
    pub(crate) expires_at_ms: i64,
    /// The command that brought the state about.
    pub(crate) last: Option<Command>,
    /// A command that was sent and not answered: it happened or it did not.
    pub(crate) doubt: Option<Command>,
    pub(crate) returns: u32,
}

/// Near an end, an answer may show either side of it: the clocks are read at different moments.
const CLOCK_MARGIN_MS: i64 = 1_000;

impl Claim {
    pub(crate) fn new(sku: usize, quantity: u64) -> Self {
        Self {
            sku,
            quantity,
            state: State::Absent,
            expires_at_ms: 0,
            last: None,
            doubt: None,
            returns: 0,
        }
    }

    /// The state after `command` is done.
    fn after(&self, command: Command) -> State {
        match (command, self.state) {
            (Command::Reserve { .. }, _) => State::Pending,
            (Command::Deduct | Command::Confirm, _) => State::Confirmed { returned: 0 },
            (Command::Cancel, State::Absent) => State::Sealed,
            (Command::Cancel, _) => State::Cancelled,
            (Command::Return { units, .. }, State::Confirmed { returned }) => State::Confirmed {
                returned: returned + units,
            },
            (Command::Return { .. }, state) => state,
        }
    }

    /// Takes the answer to `command`, sent for the first time.
    pub(crate) fn first_answer(&mut self, command: Command, answer: &Answer) -> Result<(), String> {
        let right = match (command, self.state) {
            (Command::Cancel, State::Absent) => answer.code == Code::Sealed,
            (Command::Reserve { .. } | Command::Deduct, _) => {
                matches!(answer.code, Code::Ok | Code::InsufficientStock)
            }
            (Command::Confirm | Command::Cancel | Command::Return { .. }, _) => answer.code == Code::Ok,
        };
        if !right {
            return Err(format!("{command:?} on {self:?} was answered {answer:?}"));
        }
        self.take(command, answer)
    }

    /// Takes the answer to a command that had been done before and is sent again: a replay that changes nothing.
    pub(crate) fn repeated_answer(&self, command: Command, answer: &Answer) -> Result<(), String> {
        let shown = answer
            .standing
            .as_ref()
            .is_some_and(|shown| self.shows(self.state, shown));
        if answer.code == Code::Replayed && shown {
            return Ok(());
        }
        Err(format!(
            "{command:?}, already done, on {self:?} was answered {answer:?}"
        ))
    }

    /// Takes the answer to the command in doubt, sent again. `found` is the state that the id was in before that, as
    /// asked: a command that had happened must be a replay, one that had not must be done now or be refused.
    pub(crate) fn answer_in_doubt(
        &mut self,
        command: Command,
        found: State,
        answer: &Answer,
    ) -> Result<(), String> {
        let happened = found != self.state;
        self.doubt = None;
        if !happened {
            return self.first_answer(command, answer);
        }
        // A short reservation may have run out between the asking and the sending.
        let ran_out = found == State::Expired || (found == State::Pending && answer.code == Code::Expired);
        if ran_out && matches!(command, Command::Reserve { .. }) && answer.code == Code::Expired {
            self.state = State::Expired;
            self.last = None;
            return Ok(());
        }
        if answer.code != Code::Replayed {
            return Err(format!(
                "{command:?} had happened to {self:?}; sent again it was answered {answer:?}"
            ));
        }
        self.take(command, answer)
    }

    fn take(&mut self, command: Command, answer: &Answer) -> Result<(), String> {
        if answer.code == Code::InsufficientStock {
            return Ok(());
        }
        let after = self.after(command);
        match &answer.standing {
            Some(shown) if self.shows(after, shown) => {
                self.expires_at_ms = shown.expires_at_ms;
                self.state = after;
                self.last = Some(command);
                Ok(())
            }
            shown => Err(format!("{command:?} on {self:?} is shown as {shown:?}")),
        }
    }

    /// Takes what is said when asked by id, and tells the state found.
    pub(crate) fn asked(&self, answer: &Answer, now_ms: i64) -> Result<State, String> {
        let possible = [Some(self.state), self.doubt.map(|command| self.after(command))];
        for state in possible.into_iter().flatten() {
            match &answer.standing {
                None if answer.code == Code::NotFound && state == State::Absent => return Ok(state),
                Some(shown) if self.shows(state, shown) && !is_over(state, shown, now_ms) => {
                    return Ok(state);
                }
                Some(shown)
                    if state == State::Pending
                        && self.shows(State::Expired, shown)
                        && shown.expires_at_ms <= now_ms + CLOCK_MARGIN_MS =>
                {
                    return Ok(State::Expired);
                }
                _ => {}
            }
        }
        Err(format!("{self:?} is shown as {answer:?}"))
    }

    fn shows(&self, state: State, shown: &Standing) -> bool {
        let (status, quantity, confirmed, returned) = match state {
            State::Absent => return false,
            State::Pending => (Status::Pending, self.quantity, 0, 0),
            State::Confirmed { returned } => (Status::Confirmed, self.quantity, self.quantity, returned),
            State::Cancelled => (Status::Cancelled, self.quantity, 0, 0),
            State::Sealed => (Status::Cancelled, 0, 0, 0),
            State::Expired => (Status::Expired, self.quantity, 0, 0),
        };
        shown.status == status
            && shown.quantity == quantity
            && shown.confirmed == confirmed
            && shown.returned == returned
    }
}

/// Shown as pending although its end is well past.
fn is_over(state: State, shown: &Standing, now_ms: i64) -> bool {
    state == State::Pending && shown.expires_at_ms < now_ms - CLOCK_MARGIN_MS
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;

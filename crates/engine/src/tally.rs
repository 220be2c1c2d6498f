//! Counts commands by kind and outcome: added up in plain numbers and handed to the metrics once a turn, so that a
//! command costs no look-up of a label.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::Counter;
use stockade_core::{Action, DoneCode, Mode};

use crate::error::Error;
use crate::names;
use crate::tier::Answer;

const KINDS: [&str; 12] = [
    "reserve",
    "deduct",
    "confirm",
    "cancel",
    "extend",
    "return",
    "set",
    "adjust",
    "transfer",
    "configure",
    "show_reservation",
    "show_stock",
];

const OUTCOMES: [&str; 22] = [
    "ok",
    "replayed",
    "sealed",
    "insufficient_stock",
    "unknown_sku",
    "revision_conflict",
    "limit_exceeded",
    "not_open",
    "closed",
    "paused",
    "below_reserved",
    "id_reused",
    "cross_shard",
    "not_found",
    "expired",
    "already_confirmed",
    "already_cancelled",
    "not_confirmed",
    "invalid",
    "overloaded",
    "unavailable",
    "outcome_unknown",
];

/// A command's kind, as an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind(u8);

impl Kind {
    /// Of an action.
    pub(crate) fn of(action: &Action) -> Self {
        Self(match action {
            Action::Reserve(reserve) => match reserve.mode {
                Mode::Reserve => 0,
                Mode::Deduct => 1,
            },
            Action::Confirm(_) => 2,
            Action::Cancel(_) => 3,
            Action::Extend(_) => 4,
            Action::Return(_) => 5,
            Action::Set(_) => 6,
            Action::Adjust(_) => 7,
            Action::Transfer(_) => 8,
            Action::Configure(_) => 9,
            Action::ShowReservation { .. } => 10,
            Action::ShowStock { .. } => 11,
        })
    }

    /// Whether it takes more units: the first to be turned away.
    pub(crate) fn is_growing(self) -> bool {
        self.0 <= 1
    }
}

/// Commands turned away at the door, by kind, counted by the callers themselves.
#[derive(Debug, Default)]
pub(crate) struct TurnedAway([AtomicU64; KINDS.len()]);

impl TurnedAway {
    /// One more.
    pub(crate) fn add(&self, kind: Kind) {
        if let Some(count) = self.0.get(usize::from(kind.0)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Tally {
    /// By kind, then outcome.
    cells: Vec<Cell>,
    dirty: bool,
}

#[derive(Debug, Default)]
struct Cell {
    count: u64,
    counter: Option<Counter>,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let mut cells = Vec::new();
        cells.resize_with(KINDS.len() * OUTCOMES.len(), Cell::default);
        Self { cells, dirty: false }
    }

    /// Counts an answer.
    pub(crate) fn add(&mut self, kind: Kind, answer: &Answer) {
        let outcome = match answer {
            Ok(answered) => match answered.done.code {
                DoneCode::Ok => "ok",
                DoneCode::Replayed => "replayed",
                DoneCode::Sealed => "sealed",
            },
            Err(error) => Error::code(error),
        };
        self.count(kind, outcome, 1);
    }

    fn count(&mut self, kind: Kind, outcome: &str, by: u64) {
        let column = OUTCOMES.iter().position(|word| *word == outcome);
        let cell =
            column.and_then(|column| self.cells.get_mut(usize::from(kind.0) * OUTCOMES.len() + column));
        if let Some(cell) = cell {
            cell.count += by;
            self.dirty = true;
        }
    }

    /// Hands over what was counted.
    pub(crate) fn flush(&mut self, turned_away: &TurnedAway) {
        for (kind, count) in (0_u8..).zip(&turned_away.0) {
            if count.load(Ordering::Relaxed) > 0 {
                self.count(Kind(kind), "overloaded", count.swap(0, Ordering::Relaxed));
            }
        }
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let labels = KINDS
            .iter()
            .flat_map(|kind| OUTCOMES.iter().map(move |outcome| (*kind, *outcome)));
        for (cell, (kind, outcome)) in self.cells.iter_mut().zip(labels) {
            if cell.count > 0 {
                let counter = cell.counter.get_or_insert_with(
                    || metrics::counter!(names::COMMANDS, "kind" => kind, "outcome" => outcome),
                );
                counter.increment(std::mem::take(&mut cell.count));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stockade_core::{Id, Refusal};

    #[test]
    fn every_answer_has_a_cell() {
        let mut tally = Tally::new();
        let kind = Kind::of(&Action::ShowStock {
            sku: Id::new("A/1").unwrap(),
        });
        tally.add(kind, &Err(Error::Refused(Refusal::IdReused)));
        tally.add(kind, &Err(Error::OutcomeUnknown { why: String::new() }));
        let counted: u64 = tally.cells.iter().map(|cell| cell.count).sum();
        assert_eq!(counted, 2);
        tally.flush(&TurnedAway::default());
        assert!(tally.cells.iter().all(|cell| cell.count == 0));
    }
}

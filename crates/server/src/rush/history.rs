//! What the buyers saw: every answer, in the order in which they came. The verdict rests on this and on nothing that
//! the service says about itself.

use crate::load::answer::Answer;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Reserve,
    Confirm,
    Cancel,
}

/// One request of one buyer and what came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) buyer: u32,
    pub(crate) verb: Verb,
    /// An earlier try may have arrived without its answer coming back.
    pub(crate) resent: bool,
    /// `None`: no answer that can be used, after all tries.
    pub(crate) answer: Option<Answer>,
}

/// Every event of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) events: Vec<Event>,
    /// What the last tries of unanswered requests met; the first few.
    pub(crate) unanswered: Vec<String>,
}

/// So many reasons are kept for the report: they repeat.
const REASONS_KEPT: usize = 20;

impl History {
    pub(crate) fn note(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn note_unanswered(&mut self, buyer: u32, verb: Verb, what: &str, why: &str) {
        self.events.push(Event {
            buyer,
            verb,
            resent: true,
            answer: None,
        });
        if self.unanswered.len() < REASONS_KEPT {
            self.unanswered.push(format!("{what}: {why}"));
        }
    }

    /// The events of each buyer, in order.
    pub(crate) fn by_buyer(&self, buyers: usize) -> Vec<Vec<Event>> {
        let mut sorted = vec![Vec::new(); buyers];
        for event in &self.events {
            if let Some(own) = sorted.get_mut(event.buyer as usize) {
                own.push(*event);
            }
        }
        sorted
    }
}

//! Many commands with one waiter: decided in order, answered together.
//!
//! Commands of one kind that follow each other go out together; the next ones go when those are decided, so that a
//! confirm behind its reserve finds it.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use tokio::sync::oneshot;

use super::job::{Job, To};
use crate::error::Error;
use crate::tier::{Answer, Batch, Durability};

#[derive(Debug)]
struct Group {
    answers: Vec<Option<Answer>>,
    /// Those not sent yet.
    rest: VecDeque<(usize, stockade_core::Command)>,
    /// Sent and not decided.
    undecided: usize,
    unanswered: usize,
    hard: bool,
    deadline: Instant,
    answer: oneshot::Sender<Vec<Answer>>,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: HashMap<u64, Group>,
    next: u64,
}

impl Groups {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Takes a batch; the jobs to send first.
    pub(super) fn begin(&mut self, batch: Batch, deadline: Instant) -> Vec<Job> {
        let Batch {
            commands,
            durability,
            decided,
            answer,
            ..
        } = batch;
        let answers: Vec<Option<Answer>> = decided
            .into_iter()
            .map(|decided| decided.map(|decided| decided.answer))
            .collect();
        let rest: VecDeque<_> = commands
            .into_iter()
            .enumerate()
            .filter(|(index, _)| answers.get(*index).is_some_and(Option::is_none))
            .collect();
        let unanswered = rest.len();
        if unanswered == 0 {
            finish(answers, answer);
            return Vec::new();
        }
        let id = self.next;
        self.next += 1;
        self.groups.insert(
            id,
            Group {
                answers,
                rest,
                undecided: 0,
                unanswered,
                hard: durability == Durability::Ledger,
                deadline,
                answer,
            },
        );
        self.more(id)
    }

    fn more(&mut self, id: u64) -> Vec<Job> {
        let Some(group) = self.groups.get_mut(&id) else {
            return Vec::new();
        };
        let mut jobs: Vec<Job> = Vec::new();
        while let Some((index, command)) = group.rest.pop_front() {
            let job = Job::new(command, To::Many { group: id, index }, group.hard, group.deadline);
            if jobs.first().is_some_and(|first| first.script() != job.script()) {
                group.rest.push_front((index, job.command));
                break;
            }
            jobs.push(job);
        }
        group.undecided = jobs.len();
        jobs
    }

    /// One of a group's jobs is decided for the first time; the jobs to send next.
    pub(super) fn decided(&mut self, id: u64) -> Vec<Job> {
        let Some(group) = self.groups.get_mut(&id) else {
            return Vec::new();
        };
        group.undecided = group.undecided.saturating_sub(1);
        if group.undecided == 0 && !group.rest.is_empty() {
            return self.more(id);
        }
        Vec::new()
    }

    /// One of a group's jobs is answered.
    pub(super) fn answer(&mut self, id: u64, index: usize, answer: Answer) {
        let Some(group) = self.groups.get_mut(&id) else {
            return;
        };
        if let Some(slot) = group.answers.get_mut(index)
            && slot.is_none()
        {
            *slot = Some(answer);
            group.unanswered -= 1;
        }
        if group.unanswered == 0
            && let Some(group) = self.groups.remove(&id)
        {
            finish(group.answers, group.answer);
        }
    }
}

fn finish(answers: Vec<Option<Answer>>, answer: oneshot::Sender<Vec<Answer>>) {
    let answers = answers
        .into_iter()
        .map(|answer| {
            answer.unwrap_or_else(|| {
                Err(Error::OutcomeUnknown {
                    why: "the command got no answer, which is a defect".into(),
                })
            })
        })
        .collect();
    // A caller that hung up does not want them.
    let _ = answer.send(answers);
}

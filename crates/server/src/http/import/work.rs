//! A group of rows becomes commands, and the commands become answers.

use std::time::Duration;

use stockade::Error;
use stockade_core::{Action, Adjust, Command, Count, Done, Expect, Id, Refusal, Set};
use tokio::time::{Instant, sleep, timeout};

use super::row::{Meaning, Row};
use super::scratch::{Decrease, Scratch};
use super::{Import, Importer};
use crate::http::problem::Problem;

/// How long rows that are refused as overloaded are tried again before the import gives up.
const OVERLOADED_MAX: Duration = Duration::from_secs(60);
/// How often the two forms of a delivery are tried in turn: only somebody who creates and removes the location
/// meanwhile makes it more than three times.
const FORMS_MAX: u8 = 6;

/// Does groups of rows, one after the other.
pub(super) struct Worker {
    importer: Importer,
    import: Import,
    scratch: Option<Scratch>,
}

/// What came of a group.
#[derive(Debug, Default)]
pub(super) struct Worked {
    /// Each row with its answer, as far as they go.
    pub(super) answers: Vec<(Row, Result<Done, Refusal>)>,
    /// Of a dry run: rows after which there would be less on hand.
    pub(super) decreases: Vec<Decrease>,
    /// Why it went no further.
    pub(super) stopped: Option<Problem>,
}

/// How a row is put as a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A count.
    Count,
    /// Units that come in.
    Delivery,
    /// Units that come in, at a location that does not exist yet.
    FirstDelivery,
}

/// A row on its way.
struct Open {
    row: Row,
    form: Form,
    tries: u8,
    answer: Option<Result<Done, Refusal>>,
}

impl Worker {
    pub(super) fn new(importer: Importer, import: Import) -> Self {
        let scratch = import.dry_run.then(Scratch::default);
        Self {
            importer,
            import,
            scratch,
        }
    }

    pub(super) async fn work(&mut self, group: Vec<Row>) -> Worked {
        let form = match self.import.meaning {
            Meaning::Target => Form::Count,
            Meaning::Delivery => Form::Delivery,
        };
        let mut open: Vec<Open> = group
            .into_iter()
            .map(|row| Open {
                row,
                form,
                tries: 0,
                answer: None,
            })
            .collect();
        let mut worked = Worked::default();
        worked.stopped = self.settle(&mut open, &mut worked.decreases).await.err();
        worked.answers = open
            .into_iter()
            .filter_map(|one| Some((one.row, one.answer?)))
            .collect();
        worked
    }

    /// Sends what has no answer until everything has one.
    async fn settle(&mut self, open: &mut [Open], decreases: &mut Vec<Decrease>) -> Result<(), Problem> {
        let give_up = Instant::now() + OVERLOADED_MAX;
        loop {
            let waiting: Vec<usize> = (0..)
                .zip(&*open)
                .filter(|(_, one)| one.answer.is_none())
                .map(|(at, _)| at)
                .collect();
            if waiting.is_empty() {
                return Ok(());
            }
            let commands: Vec<Command> = waiting
                .iter()
                .filter_map(|at| open.get(*at))
                .map(|one| self.command(&one.row, one.form))
                .collect();
            let results = match &mut self.scratch {
                None => self.submit(commands).await?,
                Some(scratch) => {
                    let numbers: Vec<u64> = waiting
                        .iter()
                        .filter_map(|at| Some(open.get(*at)?.row.number))
                        .collect();
                    scratch
                        .decide(&self.importer, commands, &numbers, decreases)
                        .await?
                }
            };
            let mut pause = None;
            for (at, result) in waiting.into_iter().zip(results) {
                let Some(one) = open.get_mut(at) else { continue };
                match result {
                    Ok(done) => one.answer = Some(Ok(done)),
                    Err(Error::Refused(refusal)) => match other_form(one, &refusal) {
                        Some(form) => (one.form, one.tries) = (form, one.tries + 1),
                        None => one.answer = Some(Err(refusal)),
                    },
                    Err(Error::Overloaded { retry_after_ms, .. }) => {
                        pause = Some(pause.unwrap_or(0).max(retry_after_ms));
                    }
                    Err(error) => return Err(Problem::from(error)),
                }
            }
            if let Some(ms) = pause {
                if Instant::now() > give_up {
                    return Err(Problem::Overloaded { retry_after_ms: ms });
                }
                sleep(Duration::from_millis(ms)).await;
            }
        }
    }

    async fn submit(&self, commands: Vec<Command>) -> Result<Vec<Result<Done, Error>>, Problem> {
        let within = self.importer.answer_within;
        timeout(within, self.importer.store.submit_many(commands))
            .await
            .map_err(|_| {
                Problem::from(Error::OutcomeUnknown {
                    why: format!("no answer within {} ms", within.as_millis()),
                })
            })
    }

    fn command(&self, row: &Row, form: Form) -> Command {
        let id = row.id.clone().unwrap_or_else(|| self.derived(row.number));
        let reason = row.reason.clone().unwrap_or_else(|| self.import.reason.clone());
        let expect = row.if_revision.map_or(Expect::Any, Expect::Revision);
        let (sku, location) = (row.sku.clone(), row.location.clone());
        let set = |count, id, sku, location, reason, expect| {
            Action::Set(Set {
                id,
                sku,
                location,
                target: row.units,
                count,
                expect,
                reason,
            })
        };
        self.importer.command(match form {
            Form::Count => {
                let count = match row.sold_seen {
                    _ if self.import.force => Count::Force,
                    Some(sold_seen) => Count::Seen { sold_seen },
                    None => Count::Create,
                };
                set(count, id, sku, location, reason, expect)
            }
            Form::FirstDelivery => set(Count::Create, id, sku, location, reason, expect),
            Form::Delivery => Action::Adjust(Adjust {
                id,
                sku,
                location,
                // Its range was checked when it was read.
                delta: i64::try_from(row.units).unwrap_or(i64::MAX),
                expect,
                reason,
            }),
        })
    }

    /// The id of a row that has none of its own: the same whenever the file is sent.
    fn derived(&self, number: u64) -> Id {
        let import = self.import.id.as_ref().map_or("dry-run", Id::as_str);
        // The import's id is short enough for this to be one.
        Id::new(&format!("import:{import}:{number}")).unwrap_or_else(|_| Id::default_name())
    }
}

/// A delivery to a location that does not exist is a count that creates it, under the same id: only one of the two can
/// ever be done, so that a row that is sent again finds the one that was.
fn other_form(one: &Open, refusal: &Refusal) -> Option<Form> {
    if one.tries >= FORMS_MAX {
        return None;
    }
    match (one.form, refusal) {
        (Form::Delivery, Refusal::UnknownSku(_)) if one.row.if_revision.is_none() => {
            Some(Form::FirstDelivery)
        }
        // Perhaps it was done in the other form.
        (Form::Delivery, Refusal::IdReused) if one.tries == 0 => Some(Form::FirstDelivery),
        (Form::FirstDelivery, Refusal::Invalid(fields))
            if fields.iter().any(|field| field.field == "sold_seen") =>
        {
            Some(Form::Delivery)
        }
        _ => None,
    }
}

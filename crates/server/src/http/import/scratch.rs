//! A dry run: the real rules on a copy of the SKUs that a file names, thrown away afterwards.
//!
//! The copy is made as rows come to need it and holds the rows before, so that two rows of one SKU see each other. It is
//! begun anew when it holds many SKUs, so that a file of any length takes the same room.

use std::collections::HashSet;

use stockade::Error;
use stockade_core::{
    Action, Change, Command, Done, Id, LookedUp, Move, Position, Record, Refusal, Reply, Rules, Shard, Space,
    StockRecord, Subject,
};

use super::Importer;
use crate::http::problem::Problem;

/// How many rows share one copy.
const ROWS_MAX: usize = 100_000;
/// Where the copy's chain begins: behind every id that the ledger knows.
const BEGIN: Position = Position {
    epoch: 1,
    seq: 1,
    tag: 1,
};

/// A row after which there would be less on hand.
#[derive(Clone, Debug)]
pub(super) struct Decrease {
    pub(super) row: u64,
    pub(super) sku: Id,
    pub(super) location: Id,
    pub(super) before: u64,
    pub(super) after: u64,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Scratch {
    copy: Option<Copy>,
}

struct Copy {
    shard: Shard,
    skus: HashSet<Id>,
    rows: usize,
    tag: u64,
}

impl Scratch {
    /// Decides commands on the copy. `numbers` are those of their rows.
    pub(super) async fn decide(
        &mut self,
        importer: &Importer,
        commands: Vec<Command>,
        numbers: &[u64],
        decreases: &mut Vec<Decrease>,
    ) -> Result<Vec<Result<Done, Error>>, Problem> {
        let copy = match self.copy.take() {
            Some(copy) if copy.rows < ROWS_MAX => copy,
            _ => Copy::new(),
        };
        let copy = self.copy.insert(copy);
        copy.fetch(importer, &commands).await?;
        let ids: Vec<Id> = commands
            .iter()
            .filter_map(|command| id_of(&command.action))
            .cloned()
            .collect();
        let known = importer.store.stock_commands(&importer.tenant, ids).await?;
        let now = importer.store.now();
        let mut answers = Vec::with_capacity(commands.len());
        for ((command, known), number) in commands.into_iter().zip(known).zip(numbers) {
            copy.rows += 1;
            let reply = copy.apply(now, &command, known);
            if let Some(less) = copy.seal().into_iter().find(|one| one.on_hand < 0) {
                decreases.push(Decrease {
                    row: *number,
                    sku: less.sku,
                    location: less.location,
                    before: less
                        .after
                        .on_hand
                        .saturating_add_signed(less.on_hand.saturating_neg()),
                    after: less.after.on_hand,
                });
            }
            answers.push(match reply {
                Reply::Done(done) => Ok(done),
                Reply::Refused(refusal) => Err(Error::Refused(refusal)),
                Reply::LookUp { .. } | Reply::Again | Reply::Corrupt { .. } => Err(Error::Unavailable {
                    why: "the copy of the stock for the dry run does not hold together".to_owned(),
                }),
            });
        }
        Ok(answers)
    }
}

impl Copy {
    fn new() -> Self {
        let mut shard = Shard::new(0, Rules::default(), 0);
        shard.open(BEGIN, 0);
        Self {
            shard,
            skus: HashSet::new(),
            rows: 0,
            tag: BEGIN.tag,
        }
    }

    /// Copies the SKUs that the commands name and the copy does not hold.
    async fn fetch(&mut self, importer: &Importer, commands: &[Command]) -> Result<(), Problem> {
        let mut missing = Vec::new();
        for command in commands {
            if let Some(sku) = sku_of(&command.action).filter(|sku| !self.skus.contains(*sku)) {
                self.skus.insert(sku.clone());
                missing.push(importer.command(Action::ShowStock { sku: sku.clone() }));
            }
        }
        let shown = tokio::time::timeout(importer.answer_within, importer.store.submit_many(missing)).await;
        let shown = shown.map_err(|_| Problem::Unavailable {
            why: format!("no answer within {} ms", importer.answer_within.as_millis()),
        })?;
        for one in shown {
            match one {
                Ok(Done {
                    subject: Subject::Stock(subject),
                    ..
                }) => {
                    self.shard
                        .load_sku(subject.stock)
                        .map_err(|error| Problem::Unavailable {
                            why: error.to_string(),
                        })?;
                }
                // Not there, and to be created.
                Err(Error::Refused(Refusal::UnknownSku(_))) | Ok(_) => {}
                Err(error) => return Err(Problem::from(error)),
            }
        }
        Ok(())
    }

    fn apply(&mut self, now: i64, command: &Command, known: Option<StockRecord>) -> Reply {
        let reply = self.shard.apply(now, command).reply;
        match reply {
            Reply::LookUp { space, id } => {
                let known = LookedUp {
                    epoch: BEGIN.epoch,
                    cursor: self.shard.position().seq,
                    space,
                    id,
                    record: known.filter(|_| space == Space::Stock).map(Record::Stock),
                };
                self.shard.apply_known(now, command, known).reply
            }
            reply => reply,
        }
    }

    /// Closes the entry and lets it go; what it moved.
    fn seal(&mut self) -> Vec<Move> {
        self.tag = self.tag.wrapping_add(1).max(1);
        let entry = self.shard.seal(self.tag);
        let effects = entry.into_iter().flat_map(|entry| entry.effects);
        effects
            .filter(|effect| matches!(effect.change, Change::Stock { .. }))
            .flat_map(|effect| effect.moves)
            .collect()
    }
}

fn sku_of(action: &Action) -> Option<&Id> {
    match action {
        Action::Set(set) => Some(&set.sku),
        Action::Adjust(adjust) => Some(&adjust.sku),
        _ => None,
    }
}

fn id_of(action: &Action) -> Option<&Id> {
    match action {
        Action::Set(set) => Some(&set.id),
        Action::Adjust(adjust) => Some(&adjust.id),
        _ => None,
    }
}

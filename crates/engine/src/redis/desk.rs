//! The reading thread: everything that the conductor asks of the ledger, many questions with one view.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use stockade_core::{Id, LookedUp, Position};
use stockade_ledger::{FoundSku, Key, LedgerError, Recorded, ShardRow, SharedLedger, View};
use stockade_redis::Token;

use super::Message;
use super::shared::Sender;

/// What is asked since the last look.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// The shard's row, for refusals that wait.
    pub(super) row: bool,
    /// Which of these entries are recorded.
    pub(super) tips: Vec<Position>,
    /// Ids, by the number of whoever waits.
    pub(super) ids: Vec<(u64, Key)>,
    /// SKUs to load.
    pub(super) skus: Vec<AskSku>,
}

impl Questions {
    pub(super) fn is_empty(&self) -> bool {
        !self.row && self.tips.is_empty() && self.ids.is_empty() && self.skus.is_empty()
    }

    fn append(&mut self, mut other: Self) {
        self.row |= other.row;
        self.tips.append(&mut other.tips);
        self.ids.append(&mut other.ids);
        self.skus.append(&mut other.skus);
    }
}

/// A SKU to load, under a marker.
#[derive(Clone, Debug)]
pub(super) struct AskSku {
    pub(super) tenant: Id,
    pub(super) sku: Id,
    pub(super) token: Token,
    /// The marker's tip: the row may be read when it is recorded.
    pub(super) tip: Position,
    /// Whether owner usage is wanted although the SKU has no limit yet.
    pub(super) with_usage: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The shard's row, if refusals asked for it.
    pub(super) refusals: bool,
    pub(super) row: Option<ShardRow>,
    pub(super) tips: Vec<(Position, Recorded)>,
    pub(super) ids: Vec<(u64, LookedUp)>,
    pub(super) skus: Vec<(AskSku, SkuWord)>,
}

/// The ledger's word about a SKU.
#[derive(Debug)]
pub(super) enum SkuWord {
    /// The marker's tip is recorded, and this is what is known; whether owner usage is a part of it; where the shard
    /// stood when it was read.
    Found(Box<FoundSku>, bool, Position),
    /// The marker's tip is not recorded yet.
    NotYet,
    /// The marker's tip never will be recorded.
    Never,
}

/// Where questions wait.
#[derive(Debug, Default)]
pub(super) struct Desk {
    slot: Mutex<Slot>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Slot {
    questions: Questions,
    stop: bool,
}

impl Desk {
    pub(super) fn ask(&self, questions: Questions) {
        self.slot.lock().questions.append(questions);
        self.filled.notify_one();
    }

    pub(super) fn stop(&self) {
        self.slot.lock().stop = true;
        self.filled.notify_one();
    }

    fn take(&self) -> Option<Questions> {
        let mut slot = self.slot.lock();
        loop {
            if slot.stop {
                return None;
            }
            if !slot.questions.is_empty() {
                return Some(std::mem::take(&mut slot.questions));
            }
            self.filled.wait(&mut slot);
        }
    }
}

/// The thread's body.
pub(super) fn run(desk: &Desk, shard: u32, ledger: &Arc<dyn SharedLedger>, sender: &Sender) {
    while let Some(questions) = desk.take() {
        // A panic in here must not leave the callers waiting: an error sends every question back.
        let reading = std::panic::AssertUnwindSafe(|| read(&questions, shard, ledger));
        let answers = match std::panic::catch_unwind(reading) {
            Ok(Ok(answers)) => Ok(answers),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("reading the ledger failed with a panic".to_owned()),
        };
        sender.send(Message::Read(Box::new((questions, answers))));
    }
}

fn read(questions: &Questions, shard: u32, ledger: &Arc<dyn SharedLedger>) -> Result<Answers, LedgerError> {
    let mut answers = Answers {
        refusals: questions.row,
        ..Answers::default()
    };
    if questions.tips.is_empty() && questions.ids.is_empty() && questions.skus.is_empty() {
        answers.row = ledger.row(shard)?;
        return Ok(answers);
    }
    let view = ledger.view()?;
    answers.row = view.shard(shard)?;
    if !questions.tips.is_empty() {
        let recorded = view.recorded(shard, &questions.tips)?;
        answers.tips = questions.tips.iter().copied().zip(recorded).collect();
    }
    if !questions.ids.is_empty() {
        answers.ids = look_up(&*view, shard, &questions.ids)?;
    }
    for ask in &questions.skus {
        let word = read_sku(&*view, shard, answers.row.as_ref(), ask)?;
        answers.skus.push((ask.clone(), word));
    }
    Ok(answers)
}

fn look_up(view: &dyn View, shard: u32, ids: &[(u64, Key)]) -> Result<Vec<(u64, LookedUp)>, LedgerError> {
    let keys: Vec<Key> = ids.iter().map(|(_, key)| key.clone()).collect();
    let found = view.find_many(shard, &keys)?;
    let words = ids.iter().zip(found.records).map(|((number, key), record)| {
        let known = LookedUp {
            epoch: found.epoch,
            cursor: found.cursor,
            space: key.space,
            id: key.id.clone(),
            record,
        };
        (*number, known)
    });
    Ok(words.collect())
}

fn read_sku(
    view: &dyn View,
    shard: u32,
    row: Option<&ShardRow>,
    ask: &AskSku,
) -> Result<SkuWord, LedgerError> {
    match view.recorded(shard, std::slice::from_ref(&ask.tip))?.first() {
        Some(Recorded::Yes) => {}
        Some(Recorded::NotYet) | None => return Ok(SkuWord::NotYet),
        Some(Recorded::Never | Recorded::Pruned) => return Ok(SkuWord::Never),
    }
    let mut found = view.sku(shard, &ask.tenant, &ask.sku, ask.with_usage)?;
    let has_limit = found
        .record
        .as_ref()
        .is_some_and(|record| record.settings.limit_per_owner.is_some());
    if has_limit && !ask.with_usage {
        found = view.sku(shard, &ask.tenant, &ask.sku, true)?;
    }
    // The marker counts in its own epoch only.
    match row {
        Some(row) if row.epoch == ask.tip.epoch => {
            let read_at = Position {
                epoch: row.epoch,
                seq: row.cursor,
                tag: row.tag,
            };
            Ok(SkuWord::Found(
                Box::new(found),
                has_limit || ask.with_usage,
                read_at,
            ))
        }
        _ => Ok(SkuWord::Never),
    }
}

//! The state while commands are taken: the shard, who waits for which entry, who waits for a look-up.

mod decided;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use stockade_core::{Command, Entry, Millis, Position, Shard};
use stockade_ledger::Ledger;
use tokio::sync::oneshot;

use super::load::{Chunk, Feed};
use super::look_up::{Found, Job};
use super::mailbox::Mailbox;
use crate::error::Error;
use crate::tally::{Kind, Tally};
use crate::tier::{Answer, Batch, Durability, Frozen, Submission};

/// How often one command may be sent to the ledger. It needs one look-up for each id that it names, and another one
/// only when ids were forgotten in the meantime.
const LOOK_UPS_MAX: u32 = 16;

/// Who waits, with the answer that waits.
#[derive(Debug)]
enum Waiter {
    One {
        kind: Kind,
        result: Answer,
        answer: oneshot::Sender<Answer>,
    },
    Many(Box<Batch>),
}

/// Work that waits for a look-up.
#[derive(Debug)]
struct Paused {
    work: Submission,
    look_ups: u32,
}

/// An entry that is being recorded, and who waits for it.
#[derive(Debug)]
struct Group {
    seq: u64,
    waiters: Vec<Waiter>,
}

/// Counts what was answered.
#[derive(Debug)]
pub(super) struct Out {
    /// By kind and outcome.
    pub(super) tally: Tally,
    /// Where room is made, before a caller hears its answer: it may come back at once.
    pub(super) room: Arc<Mailbox>,
    /// Look-ups since it was last asked.
    pub(super) look_ups: u64,
}

/// How a group failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// It is not on disk.
    NotRecorded,
    /// It may be on disk.
    Unknown,
}

/// See the module's text.
pub(super) struct Running {
    pub(super) shard: Shard,
    recorded: u64,
    in_flight: Option<Group>,
    building: Vec<Waiter>,
    paused: HashMap<u64, Paused>,
    next_key: u64,
    /// Work whose answer depends on more due ends than one entry may free, in order.
    parked: VecDeque<Submission>,
    /// Whether an entry was handed over since parked work was last applied.
    handed_over: bool,
    closing: bool,
    /// Look-ups to hand over.
    pub(super) jobs: Vec<Job>,
    feed: Option<Receiver<Feed>>,
    /// What the shard found wrong with itself: nothing more is decided on it.
    corrupt: Option<&'static str>,
    freezes: VecDeque<oneshot::Sender<Frozen>>,
    frozen: Option<(oneshot::Sender<Frozen>, Copy)>,
}

/// A copy of a shard's state.
struct Copy {
    at: Position,
    skus: Vec<stockade_core::SkuRecord>,
    live: Vec<stockade_core::Reservation>,
    usage: Vec<(stockade_core::Id, stockade_core::Id, stockade_core::Id, u64)>,
}

impl Running {
    pub(super) fn new(shard: Shard, recorded: u64, feed: Option<Receiver<Feed>>) -> Self {
        Self {
            shard,
            recorded,
            in_flight: None,
            building: Vec::new(),
            paused: HashMap::new(),
            next_key: 0,
            parked: VecDeque::new(),
            handed_over: false,
            closing: false,
            jobs: Vec::new(),
            feed,
            corrupt: None,
            freezes: VecDeque::new(),
            frozen: None,
        }
    }

    /// The last recorded entry.
    pub(super) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Whether nobody waits for anything and everything is recorded.
    pub(super) fn is_settled(&self) -> bool {
        self.in_flight.is_none()
            && self.building.is_empty()
            && self.paused.is_empty()
            && self.parked.is_empty()
            && self.frozen.is_none()
            && self.freezes.is_empty()
            && self.shard.unsealed() == 0
    }

    /// What the shard found wrong with itself, once nothing is being recorded any more: time to give it up.
    pub(super) fn corrupt(&self) -> Option<&'static str> {
        if self.in_flight.is_some() {
            return None;
        }
        // Nobody may be left waiting for an entry that will not come.
        let stranded = !self.building.is_empty() && self.shard.unsealed() == 0;
        let stranded = stranded.then_some("an answer waits for an entry in which nothing is");
        self.corrupt.or(stranded)
    }

    // ---- deciding ----

    /// Decides new work. Work whose caller hung up before its turn never begins.
    pub(super) fn begin(&mut self, work: Submission, now: Millis, out: &mut Out) {
        if let Some(what) = self.corrupt {
            out.room.answered(work.admitted());
            super::refuse(work, &mut out.tally, || corrupted(what));
            return;
        }
        match work {
            Submission::One { command, answer, .. } => {
                if answer.is_closed() {
                    out.room.answered(1);
                    return;
                }
                let decision = self.shard.apply(now, &command);
                self.settle(command, answer, decision, 0, out);
            }
            Submission::Many(batch) => {
                if batch.answer.is_closed() {
                    out.room.answered(batch.admitted);
                    return;
                }
                self.go_on(batch, None, 0, now, out);
            }
        }
    }

    /// From now on nothing waits for more ends to be freed: closing must not take as long as they do.
    pub(super) const fn close(&mut self) {
        self.closing = true;
    }

    /// Whether parked work can be applied again.
    pub(super) fn can_resume(&self) -> bool {
        !self.parked.is_empty() && (self.handed_over || self.closing)
    }

    /// Applies parked work again, until the entry being built has freed as many ends as it may.
    pub(super) fn resume(&mut self, now: Millis, out: &mut Out) {
        if !self.can_resume() {
            return;
        }
        self.handed_over = false;
        let mut waiting = std::mem::take(&mut self.parked);
        while self.parked.is_empty()
            && let Some(work) = waiting.pop_front()
        {
            match work {
                Submission::Many(batch) if !batch.answer.is_closed() => self.go_on(batch, None, 0, now, out),
                // What was decided of it is done; the rest never begins.
                Submission::Many(batch) => {
                    let needs = batch.needs();
                    self.answer(Waiter::Many(batch), needs, out);
                }
                Submission::One { .. } => self.begin(work, now, out),
            }
        }
        // Its first is parked again, before the others.
        self.parked.append(&mut waiting);
    }

    /// Goes on with work for which the ledger was asked.
    pub(super) fn looked_up(&mut self, found: Found, now: Millis, out: &mut Out) {
        // Work that is not there any more was answered when the memory was discarded.
        let Some(Paused { work, look_ups }) = self.paused.remove(&found.key) else {
            return;
        };
        if let (Submission::One { .. }, Some(_)) = (&work, self.corrupt) {
            return self.begin(work, now, out);
        }
        match (work, found.known) {
            (Submission::One { command, answer, .. }, Ok(known)) => {
                let decision = self.shard.apply_known(now, &command, known);
                self.settle(command, answer, decision, look_ups, out);
            }
            (Submission::One { command, answer, .. }, Err(why)) => {
                let waiter = Waiter::One {
                    kind: Kind::of(&command.action),
                    result: Err(Error::Unavailable { why }),
                    answer,
                };
                waiter.send(out);
            }
            (Submission::Many(batch), Ok(known)) => self.go_on(batch, Some(known), look_ups, now, out),
            (Submission::Many(mut batch), Err(why)) => {
                batch.decide(Err(Error::Unavailable { why }), 0);
                self.go_on(batch, None, 0, now, out);
            }
        }
    }

    fn pause(&mut self, work: Submission, look_ups: u32, job: Job, out: &mut Out) {
        let key = self.next_key;
        self.next_key += 1;
        out.look_ups += 1;
        self.jobs.push(Job { key, ..job });
        let look_ups = look_ups + 1;
        self.paused.insert(key, Paused { work, look_ups });
    }

    fn answer(&mut self, waiter: Waiter, needs: u64, out: &mut Out) {
        if needs <= self.recorded {
            waiter.send(out);
            return;
        }
        match &mut self.in_flight {
            Some(group) if needs <= group.seq => group.waiters.push(waiter),
            Some(_) | None => self.building.push(waiter),
        }
    }

    // ---- recording ----

    /// Seals what is there if nothing is being recorded and no audit holds it up; the entry to record.
    pub(super) fn seal(&mut self, ledger: &dyn Ledger, tag: impl FnOnce() -> u64) -> Option<Entry> {
        if self.in_flight.is_some() || self.corrupt.is_some() {
            return None;
        }
        self.show_frozen(ledger);
        let sealed = self.shard.seal(tag());
        if let Some(entry) = &sealed {
            self.handed_over = true;
            self.in_flight = Some(Group {
                seq: entry.seq,
                waiters: std::mem::take(&mut self.building),
            });
        }
        while self.frozen.is_none()
            && let Some(asked) = self.freezes.pop_front()
        {
            if !asked.is_closed() {
                self.frozen = Some((asked, Copy::of(&self.shard)));
            }
            if sealed.is_none() {
                self.show_frozen(ledger);
            }
        }
        sealed
    }

    /// An entry is on disk: who waited for it.
    pub(super) fn recorded_now(&mut self) -> Recorded {
        let group = self.in_flight.take();
        if let Some(group) = &group {
            self.recorded = group.seq;
        }
        Recorded(group.map(|group| group.waiters).unwrap_or_default())
    }

    /// The memory is given up: everybody who waits hears what is true for them.
    pub(super) fn give_up(self, lost: Lost, why: &str, out: &mut Out) {
        let recorded = self.recorded;
        let in_flight_seq = self.in_flight.as_ref().map_or(recorded, |group| group.seq);
        let undone = || Error::Unavailable { why: why.into() };
        let error = |needs: u64| match lost {
            Lost::Unknown if needs <= in_flight_seq => Error::OutcomeUnknown { why: why.into() },
            Lost::Unknown | Lost::NotRecorded => undone(),
        };
        let in_flight = self.in_flight.map(|group| group.waiters).unwrap_or_default();
        let groups = [(in_flight_seq, in_flight), (in_flight_seq + 1, self.building)];
        for (needs, waiters) in groups {
            for waiter in waiters {
                waiter.fail(needs, recorded, error, out);
            }
        }
        let paused = self.paused.into_values().map(|paused| paused.work);
        for work in paused.chain(self.parked) {
            match work {
                Submission::One { command, answer, .. } => Waiter::One {
                    kind: Kind::of(&command.action),
                    result: Err(undone()),
                    answer,
                }
                .send(out),
                Submission::Many(mut batch) => {
                    while batch.next_command().is_some() {
                        batch.decide(Err(undone()), 0);
                    }
                    Waiter::Many(batch).fail(0, recorded, error, out);
                }
            }
        }
    }

    // ---- beside the commands ----

    /// Takes some ids for the filter; whether there may be more at once.
    pub(super) fn feed(&mut self) -> bool {
        let Some(feed) = &self.feed else { return false };
        match feed.try_recv() {
            Ok(Feed::Ids(chunk)) => {
                self.load_forgotten(&chunk);
                true
            }
            Ok(Feed::Known) => {
                self.shard.forgotten_known();
                self.feed = None;
                false
            }
            Err(std::sync::mpsc::TryRecvError::Empty) => false,
            Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                // Its thread failed: every unknown id goes on being looked up.
                tracing::error!(
                    "reading the ids of ended reservations failed; they are looked up one by one"
                );
                self.feed = None;
                false
            }
        }
    }

    fn load_forgotten(&mut self, chunk: &Chunk) {
        for (space, tenant, id) in chunk.ids() {
            self.shard.load_forgotten(space, tenant, id);
        }
    }

    /// An audit asks for the state at one moment.
    pub(super) fn freeze(&mut self, asked: oneshot::Sender<Frozen>) {
        self.freezes.push_back(asked);
    }

    /// Nothing is being recorded, so the ledger stands where the copy was taken.
    fn show_frozen(&mut self, ledger: &dyn Ledger) {
        let Some((asked, copy)) = self.frozen.take() else {
            return;
        };
        match ledger.view() {
            Ok(view) => {
                let frozen = Frozen {
                    at: copy.at,
                    moving: None,
                    skus: copy.skus,
                    live: copy.live,
                    usage: copy.usage,
                    view,
                };
                // An audit that was given up does not want it.
                drop(asked.send(frozen));
            }
            // Dropping the sender tells the audit that there is nothing to compare.
            Err(error) => tracing::warn!(%error, "the ledger could not be read for an audit"),
        }
    }
}

impl Copy {
    fn of(shard: &Shard) -> Self {
        Self {
            at: shard.position(),
            skus: shard.skus().collect(),
            live: shard.live().collect(),
            usage: shard.usage().collect(),
        }
    }
}

/// Those whose entry is on disk.
#[derive(Debug)]
#[must_use]
pub(super) struct Recorded(Vec<Waiter>);

impl Recorded {
    /// Answers them.
    pub(super) fn answer(self, out: &mut Out) {
        for waiter in self.0 {
            waiter.send(out);
        }
    }
}

impl Waiter {
    /// Sends the answer. A caller that hung up does not want it.
    fn send(self, out: &mut Out) {
        match self {
            Self::One { kind, result, answer } => {
                out.tally.add(kind, &result);
                out.room.answered(1);
                drop(answer.send(result));
            }
            Self::Many(batch) => {
                for (command, decided) in batch.commands.iter().zip(&batch.decided) {
                    if let Some(decided) = decided {
                        out.tally.add(Kind::of(&command.action), &decided.answer);
                    }
                }
                out.room.answered(batch.admitted);
                batch.finish(|| Error::Unavailable {
                    why: "the store stopped before this command's turn; send it again".into(),
                });
            }
        }
    }

    /// Sends an error in place of what is not recorded.
    fn fail(self, needs: u64, recorded: u64, error: impl Fn(u64) -> Error, out: &mut Out) {
        let failed = match self {
            Self::One { kind, answer, .. } => Self::One {
                kind,
                result: Err(error(needs)),
                answer,
            },
            Self::Many(mut batch) => {
                for decided in batch.decided.iter_mut().flatten() {
                    if decided.needs > recorded {
                        decided.answer = Err(error(decided.needs));
                    }
                }
                Self::Many(batch)
            }
        };
        failed.send(out);
    }
}

/// A submission of this tier, where every answer waits for the disk.
const fn one(command: Command, answer: oneshot::Sender<Answer>) -> Submission {
    Submission::One {
        command,
        durability: Durability::Ledger,
        answer,
    }
}

fn corrupted(what: &str) -> Error {
    Error::Unavailable {
        why: format!("the memory contradicts itself and is loaded again from the ledger: {what}"),
    }
}

fn closing() -> Error {
    Error::Unavailable {
        why: "the store is being closed, and the answer depends on more ended reservations than can be freed before; \
              send the command again"
            .into(),
    }
}

fn too_many_look_ups() -> Error {
    Error::Unavailable {
        why: "the ids that the memory forgot change faster than the ledger can be asked; send the command again"
            .into(),
    }
}

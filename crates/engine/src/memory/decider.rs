//! The deciding thread: the only one that touches the shard.
//!
//! A turn takes everything that waits, decides it, does a bounded piece of each background task, and hands the sealed
//! entry to the recording thread when that is free. It also sends the answers, so that the recording thread goes
//! straight on to the next entry.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};
use stockade_core::Millis;
use stockade_ledger::RecordError;

use super::load::{self, Loaded, Reloading};
use super::mailbox::Mailbox;
use super::recorder::Commit;
use super::running::{Lost, Out, Running};
use super::{Message, Parts, Shared, look_up, recorder};
use crate::api::Readiness;
use crate::error::Error;
use crate::names::{self, count};
use crate::tags::Tags;
use crate::tally::Tally;
use crate::tier::Submission;

/// Commands between two looks at the time and at the recording thread.
const STEP_COMMANDS: usize = 128;
/// The most reservations that one turn ends, so that commands are not held up.
const SWEEP_STEP: usize = 256;
/// The sweeper adds to an entry only up to this size; then it waits for the disk, as callers do.
const SWEEP_ENTRY_MAX: usize = 2_048;
/// The least number of ids that one turn may forget.
const FORGET_STEP: usize = 256;
/// The longest sleep: after it the clock is looked at again, since it may have jumped.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// See the module's text.
pub(super) struct Decider {
    shared: Arc<Shared>,
    mailbox: Arc<Mailbox>,
    parts: Parts,
    recorder: Arc<recorder::Desk>,
    look_up: Arc<look_up::Desk>,
    state: State,
    out: Out,
    gauges: Gauges,
    tags: Tags,
    now: Millis,
    /// Commits that failed since the last that did not.
    failures: u32,
    /// Whether background work is left that need not wait.
    busy: bool,
}

enum State {
    /// Commands are taken.
    Running(Box<Running>),
    /// The memory was given up and is being loaded again.
    Recovering { why: String, loader: Reloading },
    /// Nothing can be trusted any more.
    Poisoned,
}

impl Decider {
    pub(super) fn new(
        shared: Arc<Shared>,
        parts: Parts,
        loaded: Loaded,
        recorder: Arc<recorder::Desk>,
        look_up: Arc<look_up::Desk>,
    ) -> std::io::Result<Self> {
        let mailbox = shared.mailbox.clone();
        let running = start(loaded, &parts, &mailbox)?;
        let out = Out {
            tally: Tally::new(),
            room: mailbox.clone(),
            look_ups: 0,
        };
        let mut decider = Self {
            shared,
            mailbox,
            parts,
            recorder,
            look_up,
            state: State::Running(Box::new(running)),
            out,
            gauges: Gauges::new(),
            tags: Tags::new(),
            now: 0,
            failures: 0,
            busy: false,
        };
        decider.publish();
        Ok(decider)
    }

    /// The thread's body; returns when the store is closed or poisoned.
    pub(super) fn run(mut self) {
        self.mailbox.serve();
        let mut submissions = Vec::new();
        let mut messages = Vec::new();
        loop {
            let wait = self.wait();
            self.mailbox.take(&mut submissions, &mut messages, wait);
            self.look_at_the_clock();
            for message in messages.drain(..) {
                self.message(message);
            }
            self.resume();
            let commands = submissions.len();
            for (index, work) in submissions.drain(..).enumerate() {
                if index % STEP_COMMANDS == STEP_COMMANDS - 1 {
                    self.between_commands();
                }
                self.begin(work);
            }
            self.background(commands);
            // Even while more commands wait: refusals and reads could otherwise keep a change from the disk for good.
            self.hand_over();
            self.rebuild_if_corrupt();
            self.publish();
            if self.is_over() {
                break;
            }
        }
        if let State::Recovering { loader, .. } = self.state {
            loader.end();
        }
    }

    /// How long to wait for work; `None`: not at all.
    fn wait(&self) -> Option<Duration> {
        let can_resume = matches!(&self.state, State::Running(running) if running.can_resume());
        if self.busy || can_resume {
            return None;
        }
        let until_end = match &self.state {
            State::Running(running) => running.shard.next_end().map(|end| {
                let ms = end.saturating_sub(self.now).max(1);
                Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
            }),
            State::Recovering { .. } | State::Poisoned => None,
        };
        Some(until_end.map_or(SLEEP_MAX, |until| until.min(SLEEP_MAX)))
    }

    fn look_at_the_clock(&mut self) {
        self.now = self.now.max(self.parts.clock.now());
    }

    /// In the middle of a long turn: the time goes on, and the recording thread is not left idle.
    fn between_commands(&mut self) {
        self.look_at_the_clock();
        for message in self.mailbox.take_messages() {
            self.message(message);
        }
    }

    /// Work that waited for ends to be freed comes before new work.
    fn resume(&mut self) {
        if let State::Running(running) = &mut self.state {
            if self.shared.is_closing() {
                running.close();
            }
            running.resume(self.now, &mut self.out);
        }
    }

    fn begin(&mut self, work: Submission) {
        match &mut self.state {
            State::Running(running) => running.begin(work, self.now, &mut self.out),
            State::Recovering { why, .. } => {
                let why = why.clone();
                self.refuse(work, || Error::Unavailable { why: why.clone() });
            }
            State::Poisoned => {
                let why = self.shared.poison_reason();
                self.refuse(work, || Error::Unavailable { why: why.clone() });
            }
        }
    }

    /// Answers work with an error; none of it was begun.
    fn refuse(&mut self, work: Submission, error: impl Fn() -> Error) {
        self.mailbox.answered(work.admitted());
        super::refuse(work, &mut self.out.tally, error);
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Committed(commit) => self.committed(commit),
            Message::LookedUp(found) => {
                if let State::Running(running) = &mut self.state {
                    for found in found {
                        running.looked_up(found, self.now, &mut self.out);
                    }
                }
            }
            Message::Freeze(asked) => {
                // Elsewhere the sender is dropped, which tells the audit.
                if let State::Running(running) = &mut self.state {
                    running.freeze(asked);
                }
            }
            Message::Loaded(loaded) => self.loaded(loaded),
            Message::Broken(why) => self.broken(&why),
            Message::StillDown(error) => {
                if let State::Recovering { why, .. } = &mut self.state {
                    *why = format!("the ledger cannot be loaded, trying again: {error}");
                    let why = why.clone();
                    self.shared.set_readiness(Readiness::Recovering { why });
                }
            }
        }
    }

    // ---- recording ----

    fn committed(&mut self, commit: Commit) {
        let State::Running(running) = &mut self.state else {
            return;
        };
        self.gauges.commit(&commit);
        match commit.result {
            Some(Ok(())) => {
                self.failures = 0;
                self.shared.set_pace(commit.took, commit.effects);
                let recorded = running.recorded_now();
                // First the next entry, so that the disk does not wait for the answers to be sent.
                self.hand_over();
                recorded.answer(&mut self.out);
            }
            Some(Err(error @ RecordError::NotRecorded(_))) => {
                tracing::error!(%error, entry = commit.seq, "an entry was not recorded; reloading from the ledger");
                self.reload(&format!(
                    "nothing was changed, since the disk took no more: {error}"
                ));
            }
            Some(Err(error @ (RecordError::Fenced { .. } | RecordError::Mismatch { .. }))) => {
                tracing::error!(
                    %error,
                    entry = commit.seq,
                    "the ledger does not agree with the memory: another program wrote to it, or this is a defect; \
                     reloading under a new epoch; run an audit"
                );
                self.reload(&format!(
                    "nothing was changed, since the ledger did not agree: {error}"
                ));
            }
            Some(Err(error @ RecordError::Unknown(_))) => self.poison(&error.to_string()),
            None => self.poison("recording failed with a panic"),
        }
    }

    /// Gives the recording thread the next entry if it is free.
    fn hand_over(&mut self) {
        if let State::Running(running) = &mut self.state
            && let Some(entry) = running.seal(&*self.parts.ledger, || self.tags.next())
        {
            self.gauges.group.record(count(entry.effects.len()));
            self.recorder.hand_over(entry);
        }
    }

    // ---- failures ----

    fn give_up(&mut self, lost: Lost, why: &str) {
        if let State::Running(running) = std::mem::replace(&mut self.state, State::Poisoned) {
            running.give_up(lost, why, &mut self.out);
        }
    }

    fn reload(&mut self, why: &str) {
        let recovering = format!("reloading from the ledger: {why}");
        // Before anybody hears of the failure, so that whoever does sees the store as it is.
        self.shared.set_readiness(Readiness::Recovering {
            why: recovering.clone(),
        });
        self.give_up(Lost::NotRecorded, why);
        self.failures = self.failures.saturating_add(1);
        let started = Reloading::start(
            self.parts.ledger.clone(),
            self.parts.plan.clone(),
            self.mailbox.clone(),
            self.failures,
        );
        match started {
            Ok(loader) => {
                self.state = State::Recovering {
                    why: recovering,
                    loader,
                };
            }
            Err(error) => self.poison(&format!("no thread could be started to reload: {error}")),
        }
    }

    fn rebuild_if_corrupt(&mut self) {
        if let State::Running(running) = &self.state
            && let Some(what) = running.corrupt()
        {
            tracing::error!(
                what,
                "the memory contradicts itself, which is a defect or damage; reloading under a new epoch; run an audit"
            );
            self.reload(&format!("the memory contradicted itself: {what}"));
        }
    }

    fn broken(&mut self, why: &str) {
        let state = std::mem::replace(&mut self.state, State::Poisoned);
        if let State::Recovering { loader, .. } = state {
            loader.end();
        }
        self.poison(why);
    }

    fn loaded(&mut self, loaded: Option<Box<Loaded>>) {
        let state = std::mem::replace(&mut self.state, State::Poisoned);
        if let State::Recovering { loader, .. } = state {
            loader.end();
        }
        let Some(loaded) = loaded else {
            self.poison("reloading failed with a panic");
            return;
        };
        match start(*loaded, &self.parts, &self.mailbox) {
            Ok(running) => {
                tracing::info!(epoch = running.shard.position().epoch, "reloaded from the ledger");
                self.state = State::Running(Box::new(running));
                self.shared.set_readiness(Readiness::Ready);
            }
            Err(error) => self.poison(&format!("no thread could be started after reloading: {error}")),
        }
    }

    fn poison(&mut self, why: &str) {
        tracing::error!(
            why,
            "the store is poisoned: it is not known what is on disk; restart the process"
        );
        self.shared.poison(why);
        let why = self.shared.poison_reason();
        self.give_up(Lost::Unknown, &why);
    }

    // ---- background ----

    fn background(&mut self, commands: usize) {
        self.busy = false;
        let State::Running(running) = &mut self.state else {
            return;
        };
        if self.shared.is_closing() {
            // Ends that are due are swept after the next start; closing waits only for what callers wait for.
            if !running.jobs.is_empty() {
                self.look_up.add(&mut running.jobs);
            }
            return;
        }
        let is_due = |running: &Running| running.shard.next_end().is_some_and(|end| end <= self.now);
        if is_due(running) && running.shard.unsealed() < SWEEP_ENTRY_MAX {
            let swept = running.shard.sweep(self.now, SWEEP_STEP);
            self.gauges.swept.increment(count_u64(swept));
        }
        // What does not fit into this entry waits for the disk, whose message ends the sleep.
        self.busy |= is_due(running) && running.shard.unsealed() < SWEEP_ENTRY_MAX;

        let step = FORGET_STEP.max(commands.saturating_mul(2));
        let older_than = self.now.saturating_sub(self.parts.keep_ended_ms);
        let forgot = running
            .shard
            .forget(running.recorded(), older_than, self.parts.keep_ended, step);
        self.gauges.forgotten.increment(count_u64(forgot));
        self.busy |= forgot >= step;

        self.busy |= running.feed();
        if !running.jobs.is_empty() {
            self.look_up.add(&mut running.jobs);
        }
    }

    fn publish(&mut self) {
        self.out.tally.flush(&self.shared.turned_away);
        let look_ups = std::mem::take(&mut self.out.look_ups);
        if look_ups > 0 {
            self.gauges.look_ups.increment(look_ups);
        }
        if let State::Running(running) = &self.state {
            let live = running.shard.live_count();
            let decided = running.shard.position();
            let late = running
                .shard
                .next_end()
                .map_or(0, |end| self.now.saturating_sub(end).max(0));
            self.gauges.live.set(count(live));
            self.gauges
                .lag
                .set(count(usize::try_from(late).unwrap_or(0)) / 1e3);
            self.gauges
                .epoch
                .set(count(usize::try_from(decided.epoch).unwrap_or(0)));
            self.shared.set_numbers(decided, running.recorded(), live);
        }
        self.gauges.waiting.set(count(self.mailbox.waiting()));
        let ready = self.shared.readiness() == Readiness::Ready;
        self.gauges.ready.set(if ready { 1.0 } else { 0.0 });
    }

    fn is_over(&self) -> bool {
        match &self.state {
            State::Poisoned => true,
            State::Recovering { .. } => self.shared.is_closing() && self.mailbox.is_empty(),
            State::Running(running) => {
                self.shared.is_closing() && running.is_settled() && self.mailbox.is_empty()
            }
        }
    }
}

fn start(loaded: Loaded, parts: &Parts, mailbox: &Arc<Mailbox>) -> std::io::Result<Running> {
    let Loaded { shard, at, view } = loaded;
    let nudged = mailbox.clone();
    let feed = load::feed_filter(parts.plan.shard, view, parts.ledger.clone(), move || {
        nudged.nudge();
    })?;
    Ok(Running::new(shard, at.seq, Some(feed)))
}

struct Gauges {
    group: Histogram,
    commit_seconds: Histogram,
    swept: Counter,
    forgotten: Counter,
    look_ups: Counter,
    live: Gauge,
    lag: Gauge,
    epoch: Gauge,
    waiting: Gauge,
    ready: Gauge,
}

impl Gauges {
    fn new() -> Self {
        Self {
            group: metrics::histogram!(names::GROUP_COMMANDS),
            commit_seconds: metrics::histogram!(names::COMMIT_SECONDS),
            swept: metrics::counter!(names::SWEPT),
            forgotten: metrics::counter!(names::FORGOTTEN),
            look_ups: metrics::counter!(names::LOOK_UPS),
            live: metrics::gauge!(names::LIVE_RESERVATIONS),
            lag: metrics::gauge!(names::SWEEP_LAG_SECONDS),
            epoch: metrics::gauge!(names::EPOCH),
            waiting: metrics::gauge!(names::WAITING_COMMANDS),
            ready: metrics::gauge!(names::READY),
        }
    }

    fn commit(&self, commit: &Commit) {
        self.commit_seconds.record(commit.took.as_secs_f64());
        let outcome = match &commit.result {
            Some(Ok(())) => "recorded",
            Some(Err(RecordError::NotRecorded(_))) => "not_recorded",
            Some(Err(RecordError::Fenced { .. })) => "fenced",
            Some(Err(RecordError::Mismatch { .. })) => "mismatch",
            Some(Err(RecordError::Unknown(_))) | None => "unknown",
        };
        metrics::counter!(names::COMMITS, "outcome" => outcome).increment(1);
    }
}

fn count_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

//! What becomes of a call: answers, waiting, detours, another try.

use std::time::{Duration, Instant};

use stockade_core::{Done, LookedUp, Position, Refusal, Reply, Space, Status, Subject};
use stockade_ledger::{Key, Recorded};
use stockade_redis::{CallError, Decided, Kind, ScriptKind, Stale, Verdict};
use tokio::task::JoinError;

use super::conductor::{CallEnd, Chore, Conductor};
use super::job::{Job, Kept, To};
use super::waiting::Tip;
use super::{desk, numbers};
use crate::tier::Answered;

/// How often the ledger is asked for one command.
const LOOK_UPS_MAX: u32 = 16;
/// The shortest and longest pause after a call that failed.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How far Redis's clock and ours may drift apart before it counts as a jump, in milliseconds.
const JUMP_MS: i64 = 2_000;
/// How long the sweeper waits after a jump: an operator may set the clock right again.
const SWEEP_PAUSE: Duration = Duration::from_secs(10);
/// Entries that are not recorded after this are compared with what the node holds.
const SUSPICIOUS: Duration = Duration::from_millis(500);

impl Conductor {
    pub(super) fn call_joined(&mut self, ended: Result<CallEnd, JoinError>) {
        match ended {
            Ok(ended) => self.call_ended(ended),
            // Its callers hear from the dropped senders that the outcome is unknown.
            Err(error) => tracing::error!(%error, "a call failed with a panic"),
        }
    }

    pub(super) fn chore_joined(&mut self, ended: Result<Chore, JoinError>) {
        match ended {
            Ok(Chore::Swept(swept)) => self.swept(swept),
            Ok(Chore::Marked(end)) => self.marked(end),
            Ok(Chore::Loaded(end)) => self.loaded(end),
            Ok(Chore::Meta(meta)) => self.meta_read(meta),
            Err(error) => {
                tracing::error!(%error, "a chore failed with a panic");
                self.sweep.in_flight = false;
                self.checking_meta = false;
            }
        }
    }

    fn call_ended(&mut self, ended: CallEnd) {
        let CallEnd {
            kind,
            mut jobs,
            sent,
            result,
            took,
            in_flight,
        } = ended;
        numbers::call(kind, took);
        match result {
            Ok(Decided::Done { tip, at, value }) => {
                self.failures = 0;
                self.failing_since = None;
                self.queues.measured(kind, jobs.len(), took, in_flight);
                self.note_tip(tip);
                // Before anybody hears an answer: who asks then sees the store as it is.
                self.show();
                self.hear_clock(at);
                if value.wrote {
                    self.keeper.wrote();
                }
                if value.verdicts.len() != jobs.len() {
                    tracing::error!(
                        "Redis answered {} of {} commands",
                        value.verdicts.len(),
                        jobs.len()
                    );
                }
                let mut verdicts = value.verdicts.into_iter();
                for job in jobs {
                    match verdicts.next() {
                        Some(verdict) => self.verdict(job, verdict, tip),
                        None => self.give_up_unknown(job, "Redis gave no answer to the command"),
                    }
                }
            }
            Ok(Decided::Stale(stale)) => {
                self.queues.push_front(jobs);
                self.stale(stale);
            }
            Err(CallError::NotDone { kind, message }) => self.not_done(jobs, kind, &message),
            Err(CallError::Unknown { kind, message }) => {
                tracing::warn!(epoch = sent.epoch, ?kind, %message, "it is not known whether a call was executed; sending the ids again");
                for job in &mut jobs {
                    job.maybe_done = true;
                }
                self.queues.push_front(jobs);
                self.pause(&message);
            }
            Err(error @ CallError::Unreadable { .. }) => {
                tracing::error!(%error, ?kind, "an answer of Redis cannot be read");
                for job in &mut jobs {
                    job.maybe_done = true;
                }
                self.queues.push_front(jobs);
                self.pause(&error.to_string());
            }
        }
    }

    fn not_done(&mut self, jobs: Vec<Job>, kind: Kind, message: &str) {
        if kind == Kind::OutOfMemory {
            // Waiting does not help, and what frees must not stand behind what grows.
            if jobs.iter().any(Job::is_kept) {
                // Those are asked for again and again, which must not be all that is done.
                self.pause(message);
            }
            for job in jobs {
                self.give_up(job, format!("Redis is out of memory: {message}"));
            }
            return;
        }
        self.queues.push_front(jobs);
        self.pause(message);
    }

    /// The last call failed: a growing pause, and a close look by the keeper.
    pub(super) fn pause(&mut self, message: &str) {
        self.failures = self.failures.saturating_add(1);
        self.failing_since.get_or_insert_with(Instant::now);
        let pause = PAUSE_MIN * 2_u32.saturating_pow(self.failures.min(6));
        self.pause_until = Some(Instant::now() + pause.min(PAUSE_MAX));
        self.keeper.suspect(message, false);
    }

    /// The shard is not what the commands were sent to.
    pub(super) fn stale(&mut self, stale: Stale) {
        let why = match stale {
            Stale::NoMeta => "Redis holds nothing of this shard".to_owned(),
            Stale::Epoch { found } => format!("Redis is at epoch {found}"),
            Stale::Closed { found } => format!("Redis is closed, its epoch {found} is being built"),
            Stale::Damaged => "the shard in Redis was damaged from outside".to_owned(),
        };
        let rebuild = stale == Stale::Damaged;
        self.keeper.suspect(&*why, rebuild);
        self.stop_sending(&why);
    }

    fn give_up_unknown(&mut self, mut job: Job, why: &str) {
        job.maybe_done = true;
        self.give_up(job, why.to_owned());
    }

    /// What is known of the node's tip.
    pub(super) fn note_tip(&mut self, tip: Position) {
        if (tip.epoch, tip.seq) > (self.tip.epoch, self.tip.seq) {
            self.tip = tip;
        }
    }

    /// Redis's time against ours: a jump is told, and nothing is swept until somebody had time to look.
    pub(super) fn hear_clock(&mut self, at: i64) {
        if self.parts.own_clock {
            return;
        }
        if let Some((before, heard)) = self.heard {
            let passed = i64::try_from(heard.elapsed().as_millis()).unwrap_or(i64::MAX);
            let apart = at.saturating_sub(before).saturating_sub(passed);
            if apart.abs() > JUMP_MS {
                tracing::warn!(
                    apart_ms = apart,
                    "the clock of Redis jumped; ends may come early or late; sweeping pauses"
                );
                metrics::counter!(crate::names::CLOCK_JUMPS).increment(1);
                self.sweep.paused_until = Some(Instant::now() + SWEEP_PAUSE);
            }
        }
        self.heard = Some((at, Instant::now()));
    }

    // ---- verdicts ----

    fn verdict(&mut self, job: Job, verdict: Verdict, tip: Position) {
        match verdict {
            Verdict::Reply(Reply::Done(done)) => self.done(job, done, tip),
            Verdict::Reply(Reply::Refused(refusal)) => self.refused(job, refusal, tip),
            Verdict::Reply(Reply::LookUp { space, id }) => self.look_up(job, space, id),
            Verdict::Reply(Reply::Again) => {
                self.again.push(job);
                self.sweep.next = Instant::now();
            }
            Verdict::Reply(Reply::Corrupt { what }) => {
                self.keeper.suspect(what, true);
                self.queues.push_front(vec![job]);
                self.stop_sending(what);
            }
            Verdict::Missing(skus) => self.load(job, skus),
            Verdict::Corrupt { key, sku, message } => {
                tracing::error!(%key, %message, "a value in Redis is damaged: it is loaded again from the ledger");
                metrics::counter!(crate::names::DAMAGED).increment(1);
                if let Some(sku) = sku {
                    return self.load_damaged(job, sku);
                }
                let why = format!("{key}: {message}");
                self.keeper.suspect(&*why, true);
                self.queues.push_front(vec![job]);
                self.stop_sending(&why);
            }
        }
    }

    fn done(&mut self, mut job: Job, done: Done, tip: Position) {
        self.mark_decided(&mut job);
        let ends_at = match &done.subject {
            Subject::Reservation(reservation) if reservation.status == Status::Pending => {
                Some(reservation.ends_at)
            }
            Subject::Reservation(_) | Subject::Return(_) | Subject::Stock(_) => None,
        };
        let recorded = self.known.has(tip);
        let is_stock_read = matches!(&done.subject, Subject::Stock(_)) && job.is_read();
        if recorded || is_stock_read {
            return self.answer(job, Ok(Answered { done, recorded }));
        }
        let Some(ends_at) = ends_at.filter(|_| job.may_be_soft()) else {
            return self.waiting.hard(tip, job, Ok(Answered::recorded(done)));
        };
        // A promise: kept until it is recorded, so that a loss is noticed.
        if job.is_read() {
            return self.answer(job, Ok(Answered { done, recorded }));
        }
        let (command, to, kind) = (job.command, job.to, job.decided);
        match to {
            To::Kept => {
                self.waiting.keep(tip, Kept { command, ends_at });
                self.kept_ended();
            }
            to @ (To::One(_) | To::Many { .. }) => {
                let mut answering = Job::new(command.clone(), to, false, job.deadline);
                answering.decided = kind;
                self.waiting.keep(tip, Kept { command, ends_at });
                self.answer(answering, Ok(Answered { done, recorded }));
            }
        }
    }

    fn refused(&mut self, mut job: Job, refusal: Refusal, tip: Position) {
        self.mark_decided(&mut job);
        self.refusals.add(job, refusal, tip);
    }

    fn look_up(&mut self, mut job: Job, space: Space, id: stockade_core::Id) {
        if job.look_ups >= LOOK_UPS_MAX {
            let why = "the ids that Redis forgot change faster than the ledger can be asked; send the command again";
            return self.give_up(job, why.into());
        }
        job.look_ups += 1;
        // An older word about this id did not do.
        job.known.retain(|known| known.space != space || known.id != id);
        self.numbers.look_up();
        let number = self.next_number;
        self.next_number += 1;
        let key = Key {
            tenant: job.command.tenant.clone(),
            space,
            id,
        };
        self.questions.ids.push((number, key));
        self.looking.insert(number, job);
    }

    // ---- what the reading thread found ----

    pub(super) fn read(&mut self, questions: desk::Questions, answers: Result<desk::Answers, String>) {
        self.polling = false;
        let answers = match answers {
            Ok(answers) => answers,
            Err(why) => return self.not_read(questions, &why),
        };
        let now_epoch = answers.row.as_ref().map(|row| row.epoch);
        if let (Some(found), Some(epoch)) = (now_epoch, self.epoch)
            && found != epoch
        {
            self.keeper.suspect(
                format!("the ledger is at epoch {found}, commands went out under {epoch}"),
                false,
            );
            self.stop_sending("a new epoch is being built");
        }
        if let Some(row) = answers
            .row
            .as_ref()
            .filter(|row| !self.is_holder && Some(row.epoch) == self.epoch)
        {
            // The recorder of another process tells nothing here; what it did shows in the row.
            self.known.add(Position {
                epoch: row.epoch,
                seq: row.cursor,
                tag: row.tag,
            });
        }
        for (at, recorded) in answers.tips {
            match recorded {
                Recorded::Yes => self.release(at),
                Recorded::Never => self.lost(at),
                // Too old to tell: whoever waits hears at the deadline that the outcome is unknown.
                Recorded::NotYet | Recorded::Pruned => self.look_at_node(at),
            }
        }
        for (number, known) in answers.ids {
            self.looked_up(number, known);
        }
        self.skus_read(answers.skus);
        if answers.refusals {
            self.row_read(answers.row.as_ref());
        }
    }

    fn not_read(&mut self, questions: desk::Questions, why: &str) {
        tracing::warn!(why, "the ledger could not be read");
        let why = format!("the ledger could not be read: {why}");
        for (number, _) in questions.ids {
            if let Some(job) = self.looking.remove(&number) {
                self.give_up(job, why.clone());
            }
        }
        for job in self.loads.read_failed(&questions.skus) {
            self.give_up(job, why.clone());
        }
        if questions.row {
            // An earlier send of it may have been executed; and what is kept is asked for until it is granted or lost.
            for job in self.refusals.take_asked() {
                self.give_up(job, why.clone());
            }
        }
    }

    fn looked_up(&mut self, number: u64, known: LookedUp) {
        if let Some(mut job) = self.looking.remove(&number) {
            job.known.push(known);
            self.queues.push_front(vec![job]);
        }
    }

    // ---- entries that are recorded, and entries that are lost ----

    /// The keeper recorded an entry.
    pub(super) fn recorded(&mut self, at: Position) {
        self.known.add(at);
        self.release(at);
        for tip in self.waiting.take_rivals(at) {
            self.again_after_loss(tip);
        }
    }

    /// An entry is recorded: who waited for it.
    fn release(&mut self, at: Position) {
        if let Some(tip) = self.waiting.take(at) {
            for (job, result) in tip.hard {
                self.answer(job, result);
            }
            // What was kept is safe now.
        }
    }

    fn lost(&mut self, at: Position) {
        if let Some(tip) = self.waiting.take(at) {
            self.again_after_loss(tip);
        }
    }

    /// Redis lost what these were decided on: the same ids once more, under new tags.
    pub(super) fn again_after_loss(&mut self, tip: Tip) {
        let mut again: Vec<Job> = Vec::new();
        let now_ms = self.redis_now();
        let deadline = Instant::now() + Duration::from_secs(86_400 * 365);
        for kept in tip.kept {
            self.kept_out += 1;
            let job = kept.again(now_ms, deadline);
            if job.script() == ScriptKind::Reserve {
                again.push(job);
            } else {
                self.kept_later.push(job);
            }
        }
        for (mut job, _) in tip.hard {
            // Its effects are gone with the entry, but the node that lost it may not be the only one that had it.
            job.maybe_done = true;
            job.known.clear();
            job.absent.clear();
            again.push(job);
        }
        self.numbers.asked_again(again.len());
        self.queues.push_front(again);
        if self.kept_out == self.kept_later.len() {
            self.send_kept_later();
        }
    }

    fn redis_now(&self) -> i64 {
        if self.parts.own_clock {
            return self.parts.clock.now();
        }
        self.heard.map_or_else(
            || self.parts.clock.now(),
            |(at, heard)| at.saturating_add(i64::try_from(heard.elapsed().as_millis()).unwrap_or(0)),
        )
    }

    /// A kept grant came back, one way or the other.
    pub(super) fn kept_ended(&mut self) {
        self.kept_out = self.kept_out.saturating_sub(1);
        if self.kept_out == self.kept_later.len() {
            self.send_kept_later();
        }
    }

    fn send_kept_later(&mut self) {
        let later = std::mem::take(&mut self.kept_later);
        self.queues.push_front(later);
    }

    /// Entries that are not recorded for long: does the node still have them?
    fn look_at_node(&mut self, at: Position) {
        if self.checking_meta || Some(at.epoch) != self.epoch || self.waiting.age() < SUSPICIOUS {
            return;
        }
        self.checking_meta = true;
        let hot = self.hot.clone();
        self.chores.spawn(async move { Chore::Meta(hot.meta().await) });
    }

    fn meta_read(&mut self, meta: Result<Option<stockade_redis::MetaState>, CallError>) {
        self.checking_meta = false;
        match meta {
            Ok(Some(meta)) if Some(meta.tip.epoch) == self.epoch => {
                // A failover or restart lost entries that nobody has recorded: there is no fork, only a loss.
                for tip in self.waiting.take_after(meta.tip.epoch, meta.tip.seq) {
                    tracing::warn!(
                        seq = meta.tip.seq,
                        "Redis lost entries that were not recorded; asking for them again"
                    );
                    self.again_after_loss(tip);
                }
            }
            Ok(other) => self.keeper.suspect(format!("Redis stands at {other:?}"), false),
            Err(error) => tracing::debug!(%error, "the node's tip could not be read"),
        }
    }
}

/// A kept grant was refused: it is lost.
pub(super) fn kept_refused(job: &Job, refusal: &Refusal) {
    // What its caller has ended or confirmed meanwhile is not a loss.
    if matches!(
        refusal,
        Refusal::AlreadyCancelled(_) | Refusal::AlreadyConfirmed(_) | Refusal::Expired { .. }
    ) {
        return;
    }
    let (stockade_core::Action::Reserve(stockade_core::Reserve { id, .. })
    | stockade_core::Action::Extend(stockade_core::Extend { id, .. })) = &job.command.action
    else {
        return;
    };
    numbers::lost(&job.command.tenant, id, crate::error::refusal_code(refusal));
}

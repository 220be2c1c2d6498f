//! The conductor: one task that owns everything about commands on their way.
//!
//! What comes in is put into queues; a call starts whenever fewer are in flight than may be; its verdicts become
//! answers at once, wait for an entry to be recorded, or send the command on a detour (a look-up, a load, a sweep) and
//! then again to Redis under a new tag. Nothing blocks here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stockade_core::Position;
use stockade_redis::{Batch, CallError, Decided, Hot, ScriptKind, Sent, SweepReply};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::desk::Questions;
use super::groups::Groups;
use super::job::{Job, To};
use super::known::Known;
use super::loading::{Loads, MarkEnd};
use super::numbers::Numbers;
use super::queue::Queues;
use super::refusals::Refusals;
use super::shared::Shared;
use super::waiting::Waiting;
use super::{Message, Parts, StartError, desk, keeper, turn_away};
use crate::api::Readiness;
use crate::tags::Tags;
use crate::tally::Tally;
use crate::tier::{Answer, Durability, Submission};

/// Calls in flight at once. With one, Redis idles while its reply travels and is read; a third only waits in Redis's
/// own queue and makes batches smaller.
pub(super) const CALLS: usize = 2;
/// Messages taken at once.
const TAKE: usize = 4_096;
/// How often time-outs, backlog and sweeping are looked at.
const TICK: Duration = Duration::from_millis(20);
/// How long the ledger may take nothing before commands that need it are refused.
const LEDGER_PATIENCE: Duration = Duration::from_secs(1);
/// Entries that one question asks about.
const POLL: usize = 512;

/// How a call ended.
#[derive(Debug)]
pub(super) struct CallEnd {
    pub(super) kind: ScriptKind,
    pub(super) jobs: Vec<Job>,
    pub(super) sent: Sent,
    pub(super) result: Result<Decided<Batch>, CallError>,
    pub(super) took: Duration,
    pub(super) in_flight: usize,
}

/// How something beside the commands ended.
#[derive(Debug)]
pub(super) enum Chore {
    Swept(Result<Decided<SweepReply>, CallError>),
    Marked(MarkEnd),
    Loaded(super::loading::LoadEnd),
    /// The node's tip, asked since entries do not get recorded.
    Meta(Result<Option<stockade_redis::MetaState>, CallError>),
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Conductor {
    pub(super) shared: Arc<Shared>,
    pub(super) hot: Hot,
    pub(super) parts: PartsInUse,
    pub(super) desk: Arc<desk::Desk>,
    pub(super) keeper: Arc<keeper::Desk>,
    /// The epoch under which commands are sent; `None`: they wait.
    pub(super) epoch: Option<u64>,
    /// Why they wait, and since when.
    pub(super) down: Option<(String, Instant)>,
    /// Whether this process records.
    pub(super) is_holder: bool,
    /// Why the ledger takes nothing, if it does not.
    pub(super) ledger_down: Option<(String, Instant)>,
    pub(super) queues: Queues,
    pub(super) calls: JoinSet<CallEnd>,
    pub(super) chores: JoinSet<Chore>,
    pub(super) groups: Groups,
    pub(super) waiting: Waiting,
    pub(super) known: Known,
    pub(super) refusals: Refusals,
    pub(super) loads: Loads,
    /// Jobs that wait for a look-up.
    pub(super) looking: HashMap<u64, Job>,
    pub(super) next_number: u64,
    /// Jobs that wait for a sweep.
    pub(super) again: Vec<Job>,
    /// Kept extends, until no kept reserve is on its way: they must find it.
    pub(super) kept_later: Vec<Job>,
    /// Kept grants on their way.
    pub(super) kept_out: usize,
    /// What the reading thread is to be asked next.
    pub(super) questions: Questions,
    pub(super) polling: bool,
    /// When the ledger was last asked what is recorded.
    pub(super) polled: Option<Instant>,
    pub(super) checking_meta: bool,
    pub(super) sweep: Sweep,
    pub(super) tags: Tags,
    pub(super) tally: Tally,
    pub(super) numbers: Numbers,
    /// Nothing is sent before: the last calls failed.
    pub(super) pause_until: Option<Instant>,
    /// Calls that failed since the last that did not.
    pub(super) failures: u32,
    pub(super) failing_since: Option<Instant>,
    /// The highest tip seen.
    pub(super) tip: Position,
    /// Redis's clock when it was last heard, and when that was.
    pub(super) heard: Option<(i64, Instant)>,
    closing_since: Option<Instant>,
    /// Told when commands can be sent for the first time.
    pub(super) opened: Option<oneshot::Sender<Result<(), StartError>>>,
    pub(super) over: bool,
}

/// What of the parts is used here.
#[derive(Debug)]
pub(super) struct PartsInUse {
    pub(super) clock: Arc<dyn crate::clock::Clock>,
    pub(super) own_clock: bool,
    pub(super) ledger: Arc<dyn stockade_ledger::SharedLedger>,
    pub(super) shard: u32,
    pub(super) late_confirm: stockade_core::LateConfirm,
    pub(super) answer_within: Duration,
    pub(super) backlog_within: Duration,
}

/// Where sweeping stands.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) in_flight: bool,
    pub(super) next: Instant,
    pub(super) paused_until: Option<Instant>,
    pub(super) live: u64,
}

impl Conductor {
    pub(super) fn new(
        shared: Arc<Shared>,
        hot: Hot,
        parts: Parts,
        (desk, keeper): (Arc<desk::Desk>, Arc<keeper::Desk>),
        opened: oneshot::Sender<Result<(), StartError>>,
    ) -> Self {
        let now = Instant::now();
        Self {
            shared,
            hot,
            parts: PartsInUse {
                clock: parts.clock,
                own_clock: parts.redis.own_clock,
                ledger: parts.ledger,
                shard: parts.shard,
                late_confirm: parts.late_confirm,
                answer_within: parts.redis.answer_within,
                backlog_within: parts.redis.backlog_within,
            },
            desk,
            keeper,
            epoch: None,
            down: Some(("being opened".into(), now)),
            is_holder: false,
            ledger_down: None,
            queues: Queues::new(),
            calls: JoinSet::new(),
            chores: JoinSet::new(),
            groups: Groups::default(),
            waiting: Waiting::default(),
            known: Known::default(),
            refusals: Refusals::default(),
            loads: Loads::default(),
            looking: HashMap::new(),
            next_number: 0,
            again: Vec::new(),
            kept_later: Vec::new(),
            kept_out: 0,
            questions: Questions::default(),
            polling: false,
            polled: None,
            checking_meta: false,
            sweep: Sweep {
                in_flight: false,
                next: now,
                paused_until: None,
                live: 0,
            },
            tags: Tags::new(),
            tally: Tally::new(),
            numbers: Numbers::new(),
            pause_until: None,
            failures: 0,
            failing_since: None,
            tip: Position::default(),
            heard: None,
            closing_since: None,
            opened: Some(opened),
            over: false,
        }
    }

    /// Until the store is closed, or broken.
    pub(super) async fn run(mut self, mut inbox: UnboundedReceiver<Message>) {
        let mut messages = Vec::new();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.over {
            tokio::select! {
                _ = inbox.recv_many(&mut messages, TAKE) => {}
                Some(ended) = self.calls.join_next() => self.call_joined(ended),
                Some(ended) = self.chores.join_next() => self.chore_joined(ended),
                _ = tick.tick() => self.tick(),
            }
            for message in messages.drain(..) {
                self.message(message);
            }
            while let Some(ended) = self.calls.try_join_next() {
                self.call_joined(ended);
            }
            self.dispatch();
            self.ask();
            self.show();
        }
        inbox.close();
        while let Ok(message) = inbox.try_recv() {
            if let Message::Work(work) = message {
                turn_away(work, &mut self.tally);
            }
        }
        self.publish();
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Work(work) => self.begin(work),
            Message::News(news) => self.news(*news),
            Message::Read(read) => {
                let (questions, answers) = *read;
                self.read(questions, answers);
            }
            Message::Freeze(frozen) => self.freeze(frozen),
            Message::Wake => self.sweep.next = Instant::now(),
        }
    }

    fn begin(&mut self, work: Submission) {
        let deadline = Instant::now() + self.parts.answer_within;
        match work {
            Submission::One {
                command,
                durability,
                answer,
            } => {
                let hard = durability == Durability::Ledger;
                self.queues
                    .push(Job::new(command, To::One(answer), hard, deadline));
            }
            Submission::Many(batch) => {
                for job in self.groups.begin(*batch, deadline) {
                    self.queues.push(job);
                }
            }
        }
    }

    /// What goes with every call; a tag is used once.
    pub(super) fn sent(&mut self, epoch: u64) -> Sent {
        Sent {
            epoch,
            tag: self.tags.next(),
            now: self.parts.own_clock.then(|| self.parts.clock.now()),
            late_confirm: self.parts.late_confirm,
        }
    }

    /// Starts calls while there is something to send and fewer are in flight than may be.
    fn dispatch(&mut self) {
        let Some(epoch) = self.epoch else { return };
        if self.pause_until.is_some_and(|until| until > Instant::now()) {
            return;
        }
        while self.calls.len() < CALLS {
            let Some((kind, mut jobs)) = self.queues.take() else {
                break;
            };
            self.drop_abandoned(&mut jobs);
            self.refuse_without_ledger(&mut jobs);
            if jobs.is_empty() {
                continue;
            }
            for job in &mut jobs {
                job.tries = job.tries.saturating_add(1);
            }
            self.numbers.batch(jobs.len());
            let sent = self.sent(epoch);
            let hot = self.hot.clone();
            let in_flight = self.calls.len() + 1;
            self.calls.spawn(async move {
                let began = Instant::now();
                let asked: Vec<_> = jobs.iter().map(Job::asked).collect();
                let result = hot.decide(&sent, &asked).await;
                drop(asked);
                CallEnd {
                    kind,
                    jobs,
                    sent,
                    result,
                    took: began.elapsed(),
                    in_flight,
                }
            });
        }
    }

    /// While the ledger takes nothing for long, what could only be answered by it does not begin.
    fn refuse_without_ledger(&mut self, jobs: &mut Vec<Job>) {
        let Some((why, since)) = &self.ledger_down else {
            return;
        };
        if since.elapsed() < LEDGER_PATIENCE {
            return;
        }
        let why = format!("the ledger takes nothing: {why}");
        let (begin, refused): (Vec<_>, Vec<_>) = std::mem::take(jobs)
            .into_iter()
            .partition(|job| job.may_be_soft() || job.is_read() || job.maybe_done || job.is_kept());
        *jobs = begin;
        for job in refused {
            self.give_up(job, why.clone());
        }
    }

    /// Commands whose callers hung up before their turn never begin.
    fn drop_abandoned(&mut self, jobs: &mut Vec<Job>) {
        let before = jobs.len();
        jobs.retain(|job| !job.is_abandoned());
        self.shared.answered(before - jobs.len());
    }

    /// Hands what is to be asked to the reading thread: one question at a time, so that they gather.
    fn ask(&mut self) {
        if self.polling {
            return;
        }
        let late = self.waiting.age() > Duration::from_millis(100);
        let pause = if self.is_holder && !late {
            None
        } else if late && self.is_holder {
            Some(Duration::from_millis(100))
        } else {
            Some(Duration::from_millis(2))
        };
        if !self.waiting.is_empty()
            && pause.is_some_and(|pause| self.polled.is_none_or(|polled| polled.elapsed() >= pause))
        {
            self.polled = Some(Instant::now());
            self.questions.tips = self.waiting.tips(POLL);
        }
        self.questions.row = self.refusals.ask();
        self.loads.ask(&mut self.questions);
        if !self.questions.is_empty() {
            self.polling = true;
            self.desk.ask(std::mem::take(&mut self.questions));
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        self.expire(now);
        self.sweep_if_due(now);
        self.measure();
        self.publish();
        if self.shared.is_closing() {
            let since = *self.closing_since.get_or_insert(now);
            if self.is_settled() {
                self.over = true;
            } else if since.elapsed() > self.parts.answer_within {
                tracing::error!(
                    kept = self.waiting.kept(),
                    waiting = self.shared.waiting(),
                    "closing without waiting any longer: not everything that was answered is recorded yet; any process \
                     that is opened on this ledger and Redis records it"
                );
                self.over = true;
            }
        }
    }

    fn is_settled(&self) -> bool {
        self.queues.is_empty()
            && self.calls.is_empty()
            && self.waiting.is_empty()
            && self.looking.is_empty()
            && self.loads.is_empty()
            && self.refusals.is_empty()
            && self.again.is_empty()
            && self.kept_later.is_empty()
            && self.groups.is_empty()
            && self.shared.waiting() == 0
    }

    fn measure(&mut self) {
        let (orders, age) = (self.waiting.orders(), self.waiting.age());
        let limit = self.shared.limit();
        let crowded = orders > limit - limit / 5 || age > self.parts.backlog_within * 4 / 5;
        self.shared.set_backlog(crowded, orders);
        self.numbers.backlog(orders, age);
    }

    pub(super) fn show(&self) {
        let live = usize::try_from(self.sweep.live).unwrap_or(usize::MAX);
        self.shared.set_numbers(self.tip, self.known.position().seq, live);
    }

    pub(super) fn publish(&mut self) {
        self.tally.flush(&self.shared.turned_away);
        let live = usize::try_from(self.sweep.live).unwrap_or(usize::MAX);
        let ready = self.shared.readiness() == Readiness::Ready;
        let epoch = self.epoch.unwrap_or(0);
        self.numbers
            .publish(&self.hot.stats(), epoch, live, self.shared.waiting(), ready);
    }

    /// An answer goes out, and makes room before its caller hears of it.
    pub(super) fn answer(&mut self, mut job: Job, answer: Answer) {
        self.mark_decided(&mut job);
        let kind = job.kind();
        match job.to {
            To::One(caller) => {
                self.tally.add(kind, &answer);
                self.shared.answered(1);
                // A caller that hung up does not want it.
                let _ = caller.send(answer);
            }
            To::Many { group, index } => {
                self.tally.add(kind, &answer);
                self.shared.answered(1);
                self.groups.answer(group, index, answer);
            }
            To::Kept => self.kept_ended(),
        }
    }

    /// Whoever stands behind it in its group may go.
    pub(super) fn mark_decided(&mut self, job: &mut Job) {
        if let To::Many { group, .. } = job.to
            && !std::mem::replace(&mut job.decided, true)
        {
            for next in self.groups.decided(group) {
                self.queues.push(next);
            }
        }
    }
}

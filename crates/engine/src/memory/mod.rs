//! The memory tier: the shard in this process, one thread that decides, one that records.
//!
//! ```text
//! callers -> mailbox -> deciding thread -> recorder's desk -> recording thread -> ledger
//!               ^            |  ^                                    |
//!               |            |  +------------ committed -------------+
//!               |            +-> look-up thread, filter feed, loader (only when needed)
//!               +------------------ answers
//! ```

mod decider;
mod load;
mod look_up;
mod mailbox;
mod recorder;
mod running;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, ThreadId};

use parking_lot::Mutex;
use stockade_core::{Position, Rules};
use stockade_ledger::Ledger;
use tokio::sync::{oneshot, watch};

use self::decider::Decider;
use self::mailbox::Mailbox;
use crate::api::{Health, Readiness};
use crate::clock::Clock;
use crate::error::Error;
use crate::tally::{Kind, Tally, TurnedAway};
use crate::tier::{Batch, Decided, Frozen, HotTier, Submission};

/// The least number of ended ids kept: a command may need two of them from the ledger, one after the other, and the
/// second must not push the first out again.
const KEEP_ENDED_MIN: usize = 4_096;
/// The least time in milliseconds for which ended ids are kept, for the same reason.
const KEEP_ENDED_MS_MIN: i64 = 10_000;

/// What the deciding thread is told beside commands.
enum Message {
    /// The recording thread is done with an entry.
    Committed(recorder::Commit),
    /// Ids were looked up.
    LookedUp(Vec<look_up::Found>),
    /// An audit asks for the state.
    Freeze(oneshot::Sender<Frozen>),
    /// The ledger was loaded again; `None`: that panicked.
    Loaded(Option<Box<load::Loaded>>),
    /// The ledger could not be loaded; it will be tried again.
    StillDown(String),
    /// The ledger takes no more from this process.
    Broken(String),
}

/// What the tier is made of.
#[derive(Clone)]
pub(crate) struct Parts {
    plan: load::Plan,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    keep_ended: usize,
    keep_ended_ms: i64,
    backlog_commands: usize,
}

impl Parts {
    pub(crate) fn new(options: &crate::api::Options, shard: u32, ledger: Arc<dyn Ledger>) -> Self {
        let least = if options.keep_below_least {
            (0, 0)
        } else {
            (KEEP_ENDED_MIN, KEEP_ENDED_MS_MIN)
        };
        Self {
            plan: load::Plan {
                shard,
                rules: Rules {
                    late_confirm: options.late_confirm,
                },
                owner: format!("process {}", std::process::id()),
            },
            ledger,
            clock: options.clock.clone(),
            keep_ended: options.keep_ended.max(least.0),
            keep_ended_ms: options.keep_ended_ms.max(least.1),
            backlog_commands: options.backlog_commands,
        }
    }
}

/// What callers and the tier's threads share.
#[derive(Debug)]
struct Shared {
    mailbox: Arc<Mailbox>,
    board: Mutex<Board>,
    closing: AtomicBool,
    turned_away: TurnedAway,
    /// Nanoseconds that one command took lately, for `retry_after_ms`.
    pace_ns: AtomicU64,
    ended: watch::Sender<bool>,
}

#[derive(Debug)]
struct Board {
    readiness: Readiness,
    decided: Position,
    recorded: u64,
    live: usize,
}

impl Shared {
    fn readiness(&self) -> Readiness {
        self.board.lock().readiness.clone()
    }

    /// Poisoned stays; closing gives way only to poisoned.
    fn set_readiness(&self, readiness: Readiness) {
        let mut board = self.board.lock();
        match (&board.readiness, &readiness) {
            (Readiness::Poisoned { .. }, _)
            | (Readiness::Closing, Readiness::Ready | Readiness::Recovering { .. }) => {}
            _ => board.readiness = readiness,
        }
    }

    fn set_numbers(&self, decided: Position, recorded: u64, live: usize) {
        let mut board = self.board.lock();
        board.decided = decided;
        board.recorded = recorded;
        board.live = live;
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn poison(&self, why: &str) {
        self.set_readiness(Readiness::Poisoned { why: why.into() });
        let why = self.poison_reason();
        self.mailbox.shut(Error::Unavailable { why }, true);
    }

    fn poison_reason(&self) -> String {
        match self.readiness() {
            Readiness::Poisoned { why } => {
                format!("the store is poisoned and must be opened again, best in a new process: {why}")
            }
            Readiness::Ready | Readiness::Recovering { .. } | Readiness::Closing => {
                "the store has ended".into()
            }
        }
    }

    fn set_pace(&self, took: std::time::Duration, effects: usize) {
        let each = took.as_nanos() / u128::try_from(effects.max(1)).unwrap_or(1);
        self.pace_ns
            .store(u64::try_from(each).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The time in which half of what waits is done.
    fn retry_after_ms(&self, waiting: usize) -> u64 {
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        let half = waiting.saturating_mul(self.pace_ns.load(Ordering::Relaxed)) / 2_000_000;
        half.clamp(50, 5_000)
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct MemoryTier {
    shard: u32,
    shared: Arc<Shared>,
    threads: Vec<ThreadId>,
    decider: Mutex<Option<JoinHandle<()>>>,
}

/// Why the tier did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Ledger(#[from] stockade_ledger::LedgerError),
    #[error("a thread could not be started: {0}; raise the limit on threads")]
    Thread(#[from] std::io::Error),
}

impl MemoryTier {
    /// Opens a new epoch, loads what is live, starts the threads. Blocks.
    pub(crate) fn start(parts: Parts) -> Result<Self, StartError> {
        let loaded = load::load(&*parts.ledger, &parts.plan)?;
        parts.clock.go_on_from(loaded.shard.clock());
        let mailbox = Arc::new(Mailbox::new(parts.backlog_commands));
        let shared = Arc::new(Shared {
            mailbox: mailbox.clone(),
            board: Mutex::new(Board {
                readiness: Readiness::Ready,
                decided: loaded.at,
                recorded: loaded.at.seq,
                live: 0,
            }),
            closing: AtomicBool::new(false),
            turned_away: TurnedAway::default(),
            pace_ns: AtomicU64::new(20_000),
            ended: watch::Sender::new(false),
        });
        let nudged = Arc::downgrade(&mailbox);
        parts.clock.on_change(Arc::new(move || {
            if let Some(mailbox) = nudged.upgrade() {
                mailbox.nudge();
            }
        }));
        let shard = parts.plan.shard;
        let record_desk = Arc::new(recorder::Desk::default());
        let look_desk = Arc::new(look_up::Desk::default());
        let decider = Decider::new(
            shared.clone(),
            parts.clone(),
            loaded,
            record_desk.clone(),
            look_desk.clone(),
        )?;

        let threads = Threads {
            recorder: record_desk,
            look_up: look_desk,
        };
        let started = threads.start(&shared, decider, &parts.ledger, shard);
        drop(parts);
        let (deciding, threads) = started.inspect_err(|_| threads.stop())?;
        Ok(Self {
            shard,
            shared,
            threads,
            decider: Mutex::new(Some(deciding)),
        })
    }

    fn overloaded(&self, (waiting, limit): (usize, usize)) -> Error {
        Error::Overloaded {
            waiting,
            limit,
            retry_after_ms: self.shared.retry_after_ms(waiting),
        }
    }

    fn put(&self, work: Submission, commands: usize) {
        if let Err((work, why)) = self.shared.mailbox.submit(work) {
            self.shared.mailbox.answered(commands);
            refuse(work, &mut Tally::new(), || why.clone());
        }
    }
}

impl HotTier for MemoryTier {
    fn shard(&self) -> u32 {
        self.shard
    }

    fn submit(&self, work: Submission) {
        match work {
            Submission::One {
                command,
                durability,
                answer,
            } => {
                let kind = Kind::of(&command.action);
                match self.shared.mailbox.admit(kind.is_growing()) {
                    Ok(()) => {
                        let work = Submission::One {
                            command,
                            durability,
                            answer,
                        };
                        self.put(work, 1);
                    }
                    Err(numbers) => {
                        self.shared.turned_away.add(kind);
                        drop(answer.send(Err(self.overloaded(numbers))));
                    }
                }
            }
            Submission::Many(mut batch) => {
                for (command, decided) in batch.commands.iter().zip(&mut batch.decided) {
                    let kind = Kind::of(&command.action);
                    match self.shared.mailbox.admit(kind.is_growing()) {
                        Ok(()) => batch.admitted += 1,
                        Err(numbers) => {
                            *decided = Some(Decided {
                                answer: Err(self.overloaded(numbers)),
                                needs: 0,
                            });
                        }
                    }
                }
                let admitted = batch.admitted;
                self.put(Submission::Many(batch), admitted);
            }
        }
    }

    fn health(&self) -> Health {
        let board = self.shared.board.lock();
        Health {
            readiness: board.readiness.clone(),
            decided: board.decided,
            recorded: board.recorded,
            waiting: self.shared.mailbox.waiting(),
            live: board.live,
        }
    }

    fn freeze(&self, frozen: oneshot::Sender<Frozen>) {
        self.shared.mailbox.post(Message::Freeze(frozen));
        // After the end nobody takes messages any more, and the sender must not lie there.
        if *self.shared.ended.borrow() {
            drop(self.shared.mailbox.take_messages());
        }
    }

    fn close(&self) {
        self.shared.set_readiness(Readiness::Closing);
        self.shared.closing.store(true, Ordering::Release);
        let why = "the store is being closed; nothing was changed".into();
        self.shared.mailbox.shut(Error::Unavailable { why }, false);
    }

    fn ended(&self) -> watch::Receiver<bool> {
        self.shared.ended.subscribe()
    }

    fn join(&self) {
        // Waking a caller can drop the last handle on the deciding thread itself, which must not wait for itself.
        if self.threads.contains(&std::thread::current().id()) {
            return;
        }
        if let Some(decider) = self.decider.lock().take() {
            // A panic of it was caught and told.
            let _ = decider.join();
        }
    }
}

/// The desks of the helping threads.
#[derive(Clone)]
struct Threads {
    recorder: Arc<recorder::Desk>,
    look_up: Arc<look_up::Desk>,
}

impl Threads {
    fn stop(&self) {
        self.recorder.stop();
        self.look_up.stop();
    }

    /// Starts all three; the deciding thread ends the others.
    fn start(
        &self,
        shared: &Arc<Shared>,
        decider: Decider,
        ledger: &Arc<dyn Ledger>,
        shard: u32,
    ) -> std::io::Result<(JoinHandle<()>, Vec<ThreadId>)> {
        let (desk, book, mailbox) = (self.recorder.clone(), ledger.clone(), shared.mailbox.clone());
        let recording = thread("stockade-record", move || recorder::run(&desk, &book, &mailbox))?;
        let (desk, book, mailbox) = (self.look_up.clone(), ledger.clone(), shared.mailbox.clone());
        let looking = thread("stockade-lookup", move || {
            look_up::run(&desk, shard, &book, &mailbox);
        })?;
        let mut ids = vec![recording.thread().id(), looking.thread().id()];
        let (desks, shared) = (self.clone(), shared.clone());
        let deciding = thread("stockade-decide", move || {
            // The decider is consumed: everybody it owed an answer to hears of its end.
            let deciding = std::panic::AssertUnwindSafe(move || decider.run());
            if std::panic::catch_unwind(deciding).is_err() {
                tracing::error!("the deciding thread panicked; the store is poisoned");
                shared.poison("deciding failed with a panic");
            }
            shared.mailbox.clear();
            desks.stop();
            // Panics in them were caught and told.
            let _ = recording.join();
            let _ = looking.join();
            shared.ended.send_replace(true);
            shared.mailbox.clear();
        })?;
        ids.push(deciding.thread().id());
        Ok((deciding, ids))
    }
}

/// Answers work of which nothing was begun with an error.
fn refuse(work: Submission, tally: &mut Tally, error: impl Fn() -> Error) {
    match work {
        Submission::One { command, answer, .. } => {
            let result = Err(error());
            tally.add(Kind::of(&command.action), &result);
            drop(answer.send(result));
        }
        Submission::Many(batch) => {
            let batch: Batch = *batch;
            for (command, decided) in batch.commands.iter().zip(&batch.decided) {
                let kind = Kind::of(&command.action);
                match decided {
                    Some(decided) => tally.add(kind, &decided.answer),
                    None => tally.add(kind, &Err(error())),
                }
            }
            batch.finish(error);
        }
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(body)
}

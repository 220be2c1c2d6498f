//! The tier on Redis: scripts decide there, the outbox is recorded from here.
//!
//! ```text
//! callers -> conductor -> queues -> calls in flight -> Redis (decides, adds to its outbox)
//!              ^  |  ^                                    |
//!              |  |  +-- reading thread <- ledger         | outbox
//!              |  +----> answers                          v
//!              +--------------------- keeper: records, builds epochs -> ledger
//! ```
//!
//! Three threads. The conductor owns everything about commands: what waits to be sent, what is in flight, who waits
//! for which entry. The keeper owns the epoch and the recording. The reading thread asks the ledger. Each tells the
//! others by messages, and none touches what another owns.

mod care;
mod conductor;
mod desk;
mod groups;
mod job;
mod keeper;
mod known;
mod loading;
mod numbers;
mod options;
mod queue;
mod rebuild;
mod recorder;
mod refusals;
mod shared;
mod snapshot;
mod standing;
mod survivors;
mod verdicts;
mod waiting;
mod writer;

use std::sync::Arc;
use std::thread::{JoinHandle, ThreadId};
use std::time::Instant;

use parking_lot::Mutex;
use stockade_core::LateConfirm;
use stockade_ledger::{LedgerError, ShardMode, ShardRow, SharedLedger};
use stockade_redis::{CallError, Finding, Hot, Severity};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot, watch};

use self::conductor::Conductor;
use self::keeper::Keeper;
use self::recorder::Lease;
use self::shared::{Sender, Shared, closed};
use crate::api::Health;
use crate::clock::Clock;
use crate::tags::Tags;
use crate::tally::{Kind, Tally};
use crate::tier::{Decided, Frozen, HotTier, Submission};

pub use self::options::RedisOptions;

/// What the conductor is told.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "work is the common case and needs no allocation of its own"
)]
enum Message {
    /// Work that was let in.
    Work(Submission),
    /// How things stand.
    News(Box<keeper::News>),
    /// The ledger was read.
    Read(Box<(desk::Questions, Result<desk::Answers, String>)>),
    /// An audit asks for the state.
    Freeze(oneshot::Sender<Frozen>),
    /// Look around: the tier is being closed, or the clock was set.
    Wake,
}

/// What the tier is made of.
#[derive(Clone)]
pub(crate) struct Parts {
    shard: u32,
    ledger: Arc<dyn SharedLedger>,
    clock: Arc<dyn Clock>,
    late_confirm: LateConfirm,
    keep_ended: usize,
    keep_ended_ms: i64,
    backlog_commands: usize,
    redis: RedisOptions,
}

impl Parts {
    pub(crate) fn new(
        options: &crate::api::Options,
        redis: RedisOptions,
        shard: u32,
        ledger: Arc<dyn SharedLedger>,
    ) -> Self {
        Self {
            shard,
            ledger,
            clock: options.clock.clone(),
            late_confirm: options.late_confirm,
            keep_ended: options.keep_ended,
            keep_ended_ms: options.keep_ended_ms,
            backlog_commands: options.backlog_commands,
            redis,
        }
    }

    fn hot(&self) -> stockade_redis::Options {
        stockade_redis::Options {
            url: self.redis.url.clone(),
            prefix: self.redis.prefix.clone(),
            shard: self.shard,
            connect_within: self.redis.connect_within,
            reply_within: self.redis.reply_within,
            connections: self.redis.connections,
        }
    }
}

/// Why the tier did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Redis(#[from] CallError),
    #[error("{0}")]
    Chain(String),
    #[error("a thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct RedisTier {
    shard: u32,
    shared: Arc<Shared>,
    threads: Vec<ThreadId>,
    conducting: Mutex<Option<JoinHandle<()>>>,
}

impl RedisTier {
    /// Connects, finds out how ledger and node stand to each other, builds an epoch where that is needed. Blocks.
    pub(crate) fn start(parts: Parts) -> Result<Self, StartError> {
        let (sender, inbox) = mpsc::unbounded_channel();
        let sender = Sender::new(sender);
        let shared = Arc::new(Shared::new(sender.clone(), parts.backlog_commands));
        let nudged = sender.clone();
        parts
            .clock
            .on_change(Arc::new(move || nudged.send(Message::Wake)));

        let reading_desk = Arc::new(desk::Desk::default());
        let keeping_desk = Arc::new(keeper::Desk::default());
        let shard = parts.shard;
        let (desk, ledger, told) = (reading_desk.clone(), parts.ledger.clone(), sender.clone());
        let reading = thread("stockade-read-hot", move || {
            desk::run(&desk, shard, &ledger, &told);
        })?;
        let stop = Stop {
            reading_desk: reading_desk.clone(),
            keeping_desk: keeping_desk.clone(),
        };

        let (opened, opening) = oneshot::channel();
        let (keeper_parts, desk) = (parts.clone(), keeping_desk.clone());
        let keeping = thread("stockade-keeper", move || {
            keep(keeper_parts, desk, sender, opened);
        })
        .inspect_err(|_| stop.all())?;
        let mut threads = vec![reading.thread().id(), keeping.thread().id()];
        let opened = opening
            .blocking_recv()
            .unwrap_or_else(|_| Err(StartError::Chain("opening failed with a panic".into())));
        if let Err(error) = opened {
            stop.all();
            // Panics in them were caught and told.
            let _ = (reading.join(), keeping.join());
            return Err(error);
        }

        let (connected, connecting) = oneshot::channel();
        let conductor = (shared.clone(), parts);
        let conducting = thread("stockade-conduct", move || {
            let (shared, parts) = conductor;
            let desks = (reading_desk, keeping_desk);
            let conducting = std::panic::AssertUnwindSafe(|| {
                conduct(&shared, parts, desks, inbox, connected);
            });
            if std::panic::catch_unwind(conducting).is_err() {
                tracing::error!("the conducting thread panicked; the store is poisoned");
                shared.set_readiness(crate::api::Readiness::Poisoned {
                    why: "conducting failed with a panic".into(),
                });
            }
            stop.all();
            let _ = (reading.join(), keeping.join());
            shared.ended.send_replace(true);
        })?;
        threads.push(conducting.thread().id());
        let tier = Self {
            shard,
            shared,
            threads,
            conducting: Mutex::new(Some(conducting)),
        };
        match connecting.blocking_recv() {
            Ok(Ok(())) => Ok(tier),
            Ok(Err(error)) => {
                tier.join();
                Err(error)
            }
            Err(_) => Err(StartError::Chain("opening failed with a panic".into())),
        }
    }
}

/// Ends the helping threads.
struct Stop {
    reading_desk: Arc<desk::Desk>,
    keeping_desk: Arc<keeper::Desk>,
}

impl Stop {
    fn all(&self) {
        self.keeping_desk.stop();
        self.reading_desk.stop();
    }
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Connects, and looks whether the server is fit: with one that may evict keys, say, nothing is begun.
async fn fit(parts: &Parts) -> Result<Hot, StartError> {
    let hot = Hot::connect(parts.hot()).await?;
    let mut errors = Vec::new();
    for finding in hot.check().await {
        let Finding {
            id, found, remedy, ..
        } = &finding;
        match finding.severity {
            Severity::Ok => {}
            Severity::Warning => tracing::warn!(%id, %found, %remedy, "this Redis has a risk"),
            Severity::Error => errors.push(format!("{id}: {found}. {remedy}")),
        }
    }
    if errors.is_empty() {
        return Ok(hot);
    }
    Err(StartError::Chain(format!(
        "this Redis is not fit: {}",
        errors.join("; ")
    )))
}

/// The keeper's thread.
fn keep(parts: Parts, desk: Arc<keeper::Desk>, out: Sender, opened: oneshot::Sender<Result<(), StartError>>) {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return drop(opened.send(Err(error.into()))),
    };
    let writer = match writer::Writer::start(parts.ledger.clone()) {
        Ok(writer) => writer,
        Err(error) => return drop(opened.send(Err(error.into()))),
    };
    let told = out.clone();
    let keeping = std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async {
            let hot = match fit(&parts).await {
                Ok(hot) => hot,
                Err(error) => return drop(opened.send(Err(error))),
            };
            let mut tags = Tags::new();
            let keeper = Keeper {
                hot,
                ledger: parts.ledger,
                writer,
                shard: parts.shard,
                owner: format!("process {} run {:016x}", std::process::id(), tags.next()),
                late_confirm: parts.late_confirm,
                clock: parts.redis.own_clock.then_some(parts.clock),
                keep_ended: parts.keep_ended,
                keep_ended_ms: parts.keep_ended_ms,
                desk,
                out,
                tags,
                row: ShardRow {
                    shard: parts.shard,
                    epoch: 0,
                    mode: ShardMode::Rebuild,
                    cursor: 0,
                    tag: 0,
                    at: 0,
                    owner: String::new(),
                },
                lease: Lease::new(),
                ledger_down: false,
                watched: None,
                cared: Instant::now(),
            };
            keeper.run(opened).await;
        });
    });
    if std::panic::catch_unwind(keeping).is_err() {
        tracing::error!("the keeping thread panicked; the store is poisoned");
        told.send(Message::News(Box::new(keeper::News::Broken(
            "keeping failed with a panic".into(),
        ))));
    }
}

/// The conductor's thread.
fn conduct(
    shared: &Arc<Shared>,
    parts: Parts,
    desks: (Arc<desk::Desk>, Arc<keeper::Desk>),
    inbox: mpsc::UnboundedReceiver<Message>,
    connected: oneshot::Sender<Result<(), StartError>>,
) {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return drop(connected.send(Err(error.into()))),
    };
    runtime.block_on(async {
        match Hot::connect(parts.hot()).await {
            Ok(hot) => {
                let conductor = Conductor::new(shared.clone(), hot, parts, desks, connected);
                conductor.run(inbox).await;
            }
            Err(error) => drop(connected.send(Err(error.into()))),
        }
    });
}

impl HotTier for RedisTier {
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
                match self.shared.admit(kind) {
                    Ok(()) => self.shared.sender.send(Message::Work(Submission::One {
                        command,
                        durability,
                        answer,
                    })),
                    Err(error) => {
                        self.shared.turned_away.add(kind);
                        drop(answer.send(Err(error)));
                    }
                }
            }
            Submission::Many(mut batch) => {
                for (command, decided) in batch.commands.iter().zip(&mut batch.decided) {
                    let kind = Kind::of(&command.action);
                    match self.shared.admit(kind) {
                        Ok(()) => batch.admitted += 1,
                        Err(error) => {
                            self.shared.turned_away.add(kind);
                            *decided = Some(Decided {
                                answer: Err(error),
                                needs: 0,
                            });
                        }
                    }
                }
                self.shared.sender.send(Message::Work(Submission::Many(batch)));
            }
        }
    }

    fn health(&self) -> Health {
        self.shared.health()
    }

    fn freeze(&self, frozen: oneshot::Sender<Frozen>) {
        self.shared.sender.send(Message::Freeze(frozen));
    }

    fn close(&self) {
        self.shared.close();
    }

    fn ended(&self) -> watch::Receiver<bool> {
        self.shared.ended.subscribe()
    }

    fn join(&self) {
        // Waking a caller can drop the last handle on a thread of the tier, which must not wait for itself.
        if self.threads.contains(&std::thread::current().id()) {
            return;
        }
        if let Some(conducting) = self.conducting.lock().take() {
            // A panic of it was caught and told.
            let _ = conducting.join();
        }
    }
}

/// Answers work that nobody takes any more.
fn turn_away(work: Submission, tally: &mut Tally) {
    match work {
        Submission::One { command, answer, .. } => {
            let result = Err(closed());
            tally.add(Kind::of(&command.action), &result);
            drop(answer.send(result));
        }
        Submission::Many(batch) => batch.finish(closed),
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(body)
}

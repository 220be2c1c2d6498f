//! The public door.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use stockade_core::{
    Command, Done, Id, LateConfirm, Position, Record, Reservation, SkuRecord, Space, StockRecord,
};
use stockade_ledger::{
    Finding, Ledger, LedgerCare, LedgerError, Movement, MovementPage, MovementQuery, MovementsKept,
    ReservationQuery, Sqlite, View,
};
use tokio::sync::oneshot;

use crate::audit;
use crate::care::Retention;
use crate::clock::{Clock, SystemClock};
use crate::error::{Error, OpenError};
use crate::folder::FolderLock;
use crate::memory::{MemoryTier, Parts, StartError};
use crate::readers::Readers;
use crate::redis::{self, RedisOptions, RedisTier};
use crate::tier::{Answered, Batch, Durability, Frozen, HotTier, Submission};

/// The only shard there is on one machine.
const SHARD: u32 = 0;

/// How often a state that moves is read before what still differs is a finding.
const AUDIT_ROUNDS: u32 = 3;

/// How to open a store. Make it with [`Options::new`] and change what should differ.
#[derive(Clone)]
pub struct Options {
    /// The data folder; created when missing.
    pub data: PathBuf,
    /// What a confirm after the end does.
    pub late_confirm: LateConfirm,
    /// The most commands that may wait for a decision or for the disk; further ones are refused as overloaded. At
    /// 80 % of it only new reservations are refused, so that the rest stays for confirms and cancels. At least 1;
    /// default 65,536.
    pub backlog_commands: usize,
    /// Ended ids kept in memory for replays: at most so many (default 1,000,000; less than 4,096 counts as 4,096)...
    pub keep_ended: usize,
    /// ...and at most so long, in milliseconds (default 24 hours; less than 10 seconds counts as 10 seconds). Older
    /// ones are looked up in the ledger, which forgets nothing unless `retain_ended_ms` says so.
    pub keep_ended_ms: i64,
    /// How long the ledger keeps reservations that ended, in milliseconds; `None`, the default: for ever. Less than
    /// `keep_ended_ms` and an hour counts as that. Older ones are removed in the background, with their movements and
    /// returns; their ids are then forgotten, so that one which is sent again is a new one.
    pub retain_ended_ms: Option<i64>,
    /// Tests do not wait until the hot tier has certainly forgotten what ended while no store was open.
    #[doc(hidden)]
    pub retain_at_once: bool,
    /// Tests keep fewer ended ids than the least.
    #[doc(hidden)]
    pub keep_below_least: bool,
    /// The hot tier on Redis instead of in memory; see [`Options::redis`].
    pub redis: Option<RedisOptions>,
    /// When reserves and extends are answered whose call does not say: default [`Durability::Hot`], which makes a
    /// difference only where a tier can decide earlier than the ledger records.
    pub durability: Durability,
    /// Where the time comes from; default [`SystemClock`].
    pub clock: Arc<dyn Clock>,
    /// Tests put something between the store and its ledger that fails on demand.
    #[doc(hidden)]
    pub wrap_ledger: Option<WrapLedger>,
}

/// See [`Options`].
#[doc(hidden)]
pub type WrapLedger = Arc<dyn Fn(Arc<dyn Ledger>) -> Arc<dyn Ledger> + Send + Sync>;

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("data", &self.data)
            .field("late_confirm", &self.late_confirm)
            .field("backlog_commands", &self.backlog_commands)
            .field("keep_ended", &self.keep_ended)
            .field("keep_ended_ms", &self.keep_ended_ms)
            .field("retain_ended_ms", &self.retain_ended_ms)
            .field("durability", &self.durability)
            .field("redis", &self.redis.is_some())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// The defaults, on a data folder.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            late_confirm: LateConfirm::default(),
            backlog_commands: 65_536,
            keep_ended: 1_000_000,
            keep_ended_ms: 24 * 3_600_000,
            retain_ended_ms: None,
            retain_at_once: false,
            keep_below_least: false,
            redis: None,
            durability: Durability::default(),
            clock: Arc::new(SystemClock::new()),
            wrap_ledger: None,
        }
    }

    /// Lets a Redis or Valkey server decide, with the defaults of [`RedisOptions`]; the folder holds the ledger. Several
    /// processes on one host may open the same folder with the same Redis; a process that keeps its hot tier in memory
    /// needs the folder for itself. Either may open what the other has left.
    ///
    /// `backlog_commands` then also bounds the orders that Redis has answered and the ledger has not recorded.
    #[must_use]
    pub fn redis(mut self, url: impl Into<String>) -> Self {
        self.redis = Some(RedisOptions::new(url));
        self
    }

    /// Opens the store: locks the folder, opens the ledger, starts a new epoch, loads what is live.
    ///
    /// Takes a few microseconds for each live reservation. The ids of ended reservations are read afterwards in the
    /// background; until that is done a command on an unknown id asks the ledger first.
    pub async fn open(self) -> Result<Stockade, OpenError> {
        let path = self.data.clone();
        let (opened, opening) = oneshot::channel();
        std::thread::Builder::new()
            .name("stockade-open".into())
            .spawn(move || drop(opened.send(self.open_blocking())))
            .map_err(|error| no_thread(&path, &error))?;
        opening.await.unwrap_or_else(|_| {
            Err(OpenError::Folder {
                path,
                message: "opening failed with a panic; please report it with the log".into(),
            })
        })
    }

    fn open_blocking(self) -> Result<Stockade, OpenError> {
        if let Some(redis) = self.redis.clone() {
            return self.open_redis(redis);
        }
        let lock = FolderLock::take(&self.data)?;
        let care = Arc::new(Sqlite::open(&self.data)?);
        let mut ledger: Arc<dyn Ledger> = care.clone();
        if let Some(wrap) = &self.wrap_ledger {
            ledger = wrap(ledger);
        }
        // The tier comes last: what follows it must not fail, since nobody would end its threads.
        let readers = Readers::start().map_err(|error| no_thread(&self.data, &error))?;
        let tier =
            MemoryTier::start(Parts::new(&self, SHARD, ledger.clone())).map_err(|error| match error {
                StartError::Ledger(error) => OpenError::Ledger(error),
                StartError::Thread(error) => no_thread(&self.data, &error),
            })?;
        Ok(self.opened(readers, Arc::new(tier), ledger, care, lock))
    }
}

impl Options {
    fn open_redis(self, redis: RedisOptions) -> Result<Stockade, OpenError> {
        let lock = FolderLock::share(&self.data)?;
        let ledger = Arc::new(Sqlite::open(&self.data)?);
        let readers = Readers::start().map_err(|error| no_thread(&self.data, &error))?;
        let parts = redis::Parts::new(&self, redis, SHARD, ledger.clone());
        let tier = RedisTier::start(parts).map_err(|error| match error {
            redis::StartError::Ledger(error) => OpenError::Ledger(error),
            redis::StartError::Thread(error) => no_thread(&self.data, &error),
            redis::StartError::Redis(error) => OpenError::Redis {
                message: error.to_string(),
            },
            redis::StartError::Chain(message) => OpenError::Redis { message },
        })?;
        Ok(self.opened(readers, Arc::new(tier), ledger.clone(), ledger, lock))
    }

    fn opened(
        self,
        readers: Readers,
        tier: Arc<dyn HotTier>,
        ledger: Arc<dyn Ledger>,
        care: Arc<dyn LedgerCare>,
        lock: FolderLock,
    ) -> Stockade {
        let retention = Retention::start(&self, care.clone(), tier.clone());
        Stockade {
            inner: Arc::new(Inner {
                readers,
                retention,
                tier,
                data: self.data,
                clock: self.clock,
                durability: self.durability,
                held: Mutex::new(Some(Held {
                    ledger,
                    care,
                    _lock: lock,
                })),
            }),
        }
    }
}

fn no_thread(path: &Path, error: &std::io::Error) -> OpenError {
    OpenError::Folder {
        path: path.into(),
        message: format!("a thread could not be started: {error}; raise the limit on threads of this user"),
    }
}

/// Whether the store takes commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    Ready,
    /// The ledger took no more (the disk is full, say) or did not agree; the memory is being loaded from it again.
    /// Commands are refused as unavailable until that is done; it is tried again and again.
    Recovering {
        /// What failed.
        why: String,
    },
    /// It is being closed, or is closed.
    Closing,
    /// A write to disk failed in a way after which nothing can be trusted: the process must be restarted.
    Poisoned {
        /// What failed.
        why: String,
    },
}

/// How the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether it takes commands.
    pub readiness: Readiness,
    /// The last sealed entry.
    pub decided: Position,
    /// The sequence number of the last recorded entry.
    pub recorded: u64,
    /// Commands that wait for a decision or for the disk.
    pub waiting: usize,
    /// Live reservations.
    pub live: usize,
}

/// What an audit found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// The differences; empty when all is well. Of a difference between memory and ledger, `expected` is the
    /// ledger's side.
    pub findings: Vec<Finding>,
    /// Whether there were more findings than were asked for.
    pub truncated: bool,
    /// SKUs compared.
    pub skus: u64,
    /// Live reservations compared.
    pub live: u64,
    /// The entry at which both sides were compared.
    pub at: Position,
}

impl AuditReport {
    /// Whether nothing differs.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// An open store. Clones share it.
///
/// Every method may be called from any task of any async runtime. When the last clone is dropped, the commands that
/// were taken are finished and the folder is let go, which takes as long as the commit under way; [`Stockade::close`]
/// does the same without blocking.
#[derive(Clone, Debug)]
pub struct Stockade {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    // Dropped in this order: whoever reads the ledger first, the folder's lock last.
    readers: Readers,
    retention: Retention,
    tier: Arc<dyn HotTier>,
    data: PathBuf,
    clock: Arc<dyn Clock>,
    durability: Durability,
    held: Mutex<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    ledger: Arc<dyn Ledger>,
    care: Arc<dyn LedgerCare>,
    _lock: FolderLock,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.retention.stop();
        self.retention.join();
        self.tier.close();
        self.tier.join();
    }
}

impl Stockade {
    /// Opens a store with the defaults. Must be awaited.
    pub async fn open(data: impl Into<PathBuf>) -> Result<Self, OpenError> {
        Options::new(data).open().await
    }

    /// Does one command; answers when what the answer shows is on disk.
    ///
    /// Dropping the future does not split the command: it is done whole or never starts, and asking about its id says
    /// which.
    pub async fn submit(&self, command: Command) -> Result<Done, Error> {
        let answered = self.submit_with(command, self.inner.durability).await;
        answered.map(|answered| answered.done)
    }

    /// Does one command, and says whether the answer is recorded yet: a reserve or an extend with [`Durability::Hot`]
    /// may be answered before.
    pub async fn submit_with(&self, command: Command, durability: Durability) -> Result<Answered, Error> {
        let (answer, answered) = oneshot::channel();
        self.inner.tier.submit(Submission::One {
            command,
            durability,
            answer,
        });
        answered.await.unwrap_or_else(|_| Err(self.broken()))
    }

    /// Does many commands, in order, independent of each other: one that is refused does not stop the next. Answers
    /// when all of them are on disk; the answers stand in the order of the commands.
    pub async fn submit_many(&self, commands: Vec<Command>) -> Vec<Result<Done, Error>> {
        let answers = self.submit_many_with(commands, self.inner.durability).await;
        answers
            .into_iter()
            .map(|answer| answer.map(|answered| answered.done))
            .collect()
    }

    /// Does many commands, and says of each answer whether it is recorded yet.
    pub async fn submit_many_with(
        &self,
        commands: Vec<Command>,
        durability: Durability,
    ) -> Vec<Result<Answered, Error>> {
        let count = commands.len();
        if count == 0 {
            return Vec::new();
        }
        let (answer, answered) = oneshot::channel();
        let batch = Box::new(Batch::new(commands, durability, answer));
        self.inner.tier.submit(Submission::Many(batch));
        answered
            .await
            .unwrap_or_else(|_| (0..count).map(|_| Err(self.broken())).collect())
    }

    /// SKUs of a tenant in the order of their bytes, after `after`, at most `limit`, as recorded.
    pub async fn stock_page(
        &self,
        tenant: &Id,
        after: Option<&Id>,
        limit: usize,
    ) -> Result<Vec<SkuRecord>, Error> {
        let (tenant, after) = (tenant.clone(), after.cloned());
        self.read(move |view| view.sku_page(&tenant, after.as_ref(), limit))
            .await
    }

    /// What is recorded about stock commands, in the order of their ids.
    pub async fn stock_commands(&self, tenant: &Id, ids: Vec<Id>) -> Result<Vec<Option<StockRecord>>, Error> {
        let (tenant, shard) = (tenant.clone(), self.inner.tier.shard());
        self.read(move |view| {
            let find = |id: &Id| match view.find(shard, &tenant, Space::Stock, id)?.record {
                Some(Record::Stock(record)) => Ok(Some(record)),
                Some(Record::Reservation(_) | Record::Return(_)) | None => Ok(None),
            };
            ids.iter().map(find).collect()
        })
        .await
    }

    /// Recorded movements of every tenant after a number, oldest first, each with its tenant: for whoever follows what
    /// happens. None ever comes in below one that was read.
    pub async fn movements_after(&self, after: i64, limit: usize) -> Result<Vec<(Id, Movement)>, Error> {
        self.read(move |view| view.movements_after(after, limit)).await
    }

    /// Which movements are kept.
    pub async fn movements_kept(&self) -> Result<MovementsKept, Error> {
        self.read(|view| view.movements_kept()).await
    }

    /// Recorded movements, newest first.
    pub async fn movements(&self, query: MovementQuery) -> Result<MovementPage, Error> {
        self.read(move |view| view.movements(&query)).await
    }

    /// Recorded reservations, newest first. One that is past its end and not swept yet is shown as it is recorded.
    pub async fn reservations(&self, query: ReservationQuery) -> Result<Vec<Reservation>, Error> {
        self.read(move |view| view.reservations(&query)).await
    }

    /// Compares hot tier, ledger and movements; at most `limit` findings.
    ///
    /// In memory that is done at one moment. On Redis the state is read while commands go on, several times if it
    /// differs from the ledger, and what differs in the same way each time is a finding; a difference in a counter that
    /// changes all the while is only found when it rests.
    ///
    /// In memory commands wait only while the state is copied: well under a microsecond for each SKU, live reservation and
    /// owner usage (a million live reservations: about half a second, and some 500 MB until the audit is done). The
    /// comparison reads the whole ledger on a thread of its own, which takes seconds for each million movements and
    /// keeps the ledger from tidying up its log meanwhile.
    pub async fn audit(&self, limit: usize) -> Result<AuditReport, Error> {
        let shard = self.inner.tier.shard();
        let mut frozen = self.freeze().await?;
        if frozen.moving.is_none() {
            return self
                .audit_apart(move || audit::compare(shard, frozen, limit))
                .await;
        }
        let mut rounds = audit::Rounds::default();
        let mut round = 1;
        loop {
            let added;
            (added, rounds) = self
                .audit_apart(move || Ok((rounds.add(shard, frozen)?, rounds)))
                .await?;
            if added.is_clean() || round == AUDIT_ROUNDS {
                let ledger = self.ledger()?;
                return self
                    .audit_apart(move || audit::add_ledger(shard, &*ledger.view()?, added, limit))
                    .await;
            }
            round += 1;
            frozen = self.freeze().await?;
        }
    }

    async fn freeze(&self) -> Result<Frozen, Error> {
        let (frozen, freezing) = oneshot::channel();
        self.inner.tier.freeze(frozen);
        freezing.await.map_err(|_| Error::Unavailable {
            why: match self.health().readiness {
                Readiness::Ready => "the state could not be read; see the log".into(),
                Readiness::Closing => "the store is closed".into(),
                Readiness::Recovering { why } | Readiness::Poisoned { why } => why,
            },
        })
    }

    /// Whoever looks after the ledger, while the store is open.
    pub(crate) fn care(&self) -> Result<Arc<dyn LedgerCare>, Error> {
        let held = self.inner.held.lock();
        held.as_ref()
            .map(|held| held.care.clone())
            .ok_or_else(|| Error::Unavailable {
                why: "the store is closed".into(),
            })
    }

    /// The data folder.
    pub(crate) fn data(&self) -> &Path {
        &self.inner.data
    }

    /// A part of an audit, on a thread of its own.
    async fn audit_apart<T: Send + 'static>(
        &self,
        part: impl FnOnce() -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, Error> {
        let (report, reported) = oneshot::channel();
        std::thread::Builder::new()
            .name("stockade-audit".into())
            .spawn(move || drop(report.send(part())))
            .map_err(|error| Error::Unavailable {
                why: format!("a thread could not be started: {error}"),
            })?;
        match reported.await {
            Ok(report) => report.map_err(|error| unreadable(&error)),
            Err(_) => Err(Error::Unavailable {
                why: "the audit failed with a panic; see the log".into(),
            }),
        }
    }

    fn ledger(&self) -> Result<Arc<dyn Ledger>, Error> {
        let held = self.inner.held.lock();
        held.as_ref()
            .map(|held| held.ledger.clone())
            .ok_or_else(|| Error::Unavailable {
                why: "the store is closed".into(),
            })
    }

    /// How the store is. Never waits.
    pub fn health(&self) -> Health {
        self.inner.tier.health()
    }

    /// When reserves and extends are answered whose call does not say.
    pub fn durability(&self) -> Durability {
        self.inner.durability
    }

    /// The store's time now, in milliseconds since the Unix epoch: what ends of reservations are compared with.
    pub fn now(&self) -> stockade_core::Millis {
        self.inner.clock.now()
    }

    /// Takes no more commands, answers those taken, and lets go of the folder. Calling it again does nothing. An
    /// error says that the store had broken before.
    pub async fn close(&self) -> Result<(), Error> {
        self.inner.retention.stop();
        self.inner.tier.close();
        let mut ended = self.inner.tier.ended();
        // The sender lives as long as the tier, and so does `self`.
        let _ = ended.wait_for(|ended| *ended).await;
        self.inner.retention.ended().await;
        self.inner.readers.stop();
        drop(self.inner.held.lock().take());
        match self.health().readiness {
            Readiness::Poisoned { why } => Err(Error::Unavailable { why }),
            Readiness::Ready | Readiness::Recovering { .. } | Readiness::Closing => Ok(()),
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn View) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, Error> {
        let ledger = self.ledger()?;
        self.inner
            .readers
            .run(move || read(&*ledger.view()?))
            .await?
            .map_err(|error| unreadable(&error))
    }

    /// The answer of a command whose thread ended without one.
    fn broken(&self) -> Error {
        let why = match self.health().readiness {
            Readiness::Poisoned { why } => why,
            Readiness::Ready | Readiness::Recovering { .. } | Readiness::Closing => {
                "the store ended before it answered".into()
            }
        };
        Error::OutcomeUnknown { why }
    }
}

fn unreadable(error: &LedgerError) -> Error {
    Error::Unavailable {
        why: format!("the ledger could not be read: {error}"),
    }
}

//! The keeper: a thread that owns the shard's epoch and its recording.
//!
//! It finds out whether ledger and node belong together, builds a new epoch when they do not, and otherwise moves the
//! outbox into the ledger as long as this process has the lease. Everything else in the tier only hears from it how
//! things stand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stockade_core::Position;
use stockade_ledger::{LedgerError, ShardMode, ShardRow, SharedLedger};
use stockade_redis::{CallError, Decided, Hot, MetaState, Sent};
use tokio::sync::{Notify, oneshot};

use super::recorder::Lease;
use super::shared::Sender;
use super::{Message, StartError};
use crate::tags::Tags;

/// A rebuild of another process that does not move for so long is abandoned.
const ABANDONED: Duration = Duration::from_secs(3);
/// How long opening waits for another process's rebuild, or tries its own.
const OPEN_WITHIN: Duration = Duration::from_secs(30);
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What the conductor is told.
#[derive(Debug)]
pub(super) enum News {
    /// Ledger and node belong together: commands may be sent under this epoch.
    Standing {
        row: ShardRow,
        /// Whether the epoch was built here just now.
        rebuilt: bool,
    },
    /// Commands must wait.
    Down(String),
    /// These entries are recorded.
    Recorded {
        entries: Vec<Position>,
        orders: usize,
        took: Duration,
    },
    /// Whether this process records.
    Holder(bool),
    /// The ledger takes nothing for the moment; `None`: it does again.
    LedgerDown(Option<String>),
    /// What the outbox holds.
    Backlog { entries: u64, bytes: u64 },
    /// Reservations that a rebuild could not keep.
    Lost(Vec<stockade_core::Reservation>),
    /// The ledger takes no more from this process.
    Broken(String),
}

/// Where the conductor leaves word for the keeper.
#[derive(Debug, Default)]
pub(super) struct Desk {
    stop: AtomicBool,
    /// There are new entries.
    wrote: AtomicBool,
    suspect: Mutex<Option<Suspicion>>,
    notify: Notify,
}

/// Something is not as it should be.
#[derive(Clone, Debug)]
pub(super) struct Suspicion {
    pub(super) why: String,
    /// Whether the epoch must be built anew even if ledger and node seem to belong together.
    pub(super) rebuild: bool,
}

impl Desk {
    /// There are new entries in the outbox.
    pub(super) fn wrote(&self) {
        self.wrote.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Asks for a close look at ledger and node.
    pub(super) fn suspect(&self, why: impl Into<String>, rebuild: bool) {
        let mut suspect = self.suspect.lock();
        let rebuild = rebuild || suspect.as_ref().is_some_and(|earlier| earlier.rebuild);
        *suspect = Some(Suspicion {
            why: why.into(),
            rebuild,
        });
        drop(suspect);
        self.notify.notify_one();
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(super) fn take_wrote(&self) -> bool {
        self.wrote.swap(false, Ordering::AcqRel)
    }

    pub(super) fn take_suspicion(&self) -> Option<Suspicion> {
        self.suspect.lock().take()
    }

    pub(super) async fn wait(&self, at_most: Duration) {
        // A permit stays when nobody waits, so that no word is lost.
        let _ = tokio::time::timeout(at_most, self.notify.notified()).await;
    }
}

/// What came between.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Redis.
    Redis(CallError),
    /// The ledger could not be asked, or did not record; nothing is wrong with the chain.
    Ledger(LedgerError),
    /// Ledger and node do not belong together, or this process is behind: look again.
    Look(String),
    /// The epoch must be built anew.
    Rebuild(String),
    /// Redis knows of recorded entries that the ledger does not have: nothing may be done until somebody has looked.
    Restored(String),
    /// The ledger takes no more from this process.
    Broken(String),
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        Self::Redis(error)
    }
}

impl From<LedgerError> for Trouble {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Broken { .. } => Self::Broken(error.to_string()),
            LedgerError::Storage { .. }
            | LedgerError::Busy { .. }
            | LedgerError::Leased { .. }
            | LedgerError::Foreign { .. }
            | LedgerError::TooNew { .. }
            | LedgerError::Corrupt { .. }
            | LedgerError::Database(_) => Self::Ledger(error),
        }
    }
}

impl Trouble {
    /// Whether trying again cannot help while a store is opened: somebody must change something.
    fn is_final(&self) -> bool {
        match self {
            Self::Redis(_) | Self::Broken(_) | Self::Restored(_) => true,
            Self::Ledger(error) => !error.is_transient(),
            Self::Look(_) | Self::Rebuild(_) => false,
        }
    }
}

impl From<Trouble> for StartError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Redis(error) => Self::Redis(error),
            Trouble::Ledger(error) => Self::Ledger(error),
            Trouble::Look(why) | Trouble::Rebuild(why) | Trouble::Restored(why) | Trouble::Broken(why) => {
                Self::Chain(why)
            }
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Redis(error) => error.fmt(f),
            Self::Ledger(error) => error.fmt(f),
            Self::Look(why) | Self::Rebuild(why) | Self::Restored(why) | Self::Broken(why) => why.fmt(f),
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) hot: Hot,
    pub(super) ledger: Arc<dyn SharedLedger>,
    pub(super) writer: super::writer::Writer,
    pub(super) shard: u32,
    /// Names this run of this process.
    pub(super) owner: String,
    pub(super) late_confirm: stockade_core::LateConfirm,
    /// Whose time counts instead of Redis's: in tests.
    pub(super) clock: Option<Arc<dyn crate::clock::Clock>>,
    pub(super) keep_ended: usize,
    pub(super) keep_ended_ms: i64,
    pub(super) desk: Arc<Desk>,
    pub(super) out: Sender,
    pub(super) tags: Tags,
    /// The shard's row as it was read last.
    pub(super) row: ShardRow,
    pub(super) lease: Lease,
    /// Whether the last group was not recorded.
    pub(super) ledger_down: bool,
    /// When another process's rebuild was last seen to move, and how it stood then.
    pub(super) watched: Option<(Instant, ShardRow, Option<MetaState>)>,
    /// When what need not be done often was done last.
    pub(super) cared: Instant,
}

impl Keeper {
    /// The thread's body: returns when it is told to stop, or can do no more.
    pub(super) async fn run(mut self, opened: oneshot::Sender<Result<(), StartError>>) {
        let mut opened = Some(opened);
        let began = Instant::now();
        let mut failures = 0_u32;
        let mut reason = None;
        while !self.desk.is_stopped() {
            let trouble = match self.stand(reason.take()).await {
                Ok(rebuilt) => {
                    if let Some(opened) = opened.take() {
                        // Whoever opened may have given up; then the tier is closed at once.
                        let _ = opened.send(Ok(()));
                    }
                    let row = self.row.clone();
                    self.tell(News::Standing { row, rebuilt });
                    let standing = Instant::now();
                    let trouble = self.record_until_trouble().await;
                    if standing.elapsed() > PAUSE_MAX {
                        failures = 0;
                    }
                    trouble
                }
                Err(trouble) => Some(trouble),
            };
            let Some(trouble) = trouble else { break };
            if let Some(waiting) = opened.take() {
                if trouble.is_final() || began.elapsed() > OPEN_WITHIN {
                    let _ = waiting.send(Err(trouble.into()));
                    return;
                }
                opened = Some(waiting);
            }
            match &trouble {
                Trouble::Broken(why) => {
                    self.tell(News::Broken(why.clone()));
                    return;
                }
                Trouble::Look(why) => tracing::info!(%why, "looking at the ledger and at Redis again"),
                Trouble::Rebuild(why) => {
                    tracing::error!(%why, "the state in Redis must be built anew from the ledger");
                    reason = Some(why.clone());
                }
                Trouble::Restored(why) => {
                    tracing::error!(%why, "Redis is ahead of the ledger; nothing is taken");
                }
                Trouble::Redis(error) => tracing::warn!(%error, "no word from Redis; trying again"),
                Trouble::Ledger(error) => tracing::warn!(%error, "no word from the ledger; trying again"),
            }
            self.tell(News::Down(trouble.to_string()));
            self.pause(failures).await;
            failures = failures.saturating_add(1);
        }
        if self.lease.mine
            && let Err(error) = self.ledger.release_lease(self.shard, &self.owner)
        {
            tracing::warn!(%error, "the recorder's lease could not be given back; it runs out by itself");
        }
    }

    pub(super) fn tell(&self, news: News) {
        self.out.send(Message::News(Box::new(news)));
    }

    /// None after the first failure, then 50 ms, doubling, each a little longer or shorter than another process's.
    async fn pause(&mut self, failures: u32) {
        if failures == 0 {
            return;
        }
        let pause = Duration::from_millis(25_u64 << failures.min(10)).min(PAUSE_MAX);
        let jitter = self.tags.next() % 1_000;
        let pause = pause / 2 + pause * u32::try_from(jitter).unwrap_or(0) / 1_000;
        let until = Instant::now() + pause;
        while !self.desk.is_stopped() && Instant::now() < until {
            self.desk
                .wait(until.saturating_duration_since(Instant::now()))
                .await;
        }
    }

    /// Finds out how ledger and node stand to each other, and builds a new epoch where that is needed. Returns when
    /// commands may be sent; whether an epoch was built.
    async fn stand(&mut self, reason: Option<String>) -> Result<bool, Trouble> {
        let suspicion = self.desk.take_suspicion();
        let reason = reason.or_else(|| suspicion.filter(|s| s.rebuild).map(|s| s.why));
        let Some(row) = self.ledger.row(self.shard)? else {
            let claim = self.ledger.create_shard(self.shard, &self.owner)?;
            tracing::info!(?claim, "a new shard");
            return Err(Trouble::Look("the shard was just made".into()));
        };
        let meta = self.hot.meta().await;
        let meta = match meta {
            // Meta that cannot be read is built anew: fencing replaces it.
            Err(CallError::Unreadable { place, message }) => {
                self.row = self.rebuild(&row, &format!("{place}: {message}")).await?;
                return Ok(true);
            }
            other => other?,
        };
        if let Some(found) = &meta {
            self.not_ahead(&row, found).await?;
        }
        let belongs = row.mode == ShardMode::Hot
            && meta.as_ref().is_some_and(|found| {
                found.open && found.tip.epoch == row.epoch && found.tip.seq >= row.cursor
            });
        if belongs && reason.is_none() {
            self.watched = None;
            self.row = row;
            return Ok(false);
        }
        if row.mode == ShardMode::Rebuild && row.owner != self.owner && !self.is_abandoned(&row, meta) {
            self.desk.wait(Duration::from_millis(100)).await;
            return Err(Trouble::Look(format!(
                "{} is building epoch {}",
                row.owner, row.epoch
            )));
        }
        let why = reason.unwrap_or_else(|| match meta {
            None => "Redis holds nothing of this shard".into(),
            Some(found) => format!("Redis stands at {found:?}, the ledger at {row:?}"),
        });
        self.row = self.rebuild(&row, &why).await?;
        self.watched = None;
        Ok(true)
    }

    /// The ledger's epoch is raised before a node's is, and an entry is recorded before it is trimmed: a node that is
    /// ahead in either shows that the ledger lost what it had recorded. Only if the outbox still has all of that, it is
    /// recorded once more.
    async fn not_ahead(&self, row: &ShardRow, found: &MetaState) -> Result<(), Trouble> {
        let is_ahead = |row: &ShardRow| (found.tip.epoch, found.base) > (row.epoch, row.cursor);
        let newer = found.tip.epoch > row.epoch;
        if found.tip.epoch < row.epoch || !is_ahead(row) {
            return Ok(());
        }
        // The row was read before the node.
        let again = self.ledger.row(self.shard)?;
        if again.is_some_and(|again| !is_ahead(&again)) {
            return Err(Trouble::Look("the ledger went on".into()));
        }
        if !newer {
            let next = self.hot.read(row.epoch, row.cursor, 1).await?;
            if let Decided::Done { value, .. } = next
                && value.first().map(|entry| (entry.seq, entry.tag)) == Some((row.cursor, row.tag))
            {
                return Ok(());
            }
        }
        let (node, ledger) = if newer {
            (
                format!("epoch {}", found.tip.epoch),
                format!("epoch {}", row.epoch),
            )
        } else {
            (
                format!("recorded entry {}", found.base),
                format!("entry {}", row.cursor),
            )
        };
        Err(Trouble::Restored(format!(
            "Redis is at {node}, the ledger only at {ledger}: the ledger was restored from a backup or its folder was \
             deleted, or this is another shop's Redis; use the right ledger, or another --redis-prefix"
        )))
    }

    /// Whether the rebuild of another process has not moved for too long. A little longer for some than for others, so
    /// that one of them takes over.
    fn is_abandoned(&mut self, row: &ShardRow, meta: Option<MetaState>) -> bool {
        match &self.watched {
            Some((since, seen, found)) if seen == row && *found == meta => {
                let jitter = Duration::from_millis(self.tags.next() % 1_000);
                since.elapsed() > ABANDONED + jitter
            }
            _ => {
                self.watched = Some((Instant::now(), row.clone(), meta));
                false
            }
        }
    }

    /// A fresh tag and the epoch for a call.
    pub(super) fn sent(&mut self, epoch: u64) -> Sent {
        Sent {
            epoch,
            tag: self.tags.next(),
            now: self.clock.as_ref().map(|clock| clock.now()),
            late_confirm: self.late_confirm,
        }
    }
}

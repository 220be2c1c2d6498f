//! Recording: the outbox goes into the ledger, in order, in groups, as long as this process has the lease.
//!
//! A group is checked before it is recorded: its first entry must be the one that the ledger has, each further one
//! must name the one before it. The ledger's own fence checks that again, so that two processes that both believe they
//! have the lease cost work and nothing else. While a group is written, the next one is read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stockade_core::{Entry, Millis, Position};
use stockade_ledger::{Keep, Leasing, LedgerError, RecordError, ShardMode};
use stockade_redis::{CallError, Decided, KeptIds, Stale};

use super::keeper::{Keeper, News, Trouble};
use crate::names;

/// How long the recorder's lease lasts, and how early it is renewed.
const LEASE_MS: Millis = 3_000;
const LEASE_RENEW: Duration = Duration::from_secs(1);
/// How often a process without the lease asks for it, and looks whether the epoch is still the same.
const LEASE_ASK: Duration = Duration::from_millis(300);
/// How often the outbox is looked at when nobody here says that there is something.
const IDLE: Duration = Duration::from_millis(20);
/// The same while another process adds entries.
const BUSY: Duration = Duration::from_millis(2);
/// The most entries of a group.
const GROUP_ENTRIES: usize = 64;
/// How often what need not be done at once is done.
const CARE: Duration = Duration::from_secs(1);
/// Recorded entries that the ledger keeps, so that any process can find out what became of its own.
const KEEP: Keep = Keep {
    entries: 100_000,
    within_ms: 3_600_000,
};
/// The most memory that ended ids take in Redis; older ones are looked up in the ledger.
const KEEP_BYTES: u64 = 512 << 20;
/// The pause after a group that was not recorded.
const RETRY: Duration = Duration::from_millis(200);

/// Whether this process records.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) mine: bool,
    /// When it was asked for last.
    asked: Option<Instant>,
}

impl Lease {
    pub(super) const fn new() -> Self {
        Self {
            mine: false,
            asked: None,
        }
    }

    fn is_due(&self) -> bool {
        let pause = if self.mine { LEASE_RENEW } else { LEASE_ASK };
        self.asked.is_none_or(|asked| asked.elapsed() >= pause)
    }
}

impl Keeper {
    /// Records as long as ledger and node belong together; `None`: told to stop.
    pub(super) async fn record_until_trouble(&mut self) -> Option<Trouble> {
        self.lease.asked = None;
        // Entries of another process come without a word from here.
        let mut others_at: Option<Instant> = None;
        let mut ahead: Option<Vec<Entry>> = None;
        loop {
            if let Some(suspicion) = self.desk.take_suspicion() {
                return Some(if suspicion.rebuild {
                    Trouble::Rebuild(suspicion.why)
                } else {
                    Trouble::Look(suspicion.why)
                });
            }
            let told = self.desk.take_wrote();
            let stopping = self.desk.is_stopped();
            let step = self.step(&mut ahead).await;
            match step {
                Ok(0) if stopping => return None,
                Ok(0) => {
                    let busy = others_at.is_some_and(|at| at.elapsed() < Duration::from_secs(1));
                    self.desk.wait(if busy { BUSY } else { IDLE }).await;
                }
                Ok(_) if !told => others_at = Some(Instant::now()),
                Ok(_) => {}
                Err(trouble) => return Some(trouble),
            }
        }
    }

    /// Renews the lease if it is due, records one group, takes care of what is due; how many entries were recorded.
    async fn step(&mut self, ahead: &mut Option<Vec<Entry>>) -> Result<usize, Trouble> {
        if self.lease.is_due() {
            let before = (self.row.cursor, self.row.tag);
            self.renew()?;
            if (self.row.cursor, self.row.tag) != before {
                // What was read ahead may end before it.
                *ahead = None;
            }
        }
        if !self.lease.mine {
            *ahead = None;
            return Ok(0);
        }
        let read = match ahead.take() {
            Some(read) => read,
            None => self.read(self.row.cursor).await?,
        };
        let run = match self.follow(read) {
            Ok(run) => run,
            Err(why) => {
                self.forked(why)?;
                return Ok(0);
            }
        };
        if run.is_empty() {
            self.care().await?;
            return Ok(0);
        }
        let count = run.len();
        *ahead = self.record(run).await?;
        if self.cared.elapsed() >= CARE {
            self.care().await?;
        }
        Ok(count)
    }

    fn renew(&mut self) -> Result<(), Trouble> {
        self.lease.asked = Some(Instant::now());
        let row = self.ledger.row(self.shard)?;
        match row {
            Some(row) if row.epoch == self.row.epoch && row.mode == ShardMode::Hot => {
                // Others record too: then the next group begins after theirs.
                self.row = row;
            }
            other => {
                return Err(Trouble::Look(format!(
                    "the ledger went on from epoch {} to {other:?}",
                    self.row.epoch
                )));
            }
        }
        let mine = match self.ledger.take_lease(self.shard, &self.owner, LEASE_MS) {
            Ok(Leasing::Mine(_)) => true,
            Ok(Leasing::Others(_)) => false,
            Err(error) => {
                // The lease saves work and no more: whoever has it goes on, and the fence decides.
                let trouble = Trouble::from(error);
                let Trouble::Ledger(error) = trouble else {
                    return Err(trouble);
                };
                self.ledger_is_down(&error);
                return Ok(());
            }
        };
        if !mine {
            self.ledger_is_up();
        }
        if mine != self.lease.mine {
            self.lease.mine = mine;
            self.tell(News::Holder(mine));
        }
        Ok(())
    }

    fn ledger_is_down(&mut self, error: &LedgerError) {
        if !std::mem::replace(&mut self.ledger_down, true) {
            tracing::error!(%error, "the ledger takes nothing for the moment; trying again and again");
            self.tell(News::LedgerDown(Some(error.to_string())));
        }
    }

    fn ledger_is_up(&mut self) {
        if std::mem::take(&mut self.ledger_down) {
            tracing::info!("the ledger records again");
            self.tell(News::LedgerDown(None));
        }
    }

    async fn read(&self, from: u64) -> Result<Vec<Entry>, Trouble> {
        match self.hot.read(self.row.epoch, from, GROUP_ENTRIES).await {
            Ok(Decided::Done { value, .. }) => Ok(value),
            Ok(Decided::Stale(Stale::Damaged)) => {
                Err(Trouble::Rebuild("the outbox was damaged from outside".into()))
            }
            Ok(Decided::Stale(stale)) => Err(Trouble::Look(format!("reading the outbox: {stale:?}"))),
            // It will not become readable by reading it again.
            Err(CallError::Unreadable { place, message }) => {
                Err(Trouble::Rebuild(format!("{place} cannot be read: {message}")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What was read does not follow what is recorded. Another process may have recorded and trimmed more since the row
    /// was read, say while this one stood still: then it is read again from there.
    fn forked(&mut self, why: String) -> Result<(), Trouble> {
        match self.ledger.row(self.shard)? {
            Some(row) if row.epoch == self.row.epoch && row.mode == ShardMode::Hot => {
                if (row.cursor, row.tag) == (self.row.cursor, self.row.tag) {
                    return Err(Trouble::Rebuild(why));
                }
                self.row = row;
                Ok(())
            }
            other => Err(Trouble::Look(format!("the ledger went on to {other:?}"))),
        }
    }

    /// The entries after the ledger's cursor, if they continue its chain; otherwise why they do not.
    fn follow(&self, read: Vec<Entry>) -> Result<Vec<Entry>, String> {
        let mut entries = read.into_iter().skip_while(|entry| entry.seq < self.row.cursor);
        let first = entries.next();
        let found = first.as_ref().map(|first| (first.seq, first.tag));
        if found != Some((self.row.cursor, self.row.tag)) {
            return Err(format!(
                "the chain in Redis is not the one that is recorded: entry {} is {:?} there, and recorded as {:016x}",
                self.row.cursor,
                first.map(|first| format!("{} {:016x}", first.seq, first.tag)),
                self.row.tag
            ));
        }
        let mut run: Vec<Entry> = Vec::new();
        let (mut seq, mut tag) = (self.row.cursor, self.row.tag);
        for entry in entries {
            if entry.epoch != self.row.epoch || entry.seq != seq + 1 || entry.prev != tag {
                return Err(format!(
                    "entry {} in Redis does not follow entry {seq}",
                    entry.seq
                ));
            }
            (seq, tag) = (entry.seq, entry.tag);
            run.push(entry);
        }
        Ok(run)
    }

    /// Records a group and trims it, and reads the next one meanwhile.
    async fn record(&mut self, run: Vec<Entry>) -> Result<Option<Vec<Entry>>, Trouble> {
        let Some(last) = run.last() else {
            return Ok(None);
        };
        let at = Position {
            epoch: last.epoch,
            seq: last.seq,
            tag: last.tag,
        };
        let time = last.at;
        let began = Instant::now();
        let entries = Arc::new(run);
        let recording = self.writer.write(Arc::clone(&entries));
        let (recorded, next) = tokio::join!(recording, self.hot.read(at.epoch, at.seq, GROUP_ENTRIES));
        let took = began.elapsed();
        metrics::histogram!(names::COMMIT_SECONDS).record(took.as_secs_f64());
        let recorded = recorded.ok_or_else(|| Trouble::Broken("recording failed with a panic".into()))?;
        count_commit(&recorded);
        if let Err(error) = recorded {
            self.not_recorded(error, &entries).await?;
            return Ok(None);
        }
        self.row.cursor = at.seq;
        self.row.tag = at.tag;
        self.row.at = time;
        self.ledger_is_up();
        self.announce(&entries, took);
        // Only what is recorded is trimmed. When that fails it is trimmed with the next group.
        self.hot.trim(at).await?;
        match next {
            Ok(Decided::Done { value, .. }) => Ok(Some(value)),
            // The next step reads again, and says what is wrong.
            Ok(Decided::Stale(_)) | Err(_) => Ok(None),
        }
    }

    fn announce(&self, entries: &[Entry], took: Duration) {
        let orders = entries.iter().map(|entry| entry.effects.len()).sum();
        metrics::histogram!(names::GROUP_COMMANDS).record(crate::names::count(orders));
        let entries = entries
            .iter()
            .map(|entry| Position {
                epoch: entry.epoch,
                seq: entry.seq,
                tag: entry.tag,
            })
            .collect();
        self.tell(News::Recorded {
            entries,
            orders,
            took,
        });
    }

    /// A group was not recorded, or it is not known whether it was.
    async fn not_recorded(&mut self, error: RecordError, entries: &[Entry]) -> Result<(), Trouble> {
        match error {
            RecordError::Fenced { found, .. } => {
                let Some(found) = found else {
                    return Err(Trouble::Look("the shard's row is gone".into()));
                };
                if found.epoch == self.row.epoch
                    && found.mode == ShardMode::Hot
                    && found.cursor > self.row.cursor
                {
                    // Another process recorded some of them: its tags are checked with the next read.
                    self.row = found;
                    return Ok(());
                }
                Err(Trouble::Look(format!("the ledger stands at {found:?}")))
            }
            RecordError::Mismatch {
                place,
                expected,
                found,
            } => Err(Trouble::Rebuild(format!(
                "entry {:?} does not fit the ledger at {place}: expected {expected}, found {found}; the ledger or Redis \
                 was changed by hand, or this is a defect: run an audit",
                entries.first().map(|entry| entry.seq)
            ))),
            RecordError::NotRecorded(error) => {
                let trouble = Trouble::from(error);
                let Trouble::Ledger(error) = trouble else {
                    return Err(trouble);
                };
                self.ledger_is_down(&error);
                // Another process that writes is done in a moment.
                let pause = if error.is_transient() { RETRY / 10 } else { RETRY };
                tokio::time::sleep(pause).await;
                let row = self.ledger.row(self.shard)?;
                if row.is_some_and(|row| row.epoch == self.row.epoch && row.cursor == self.row.cursor) {
                    return Ok(());
                }
                Err(Trouble::Look("the ledger went on".into()))
            }
            // This opening of the ledger writes no more, and only a new process can tell what is on disk.
            RecordError::Unknown(error) => Err(Trouble::Broken(error.to_string())),
        }
    }

    /// What need not be done with every group: forgetting, pruning, measuring.
    async fn care(&mut self) -> Result<(), Trouble> {
        if self.cared.elapsed() < CARE {
            return Ok(());
        }
        self.cared = Instant::now();
        if let Decided::Done { value, .. } = self.hot.backlog(self.row.epoch).await? {
            self.tell(News::Backlog {
                entries: value.entries,
                bytes: value.bytes,
            });
        }
        let sent = self.sent(self.row.epoch);
        let now = match sent.now {
            Some(now) => now,
            None => self.hot.time().await?,
        };
        let kept = KeptIds {
            recorded: self.row.cursor,
            older_than: now.saturating_sub(self.keep_ended_ms),
            keep: u64::try_from(self.keep_ended).unwrap_or(u64::MAX),
            keep_bytes: KEEP_BYTES,
            limit: 1_000,
        };
        for _ in 0..20 {
            let Decided::Done { value, .. } = self.hot.forget(&sent, &kept).await? else {
                return Err(Trouble::Look("forgetting ended ids".into()));
            };
            metrics::counter!(names::FORGOTTEN).increment(value.forgotten);
            if !value.more {
                break;
            }
        }
        self.ledger.prune_entries(self.shard, KEEP, 2_000)?;
        Ok(())
    }
}

fn count_commit(recorded: &Result<(), RecordError>) {
    let outcome = match recorded {
        Ok(()) => "recorded",
        Err(RecordError::NotRecorded(_)) => "not_recorded",
        Err(RecordError::Fenced { .. }) => "fenced",
        Err(RecordError::Mismatch { .. }) => "mismatch",
        Err(RecordError::Unknown(_)) => "unknown",
    };
    metrics::counter!(names::COMMITS, "outcome" => outcome).increment(1);
}

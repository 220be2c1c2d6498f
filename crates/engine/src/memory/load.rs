//! Building the hot state from the ledger: a new epoch, everything live, then in the background the ids of everything
//! else.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use stockade_core::{LoadError, Position, Rules, Shard, Space};
use stockade_ledger::{Ledger, LedgerError, View};

use super::Message;
use super::mailbox::Mailbox;

/// How many ids go to the filter at once: about a tenth of a millisecond of the deciding thread.
const CHUNK_IDS: usize = 1_024;

/// The longest pause between two tries to load.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What a shard is opened with.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) shard: u32,
    pub(super) rules: Rules,
    pub(super) owner: String,
}

/// A shard that is ready to decide.
pub(super) struct Loaded {
    pub(super) shard: Shard,
    pub(super) at: Position,
    /// As of the opening cursor: where the ids of ended things are read from.
    pub(super) view: Box<dyn View>,
}

/// Opens a new epoch and loads everything live.
pub(super) fn load(ledger: &dyn Ledger, plan: &Plan) -> Result<Loaded, LedgerError> {
    let row = ledger.open_epoch(plan.shard, &plan.owner)?;
    let view = ledger.view()?;
    if view.shard(plan.shard)?.map(|found| found.epoch) != Some(row.epoch) {
        return Err(LedgerError::Database(format!(
            "epoch {} of shard {} was taken over by another process while it was being loaded",
            row.epoch, plan.shard
        )));
    }
    let mut shard = Shard::new(plan.shard, plan.rules, RandomState::new().hash_one(row.epoch));
    // A callback cannot stop the reading, so the first record that contradicts the rest is kept.
    let mut wrong: Option<LoadError> = None;
    view.skus(plan.shard, &mut |sku| {
        wrong = wrong.take().or(shard.load_sku(sku).err());
    })?;
    view.live(plan.shard, &mut |reservation| {
        wrong = wrong.take().or(shard.load_reservation(reservation).err());
    })?;
    view.usage(plan.shard, &mut |tenant, sku, owner, used| {
        wrong = wrong.take().or(shard.load_usage(tenant, sku, owner, used).err());
    })?;
    if let Some(error) = wrong {
        return Err(LedgerError::Corrupt {
            place: format!("shard {}", plan.shard),
            message: format!(
                "{error}; run an audit, and restore the ledger from a backup if it was changed by hand"
            ),
        });
    }
    let at = Position {
        epoch: row.epoch,
        seq: row.cursor,
        tag: row.tag,
    };
    shard.open(at, row.at);
    Ok(Loaded { shard, at, view })
}

/// Ids on their way to the filter.
#[derive(Debug)]
pub(super) enum Feed {
    /// Some.
    Ids(Chunk),
    /// That was all.
    Known,
}

/// Ids in one piece of text: one allocation instead of two thousand.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    text: String,
    /// Space, and where the tenant and the id end in the text.
    ends: Vec<(Space, usize, usize)>,
}

impl Chunk {
    fn push(&mut self, space: Space, tenant: &str, id: &str) {
        self.text.push_str(tenant);
        let tenant_end = self.text.len();
        self.text.push_str(id);
        self.ends.push((space, tenant_end, self.text.len()));
    }

    /// Each id: space, tenant, id.
    pub(super) fn ids(&self) -> impl Iterator<Item = (Space, &str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |&(space, tenant_end, id_end)| {
            let tenant = self.text.get(start..tenant_end).unwrap_or_default();
            let id = self.text.get(tenant_end..id_end).unwrap_or_default();
            start = id_end;
            (space, tenant, id)
        })
    }
}

/// Reads the ids of everything that ended, in the background; the receiver is polled by the deciding thread, which is
/// nudged when there is something. Ends by itself when the receiver is gone. Until `Known` arrives every unknown id
/// is looked up: slower, never wrong.
pub(super) fn feed_filter(
    shard: u32,
    view: Box<dyn View>,
    ledger: Arc<dyn Ledger>,
    nudge: impl Fn() + Send + 'static,
) -> std::io::Result<Receiver<Feed>> {
    let (send, receive) = sync_channel(2);
    std::thread::Builder::new()
        .name("stockade-filter".into())
        .spawn(move || {
            let mut pause = Duration::from_millis(100);
            let mut view = Ok(view);
            loop {
                // The filter may hold more than the view of the opening moment had, so a later view serves too.
                let read = view.and_then(|view| read_ids(shard, &*view, &send, &nudge));
                match read {
                    Ok(()) => {
                        if send.send(Feed::Known).is_ok() {
                            nudge();
                        }
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the ids of ended reservations could not be read; trying again");
                        if send.send(Feed::Ids(Chunk::default())).is_err() {
                            return;
                        }
                        std::thread::sleep(pause);
                        pause = (pause * 2).min(PAUSE_MAX);
                        view = ledger.view();
                    }
                }
            }
        })?;
    Ok(receive)
}

fn read_ids(
    shard: u32,
    view: &dyn View,
    send: &SyncSender<Feed>,
    nudge: &impl Fn(),
) -> Result<(), LedgerError> {
    let mut chunk = Chunk::default();
    let mut wanted = true;
    view.ended_ids(shard, &mut |space, tenant, id| {
        if !wanted {
            return;
        }
        chunk.push(space, tenant, id);
        if chunk.ends.len() >= CHUNK_IDS {
            wanted = send.send(Feed::Ids(std::mem::take(&mut chunk))).is_ok();
            nudge();
        }
    })?;
    if wanted && !chunk.ends.is_empty() {
        let _ = send.send(Feed::Ids(chunk));
        nudge();
    }
    Ok(())
}

/// Loads again after a failure, with growing pauses, on a thread of its own.
#[derive(Debug)]
pub(super) struct Reloading {
    stop: Arc<AtomicBool>,
    sleeper: Thread,
    handle: JoinHandle<()>,
}

impl Reloading {
    /// Starts; the first try comes after `failures` earlier ones.
    pub(super) fn start(
        ledger: Arc<dyn Ledger>,
        plan: Plan,
        mailbox: Arc<Mailbox>,
        failures: u32,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let handle = std::thread::Builder::new()
            .name("stockade-loader".into())
            .spawn(move || {
                let mut pause = pause_after(failures);
                loop {
                    if !sleep(pause, &stopped) {
                        return;
                    }
                    let loading = std::panic::AssertUnwindSafe(|| load(&*ledger, &plan));
                    match std::panic::catch_unwind(loading) {
                        Ok(Ok(loaded)) => {
                            mailbox.post(Message::Loaded(Some(Box::new(loaded))));
                            return;
                        }
                        // Trying again cannot help: the ledger takes no more from this process.
                        Ok(Err(error @ LedgerError::Broken { .. })) => {
                            mailbox.post(Message::Broken(error.to_string()));
                            return;
                        }
                        Ok(Err(error)) => {
                            pause = (pause * 2).clamp(Duration::from_millis(50), PAUSE_MAX);
                            tracing::warn!(%error, retry_after_ms = pause.as_millis(), "reloading from the ledger failed");
                            mailbox.post(Message::StillDown(error.to_string()));
                        }
                        Err(_) => {
                            mailbox.post(Message::Loaded(None));
                            return;
                        }
                    }
                }
            })?;
        Ok(Self {
            stop,
            sleeper: handle.thread().clone(),
            handle,
        })
    }

    /// Stops it and waits for it.
    pub(super) fn end(self) {
        self.stop.store(true, Ordering::Release);
        self.sleeper.unpark();
        // A panic of it was caught and told.
        let _ = self.handle.join();
    }
}

/// None after the first failure, then 50 ms, doubling.
fn pause_after(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        more => Duration::from_millis(25_u64 << more.min(10)).min(PAUSE_MAX),
    }
}

/// Sleeps, and says whether to go on.
fn sleep(pause: Duration, stop: &AtomicBool) -> bool {
    let until = std::time::Instant::now() + pause;
    loop {
        if stop.load(Ordering::Acquire) {
            return false;
        }
        let left = until.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_gives_back_what_went_in() {
        let mut chunk = Chunk::default();
        chunk.push(Space::Reservation, "t", "größe");
        chunk.push(Space::Stock, "default", "c-1");
        let ids: Vec<_> = chunk.ids().collect();
        assert_eq!(
            ids,
            [
                (Space::Reservation, "t", "größe"),
                (Space::Stock, "default", "c-1")
            ]
        );
    }

    #[test]
    fn pauses_grow_and_end() {
        assert_eq!(pause_after(1), Duration::ZERO);
        assert!(pause_after(2) < pause_after(3));
        assert_eq!(pause_after(u32::MAX), PAUSE_MAX);
    }
}

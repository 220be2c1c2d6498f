//! Building an epoch: the node is fenced, its survivors are read, the ledger's state is loaded, surviving grants are
//! run again, and only then commands are taken.
//!
//! Every attempt is an epoch of its own: whoever wins it in the ledger may fence, load, run again and open, and nobody
//! else. Any unexpected answer gives the attempt up, and the next one starts from the beginning. A crash between any
//! two steps leaves an epoch that is never opened.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use stockade_core::{Change, Entry, Id, Position, Reservation, Space, Status};
use stockade_ledger::{Claim, Key, LedgerError, Recorded, ShardMode, ShardRow, View};
use stockade_redis::{Base, Chunk, Decided, Fenced, Rerun};

use super::keeper::{Keeper, News, Trouble};
use super::survivors;
use crate::names;

/// SKUs, reservations or usages of one chunk: about a millisecond of Redis's time.
const CHUNK: usize = 500;
/// Grants that one call runs again.
const RERUN: usize = 64;
/// Runs of survivors that end nothing and do nothing, before the attempt is given up.
const IDLE_RUNS_MAX: u32 = 10_000;
/// Ids that one look asks the ledger about.
const LOOK: usize = 1_000;

impl Keeper {
    /// One attempt.
    pub(super) async fn rebuild(&mut self, seen: &ShardRow, why: &str) -> Result<ShardRow, Trouble> {
        let began = Instant::now();
        let row = match self.ledger.claim_rebuild(seen, &self.owner)? {
            Claim::Won(row) => row,
            Claim::Found(found) => {
                return Err(Trouble::Look(format!("another process was first: {found:?}")));
            }
        };
        let epoch = row.epoch;
        tracing::warn!(epoch, why, "building a new epoch in Redis from the ledger");
        metrics::counter!(names::REBUILDS).increment(1);
        if let Fenced::Refused { found } = self.hot.fence(epoch).await? {
            return Err(Trouble::Look(format!(
                "fencing for epoch {epoch}: Redis is at {found}"
            )));
        }
        // After the fence nothing is added to older epochs on this node.
        let survivors = self.survivors(epoch).await?;
        let view = match self.ledger.rebuild_view(self.shard, epoch, &self.owner)? {
            Ok(view) => view,
            Err(found) => return Err(Trouble::Look(format!("epoch {epoch} was taken over: {found:?}"))),
        };
        let hot = (seen.mode == ShardMode::Hot).then_some(seen.epoch);
        let reruns = self.reruns(&*view, &row, hot, &survivors)?;
        let base = Base {
            at: Position {
                epoch,
                seq: row.cursor,
                tag: row.tag,
            },
            clock: row.at,
        };
        if !self.hot.base(&base).await? {
            return Err(Trouble::Look(format!("setting the base of epoch {epoch}")));
        }
        let chunks = self.load(epoch, view).await?;
        let kept = reruns.len();
        let (lost, tip) = self.run_again(base.at, &reruns).await?;
        if !self.hot.open(epoch, chunks).await? {
            return Err(Trouble::Look(format!("opening epoch {epoch}")));
        }
        // A node that restarted without the survivors' run would be opened all the same.
        let meta = self.hot.meta().await?;
        if meta.is_none_or(|meta| meta.tip != tip || !meta.open) {
            return Err(Trouble::Look(format!("epoch {epoch} lost what was run again")));
        }
        let row = match self.ledger.finish_rebuild(self.shard, epoch, &self.owner)? {
            Claim::Won(row) => row,
            Claim::Found(found) => {
                return Err(Trouble::Look(format!("epoch {epoch} was taken over: {found:?}")));
            }
        };
        tracing::info!(
            epoch,
            chunks,
            kept,
            lost = lost.len(),
            seconds = began.elapsed().as_secs_f64(),
            "a new epoch is open"
        );
        if !lost.is_empty() {
            self.tell(News::Lost(lost));
        }
        // What is left of older epochs only takes room: when this fails, the next epoch does it.
        if let Err(error) = self.hot.drop_older(epoch).await {
            tracing::warn!(%error, "keys of older epochs are still in Redis");
        }
        Ok(row)
    }

    async fn survivors(&self, epoch: u64) -> Result<Vec<Entry>, Trouble> {
        match self.hot.survivors(epoch).await? {
            Decided::Done { value, .. } => Ok(value.into_iter().map(|survivor| survivor.entry).collect()),
            Decided::Stale(stale) => Err(Trouble::Look(format!("reading survivors: {stale:?}"))),
        }
    }

    /// What of the survivors is to be done again, in their order.
    fn reruns(
        &self,
        view: &dyn View,
        row: &ShardRow,
        hot: Option<u64>,
        survivors: &[Entry],
    ) -> Result<Vec<Rerun>, Trouble> {
        let mut entries = Vec::new();
        for some in survivors.chunks(LOOK) {
            let tips: Vec<Position> = some.iter().map(at).collect();
            let recorded = view.recorded(self.shard, &tips)?;
            let open = some.iter().zip(recorded);
            entries.extend(
                open.filter(|(_, recorded)| matches!(recorded, Recorded::NotYet | Recorded::Never))
                    .map(|(entry, _)| entry),
            );
        }
        let known = self.statuses(view, &entries)?;
        Ok(survivors::again(&entries, (row.cursor, row.tag), hot, &known))
    }

    /// What the ledger knows of the reservations that entries name.
    fn statuses(
        &self,
        view: &dyn View,
        entries: &[&Entry],
    ) -> Result<HashMap<(Id, Id), Status>, LedgerError> {
        let names: HashSet<(Id, Id)> = entries
            .iter()
            .flat_map(|entry| &entry.effects)
            .filter_map(|effect| match &effect.change {
                Change::Reservation { after, .. } => Some((after.tenant.clone(), after.id.clone())),
                Change::Return { .. } | Change::Stock { .. } => None,
            })
            .collect();
        let keys: Vec<Key> = names
            .into_iter()
            .map(|(tenant, id)| Key {
                tenant,
                space: Space::Reservation,
                id,
            })
            .collect();
        let mut known = HashMap::new();
        for some in keys.chunks(LOOK) {
            let found = view.find_many(self.shard, some)?;
            for (key, record) in some.iter().zip(found.records) {
                if let Some(stockade_core::Record::Reservation(reservation)) = record {
                    known.insert((key.tenant.clone(), key.id.clone()), reservation.status);
                }
            }
        }
        Ok(known)
    }

    /// Loads everything live, in chunks that are only taken one after the other; how many there were.
    async fn load(&self, epoch: u64, view: Box<dyn View>) -> Result<u64, Trouble> {
        let shard = self.shard;
        // The view is read on a thread of its own, a few chunks ahead.
        let (send, chunks) = sync_channel(4);
        let reading = tokio::task::spawn_blocking(move || read_chunks(shard, &*view, &send));
        let mut number = 0;
        let loaded = loop {
            // The channel is never waited for longer than reading one chunk takes.
            let Some(chunk) = next(&chunks).await else {
                break Ok(number);
            };
            number += 1;
            match self.hot.chunk(epoch, number, &chunk).await {
                Ok(true) => {}
                Ok(false) => break Err(Trouble::Look(format!("loading chunk {number} of epoch {epoch}"))),
                Err(error) => break Err(Trouble::Redis(error)),
            }
        };
        // When this attempt is given up, the reader finds nobody to send to and ends.
        drop(chunks);
        let read = reading
            .await
            .map_err(|error| Trouble::Broken(format!("reading the ledger failed with a panic: {error}")))?;
        let number = loaded?;
        read?;
        Ok(number)
    }

    /// Runs surviving grants again; those that do not fit any more.
    async fn run_again(
        &mut self,
        mut at: Position,
        reruns: &[Rerun],
    ) -> Result<(Vec<Reservation>, Position), Trouble> {
        let (mut lost, mut idle) = (Vec::new(), 0_u32);
        let mut left = reruns;
        while !left.is_empty() {
            let (some, _) = left.split_at(left.len().min(RERUN));
            let sent = self.sent(at.epoch);
            match self.hot.rerun(&sent, some).await? {
                Decided::Done { tip, mut value, .. } => {
                    // Each run begins where the one before ended, or the node lost that one.
                    let goes_on = tip.seq == at.seq.saturating_add(1) && tip.tag == sent.tag;
                    if tip != at && !goes_on {
                        return Err(Trouble::Look("a run of survivors was lost".into()));
                    }
                    if value.done == 0 && tip == at {
                        // Such a call only looked at ends; it comes to one that has passed, or to the last.
                        idle += 1;
                        if idle > IDLE_RUNS_MAX {
                            return Err(Trouble::Look("survivors wait for ends that do not come".into()));
                        }
                    }
                    at = tip;
                    lost.append(&mut value.lost);
                    left = left.get(value.done..).unwrap_or_default();
                }
                Decided::Stale(stale) => {
                    return Err(Trouble::Look(format!("running survivors again: {stale:?}")));
                }
            }
        }
        Ok((lost, at))
    }
}

fn at(entry: &Entry) -> Position {
    Position {
        epoch: entry.epoch,
        seq: entry.seq,
        tag: entry.tag,
    }
}

async fn next(chunks: &Receiver<Chunk>) -> Option<Chunk> {
    loop {
        match chunks.try_recv() {
            Ok(chunk) => return Some(chunk),
            Err(std::sync::mpsc::TryRecvError::Disconnected) => return None,
            Err(std::sync::mpsc::TryRecvError::Empty) => {
                tokio::time::sleep(std::time::Duration::from_micros(200)).await;
            }
        }
    }
}

fn read_chunks(shard: u32, view: &dyn View, send: &SyncSender<Chunk>) -> Result<(), LedgerError> {
    let mut skus = Vec::new();
    view.skus(shard, &mut |sku| skus.push(sku))?;
    // Usage is kept where there is a limit; elsewhere it is read when one is set. It goes with its SKU.
    let mut used: HashMap<(Id, Id), Vec<(Id, u64)>> = skus
        .iter()
        .filter(|sku| sku.settings.limit_per_owner.is_some())
        .map(|sku| ((sku.tenant.clone(), sku.sku.clone()), Vec::new()))
        .collect();
    view.usage(shard, &mut |tenant, sku, owner, units| {
        if let Some(owners) = used.get_mut(&(tenant.clone(), sku.clone())) {
            owners.push((owner.clone(), units));
        }
    })?;
    let mut chunk = Chunk::default();
    for sku in skus {
        let owners = used.remove(&(sku.tenant.clone(), sku.sku.clone()));
        chunk.usage.extend(
            owners
                .into_iter()
                .flatten()
                .map(|(owner, units)| (sku.tenant.clone(), sku.sku.clone(), owner, units)),
        );
        chunk.skus.push(sku);
        if chunk.skus.len() + chunk.usage.len() >= CHUNK && send.send(std::mem::take(&mut chunk)).is_err() {
            // Nobody loads any more.
            return Ok(());
        }
    }
    // The kinds are not mixed in one chunk: the SKUs must all be there before what names them.
    if !chunk.skus.is_empty() && send.send(std::mem::take(&mut chunk)).is_err() {
        return Ok(());
    }
    let mut wanted = true;
    view.live(shard, &mut |reservation| {
        chunk.live.push(reservation);
        if chunk.live.len() >= CHUNK {
            wanted = wanted && send.send(std::mem::take(&mut chunk)).is_ok();
        }
    })?;
    if wanted && !chunk.live.is_empty() {
        // An error: nobody loads any more.
        let _ = send.send(chunk);
    }
    Ok(())
}

//! What the gate remembers of each owner. Bounded: an owner of whom there is nothing left to remember goes first, then
//! one of a few that has been silent longest.

use std::collections::HashMap;
use std::hash::Hasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use siphasher::sip128::{Hasher128 as _, SipHasher13};
use stockade_core::{Id, Millis, Mode, Reservation, Reserve, Status};

use super::bucket::{Bucket, Level};
use super::{Line, Moment, Rules, Stop};

const SHARDS: usize = 64;
/// Some 50 MB when every owner has something to remember.
const OWNERS_PER_SHARD: usize = 4_096;
/// Of how many the longest silent one makes room.
const LOOKED_AT: usize = 8;
/// Live reservations and SKUs remembered of one owner.
const REMEMBERED: usize = 1_000;

/// All owners.
pub(super) struct Owners {
    shards: Vec<Mutex<HashMap<u128, Owner>>>,
    /// Names are kept as digests under a key of this process, so that nobody can make two meet.
    key: (u64, u64),
}

#[derive(Debug, Default)]
struct Owner {
    bucket: Bucket,
    cool_until: Millis,
    /// When reservations ended unpaid.
    unpaid: Vec<Millis>,
    live: Vec<Live>,
    /// When each SKU was last let through.
    asked: Vec<(u128, Millis)>,
    seen_at: Millis,
}

#[derive(Debug)]
struct Live {
    id: u128,
    ends_at: Millis,
    /// It was granted; otherwise it is under way, or nobody waited for the answer.
    granted: bool,
}

impl Owners {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            key: (fastrand::u64(..), fastrand::u64(..)),
        }
    }

    fn digest(&self, tenant: &Id, name: &Id) -> u128 {
        let mut hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
        hasher.write_usize(tenant.as_str().len());
        hasher.write(tenant.as_str().as_bytes());
        hasher.write(name.as_str().as_bytes());
        hasher.finish128().as_u128()
    }

    fn shard(&self, owner: u128) -> Option<MutexGuard<'_, HashMap<u128, Owner>>> {
        let index = usize::try_from(owner % SHARDS as u128).ok()?;
        // Each owner is whole after every change.
        Some(
            self.shards
                .get(index)?
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Lets a reservation on, or says which rule stops it; only what is let on is counted.
    pub(super) fn check(&self, rules: &Rules, tenant: &Id, asked: &Reserve, now: Moment) -> Result<(), Stop> {
        let digest = self.digest(tenant, &asked.owner);
        let Some(mut shard) = self.shard(digest) else {
            return Ok(());
        };
        if shard.len() >= OWNERS_PER_SHARD && !shard.contains_key(&digest) {
            make_room(&mut shard, rules, now);
        }
        let owner = shard.entry(digest).or_default();
        owner.settle(rules, now.ms);
        owner.seen_at = now.ms;
        let id = self.digest(tenant, &asked.id);
        let stop = |line, wait_ms: Millis| Err(Stop::limit(line, wait_ms, None));
        if owner.cool_until > now.ms {
            return stop(Line::CoolDown, owner.cool_until - now.ms);
        }
        if let Some(most) = rules.live_max {
            let instead = asked.supersedes.as_ref().map(|id| self.digest(tenant, id));
            let others = owner
                .live
                .iter()
                .filter(|live| live.id != id && Some(live.id) != instead);
            if others.count() >= most {
                let first = owner.live.iter().map(|live| live.ends_at).min().unwrap_or(now.ms);
                return stop(Line::OwnerLive, first - now.ms);
            }
        }
        let skus = || asked.lines.iter().map(|line| self.digest(tenant, &line.sku));
        if let Some(interval) = rules.interval_ms {
            let last = skus().filter_map(|sku| owner.asked.iter().find(|(known, _)| *known == sku));
            let ready = last.map(|(_, at)| at + interval).max().unwrap_or(now.ms);
            if ready > now.ms {
                return stop(Line::OwnerInterval, ready - now.ms);
            }
        }
        if let Some(rate) = rules.owner_rate
            && let Err(wait_ns) = owner.bucket.take(rate, now.ns)
        {
            let level: Level = owner.bucket.level(rate, now.ns);
            return Err(Stop::limit(Line::OwnerRate, wait_ns / 1_000_000 + 1, Some(level)));
        }
        if rules.interval_ms.is_some() {
            for sku in skus() {
                if let Some((_, at)) = owner.asked.iter_mut().find(|(known, _)| *known == sku) {
                    *at = now.ms;
                } else if owner.asked.len() < REMEMBERED {
                    owner.asked.push((sku, now.ms));
                }
            }
        }
        if asked.mode == Mode::Reserve && rules.watch_live() {
            owner.remember(id, now.ms + asked.ttl_ms, false);
        }
        Ok(())
    }

    /// The reservation that was let on was not granted.
    pub(super) fn withdraw(&self, tenant: &Id, asked: &Reserve) {
        let digest = self.digest(tenant, &asked.owner);
        let id = self.digest(tenant, &asked.id);
        if let Some(mut shard) = self.shard(digest)
            && let Some(owner) = shard.get_mut(&digest)
        {
            owner.live.retain(|live| live.id != id || live.granted);
        }
    }

    /// The reservation was granted: the one that it takes the place of is live no more.
    pub(super) fn superseded(&self, tenant: &Id, asked: &Reserve) {
        let Some(instead) = &asked.supersedes else { return };
        let digest = self.digest(tenant, &asked.owner);
        let instead = self.digest(tenant, instead);
        if let Some(mut shard) = self.shard(digest)
            && let Some(owner) = shard.get_mut(&digest)
        {
            owner.live.retain(|live| live.id != instead);
        }
    }

    /// How a reservation stands, as an answer says. `now_done` is false for a replay.
    pub(super) fn note(&self, rules: &Rules, reservation: &Reservation, now_done: bool, now: Moment) {
        let Some(owner) = &reservation.owner else { return };
        let digest = self.digest(&reservation.tenant, owner);
        let id = self.digest(&reservation.tenant, &reservation.id);
        let Some(mut shard) = self.shard(digest) else {
            return;
        };
        if reservation.status == Status::Pending {
            let owner = shard.entry(digest).or_default();
            owner.seen_at = now.ms;
            owner.remember(id, reservation.ends_at, true);
            return;
        }
        let Some(owner) = shard.get_mut(&digest) else {
            return;
        };
        let before = owner.live.len();
        match reservation.status {
            Status::Expired | Status::Lost => {}
            Status::Pending | Status::Confirmed | Status::Cancelled => {
                owner.live.retain(|live| live.id != id);
            }
        }
        owner.settle(rules, now.ms);
        // Paid after its end: it was counted as unpaid, and was not.
        if reservation.status == Status::Confirmed && now_done && owner.live.len() == before {
            owner.unpaid.pop();
        }
    }

    /// How many owners are remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        let shards = self.shards.iter().map(|shard| shard.lock().unwrap().len());
        shards.sum()
    }
}

impl std::fmt::Debug for Owners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owners").finish_non_exhaustive()
    }
}

impl Owner {
    /// Counts what has ended since.
    fn settle(&mut self, rules: &Rules, now: Millis) {
        let unpaid = &mut self.unpaid;
        self.live.retain(|live| {
            if live.ends_at > now {
                return true;
            }
            if live.granted && rules.cool_down.is_some() && unpaid.len() < REMEMBERED {
                unpaid.push(live.ends_at);
            }
            false
        });
        if let Some(rule) = rules.cool_down {
            unpaid.retain(|at| *at + rule.for_ms > now);
            if unpaid.len() >= rule.after {
                self.cool_until = now + rule.for_ms;
                unpaid.clear();
            }
        }
        if let Some(interval) = rules.interval_ms {
            self.asked.retain(|(_, at)| *at + interval > now);
        }
    }

    fn remember(&mut self, id: u128, ends_at: Millis, granted: bool) {
        if let Some(live) = self.live.iter_mut().find(|live| live.id == id) {
            live.ends_at = ends_at;
            live.granted |= granted;
            return;
        }
        if self.live.len() < REMEMBERED {
            self.live.push(Live { id, ends_at, granted });
        }
    }

    /// Nothing would be lost with it.
    fn is_blank(&self, now: Moment) -> bool {
        self.live.is_empty()
            && self.unpaid.is_empty()
            && self.asked.is_empty()
            && self.cool_until <= now.ms
            && self.bucket.is_full(now.ns)
    }
}

fn make_room(shard: &mut HashMap<u128, Owner>, rules: &Rules, now: Moment) {
    let longest = shard.iter_mut().take(LOOKED_AT).map(|(digest, owner)| {
        owner.settle(rules, now.ms);
        (!owner.is_blank(now), owner.seen_at, *digest)
    });
    if let Some((_, _, digest)) = longest.min() {
        shard.remove(&digest);
    }
}

#[cfg(test)]
#[path = "owners_tests.rs"]
mod tests;

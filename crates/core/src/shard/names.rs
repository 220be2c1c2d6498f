//! Names held once: tenants for ever, owners for as long as something refers to them; and the hash of every key.

use core::hash::{BuildHasher, Hasher};
use foldhash::quality::FixedState;

use super::slab::{Chunked, Store};
use super::stop::{Stop, Try};
use crate::id::Id;
use crate::record::Space;

/// No owner: a sealed id.
pub(super) const NO_OWNER: u32 = u32::MAX;

/// What a key names, so that equal texts of different kinds get different hashes.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Of(Space),
    Sku,
    Owner,
    Tenant,
}

/// Hashes of keys; the seed cannot be observed.
#[derive(Clone)]
pub(super) struct Hashing(FixedState);

impl Hashing {
    pub(super) const fn new(seed: u64) -> Self {
        Self(FixedState::with_seed(seed))
    }

    pub(super) fn key(&self, kind: Kind, tenant: &str, name: &str) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u8(match kind {
            Kind::Of(Space::Reservation) => 0,
            Kind::Of(Space::Return) => 1,
            Kind::Of(Space::Stock) => 2,
            Kind::Sku => 3,
            Kind::Owner => 4,
            Kind::Tenant => 5,
        });
        hasher.write_usize(tenant.len());
        hasher.write(tenant.as_bytes());
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    pub(super) fn pair(&self, one: u32, two: u32) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64((u64::from(one) << 32) | u64::from(two));
        hasher.finish()
    }
}

/// Tenants.
pub(super) struct Tenants {
    store: Store<Id>,
    hashing: Hashing,
}

impl Tenants {
    pub(super) fn new(hashing: Hashing) -> Self {
        Self {
            store: Store::new(),
            hashing,
        }
    }

    pub(super) fn get(&self, tenant: u32) -> Try<&Id> {
        self.store.get(tenant).ok_or(Stop::Corrupt("tenant"))
    }

    pub(super) fn intern(&mut self, name: &Id) -> Try<u32> {
        let hash = self.hashing.key(Kind::Tenant, "", name.as_str());
        if let Some(slot) = self.store.find(hash, |found| found == name) {
            return Ok(slot);
        }
        let hashing = &self.hashing;
        self.store.insert(hash, name.clone(), |other| {
            hashing.key(Kind::Tenant, "", other.as_str())
        })
    }
}

/// Owners, counted by reservations and usages that refer to them.
pub(super) struct Owners {
    store: Store<Id>,
    references: Chunked<u32>,
    hashing: Hashing,
}

impl Owners {
    pub(super) fn new(hashing: Hashing) -> Self {
        Self {
            store: Store::new(),
            references: Chunked::new(),
            hashing,
        }
    }

    pub(super) fn get(&self, owner: u32) -> Try<&Id> {
        self.store.get(owner).ok_or(Stop::Corrupt("owner"))
    }

    fn hash(&self, name: &Id) -> u64 {
        self.hashing.key(Kind::Owner, "", name.as_str())
    }

    pub(super) fn find(&self, name: &Id) -> Option<u32> {
        self.store.find(self.hash(name), |found| found == name)
    }

    /// The owner's slot, referred to once more.
    pub(super) fn intern(&mut self, name: &Id) -> Try<u32> {
        let hash = self.hash(name);
        let slot = if let Some(slot) = self.store.find(hash, |found| found == name) {
            slot
        } else {
            let hashing = &self.hashing;
            self.store.insert(hash, name.clone(), |other| {
                hashing.key(Kind::Owner, "", other.as_str())
            })?
        };
        while self.references.len() <= slot as usize {
            self.references.push(0);
        }
        self.retain(slot);
        Ok(slot)
    }

    pub(super) fn retain(&mut self, owner: u32) {
        if let Some(count) = self.references.get_mut(owner as usize) {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn release(&mut self, owner: u32) {
        let Some(count) = self.references.get_mut(owner as usize) else {
            return;
        };
        *count = count.saturating_sub(1);
        if *count == 0
            && let Some(name) = self.store.get(owner)
        {
            let hash = self.hash(name);
            self.store.remove(hash, owner);
        }
    }
}

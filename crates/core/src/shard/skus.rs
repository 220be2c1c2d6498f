//! SKUs as the shard keeps them.

use alloc::vec::Vec;
use smallvec::SmallVec;

use super::names::{Hashing, Kind};
use super::slab::Store;
use super::stop::{Stop, Try};
use crate::id::{Id, Millis};
use crate::record::{Counters, LocationRecord, Settings, SkuRecord};

/// A SKU.
pub(super) struct Sku {
    pub(super) tenant: u32,
    tenant_name: Id,
    pub(super) name: Id,
    pub(super) revision: u64,
    /// The entry of the last operator's change; 0 as loaded.
    pub(super) changed_seq: u64,
    pub(super) limit_per_owner: Option<u64>,
    pub(super) opens_at: Option<Millis>,
    pub(super) closes_at: Option<Millis>,
    pub(super) paused: bool,
    pub(super) split: bool,
    pub(super) group: Option<Id>,
    /// How often usage was reset.
    pub(super) era: u32,
    /// The number of the present era among those of all SKUs.
    pub(super) usage_era: u32,
    /// In the order in which they were created.
    pub(super) places: SmallVec<[Place; 1]>,
    // Every location's number, in allocation order; the first `named` are the operator's.
    order: SmallVec<[u8; 8]>,
    named: usize,
}

/// A location of a SKU.
pub(super) struct Place {
    pub(super) name: Id,
    pub(super) counters: Counters,
}

impl Sku {
    pub(super) fn new(tenant: u32, tenant_name: Id, name: Id, usage_era: u32) -> Self {
        let settings = Settings::default();
        Self {
            tenant,
            tenant_name,
            name,
            revision: 0,
            changed_seq: 0,
            limit_per_owner: settings.limit_per_owner,
            opens_at: settings.opens_at,
            closes_at: settings.closes_at,
            paused: settings.paused,
            split: settings.split,
            group: settings.group,
            era: settings.era,
            usage_era,
            places: SmallVec::new(),
            order: SmallVec::new(),
            named: 0,
        }
    }

    pub(super) fn place(&self, number: u8) -> Try<&Place> {
        self.places
            .get(usize::from(number))
            .ok_or(Stop::Corrupt("location"))
    }

    pub(super) fn find(&self, location: &Id) -> Option<u8> {
        let at = self.places.iter().position(|place| place.name == *location)?;
        u8::try_from(at).ok()
    }

    /// Adds a location, last in the allocation order; the caller has checked how many there are.
    pub(super) fn add(&mut self, name: Id, counters: Counters) -> Try<u8> {
        let number = u8::try_from(self.places.len()).map_err(|_| Stop::Corrupt("too many locations"))?;
        self.places.push(Place { name, counters });
        self.order.push(number);
        Ok(number)
    }

    /// Locations in allocation order.
    pub(super) fn order(&self) -> &[u8] {
        &self.order
    }

    /// Puts these locations first, in this order; the others follow as they were created.
    pub(super) fn reorder(&mut self, first: &[u8]) {
        let others = (0..=u8::MAX)
            .take(self.places.len())
            .filter(|number| !first.contains(number));
        self.order = first.iter().copied().chain(others).collect();
        self.named = first.len();
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            limit_per_owner: self.limit_per_owner,
            opens_at: self.opens_at,
            closes_at: self.closes_at,
            paused: self.paused,
            order: self
                .order
                .iter()
                .take(self.named)
                .filter_map(|number| self.places.get(usize::from(*number)))
                .map(|place| place.name.clone())
                .collect(),
            split: self.split,
            group: self.group.clone(),
            era: self.era,
        }
    }

    pub(super) fn record(&self) -> SkuRecord {
        SkuRecord {
            tenant: self.tenant_name.clone(),
            sku: self.name.clone(),
            revision: self.revision,
            settings: self.settings(),
            locations: self
                .places
                .iter()
                .map(|place| LocationRecord {
                    location: place.name.clone(),
                    counters: place.counters,
                })
                .collect::<Vec<_>>(),
        }
    }
}

/// All SKUs of the shard. None is ever removed.
pub(super) struct Skus {
    store: Store<Sku>,
    hashing: Hashing,
}

impl Skus {
    pub(super) fn new(hashing: Hashing) -> Self {
        Self {
            store: Store::new(),
            hashing,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.store.len()
    }

    pub(super) fn get(&self, slot: u32) -> Try<&Sku> {
        self.store.get(slot).ok_or(Stop::Corrupt("SKU"))
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Try<&mut Sku> {
        self.store.get_mut(slot).ok_or(Stop::Corrupt("SKU"))
    }

    pub(super) fn find(&self, tenant: &Id, name: &Id) -> Option<u32> {
        let hash = self.hashing.key(Kind::Sku, tenant.as_str(), name.as_str());
        self.store
            .find(hash, |sku| sku.name == *name && sku.tenant_name == *tenant)
    }

    pub(super) fn insert(&mut self, sku: Sku) -> Try<u32> {
        let hashing = &self.hashing;
        let hash_of = |sku: &Sku| hashing.key(Kind::Sku, sku.tenant_name.as_str(), sku.name.as_str());
        self.store.insert(hash_of(&sku), sku, hash_of)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Sku> {
        self.store.iter()
    }
}

//! From the ledger into an empty shard, and ended records that the ledger brings later.

use smallvec::SmallVec;

use super::hold::{HeldLine, HeldLines, Hold, Part, Terms};
use super::lookup::Spot;
use super::names::{Kind, NO_OWNER};
use super::skus::Sku;
use super::stop::{Stop, Try};
use super::{LoadError, Past, Shard};
use crate::id::{Id, LOCATIONS_MAX, QUANTITY_MAX};
use crate::record::{Line, LocationRecord, Reservation, ReturnRecord, SkuRecord, Space, Status, StockRecord};

impl Shard {
    pub(super) fn take_sku(&mut self, record: SkuRecord) -> Result<(), LoadError> {
        let SkuRecord {
            tenant,
            sku: name,
            revision,
            settings,
            locations,
        } = record;
        if self.skus.find(&tenant, &name).is_some() {
            return Err(LoadError::Twice { id: name });
        }
        let fits = |location: &LocationRecord| {
            let counters = location.counters;
            counters.reserved <= counters.on_hand
                && counters.on_hand.saturating_add(counters.sold) <= QUANTITY_MAX
                && counters.safety_stock <= QUANTITY_MAX
        };
        if locations.len() > LOCATIONS_MAX || !locations.iter().all(fits) {
            return Err(LoadError::Counters { sku: name });
        }
        let full = |_| LoadError::Full;
        let slot = self.create_sku(&tenant, &name).map_err(full)?;
        let sku: &mut Sku = self.skus.get_mut(slot).map_err(full)?;
        sku.revision = revision;
        sku.limit_per_owner = settings.limit_per_owner;
        sku.opens_at = settings.opens_at;
        sku.closes_at = settings.closes_at;
        sku.paused = settings.paused;
        sku.split = settings.split;
        sku.group = settings.group;
        sku.era = settings.era;
        for location in locations {
            sku.add(location.location, location.counters).map_err(full)?;
        }
        let mut order = SmallVec::<[u8; 8]>::new();
        for location in &settings.order {
            match sku.find(location) {
                Some(place) => order.push(place),
                None => return Err(LoadError::Unknown { id: location.clone() }),
            }
        }
        sku.reorder(&order);
        Ok(())
    }

    pub(super) fn take_reservation(&mut self, record: Reservation) -> Result<(), LoadError> {
        let id = record.id.clone();
        let hash = self.hashing.key(
            Kind::Of(Space::Reservation),
            record.tenant.as_str(),
            record.id.as_str(),
        );
        let held = self.holds.find(hash, |hold| {
            hold.id == record.id
                && self
                    .tenants
                    .get(hold.tenant)
                    .is_ok_and(|name| *name == record.tenant)
        });
        if held.is_some() {
            return Err(LoadError::Twice { id });
        }
        self.install(record, 0)
            .map(|_| ())
            .map_err(|_| LoadError::Unknown { id })
    }

    /// Takes an ended reservation that the ledger brought. A live one proves that two chains were written.
    pub(super) fn install_reservation(&mut self, record: Reservation, seq: u64) -> Try<u32> {
        if record.status == Status::Pending {
            return Err(Stop::Corrupt(
                "the ledger has a live reservation that is not held here",
            ));
        }
        self.install(record, seq)
    }

    fn install(&mut self, record: Reservation, seq: u64) -> Try<u32> {
        let mut lines = HeldLines::new();
        for line in &record.lines {
            lines.push(self.held_line(&record.tenant, line)?);
        }
        let hash = self.hashing.key(
            Kind::Of(Space::Reservation),
            record.tenant.as_str(),
            record.id.as_str(),
        );
        let owner = match &record.owner {
            None => NO_OWNER,
            Some(owner) => self.owners.intern(owner)?,
        };
        let terms = Terms {
            id: record.id,
            tenant: self.tenants.intern(&record.tenant)?,
            owner,
            mode: record.mode,
            digest: record.digest,
            status: record.status,
            granted_at: record.granted_at,
            ends_at: record.ends_at,
        };
        let mut hold = Hold::new(terms, lines, seq);
        hold.sealed = record.sealed;
        hold.noted = record.noted;
        self.place_hold(Spot { hash, slot: None }, hold)
    }

    fn held_line(&self, tenant: &Id, line: &Line) -> Try<HeldLine> {
        let unknown = Stop::Corrupt("a reservation of a SKU or location that is not held here");
        let Some(slot) = self.skus.find(tenant, &line.sku) else {
            return Err(unknown);
        };
        let sku = self.skus.get(slot)?;
        let asked = match &line.location {
            None => None,
            Some(location) => match sku.find(location) {
                None => return Err(unknown),
                place => place,
            },
        };
        let mut parts = SmallVec::new();
        for allocation in &line.allocations {
            let Some(place) = sku.find(&allocation.location) else {
                return Err(unknown);
            };
            parts.push(Part {
                place,
                quantity: allocation.quantity,
                confirmed: allocation.confirmed,
                returned: allocation.returned,
            });
        }
        Ok(HeldLine {
            sku: slot,
            era: line.era,
            asked,
            parts,
        })
    }

    pub(super) fn take_usage(
        &mut self,
        tenant: &Id,
        sku: &Id,
        owner: &Id,
        used: u64,
    ) -> Result<(), LoadError> {
        let Some(slot) = self.skus.find(tenant, sku) else {
            return Err(LoadError::Unknown { id: sku.clone() });
        };
        let full = |_| LoadError::Full;
        let era = self.skus.get(slot).map_err(full)?.usage_era;
        let number = self.owners.intern(owner).map_err(full)?;
        let done = self.usages.set(&mut self.owners, era, number, used);
        self.owners.release(number);
        done.map_err(full)
    }

    pub(super) fn keep_return(&mut self, past: Past<ReturnRecord>) -> Try<()> {
        let hashing = &self.hashing;
        let hash_of = |past: &Past<ReturnRecord>| {
            hashing.key(
                Kind::Of(Space::Return),
                past.record.tenant.as_str(),
                past.record.id.as_str(),
            )
        };
        let seq = past.seq;
        let slot = self.returns.insert(hash_of(&past), past, hash_of)?;
        self.queue(Space::Return, slot, seq);
        Ok(())
    }

    pub(super) fn keep_command(&mut self, past: Past<StockRecord>) -> Try<()> {
        let hashing = &self.hashing;
        let hash_of = |past: &Past<StockRecord>| {
            hashing.key(
                Kind::Of(Space::Stock),
                past.record.tenant.as_str(),
                past.record.id.as_str(),
            )
        };
        let seq = past.seq;
        let slot = self.commands.insert(hash_of(&past), past, hash_of)?;
        self.queue(Space::Stock, slot, seq);
        Ok(())
    }
}

//! SKUs that were seen sold out a moment ago. Asking the hot tier again would give the same refusal, at the price of a
//! decision; the id is still looked up, so that a retry of a granted order is never told "sold out".

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use stockade_core::{Id, Millis, RefusedLine, Reserve, Short};

use super::Stop;

/// More are not remembered.
const SKUS_MAX: usize = 10_000;

/// A line's stock: of one location, or of the SKU as a whole.
type Place = (Id, Id, Option<Id>);

#[derive(Debug)]
pub(super) struct SoldOut {
    for_ms: Option<Millis>,
    /// Nothing is remembered beyond this.
    until: AtomicI64,
    places: RwLock<HashMap<Place, Millis>>,
}

impl SoldOut {
    pub(super) fn new(for_ms: Option<Millis>) -> Self {
        Self {
            for_ms,
            until: AtomicI64::new(Millis::MIN),
            places: RwLock::default(),
        }
    }

    pub(super) fn check(&self, tenant: &Id, asked: &Reserve, now: Millis) -> Result<(), Stop> {
        // What else a reservation may say comes before its stock, or frees some.
        if self.for_ms.is_none()
            || self.until.load(Ordering::Relaxed) <= now
            || asked.supersedes.is_some()
            || asked.lines.iter().any(|line| line.if_revision.is_some())
        {
            return Ok(());
        }
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let is_out = |sku: &Id, location: Option<&Id>| {
            let place = (tenant.clone(), sku.clone(), location.cloned());
            places.get(&place).is_some_and(|until| *until > now)
        };
        let mut short: Vec<RefusedLine<Short>> = Vec::new();
        for (index, line) in asked.lines.iter().enumerate() {
            if !is_out(&line.sku, None)
                && (line.location.is_none() || !is_out(&line.sku, line.location.as_ref()))
            {
                continue;
            }
            let same =
                |known: &&mut RefusedLine<Short>| known.sku == line.sku && known.location == line.location;
            match short.iter_mut().find(same) {
                Some(known) => known.detail.asked = known.detail.asked.saturating_add(line.quantity),
                None => short.push(RefusedLine {
                    index: u32::try_from(index).unwrap_or(u32::MAX),
                    sku: line.sku.clone(),
                    location: line.location.clone(),
                    detail: Short {
                        asked: line.quantity,
                        available: 0,
                    },
                }),
            }
        }
        if short.is_empty() {
            Ok(())
        } else {
            Err(Stop::SoldOut(short))
        }
    }

    /// Remembers a refusal that says that there is nothing left. Of a cart of several lines it may only say that the
    /// other lines took it.
    pub(super) fn note(&self, tenant: &Id, asked: &Reserve, short: &[RefusedLine<Short>], now: Millis) {
        let (Some(for_ms), [line]) = (self.for_ms, short) else {
            return;
        };
        if line.detail.available > 0 || asked.lines.len() > 1 {
            return;
        }
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= SKUS_MAX {
            places.retain(|_, until| *until > now);
        }
        if places.len() < SKUS_MAX {
            let place = (tenant.clone(), line.sku.clone(), line.location.clone());
            places.insert(place, now + for_ms);
            self.until.fetch_max(now + for_ms, Ordering::Relaxed);
        }
    }

    /// Units came back somewhere.
    pub(super) fn clear(&self) {
        if self.for_ms.is_some() && self.until.swap(Millis::MIN, Ordering::Relaxed) != Millis::MIN {
            self.places
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
    }
}

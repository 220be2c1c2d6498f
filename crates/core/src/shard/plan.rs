//! Where the units of a cart would come from, or why it cannot be had.

use alloc::vec::Vec;
use smallvec::SmallVec;

use super::Shard;
use super::ask::Ask;
use super::hold::{HeldLine, HeldLines, Part};
use super::skus::Sku;
use super::stop::{Stop, Try};
use crate::id::Id;
use crate::reply::{OverLimit, Refusal, RefusedLine, Short};

/// How many due ends are freed before looking again.
const STEP: usize = 32;

/// A cart whose SKUs are known.
pub(super) struct Cart<'a> {
    pub(super) owner: &'a Id,
    /// Sorted.
    pub(super) asks: &'a [Ask<'a>],
    /// Lines of the reservation that this one takes the place of: they count as free.
    pub(super) freed: HeldLines,
}

/// What came of one look, and whether it would be the same with any more units free.
struct Look {
    settled: bool,
    result: Result<HeldLines, Refusal>,
}

impl Shard {
    /// Checks owner limits and stock, and allocates. Due ends are freed as far as the answer depends on them.
    pub(super) fn plan(&mut self, cart: &Cart<'_>) -> Try<HeldLines> {
        loop {
            let look = self.look(cart)?;
            if look.settled || self.free_due(STEP)? == 0 {
                return look.result.map_err(Stop::from);
            }
        }
    }

    fn look(&self, cart: &Cart<'_>) -> Try<Look> {
        if let Some(over) = self.over_limit(cart)? {
            return Ok(Look {
                settled: false,
                result: Err(Refusal::LimitExceeded(over)),
            });
        }
        let mut settled = true;
        let mut short = Vec::new();
        let mut lines = HeldLines::new();
        for group in cart.asks.chunk_by(|one, two| one.sku == two.sku) {
            let Some(first) = group.first() else { continue };
            let sku = self.skus.get(first.slot)?;
            let mut left = Left::of(sku, first.slot, &cart.freed);
            // Sorted: the line without a location stands first, and takes last.
            let (free, pinned) = match first.location {
                None => (Some(first), group.get(1..).unwrap_or_default()),
                Some(_) => (None, group),
            };
            let mut found = SmallVec::<[HeldLine; 1]>::new();
            for ask in pinned {
                match left.take_pinned(sku, ask) {
                    Ok(line) => found.push(line),
                    Err(available) => short.push(shortage(ask, available)),
                }
            }
            if let Some(ask) = free {
                match left.take_free(sku, ask, &mut settled) {
                    Ok(line) => found.insert(0, line),
                    Err(available) => short.push(shortage(ask, available)),
                }
            }
            lines.append(&mut found);
        }
        if short.is_empty() {
            return Ok(Look {
                settled,
                result: Ok(lines),
            });
        }
        short.sort_by_key(|row| row.index);
        Ok(Look {
            settled: false,
            result: Err(Refusal::InsufficientStock(short)),
        })
    }

    fn over_limit(&self, cart: &Cart<'_>) -> Try<Option<Vec<RefusedLine<OverLimit>>>> {
        let mut over = Vec::new();
        for group in cart.asks.chunk_by(|one, two| one.sku == two.sku) {
            let Some(first) = group.iter().min_by_key(|ask| ask.index) else {
                continue;
            };
            let sku = self.skus.get(first.slot)?;
            let Some(limit) = sku.limit_per_owner else {
                continue;
            };
            let freed = cart
                .freed
                .iter()
                .filter(|line| line.sku == first.slot && line.era == sku.era)
                .fold(0_u64, |sum, line| sum.saturating_add(line.quantity()));
            let used = self.used(cart.owner, sku).saturating_sub(freed);
            let asked = group
                .iter()
                .fold(0_u64, |sum, ask| sum.saturating_add(ask.quantity));
            if used.saturating_add(asked) > limit {
                over.push(first.row(OverLimit { asked, used, limit }));
            }
        }
        over.sort_by_key(|row| row.index);
        Ok((!over.is_empty()).then_some(over))
    }

    /// An owner's usage of a SKU in its present era.
    pub(super) fn used(&self, owner: &Id, sku: &Sku) -> u64 {
        self.owners
            .find(owner)
            .map_or(0, |owner| self.usages.get(sku.usage_era, owner))
    }
}

fn shortage(ask: &Ask<'_>, available: u64) -> RefusedLine<Short> {
    ask.row(Short {
        asked: ask.quantity,
        available,
    })
}

/// What is left at each location of a SKU while a cart is being allocated.
struct Left(SmallVec<[u64; 4]>);

impl Left {
    fn of(sku: &Sku, slot: u32, freed: &HeldLines) -> Self {
        let mut left: SmallVec<[u64; 4]> = SmallVec::with_capacity(sku.places.len());
        for (number, place) in (0_u8..).zip(&sku.places) {
            let mut counters = place.counters;
            for line in freed.iter().filter(|line| line.sku == slot) {
                for part in line.parts.iter().filter(|part| part.place == number) {
                    counters.reserved = counters.reserved.saturating_sub(part.quantity);
                }
            }
            left.push(counters.available());
        }
        Self(left)
    }

    fn at(&self, place: u8) -> u64 {
        self.0.get(usize::from(place)).copied().unwrap_or(0)
    }

    fn take(&mut self, place: u8, units: u64) -> Part {
        if let Some(left) = self.0.get_mut(usize::from(place)) {
            *left = left.saturating_sub(units);
        }
        Part {
            place,
            quantity: units,
            confirmed: 0,
            returned: 0,
        }
    }

    /// A line that names its location; otherwise how much it could have had.
    fn take_pinned(&mut self, sku: &Sku, ask: &Ask<'_>) -> Result<HeldLine, u64> {
        let place = ask
            .location
            .and_then(|location| sku.find(location))
            .ok_or(0_u64)?;
        if self.at(place) < ask.quantity {
            return Err(self.at(place));
        }
        Ok(HeldLine {
            sku: ask.slot,
            era: sku.era,
            asked: Some(place),
            parts: SmallVec::from_buf([self.take(place, ask.quantity)]),
        })
    }

    /// A line that leaves it to the allocation order. With more units free it would come out the same only if the
    /// first location gives all of it.
    fn take_free(&mut self, sku: &Sku, ask: &Ask<'_>, settled: &mut bool) -> Result<HeldLine, u64> {
        let order = sku.order();
        let mut parts = SmallVec::new();
        let whole = (0_usize..)
            .zip(order)
            .find(|(_, place)| self.at(**place) >= ask.quantity);
        if let Some((rank, place)) = whole {
            *settled &= rank == 0;
            parts.push(self.take(*place, ask.quantity));
        } else {
            *settled = false;
            let all = order.iter().map(|place| self.at(*place));
            if !sku.split {
                return Err(all.max().unwrap_or(0));
            }
            let all = all.fold(0_u64, u64::saturating_add);
            if all < ask.quantity {
                return Err(all);
            }
            let mut missing = ask.quantity;
            for place in order {
                let units = missing.min(self.at(*place));
                if units > 0 {
                    parts.push(self.take(*place, units));
                    missing = missing.saturating_sub(units);
                }
            }
        }
        Ok(HeldLine {
            sku: ask.slot,
            era: sku.era,
            asked: None,
            parts,
        })
    }
}

//! The one place where counters and owner usage change: everything is checked, then everything is written.

use smallvec::SmallVec;

use super::Shard;
use super::hold::HeldLine;
use super::stop::{Stop, Try};
use crate::entry::Move;
use crate::id::QUANTITY_MAX;
use crate::record::Counters;

/// A change of the counters of one (SKU, location).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shift {
    pub(super) sku: u32,
    pub(super) place: u8,
    pub(super) on_hand: i64,
    pub(super) reserved: i64,
    pub(super) sold: i64,
    /// The new safety stock, if it changes.
    pub(super) safety_stock: Option<u64>,
}

/// A change of an owner's usage of a SKU in one of its eras.
#[derive(Clone, Copy, Debug)]
struct UseShift {
    sku: u32,
    era: u32,
    owner: u32,
    delta: i64,
}

/// Changes that happen together or not at all.
#[derive(Debug, Default)]
pub(super) struct Load {
    shifts: SmallVec<[Shift; 1]>,
    uses: SmallVec<[UseShift; 1]>,
}

pub(super) type Moves = SmallVec<[Move; 1]>;

/// A count as a change. Counts are at most 2^53-1; anything larger fails the checks of `carry`.
pub(super) fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

impl Load {
    /// A change that is a move even when it changes no counter.
    pub(super) fn shift(&mut self, shift: Shift) {
        self.shifts.push(shift);
    }

    /// Units of a reservation's line; no move where nothing changes.
    pub(super) fn units(&mut self, sku: u32, place: u8, on_hand: i64, reserved: i64, sold: i64) {
        if (on_hand, reserved, sold) != (0, 0, 0) {
            self.shifts.push(Shift {
                sku,
                place,
                on_hand,
                reserved,
                sold,
                safety_stock: None,
            });
        }
    }

    /// Usage of a line; lines come sorted by SKU.
    pub(super) fn usage(&mut self, line: &HeldLine, owner: u32, delta: i64) {
        if delta == 0 {
            return;
        }
        match self.uses.last_mut() {
            Some(last) if (last.sku, last.era) == (line.sku, line.era) => {
                last.delta = last.delta.saturating_add(delta);
            }
            Some(_) | None => self.uses.push(UseShift {
                sku: line.sku,
                era: line.era,
                owner,
                delta,
            }),
        }
    }

    /// All units of a pending reservation go back.
    pub(super) fn release(lines: &[HeldLine], owner: u32) -> Self {
        let mut load = Self::default();
        for line in lines {
            for part in &line.parts {
                load.units(line.sku, part.place, 0, signed(part.quantity).saturating_neg(), 0);
            }
            load.usage(line, owner, signed(line.quantity()).saturating_neg());
        }
        load
    }
}

fn after(before: Counters, shift: &Shift) -> Try<Counters> {
    let sum = |count: u64, delta: i64| count.checked_add_signed(delta);
    let counters = (|| {
        Some(Counters {
            on_hand: sum(before.on_hand, shift.on_hand)?,
            reserved: sum(before.reserved, shift.reserved)?,
            sold: sum(before.sold, shift.sold)?,
            safety_stock: shift.safety_stock.unwrap_or(before.safety_stock),
            version: before.version.checked_add(1)?,
        })
    })()
    .ok_or(Stop::Corrupt("a counter would leave its range"))?;
    let supply = counters.on_hand.saturating_add(counters.sold);
    if counters.reserved > counters.on_hand || supply > QUANTITY_MAX {
        return Err(Stop::Corrupt("counters would contradict each other"));
    }
    Ok(counters)
}

impl Shard {
    /// Makes the changes, or none of them.
    pub(super) fn carry(&mut self, mut load: Load) -> Try<Moves> {
        if load.shifts.len() > 1 {
            self.merge(&mut load)?;
        }
        let mut moves = Moves::new();
        for shift in &load.shifts {
            let sku = self.skus.get(shift.sku)?;
            let place = sku.place(shift.place)?;
            moves.push(Move {
                sku: sku.name.clone(),
                location: place.name.clone(),
                on_hand: shift.on_hand,
                reserved: shift.reserved,
                sold: shift.sold,
                after: after(place.counters, shift)?,
            });
        }
        let mut used: SmallVec<[(u32, u32, u64); 1]> = SmallVec::new();
        for change in &load.uses {
            let sku = self.skus.get(change.sku)?;
            // Undo touches usage only in the era in which it was counted.
            if sku.era == change.era {
                let after = self.usages.after(sku.usage_era, change.owner, change.delta)?;
                used.push((sku.usage_era, change.owner, after));
            }
        }
        for (shift, change) in load.shifts.iter().zip(&moves) {
            let sku = self.skus.get_mut(shift.sku)?;
            if let Some(place) = sku.places.get_mut(usize::from(shift.place)) {
                place.counters = change.after;
            }
        }
        for (era, owner, used) in used {
            self.usages.set(&mut self.owners, era, owner, used)?;
        }
        Ok(moves)
    }

    // At most one shift per (SKU, location), in the order of their names.
    fn merge(&self, load: &mut Load) -> Try<()> {
        let mut named = SmallVec::<[_; 8]>::new();
        for shift in &load.shifts {
            let sku = self.skus.get(shift.sku)?;
            named.push(((&sku.name, &sku.place(shift.place)?.name), *shift));
        }
        named.sort_by(|one, two| one.0.cmp(&two.0));
        named.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1.on_hand = first.1.on_hand.saturating_add(next.1.on_hand);
                first.1.reserved = first.1.reserved.saturating_add(next.1.reserved);
                first.1.sold = first.1.sold.saturating_add(next.1.sold);
            }
            same
        });
        load.shifts = named.into_iter().map(|(_, shift)| shift).collect();
        Ok(())
    }
}

//! Operators' commands on units: count, adjust, transfer; and what all stock commands share.

use alloc::format;
use alloc::vec;
use core::fmt::Display;

use super::carry::{Load, Moves, Shift, signed};
use super::lookup::Call;
use super::skus::Sku;
use super::stop::{Stop, Try, field, invalid};
use super::turn::By;
use super::{Past, Shard};
use crate::command::{Adjust, Count, Expect, Set, Transfer};
use crate::entry::{Change, StockVerb};
use crate::id::{Id, LOCATIONS_MAX, QUANTITY_MAX, Reason};
use crate::record::{Counters, Digest, Settings, StockRecord};
use crate::reply::{Conflict, Decision, DoneCode, Refusal, RefusedLine};

use super::digest;

/// What every stock command carries.
pub(super) struct StockCommand<'a> {
    pub(super) verb: StockVerb,
    pub(super) id: &'a Id,
    pub(super) sku: &'a Id,
    pub(super) digest: Digest,
    pub(super) reason: &'a Reason,
}

impl Shard {
    pub(super) fn show_stock(&mut self, call: &Call<'_>, sku: &Id) -> Try<Decision> {
        let slot = self.known_sku(call, sku)?;
        self.free_all_due()?;
        let needs = self.skus.get(slot)?.changed_seq;
        self.stock(slot, DoneCode::Ok, None, needs)
    }

    pub(super) fn set(&mut self, call: &mut Call<'_>, set: &Set) -> Try<Decision> {
        let command = StockCommand {
            verb: StockVerb::Set,
            id: &set.id,
            sku: &set.sku,
            digest: digest::set(set),
            reason: &set.reason,
        };
        if let Some(replay) = self.stock_replay(call, &command)? {
            return Ok(replay);
        }
        check_set(set)?;
        let found = self.skus.find(&call.command.tenant, &set.sku);
        match found {
            Some(slot) => self.check_revision(slot, set.expect)?,
            None => {
                if let Expect::Revision(expected) = set.expect {
                    return Err(conflict(&set.sku, Some(expected), None));
                }
            }
        }
        self.free_all_due()?;
        let mut before = Counters::default();
        let mut place = None;
        if let Some(slot) = found {
            let sku = self.skus.get(slot)?;
            place = sku.find(&set.location);
            if let Some(place) = place {
                before = sku.place(place)?.counters;
            } else if sku.places.len() >= LOCATIONS_MAX {
                return Err(Stop::from(no_more_locations(&set.location)));
            }
        }
        let delta = counted(set, place.is_some(), before)?;
        let created = found.is_none();
        let slot = match found {
            Some(slot) => slot,
            None => self.create_sku(&call.command.tenant, &set.sku)?,
        };
        let place = if let Some(place) = place {
            place
        } else {
            let sku = self.skus.get_mut(slot)?;
            sku.add(set.location.clone(), Counters::default())?
        };
        let mut load = Load::default();
        load.shift(Shift {
            sku: slot,
            place,
            on_hand: delta,
            ..Shift::default()
        });
        self.stock_done(call, &command, slot, load, created)
    }

    pub(super) fn adjust(&mut self, call: &mut Call<'_>, adjust: &Adjust) -> Try<Decision> {
        let command = StockCommand {
            verb: StockVerb::Adjust,
            id: &adjust.id,
            sku: &adjust.sku,
            digest: digest::adjust(adjust),
            reason: &adjust.reason,
        };
        if let Some(replay) = self.stock_replay(call, &command)? {
            return Ok(replay);
        }
        check_adjust(adjust)?;
        let slot = self.known_sku(call, &adjust.sku)?;
        self.check_revision(slot, adjust.expect)?;
        self.free_all_due()?;
        let sku = self.skus.get(slot)?;
        let place = known_place(sku, &adjust.location)?;
        let before = sku.place(place)?.counters;
        adjusted(adjust, before)?;
        let mut load = Load::default();
        load.shift(Shift {
            sku: slot,
            place,
            on_hand: adjust.delta,
            ..Shift::default()
        });
        self.stock_done(call, &command, slot, load, false)
    }

    pub(super) fn transfer(&mut self, call: &mut Call<'_>, transfer: &Transfer) -> Try<Decision> {
        let command = StockCommand {
            verb: StockVerb::Transfer,
            id: &transfer.id,
            sku: &transfer.sku,
            digest: digest::transfer(transfer),
            reason: &transfer.reason,
        };
        if let Some(replay) = self.stock_replay(call, &command)? {
            return Ok(replay);
        }
        check_transfer(transfer)?;
        let slot = self.known_sku(call, &transfer.sku)?;
        self.check_revision(slot, transfer.expect)?;
        self.free_all_due()?;
        let sku = self.skus.get(slot)?;
        let units = signed(transfer.quantity);
        let mut load = Load::default();
        for (location, delta) in [(&transfer.from, units.saturating_neg()), (&transfer.to, units)] {
            let place = known_place(sku, location)?;
            let before = sku.place(place)?.counters;
            transferred(transfer, location, before)?;
            load.shift(Shift {
                sku: slot,
                place,
                on_hand: delta,
                ..Shift::default()
            });
        }
        self.stock_done(call, &command, slot, load, false)
    }

    // ---- what all stock commands share ----

    pub(super) fn known_sku(&self, call: &Call<'_>, sku: &Id) -> Try<u32> {
        let found = self.skus.find(&call.command.tenant, sku);
        found.ok_or_else(|| Stop::from(Refusal::UnknownSku(vec![row(sku, None, ())])))
    }

    /// The answer to a stock command that was granted before.
    pub(super) fn stock_replay(
        &mut self,
        call: &mut Call<'_>,
        command: &StockCommand<'_>,
    ) -> Try<Option<Decision>> {
        let Some(past) = self.find_stock_command(call, command.id)? else {
            return Ok(None);
        };
        if past.record.digest != command.digest {
            return Err(Stop::Refused(Refusal::IdReused, past.seq));
        }
        let slot = self.known_sku(call, &past.record.sku)?;
        self.free_all_due()?;
        // Shows the SKU as it is now. Only its counters may be ahead of the disk.
        let needs = past.seq.max(self.skus.get(slot)?.changed_seq);
        self.stock(slot, DoneCode::Replayed, Some(past.record.revision), needs)
            .map(Some)
    }

    pub(super) fn check_revision(&self, slot: u32, expect: Expect) -> Try<()> {
        let sku = self.skus.get(slot)?;
        match expect {
            Expect::Any => Ok(()),
            Expect::Revision(expected) if expected == sku.revision => Ok(()),
            Expect::Revision(expected) => Err(conflict(&sku.name, Some(expected), Some(sku))),
            Expect::Absent => Err(conflict(&sku.name, None, Some(sku))),
        }
    }

    pub(super) fn create_sku(&mut self, tenant: &Id, name: &Id) -> Try<u32> {
        let number = self.tenants.intern(tenant)?;
        // The slot that the SKU will get: SKUs are never removed.
        let slot = u32::try_from(self.skus.len()).map_err(|_| Stop::Corrupt("more than 2^32 SKUs"))?;
        let era = self.usages.open_era(slot)?;
        self.skus
            .insert(Sku::new(number, tenant.clone(), name.clone(), era))
    }

    /// Carries a granted stock command out: moves, revision, record, effect.
    pub(super) fn stock_done(
        &mut self,
        call: &Call<'_>,
        command: &StockCommand<'_>,
        slot: u32,
        load: Load,
        created: bool,
    ) -> Try<Decision> {
        let moves: Moves = self.carry(load)?;
        let (at, seq) = (self.clock, self.chain.next_seq());
        let sku = self.skus.get_mut(slot)?;
        sku.revision = sku.revision.saturating_add(1);
        sku.changed_seq = seq;
        let revision = sku.revision;
        let settings: Option<Settings> =
            (created || command.verb == StockVerb::Configure).then(|| sku.settings());
        let record = StockRecord {
            tenant: call.command.tenant.clone(),
            id: command.id.clone(),
            digest: command.digest,
            sku: command.sku.clone(),
            revision,
            at,
        };
        self.keep_command(Past {
            record: record.clone(),
            seq,
        })?;
        let by = By {
            actor: &call.command.actor,
            reason: command.reason,
        };
        let change = Change::Stock {
            verb: command.verb,
            record,
            settings,
            created,
        };
        self.effect(by, change, moves);
        self.stock(slot, DoneCode::Ok, Some(revision), seq)
    }
}

pub(super) fn row<T>(sku: &Id, location: Option<&Id>, detail: T) -> RefusedLine<T> {
    RefusedLine {
        index: 0,
        sku: sku.clone(),
        location: location.cloned(),
        detail,
    }
}

// The revision that it shows must be on disk.
fn conflict(name: &Id, expected: Option<u64>, found: Option<&Sku>) -> Stop {
    let detail = Conflict {
        expected,
        found: found.map(|sku| sku.revision),
    };
    let refusal = Refusal::RevisionConflict(vec![row(name, None, detail)]);
    Stop::Refused(refusal, found.map_or(0, |sku| sku.changed_seq))
}

pub(super) fn known_place(sku: &Sku, location: &Id) -> Try<u8> {
    sku.find(location)
        .ok_or_else(|| Stop::from(Refusal::UnknownSku(vec![row(&sku.name, Some(location), ())])))
}

// What a count changes on_hand by.
pub(super) fn counted(set: &Set, exists: bool, before: Counters) -> Try<i64> {
    let target = signed(set.target);
    let sold_since = match set.count {
        Count::Create if exists => {
            return Err(invalid(
                "sold_seen",
                "none",
                "the sold figure seen when the units were counted, or force, since the location exists",
            ));
        }
        Count::Seen { sold_seen } if sold_seen > before.sold => {
            return Err(invalid("sold_seen", sold_seen, format!("0..={}", before.sold)));
        }
        Count::Seen { sold_seen } => signed(before.sold.saturating_sub(sold_seen)),
        Count::Create | Count::Force => 0,
    };
    let result = target.saturating_sub(sold_since);
    let delta = result.saturating_sub(signed(before.on_hand));
    check_on_hand("on_hand", &set.target, &set.location, before, delta)?;
    Ok(delta)
}

// Whether on_hand may change so: not below what is reserved, and supply stays in its range.
fn check_on_hand(name: &str, found: &dyn Display, location: &Id, before: Counters, delta: i64) -> Try<()> {
    let result = signed(before.on_hand).saturating_add(delta);
    if result < signed(before.reserved) {
        return Err(Stop::from(Refusal::BelowReserved {
            location: location.clone(),
            result,
            reserved: before.reserved,
        }));
    }
    let supply = result.saturating_add(signed(before.sold));
    if supply > signed(QUANTITY_MAX) {
        return Err(invalid(
            name,
            found,
            format!("on_hand + sold of {location} at most {QUANTITY_MAX}; it would be {supply}"),
        ));
    }
    Ok(())
}

pub(super) fn check_set(set: &Set) -> Try<()> {
    if set.target > QUANTITY_MAX {
        return Err(invalid("on_hand", set.target, format!("0..={QUANTITY_MAX}")));
    }
    Ok(())
}

pub(super) fn no_more_locations(location: &Id) -> Refusal {
    Refusal::Invalid(vec![field(
        "location",
        location,
        format!("a location that exists: a SKU has at most {LOCATIONS_MAX}"),
    )])
}

pub(super) fn check_adjust(adjust: &Adjust) -> Try<()> {
    if adjust.delta == 0 || adjust.delta.unsigned_abs() > QUANTITY_MAX {
        return Err(invalid(
            "delta",
            adjust.delta,
            format!("-{QUANTITY_MAX}..=-1, 1..={QUANTITY_MAX}"),
        ));
    }
    Ok(())
}

pub(super) fn adjusted(adjust: &Adjust, before: Counters) -> Try<()> {
    check_on_hand("delta", &adjust.delta, &adjust.location, before, adjust.delta)
}

pub(super) fn check_transfer(transfer: &Transfer) -> Try<()> {
    if transfer.quantity == 0 || transfer.quantity > QUANTITY_MAX {
        return Err(invalid(
            "quantity",
            transfer.quantity,
            format!("1..={QUANTITY_MAX}"),
        ));
    }
    if transfer.from == transfer.to {
        return Err(invalid("to", &transfer.to, "another location than \"from\""));
    }
    Ok(())
}

pub(super) fn transferred(transfer: &Transfer, location: &Id, before: Counters) -> Try<()> {
    let units = signed(transfer.quantity);
    let delta = if *location == transfer.from {
        units.saturating_neg()
    } else {
        units
    };
    check_on_hand("quantity", &transfer.quantity, location, before, delta)
}

//! Operators' settings of a SKU.

use alloc::format;
use alloc::vec::Vec;
use smallvec::SmallVec;

use super::Shard;
use super::carry::{Load, Shift};
use super::digest;
use super::lookup::Call;
use super::stock::{StockCommand, known_place};
use super::stop::{Stop, Try, field, invalid};
use crate::command::{Changes, Configure};
use crate::entry::StockVerb;
use crate::id::{Id, Millis, QUANTITY_MAX};
use crate::reply::{Decision, InvalidField, Refusal};

impl Shard {
    pub(super) fn configure(&mut self, call: &mut Call<'_>, configure: &Configure) -> Try<Decision> {
        let command = StockCommand {
            verb: StockVerb::Configure,
            id: &configure.id,
            sku: &configure.sku,
            digest: digest::configure(configure),
            reason: &configure.reason,
        };
        if let Some(replay) = self.stock_replay(call, &command)? {
            return Ok(replay);
        }
        let changes = &configure.changes;
        check_values(changes)?;
        let slot = self.known_sku(call, &configure.sku)?;
        self.check_revision(slot, configure.expect)?;
        self.free_all_due()?;
        let sku = self.skus.get(slot)?;
        check_window(
            changes.opens_at.unwrap_or(sku.opens_at),
            changes.closes_at.unwrap_or(sku.closes_at),
        )?;
        let mut load = Load::default();
        for (location, floor) in &changes.safety_stock {
            load.shift(Shift {
                sku: slot,
                place: known_place(sku, location)?,
                safety_stock: Some(*floor),
                ..Shift::default()
            });
        }
        let order = match &changes.order {
            None => None,
            Some(order) => {
                let places: Try<SmallVec<[u8; 8]>> =
                    order.iter().map(|location| known_place(sku, location)).collect();
                Some(places?)
            }
        };
        let era = if changes.reset_usage {
            let next = sku.era.checked_add(1).ok_or(Stop::Corrupt("era"))?;
            self.usages.close_era(sku.usage_era);
            Some((next, self.usages.open_era(slot)?))
        } else {
            None
        };
        let sku = self.skus.get_mut(slot)?;
        if let Some((era, usage_era)) = era {
            (sku.era, sku.usage_era) = (era, usage_era);
        }
        if let Some(order) = order {
            sku.reorder(&order);
        }
        sku.limit_per_owner = changes.limit_per_owner.unwrap_or(sku.limit_per_owner);
        sku.opens_at = changes.opens_at.unwrap_or(sku.opens_at);
        sku.closes_at = changes.closes_at.unwrap_or(sku.closes_at);
        sku.paused = changes.paused.unwrap_or(sku.paused);
        sku.split = changes.split.unwrap_or(sku.split);
        if let Some(group) = &changes.group {
            sku.group.clone_from(group);
        }
        self.stock_done(call, &command, slot, load, false)
    }
}

pub(super) fn check_values(changes: &Changes) -> Try<()> {
    let mut wrong = Vec::new();
    let locations: Vec<&Id> = changes
        .safety_stock
        .iter()
        .map(|(location, _)| location)
        .collect();
    check_distinct("safety_stock", &locations, &mut wrong);
    for (location, floor) in &changes.safety_stock {
        if *floor > QUANTITY_MAX {
            let name = format!("safety_stock.{location}");
            wrong.push(field(name, floor, format!("0..={QUANTITY_MAX}")));
        }
    }
    if let Some(Some(limit)) = changes.limit_per_owner
        && !(1..=QUANTITY_MAX).contains(&limit)
    {
        wrong.push(field("limit_per_owner", limit, format!("1..={QUANTITY_MAX}")));
    }
    if let Some(order) = &changes.order {
        check_distinct("order", &order.iter().collect::<Vec<_>>(), &mut wrong);
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Stop::from(Refusal::Invalid(wrong)))
    }
}

fn check_distinct(name: &str, locations: &[&Id], wrong: &mut Vec<InvalidField>) {
    let mut sorted = locations.to_vec();
    sorted.sort_unstable();
    for pair in sorted.windows(2) {
        if let [one, two] = pair
            && one == two
        {
            wrong.push(field(name, one, "each location once"));
        }
    }
}

// Opens before it closes, when both are set.
pub(super) fn check_window(opens_at: Option<Millis>, closes_at: Option<Millis>) -> Try<()> {
    match (opens_at, closes_at) {
        (Some(opens_at), Some(closes_at)) if closes_at <= opens_at => Err(invalid(
            "closes_at",
            closes_at,
            format!("later than opens_at, {opens_at}"),
        )),
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

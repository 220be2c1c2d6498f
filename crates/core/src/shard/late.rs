//! Confirm after the end: the money came late. The units are taken again, from where they were, if they are there.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::ask::Picked;
use super::carry::{Load, signed};
use super::confirm::NO_REASON;
use super::hold::HeldLines;
use super::stop::{Stop, Try};
use super::turn::Turn;
use super::view::done;
use super::{LateConfirm, Shard};
use crate::command::Command;
use crate::entry::Verb;
use crate::id::Id;
use crate::record::Status;
use crate::reply::{Decision, DoneCode, LateReason, OverLimit, Refusal, RefusedLine, Short};

/// How many due ends are freed before looking again.
const STEP: usize = 32;

impl Shard {
    pub(super) fn confirm_late(&mut self, command: &Command, slot: u32, picks: &[Picked]) -> Try<Decision> {
        let mut lines = self.hold(slot)?.lines();
        for (line, picked) in lines.iter_mut().zip(picks) {
            line.confirm(picked.units);
        }
        let obstacle = match self.rules.late_confirm {
            LateConfirm::Reject => Some(LateReason::Over),
            LateConfirm::Revive => loop {
                let obstacle = self.obstacle(slot, &lines, picks)?;
                if obstacle.is_none() || self.free_due(STEP)? == 0 {
                    break obstacle;
                }
            },
        };
        match obstacle {
            Some(reason) => Err(self.paid_not_fulfilled(command, slot, reason)),
            None => self.revive(command, slot, lines),
        }
    }

    // Why the units cannot be taken again.
    fn obstacle(&self, slot: u32, lines: &HeldLines, picks: &[Picked]) -> Try<Option<LateReason>> {
        let owner = self.owners.get(self.hold(slot)?.owner)?;
        let mut over = Vec::new();
        let mut short = Vec::new();
        // What lines before have taken: (SKU, location, units).
        let mut taken: Vec<(u32, u8, u64)> = Vec::new();
        let with_picks: Vec<_> = lines.iter().zip(picks).collect();
        for group in with_picks.chunk_by(|one, two| one.0.sku == two.0.sku) {
            let asked = group
                .iter()
                .fold(0_u64, |sum, (line, _)| sum.saturating_add(line.confirmed()));
            let first = group
                .iter()
                .filter(|(line, _)| line.confirmed() > 0)
                .min_by_key(|(_, picked)| picked.index);
            let Some((first, picked)) = first else { continue };
            let sku = self.skus.get(first.sku)?;
            if let Some(limit) = sku.limit_per_owner {
                let used = self.used(owner, sku);
                if used.saturating_add(asked) > limit {
                    over.push(self.late_row(first, picked.index, OverLimit { asked, used, limit })?);
                }
            }
            for (line, picked) in group {
                let mut available = 0_u64;
                let before = taken.len();
                for part in &line.parts {
                    let gone = taken
                        .iter()
                        .filter(|(sku, place, _)| (*sku, *place) == (line.sku, part.place))
                        .fold(0_u64, |sum, (_, _, units)| sum.saturating_add(*units));
                    let there = sku.place(part.place)?.counters.available().saturating_sub(gone);
                    let had = there.min(part.confirmed);
                    available = available.saturating_add(had);
                    taken.push((line.sku, part.place, had));
                }
                if available < line.confirmed() {
                    taken.truncate(before);
                    let asked = line.confirmed();
                    short.push(self.late_row(line, picked.index, Short { asked, available })?);
                }
            }
        }
        if !over.is_empty() {
            over.sort_by_key(|row| row.index);
            return Ok(Some(LateReason::Limit(over)));
        }
        short.sort_by_key(|row| row.index);
        Ok((!short.is_empty()).then_some(LateReason::Short(short)))
    }

    fn late_row<T>(&self, line: &super::hold::HeldLine, index: u32, detail: T) -> Try<RefusedLine<T>> {
        let sku = self.skus.get(line.sku)?;
        let location: Option<Id> = match line.asked {
            None => None,
            Some(place) => Some(sku.place(place)?.name.clone()),
        };
        Ok(RefusedLine {
            index,
            sku: sku.name.clone(),
            location,
            detail,
        })
    }

    fn revive(&mut self, command: &Command, slot: u32, mut lines: HeldLines) -> Try<Decision> {
        let owner = self.hold(slot)?.owner;
        let mut load = Load::default();
        for line in &mut lines {
            // Counted anew, in the present era.
            line.era = self.skus.get(line.sku)?.era;
            for part in &line.parts {
                let sold = signed(part.confirmed);
                load.units(line.sku, part.place, sold.saturating_neg(), 0, sold);
            }
            load.usage(line, owner, signed(line.confirmed()));
        }
        let turn = Turn::new(Verb::Revive, Status::Confirmed, lines);
        let (reservation, seq) = self.turn(slot, Self::by(command, &NO_REASON), turn, load)?;
        Ok(done(DoneCode::Ok, reservation, seq))
    }

    // Noted once per id, so that one event goes out.
    fn paid_not_fulfilled(&mut self, command: &Command, slot: u32, reason: LateReason) -> Stop {
        self.note(command, slot, reason).unwrap_or_else(|stop| stop)
    }

    fn note(&mut self, command: &Command, slot: u32, reason: LateReason) -> Try<Stop> {
        let hold = self.hold(slot)?;
        if !hold.noted {
            let mut turn = Turn::new(Verb::Note, hold.status, hold.lines());
            turn.noted = true;
            self.turn(slot, Self::by(command, &NO_REASON), turn, Load::default())?;
        }
        let reservation = Box::new(self.reservation(slot)?);
        let refusal = Refusal::Expired { reservation, reason };
        Ok(Stop::Refused(refusal, self.hold(slot)?.seq))
    }
}

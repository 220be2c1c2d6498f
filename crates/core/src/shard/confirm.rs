//! Confirm: reserved units become sold ones, whole or in part; also in place of a reserve that was lost.

use alloc::vec::Vec;
use smallvec::SmallVec;

use super::Shard;
use super::ask::{self, Picked, Picks};
use super::carry::{Load, signed};
use super::hold::{HeldLine, HeldLines};
use super::lookup::{Call, Spot};
use super::plan::Cart;
use super::stop::{Stop, Try};
use super::table::{Step, Wish, next};
use super::turn::{Grant, Turn};
use super::view::done;
use crate::command::{Confirm, ConfirmPayload, Mode, PickLine};
use crate::entry::Verb;
use crate::id::{Id, Reason};
use crate::record::{Digest, Status};
use crate::reply::{Decision, DoneCode, Refusal};

impl Shard {
    pub(super) fn confirm(&mut self, call: &mut Call<'_>, confirm: &Confirm) -> Try<Decision> {
        let spot = self.find_reservation(call, &confirm.id)?;
        let wish = match (&confirm.payload, spot.slot) {
            (None, _) => Wish::Confirm,
            (Some(_), None) => Wish::ConfirmPayload,
            (Some(payload), Some(slot)) => {
                let hold = self.hold(slot)?;
                let asks = ask::sum(&payload.lines);
                if ask::digest_of(hold.mode, &payload.owner, &asks) == Some(hold.digest()) {
                    Wish::ConfirmPayload
                } else {
                    Wish::ConfirmOther
                }
            }
        };
        let step = next(wish, self.state(spot)?);
        match (spot.slot, &confirm.payload) {
            (Some(slot), _) if step == Step::Confirm => self.confirm_pending(call, confirm, slot),
            (Some(slot), _) if step == Step::Compare => self.compare(confirm, slot),
            (Some(slot), _) if step == Step::ConfirmLate => {
                let picks = self.picks(slot, confirm.lines.as_deref())?;
                self.confirm_late(call.command, slot, &picks)
            }
            (None, Some(payload)) if step == Step::Grant => {
                self.confirm_unheard(call, confirm, payload, spot)
            }
            _ => Err(self.refusal(step, spot.slot, &confirm.id)),
        }
    }

    /// What a list picks of each line; no list picks everything.
    fn picks(&self, slot: u32, lines: Option<&[PickLine]>) -> Try<Picks> {
        let held = self.hold(slot)?.lines();
        let Some(picks) = lines else {
            return Ok((0..)
                .zip(&held)
                .map(|(index, line)| Picked {
                    units: line.quantity(),
                    index,
                })
                .collect());
        };
        self.pick_of(&held, picks, HeldLine::quantity)
    }

    /// Matches picks with the lines of a reservation.
    pub(super) fn pick_of(
        &self,
        held: &HeldLines,
        picks: &[PickLine],
        room: impl Fn(&HeldLine) -> u64,
    ) -> Try<Picks> {
        let mut lines: Vec<(&Id, Option<&Id>, u64)> = Vec::with_capacity(held.len());
        for line in held {
            let sku = self.skus.get(line.sku)?;
            let asked = match line.asked {
                None => None,
                Some(place) => Some(&sku.place(place)?.name),
            };
            lines.push((&sku.name, asked, room(line)));
        }
        ask::pick(&lines, picks)
    }

    fn confirm_pending(&mut self, call: &Call<'_>, confirm: &Confirm, slot: u32) -> Try<Decision> {
        let picks = self.picks(slot, confirm.lines.as_deref())?;
        let hold = self.hold(slot)?;
        let owner = hold.owner;
        let mut lines = hold.lines();
        let mut load = Load::default();
        for (line, picked) in lines.iter_mut().zip(&picks) {
            line.confirm(picked.units);
            for part in &line.parts {
                let sold = signed(part.confirmed);
                let reserved = signed(part.quantity).saturating_neg();
                load.units(line.sku, part.place, sold.saturating_neg(), reserved, sold);
            }
            let released = line.quantity().saturating_sub(line.confirmed());
            load.usage(line, owner, signed(released).saturating_neg());
        }
        let turn = Turn::new(Verb::Confirm, Status::Confirmed, lines);
        let by = Self::by(call.command, &NO_REASON);
        let (reservation, seq) = self.turn(slot, by, turn, load)?;
        Ok(done(DoneCode::Ok, reservation, seq))
    }

    // Confirmed before: the same lines are a replay.
    fn compare(&self, confirm: &Confirm, slot: u32) -> Try<Decision> {
        let picks = self.picks(slot, confirm.lines.as_deref())?;
        let lines = self.hold(slot)?.lines();
        let same = lines
            .iter()
            .zip(&picks)
            .all(|(line, picked)| line.confirmed() == picked.units);
        if same {
            return self.shown(slot, DoneCode::Replayed);
        }
        Err(self.refusal(Step::AlreadyConfirmed, Some(slot), &confirm.id))
    }

    // The reserve never came; its payload did, with the confirm: both in one step.
    fn confirm_unheard(
        &mut self,
        call: &Call<'_>,
        confirm: &Confirm,
        payload: &ConfirmPayload,
        spot: Spot,
    ) -> Try<Decision> {
        let mut asks = ask::sum(&payload.lines);
        let mut wrong = Vec::new();
        ask::check(&payload.lines, &asks, &mut wrong);
        if !wrong.is_empty() {
            return Err(Stop::from(Refusal::Invalid(wrong)));
        }
        let picks = match &confirm.lines {
            None => None,
            Some(picks) => {
                let keys: SmallVec<[_; 4]> = asks
                    .iter()
                    .map(|ask| (ask.sku, ask.location, ask.quantity))
                    .collect();
                Some(ask::pick(&keys, picks)?)
            }
        };
        self.check_sale(call.command, &mut asks)?;
        let cart = Cart {
            owner: &payload.owner,
            asks: &asks,
            freed: HeldLines::new(),
        };
        let mut lines = self.plan(&cart)?;
        match &picks {
            None => lines.iter_mut().for_each(|line| line.confirm(u64::MAX)),
            Some(picks) => {
                for (line, picked) in lines.iter_mut().zip(picks) {
                    line.confirm(picked.units);
                }
            }
        }
        // Recorded as the reserve that it stands in for, so that the lost one is a replay when it turns up.
        let grant = Grant {
            spot,
            id: &confirm.id,
            owner: &payload.owner,
            mode: Mode::Reserve,
            digest: ask::digest_of(Mode::Reserve, &payload.owner, &asks).unwrap_or(Digest(0)),
            verb: Verb::Deduct,
            status: Status::Confirmed,
            ends_at: self.clock,
        };
        let (reservation, seq) = self.grant(call.command, &grant, lines)?;
        Ok(done(DoneCode::Ok, reservation, seq))
    }
}

/// Of commands that give none.
pub(super) static NO_REASON: Reason = Reason::none();

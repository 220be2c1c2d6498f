//! Cancel, extend and read.

use alloc::format;
use alloc::vec;

use super::Shard;
use super::carry::Load;
use super::confirm::NO_REASON;
use super::hold::HeldLines;
use super::lookup::Call;
use super::stop::{Stop, Try, field};
use super::table::{Step, Wish, next};
use super::turn::Turn;
use super::view::done;
use crate::command::{Cancel, Extend};
use crate::entry::Verb;
use crate::id::{Id, Millis, TTL_MS_MAX};
use crate::record::Status;
use crate::reply::{Decision, DoneCode, Refusal};

impl Shard {
    pub(super) fn cancel(&mut self, call: &mut Call<'_>, cancel: &Cancel) -> Try<Decision> {
        let spot = self.find_reservation(call, &cancel.id)?;
        let step = next(Wish::Cancel, self.state(spot)?);
        let Some(slot) = spot.slot else {
            if step != Step::Seal {
                return Err(self.refusal(step, None, &cancel.id));
            }
            let (sealed, seq) = self.seal_id(call.command, &cancel.reason, spot, &cancel.id)?;
            return Ok(done(DoneCode::Sealed, sealed, seq));
        };
        if step == Step::Replay {
            return self.shown(slot, DoneCode::Replayed);
        }
        let hold = self.hold(slot)?;
        let lines: HeldLines = hold.lines();
        let load = if step == Step::Release {
            Load::release(&lines, hold.owner)
        } else if step == Step::CancelEnded {
            // Its units went back when it ended.
            Load::default()
        } else {
            return Err(self.refusal(step, Some(slot), &cancel.id));
        };
        let turn = Turn::new(Verb::Cancel, Status::Cancelled, lines);
        let (reservation, seq) = self.turn(slot, Self::by(call.command, &cancel.reason), turn, load)?;
        Ok(done(DoneCode::Ok, reservation, seq))
    }

    pub(super) fn extend(&mut self, call: &mut Call<'_>, extend: &Extend) -> Try<Decision> {
        let spot = self.find_reservation(call, &extend.id)?;
        let step = next(Wish::Extend, self.state(spot)?);
        let Some(slot) = spot.slot.filter(|_| step == Step::Extend) else {
            return Err(self.refusal(step, spot.slot, &extend.id));
        };
        let hold = self.hold(slot)?;
        if hold.ends_at == extend.ends_at {
            return self.shown(slot, DoneCode::Replayed);
        }
        let latest = self.clock.saturating_add(TTL_MS_MAX);
        if extend.ends_at <= self.clock || extend.ends_at > latest {
            return Err(Stop::from(bad_end(extend, self.clock)));
        }
        let mut turn = Turn::new(Verb::Extend, Status::Pending, hold.lines());
        turn.ends_at = Some(extend.ends_at);
        let by = Self::by(call.command, &NO_REASON);
        let (reservation, seq) = self.turn(slot, by, turn, Load::default())?;
        Ok(done(DoneCode::Ok, reservation, seq))
    }

    pub(super) fn show_reservation(&mut self, call: &mut Call<'_>, id: &Id) -> Try<Decision> {
        let spot = self.find_reservation(call, id)?;
        match spot.slot {
            Some(slot) => self.shown(slot, DoneCode::Ok),
            None => Err(Refusal::NotFound { id: id.clone() }.into()),
        }
    }
}

pub(super) fn bad_end(extend: &Extend, clock: Millis) -> Refusal {
    let (earliest, latest) = (clock.saturating_add(1), clock.saturating_add(TTL_MS_MAX));
    Refusal::Invalid(vec![field(
        "ends_at",
        extend.ends_at,
        format!("{earliest}..={latest}"),
    )])
}

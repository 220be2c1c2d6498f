//! Return: sold units come back, at most what was confirmed, to where they came from.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::ask::{Picked, Picks};
use super::carry::{Load, signed};
use super::digest;
use super::hold::HeldLine;
use super::lookup::Call;
use super::stop::{Stop, Try, field};
use super::table::{Step, Wish, next};
use super::turn::Turn;
use super::{Past, Shard};
use crate::command::Return;
use crate::entry::{Change, Verb};
use crate::record::{Reservation, ReturnRecord, ReturnedLine, Status};
use crate::reply::{Decision, Done, DoneCode, Refusal, Reply, Subject};

impl Shard {
    pub(super) fn give_back(&mut self, call: &mut Call<'_>, give: &Return) -> Try<Decision> {
        let digest = digest::give_back(&give.reservation, give.lines.as_deref());
        if let Some(past) = self.find_return(call, &give.id)? {
            if past.record.digest != digest {
                return Err(Stop::Refused(Refusal::IdReused, past.seq));
            }
            let spot = self.find_reservation(call, &past.record.reservation)?;
            let slot = spot
                .slot
                .ok_or(Stop::Corrupt("a return without its reservation"))?;
            let needs = self.hold(slot)?.seq.max(past.seq);
            return Ok(answer(
                DoneCode::Replayed,
                past.record,
                self.reservation(slot)?,
                needs,
            ));
        }
        let spot = self.find_reservation(call, &give.reservation)?;
        let step = next(Wish::Return, self.state(spot)?);
        let Some(slot) = spot.slot.filter(|_| step == Step::GiveBack) else {
            return Err(self.refusal(step, spot.slot, &give.reservation));
        };
        let picks = self.returned(slot, give)?;
        let hold = self.hold(slot)?;
        let owner = hold.owner;
        let mut lines = hold.lines();
        let mut load = Load::default();
        let mut back = Vec::new();
        for (line, picked) in lines.iter_mut().zip(&picks) {
            if picked.units > 0 {
                self.give_line(line, picked.units, &mut load);
                load.usage(line, owner, signed(picked.units).saturating_neg());
                back.push(self.returned_line(line, picked.units)?);
            }
        }
        let record = ReturnRecord {
            tenant: call.command.tenant.clone(),
            id: give.id.clone(),
            reservation: give.reservation.clone(),
            digest,
            at: self.clock,
            lines: back,
        };
        let moves = self.carry(load)?;
        // The verb is the return's own: the change says so.
        self.advance(slot, Turn::new(Verb::Confirm, Status::Confirmed, lines))?;
        let (after, seq) = (self.reservation(slot)?, self.chain.next_seq());
        self.keep_return(Past {
            record: record.clone(),
            seq,
        })?;
        let change = Change::Return {
            record: record.clone(),
            after: after.clone(),
        };
        self.effect(Self::by(call.command, &give.reason), change, moves);
        Ok(answer(DoneCode::Ok, record, after, seq))
    }

    // What comes back of each line.
    fn returned(&self, slot: u32, give: &Return) -> Try<Picks> {
        let lines = self.hold(slot)?.lines();
        if let Some(picks) = &give.lines {
            return self.pick_of(&lines, picks, HeldLine::sold);
        }
        let picks: Picks = (0..)
            .zip(&lines)
            .map(|(index, line)| Picked {
                units: line.sold(),
                index,
            })
            .collect();
        if picks.iter().all(|picked| picked.units == 0) {
            return Err(Stop::from(nothing_left()));
        }
        Ok(picks)
    }

    // In reverse allocation order.
    #[expect(clippy::unused_self, reason = "reads as one of the shard's steps")]
    fn give_line(&self, line: &mut HeldLine, units: u64, load: &mut Load) {
        let mut left = units;
        for part in line.parts.iter_mut().rev() {
            let back = left.min(part.confirmed.saturating_sub(part.returned));
            part.returned = part.returned.saturating_add(back);
            left = left.saturating_sub(back);
            let sold = signed(back).saturating_neg();
            load.units(line.sku, part.place, signed(back), 0, sold);
        }
    }

    fn returned_line(&self, line: &HeldLine, quantity: u64) -> Try<ReturnedLine> {
        let sku = self.skus.get(line.sku)?;
        Ok(ReturnedLine {
            sku: sku.name.clone(),
            location: match line.asked {
                None => None,
                Some(place) => Some(sku.place(place)?.name.clone()),
            },
            quantity,
        })
    }
}

pub(super) fn nothing_left() -> Refusal {
    Refusal::Invalid(vec![field(
        "lines",
        "none",
        "nothing: everything that was confirmed has been returned",
    )])
}

fn answer(code: DoneCode, record: ReturnRecord, reservation: Reservation, needs: u64) -> Decision {
    Decision {
        reply: Reply::Done(Done {
            code,
            subject: Subject::Return(Box::new((record, reservation))),
        }),
        needs,
    }
}

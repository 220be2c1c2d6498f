//! Reserve and deduct: every check before the first write; all lines or none.

use alloc::format;
use alloc::vec::Vec;

use super::Shard;
use super::ask::{self, Ask, Asks};
use super::carry::Load;
use super::hold::HeldLines;
use super::lookup::{Call, Spot};
use super::plan::Cart;
use super::skus::Sku;
use super::stop::{Stop, Try, field};
use super::table::{State, Step, Wish, next};
use super::turn::{Grant, Turn};
use super::view::done;
use crate::command::{Command, Mode, Reserve};
use crate::entry::Verb;
use crate::id::{Id, Reason, TTL_MS_MAX, TTL_MS_MIN};
use crate::record::{Digest, Status};
use crate::reply::{Conflict, Decision, DoneCode, Refusal, RefusedLine};

/// The reservation that a new one takes the place of.
#[derive(Clone, Copy)]
enum Old {
    None,
    /// It is pending: it goes when the new one comes.
    Pending(u32),
    /// It never came: it is sealed when the new one comes.
    Absent(Spot),
}

impl Shard {
    pub(super) fn reserve(&mut self, call: &mut Call<'_>, reserve: &Reserve) -> Try<Decision> {
        let mut asks = ask::sum(&reserve.lines);
        let spot = self.find_reservation(call, &reserve.id)?;
        let digest = || ask::digest_of(reserve.mode, &reserve.owner, &asks);
        let wish = match spot.slot {
            Some(slot) if digest() != Some(self.hold(slot)?.digest()) => Wish::ReserveOther,
            Some(_) | None => Wish::Reserve,
        };
        let step = next(wish, self.state(spot)?);
        if let (Step::Replay, Some(slot)) = (step, spot.slot) {
            return self.shown(slot, DoneCode::Replayed);
        }
        if step != Step::Grant {
            return Err(self.refusal(step, spot.slot, &reserve.id));
        }
        check_values(reserve, &asks)?;
        let old = self.superseded(call, reserve)?;
        self.check_sale(call.command, &mut asks)?;
        let freed = match old {
            Old::Pending(slot) => self.hold(slot)?.lines(),
            Old::None | Old::Absent(_) => HeldLines::new(),
        };
        let cart = Cart {
            owner: &reserve.owner,
            asks: &asks,
            freed,
        };
        let mut lines = self.plan(&cart)?;
        self.retire(call.command, reserve, old)?;
        let (verb, status, ends_at) = match reserve.mode {
            Mode::Reserve => (
                Verb::Reserve,
                Status::Pending,
                self.clock.saturating_add(reserve.ttl_ms),
            ),
            Mode::Deduct => {
                for line in &mut lines {
                    line.confirm(u64::MAX);
                }
                (Verb::Deduct, Status::Confirmed, self.clock)
            }
        };
        let grant = Grant {
            spot,
            id: &reserve.id,
            owner: &reserve.owner,
            mode: reserve.mode,
            digest: ask::digest_of(reserve.mode, &reserve.owner, &asks).unwrap_or(Digest(0)),
            verb,
            status,
            ends_at,
        };
        let (reservation, seq) = self.grant(call.command, &grant, lines)?;
        Ok(done(DoneCode::Ok, reservation, seq))
    }

    // The reservation to supersede, if it allows that.
    fn superseded(&mut self, call: &mut Call<'_>, reserve: &Reserve) -> Try<Old> {
        let Some(id) = &reserve.supersedes else {
            return Ok(Old::None);
        };
        let spot = self.find_reservation(call, id)?;
        let Some(slot) = spot.slot else {
            return Ok(Old::Absent(spot));
        };
        let hold = self.hold(slot)?;
        // A sealed id has no owner and nothing to give up.
        if !hold.sealed && self.owners.get(hold.owner)? != &reserve.owner {
            return Err(Stop::from(Refusal::NotFound { id: id.clone() }));
        }
        match State::of(hold.status, hold.sealed) {
            State::Pending => Ok(Old::Pending(slot)),
            State::Confirmed => Err(self.refusal(Step::AlreadyConfirmed, Some(slot), id)),
            State::Absent | State::Cancelled | State::Sealed | State::Expired | State::Lost => Ok(Old::None),
        }
    }

    fn retire(&mut self, command: &Command, reserve: &Reserve, old: Old) -> Try<()> {
        let (Old::Pending(_) | Old::Absent(_), Some(id)) = (&old, &reserve.supersedes) else {
            return Ok(());
        };
        let reason = Reason::new(&format!("superseded by {}", reserve.id)).unwrap_or_default();
        match old {
            Old::None => {}
            Old::Pending(slot) => {
                let hold = self.hold(slot)?;
                let lines = hold.lines();
                let load = Load::release(&lines, hold.owner);
                let turn = Turn::new(Verb::Cancel, Status::Cancelled, lines);
                self.turn(slot, Self::by(command, &reason), turn, load)?;
            }
            Old::Absent(spot) => {
                self.seal_id(command, &reason, spot, id)?;
            }
        }
        Ok(())
    }

    /// SKUs known, sale open, revisions as asked. Afterwards every line knows its SKU's slot.
    pub(super) fn check_sale(&self, command: &Command, asks: &mut Asks<'_>) -> Try<()> {
        let mut unknown = Vec::new();
        for ask in asks.iter_mut() {
            match self.skus.find(&command.tenant, ask.sku) {
                Some(slot) => ask.slot = slot,
                None => unknown.push(ask.row(())),
            }
        }
        refuse(unknown, Refusal::UnknownSku)?;
        self.each_line(asks, Refusal::Paused, |sku, _| sku.paused.then_some(()))?;
        self.each_line(asks, Refusal::NotOpen, |sku, _| {
            sku.opens_at.filter(|opens_at| self.clock < *opens_at)
        })?;
        self.each_line(asks, Refusal::Closed, |sku, _| {
            sku.closes_at.filter(|closes_at| self.clock >= *closes_at)
        })?;
        self.each_line(asks, Refusal::RevisionConflict, |sku, ask| {
            let failed = ask
                .if_revision
                .into_iter()
                .flatten()
                .find(|asked| *asked != sku.revision)?;
            Some(Conflict {
                expected: Some(failed),
                found: Some(sku.revision),
            })
        })
        .map_err(|stop| match stop {
            // The revisions that it shows must be on disk.
            Stop::Refused(refusal, needs) => Stop::Refused(refusal, needs.max(self.changed_seq(asks))),
            Stop::LookUp(..) | Stop::Again | Stop::Corrupt(_) => stop,
        })
    }

    // The last operator's change of any of these SKUs.
    fn changed_seq(&self, asks: &[Ask<'_>]) -> u64 {
        asks.iter()
            .filter_map(|ask| self.skus.get(ask.slot).ok())
            .map(|sku| sku.changed_seq)
            .max()
            .unwrap_or(0)
    }

    // Refuses if the check finds anything; with all lines for which it does.
    fn each_line<T>(
        &self,
        asks: &[Ask<'_>],
        refusal: impl FnOnce(Vec<RefusedLine<T>>) -> Refusal,
        check: impl Fn(&Sku, &Ask<'_>) -> Option<T>,
    ) -> Try<()> {
        let mut failing = Vec::new();
        for ask in asks {
            if let Some(detail) = check(self.skus.get(ask.slot)?, ask) {
                failing.push(ask.row(detail));
            }
        }
        refuse(failing, refusal)
    }
}

fn refuse<T>(mut rows: Vec<RefusedLine<T>>, refusal: impl FnOnce(Vec<RefusedLine<T>>) -> Refusal) -> Try<()> {
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|row| row.index);
    Err(Stop::from(refusal(rows)))
}

pub(super) fn check_values(reserve: &Reserve, asks: &[Ask<'_>]) -> Try<()> {
    let mut wrong = Vec::new();
    ask::check(&reserve.lines, asks, &mut wrong);
    if reserve.mode == Mode::Reserve && !(TTL_MS_MIN..=TTL_MS_MAX).contains(&reserve.ttl_ms) {
        wrong.push(field(
            "ttl_ms",
            reserve.ttl_ms,
            format!("{TTL_MS_MIN}..={TTL_MS_MAX}"),
        ));
    }
    if reserve
        .supersedes
        .as_ref()
        .is_some_and(|id: &Id| *id == reserve.id)
    {
        wrong.push(field(
            "supersedes",
            &reserve.id,
            "another id than the reservation's own",
        ));
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Stop::from(Refusal::Invalid(wrong)))
    }
}

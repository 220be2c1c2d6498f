//! From the shard's own form to the public one, and replies.

use alloc::boxed::Box;
use smallvec::SmallVec;

use super::Shard;
use super::hold::{HeldLine, Hold};
use super::names::NO_OWNER;
use super::stop::{Stop, Try};
use super::table::Step;
use crate::id::Id;
use crate::record::{Allocation, Line, Reservation};
use crate::reply::{Decision, Done, DoneCode, LateReason, Refusal, Reply, StockSubject, Subject};

impl Shard {
    pub(super) fn hold(&self, slot: u32) -> Try<&Hold> {
        self.holds.get(slot).ok_or(Stop::Corrupt("reservation"))
    }

    pub(super) fn hold_mut(&mut self, slot: u32) -> Try<&mut Hold> {
        self.holds.get_mut(slot).ok_or(Stop::Corrupt("reservation"))
    }

    /// A reservation, spelled out.
    pub(super) fn reservation(&self, slot: u32) -> Try<Reservation> {
        let hold = self.hold(slot)?;
        let mut lines = SmallVec::new();
        for line in hold.lines() {
            lines.push(self.line(&line)?);
        }
        Ok(Reservation {
            tenant: self.tenants.get(hold.tenant)?.clone(),
            id: hold.id.clone(),
            owner: match hold.owner {
                NO_OWNER => None,
                owner => Some(self.owners.get(owner)?.clone()),
            },
            mode: hold.mode,
            digest: hold.digest(),
            status: hold.status,
            sealed: hold.sealed,
            noted: hold.noted,
            granted_at: hold.granted_at,
            ends_at: hold.ends_at,
            lines,
        })
    }

    fn line(&self, line: &HeldLine) -> Try<Line> {
        let sku = self.skus.get(line.sku)?;
        let mut allocations = SmallVec::new();
        for part in &line.parts {
            allocations.push(Allocation {
                location: sku.place(part.place)?.name.clone(),
                quantity: part.quantity,
                confirmed: part.confirmed,
                returned: part.returned,
            });
        }
        Ok(Line {
            sku: sku.name.clone(),
            location: match line.asked {
                None => None,
                Some(place) => Some(sku.place(place)?.name.clone()),
            },
            era: line.era,
            allocations,
        })
    }

    /// An answer about a reservation as it stands.
    pub(super) fn shown(&self, slot: u32, code: DoneCode) -> Try<Decision> {
        Ok(done(code, self.reservation(slot)?, self.hold(slot)?.seq))
    }

    /// An answer about a SKU as it stands.
    pub(super) fn stock(&self, sku: u32, code: DoneCode, revision: Option<u64>, needs: u64) -> Try<Decision> {
        let found = self.skus.get(sku)?;
        let subject = Subject::Stock(Box::new(StockSubject {
            stock: found.record(),
            revision: revision.unwrap_or(found.revision),
            // The first change of a SKU is the count that creates it.
            created: revision == Some(1),
        }));
        Ok(Decision {
            reply: Reply::Done(Done { code, subject }),
            needs,
        })
    }

    /// The refusal that the transition table asks for.
    pub(super) fn refusal(&self, step: Step, slot: Option<u32>, id: &Id) -> Stop {
        self.try_refusal(step, slot, id).unwrap_or_else(|stop| stop)
    }

    fn try_refusal(&self, step: Step, slot: Option<u32>, id: &Id) -> Try<Stop> {
        let Some(slot) = slot else {
            return Ok(match step {
                Step::NotFound => Stop::from(Refusal::NotFound { id: id.clone() }),
                Step::Grant
                | Step::Replay
                | Step::Confirm
                | Step::Compare
                | Step::ConfirmLate
                | Step::Release
                | Step::CancelEnded
                | Step::Seal
                | Step::Extend
                | Step::GiveBack
                | Step::IdReused
                | Step::Expired
                | Step::AlreadyConfirmed
                | Step::AlreadyCancelled
                | Step::NotConfirmed => Stop::Corrupt("transition of an absent id"),
            });
        };
        let reservation = || self.reservation(slot).map(Box::new);
        let refusal = match step {
            Step::NotFound => return Ok(Stop::from(Refusal::NotFound { id: id.clone() })),
            Step::IdReused => Refusal::IdReused,
            Step::Expired => Refusal::Expired {
                reservation: reservation()?,
                reason: LateReason::Over,
            },
            Step::AlreadyConfirmed => Refusal::AlreadyConfirmed(reservation()?),
            Step::AlreadyCancelled => Refusal::AlreadyCancelled(reservation()?),
            Step::NotConfirmed => Refusal::NotConfirmed(reservation()?),
            Step::Grant
            | Step::Replay
            | Step::Confirm
            | Step::Compare
            | Step::ConfirmLate
            | Step::Release
            | Step::CancelEnded
            | Step::Seal
            | Step::Extend
            | Step::GiveBack => return Err(Stop::Corrupt("transition")),
        };
        Ok(Stop::Refused(refusal, self.hold(slot)?.seq))
    }
}

/// An answer about a reservation.
pub(super) fn done(code: DoneCode, reservation: Reservation, needs: u64) -> Decision {
    Decision {
        reply: Reply::Done(Done {
            code,
            subject: Subject::Reservation(Box::new(reservation)),
        }),
        needs,
    }
}

//! How a reservation comes to be and changes: one place for grants, one for turns from one status to the next. Both
//! move the units, keep the ends and the queue of ended ids in step, and add the effect to the entry.

use smallvec::SmallVec;

use super::Shard;
use super::carry::{Load, Moves, signed};
use super::hold::{HeldLines, Hold, Terms};
use super::lookup::Spot;
use super::memory::Ended;
use super::names::{Kind, NO_OWNER};
use super::stop::{Stop, Try};
use crate::command::{Command, Mode};
use crate::entry::{Change, Effect, Verb};
use crate::id::{Id, Millis, Reason};
use crate::record::{Digest, Reservation, Space, Status};

/// Who changes something, and why.
#[derive(Clone, Copy)]
pub(super) struct By<'a> {
    pub(super) actor: &'a Id,
    pub(super) reason: &'a Reason,
}

/// A reservation that comes to be.
pub(super) struct Grant<'a> {
    pub(super) spot: Spot,
    pub(super) id: &'a Id,
    pub(super) owner: &'a Id,
    pub(super) mode: Mode,
    pub(super) digest: Digest,
    pub(super) verb: Verb,
    pub(super) status: Status,
    pub(super) ends_at: Millis,
}

/// What a reservation becomes.
pub(super) struct Turn {
    pub(super) verb: Verb,
    pub(super) status: Status,
    pub(super) lines: HeldLines,
    pub(super) ends_at: Option<Millis>,
    pub(super) noted: bool,
}

impl Turn {
    pub(super) const fn new(verb: Verb, status: Status, lines: HeldLines) -> Self {
        Self {
            verb,
            status,
            lines,
            ends_at: None,
            noted: false,
        }
    }
}

impl Shard {
    pub(super) fn effect(&mut self, by: By<'_>, change: Change, moves: Moves) {
        self.chain.push(Effect {
            at: self.clock,
            actor: by.actor.clone(),
            reason: by.reason.clone(),
            change,
            moves,
        });
    }

    pub(super) fn by<'a>(command: &'a Command, reason: &'a Reason) -> By<'a> {
        By {
            actor: &command.actor,
            reason,
        }
    }

    fn insert_hold(&mut self, hash: u64, hold: Hold) -> Try<u32> {
        let (tenants, hashing) = (&self.tenants, &self.hashing);
        self.holds.insert(hash, hold, |hold| {
            let tenant = tenants.get(hold.tenant).map_or("", Id::as_str);
            hashing.key(Kind::Of(Space::Reservation), tenant, hold.id.as_str())
        })
    }

    /// Puts a hold where it belongs, in the place of a lost one if there is one; its units are already counted.
    pub(super) fn place_hold(&mut self, spot: Spot, mut hold: Hold) -> Try<u32> {
        let (live, ends_at, seq) = (hold.is_live(), hold.ends_at, hold.seq);
        let slot = match spot.slot {
            None => self.insert_hold(spot.hash, hold)?,
            Some(slot) => {
                let old = self.hold_mut(slot)?;
                hold.noted = old.noted;
                let owner = old.owner;
                *old = hold;
                self.owners.release(owner);
                slot
            }
        };
        if live {
            self.ends.insert(slot, ends_at);
        } else {
            self.queue(Space::Reservation, slot, seq);
        }
        Ok(slot)
    }

    pub(super) fn queue(&mut self, space: Space, slot: u32, seq: u64) {
        self.memory.queue.push(Ended {
            space,
            slot,
            seq,
            at: self.clock,
        });
    }

    /// Grants: `lines` say where the units come from, and how many of them are confirmed at once.
    pub(super) fn grant(
        &mut self,
        command: &Command,
        grant: &Grant<'_>,
        lines: HeldLines,
    ) -> Try<(Reservation, u64)> {
        let owner = self.owners.intern(grant.owner)?;
        let mut load = Load::default();
        for line in &lines {
            for part in &line.parts {
                if grant.status == Status::Pending {
                    load.units(line.sku, part.place, 0, signed(part.quantity), 0);
                } else {
                    let sold = signed(part.confirmed);
                    load.units(line.sku, part.place, sold.saturating_neg(), 0, sold);
                }
            }
            let used = if grant.status == Status::Pending {
                line.quantity()
            } else {
                line.confirmed()
            };
            load.usage(line, owner, signed(used));
        }
        let moves = match self.carry(load) {
            Ok(moves) => moves,
            Err(stop) => {
                self.owners.release(owner);
                return Err(stop);
            }
        };
        let before = match grant.spot.slot {
            None => None,
            Some(slot) => Some(self.hold(slot)?.status),
        };
        let seq = self.chain.next_seq();
        let terms = Terms {
            id: grant.id.clone(),
            tenant: self.tenants.intern(&command.tenant)?,
            owner,
            mode: grant.mode,
            digest: grant.digest,
            status: grant.status,
            granted_at: self.clock,
            ends_at: grant.ends_at,
        };
        let slot = self.place_hold(grant.spot, Hold::new(terms, lines, seq))?;
        let after = self.reservation(slot)?;
        let change = Change::Reservation {
            verb: grant.verb,
            before,
            after: after.clone(),
        };
        self.effect(Self::by(command, &Reason::default()), change, moves);
        Ok((after, seq))
    }

    /// Seals an id that never came.
    pub(super) fn seal_id(
        &mut self,
        command: &Command,
        reason: &Reason,
        spot: Spot,
        id: &Id,
    ) -> Try<(Reservation, u64)> {
        let seq = self.chain.next_seq();
        let terms = Terms {
            id: id.clone(),
            tenant: self.tenants.intern(&command.tenant)?,
            owner: NO_OWNER,
            mode: Mode::Reserve,
            digest: Digest(0),
            status: Status::Cancelled,
            granted_at: self.clock,
            ends_at: self.clock,
        };
        let mut hold = Hold::new(terms, HeldLines::new(), seq);
        hold.sealed = true;
        let slot = self.place_hold(spot, hold)?;
        let after = self.reservation(slot)?;
        let change = Change::Reservation {
            verb: Verb::Seal,
            before: None,
            after: after.clone(),
        };
        self.effect(Self::by(command, reason), change, SmallVec::new());
        Ok((after, seq))
    }

    /// Turns a reservation into what follows, with the changes of units that go with it.
    pub(super) fn turn(&mut self, slot: u32, by: By<'_>, turn: Turn, load: Load) -> Try<(Reservation, u64)> {
        let moves = self.carry(load)?;
        let verb = turn.verb;
        let before = self.advance(slot, turn)?;
        let (after, seq) = (self.reservation(slot)?, self.chain.next_seq());
        let change = Change::Reservation {
            verb,
            before: Some(before),
            after: after.clone(),
        };
        self.effect(by, change, moves);
        Ok((after, seq))
    }

    /// The hold's own part of a turn; its status before.
    pub(super) fn advance(&mut self, slot: u32, turn: Turn) -> Try<Status> {
        let seq = self.chain.next_seq();
        let hold = self.holds.get_mut(slot).ok_or(Stop::Corrupt("reservation"))?;
        let before = hold.status;
        hold.become_status(turn.status, turn.lines, seq);
        hold.noted |= turn.noted;
        hold.ends_at = turn.ends_at.unwrap_or(hold.ends_at);
        let (live, ends_at) = (hold.is_live(), hold.ends_at);
        if live {
            self.ends.insert(slot, ends_at);
        } else {
            self.ends.remove(slot);
            self.queue(Space::Reservation, slot, seq);
        }
        Ok(before)
    }
}

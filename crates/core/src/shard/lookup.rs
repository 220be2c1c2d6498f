//! Finding ids: held here, known to be unknown, or to be looked up in the ledger.

use super::Shard;
use super::names::Kind;
use super::stop::{Stop, Try};
use super::table::State;
use super::{LookedUp, Past};
use crate::command::Command;
use crate::id::Id;
use crate::record::{Record, ReturnRecord, Space, StockRecord};

/// A command under way, and what the ledger said for it.
pub(super) struct Call<'a> {
    pub(super) command: &'a Command,
    pub(super) known: Option<LookedUp>,
}

/// Where an id was found, or where it would be put.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub(super) hash: u64,
    pub(super) slot: Option<u32>,
}

impl Shard {
    /// Finds a reservation; one that is past its end is ended first.
    pub(super) fn find_reservation(&mut self, call: &mut Call<'_>, id: &Id) -> Try<Spot> {
        let tenant = &call.command.tenant;
        let hash = self
            .hashing
            .key(Kind::Of(Space::Reservation), tenant.as_str(), id.as_str());
        let found = self.holds.find(hash, |hold| {
            hold.id == *id && self.tenants.get(hold.tenant).is_ok_and(|name| name == tenant)
        });
        if let Some(slot) = found {
            let hold = self.hold(slot)?;
            if hold.is_live() && hold.ends_at <= self.clock {
                self.expire(slot)?;
            }
            return Ok(Spot { hash, slot: found });
        }
        let slot = match self.unheld(call, Space::Reservation, hash, id)? {
            None => None,
            Some(Record::Reservation(record)) if record.id == *id && record.tenant == *tenant => {
                Some(self.install_reservation(record, self.memory.forgot)?)
            }
            Some(Record::Reservation(_) | Record::Return(_) | Record::Stock(_)) => {
                return Err(Stop::Corrupt("another record than was looked up"));
            }
        };
        Ok(Spot { hash, slot })
    }

    /// The state of what was found.
    pub(super) fn state(&self, spot: Spot) -> Try<State> {
        Ok(match spot.slot {
            None => State::Absent,
            Some(slot) => {
                let hold = self.hold(slot)?;
                State::of(hold.status, hold.sealed)
            }
        })
    }

    /// Finds a return.
    pub(super) fn find_return(&mut self, call: &mut Call<'_>, id: &Id) -> Try<Option<Past<ReturnRecord>>> {
        let tenant = &call.command.tenant;
        let hash = self
            .hashing
            .key(Kind::Of(Space::Return), tenant.as_str(), id.as_str());
        let found = self.returns.find(hash, |past| {
            past.record.id == *id && past.record.tenant == *tenant
        });
        if let Some(past) = found.and_then(|slot| self.returns.get(slot)) {
            return Ok(Some(past.clone()));
        }
        match self.unheld(call, Space::Return, hash, id)? {
            None => Ok(None),
            Some(Record::Return(record)) if record.id == *id && record.tenant == *tenant => {
                let past = Past {
                    record,
                    seq: self.memory.forgot,
                };
                self.keep_return(past.clone())?;
                Ok(Some(past))
            }
            Some(Record::Reservation(_) | Record::Return(_) | Record::Stock(_)) => {
                Err(Stop::Corrupt("another record than was looked up"))
            }
        }
    }

    /// Finds a stock command.
    pub(super) fn find_stock_command(
        &mut self,
        call: &mut Call<'_>,
        id: &Id,
    ) -> Try<Option<Past<StockRecord>>> {
        let tenant = &call.command.tenant;
        let hash = self
            .hashing
            .key(Kind::Of(Space::Stock), tenant.as_str(), id.as_str());
        let found = self.commands.find(hash, |past| {
            past.record.id == *id && past.record.tenant == *tenant
        });
        if let Some(past) = found.and_then(|slot| self.commands.get(slot)) {
            return Ok(Some(past.clone()));
        }
        match self.unheld(call, Space::Stock, hash, id)? {
            None => Ok(None),
            Some(Record::Stock(record)) if record.id == *id && record.tenant == *tenant => {
                let past = Past {
                    record,
                    seq: self.memory.forgot,
                };
                self.keep_command(past.clone())?;
                Ok(Some(past))
            }
            Some(Record::Reservation(_) | Record::Return(_) | Record::Stock(_)) => {
                Err(Stop::Corrupt("another record than was looked up"))
            }
        }
    }

    // What the ledger knows of an id that is not held here. Its word counts only if it was read in this epoch and
    // holds every change of a forgotten id.
    fn unheld(&mut self, call: &mut Call<'_>, space: Space, hash: u64, id: &Id) -> Try<Option<Record>> {
        let tenant = &call.command.tenant;
        if !self.memory.may_have_forgotten(hash) || self.memory.is_absent(space, tenant, id) {
            return Ok(None);
        }
        let known = call.known.take_if(|known| {
            known.space == space
                && known.id == *id
                && known.epoch == self.chain.at.epoch
                && known.cursor >= self.memory.forgot
        });
        let Some(known) = known else {
            return Err(Stop::LookUp(space, id.clone()));
        };
        if known.record.is_none() {
            self.memory.note_absent(space, tenant, id, known.cursor);
        }
        Ok(known.record)
    }
}

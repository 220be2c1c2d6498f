//! One shard: its state, and the one door to it.

use crate::command::Command;
use crate::entry::Entry;
use crate::id::{Id, Millis};
use crate::record::{Record, Reservation, SkuRecord, Space};
use crate::reply::Decision;

/// What a confirm after the end does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LateConfirm {
    /// Confirm if the units are still available and the owner limit allows.
    #[default]
    Revive,
    /// Refuse.
    Reject,
}

/// What a service may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// What a confirm after the end does.
    pub late_confirm: LateConfirm,
}

/// Where a chain stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The epoch.
    pub epoch: u64,
    /// The sequence number of the last entry; 0 before the first.
    pub seq: u64,
    /// Its tag; 0 before the first.
    pub tag: u64,
}

/// The ledger's word about an id, and the snapshot in which it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookedUp {
    /// The ledger's epoch in that snapshot.
    pub epoch: u64,
    /// The ledger's cursor in that snapshot.
    pub cursor: u64,
    /// The space that was looked in.
    pub space: Space,
    /// The record; `None`: the ledger does not know the id.
    pub record: Option<Record>,
}

/// One shard's state.
#[derive(Debug)]
pub struct Shard {}

impl Shard {
    /// An empty shard. `seed` is for the hash maps only and cannot be observed.
    pub fn new(number: u32, rules: Rules, seed: u64) -> Self {
        let _ = (number, rules, seed);
        unimplemented!()
    }

    // ---- loading: everything that the ledger holds, before the first command ----

    /// Takes a SKU from the ledger.
    pub fn load_sku(&mut self, sku: SkuRecord) {
        let _ = sku;
        unimplemented!()
    }
    /// Takes a live reservation from the ledger (its units are already in the counters of its SKUs).
    pub fn load_reservation(&mut self, reservation: Reservation) {
        let _ = reservation;
        unimplemented!()
    }
    /// Takes an owner's usage of a SKU from the ledger.
    pub fn load_usage(&mut self, tenant: &Id, sku: &Id, owner: &Id, used: u64) {
        let _ = (tenant, sku, owner, used);
        unimplemented!()
    }
    /// Opens the shard at the ledger's position and clock. From here on ids that were not loaded answer `LookUp` until
    /// [`Shard::forgotten_known`] is called.
    pub fn open(&mut self, at: Position, clock: Millis) {
        let _ = (at, clock);
        unimplemented!()
    }
    /// Adds an id that the ledger knows and this shard does not hold.
    pub fn load_forgotten(&mut self, space: Space, tenant: &str, id: &str) {
        let _ = (space, tenant, id);
        unimplemented!()
    }
    /// Says that every such id has been added: from here on only ids that may be among them answer `LookUp`.
    pub fn forgotten_known(&mut self) {
        unimplemented!()
    }

    // ---- commands ----

    /// Decides one command. Due ends are freed first where the answer would depend on them.
    pub fn apply(&mut self, now: Millis, command: &Command) -> Decision {
        let _ = (now, command);
        unimplemented!()
    }
    /// Decides a command for which the ledger was asked about an id.
    pub fn apply_known(&mut self, now: Millis, command: &Command, known: LookedUp) -> Decision {
        let _ = (now, command, known);
        unimplemented!()
    }
    /// Ends up to `limit` reservations whose end has passed; how many it ended.
    pub fn sweep(&mut self, now: Millis, limit: usize) -> usize {
        let _ = (now, limit);
        unimplemented!()
    }
    /// The earliest end of a live reservation.
    pub fn next_end(&self) -> Option<Millis> {
        unimplemented!()
    }
    /// Closes the entry being built and starts the next; `None` if nothing was changed. `tag` must be random and not 0.
    pub fn seal(&mut self, tag: u64) -> Option<Entry> {
        let _ = tag;
        unimplemented!()
    }
    /// How many effects the entry being built holds.
    pub fn unsealed(&self) -> usize {
        unimplemented!()
    }
    /// Forgets ended ids (reservations, returns, stock commands) whose last change is recorded (at or below
    /// `recorded`), oldest first, while they are older than `older_than` or more than `keep` are held; at most `limit`.
    pub fn forget(&mut self, recorded: u64, older_than: Millis, keep: usize, limit: usize) -> usize {
        let _ = (recorded, older_than, keep, limit);
        unimplemented!()
    }

    // ---- looking, for audits and metrics ----

    /// Where the chain stands: the last sealed entry.
    pub fn position(&self) -> Position {
        unimplemented!()
    }
    /// Every SKU, in no particular order.
    pub fn skus(&self) -> impl Iterator<Item = SkuRecord> + '_ {
        core::iter::empty()
    }
    /// Every live reservation, in no particular order.
    pub fn live(&self) -> impl Iterator<Item = Reservation> + '_ {
        core::iter::empty()
    }
    /// How many live reservations there are.
    pub fn live_count(&self) -> usize {
        unimplemented!()
    }
    /// Every owner usage that is not 0: tenant, SKU, owner, used.
    pub fn usage(&self) -> impl Iterator<Item = (Id, Id, Id, u64)> + '_ {
        core::iter::empty()
    }
}

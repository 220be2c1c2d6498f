//! One shard: its state, and the one door to it.

mod ask;
mod cancel;
mod carry;
mod chain;
mod configure;
mod confirm;
mod digest;
mod ends;
mod expiry;
mod filter;
mod forget;
mod giveback;
mod hold;
mod late;
mod load;
mod lookup;
mod memory;
mod names;
pub mod payload;
mod plan;
mod reserve;
mod skus;
mod slab;
mod stock;
mod stop;
mod table;
mod turn;
mod usage;
mod view;

use core::fmt;

use self::chain::Chain;
use self::ends::Ends;
use self::hold::Hold;
use self::lookup::Call;
use self::memory::Memory;
use self::names::{Hashing, Kind, Owners, Tenants};
use self::skus::Skus;
use self::slab::Store;
use self::stop::Stop;
use self::usage::Usages;
use crate::command::{Action, Command};
use crate::entry::Entry;
use crate::id::{Id, Millis};
use crate::record::{Record, Reservation, ReturnRecord, SkuRecord, Space, StockRecord};
use crate::reply::{Decision, Reply};

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
    /// The id that was looked for, in the command's tenant.
    pub id: Id,
    /// The record; `None`: the ledger does not know the id.
    pub record: Option<Record>,
}

/// Why something from the ledger was not taken. The shard must not be opened then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It was loaded before.
    #[error("{id:?} was loaded twice")]
    Twice {
        /// The SKU or the reservation.
        id: Id,
    },
    /// It names a SKU or location that was not loaded.
    #[error("{id:?} refers to a SKU or location that was not loaded, or is one")]
    Unknown {
        /// The reservation, SKU or location.
        id: Id,
    },
    /// A counter is out of its range or contradicts another one.
    #[error("the counters of {sku:?} contradict each other")]
    Counters {
        /// The SKU.
        sku: Id,
    },
    /// More records than a shard can hold: 2^32 of a kind.
    #[error("more records than a shard can hold")]
    Full,
}

/// A record of an id that has had its effect, and the entry of that.
#[derive(Clone)]
struct Past<T> {
    record: T,
    seq: u64,
}

/// One shard's state.
///
/// It takes about 200 bytes for each live reservation of one line (ids of 24 bytes, owners of 12), owner usage
/// included. No command takes time that grows with what it holds: where an answer depends on more due ends than one
/// entry may free, it is [`Reply::Again`].
pub struct Shard {
    number: u32,
    rules: Rules,
    clock: Millis,
    chain: Chain,
    memory: Memory,
    hashing: Hashing,
    tenants: Tenants,
    owners: Owners,
    skus: Skus,
    usages: Usages,
    holds: Store<Hold>,
    ends: Ends,
    returns: Store<Past<ReturnRecord>>,
    commands: Store<Past<StockRecord>>,
    /// How many due ends commands have freed in the entry being built.
    freed: usize,
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("number", &self.number)
            .field("position", &self.chain.at)
            .field("clock", &self.clock)
            .field("skus", &self.skus.len())
            .field("live", &self.ends.len())
            .finish_non_exhaustive()
    }
}

impl Shard {
    /// An empty shard, in which every id is new. `seed` is for the hash maps only and cannot be observed.
    pub fn new(number: u32, rules: Rules, seed: u64) -> Self {
        let hashing = Hashing::new(seed);
        Self {
            number,
            rules,
            clock: Millis::MIN,
            chain: Chain::new(),
            memory: Memory::new(),
            tenants: Tenants::new(hashing.clone()),
            owners: Owners::new(hashing.clone()),
            skus: Skus::new(hashing.clone()),
            usages: Usages::new(hashing.clone()),
            holds: Store::new(),
            ends: Ends::new(),
            returns: Store::new(),
            commands: Store::new(),
            freed: 0,
            hashing,
        }
    }

    // ---- loading: everything that the ledger holds, before the first command ----

    /// Takes a SKU from the ledger.
    pub fn load_sku(&mut self, sku: SkuRecord) -> Result<(), LoadError> {
        self.take_sku(sku)
    }
    /// Takes a live reservation from the ledger (its units are already in the counters of its SKUs, which must have
    /// been loaded). An ended one is taken too, and kept for replays.
    pub fn load_reservation(&mut self, reservation: Reservation) -> Result<(), LoadError> {
        self.take_reservation(reservation)
    }
    /// Takes an owner's usage of a SKU, which must have been loaded, from the ledger.
    pub fn load_usage(&mut self, tenant: &Id, sku: &Id, owner: &Id, used: u64) -> Result<(), LoadError> {
        self.take_usage(tenant, sku, owner, used)
    }
    /// Opens the shard at the ledger's position and clock. From here on ids that were not loaded answer `LookUp` until
    /// [`Shard::forgotten_known`] is called.
    pub fn open(&mut self, at: Position, clock: Millis) {
        self.chain.at = at;
        self.clock = self.clock.max(clock);
        self.memory.open(at.seq);
    }
    /// Adds an id that the ledger knows and this shard does not hold.
    pub fn load_forgotten(&mut self, space: Space, tenant: &str, id: &str) {
        self.memory.add(self.hashing.key(Kind::Of(space), tenant, id));
    }
    /// Says that every such id has been added: from here on only ids that may be among them answer `LookUp`.
    pub fn forgotten_known(&mut self) {
        self.memory.known();
    }

    // ---- commands ----

    /// Decides one command. Due ends are freed first where the answer would depend on them; if there are more than
    /// one entry may free, the answer is [`Reply::Again`].
    ///
    /// Time never runs backwards: the shard's clock is the latest `now` that it has seen.
    pub fn apply(&mut self, now: Millis, command: &Command) -> Decision {
        self.decide(now, command, None)
    }
    /// Decides a command for which the ledger was asked about an id. The ledger's word counts only if it was read in
    /// this epoch and at or after the last change of every forgotten id; otherwise the answer is `LookUp` again.
    pub fn apply_known(&mut self, now: Millis, command: &Command, known: LookedUp) -> Decision {
        self.decide(now, command, Some(known))
    }

    fn decide(&mut self, now: Millis, command: &Command, known: Option<LookedUp>) -> Decision {
        self.clock = self.clock.max(now);
        let mut call = Call { command, known };
        let call = &mut call;
        let decided = match &command.action {
            Action::Reserve(reserve) => self.reserve(call, reserve),
            Action::Confirm(confirm) => self.confirm(call, confirm),
            Action::Cancel(cancel) => self.cancel(call, cancel),
            Action::Extend(extend) => self.extend(call, extend),
            Action::Return(give) => self.give_back(call, give),
            Action::Set(set) => self.set(call, set),
            Action::Adjust(adjust) => self.adjust(call, adjust),
            Action::Transfer(transfer) => self.transfer(call, transfer),
            Action::Configure(configure) => self.configure(call, configure),
            Action::ShowReservation { id } => self.show_reservation(call, id),
            Action::ShowStock { sku } => self.show_stock(call, sku),
        };
        decided.unwrap_or_else(|stop| match stop {
            Stop::Refused(refusal, needs) => Decision {
                reply: Reply::Refused(refusal),
                needs,
            },
            Stop::LookUp(space, id) => Decision {
                reply: Reply::LookUp { space, id },
                needs: 0,
            },
            Stop::Again => Decision {
                reply: Reply::Again,
                needs: 0,
            },
            Stop::Corrupt(what) => Decision {
                reply: Reply::Corrupt { what },
                needs: 0,
            },
        })
    }

    /// Ends up to `limit` reservations whose end has passed; how many it ended. When that happens cannot be observed
    /// in any answer.
    pub fn sweep(&mut self, now: Millis, limit: usize) -> usize {
        self.clock = self.clock.max(now);
        self.usages.tidy(&mut self.owners, limit);
        // A reservation that cannot be ended is reported to whoever commands it; here it only stops the sweep.
        let before = self.ends.len();
        match self.end_due(limit) {
            Ok(ended) => ended,
            Err(_) => before.saturating_sub(self.ends.len()),
        }
    }
    /// The earliest end of a live reservation.
    pub fn next_end(&self) -> Option<Millis> {
        self.ends.first().map(|(end, _)| end)
    }
    /// Closes the entry being built and starts the next; `None` if nothing was changed. `tag` must be random and not 0.
    pub fn seal(&mut self, tag: u64) -> Option<Entry> {
        self.freed = 0;
        self.chain.seal(self.number, tag, self.clock)
    }
    /// How many effects the entry being built holds.
    pub fn unsealed(&self) -> usize {
        self.chain.len()
    }
    /// Forgets ended ids (reservations, returns, stock commands) whose last change is recorded (at or below
    /// `recorded`), oldest first, while they are older than `older_than` or more than `keep` are held; looks at no
    /// more than `limit`. How many it forgot.
    pub fn forget(&mut self, recorded: u64, older_than: Millis, keep: usize, limit: usize) -> usize {
        self.forget_some(recorded, older_than, keep, limit)
    }

    // ---- looking, for audits and metrics ----

    /// Where the chain stands: the last sealed entry.
    pub fn position(&self) -> Position {
        self.chain.at
    }
    /// The shard's clock: the latest time that it has seen.
    pub fn clock(&self) -> Millis {
        self.clock
    }
    /// Every SKU, in no particular order.
    pub fn skus(&self) -> impl Iterator<Item = SkuRecord> + '_ {
        self.skus.iter().map(skus::Sku::record)
    }
    /// Every live reservation, in no particular order.
    pub fn live(&self) -> impl Iterator<Item = Reservation> + '_ {
        self.ends.slots().filter_map(|slot| self.reservation(slot).ok())
    }
    /// How many live reservations there are.
    pub fn live_count(&self) -> usize {
        self.ends.len()
    }
    /// Every owner usage that is not 0: tenant, SKU, owner, used.
    pub fn usage(&self) -> impl Iterator<Item = (Id, Id, Id, u64)> + '_ {
        self.usages.iter().filter_map(|(sku, owner, used)| {
            let sku = self.skus.get(sku).ok()?;
            let tenant = self.tenants.get(sku.tenant).ok()?;
            let owner = self.owners.get(owner).ok()?;
            Some((tenant.clone(), sku.name.clone(), owner.clone(), used))
        })
    }
}

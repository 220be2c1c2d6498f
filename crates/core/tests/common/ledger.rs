//! The fold of a shard's entries: what a ledger would hold. Every entry is checked while it is folded.

use std::collections::BTreeMap;

use stockade_core::{
    Change, Counters, Effect, Entry, Id, LocationRecord, LookedUp, Millis, Position, Record, Reservation,
    ReturnRecord, Rules, Settings, Shard, SkuRecord, Space, Status, StockRecord, Verb,
};

type Place = (Id, Id);

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub at: Position,
    pub clock: Millis,
    pub skus: BTreeMap<Id, SkuRecord>,
    pub reservations: BTreeMap<Id, Reservation>,
    pub returns: BTreeMap<Id, ReturnRecord>,
    pub commands: BTreeMap<Id, StockRecord>,
    /// Units brought in by operators, less those taken out.
    pub supply: BTreeMap<Place, i64>,
    /// How often each id was noted as paid and not fulfilled.
    pub notes: BTreeMap<Id, u32>,
    /// Ids cancelled or sealed: nothing may be granted for them afterwards.
    pub closed: BTreeMap<Id, u64>,
}

/// What a reservation holds and has sold, per (SKU, location).
fn held(reservation: Option<&Reservation>) -> BTreeMap<Place, (i64, i64)> {
    let mut held: BTreeMap<Place, (i64, i64)> = BTreeMap::new();
    if let Some(reservation) = reservation {
        for line in &reservation.lines {
            for part in &line.allocations {
                let cell = held.entry((line.sku.clone(), part.location.clone())).or_default();
                if reservation.status == Status::Pending {
                    cell.0 += i64::try_from(part.quantity).unwrap();
                }
                cell.1 += i64::try_from(part.confirmed - part.returned).unwrap();
                assert!(part.returned <= part.confirmed && part.confirmed <= part.quantity);
            }
        }
    }
    held.retain(|_, units| *units != (0, 0));
    held
}

/// The difference between two of them as moves: (`on_hand`, reserved, sold).
fn difference(before: Option<&Reservation>, after: &Reservation) -> BTreeMap<Place, (i64, i64, i64)> {
    let (before, after) = (held(before), held(Some(after)));
    let mut difference = BTreeMap::new();
    for place in before.keys().chain(after.keys()) {
        let (reserved_before, sold_before) = before.get(place).copied().unwrap_or_default();
        let (reserved, sold) = after.get(place).copied().unwrap_or_default();
        let (reserved, sold) = (reserved - reserved_before, sold - sold_before);
        if (reserved, sold) != (0, 0) {
            difference.insert(place.clone(), (-sold, reserved, sold));
        }
    }
    difference
}

fn moves_of(effect: &Effect) -> BTreeMap<Place, (i64, i64, i64)> {
    effect
        .moves
        .iter()
        .map(|m| {
            (
                (m.sku.clone(), m.location.clone()),
                (m.on_hand, m.reserved, m.sold),
            )
        })
        .collect()
}

impl Ledger {
    pub fn fold(&mut self, entry: &Entry) {
        assert_eq!(entry.epoch, self.at.epoch, "epoch");
        assert_eq!(entry.seq, self.at.seq + 1, "gapless");
        assert_eq!(entry.prev, self.at.tag, "names the one before");
        assert!(!entry.effects.is_empty());
        assert!(entry.at >= self.clock);
        (self.at.seq, self.at.tag, self.clock) = (entry.seq, entry.tag, entry.at);
        for effect in &entry.effects {
            assert!(effect.at <= entry.at);
            self.effect(effect, entry.seq);
        }
    }

    fn effect(&mut self, effect: &Effect, seq: u64) {
        match &effect.change {
            Change::Reservation { verb, before, after } => {
                let old = self.reservations.get(&after.id);
                assert_eq!(
                    *before,
                    old.map(|old| old.status),
                    "before, {verb:?} of {}",
                    after.id
                );
                assert!(
                    legal(*verb, *before, after.status),
                    "{verb:?}: {before:?} to {:?}",
                    after.status
                );
                assert_eq!(
                    moves_of(effect),
                    difference(old, after),
                    "moves, {verb:?} of {}",
                    after.id
                );
                if *verb == Verb::Note {
                    *self.notes.entry(after.id.clone()).or_default() += 1;
                }
                if after.status == Status::Cancelled {
                    self.closed.insert(after.id.clone(), seq);
                }
                if let Some(old) = old {
                    assert!(after.noted >= old.noted);
                    assert!(!self.closed.contains_key(&after.id) || after.status == Status::Cancelled);
                }
                self.reservations.insert(after.id.clone(), after.clone());
            }
            Change::Return { record, after } => {
                let old = self.reservations.get(&after.id);
                assert_eq!(moves_of(effect), difference(old, after));
                let before = self.returns.insert(record.id.clone(), record.clone());
                assert!(before.is_none(), "a return has one effect");
                self.reservations.insert(after.id.clone(), after.clone());
            }
            Change::Stock {
                record,
                settings,
                created,
                ..
            } => {
                let before = self.commands.insert(record.id.clone(), record.clone());
                assert!(before.is_none(), "a stock command has one effect");
                assert_eq!(*created, !self.skus.contains_key(&record.sku));
                let sku = self.skus.entry(record.sku.clone()).or_insert_with(|| SkuRecord {
                    tenant: record.tenant.clone(),
                    sku: record.sku.clone(),
                    revision: 0,
                    settings: Settings::default(),
                    locations: Vec::new(),
                });
                sku.revision += 1;
                assert_eq!(sku.revision, record.revision, "one revision a command");
                assert!(!created || settings.is_some());
                if let Some(settings) = settings {
                    sku.settings = settings.clone();
                }
                for m in &effect.moves {
                    *self
                        .supply
                        .entry((m.sku.clone(), m.location.clone()))
                        .or_default() += m.on_hand + m.sold;
                }
            }
        }
        self.moves(effect);
    }

    fn moves(&mut self, effect: &Effect) {
        let order: Vec<_> = effect.moves.iter().map(|m| (&m.sku, &m.location)).collect();
        assert!(
            order.is_sorted_by(|one, two| one < two),
            "one move a place, in a fixed order"
        );
        for m in &effect.moves {
            let sku = self.skus.get_mut(&m.sku).unwrap();
            if sku.locations.iter().all(|place| place.location != m.location) {
                sku.locations.push(LocationRecord {
                    location: m.location.clone(),
                    counters: Counters::default(),
                });
            }
            let place = sku
                .locations
                .iter_mut()
                .find(|place| place.location == m.location)
                .unwrap();
            let before = place.counters;
            let plus = |count: u64, delta: i64| count.checked_add_signed(delta).unwrap();
            assert_eq!(m.after.on_hand, plus(before.on_hand, m.on_hand));
            assert_eq!(m.after.reserved, plus(before.reserved, m.reserved));
            assert_eq!(m.after.sold, plus(before.sold, m.sold));
            assert_eq!(m.after.version, before.version + 1, "one version a move");
            place.counters = m.after;
        }
    }

    /// Usage of the present era: live + confirmed - returned.
    pub fn usage(&self) -> BTreeMap<(Id, Id), u64> {
        let mut usage: BTreeMap<(Id, Id), u64> = BTreeMap::new();
        for reservation in self.reservations.values() {
            for line in &reservation.lines {
                if line.era != self.skus[&line.sku].settings.era {
                    continue;
                }
                let used = match reservation.status {
                    Status::Pending => line.quantity(),
                    Status::Confirmed => line.confirmed() - line.returned(),
                    Status::Cancelled | Status::Expired | Status::Lost => 0,
                };
                let owner = reservation.owner.clone().unwrap();
                *usage.entry((line.sku.clone(), owner)).or_default() += used;
            }
        }
        usage.retain(|_, used| *used > 0);
        usage
    }

    /// DESIGN's checks at every step, as far as they apply to one shard. Everything must be sealed and folded.
    pub fn check(&self, shard: &Shard) {
        assert_eq!(shard.unsealed(), 0);
        assert_eq!(shard.position(), self.at);
        let skus: BTreeMap<Id, SkuRecord> = shard.skus().map(|sku| (sku.sku.clone(), sku)).collect();
        assert_eq!(skus, self.skus, "the fold of the entries is the state");
        let live: BTreeMap<Id, Reservation> = shard.live().map(|r| (r.id.clone(), r)).collect();
        let mut expected = self.reservations.clone();
        expected.retain(|_, r| r.status == Status::Pending);
        assert_eq!(live, expected);
        assert_eq!(shard.live_count(), live.len());
        assert_eq!(shard.next_end(), live.values().map(|r| r.ends_at).min());
        let usage: BTreeMap<(Id, Id), u64> = shard
            .usage()
            .map(|(_, sku, owner, used)| ((sku, owner), used))
            .collect();
        assert_eq!(usage, self.usage(), "usage = live + confirmed - returned");
        let mut sums: BTreeMap<Place, (i64, i64)> = BTreeMap::new();
        for reservation in self.reservations.values() {
            for (place, (reserved, sold)) in held(Some(reservation)) {
                let cell = sums.entry(place).or_default();
                cell.0 += reserved;
                cell.1 += sold;
            }
        }
        for sku in skus.values() {
            for location in &sku.locations {
                let place = (sku.sku.clone(), location.location.clone());
                let counters = location.counters;
                let (reserved, sold) = sums.get(&place).copied().unwrap_or_default();
                assert_eq!(
                    counters.reserved.cast_signed(),
                    reserved,
                    "reserved = sum of live"
                );
                assert_eq!(counters.sold.cast_signed(), sold, "sold = confirmed - returned");
                assert!(counters.reserved <= counters.on_hand);
                let supply = counters.on_hand + counters.sold;
                assert_eq!(
                    supply.cast_signed(),
                    self.supply[&place],
                    "supply = on_hand + sold"
                );
            }
        }
        assert!(self.notes.values().all(|count| *count == 1), "noted once per id");
    }

    pub fn find(&self, space: Space, id: &Id) -> LookedUp {
        let record = match space {
            Space::Reservation => self.reservations.get(id).cloned().map(Record::Reservation),
            Space::Return => self.returns.get(id).cloned().map(Record::Return),
            Space::Stock => self.commands.get(id).cloned().map(Record::Stock),
        };
        LookedUp {
            epoch: self.at.epoch,
            cursor: self.at.seq,
            space,
            id: id.clone(),
            record,
        }
    }

    /// A new epoch: a shard from the records alone.
    pub fn rebuild(&mut self, rules: Rules, seed: u64) -> Shard {
        self.at.epoch += 1;
        let mut shard = Shard::new(0, rules, seed);
        for sku in self.skus.values() {
            shard.load_sku(sku.clone()).unwrap();
        }
        for r in self.reservations.values().filter(|r| r.status == Status::Pending) {
            shard.load_reservation(r.clone()).unwrap();
        }
        for ((sku, owner), used) in self.usage() {
            shard.load_usage(&Id::default_name(), &sku, &owner, used).unwrap();
        }
        shard.open(self.at, self.clock);
        shard
    }

    /// Tells a rebuilt shard which ids it does not hold.
    pub fn tell_forgotten(&self, shard: &mut Shard) {
        for r in self.reservations.values().filter(|r| r.status != Status::Pending) {
            shard.load_forgotten(Space::Reservation, "default", r.id.as_str());
        }
        for id in self.returns.keys() {
            shard.load_forgotten(Space::Return, "default", id.as_str());
        }
        for id in self.commands.keys() {
            shard.load_forgotten(Space::Stock, "default", id.as_str());
        }
        shard.forgotten_known();
    }
}

fn legal(verb: Verb, before: Option<Status>, after: Status) -> bool {
    use Status as S;
    let ended = matches!(before, Some(S::Expired | S::Lost));
    match verb {
        Verb::Reserve => matches!(before, None | Some(S::Lost)) && after == S::Pending,
        Verb::Deduct => matches!(before, None | Some(S::Lost)) && after == S::Confirmed,
        Verb::Confirm => before == Some(S::Pending) && after == S::Confirmed,
        Verb::Revive => ended && after == S::Confirmed,
        Verb::Cancel => (ended || before == Some(S::Pending)) && after == S::Cancelled,
        Verb::Seal => before.is_none() && after == S::Cancelled,
        Verb::Extend => before == Some(S::Pending) && after == S::Pending,
        Verb::Expire => before == Some(S::Pending) && after == S::Expired,
        Verb::Note => ended && before == Some(after),
        Verb::Lose => false,
    }
}

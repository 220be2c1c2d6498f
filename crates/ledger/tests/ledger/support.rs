//! A small book that writes entries by hand, so that the ledger's tests do not rest on the rules they record.

use std::collections::BTreeMap;
use std::path::PathBuf;

use stockade_core::{
    Allocation, Change, Counters, Digest, Effect, Entry, Id, Line, LocationRecord, Millis, Mode, Move,
    Reason, Record, Reservation, ReturnRecord, ReturnedLine, Settings, SkuRecord, Space, Status, StockRecord,
    StockVerb, Verb,
};
use stockade_ledger::{Ledger, ShardRow, Sqlite, View};

/// SKU, location asked, allocations.
pub(crate) type AskedLine<'a> = (&'a str, Option<&'a str>, &'a [(&'a str, u64)]);

pub(crate) fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

/// A folder that is gone after the test, and a ledger in it with an epoch opened.
pub(crate) fn fresh() -> (tempfile::TempDir, Sqlite, ShardRow) {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Sqlite::open(folder.path()).unwrap();
    let row = ledger.open_epoch(0, "test").unwrap();
    (folder, ledger, row)
}

pub(crate) fn file(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join(Sqlite::FILE)
}

/// The file through a connection of its own: a hand in the ledger.
pub(crate) fn by_hand(folder: &tempfile::TempDir, sql: &str) {
    let conn = rusqlite::Connection::open(file(folder)).unwrap();
    conn.execute_batch(sql).unwrap();
}

/// What a view knows of a reservation.
pub(crate) fn find(view: &dyn View, name: &str) -> Option<Reservation> {
    let found = view
        .find(0, &Id::default_name(), Space::Reservation, &id(name))
        .unwrap();
    match found.record {
        Some(Record::Reservation(one)) => Some(one),
        None => None,
        other => panic!("{other:?}"),
    }
}

/// The state of a shard as the entries so far make it, and the entry being built.
pub(crate) struct Book {
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
    pub(crate) tag: u64,
    pub(crate) now: Millis,
    pub(crate) skus: BTreeMap<Id, SkuRecord>,
    pub(crate) reservations: BTreeMap<Id, Reservation>,
    effects: Vec<Effect>,
}

impl Book {
    pub(crate) fn new(row: &ShardRow) -> Self {
        Self {
            epoch: row.epoch,
            seq: row.cursor,
            tag: row.tag,
            now: row.at.max(1_000),
            skus: BTreeMap::new(),
            reservations: BTreeMap::new(),
            effects: Vec::new(),
        }
    }

    /// Closes the entry being built.
    pub(crate) fn seal(&mut self) -> Entry {
        let prev = self.tag;
        self.seq += 1;
        // Odd multiples of a constant: distinct, and half of them negative as signed integers.
        self.tag = self.seq.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Entry {
            shard: 0,
            epoch: self.epoch,
            seq: self.seq,
            tag: self.tag,
            prev,
            at: self.now,
            effects: std::mem::take(&mut self.effects),
        }
    }

    fn shift(&mut self, sku: &Id, location: &Id, by: (i64, i64, i64)) -> Move {
        let record = self.skus.get_mut(sku).unwrap();
        let at = record
            .locations
            .iter_mut()
            .find(|one| one.location == *location)
            .unwrap();
        let c = &mut at.counters;
        c.on_hand = c.on_hand.checked_add_signed(by.0).unwrap();
        c.reserved = c.reserved.checked_add_signed(by.1).unwrap();
        c.sold = c.sold.checked_add_signed(by.2).unwrap();
        c.version += 1;
        Move {
            sku: sku.clone(),
            location: location.clone(),
            on_hand: by.0,
            reserved: by.1,
            sold: by.2,
            after: *c,
        }
    }

    fn effect(&mut self, change: Change, moves: Vec<Move>, reason: &str) {
        self.now += 1;
        self.effects.push(Effect {
            at: self.now,
            actor: id("library"),
            reason: Reason::new(reason).unwrap(),
            change,
            moves: moves.into_iter().collect(),
        });
    }

    /// A delivery (or the creation) at a location.
    pub(crate) fn stock(&mut self, command: &str, sku: &str, location: &str, by: i64) {
        let (sku, location) = (id(sku), id(location));
        let created = !self.skus.contains_key(&sku);
        let record = self.skus.entry(sku.clone()).or_insert_with(|| SkuRecord {
            tenant: Id::default_name(),
            sku: sku.clone(),
            revision: 0,
            settings: Settings::default(),
            locations: Vec::new(),
        });
        record.revision += 1;
        if !record.locations.iter().any(|one| one.location == location) {
            record.locations.push(LocationRecord {
                location: location.clone(),
                counters: Counters::default(),
            });
        }
        let (revision, settings) = (record.revision, record.settings.clone());
        let one = self.shift(&sku, &location, (by, 0, 0));
        let record = StockRecord {
            tenant: Id::default_name(),
            id: id(command),
            digest: Digest(u128::from(self.seq) << 64 | 7),
            sku,
            revision,
            at: self.now,
        };
        let change = Change::Stock {
            verb: if created {
                StockVerb::Set
            } else {
                StockVerb::Adjust
            },
            record,
            settings: created.then_some(settings),
            created,
        };
        self.effect(change, vec![one], "delivery");
    }

    /// Changes settings of a SKU.
    pub(crate) fn configure(&mut self, command: &str, sku: &str, change: impl FnOnce(&mut Settings)) {
        let sku = id(sku);
        let record = self.skus.get_mut(&sku).unwrap();
        change(&mut record.settings);
        record.revision += 1;
        let settings = record.settings.clone();
        let record = StockRecord {
            tenant: Id::default_name(),
            id: id(command),
            digest: Digest(11),
            sku,
            revision: record.revision,
            at: self.now,
        };
        let change = Change::Stock {
            verb: StockVerb::Configure,
            record,
            settings: Some(settings),
            created: false,
        };
        self.effect(change, Vec::new(), "");
    }

    /// A grant of lines: (SKU, location asked, allocations).
    pub(crate) fn grant(&mut self, name: &str, owner: &str, mode: Mode, lines: &[AskedLine<'_>]) {
        let sold = mode == Mode::Deduct;
        let before = self.reservations.get(&id(name)).map(|one| one.status);
        let mut moves: Vec<Move> = Vec::new();
        let mut full = Vec::new();
        for (sku, asked, allocations) in lines {
            let sku = id(sku);
            let mut rows = Vec::new();
            for (location, quantity) in *allocations {
                let location = id(location);
                let n = i64::try_from(*quantity).unwrap();
                let by = if sold { (-n, 0, n) } else { (0, n, 0) };
                moves.push(self.shift(&sku, &location, by));
                let confirmed = if sold { *quantity } else { 0 };
                rows.push(Allocation {
                    location,
                    quantity: *quantity,
                    confirmed,
                    returned: 0,
                });
            }
            let era = self.skus[&sku].settings.era;
            full.push(Line {
                sku,
                location: asked.map(id),
                era,
                allocations: rows.into_iter().collect(),
            });
        }
        let after = Reservation {
            tenant: Id::default_name(),
            id: id(name),
            owner: Some(id(owner)),
            mode,
            digest: Digest(u128::MAX - u128::from(self.seq)),
            status: if sold { Status::Confirmed } else { Status::Pending },
            sealed: false,
            noted: false,
            granted_at: self.now,
            ends_at: self.now + 60_000,
            lines: full.into_iter().collect(),
        };
        let verb = if sold { Verb::Deduct } else { Verb::Reserve };
        self.reservations.insert(after.id.clone(), after.clone());
        self.effect(Change::Reservation { verb, before, after }, moves, "");
    }

    /// One unit of a SKU at `default`.
    pub(crate) fn reserve(&mut self, name: &str, owner: &str, sku: &str) {
        self.grant(name, owner, Mode::Reserve, &[(sku, None, &[("default", 1)])]);
    }

    /// One unit, sold at once.
    pub(crate) fn deduct(&mut self, name: &str, owner: &str, sku: &str) {
        self.grant(name, owner, Mode::Deduct, &[(sku, None, &[("default", 1)])]);
    }

    /// Ends a pending reservation by a verb: confirm takes all units, the others give them back.
    pub(crate) fn end(&mut self, name: &str, verb: Verb) {
        let mut after = self.reservations[&id(name)].clone();
        let before = Some(after.status);
        let mut moves = Vec::new();
        let sold = verb == Verb::Confirm;
        for line in &mut after.lines {
            for one in &mut line.allocations {
                let n = i64::try_from(one.quantity).unwrap();
                let by = if sold { (-n, -n, n) } else { (0, -n, 0) };
                if sold {
                    one.confirmed = one.quantity;
                }
                moves.push(self.shift(&line.sku, &one.location, by));
            }
        }
        after.status = match verb {
            Verb::Confirm => Status::Confirmed,
            Verb::Cancel => Status::Cancelled,
            Verb::Expire => Status::Expired,
            Verb::Lose => Status::Lost,
            other => panic!("{other:?} does not end a reservation"),
        };
        self.reservations.insert(after.id.clone(), after.clone());
        self.effect(Change::Reservation { verb, before, after }, moves, "");
    }

    /// A grant that the hot tier forgot and that no longer fits: its id and what it asked for, without units.
    pub(crate) fn lose_new(&mut self, name: &str, owner: &str, sku: &str) {
        let sku = id(sku);
        let era = self.skus[&sku].settings.era;
        let allocation = Allocation {
            location: id("default"),
            quantity: 1,
            confirmed: 0,
            returned: 0,
        };
        let line = Line {
            sku,
            location: None,
            era,
            allocations: std::iter::once(allocation).collect(),
        };
        let after = Reservation {
            tenant: Id::default_name(),
            id: id(name),
            owner: Some(id(owner)),
            mode: Mode::Reserve,
            digest: Digest(9),
            status: Status::Lost,
            sealed: false,
            noted: false,
            granted_at: self.now,
            ends_at: self.now + 60_000,
            lines: std::iter::once(line).collect(),
        };
        self.reservations.insert(after.id.clone(), after.clone());
        let change = Change::Reservation {
            verb: Verb::Lose,
            before: None,
            after,
        };
        self.effect(change, Vec::new(), "");
    }

    pub(crate) fn extend(&mut self, name: &str, ends_at: Millis) {
        let mut after = self.reservations[&id(name)].clone();
        after.ends_at = ends_at;
        self.reservations.insert(after.id.clone(), after.clone());
        let change = Change::Reservation {
            verb: Verb::Extend,
            before: Some(after.status),
            after,
        };
        self.effect(change, Vec::new(), "");
    }

    pub(crate) fn note(&mut self, name: &str) {
        let mut after = self.reservations[&id(name)].clone();
        after.noted = true;
        self.reservations.insert(after.id.clone(), after.clone());
        let change = Change::Reservation {
            verb: Verb::Note,
            before: Some(after.status),
            after,
        };
        self.effect(change, Vec::new(), "");
    }

    pub(crate) fn seal_id(&mut self, name: &str) {
        let after = Reservation {
            tenant: Id::default_name(),
            id: id(name),
            owner: None,
            mode: Mode::Reserve,
            digest: Digest(0),
            status: Status::Cancelled,
            sealed: true,
            noted: false,
            granted_at: self.now,
            ends_at: self.now,
            lines: std::iter::empty().collect(),
        };
        self.reservations.insert(after.id.clone(), after.clone());
        self.effect(
            Change::Reservation {
                verb: Verb::Seal,
                before: None,
                after,
            },
            Vec::new(),
            "changed mind",
        );
    }

    /// One unit of the first allocation comes back.
    pub(crate) fn give_back(&mut self, name: &str, reservation: &str) -> ReturnRecord {
        let mut after = self.reservations[&id(reservation)].clone();
        let line = &mut after.lines[0];
        line.allocations[0].returned += 1;
        let (sku, location) = (line.sku.clone(), line.allocations[0].location.clone());
        let asked = line.location.clone();
        let one = self.shift(&sku, &location, (1, 0, -1));
        let record = ReturnRecord {
            tenant: Id::default_name(),
            id: id(name),
            reservation: id(reservation),
            digest: Digest(3),
            at: self.now,
            lines: vec![ReturnedLine {
                sku,
                location: asked,
                quantity: 1,
            }],
        };
        self.reservations.insert(after.id.clone(), after.clone());
        self.effect(
            Change::Return {
                record: record.clone(),
                after,
            },
            vec![one],
            "damaged",
        );
        record
    }

    /// Usage by (SKU, owner) as the rules define it.
    pub(crate) fn usage(&self) -> BTreeMap<(String, String), u64> {
        let mut usage = BTreeMap::new();
        for one in self.reservations.values() {
            for line in &one.lines {
                let used = match one.status {
                    Status::Pending => line.quantity(),
                    Status::Confirmed => line.confirmed() - line.returned(),
                    _ => 0,
                };
                if used > 0 && line.era == self.skus[&line.sku].settings.era {
                    let key = (line.sku.to_string(), one.owner.as_ref().unwrap().to_string());
                    *usage.entry(key).or_default() += used;
                }
            }
        }
        usage
    }

    /// Everything that a view can be asked for equals the book.
    pub(crate) fn check(&self, view: &dyn View) {
        let row = view.shard(0).unwrap().unwrap();
        assert_eq!((row.epoch, row.cursor, row.tag), (self.epoch, self.seq, self.tag));
        let mut skus = BTreeMap::new();
        view.skus(0, &mut |sku| assert!(skus.insert(sku.sku.clone(), sku).is_none()))
            .unwrap();
        assert_eq!(skus, self.skus);
        let mut live = BTreeMap::new();
        view.live(0, &mut |one| assert!(live.insert(one.id.clone(), one).is_none()))
            .unwrap();
        let mut expected = self.reservations.clone();
        expected.retain(|_, one| one.status == Status::Pending);
        assert_eq!(live, expected);
        let mut usage = BTreeMap::new();
        view.usage(0, &mut |_, sku, owner, used| {
            assert!(usage.insert((sku.to_string(), owner.to_string()), used).is_none());
        })
        .unwrap();
        assert_eq!(usage, self.usage());
        for (id, one) in &self.reservations {
            assert_eq!(find(view, id.as_str()).as_ref(), Some(one));
        }
        assert_eq!(view.audit(0, 10).unwrap(), vec![]);
    }
}

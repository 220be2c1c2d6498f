//! Random commands through the rules, recorded, loaded again: the ledger holds what the rules decided.

use std::collections::BTreeMap;

use stockade_core::{
    Action, Adjust, AskLine, Cancel, Changes, Command, Configure, Confirm, ConfirmPayload, Count, Entry,
    Expect, Extend, Id, LookedUp, Mode, PickLine, Position, Reason, Reply, Reservation, Reserve, Return,
    Rules, Set, Shard, Space, Status, Transfer,
};
use stockade_ledger::{Key, Ledger, LedgerCare, RecordError, Sqlite, View};

use crate::support::{by_hand, find, fresh, id};

/// A small generator of numbers: the same seed gives the same commands.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
    fn pick(&mut self, prefix: &str, n: u64) -> Id {
        id(&format!("{prefix}-{}", self.below(n)))
    }
    fn maybe<T>(&mut self, one_in: u64, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(one_in) == 0).then(|| value(self))
    }
    fn location(&mut self) -> Id {
        id(["default", "north", "south"][usize::try_from(self.below(3)).unwrap()])
    }
    fn lines(&mut self) -> Vec<AskLine> {
        (0..=self.below(3))
            .map(|_| AskLine {
                sku: self.pick("sku", 4),
                quantity: 1 + self.below(4),
                location: self.maybe(3, Self::location),
                if_revision: None,
            })
            .collect()
    }
    fn picks(&mut self) -> Vec<PickLine> {
        vec![PickLine {
            sku: self.pick("sku", 4),
            quantity: 1 + self.below(2),
            location: self.maybe(3, Self::location),
        }]
    }

    fn action(&mut self, now: i64, fresh: u64) -> Action {
        let reason = Reason::new("random").unwrap();
        // Mostly young ids, so that states meet; sometimes new ones.
        let order = id(&format!(
            "o-{}",
            fresh.saturating_sub(self.below(30)) + self.below(2)
        ));
        match self.below(20) {
            0..=7 => Action::Reserve(Reserve {
                id: order,
                owner: self.pick("owner", 6),
                mode: if self.below(4) == 0 {
                    Mode::Deduct
                } else {
                    Mode::Reserve
                },
                ttl_ms: 1_000 + i64::try_from(self.below(3_000)).unwrap(),
                lines: self.lines().into_iter().collect(),
                supersedes: self.maybe(8, |dice| {
                    id(&format!("o-{}", fresh.saturating_sub(dice.below(30))))
                }),
            }),
            8..=10 => Action::Confirm(Confirm {
                id: order,
                lines: self.maybe(3, Self::picks),
                payload: self.maybe(6, |dice| ConfirmPayload {
                    owner: dice.pick("owner", 6),
                    lines: dice.lines().into_iter().collect(),
                }),
            }),
            11 => Action::Cancel(Cancel { id: order, reason }),
            12 => Action::Extend(Extend {
                id: order,
                ends_at: now + 500 + i64::try_from(self.below(5_000)).unwrap(),
            }),
            13..=14 => Action::Return(Return {
                id: self.pick("t", 1 << 40),
                reservation: order,
                lines: self.maybe(2, Self::picks),
                reason,
            }),
            15 => Action::Set(Set {
                id: self.pick("c", 1 << 40),
                sku: self.pick("sku", 4),
                location: self.location(),
                target: 40 + self.below(40),
                count: if self.below(2) == 0 {
                    Count::Create
                } else {
                    Count::Force
                },
                expect: Expect::Any,
                reason,
            }),
            16 => Action::Adjust(Adjust {
                id: self.pick("c", 1 << 40),
                sku: self.pick("sku", 4),
                location: self.location(),
                delta: i64::try_from(self.below(30)).unwrap() - 10,
                expect: Expect::Any,
                reason,
            }),
            17 => Action::Transfer(Transfer {
                id: self.pick("c", 1 << 40),
                sku: self.pick("sku", 4),
                from: self.location(),
                to: self.location(),
                quantity: 1 + self.below(5),
                expect: Expect::Any,
                reason,
            }),
            _ => Action::Configure(Configure {
                id: self.pick("c", 1 << 40),
                sku: self.pick("sku", 4),
                changes: Changes {
                    limit_per_owner: self.maybe(3, |dice| (dice.below(2) == 0).then(|| 20 + dice.below(50))),
                    safety_stock: self
                        .maybe(4, |dice| (dice.location(), dice.below(3)))
                        .into_iter()
                        .collect(),
                    paused: self.maybe(2, |dice| dice.below(6) == 0),
                    split: self.maybe(4, |dice| dice.below(3) > 0),
                    order: self.maybe(4, |dice| vec![dice.location()]),
                    reset_usage: self.below(4) == 0,
                    ..Changes::default()
                },
                expect: Expect::Any,
                reason,
            }),
        }
    }
}

fn usage(each: impl Iterator<Item = (Id, Id, Id, u64)>) -> BTreeMap<(Id, Id, Id), u64> {
    each.map(|(tenant, sku, owner, used)| ((tenant, sku, owner), used))
        .collect()
}

/// The ledger and the shard say the same.
fn check(ledger: &Sqlite, shard: &Shard) {
    let view = ledger.view().unwrap();
    let mut skus = BTreeMap::new();
    view.skus(0, &mut |one| assert!(skus.insert(one.sku.clone(), one).is_none()))
        .unwrap();
    assert_eq!(skus, shard.skus().map(|one| (one.sku.clone(), one)).collect());
    let mut live = BTreeMap::new();
    view.live(0, &mut |one| assert!(live.insert(one.id.clone(), one).is_none()))
        .unwrap();
    assert_eq!(live, shard.live().map(|one| (one.id.clone(), one)).collect());
    let mut used = Vec::new();
    view.usage(0, &mut |tenant, sku, owner, n| {
        used.push((tenant.clone(), sku.clone(), owner.clone(), n));
    })
    .unwrap();
    let sums = used.len();
    // One SKU at a time says the same.
    for (sku, record) in &skus {
        let found = view.sku(0, &Id::default_name(), sku, true).unwrap();
        assert_eq!(found.record.as_ref(), Some(record));
        let mut expected: Vec<(Id, u64)> = used
            .iter()
            .filter(|one| one.1 == *sku)
            .map(|one| (one.2.clone(), one.3))
            .collect();
        expected.sort();
        assert_eq!(found.usage, expected);
        assert_eq!(view.sku(0, &Id::default_name(), sku, false).unwrap().usage, []);
    }
    let used = usage(used.into_iter());
    assert_eq!(used.len(), sums, "an owner's usage of a SKU comes once");
    assert_eq!(used, usage(shard.usage()));
    assert_eq!(view.audit(0, 10).unwrap(), vec![]);
}

/// A shard loaded from the ledger alone.
fn load(ledger: &Sqlite) -> Shard {
    let row = ledger.open_epoch(0, "test").unwrap();
    let view = ledger.view().unwrap();
    let mut shard = Shard::new(0, Rules::default(), 1);
    view.skus(0, &mut |one| shard.load_sku(one).unwrap()).unwrap();
    view.live(0, &mut |one| shard.load_reservation(one).unwrap())
        .unwrap();
    view.usage(0, &mut |tenant, sku, owner, used| {
        shard.load_usage(tenant, sku, owner, used).unwrap();
    })
    .unwrap();
    shard.open(
        Position {
            epoch: row.epoch,
            seq: row.cursor,
            tag: row.tag,
        },
        row.at,
    );
    view.ended_ids(0, &mut |space, tenant, id| {
        shard.load_forgotten(space, tenant, id);
    })
    .unwrap();
    shard.forgotten_known();
    shard
}

/// Applies a command, asking the ledger about ids that the shard does not hold.
fn apply(ledger: &Sqlite, shard: &mut Shard, now: i64, command: &Command) {
    let mut decision = shard.apply(now, command);
    for _ in 0..4 {
        let Reply::LookUp { space, id } = &decision.reply else {
            return;
        };
        let found = ledger
            .view()
            .unwrap()
            .find(0, &command.tenant, *space, id)
            .unwrap();
        let known = LookedUp {
            epoch: found.epoch,
            cursor: found.cursor,
            space: *space,
            id: id.clone(),
            record: found.record,
        };
        decision = shard.apply_known(now, command, known);
    }
    assert!(
        !matches!(decision.reply, Reply::LookUp { .. }),
        "still asking: {command:?}"
    );
}

#[test]
fn random_histories_come_back_as_they_were() {
    for seed in 1..=12_u64 {
        let (folder, mut ledger, _row) = fresh();
        let mut shard = load(&ledger);
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut now = 1_000;
        let mut tag = seed << 40;
        let mut run = Vec::new();
        let mut fresh_id = 0;
        for step in 0..600 {
            now += i64::try_from(dice.below(100)).unwrap();
            fresh_id += dice.below(2);
            let command = Command {
                tenant: Id::default_name(),
                actor: id("library"),
                action: dice.action(now, fresh_id),
            };
            apply(&ledger, &mut shard, now, &command);
            if dice.below(10) == 0 {
                shard.sweep(now, 100);
            }
            if dice.below(5) == 0 {
                tag += 1;
                run.extend(shard.seal(tag));
            }
            if dice.below(20) == 0 {
                tag += 1;
                run.extend(shard.seal(tag));
                ledger
                    .record(&run)
                    .unwrap_or_else(|error| panic!("seed {seed} step {step}: {error}"));
                run.clear();
                check(&ledger, &shard);
                if dice.below(4) == 0 {
                    // A new process: everything comes from the file.
                    drop(ledger);
                    ledger = Sqlite::open(folder.path()).unwrap();
                    shard = load(&ledger);
                    check(&ledger, &shard);
                }
            }
        }
        // Every id is found, in a state that the shard would show.
        let view = ledger.view().unwrap();
        let mut seen = BTreeMap::new();
        for n in 0..=fresh_id {
            let found = view
                .find(0, &Id::default_name(), Space::Reservation, &id(&format!("o-{n}")))
                .unwrap();
            if let Some(stockade_core::Record::Reservation(one)) = found.record {
                *seen.entry(one.status.as_str()).or_insert(0) += 1;
            }
        }
        assert!(
            seen.contains_key(Status::Confirmed.as_str()),
            "seed {seed}: {seen:?}"
        );
    }
}

/// What a view must go on to say: every id, as it was then.
struct Held {
    view: Box<dyn View>,
    known: BTreeMap<Id, Reservation>,
    unknown: Vec<Id>,
}

impl Held {
    fn take(ledger: &Sqlite, ids: u64) -> Self {
        let view = ledger.view().unwrap();
        let mut known = BTreeMap::new();
        let mut unknown = Vec::new();
        // The audit reads every row; the ids are then asked for one by one, some of them much later.
        for n in 0..=ids + 40 {
            let id = id(&format!("o-{n}"));
            match find(&*view, id.as_str()) {
                Some(one) => drop(known.insert(id, one)),
                None => unknown.push(id),
            }
        }
        Self { view, known, unknown }
    }

    fn check(&self) {
        for (id, one) in &self.known {
            assert_eq!(find(&*self.view, id.as_str()).as_ref(), Some(one));
        }
        let keys: Vec<Key> = self
            .unknown
            .iter()
            .map(|id| Key {
                tenant: Id::default_name(),
                space: Space::Reservation,
                id: id.clone(),
            })
            .collect();
        let row = self.view.shard(0).unwrap().unwrap();
        let found = self.view.find_many(0, &keys).unwrap();
        assert_eq!((found.epoch, found.cursor), (row.epoch, row.cursor));
        assert!(found.records.iter().all(Option::is_none));
        assert_eq!(found.records.len(), keys.len());
    }
}

#[test]
fn random_histories_through_three_openings_come_back_as_they_were() {
    for seed in 1..=8_u64 {
        let (folder, ledger, _row) = fresh();
        let mut ledgers = vec![ledger];
        ledgers.extend((0..2).map(|_| Sqlite::open(folder.path()).unwrap()));
        let mut shard = load(&ledgers[0]);
        let mut dice = Dice(seed.wrapping_mul(0xd134_2543_de82_ef95));
        let mut now = 1_000;
        let mut tag = seed << 40;
        let mut fresh_id = 0;
        let mut held: Vec<Held> = Vec::new();
        for step in 0..500 {
            now += i64::try_from(dice.below(100)).unwrap();
            fresh_id += dice.below(2);
            let command = Command {
                tenant: Id::default_name(),
                actor: id("library"),
                action: dice.action(now, fresh_id),
            };
            let any = |dice: &mut Dice| usize::try_from(dice.below(3)).unwrap();
            apply(&ledgers[any(&mut dice)], &mut shard, now, &command);
            if dice.below(4) > 0 {
                continue;
            }
            tag += 1;
            let Some(entry) = shard.seal(tag) else { continue };
            // Whoever records, the others notice.
            let (one, other) = (any(&mut dice), any(&mut dice));
            let run = [entry];
            ledgers[one]
                .record(&run)
                .unwrap_or_else(|error| panic!("seed {seed} step {step}: {error}"));
            assert!(matches!(
                ledgers[other].record(&run),
                Err(RecordError::Fenced { .. })
            ));
            match dice.below(12) {
                0 => check(&ledgers[any(&mut dice)], &shard),
                1 | 2 => held.push(Held::take(&ledgers[any(&mut dice)], fresh_id)),
                // The deferred tables are filled by one that closes and by one that opens.
                3 => {
                    let at = any(&mut dice);
                    held.clear();
                    drop(ledgers.remove(at));
                    ledgers.insert(at, Sqlite::open(folder.path()).unwrap());
                }
                4 => drop(Sqlite::open(folder.path()).unwrap()),
                // Somebody copies the log into the file, as far as the held views let it.
                5 => by_hand(
                    &folder,
                    "PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)",
                ),
                _ => held.iter().for_each(Held::check),
            }
        }
        tag += 1;
        let run: Vec<Entry> = shard.seal(tag).into_iter().collect();
        ledgers[0].record(&run).unwrap();
        for ledger in &ledgers {
            check(ledger, &shard);
        }
    }
}

#[test]
fn random_histories_with_retention_keep_every_sum() {
    let mut gone = 0;
    for seed in 1..=6_u64 {
        let (folder, mut ledger, _row) = fresh();
        let mut shard = load(&ledger);
        let mut dice = Dice(seed.wrapping_mul(0xa076_1d64_78bd_642f));
        let mut now = 1_000;
        let mut tag = seed << 40;
        let mut fresh_id = 0;
        for step in 0..700 {
            now += i64::try_from(dice.below(100)).unwrap();
            fresh_id += dice.below(2);
            let command = Command {
                tenant: Id::default_name(),
                actor: id("library"),
                action: dice.action(now, fresh_id),
            };
            apply(&ledger, &mut shard, now, &command);
            if dice.below(10) > 0 {
                continue;
            }
            tag += 1;
            let run: Vec<Entry> = shard.seal(tag).into_iter().collect();
            ledger
                .record(&run)
                .unwrap_or_else(|error| panic!("seed {seed} step {step}: {error}"));
            if dice.below(4) > 0 {
                continue;
            }
            // What goes is what the hot tier no longer holds.
            shard.forget(shard.position().seq, i64::MAX, 0, usize::MAX);
            drop(ledger);
            ledger = Sqlite::open(folder.path()).unwrap();
            let before = now - i64::try_from(dice.below(4_000)).unwrap();
            loop {
                let limit = 1 + usize::try_from(dice.below(20)).unwrap();
                let done = ledger.retain(before, limit).unwrap();
                gone += done.reservations;
                if dice.below(5) == 0 || !done.more {
                    break;
                }
            }
            check(&ledger, &shard);
            if dice.below(3) == 0 {
                shard = load(&ledger);
                check(&ledger, &shard);
            }
        }
    }
    assert!(gone > 200, "{gone}");
}

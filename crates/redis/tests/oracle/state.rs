//! Everything that is stored on the node, read and compared with the rules alone.

use std::collections::{BTreeMap, BTreeSet};

use stockade_core::{Change, Counters, Effect, Entry, Id, Shard, SkuRecord, Status, Verb};
use stockade_redis::layout::{Keys, hex, second, split_name};
use stockade_redis::packed::{unpack_command, unpack_reservation, unpack_return, unpack_sku};

use super::ledger::Ledger;

type Rows = Vec<(String, Vec<u8>)>;

/// Reads the node and says what is not as it should be.
pub(crate) fn check(
    redis: &mut redis::Connection,
    keys: &Keys,
    shard: &Shard,
    ledger: &Ledger,
) -> Result<(), String> {
    let tip = shard.position();
    let part = |name: &str| keys.part(tip.epoch, name);
    let sku_keys: Vec<String> = redis::cmd("KEYS")
        .arg(format!("*:{}:sku:*", tip.epoch))
        .query(redis)
        .unwrap();
    let mut pipe = redis::pipe();
    pipe.hgetall(keys.meta())
        .hgetall(part("reservations"))
        .hgetall(part("returns"))
        .hgetall(part("commands"))
        .hgetall(part("usage"))
        .zrange(part("ends"), 0, -1);
    for key in &sku_keys {
        pipe.hgetall(key);
    }
    let values: Vec<redis::Value> = pipe.query(redis).unwrap();
    let rows = |at: usize| -> Rows { redis::from_redis_value(values[at].clone()).unwrap() };

    let meta: BTreeMap<String, String> = redis::from_redis_value(values[0].clone()).unwrap();
    let live: BTreeMap<(Id, Id), _> = shard
        .live()
        .map(|r| ((r.tenant.clone(), r.id.clone()), r))
        .collect();
    let reservations = rows(1);
    for (name, expected) in [
        ("seq", tip.seq.to_string()),
        ("tag", hex(tip.tag)),
        ("clock", shard.clock().to_string()),
        ("live", live.len().to_string()),
        ("count", reservations.len().to_string()),
    ] {
        let found = meta.get(name).map_or("0", String::as_str);
        if found != expected {
            return Err(format!("meta {name} is {found}, not {expected}"));
        }
    }

    let mut pending = BTreeSet::new();
    for (name, packed) in &reservations {
        let key = split_name(name).ok_or(name)?;
        let (found, _) = unpack_reservation(key.0.clone(), key.1.clone(), packed)
            .ok_or_else(|| format!("reservation {name:?} is {:?}", String::from_utf8_lossy(packed)))?;
        if found.status == Status::Pending {
            pending.insert(key.clone());
        }
        let expected = live.get(&key).or_else(|| ledger.reservations.get(&key));
        if expected != Some(&found) {
            return Err(format!("reservation {found:?}\nand not {expected:?}"));
        }
    }
    if !live.keys().eq(pending.iter()) {
        return Err(format!("live are {pending:?} and not {:?}", live.keys()));
    }
    for (name, packed) in &rows(2) {
        let key = split_name(name).ok_or(name)?;
        let found = unpack_return(key.0.clone(), key.1.clone(), packed).map(|(record, _)| record);
        if found.as_ref() != ledger.returns.get(&key) {
            return Err(format!("return {found:?}"));
        }
    }
    for (name, packed) in &rows(3) {
        let key = split_name(name).ok_or(name)?;
        let found = unpack_command(key.0.clone(), key.1.clone(), packed).map(|(record, _)| record);
        if found.as_ref() != ledger.commands.get(&key) {
            return Err(format!("command {found:?}"));
        }
    }

    let mut tracked = BTreeMap::new();
    let mut skus = Vec::new();
    for (at, key) in sku_keys.iter().enumerate() {
        let name = key.rsplit_once(":sku:").ok_or(key)?.1;
        let fields: Vec<(String, String)> = redis::from_redis_value(values[6 + at].clone()).unwrap();
        let (tenant, sku) = split_name(name).ok_or(name)?;
        let held = unpack_sku(tenant.clone(), sku.clone(), &fields).ok_or_else(|| format!("{fields:?}"))?;
        if held.tracked {
            tracked.insert(name.to_owned(), ((tenant, sku), held.record.settings.era));
        }
        skus.push(held.record);
    }
    let order = |one: &SkuRecord| (one.tenant.clone(), one.sku.clone());
    let mut expected: Vec<_> = shard.skus().collect();
    expected.sort_by_key(order);
    skus.sort_by_key(order);
    // A SKU that waits to be loaded is not there.
    let held: BTreeSet<_> = skus.iter().map(order).collect();
    expected.retain(|sku| held.contains(&order(sku)));
    if skus != expected {
        return Err(format!("SKUs are\n{skus:#?}\nand not\n{expected:#?}"));
    }
    usage(&rows(4), shard, &tracked)?;
    buckets(redis, keys, shard, &values[5])
}

fn usage(
    rows: &[(String, Vec<u8>)],
    shard: &Shard,
    tracked: &BTreeMap<String, ((Id, Id), u32)>,
) -> Result<(), String> {
    let mut found = BTreeMap::new();
    for (field, value) in rows {
        let (name, owner) = field.rsplit_once('\u{1e}').ok_or(field)?;
        let text = String::from_utf8_lossy(value).into_owned();
        let (era, used) = text.split_once(':').ok_or(&text)?;
        if let Some((key, now)) = tracked.get(name)
            && era == now.to_string()
        {
            found.insert((key.clone(), owner.to_owned()), used.to_owned());
        }
    }
    let keys: BTreeSet<_> = tracked.values().map(|(key, _)| key.clone()).collect();
    let expected: BTreeMap<_, _> = shard
        .usage()
        .map(|(tenant, sku, owner, used)| (((tenant, sku), owner.as_str().to_owned()), used.to_string()))
        .filter(|((key, _), _)| keys.contains(key))
        .collect();
    if found == expected {
        Ok(())
    } else {
        Err(format!("usage is {found:?} and not {expected:?}"))
    }
}

// Every live reservation stands in the bucket of its end, which is in the list of buckets.
fn buckets(
    redis: &mut redis::Connection,
    keys: &Keys,
    shard: &Shard,
    seconds: &redis::Value,
) -> Result<(), String> {
    let epoch = shard.position().epoch;
    let seconds: BTreeSet<i64> = redis::from_redis_value(seconds.clone()).unwrap();
    let live: Vec<_> = shard.live().collect();
    let mut pipe = redis::pipe();
    for r in &live {
        pipe.lrange(keys.bucket(epoch, r.ends_at), 0, -1);
    }
    let lists: Vec<Vec<String>> = if live.is_empty() {
        Vec::new()
    } else {
        pipe.query(redis).unwrap()
    };
    for (r, names) in live.iter().zip(lists) {
        let name = stockade_redis::layout::name(&r.tenant, &r.id);
        if !seconds.contains(&second(r.ends_at)) || !names.contains(&name) {
            return Err(format!("{name} is not in the bucket of {}", r.ends_at));
        }
    }
    Ok(())
}

/// An entry in which ends of the same moment that came one after another stand in the order of their ids: the rules
/// alone order them by where they happen to be kept, which nobody else can know.
pub(crate) fn ordered(mut entry: Entry) -> Entry {
    let end = |effect: &Effect| match &effect.change {
        Change::Reservation {
            verb: Verb::Expire,
            after,
            ..
        } => Some(after.ends_at),
        _ => None,
    };
    let mut from = 0;
    while from < entry.effects.len() {
        let moment = end(&entry.effects[from]);
        let mut to = from + 1;
        while moment.is_some() && to < entry.effects.len() && end(&entry.effects[to]) == moment {
            to += 1;
        }
        if to > from + 1 {
            reorder(&mut entry.effects[from..to]);
        }
        from = to;
    }
    entry
}

fn reorder(effects: &mut [Effect]) {
    type Key = (Id, Id, Id);
    let key = |effect: &Effect, one: &stockade_core::Move| -> Key {
        let Change::Reservation { after, .. } = &effect.change else {
            unreachable!()
        };
        (after.tenant.clone(), one.sku.clone(), one.location.clone())
    };
    let mut now: BTreeMap<Key, Counters> = BTreeMap::new();
    for effect in effects.iter() {
        for one in &effect.moves {
            now.entry(key(effect, one)).or_insert(Counters {
                reserved: one.after.reserved.checked_add_signed(-one.reserved).unwrap(),
                version: one.after.version - 1,
                ..one.after
            });
        }
    }
    effects.sort_by_key(|effect| match &effect.change {
        Change::Reservation { after, .. } => (after.ends_at, after.tenant.clone(), after.id.clone()),
        Change::Return { .. } | Change::Stock { .. } => unreachable!(),
    });
    for effect in effects.iter_mut() {
        let keys: Vec<Key> = effect.moves.iter().map(|one| key(effect, one)).collect();
        for (one, key) in effect.moves.iter_mut().zip(keys) {
            let counters = now.get_mut(&key).unwrap();
            counters.reserved = counters.reserved.checked_add_signed(one.reserved).unwrap();
            counters.version += 1;
            one.after = *counters;
        }
    }
}

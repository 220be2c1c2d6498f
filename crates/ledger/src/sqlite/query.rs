//! Owner usage and pages of SKUs.

use std::collections::{HashMap, HashSet};

use rusqlite::params;
use stockade_core::{Id, SkuRecord};

use super::codes;
use super::index::{self, Used};
use super::reader::Reader;

/// The present era of every SKU of a shard.
pub(super) fn eras(reader: &Reader, shard: u32) -> rusqlite::Result<HashMap<i64, u32>> {
    reader
        .conn
        .prepare_cached("SELECT n, era FROM skus WHERE shard = ?1")?
        .query_map([shard], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// Owner usage: the table by owner and what is carried on of reservations that are gone, with the reservations of the tail taken as they are now.
pub(super) fn usage(
    reader: &Reader,
    shard: u32,
    each: &mut dyn FnMut(&Id, &Id, &Id, u64),
) -> rusqlite::Result<()> {
    let eras = eras(reader, shard)?;
    let mut tail = Vec::new();
    let changed: HashSet<i64> = index::tail(&reader.conn, reader.marks, &mut tail)?
        .old
        .into_iter()
        .collect();
    // Owners of the tail, so that the sums of one owner come out once.
    let mut waiting: HashMap<(i64, String), Vec<Used>> = HashMap::new();
    for one in tail {
        waiting
            .entry((one.tenant, one.owner.clone()))
            .or_default()
            .push(one);
    }
    let mut sums: Vec<(i64, i64)> = Vec::new();
    let add = |sums: &mut Vec<(i64, i64)>, sku: i64, era: u32, used: i64| {
        if used == 0 || eras.get(&sku) != Some(&era) {
            return;
        }
        match sums.iter_mut().find(|(one, _)| *one == sku) {
            Some((_, sum)) => *sum += used,
            None => sums.push((sku, used)),
        }
    };
    let mut flush = |tenant: i64, owner: &str, sums: &mut Vec<(i64, i64)>| -> rusqlite::Result<()> {
        for (sku, used) in sums.drain(..) {
            each(
                &reader.name(tenant)?,
                &reader.sku(sku)?,
                &codes::id(1, owner)?,
                codes::count(5, used)?,
            );
        }
        Ok(())
    };
    let mut select = reader.conn.prepare_cached(
        "SELECT tenant, owner, reservation, sku, era, used FROM owners \
             UNION ALL SELECT tenant, owner, -1, sku, era, used FROM used_base ORDER BY tenant, owner",
    )?;
    let mut rows = select.query([])?;
    let mut at: Option<(i64, String)> = None;
    while let Some(row) = rows.next()? {
        let tenant: i64 = row.get(0)?;
        let owner = row.get_ref(1)?.as_str()?;
        if at.as_ref().is_none_or(|(t, o)| *t != tenant || o != owner) {
            if let Some((tenant, owner)) = at.take() {
                flush(tenant, &owner, &mut sums)?;
            }
            let key = (tenant, owner.to_owned());
            for one in waiting.remove(&key).unwrap_or_default() {
                add(&mut sums, one.sku, one.era, one.units);
            }
            at = Some(key);
        }
        if !changed.contains(&row.get(2)?) {
            add(&mut sums, row.get(3)?, row.get(4)?, row.get(5)?);
        }
    }
    if let Some((tenant, owner)) = at {
        flush(tenant, &owner, &mut sums)?;
    }
    for ((tenant, owner), rows) in waiting {
        for one in rows {
            add(&mut sums, one.sku, one.era, one.units);
        }
        flush(tenant, &owner, &mut sums)?;
    }
    Ok(())
}

/// A page of SKUs by their bytes.
pub(super) fn sku_page(
    reader: &Reader,
    tenant: &Id,
    after: Option<&Id>,
    limit: usize,
) -> rusqlite::Result<Vec<SkuRecord>> {
    let Some(tenant) = reader.name_number(tenant)? else {
        return Ok(Vec::new());
    };
    let mut select = reader
        .conn
        .prepare_cached("SELECT n FROM skus WHERE tenant = ?1 AND sku > ?2 ORDER BY sku LIMIT ?3")?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = select.query(params![tenant, after.map_or("", Id::as_str), limit])?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        page.push(reader.sku_record(row.get(0)?)?);
    }
    Ok(page)
}

//! Look-ups of a hot tier: many ids, one SKU, and which entries are recorded, each with where the ledger stood.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};
use stockade_core::{Id, Position, Record, Space};

use super::codes::{self, wrong};
use super::index;
use super::prune;
use super::reader::Reader;
use super::view::shard_row;
use crate::sharing::{FoundMany, FoundSku, Key, Recorded};

/// The shard's (epoch, cursor); zeros while it has no row.
fn stands(reader: &Reader, shard: u32) -> rusqlite::Result<(u64, u64)> {
    Ok(shard_row(&reader.conn, shard)?.map_or((0, 0), |row| (row.epoch, row.cursor)))
}

/// What is known about an id.
pub(super) fn record(
    reader: &Reader,
    shard: u32,
    tenant: &Id,
    space: Space,
    id: &Id,
) -> rusqlite::Result<Option<Record>> {
    let Some(tenant) = reader.name_number(tenant)? else {
        return Ok(None);
    };
    Ok(match space {
        Space::Reservation => reader.reservation(shard, tenant, id)?.map(Record::Reservation),
        Space::Return => reader.return_record(shard, tenant, id)?.map(Record::Return),
        Space::Stock => reader.stock_record(shard, tenant, id)?.map(Record::Stock),
    })
}

/// The same for many.
pub(super) fn records(reader: &Reader, shard: u32, keys: &[Key]) -> rusqlite::Result<FoundMany> {
    let (epoch, cursor) = stands(reader, shard)?;
    let records = keys
        .iter()
        .map(|key| record(reader, shard, &key.tenant, key.space, &key.id))
        .collect::<Result<_, _>>()?;
    Ok(FoundMany {
        epoch,
        cursor,
        records,
    })
}

/// A SKU of the shard.
pub(super) fn sku(
    reader: &Reader,
    shard: u32,
    tenant: &Id,
    sku: &Id,
    with_usage: bool,
) -> rusqlite::Result<FoundSku> {
    let (epoch, cursor) = stands(reader, shard)?;
    let mut found = FoundSku {
        epoch,
        cursor,
        record: None,
        usage: Vec::new(),
    };
    let Some(tenant) = reader.name_number(tenant)? else {
        return Ok(found);
    };
    let n: Option<(i64, u32)> = reader
        .conn
        .prepare_cached("SELECT n, era FROM skus WHERE tenant = ?1 AND sku = ?2 AND shard = ?3")?
        .query_row(params![tenant, sku.as_str(), shard], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    if let Some((n, era)) = n {
        found.record = Some(reader.sku_record(n)?);
        if with_usage {
            found.usage = usage(reader, n, era)?;
        }
    }
    Ok(found)
}

/// What owners used of a SKU in an era: its movements name the reservations.
fn usage(reader: &Reader, sku: i64, era: u32) -> rusqlite::Result<Vec<(Id, u64)>> {
    let mut reservations: Vec<i64> = reader
        .conn
        .prepare_cached(
            "SELECT m.reservation FROM sku_movements s CROSS JOIN movements m ON m.number = s.movement \
             WHERE s.sku = ?1 AND m.reservation IS NOT NULL \
             UNION ALL SELECT reservation FROM movements WHERE number > ?2 AND sku = ?1 AND reservation IS NOT NULL",
        )?
        .query_map([sku, reader.marks.indexed], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    reservations.sort_unstable();
    reservations.dedup();
    let mut sums = BTreeMap::<String, i64>::new();
    let mut used = Vec::new();
    for n in reservations {
        used.clear();
        index::used(&reader.conn, n, &mut used)?;
        for one in used.drain(..).filter(|one| (one.sku, one.era) == (sku, era)) {
            *sums.entry(one.owner).or_default() += one.units;
        }
    }
    let mut gone = reader
        .conn
        .prepare_cached("SELECT owner, used FROM used_base WHERE sku = ?1 AND era = ?2")?;
    let mut rows = gone.query(params![sku, era])?;
    while let Some(row) = rows.next()? {
        *sums.entry(row.get(0)?).or_default() += row.get::<_, i64>(1)?;
    }
    sums.into_iter()
        .filter(|(_, used)| *used != 0)
        .map(|(owner, used)| Ok((codes::id(0, &owner)?, codes::count(1, used)?)))
        .collect()
}

/// What is recorded of some entries.
pub(super) fn recorded(reader: &Reader, shard: u32, asked: &[Position]) -> rusqlite::Result<Vec<Recorded>> {
    let (epoch, cursor) = stands(reader, shard)?;
    let base = prune::base(&reader.conn, shard)?.seq.cast_unsigned();
    let mut select = reader
        .conn
        .prepare_cached("SELECT epoch, tag FROM entries WHERE shard = ?1 AND seq = ?2")?;
    asked
        .iter()
        .map(|one| {
            if one.seq == 0 {
                // Nothing was decided yet, so there is nothing to record.
                return Ok(if one.tag == 0 {
                    Recorded::Yes
                } else {
                    Recorded::Never
                });
            }
            if one.seq > cursor {
                return Ok(if one.epoch < epoch {
                    Recorded::Never
                } else {
                    Recorded::NotYet
                });
            }
            if one.seq <= base {
                return Ok(Recorded::Pruned);
            }
            let found: (i64, i64) = select
                .query_row(params![shard, one.seq.cast_signed()], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?
                .ok_or_else(|| wrong(0, format!("no entry {} below the cursor {cursor}", one.seq)))?;
            // Tags are random: the same tag is the same entry. A later epoch may name it as its base.
            let is_it = found.1.cast_unsigned() == one.tag && found.0.cast_unsigned() <= one.epoch;
            Ok(if is_it { Recorded::Yes } else { Recorded::Never })
        })
        .collect()
}

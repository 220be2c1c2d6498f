//! What exactly differs about one reservation, by look-ups; only asked where something does.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};

use super::audit::Findings;
use super::audit_reservations::{CONFIRMED, PENDING};
use super::codes::PLACES;
use super::index;
use super::reader::Reader;

pub(super) fn or_none(n: Option<i64>) -> String {
    n.map_or("none".to_owned(), |n| n.to_string())
}

/// A reservation's id.
pub(super) fn name(reader: &Reader, n: i64) -> rusqlite::Result<String> {
    reader
        .conn
        .prepare_cached("SELECT id FROM reservations WHERE n = ?1")?
        .query_row([n], |row| row.get(0))
}

/// Walks the movements of a reservation from its last one, until `each` says what is wrong.
fn walk(
    reader: &Reader,
    n: i64,
    last: i64,
    each: &mut dyn FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<Option<String>> {
    let mut select = reader.conn.prepare_cached(
        "SELECT reservation, before, sku, location, reserved_by, sold_by FROM movements WHERE number = ?1",
    )?;
    let mut number = last;
    loop {
        let mut rows = select.query([number])?;
        let Some(row) = rows.next()? else {
            return Ok(Some(format!("movement {number} is missing")));
        };
        if row.get::<_, Option<i64>>(0)? != Some(n) {
            return Ok(Some(format!("movement {number} belongs to another")));
        }
        each(row)?;
        match row.get::<_, Option<i64>>(1)? {
            Some(before) if before < number => number = before,
            Some(before) => {
                return Ok(Some(format!(
                    "movement {number} names {before} as the one before"
                )));
            }
            None => return Ok(None),
        }
    }
}

/// What is wrong with the chain of a reservation's movements.
pub(super) fn chain(reader: &Reader, n: i64, last: i64) -> rusqlite::Result<String> {
    let broken = walk(reader, n, last, &mut |_| Ok(()))?;
    Ok(broken.unwrap_or_else(|| format!("the chain from movement {last} leaves out movements that name it")))
}

/// What the movements of a reservation moved and what its allocations hold: (reserved, sold) by place.
pub(super) fn moved(reader: &Reader, n: i64, last: i64, status: i64) -> rusqlite::Result<(String, String)> {
    type Sums = BTreeMap<(i64, i64), (i64, i64)>;
    let text = |mut sums: Sums| -> rusqlite::Result<String> {
        sums.retain(|_, sums| *sums != (0, 0));
        let mut parts = Vec::new();
        for ((sku, location), sums) in sums {
            parts.push(format!(
                "{sums:?} of {} at {}",
                reader.sku(sku)?,
                reader.name(location)?
            ));
        }
        Ok(if parts.is_empty() {
            "nothing".to_owned()
        } else {
            parts.join(", ")
        })
    };
    let mut moved = Sums::new();
    walk(reader, n, last, &mut |row| {
        if let (Some(sku), Some(location)) = (row.get(2)?, row.get(3)?) {
            let sum = moved.entry((sku, location)).or_default();
            *sum = (sum.0 + row.get::<_, i64>(4)?, sum.1 + row.get::<_, i64>(5)?);
        }
        Ok(())
    })?;
    let mut held = Sums::new();
    let mut select = reader.conn.prepare_cached(
        "SELECT sku, location, quantity, confirmed - returned FROM allocations WHERE key BETWEEN ?1 AND ?2",
    )?;
    let mut rows = select.query([n * PLACES, (n + 1) * PLACES - 1])?;
    while let Some(row) = rows.next()? {
        let sum = held.entry((row.get(0)?, row.get(1)?)).or_default();
        match status {
            PENDING => sum.0 += row.get::<_, i64>(2)?,
            CONFIRMED => sum.1 += row.get::<_, i64>(3)?,
            _ => {}
        }
    }
    Ok((text(moved)?, text(held)?))
}

/// Units given back by a reservation's allocations.
pub(super) fn returned(reader: &Reader, n: i64) -> rusqlite::Result<i64> {
    reader
        .conn
        .prepare_cached("SELECT ifnull(sum(returned), 0) FROM allocations WHERE key BETWEEN ?1 AND ?2")?
        .query_row([n * PLACES, (n + 1) * PLACES - 1], |row| row.get(0))
}

/// The rows of `owners` about a reservation.
pub(super) fn usage(
    reader: &Reader,
    n: i64,
    name: &str,
    exact: bool,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    let mut used = Vec::new();
    if n <= reader.marks.filled {
        index::used(&reader.conn, n, &mut used)?;
    }
    let mut select = reader.conn.prepare_cached(
        "SELECT era, used FROM owners WHERE tenant = ?1 AND owner = ?2 AND reservation = ?3 AND sku = ?4",
    )?;
    let mut right = 0;
    for one in &used {
        let found: Option<(u32, i64)> = select
            .query_row(params![one.tenant, one.owner, n, one.sku], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        if found.is_some_and(|found| !exact || found == (one.era, one.units)) {
            right += 1;
            continue;
        }
        let place = format!("{} of {} by reservation {name}", reader.sku(one.sku)?, one.owner);
        let found = found.map_or("no row".to_owned(), |(era, used)| format!("{used} in era {era}"));
        findings.add("usage", place, format!("{} in era {}", one.units, one.era), found);
    }
    // No way to them but through the whole table.
    let rows: i64 = reader
        .conn
        .prepare_cached("SELECT count(*) FROM owners WHERE reservation = ?1")?
        .query_row([n], |row| row.get(0))?;
    findings.compare(
        "usage",
        || format!("rows of owners about reservation {name}"),
        right,
        rows,
    );
    Ok(())
}

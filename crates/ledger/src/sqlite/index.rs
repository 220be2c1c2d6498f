//! Filling the tables that orders do not touch: from the movements since the last time, sorted by key, in bulk.
//!
//! Every row is computed from the reservation as it is now, not from differences, so filling twice changes nothing.

use rusqlite::{Connection, OptionalExtension, params};
use stockade_core::Status;

use super::codes::{PLACES, status_code};

/// A row of `owners`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Used {
    pub(super) tenant: i64,
    pub(super) owner: String,
    pub(super) reservation: i64,
    pub(super) sku: i64,
    pub(super) era: u32,
    pub(super) used: i64,
}

/// The reservations that changed after movement `indexed`, each once, by number.
pub(super) fn changed(conn: &Connection, indexed: i64) -> rusqlite::Result<Vec<i64>> {
    let mut numbers: Vec<i64> = conn
        .prepare_cached("SELECT reservation FROM movements WHERE number > ?1 AND reservation IS NOT NULL")?
        .query_map([indexed], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// What a reservation counts towards its owner's usage, and whether it is live; added to `used`.
pub(super) fn used(conn: &Connection, n: i64, used: &mut Vec<Used>) -> rusqlite::Result<bool> {
    let row: Option<(i64, Option<String>, i64)> = conn
        .prepare_cached("SELECT tenant, owner, status FROM reservations WHERE n = ?1")?
        .query_row([n], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((tenant, owner, status)) = row else {
        return Ok(false);
    };
    let live = status == status_code(Status::Pending);
    let Some(owner) = owner else {
        return Ok(live);
    };
    let mut select = conn.prepare_cached(
        "SELECT sku, era, quantity, confirmed - returned FROM allocations WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
    )?;
    let mut rows = select.query([n * PLACES, (n + 1) * PLACES - 1])?;
    let start = used.len();
    while let Some(row) = rows.next()? {
        let (sku, era): (i64, u32) = (row.get(0)?, row.get(1)?);
        let units: i64 = if live {
            row.get(2)?
        } else if status == status_code(Status::Confirmed) {
            row.get(3)?
        } else {
            0
        };
        let same = used
            .get_mut(start..)
            .and_then(|new| new.iter_mut().find(|one| one.sku == sku));
        match same {
            // Lines of one SKU differ in their era only after a partial confirm revived some of them: the others count
            // for nothing.
            Some(one) if era > one.era => (one.era, one.used) = (era, units),
            Some(one) if era == one.era => one.used += units,
            Some(_) => {}
            None => used.push(Used {
                tenant,
                owner: owner.clone(),
                reservation: n,
                sku,
                era,
                used: units,
            }),
        }
    }
    Ok(live)
}

/// Fills the tables with the movements in `indexed + 1 ..= last`.
pub(super) fn fill(conn: &Connection, indexed: i64, last: i64) -> rusqlite::Result<()> {
    let started = std::time::Instant::now();
    let mut by_sku: Vec<(i64, i64)> = conn
        .prepare_cached("SELECT sku, number FROM movements WHERE number > ?1 AND sku IS NOT NULL")?
        .query_map([indexed], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    by_sku.sort_unstable();
    let mut insert =
        conn.prepare_cached("INSERT OR REPLACE INTO sku_movements (sku, movement) VALUES (?1, ?2)")?;
    for (sku, number) in by_sku {
        insert.execute([sku, number])?;
    }

    let mut by_owner = Vec::new();
    let mut add = conn.prepare_cached("INSERT OR REPLACE INTO live (reservation) VALUES (?1)")?;
    let mut remove = conn.prepare_cached("DELETE FROM live WHERE reservation = ?1")?;
    let known: i64 = conn
        .prepare_cached("SELECT reservation FROM deferred")?
        .query_row([], |row| row.get(0))?;
    for n in changed(conn, indexed)? {
        if used(conn, n, &mut by_owner)? {
            add.execute([n])?;
        } else if n <= known {
            remove.execute([n])?;
        }
    }
    by_owner.sort_unstable();
    let mut insert = conn.prepare_cached(
        "INSERT OR REPLACE INTO owners (tenant, owner, reservation, sku, era, used) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for one in &by_owner {
        insert.execute(params![
            one.tenant,
            one.owner,
            one.reservation,
            one.sku,
            one.era,
            one.used
        ])?;
    }
    conn.prepare_cached(
        "UPDATE deferred SET indexed = ?1, reservation = (SELECT ifnull(max(n), 0) FROM reservations)",
    )?
    .execute([last])?;
    tracing::debug!(
        movements = last - indexed,
        seconds = started.elapsed().as_secs_f64(),
        "filled the deferred tables"
    );
    Ok(())
}

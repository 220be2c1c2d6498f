//! Letting old reservations go, in short steps, so that the audit stays exact.
//!
//! A step takes the next movements in the order of their numbers. What they leave the counters at becomes the base that
//! the audit folds from. A reservation goes with its last movement, if it has ended: with its allocations, its returns,
//! its place in the deferred tables and all of its movements. A live one, or one that changed later, stays whole: its
//! movements remain and are left out of the fold. Operators' movements stay: they say where units came from.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension, params};
use stockade_core::{Millis, Status};

use super::codes::{PLACES, RETURN, status_code};
use super::index;
use super::tail::Marks;
use crate::care::Retained;

/// How far retention came.
pub(super) fn reached(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("SELECT movement FROM retention")?
        .query_row([], |row| row.get(0))
}

/// A row of `stock_base` without `gone`: `on_hand`, reserved, sold, `safety_stock`, version.
type Base = (i64, i64, i64, i64, i64);

/// The movements of one step.
#[derive(Default)]
struct Taken {
    last: i64,
    looked_at: usize,
    more: bool,
    bases: BTreeMap<(i64, i64), Base>,
    reservations: BTreeSet<i64>,
}

fn take(conn: &Connection, before: Millis, limit: usize) -> rusqlite::Result<Taken> {
    let mut taken = Taken {
        last: reached(conn)?,
        ..Taken::default()
    };
    // The tail is left alone: the deferred tables do not hold it yet.
    let indexed = Marks::read(conn)?.indexed;
    let mut select = conn.prepare_cached(
        "SELECT number, at, reservation, sku, location, on_hand, reserved, sold, safety_stock, version FROM movements \
         WHERE number > ?1 AND number <= ?2 ORDER BY number",
    )?;
    let mut rows = select.query([taken.last, indexed])?;
    while let Some(row) = rows.next()? {
        if row.get::<_, Millis>(1)? >= before {
            break;
        }
        if taken.looked_at >= limit {
            taken.more = true;
            break;
        }
        taken.looked_at += 1;
        taken.last = row.get(0)?;
        taken.reservations.extend(row.get::<_, Option<i64>>(2)?);
        if let (Some(sku), Some(location)) = (row.get(3)?, row.get(4)?) {
            let base = (row.get(5)?, row.get(6)?, row.get(7)?, row.get(8)?, row.get(9)?);
            taken.bases.insert((sku, location), base);
        }
    }
    Ok(taken)
}

/// One step: at most `limit` movements from before a time are looked at.
pub(super) fn step(conn: &Connection, before: Millis, limit: usize) -> rusqlite::Result<Retained> {
    let taken = take(conn, before, limit)?;
    let mut done = Retained {
        looked_at: taken.looked_at,
        more: taken.more,
        ..Retained::default()
    };
    if taken.looked_at == 0 {
        return Ok(done);
    }
    let mut write = conn.prepare_cached(
        "INSERT INTO stock_base (sku, location, on_hand, reserved, sold, safety_stock, version, gone) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0) ON CONFLICT (sku, location) DO UPDATE SET on_hand = ?3, reserved = ?4, \
         sold = ?5, safety_stock = ?6, version = ?7",
    )?;
    for ((sku, location), base) in taken.bases {
        write.execute(params![sku, location, base.0, base.1, base.2, base.3, base.4])?;
    }
    for n in taken.reservations {
        let row: Option<(i64, String, Option<String>, i64, i64)> = conn
            .prepare_cached("SELECT tenant, id, owner, status, movement FROM reservations WHERE n = ?1")?
            .query_row([n], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })
            .optional()?;
        let Some((tenant, id, owner, status, last)) = row else {
            continue;
        };
        if status == status_code(Status::Pending) || last > taken.last {
            continue;
        }
        keep_sums(conn, n, status)?;
        done.movements += movements(conn, tenant, last)?;
        conn.prepare_cached("DELETE FROM allocations WHERE key BETWEEN ?1 AND ?2")?
            .execute([n * PLACES, (n + 1) * PLACES - 1])?;
        conn.prepare_cached("DELETE FROM ids WHERE tenant = ?1 AND id = ?2 AND reservation = ?3")?
            .execute(params![tenant, id, n])?;
        conn.prepare_cached("DELETE FROM owners WHERE tenant = ?1 AND owner = ?2 AND reservation = ?3")?
            .execute(params![tenant, owner, n])?;
        conn.prepare_cached("DELETE FROM reservations WHERE n = ?1")?
            .execute([n])?;
        done.reservations += 1;
    }
    conn.prepare_cached("UPDATE retention SET movement = ?1")?
        .execute([taken.last])?;
    Ok(done)
}

/// Adds what a reservation sold, and what it counts towards its owner's usage, to what is carried on.
fn keep_sums(conn: &Connection, n: i64, status: i64) -> rusqlite::Result<()> {
    if status != status_code(Status::Confirmed) {
        return Ok(());
    }
    let mut select = conn.prepare_cached(
        "SELECT sku, location, confirmed - returned FROM allocations WHERE key BETWEEN ?1 AND ?2 \
         AND confirmed > returned",
    )?;
    let mut rows = select.query([n * PLACES, (n + 1) * PLACES - 1])?;
    while let Some(row) = rows.next()? {
        conn.prepare_cached("UPDATE stock_base SET gone = gone + ?3 WHERE sku = ?1 AND location = ?2")?
            .execute([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?])?;
    }
    let mut used = Vec::new();
    index::used(conn, n, &mut used)?;
    for one in used.iter().filter(|one| one.units > 0) {
        // Usage of an era that is over counts for nothing.
        conn.prepare_cached(
            "INSERT INTO used_base (tenant, owner, sku, era, used) SELECT ?1, ?2, ?3, ?4, ?5 \
             WHERE ?4 = (SELECT era FROM skus WHERE n = ?3) ON CONFLICT (tenant, owner, sku) DO UPDATE SET \
             used = iif(era = excluded.era, used, 0) + excluded.used, era = excluded.era",
        )?
        .execute(params![one.tenant, one.owner, one.sku, one.era, one.units])?;
    }
    Ok(())
}

/// Of a movement: the one before, its kind, command and SKU.
type Gone = (Option<i64>, i64, Option<String>, Option<i64>);

/// Removes a reservation's movements, from its last one on, and the returns among them.
fn movements(conn: &Connection, tenant: i64, last: i64) -> rusqlite::Result<u64> {
    let mut remove =
        conn.prepare_cached("DELETE FROM movements WHERE number = ?1 RETURNING before, kind, command, sku")?;
    let mut removed = 0;
    let mut number = Some(last);
    while let Some(at) = number {
        let row: Option<Gone> = remove
            .query_row([at], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
            .optional()?;
        // A chain that a hand broke ends here; the audit says so.
        let Some((before, kind, command, sku)) = row else {
            break;
        };
        removed += 1;
        if let Some(sku) = sku {
            conn.prepare_cached("DELETE FROM sku_movements WHERE sku = ?1 AND movement = ?2")?
                .execute([sku, at])?;
        }
        if let Some(command) = command.filter(|_| kind == RETURN) {
            // Several movements may be of one return.
            let n: Option<i64> = conn
                .prepare_cached("DELETE FROM returns WHERE tenant = ?1 AND id = ?2 RETURNING n")?
                .query_row(params![tenant, command], |row| row.get(0))
                .optional()?;
            if let Some(n) = n {
                conn.prepare_cached("DELETE FROM return_lines WHERE \"return\" = ?1")?
                    .execute([n])?;
            }
        }
        number = before.filter(|before| *before < at);
    }
    Ok(removed)
}

//! Filling the tables that orders do not touch: from the movements since the last time, sorted by key, in bulk.
//!
//! Every row is computed from the reservation as it is now, not from differences, so filling twice changes nothing.

use rusqlite::{Connection, Rows, params};
use stockade_core::Status;

use super::codes::{PLACES, status_code};
use super::record::Numbers;
use super::tail::Marks;

/// A row of `owners`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Used {
    pub(super) tenant: i64,
    pub(super) owner: String,
    pub(super) reservation: i64,
    pub(super) sku: i64,
    pub(super) era: u32,
    pub(super) units: i64,
}

/// The reservations up to number `last` that changed after movement `indexed`, each once, by number.
pub(super) fn changed(conn: &Connection, indexed: i64, last: i64) -> rusqlite::Result<Vec<i64>> {
    let mut numbers: Vec<i64> = conn
        .prepare_cached("SELECT reservation FROM movements WHERE number > ?1 AND reservation <= ?2")?
        .query_map([indexed, last], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// What a reservation counts towards its owner's usage; added to `into`. Whether it is live.
pub(super) fn used(conn: &Connection, n: i64, into: &mut Vec<Used>) -> rusqlite::Result<bool> {
    let mut select = conn.prepare_cached(concat!(
        "SELECT r.n, r.tenant, r.owner, r.status, a.sku, a.era, a.quantity, a.confirmed - a.returned \
         FROM reservations r LEFT JOIN allocations a ON a.key BETWEEN r.n * 16384 AND r.n * 16384 + 16383 ",
        "WHERE r.n = ?1 ORDER BY r.n, a.key"
    ))?;
    let mut live = false;
    gather(select.query([n])?, into, &mut |_, is_live| live = is_live)?;
    Ok(live)
}

/// The same for every reservation with a number above `known`, in one pass over two trees side by side.
fn used_after(
    conn: &Connection,
    known: i64,
    into: &mut Vec<Used>,
    each: &mut dyn FnMut(i64, bool),
) -> rusqlite::Result<()> {
    let (pending, confirmed) = (status_code(Status::Pending), status_code(Status::Confirmed));
    let mut reservations =
        conn.prepare_cached("SELECT n, tenant, owner, status FROM reservations WHERE n > ?1 ORDER BY n")?;
    let mut reservations = reservations.query([known])?;
    let mut allocations = conn.prepare_cached(
        "SELECT key, sku, era, quantity, confirmed - returned FROM allocations WHERE key >= ?1 ORDER BY key",
    )?;
    let mut allocations = allocations.query([known.saturating_add(1).saturating_mul(PLACES)])?;
    let mut held = allocations.next()?;
    while let Some(row) = reservations.next()? {
        let (n, status): (i64, i64) = (row.get(0)?, row.get(3)?);
        each(n, status == pending);
        let owner = row.get_ref(2)?.as_str_or_null()?;
        let start = into.len();
        while let Some(one) = held {
            let of = one.get::<_, i64>(0)?.div_euclid(PLACES);
            if of > n {
                break;
            }
            if let Some(owner) = owner.filter(|_| of == n) {
                let units = match status {
                    status if status == pending => one.get(3)?,
                    status if status == confirmed => one.get(4)?,
                    _ => 0,
                };
                let used = Used {
                    tenant: row.get(1)?,
                    owner: owner.to_owned(),
                    reservation: n,
                    sku: one.get(1)?,
                    era: one.get(2)?,
                    units,
                };
                add_used(into, start, used);
            }
            held = allocations.next()?;
        }
    }
    Ok(())
}

/// Rows of reservations and their allocations, a reservation's together.
fn gather(mut rows: Rows<'_>, into: &mut Vec<Used>, each: &mut dyn FnMut(i64, bool)) -> rusqlite::Result<()> {
    let (pending, confirmed) = (status_code(Status::Pending), status_code(Status::Confirmed));
    let mut current = None;
    let mut start = into.len();
    while let Some(row) = rows.next()? {
        let n: i64 = row.get(0)?;
        let status: i64 = row.get(3)?;
        if current != Some(n) {
            current = Some(n);
            start = into.len();
            each(n, status == pending);
        }
        let (Some(owner), Some(sku)) = (row.get_ref(2)?.as_str_or_null()?, row.get::<_, Option<i64>>(4)?)
        else {
            continue;
        };
        let era: u32 = row.get(5)?;
        let units: i64 = match status {
            status if status == pending => row.get(6)?,
            status if status == confirmed => row.get(7)?,
            _ => 0,
        };
        let used = Used {
            tenant: row.get(1)?,
            owner: owner.to_owned(),
            reservation: n,
            sku,
            era,
            units,
        };
        add_used(into, start, used);
    }
    Ok(())
}

/// Adds what an allocation counts to the rows of its reservation, which begin at `start`.
pub(super) fn add_used(into: &mut Vec<Used>, start: usize, used: Used) {
    match into
        .get_mut(start..)
        .and_then(|new| new.iter_mut().find(|one| one.sku == used.sku))
    {
        // Lines of one SKU differ in their era only after a partial confirm revived some of them: the others count for
        // nothing.
        Some(one) if used.era > one.era => *one = used,
        Some(one) if used.era == one.era => one.units += used.units,
        Some(_) => {}
        None => into.push(used),
    }
}

/// What every reservation that changed after the tables were filled counts now, and the numbers of those that the
/// tables already know.
pub(super) fn tail(conn: &Connection, marks: Marks, into: &mut Vec<Used>) -> rusqlite::Result<Tail> {
    let old = changed(conn, marks.indexed, marks.filled)?;
    let mut tail = Tail::default();
    for n in &old {
        if used(conn, *n, into)? {
            tail.live.push(*n);
        } else {
            tail.ended.push(*n);
        }
    }
    used_after(conn, marks.filled, into, &mut |n, is_live| {
        if is_live {
            tail.live.push(n);
        }
    })?;
    tail.old = old;
    Ok(tail)
}

/// Reservations that changed since the tables were filled.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Those that the tables know.
    pub(super) old: Vec<i64>,
    /// Those that are live.
    live: Vec<i64>,
    /// Those that the tables know and that are live no more.
    ended: Vec<i64>,
}

/// Fills the tables with everything after the marks, up to `last`.
pub(super) fn fill(conn: &Connection, marks: Marks, last: Numbers) -> rusqlite::Result<()> {
    let started = std::time::Instant::now();
    conn.prepare_cached(
        "INSERT OR IGNORE INTO sku_movements (sku, movement) \
         SELECT sku, number FROM movements WHERE number > ?1 AND sku IS NOT NULL ORDER BY sku, number",
    )?
    .execute([marks.indexed])?;
    // A grant made sure that its id is new. Where a hand edit doubled one, the audit says so; a fill that failed would
    // keep the ledger from being opened and audited.
    conn.prepare_cached(
        "INSERT OR IGNORE INTO ids (tenant, id, reservation) \
         SELECT tenant, id, n FROM reservations WHERE n > ?1 ORDER BY tenant, id",
    )?
    .execute([marks.filled])?;
    let mut by_owner = Vec::new();
    let tail = tail(conn, marks, &mut by_owner)?;
    let mut add = conn.prepare_cached("INSERT OR REPLACE INTO live (reservation) VALUES (?1)")?;
    for n in tail.live {
        add.execute([n])?;
    }
    let mut remove = conn.prepare_cached("DELETE FROM live WHERE reservation = ?1")?;
    for n in tail.ended {
        remove.execute([n])?;
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
            one.units
        ])?;
    }
    conn.prepare_cached("UPDATE deferred SET indexed = ?1, reservation = ?2")?
        .execute([last.movement, last.reservation])?;
    tracing::debug!(
        movements = last.movement - marks.indexed,
        seconds = started.elapsed().as_secs_f64(),
        "filled the deferred tables"
    );
    Ok(())
}

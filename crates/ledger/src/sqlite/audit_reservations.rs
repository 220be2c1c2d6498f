//! Reservations against their movements, and what is derived from them against them.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::params;

use super::audit::{Findings, Folds};
use super::codes::{KINDS, PLACES};
use super::index::{self, Used};
use super::reader::Reader;

const PENDING: i64 = 0;
const CONFIRMED: i64 = 1;

/// The status that a movement leaves behind; `None`: it leaves it as it is.
fn status_after(kind: &str) -> Option<i64> {
    match kind {
        "reserve" | "extend" => Some(PENDING),
        "deduct" | "confirm" | "revive" | "return" => Some(CONFIRMED),
        "cancel" | "seal" => Some(2),
        "expire" => Some(3),
        "lose" => Some(4),
        _ => None,
    }
}

/// A reservation's row as far as it is compared.
struct Row {
    n: i64,
    id: String,
    status: i64,
    sealed: bool,
    noted: bool,
    movement: i64,
}

/// What the movements of one reservation say.
#[derive(Default)]
struct History {
    length: i64,
    status: Option<i64>,
    sealed: bool,
    noted: bool,
    /// Reserved and sold by (SKU, location).
    moved: BTreeMap<(i64, i64), (i64, i64)>,
    broken: Option<String>,
}

fn history(reader: &Reader, row: &Row) -> rusqlite::Result<History> {
    let mut history = History::default();
    let mut select = reader.conn.prepare_cached(
        "SELECT kind, reservation, before, sku, location, reserved_by, sold_by FROM movements WHERE number = ?1",
    )?;
    let mut number = row.movement;
    loop {
        let mut rows = select.query([number])?;
        let Some(found) = rows.next()? else {
            history.broken = Some(format!("movement {number} is missing"));
            return Ok(history);
        };
        if found.get::<_, Option<i64>>(1)? != Some(row.n) {
            history.broken = Some(format!("movement {number} belongs to another"));
            return Ok(history);
        }
        history.length += 1;
        let code: usize = usize::try_from(found.get::<_, i64>(0)?).unwrap_or(usize::MAX);
        let kind = KINDS.get(code).copied().unwrap_or("");
        history.status = history.status.or_else(|| status_after(kind));
        history.sealed |= kind == "seal";
        history.noted |= kind == "note";
        if let (Some(sku), Some(location)) = (found.get(3)?, found.get(4)?) {
            let (reserved, sold) = history.moved.entry((sku, location)).or_default();
            *reserved += found.get::<_, i64>(5)?;
            *sold += found.get::<_, i64>(6)?;
        }
        match found.get::<_, Option<i64>>(2)? {
            Some(before) if before < number => number = before,
            Some(before) => {
                history.broken = Some(format!("movement {number} names {before} as the one before"));
                return Ok(history);
            }
            None => return Ok(history),
        }
    }
}

pub(super) fn audit(
    reader: &Reader,
    shard: u32,
    folds: &mut Folds,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    let conn = &reader.conn;
    let tail: HashSet<i64> = index::changed(conn, reader.indexed()?)?.into_iter().collect();
    let returned = returned(reader, shard)?;
    let mut select = conn.prepare_cached(
        "SELECT n, id, status, sealed, noted, movement FROM reservations WHERE shard = ?1 ORDER BY n",
    )?;
    let mut rows = select.query([shard])?;
    let (mut movements, mut allocations) = (0, 0);
    let mut used = Vec::new();
    while let Some(row) = rows.next()? {
        if findings.are_enough() {
            return Ok(());
        }
        let row = Row {
            n: row.get(0)?,
            id: row.get(1)?,
            status: row.get(2)?,
            sealed: row.get(3)?,
            noted: row.get(4)?,
            movement: row.get(5)?,
        };
        let place = || format!("reservation {}", row.id);
        let history = history(reader, &row)?;
        movements += history.length;
        if let Some(broken) = history.broken {
            findings.add("movement", place(), "a whole chain", broken);
            continue;
        }
        findings.compare("status", place, history.status.unwrap_or(-1), row.status);
        findings.compare("sealed", place, history.sealed, row.sealed);
        findings.compare("noted", place, history.noted, row.noted);

        let mut held: BTreeMap<(i64, i64), (i64, i64)> = BTreeMap::new();
        let mut back = 0;
        let mut select = conn.prepare_cached(
            "SELECT sku, location, quantity, confirmed, returned FROM allocations WHERE key BETWEEN ?1 AND ?2",
        )?;
        let mut lines = select.query([row.n * PLACES, (row.n + 1) * PLACES - 1])?;
        while let Some(line) = lines.next()? {
            allocations += 1;
            let key = (line.get(0)?, line.get(1)?);
            let (quantity, confirmed, given_back): (i64, i64, i64) =
                (line.get(2)?, line.get(3)?, line.get(4)?);
            back += given_back;
            let units = match row.status {
                PENDING => (quantity, 0),
                CONFIRMED => (0, confirmed - given_back),
                _ => (0, 0),
            };
            let sum = held.entry(key).or_default();
            *sum = (sum.0 + units.0, sum.1 + units.1);
            let fold = folds.entry(key).or_default();
            fold.held += units.0;
            fold.kept += units.1;
        }
        let mut moved = history.moved;
        moved.retain(|_, sums| *sums != (0, 0));
        held.retain(|_, sums| *sums != (0, 0));
        if moved != held {
            findings.add(
                "allocations",
                place(),
                format!("(reserved, sold) {moved:?}"),
                format!("{held:?}"),
            );
        }
        findings.compare(
            "returned",
            place,
            returned.get(&row.n).copied().unwrap_or(0),
            back,
        );
        if !tail.contains(&row.n) {
            derived(reader, &row, &mut used, findings)?;
        }
    }
    let count = |sql: &str| conn.query_row(sql, params![shard], |row| row.get::<_, i64>(0));
    let all = count(
        "SELECT count(*) FROM movements m LEFT JOIN reservations r ON r.n = m.reservation \
         WHERE m.reservation IS NOT NULL AND ifnull(r.shard, ?1) = ?1",
    )?;
    findings.compare(
        "movement",
        || "movements that belong to reservations".to_owned(),
        movements,
        all,
    );
    let all = count(
        "SELECT count(*) FROM allocations a LEFT JOIN reservations r ON r.n = a.key / 16384 \
         WHERE ifnull(r.shard, ?1) = ?1",
    )?;
    findings.compare(
        "allocations",
        || "rows that belong to reservations".to_owned(),
        allocations,
        all,
    );
    orphans(reader, findings)
}

/// Units returned by reservation, from the returns.
fn returned(reader: &Reader, shard: u32) -> rusqlite::Result<HashMap<i64, i64>> {
    reader
        .conn
        .prepare_cached(
            "SELECT t.reservation, sum(l.quantity) FROM returns t JOIN return_lines l ON l.\"return\" = t.n \
             WHERE t.shard = ?1 GROUP BY t.reservation",
        )?
        .query_map([shard], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// The deferred tables' rows about a reservation that has not changed since they were filled.
fn derived(
    reader: &Reader,
    row: &Row,
    used: &mut Vec<Used>,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    used.clear();
    let live = index::used(&reader.conn, row.n, used)?;
    let place = || format!("reservation {}", row.id);
    let listed = reader
        .conn
        .prepare_cached("SELECT 1 FROM live WHERE reservation = ?1")?
        .exists([row.n])?;
    findings.compare("live", place, live, listed);
    let mut select = reader.conn.prepare_cached(
        "SELECT era, used FROM owners WHERE tenant = ?1 AND owner = ?2 AND reservation = ?3 AND sku = ?4",
    )?;
    for one in used {
        let mut rows = select.query(params![one.tenant, one.owner, one.reservation, one.sku])?;
        let found: Option<(u32, i64)> = match rows.next()? {
            Some(row) => Some((row.get(0)?, row.get(1)?)),
            None => None,
        };
        if found != Some((one.era, one.units)) {
            let place = format!(
                "{} of {} by reservation {}",
                reader.sku(one.sku)?,
                one.owner,
                row.id
            );
            let found = found.map_or("no row".to_owned(), |(era, used)| format!("{used} in era {era}"));
            findings.add("usage", place, format!("{} in era {}", one.units, one.era), found);
        }
    }
    Ok(())
}

/// Rows of the deferred tables that no reservation explains.
///
/// The plus keeps SQLite from an automatic index over the SKU, in which a hot SKU's reservations all have one key: every
/// row would meet every other.
fn orphans(reader: &Reader, findings: &mut Findings) -> rusqlite::Result<()> {
    for (what, sql) in [
        (
            "usage",
            "SELECT o.owner, o.reservation FROM owners o LEFT JOIN reservations r \
             ON r.n = o.reservation AND r.tenant = o.tenant AND r.owner = o.owner \
             LEFT JOIN allocations a ON a.key BETWEEN r.n * 16384 AND r.n * 16384 + 16383 AND +a.sku = o.sku \
             WHERE a.key IS NULL LIMIT 10",
        ),
        (
            "live",
            "SELECT 'live', l.reservation FROM live l LEFT JOIN reservations r ON r.n = l.reservation \
             WHERE r.n IS NULL LIMIT 10",
        ),
    ] {
        let mut select = reader.conn.prepare_cached(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (name, n): (String, i64) = (row.get(0)?, row.get(1)?);
            findings.add(
                what,
                format!("{name}, reservation number {n}"),
                "a reservation",
                "none",
            );
        }
    }
    Ok(())
}

//! Mending counters and derived tables by recorded movements.
//!
//! Which side is right: `on_hand` is what the movements add up to; reserved and sold are what live and confirmed
//! reservations hold. Where the movements say otherwise about reserved or sold, a reservation was changed by hand, and a
//! movement makes good the difference. A history that was changed cannot be mended by adding to it.

use std::hash::{BuildHasher, RandomState};

use rusqlite::{Connection, OptionalExtension, params};
use stockade_core::{Counters, Id, Reason};

use super::audit::{Findings, Fold, all_but_counters};
use super::codes::{self, REPAIR, wrong};
use super::index;
use super::reader::Reader;
use super::record::Numbers;
use super::tail::Marks;
use super::view::shard_row;
use crate::api::ShardRow;
use crate::care::{CounterRepair, RepairPlan};

/// Differences beyond which mending makes no sense: the counters are not computed from what was not read.
const DIFFERENCES: usize = 100_000;

/// Findings about tables that are derived from others.
const DERIVED: [&str; 4] = ["id", "index", "live", "usage"];

/// What differs, and how it would be mended.
pub(super) fn plan(reader: &Reader, shard: u32) -> rusqlite::Result<RepairPlan> {
    let row = shard_row(&reader.conn, shard)?.ok_or_else(|| wrong(0, format!("no row for shard {shard}")))?;
    let mut findings = Findings::new(DIFFERENCES);
    let folds = all_but_counters(reader, shard, &mut findings)?;
    if findings.are_enough() {
        return Err(wrong(
            0,
            format!("more than {DIFFERENCES} differences: restore a backup"),
        ));
    }
    let mut plan = RepairPlan {
        row,
        counters: Vec::new(),
        derived: false,
        left: Vec::new(),
    };
    let mut keys: Vec<(i64, i64)> = reader
        .conn
        .prepare_cached(
            "SELECT t.sku, t.location FROM stock t JOIN skus s ON s.n = t.sku WHERE s.shard = ?1",
        )?
        .query_map([shard], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    keys.extend(folds.keys());
    keys.sort_unstable();
    keys.dedup();
    let nothing = Fold::default();
    for key in keys {
        let fold = folds.get(&key).unwrap_or(&nothing);
        counters(reader, key, fold, &mut plan, &mut findings)?;
    }
    for finding in findings.into_list() {
        if DERIVED.contains(&finding.what.as_str()) {
            plan.derived = true;
        } else {
            plan.left.push(finding);
        }
    }
    Ok(plan)
}

/// A row of `stock` as it is, unchecked: `on_hand`, reserved, sold, `safety_stock`, version.
type Row = (i64, i64, i64, i64, i64);

fn stock(conn: &Connection, key: (i64, i64)) -> rusqlite::Result<Option<Row>> {
    conn.prepare_cached(
        "SELECT on_hand, reserved, sold, safety_stock, version FROM stock WHERE sku = ?1 AND location = ?2",
    )?
    .query_row([key.0, key.1], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    })
    .optional()
}

/// What is there, for people: a value that no ledger writes is shown as 0.
fn shown(row: Row) -> Counters {
    let count = |value: i64| u64::try_from(value).unwrap_or(0);
    Counters {
        on_hand: count(row.0),
        reserved: count(row.1),
        sold: count(row.2),
        safety_stock: count(row.3),
        version: count(row.4),
    }
}

fn counters(
    reader: &Reader,
    key: (i64, i64),
    fold: &Fold,
    plan: &mut RepairPlan,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    let found = stock(&reader.conn, key)?;
    let by = (fold.held - fold.reserved, fold.kept - fold.sold);
    let is = (
        fold.on_hand,
        fold.held,
        fold.kept,
        fold.safety_stock,
        fold.version,
    );
    if by == (0, 0) && found == Some(is) {
        return Ok(());
    }
    let (sku, location) = (reader.sku(key.0)?, reader.name(key.1)?);
    let place = format!("{sku} at {location}");
    if fold.held > fold.on_hand {
        // Live reservations of units that no movement brought: only an operator can say where they are.
        findings.add(
            "reserved",
            place,
            format!("at most {} on hand", fold.on_hand),
            fold.held,
        );
        return Ok(());
    }
    let tenant: i64 = reader
        .conn
        .prepare_cached("SELECT tenant FROM skus WHERE n = ?1")?
        .query_row([key.0], |row| row.get(0))?;
    plan.counters.push(CounterRepair {
        tenant: reader.name(tenant)?,
        sku,
        location,
        found: found.map(shown),
        right: Counters {
            on_hand: codes::count(0, fold.on_hand)?,
            reserved: codes::count(1, fold.held)?,
            sold: codes::count(2, fold.kept)?,
            safety_stock: codes::count(3, fold.safety_stock)?,
            version: codes::count(4, fold.version + 1)?,
        },
        reserved: by.0,
        sold: by.1,
    });
    Ok(())
}

/// How carrying out a plan went.
pub(super) enum Outcome {
    Done(ShardRow),
    Moved(String),
}

/// Carries out a plan, inside a transaction that writes.
pub(super) fn apply(
    conn: &Connection,
    plan: &RepairPlan,
    mut numbers: Numbers,
    actor: &Id,
    reason: &Reason,
) -> rusqlite::Result<Outcome> {
    let shard = plan.row.shard;
    if shard_row(conn, shard)?.as_ref() != Some(&plan.row) {
        return Ok(Outcome::Moved(format!("shard {shard}")));
    }
    let now = super::sharing::now(conn)?.max(plan.row.at);
    let who = number(conn, actor)?;
    let mut movement = conn.prepare_cached(
        "INSERT INTO movements (number, at, kind, actor, reason, sku, location, on_hand_by, reserved_by, sold_by, \
         on_hand, reserved, sold, safety_stock, version) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    for one in &plan.counters {
        let Some(key) = key(conn, one)? else {
            return Ok(Outcome::Moved(format!("{} at {}", one.sku, one.location)));
        };
        if stock(conn, key)?.map(shown) != one.found {
            return Ok(Outcome::Moved(format!("{} at {}", one.sku, one.location)));
        }
        numbers.movement += 1;
        let right = [
            one.right.on_hand,
            one.right.reserved,
            one.right.sold,
            one.right.safety_stock,
            one.right.version,
        ]
        .map(u64::cast_signed);
        movement.execute(params![
            numbers.movement,
            now,
            REPAIR,
            who,
            reason.as_str(),
            key.0,
            key.1,
            one.reserved,
            one.sold,
            right[0],
            right[1],
            right[2],
            right[3],
            right[4],
        ])?;
        conn.prepare_cached(
            "INSERT INTO stock (sku, location, i, on_hand, reserved, sold, safety_stock, version) \
             SELECT ?1, ?2, ifnull(max(i) + 1, 0), ?3, ?4, ?5, ?6, ?7 FROM stock WHERE sku = ?1 \
             ON CONFLICT (sku, location) DO UPDATE SET on_hand = ?3, reserved = ?4, sold = ?5, safety_stock = ?6, \
             version = ?7",
        )?
        .execute(params![key.0, key.1, right[0], right[1], right[2], right[3], right[4]])?;
    }
    if plan.derived {
        numbers.movement += 1;
        let none: Option<i64> = None;
        movement.execute(params![
            numbers.movement,
            now,
            REPAIR,
            who,
            reason.as_str(),
            none,
            none,
            0,
            0,
            none,
            none,
            none,
            none,
            none,
        ])?;
        conn.execute_batch(
            "DELETE FROM ids; DELETE FROM owners; DELETE FROM live; DELETE FROM sku_movements; \
             UPDATE deferred SET indexed = 0, reservation = 0",
        )?;
        index::fill(conn, Marks::default(), numbers)?;
    }
    enter(conn, &plan.row, numbers, now, actor)?;
    shard_row(conn, shard)?
        .map(Outcome::Done)
        .ok_or_else(|| wrong(0, format!("no row for shard {shard}")))
}

/// An entry for the repairs, and a new epoch that begins with it.
fn enter(conn: &Connection, row: &ShardRow, numbers: Numbers, now: i64, actor: &Id) -> rusqlite::Result<()> {
    // Random, and never 0.
    let tag = (RandomState::new().hash_one((row.epoch, row.cursor)) | 1).cast_signed();
    conn.prepare_cached(
        "INSERT INTO entries (shard, seq, epoch, tag, prev, at, movement, reservation) \
         VALUES (?1, ?2 + 1, ?3 + 1, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        row.shard,
        row.cursor.cast_signed(),
        row.epoch.cast_signed(),
        tag,
        row.tag.cast_signed(),
        now,
        numbers.movement,
        numbers.reservation
    ])?;
    conn.prepare_cached(
        "UPDATE shards SET epoch = epoch + 1, mode = 'rebuild', owner = ?2, cursor = cursor + 1, tag = ?3, at = ?4, \
         movement = ?5, reservation = ?6 WHERE n = ?1",
    )?
    .execute(params![
        row.shard,
        actor.as_str(),
        tag,
        now,
        numbers.movement,
        numbers.reservation
    ])?;
    Ok(())
}

/// The number of an actor, given now if it has none.
fn number(conn: &Connection, name: &Id) -> rusqlite::Result<i64> {
    conn.prepare_cached(
        "INSERT INTO names (name) VALUES (?1) ON CONFLICT (name) DO UPDATE SET n = n RETURNING n",
    )?
    .query_row([name.as_str()], |row| row.get(0))
}

fn key(conn: &Connection, one: &CounterRepair) -> rusqlite::Result<Option<(i64, i64)>> {
    conn.prepare_cached(
        "SELECT s.n, l.n FROM names t JOIN skus s ON s.tenant = t.n AND s.sku = ?2 JOIN names l ON l.name = ?3 \
         WHERE t.name = ?1",
    )?
    .query_row(
        params![one.tenant.as_str(), one.sku.as_str(), one.location.as_str()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
    .optional()
}

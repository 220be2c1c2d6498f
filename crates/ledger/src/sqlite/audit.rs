//! The ledger against itself: the chain, the counters against the fold of the movements, reservations against their
//! movements, what is derived against what it is derived from, and SQLite's own check of the file.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasher;

use rusqlite::Row;

use super::audit_reservations;
use super::prune;
use super::reader::Reader;
use super::retain;
use super::view::shard_row;
use crate::api::Finding;

/// What was found so far, and how much is wanted.
#[derive(Debug)]
pub(super) struct Findings {
    list: Vec<Finding>,
    limit: usize,
}

impl Findings {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            list: Vec::new(),
            limit,
        }
    }

    pub(super) fn into_list(self) -> Vec<Finding> {
        self.list
    }

    pub(super) fn are_enough(&self) -> bool {
        self.list.len() >= self.limit
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass values that they made for this"
    )]
    pub(super) fn add(
        &mut self,
        what: &str,
        place: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
    ) {
        if !self.are_enough() {
            self.list.push(Finding {
                what: what.to_owned(),
                place: place.into(),
                expected: expected.to_string(),
                found: found.to_string(),
            });
        }
    }

    pub(super) fn compare<T: PartialEq + ToString>(
        &mut self,
        what: &str,
        place: impl FnOnce() -> String,
        expected: T,
        found: T,
    ) {
        if expected != found {
            self.add(what, place(), expected, found);
        }
    }
}

/// The fold of the movements of one (SKU, location), and what live and confirmed allocations add up to.
#[derive(Debug, Default)]
pub(super) struct Fold {
    pub(super) on_hand: i64,
    pub(super) reserved: i64,
    pub(super) sold: i64,
    pub(super) safety_stock: i64,
    pub(super) version: i64,
    pub(super) held: i64,
    pub(super) kept: i64,
}

/// By (SKU, location).
pub(super) type Folds = BTreeMap<(i64, i64), Fold>;

/// Everything; at most `limit` findings.
pub(super) fn audit(reader: &Reader, shard: u32, limit: usize) -> rusqlite::Result<Vec<Finding>> {
    let mut findings = Findings::new(limit);
    let mut folds = all_but_counters(reader, shard, &mut findings)?;
    counters(reader, shard, &mut folds, &mut findings)?;
    Ok(findings.list)
}

/// Everything but the counters; what they should be, if there are not enough findings already.
pub(super) fn all_but_counters(
    reader: &Reader,
    shard: u32,
    findings: &mut Findings,
) -> rusqlite::Result<Folds> {
    file(reader, findings)?;
    chain(reader, shard, findings)?;
    let mut movements = Movements::new(reader, shard)?;
    let mut folds = bases(reader, &movements.ours)?;
    audit_reservations::audit(reader, shard, &mut movements, &mut folds, findings)?;
    revisions(reader, shard, findings)?;
    by_sku(reader, &movements, findings)?;
    Ok(folds)
}

/// What the movements that retention passed left.
fn bases(reader: &Reader, ours: &HashSet<i64>) -> rusqlite::Result<Folds> {
    let mut folds = Folds::new();
    let mut select = reader.conn.prepare_cached(
        "SELECT sku, location, on_hand, reserved, sold, safety_stock, version, gone FROM stock_base",
    )?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let key: (i64, i64) = (row.get(0)?, row.get(1)?);
        if ours.contains(&key.0) {
            let fold = Fold {
                on_hand: row.get(2)?,
                reserved: row.get(3)?,
                sold: row.get(4)?,
                safety_stock: row.get(5)?,
                version: row.get(6)?,
                held: 0,
                kept: row.get(7)?,
            };
            folds.insert(key, fold);
        }
    }
    Ok(folds)
}

/// SQLite's own check: pages, the order of keys, indexes against tables, CHECKs.
fn file(reader: &Reader, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut check = reader.conn.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = check.query([])?;
    while let Some(row) = rows.next()? {
        let said: String = row.get(0)?;
        if said != "ok" {
            findings.add("file", super::Sqlite::FILE, "ok", said);
        }
    }
    Ok(())
}

/// Gapless from 1 (or from where it was pruned), each naming the tag before; the shard's row is at the last.
fn chain(reader: &Reader, shard: u32, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut select = reader.conn.prepare_cached(
        "SELECT seq, epoch, tag, prev, at, movement, reservation FROM entries WHERE shard = ?1 ORDER BY seq",
    )?;
    let mut rows = select.query([shard])?;
    let base = prune::base(&reader.conn, shard)?;
    let (mut seq, mut epoch, mut tag, mut at) = (base.seq, base.epoch, base.tag, base.at);
    let mut numbers = (base.movement, base.reservation);
    let hex = |tag: i64| format!("{:016x}", tag.cast_unsigned());
    while let Some(row) = rows.next()? {
        if findings.are_enough() {
            return Ok(());
        }
        let next: i64 = row.get(0)?;
        let place = || format!("shard {shard} entry {next}");
        findings.compare("chain", || format!("{}: seq", place()), seq + 1, next);
        findings.compare(
            "chain",
            || format!("{}: prev", place()),
            hex(tag),
            hex(row.get(3)?),
        );
        let (next_epoch, next_at): (i64, i64) = (row.get(1)?, row.get(4)?);
        let next_numbers = (row.get(5)?, row.get(6)?);
        if next_epoch < epoch || next_at < at || next_numbers.0 < numbers.0 || next_numbers.1 < numbers.1 {
            findings.add(
                "chain",
                place(),
                format!("at least epoch {epoch} at {at} numbers {numbers:?}"),
                format!("epoch {next_epoch} at {next_at} numbers {next_numbers:?}"),
            );
        }
        (seq, epoch, tag, at, numbers) = (next, next_epoch, row.get(2)?, next_at, next_numbers);
    }
    let place = |what: &str| format!("shard {shard}: {what}");
    let Some(row) = shard_row(&reader.conn, shard)? else {
        findings.compare("chain", || place("row"), seq, 0);
        return Ok(());
    };
    findings.compare("chain", || place("cursor"), seq.cast_unsigned(), row.cursor);
    findings.compare("chain", || place("tag"), hex(tag), hex(row.tag.cast_signed()));
    if seq > 0 {
        findings.compare("chain", || place("at"), at, row.at);
    }
    if row.epoch < epoch.cast_unsigned() {
        findings.add("chain", place("epoch"), format!("at least {epoch}"), row.epoch);
    }
    Ok(())
}

fn place(reader: &Reader, (sku, location): (i64, i64)) -> rusqlite::Result<String> {
    Ok(format!("{} at {}", reader.sku(sku)?, reader.name(location)?))
}

/// The movements by (SKU, location): each one's counters must follow from those before it.
pub(super) struct Movements {
    ours: HashSet<i64>,
    indexed: i64,
    /// Movements up to this one are in the base.
    reached: i64,
    hasher: RandomState,
    /// A sum over what the table by SKU should hold.
    by_sku: u64,
}

impl Movements {
    fn new(reader: &Reader, shard: u32) -> rusqlite::Result<Self> {
        Ok(Self {
            ours: reader
                .conn
                .prepare_cached("SELECT n FROM skus WHERE shard = ?1")?
                .query_map([shard], |row| row.get(0))?
                .collect::<Result<_, _>>()?,
            indexed: reader.marks.indexed,
            reached: retain::reached(&reader.conn)?,
            hasher: RandomState::new(),
            by_sku: 0,
        })
    }

    /// The next movement: number, sku and location at 4 and 5, then changes and counters.
    pub(super) fn add(
        &mut self,
        reader: &Reader,
        row: &Row<'_>,
        folds: &mut Folds,
        findings: &mut Findings,
    ) -> rusqlite::Result<()> {
        let number: i64 = row.get(0)?;
        let Some(sku) = row.get::<_, Option<i64>>(4)? else {
            return Ok(());
        };
        if number <= self.indexed {
            self.by_sku = self.by_sku.wrapping_add(self.hasher.hash_one((sku, number)));
        }
        let Some(location) = row.get(5)? else {
            return Ok(());
        };
        if number <= self.reached || !self.ours.contains(&sku) {
            return Ok(());
        }
        let key: (i64, i64) = (sku, location);
        let fold = folds.entry(key).or_default();
        fold.on_hand += row.get::<_, i64>(6)?;
        fold.reserved += row.get::<_, i64>(7)?;
        fold.sold += row.get::<_, i64>(8)?;
        fold.safety_stock = row.get(12)?;
        fold.version += 1;
        let after: (i64, i64, i64, i64) = (row.get(9)?, row.get(10)?, row.get(11)?, row.get(13)?);
        let expected = (fold.on_hand, fold.reserved, fold.sold, fold.version);
        if after != expected {
            findings.add(
                "movement",
                format!("movement {number}, {}", place(reader, key)?),
                format!("on_hand, reserved, sold, version {expected:?}"),
                format!("{after:?}"),
            );
            // One finding for one difference: go on from what is there.
            (fold.on_hand, fold.reserved, fold.sold, fold.version) = after;
        }
        Ok(())
    }
}

/// The counters against the folds, and reserved and sold against the reservations.
fn counters(reader: &Reader, shard: u32, folds: &mut Folds, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut select = reader.conn.prepare_cached(
        "SELECT t.sku, t.location, t.on_hand, t.reserved, t.sold, t.safety_stock, t.version FROM stock t \
         JOIN skus s ON s.n = t.sku WHERE s.shard = ?1",
    )?;
    let mut rows = select.query([shard])?;
    while let Some(row) = rows.next()? {
        let key: (i64, i64) = (row.get(0)?, row.get(1)?);
        let place = place(reader, key)?;
        let fold = folds.remove(&key).unwrap_or_default();
        let reserved: i64 = row.get(3)?;
        let sold: i64 = row.get(4)?;
        for (what, expected, found) in [
            ("on_hand", fold.on_hand, row.get(2)?),
            ("reserved", fold.reserved, reserved),
            ("sold", fold.sold, sold),
            ("safety_stock", fold.safety_stock, row.get(5)?),
            ("version", fold.version, row.get(6)?),
            ("reserved", fold.held, reserved),
            ("sold", fold.kept, sold),
        ] {
            findings.compare(what, || place.clone(), expected, found);
        }
    }
    for key in folds.keys() {
        findings.add("counters", place(reader, *key)?, "a row", "none");
    }
    Ok(())
}

/// A SKU's revision counts its stock commands.
fn revisions(reader: &Reader, shard: u32, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut commands = BTreeMap::<i64, (i64, i64)>::new();
    let mut select = reader
        .conn
        .prepare_cached("SELECT sku, revision FROM stock_commands WHERE shard = ?1")?;
    let mut rows = select.query([shard])?;
    while let Some(row) = rows.next()? {
        let (count, highest) = commands.entry(row.get(0)?).or_default();
        *count += 1;
        *highest = (*highest).max(row.get(1)?);
    }
    let mut select = reader
        .conn
        .prepare_cached("SELECT n, revision FROM skus WHERE shard = ?1")?;
    let mut rows = select.query([shard])?;
    while let Some(row) = rows.next()? {
        let (n, revision): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (count, highest) = commands.remove(&n).unwrap_or_default();
        if (count, highest) != (revision, revision) {
            let sku = reader.sku(n)?;
            findings.add(
                "revision",
                sku.to_string(),
                format!("{count} commands up to {highest}"),
                revision,
            );
        }
    }
    for n in commands.keys() {
        findings.add("revision", format!("SKU number {n}"), "a SKU", "only commands");
    }
    Ok(())
}

/// The table by SKU holds exactly the movements up to its mark.
fn by_sku(reader: &Reader, movements: &Movements, findings: &mut Findings) -> rusqlite::Result<()> {
    if findings.are_enough() {
        return Ok(());
    }
    let mut sum = movements.by_sku;
    let mut select = reader
        .conn
        .prepare_cached("SELECT sku, movement FROM sku_movements")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let key: (i64, i64) = (row.get(0)?, row.get(1)?);
        sum = sum.wrapping_sub(movements.hasher.hash_one(key));
    }
    if sum == 0 {
        return Ok(());
    }
    for (sql, expected, found) in [
        (
            "SELECT number FROM movements m WHERE number <= ?1 AND sku IS NOT NULL AND NOT EXISTS \
             (SELECT 1 FROM sku_movements s WHERE s.sku = m.sku AND s.movement = m.number) LIMIT 10",
            "a row",
            "none",
        ),
        (
            "SELECT movement FROM sku_movements s WHERE movement > ?1 OR NOT EXISTS \
             (SELECT 1 FROM movements m WHERE m.sku = s.sku AND m.number = s.movement) LIMIT 10",
            "no row",
            "a row",
        ),
    ] {
        let mut select = reader.conn.prepare_cached(sql)?;
        let mut rows = select.query([movements.indexed])?;
        while let Some(row) = rows.next()? {
            let place = format!("sku_movements, movement {}", row.get::<_, i64>(0)?);
            findings.add("index", place, expected, found);
        }
    }
    Ok(())
}

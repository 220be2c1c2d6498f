//! Pages of movements and reservations, newest first.
//!
//! Each question picks the narrowest way to the numbers of its candidates, in falling order, and then tests every
//! condition on the whole record, so that a way only has to be complete, not exact. The deferred tables hold what is
//! at or below their marks; above the marks the rows themselves are read.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, Row, params};
use stockade_core::{Counters, Id, Millis, Reservation, Status};

use super::codes::{self, DEDUCT, RESERVE};
use super::prune;
use super::reader::Reader;
use crate::api::{Movement, MovementPage, MovementQuery, MovementsKept, ReservationQuery};

/// The columns of a movement, in the order that [`Reader::movement_row`] reads, its tenant last, and where they are from.
macro_rules! movement_columns {
    () => {
        "m.at, m.kind, m.actor, m.reason, r.id, r.owner, m.command, m.sku, m.location, m.on_hand_by, m.reserved_by, \
         m.sold_by, m.on_hand, m.reserved, m.sold, m.safety_stock, m.version, m.number, ifnull(r.tenant, s.tenant) \
         FROM movements m LEFT JOIN reservations r ON r.n = m.reservation LEFT JOIN skus s ON s.n = m.sku"
    };
}

/// Numbers above `low`, at most `high`.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: i64,
    high: i64,
}

/// A way: a statement that yields numbers in falling order within ?1 (exclusive) and ?2 (inclusive), and what ?3 and
/// ?4 are.
struct Way(&'static str, Vec<rusqlite::types::Value>);

impl Reader {
    /// Walks ways one after the other until `each` has enough.
    fn walk(
        &self,
        ways: &[Way],
        range: Range,
        each: &mut dyn FnMut(i64) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<()> {
        for Way(sql, more) in ways {
            let mut select = self.conn.prepare_cached(sql)?;
            let first = [range.low.into(), range.high.into()];
            let mut rows = select.query(rusqlite::params_from_iter(first.iter().chain(more)))?;
            while let Some(row) = rows.next()? {
                if !each(row.get(0)?)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The first entry of a shard at or after `at`: the highest numbers before it, and after it. Times do not fall
    /// along a chain, so this is a binary search.
    fn entry_at(&self, shard: u32, cursor: i64, at: Millis) -> rusqlite::Result<(i64, Option<i64>)> {
        let (mut low, mut high) = (prune::base(&self.conn, shard)?.seq + 1, cursor + 1);
        let mut select = self.conn.prepare_cached(
            "SELECT seq, at FROM entries WHERE shard = ?1 AND seq >= ?2 ORDER BY seq LIMIT 1",
        )?;
        while low < high {
            let middle = low + (high - low) / 2;
            let found: Option<(i64, Millis)> = select
                .query_row(params![shard, middle], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            match found {
                Some((seq, time)) if time < at => low = seq + 1,
                _ => high = middle,
            }
        }
        Ok((low - 1, (low <= cursor).then_some(low)))
    }

    /// The numbers that entries between two times can have given. `column` is `movement` or `reservation`.
    fn between(&self, column: &str, from: Option<Millis>, until: Option<Millis>) -> rusqlite::Result<Range> {
        let mut range = Range {
            low: if from.is_some() { i64::MAX } else { 0 },
            high: i64::MAX,
        };
        if from.is_none() && until.is_none() {
            return Ok(range);
        }
        let shards: Vec<(u32, i64)> = self
            .conn
            .prepare_cached("SELECT n, cursor FROM shards")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let number = |shard: u32, seq: i64| -> rusqlite::Result<i64> {
            self.conn
                .prepare_cached(&format!(
                    "SELECT {column} FROM entries WHERE shard = ?1 AND seq = ?2"
                ))?
                .query_row(params![shard, seq], |row| row.get(0))
                .optional()?
                .map_or_else(
                    || {
                        prune::base(&self.conn, shard).map(|base| {
                            if column == "movement" {
                                base.movement
                            } else {
                                base.reservation
                            }
                        })
                    },
                    Ok,
                )
        };
        let mut high = 0;
        for (shard, cursor) in shards {
            if let Some(from) = from {
                let (before, first) = self.entry_at(shard, cursor, from)?;
                if from <= prune::base(&self.conn, shard)?.at {
                    // The entries of that time were pruned: everything up to them may be meant.
                    range.low = 0;
                } else if first.is_some() {
                    range.low = range.low.min(number(shard, before)?);
                }
            }
            if let Some(until) = until {
                high = match self.entry_at(shard, cursor, until)?.1 {
                    Some(first) => high.max(number(shard, first)?),
                    None => i64::MAX,
                };
            }
        }
        if until.is_some() {
            range.high = high;
        }
        Ok(range)
    }

    fn movement(&self, number: i64, tenant: i64) -> rusqlite::Result<Option<Movement>> {
        let mut select = self.conn.prepare_cached(concat!(
            "SELECT ",
            movement_columns!(),
            " WHERE m.number = ?1 AND ifnull(r.tenant, s.tenant) = ?2"
        ))?;
        select
            .query_row([number, tenant], |row| self.movement_row(row))
            .optional()
    }

    fn movement_row(&self, row: &Row<'_>) -> rusqlite::Result<Movement> {
        let text = |at: usize| {
            row.get_ref(at)?
                .as_str_or_null()?
                .map(|text| codes::id(at, text))
                .transpose()
        };
        let sku: Option<i64> = row.get(7)?;
        let location: Option<i64> = row.get(8)?;
        let after = match row.get::<_, Option<i64>>(12)? {
            Some(on_hand) => Some(Counters {
                on_hand: codes::count(12, on_hand)?,
                reserved: codes::count(13, row.get(13)?)?,
                sold: codes::count(14, row.get(14)?)?,
                safety_stock: codes::count(15, row.get(15)?)?,
                version: codes::count(16, row.get(16)?)?,
            }),
            None => None,
        };
        Ok(Movement {
            number: row.get(17)?,
            at: row.get(0)?,
            kind: codes::kind(1, row.get(1)?)?.to_owned(),
            actor: self.name(row.get(2)?)?,
            reason: row.get(3)?,
            reservation: text(4)?,
            owner: text(5)?,
            command: text(6)?,
            sku: sku.map(|sku| self.sku(sku)).transpose()?,
            location: location.map(|location| self.name(location)).transpose()?,
            on_hand: row.get(9)?,
            reserved: row.get(10)?,
            sold: row.get(11)?,
            after,
        })
    }

    /// Movements of all tenants after a number, oldest first. The number is the table's key: the work grows with what
    /// comes out.
    pub(super) fn movements_after(&self, after: i64, limit: usize) -> rusqlite::Result<Vec<(Id, Movement)>> {
        let mut select = self.conn.prepare_cached(concat!(
            "SELECT ",
            movement_columns!(),
            " WHERE m.number > ?1 ORDER BY m.number LIMIT ?2"
        ))?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = select.query([after, limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((self.name(row.get(18)?)?, self.movement_row(row)?));
        }
        Ok(found)
    }

    /// Which movements are kept.
    pub(super) fn movements_kept(&self) -> rusqlite::Result<MovementsKept> {
        self.conn
            .prepare_cached("SELECT movement, (SELECT ifnull(max(number), 0) FROM movements) FROM retention")?
            .query_row([], |row| {
                Ok(MovementsKept {
                    complete_after: row.get(0)?,
                    newest: row.get(1)?,
                })
            })
    }

    /// The movements of a reservation, newest first.
    pub(super) fn chain(&self, last: i64, each: &mut dyn FnMut(i64)) -> rusqlite::Result<()> {
        let mut select = self
            .conn
            .prepare_cached("SELECT before FROM movements WHERE number = ?1")?;
        let mut number = Some(last);
        while let Some(at) = number {
            each(at);
            let before: Option<i64> = select.query_row([at], |row| row.get(0))?;
            // Numbers only fall; a row that says otherwise is for the audit, not for an endless loop.
            number = before.filter(|before| *before < at);
        }
        Ok(())
    }
}

/// A page of movements.
pub(super) fn movements(reader: &Reader, query: &MovementQuery) -> rusqlite::Result<MovementPage> {
    let mut page = MovementPage::default();
    let Some(tenant) = reader.name_number(&query.tenant)? else {
        return Ok(page);
    };
    let mut range = reader.between("movement", query.from, query.until)?;
    if let Some(before) = query.before {
        range.high = range.high.min(before.saturating_sub(1));
    }
    let mut take = |number: i64| -> rusqlite::Result<bool> {
        let Some(movement) = reader.movement(number, tenant)? else {
            return Ok(true);
        };
        let fits = query
            .sku
            .as_ref()
            .is_none_or(|sku| movement.sku.as_ref() == Some(sku))
            && query
                .reservation
                .as_ref()
                .is_none_or(|id| movement.reservation.as_ref() == Some(id))
            && query
                .owner
                .as_ref()
                .is_none_or(|owner| movement.owner.as_ref() == Some(owner))
            && query.from.is_none_or(|from| movement.at >= from)
            && query.until.is_none_or(|until| movement.at < until);
        if !fits {
            return Ok(true);
        }
        if page.movements.len() >= query.limit {
            page.next_before = page.movements.last().map(|last| last.number);
            return Ok(false);
        }
        page.movements.push(movement);
        Ok(true)
    };
    if query.reservation.is_some() || query.owner.is_some() {
        let mut numbers = Vec::new();
        let mut add = |last: i64| reader.chain(last, &mut |number| numbers.push(number));
        if let Some(id) = &query.reservation {
            if let Some(n) = reader.number(tenant, id.as_str())? {
                add(reader
                    .conn
                    .prepare_cached("SELECT movement FROM reservations WHERE n = ?1")?
                    .query_row([n], |row| row.get(0))?)?;
            }
        } else if let Some(owner) = &query.owner {
            let mut last = reader
                .conn
                .prepare_cached("SELECT movement FROM reservations WHERE n = ?1")?;
            let all = Range {
                low: 0,
                high: i64::MAX,
            };
            reader.walk(&by_owner(reader, tenant, owner.as_str()), all, &mut |n| {
                add(last.query_row([n], |row| row.get(0))?)?;
                Ok(true)
            })?;
        }
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        for number in numbers
            .into_iter()
            .filter(|number| *number > range.low && *number <= range.high)
        {
            if !take(number)? {
                break;
            }
        }
        return Ok(page);
    }
    let ways = match &query.sku {
        Some(sku) => match reader.sku_number(tenant, sku)? {
            Some(sku) => Vec::from(by_sku(reader, sku)),
            None => Vec::new(),
        },
        None => vec![Way(
            "SELECT m.number FROM movements m LEFT JOIN reservations r ON r.n = m.reservation \
             LEFT JOIN skus s ON s.n = m.sku \
             WHERE m.number > ?1 AND m.number <= ?2 AND ifnull(r.tenant, s.tenant) = ?3 ORDER BY m.number DESC",
            vec![tenant.into()],
        )],
    };
    reader.walk(&ways, range, &mut take)?;
    Ok(page)
}

/// To the movements of a SKU.
fn by_sku(reader: &Reader, sku: i64) -> [Way; 2] {
    let indexed = reader.marks.indexed;
    [
        Way(
            "SELECT number FROM movements WHERE number > max(?1, ?4) AND number <= ?2 AND sku = ?3 ORDER BY number DESC",
            vec![sku.into(), indexed.into()],
        ),
        Way(
            "SELECT movement FROM sku_movements WHERE sku = ?3 AND movement > ?1 AND movement <= ?2 \
             ORDER BY movement DESC",
            vec![sku.into()],
        ),
    ]
}

/// To the reservations of an owner.
fn by_owner(reader: &Reader, tenant: i64, owner: &str) -> [Way; 2] {
    let known = reader.marks.filled;
    [
        Way(
            "SELECT n FROM reservations WHERE n > max(?1, ?5) AND n <= ?2 AND tenant = ?3 AND owner = ?4 ORDER BY n DESC",
            vec![tenant.into(), owner.to_owned().into(), known.into()],
        ),
        Way(
            "SELECT DISTINCT reservation FROM owners WHERE tenant = ?3 AND owner = ?4 AND reservation > ?1 \
             AND reservation <= ?2 ORDER BY reservation DESC",
            vec![tenant.into(), owner.to_owned().into()],
        ),
    ]
}

/// Whether a SKU has fewer movements than the live reservations of a busy ledger: the way by SKU is then the short one.
fn has_short_history(reader: &Reader, sku: Option<i64>) -> rusqlite::Result<bool> {
    let Some(sku) = sku else { return Ok(false) };
    reader
        .conn
        .prepare_cached("SELECT 1 FROM sku_movements WHERE sku = ?1 LIMIT 1 OFFSET 50000")?
        .exists([sku])
        .map(|long| !long)
}

/// A page of reservations.
pub(super) fn reservations(reader: &Reader, query: &ReservationQuery) -> rusqlite::Result<Vec<Reservation>> {
    let mut page = Vec::new();
    let Some(tenant) = reader.name_number(&query.tenant)? else {
        return Ok(page);
    };
    let mut range = reader.between("reservation", query.from, query.until)?;
    if let Some(before) = &query.before {
        match reader.number(tenant, before.as_str())? {
            Some(n) => range.high = range.high.min(n - 1),
            None => return Ok(page),
        }
    }
    let sku = match &query.sku {
        Some(sku) => match reader.sku_number(tenant, sku)? {
            Some(sku) => Some(sku),
            None => return Ok(page),
        },
        None => None,
    };
    let mut seen = HashSet::new();
    let mut take = |n: i64| -> rusqlite::Result<bool> {
        if page.len() >= query.limit {
            return Ok(false);
        }
        let Some(one) = reader.by_number(tenant, n)? else {
            return Ok(true);
        };
        let fits = query
            .owner
            .as_ref()
            .is_none_or(|owner| one.owner.as_ref() == Some(owner))
            && query
                .sku
                .as_ref()
                .is_none_or(|sku| one.lines.iter().any(|line| line.sku == *sku))
            && query.status.is_none_or(|status| one.status == status)
            && query.from.is_none_or(|from| one.granted_at >= from)
            && query.until.is_none_or(|until| one.granted_at < until);
        if fits && seen.insert(n) {
            page.push(one);
        }
        Ok(page.len() < query.limit)
    };
    if let Some(owner) = &query.owner {
        reader.walk(&by_owner(reader, tenant, owner.as_str()), range, &mut take)?;
    } else if query.status == Some(Status::Pending) && !has_short_history(reader, sku)? {
        let known = reader.marks.filled;
        let ways = [
            Way(
                "SELECT n FROM reservations WHERE n > max(?1, ?4) AND n <= ?2 AND tenant = ?3 AND status = 0 \
                 ORDER BY n DESC",
                vec![tenant.into(), known.into()],
            ),
            Way(
                "SELECT l.reservation FROM live l CROSS JOIN reservations r ON r.n = l.reservation \
                 WHERE l.reservation > ?1 AND l.reservation <= ?2 AND r.tenant = ?3 ORDER BY l.reservation DESC",
                vec![tenant.into()],
            ),
        ];
        reader.walk(&ways, range, &mut take)?;
    } else if let Some(sku) = sku {
        // The movements that granted come in the order of their grants.
        let mut granted = reader
            .conn
            .prepare_cached("SELECT reservation FROM movements WHERE number = ?1 AND kind IN (?2, ?3)")?;
        let until = Range {
            low: 0,
            high: reader.between("movement", None, query.until)?.high,
        };
        reader.walk(&by_sku(reader, sku), until, &mut |number| {
            let n: Option<Option<i64>> = granted
                .query_row([number, RESERVE, DEDUCT], |row| row.get(0))
                .optional()?;
            match n.flatten() {
                Some(n) if n <= range.low => Ok(false),
                Some(n) if n <= range.high => take(n),
                _ => Ok(true),
            }
        })?;
    } else {
        // No index helps here, so the statement itself passes over what does not fit: a row costs little that way.
        let ways = [Way(
            "SELECT n FROM reservations WHERE n > ?1 AND n <= ?2 AND tenant = ?3 AND (?4 IS NULL OR status = ?4) \
             ORDER BY n DESC",
            vec![tenant.into(), query.status.map(codes::status_code).into()],
        )];
        reader.walk(&ways, range, &mut take)?;
    }
    Ok(page)
}

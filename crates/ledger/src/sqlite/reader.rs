//! A reading connection and how records are put together from rows.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use stockade_core::{
    Allocation, Counters, Id, Line, LocationRecord, Reservation, ReturnRecord, ReturnedLine, Settings,
    SkuRecord, StockRecord,
};

use super::codes::{self, PLACES, wrong};
use super::ids::Ids;
use super::open;
use super::tail::{Marks, Numbers, Tail};
use crate::api::LedgerError;

/// The columns of a reservation, in the order that [`Reader::reservation_row`] reads.
macro_rules! reservation_columns {
    () => {
        "r.n, r.tenant, r.id, r.owner, r.mode, r.status, r.sealed, r.noted, r.digest, r.granted_at, r.ends_at"
    };
}

/// The most texts of numbers that a connection remembers: a walk through the whole ledger must not end in memory.
const TEXTS_MAX: usize = 65_536;

/// How many columns those are.
const COLUMNS: usize = 11;

/// A connection that reads, with the texts of numbers that it met. Numbers are never given twice once committed.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) conn: Connection,
    names: RefCell<HashMap<i64, Id>>,
    skus: RefCell<HashMap<i64, Id>>,
    /// Of the present snapshot.
    pub(super) marks: Marks,
    tail: Arc<Tail>,
    /// The numbers of the tail, read when memory could not tell; of the present snapshot.
    scanned: OnceCell<Numbers>,
}

impl Reader {
    pub(super) fn open(path: &Path, tail: Arc<Tail>) -> Result<Self, LedgerError> {
        Ok(Self {
            conn: open::reader(path)?,
            names: RefCell::default(),
            skus: RefCell::default(),
            marks: Marks::default(),
            tail,
            scanned: OnceCell::new(),
        })
    }

    /// Takes a snapshot: what is read until [`Reader::release`] is of one moment.
    pub(super) fn pin(&mut self) -> rusqlite::Result<()> {
        // BEGIN alone takes no snapshot; the first read does.
        self.conn.prepare_cached("BEGIN")?.execute([])?;
        self.scanned = OnceCell::new();
        self.marks = Marks::read(&self.conn)?;
        Ok(())
    }

    /// Lets the snapshot go.
    pub(super) fn release(&mut self) -> rusqlite::Result<()> {
        self.scanned = OnceCell::new();
        self.conn.prepare_cached("ROLLBACK")?.execute([]).map(|_| ())
    }

    /// The number of the reservation with this id.
    pub(super) fn number(&self, tenant: i64, id: &str) -> rusqlite::Result<Option<i64>> {
        let ids = Ids {
            tail: &self.tail,
            marks: self.marks,
        };
        ids.number(&self.conn, tenant, id, &self.scanned)
    }

    pub(super) fn name(&self, n: i64) -> rusqlite::Result<Id> {
        self.text(&self.names, n, "SELECT name FROM names WHERE n = ?1", "name")
    }

    pub(super) fn sku(&self, n: i64) -> rusqlite::Result<Id> {
        self.text(&self.skus, n, "SELECT sku FROM skus WHERE n = ?1", "SKU")
    }

    fn text(&self, known: &RefCell<HashMap<i64, Id>>, n: i64, sql: &str, what: &str) -> rusqlite::Result<Id> {
        if let Some(id) = known.borrow().get(&n) {
            return Ok(id.clone());
        }
        let id = self
            .conn
            .prepare_cached(sql)?
            .query_row([n], |row| codes::id(0, row.get_ref(0)?.as_str()?))
            .optional()?
            .ok_or_else(|| wrong(0, format!("{what} number {n} that nothing explains")))?;
        let mut known = known.borrow_mut();
        if known.len() >= TEXTS_MAX {
            known.clear();
        }
        known.insert(n, id.clone());
        Ok(id)
    }

    pub(super) fn name_number(&self, name: &Id) -> rusqlite::Result<Option<i64>> {
        self.conn
            .prepare_cached("SELECT n FROM names WHERE name = ?1")?
            .query_row([name.as_str()], |row| row.get(0))
            .optional()
    }

    pub(super) fn sku_number(&self, tenant: i64, sku: &Id) -> rusqlite::Result<Option<i64>> {
        self.conn
            .prepare_cached("SELECT n FROM skus WHERE tenant = ?1 AND sku = ?2")?
            .query_row(params![tenant, sku.as_str()], |row| row.get(0))
            .optional()
    }

    fn reservation_row(&self, row: &Row<'_>) -> rusqlite::Result<(i64, Reservation)> {
        let owner = match row.get_ref(3)?.as_str_or_null()? {
            Some(owner) => Some(codes::id(3, owner)?),
            None => None,
        };
        let reservation = Reservation {
            tenant: self.name(row.get(1)?)?,
            id: codes::id(2, row.get_ref(2)?.as_str()?)?,
            owner,
            mode: codes::mode(4, row.get(4)?)?,
            status: codes::status(5, row.get(5)?)?,
            sealed: row.get(6)?,
            noted: row.get(7)?,
            digest: codes::digest(8, row.get_ref(8)?.as_blob()?)?,
            granted_at: row.get(9)?,
            ends_at: row.get(10)?,
            lines: std::iter::empty().collect(),
        };
        Ok((row.get(0)?, reservation))
    }

    /// Adds an allocation row whose columns start at `at`: line, sku, asked, era, location, quantity, confirmed,
    /// returned. `line` is the line's number so far.
    fn allocation_row(
        &self,
        row: &Row<'_>,
        at: usize,
        reservation: &mut Reservation,
        line: &mut Option<i64>,
    ) -> rusqlite::Result<()> {
        let allocation = Allocation {
            location: self.name(row.get(at + 4)?)?,
            quantity: codes::count(at + 5, row.get(at + 5)?)?,
            confirmed: codes::count(at + 6, row.get(at + 6)?)?,
            returned: codes::count(at + 7, row.get(at + 7)?)?,
        };
        let number: i64 = row.get(at)?;
        if *line == Some(number)
            && let Some(last) = reservation.lines.last_mut()
        {
            last.allocations.push(allocation);
            return Ok(());
        }
        *line = Some(number);
        let asked: Option<i64> = row.get(at + 2)?;
        reservation.lines.push(Line {
            sku: self.sku(row.get(at + 1)?)?,
            location: asked.map(|asked| self.name(asked)).transpose()?,
            era: row.get(at + 3)?,
            allocations: std::iter::once(allocation).collect(),
        });
        Ok(())
    }

    fn with_lines(&self, n: i64, mut reservation: Reservation) -> rusqlite::Result<Reservation> {
        let mut select = self.conn.prepare_cached(
            "SELECT line, sku, asked, era, location, quantity, confirmed, returned FROM allocations \
             WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
        )?;
        let mut rows = select.query([n * PLACES, (n + 1) * PLACES - 1])?;
        let mut line = None;
        while let Some(row) = rows.next()? {
            self.allocation_row(row, 0, &mut reservation, &mut line)?;
        }
        Ok(reservation)
    }

    /// The live reservations that the deferred table names, in bulk: one statement, rows in the order of their
    /// numbers, so that SQLite walks three trees side by side.
    pub(super) fn bulk_live(
        &self,
        shard: u32,
        each: &mut dyn FnMut(i64, Reservation),
    ) -> rusqlite::Result<()> {
        let mut select = self.conn.prepare_cached(concat!(
            "SELECT ",
            reservation_columns!(),
            ", a.line, a.sku, a.asked, a.era, a.location, a.quantity, a.confirmed, a.returned FROM live l \
             CROSS JOIN reservations r ON r.n = l.reservation \
             CROSS JOIN allocations a ON a.key BETWEEN r.n * 16384 AND r.n * 16384 + 16383 \
             WHERE r.status = 0 AND r.shard = ?1"
        ))?;
        let mut rows = select.query([shard])?;
        let mut current: Option<(i64, Reservation)> = None;
        let mut line = None;
        while let Some(row) = rows.next()? {
            let n: i64 = row.get(0)?;
            if current.as_ref().is_none_or(|(at, _)| *at != n) {
                if let Some((n, done)) = current.take() {
                    each(n, done);
                }
                line = None;
                current = Some(self.reservation_row(row)?);
            }
            if let Some((_, reservation)) = &mut current {
                self.allocation_row(row, COLUMNS, reservation, &mut line)?;
            }
        }
        if let Some((n, done)) = current {
            each(n, done);
        }
        Ok(())
    }

    /// A reservation, if it is live and of this shard.
    pub(super) fn live_by_number(&self, shard: u32, n: i64) -> rusqlite::Result<Option<Reservation>> {
        let found = self
            .conn
            .prepare_cached(concat!(
                "SELECT ",
                reservation_columns!(),
                " FROM reservations r WHERE r.n = ?1 AND r.status = 0 AND r.shard = ?2"
            ))?
            .query_row(params![n, shard], |row| self.reservation_row(row))
            .optional()?;
        found
            .map(|(n, reservation)| self.with_lines(n, reservation))
            .transpose()
    }

    /// A reservation, if it is of this tenant.
    pub(super) fn by_number(&self, tenant: i64, n: i64) -> rusqlite::Result<Option<Reservation>> {
        let found = self
            .conn
            .prepare_cached(concat!(
                "SELECT ",
                reservation_columns!(),
                " FROM reservations r WHERE r.n = ?1 AND r.tenant = ?2"
            ))?
            .query_row([n, tenant], |row| self.reservation_row(row))
            .optional()?;
        found
            .map(|(n, reservation)| self.with_lines(n, reservation))
            .transpose()
    }

    pub(super) fn reservation(
        &self,
        shard: u32,
        tenant: i64,
        id: &Id,
    ) -> rusqlite::Result<Option<Reservation>> {
        let Some(n) = self.number(tenant, id.as_str())? else {
            return Ok(None);
        };
        let found = self
            .conn
            .prepare_cached(concat!(
                "SELECT ",
                reservation_columns!(),
                " FROM reservations r WHERE r.n = ?1 AND r.shard = ?2"
            ))?
            .query_row(params![n, shard], |row| self.reservation_row(row))
            .optional()?;
        found
            .map(|(n, reservation)| self.with_lines(n, reservation))
            .transpose()
    }

    pub(super) fn return_record(
        &self,
        shard: u32,
        tenant: i64,
        id: &Id,
    ) -> rusqlite::Result<Option<ReturnRecord>> {
        let found = self
            .conn
            .prepare_cached(
                "SELECT t.n, r.id, t.digest, t.at FROM returns t JOIN reservations r ON r.n = t.reservation \
                 WHERE t.tenant = ?1 AND t.id = ?2 AND t.shard = ?3",
            )?
            .query_row(params![tenant, id.as_str(), shard], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    ReturnRecord {
                        tenant: self.name(tenant)?,
                        id: id.clone(),
                        reservation: codes::id(1, row.get_ref(1)?.as_str()?)?,
                        digest: codes::digest(2, row.get_ref(2)?.as_blob()?)?,
                        at: row.get(3)?,
                        lines: Vec::new(),
                    },
                ))
            })
            .optional()?;
        let Some((n, mut record)) = found else {
            return Ok(None);
        };
        let mut select = self.conn.prepare_cached(
            "SELECT sku, asked, quantity FROM return_lines WHERE \"return\" = ?1 ORDER BY i",
        )?;
        let mut rows = select.query([n])?;
        while let Some(row) = rows.next()? {
            let asked: Option<i64> = row.get(1)?;
            record.lines.push(ReturnedLine {
                sku: self.sku(row.get(0)?)?,
                location: asked.map(|asked| self.name(asked)).transpose()?,
                quantity: codes::count(2, row.get(2)?)?,
            });
        }
        Ok(Some(record))
    }

    pub(super) fn stock_record(
        &self,
        shard: u32,
        tenant: i64,
        id: &Id,
    ) -> rusqlite::Result<Option<StockRecord>> {
        self.conn
            .prepare_cached(
                "SELECT digest, sku, revision, at FROM stock_commands WHERE tenant = ?1 AND id = ?2 AND shard = ?3",
            )?
            .query_row(params![tenant, id.as_str(), shard], |row| {
                Ok(StockRecord {
                    tenant: self.name(tenant)?,
                    id: id.clone(),
                    digest: codes::digest(0, row.get_ref(0)?.as_blob()?)?,
                    sku: self.sku(row.get(1)?)?,
                    revision: codes::count(2, row.get(2)?)?,
                    at: row.get(3)?,
                })
            })
            .optional()
    }

    /// A SKU, whole.
    pub(super) fn sku_record(&self, n: i64) -> rusqlite::Result<SkuRecord> {
        let mut record = self
            .conn
            .prepare_cached(
                "SELECT tenant, sku, revision, limit_per_owner, opens_at, closes_at, paused, split, \"group\", era \
                 FROM skus WHERE n = ?1",
            )?
            .query_row([n], |row| {
                let limit: Option<i64> = row.get(3)?;
                let group = row.get_ref(8)?.as_str_or_null()?.map(|group| codes::id(8, group)).transpose()?;
                Ok(SkuRecord {
                    tenant: self.name(row.get(0)?)?,
                    sku: codes::id(1, row.get_ref(1)?.as_str()?)?,
                    revision: codes::count(2, row.get(2)?)?,
                    settings: Settings {
                        limit_per_owner: limit.map(|limit| codes::count(3, limit)).transpose()?,
                        opens_at: row.get(4)?,
                        closes_at: row.get(5)?,
                        paused: row.get(6)?,
                        split: row.get(7)?,
                        group,
                        era: row.get(9)?,
                        order: Vec::new(),
                    },
                    locations: Vec::new(),
                })
            })?;
        let mut order = self
            .conn
            .prepare_cached("SELECT location FROM sku_order WHERE sku = ?1 ORDER BY i")?;
        let mut rows = order.query([n])?;
        while let Some(row) = rows.next()? {
            record.settings.order.push(self.name(row.get(0)?)?);
        }
        let mut stock = self.conn.prepare_cached(
            "SELECT location, on_hand, reserved, sold, safety_stock, version FROM stock WHERE sku = ?1 ORDER BY i",
        )?;
        let mut rows = stock.query([n])?;
        while let Some(row) = rows.next()? {
            record.locations.push(LocationRecord {
                location: self.name(row.get(0)?)?,
                counters: Counters {
                    on_hand: codes::count(1, row.get(1)?)?,
                    reserved: codes::count(2, row.get(2)?)?,
                    sold: codes::count(3, row.get(3)?)?,
                    safety_stock: codes::count(4, row.get(4)?)?,
                    version: codes::count(5, row.get(5)?)?,
                },
            });
        }
        Ok(record)
    }
}

//! Reading: one connection pinned to one moment.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};
use stockade_core::{Id, Position, Reservation, SkuRecord, Space};

use super::Shared;
use super::audit::audit;
use super::codes;
use super::errors::ledger_error;
use super::index;
use super::reader::Reader;
use super::{history, lookup, query};
use crate::api::{
    Finding, Found, LedgerError, Movement, MovementPage, MovementQuery, MovementsKept, ReservationQuery,
    ShardRow, View,
};
use crate::sharing::{FoundMany, FoundSku, Key, Recorded};

/// A shard's row.
pub(super) fn shard_row(conn: &Connection, shard: u32) -> rusqlite::Result<Option<ShardRow>> {
    conn.prepare_cached("SELECT epoch, mode, cursor, tag, at, owner FROM shards WHERE n = ?1")?
        .query_row([shard], |row| {
            Ok(ShardRow {
                shard,
                epoch: codes::count(0, row.get(0)?)?,
                mode: codes::shard_mode(1, row.get_ref(1)?.as_str()?)?,
                cursor: codes::count(2, row.get(2)?)?,
                tag: row.get::<_, i64>(3)?.cast_unsigned(),
                at: row.get(4)?,
                owner: row.get(5)?,
            })
        })
        .optional()
}

/// A view: a pooled reader inside a transaction, given back when it is dropped.
#[derive(Debug)]
pub(super) struct SqliteView {
    shared: Arc<Shared>,
    /// `None` only while being dropped.
    reader: Option<Reader>,
}

impl SqliteView {
    pub(super) fn open(shared: Arc<Shared>) -> Result<Self, LedgerError> {
        let mut reader = shared.reader()?;
        let pinned = reader.pin();
        let view = Self {
            shared,
            reader: Some(reader),
        };
        match pinned {
            Ok(()) => Ok(view),
            Err(error) => Err(ledger_error(&view.shared.path, &error)),
        }
    }

    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce(&Reader) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        let path: &Path = &self.shared.path;
        let Some(reader) = &self.reader else {
            return Err(LedgerError::Database("the view is closed".to_owned()));
        };
        question(reader).map_err(|error| ledger_error(path, &error))
    }
}

impl Drop for SqliteView {
    fn drop(&mut self) {
        let Some(mut reader) = self.reader.take() else {
            return;
        };
        match reader.release() {
            Ok(()) => self.shared.give_back(reader),
            // The connection is closed instead; a new one is opened when it is needed.
            Err(error) => tracing::warn!(%error, "a view did not end cleanly"),
        }
    }
}

impl View for SqliteView {
    fn shard(&self, shard: u32) -> Result<Option<ShardRow>, LedgerError> {
        self.ask(|reader| shard_row(&reader.conn, shard))
    }

    fn skus(&self, shard: u32, each: &mut dyn FnMut(SkuRecord)) -> Result<(), LedgerError> {
        self.ask(|reader| {
            let mut select = reader
                .conn
                .prepare_cached("SELECT n FROM skus WHERE shard = ?1 ORDER BY n")?;
            let mut rows = select.query([shard])?;
            while let Some(row) = rows.next()? {
                each(reader.sku_record(row.get(0)?)?);
            }
            Ok(())
        })
    }

    fn live(&self, shard: u32, each: &mut dyn FnMut(Reservation)) -> Result<(), LedgerError> {
        self.ask(|reader| {
            let tail: HashSet<i64> = index::changed(&reader.conn, reader.marks.indexed, i64::MAX)?
                .into_iter()
                .collect();
            reader.bulk_live(shard, &mut |n, reservation| {
                if !tail.contains(&n) {
                    each(reservation);
                }
            })?;
            let mut tail: Vec<i64> = tail.into_iter().collect();
            tail.sort_unstable();
            for n in tail {
                if let Some(reservation) = reader.live_by_number(shard, n)? {
                    each(reservation);
                }
            }
            Ok(())
        })
    }

    fn usage(&self, shard: u32, each: &mut dyn FnMut(&Id, &Id, &Id, u64)) -> Result<(), LedgerError> {
        self.ask(|reader| query::usage(reader, shard, each))
    }

    fn ended_ids(&self, shard: u32, each: &mut dyn FnMut(Space, &str, &str)) -> Result<(), LedgerError> {
        self.ask(|reader| {
            for (space, sql) in [
                (
                    Space::Reservation,
                    "SELECT tenant, id FROM reservations WHERE shard = ?1 AND status <> 0",
                ),
                (Space::Return, "SELECT tenant, id FROM returns WHERE shard = ?1"),
                (
                    Space::Stock,
                    "SELECT tenant, id FROM stock_commands WHERE shard = ?1",
                ),
            ] {
                let mut select = reader.conn.prepare_cached(sql)?;
                let mut rows = select.query([shard])?;
                while let Some(row) = rows.next()? {
                    let tenant = reader.name(row.get(0)?)?;
                    each(space, tenant.as_str(), row.get_ref(1)?.as_str()?);
                }
            }
            Ok(())
        })
    }

    fn find(&self, shard: u32, tenant: &Id, space: Space, id: &Id) -> Result<Found, LedgerError> {
        self.ask(|reader| {
            let (epoch, cursor) =
                shard_row(&reader.conn, shard)?.map_or((0, 0), |row| (row.epoch, row.cursor));
            let record = lookup::record(reader, shard, tenant, space, id)?;
            Ok(Found {
                epoch,
                cursor,
                record,
            })
        })
    }

    fn find_many(&self, shard: u32, keys: &[Key]) -> Result<FoundMany, LedgerError> {
        self.ask(|reader| lookup::records(reader, shard, keys))
    }

    fn sku(&self, shard: u32, tenant: &Id, sku: &Id, with_usage: bool) -> Result<FoundSku, LedgerError> {
        self.ask(|reader| lookup::sku(reader, shard, tenant, sku, with_usage))
    }

    fn recorded(&self, shard: u32, asked: &[Position]) -> Result<Vec<Recorded>, LedgerError> {
        self.ask(|reader| lookup::recorded(reader, shard, asked))
    }

    fn sku_page(&self, tenant: &Id, after: Option<&Id>, limit: usize) -> Result<Vec<SkuRecord>, LedgerError> {
        self.ask(|reader| query::sku_page(reader, tenant, after, limit))
    }

    fn movements_after(&self, after: i64, limit: usize) -> Result<Vec<(Id, Movement)>, LedgerError> {
        self.ask(|reader| reader.movements_after(after, limit))
    }

    fn movements_kept(&self) -> Result<MovementsKept, LedgerError> {
        self.ask(Reader::movements_kept)
    }

    fn movements(&self, query: &MovementQuery) -> Result<MovementPage, LedgerError> {
        self.ask(|reader| history::movements(reader, query))
    }

    fn reservations(&self, query: &ReservationQuery) -> Result<Vec<Reservation>, LedgerError> {
        self.ask(|reader| history::reservations(reader, query))
    }

    fn audit(&self, shard: u32, limit: usize) -> Result<Vec<Finding>, LedgerError> {
        self.ask(|reader| audit(reader, shard, limit))
    }
}

//! The numbers of texts that repeat, kept in memory by the writer.
//!
//! What is here was read or written by the writer itself; it is emptied when a transaction is rolled back or another
//! process wrote, since numbers may then mean something else.

use rusqlite::{Connection, OptionalExtension, params};
use stockade_core::Id;

use super::map::Map;

/// The writer's numbers.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Map<Id, i64>,
    skus: Map<i64, Map<Id, i64>>,
}

impl Names {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The number of a tenant, location or actor; given now if it has none.
    pub(super) fn name(&mut self, conn: &Connection, name: &Id) -> rusqlite::Result<i64> {
        if let Some(n) = self.names.get(name) {
            return Ok(*n);
        }
        let known: Option<i64> = conn
            .prepare_cached("SELECT n FROM names WHERE name = ?1")?
            .query_row([name.as_str()], |row| row.get(0))
            .optional()?;
        let n = match known {
            Some(n) => n,
            None => conn
                .prepare_cached("INSERT INTO names (name) VALUES (?1) RETURNING n")?
                .query_row([name.as_str()], |row| row.get(0))?,
        };
        self.names.insert(name.clone(), n);
        Ok(n)
    }

    /// The number of a SKU, if it is recorded.
    pub(super) fn sku(&mut self, conn: &Connection, tenant: i64, sku: &Id) -> rusqlite::Result<Option<i64>> {
        if let Some(n) = self.skus.get(&tenant).and_then(|skus| skus.get(sku)) {
            return Ok(Some(*n));
        }
        let known: Option<i64> = conn
            .prepare_cached("SELECT n FROM skus WHERE tenant = ?1 AND sku = ?2")?
            .query_row(params![tenant, sku.as_str()], |row| row.get(0))
            .optional()?;
        if let Some(n) = known {
            self.add_sku(tenant, sku, n);
        }
        Ok(known)
    }

    /// Remembers a SKU that was just inserted.
    pub(super) fn add_sku(&mut self, tenant: i64, sku: &Id, n: i64) {
        self.skus.entry(tenant).or_default().insert(sku.clone(), n);
    }
}

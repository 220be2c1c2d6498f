//! From an id to its reservation's number: what memory (or a scan) knows of the tail, then the table `ids`.

use std::cell::OnceCell;
use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::tail::{Candidates, Marks, Numbers, Tail};

/// Ids as one snapshot knows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids<'t> {
    pub(super) tail: &'t Tail,
    pub(super) marks: Marks,
}

/// The highest id of each tenant in `ids`, as far as it was asked for: ids that grow with time are above it, and need not
/// be looked for there.
#[derive(Debug, Default)]
pub(super) struct Tops(HashMap<i64, Option<String>>);

impl Tops {
    /// After `ids` changed.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn is_above(&mut self, conn: &Connection, tenant: i64, id: &str) -> rusqlite::Result<bool> {
        let top = match self.0.entry(tenant) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => new.insert(
                conn.prepare_cached("SELECT max(id) FROM ids WHERE tenant = ?1")?
                    .query_row([tenant], |row| row.get(0))?,
            ),
        };
        Ok(top.as_ref().is_none_or(|top| id > top.as_str()))
    }
}

impl Ids<'_> {
    /// The number of the reservation with this id. `scanned` keeps what is read when memory cannot tell.
    pub(super) fn number(
        &self,
        conn: &Connection,
        tenant: i64,
        id: &str,
        scanned: &OnceCell<Numbers>,
    ) -> rusqlite::Result<Option<i64>> {
        match self.in_tail(conn, tenant, id, scanned)? {
            Some(n) => Ok(Some(n)),
            None => in_table(conn, tenant, id),
        }
    }

    /// The same for the writer.
    pub(super) fn number_below(
        &self,
        conn: &Connection,
        tenant: i64,
        id: &str,
        scanned: &OnceCell<Numbers>,
        tops: &mut Tops,
    ) -> rusqlite::Result<Option<i64>> {
        match self.in_tail(conn, tenant, id, scanned)? {
            Some(n) => Ok(Some(n)),
            None if tops.is_above(conn, tenant, id)? => Ok(None),
            None => in_table(conn, tenant, id),
        }
    }

    fn in_tail(
        &self,
        conn: &Connection,
        tenant: i64,
        id: &str,
        scanned: &OnceCell<Numbers>,
    ) -> rusqlite::Result<Option<i64>> {
        let candidates = self.candidates(conn, self.tail.hash(tenant, id), scanned)?;
        if !candidates.is_empty() {
            let mut same =
                conn.prepare_cached("SELECT n FROM reservations WHERE n = ?1 AND tenant = ?2 AND id = ?3")?;
            for n in candidates {
                if same.exists(params![n, tenant, id])? {
                    return Ok(Some(n));
                }
            }
        }
        Ok(None)
    }

    fn candidates(
        &self,
        conn: &Connection,
        hash: u64,
        scanned: &OnceCell<Numbers>,
    ) -> rusqlite::Result<Candidates> {
        if scanned.get().is_none() {
            if let Some(numbers) = self.tail.numbers(self.marks, hash) {
                return Ok(numbers);
            }
            if self.tail.catch_up(conn, self.marks)?
                && let Some(numbers) = self.tail.numbers(self.marks, hash)
            {
                return Ok(numbers);
            }
            // Only this thread has the cell: nobody was faster.
            let _ = scanned.set(self.tail.scan(conn, self.marks.filled)?);
        }
        let found = scanned.get().and_then(|numbers| numbers.get(&hash));
        Ok(found.into_iter().flatten().rev().copied().collect())
    }
}

fn in_table(conn: &Connection, tenant: i64, id: &str) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT reservation FROM ids WHERE tenant = ?1 AND id = ?2")?
        .query_row(params![tenant, id], |row| row.get(0))
        .optional()
}

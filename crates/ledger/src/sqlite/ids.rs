//! From an id to its reservation's number: what memory (or a scan) knows of the tail, then the table `ids`.

use std::cell::OnceCell;

use rusqlite::{Connection, OptionalExtension, params};

use super::tail::{Candidates, Marks, Numbers, Tail};

/// Ids as one snapshot knows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids<'t> {
    pub(super) tail: &'t Tail,
    pub(super) marks: Marks,
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
        conn.prepare_cached("SELECT reservation FROM ids WHERE tenant = ?1 AND id = ?2")?
            .query_row(params![tenant, id], |row| row.get(0))
            .optional()
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
            // Only this thread has the cell: nobody was faster.
            let _ = scanned.set(self.tail.scan(conn, self.marks.filled)?);
        }
        let found = scanned.get().and_then(|numbers| numbers.get(&hash));
        Ok(found.into_iter().flatten().rev().copied().collect())
    }
}

//! Claims, leases and pruning: short transactions that give no numbers and so leave what the writer remembers alone.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};
use stockade_core::Millis;

use super::prune;
use super::view::shard_row;
use super::writer::Writer;
use crate::api::{LedgerError, ShardRow};
use crate::sharing::{Claim, Keep, LEASE_MAX_MS, Lease, Leasing, Pruned};

/// Milliseconds since 1970 by the clock of this host, on which every process that shares the file runs.
const NOW: &str = "SELECT CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER)";

pub(super) fn now(conn: &Connection) -> rusqlite::Result<Millis> {
    conn.prepare_cached(NOW)?.query_row([], |row| row.get(0))
}

/// The lease of a shard that has not run out.
pub(super) fn lease(conn: &Connection, shard: u32) -> rusqlite::Result<Option<Lease>> {
    let held = conn
        .prepare_cached("SELECT owner, until FROM leases WHERE shard = ?1")?
        .query_row([shard], |row| Ok((row.get(0)?, row.get::<_, Millis>(1)?)))
        .optional()?;
    let Some((owner, until)) = held else {
        return Ok(None);
    };
    let left_ms = until.saturating_sub(now(conn)?);
    Ok((1..=LEASE_MAX_MS).contains(&left_ms).then_some(Lease {
        owner,
        until,
        left_ms,
    }))
}

fn claim(conn: &Connection, shard: u32, won: bool) -> rusqlite::Result<Claim> {
    Ok(match shard_row(conn, shard)? {
        Some(row) if won => Claim::Won(row),
        found => Claim::Found(found),
    })
}

impl Writer {
    pub(super) fn create_shard(
        &mut self,
        path: &Path,
        shard: u32,
        owner: &str,
    ) -> Result<Claim, LedgerError> {
        self.plain(path, |conn| {
            let won = conn
                .prepare_cached(
                    "INSERT INTO shards (n, epoch, mode, cursor, tag, at, owner, movement, reservation) \
                     VALUES (?1, 1, 'rebuild', 0, 0, 0, ?2, 0, 0) ON CONFLICT (n) DO NOTHING RETURNING n",
                )?
                .exists(params![shard, owner])?;
            claim(conn, shard, won)
        })
    }

    pub(super) fn claim_rebuild(
        &mut self,
        path: &Path,
        seen: &ShardRow,
        owner: &str,
    ) -> Result<Claim, LedgerError> {
        self.plain(path, |conn| {
            // Compared as it is read, under the write lock.
            let won = shard_row(conn, seen.shard)?.is_some_and(|row| {
                (row.epoch, row.mode, row.owner.as_str()) == (seen.epoch, seen.mode, seen.owner.as_str())
            });
            if won {
                conn.prepare_cached(
                    "UPDATE shards SET epoch = epoch + 1, mode = 'rebuild', owner = ?2 WHERE n = ?1",
                )?
                .execute(params![seen.shard, owner])?;
            }
            claim(conn, seen.shard, won)
        })
    }

    pub(super) fn finish_rebuild(
        &mut self,
        path: &Path,
        shard: u32,
        epoch: u64,
        owner: &str,
    ) -> Result<Claim, LedgerError> {
        self.plain(path, |conn| {
            let won = conn
                .prepare_cached(
                    "UPDATE shards SET mode = 'hot' WHERE n = ?1 AND epoch = ?2 AND mode = 'rebuild' AND owner = ?3 \
                     RETURNING n",
                )?
                .exists(params![shard, epoch.cast_signed(), owner])?;
            claim(conn, shard, won)
        })
    }

    pub(super) fn take_lease(
        &mut self,
        path: &Path,
        shard: u32,
        owner: &str,
        for_ms: Millis,
    ) -> Result<Leasing, LedgerError> {
        let for_ms = for_ms.clamp(1, LEASE_MAX_MS);
        self.plain(path, |conn| {
            if let Some(others) = lease(conn, shard)?.filter(|lease| lease.owner != owner) {
                return Ok(Leasing::Others(others));
            }
            let until = now(conn)?.saturating_add(for_ms);
            conn.prepare_cached(
                "INSERT INTO leases (shard, owner, until) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (shard) DO UPDATE SET owner = excluded.owner, until = excluded.until",
            )?
            .execute(params![shard, owner, until])?;
            Ok(Leasing::Mine(Lease {
                owner: owner.to_owned(),
                until,
                left_ms: for_ms,
            }))
        })
    }

    pub(super) fn release_lease(
        &mut self,
        path: &Path,
        shard: u32,
        owner: &str,
    ) -> Result<bool, LedgerError> {
        self.plain(path, |conn| {
            let was = lease(conn, shard)?.is_some_and(|lease| lease.owner == owner);
            conn.prepare_cached("DELETE FROM leases WHERE shard = ?1 AND owner = ?2")?
                .execute(params![shard, owner])?;
            Ok(was)
        })
    }

    pub(super) fn prune_entries(
        &mut self,
        path: &Path,
        shard: u32,
        keep: Keep,
        limit: usize,
    ) -> Result<Pruned, LedgerError> {
        self.plain(path, |conn| prune::entries(conn, shard, keep, limit))
    }
}

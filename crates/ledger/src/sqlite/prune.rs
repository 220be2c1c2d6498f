//! Entries that nobody can ask for any more are removed, oldest first, so that what is left stays a chain.

use rusqlite::{Connection, OptionalExtension, params};
use stockade_core::Millis;

use crate::sharing::{Keep, Pruned};

/// The last entry that was removed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Base {
    pub(super) seq: i64,
    pub(super) epoch: i64,
    pub(super) tag: i64,
    /// `i64::MIN` where nothing was removed.
    pub(super) at: Millis,
    pub(super) movement: i64,
    pub(super) reservation: i64,
}

/// Where the chain in `entries` begins; entry 0 where nothing was removed.
pub(super) fn base(conn: &Connection, shard: u32) -> rusqlite::Result<Base> {
    let found = conn
        .prepare_cached("SELECT seq, epoch, tag, at, movement, reservation FROM pruned WHERE shard = ?1")?
        .query_row([shard], |row| {
            Ok(Base {
                seq: row.get(0)?,
                epoch: row.get(1)?,
                tag: row.get(2)?,
                at: row.get(3)?,
                movement: row.get(4)?,
                reservation: row.get(5)?,
            })
        })
        .optional()?;
    Ok(found.unwrap_or(Base {
        at: Millis::MIN,
        ..Base::default()
    }))
}

pub(super) fn entries(conn: &Connection, shard: u32, keep: Keep, limit: usize) -> rusqlite::Result<Pruned> {
    let newest = i64::try_from(keep.entries.max(1)).unwrap_or(i64::MAX);
    // The last entry always stays: it is where recording goes on from.
    let last: Option<i64> = conn
        .prepare_cached(
            "SELECT max(e.seq) FROM shards s JOIN entries e ON e.shard = s.n AND e.seq <= s.cursor - ?2 \
             WHERE s.n = ?1",
        )?
        .query_row(params![shard, newest], |row| row.get(0))?;
    let Some(last) = last else {
        return Ok(Pruned::default());
    };
    let mut select = conn.prepare_cached(
        "SELECT e.seq FROM entries e JOIN shards s ON s.n = e.shard \
         WHERE e.shard = ?1 AND e.seq <= ?2 AND e.at < s.at - ?3 ORDER BY e.seq LIMIT ?4",
    )?;
    let more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let removable: Vec<i64> = select
        .query_map(params![shard, last, keep.within_ms.max(0), more], |row| {
            row.get(0)
        })?
        .collect::<Result<_, _>>()?;
    let Some(upto) = limit
        .min(removable.len())
        .checked_sub(1)
        .and_then(|at| removable.get(at))
    else {
        return Ok(Pruned {
            removed: 0,
            more: !removable.is_empty(),
        });
    };
    conn.prepare_cached(
        "INSERT OR REPLACE INTO pruned (shard, seq, epoch, tag, at, movement, reservation) \
         SELECT shard, seq, epoch, tag, at, movement, reservation FROM entries WHERE shard = ?1 AND seq = ?2",
    )?
    .execute(params![shard, upto])?;
    let removed = conn
        .prepare_cached("DELETE FROM entries WHERE shard = ?1 AND seq <= ?2")?
        .execute(params![shard, upto])?;
    Ok(Pruned {
        removed,
        more: removable.len() > limit,
    })
}

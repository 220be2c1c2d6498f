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
    let stands: Option<(i64, Millis)> = conn
        .prepare_cached("SELECT cursor, at FROM shards WHERE n = ?1")?
        .query_row([shard], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((cursor, at)) = stands else {
        return Ok(Pruned::default());
    };
    // The last entry always stays: it is where recording goes on from.
    let newest = i64::try_from(keep.entries.max(1)).unwrap_or(i64::MAX);
    let young = at.saturating_sub(keep.within_ms.max(0));
    let mut select =
        conn.prepare_cached("SELECT seq, at FROM entries WHERE shard = ?1 AND seq <= ?2 ORDER BY seq")?;
    let mut rows = select.query(params![shard, cursor.saturating_sub(newest)])?;
    let (mut upto, mut removable) = (None, 0);
    // Times do not fall along a chain: nothing after the first young one is looked at.
    while let Some(row) = rows.next()?
        && row.get::<_, Millis>(1)? < young
        && removable <= limit
    {
        removable += 1;
        if removable <= limit {
            upto = Some(row.get::<_, i64>(0)?);
        }
    }
    drop(rows);
    let Some(upto) = upto else {
        return Ok(Pruned {
            removed: 0,
            more: removable > 0,
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
        more: removable > limit,
    })
}

//! Brings a file to the schema that this release knows: each migration in a transaction of its own, under SQLite's
//! write lock, so that two processes that open a new folder at once do not both migrate it.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::errors::ledger_error;
use crate::api::LedgerError;

/// Marks a file as Stockade's ledger: "Stkd".
pub(super) const APPLICATION_ID: i32 = 0x5374_6b64;

struct Migration {
    version: u32,
    name: &'static str,
    sql: &'static str,
}

/// Every migration, first to last. A released one is never changed: its checksum is stored.
const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "ledger",
        sql: include_str!("../../migrations/sqlite/0001_ledger.sql"),
    },
    Migration {
        version: 2,
        name: "sharing",
        sql: include_str!("../../migrations/sqlite/0002_sharing.sql"),
    },
    Migration {
        version: 3,
        name: "care",
        sql: include_str!("../../migrations/sqlite/0003_care.sql"),
    },
];

const TABLE: &str = "CREATE TABLE IF NOT EXISTS migrations (
  version  INTEGER PRIMARY KEY,
  name     TEXT    NOT NULL,
  checksum INTEGER NOT NULL
) STRICT";

/// The version of a file that has all of them.
pub(super) const KNOWN: u32 = 3;

/// FNV-1a: it guards against an edited migration, not against an attacker.
fn checksum(sql: &str) -> i64 {
    let hash = sql
        .bytes()
        .filter(|byte| *byte != b'\r')
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    hash.cast_signed()
}

/// Migrates the file behind `conn`, or says why it must not be touched.
pub(super) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), LedgerError> {
    let failed = |error: rusqlite::Error| ledger_error(path, &error);
    loop {
        let tx = conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        // Read again under the lock: another process may have been faster.
        let found = version(&tx).map_err(failed)?;
        if found > KNOWN {
            return Err(LedgerError::TooNew {
                path: path.to_path_buf(),
                found,
                known: KNOWN,
            });
        }
        check(&tx, path)?;
        let Some(next) = MIGRATIONS.iter().find(|migration| migration.version == found + 1) else {
            return Ok(());
        };
        tx.pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(failed)?;
        tx.execute_batch(TABLE).map_err(failed)?;
        tx.execute_batch(next.sql).map_err(failed)?;
        tx.execute(
            "INSERT INTO migrations (version, name, checksum) VALUES (?1, ?2, ?3)",
            params![next.version, next.name, checksum(next.sql)],
        )
        .map_err(failed)?;
        tx.commit().map_err(failed)?;
        tracing::info!(version = next.version, name = next.name, "migrated the ledger");
    }
}

/// Only a new, empty file or one that carries the mark is taken.
pub(super) fn recognise(conn: &Connection, path: &Path) -> Result<(), LedgerError> {
    let failed = |error: rusqlite::Error| ledger_error(path, &error);
    // In one snapshot: between two, another process may make the file what it is to be.
    let snapshot = conn.unchecked_transaction().map_err(failed)?;
    let id: i32 = snapshot
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(failed)?;
    let objects: i64 = snapshot
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    drop(snapshot);
    let foreign = |message: &str| {
        Err(LedgerError::Foreign {
            path: path.to_path_buf(),
            message: message.to_owned(),
        })
    };
    match (id, objects) {
        (APPLICATION_ID, 1..) | (0, 0) => Ok(()),
        (APPLICATION_ID, _) => foreign("the ledger's tables are gone: restore a backup"),
        _ => foreign("this database belongs to another application: move it away, or name another folder"),
    }
}

fn version(conn: &Connection) -> rusqlite::Result<u32> {
    let there = conn
        .prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'")?
        .exists([])?;
    if !there {
        return Ok(0);
    }
    conn.prepare_cached("SELECT ifnull(max(version), 0) FROM migrations")?
        .query_row([], |row| row.get(0))
}

/// Another process brought the file to a schema that this release does not know.
#[derive(Debug, thiserror::Error)]
#[error(
    "a newer release upgraded the ledger to schema {0} while this process ran: restart it with that release"
)]
struct Newer(u32);

/// For a process that is running already: what it writes must not contradict a newer schema.
pub(super) fn refuse_newer(conn: &Connection) -> rusqlite::Result<()> {
    match version(conn)? {
        found if found > KNOWN => Err(rusqlite::Error::ToSqlConversionFailure(Box::new(Newer(found)))),
        _ => Ok(()),
    }
}

/// What was applied must be what this release would have applied.
fn check(conn: &Connection, path: &Path) -> Result<(), LedgerError> {
    let failed = |error: rusqlite::Error| ledger_error(path, &error);
    let found = version(conn).map_err(failed)?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version <= found) {
        let stored: Option<i64> = conn
            .query_row(
                "SELECT checksum FROM migrations WHERE version = ?1",
                [migration.version],
                |row| row.get(0),
            )
            .optional()
            .map_err(failed)?;
        if stored != Some(checksum(migration.sql)) {
            return Err(LedgerError::Foreign {
                path: path.to_path_buf(),
                message: format!(
                    "migration {} ({}) is not the one that this release knows: use the release that wrote the file, or \
                     restore a backup",
                    migration.version, migration.name
                ),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_gapless_and_the_last_one_is_known() {
        let versions: Vec<u32> = MIGRATIONS.iter().map(|migration| migration.version).collect();
        assert_eq!(versions, (1..=KNOWN).collect::<Vec<_>>());
    }
}

//! Recording what is rare: returns and operators' commands.

use rusqlite::{OptionalExtension, params};
use stockade_core::{Id, ReturnRecord, Settings, StockRecord};

use super::record::{Fault, Run, int, mismatch};

/// Writes a return and its lines.
pub(super) fn record_return(
    run: &mut Run<'_, '_>,
    tenant: i64,
    record: &ReturnRecord,
    reservation: i64,
) -> Result<(), Fault> {
    let conn = run.conn;
    let n: i64 = conn
        .prepare_cached(
            "INSERT INTO returns (shard, tenant, id, reservation, digest, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             RETURNING n",
        )?
        .query_row(
            params![
                run.shard,
                tenant,
                record.id.as_str(),
                reservation,
                record.digest.0.to_be_bytes(),
                record.at
            ],
            |row| row.get(0),
        )?;
    let mut insert = conn.prepare_cached(
        "INSERT INTO return_lines (\"return\", i, sku, asked, quantity) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (line, i) in record.lines.iter().zip(0_i64..) {
        let sku = run.known_sku(tenant, &line.sku)?;
        let asked = match &line.location {
            Some(location) => Some(run.names.name(conn, location)?),
            None => None,
        };
        insert.execute(params![
            n,
            i,
            sku,
            asked,
            int("return_lines.quantity", line.quantity)?
        ])?;
    }
    Ok(())
}

/// Writes a stock command and what it did to its SKU's row; the SKU's number.
pub(super) fn record_stock(
    run: &mut Run<'_, '_>,
    tenant: i64,
    record: &StockRecord,
    settings: Option<&Settings>,
    created: bool,
) -> Result<i64, Fault> {
    let conn = run.conn;
    let revision = int("skus.revision", record.revision)?;
    let sku = if created {
        let n: i64 = conn
            .prepare_cached(
                "INSERT INTO skus (shard, tenant, sku, revision, paused, split, era) VALUES (?1, ?2, ?3, ?4, 0, 1, 0) \
                 RETURNING n",
            )?
            .query_row(params![run.shard, tenant, record.sku.as_str(), revision], |row| row.get(0))?;
        run.names.add_sku(tenant, &record.sku, n);
        n
    } else {
        let n = run.known_sku(tenant, &record.sku)?;
        let done: Option<i64> = conn
            .prepare_cached("UPDATE skus SET revision = ?2 WHERE n = ?1 AND revision = ?2 - 1 RETURNING n")?
            .query_row([n, revision], |row| row.get(0))
            .optional()?;
        if done.is_none() {
            return Err(mismatch(
                format!("SKU {}", record.sku),
                format!("revision {}", revision - 1),
                "another revision",
            ));
        }
        n
    };
    if let Some(settings) = settings {
        write_settings(run, sku, settings)?;
    }
    conn.prepare_cached(
        "INSERT INTO stock_commands (tenant, id, shard, digest, sku, revision, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        tenant,
        record.id.as_str(),
        run.shard,
        record.digest.0.to_be_bytes(),
        sku,
        revision,
        record.at
    ])?;
    Ok(sku)
}

fn write_settings(run: &mut Run<'_, '_>, sku: i64, settings: &Settings) -> Result<(), Fault> {
    let conn = run.conn;
    let limit = match settings.limit_per_owner {
        Some(limit) => Some(int("skus.limit_per_owner", limit)?),
        None => None,
    };
    conn.prepare_cached(
        "UPDATE skus SET limit_per_owner = ?2, opens_at = ?3, closes_at = ?4, paused = ?5, split = ?6, \"group\" = ?7, \
         era = ?8 WHERE n = ?1",
    )?
    .execute(params![
        sku,
        limit,
        settings.opens_at,
        settings.closes_at,
        settings.paused,
        settings.split,
        settings.group.as_ref().map(Id::as_str),
        settings.era,
    ])?;
    conn.prepare_cached("DELETE FROM sku_order WHERE sku = ?1")?
        .execute([sku])?;
    let mut insert = conn.prepare_cached("INSERT INTO sku_order (sku, i, location) VALUES (?1, ?2, ?3)")?;
    for (location, i) in settings.order.iter().zip(0_i64..) {
        let location = run.names.name(conn, location)?;
        insert.execute([sku, i, location])?;
    }
    Ok(())
}

//! The bare loop: the same file, tables and indexes, the same rows, prepared statements, one transaction a batch with
//! synchronous=FULL, and none of the checks, replies or copies of a service. What helps the ledger helps the loop too: the
//! tables that random keys make expensive are filled sorted, every 50,000 orders, and the log grows to 32 MiB before it
//! is copied into the file.

use std::time::Instant;

use rusqlite::{Connection, params};
use stockade::ledger::Sqlite;
use stockade::rules::{Action, Id, Reserve};

use crate::Failure;
use crate::orders::Shape;

/// What one (SKU, location) is in the loop: the only one.
const SKU: i64 = 1;
const LOCATION: i64 = 1;
const TENANT: i64 = 1;
/// Keys of allocations leave room for the lines of an order, as the ledger's do.
const PLACES: i64 = 16_384;
const SUPPLY: i64 = 1 << 50;
/// Orders that wait for the tables filled in bulk; the ledger's own figure.
const FILL: usize = 50_000;

/// Orders per second.
pub(crate) fn run(shape: Shape, orders: u64, size: u64) -> Result<f64, Failure> {
    let folder = tempfile::Builder::new().prefix("stockade-bench-").tempdir()?;
    // The ledger makes the tables; then the loop has the file for itself.
    drop(Sqlite::open(folder.path())?);
    let mut conn = Connection::open(folder.path().join(Sqlite::FILE))?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "cache_size", -32_768)?;
    conn.pragma_update(None, "wal_autocheckpoint", 8_192)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch(&format!(
        "INSERT INTO names (n, name) VALUES (1, 'default'), (2, 'bench');
         INSERT INTO shards VALUES (0, 1, 'hot', 0, 0, 0, 'bare', 0, 0);
         INSERT INTO skus VALUES (1, 0, 1, 'sku-000000', 1, NULL, NULL, NULL, 0, 1, NULL, 0);
         INSERT INTO stock VALUES (1, 1, 0, {SUPPLY}, 0, 0, 0, 1);"
    ))?;
    let mut waiting = Waiting::default();
    let started = Instant::now();
    for first in (0..orders).step_by(usize::try_from(size)?) {
        let end = orders.min(first + size);
        batch(&mut conn, shape, first..end, end == orders, &mut waiting)?;
    }
    let took = started.elapsed();
    let held: i64 = conn.query_row("SELECT reserved FROM stock", [], |row| row.get(0))?;
    if u64::try_from(held)? != orders {
        return Err(format!("the bare loop holds {held} units of {orders}").into());
    }
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    Ok(orders as f64 / took.as_secs_f64())
}

/// Rows of the tables that are filled in bulk.
#[derive(Default)]
struct Waiting {
    ids: Vec<(Id, i64)>,
    owners: Vec<(Id, i64)>,
}

impl Waiting {
    fn fill(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let mut live = conn.prepare_cached("INSERT INTO live (reservation) VALUES (?1)")?;
        let mut by_sku = conn.prepare_cached("INSERT INTO sku_movements (sku, movement) VALUES (?1, ?2)")?;
        for (_, n) in &self.ids {
            live.execute([n])?;
            by_sku.execute([&SKU, n])?;
        }
        self.ids.sort_unstable();
        let mut by_id =
            conn.prepare_cached("INSERT INTO ids (tenant, id, reservation) VALUES (?1, ?2, ?3)")?;
        for (id, n) in self.ids.drain(..) {
            by_id.execute(params![TENANT, id.as_str(), n])?;
        }
        self.owners.sort_unstable();
        let mut by_owner = conn.prepare_cached(
            "INSERT INTO owners (tenant, owner, reservation, sku, era, used) VALUES (?1, ?2, ?3, ?4, 0, 1)",
        )?;
        for (owner, n) in self.owners.drain(..) {
            by_owner.execute(params![TENANT, owner.as_str(), n, SKU])?;
        }
        Ok(())
    }
}

fn batch(
    conn: &mut Connection,
    shape: Shape,
    orders: std::ops::Range<u64>,
    last: bool,
    waiting: &mut Waiting,
) -> Result<(), Failure> {
    let (first, end) = (orders.start, orders.end);
    let transaction = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let at = 1_767_000_000_000_i64;
    {
        let mut reservation = transaction.prepare_cached(
            "INSERT INTO reservations (n, shard, tenant, id, owner, mode, status, sealed, noted, digest, granted_at, \
             ends_at, movement) VALUES (?1, 0, ?2, ?3, ?4, 0, 0, 0, 0, ?5, ?6, ?7, ?1)",
        )?;
        let mut allocation = transaction.prepare_cached(
            "INSERT INTO allocations (key, line, sku, asked, era, location, quantity, confirmed, returned) \
             VALUES (?1, 0, ?2, NULL, 0, ?3, 1, 0, 0)",
        )?;
        let mut movement = transaction.prepare_cached(
            "INSERT INTO movements (number, at, kind, actor, reason, reservation, before, command, sku, location, \
             on_hand_by, reserved_by, sold_by, on_hand, reserved, sold, safety_stock, version) \
             VALUES (?1, ?2, 0, 2, '', ?1, NULL, NULL, ?3, ?4, 0, 1, 0, ?5, ?1, 0, 0, ?1 + 1)",
        )?;
        for order in first..end {
            let Action::Reserve(Reserve { id, owner, .. }) = shape.order(order)?.action else {
                return Err("an order is a reserve".into());
            };
            let n = i64::try_from(order)? + 1;
            let digest = [0_u8; 16];
            reservation.execute(params![
                n,
                TENANT,
                id.as_str(),
                owner.as_str(),
                digest,
                at,
                at + 3_600_000
            ])?;
            allocation.execute(params![n * PLACES, SKU, LOCATION])?;
            movement.execute(params![n, at, SKU, LOCATION, SUPPLY])?;
            waiting.owners.push((owner, n));
            waiting.ids.push((id, n));
        }
        if waiting.ids.len() >= FILL || last {
            waiting.fill(&transaction)?;
            transaction
                .prepare_cached("UPDATE deferred SET indexed = ?1, reservation = ?1")?
                .execute([i64::try_from(end)?])?;
        }
        let units = i64::try_from(end - first)?;
        transaction
            .prepare_cached(
                "UPDATE stock SET reserved = reserved + ?1, version = version + ?1 WHERE sku = ?2",
            )?
            .execute([units, SKU])?;
        let entry = i64::try_from(first)? + 1;
        transaction
            .prepare_cached(
                "INSERT INTO entries (shard, seq, epoch, tag, prev, at, movement, reservation) \
                 VALUES (0, ?1, 1, ?1, 0, ?2, ?3, ?3)",
            )?
            .execute([entry, at, i64::try_from(end)?])?;
        transaction
            .prepare_cached(
                "UPDATE shards SET cursor = ?1, tag = ?1, at = ?2, movement = ?3, reservation = ?3",
            )?
            .execute([entry, at, i64::try_from(end)?])?;
    }
    transaction.commit()?;
    Ok(())
}

//! The recording transaction: all of a run, or nothing.
//!
//! One pass over the effects writes the append-only rows (movements, returns, stock commands) and gathers what several
//! effects of the run may touch (reservations, counters), which is then written once per row: a hot SKU costs one
//! UPDATE per run, not one per order.

use std::cell::OnceCell;

use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension, params};
use stockade_core::{Change, Counters, Effect, Entry, Id, Reservation, Status, Verb};

use super::codes::{PLACES, RETURN, mode_code, status_code, stock_verb_code, verb_code};
use super::counters::Tally;
use super::ids::{Ids, Tops};
use super::map::Map;
use super::names::Names;
use super::stock::{record_return, record_stock};
use crate::api::RecordError;

/// Why a step of the transaction failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database said no.
    Sql(rusqlite::Error),
    /// The ledger said no.
    Refused(RecordError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        if let rusqlite::Error::SqliteFailure(cause, message) = &error
            && cause.code == ErrorCode::ConstraintViolation
        {
            // A CHECK or a unique key: not a fault of the database but a difference that it was made to find.
            return mismatch(
                "a constraint",
                "it holds",
                message.as_deref().unwrap_or("it does not"),
            );
        }
        Self::Sql(error)
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers pass values that they made for this"
)]
pub(super) fn mismatch(place: impl ToString, expected: impl ToString, found: impl ToString) -> Fault {
    Fault::Refused(RecordError::Mismatch {
        place: place.to_string(),
        expected: expected.to_string(),
        found: found.to_string(),
    })
}

/// A count as SQLite stores it.
pub(super) fn int(place: &str, value: u64) -> Result<i64, Fault> {
    i64::try_from(value)
        .ok()
        .filter(|value| *value <= stockade_core::QUANTITY_MAX.cast_signed())
        .ok_or_else(|| mismatch(place, "at most 9007199254740991", value))
}

/// The highest numbers given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) movement: i64,
    pub(super) reservation: i64,
}

/// What a run does to one reservation.
struct Touched<'r> {
    tenant: i64,
    /// Its number; the old one, if it is granted again.
    n: i64,
    /// Its number from now on: another one when it is granted again, so that numbers grow with grants.
    new_n: i64,
    /// Whether the row is new.
    insert: bool,
    /// Whether confirmed or returned units changed.
    units: bool,
    /// Its last movement so far.
    movement: i64,
    after: &'r Reservation,
}

/// One run being written.
pub(super) struct Run<'r, 'c> {
    pub(super) conn: &'c Connection,
    pub(super) names: &'c mut Names,
    pub(super) numbers: Numbers,
    pub(super) shard: u32,
    /// Ids that got a number, by their hash.
    pub(super) granted: Vec<(u64, i64)>,
    ids: Ids<'r>,
    tops: &'c mut Tops,
    scanned: OnceCell<super::tail::Numbers>,
    touched: Vec<Touched<'r>>,
    by_id: Map<(i64, &'r str), usize>,
    pub(super) tallies: Vec<Tally<'r>>,
    pub(super) by_stock: Map<(i64, i64), usize>,
}

/// Checks what can be checked without the ledger: one shard, one epoch, gapless, each naming the tag before.
pub(super) fn check_chain(run: &[Entry]) -> Result<(), Fault> {
    for pair in run.windows(2) {
        let [one, next] = pair else { continue };
        if next.shard != one.shard || next.epoch != one.epoch {
            return Err(mismatch(
                format!("entry {}", next.seq),
                format!("shard {} epoch {}", one.shard, one.epoch),
                format!("shard {} epoch {}", next.shard, next.epoch),
            ));
        }
        if next.seq != one.seq + 1 || next.prev != one.tag {
            return Err(mismatch(
                format!("entry {}", next.seq),
                format!("seq {} after tag {:016x}", one.seq + 1, one.tag),
                format!("seq {} after tag {:016x}", next.seq, next.prev),
            ));
        }
    }
    Ok(())
}

struct Inserts<'c> {
    entry: CachedStatement<'c>,
    movement: CachedStatement<'c>,
}

impl<'r, 'c> Run<'r, 'c> {
    pub(super) fn new(
        conn: &'c Connection,
        names: &'c mut Names,
        ids: Ids<'r>,
        tops: &'c mut Tops,
        numbers: Numbers,
        shard: u32,
    ) -> Self {
        Self {
            conn,
            names,
            numbers,
            shard,
            granted: Vec::new(),
            ids,
            tops,
            scanned: OnceCell::new(),
            touched: Vec::new(),
            by_id: Map::default(),
            tallies: Vec::new(),
            by_stock: Map::default(),
        }
    }

    /// Writes everything but the shard's row.
    pub(super) fn write(&mut self, run: &'r [Entry]) -> Result<(), Fault> {
        let mut inserts = Inserts {
            entry: self.conn.prepare_cached(
                "INSERT INTO entries (shard, seq, epoch, tag, prev, at, movement, reservation) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?,
            movement: self.conn.prepare_cached(
                "INSERT INTO movements (number, at, kind, actor, reason, reservation, before, command, sku, location, \
                 on_hand_by, reserved_by, sold_by, on_hand, reserved, sold, safety_stock, version) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
            )?,
        };
        let effects = run.iter().map(|entry| entry.effects.len()).sum();
        self.touched.reserve(effects);
        self.by_id.reserve(effects);
        for entry in run {
            for effect in &entry.effects {
                self.effect(effect, &mut inserts)?;
            }
            inserts.entry.execute(params![
                entry.shard,
                int("entries.seq", entry.seq)?,
                int("entries.epoch", entry.epoch)?,
                entry.tag.cast_signed(),
                entry.prev.cast_signed(),
                entry.at,
                self.numbers.movement,
                self.numbers.reservation,
            ])?;
        }
        self.write_reservations()?;
        self.write_counters()
    }

    fn effect(&mut self, effect: &'r Effect, inserts: &mut Inserts<'_>) -> Result<(), Fault> {
        let conn = self.conn;
        let (tenant, kind, touched, command, mut sku) = match &effect.change {
            Change::Reservation { verb, before, after } => {
                let tenant = self.names.name(conn, &after.tenant)?;
                let touched = self.touch(tenant, *verb, *before, after)?;
                (tenant, verb_code(*verb), Some(touched), None, None)
            }
            Change::Return { record, after } => {
                let tenant = self.names.name(conn, &after.tenant)?;
                let touched = self.touch(tenant, Verb::Confirm, Some(Status::Confirmed), after)?;
                let reservation = self.touched.get(touched).map_or(0, |t| t.new_n);
                record_return(self, tenant, record, reservation)?;
                (tenant, RETURN, Some(touched), Some(record.id.as_str()), None)
            }
            Change::Stock {
                verb,
                record,
                settings,
                created,
            } => {
                let tenant = self.names.name(conn, &record.tenant)?;
                let sku = record_stock(self, tenant, record, settings.as_ref(), *created)?;
                (
                    tenant,
                    stock_verb_code(*verb),
                    None,
                    Some(record.id.as_str()),
                    Some(sku),
                )
            }
        };
        let actor = self.names.name(conn, &effect.actor)?;
        let moves = effect
            .moves
            .iter()
            .map(Some)
            .chain(effect.moves.is_empty().then_some(None));
        for one in moves {
            self.numbers.movement += 1;
            let number = self.numbers.movement;
            let (reservation, before) = match touched.and_then(|at| self.touched.get_mut(at)) {
                Some(touched) => {
                    let before = std::mem::replace(&mut touched.movement, number);
                    (Some(touched.new_n), (before != 0).then_some(before))
                }
                None => (None, None),
            };
            let location = match one {
                Some(one) => {
                    let n = self.known_sku(tenant, &one.sku)?;
                    sku = Some(n);
                    let location = self.names.name(conn, &one.location)?;
                    self.tally((n, location), one)?;
                    Some(location)
                }
                None => None,
            };
            let after = one.map(|one| one.after);
            let counter = |get: fn(&Counters) -> u64| after.as_ref().map(|after| get(after).cast_signed());
            inserts.movement.execute(params![
                number,
                effect.at,
                kind,
                actor,
                effect.reason.as_str(),
                reservation,
                before,
                command,
                sku,
                location,
                one.map_or(0, |one| one.on_hand),
                one.map_or(0, |one| one.reserved),
                one.map_or(0, |one| one.sold),
                counter(|c| c.on_hand),
                counter(|c| c.reserved),
                counter(|c| c.sold),
                counter(|c| c.safety_stock),
                counter(|c| c.version),
            ])?;
        }
        Ok(())
    }

    /// The number of a SKU that must be recorded.
    pub(super) fn known_sku(&mut self, tenant: i64, sku: &Id) -> Result<i64, Fault> {
        self.names
            .sku(self.conn, tenant, sku)?
            .ok_or_else(|| mismatch(format!("SKU {sku}"), "it is recorded", "it is not"))
    }

    #[expect(
        clippy::single_match_else,
        reason = "a look-up with a way for either answer reads as a match"
    )]
    /// Notes what becomes of a reservation and checks its state before.
    fn touch(
        &mut self,
        tenant: i64,
        verb: Verb,
        before: Option<Status>,
        after: &'r Reservation,
    ) -> Result<usize, Fault> {
        let units = matches!(verb, Verb::Confirm | Verb::Revive);
        let again = before == Some(Status::Lost) && matches!(verb, Verb::Reserve | Verb::Deduct);
        let (at, found) = match self.by_id.get(&(tenant, after.id.as_str())) {
            Some(at) => (*at, self.touched.get(*at).map(|touched| touched.after.status)),
            None => {
                let (touched, found) = self.stored(tenant, after)?;
                self.touched.push(touched);
                let at = self.touched.len() - 1;
                self.by_id.insert((tenant, after.id.as_str()), at);
                (at, found)
            }
        };
        let first = before.is_none();
        if found != before {
            let word = |status: Option<Status>| status.map_or("absent", Status::as_str);
            return Err(mismatch(
                format!("reservation {}", after.id),
                word(before),
                word(found),
            ));
        }
        let Some(touched) = self.touched.get_mut(at) else {
            return Err(mismatch("run", "a touched reservation", "none"));
        };
        if first {
            self.numbers.reservation += 1;
            touched.n = self.numbers.reservation;
            touched.new_n = touched.n;
        } else if again && !touched.insert {
            self.numbers.reservation += 1;
            touched.new_n = self.numbers.reservation;
        }
        touched.units |= units;
        touched.after = after;
        Ok(at)
    }

    fn stored(
        &mut self,
        tenant: i64,
        after: &'r Reservation,
    ) -> Result<(Touched<'r>, Option<Status>), Fault> {
        let n = self
            .ids
            .number_below(self.conn, tenant, after.id.as_str(), &self.scanned, self.tops)?;
        let row = match n {
            Some(n) => self
                .conn
                .prepare_cached("SELECT n, status, movement FROM reservations WHERE n = ?1")?
                .query_row([n], |row| {
                    Ok((row.get(0)?, super::codes::status(1, row.get(1)?)?, row.get(2)?))
                })
                .optional()?,
            None => None,
        };
        Ok(match row {
            Some((n, status, movement)) => (
                Touched {
                    tenant,
                    n,
                    new_n: n,
                    insert: false,
                    units: false,
                    movement,
                    after,
                },
                Some(status),
            ),
            None => (
                Touched {
                    tenant,
                    n: 0,
                    new_n: 0,
                    insert: true,
                    units: false,
                    movement: 0,
                    after,
                },
                None,
            ),
        })
    }

    fn write_reservations(&mut self) -> Result<(), Fault> {
        let conn = self.conn;
        let mut insert = conn.prepare_cached(
            "INSERT INTO reservations (n, shard, tenant, id, owner, mode, status, sealed, noted, digest, granted_at, \
             ends_at, movement) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?;
        let mut update = conn.prepare_cached(
            "UPDATE reservations SET status = ?2, noted = ?3, ends_at = ?4, movement = ?5 WHERE n = ?1 RETURNING n",
        )?;
        let mut touched = std::mem::take(&mut self.touched);
        for one in &touched {
            if !one.insert && one.n != one.new_n {
                self.forget_lost(one)?;
            }
            let after = one.after;
            if one.insert || one.n != one.new_n {
                let hash = self.ids.tail.hash(one.tenant, after.id.as_str());
                self.granted.push((hash, one.new_n));
                insert.execute(params![
                    one.new_n,
                    self.shard,
                    one.tenant,
                    after.id.as_str(),
                    after.owner.as_ref().map(Id::as_str),
                    mode_code(after.mode),
                    status_code(after.status),
                    after.sealed,
                    after.noted,
                    after.digest.0.to_be_bytes(),
                    after.granted_at,
                    after.ends_at,
                    one.movement,
                ])?;
            } else {
                let done: Option<i64> = update
                    .query_row(
                        params![
                            one.n,
                            status_code(after.status),
                            after.noted,
                            after.ends_at,
                            one.movement
                        ],
                        |row| row.get(0),
                    )
                    .optional()?;
                if done != Some(one.n) {
                    return Err(mismatch(
                        format!("reservation {}", after.id),
                        "one row changed",
                        "none",
                    ));
                }
            }
        }
        // Grants first and in the order of their numbers, so that allocations are appended.
        touched.sort_unstable_by_key(|one| one.new_n);
        for one in &touched {
            if one.insert || one.n != one.new_n {
                self.insert_allocations(one)?;
            } else if one.units {
                self.update_allocations(one)?;
            }
        }
        Ok(())
    }

    /// A lost reservation that is granted again is a new row: numbers grow with grants. Its history moves along.
    fn forget_lost(&self, one: &Touched<'r>) -> Result<(), Fault> {
        let conn = self.conn;
        let owner: Option<String> = conn
            .prepare_cached("DELETE FROM reservations WHERE n = ?1 RETURNING owner")?
            .query_row([one.n], |row| row.get(0))?;
        conn.prepare_cached("DELETE FROM ids WHERE tenant = ?1 AND id = ?2")?
            .execute(params![one.tenant, one.after.id.as_str()])?;
        conn.prepare_cached("DELETE FROM allocations WHERE key BETWEEN ?1 AND ?2")?
            .execute([one.n * PLACES, (one.n + 1) * PLACES - 1])?;
        conn.prepare_cached("DELETE FROM owners WHERE tenant = ?1 AND owner = ?2 AND reservation = ?3")?
            .execute(params![one.tenant, owner, one.n])?;
        conn.prepare_cached("DELETE FROM live WHERE reservation = ?1")?
            .execute([one.n])?;
        let mut rename =
            conn.prepare_cached("UPDATE movements SET reservation = ?2 WHERE number = ?1 RETURNING before")?;
        let mut number = Some(one.movement);
        while let Some(at) = number {
            number = rename.query_row([at, one.new_n], |row| row.get(0))?;
        }
        Ok(())
    }

    fn insert_allocations(&mut self, one: &Touched<'r>) -> Result<(), Fault> {
        let conn = self.conn;
        let mut insert = conn.prepare_cached(
            "INSERT INTO allocations (key, line, sku, asked, era, location, quantity, confirmed, returned) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let mut key = one.new_n * PLACES;
        for (line, number) in one.after.lines.iter().zip(0_i64..) {
            let sku = self.known_sku(one.tenant, &line.sku)?;
            let asked = match &line.location {
                Some(location) => Some(self.names.name(conn, location)?),
                None => None,
            };
            for allocation in &line.allocations {
                let location = self.names.name(conn, &allocation.location)?;
                insert.execute(params![
                    key,
                    number,
                    sku,
                    asked,
                    line.era,
                    location,
                    int("allocations.quantity", allocation.quantity)?,
                    int("allocations.confirmed", allocation.confirmed)?,
                    int("allocations.returned", allocation.returned)?,
                ])?;
                key += 1;
            }
        }
        Ok(())
    }

    fn update_allocations(&mut self, one: &Touched<'r>) -> Result<(), Fault> {
        let conn = self.conn;
        let mut update = conn.prepare_cached(
            "UPDATE allocations SET confirmed = ?2, returned = ?3, era = ?4 \
             WHERE key = ?1 AND sku = ?5 AND location = ?6 AND quantity = ?7 RETURNING key",
        )?;
        let mut key = one.n * PLACES;
        for line in &one.after.lines {
            let sku = self.known_sku(one.tenant, &line.sku)?;
            for allocation in &line.allocations {
                let location = self.names.name(conn, &allocation.location)?;
                let done: Option<i64> = update
                    .query_row(
                        params![
                            key,
                            int("allocations.confirmed", allocation.confirmed)?,
                            int("allocations.returned", allocation.returned)?,
                            line.era,
                            sku,
                            location,
                            int("allocations.quantity", allocation.quantity)?,
                        ],
                        |row| row.get(0),
                    )
                    .optional()?;
                if done != Some(key) {
                    return Err(mismatch(
                        format!(
                            "reservation {}: {} at {}",
                            one.after.id, line.sku, allocation.location
                        ),
                        format!("an allocation of {}", allocation.quantity),
                        "another, or none",
                    ));
                }
                key += 1;
            }
        }
        Ok(())
    }
}

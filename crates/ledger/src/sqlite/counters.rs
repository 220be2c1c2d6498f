//! Counters: what a run does to each (SKU, location) is added up, and each row is written once.

use rusqlite::{OptionalExtension, params};
use stockade_core::{Counters, Move};

use super::record::{Fault, Run, int, mismatch};

/// What a run does to one (SKU, location).
pub(super) struct Tally<'r> {
    key: (i64, i64),
    before: Counters,
    on_hand: i64,
    reserved: i64,
    sold: i64,
    steps: u64,
    last: &'r Move,
}

impl<'r> Run<'r, '_> {
    #[expect(
        clippy::single_match_else,
        reason = "a look-up with a way for either answer reads as a match"
    )]
    pub(super) fn tally(&mut self, key: (i64, i64), one: &'r Move) -> Result<(), Fault> {
        let place = || format!("counters of {} at {}", one.sku, one.location);
        let at = match self.by_stock.get(&key) {
            Some(at) => *at,
            None => {
                let back = |after: u64, by: i64| after.checked_add_signed(by.checked_neg()?);
                let before = back(one.after.on_hand, one.on_hand)
                    .zip(back(one.after.reserved, one.reserved))
                    .zip(back(one.after.sold, one.sold))
                    .zip(one.after.version.checked_sub(1))
                    .map(|(((on_hand, reserved), sold), version)| Counters {
                        on_hand,
                        reserved,
                        sold,
                        safety_stock: 0,
                        version,
                    })
                    .ok_or_else(|| mismatch(place(), "counters before of at least 0", format!("{one:?}")))?;
                self.tallies.push(Tally {
                    key,
                    before,
                    on_hand: 0,
                    reserved: 0,
                    sold: 0,
                    steps: 0,
                    last: one,
                });
                self.by_stock.insert(key, self.tallies.len() - 1);
                self.tallies.len() - 1
            }
        };
        let Some(tally) = self.tallies.get_mut(at) else {
            return Err(mismatch("run", "a tally", "none"));
        };
        tally.on_hand += one.on_hand;
        tally.reserved += one.reserved;
        tally.sold += one.sold;
        tally.steps += 1;
        tally.last = one;
        let (before, after) = (&tally.before, &one.after);
        if before.on_hand.checked_add_signed(tally.on_hand) != Some(after.on_hand)
            || before.reserved.checked_add_signed(tally.reserved) != Some(after.reserved)
            || before.sold.checked_add_signed(tally.sold) != Some(after.sold)
            || before.version + tally.steps != after.version
        {
            return Err(mismatch(
                place(),
                "counters that follow from the moves before",
                format!("{after:?}"),
            ));
        }
        Ok(())
    }

    pub(super) fn write_counters(&mut self) -> Result<(), Fault> {
        let conn = self.conn;
        let mut update = conn.prepare_cached(
            "UPDATE stock SET on_hand = on_hand + ?3, reserved = reserved + ?4, sold = sold + ?5, safety_stock = ?6, \
             version = ?7 WHERE sku = ?1 AND location = ?2 AND version = ?8 RETURNING on_hand, reserved, sold",
        )?;
        let mut insert = conn.prepare_cached(
            "INSERT INTO stock (sku, location, i, on_hand, reserved, sold, safety_stock, version) \
             SELECT ?1, ?2, ifnull(max(i) + 1, 0), ?3, ?4, ?5, ?6, ?7 FROM stock WHERE sku = ?1 \
             RETURNING on_hand, reserved, sold",
        )?;
        // A location's number within its SKU follows the order in which the run created it.
        for tally in self.tallies.iter().filter(|tally| tally.before.version == 0) {
            let after = &tally.last.after;
            let found: (i64, i64, i64) = insert.query_row(
                params![
                    tally.key.0,
                    tally.key.1,
                    tally.on_hand,
                    tally.reserved,
                    tally.sold,
                    int("stock.safety_stock", after.safety_stock)?,
                    int("stock.version", after.version)?,
                ],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?;
            compare(tally, Some(found))?;
        }
        self.tallies.sort_unstable_by_key(|tally| tally.key);
        for tally in self.tallies.iter().filter(|tally| tally.before.version != 0) {
            let after = &tally.last.after;
            let found: Option<(i64, i64, i64)> = update
                .query_row(
                    params![
                        tally.key.0,
                        tally.key.1,
                        tally.on_hand,
                        tally.reserved,
                        tally.sold,
                        int("stock.safety_stock", after.safety_stock)?,
                        int("stock.version", after.version)?,
                        tally.before.version.cast_signed(),
                    ],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .optional()?;
            compare(tally, found)?;
        }
        Ok(())
    }
}

/// What the database computed must be what the entries say.
fn compare(tally: &Tally<'_>, found: Option<(i64, i64, i64)>) -> Result<(), Fault> {
    let after = &tally.last.after;
    let expected = (
        after.on_hand.cast_signed(),
        after.reserved.cast_signed(),
        after.sold.cast_signed(),
    );
    match found {
        Some(found) if found == expected => Ok(()),
        Some((on_hand, reserved, sold)) => Err(mismatch(
            format!("counters of {} at {}", tally.last.sku, tally.last.location),
            format!(
                "on_hand {} reserved {} sold {}",
                after.on_hand, after.reserved, after.sold
            ),
            format!("on_hand {on_hand} reserved {reserved} sold {sold}"),
        )),
        None => Err(mismatch(
            format!("counters of {} at {}", tally.last.sku, tally.last.location),
            format!("version {}", tally.before.version),
            "another version, or no such row",
        )),
    }
}

//! Reservations against their movements, and what is derived from them against them.
//!
//! Every table is read from its beginning to its end, in the order of its keys, and never by look-ups: what is known
//! of a reservation meets in memory. Sets are compared by sums of hashes with a random key, which say that something
//! differs; what it is, is looked up then. Memory is bounded by taking [`AT_ONCE`] reservations (128 MiB) a pass;
//! each pass reads the movements and the deferred tables again.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};

use rusqlite::Rows;

use super::audit::{Findings, Folds, Movements};
use super::audit_details as details;
use super::codes::{KINDS, PLACES};
use super::index::{self, Used};
use super::reader::Reader;

/// Reservations in memory at a time, 64 bytes each.
const AT_ONCE: usize = 2_000_000;

pub(super) const PENDING: i64 = 0;
pub(super) const CONFIRMED: i64 = 1;

/// The status that a movement leaves behind; `None`: it leaves it as it is.
pub(super) fn status_after(kind: &str) -> Option<i64> {
    match kind {
        "reserve" | "extend" => Some(PENDING),
        "deduct" | "confirm" | "revive" | "return" => Some(CONFIRMED),
        "cancel" | "seal" => Some(2),
        "expire" => Some(3),
        "lose" => Some(4),
        _ => None,
    }
}

/// Bits of [`One::flags`].
mod flag {
    /// Of the shard that is audited.
    pub(super) const OURS: u16 = 1;
    pub(super) const SEALED: u16 = 1 << 1;
    pub(super) const NOTED: u16 = 1 << 2;
    /// A movement sealed it.
    pub(super) const WAS_SEALED: u16 = 1 << 3;
    pub(super) const WAS_NOTED: u16 = 1 << 4;
    /// Its movements do not name each other.
    pub(super) const BROKEN: u16 = 1 << 5;
    /// The deferred tables hold it as it is.
    pub(super) const FILLED: u16 = 1 << 6;
    /// `ids` should hold it.
    pub(super) const IN_IDS: u16 = 1 << 7;
    /// `ids` holds it.
    pub(super) const ID_SEEN: u16 = 1 << 8;
    /// `live` holds it.
    pub(super) const LISTED: u16 = 1 << 9;
}

/// What is known of one reservation.
struct One {
    n: i64,
    /// The last movement by its row, and by the movements.
    movement: i64,
    last: i64,
    /// What its movements moved less what its allocations hold: 0.
    moved: u64,
    /// What its allocations count less what `owners` says: 0.
    used: u64,
    /// The hash of its id.
    id: u64,
    /// Units given back by its allocations less those of its returns: 0.
    back: i64,
    status: i8,
    /// By the movements.
    was: i8,
    flags: u16,
}

impl One {
    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// The reservations of one pass.
struct Pass<'a> {
    reader: &'a Reader,
    hasher: RandomState,
    /// Numbers above this one, at most `high`.
    low: i64,
    high: i64,
    list: Vec<One>,
}

impl Pass<'_> {
    fn hash(&self, value: impl Hash) -> u64 {
        self.hasher.hash_one(value)
    }

    fn is_here(&self, n: i64) -> bool {
        n > self.low && n <= self.high
    }

    fn find(&mut self, n: i64) -> Option<&mut One> {
        // Numbers have few gaps, and gaps only make a place smaller.
        let first = self.list.first()?.n;
        let guess = usize::try_from(n.checked_sub(first)?).ok()?;
        if self.list.get(guess).is_some_and(|one| one.n == n) {
            return self.list.get_mut(guess);
        }
        let at = self.list.binary_search_by_key(&n, |one| one.n).ok()?;
        self.list.get_mut(at)
    }

    /// Units of a (SKU, location), as a summand: 0 only for no units.
    fn units(&self, sku: i64, location: i64, reserved: i64, sold: i64) -> u64 {
        let weigh =
            |what: u8, units: i64| (self.hash((sku, location, what)) | 1).wrapping_mul(units.cast_unsigned());
        weigh(0, reserved).wrapping_add(weigh(1, sold))
    }

    /// A row of `owners`, as a summand; its units only where they have to be right.
    fn usage(&self, key: (i64, &str, i64, i64), units: Option<(u32, i64)>) -> u64 {
        self.hash((key, units))
    }
}

/// Checks everything that concerns reservations, and folds what their allocations and the movements add up to.
pub(super) fn audit(
    reader: &Reader,
    shard: u32,
    movements: &mut Movements,
    folds: &mut Folds,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    let conn = &reader.conn;
    let changed: HashSet<i64> = index::changed(conn, reader.marks.indexed, i64::MAX)?
        .into_iter()
        .collect();
    let mut low = i64::MIN;
    loop {
        let mut pass = Pass {
            reader,
            hasher: RandomState::new(),
            low,
            high: i64::MAX,
            list: Vec::new(),
        };
        rows(&mut pass, shard, &changed, folds, findings)?;
        history(&mut pass, movements, folds, findings)?;
        returns(&mut pass, findings)?;
        ids(&mut pass, findings)?;
        usage(&mut pass, &changed, findings)?;
        live(&mut pass, findings)?;
        for one in pass.list.iter().filter(|one| one.has(flag::OURS)) {
            if findings.are_enough() {
                return Ok(());
            }
            judge(&pass, one, findings)?;
        }
        if pass.high == i64::MAX || findings.are_enough() {
            return Ok(());
        }
        low = pass.high;
    }
}

/// Reservations and their allocations, side by side.
fn rows(
    pass: &mut Pass<'_>,
    shard: u32,
    changed: &HashSet<i64>,
    folds: &mut Folds,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    let reader = pass.reader;
    let filled = reader.marks.filled;
    let mut reservations = reader.conn.prepare_cached(
        "SELECT n, shard, tenant, id, owner, status, sealed, noted, movement FROM reservations WHERE n > ?1 ORDER BY n",
    )?;
    let mut reservations = reservations.query([pass.low])?;
    let mut allocations = reader.conn.prepare_cached(
        "SELECT key, sku, location, era, quantity, confirmed, returned FROM allocations WHERE key >= ?1 ORDER BY key",
    )?;
    let mut allocations = allocations.query([pass.low.saturating_add(1).saturating_mul(PLACES)])?;
    let mut held = Held::next(&mut allocations)?;
    let mut used: Vec<Used> = Vec::new();
    while let Some(row) = reservations.next()? {
        let n: i64 = row.get(0)?;
        if pass.list.len() >= AT_ONCE {
            pass.high = n - 1;
            return Ok(());
        }
        let (ours, tenant): (u32, i64) = (row.get(1)?, row.get(2)?);
        let ours = ours == shard;
        let (id, owner) = (row.get_ref(3)?.as_str()?, row.get_ref(4)?.as_str_or_null()?);
        let status: i64 = row.get(5)?;
        let mut one = One {
            n,
            movement: row.get(8)?,
            last: 0,
            moved: 0,
            used: 0,
            id: pass.hash((tenant, id)),
            back: 0,
            status: i8::try_from(status).unwrap_or(i8::MAX),
            was: -1,
            flags: 0,
        };
        let fresh = n > filled;
        for (is, bit) in [
            (ours, flag::OURS),
            (row.get(6)?, flag::SEALED),
            (row.get(7)?, flag::NOTED),
            (!fresh, flag::IN_IDS),
            (!fresh && !changed.contains(&n), flag::FILLED),
        ] {
            if is {
                one.flags |= bit;
            }
        }
        if fresh && ours {
            let found = reader.number(tenant, id)?;
            if found != Some(n) {
                findings.add("id", format!("reservation {id}"), n, details::or_none(found));
            }
        }
        while let Some(row) = held.as_ref().filter(|held| held.n < n) {
            row.is_orphan(findings);
            held = Held::next(&mut allocations)?;
        }
        used.clear();
        while let Some(row) = held.as_ref().filter(|held| held.n == n) {
            one.back += row.returned;
            let (reserved, sold) = match status {
                PENDING => (row.quantity, 0),
                CONFIRMED => (0, row.confirmed - row.returned),
                _ => (0, 0),
            };
            one.moved = one
                .moved
                .wrapping_sub(pass.units(row.sku, row.location, reserved, sold));
            if ours {
                let fold = folds.entry((row.sku, row.location)).or_default();
                fold.held += reserved;
                fold.kept += sold;
            }
            if owner.is_some() && !fresh {
                let units = Used {
                    tenant,
                    owner: String::new(),
                    reservation: n,
                    sku: row.sku,
                    era: row.era,
                    units: reserved + sold,
                };
                index::add_used(&mut used, 0, units);
            }
            held = Held::next(&mut allocations)?;
        }
        for each in &used {
            let key = (tenant, owner.unwrap_or_default(), n, each.sku);
            one.used = one.used.wrapping_add(pass.usage(key, None));
            if one.has(flag::FILLED) {
                one.used = one
                    .used
                    .wrapping_add(pass.usage(key, Some((each.era, each.units))));
            }
        }
        pass.list.push(one);
        if findings.are_enough() {
            return Ok(());
        }
    }
    while let Some(row) = held.filter(|_| !findings.are_enough()) {
        row.is_orphan(findings);
        held = Held::next(&mut allocations)?;
    }
    Ok(())
}

/// A row of `allocations`.
struct Held {
    n: i64,
    sku: i64,
    location: i64,
    era: u32,
    quantity: i64,
    confirmed: i64,
    returned: i64,
}

impl Held {
    fn next(rows: &mut Rows<'_>) -> rusqlite::Result<Option<Self>> {
        rows.next()?
            .map(|row| {
                Ok(Self {
                    n: row.get::<_, i64>(0)?.div_euclid(PLACES),
                    sku: row.get(1)?,
                    location: row.get(2)?,
                    era: row.get(3)?,
                    quantity: row.get(4)?,
                    confirmed: row.get(5)?,
                    returned: row.get(6)?,
                })
            })
            .transpose()
    }

    fn is_orphan(&self, findings: &mut Findings) {
        let place = format!("allocation of reservation number {}", self.n);
        findings.add("allocations", place, "a reservation", "none");
    }
}

/// The movements, oldest first: each reservation's name each other.
fn history(
    pass: &mut Pass<'_>,
    movements: &mut Movements,
    folds: &mut Folds,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    let reader = pass.reader;
    let first = pass.low == i64::MIN;
    let mut select = reader.conn.prepare_cached(
        "SELECT number, kind, reservation, before, sku, location, on_hand_by, reserved_by, sold_by, on_hand, reserved, \
         sold, safety_stock, version FROM movements ORDER BY number",
    )?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if first {
            movements.add(reader, row, folds, findings)?;
        }
        if findings.are_enough() {
            return Ok(());
        }
        let Some(n) = row.get::<_, Option<i64>>(2)?.filter(|n| pass.is_here(*n)) else {
            continue;
        };
        let number: i64 = row.get(0)?;
        let moved = match (row.get(4)?, row.get(5)?) {
            (Some(sku), Some(location)) => pass.units(sku, location, row.get(7)?, row.get(8)?),
            _ => 0,
        };
        let Some(one) = pass.find(n) else {
            let place = format!("movement {number}");
            findings.add("movement", place, format!("reservation number {n}"), "none");
            continue;
        };
        if row.get::<_, Option<i64>>(3)?.unwrap_or(0) != one.last {
            one.flags |= flag::BROKEN;
        }
        one.last = number;
        one.moved = one.moved.wrapping_add(moved);
        let code: i64 = row.get(1)?;
        let kind = usize::try_from(code).ok().and_then(|code| KINDS.get(code));
        match kind {
            Some(&"seal") => one.flags |= flag::WAS_SEALED,
            Some(&"note") => one.flags |= flag::WAS_NOTED,
            _ => {}
        }
        if let Some(status) = kind.and_then(|kind| status_after(kind)) {
            one.was = i8::try_from(status).unwrap_or(i8::MAX);
        }
    }
    Ok(())
}

/// What returns gave back.
fn returns(pass: &mut Pass<'_>, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut select = pass.reader.conn.prepare_cached(
        "SELECT t.reservation, l.quantity, t.id FROM returns t CROSS JOIN return_lines l ON l.\"return\" = t.n",
    )?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let n: i64 = row.get(0)?;
        if !pass.is_here(n) {
            continue;
        }
        let quantity: i64 = row.get(1)?;
        if let Some(one) = pass.find(n) {
            one.back -= quantity;
        } else {
            let place = format!("return {}", row.get_ref(2)?.as_str()?);
            findings.add("returned", place, format!("reservation number {n}"), "none");
        }
    }
    Ok(())
}

/// `ids` holds every reservation up to its mark, once.
fn ids(pass: &mut Pass<'_>, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut select = pass
        .reader
        .conn
        .prepare_cached("SELECT tenant, id, reservation FROM ids")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (tenant, n): (i64, i64) = (row.get(0)?, row.get(2)?);
        if !pass.is_here(n) {
            continue;
        }
        let id = row.get_ref(1)?.as_str()?;
        let hash = pass.hash((tenant, id));
        match pass.find(n) {
            Some(one) if one.id == hash && one.has(flag::IN_IDS) => one.flags |= flag::ID_SEEN,
            found => {
                let found = found.map_or("no such reservation", |one| {
                    if one.id == hash {
                        "it is in the tail"
                    } else {
                        "another id"
                    }
                });
                findings.add(
                    "id",
                    format!("ids, {id}"),
                    format!("reservation number {n}"),
                    found,
                );
                if findings.are_enough() {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// `owners` holds what every reservation up to its mark counts.
fn usage(pass: &mut Pass<'_>, changed: &HashSet<i64>, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut select = pass
        .reader
        .conn
        .prepare_cached("SELECT tenant, owner, reservation, sku, era, used FROM owners")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let n: i64 = row.get(2)?;
        if !pass.is_here(n) {
            continue;
        }
        let owner = row.get_ref(1)?.as_str()?;
        let key = (row.get(0)?, owner, n, row.get(3)?);
        let mut sum = pass.usage(key, None);
        if !changed.contains(&n) {
            sum = sum.wrapping_add(pass.usage(key, Some((row.get(4)?, row.get(5)?))));
        }
        if let Some(one) = pass.find(n) {
            one.used = one.used.wrapping_sub(sum);
        } else {
            let place = format!("{owner}, reservation number {n}");
            findings.add("usage", place, "a reservation", "none");
            if findings.are_enough() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// `live` holds every reservation that was pending at its mark.
fn live(pass: &mut Pass<'_>, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut select = pass
        .reader
        .conn
        .prepare_cached("SELECT reservation FROM live ORDER BY reservation")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let n: i64 = row.get(0)?;
        if !pass.is_here(n) {
            continue;
        }
        if let Some(one) = pass.find(n) {
            one.flags |= flag::LISTED;
        } else {
            findings.add(
                "live",
                format!("live, reservation number {n}"),
                "a reservation",
                "none",
            );
            if findings.are_enough() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// What was gathered about a reservation; looks closer where something differs.
fn judge(pass: &Pass<'_>, one: &One, findings: &mut Findings) -> rusqlite::Result<()> {
    let broken = one.has(flag::BROKEN) || one.last != one.movement;
    let sealed = (one.has(flag::WAS_SEALED), one.has(flag::SEALED));
    let noted = (one.has(flag::WAS_NOTED), one.has(flag::NOTED));
    let id = (one.has(flag::IN_IDS), one.has(flag::ID_SEEN));
    let live = (one.status == 0, one.has(flag::LISTED));
    let live_differs = one.has(flag::FILLED) && live.0 != live.1;
    if !broken
        && one.was == one.status
        && sealed.0 == sealed.1
        && noted.0 == noted.1
        && id.0 == id.1
        && !live_differs
        && (one.moved, one.used, one.back) == (0, 0, 0)
    {
        return Ok(());
    }
    let reader = pass.reader;
    let name = details::name(reader, one.n)?;
    let place = || format!("reservation {name}");
    if broken {
        let broken = details::chain(reader, one.n, one.movement)?;
        findings.add("movement", place(), "a whole chain", broken);
    } else {
        findings.compare("status", place, one.was, one.status);
        findings.compare("sealed", place, sealed.0, sealed.1);
        findings.compare("noted", place, noted.0, noted.1);
        if one.moved != 0 {
            let (moved, held) = details::moved(reader, one.n, one.movement, i64::from(one.status))?;
            findings.add("allocations", place(), format!("(reserved, sold) {moved}"), held);
        }
    }
    if one.back != 0 {
        let back = details::returned(reader, one.n)?;
        findings.add("returned", place(), back - one.back, back);
    }
    findings.compare("id", || format!("ids, {name}"), id.0, id.1);
    if live_differs {
        findings.compare("live", place, live.0, live.1);
    }
    if one.used != 0 {
        details::usage(reader, one.n, &name, one.has(flag::FILLED), findings)?;
    }
    Ok(())
}

//! The numbers of reservations that the table `ids` does not hold yet, by id, shared by the writer and the views of
//! one opening.
//!
//! What is here is a hint: whoever uses a number reads the reservation's row in its own snapshot and compares the id,
//! so a number of a later moment or of another id with the same hash does no harm. What has to hold is only that
//! nothing is missing: for a snapshot whose `ids` holds numbers up to `filled` and whose highest number is `highest`,
//! everything in between is here, or [`Tail::numbers`] says that it cannot tell and the reader looks in the file.
//!
//! It holds because: numbers grow and the highest given one says which reservations there are; the writer adds before
//! it commits; a fill takes a generation away only after the next one; a rollback empties memory before the numbers can
//! be given again. What another process granted is caught up with by whoever has a later snapshot, and moves the floor,
//! since a number that was given and taken back in between was not seen.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use parking_lot::RwLock;
use rusqlite::Connection;
use smallvec::SmallVec;

use super::map::Map;

/// Numbers that an id may have; more than one after a lost reservation was granted again.
pub(super) type Candidates = SmallVec<[i64; 1]>;

/// Numbers by the hash of (tenant, id).
pub(super) type Numbers = Map<u64, Candidates>;

/// How far a snapshot's tables are filled and what the highest reservation in it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The last movement that the deferred tables hold.
    pub(super) indexed: i64,
    /// The last reservation that they hold.
    pub(super) filled: i64,
    /// The highest reservation number given.
    pub(super) highest: i64,
}

impl Marks {
    /// The marks of the snapshot that `conn` reads; the first read of a transaction takes it.
    pub(super) fn read(conn: &Connection) -> rusqlite::Result<Self> {
        conn.prepare_cached(
            "SELECT indexed, reservation, (SELECT ifnull(max(reservation), 0) FROM shards) FROM deferred",
        )?
        .query_row([], |row| {
            Ok(Self {
                indexed: row.get(0)?,
                filled: row.get(1)?,
                highest: row.get(2)?,
            })
        })
    }
}

/// What is shared.
#[derive(Debug, Default)]
pub(super) struct Tail {
    hasher: RandomState,
    known: RwLock<Option<Known>>,
}

/// Every number above `base`, for snapshots that are not older than `floor`.
#[derive(Debug)]
struct Known {
    /// The highest number when memory was read from the file. Older snapshots may hold reservations that were granted
    /// again since, under numbers that are not here.
    floor: i64,
    /// The highest number that was added.
    highest: i64,
    /// The numbers above `base`, at most `filled`.
    before: Numbers,
    base: i64,
    /// The numbers above `filled`.
    present: Numbers,
    filled: i64,
}

impl Known {
    fn new(marks: Marks, present: Numbers) -> Self {
        Self {
            floor: marks.highest,
            highest: marks.highest,
            before: Numbers::default(),
            base: marks.filled,
            present,
            filled: marks.filled,
        }
    }
}

impl Tail {
    pub(super) fn hash(&self, tenant: i64, id: &str) -> u64 {
        self.hasher.hash_one((tenant, id))
    }

    /// The numbers that an id may have above `filled`, newest first; `None`: memory cannot tell for this snapshot.
    pub(super) fn numbers(&self, marks: Marks, hash: u64) -> Option<Candidates> {
        let known = self.known.read();
        let known = known.as_ref()?;
        if marks.filled < known.base || marks.highest < known.floor || marks.highest > known.highest {
            return None;
        }
        let mut numbers = Candidates::new();
        numbers.extend(known.present.get(&hash).into_iter().flatten().rev().copied());
        if marks.filled < known.filled {
            numbers.extend(known.before.get(&hash).into_iter().flatten().rev().copied());
        }
        Some(numbers)
    }

    /// Adds what the transaction that is about to commit granted.
    pub(super) fn add(&self, granted: &[(u64, i64)], highest: i64) {
        if let Some(known) = self.known.write().as_mut() {
            for (hash, n) in granted {
                known.present.entry(*hash).or_default().push(*n);
            }
            known.highest = highest;
        }
    }

    /// After the commit of a fill: a generation ends.
    pub(super) fn filled(&self, filled: i64) {
        // A view that is already behind the fill may have been faster.
        let old = self
            .known
            .write()
            .as_mut()
            .filter(|known| known.filled < filled)
            .map(|known| {
                known.base = known.filled;
                known.filled = filled;
                let ended = std::mem::take(&mut known.present);
                std::mem::replace(&mut known.before, ended)
            });
        // Outside of the lock: freeing many small things takes a while.
        drop(old);
    }

    /// Memory is doubtful from now on.
    pub(super) fn forget(&self) {
        let old = self.known.write().take();
        drop(old);
    }

    /// Reads what another process granted from the snapshot behind `marks`. Memory that is further than the snapshot is
    /// left alone. Whether it is now certain that memory stands where the snapshot does.
    pub(super) fn catch_up(&self, conn: &Connection, marks: Marks) -> rusqlite::Result<bool> {
        let stands = |known: &Option<Known>| known.as_ref().map(|one| (one.filled, one.highest, one.floor));
        let before = stands(&self.known.read());
        let (numbers, goes_on) = match before {
            Some((filled, highest, _)) if (filled, highest) == (marks.filled, marks.highest) => {
                return Ok(true);
            }
            Some((filled, highest, _)) if filled > marks.filled || highest > marks.highest => {
                return Ok(false);
            }
            Some((filled, highest, _)) if filled == marks.filled => (self.scan(conn, highest)?, true),
            _ => (self.scan(conn, marks.filled)?, false),
        };
        let mut known = self.known.write();
        if stands(&known) != before {
            // Another thread was faster, or the writer gave up a transaction meanwhile.
            return Ok(false);
        }
        let old = match known.as_mut() {
            Some(known) if goes_on => {
                known.floor = marks.highest;
                known.highest = marks.highest;
                for (hash, new) in numbers {
                    known.present.entry(hash).or_default().extend(new);
                }
                None
            }
            _ => known.replace(Known::new(marks, numbers)),
        };
        drop(known);
        drop(old);
        Ok(true)
    }

    /// Reads memory anew, inside a transaction that writes.
    pub(super) fn load(&self, conn: &Connection, marks: Marks) -> rusqlite::Result<()> {
        self.forget();
        let present = self.scan(conn, marks.filled)?;
        *self.known.write() = Some(Known::new(marks, present));
        Ok(())
    }

    /// The numbers above `filled` in the file.
    pub(super) fn scan(&self, conn: &Connection, filled: i64) -> rusqlite::Result<Numbers> {
        let mut numbers = Numbers::default();
        let mut select =
            conn.prepare_cached("SELECT n, tenant, id FROM reservations WHERE n > ?1 ORDER BY n")?;
        let mut rows = select.query([filled])?;
        while let Some(row) = rows.next()? {
            let hash = self.hash(row.get(1)?, row.get_ref(2)?.as_str()?);
            numbers.entry(hash).or_default().push(row.get(0)?);
        }
        Ok(numbers)
    }
}

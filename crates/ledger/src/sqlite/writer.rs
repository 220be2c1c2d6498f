//! The one connection that writes.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use stockade_core::{Entry, Id, Reason};

use super::checkpoint::Checkpointer;
use super::errors::{commit_error, ledger_error};
use super::ids::{Ids, Tops};
use super::index;
use super::migrate;
use super::names::Names;
use super::open::begin_immediate;
use super::record::{Fault, Numbers, Run, check_chain, int, mismatch};
use super::repair::{self, Outcome};
use super::sharing;
use super::tail::{Marks, Tail};
use super::view::shard_row;
use crate::api::{LedgerError, RecordError, ShardRow};
use crate::care::{RepairError, RepairPlan};
use crate::sharing::Lease;

/// Movements that may wait before the deferred tables are filled: with random ids and owners each fill dirties most
/// pages of the tables by id and by owner, so it is worth waiting for many; but a fill holds up the recorder for as long
/// as it takes, and a query that needs the tail reads at most so many rows more. Waiting for twice as many saves a tenth
/// of an order's cost and doubles the pause; for half as many, a tenth more.
const TAIL_MAX: i64 = 50_000;

/// The writing connection and what it keeps in memory.
#[derive(Debug)]
pub(super) struct Writer {
    conn: Connection,
    checkpointer: Checkpointer,
    names: Names,
    numbers: Numbers,
    marks: Marks,
    tail: Arc<Tail>,
    tops: Tops,
    /// SQLite's count of other connections' commits: when it moves, what is in memory may be wrong.
    data_version: i64,
    /// A commit's fate is unknown. What the disk keeps after a failed fsync cannot be known by trying again.
    broken: bool,
}

impl Writer {
    pub(super) fn new(mut conn: Connection, path: &Path, tail: Arc<Tail>) -> Result<Self, LedgerError> {
        let checkpointer = Checkpointer::start(&mut conn, path)?;
        let mut writer = Self {
            conn,
            checkpointer,
            names: Names::default(),
            numbers: Numbers::default(),
            marks: Marks::default(),
            tail,
            tops: Tops::default(),
            data_version: -1,
            broken: false,
        };
        writer.fill(path, 0)?;
        Ok(writer)
    }

    /// Has `stop` called between any two instructions of SQLite's machine.
    #[cfg(test)]
    pub(super) fn hook(&mut self, stop: impl FnMut() -> bool + Send + 'static) {
        self.conn.progress_handler(1, Some(stop)).unwrap();
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        begin_immediate(&self.conn)?;
        let version: i64 = self
            .conn
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))?;
        if version != self.data_version {
            migrate::refuse_newer(&self.conn)?;
            self.names.clear();
            self.tops.clear();
            self.numbers = self.conn.query_row(
                "SELECT ifnull(max(movement), 0), ifnull(max(reservation), 0) FROM shards",
                [],
                |row| {
                    Ok(Numbers {
                        movement: row.get(0)?,
                        reservation: row.get(1)?,
                    })
                },
            )?;
            self.marks = Marks::read(&self.conn)?;
            if !self.tail.catch_up(&self.conn, self.marks)? {
                self.tail.load(&self.conn, self.marks)?;
            }
            self.data_version = version;
        }
        Ok(())
    }

    /// Undoes the transaction and whatever memory took from it.
    fn roll_back(&mut self) {
        // Before another process can give the same numbers.
        self.distrust();
        self.leave();
    }

    /// Memory is read anew before it is used again.
    fn distrust(&mut self) {
        self.names.clear();
        self.tops.clear();
        self.data_version = -1;
        self.tail.forget();
    }

    /// Ends a transaction that wrote nothing, or nothing that memory took over.
    fn leave(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "the transaction could not be rolled back; nothing more is written");
            self.broken = true;
        }
    }

    fn commit(&mut self, path: &Path) -> Result<(), RecordError> {
        let done = self
            .conn
            .prepare_cached("COMMIT")
            .and_then(|mut commit| commit.execute([]));
        done.map(|_| ()).map_err(|error| {
            let error = commit_error(path, &error);
            if matches!(error, RecordError::Unknown(_)) {
                self.broken = true;
            }
            self.roll_back();
            error
        })
    }

    fn refuse_if_broken(&self, path: &Path) -> Result<(), LedgerError> {
        if self.broken {
            return Err(LedgerError::Broken {
                path: path.to_path_buf(),
            });
        }
        Ok(())
    }

    /// Records a run.
    pub(super) fn record(&mut self, path: &Path, run: &[Entry]) -> Result<(), RecordError> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(());
        };
        self.refuse_if_broken(path).map_err(RecordError::NotRecorded)?;
        let done = check_chain(run)
            .and_then(|()| self.begin().map_err(Fault::Sql))
            .and_then(|()| self.pass_the_fence(first, last));
        if let Ok(Some(fenced)) = done {
            // Nothing was written, so what is in memory stays right: a process that was overtaken asks again and again.
            self.leave();
            return Err(fenced);
        }
        let done = done.and_then(|_| self.write(run, first.shard));
        match done {
            Ok((numbers, filled)) => {
                self.commit(path)?;
                self.numbers = numbers;
                self.marks.highest = numbers.reservation;
                if filled {
                    self.after_fill();
                }
                self.checkpointer.after_commit(&self.conn);
                Ok(())
            }
            Err(fault) => {
                self.roll_back();
                Err(match fault {
                    Fault::Sql(error) => RecordError::NotRecorded(ledger_error(path, &error)),
                    Fault::Refused(error) => error,
                })
            }
        }
    }

    /// The fence: only the exact continuation goes on. What it did is read back rather than taken from a row count.
    fn pass_the_fence(&self, first: &Entry, last: &Entry) -> Result<Option<RecordError>, Fault> {
        let conn = &self.conn;
        let Some(before) = first.seq.checked_sub(1) else {
            return Err(mismatch("entry 0", "a seq of at least 1", 0));
        };
        let passed: Option<i64> = conn
            .prepare_cached(
                "UPDATE shards SET cursor = ?6, tag = ?7, at = ?8 \
                 WHERE n = ?1 AND epoch = ?2 AND mode = 'hot' AND cursor = ?3 AND tag = ?4 AND ?5 = ?1 \
                 RETURNING cursor",
            )?
            .query_row(
                params![
                    first.shard,
                    int("entries.epoch", first.epoch)?,
                    int("entries.seq", before)?,
                    first.prev.cast_signed(),
                    last.shard,
                    int("entries.seq", last.seq)?,
                    last.tag.cast_signed(),
                    last.at,
                ],
                |row| row.get(0),
            )
            .optional()?;
        if passed.is_some() {
            return Ok(None);
        }
        let found = shard_row(conn, first.shard)?;
        Ok(Some(RecordError::Fenced {
            expected: before,
            found,
        }))
    }

    fn write(&mut self, run: &[Entry], shard: u32) -> Result<(Numbers, bool), Fault> {
        let conn = &self.conn;
        let known = Ids {
            tail: &self.tail,
            marks: self.marks,
        };
        let mut writing = Run::new(conn, &mut self.names, known, &mut self.tops, self.numbers, shard);
        writing.write(run)?;
        let numbers = writing.numbers;
        let granted = std::mem::take(&mut writing.granted);
        conn.prepare_cached("UPDATE shards SET movement = ?2, reservation = ?3 WHERE n = ?1")?
            .execute(params![shard, numbers.movement, numbers.reservation])?;
        let filled = numbers.movement - self.marks.indexed >= TAIL_MAX;
        if filled {
            index::fill(conn, self.marks, numbers)?;
        }
        self.tail.add(&granted, numbers.reservation);
        Ok((numbers, filled))
    }

    /// After the commit of a fill.
    fn after_fill(&mut self) {
        self.marks.indexed = self.numbers.movement;
        self.marks.filled = self.numbers.reservation;
        self.tail.filled(self.marks.filled);
        self.tops.clear();
    }

    /// Fills the deferred tables if more than `waiting` movements wait.
    pub(super) fn fill(&mut self, path: &Path, waiting: i64) -> Result<(), LedgerError> {
        self.refuse_if_broken(path)?;
        let done = self.begin().and_then(|()| {
            if self.numbers.movement - self.marks.indexed <= waiting {
                return Ok(false);
            }
            index::fill(&self.conn, self.marks, self.numbers).map(|()| true)
        });
        self.finish(path, done).map(|filled| {
            if filled {
                self.after_fill();
            }
        })
    }

    /// Opens a new epoch.
    pub(super) fn open_epoch(
        &mut self,
        path: &Path,
        shard: u32,
        owner: &str,
    ) -> Result<ShardRow, LedgerError> {
        self.refuse_if_broken(path)?;
        let done = self.begin().and_then(|()| {
            if let Some(lease) = sharing::lease(&self.conn, shard)? {
                return Ok(Err(lease));
            }
            self.conn
                .prepare_cached(
                    "INSERT INTO shards (n, epoch, mode, cursor, tag, at, owner, movement, reservation) \
                     VALUES (?1, 1, 'hot', 0, 0, 0, ?2, 0, 0) \
                     ON CONFLICT (n) DO UPDATE SET epoch = epoch + 1, mode = 'hot', owner = excluded.owner",
                )?
                .execute(params![shard, owner])?;
            shard_row(&self.conn, shard).map(Ok)
        });
        match self.finish(path, done)? {
            Ok(Some(row)) => Ok(row),
            Ok(None) => Err(LedgerError::Corrupt {
                place: format!("shards, row {shard}"),
                message: "it was written and is not there".to_owned(),
            }),
            Err(Lease { owner, left_ms, .. }) => Err(LedgerError::Leased { owner, left_ms }),
        }
    }

    /// Carries out a plan of repairs.
    pub(super) fn repair(
        &mut self,
        path: &Path,
        plan: &RepairPlan,
        actor: &Id,
        reason: &Reason,
    ) -> Result<ShardRow, RepairError> {
        self.refuse_if_broken(path)?;
        let done = self
            .begin()
            .and_then(|()| repair::apply(&self.conn, plan, self.numbers, actor, reason));
        if let Ok(Outcome::Moved(place)) = done {
            self.roll_back();
            return Err(RepairError::Moved { place });
        }
        let done = self.finish(path, done);
        // Numbers were given and tables filled beside what memory knows.
        self.distrust();
        match done? {
            Outcome::Done(row) => Ok(row),
            Outcome::Moved(place) => Err(RepairError::Moved { place }),
        }
    }

    /// A transaction that gives no numbers and changes nothing that memory holds.
    pub(super) fn plain<T>(
        &mut self,
        path: &Path,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        self.refuse_if_broken(path)?;
        let done = begin_immediate(&self.conn).and_then(|()| work(&self.conn));
        if let Err(error) = done {
            self.leave();
            return Err(ledger_error(path, &error));
        }
        self.finish(path, done)
    }

    fn finish<T>(&mut self, path: &Path, done: rusqlite::Result<T>) -> Result<T, LedgerError> {
        match done {
            Ok(value) => match self.commit(path) {
                Ok(()) => Ok(value),
                Err(RecordError::NotRecorded(error)) => Err(error),
                Err(RecordError::Unknown(error)) => {
                    tracing::error!(%error, "it is not known whether a write is on disk; nothing more is written");
                    Err(LedgerError::Broken {
                        path: path.to_path_buf(),
                    })
                }
                Err(error) => Err(LedgerError::Database(error.to_string())),
            },
            Err(error) => {
                self.roll_back();
                Err(ledger_error(path, &error))
            }
        }
    }
}

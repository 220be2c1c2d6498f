//! A process that dies at any step of a transaction, while another one has the file open: what is left is the state
//! before or the state after, whole, and the other one goes on.
//!
//! SQLite calls back between any two instructions of its machine; the process ends itself in one of these calls,
//! without unwinding or closing anything.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use stockade_core::{
    Action, Cancel, Confirm, Count, Entry, Expect, Id, Position, Reason, Reserve, Rules, Set, Shard,
};

use super::Sqlite;
use crate::api::{Ledger, RecordError, ShardMode, ShardRow};
use crate::care::LedgerCare;
use crate::sharing::{Claim, Keep, Leasing, SharedLedger};

const FOLDER: &str = "STOCKADE_TEST_STEP_FOLDER";
const STEP: &str = "STOCKADE_TEST_STEP_OPERATION";
const AT: &str = "STOCKADE_TEST_STEP_AT";

/// Places at which each operation is ended.
const PLACES: u64 = 24;

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

fn shard(row: &ShardRow) -> Shard {
    let mut shard = Shard::new(0, Rules::default(), 1);
    let at = Position {
        epoch: row.epoch,
        seq: row.cursor,
        tag: row.tag,
    };
    shard.open(at, row.at);
    shard.forgotten_known();
    shard
}

/// Two entries with a bit of everything, the same in every process.
fn history(row: &ShardRow) -> Vec<Entry> {
    let mut shard = shard(&ShardRow {
        epoch: 1,
        cursor: 0,
        tag: 0,
        at: 0,
        ..row.clone()
    });
    let command = |action| stockade_core::Command {
        tenant: Id::default_name(),
        actor: id("test"),
        action,
    };
    let mut entries = Vec::new();
    for n in 0..2_u64 {
        let mut actions = Vec::new();
        if n == 0 {
            actions.push(Action::Set(Set {
                id: id("c-1"),
                sku: id("A"),
                location: id("default"),
                target: 100,
                count: Count::Create,
                expect: Expect::Any,
                reason: Reason::default(),
            }));
        }
        for r in 0..8 {
            actions.push(Action::Reserve(Reserve {
                id: id(&format!("r-{n}-{r}")),
                owner: id(&format!("u-{r}")),
                mode: stockade_core::Mode::Reserve,
                ttl_ms: 60_000,
                lines: std::iter::once(stockade_core::AskLine {
                    sku: id("A"),
                    quantity: 2,
                    location: None,
                    if_revision: None,
                })
                .collect(),
                supersedes: None,
            }));
        }
        for r in 0..3 {
            actions.push(Action::Confirm(Confirm {
                id: id(&format!("r-0-{}", n * 3 + r)),
                lines: None,
                payload: None,
            }));
        }
        actions.push(Action::Cancel(Cancel {
            id: id(&format!("r-0-{}", 6 + n)),
            reason: Reason::default(),
        }));
        for action in actions {
            shard.apply(1_000 + i64::try_from(n).unwrap(), &command(action));
        }
        entries.extend(shard.seal(n + 5));
    }
    assert_eq!(entries.len(), 2);
    entries
}

/// What is done, and from which state.
const STEPS: [&str; 9] = [
    "create", "claim", "finish", "lease", "record", "fill", "prune", "retain", "repair",
];

fn prepare(ledger: &Sqlite, step: &str) {
    if step == "create" {
        return;
    }
    let Claim::Won(row) = ledger.create_shard(0, "first").unwrap() else {
        panic!("it is new");
    };
    if step == "finish" {
        return;
    }
    ledger.finish_rebuild(0, 1, "first").unwrap();
    let known = if step == "record" { 1 } else { 2 };
    for entry in &history(&row)[..known] {
        ledger.record(std::slice::from_ref(entry)).unwrap();
    }
    if step == "repair" {
        by_hand(
            ledger.shared.path.parent().unwrap(),
            "UPDATE stock SET on_hand = on_hand + 5; DELETE FROM ids",
        );
    }
}

fn run(ledger: &Sqlite, step: &str) {
    match step {
        "create" => drop(ledger.create_shard(0, "child").unwrap()),
        "claim" => {
            let seen = ledger.row(0).unwrap().unwrap();
            ledger.claim_rebuild(&seen, "child").unwrap();
        }
        "finish" => drop(ledger.finish_rebuild(0, 1, "first").unwrap()),
        "lease" => drop(ledger.take_lease(0, "child", 60_000).unwrap()),
        "record" => {
            let row = ledger.row(0).unwrap().unwrap();
            ledger.record(&history(&row)[1..]).unwrap();
        }
        "fill" => ledger.writer.lock().fill(&ledger.shared.path, 0).unwrap(),
        "prune" => {
            let keep = Keep {
                entries: 1,
                within_ms: 0,
            };
            ledger.prune_entries(0, keep, 10).unwrap();
        }
        "retain" => drop(ledger.retain(i64::MAX, 1_000).unwrap()),
        "repair" => {
            let plan = ledger.plan_repair(0).unwrap();
            let reason = Reason::default();
            drop(ledger.repair(&plan, &id("child"), &reason).unwrap());
        }
        other => panic!("{other}"),
    }
}

/// Not a test of its own: the process that ends itself. Without the variables it does nothing.
#[test]
fn stepping_child() {
    let (Some(folder), Ok(step), Ok(at)) = (std::env::var_os(FOLDER), std::env::var(STEP), std::env::var(AT))
    else {
        return;
    };
    let at: u64 = at.parse().unwrap();
    let ledger = Sqlite::open(Path::new(&folder)).unwrap();
    if step == "fill" {
        // Opening filled the tables: something to fill again.
        by_hand(
            Path::new(&folder),
            "DELETE FROM ids; DELETE FROM owners; DELETE FROM live; DELETE FROM sku_movements; \
             UPDATE deferred SET indexed = 0, reservation = 0",
        );
    }
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let stop = move || {
        if counted.fetch_add(1, Ordering::Relaxed) + 1 == at {
            std::process::abort();
        }
        false
    };
    ledger.writer.lock().hook(stop);
    run(&ledger, &step);
    println!("steps {}", count.load(Ordering::Relaxed));
    std::process::abort();
}

fn by_hand(folder: &Path, sql: &str) {
    Connection::open(folder.join(Sqlite::FILE))
        .unwrap()
        .execute_batch(sql)
        .unwrap();
}

/// Runs a child that ends itself at an instruction; how many there were if it got through.
fn child(folder: &Path, step: &str, at: u64) -> Option<u64> {
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite::crash_tests::stepping_child", "--nocapture"])
        .env(FOLDER, folder)
        .env(STEP, step)
        .env(AT, at.to_string())
        .output()
        .unwrap();
    assert!(!done.status.success());
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let through = said
        .lines()
        .find_map(|line| line.split_once("steps "))
        .map(|(_, steps)| steps.parse().unwrap());
    let panicked = String::from_utf8_lossy(&done.stderr).contains("panicked");
    assert!(!panicked, "{}", String::from_utf8_lossy(&done.stderr));
    through
}

/// The state as far as the operations change it, and that it is whole.
fn state(ledger: &Sqlite) -> String {
    let view = ledger.view().unwrap();
    // Before a repair there is something to find.
    let found = view.audit(0, 100).unwrap().len();
    let mut ended = 0;
    view.ended_ids(0, &mut |_, _, _| ended += 1).unwrap();
    let row = view.shard(0).unwrap();
    let mut live = 0;
    view.live(0, &mut |_| live += 1).unwrap();
    let lease = ledger.lease(0).unwrap().map(|lease| lease.owner);
    let positions: Vec<Position> = row.iter().flat_map(history_positions).collect();
    let recorded = view.recorded(0, &positions).unwrap();
    let row = row.map(|row| (row.epoch, row.mode, row.cursor, row.owner));
    format!("{row:?} {live} {ended} {lease:?} {recorded:?}, {found} found")
}

fn history_positions(row: &ShardRow) -> Vec<Position> {
    history(row)
        .iter()
        .map(|entry| Position {
            epoch: row.epoch,
            seq: entry.seq,
            tag: entry.tag,
        })
        .collect()
}

#[test]
fn a_process_that_dies_at_any_step_leaves_the_state_before_or_after() {
    for step in STEPS {
        let fresh = || {
            let folder = tempfile::tempdir().unwrap();
            let ledger = Sqlite::open(folder.path()).unwrap();
            prepare(&ledger, step);
            (folder, ledger)
        };
        let (folder, other) = fresh();
        let before = state(&other);
        let steps = child(folder.path(), step, u64::MAX).expect("nothing ends it");
        let after = state(&other);
        assert_eq!(before == after, step == "fill", "{step}: {before}");
        assert_eq!(
            before.ends_with(", 0 found"),
            step != "repair",
            "{step}: {before}"
        );
        assert!(after.ends_with(", 0 found"), "{step}: {after}");
        assert!(steps > PLACES, "{step}: {steps}");
        let mut seen = Vec::new();
        for place in 0..PLACES {
            // The last ones lie side by side: there the commit is.
            let at = if place < PLACES / 2 {
                1 + place * steps / (PLACES / 2)
            } else {
                steps - (PLACES - 1 - place)
            };
            let (folder, other) = fresh();
            child(folder.path(), step, at);
            let found = state(&other);
            assert!(
                found == before || found == after,
                "{step} at {at} of {steps}: {found}"
            );
            seen.push(found == after);
            go_on(&other, step, found == after);
        }
        // The first instruction changes nothing yet.
        assert!(step == "fill" || !seen[0], "{step}");
    }
}

/// The process that is left does the same.
fn go_on(other: &Sqlite, step: &str, done: bool) {
    match step {
        "create" => {
            let claim = other.create_shard(0, "other").unwrap();
            assert_eq!(matches!(claim, Claim::Won(_)), !done);
        }
        "claim" => {
            let seen = other.row(0).unwrap().unwrap();
            let epoch = if done { 3 } else { 2 };
            match other.claim_rebuild(&seen, "other").unwrap() {
                Claim::Won(row) => assert_eq!((row.epoch, row.mode), (epoch, ShardMode::Rebuild)),
                Claim::Found(found) => panic!("{found:?}"),
            }
        }
        "finish" => {
            let claim = other.finish_rebuild(0, 1, "first").unwrap();
            assert_eq!(matches!(claim, Claim::Won(_)), !done);
        }
        "lease" => {
            let leasing = other.take_lease(0, "other", 1_000).unwrap();
            assert_eq!(matches!(leasing, Leasing::Mine(_)), !done);
        }
        "record" => {
            let row = other.row(0).unwrap().unwrap();
            match other.record(&history(&row)[1..]) {
                Ok(()) => assert!(!done),
                Err(RecordError::Fenced {
                    found: Some(found), ..
                }) => {
                    assert!(done && found.tag == 6, "{found:?}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        "repair" if done => assert!(other.plan_repair(0).unwrap().is_empty()),
        _ => run(other, step),
    }
    let view = other.view().unwrap();
    assert_eq!(view.audit(0, 10).unwrap(), vec![]);
}

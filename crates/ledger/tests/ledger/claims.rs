//! Who may build an epoch and who records: every compare-and-set as a table, and two that race for it.

use stockade_ledger::{
    Claim, LEASE_MAX_MS, Leasing, Ledger, LedgerError, RecordError, ShardMode, ShardRow, SharedLedger, Sqlite,
};

use crate::support::{Book, by_hand, fresh, id};

fn open() -> (tempfile::TempDir, Sqlite) {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Sqlite::open(folder.path()).unwrap();
    (folder, ledger)
}

/// The row of shard 0, without its cursor.
fn row(ledger: &Sqlite) -> Option<(u64, ShardMode, String)> {
    ledger.row(0).unwrap().map(|row| (row.epoch, row.mode, row.owner))
}

fn won(claim: Claim) -> ShardRow {
    match claim {
        Claim::Won(row) => row,
        Claim::Found(found) => panic!("not won: {found:?}"),
    }
}

#[test]
fn a_shard_is_created_once_and_by_one() {
    let (_folder, ledger) = open();
    assert_eq!(row(&ledger), None);
    let made = won(ledger.create_shard(0, "ann").unwrap());
    assert_eq!(
        (
            made.shard,
            made.epoch,
            made.mode,
            made.cursor,
            made.tag,
            made.owner.as_str()
        ),
        (0, 1, ShardMode::Rebuild, 0, 0, "ann")
    );
    for owner in ["ann", "bob"] {
        assert_eq!(
            ledger.create_shard(0, owner).unwrap(),
            Claim::Found(Some(made.clone()))
        );
    }
    assert_eq!(ledger.row(0).unwrap(), Some(made));
    won(ledger.create_shard(1, "bob").unwrap());
}

#[test]
fn a_rebuild_is_claimed_from_exactly_the_row_that_was_seen() {
    // (the row in the file), (the row seen): whether the claim wins.
    let is = |epoch, mode, owner: &str| (epoch, mode, owner.to_owned());
    for mode in [ShardMode::Hot, ShardMode::Sql, ShardMode::Rebuild] {
        let word = ["hot", "sql", "rebuild"][mode as usize];
        for (seen, wins) in [
            (is(7, mode, "ann"), true),
            (is(6, mode, "ann"), false),
            (is(8, mode, "ann"), false),
            (is(7, mode, "bob"), false),
            (
                is(
                    7,
                    if mode == ShardMode::Hot {
                        ShardMode::Sql
                    } else {
                        ShardMode::Hot
                    },
                    "ann",
                ),
                false,
            ),
        ] {
            let (folder, ledger, first) = fresh();
            by_hand(
                &folder,
                &format!(
                    "UPDATE shards SET epoch = 7, mode = '{word}', owner = 'ann', cursor = 5, tag = -3, at = 9"
                ),
            );
            let before = ledger.row(0).unwrap().unwrap();
            let seen_row = ShardRow {
                epoch: seen.0,
                mode: seen.1,
                owner: seen.2.clone(),
                // What was recorded since does not matter.
                ..first
            };
            let claim = ledger.claim_rebuild(&seen_row, "cy").unwrap();
            if wins {
                let expected = ShardRow {
                    epoch: 8,
                    mode: ShardMode::Rebuild,
                    owner: "cy".to_owned(),
                    ..before
                };
                assert_eq!(claim, Claim::Won(expected.clone()));
                assert_eq!(ledger.row(0).unwrap(), Some(expected));
            } else {
                assert_eq!(claim, Claim::Found(Some(before.clone())), "{seen:?} of {mode:?}");
                assert_eq!(ledger.row(0).unwrap(), Some(before));
            }
        }
    }
    let (_folder, ledger, seen) = fresh();
    let other = ShardRow { shard: 9, ..seen };
    assert_eq!(ledger.claim_rebuild(&other, "cy").unwrap(), Claim::Found(None));
}

#[test]
fn a_rebuild_is_finished_by_who_claimed_it_and_once() {
    for (word, epoch, owner, wins) in [
        ("rebuild", 7, "ann", true),
        ("rebuild", 6, "ann", false),
        ("rebuild", 8, "ann", false),
        ("rebuild", 7, "bob", false),
        ("hot", 7, "ann", false),
        ("sql", 7, "ann", false),
    ] {
        let (folder, ledger, _row) = fresh();
        by_hand(
            &folder,
            &format!("UPDATE shards SET epoch = 7, mode = '{word}', owner = 'ann'"),
        );
        let before = ledger.row(0).unwrap().unwrap();
        let claim = ledger.finish_rebuild(0, epoch, owner).unwrap();
        if wins {
            assert_eq!(won(claim).mode, ShardMode::Hot);
            assert!(matches!(
                ledger.finish_rebuild(0, 7, "ann").unwrap(),
                Claim::Found(Some(_))
            ));
        } else {
            assert_eq!(
                claim,
                Claim::Found(Some(before.clone())),
                "{word} {epoch} {owner}"
            );
            assert_eq!(ledger.row(0).unwrap(), Some(before));
        }
    }
    let (_folder, ledger) = open();
    assert_eq!(ledger.finish_rebuild(0, 1, "ann").unwrap(), Claim::Found(None));
}

#[test]
fn an_abandoned_rebuild_is_taken_over_and_its_owner_finishes_nothing() {
    let (folder, one) = open();
    let other = Sqlite::open(folder.path()).unwrap();
    let mine = won(one.create_shard(0, "one").unwrap());
    let seen = other.row(0).unwrap().unwrap();
    let theirs = won(other.claim_rebuild(&seen, "other").unwrap());
    assert_eq!((theirs.epoch, theirs.mode), (2, ShardMode::Rebuild));
    // The first wakes up.
    assert!(
        one.rebuild_view(0, mine.epoch, "one")
            .unwrap()
            .is_err_and(|row| row == Some(theirs.clone()))
    );
    assert_eq!(
        one.finish_rebuild(0, mine.epoch, "one").unwrap(),
        Claim::Found(Some(theirs.clone()))
    );
    assert_eq!(
        one.claim_rebuild(&mine, "one").unwrap(),
        Claim::Found(Some(theirs.clone()))
    );
    assert!(other.rebuild_view(0, 2, "other").unwrap().is_ok());
    assert_eq!(
        won(other.finish_rebuild(0, 2, "other").unwrap()).mode,
        ShardMode::Hot
    );
    assert!(other.rebuild_view(0, 2, "other").unwrap().is_err());
}

#[test]
fn nothing_is_recorded_while_an_epoch_is_built_or_of_an_epoch_that_is_over() {
    let (_folder, ledger) = open();
    let first = won(ledger.create_shard(0, "one").unwrap());
    let mut book = Book::new(&first);
    book.stock("c-1", "A", "default", 10);
    let entry = [book.seal()];
    let fenced = |done| match done {
        Err(RecordError::Fenced {
            found: Some(found), ..
        }) => (found.epoch, found.mode),
        other => panic!("{other:?}"),
    };
    assert_eq!(fenced(ledger.record(&entry)), (1, ShardMode::Rebuild));
    won(ledger.finish_rebuild(0, 1, "one").unwrap());
    ledger.record(&entry).unwrap();
    book.reserve("r-1", "ann", "A");
    let late = [book.seal()];
    let hot = ledger.row(0).unwrap().unwrap();
    won(ledger.claim_rebuild(&hot, "two").unwrap());
    assert_eq!(fenced(ledger.record(&late)), (2, ShardMode::Rebuild));
    won(ledger.finish_rebuild(0, 2, "two").unwrap());
    assert_eq!(fenced(ledger.record(&late)), (2, ShardMode::Hot));
    // The grant survived on the node and is run again: the same number in the chain, the new epoch, another tag.
    let mut again = Book::new(&ledger.row(0).unwrap().unwrap());
    again.skus = book.skus.clone();
    again.reservations = book.reservations.clone();
    let [mut rerun] = late;
    rerun.epoch = 2;
    rerun.tag = 99;
    ledger.record(&[rerun]).unwrap();
    (again.seq, again.tag) = (2, 99);
    again.check(&*ledger.view().unwrap());
}

#[test]
fn of_many_that_claim_the_same_row_one_wins() {
    for round in 0..5 {
        let (folder, _ledger, seen) = fresh();
        let openings: Vec<Sqlite> = (0..6).map(|_| Sqlite::open(folder.path()).unwrap()).collect();
        let winners: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = openings
                .iter()
                .enumerate()
                .map(|(at, ledger)| {
                    let seen = seen.clone();
                    scope.spawn(move || {
                        let mine = format!("racer-{at}");
                        matches!(ledger.claim_rebuild(&seen, &mine).unwrap(), Claim::Won(_)).then_some(at)
                    })
                })
                .collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(winners.len(), 1, "round {round}");
        let row = openings[0].row(0).unwrap().unwrap();
        assert_eq!((row.epoch, row.owner), (2, format!("racer-{}", winners[0])));
    }
}

#[test]
fn a_lease_is_one_owners_until_it_runs_out_or_is_given_back() {
    let (folder, one, _row) = fresh();
    let other = Sqlite::open(folder.path()).unwrap();
    assert_eq!(one.lease(0).unwrap(), None);
    let Leasing::Mine(lease) = one.take_lease(0, "one", 30_000).unwrap() else {
        panic!("nobody has it");
    };
    assert_eq!((lease.owner.as_str(), lease.left_ms), ("one", 30_000));
    let Leasing::Others(held) = other.take_lease(0, "other", 30_000).unwrap() else {
        panic!("it is held");
    };
    assert_eq!((held.owner.as_str(), held.until), ("one", lease.until));
    assert!(held.left_ms <= 30_000);
    // Renewed by its owner, given back only by its owner.
    assert!(matches!(one.take_lease(0, "one", 40_000).unwrap(), Leasing::Mine(l) if l.until > lease.until));
    assert!(!other.release_lease(0, "other").unwrap());
    assert!(one.release_lease(0, "one").unwrap());
    assert!(!one.release_lease(0, "one").unwrap());
    assert!(matches!(
        other.take_lease(0, "other", 30_000).unwrap(),
        Leasing::Mine(_)
    ));
    // Run out: in the past, or so far ahead that the clock must have been set back since.
    for until in ["1", "99999999999999"] {
        by_hand(&folder, &format!("UPDATE leases SET until = {until}"));
        assert_eq!(other.lease(0).unwrap(), None);
        assert!(!other.release_lease(0, "other").unwrap());
        by_hand(
            &folder,
            &format!("INSERT OR REPLACE INTO leases VALUES (0, 'other', {until})"),
        );
        assert!(matches!(
            one.take_lease(0, "one", 1_000).unwrap(),
            Leasing::Mine(_)
        ));
        assert!(one.release_lease(0, "one").unwrap());
        assert!(matches!(
            other.take_lease(0, "other", 30_000).unwrap(),
            Leasing::Mine(_)
        ));
    }
    // Shards have one each, and none lasts longer than the longest.
    let Leasing::Mine(long) = one.take_lease(1, "one", i64::MAX).unwrap() else {
        panic!("nobody has that one");
    };
    assert_eq!(long.left_ms, LEASE_MAX_MS);
}

#[test]
fn a_lease_does_not_guard_the_chain() {
    let (folder, one, row) = fresh();
    let other = Sqlite::open(folder.path()).unwrap();
    one.take_lease(0, "one", 30_000).unwrap();
    let mut book = Book::new(&row);
    book.stock("c-1", "A", "default", 10);
    let run = [book.seal()];
    other.record(&run).unwrap();
    assert!(matches!(one.record(&run), Err(RecordError::Fenced { .. })));
    book.check(&*one.view().unwrap());
}

#[test]
fn the_memory_tier_opens_no_epoch_while_a_tier_elsewhere_is_recorded() {
    let (folder, ledger, row) = fresh();
    ledger.take_lease(0, "redis-1", 30_000).unwrap();
    match ledger.open_epoch(0, "memory") {
        Err(LedgerError::Leased { owner, left_ms }) => {
            assert_eq!(owner, "redis-1");
            assert!((1..=30_000).contains(&left_ms));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ledger.row(0).unwrap(), Some(row));
    by_hand(&folder, "UPDATE leases SET until = 1");
    assert_eq!(ledger.open_epoch(0, "memory").unwrap().epoch, 2);
}

#[test]
fn a_busy_ledger_is_a_matter_of_the_moment() {
    let error = LedgerError::Busy { path: "x".into() };
    assert!(error.is_transient());
    assert!(!LedgerError::Database(id("x").to_string()).is_transient());
}

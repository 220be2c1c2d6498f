//! Opening, closing, ends, forgetting.

mod common;

#[path = "../examples/ten_lines.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "compiled as part of this test; run as an example below"
)]
mod ten_lines;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Rng, START, assert_clean, counters, open_at};
use stockade::clock::ManualClock;
use stockade::rules::{Action, Command, DoneCode, Id, Status};
use stockade::{OpenError, Options, Readiness, Stockade};

/// The example does what it says, and again on the same folder.
#[tokio::test]
async fn the_example_runs() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(ten_lines::sell(folder.path()).await.unwrap(), 2);
    assert_eq!(ten_lines::sell(folder.path()).await.unwrap(), 2);
}

#[tokio::test]
async fn a_second_store_on_the_folder_is_refused_until_the_first_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let first = Stockade::open(folder.path()).await.unwrap();
    let error = Stockade::open(folder.path()).await.unwrap_err();
    assert!(matches!(&error, OpenError::Locked { pid: Some(pid), .. } if *pid == std::process::id()));
    assert!(error.to_string().contains("stop it"), "{error}");
    first.close().await.unwrap();
    let second = Stockade::open(folder.path()).await.unwrap();
    assert_eq!(first.health().readiness, Readiness::Closing);
    let refused = first.set_stock("c", "A/1", 1).await.unwrap_err();
    assert_eq!(refused.code(), "unavailable");
    assert!(first.audit(1).await.is_err());
    drop(second);
    Stockade::open(folder.path()).await.unwrap();
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_told_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = Stockade::open(file.join("below")).await.unwrap_err();
    assert!(matches!(error, OpenError::Folder { .. }), "{error}");
}

/// What was answered is there after opening again, and a repeat has no second effect (B22).
#[tokio::test(flavor = "multi_thread")]
async fn replays_across_opening_and_forgetting() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START);
    let open = || async {
        let mut options = Options::new(folder.path());
        options.clock = Arc::new(clock.clone());
        options.keep_ended = 5;
        options.keep_below_least = true;
        options.open().await.unwrap()
    };
    let mut store = open().await;
    let mut granted = Vec::new();
    store.set_stock("c-1", "A/1", 1_000).await.unwrap();
    for n in 0..60 {
        granted.push(
            store
                .deduct(&format!("o-{n}"), "u")
                .line("A/1", 1)
                .await
                .unwrap()
                .reservation,
        );
    }
    store.return_units("r-1", "o-3").await.unwrap();
    for round in 0..4 {
        for (n, before) in granted.iter().enumerate() {
            let again = store.deduct(&format!("o-{n}"), "u").line("A/1", 1).await.unwrap();
            assert_eq!(again.code, DoneCode::Replayed, "round {round}, o-{n}");
            assert_eq!(again.reservation.id, before.id);
            assert_eq!(again.reservation.granted_at, before.granted_at);
            assert_eq!(again.reservation.lines[0].confirmed(), 1);
        }
        let reused = store.deduct("o-7", "u").line("A/1", 2).await.unwrap_err();
        assert_eq!(reused.code(), "id_reused");
        let back = store.return_units("r-1", "o-3").await.unwrap();
        assert_eq!(back.code, DoneCode::Replayed);
        let stock = store.set_stock("c-1", "A/1", 1_000).await.unwrap();
        assert_eq!(stock.code, DoneCode::Replayed);
        assert_eq!(store.reservation("never").await.unwrap_err().code(), "not_found");
        assert_clean(&store).await;
        match round % 2 {
            0 => store.close().await.unwrap(),
            _ => drop(store),
        }
        store = open().await;
        clock.advance(1_000);
    }
    let found = counters(&store, "A/1").await;
    assert_eq!((found.on_hand, found.sold), (941, 59));
}

/// However few ended ids are to be kept, the two look-ups of one command do not forget each other's record.
#[tokio::test(flavor = "multi_thread")]
async fn replays_that_need_two_look_ups_with_next_to_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let open = || async {
        let mut options = Options::new(folder.path());
        options.keep_ended = 0;
        options.keep_ended_ms = 0;
        options.open().await.unwrap()
    };
    let store = open().await;
    store.set_stock("c-1", "A/1", 10_000).await.unwrap();
    let give_back = |store: &Stockade| {
        let calls = (0..1_000).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let (order, back) = (format!("o-{n}"), format!("r-{n}"));
                store.deduct(&order, "u").line("A/1", 1).await.unwrap();
                store.return_units(&back, &order).await.unwrap().code
            })
        });
        calls.collect::<Vec<_>>()
    };
    for call in give_back(&store) {
        assert_eq!(call.await.unwrap(), DoneCode::Ok);
    }
    store.close().await.unwrap();
    let store = open().await;
    for call in give_back(&store) {
        assert_eq!(call.await.unwrap(), DoneCode::Replayed);
    }
    assert_clean(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_id_stays_sealed_across_opening() {
    let folder = tempfile::tempdir().unwrap();
    let store = Stockade::open(folder.path()).await.unwrap();
    store.set_stock("c-1", "A/1", 10).await.unwrap();
    assert_eq!(store.cancel("o-1").await.unwrap().code, DoneCode::Sealed);
    drop(store);
    let store = Stockade::open(folder.path()).await.unwrap();
    let late = store.reserve("o-1", "u").line("A/1", 1).await.unwrap_err();
    assert_eq!(late.code(), "already_cancelled");
    assert_eq!(counters(&store, "A/1").await.reserved, 0);
}

/// The sweeper frees units when their end comes, with nobody asking.
#[tokio::test(flavor = "multi_thread")]
async fn ends_are_swept_while_idle() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START);
    let store = open_at(folder.path(), &clock).await;
    store.set_stock("c-1", "A/1", 10_000).await.unwrap();
    let calls = (0..3_000).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            let ttl = Duration::from_millis(1_000 + n % 7);
            store
                .reserve(&format!("o-{n}"), "u")
                .line("A/1", 1)
                .ttl(ttl)
                .await
                .unwrap();
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    store.reserve("stays", "u").line("A/1", 1).await.unwrap();
    assert_eq!(store.health().live, 3_001);
    clock.advance(999);
    assert_eq!(counters(&store, "A/1").await.reserved, 3_001);
    let seen = store.health();
    assert_eq!(seen.live, 3_001);
    clock.advance(8);
    // The expiry is recorded without any further command.
    let swept = async {
        while store.health().live > 1 || store.health().recorded < store.health().decided.seq {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), swept)
        .await
        .unwrap();
    assert_clean(&store).await;
    assert_eq!(counters(&store, "A/1").await.reserved, 1);
    drop(store);
    clock.advance(3_600_000);
    let store = open_at(folder.path(), &clock).await;
    assert_eq!(store.reservation("o-1").await.unwrap().status, Status::Expired);
    assert_eq!(store.reservation("stays").await.unwrap().status, Status::Expired);
    assert_eq!(counters(&store, "A/1").await.reserved, 0);
    assert_clean(&store).await;
}

/// A clock that stands behind the ledger's last entry does not bring ended reservations back.
#[tokio::test(flavor = "multi_thread")]
async fn the_clock_starts_at_the_ledgers_last_moment() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START);
    let store = open_at(folder.path(), &clock).await;
    store.set_stock("c-1", "A/1", 10).await.unwrap();
    store
        .reserve("o-1", "u")
        .line("A/1", 1)
        .ttl(Duration::from_secs(1))
        .await
        .unwrap();
    clock.advance(60_000);
    store
        .reserve("o-2", "u")
        .line("A/1", 1)
        .ttl(Duration::from_secs(90))
        .await
        .unwrap();
    drop(store);
    clock.set(START - 3_600_000);
    let store = open_at(folder.path(), &clock).await;
    assert_eq!(store.reservation("o-1").await.unwrap().status, Status::Expired);
    assert_eq!(store.reservation("o-2").await.unwrap().status, Status::Pending);
    assert_clean(&store).await;
}

/// Futures dropped at random points leave each command whole (B160, B161).
#[tokio::test(flavor = "multi_thread")]
async fn dropped_futures_split_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Stockade::open(folder.path()).await.unwrap();
    store.set_stock("c-1", "A/1", 1_000_000).await.unwrap();
    let mut tasks = Vec::new();
    for task in 0..16_u64 {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            let mut rng = Rng::new(task + 1);
            let mut sold = 0;
            for n in 0..100 {
                let id = format!("o-{task}-{n}");
                let call = store.deduct(&id, "u").line("A/1", 2).into_future();
                let patience = Duration::from_micros(rng.below(2_000));
                let answered = tokio::time::timeout(patience, call).await;
                if let Ok(answer) = &answered {
                    assert_eq!(answer.as_ref().unwrap().reservation.status, Status::Confirmed);
                }
                match store.reservation(&id).await {
                    Ok(reservation) => {
                        assert_eq!(reservation.lines[0].confirmed(), 2);
                        sold += 2;
                    }
                    Err(error) => {
                        assert_eq!(error.code(), "not_found");
                        assert!(answered.is_err(), "{id} was answered and is gone");
                    }
                }
            }
            sold
        }));
    }
    let mut sold = 0;
    for task in tasks {
        sold += task.await.unwrap();
    }
    assert_eq!(counters(&store, "A/1").await.sold, sold);
    assert_clean(&store).await;
}

/// Dropping the last handle inside a task that the store itself wakes must not hang.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_handle_dropped_by_a_woken_task() {
    for _ in 0..50 {
        let folder = tempfile::tempdir().unwrap();
        let store = Stockade::open(folder.path()).await.unwrap();
        let task = tokio::spawn(async move { store.set_stock("c-1", "A/1", 1).await.map(|_| ()) });
        task.await.unwrap().unwrap();
    }
}

/// Refusals that never stop do not keep a confirm from the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_confirm_is_answered_while_losers_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = Stockade::open(folder.path()).await.unwrap();
    store.set_stock("c-1", "A/1", 10).await.unwrap();
    for n in 0..10 {
        let id = format!("winner-{n}");
        store.reserve(&id, "u").line("A/1", 1).await.unwrap();
    }
    // A long batch is still being decided when the next one comes, so that always something waits.
    let batch: Vec<_> = (0..2_000)
        .map(|n| Command {
            tenant: Id::default_name(),
            actor: Id::new("test").unwrap(),
            action: Action::ShowReservation {
                id: Id::new(&format!("loser-{n}")).unwrap(),
            },
        })
        .collect();
    let stop = Arc::new(AtomicBool::new(false));
    let losers: Vec<_> = (0..16)
        .map(|_| {
            let (store, stop, batch) = (store.clone(), stop.clone(), batch.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    for answer in store.submit_many(batch.clone()).await {
                        assert_eq!(answer.unwrap_err().code(), "not_found");
                    }
                }
            })
        })
        .collect();
    let confirm_all = async {
        for n in 0..10 {
            let confirmed = store.confirm(&format!("winner-{n}")).await.unwrap();
            assert_eq!(confirmed.code, DoneCode::Ok);
        }
    };
    let confirmed = tokio::time::timeout(Duration::from_secs(10), confirm_all).await;
    stop.store(true, Ordering::Relaxed);
    confirmed.unwrap();
    for loser in losers {
        loser.await.unwrap();
    }
    assert_clean(&store).await;
}

/// A machine that came up with a clock far ahead, and was set right: holds still end when their time is over.
#[tokio::test]
async fn a_clock_that_was_far_ahead_does_not_stop_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let ahead = ManualClock::new(START + 200 * 365 * 86_400_000);
    let store = open_at(folder.path(), &ahead).await;
    store.set_stock("c", "A/1", 1).await.unwrap();
    store.close().await.unwrap();

    let store = Stockade::open(folder.path()).await.unwrap();
    store
        .reserve("o-1", "u-1")
        .line("A/1", 1)
        .ttl(Duration::from_secs(1))
        .await
        .unwrap();
    let free_again = async {
        while counters(&store, "A/1").await.reserved > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), free_again)
        .await
        .unwrap();
    let next = store.deduct("o-2", "u-2").line("A/1", 1).await.unwrap();
    assert_eq!(next.code, DoneCode::Ok);
    assert_clean(&store).await;
    store.close().await.unwrap();
}

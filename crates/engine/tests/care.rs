//! Looking after the ledger of an open store: copies under load, and letting old reservations go.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{START, Tier, assert_clean};
use stockade::clock::ManualClock;
use stockade::ledger::{LedgerCare as _, ReservationQuery, Sqlite, restore};
use stockade::rules::Id;
use stockade::{Error, Stockade};

const DAY_MS: i64 = 24 * 3_600_000;

on_every_tier!(
    a_copy_under_load_restores_to_what_was_recorded,
    what_ended_long_ago_is_removed,
);

async fn a_copy_under_load_restores_to_what_was_recorded(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let store = tier.open(&data).await;
    store.set_stock("c-1", "A", 1_000_000).await.unwrap();
    for n in 0..20 {
        store
            .deduct(&format!("before-{n}"), "u")
            .line("A", 1)
            .await
            .unwrap();
    }
    let selling = {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..400 {
                store
                    .deduct(&format!("while-{n}"), "u")
                    .line("A", 1)
                    .await
                    .unwrap();
            }
        })
    };
    let to = folder.path().join("copy.db");
    let copied = store.backup(&to, true, |_| ()).await.unwrap();
    assert_eq!(copied.path, to);
    let again = store.backup(&to, true, |_| ()).await.unwrap_err();
    assert!(again.to_string().contains("nothing is overwritten"), "{again}");
    // One that is passed on leaves nothing behind, and only one is made at a time.
    let passing = store.backup_to_pass_on(false).await.unwrap();
    assert_eq!(passing.file.metadata().unwrap().len(), passing.bytes);
    let second = store.backup_to_pass_on(false).await.unwrap_err();
    assert!(second.to_string().contains("another backup"), "{second}");
    let left = std::fs::read_dir(data.join("copying")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
    drop(passing);
    drop(store.backup_to_pass_on(true).await.unwrap());
    selling.await.unwrap();
    store.close().await.unwrap();
    assert!(matches!(
        store.backup(folder.path().join("late.db"), false, |_| ()).await,
        Err(Error::Unavailable { .. })
    ));

    let restored = folder.path().join("restored");
    restore(&to, &restored).unwrap();
    let store = Stockade::open(&restored).await.unwrap();
    assert_clean(&store).await;
    for n in 0..20 {
        let order = store.reservation(&format!("before-{n}")).await.unwrap();
        assert_eq!(order.status.as_str(), "confirmed");
    }
    let sold = common::counters(&store, "A").await.sold;
    assert!((20..=420).contains(&sold), "{sold}");
    store.close().await.unwrap();
}

/// A restored ledger and the Redis of the ledger that it was copied from: Redis knows of sales that the copy lacks, and the
/// store does not open before somebody says which of the two is right.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_ledger_and_the_redis_of_before() {
    let tier = Tier::redis();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let store = tier.open(&data).await;
    store.set_stock("c-1", "A", 1_000).await.unwrap();
    store.deduct("before", "u").line("A", 1).await.unwrap();
    let copy = folder.path().join("copy.db");
    store.backup(&copy, true, |_| ()).await.unwrap();
    // More than the outbox keeps of what is recorded.
    for n in 0..300 {
        store
            .deduct(&format!("after-{n}"), "u")
            .line("A", 1)
            .await
            .unwrap();
    }
    store.close().await.unwrap();

    let restored = folder.path().join("restored");
    restore(&copy, &restored).unwrap();
    let refused = tier.options(&restored).open().await.unwrap_err().to_string();
    assert!(refused.contains("restored from a backup"), "{refused}");

    // Somebody says that the copy is right.
    let mut options = tier.options(&restored);
    if let Some(redis) = &mut options.redis {
        redis.prefix = "restored".into();
    }
    let store = options.open().await.unwrap();
    assert_eq!(common::counters(&store, "A").await.sold, 1);
    store.deduct("before", "u").line("A", 1).await.unwrap();
    assert_eq!(common::counters(&store, "A").await.sold, 1);
    assert_clean(&store).await;
    store.close().await.unwrap();
}

async fn what_ended_long_ago_is_removed(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START);
    let store = tier.open_at(folder.path(), &clock).await;
    store.set_stock("c-1", "A", 100).await.unwrap();
    store.deduct("old", "u").line("A", 2).await.unwrap();
    store.reserve("cancelled", "u").line("A", 1).await.unwrap();
    store.cancel("cancelled").await.unwrap();
    clock.set(START + 30 * DAY_MS);
    store.deduct("new", "u").line("A", 3).await.unwrap();
    store.close().await.unwrap();

    let mut options = tier.options_at(folder.path(), &clock);
    // Less than the hot tier keeps what ended counts as that: what is new stays.
    options.retain_ended_ms = Some(0);
    options.retain_at_once = true;
    let store = options.open().await.unwrap();
    let all = ReservationQuery {
        tenant: Id::default_name(),
        owner: None,
        sku: None,
        status: None,
        from: None,
        until: None,
        before: None,
        limit: 10,
    };
    let removed = async {
        // Asking by id would bring it into memory, which then answers for a while.
        while store.reservations(all.clone()).await.unwrap().len() > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), removed)
        .await
        .unwrap();
    for id in ["old", "cancelled"] {
        // The hot tier may hold it a little longer.
        let forgotten = async {
            while let Ok(held) = store.reservation(id).await {
                assert!(!matches!(tier, Tier::Memory), "{held:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), forgotten)
            .await
            .unwrap();
        let gone = store.reservation(id).await.unwrap_err();
        assert_eq!(gone.code(), "not_found");
    }
    store.reservation("new").await.unwrap();
    let counters = common::counters(&store, "A").await;
    assert_eq!((counters.on_hand, counters.sold), (95, 5));
    assert_clean(&store).await;
    // What it costs: the id is a new one.
    store.deduct("old", "u").line("A", 1).await.unwrap();
    assert_clean(&store).await;
    store.close().await.unwrap();
}

/// The window in which memory holds what the ledger has removed: a return of it is not granted, and nothing else is
/// harmed.
#[tokio::test(flavor = "multi_thread")]
async fn a_return_of_what_was_removed_meanwhile_is_not_granted() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START);
    let store = common::open_at(folder.path(), &clock).await;
    store.set_stock("c-1", "A", 100).await.unwrap();
    store.deduct("old", "u").line("A", 2).await.unwrap();
    store.close().await.unwrap();
    clock.set(START + 30 * DAY_MS);
    let store = common::open_at(folder.path(), &clock).await;
    store.reservation("old").await.unwrap();
    let other = Sqlite::open(folder.path()).unwrap();
    assert_eq!(other.retain(START + DAY_MS, 1_000).unwrap().reservations, 1);

    let refused = store.return_units("r-1", "old").await.unwrap_err();
    assert_eq!(refused.code(), "unavailable");
    let reloaded = async {
        loop {
            let again = store.return_units("r-1", "old").await.unwrap_err();
            match again.code() {
                "not_found" => break,
                code => assert_eq!(code, "unavailable"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reloaded)
        .await
        .unwrap();
    store.deduct("new", "u").line("A", 1).await.unwrap();
    assert_eq!(common::counters(&store, "A").await.sold, 3);
    assert_clean(&store).await;
    store.close().await.unwrap();
}

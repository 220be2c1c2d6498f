//! Races and repeats that other people's systems got wrong, each from many tasks at once.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{START, Tier, assert_clean, counters};
use stockade::Error;
use stockade::clock::ManualClock;
use stockade::rules::{DoneCode, Refusal, Status};
use tokio::task::JoinSet;

on_every_tier!(
    one_unit_twenty_orders,
    one_id_many_times_at_once,
    two_confirms_and_two_cancels,
    confirm_against_cancel,
    sixty_four_claims_of_one_owner,
    twelve_hundred_orders_for_a_thousand_units,
    no_foreign_answer,
    the_clock_goes_back,
    wrong_texts_name_their_fields,
);

fn code<T>(result: &Result<T, Error>) -> &'static str {
    result.as_ref().map_or_else(Error::code, |_| "ok")
}

async fn all<T: Send + 'static>(
    tasks: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    tasks.collect::<JoinSet<T>>().join_all().await
}

/// Losers of the race leave nothing behind (B06), and are told so at once (B44).
async fn one_unit_twenty_orders(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let store = tier.open(folder.path()).await;
    store.set_stock("c", "A/1", 1).await.unwrap();
    let results = all((0..20).map(|n| {
        let store = store.clone();
        async move {
            store
                .reserve(&format!("o-{n}"), &format!("u-{n}"))
                .line("A/1", 1)
                .await
        }
    }))
    .await;
    assert_eq!(results.iter().filter(|r| r.is_ok()).count(), 1);
    for (n, result) in results.iter().enumerate() {
        if result.is_err() {
            assert_eq!(code(result), "insufficient_stock", "{n}");
        }
    }
    let mut held = 0;
    for n in 0..20 {
        match store.reservation(&format!("o-{n}")).await {
            Ok(reservation) => held += reservation.lines[0].quantity(),
            Err(error) => assert_eq!(error.code(), "not_found"),
        }
    }
    assert_eq!(held, 1);
    assert_clean(&store).await;
}

/// The same id twice at once, whoever sends it: one effect, the same answer (B50, B51, B60).
async fn one_id_many_times_at_once(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let store = tier.open(folder.path()).await;
    store.set_stock("c", "A/1", 1_000).await.unwrap();
    for round in 0..50 {
        let results = all((0..8).map(|_| {
            let store = store.clone();
            async move {
                store
                    .deduct(&format!("o-{round}"), "u")
                    .line("A/1", 3)
                    .await
                    .unwrap()
            }
        }))
        .await;
        let done = results.iter().filter(|r| r.code == DoneCode::Ok).count();
        assert_eq!(done, 1, "round {round}");
        assert!(results.iter().all(|r| r.reservation == results[0].reservation));
    }
    assert_eq!(counters(&store, "A/1").await.sold, 150);
    assert_clean(&store).await;
}

/// Confirm from two sides at once (B61); cancel against expiry's twin, twice in parallel (B36).
async fn two_confirms_and_two_cancels(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let store = tier.open(folder.path()).await;
    store.set_stock("c", "A/1", 100_000).await.unwrap();
    let rounds = all((0..500).map(|n| {
        let store = store.clone();
        async move {
            let (sold, back) = (format!("s-{n}"), format!("b-{n}"));
            store.reserve(&sold, "u").line("A/1", 2).await.unwrap();
            store.reserve(&back, "u").line("A/1", 2).await.unwrap();
            let (a, b, c, d) = tokio::join!(
                store.confirm(&sold).into_future(),
                store.confirm(&sold).into_future(),
                store.cancel(&back).into_future(),
                store.cancel(&back).into_future()
            );
            let codes = |x: DoneCode, y: DoneCode| {
                assert!(matches!(
                    (x, y),
                    (DoneCode::Ok, DoneCode::Replayed) | (DoneCode::Replayed, DoneCode::Ok)
                ));
            };
            codes(a.unwrap().code, b.unwrap().code);
            codes(c.unwrap().code, d.unwrap().code);
        }
    }))
    .await;
    assert_eq!(rounds.len(), 500);
    let found = counters(&store, "A/1").await;
    assert_eq!((found.on_hand, found.reserved, found.sold), (99_000, 0, 1_000));
    assert_clean(&store).await;
}

/// Confirm and cancel at once: one wins, and the other is told (B43).
async fn confirm_against_cancel(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let store = tier.open(folder.path()).await;
    store.set_stock("c", "A/1", 10_000).await.unwrap();
    let sold = all((0..500).map(|n| {
        let store = store.clone();
        async move {
            let id = format!("o-{n}");
            store.reserve(&id, "u").line("A/1", 1).await.unwrap();
            let (first, second) = if n % 2 == 0 {
                let (a, b) = tokio::join!(store.confirm(&id).into_future(), store.cancel(&id).into_future());
                (a, b)
            } else {
                let (b, a) = tokio::join!(store.cancel(&id).into_future(), store.confirm(&id).into_future());
                (a, b)
            };
            let status = store.reservation(&id).await.unwrap().status;
            match (code(&first), code(&second), status) {
                ("ok", "already_confirmed", Status::Confirmed) => 1_u64,
                ("already_cancelled", "ok", Status::Cancelled) => 0,
                other => panic!("{id}: {other:?}"),
            }
        }
    }))
    .await
    .into_iter()
    .sum::<u64>();
    let found = counters(&store, "A/1").await;
    assert_eq!((found.reserved, found.sold), (0, sold));
    assert_clean(&store).await;
}

/// 64 claims on a limit of one; the allowance comes back exactly once (B62).
async fn sixty_four_claims_of_one_owner(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START);
    let store = tier.open_at(folder.path(), &clock).await;
    store.set_stock("c", "A/1", 100).await.unwrap();
    store
        .configure_stock("l", "A/1")
        .limit_per_owner(Some(1))
        .await
        .unwrap();
    let claim = |tag: &'static str| {
        let store = store.clone();
        async move {
            let results = all((0..64).map(|n| {
                let store = store.clone();
                async move {
                    let id = format!("{tag}-{n}");
                    let result = store
                        .reserve(&id, "u")
                        .line("A/1", 1)
                        .ttl(Duration::from_secs(5))
                        .await;
                    result.map(|granted| granted.reservation.id)
                }
            }))
            .await;
            let granted: Vec<_> = results.iter().flatten().cloned().collect();
            assert_eq!(granted.len(), 1, "{tag}");
            assert_eq!(results.iter().filter(|r| code(r) == "limit_exceeded").count(), 63);
            granted[0].clone()
        }
    };
    let first = claim("a").await;
    store.cancel(first.as_str()).await.unwrap();
    store.cancel(first.as_str()).await.unwrap();
    let second = claim("b").await;
    clock.advance(5_000);
    let third = claim("c").await;
    store.confirm(third.as_str()).await.unwrap();
    assert_eq!(
        store.cancel(second.as_str()).await.unwrap().reservation.status,
        Status::Cancelled
    );
    assert_eq!(
        code(&store.reserve("d", "u").line("A/1", 1).await),
        "limit_exceeded"
    );
    assert_clean(&store).await;
}

/// 1,200 orders for 1,000 units: exactly 1,000 are granted (B63).
async fn twelve_hundred_orders_for_a_thousand_units(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let store = tier.open(folder.path()).await;
    store.set_stock("c", "A/1", 1_000).await.unwrap();
    let granted = all((0..1_200).map(|n| {
        let store = store.clone();
        async move {
            let owner = format!("u-{}", n % 7);
            store
                .deduct(&format!("o-{n}"), &owner)
                .line("A/1", 1)
                .await
                .is_ok()
        }
    }))
    .await
    .into_iter()
    .filter(|ok| *ok)
    .count();
    assert_eq!(granted, 1_000);
    assert_eq!(counters(&store, "A/1").await.sold, 1_000);
    assert_clean(&store).await;
}

/// Answers go to whoever asked, also when others gave up in between (B159).
async fn no_foreign_answer(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let store = tier.open(folder.path()).await;
    for sku in 0..10 {
        store
            .set_stock(&format!("c-{sku}"), &format!("S/{sku}"), 1_000_000)
            .await
            .unwrap();
    }
    all((0..2_000_u64).map(|n| {
        let store = store.clone();
        async move {
            let (id, sku) = (format!("o-{n}"), format!("S/{}", n % 10));
            if n % 3 == 0 {
                // Given up at once: the future is polled once, then dropped.
                let call = store.reserve(&format!("x-{n}"), "u").line(&sku, 1).into_future();
                tokio::select! { biased; _ = call => {}, () = std::future::ready(()) => {} }
            }
            let granted = store
                .reserve(&id, "u")
                .line(&sku, 1 + n % 5)
                .await
                .unwrap()
                .reservation;
            assert_eq!(granted.id.as_str(), id);
            assert_eq!(granted.lines[0].sku.as_str(), sku);
            assert_eq!(granted.lines[0].quantity(), 1 + n % 5);
        }
    }))
    .await;
    assert_clean(&store).await;
}

/// The clock goes back an hour under load: nothing panics, ends still come (B162).
async fn the_clock_goes_back(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START);
    let store = tier.open_at(folder.path(), &clock).await;
    store.set_stock("c", "A/1", 10).await.unwrap();
    let held = store
        .reserve("o-1", "u")
        .line("A/1", 1)
        .ttl(Duration::from_secs(10))
        .await
        .unwrap();
    clock.advance(-3_600_000);
    let later = store
        .reserve("o-2", "u")
        .line("A/1", 1)
        .ttl(Duration::from_secs(10))
        .await
        .unwrap();
    assert!(later.reservation.ends_at >= held.reservation.ends_at);
    clock.set(START + 10_000);
    assert_eq!(store.reservation("o-1").await.unwrap().status, Status::Expired);
    assert_clean(&store).await;
}

/// Texts that cannot be ids are refused together, each naming its field.
async fn wrong_texts_name_their_fields(tier: Tier) {
    let folder = tempfile::tempdir().unwrap();
    let store = tier.open(folder.path()).await;
    let error = store.reserve("", "u\n").line("..", 1).await.unwrap_err();
    let Some(Refusal::Invalid(fields)) = error.refusal() else {
        panic!("{error}");
    };
    let names: Vec<_> = fields.iter().map(|field| field.field.as_str()).collect();
    assert_eq!(names, ["id", "owner", "lines[0].sku"]);
    let text = error.to_string();
    assert!(text.contains("lines[0].sku is a dot segment"), "{text}");
}

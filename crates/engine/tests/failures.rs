//! The disk is full, a commit's result is unknown, a thread panics, too much waits: everybody gets a true answer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{Fault, Rng, Switch, assert_clean, counters};
use stockade::rules::{DoneCode, Status};
use stockade::{Error, Granted, Options, Readiness, Stockade};
use tokio::task::JoinSet;

async fn open(folder: &Path, switch: &Switch, backlog: usize) -> Stockade {
    let mut options = Options::new(folder);
    options.backlog_commands = backlog;
    switch.into(&mut options);
    options.open().await.unwrap()
}

async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let waiting = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .is_ok(),
        "{what}"
    );
}

fn deduct(
    store: &Stockade,
    id: String,
) -> impl Future<Output = (String, Result<Granted, Error>)> + Send + 'static {
    let store = store.clone();
    async move {
        let result = store.deduct(&id, "u").line("A/1", 1).await;
        (id, result)
    }
}

/// A full disk: nothing that failed is there, everything that was answered is, and it goes on when there is room.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_and_recovery() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::default();
    let store = open(folder.path(), &switch, 10_000).await;
    store.set_stock("c", "A/1", 10_000).await.unwrap();
    let mut sold = Vec::new();
    for round in 0..5 {
        let epoch = store.health().decided.epoch;
        let mut calls: JoinSet<_> = (0..200)
            .map(|n| deduct(&store, format!("o-{round}-{n}")))
            .collect();
        for _ in 0..50 {
            let (id, result) = calls.join_next().await.unwrap().unwrap();
            result.unwrap();
            sold.push(id);
        }
        switch.set(Fault::Full);
        calls.spawn(deduct(&store, format!("p-{round}")));
        let mut lost = Vec::new();
        while let Some(done) = calls.join_next().await {
            match done.unwrap() {
                (id, Ok(_)) => sold.push(id),
                (id, Err(Error::Unavailable { why })) => {
                    assert!(why.contains("full"), "{why}");
                    lost.push(id);
                }
                (id, Err(other)) => panic!("{id}: {other}"),
            }
        }
        assert!(lost.contains(&format!("p-{round}")));
        until("recovering", || {
            matches!(store.health().readiness, Readiness::Recovering { .. })
        })
        .await;
        let refused = store.reserve("q", "u").line("A/1", 1).await.unwrap_err();
        assert_eq!(refused.code(), "unavailable");
        assert!(store.audit(1).await.is_err());
        switch.set(Fault::None);
        until("ready", || store.health().readiness == Readiness::Ready).await;
        assert!(store.health().decided.epoch > epoch);
        for id in &lost {
            assert_eq!(
                store.reservation(id).await.unwrap_err().code(),
                "not_found",
                "{id}"
            );
        }
        // Unavailable said that nothing was changed: the same ids are free.
        let again = store.deduct(&lost[0], "u").line("A/1", 1).await.unwrap();
        assert_eq!(again.code, DoneCode::Ok);
        sold.push(lost[0].clone());
        assert_eq!(counters(&store, "A/1").await.sold, sold.len() as u64);
        assert_clean(&store).await;
    }
    for id in &sold {
        let again = store.deduct(id, "u").line("A/1", 1).await.unwrap();
        assert_eq!(again.code, DoneCode::Replayed);
    }
    assert_eq!(counters(&store, "A/1").await.sold, sold.len() as u64);
}

/// While reloading it turns out that an earlier write's fate is unknown: trying again cannot help.
#[tokio::test(flavor = "multi_thread")]
async fn a_reload_from_a_broken_ledger_poisons() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::default();
    let store = open(folder.path(), &switch, 10_000).await;
    store.set_stock("c", "A/1", 10).await.unwrap();
    switch.set(Fault::Full);
    store.deduct("o-1", "u").line("A/1", 1).await.unwrap_err();
    switch.set(Fault::Broken);
    until("poisoned", || {
        matches!(store.health().readiness, Readiness::Poisoned { .. })
    })
    .await;
    let refused = store.deduct("o-2", "u").line("A/1", 1).await.unwrap_err();
    assert_eq!(refused.code(), "unavailable");
    drop(store);
    switch.set(Fault::None);
    let store = open(folder.path(), &switch, 10_000).await;
    assert_eq!(store.reservation("o-1").await.unwrap_err().code(), "not_found");
    assert_clean(&store).await;
}

/// A batch over a failure: what was recorded before stays true, the rest is unavailable.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_on_a_full_disk() {
    use stockade::rules::{Action, Command, Id};
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::default();
    let store = open(folder.path(), &switch, 10_000).await;
    store.set_stock("c", "A/1", 10).await.unwrap();
    store.reserve("o-1", "u").line("A/1", 1).await.unwrap();
    let id = |text: &str| Id::new(text).unwrap();
    let command = |action| Command {
        tenant: id("default"),
        actor: id("test"),
        action,
    };
    switch.set(Fault::Full);
    let results = store
        .submit_many(vec![
            command(Action::ShowReservation { id: id("o-1") }),
            command(Action::Cancel(stockade::rules::Cancel {
                id: id("o-1"),
                reason: stockade::rules::Reason::default(),
            })),
            command(Action::ShowReservation { id: id("none") }),
        ])
        .await;
    switch.set(Fault::None);
    assert!(results[0].is_ok());
    assert_eq!(results[1].as_ref().unwrap_err().code(), "unavailable");
    assert_eq!(results[2].as_ref().unwrap_err().code(), "not_found");
    until("ready", || store.health().readiness == Readiness::Ready).await;
    assert_eq!(store.reservation("o-1").await.unwrap().status, Status::Pending);
    assert_clean(&store).await;
}

/// After a commit whose result is unknown nothing is taken any more; opening again shows what happened.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_commit_poisons() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::default();
    let store = open(folder.path(), &switch, 10_000).await;
    store.set_stock("c", "A/1", 10_000).await.unwrap();
    switch.set(Fault::Unknown);
    let mut calls: JoinSet<_> = (0..100).map(|n| deduct(&store, format!("o-{n}"))).collect();
    let (mut unknown, mut undone) = (Vec::new(), Vec::new());
    while let Some(done) = calls.join_next().await {
        match done.unwrap() {
            (id, Err(Error::OutcomeUnknown { .. })) => unknown.push(id),
            (id, Err(Error::Unavailable { .. })) => undone.push(id),
            other => panic!("{other:?}"),
        }
    }
    assert!(!unknown.is_empty());
    assert!(matches!(store.health().readiness, Readiness::Poisoned { .. }));
    assert_eq!(store.confirm("o-1").await.unwrap_err().code(), "unavailable");
    assert!(store.audit(1).await.is_err());
    assert!(store.close().await.is_err());
    let store = Stockade::open(folder.path()).await.unwrap();
    for id in &unknown {
        assert_eq!(
            store.reservation(id).await.unwrap().status,
            Status::Confirmed,
            "{id}"
        );
    }
    for id in &undone {
        assert_eq!(
            store.reservation(id).await.unwrap_err().code(),
            "not_found",
            "{id}"
        );
    }
    assert_clean(&store).await;
}

/// A panic of the recording thread reaches the callers as an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_does_not_hang_callers() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::default();
    let store = open(folder.path(), &switch, 10_000).await;
    store.set_stock("c", "A/1", 10_000).await.unwrap();
    switch.set(Fault::Panic);
    let mut calls: JoinSet<_> = (0..100).map(|n| deduct(&store, format!("o-{n}"))).collect();
    while let Some(done) = calls.join_next().await {
        let (id, result) = done.unwrap();
        assert!(
            matches!(
                result,
                Err(Error::OutcomeUnknown { .. } | Error::Unavailable { .. })
            ),
            "{id}"
        );
    }
    assert!(matches!(store.health().readiness, Readiness::Poisoned { .. }));
    drop(store);
    let store = Stockade::open(folder.path()).await.unwrap();
    assert_eq!(counters(&store, "A/1").await.sold, 0);
    assert_clean(&store).await;
}

/// At 80 % of the backlog new orders are turned away, at 100 % everything; nothing of that leaves a trace.
#[tokio::test(flavor = "multi_thread")]
async fn overload() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::default();
    let store = open(folder.path(), &switch, 10).await;
    store.set_stock("c", "A/1", 100).await.unwrap();
    store.reserve("held", "u").line("A/1", 1).await.unwrap();
    switch.set(Fault::Wait);
    let mut calls: JoinSet<_> = (0..8).map(|n| deduct(&store, format!("o-{n}"))).collect();
    until("eight wait", || store.health().waiting == 8).await;
    match store.deduct("late", "u").line("A/1", 1).await {
        Err(Error::Overloaded {
            waiting,
            limit,
            retry_after_ms,
        }) => {
            assert_eq!((waiting, limit), (8, 8));
            assert!((50..=5_000).contains(&retry_after_ms));
        }
        other => panic!("{other:?}"),
    }
    let batch = store.submit_many(Vec::new()).await;
    assert!(batch.is_empty());
    let confirm = {
        let store = store.clone();
        tokio::spawn(async move { store.confirm("held").await })
    };
    let cancel = {
        let store = store.clone();
        tokio::spawn(async move { store.cancel("sealed").await })
    };
    until("ten wait", || store.health().waiting == 10).await;
    assert_eq!(store.confirm("o-1").await.unwrap_err().code(), "overloaded");
    switch.set(Fault::None);
    while let Some(done) = calls.join_next().await {
        done.unwrap().1.unwrap();
    }
    confirm.await.unwrap().unwrap();
    cancel.await.unwrap().unwrap();
    until("nothing waits", || store.health().waiting == 0).await;
    assert_eq!(store.reservation("late").await.unwrap_err().code(), "not_found");
    assert_eq!(counters(&store, "A/1").await.sold, 9);
    assert_clean(&store).await;
}

/// Faults at random under load: the clients' own histories agree with what is on disk in the end.
#[tokio::test(flavor = "multi_thread")]
async fn random_faults() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::default();
    let store = open(folder.path(), &switch, 10_000).await;
    store.set_stock("c", "A/1", 1_000_000).await.unwrap();
    let mut calls: JoinSet<Vec<(String, bool)>> = (0..32_u64)
        .map(|task| {
            let store = store.clone();
            async move {
                let mut history = Vec::new();
                for n in 0..60 {
                    let id = format!("o-{task}-{n}");
                    let result = store.deduct(&id, "u").line("A/1", 1).await;
                    if let Err(error) = &result {
                        assert_eq!(error.code(), "unavailable", "{error}");
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                    history.push((id, result.is_ok()));
                }
                history
            }
        })
        .collect();
    let faults = {
        let switch = switch.clone();
        tokio::spawn(async move {
            let mut rng = Rng::new(7);
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(rng.below(10))).await;
                switch.set(Fault::Full);
                tokio::time::sleep(Duration::from_millis(rng.below(4))).await;
                switch.set(Fault::None);
            }
        })
    };
    let mut answered = 0;
    let mut all = Vec::new();
    while let Some(history) = calls.join_next().await {
        all.extend(history.unwrap());
    }
    faults.await.unwrap();
    until("ready", || store.health().readiness == Readiness::Ready).await;
    for (id, granted) in all {
        let found = store.reservation(&id).await;
        assert_eq!(found.is_ok(), granted, "{id}: {found:?}");
        answered += u64::from(granted);
    }
    assert_eq!(counters(&store, "A/1").await.sold, answered);
    assert_clean(&store).await;
}

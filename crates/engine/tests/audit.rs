//! The audit finds what was changed behind the store's back, and is right under load.

mod common;

use std::path::Path;

use common::assert_clean;
use stockade::Stockade;
use tokio::task::JoinSet;

/// Changes the ledger's file by hand.
fn edit(folder: &Path, sql: &str) -> usize {
    let file = folder.join(stockade::ledger::Sqlite::FILE);
    let changed = rusqlite::Connection::open(file).and_then(|db| {
        db.busy_timeout(std::time::Duration::from_secs(10))?;
        db.execute(sql, [])
    });
    changed.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hand_edit_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = Stockade::open(folder.path()).await.unwrap();
    store.set_stock("c-1", "A/1", 100).await.unwrap();
    store.set_stock("c-2", "A/2", 100).await.unwrap();
    store.reserve("o-1", "u").line("A/1", 2).await.unwrap();
    let report = store.audit(100).await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!((report.skus, report.live), (2, 1));
    assert_eq!(report.at, store.health().decided);

    assert_eq!(
        edit(
            folder.path(),
            "UPDATE stock SET on_hand = on_hand + 1 WHERE on_hand = 100 AND reserved = 0"
        ),
        1
    );
    let report = store.audit(100).await.unwrap();
    // Once against the memory, once against the movements.
    assert!(report.findings.len() >= 2, "{:#?}", report.findings);
    assert!(
        report
            .findings
            .iter()
            .all(|finding| finding.place.contains("A/2")),
        "{:#?}",
        report.findings
    );
    assert!(!report.truncated);
    let short = store.audit(1).await.unwrap();
    assert_eq!((short.findings.len(), short.truncated), (1, true));

    // The next change of that SKU does not continue what the ledger holds: nothing is recorded, and the store is
    // loaded again from the ledger.
    let epoch = store.health().decided.epoch;
    let refused = store.reserve("o-2", "u").line("A/2", 1).await.unwrap_err();
    assert_eq!(refused.code(), "unavailable");
    let reloaded = async {
        while store.health().decided.epoch == epoch {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), reloaded)
        .await
        .unwrap();
    store.reserve("o-2", "u").line("A/2", 1).await.unwrap();
}

/// Audits one after the other, and two at once, while orders come in.
#[tokio::test(flavor = "multi_thread")]
async fn audits_under_load_are_clean() {
    let folder = tempfile::tempdir().unwrap();
    let store = Stockade::open(folder.path()).await.unwrap();
    store.set_stock("c-1", "A/1", 1_000_000).await.unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..32 {
        let store = store.clone();
        tasks.spawn(async move {
            for n in 0..100 {
                let id = format!("o-{task}-{n}");
                store
                    .reserve(&id, &format!("u-{n}"))
                    .line("A/1", 1)
                    .await
                    .unwrap();
                if n % 3 == 0 {
                    store.confirm(&id).await.unwrap();
                }
            }
        });
    }
    let mut audits = 0;
    while !tasks.is_empty() {
        let (one, two) = tokio::join!(assert_clean(&store), assert_clean(&store));
        let ((), ()) = (one, two);
        audits += 2;
        while let Some(done) = tasks.try_join_next() {
            done.unwrap();
        }
    }
    assert!(audits >= 2);
    assert_clean(&store).await;
}

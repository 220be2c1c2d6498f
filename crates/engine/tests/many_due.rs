//! Many ends that have come at once, after downtime say: nobody waits for one commit with all of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Fault, START, Switch, assert_clean, counters};
use stockade::clock::ManualClock;
use stockade::ledger::{Ledger, LedgerError, RecordError, ShardRow, View};
use stockade::rules::{Action, AskLine, Command, Done, Entry, Id, Mode, Reserve, Subject};
use stockade::{Options, Stockade};

/// Looks at what the store records.
#[derive(Debug)]
struct Watched {
    ledger: Arc<dyn Ledger>,
    largest: Arc<AtomicUsize>,
}

impl Ledger for Watched {
    fn open_epoch(&self, shard: u32, owner: &str) -> Result<ShardRow, LedgerError> {
        self.ledger.open_epoch(shard, owner)
    }

    fn record(&self, run: &[Entry]) -> Result<(), RecordError> {
        let effects = run.iter().map(|entry| entry.effects.len()).max();
        self.largest.fetch_max(effects.unwrap_or(0), Ordering::SeqCst);
        self.ledger.record(run)
    }

    fn view(&self) -> Result<Box<dyn View>, LedgerError> {
        self.ledger.view()
    }
}

async fn open(folder: &Path, clock: &ManualClock, switch: &Switch, largest: &Arc<AtomicUsize>) -> Stockade {
    let mut options = Options::new(folder);
    options.clock = Arc::new(clock.clone());
    switch.into(&mut options);
    let (inner, largest) = (options.wrap_ledger.take().unwrap(), largest.clone());
    options.wrap_ledger = Some(Arc::new(move |ledger| {
        Arc::new(Watched {
            ledger: inner(ledger),
            largest: largest.clone(),
        })
    }));
    options.open().await.unwrap()
}

fn command(action: Action) -> Command {
    Command {
        tenant: Id::default_name(),
        actor: Id::new("test").unwrap(),
        action,
    }
}

fn hold(id: &str, sku: &str, quantity: u64) -> Command {
    command(Action::Reserve(Reserve {
        id: Id::new(id).unwrap(),
        owner: Id::new("u").unwrap(),
        mode: Mode::Reserve,
        ttl_ms: 60_000,
        lines: vec![AskLine {
            sku: Id::new(sku).unwrap(),
            quantity,
            location: None,
            if_revision: None,
        }]
        .into(),
        supersedes: None,
    }))
}

fn reserved(done: &Done) -> u64 {
    let Subject::Stock(stock) = &done.subject else {
        panic!("{done:?}");
    };
    stock.stock.locations[0].counters.reserved
}

/// So many reservations of one unit of `A/1`, which has no more; some units of `B/1`.
async fn fill(store: &Stockade, count: u64) {
    store.set_stock("c-1", "A/1", count).await.unwrap();
    store.set_stock("c-2", "B/1", 1_000_000).await.unwrap();
    let holds: Vec<_> = (0..count).map(|n| hold(&format!("o-{n}"), "A/1", 1)).collect();
    for holds in holds.chunks(5_000) {
        for held in store.submit_many(holds.to_vec()).await {
            held.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn others_wait_for_bounded_commits() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START);
    let (switch, largest) = (Switch::default(), Arc::default());
    let store = open(folder.path(), &clock, &switch, &largest).await;
    let count = 50_000;
    fill(&store, count).await;
    largest.store(0, Ordering::SeqCst);
    clock.advance(60_000);
    let show = || {
        command(Action::ShowStock {
            sku: Id::new("A/1").unwrap(),
        })
    };
    // In a batch, each in its place.
    let batch = vec![
        hold("b-1", "B/1", 1),
        show(),
        hold("b-2", "A/1", count),
        show(),
        hold("b-3", "A/1", 1),
    ];
    let readers = (0..20).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.submit(show()).await.unwrap() })
    });
    let readers: Vec<_> = readers.collect();
    let others = (0..200).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            let id = format!("other-{n}");
            store.deduct(&id, "u").line("B/1", 1).await.unwrap();
        })
    });
    let others: Vec<_> = others.collect();
    let answers = store.submit_many(batch).await;
    assert_eq!(reserved(answers[1].as_ref().unwrap()), 0);
    answers[2].as_ref().unwrap();
    assert_eq!(reserved(answers[3].as_ref().unwrap()), count);
    assert_eq!(answers[4].as_ref().unwrap_err().code(), "insufficient_stock");
    for reader in readers {
        // Before the batch took everything, or after it.
        assert!([0, count].contains(&reserved(&reader.await.unwrap())));
    }
    for other in others {
        other.await.unwrap();
    }
    assert_eq!(counters(&store, "A/1").await.reserved, count);
    let largest = largest.load(Ordering::SeqCst);
    assert!(largest <= 4_096, "{largest} effects in one commit");
    assert_clean(&store).await;
    store.close().await.unwrap();
}

/// Whoever waits for ends to be freed hears of a close or a failure, and neither frees the rest first.
#[tokio::test(flavor = "multi_thread")]
async fn parked_commands_are_answered_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START);
    let (switch, largest) = (Switch::default(), Arc::default());
    let store = open(folder.path(), &clock, &switch, &largest).await;
    fill(&store, 20_000).await;
    let before = store.health().recorded;
    switch.set(Fault::Wait);
    let blocked = {
        let store = store.clone();
        tokio::spawn(async move { store.deduct("blocked", "u").line("B/1", 1).await })
    };
    while store.health().decided.seq == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    clock.advance(60_000);
    // A caller that gives up leaves nothing behind.
    let gone = tokio::time::timeout(
        Duration::from_millis(20),
        store.submit(hold("gone", "A/1", 20_000)),
    );
    assert!(gone.await.is_err());
    let (read, closed, ()) = tokio::join!(store.stock("A/1"), store.close(), async {
        switch.set(Fault::None);
    });
    assert_eq!(read.unwrap_err().code(), "unavailable");
    closed.unwrap();
    blocked.await.unwrap().unwrap();
    // How many entries a busy machine makes before the close is seen does not matter: most are not freed.
    assert!(store.health().live > 10_000, "{:?}", store.health());

    let store = open(folder.path(), &clock, &switch, &largest).await;
    switch.set(Fault::Full);
    let failed = store.stock("A/1").await;
    if let Err(error) = failed {
        assert_eq!(error.code(), "unavailable");
    }
    switch.set(Fault::None);
    let freed = async {
        while !store
            .stock("A/1")
            .await
            .is_ok_and(|stock| stock.locations[0].counters.reserved == 0)
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), freed)
        .await
        .unwrap();
    assert_eq!(store.reservation("gone").await.unwrap_err().code(), "not_found");
    assert_clean(&store).await;
}

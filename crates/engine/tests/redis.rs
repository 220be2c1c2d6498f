//! A store whose hot tier is on Redis: the ways through it, on a private server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::time::Duration;

use stockade::rules::{DoneCode, Refusal, Status};
use stockade::{Durability, Error, OpenError, Options, Stockade};
use stockade_testkit::redis::Server;

use common::{assert_clean, counters};

async fn open(folder: &Path, server: &Server) -> Stockade {
    Options::new(folder).redis(server.url()).open().await.unwrap()
}

/// Until everything that was answered is recorded.
async fn settled(store: &Stockade) {
    for _ in 0..1_000 {
        let health = store.health();
        if health.decided.seq == health.recorded {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("not settled: {:?}", store.health());
}

#[tokio::test(flavor = "multi_thread")]
async fn from_an_empty_ledger_and_an_empty_server_to_an_audit() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let store = open(folder.path(), &server).await;
    store.set_stock("count-1", "A/1", 10).await.unwrap();
    let held = store.reserve("o-1", "alice").line("A/1", 2).await.unwrap();
    assert_eq!(held.reservation.status, Status::Pending);
    let sold = store.confirm("o-1").await.unwrap();
    assert_eq!(sold.reservation.status, Status::Confirmed);
    let again = store.reserve("o-1", "alice").line("A/1", 2).await.unwrap();
    assert_eq!(again.code, DoneCode::Replayed);
    store.reserve("o-2", "bob").line("A/1", 3).await.unwrap();
    let short = store.reserve("o-3", "carol").line("A/1", 6).await.unwrap_err();
    assert!(
        matches!(&short, Error::Refused(Refusal::InsufficientStock(lines)) if lines[0].detail.available == 5),
        "{short}"
    );
    let unknown = store.reserve("o-4", "carol").line("B/1", 1).await.unwrap_err();
    assert!(
        matches!(&unknown, Error::Refused(Refusal::UnknownSku(_))),
        "{unknown}"
    );
    let counted = counters(&store, "A/1").await;
    assert_eq!((counted.on_hand, counted.reserved, counted.sold), (8, 3, 2));
    assert_clean(&store).await;
    let epoch = store.health().decided.epoch;
    store.close().await.unwrap();

    // The process goes, Redis and the ledger stay: no new epoch, nothing lost.
    let store = open(folder.path(), &server).await;
    assert_eq!(store.health().decided.epoch, epoch);
    let back = store.return_units("r-1", "o-1").await.unwrap();
    assert_eq!(back.reservation.lines[0].returned(), 2);
    store.cancel("o-2").await.unwrap();
    settled(&store).await;
    assert_clean(&store).await;
    let counted = counters(&store, "A/1").await;
    assert_eq!((counted.on_hand, counted.reserved, counted.sold), (10, 0, 0));
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_whether_it_is_recorded() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let store = open(folder.path(), &server).await;
    store.set_stock("count-1", "A/1", 10).await.unwrap();
    let command = |id: &str| stockade::rules::Command {
        tenant: "default".parse_id(),
        actor: "test".parse_id(),
        action: stockade::rules::Action::Reserve(stockade::rules::Reserve {
            id: id.parse_id(),
            owner: "alice".parse_id(),
            mode: stockade::rules::Mode::Reserve,
            ttl_ms: 60_000,
            lines: [stockade::rules::AskLine {
                sku: "A/1".parse_id(),
                quantity: 1,
                location: None,
                if_revision: None,
            }]
            .into_iter()
            .collect(),
            supersedes: None,
        }),
    };
    let hard = store
        .submit_with(command("o-1"), Durability::Ledger)
        .await
        .unwrap();
    assert!(hard.recorded);
    let soft = store.submit_with(command("o-2"), Durability::Hot).await.unwrap();
    // It may be recorded by now only if it was a replay: the answer goes out before.
    assert!(!soft.recorded);
    settled(&store).await;
    let replay = store.submit_with(command("o-2"), Durability::Hot).await.unwrap();
    assert!(replay.recorded);
    store.close().await.unwrap();
}

trait ParseId {
    fn parse_id(&self) -> stockade::rules::Id;
}

impl ParseId for str {
    fn parse_id(&self) -> stockade::rules::Id {
        stockade::rules::Id::new(self).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flushed_server_is_rebuilt_and_every_recorded_thing_is_there() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let store = open(folder.path(), &server).await;
    store.set_stock("count-1", "A/1", 100).await.unwrap();
    for n in 0..20 {
        store
            .reserve(&format!("o-{n}"), "alice")
            .line("A/1", 1)
            .await
            .unwrap();
    }
    store.confirm("o-1").await.unwrap();
    settled(&store).await;
    let epoch = store.health().decided.epoch;
    let _: String = server.run(&["FLUSHALL"]);
    let sold = store.confirm("o-2").await.unwrap();
    assert_eq!(sold.reservation.status, Status::Confirmed);
    let shown = store.reservation("o-1").await.unwrap();
    assert_eq!(shown.status, Status::Confirmed);
    assert_eq!(store.health().decided.epoch, epoch + 1);
    settled(&store).await;
    assert_clean(&store).await;
    let counted = counters(&store, "A/1").await;
    assert_eq!((counted.on_hand, counted.reserved, counted.sold), (98, 18, 2));
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_goes_from_memory_to_redis_and_back() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let store = Stockade::open(folder.path()).await.unwrap();
    store.set_stock("count-1", "A/1", 10).await.unwrap();
    store.reserve("o-1", "alice").line("A/1", 2).await.unwrap();
    store.reserve("o-2", "alice").line("A/1", 1).await.unwrap();
    store.cancel("o-2").await.unwrap();
    store.close().await.unwrap();

    let store = open(folder.path(), &server).await;
    store.confirm("o-1").await.unwrap();
    let closed = store.reserve("o-2", "alice").line("A/1", 1).await.unwrap_err();
    assert!(
        matches!(&closed, Error::Refused(Refusal::AlreadyCancelled(_))),
        "{closed}"
    );
    store.reserve("o-3", "bob").line("A/1", 3).await.unwrap();
    settled(&store).await;
    assert_clean(&store).await;
    let taken = Stockade::open(folder.path()).await.unwrap_err();
    assert!(matches!(taken, OpenError::Shared { .. }), "{taken}");
    store.close().await.unwrap();

    let store = Stockade::open(folder.path()).await.unwrap();
    assert_eq!(store.health().decided.epoch, 3);
    store.confirm("o-3").await.unwrap();
    let counted = counters(&store, "A/1").await;
    assert_eq!((counted.on_hand, counted.reserved, counted.sold), (5, 0, 5));
    assert_clean(&store).await;
    store.close().await.unwrap();

    let store = open(folder.path(), &server).await;
    assert_eq!(store.health().decided.epoch, 4);
    let counted = counters(&store, "A/1").await;
    assert_eq!((counted.on_hand, counted.reserved, counted.sold), (5, 0, 5));
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_one_redis_and_one_ledger() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let one = open(folder.path(), &server).await;
    let two = open(folder.path(), &server).await;
    one.set_stock("count-1", "A/1", 100).await.unwrap();
    let mut tasks = Vec::new();
    for n in 0..120 {
        let store = if n % 2 == 0 { one.clone() } else { two.clone() };
        tasks.push(tokio::spawn(async move {
            let id = format!("o-{n}");
            match store.reserve(&id, "alice").line("A/1", 1).await {
                Ok(_) => store.confirm(&id).await.map(|_| true),
                Err(Error::Refused(Refusal::InsufficientStock(_))) => Ok(false),
                Err(error) => Err(error),
            }
        }));
    }
    let mut sold = 0;
    for task in tasks {
        sold += u64::from(task.await.unwrap().unwrap());
    }
    assert_eq!(sold, 100);
    assert_clean(&one).await;
    one.close().await.unwrap();
    // The recorder's place is taken over.
    two.cancel("never-came").await.unwrap();
    assert_eq!(counters(&two, "A/1").await.sold, 100);
    assert_clean(&two).await;
    two.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_lost_what_it_had_recorded_is_refused() {
    let (server, folder, backup) = (
        Server::start(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let sell = async |name: &str| {
        let store = open(folder.path(), &server).await;
        store.set_stock("count-1", "A/1", 10).await.unwrap();
        store.reserve(name, "alice").line("A/1", 1).await.unwrap();
        store.confirm(name).await.unwrap();
        settled(&store).await;
        store.close().await.unwrap();
    };
    let copy = |from: &Path, to: &Path| {
        for file in std::fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    };
    sell("o-1").await;
    copy(folder.path(), backup.path());
    sell("o-2").await;
    copy(backup.path(), folder.path());
    let refused = Options::new(folder.path()).redis(server.url()).open().await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("restored from a backup"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outbox_damaged_by_hand_is_built_anew() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let store = open(folder.path(), &server).await;
    store.set_stock("count-1", "A/1", 10).await.unwrap();
    settled(&store).await;
    let health = store.health().decided;
    // An entry that nobody can read, right behind the last one.
    let (outbox, id) = (
        format!("{{stockade:0}}:{}:outbox", health.epoch),
        format!("{}-{}", health.epoch, health.seq + 1),
    );
    let _: String = server.run(&["XADD", &outbox, &id, "tag", "x", "e", "y"]);
    for _ in 0..1_000 {
        if store.health().decided.epoch > health.epoch {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    store.reserve("o-1", "alice").line("A/1", 1).await.unwrap();
    store.confirm("o-1").await.unwrap();
    assert!(store.health().decided.epoch > health.epoch);
    assert_clean(&store).await;
    store.close().await.unwrap();
}

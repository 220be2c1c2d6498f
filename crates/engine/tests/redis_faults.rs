//! Redis is killed, emptied, stopped, cut off and damaged under load. When the faults stop: the audit is clean, every
//! sale that was answered is there, nothing was sold twice, and no unit is missing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Rng, assert_clean, counters};
use stockade::rules::Status;
use stockade::{Error, Options, Stockade};
use stockade_testkit::proxy::Proxy;
use stockade_testkit::redis::{Options as ServerOptions, Server};
use tokio::task::JoinSet;

const CLIENTS: u64 = 24;
const UNITS: u64 = 2_000;
const SKUS: u64 = 2;
const TTL: Duration = Duration::from_secs(2);

/// Orders of one client that are sold for sure: id, SKU, units.
type Sold = Vec<(String, String, u64)>;

fn options(folder: &Path, url: &str) -> Options {
    let mut options = Options::new(folder).redis(url);
    if let Some(redis) = &mut options.redis {
        redis.reply_within = Duration::from_millis(500);
        redis.answer_within = Duration::from_secs(4);
    }
    options
}

async fn open(folder: &Path, url: &str) -> Stockade {
    let opened = options(folder, url).open().await;
    opened.unwrap_or_else(|error| panic!("{error}"))
}

/// Sends the same id until it is answered for sure; a refusal's code.
async fn surely<T, F>(what: &str, mut send: impl FnMut() -> F) -> Result<T, &'static str>
where
    F: IntoFuture<Output = Result<T, Error>>,
{
    let began = Instant::now();
    loop {
        match send().await {
            Ok(done) => return Ok(done),
            Err(Error::Refused(refusal)) => return Err(Error::Refused(refusal).code()),
            Err(error) => {
                assert!(began.elapsed() < Duration::from_secs(60), "{what}: {error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn client(store: Stockade, number: u64, stop: Arc<AtomicBool>) -> Sold {
    let mut rng = Rng::new(number + 1);
    let mut sold = Sold::new();
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (id, sku) = (format!("o-{number}-{n}"), format!("S/{}", rng.below(SKUS)));
        let units = 1 + rng.below(3);
        let held = surely(&id, || store.reserve(&id, "u").line(&sku, units).ttl(TTL)).await;
        match held {
            Ok(granted) => assert_eq!(granted.reservation.lines[0].quantity(), units),
            Err(code) => {
                assert!(matches!(code, "insufficient_stock" | "expired"), "{id}: {code}");
                continue;
            }
        }
        match rng.below(10) {
            0..5 => match surely(&id, || store.confirm(&id)).await {
                Ok(granted) => {
                    assert_eq!(granted.reservation.status, Status::Confirmed);
                    sold.push((id, sku, units));
                }
                // Lost with Redis's last second, or its time was over while nothing answered.
                Err(code) => assert!(matches!(code, "not_found" | "expired"), "{id}: {code}"),
            },
            5..8 => {
                let cancelled = surely(&id, || store.cancel(&id)).await;
                let status = cancelled.map(|granted| granted.reservation.status);
                assert_eq!(status, Ok(Status::Cancelled), "{id}");
            }
            _ => {}
        }
    }
    sold
}

/// Load on some stores while faults happen, then the verdict on the first of them.
async fn under_load(stores: Vec<Stockade>, faults: impl AsyncFnOnce()) {
    let store = stores[0].clone();
    for sku in 0..SKUS {
        let id = format!("count-{sku}");
        surely("set", || store.set_stock(&id, &format!("S/{sku}"), UNITS).force())
            .await
            .unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let which = usize::try_from(number).unwrap() % stores.len();
        clients.spawn(client(stores[which].clone(), number, stop.clone()));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    faults().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.store(true, Ordering::Relaxed);
    let mut sold = Sold::new();
    while let Some(ended) = clients.join_next().await {
        sold.extend(ended.unwrap());
    }
    assert!(sold.len() > 20, "only {} orders were sold", sold.len());
    // What nobody confirmed runs out.
    tokio::time::sleep(TTL + Duration::from_millis(500)).await;
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let mut reserved = 0;
        for sku in 0..SKUS {
            let found = surely("stock", || async { store.stock(&format!("S/{sku}")).await }).await;
            reserved += found.unwrap().locations[0].counters.reserved;
        }
        if reserved == 0 {
            break;
        }
        assert!(Instant::now() < until, "{reserved} units are still reserved");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for (id, ..) in &sold {
        let shown = surely(id, || async { store.reservation(id).await }).await;
        assert_eq!(shown.map(|found| found.status), Ok(Status::Confirmed), "{id}");
    }
    for sku in 0..SKUS {
        let name = format!("S/{sku}");
        let units: u64 = sold
            .iter()
            .filter(|(_, of, _)| *of == name)
            .map(|(.., units)| units)
            .sum();
        let found = counters(&store, &name).await;
        assert_eq!(
            (found.on_hand, found.reserved, found.sold),
            (UNITS - units, 0, units),
            "{name}"
        );
    }
    assert_clean(&store).await;
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_and_started_again_with_what_its_file_holds() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::with(
        ServerOptions {
            append_only: true,
            ..ServerOptions::default()
        }
        .set("appendfsync", "everysec"),
    );
    let store = open(folder.path(), &server.url()).await;
    under_load(vec![store], async || {
        for _ in 0..2 {
            tokio::task::block_in_place(|| server.restart());
            pause(700).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn emptied_under_load() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let store = open(folder.path(), &server.url()).await;
    under_load(vec![store], async || {
        for _ in 0..3 {
            let _: String = tokio::task::block_in_place(|| server.run(&["FLUSHALL"]));
            pause(400).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_for_longer_than_a_reply_may_take() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let store = open(folder.path(), &server.url()).await;
    under_load(vec![store], async || {
        server.pause();
        pause(1_500).await;
        server.resume();
        pause(500).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_off_again_and_again() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let proxy = Proxy::to(server.port());
    let store = open(folder.path(), &proxy.url()).await;
    under_load(vec![store], async || {
        for round in 0..12 {
            if round % 3 == 0 {
                proxy.cut();
            } else {
                proxy.cut_at_next_answer();
            }
            pause(120).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_flushed_in_a_loop() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let store = open(folder.path(), &server.url()).await;
    let epoch = store.health().decided.epoch;
    let watched = store.clone();
    under_load(vec![store], async || {
        for _ in 0..100 {
            let _: String = tokio::task::block_in_place(|| server.run(&["SCRIPT", "FLUSH"]));
            pause(10).await;
        }
    })
    .await;
    assert_eq!(
        watched.health().decided.epoch,
        epoch,
        "nothing was lost, so nothing is built anew"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stock_key_removed_and_damaged_by_hand() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let store = open(folder.path(), &server.url()).await;
    let watched = store.clone();
    under_load(vec![store], async || {
        for round in 0..6 {
            let epoch = watched.health().decided.epoch;
            let key = format!("{{stockade:0}}:{epoch}:sku:S/{}", round % 2);
            tokio::task::block_in_place(|| match round % 3 {
                0 => {
                    let _: i64 = server.run(&["DEL", &key]);
                }
                1 => {
                    let _: String = server.run(&["SET", &key, "text"]);
                }
                _ => {
                    let _: i64 = server.run(&["HSET", &key, "location:default", "on_hand=1e3"]);
                }
            });
            pause(250).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_removed_by_hand() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let store = open(folder.path(), &server.url()).await;
    let watched = store.clone();
    under_load(vec![store], async || {
        let epoch = watched.health().decided.epoch;
        let key = format!("{{stockade:0}}:{epoch}:reservations");
        let _: i64 = tokio::task::block_in_place(|| server.run(&["DEL", &key]));
        pause(500).await;
    })
    .await;
    assert!(watched.health().decided.epoch > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_stores_and_one_of_them_goes() {
    let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
    let one = open(folder.path(), &server.url()).await;
    let two = open(folder.path(), &server.url()).await;
    let third = open(folder.path(), &server.url()).await;
    under_load(vec![one, two], async || {
        let _: String = tokio::task::block_in_place(|| server.run(&["FLUSHALL"]));
        pause(300).await;
        third.close().await.unwrap();
        let _: String = tokio::task::block_in_place(|| server.run(&["FLUSHALL"]));
        pause(300).await;
    })
    .await;
}

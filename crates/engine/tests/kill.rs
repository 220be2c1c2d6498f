//! A process is killed at random moments under load: every answered sale is there afterwards, no id has two effects,
//! and it goes on with the same ids.
//!
//! The test starts itself again as the victim, which says on standard output what it sends and what it was answered.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Rng, Tier, assert_clean, counters};
use stockade::rules::{DoneCode, Status};
use stockade::{Options, Stockade};

const ROUNDS: u64 = 20;
const TASKS: u64 = 16;
const UNITS: u64 = 1_000_000;

/// Where the victim finds its folder and round; without it the victim's test does nothing.
const FOLDER: &str = "STOCKADE_TEST_VICTIM_FOLDER";
const ROUND: &str = "STOCKADE_TEST_VICTIM_ROUND";
/// The victim's Redis, if one decides.
const REDIS: &str = "STOCKADE_TEST_VICTIM_REDIS";

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // One write a line: a pipe takes short ones whole.
    out.write_all(format!("{text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the other test as the process to be killed"]
async fn victim() {
    let (Ok(folder), Ok(round)) = (std::env::var(FOLDER), std::env::var(ROUND)) else {
        return;
    };
    let mut options = Options::new(folder);
    if let Ok(url) = std::env::var(REDIS) {
        options = options.redis(url);
    }
    let store = options.open().await.unwrap();
    say("\nready");
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let (store, round) = (store.clone(), round.clone());
        tasks.spawn(async move {
            for n in 0.. {
                let id = format!("{round}-{task}-{n}");
                say(&format!("sent {id}"));
                if n % 2 == 0 {
                    store.deduct(&id, "u").line("A/1", 1).await.unwrap();
                } else {
                    store.reserve(&id, "u").line("A/1", 1).await.unwrap();
                    say(&format!("held {id}"));
                    store.confirm(&id).await.unwrap();
                }
                say(&format!("sold {id}"));
            }
        });
    }
    tasks.join_all().await;
}

fn start(tier: &Tier, folder: &Path, round: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "victim",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, folder)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Tier::Redis(server) = tier {
        command.env(REDIS, server.url());
    }
    command.spawn().unwrap()
}

/// Runs one victim until it is killed; what it said, by id.
fn kill_one(tier: &Tier, folder: &Path, round: u64, rng: &mut Rng) -> BTreeMap<String, BTreeSet<String>> {
    let mut child = start(tier, folder, round);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = lines.next().expect("the victim never got ready").unwrap();
        if line.ends_with("ready") {
            break;
        }
    }
    let reading = std::thread::spawn(move || {
        let mut said: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in lines.map_while(Result::ok) {
            if let Some((word, id)) = line.split_once(' ') {
                said.entry(id.into()).or_default().insert(word.into());
            }
        }
        said
    });
    std::thread::sleep(Duration::from_micros(rng.below(60_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    reading.join().unwrap()
}

/// How an order stood when its process was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Answered,
    Happened,
    Open,
}

/// Checks what was answered, and goes on with what was not, under the same id, until the order is sold.
async fn check(store: Stockade, id: String, words: BTreeSet<String>) -> Before {
    let found = store.reservation(&id).await;
    if words.contains("sold") {
        assert_eq!(
            found.unwrap().status,
            Status::Confirmed,
            "{id} was answered as sold"
        );
        return Before::Answered;
    }
    if words.contains("held") {
        let status = found.unwrap().status;
        assert!(
            matches!(status, Status::Pending | Status::Confirmed),
            "{id}: {status:?}"
        );
        store.confirm(&id).await.unwrap();
        return if status == Status::Confirmed {
            Before::Happened
        } else {
            Before::Open
        };
    }
    let is_deduct = id.rsplit('-').next().unwrap().parse::<u64>().unwrap() % 2 == 0;
    let again = if is_deduct {
        store.deduct(&id, "u").line("A/1", 1).await.unwrap()
    } else {
        let again = store.reserve(&id, "u").line("A/1", 1).await.unwrap();
        store.confirm(&id).await.unwrap();
        again
    };
    assert_eq!(again.code == DoneCode::Replayed, found.is_ok(), "{id}");
    if found.is_ok() {
        Before::Happened
    } else {
        Before::Open
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_twenty_times_under_load() {
    killed_under_load(&Tier::Memory, ROUNDS).await;
}

/// Redis lives on, and so do soft grants. The dead process's lease has to run out first: a few rounds are enough.
#[tokio::test(flavor = "multi_thread")]
async fn killed_a_few_times_while_redis_decides() {
    killed_under_load(&Tier::redis(), ROUNDS / 5).await;
}

async fn killed_under_load(tier: &Tier, rounds: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(u64::from(std::process::id()));
    let store = tier.open(folder.path()).await;
    store.set_stock("c", "A/1", UNITS).await.unwrap();
    store.close().await.unwrap();
    let (mut sold, mut unanswered, mut redone) = (0_u64, 0_u64, 0_u64);
    for round in 0..rounds {
        let said = kill_one(tier, folder.path(), round, &mut rng);
        let store = tier.open(folder.path()).await;
        let mut checks = tokio::task::JoinSet::new();
        for (id, words) in said.into_iter().filter(|(_, words)| words.contains("sent")) {
            checks.spawn(check(store.clone(), id, words));
        }
        for before in checks.join_all().await {
            sold += 1;
            unanswered += u64::from(before != Before::Answered);
            redone += u64::from(before == Before::Happened);
        }
        let found = counters(&store, "A/1").await;
        assert_eq!(
            (found.sold, found.on_hand, found.reserved),
            (sold, UNITS - sold, 0),
            "round {round}"
        );
        assert_clean(&store).await;
        if round % 2 == 0 {
            store.close().await.unwrap();
        }
    }
    println!("{sold} sold; {unanswered} were unanswered when killed, {redone} of them had happened");
}

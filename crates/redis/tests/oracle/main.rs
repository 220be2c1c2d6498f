//! Random lists of commands with a moving clock, through the rules alone and through Lua on a real Redis: answers,
//! entries and everything stored have to be equal after every merged batch, wherever its borders lie.
//!
//! `STOCKADE_ORACLE_LISTS` and `STOCKADE_ORACLE_SEED` say how many lists and where to begin; a list that fails names its
//! seed. For millions: `STOCKADE_ORACLE_LISTS=1000000 cargo nextest run -p stockade-redis --release oracle`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod generate;
mod ledger;
mod run;
mod state;

use std::time::Duration;

use stockade_redis::{Hot, Options};
use stockade_testkit::redis::Server;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// Lists of this share of the seeds.
async fn lists(share: u64) {
    let server = Server::start();
    let hot = Hot::connect(Options {
        url: server.url(),
        connect_within: Duration::from_secs(20),
        reply_within: Duration::from_secs(60),
        ..Options::default()
    })
    .await
    .unwrap();
    hot.load_scripts().await.unwrap();
    let mut redis = server.admin().unwrap();
    let first = number("STOCKADE_ORACLE_SEED", 1);
    let all = number("STOCKADE_ORACLE_LISTS", 1_000);
    let steps = usize::try_from(number("STOCKADE_ORACLE_STEPS", 40)).unwrap();
    let mut seen = run::Seen::new();
    for seed in (first..first + all).filter(|seed| seed % 2 == share) {
        if let Err(error) = run::run(&hot, &mut redis, seed, steps, &mut seen).await {
            panic!("STOCKADE_ORACLE_SEED={seed} STOCKADE_ORACLE_LISTS=1 shows it again:\n{error}");
        }
    }
    for (what, times) in &seen {
        println!("{times:8} {what}");
    }
}

#[tokio::test]
async fn lua_decides_as_the_rules_do_even_seeds() {
    lists(0).await;
}

#[tokio::test]
async fn lua_decides_as_the_rules_do_odd_seeds() {
    lists(1).await;
}

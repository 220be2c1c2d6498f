//! Many reservations end in one second: when their units are free again, and what other calls wait meanwhile.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stockade::rules::{Action, Mode};
use stockade_testkit::redis::Server;

use super::answers::say;
use super::{open, recorded};
use crate::Failure;
use crate::drive::Bench;
use crate::orders::{Ids, Shape, sku};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Reservations that end in one second.
    #[arg(long, default_value_t = 100_000)]
    ends: u64,
    /// How long after the last grant they end.
    #[arg(long, default_value_t = 25)]
    after_seconds: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let server = Server::start();
    let bench = open(&server.url(), 2)?;
    let end = now_ms()? + args.after_seconds * 1_000;
    let held = Shape {
        ids: Ids::Time,
        skus: 1,
        mode: Mode::Reserve,
        round: 0,
    };
    grant(&bench, held, args.ends, end)?;
    recorded(&bench);
    if now_ms()? + 3_000 > end {
        return Err("granting took longer than --after-seconds; give more".into());
    }
    let quiet = probe(&bench, 1, Instant::now() + Duration::from_secs(2))?;
    while now_ms()? < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    let began = Instant::now();
    let (free, busy) = std::thread::scope(|scope| {
        let probing = scope.spawn(|| probe(&bench, 2, began + Duration::from_secs(3)));
        let free = until_free(&bench, began);
        (free, probing.join())
    });
    let busy = busy.map_err(|_| "the probe panicked")??;
    println!("redis ends: {} reservations end in one second", args.ends);
    say("all units free again after", free?, "s");
    say("other calls before, p50", quiet.0, "ms");
    say("other calls before, p99", quiet.1, "ms");
    say("other calls meanwhile, p50", busy.0, "ms");
    say("other calls meanwhile, p99", busy.1, "ms");
    say("other calls meanwhile, longest", busy.2, "ms");
    bench.close()
}

fn now_ms() -> Result<u64, Failure> {
    Ok(u64::try_from(
        SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis(),
    )?)
}

fn grant(bench: &Bench, shape: Shape, orders: u64, end: u64) -> Result<(), Failure> {
    for first in (0..orders).step_by(2_000) {
        let mut commands = Vec::new();
        for n in first..orders.min(first + 2_000) {
            let mut command = shape.order(n)?;
            if let Action::Reserve(reserve) = &mut command.action {
                // Within the second that ends there.
                let ttl = end.saturating_sub(now_ms()?).saturating_sub(n % 900);
                reserve.ttl_ms = i64::try_from(ttl)?.max(1_000);
            }
            commands.push(command);
        }
        for answer in bench.runtime.block_on(bench.store.submit_many(commands)) {
            answer?;
        }
    }
    Ok(())
}

/// Orders of another SKU, one after the other, until a time: p50, p99 and the longest, in milliseconds.
fn probe(bench: &Bench, round: u64, until: Instant) -> Result<(f64, f64, f64), Failure> {
    let shape = Shape {
        ids: Ids::Time,
        skus: 2,
        mode: Mode::Reserve,
        round,
    };
    let mut took = Vec::new();
    let mut n = 1;
    while Instant::now() < until {
        let began = Instant::now();
        bench.runtime.block_on(bench.store.submit(shape.order(n)?))?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
        n += 2;
    }
    took.sort_by(f64::total_cmp);
    let at = |part: usize| took.get(took.len() * part / 100).copied().unwrap_or(f64::NAN);
    Ok((at(50), at(99), took.last().copied().unwrap_or(f64::NAN)))
}

fn until_free(bench: &Bench, began: Instant) -> Result<f64, Failure> {
    loop {
        let stock = bench
            .runtime
            .block_on(bench.store.stock(sku(0)?.as_str()).into_future())?;
        let reserved: u64 = stock.locations.iter().map(|at| at.counters.reserved).sum();
        if reserved == 0 {
            return Ok(began.elapsed().as_secs_f64());
        }
        if began.elapsed() > Duration::from_secs(60) {
            return Err(format!("{reserved} units are still reserved after a minute").into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

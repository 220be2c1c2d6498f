//! How long a store takes to open with many live reservations.

use std::time::Instant;

use stockade::Options;
use stockade::rules::Mode;

use crate::Failure;
use crate::drive::{Bench, runtime};
use crate::orders::{Ids, Shape};
use crate::rounds::Figures;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Live reservations.
    #[arg(long, default_value_t = 1_000_000)]
    live: u64,
    /// How often it is opened.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let bench = Bench::open(1, 1 << 50)?;
    let shape = Shape {
        ids: Ids::Time,
        skus: 1,
        mode: Mode::Reserve,
        round: 0,
    };
    bench.batches(shape, args.live, 8_000)?;
    let Bench {
        runtime: first,
        store,
        folder,
    } = bench;
    first.block_on(store.close())?;
    drop(store);
    drop(first);
    let mut seconds = Figures::new();
    for _ in 0..args.rounds {
        let runtime = runtime()?;
        let started = Instant::now();
        let store = runtime.block_on(Options::new(folder.path().join("data")).open())?;
        seconds.push(started.elapsed().as_secs_f64());
        let live = u64::try_from(store.health().live)?;
        if live != args.live {
            return Err(format!("{live} live reservations after opening, expected {}", args.live).into());
        }
        runtime.block_on(store.close())?;
    }
    println!(
        "start-up: {} live reservations; seconds to open, median (lowest..highest): {seconds}",
        args.live
    );
    Ok(())
}

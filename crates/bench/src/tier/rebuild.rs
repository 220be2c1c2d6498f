//! Redis has lost everything; the ledger has many live reservations: how long until commands are taken again.

use std::time::Instant;

use stockade::rules::Mode;
use stockade_testkit::redis::Server;

use super::answers::say;
use super::{open, options, recorded};
use crate::Failure;
use crate::orders::{Ids, Shape};
use crate::rounds::Figures;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Live reservations.
    #[arg(long, default_value_t = 1_000_000)]
    live: u64,
    #[arg(long, default_value_t = 3)]
    rounds: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let server = Server::start();
    let bench = open(&server.url(), 1)?;
    let shape = Shape {
        ids: Ids::Time,
        skus: 1,
        mode: Mode::Reserve,
        round: 0,
    };
    bench.batches(shape, args.live, 2_000)?;
    recorded(&bench);
    bench.runtime.block_on(bench.store.close())?;
    let mut seconds = Figures::new();
    for round in 0..args.rounds {
        server.run::<()>(&["FLUSHALL"]);
        let began = Instant::now();
        let data = bench.folder.path().join("data");
        let store = bench.runtime.block_on(options(&data, &server.url()).open())?;
        let one = Shape {
            round: round + 1,
            ..shape
        };
        bench.runtime.block_on(store.submit(one.order(0)?))?;
        seconds.push(began.elapsed().as_secs_f64());
        bench.runtime.block_on(store.close())?;
    }
    println!(
        "redis rebuild: {} live reservations; median (lowest..highest)",
        args.live
    );
    println!("  from opening to the first order: {seconds} s");
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let live = args.live as f64;
    say("reservations a second", live / seconds.median(), "");
    Ok(())
}

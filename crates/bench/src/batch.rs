//! Batches of orders a call, against a bare rusqlite loop with the same tables and indexes.

use stockade::rules::Mode;

use crate::Failure;
use crate::bare;
use crate::drive::Bench;
use crate::orders::{Ids, Shape};
use crate::rounds::Figures;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Orders a run.
    #[arg(long, default_value_t = 1_000_000)]
    orders: u64,
    /// Orders a call, and a transaction of the bare loop.
    #[arg(long, default_value_t = 8_000)]
    size: u64,
    /// Kind of ids.
    #[arg(long, value_enum, default_value = "time")]
    ids: Ids,
    /// Rounds, in alternation.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (mut stockade, mut loops, mut ratio) = (Figures::new(), Figures::new(), Figures::new());
    let shape = Shape {
        ids: args.ids,
        skus: 1,
        mode: Mode::Reserve,
        round: 0,
    };
    for _ in 0..args.rounds {
        let bench = Bench::open(1, 1 << 50)?;
        let ours = bench.batches(shape, args.orders, args.size)?.rate();
        bench.close()?;
        let bare = bare::run(shape, args.orders, args.size)?;
        stockade.push(ours);
        loops.push(bare);
        ratio.push(ours / bare);
    }
    println!(
        "batch: {} orders a call, {:?} ids; orders/s, median (lowest..highest)",
        args.size, args.ids
    );
    println!("  stockade:           {stockade}");
    println!("  bare rusqlite loop: {loops}");
    println!("  ratio:              {ratio}");
    Ok(())
}

//! Orders per second through the library, one order a call, every answer on disk.

use stockade::rules::Mode;

use crate::Failure;
use crate::drive::Bench;
use crate::orders::{Ids, Shape};
use crate::rounds::Figures;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Orders a run; at most 20,000 for each in flight, since one at a time the disk gives some thousands a second.
    #[arg(long, default_value_t = 1_000_000)]
    orders: u64,
    /// Orders in flight.
    #[arg(long, value_delimiter = ',', default_value = "1,64,512,4096")]
    in_flight: Vec<u64>,
    /// Kinds of ids.
    #[arg(long, value_delimiter = ',', default_value = "time,random")]
    ids: Vec<Ids>,
    /// Rounds, in alternation.
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Deduct instead of reserve.
    #[arg(long)]
    deduct: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mode = if args.deduct { Mode::Deduct } else { Mode::Reserve };
    let ways: Vec<(u64, Ids)> = args
        .in_flight
        .iter()
        .flat_map(|&n| args.ids.iter().map(move |&ids| (n, ids)))
        .collect();
    let mut figures = vec![Figures::new(); ways.len()];
    for _ in 0..args.rounds {
        for ((in_flight, ids), figures) in ways.iter().zip(&mut figures) {
            let bench = Bench::open(1, 1 << 50)?;
            let shape = Shape {
                ids: *ids,
                skus: 1,
                mode,
                round: 0,
            };
            let orders = args.orders.min(in_flight * 20_000);
            let run = bench.one_a_call(shape, orders, *in_flight)?;
            figures.push(run.rate());
            bench.close()?;
        }
    }
    println!(
        "library: one order a call, one hot SKU, every answer on disk; orders/s, median (lowest..highest)"
    );
    for ((in_flight, ids), figures) in ways.iter().zip(&figures) {
        println!("  {in_flight:>5} in flight, {ids:?} ids: {figures}");
    }
    Ok(())
}

//! Answers to buyers who come too late, against granted orders in the same run.

use stockade::rules::Mode;

use crate::Failure;
use crate::drive::Bench;
use crate::orders::{Ids, Shape};
use crate::rounds::Figures;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Orders a run.
    #[arg(long, default_value_t = 300_000)]
    orders: u64,
    /// Orders in flight.
    #[arg(long, default_value_t = 512)]
    in_flight: u64,
    /// Rounds, in alternation.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (mut granted, mut sold_out, mut ratio) = (Figures::new(), Figures::new(), Figures::new());
    for _ in 0..args.rounds {
        let shape = Shape {
            ids: Ids::Time,
            skus: 1,
            mode: Mode::Reserve,
            round: 0,
        };
        let bench = Bench::open(1, args.orders)?;
        let first = bench.one_a_call(shape, args.orders, args.in_flight)?;
        let late = Shape { round: 1, ..shape };
        let second = bench.one_a_call(late, args.orders, args.in_flight)?;
        if first.refused != 0 || second.granted != 0 {
            return Err(format!("expected all granted, then none: {first:?}, {second:?}").into());
        }
        granted.push(first.rate());
        sold_out.push(second.rate());
        ratio.push(second.rate() / first.rate());
        bench.close()?;
    }
    println!(
        "sold-out: {} in flight; answers/s, median (lowest..highest)",
        args.in_flight
    );
    println!("  granted:  {granted}");
    println!("  sold out: {sold_out}");
    println!("  ratio:    {ratio}");
    Ok(())
}

//! One SKU that everybody wants against many SKUs.

use stockade::rules::Mode;

use crate::Failure;
use crate::drive::Bench;
use crate::orders::{Ids, Shape};
use crate::rounds::Figures;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Orders a run.
    #[arg(long, default_value_t = 1_000_000)]
    orders: u64,
    /// Orders in flight.
    #[arg(long, default_value_t = 512)]
    in_flight: u64,
    /// How many SKUs the other way has.
    #[arg(long, default_value_t = 1_000)]
    skus: u64,
    /// Alternations.
    #[arg(long, default_value_t = 9)]
    rounds: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (mut hot, mut many, mut ratio) = (Figures::new(), Figures::new(), Figures::new());
    for round in 0..args.rounds {
        // Each way goes first in every other round, so that neither always finds the warmer machine.
        let ways = if round % 2 == 0 {
            [1, args.skus]
        } else {
            [args.skus, 1]
        };
        let mut rates = [0.0; 2];
        for (skus, rate) in ways.iter().zip(&mut rates) {
            let bench = Bench::open(*skus, 1 << 40)?;
            let shape = Shape {
                ids: Ids::Time,
                skus: *skus,
                mode: Mode::Reserve,
                round: 0,
            };
            *rate = bench.one_a_call(shape, args.orders, args.in_flight)?.rate();
            bench.close()?;
        }
        if round % 2 == 1 {
            rates.swap(0, 1);
        }
        hot.push(rates[0]);
        many.push(rates[1]);
        ratio.push(rates[0] / rates[1]);
    }
    println!(
        "hot: {} in flight; orders/s, median (lowest..highest)",
        args.in_flight
    );
    println!("  one hot SKU: {hot}");
    println!("  {} SKUs:  {many}", args.skus);
    println!("  ratio:       {ratio}");
    Ok(())
}

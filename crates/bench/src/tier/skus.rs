//! One hot SKU against many on Redis, how long a script runs, and what a live reservation takes there.

use stockade::rules::Mode;
use stockade_testkit::redis::Server;

use super::answers::say;
use super::{open, recorded, server};
use crate::Failure;
use crate::orders::{Ids, Shape};
use crate::rounds::Figures;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Orders a run.
    #[arg(long, default_value_t = 200_000)]
    orders: u64,
    #[arg(long, default_value_t = 256)]
    callers: u64,
    /// How many SKUs the other way has.
    #[arg(long, default_value_t = 1_000)]
    skus: u64,
    #[arg(long, default_value_t = 9)]
    rounds: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (mut hot, mut many, mut ratio) = (Figures::new(), Figures::new(), Figures::new());
    let (mut half, mut most, mut bytes) = (Figures::new(), Figures::new(), Figures::new());
    for round in 0..args.rounds {
        let mut ways = [1, args.skus];
        if round % 2 == 1 {
            ways.reverse();
        }
        let mut rates = [0.0; 2];
        for (skus, rate) in ways.iter().zip(&mut rates) {
            let server = Server::start();
            let bench = open(&server.url(), *skus)?;
            let shape = Shape {
                ids: Ids::Time,
                skus: *skus,
                mode: Mode::Reserve,
                round: 0,
            };
            // Warm: scripts loaded, every SKU held.
            bench.one_a_call(Shape { round: 1, ..shape }, args.skus * 2, args.callers)?;
            recorded(&bench);
            server.run::<()>(&["CONFIG", "RESETSTAT"]);
            let before = server::info(&server, "memory", "used_memory")?;
            *rate = bench.one_a_call(shape, args.orders, args.callers)?.rate();
            recorded(&bench);
            if *skus == 1 {
                let (p50, p99) = server::script_us(&server)?;
                half.push(p50);
                most.push(p99);
                // Trimming follows recording: the outbox shrinks to its base.
                let key = "{stockade:0}";
                trimmed(&server, key);
                #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
                let orders = args.orders as f64;
                bytes.push((server::info(&server, "memory", "used_memory")? - before) / orders);
            }
            bench.close()?;
        }
        if round % 2 == 1 {
            rates.reverse();
        }
        hot.push(rates[0]);
        many.push(rates[1]);
        ratio.push(rates[0] / rates[1]);
    }
    println!("redis skus: {} callers; median (lowest..highest)", args.callers);
    println!("  one hot SKU: {hot} orders/s");
    println!("  {} SKUs:  {many} orders/s", args.skus);
    println!("  ratio:       {ratio}");
    say("script calls, median", half.median(), "us");
    println!("  script calls, p99: {most} us");
    println!("  Redis memory a live reservation, outbox trimmed: {bytes} bytes");
    Ok(())
}

/// Waits until the outbox holds next to nothing.
fn trimmed(server: &Server, tag: &str) {
    loop {
        let keys: Vec<String> = server.run(&["KEYS", &format!("{tag}*:outbox")]);
        let left: u64 = keys.iter().map(|key| server.run::<u64>(&["XLEN", key])).sum();
        if left <= 1 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

//! One hot SKU, one order a call: the tier against the bare script, called the way shops do (a connection for each
//! caller) and on one multiplexed connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use stockade::rules::Mode;
use stockade_testkit::redis::Server;

use super::{open, recorded, server};
use crate::Failure;
use crate::drive::runtime;
use crate::orders::{Ids, Shape};
use crate::rounds::{Figures, short};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Callers, each with one order in flight.
    #[arg(long, value_delimiter = ',', default_value = "16,64,256,1024")]
    callers: Vec<u64>,
    /// Orders a run.
    #[arg(long, default_value_t = 200_000)]
    orders: u64,
    #[arg(long, default_value_t = 5)]
    rounds: u64,
}

/// What one run gave.
struct Taken {
    rate: f64,
    server_us: f64,
    recorded_rate: Option<f64>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    println!("redis answers: one hot SKU, one order a call; median (lowest..highest)");
    for &callers in &args.callers {
        let names = ["stockade", "bare, a connection each", "bare, one connection"];
        let mut rates = [Figures::new(), Figures::new(), Figures::new()];
        let mut costs = [Figures::new(), Figures::new(), Figures::new()];
        let (mut to_pool, mut to_one, mut ledger) = (Figures::new(), Figures::new(), Figures::new());
        for round in 0..args.rounds {
            let mut order = [0, 1, 2];
            if round % 2 == 1 {
                order.reverse();
            }
            let mut found = [0.0; 3];
            for way in order {
                let server = Server::start();
                let taken = match way {
                    0 => tier(&server, args.orders, callers)?,
                    1 => bare(&server, args.orders, callers, false)?,
                    _ => bare(&server, args.orders, callers, true)?,
                };
                found[way] = taken.rate;
                rates[way].push(taken.rate);
                costs[way].push(taken.server_us);
                if let Some(rate) = taken.recorded_rate {
                    ledger.push(rate);
                }
            }
            to_pool.push(found[0] / found[1]);
            to_one.push(found[0] / found[2]);
        }
        println!("  {callers} callers");
        for ((name, rates), costs) in names.iter().zip(&rates).zip(&costs) {
            println!("    {name:26} {rates:>28} orders/s, {costs} us of the server an order");
        }
        println!("    of a connection each: {to_pool}; of one connection: {to_one}");
        println!("    recorded, from the first order to the last commit: {ledger} orders/s");
    }
    Ok(())
}

fn tier(server: &Server, orders: u64, callers: u64) -> Result<Taken, Failure> {
    let bench = open(&server.url(), 1)?;
    let shape = Shape {
        ids: Ids::Time,
        skus: 1,
        mode: Mode::Reserve,
        round: 0,
    };
    let (before, began) = (server::processor_seconds(server)?, Instant::now());
    let run = bench.one_a_call(shape, orders, callers)?;
    if run.refused > 0 {
        return Err(format!("{} orders were refused", run.refused).into());
    }
    let used = server::processor_seconds(server)? - before;
    recorded(&bench);
    let whole = began.elapsed().as_secs_f64();
    bench.close()?;
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let orders = orders as f64;
    Ok(Taken {
        rate: run.rate(),
        server_us: used / orders * 1e6,
        recorded_rate: Some(orders / whole),
    })
}

fn bare(server: &Server, orders: u64, callers: u64, shared: bool) -> Result<Taken, Failure> {
    server.run::<()>(&["SET", "stock:1", "9000000000"]);
    let sha: String = server.run(&["SCRIPT", "LOAD", include_str!("../lua/bare.lua")]);
    let (runtime, sha) = (runtime()?, Arc::<str>::from(sha));
    let client = redis::Client::open(server.url())?;
    let mut connections = Vec::new();
    for _ in 0..if shared { 1 } else { callers } {
        connections.push(runtime.block_on(client.get_multiplexed_async_connection())?);
    }
    let next = Arc::new(AtomicU64::new(0));
    let (before, began) = (server::processor_seconds(server)?, Instant::now());
    let tasks: Vec<_> = (0..callers)
        .zip(connections.iter().cycle())
        .map(|(_, connection)| {
            let call = one_after_another(connection.clone(), sha.clone(), next.clone(), orders);
            runtime.spawn(call)
        })
        .collect();
    for task in tasks {
        runtime.block_on(task)??;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let orders = orders as f64;
    let rate = orders / began.elapsed().as_secs_f64();
    let used = server::processor_seconds(server)? - before;
    Ok(Taken {
        rate,
        server_us: used / orders * 1e6,
        recorded_rate: None,
    })
}

async fn one_after_another(
    mut connection: MultiplexedConnection,
    sha: Arc<str>,
    next: Arc<AtomicU64>,
    orders: u64,
) -> Result<(), Failure> {
    while next.fetch_add(1, Ordering::Relaxed) < orders {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&*sha).arg(1).arg("stock:1").arg(1);
        let reply = connection.req_packed_command(&command).await?;
        if !matches!(reply, redis::Value::Int(left) if left >= 0) {
            return Err(format!("refused: {reply:?}").into());
        }
    }
    Ok(())
}

/// For the other measurements: a figure with its unit.
pub(super) fn say(what: &str, value: f64, unit: &str) {
    println!("  {what:52} {} {unit}", short(value));
}

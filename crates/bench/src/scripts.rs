//! The scripts that work alone, beside the bare four-line script, on a private Redis. All ways take turns in each round, on one server and one connection each, so that what the machine does besides hits
//! all of them; ratios are taken within a round and their median is told.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::aio::{ConnectionLike, ConnectionManager};
use stockade_scripts::scripts::{
    Deduct, DeductOnce, DelayAck, DelayAdd, DelayClaim, HoldKeys, IntervalLimit, Lock, QueueKeys, Reserve,
    SaleKeys, Seckill, TokenBucket, Unlock,
};
use stockade_scripts::{Scripts, connect};
use stockade_testkit::redis::Server;

use crate::Failure;
use crate::rounds::Figures;

type Connected = Scripts<ConnectionManager>;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Tasks that call at the same time, over one connection.
    #[arg(long, default_value_t = 256)]
    tasks: usize,
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// How long each way runs in each round.
    #[arg(long, default_value_t = 700)]
    millis: u64,
}

/// A way to do it: its name, and how often it goes to the server for one operation.
struct Way {
    name: &'static str,
    round_trips: u32,
    /// Compared with the bare script.
    compared: bool,
    rates: Vec<f64>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure(args))
}

async fn measure(args: &Args) -> Result<(), Failure> {
    let server = Server::start();
    let way = |name, round_trips, compared| Way {
        name,
        round_trips,
        compared,
        rates: Vec::new(),
    };
    let mut ways = [
        way("bare script", 1, true),
        way("deduct", 1, true),
        way("deduct_once", 1, true),
        way("reserve", 1, true),
        way("seckill", 1, true),
        way("lock + unlock", 2, false),
        way("interval_limit", 1, false),
        way("token_bucket", 1, false),
        way("delay add + claim + ack", 3, false),
    ];
    for round in 0..args.rounds {
        // Every second round goes backwards, so that no way always follows the same one.
        let mut order: Vec<usize> = (0..ways.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            server.run::<()>(&["FLUSHALL"]);
            server.run::<()>(&["SET", "stock:1", "9000000000"]);
            let scripts = connect::single(&server.url(), Duration::from_secs(30)).await?;
            let rate = one(at, args, &scripts).await?;
            if let Some(way) = ways.get_mut(at) {
                way.rates.push(rate);
            }
        }
    }
    report(args, &ways);
    Ok(())
}

async fn one(at: usize, args: &Args, scripts: &Connected) -> Result<f64, Failure> {
    let holds = Arc::new(HoldKeys::of("stock:1")?);
    let sale = Arc::new(SaleKeys::of("stock:1")?);
    let queue = Arc::new(QueueKeys::of("queue:1")?);
    match at {
        0 => {
            let bare: String = redis::cmd("SCRIPT")
                .arg("LOAD")
                .arg(include_str!("lua/bare.lua"))
                .query_async(&mut scripts.connection())
                .await?;
            let bare = Arc::new(bare);
            drive(args, scripts, move |scripts, _| {
                let bare = Arc::clone(&bare);
                async move {
                    let mut command = redis::cmd("EVALSHA");
                    command.arg(&*bare).arg(1).arg("stock:1").arg(1);
                    let reply = scripts.connection().req_packed_command(&command).await?;
                    if matches!(reply, redis::Value::Int(left) if left >= 0) {
                        Ok(())
                    } else {
                        Err("refused".into())
                    }
                }
            })
            .await
        }
        1 => {
            drive(args, scripts, |scripts, _| async move {
                scripts
                    .run(&Deduct {
                        stock: "stock:1",
                        quantity: 1,
                    })
                    .await?;
                Ok(())
            })
            .await
        }
        2 => {
            drive(args, scripts, |scripts, id| async move {
                let order = format!("{{stock:1}}:order:{id}");
                let call = DeductOnce {
                    stock: "stock:1",
                    order: &order,
                    quantity: 1,
                    keep_ms: 600_000,
                };
                scripts.run(&call).await?;
                Ok(())
            })
            .await
        }
        3 => {
            drive(args, scripts, move |scripts, id| {
                let keys = Arc::clone(&holds);
                async move {
                    let order = id.to_string();
                    let (ttl_ms, keep_ms) = (600_000, 600_000);
                    let call = Reserve {
                        keys: &keys,
                        order: &order,
                        quantity: 1,
                        ttl_ms,
                        keep_ms,
                        now_ms: None,
                    };
                    scripts.run(&call).await?;
                    Ok(())
                }
            })
            .await
        }
        4 => {
            drive(args, scripts, move |scripts, id| {
                let keys = Arc::clone(&sale);
                async move {
                    let id = id.to_string();
                    scripts
                        .run(&Seckill {
                            keys: &keys,
                            order: &id,
                            user: &id,
                            limit: 1,
                        })
                        .await?;
                    Ok(())
                }
            })
            .await
        }
        5 => {
            drive(args, scripts, |scripts, id| async move {
                // A lock of its own for each: what is measured is the lock, not the waiting.
                let name = format!("lock:{}", id % 1000);
                let (fence, owner) = (format!("{{{name}}}:fence"), id.to_string());
                scripts
                    .run(&Lock {
                        lock: &name,
                        fence: &fence,
                        owner: &owner,
                        ttl_ms: 30_000,
                    })
                    .await?;
                scripts
                    .run(&Unlock {
                        lock: &name,
                        owner: &owner,
                    })
                    .await?;
                Ok(())
            })
            .await
        }
        6 => {
            drive(args, scripts, |scripts, id| async move {
                let calls = format!("limit:{}", id % 1000);
                let call = IntervalLimit {
                    calls: &calls,
                    limit: 100,
                    interval_ms: 1000,
                    now_ms: None,
                };
                scripts.run(&call).await?;
                Ok(())
            })
            .await
        }
        7 => {
            drive(args, scripts, |scripts, id| async move {
                let bucket = format!("bucket:{}", id % 1000);
                let (capacity, refill, period_ms) = (100, 100, 1000);
                let call = TokenBucket {
                    bucket: &bucket,
                    capacity,
                    refill,
                    period_ms,
                    cost: 1,
                    now_ms: None,
                };
                scripts.run(&call).await?;
                Ok(())
            })
            .await
        }
        _ => {
            drive(args, scripts, move |scripts, id| {
                let keys = Arc::clone(&queue);
                async move {
                    let id = id.to_string();
                    scripts
                        .run(&DelayAdd {
                            keys: &keys,
                            id: &id,
                            at_ms: 0,
                            payload: b"{\"order\":1}",
                        })
                        .await?;
                    let (visibility_ms, tries_max) = (30_000, 16);
                    let claim = DelayClaim {
                        keys: &keys,
                        limit: 1,
                        visibility_ms,
                        tries_max,
                        now_ms: None,
                    };
                    for job in scripts.run(&claim).await?.claims {
                        scripts
                            .run(&DelayAck {
                                keys: &keys,
                                id: &job.id,
                                attempt: job.attempt,
                            })
                            .await?;
                    }
                    Ok(())
                }
            })
            .await
        }
    }
}

/// Operations a second of all tasks together.
async fn drive<F, W>(args: &Args, scripts: &Connected, operation: F) -> Result<f64, Failure>
where
    F: Fn(Connected, u64) -> W + Clone + Send + 'static,
    W: Future<Output = Result<(), Failure>> + Send,
{
    let (over, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let start = Instant::now();
    let tasks: Vec<_> = (0..args.tasks)
        .map(|_| {
            let (operation, scripts) = (operation.clone(), scripts.clone());
            let (over, next) = (Arc::clone(&over), Arc::clone(&next));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    operation(scripts.clone(), next.fetch_add(1, Ordering::Relaxed)).await?;
                }
                Ok::<(), Failure>(())
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(args.millis)).await;
    over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await??;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let done = next.load(Ordering::Relaxed) as f64;
    Ok(done / start.elapsed().as_secs_f64())
}

fn report(args: &Args, ways: &[Way]) {
    println!(
        "{} tasks, one connection, {} rounds of {} ms each: median (lowest..highest)",
        args.tasks, args.rounds, args.millis
    );
    println!(
        "{:26} {:>28} {:>12}   of the bare script",
        "", "operations/s", "round trips"
    );
    let bare = ways.first().map(|way| way.rates.clone()).unwrap_or_default();
    for way in ways {
        let (mut rates, mut ratios) = (Figures::new(), Figures::new());
        for (rate, bare) in way.rates.iter().zip(&bare) {
            rates.push(*rate);
            ratios.push(rate / bare);
        }
        let ratio = if way.compared {
            ratios.to_string()
        } else {
            String::new()
        };
        println!(
            "{:26} {:>28} {:>12}   {ratio}",
            way.name,
            rates.to_string(),
            way.round_trips
        );
    }
}

//! What an order costs the server: microseconds of its processor in the scripts, and bytes a live reservation.
//!
//! `cargo run --release -p stockade-redis --example cost [ORDERS] [BATCH] [SKUS]` starts a private Redis and prints both.
//! Ids have 24 bytes, owners 12; everything is counted: ids, ends, the outbox (which is trimmed as if a recorder ran).
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on stops")]
#![expect(
    clippy::cast_precision_loss,
    reason = "counts of commands stay far below 2^52"
)]

use std::time::Instant;

use stockade_core::{
    Action, Cancel, Command, Confirm, Id, LateConfirm, Mode, Position, Reason, Reserve, SkuRecord,
};
use stockade_core::{AskLine, Counters, LocationRecord, Settings};
use stockade_redis::{Asked, Base, Chunk, Decided, Hot, Options, Sent, Verdict};
use stockade_testkit::redis::Server;

const EPOCH: u64 = 1;

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

fn sku(number: usize) -> SkuRecord {
    SkuRecord {
        tenant: Id::default_name(),
        sku: id(&format!("SKU-{number:04}")),
        revision: 1,
        settings: Settings::default(),
        locations: vec![LocationRecord {
            location: Id::default_name(),
            counters: Counters {
                on_hand: 1 << 40,
                version: 1,
                ..Counters::default()
            },
        }],
    }
}

fn command(action: Action) -> Command {
    Command {
        tenant: Id::default_name(),
        actor: id("http"),
        action,
    }
}

fn order(number: usize) -> Id {
    id(&format!("order-{number:018}"))
}

fn reserve(number: usize, skus: usize, mode: Mode) -> Command {
    let line = AskLine {
        sku: id(&format!("SKU-{:04}", number % skus)),
        quantity: 1,
        location: None,
        if_revision: None,
    };
    command(Action::Reserve(Reserve {
        id: order(number),
        owner: id(&format!("user-{number:07}")),
        mode,
        ttl_ms: 900_000,
        lines: [line].into_iter().collect(),
        supersedes: None,
    }))
}

struct Bench {
    server: Server,
    hot: Hot,
    tip: Position,
}

impl Bench {
    /// Microseconds in scripts so far, and commands inside of them are a part of it.
    fn script_micros(&self) -> f64 {
        let info: String = self.server.run(&["INFO", "commandstats"]);
        let of = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name))?;
            line.split(',')
                .find_map(|field| field.strip_prefix("usec="))?
                .parse::<f64>()
                .ok()
        };
        of("cmdstat_evalsha:").unwrap_or(0.0) + of("cmdstat_eval:").unwrap_or(0.0)
    }

    /// Microseconds of processor time of the server's main thread so far: everything, reading and answering included.
    fn processor_micros(&self) -> f64 {
        let info: String = self.server.run(&["INFO", "cpu"]);
        let of = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse::<f64>().ok()
        };
        let seconds =
            of("used_cpu_user_main_thread:").unwrap_or(0.0) + of("used_cpu_sys_main_thread:").unwrap_or(0.0);
        seconds * 1e6
    }

    fn memory(&self) -> f64 {
        let info: String = self.server.run(&["INFO", "memory"]);
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        line.unwrap().trim().parse().unwrap()
    }

    async fn send(&mut self, commands: &[Command]) {
        let asked: Vec<Asked<'_>> = commands
            .iter()
            .map(|command| Asked {
                command,
                known: &[],
                absent: &[],
            })
            .collect();
        let sent = Sent {
            epoch: EPOCH,
            tag: self.tip.seq + 7,
            now: None,
            late_confirm: LateConfirm::Revive,
        };
        match self.hot.decide(&sent, &asked).await.unwrap() {
            Decided::Done { tip, value, .. } => {
                self.tip = tip;
                let first = &value.verdicts[0];
                assert!(
                    matches!(first, Verdict::Reply(stockade_core::Reply::Done(_))),
                    "{first:?}"
                );
            }
            Decided::Stale(stale) => panic!("{stale:?}"),
        }
    }

    /// Sends everything in batches; microseconds of script time a command.
    async fn all(&mut self, name: &str, batch: usize, orders: usize, make: impl Fn(usize) -> Command) {
        let (before, begun) = (self.script_micros(), Instant::now());
        let processor = self.processor_micros();
        let mut trimmed = Instant::now();
        let mut number = 0;
        while number < orders {
            let commands: Vec<Command> = (number..orders.min(number + batch)).map(&make).collect();
            self.send(&commands).await;
            number += batch;
            if trimmed.elapsed().as_millis() > 100 || number >= orders {
                // The recorder's part, which is measured elsewhere.
                self.hot.trim(self.tip).await.unwrap();
                trimmed = Instant::now();
            }
        }
        let micros = (self.script_micros() - before) / orders as f64;
        let all = (self.processor_micros() - processor) / orders as f64;
        println!(
            "{name}: {micros:.2} us in scripts, {all:.2} us of processor time in all, a command in batches of {batch} \
             ({orders} in {:?})",
            begun.elapsed()
        );
    }
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::cast_precision_loss, reason = "figures of three digits")]
async fn main() {
    let mut args = std::env::args()
        .skip(1)
        .map(|text| text.parse::<usize>().unwrap());
    let orders = args.next().unwrap_or(200_000);
    let batch = args.next().unwrap_or(64);
    let skus = args.next().unwrap_or(1);
    let server = Server::start();
    let hot = Hot::connect(Options {
        url: server.url(),
        ..Options::default()
    })
    .await
    .unwrap();
    hot.load_scripts().await.unwrap();
    let at = Position {
        epoch: EPOCH,
        seq: 0,
        tag: 0,
    };
    hot.fence(EPOCH).await.unwrap();
    hot.base(&Base { at, clock: 0 }).await.unwrap();
    let chunk = Chunk {
        skus: (0..skus).map(sku).collect(),
        ..Chunk::default()
    };
    assert!(hot.chunk(EPOCH, 1, &chunk).await.unwrap());
    assert!(hot.open(EPOCH, 1).await.unwrap());
    let mut bench = Bench { server, hot, tip: at };
    let empty = bench.memory();
    bench
        .all("reserve", batch, orders, |n| reserve(n, skus, Mode::Reserve))
        .await;
    println!(
        "{:.0} bytes a live reservation",
        (bench.memory() - empty) / orders as f64
    );
    bench
        .all("replay", batch, orders / 4, |n| reserve(n, skus, Mode::Reserve))
        .await;
    bench
        .all("confirm", batch, orders / 2, |n| {
            command(Action::Confirm(Confirm {
                id: order(n),
                lines: None,
                payload: None,
            }))
        })
        .await;
    bench
        .all("cancel", batch, orders / 2, |n| {
            command(Action::Cancel(Cancel {
                id: order(orders / 2 + n),
                reason: Reason::default(),
            }))
        })
        .await;
    bench
        .all("deduct", batch, orders / 2, |n| {
            reserve(orders + n, skus, Mode::Deduct)
        })
        .await;
    bench
        .all("show", batch, orders / 4, |n| {
            command(Action::ShowReservation { id: order(n) })
        })
        .await;
}

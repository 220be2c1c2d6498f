//! The hot tier on Redis, measured on a private server: against the bare four-line script, across SKUs, its memory, its
//! rebuild, ends that come all at once, and two processes.

mod answers;
mod ends;
mod processes;
mod rebuild;
mod server;
mod skus;

use clap::Subcommand;
use stockade::Options;

use crate::Failure;
use crate::drive::Bench;

pub(crate) use processes::Work;

/// How far the ledger may lag behind in these measurements: what is measured is how fast Redis answers, and the rate of
/// recording is stated beside it.
const BACKLOG_COMMANDS: usize = 16_000_000;
const BACKLOG_WITHIN: std::time::Duration = std::time::Duration::from_secs(600);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// One hot SKU, answered by Redis while the ledger records, against the bare script.
    Answers(answers::Args),
    /// One hot SKU against many; the time of a script; memory of a live reservation.
    Skus(skus::Args),
    /// Opening on an empty Redis with many live reservations in the ledger.
    Rebuild(rebuild::Args),
    /// Many reservations that end in one second.
    Ends(ends::Args),
    /// Two service processes against one.
    Processes(processes::Args),
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Answers(args) => answers::run(args),
        What::Skus(args) => skus::run(args),
        What::Rebuild(args) => rebuild::run(args),
        What::Ends(args) => ends::run(args),
        What::Processes(args) => processes::run(args),
    }
}

/// Options with the hot tier on that server.
fn options(folder: &std::path::Path, url: &str) -> Options {
    let mut options = Options::new(folder).redis(url);
    options.backlog_commands = BACKLOG_COMMANDS;
    if let Some(redis) = &mut options.redis {
        redis.backlog_within = BACKLOG_WITHIN;
    }
    options
}

/// A store on that server, with `skus` SKUs.
fn open(url: &str, skus: u64) -> Result<Bench, Failure> {
    Bench::open_with(|folder| options(folder, url), skus, 1 << 40)
}

/// Waits until everything decided is recorded.
fn recorded(bench: &Bench) {
    while {
        let health = bench.store.health();
        health.recorded < health.decided.seq
    } {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

//! The measurements of Stockade. Each compares ways in one run, in alternation, and prints medians with their spread;
//! docs/performance.md quotes them with their commands.

mod bare;
mod batch;
mod constant;
mod drive;
mod hot;
mod http;
mod library;
mod memory;
mod orders;
mod rounds;
mod scripts;
mod sold_out;
mod start_up;
mod tier;
mod wire;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

// The same allocator as the binary `stockade`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What can go wrong in a measurement: all of it ends the run with a message.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Parser)]
#[command(
    name = "stockade-bench",
    about = "Measurements of Stockade; see docs/performance.md"
)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Orders per second through the library, one order a call, by orders in flight and kind of ids.
    Library(library::Args),
    /// Batches of orders a call, against a bare rusqlite loop with the same tables.
    Batch(batch::Args),
    /// One hot SKU against many SKUs.
    Hot(hot::Args),
    /// Sold-out answers against granted orders.
    SoldOut(sold_out::Args),
    /// HTTP against the same stack answering a constant.
    Http(http::Args),
    /// Resident memory, idle and for each further live reservation.
    Memory(memory::Args),
    /// The scripts that work alone, against the bare four-line script.
    Scripts(scripts::Args),
    /// Start-up with many live reservations.
    StartUp(start_up::Args),
    /// The hot tier on Redis, on a private server.
    Redis(tier::Args),
    /// One process of a measurement with several.
    #[command(hide = true)]
    Worker(tier::Work),
    /// The server that answers a constant.
    #[command(hide = true)]
    Constant,
    /// All of them with their defaults, one after the other.
    All,
}

fn main() -> ExitCode {
    let what = Cli::parse().what;
    match run(what) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("stockade-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(what: What) -> Result<(), Failure> {
    match what {
        What::Library(args) => library::run(&args),
        What::Batch(args) => batch::run(&args),
        What::Hot(args) => hot::run(&args),
        What::SoldOut(args) => sold_out::run(&args),
        What::Http(args) => http::run(&args),
        What::Memory(args) => memory::run(&args),
        What::Scripts(args) => scripts::run(&args),
        What::StartUp(args) => start_up::run(&args),
        What::Redis(args) => tier::run(&args),
        What::Worker(work) => work.run(),
        What::Constant => constant::run(),
        What::All => {
            library::run(&defaults()?)?;
            batch::run(&defaults()?)?;
            hot::run(&defaults()?)?;
            sold_out::run(&defaults()?)?;
            http::run(&defaults()?)?;
            memory::run(&defaults()?)?;
            scripts::run(&defaults()?)?;
            start_up::run(&defaults()?)
        }
    }
}

/// The arguments that a subcommand has when none are given.
fn defaults<A: clap::Args + clap::FromArgMatches>() -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("defaults"));
    A::from_arg_matches(&command.get_matches_from(["defaults"]))
}

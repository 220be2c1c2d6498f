//! Resident memory of a store: idle, and for each further live reservation.

use std::fs;

use stockade::rules::Mode;

use crate::Failure;
use crate::drive::Bench;
use crate::orders::{Ids, Shape};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Live reservations before the measurement, so that pools and caches are filled.
    #[arg(long, default_value_t = 250_000)]
    warm: u64,
    /// Further live reservations that are measured.
    #[arg(long, default_value_t = 1_000_000)]
    further: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let bench = Bench::open(1, 1 << 50)?;
    let idle = resident_bytes()?;
    let shape = Shape {
        ids: Ids::Time,
        skus: 1,
        mode: Mode::Reserve,
        round: 0,
    };
    bench.one_a_call(shape, args.warm, 512)?;
    let before = resident_bytes()?;
    bench.one_a_call(Shape { round: 1, ..shape }, args.further, 512)?;
    let after = resident_bytes()?;
    println!("memory: resident, one process with the library; ids of 24 bytes, owners of 12, one line");
    println!("  idle:                             {} MiB", idle >> 20);
    println!(
        "  with {} live reservations: {} MiB",
        args.warm + args.further,
        after >> 20
    );
    println!(
        "  each further live reservation:    {} bytes",
        after.saturating_sub(before) / args.further
    );
    bench.close()
}

/// What the kernel counts as resident for this process.
pub(crate) fn resident_bytes() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find(|l| l.starts_with("VmRSS:"))
        .ok_or("no VmRSS in /proc/self/status")?;
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .ok_or("no figure after VmRSS")?
        .parse()?;
    Ok(kib * 1024)
}

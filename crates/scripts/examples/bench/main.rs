//! Measures the scripts against the bare four-line one on a private server:
//! `cargo run --release -p stockade-scripts --example bench`.

mod measure;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match measure::run(&measure::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

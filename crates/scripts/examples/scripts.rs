//! The `scripts` subcommands as a program of their own: `cargo run -p stockade-scripts --example scripts -- list`.

use std::process::ExitCode;

use clap::Parser;
use stockade_scripts::cli::{ScriptsArgs, run};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    scripts: ScriptsArgs,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Program::parse().scripts, &mut std::io::stdout().lock()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}

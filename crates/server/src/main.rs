//! The one binary: the service, the command line against it, and the drills.

mod cli;
mod drill;
mod gate;
mod http;
mod keys;
mod load;
mod pieces;
mod rush;
mod seen;
mod serve;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

// Answers are made on one thread and dropped on another, which costs the system's allocator most.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXIT_CODES: &str = "Exit codes: 0 done; 1 refused, or something was found; 2 wrong usage or configuration; \
3 the service cannot be reached, or it is not known whether the command was done (send it again with the same id).";

/// Deducts stock under flash-sale load and never sells what is not there.
#[derive(Debug, Parser)]
#[command(name = "stockade", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service.
    Serve(Box<serve::Args>),
    /// Read and change stock.
    #[command(subcommand)]
    Stock(cli::stock::Stock),
    /// Reserve, deduct, and everything that happens to a reservation.
    #[command(subcommand)]
    Reservation(cli::reservation::Reservation),
    /// Who changed what and why, newest first.
    Movements(Box<cli::movements::Args>),
    /// What happens, as it is recorded: one JSON object a line.
    Events(Box<cli::events::Args>),
    /// Compare what decides with what is recorded, and that with its own history.
    Audit(cli::audit::Args),
    Backup(cli::backup::BackupArgs),
    Restore(cli::backup::RestoreArgs),
    Doctor(cli::doctor::Args),
    /// API keys: make, list, revoke.
    #[command(subcommand)]
    Key(keys::command::KeyCommand),
    /// How the service is set up.
    #[command(subcommand)]
    Config(serve::show::ConfigCommand),
    /// Print what makes a shell complete this program's commands and flags.
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
    Rush(rush::Args),
    /// The Redis scripts that work alone: list, show, export, load, test, run.
    Scripts(stockade_scripts::cli::ScriptsArgs),
    Drill(drill::Args),
}

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match cli.command {
        Command::Serve(args) => {
            let unknown = serve::show::unknown_variables(&Cli::command());
            on_all_cores(serve::run(*args, unknown))
        }
        Command::Stock(command) => on_all_cores(cli::stock::run(command)),
        Command::Reservation(command) => on_all_cores(cli::reservation::run(command)),
        Command::Movements(args) => on_all_cores(cli::movements::run(*args)),
        Command::Events(args) => on_all_cores(cli::events::run(*args)),
        Command::Audit(args) => on_all_cores(cli::audit::run(args)),
        Command::Backup(args) => on_all_cores(cli::backup::backup(args)),
        Command::Restore(args) => cli::backup::restore(&args),
        Command::Doctor(args) => on_all_cores(cli::doctor::run(args)),
        Command::Key(command) => keys::command::run(command),
        Command::Config(serve::show::ConfigCommand::Show(args)) => {
            let matches = inner(&matches, &["config", "show"]);
            serve::show::run(&args, matches, &Cli::command())
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "stockade", &mut script);
            cli::ended(cli::output::line(&String::from_utf8_lossy(&script)))
        }
        // The drills share the machine with the service that they drive: they make do with one thread of their own.
        Command::Rush(args) => rush::run(&args),
        Command::Scripts(args) => on_all_cores(scripts(args)),
        Command::Drill(args) => drill::run(&args),
    }
}

/// What was given to a command within commands.
fn inner<'m>(matches: &'m ArgMatches, path: &[&str]) -> Option<&'m ArgMatches> {
    path.iter()
        .try_fold(matches, |matches, name| matches.subcommand_matches(name))
}

async fn scripts(args: stockade_scripts::cli::ScriptsArgs) -> ExitCode {
    match stockade_scripts::cli::run(args, &mut std::io::stdout()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn on_all_cores(work: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start threads: {error}");
            return ExitCode::from(1);
        }
    };
    let code = runtime.block_on(work);
    // Whatever still waits on a thread of its own must not hold the exit.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    code
}

//! The command line against a running service: it speaks HTTP like everybody else.

pub(crate) mod audit;
pub(crate) mod backup;
mod client;
mod connect;
pub(crate) mod doctor;
pub(crate) mod events;
mod export;
mod folder;
mod import;
pub(crate) mod movements;
pub(crate) mod output;
mod repair;
pub(crate) mod reservation;
pub(crate) mod stock;
mod stream;
pub(crate) mod value;

use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use client::AGENT;

use crate::keys::Secret;

/// Where the service is, and how to show its answers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Service {
    /// The service's address.
    #[arg(
        long,
        env = "STOCKADE_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:7077"
    )]
    pub(crate) url: String,
    /// Print the service's JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
    /// Of an https address: the certificates (PEM) of those whose signature is trusted, instead of the machine's own.
    #[arg(long, env = "STOCKADE_CA", value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// How long to wait for one answer. Without one, the same command with the same id is sent again, twice at most.
    #[arg(long, env = "STOCKADE_TIMEOUT_MS", value_name = "MS", default_value = "10000",
          value_parser = value::timeout_ms)]
    pub(crate) timeout_ms: u64,
}

/// The API key of a command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Credentials {
    /// The API key. Others on this machine can see the flags of a process: the environment or a file hides it better.
    #[arg(long, env = "STOCKADE_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<Secret>,
    /// A file with the API key.
    #[arg(long, env = "STOCKADE_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl Credentials {
    /// The key to send, if there is one.
    pub(crate) fn key(&self) -> Result<Option<Secret>, String> {
        if let Some(key) = &self.key {
            return Ok(Some(key.clone()));
        }
        let Some(path) = &self.key_file else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(path).map_err(|e| {
            format!(
                "--key-file {}: {e}; give a file that holds the key",
                path.display()
            )
        })?;
        Ok(Some(Secret::from(text.trim())))
    }
}

/// Why a command line ends badly.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The service refused, with its problem detail.
    Refused(Box<output::Problem>),
    /// Wrong usage.
    Usage(String),
    /// No answer.
    Unreachable(String),
    /// Anything else.
    Other(String),
}

impl Failure {
    /// Says it on stderr, and gives the exit code.
    fn report(self) -> ExitCode {
        let (code, message) = match self {
            Self::Refused(problem) => (problem.exit_code(), problem.to_string()),
            Self::Usage(message) => (2, message),
            Self::Unreachable(message) => (3, message),
            Self::Other(message) => (1, message),
        };
        eprintln!("error: {message}");
        ExitCode::from(code)
    }
}

/// The exit code of a command's end.
pub(crate) fn ended(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

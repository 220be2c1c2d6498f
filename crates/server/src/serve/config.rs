//! How the service is set up: a file, then `STOCKADE_*`, then flags; the later wins.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::Deserialize;
use stockade_core::LateConfirm;

/// Run the service.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// A configuration file (TOML) with the same names as these flags, `-` written as `_`.
    #[arg(long, env = "STOCKADE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print `{"listening":"http://..."}` when ready, and log as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    given: Given,
}

/// What may be set; the same in the file, the environment and the flags.
#[derive(Debug, Default, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
struct Given {
    /// Where to listen: a loopback address; port 0 takes a free one. [default: 127.0.0.1:7077]
    // `--port` is what many try first; the message then shows the address to give.
    #[arg(long, alias = "port", env = "STOCKADE_LISTEN", value_name = "ADDRESS")]
    listen: Option<String>,
    /// The data folder; made when missing. [default: ./stockade-data]
    #[arg(long, env = "STOCKADE_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// How much to log, to stderr. [default: info]
    #[arg(long, env = "STOCKADE_LOG_LEVEL", value_name = "LEVEL")]
    log_level: Option<LogLevel>,
    /// What a confirm after the end does: confirm if the units are still there, or refuse. [default: revive]
    #[arg(long, env = "STOCKADE_LATE_CONFIRM", value_name = "RULE")]
    late_confirm: Option<Late>,
    /// The most bytes of a body. [default: 1048576]
    #[arg(long, env = "STOCKADE_BODY_BYTES_MAX", value_name = "N")]
    body_bytes_max: Option<u32>,
    /// How long a request's head may take, and how long a connection may idle. [default: 30000]
    #[arg(long, env = "STOCKADE_HEAD_TIMEOUT_MS", value_name = "MS")]
    head_timeout_ms: Option<u32>,
    /// How long a request's body may take. [default: 30000]
    #[arg(long, env = "STOCKADE_BODY_TIMEOUT_MS", value_name = "MS")]
    body_timeout_ms: Option<u32>,
    /// How long a command may take before its outcome is said to be unknown. [default: 30000]
    #[arg(long, env = "STOCKADE_ANSWER_TIMEOUT_MS", value_name = "MS")]
    answer_timeout_ms: Option<u32>,
    /// How long requests in flight may take when the service is stopped. [default: 10000]
    #[arg(long, env = "STOCKADE_DRAIN_TIMEOUT_MS", value_name = "MS")]
    drain_timeout_ms: Option<u32>,
    /// The most connections; past it the one that idles longest is closed. [default: 10000]
    #[arg(long, env = "STOCKADE_CONNECTIONS_MAX", value_name = "N")]
    connections_max: Option<u32>,
    /// The most commands that may wait; further ones are refused as overloaded. [default: 65536]
    #[arg(long, env = "STOCKADE_BACKLOG_COMMANDS", value_name = "N")]
    backlog_commands: Option<u32>,
    /// Ended ids kept in memory for replays, at least 4096; older ones are looked up on disk. [default: 1000000]
    #[arg(long, env = "STOCKADE_KEEP_ENDED", value_name = "N")]
    keep_ended: Option<u32>,
    /// How long ended ids are kept in memory, at least 10. [default: 86400]
    #[arg(long, env = "STOCKADE_KEEP_ENDED_SECONDS", value_name = "SECONDS")]
    keep_ended_seconds: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Late {
    Revive,
    Reject,
}

/// The settings in force.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) log_level: tracing::level_filters::LevelFilter,
    pub(crate) store: stockade::Options,
    pub(crate) limits: crate::http::Limits,
    pub(crate) head_within: Duration,
    pub(crate) drain_within: Duration,
    pub(crate) connections_max: usize,
}

impl Args {
    /// Merges file, environment and flags; an error says what to change.
    pub(crate) fn config(self) -> Result<(Config, bool), String> {
        let file = match &self.config {
            Some(path) => read_file(path)?,
            None => Given::default(),
        };
        Ok((Config::of(self.given, file)?, self.json))
    }
}

fn read_file(path: &Path) -> Result<Given, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("{}: {e}; give --config a file that can be read", path.display()))?;
    toml::from_str(&text).map_err(|e| format!("{}: {}", path.display(), e.to_string().trim_end()))
}

impl Config {
    fn of(given: Given, file: Given) -> Result<Self, String> {
        use tracing::level_filters::LevelFilter;
        let listen = given
            .listen
            .or(file.listen)
            .unwrap_or_else(|| "127.0.0.1:7077".to_owned());
        let data = given
            .data
            .or(file.data)
            .unwrap_or_else(|| PathBuf::from("./stockade-data"));
        let mut store = stockade::Options::new(data);
        if let Some(late) = given.late_confirm.or(file.late_confirm) {
            store.late_confirm = match late {
                Late::Revive => LateConfirm::Revive,
                Late::Reject => LateConfirm::Reject,
            };
        }
        if let Some(commands) = given.backlog_commands.or(file.backlog_commands) {
            store.backlog_commands = at_least(1, "backlog-commands", commands)? as usize;
        }
        if let Some(ids) = given.keep_ended.or(file.keep_ended) {
            store.keep_ended = ids as usize;
        }
        if let Some(seconds) = given.keep_ended_seconds.or(file.keep_ended_seconds) {
            store.keep_ended_ms = i64::from(seconds) * 1_000;
        }
        let within = |name, given: Option<u32>, file: Option<u32>, default| {
            let ms = at_least(1, name, given.or(file).unwrap_or(default))?;
            Ok::<_, String>(Duration::from_millis(u64::from(ms)))
        };
        let body_bytes_max = given.body_bytes_max.or(file.body_bytes_max).unwrap_or(1 << 20);
        let connections_max = given.connections_max.or(file.connections_max).unwrap_or(10_000);
        Ok(Self {
            listen: loopback(&listen)?,
            log_level: match given.log_level.or(file.log_level).unwrap_or(LogLevel::Info) {
                LogLevel::Off => LevelFilter::OFF,
                LogLevel::Error => LevelFilter::ERROR,
                LogLevel::Warn => LevelFilter::WARN,
                LogLevel::Info => LevelFilter::INFO,
                LogLevel::Debug => LevelFilter::DEBUG,
                LogLevel::Trace => LevelFilter::TRACE,
            },
            store,
            limits: crate::http::Limits {
                body_bytes_max: at_least(1_024, "body-bytes-max", body_bytes_max)? as usize,
                body_within: within(
                    "body-timeout-ms",
                    given.body_timeout_ms,
                    file.body_timeout_ms,
                    30_000,
                )?,
                answer_within: within(
                    "answer-timeout-ms",
                    given.answer_timeout_ms,
                    file.answer_timeout_ms,
                    30_000,
                )?,
            },
            head_within: within(
                "head-timeout-ms",
                given.head_timeout_ms,
                file.head_timeout_ms,
                30_000,
            )?,
            drain_within: within(
                "drain-timeout-ms",
                given.drain_timeout_ms,
                file.drain_timeout_ms,
                10_000,
            )?,
            connections_max: at_least(1, "connections-max", connections_max)? as usize,
        })
    }
}

fn at_least(min: u32, name: &str, value: u32) -> Result<u32, String> {
    if value >= min {
        Ok(value)
    } else {
        Err(format!("--{name} {value}: must be at least {min}"))
    }
}

/// Takes loopback addresses only: without keys, whoever reaches the port could change stock.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let numeric = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    let address: SocketAddr = numeric.as_deref().unwrap_or(text).parse().map_err(|_| {
        if text.parse::<u16>().is_ok() {
            return format!("--listen {text}: not an address; give --listen 127.0.0.1:{text}");
        }
        format!("--listen {text}: not an address; give one such as 127.0.0.1:7077 or [::1]:7077")
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(format!(
        "--listen {text}: refusing to listen beyond this machine, because there are no API keys yet and anybody who \
         reaches the port could change stock; listen on 127.0.0.1 or [::1] and put a proxy that authenticates before it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_defaults() {
        let file =
            toml::from_str("listen = '127.0.0.1:1'\nhead_timeout_ms = 5\nlate_confirm = 'reject'").unwrap();
        let given = Given {
            listen: Some("[::1]:2".to_owned()),
            ..Given::default()
        };
        let config = Config::of(given, file).unwrap();
        assert_eq!(config.listen, "[::1]:2".parse().unwrap());
        assert_eq!(config.head_within, Duration::from_millis(5));
        assert_eq!(config.store.late_confirm, LateConfirm::Reject);
        assert_eq!(config.limits.body_bytes_max, 1 << 20);
    }

    #[test]
    fn names_that_nobody_knows_are_refused() {
        let error = toml::from_str::<Given>("lissten = '127.0.0.1:1'")
            .unwrap_err()
            .to_string();
        assert!(error.contains("lissten"), "{error}");
    }

    #[test]
    fn only_this_machine_can_reach_the_service() {
        for refused in [
            "0.0.0.0:1",
            "[::]:1",
            "192.168.1.1:1",
            "10.0.0.1:0",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(
                loopback(refused).unwrap_err().contains("no API keys"),
                "{refused}"
            );
        }
        for wrong in [
            "7077",
            "127.0.0.1",
            "localhost",
            "example.org:80",
            "127.0.0.1:70000",
        ] {
            assert!(loopback(wrong).unwrap_err().contains("not an address"), "{wrong}");
        }
        let hint = loopback("8080").unwrap_err();
        assert!(hint.ends_with("give --listen 127.0.0.1:8080"), "{hint}");
        for fine in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:7077", "localhost:7077"] {
            assert!(loopback(fine).is_ok(), "{fine}");
        }
    }
}

//! How the service is set up: a file, then `STOCKADE_*`, then flags; the later wins.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use stockade::{Durability, RedisOptions};
use stockade_core::LateConfirm;

use super::settings::{Given, Late, LogLevel, When};
use super::tls::TlsFiles;
use crate::gate::Rules;
use crate::http::AccessLog;
use crate::keys::Keys;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Run the service.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// A configuration file (TOML) with the same names as these flags, `-` written as `_`.
    #[arg(long, env = "STOCKADE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print `{"listening":"http://..."}` when ready, and log as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) given: Given,
}

/// The settings in force.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) keys: Option<Arc<Keys>>,
    pub(crate) log_level: tracing::level_filters::LevelFilter,
    pub(crate) store: stockade::Options,
    pub(crate) rules: Rules,
    pub(crate) limits: crate::http::Limits,
    pub(crate) head_within: Duration,
    pub(crate) drain_within: Duration,
    /// `None`: only when asked.
    pub(crate) audit_every: Option<Duration>,
    pub(crate) connections_max: usize,
}

impl Args {
    /// Merges file, environment and flags; an error says what to change.
    pub(crate) fn config(self) -> Result<(Config, bool), String> {
        let file = match &self.config {
            Some(path) => Given::of_file(path)?,
            None => Given::default(),
        };
        Ok((Config::of(&self.given, &file)?, self.json))
    }
}

impl Config {
    pub(super) fn of(given: &Given, file: &Given) -> Result<Self, String> {
        let set = given.over(file)?.over(&Given::defaults())?;
        // Every setting that is read here has a default.
        let missing = |name: &str| format!("--{name} has no value");
        let at_least = |min: u32, name: &str, value: Option<u32>| match value {
            Some(value) if value >= min => Ok(value),
            Some(value) => Err(format!("--{name} {value}: must be at least {min}")),
            None => Err(missing(name)),
        };
        let within = |name, ms| at_least(1, name, ms).map(|ms| Duration::from_millis(u64::from(ms)));
        let rules = set.rules()?;
        let data = set.data.ok_or_else(|| missing("data"))?;
        let mut store = stockade::Options::new(data.clone());
        store.late_confirm = match set.late_confirm {
            Some(Late::Reject) => LateConfirm::Reject,
            Some(Late::Revive) | None => LateConfirm::Revive,
        };
        store.backlog_commands = at_least(1, "backlog-commands", set.backlog_commands)? as usize;
        store.keep_ended = at_least(0, "keep-ended", set.keep_ended)? as usize;
        let seconds = at_least(0, "keep-ended-seconds", set.keep_ended_seconds)?;
        store.keep_ended_ms = i64::from(seconds) * 1_000;
        if let Some(days) = set.retain_ended_days {
            let keep_ms = i64::from(days) * DAY_MS;
            if keep_ms < store.keep_ended_ms + HOUR_MS {
                return Err(format!(
                    "--retain-ended-days {days}: must be an hour more than --keep-ended-seconds ({seconds}) at least: \
                     what is removed must not be in the hot tier any more"
                ));
            }
            store.retain_ended_ms = Some(keep_ms);
        }
        let minutes = set
            .audit_every_minutes
            .map(|minutes| at_least(1, "audit-every-minutes", Some(minutes)))
            .transpose()?;
        store.durability = match set.durability {
            Some(When::Ledger) => Durability::Ledger,
            Some(When::Hot) | None => Durability::Hot,
        };
        if let Some(url) = set.redis {
            let mut redis = RedisOptions::new(url);
            redis.prefix = set.redis_prefix.ok_or_else(|| missing("redis-prefix"))?;
            redis.connections = at_least(1, "redis-connections", set.redis_connections)? as usize;
            redis.connect_within = within("redis-connect-timeout-ms", set.redis_connect_timeout_ms)?;
            redis.reply_within = within("redis-reply-timeout-ms", set.redis_reply_timeout_ms)?;
            let seconds = at_least(1, "backlog-seconds", set.backlog_seconds)?;
            redis.backlog_within = Duration::from_secs(u64::from(seconds));
            store.redis = Some(redis);
        }
        let listen = address(&set.listen.ok_or_else(|| missing("listen"))?)?;
        let keys = Keys::open(&data, set.require_keys == Some(true))?;
        if keys.is_none() {
            loopback(listen)?;
        }
        Ok(Self {
            listen,
            tls: TlsFiles::of(set.tls_cert, set.tls_key)?,
            keys,
            log_level: set.log_level.unwrap_or(LogLevel::Info).into(),
            store,
            rules,
            limits: crate::http::Limits {
                body_bytes_max: at_least(1_024, "body-bytes-max", set.body_bytes_max)? as usize,
                body_within: within("body-timeout-ms", set.body_timeout_ms)?,
                answer_within: within("answer-timeout-ms", set.answer_timeout_ms)?,
                access_log: set.access_log.unwrap_or(AccessLog::Off),
                metrics_open: set.metrics_open == Some(true),
            },
            head_within: within("head-timeout-ms", set.head_timeout_ms)?,
            audit_every: minutes.map(|minutes| Duration::from_secs(u64::from(minutes) * 60)),
            drain_within: within("drain-timeout-ms", set.drain_timeout_ms)?,
            connections_max: at_least(1, "connections-max", set.connections_max)? as usize,
        })
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    numeric.as_deref().unwrap_or(text).parse().map_err(|_| {
        if text.parse::<u16>().is_ok() {
            return format!("--listen {text}: not an address; give --listen 127.0.0.1:{text}");
        }
        format!("--listen {text}: not an address; give one such as 127.0.0.1:7077 or [::1]:7077")
    })
}

/// Takes loopback addresses only: without keys, whoever reaches the port could change stock.
fn loopback(address: SocketAddr) -> Result<(), String> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "--listen {address}: refusing to listen beyond this machine, because the data folder has no API keys and \
         anybody who reaches the port could change stock; make a key with `stockade key create`, give --require-keys, \
         or listen on 127.0.0.1 or [::1]"
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
        let config = Config::of(&given, &file).unwrap();
        assert_eq!(config.listen, "[::1]:2".parse().unwrap());
        assert_eq!(config.head_within, Duration::from_millis(5));
        assert_eq!(config.store.late_confirm, LateConfirm::Reject);
        assert_eq!(config.limits.body_bytes_max, 1 << 20);
    }

    #[test]
    fn what_the_hot_tier_may_hold_is_not_removed() {
        let of = |days, seconds| {
            let given = Given {
                retain_ended_days: Some(days),
                keep_ended_seconds: Some(seconds),
                ..Given::default()
            };
            Config::of(&given, &Given::default()).map(|config| config.store.retain_ended_ms)
        };
        assert_eq!(of(30, 86_400), Ok(Some(30 * DAY_MS)));
        assert_eq!(of(1, 82_800), Ok(Some(DAY_MS)));
        for (days, seconds) in [(1, 82_801), (1, 86_400), (0, 10)] {
            let why = of(days, seconds).unwrap_err();
            assert!(why.contains("--retain-ended-days"), "{why}");
        }
        let never = Given {
            audit_every_minutes: Some(0),
            ..Given::default()
        };
        assert!(Config::of(&never, &Given::default()).is_err());
    }

    #[test]
    fn without_keys_only_this_machine_can_reach_the_service() {
        for refused in [
            "0.0.0.0:1",
            "[::]:1",
            "192.168.1.1:1",
            "10.0.0.1:0",
            "[::ffff:127.0.0.1]:1",
        ] {
            let why = loopback(address(refused).unwrap()).unwrap_err();
            assert!(why.contains("no API keys"), "{refused}");
        }
        for wrong in [
            "7077",
            "127.0.0.1",
            "localhost",
            "example.org:80",
            "127.0.0.1:70000",
        ] {
            assert!(address(wrong).unwrap_err().contains("not an address"), "{wrong}");
        }
        let hint = address("8080").unwrap_err();
        assert!(hint.ends_with("give --listen 127.0.0.1:8080"), "{hint}");
        for fine in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:7077", "localhost:7077"] {
            assert!(loopback(address(fine).unwrap()).is_ok(), "{fine}");
        }
    }

    #[test]
    fn with_keys_any_address_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let given = |require_keys| Given {
            listen: Some("0.0.0.0:0".to_owned()),
            data: Some(folder.path().to_owned()),
            require_keys,
            ..Given::default()
        };
        assert!(Config::of(&given(None), &Given::default()).is_err());
        assert!(
            Config::of(&given(Some(true)), &Given::default())
                .unwrap()
                .keys
                .is_some()
        );
    }
}

//! What may be set: the same names in the file, the environment and the flags, each with its default. `config show`
//! reads the same table.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::gate::{CoolDown, Rate, Rules};
use crate::http::AccessLog;

/// The settings. What is not given is `None`.
#[derive(Debug, Default, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Given {
    /// Where to listen; port 0 takes a free one. Beyond this machine only with API keys. [default: 127.0.0.1:7077]
    // `--port` is what many try first; the message then shows the address to give.
    #[arg(long, alias = "port", env = "STOCKADE_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The data folder; made when missing. [default: ./stockade-data]
    #[arg(long, env = "STOCKADE_DATA", value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Answer only to API keys, also when the data folder has none yet. [default: false]
    #[arg(long, env = "STOCKADE_REQUIRE_KEYS", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub(crate) require_keys: Option<bool>,
    /// Answer `/metrics` without a key. [default: false]
    #[arg(long, env = "STOCKADE_METRICS_OPEN", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub(crate) metrics_open: Option<bool>,
    /// How much to log, to stderr. [default: info]
    #[arg(long, env = "STOCKADE_LOG_LEVEL", value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
    /// The certificate to speak TLS with (PEM, with those that lead to its root), read again when it changes.
    #[arg(long, env = "STOCKADE_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM).
    #[arg(long, env = "STOCKADE_TLS_KEY", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Which requests have a line in the log: none, those answered with 5xx, or all. [default: off]
    #[arg(long, env = "STOCKADE_ACCESS_LOG", value_name = "WHICH")]
    pub(crate) access_log: Option<AccessLog>,
    /// What a confirm after the end does: confirm if the units are still there, or refuse. [default: revive]
    #[arg(long, env = "STOCKADE_LATE_CONFIRM", value_name = "RULE")]
    pub(crate) late_confirm: Option<Late>,
    /// The most bytes of a body. [default: 1048576]
    #[arg(long, env = "STOCKADE_BODY_BYTES_MAX", value_name = "N")]
    pub(crate) body_bytes_max: Option<u32>,
    /// How long a request's head may take, and how long a connection may idle. [default: 30000]
    #[arg(long, env = "STOCKADE_HEAD_TIMEOUT_MS", value_name = "MS")]
    pub(crate) head_timeout_ms: Option<u32>,
    /// How long a request's body may take. [default: 30000]
    #[arg(long, env = "STOCKADE_BODY_TIMEOUT_MS", value_name = "MS")]
    pub(crate) body_timeout_ms: Option<u32>,
    /// How long a command may take before its outcome is said to be unknown. [default: 30000]
    #[arg(long, env = "STOCKADE_ANSWER_TIMEOUT_MS", value_name = "MS")]
    pub(crate) answer_timeout_ms: Option<u32>,
    /// How long requests in flight may take when the service is stopped. [default: 10000]
    #[arg(long, env = "STOCKADE_DRAIN_TIMEOUT_MS", value_name = "MS")]
    pub(crate) drain_timeout_ms: Option<u32>,
    /// The most connections; past it the one that idles longest is closed. [default: 10000]
    #[arg(long, env = "STOCKADE_CONNECTIONS_MAX", value_name = "N")]
    pub(crate) connections_max: Option<u32>,
    /// The most commands that may wait; further ones are refused as overloaded. [default: 65536]
    #[arg(long, env = "STOCKADE_BACKLOG_COMMANDS", value_name = "N")]
    pub(crate) backlog_commands: Option<u32>,
    /// Ended ids kept in memory for replays, at least 4096; older ones are looked up on disk. [default: 1000000]
    #[arg(long, env = "STOCKADE_KEEP_ENDED", value_name = "N")]
    pub(crate) keep_ended: Option<u32>,
    /// How long ended ids are kept in memory, at least 10. [default: 86400]
    #[arg(long, env = "STOCKADE_KEEP_ENDED_SECONDS", value_name = "SECONDS")]
    pub(crate) keep_ended_seconds: Option<u32>,
    /// How long the ledger keeps reservations that ended, in days; for ever when not given. Older ones are removed with
    /// their movements, and their ids are forgotten: sent again, such an id is a new one.
    #[arg(long, env = "STOCKADE_RETAIN_ENDED_DAYS", value_name = "N")]
    pub(crate) retain_ended_days: Option<u32>,
    /// How often to audit, from the start on; only when asked if not given.
    #[arg(long, env = "STOCKADE_AUDIT_EVERY_MINUTES", value_name = "N")]
    pub(crate) audit_every_minutes: Option<u32>,
    /// How often a key may ask, such as 500/s. Confirm, cancel, extend and return are never limited.
    #[arg(long, env = "STOCKADE_KEY_RATE", value_name = "N/UNIT")]
    pub(crate) key_rate: Option<String>,
    /// How many requests of a key may come at once; as many as the rate has in its unit when not given.
    #[arg(long, env = "STOCKADE_KEY_BURST", value_name = "N")]
    pub(crate) key_burst: Option<u32>,
    /// How often an owner may ask for a reservation, such as 10/m.
    #[arg(long, env = "STOCKADE_OWNER_RATE", value_name = "N/UNIT")]
    pub(crate) owner_rate: Option<String>,
    /// How many reservations an owner may ask for at once; as many as the rate has in its unit when not given.
    #[arg(long, env = "STOCKADE_OWNER_BURST", value_name = "N")]
    pub(crate) owner_burst: Option<u32>,
    /// The least time between two reservations of one SKU that an owner asks for.
    #[arg(long, env = "STOCKADE_OWNER_INTERVAL_MS", value_name = "MS")]
    pub(crate) owner_interval_ms: Option<u32>,
    /// The most live reservations of an owner, 1..=1000.
    #[arg(long, env = "STOCKADE_OWNER_LIVE_MAX", value_name = "N")]
    pub(crate) owner_live_max: Option<u32>,
    /// After how many reservations that ended unpaid an owner has to wait, 1..=1000.
    #[arg(long, env = "STOCKADE_COOL_DOWN_AFTER", value_name = "N")]
    pub(crate) cool_down_after: Option<u32>,
    /// Within how long those count, and how long the owner then waits. [default: 3600]
    #[arg(long, env = "STOCKADE_COOL_DOWN_SECONDS", value_name = "SECONDS")]
    pub(crate) cool_down_seconds: Option<u32>,
    /// How long a SKU that was seen sold out is refused without asking for it again, 1..=10000.
    #[arg(long, env = "STOCKADE_SOLD_OUT_MS", value_name = "MS")]
    pub(crate) sold_out_ms: Option<u32>,
    /// Turn reservations away when further ones would queue for longer; 0 never does. [default: 2000]
    #[arg(long, env = "STOCKADE_SHED_AFTER_MS", value_name = "MS")]
    pub(crate) shed_after_ms: Option<u32>,
    /// Let this Redis or Valkey decide: `redis://[user[:password]@]host[:port][/db]`. Without it this process decides.
    #[arg(long, env = "STOCKADE_REDIS", value_name = "URL", hide_env_values = true)]
    pub(crate) redis: Option<String>,
    /// First part of every key in Redis: one for each data folder. [default: stockade]
    #[arg(long, env = "STOCKADE_REDIS_PREFIX", value_name = "TEXT")]
    pub(crate) redis_prefix: Option<String>,
    /// How many connections to Redis the decisions are spread over. [default: 1]
    #[arg(long, env = "STOCKADE_REDIS_CONNECTIONS", value_name = "N")]
    pub(crate) redis_connections: Option<u32>,
    /// How long connecting to Redis may take. [default: 2000]
    #[arg(long, env = "STOCKADE_REDIS_CONNECT_TIMEOUT_MS", value_name = "MS")]
    pub(crate) redis_connect_timeout_ms: Option<u32>,
    /// How long a reply of Redis may take before its ids are sent again. [default: 2000]
    #[arg(long, env = "STOCKADE_REDIS_REPLY_TIMEOUT_MS", value_name = "MS")]
    pub(crate) redis_reply_timeout_ms: Option<u32>,
    /// How far the ledger may lag behind Redis; at 80 % of it reservations are refused. [default: 10]
    #[arg(long, env = "STOCKADE_BACKLOG_SECONDS", value_name = "SECONDS")]
    pub(crate) backlog_seconds: Option<u32>,
    /// When a reservation is answered that does not say: when Redis decided, or when it is recorded. [default: hot]
    #[arg(long, env = "STOCKADE_DURABILITY", value_name = "WHEN")]
    pub(crate) durability: Option<When>,
}

impl Given {
    /// Every setting that has a default. The others are off when they are not given.
    pub(crate) fn defaults() -> Self {
        Self {
            listen: Some("127.0.0.1:7077".to_owned()),
            data: Some(PathBuf::from("./stockade-data")),
            require_keys: Some(false),
            metrics_open: Some(false),
            log_level: Some(LogLevel::Info),
            tls_cert: None,
            tls_key: None,
            access_log: Some(AccessLog::Off),
            late_confirm: Some(Late::Revive),
            body_bytes_max: Some(1 << 20),
            head_timeout_ms: Some(30_000),
            body_timeout_ms: Some(30_000),
            answer_timeout_ms: Some(30_000),
            drain_timeout_ms: Some(10_000),
            connections_max: Some(10_000),
            backlog_commands: Some(65_536),
            keep_ended: Some(1_000_000),
            keep_ended_seconds: Some(86_400),
            retain_ended_days: None,
            audit_every_minutes: None,
            key_rate: None,
            key_burst: None,
            owner_rate: None,
            owner_burst: None,
            owner_interval_ms: None,
            owner_live_max: None,
            cool_down_after: None,
            cool_down_seconds: Some(3_600),
            sold_out_ms: None,
            shed_after_ms: Some(2_000),
            redis: None,
            redis_prefix: Some("stockade".to_owned()),
            redis_connections: Some(1),
            redis_connect_timeout_ms: Some(2_000),
            redis_reply_timeout_ms: Some(2_000),
            backlog_seconds: Some(10),
            durability: Some(When::Hot),
        }
    }

    /// What a file sets; an error names the file and the place.
    pub(crate) fn of_file(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("{}: {e}; give --config a file that can be read", path.display()))?;
        toml::from_str(&text).map_err(|e| format!("{}: {}", path.display(), e.to_string().trim_end()))
    }

    /// Every setting by its name, in the order above; null where it is not given.
    pub(crate) fn values(&self) -> Result<Map<String, Value>, String> {
        match serde_json::to_value(self) {
            Ok(Value::Object(values)) => Ok(values),
            Ok(other) => Err(format!("the settings are no table: {other}")),
            Err(error) => Err(format!("a setting cannot be read as text: {error}")),
        }
    }

    /// These settings, and where they say nothing, those of `below`.
    pub(crate) fn over(&self, below: &Self) -> Result<Self, String> {
        let mut values = below.values()?;
        values.extend(self.values()?.into_iter().filter(|(_, value)| !value.is_null()));
        serde_json::from_value(Value::Object(values)).map_err(|e| format!("the settings do not fit: {e}"))
    }
}

impl Given {
    /// The rules of the gate; an error says which one cannot be.
    pub(super) fn rules(&self) -> Result<Rules, String> {
        let rate =
            |name, text: Option<&String>, burst| text.map(|text| Rate::of(name, text, burst)).transpose();
        let within = |most: u32, name: &str, value: Option<u32>| match value {
            Some(value) if !(1..=most).contains(&value) => {
                Err(format!("--{name} {value}: must be 1..={most}"))
            }
            value => Ok(value),
        };
        for (burst, rate, name) in [
            (self.key_burst, &self.key_rate, "key"),
            (self.owner_burst, &self.owner_rate, "owner"),
        ] {
            if burst.is_some() && rate.is_none() {
                return Err(format!("--{name}-burst needs --{name}-rate"));
            }
        }
        let seconds = within(2_592_000, "cool-down-seconds", self.cool_down_seconds)?;
        let after = within(1_000, "cool-down-after", self.cool_down_after)?;
        let interval = within(86_400_000, "owner-interval-ms", self.owner_interval_ms)?;
        Ok(Rules {
            key_rate: rate("key-rate", self.key_rate.as_ref(), self.key_burst)?,
            owner_rate: rate("owner-rate", self.owner_rate.as_ref(), self.owner_burst)?,
            interval_ms: interval.map(i64::from),
            live_max: within(1_000, "owner-live-max", self.owner_live_max)?.map(|most| most as usize),
            cool_down: after.zip(seconds).map(|(after, seconds)| CoolDown {
                after: after as usize,
                for_ms: i64::from(seconds) * 1_000,
            }),
            sold_out_ms: within(10_000, "sold-out-ms", self.sold_out_ms)?.map(i64::from),
            shed_after_ms: self.shed_after_ms.filter(|ms| *ms > 0).map(i64::from),
        })
    }
}

/// How much to log.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for tracing::level_filters::LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

/// When a reservation is answered.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum When {
    Hot,
    Ledger,
}

/// What a confirm after the end does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Late {
    Revive,
    Reject,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_knows_are_refused() {
        let error = toml::from_str::<Given>("lissten = '127.0.0.1:1'")
            .unwrap_err()
            .to_string();
        assert!(error.contains("lissten"), "{error}");
    }

    /// The defaults are written twice, for `--help` and for the service: they are the same.
    #[test]
    fn help_says_the_defaults_that_are_in_force() {
        use clap::Args as _;
        let command = Given::augment_args(clap::Command::new("serve"));
        let defaults = Given::defaults().values().unwrap();
        for argument in command.get_arguments() {
            let name = argument.get_id().as_str();
            let help = argument.get_help().unwrap().to_string();
            let said = help
                .split("[default: ")
                .nth(1)
                .and_then(|rest| rest.strip_suffix(']'));
            let value = match &defaults[name] {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            assert_eq!(said.map(str::to_owned), value, "{name}");
            let variable = format!("STOCKADE_{}", name.to_uppercase());
            assert_eq!(argument.get_env().unwrap().to_str(), Some(variable.as_str()));
        }
    }
}

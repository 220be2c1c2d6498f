//! `stockade doctor`: whether a Redis is fit to decide, each finding with what to do.

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use stockade_redis::{Finding, Options, Severity, examine};

use super::output;
use super::{Failure, ended};

/// Look at a Redis or Valkey server before, or while, a service uses it. Nothing is changed there, but for a key that is
/// there for a moment.
///
/// Exit codes: 0 nothing worse than a warning; 1 an error, on which the service refuses to start.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The server: `redis://[user[:password]@]host[:port][/db]`.
    #[arg(long, env = "STOCKADE_REDIS", value_name = "URL", hide_env_values = true)]
    redis: String,
    /// First part of every key in Redis.
    #[arg(
        long,
        env = "STOCKADE_REDIS_PREFIX",
        value_name = "TEXT",
        default_value = "stockade"
    )]
    redis_prefix: String,
    /// How long connecting, and each reply, may take.
    #[arg(
        long,
        env = "STOCKADE_REDIS_CONNECT_TIMEOUT_MS",
        value_name = "MS",
        default_value_t = 2_000
    )]
    redis_connect_timeout_ms: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    id: &'a str,
    severity: &'a str,
    found: &'a str,
    /// Empty where nothing is to be done.
    remedy: &'a str,
}

/// Looks, and prints what was found.
pub(crate) async fn run(args: Args) -> ExitCode {
    let within = Duration::from_millis(u64::from(args.redis_connect_timeout_ms));
    let findings = examine(Options {
        url: args.redis,
        prefix: args.redis_prefix,
        connect_within: within,
        reply_within: within,
        ..Options::default()
    })
    .await;
    let is_fit = findings.iter().all(|finding| finding.severity < Severity::Error);
    let shown = show(&findings, args.json);
    if shown.is_ok() && !is_fit {
        return ExitCode::from(1);
    }
    ended(shown)
}

fn show(findings: &[Finding], json: bool) -> Result<(), Failure> {
    if json {
        let shown: Vec<Shown<'_>> = findings
            .iter()
            .map(|finding| Shown {
                id: finding.id,
                severity: finding.severity.as_str(),
                found: &finding.found,
                remedy: &finding.remedy,
            })
            .collect();
        return output::line(&serde_json::json!({ "findings": shown }).to_string());
    }
    let mut table = output::table(&["what", "", "found", "what to do"]);
    for finding in findings {
        table.add_row([
            finding.id,
            finding.severity.as_str(),
            &finding.found,
            &finding.remedy,
        ]);
    }
    output::line(&table.to_string())
}

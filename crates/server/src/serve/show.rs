//! `stockade config show`: each setting, its value, and where that came from.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, Subcommand};
use serde::Serialize;
use serde_json::{Map, Value};

use super::config::Config;
use super::settings::Given;
use crate::cli::{Failure, ended, output};

/// Every variable of this program begins so.
const PREFIX: &str = "STOCKADE_";

/// How the service is set up.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show each setting of `serve`, its value, and where it came from. Takes the flags of `serve`.
    Show(Box<Args>),
}

/// The same settings as those of `serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The configuration file.
    #[arg(long, env = "STOCKADE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    given: Given,
}

/// One setting.
#[derive(Debug, Serialize)]
struct Setting {
    name: String,
    /// Null: off.
    value: Value,
    /// `default`, `file`, `environment` or `flag`.
    source: &'static str,
    /// The file, variable or flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

/// Shows the settings. `matches` are those of the command `show`, `program` is the whole command line.
pub(crate) fn run(args: &Args, matches: Option<&ArgMatches>, program: &Command) -> ExitCode {
    let unknown = unknown_variables(program);
    ended(show(args, matches, &unknown))
}

fn show(args: &Args, matches: Option<&ArgMatches>, unknown: &[String]) -> Result<(), Failure> {
    let file = match &args.config {
        Some(path) => Given::of_file(path).map_err(Failure::Usage)?,
        None => Given::default(),
    };
    let path = args.config.as_ref().map(|path| path.display().to_string());
    let layers = [
        args.given.values().map_err(Failure::Usage)?,
        file.values().map_err(Failure::Usage)?,
        Given::defaults().values().map_err(Failure::Usage)?,
    ];
    let source = |name: &str| matches.and_then(|matches| matches.value_source(name));
    let settings = settings(&layers, source, path.as_deref());
    if args.json {
        let shown = serde_json::json!({ "settings": settings, "unknown_variables": unknown });
        output::line(&shown.to_string())?;
    } else {
        let mut table = output::table(&["setting", "value", "from"]);
        for setting in settings {
            let from = setting
                .from
                .as_ref()
                .map(|from| format!(" {from}"))
                .unwrap_or_default();
            table.add_row([
                setting.name,
                output::shown(Some(&setting.value)),
                format!("{}{from}", setting.source),
            ]);
        }
        output::line(&table.to_string())?;
    }
    for name in unknown {
        eprintln!("note: {name} is set, and nothing reads it");
    }
    // What is shown is what `serve` would take, or refuse.
    Config::of(&args.given, &file).map(|_| ()).map_err(Failure::Usage)
}

/// The layers are flags and environment, file, defaults.
fn settings(
    layers: &[Map<String, Value>; 3],
    source: impl Fn(&str) -> Option<ValueSource>,
    path: Option<&str>,
) -> Vec<Setting> {
    let [given, file, defaults] = layers;
    let value = |layer: &Map<String, Value>, name: &str| layer.get(name).filter(|v| !v.is_null()).map(masked);
    let names = defaults.keys();
    names
        .map(|name| {
            let (value, source, from) = if let Some(value) = value(given, name) {
                if source(name) == Some(ValueSource::EnvVariable) {
                    let variable = format!("{PREFIX}{}", name.to_uppercase());
                    (value, "environment", Some(variable))
                } else {
                    (value, "flag", Some(format!("--{}", name.replace('_', "-"))))
                }
            } else if let Some(value) = value(file, name) {
                (value, "file", path.map(str::to_owned))
            } else {
                (value(defaults, name).unwrap_or(Value::Null), "default", None)
            };
            Setting {
                name: name.clone(),
                value,
                source,
                from,
            }
        })
        .collect()
}

/// An address may carry a password, which is nobody's business here.
fn masked(value: &Value) -> Value {
    let Value::String(text) = value else {
        return value.clone();
    };
    let masked = || {
        let (scheme, rest) = text.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (user, _) = rest.get(..end)?.rsplit_once('@')?;
        let name = user.split_once(':').map_or("", |(name, _)| name);
        Some(format!("{scheme}://{name}:***{}", rest.get(user.len()..)?))
    };
    Value::String(masked().unwrap_or_else(|| text.clone()))
}

/// Variables that look like settings and are none: a misspelt one would go unnoticed.
pub(crate) fn unknown_variables(program: &Command) -> Vec<String> {
    let mut known = BTreeSet::new();
    collect_variables(program, &mut known);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<String> = names
        // Those of the tests are read by the tests.
        .filter(|name| name.starts_with(PREFIX) && !name.starts_with("STOCKADE_TEST_"))
        .filter(|name| !known.contains(name))
        .collect();
    unknown.sort();
    unknown
}

fn collect_variables(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(clap::Arg::get_env);
    known.extend(variables.filter_map(|name| name.to_str().map(str::to_owned)));
    for command in command.get_subcommands() {
        collect_variables(command, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_are_masked() {
        for (text, shown) in [
            ("redis://u:secret@h:6379/0", "redis://u:***@h:6379/0"),
            ("redis://secret@h", "redis://:***@h"),
            ("redis://u:a@b:c@h/x@y", "redis://u:***@h/x@y"),
            ("redis://h:6379/x@y", "redis://h:6379/x@y"),
            ("127.0.0.1:7077", "127.0.0.1:7077"),
        ] {
            assert_eq!(masked(&Value::from(text)), Value::from(shown));
        }
    }
}

//! `stockade scripts ...`: look at the scripts, hand them to other languages, try them on a server. A module, so that the
//! binary only has to mount it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use redis::aio::ConnectionLike;
use serde_json::json;

use crate::connect;
use crate::error::{Happened, ScriptError, ServerState};
use crate::header::{Header, Parameter};
use crate::runner::Scripts;
use crate::scripts::{all, named};
use crate::source::{Ready, Script, SourceError};
use crate::vectors::{self, VectorError, VectorFile};

const PATIENCE: Duration = Duration::from_secs(10);

/// Redis scripts that work alone, on plain keys, for any language.
#[derive(Clone, Debug, Args)]
pub struct ScriptsArgs {
    #[command(subcommand)]
    command: ScriptsCommand,
    /// Prints JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Clone, Debug, Subcommand)]
enum ScriptsCommand {
    /// Names every script, with what it does.
    List,
    /// Prints a script as the server gets it.
    Show {
        name: String,
        /// Prints a redis-cli line that works as it stands.
        #[arg(long)]
        cli: bool,
    },
    /// Writes every script, whole, and its vectors into a folder.
    Export { folder: PathBuf },
    /// Loads every script into a server, so that EVALSHA finds it.
    Load {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Runs every vector on a server whose database is empty.
    Test {
        #[command(flatten)]
        server: ServerArgs,
        /// Only these scripts.
        names: Vec<String>,
    },
    /// Runs one script: `run deduct stock:1001 , 2`, with the keys before the comma and the arguments after it.
    Run {
        #[command(flatten)]
        server: ServerArgs,
        name: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

#[derive(Clone, Debug, Args)]
struct ServerArgs {
    /// redis://[user:password@]host:port[/db]; several for a cluster, with --cluster.
    #[arg(long, env = "STOCKADE_REDIS", value_delimiter = ' ', required = true)]
    redis: Vec<String>,
    /// The server is a cluster.
    #[arg(long)]
    cluster: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("there is no script {name:?}; `stockade scripts list` names them all")]
    NoSuchScript { name: String },
    #[error(
        "{name} takes {wanted}; found {keys} keys and {args} arguments. Keys come first, then a comma, then arguments"
    )]
    WrongCount {
        name: String,
        wanted: String,
        keys: usize,
        args: usize,
    },
    #[error("cannot connect; is the server up, and the address right? {0}")]
    Connect(ScriptError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Vector(#[from] VectorError),
    #[error("{count} of the scripts do not keep their vectors on this server")]
    Failed { count: usize },
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("cannot write the answer: {0}")]
    Output(#[from] std::io::Error),
}

impl CliError {
    /// 1: refused, or something was found; 2: wrong usage; 3: not reachable, or it is not known whether it was done.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoSuchScript { .. } | Self::WrongCount { .. } => 2,
            Self::Connect(_) => 3,
            Self::Script(error) => match error {
                ScriptError::Server {
                    state: ServerState::Unreachable,
                    ..
                } => 3,
                _ if error.happened() == Happened::Unknown => 3,
                _ => 1,
            },
            Self::Source(_) | Self::Vector(_) | Self::Failed { .. } | Self::File { .. } | Self::Output(_) => {
                1
            }
        }
    }
}

/// Runs the command; what it has to say goes to `out`.
pub async fn run(args: ScriptsArgs, out: &mut impl Write) -> Result<(), CliError> {
    let json = args.json;
    match args.command {
        ScriptsCommand::List => list(json, out),
        ScriptsCommand::Show { name, cli } => show(&name, cli, json, out),
        ScriptsCommand::Export { folder } => export(&folder, json, out),
        ScriptsCommand::Load { server } => {
            if server.cluster {
                load(&server.connect_cluster().await?, json, out).await
            } else {
                load(&server.connect().await?, json, out).await
            }
        }
        ScriptsCommand::Test { server, names } => {
            if server.cluster {
                test(&server.connect_cluster().await?, &names, json, out).await
            } else {
                test(&server.connect().await?, &names, json, out).await
            }
        }
        ScriptsCommand::Run { server, name, words } => {
            let script = find(&name)?;
            let (keys, args) = split(script, &words)?;
            let reply = if server.cluster {
                server
                    .connect_cluster()
                    .await?
                    .run_raw(script, &keys, &args)
                    .await?
            } else {
                server.connect().await?.run_raw(script, &keys, &args).await?
            };
            let reply = vectors::json(&reply);
            match reply.as_array().filter(|_| !json) {
                Some(parts) => {
                    let parts: Vec<String> = parts.iter().map(plain).collect();
                    writeln!(out, "{}", parts.join(" "))?;
                }
                None => writeln!(out, "{}", if json { reply.to_string() } else { plain(&reply) })?,
            }
            Ok(())
        }
    }
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl ServerArgs {
    async fn connect(&self) -> Result<Scripts<redis::aio::ConnectionManager>, CliError> {
        let url = self.redis.first().map_or("", String::as_str);
        connect::single(url, PATIENCE).await.map_err(CliError::Connect)
    }

    async fn connect_cluster(&self) -> Result<Scripts<redis::cluster_async::ClusterConnection>, CliError> {
        connect::cluster(self.redis.clone(), PATIENCE)
            .await
            .map_err(CliError::Connect)
    }
}

fn find(name: &str) -> Result<&'static Script, CliError> {
    named(name).ok_or_else(|| CliError::NoSuchScript {
        name: name.to_owned(),
    })
}

type Words = (Vec<Vec<u8>>, Vec<Vec<u8>>);

fn split(script: &'static Script, words: &[String]) -> Result<Words, CliError> {
    let comma = words.iter().position(|word| word == ",").unwrap_or(words.len());
    let bytes = |words: &[String]| {
        words
            .iter()
            .map(|word| word.clone().into_bytes())
            .collect::<Vec<_>>()
    };
    let keys = bytes(&words[..comma]);
    let args = bytes(words.get(comma + 1..).unwrap_or_default());
    let header = &script.ready()?.header;
    if !header.fits(keys.len(), args.len()) {
        let names = |list: &[Parameter]| list.iter().map(shape).collect::<Vec<_>>().join(" ");
        return Err(CliError::WrongCount {
            name: script.name().to_owned(),
            wanted: format!("{} , {}", names(&header.keys), names(&header.args)),
            keys: keys.len(),
            args: args.len(),
        });
    }
    Ok((keys, args))
}

fn shape(one: &Parameter) -> String {
    match (one.many, one.optional) {
        (true, _) => format!("{}...", one.name),
        (false, true) => format!("[{}]", one.name),
        (false, false) => one.name.clone(),
    }
}

fn describe(script: &Script, ready: &Ready) -> serde_json::Value {
    let Header {
        summary,
        keys,
        args,
        returns,
        errors,
        allow_oom,
    } = &ready.header;
    let parameters = |list: &[Parameter]| -> serde_json::Value {
        list.iter()
            .map(|one| json!({"name": one.name, "many": one.many, "optional": one.optional, "about": one.about}))
            .collect()
    };
    let returns: serde_json::Value = returns
        .iter()
        .map(|one| json!({"form": one.form, "about": one.about}))
        .collect();
    json!({
        "name": script.name(), "sha": ready.sha, "summary": summary, "keys": parameters(keys),
        "args": parameters(args), "returns": returns, "errors": errors, "allow_oom": allow_oom,
    })
}

fn list(json: bool, out: &mut impl Write) -> Result<(), CliError> {
    let mut described = Vec::new();
    for entry in all() {
        let ready = entry.script.ready()?;
        if json {
            described.push(describe(entry.script, ready));
        } else {
            writeln!(out, "{:16} {}", entry.script.name(), ready.header.summary)?;
        }
    }
    if json {
        writeln!(out, "{}", serde_json::Value::from(described))?;
    }
    Ok(())
}

fn show(name: &str, cli: bool, json: bool, out: &mut impl Write) -> Result<(), CliError> {
    let script = find(name)?;
    let ready = script.ready()?;
    if json {
        let mut described = describe(script, ready);
        described["text"] = ready.text.clone().into();
        described["cli"] = command_line(script, ready)?.into();
        writeln!(out, "{described}")?;
    } else if cli {
        writeln!(out, "{}", command_line(script, ready)?)?;
    } else {
        write!(out, "{}", ready.text)?;
    }
    Ok(())
}

/// The script without its comments inside a redis-cli call, with the keys and arguments of its first vector.
fn command_line(script: &Script, ready: &Ready) -> Result<String, CliError> {
    let code: Vec<&str> = ready
        .text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("--"))
        .collect();
    let file = VectorFile::of(script)?;
    let mut words = Vec::new();
    if let Some(vector) = file.vectors.first()
        && let Some(call) = vector.calls.iter().find(|call| call.script.is_none())
    {
        let keys = call.keys.as_ref().unwrap_or(&vector.keys);
        // Optional arguments are for tests.
        let many = ready.header.args.last().is_some_and(|one| one.many);
        let needed = ready.header.args.iter().filter(|one| !one.optional).count();
        let args = call.args.iter().take(if many { usize::MAX } else { needed });
        words.push(keys.len().to_string());
        words.extend(keys.iter().chain(args).map(|word| quoted(word)));
    }
    Ok(format!(
        "redis-cli EVAL {} {}",
        quoted(&code.join("\n")),
        words.join(" ")
    ))
}

fn quoted(word: &str) -> String {
    let harmless = |letter: char| letter.is_ascii_alphanumeric() || "-_:./,".contains(letter);
    if !word.is_empty() && word.chars().all(harmless) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn export(folder: &Path, json: bool, out: &mut impl Write) -> Result<(), CliError> {
    let write = |path: PathBuf, text: &str| {
        std::fs::write(&path, text).map_err(|source| CliError::File { path, source })
    };
    std::fs::create_dir_all(folder).map_err(|source| CliError::File {
        path: folder.to_owned(),
        source,
    })?;
    let mut described = Vec::new();
    for entry in all() {
        let (name, ready) = (entry.script.name(), entry.script.ready()?);
        write(folder.join(format!("{name}.lua")), &ready.text)?;
        write(folder.join(format!("{name}.json")), entry.script.vectors())?;
        described.push(describe(entry.script, ready));
    }
    let count = described.len();
    let index = serde_json::Value::from(described);
    write(folder.join("index.json"), &format!("{index:#}\n"))?;
    if json {
        writeln!(out, "{index}")?;
    } else {
        writeln!(
            out,
            "{count} scripts with their vectors are in {}",
            folder.display()
        )?;
    }
    Ok(())
}

async fn load<C: ConnectionLike + Clone>(
    scripts: &Scripts<C>,
    json: bool,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let mut loaded = serde_json::Map::new();
    for entry in all() {
        scripts.load(entry.script).await?;
        let sha = &entry.script.ready()?.sha;
        if json {
            loaded.insert(entry.script.name().to_owned(), sha.as_str().into());
        } else {
            writeln!(out, "{sha} {}", entry.script.name())?;
        }
    }
    if json {
        writeln!(out, "{}", serde_json::Value::Object(loaded))?;
    }
    Ok(())
}

async fn test<C: ConnectionLike + Clone>(
    scripts: &Scripts<C>,
    names: &[String],
    json: bool,
    out: &mut impl Write,
) -> Result<(), CliError> {
    for name in names {
        find(name)?;
    }
    let (mut results, mut failed) = (Vec::new(), 0);
    for entry in all() {
        let name = entry.script.name();
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        let result = match VectorFile::of(entry.script)?.run(scripts).await {
            Ok(count) => Ok(count),
            Err(VectorError::Differs { vector, message, .. }) => Err(format!("{vector}: {message}")),
            // Not the script's fault, so there is no use in going on.
            Err(error) => return Err(error.into()),
        };
        failed += usize::from(result.is_err());
        if json {
            results.push(match result {
                Ok(count) => json!({"script": name, "ok": true, "vectors": count}),
                Err(problem) => json!({"script": name, "ok": false, "problem": problem}),
            });
        } else {
            match result {
                Ok(count) => writeln!(out, "ok      {name}: {count} vectors")?,
                Err(problem) => writeln!(out, "differs {name}: {problem}")?,
            }
        }
    }
    if json {
        writeln!(out, "{}", serde_json::Value::from(results))?;
    }
    if failed > 0 {
        Err(CliError::Failed { count: failed })
    } else {
        Ok(())
    }
}

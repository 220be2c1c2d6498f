//! `stockade key`: makes, lists and takes back keys. It works on the data folder, so that no key is needed to make the
//! first one; a running service reads the change within a second.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde::Serialize;
use stockade_core::{Id, Millis};

use super::{FILE, Key, Scope, digest, file, fresh};
use crate::cli::output::{line, moment, table};
use crate::cli::{Failure, ended, value};

const DAY_MS: i64 = 24 * 3_600_000;
/// Whom the movements name when there is no key: a key of that name could not be told from them.
const TAKEN: [&str; 4] = ["cli", "http", "library", "stockade"];

/// API keys: who may ask, for what, in which tenant.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key and show it, once.
    Create(CreateArgs),
    /// List keys; what they are made of cannot be shown again.
    List {
        #[command(flatten)]
        folder: Folder,
    },
    /// Take a key back: a running service refuses it within a second.
    Revoke {
        /// Its id, or its name.
        key: String,
        #[command(flatten)]
        folder: Folder,
    },
}

/// Make a key.
#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// What to call it; the movements name it as the actor.
    #[arg(value_parser = value::id)]
    name: Id,
    /// What it may be used for; several with commas.
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true)]
    scope: Vec<Scope>,
    /// Whose ids, SKUs, owners and limits it is for.
    #[arg(long, value_parser = value::id, default_value = "default")]
    tenant: Id,
    /// When it ends: milliseconds since 1970 in UTC, or a time with its zone. It has no end when not given.
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    expires_at: Option<i64>,
    /// In how many days it ends.
    #[arg(long, value_name = "N", value_parser = value::days, conflicts_with = "expires_at")]
    days: Option<u64>,
    #[command(flatten)]
    folder: Folder,
}

/// Where the keys are.
#[derive(Debug, clap::Args)]
pub(crate) struct Folder {
    /// The data folder of the service.
    #[arg(
        long,
        env = "STOCKADE_DATA",
        value_name = "DIR",
        default_value = "./stockade-data"
    )]
    data: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A key, without what it is made of.
#[derive(Serialize)]
struct View<'a> {
    id: &'a str,
    name: &'a str,
    tenant: &'a str,
    scopes: &'a [Scope],
    status: &'static str,
    created_at_ms: Millis,
    expires_at_ms: Option<Millis>,
    revoked_at_ms: Option<Millis>,
    /// Of a new key, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

pub(crate) fn run(command: KeyCommand) -> ExitCode {
    let now = crate::load::now_ms();
    ended(match command {
        KeyCommand::Create(args) => create(args, now),
        KeyCommand::List { folder } => list(&folder, now),
        KeyCommand::Revoke { key, folder } => revoke(&key, &folder, now),
    })
}

fn create(args: CreateArgs, now: Millis) -> Result<(), Failure> {
    let refuse = |why: String| Err(Failure::Usage(why));
    if TAKEN.contains(&args.name.as_str()) {
        return refuse(format!(
            "a key cannot be called {}: movements made without a key name that; choose another name",
            args.name
        ));
    }
    let in_days = args
        .days
        .and_then(|days| i64::try_from(days).ok())
        .map(|days| now + days * DAY_MS);
    let ends_at = args.expires_at.or(in_days);
    if ends_at.is_some_and(|end| end <= now) {
        return refuse("--expires-at must be in the future".to_owned());
    }
    let mut scopes = args.scope;
    scopes.sort_by_key(|scope| *scope as u8);
    scopes.dedup();
    let (secret, public_id) =
        fresh().map_err(|e| Failure::Other(format!("this machine gives no random numbers: {e}")))?;
    let key = Key {
        public_id,
        name: args.name,
        tenant: args.tenant,
        scopes,
        created_at: now,
        ends_at,
        revoked_at: None,
        digest: digest(secret.reveal().as_bytes()),
    };
    let added = key.clone();
    let is_first = file::change(&args.folder.data, |keys| {
        if keys
            .iter()
            .any(|known| known.name == added.name && known.is_good(now))
        {
            return Err(format!(
                "there is a key called {} already; revoke it, or choose another name",
                added.name
            ));
        }
        keys.push(added);
        Ok(keys.len() == 1)
    })
    .map_err(Failure::Other)?;
    if args.folder.json {
        return json(&view(&key, now, Some(secret.reveal())));
    }
    if is_first {
        eprintln!(
            "the first key in {}: a service that runs on it without keys stays open until it is started again",
            args.folder.data.display()
        );
    }
    eprintln!(
        "key {} ({}), tenant {}, scopes {}; this is the only time it is shown:",
        key.name,
        key.public_id,
        key.tenant,
        words(&key.scopes)
    );
    line(secret.reveal())
}

fn list(folder: &Folder, now: Millis) -> Result<(), Failure> {
    let keys = file::read(&folder.data)
        .map_err(Failure::Other)?
        .unwrap_or_default();
    if folder.json {
        let views: Vec<View<'_>> = keys.iter().map(|key| view(key, now, None)).collect();
        return json(&serde_json::json!({ "keys": views }));
    }
    if keys.is_empty() {
        let path = folder.data.join(FILE);
        return line(&format!(
            "no keys in {}; make one with `stockade key create`",
            path.display()
        ));
    }
    let mut shown = table(&["id", "name", "tenant", "scopes", "status", "created", "ends"]);
    let time = |at: Option<Millis>| moment(at.map(serde_json::Value::from).as_ref());
    for key in &keys {
        shown.add_row([
            key.public_id.clone(),
            key.name.to_string(),
            key.tenant.to_string(),
            words(&key.scopes),
            status(key, now).to_owned(),
            time(Some(key.created_at)),
            time(key.ends_at),
        ]);
    }
    line(&shown.to_string())
}

fn revoke(which: &str, folder: &Folder, now: Millis) -> Result<(), Failure> {
    let revoked = file::change(&folder.data, |keys| {
        let by_id = keys.iter().position(|key| key.public_id == which);
        // Of keys with one name at most one is good; an earlier one has been revoked or has ended.
        let by_name = || {
            keys.iter()
                .rposition(|key| key.name.as_str() == which && key.revoked_at.is_none())
                .or_else(|| keys.iter().rposition(|key| key.name.as_str() == which))
        };
        let key = by_id.or_else(by_name).and_then(|at| keys.get_mut(at));
        let key = key.ok_or_else(|| format!("there is no key {which}; `stockade key list` lists them"))?;
        key.revoked_at.get_or_insert(now);
        Ok(key.clone())
    })
    .map_err(Failure::Other)?;
    if folder.json {
        return json(&view(&revoked, now, None));
    }
    line(&format!(
        "key {} ({}) is revoked",
        revoked.name, revoked.public_id
    ))
}

fn status(key: &Key, now: Millis) -> &'static str {
    match key {
        Key {
            revoked_at: Some(_), ..
        } => "revoked",
        key if !key.is_good(now) => "ended",
        _ => "good",
    }
}

fn view<'a>(key: &'a Key, now: Millis, secret: Option<&'a str>) -> View<'a> {
    View {
        id: &key.public_id,
        name: key.name.as_str(),
        tenant: key.tenant.as_str(),
        scopes: &key.scopes,
        status: status(key, now),
        created_at_ms: key.created_at,
        expires_at_ms: key.ends_at,
        revoked_at_ms: key.revoked_at,
        key: secret,
    }
}

fn words(scopes: &[Scope]) -> String {
    let words: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    words.join(", ")
}

fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|e| Failure::Other(e.to_string()))?;
    line(&text)
}

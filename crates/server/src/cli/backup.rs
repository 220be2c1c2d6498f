//! `stockade backup`, `stockade restore`: a copy of the ledger, from a running service or a stopped one, and back.
//!
//! Either way the copy is read back where it ends up before it gets its name, and nothing is ever overwritten.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Body as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use stockade_ledger::{Copied, LedgerCare as _, Sqlite, take_over};
use tokio::time::timeout;

use super::client::{Answer, Door, judged, query};
use super::stream::{Opened, open};
use super::{Failure, Service, ended, folder, output};

/// How long the service may take to make the copy: some seconds for each million reservations.
const COPIED_WITHIN: Duration = Duration::from_secs(3_600);

/// Copy the ledger into a new file, which `stockade restore` takes back.
///
/// Asks the running service, which goes on selling; with --data it copies the ledger of a stopped one. The file holds the
/// data of all tenants, and no API keys.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to write. One that is there already is never overwritten.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The data folder of a stopped service, instead of asking the running one.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Do not compare the copy with its movements: faster, and `restore` does it.
    #[arg(long)]
    skip_audit: bool,
    #[command(flatten)]
    service: Service,
}

/// Take a backup into an empty or missing data folder, once it is read from beginning to end and compared with its
/// movements.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// What `stockade backup` wrote.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The data folder to make. Nothing in it is ever overwritten.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn backup(args: BackupArgs) -> ExitCode {
    ended(made(&args).await)
}

async fn made(args: &BackupArgs) -> Result<(), Failure> {
    // Said before anything is asked for; looked at again when the copy gets its name.
    if args.file.exists() {
        return Err(Failure::Usage(format!(
            "{}: is there already, and nothing is overwritten: name another file",
            args.file.display()
        )));
    }
    let copied = match &args.data {
        Some(data) => of_folder(data, args)?,
        None => of_service(args).await?,
    };
    show(args.service.json, &copied, |line| {
        format!("{line}; take it back with `stockade restore`")
    })
}

fn of_folder(data: &Path, args: &BackupArgs) -> Result<Copied, Failure> {
    let (ledger, _lock) = folder::open(data, "or leave out --data to ask the running service")?;
    let bar = bar("{bar:32} {percent}% copied {elapsed} {msg}");
    let copied = ledger.backup(&args.file, !args.skip_audit, &mut |progress| {
        bar.set_length(progress.all);
        bar.set_position(progress.done);
        if progress.done == progress.all {
            bar.set_message("reading it back");
        }
    });
    bar.finish_and_clear();
    copied.map_err(|e| Failure::Other(e.to_string()))
}

async fn of_service(args: &BackupArgs) -> Result<Copied, Failure> {
    let service = &args.service;
    let door = Door::of(service)?;
    let nothing = Empty::<Bytes>::new().map_err(|never| match never {});
    let skip = args.skip_audit.then(|| "true".to_owned());
    let path = format!("/v1/backup{}", query(&[("skip_audit", skip)]));
    let request = door.request(&Method::POST, &path, "application/json", nothing)?;
    let cut =
        |why: &str| Failure::Unreachable(format!("{}: {why}; there is no backup, try again", door.base));
    let bar = bar("{spinner} {msg} {bytes} of {total_bytes} {bytes_per_sec} {elapsed}");
    bar.set_message("the service copies and checks");
    bar.enable_steady_tick(Duration::from_millis(200));
    let response = match timeout(COPIED_WITHIN, open(&door, request)).await {
        Ok(opened) => match opened? {
            Opened::Answered(response) => response,
            Opened::Cut(why) => return Err(cut(&why)),
        },
        Err(_) => return Err(cut("no answer within an hour")),
    };
    let status = response.status();
    let mut body = response.into_body();
    if !status.is_success() {
        let body = body.collect().await.map_err(|e| cut(&e.to_string()))?;
        let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        let refused = output::or_problem(service.json, judged(status, text, None));
        return Err(refused.err().unwrap_or_else(|| cut("no backup in the answer")));
    }
    let Some(bytes) = body.size_hint().exact() else {
        return Err(cut("the answer does not say how long it is"));
    };
    bar.set_length(bytes);
    bar.set_message("copied");
    let draft = Draft::make(&args.file)?;
    let within = Duration::from_millis(service.timeout_ms);
    let mut came = 0;
    while came < bytes {
        let frame = match timeout(within, body.frame()).await {
            Err(_) => return Err(cut(&format!("nothing more within {} ms", service.timeout_ms))),
            Ok(None) => break,
            Ok(Some(frame)) => frame.map_err(|e| cut(&e.to_string()))?,
        };
        let Ok(data) = frame.into_data() else { continue };
        draft.write(&data)?;
        came += data.len() as u64;
        bar.set_position(came);
    }
    if came != bytes {
        return Err(cut(&format!("{came} bytes of {bytes} came")));
    }
    bar.set_message("reading it back");
    // The service has compared it with its movements; here it is what arrived that is looked at.
    let copied = draft.named(&args.file);
    bar.finish_and_clear();
    copied
}

/// The file while it is not whole; removed unless it gets its name.
struct Draft {
    file: File,
    path: PathBuf,
}

impl Draft {
    fn make(place: &Path) -> Result<Self, Failure> {
        let mut path = place.as_os_str().to_owned();
        path.push(".partial");
        let path = PathBuf::from(path);
        // Every tenant's orders are in it.
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path);
        match made {
            Ok(file) => Ok(Self { file, path }),
            Err(error) => Err(Failure::Usage(format!("{}: {error}", path.display()))),
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        (&self.file)
            .write_all(bytes)
            .map_err(|e| Failure::Other(format!("{}: {e}", self.path.display())))
    }

    fn named(self, place: &Path) -> Result<Copied, Failure> {
        take_over(&self.path, place, false).map_err(|e| Failure::Other(e.to_string()))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It has its name, or is good for nothing; what went wrong was said.
        let _ = std::fs::remove_file(&self.path);
    }
}

pub(crate) fn restore(args: &RestoreArgs) -> ExitCode {
    ended(restored(args))
}

fn restored(args: &RestoreArgs) -> Result<(), Failure> {
    if args.data.join(Sqlite::FILE).exists() {
        return Err(Failure::Usage(format!(
            "{}: holds a ledger already, and nothing is overwritten: name another folder",
            args.data.display()
        )));
    }
    // Or a mistyped file would leave a folder behind.
    if !args.file.is_file() {
        return Err(Failure::Usage(format!("{}: no such file", args.file.display())));
    }
    let _lock = folder::lock(&args.data, "name another folder")?;
    let bar = bar("{spinner} copying and checking {elapsed}");
    bar.enable_steady_tick(Duration::from_millis(200));
    let copied = stockade_ledger::restore(&args.file, &args.data);
    bar.finish_and_clear();
    let copied = copied.map_err(|e| Failure::Other(e.to_string()))?;
    show(args.json, &copied, |line| {
        format!(
            "{line}\nWhat was answered after that is not in it: count the stock and look through the orders since then \
             (docs/operations.md, \"Backup and restore\"). API keys are not in a backup."
        )
    })
}

fn show(json: bool, copied: &Copied, people: impl FnOnce(String) -> String) -> Result<(), Failure> {
    let shards: Vec<Value> = copied
        .shards
        .iter()
        .map(|row| json!({"shard": row.shard, "epoch": row.epoch, "recorded_entry": row.cursor, "at_ms": row.at}))
        .collect();
    let body = json!({"file": copied.path.to_string_lossy(), "bytes": copied.bytes, "shards": shards});
    let text = body.to_string();
    output::print(json, &Answer { body, text }, |body| {
        let last = |name: &str| copied.shards.first().and(body["shards"][0].get(name));
        let stands = match last("at_ms").and_then(Value::as_i64) {
            Some(at) if at > 0 => format!(
                "as recorded up to entry {} of {}",
                output::shown(last("recorded_entry")),
                output::moment(last("at_ms"))
            ),
            _ => "with nothing recorded yet".to_owned(),
        };
        people(format!(
            "{}: {} bytes, read back, {stands}",
            output::shown(body.get("file")),
            copied.bytes
        ))
    })
}

/// Draws on standard error, and only if that is a terminal.
fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("##-"));
    }
    bar
}

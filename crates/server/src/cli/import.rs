//! `stockade stock import`: a file of counts or deliveries, sent as it is read.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use clap::ValueEnum;
use http_body_util::BodyExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use stockade_core::Id;
use tokio::time::{sleep, timeout};

use super::client::{Answer, Door, judged, query};
use super::stream::{Opened, open};
use super::{Failure, Service, ended, output, value};
use crate::pieces::{Pieces, Source};

/// How much of the file is in memory: so many pieces of so many bytes.
const PIECES: usize = 4;
const PIECE_BYTES: usize = 64 << 10;
/// How long nothing may move before the service counts as gone: it decides groups of rows, and each may take its time.
const STILL_WITHIN: Duration = Duration::from_secs(90);
/// How often a file is sent at most.
const TRIES_MAX: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// Set or add stock by the file: CSV with a header, or NDJSON.
///
/// Columns: `sku`, `location`?, `on_hand` (of --as target) or `quantity` (of --as delivery), `sold_seen`?,
/// `if_revision`?, `id`?, `reason`?. A row that is refused is reported and does not stop the others; the exit code is then
/// 1. Sent again with the same --id, rows that were done have no second effect.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file; `-` is standard input.
    file: PathBuf,
    /// What the figures are: counts of what is there, or units that came in.
    #[arg(long = "as", value_name = "MEANING")]
    meaning: Meaning,
    /// How the file is written; when not given, its name says it (.csv, .ndjson, .jsonl).
    #[arg(long)]
    format: Option<Format>,
    /// Check everything and say what would happen; change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Take the counts as they are, whatever was sold meanwhile.
    #[arg(long)]
    force: bool,
    /// The import's id, at most 112 bytes; a fresh one is made and printed to stderr when not given.
    #[arg(long, value_parser = value::id)]
    id: Option<Id>,
    /// Why, for rows that have no reason of their own.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    service: Service,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Meaning {
    Target,
    Delivery,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Csv,
    Ndjson,
}

pub(crate) async fn run(args: Args) -> ExitCode {
    match import(&args).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => ended(Err(failure)),
    }
}

/// Whether every row was done.
async fn import(args: &Args) -> Result<bool, Failure> {
    let is_stdin = args.file.as_os_str() == "-";
    let content_type = match (args.format, args.file.extension().and_then(|e| e.to_str())) {
        (Some(Format::Csv), _) | (None, Some("csv")) => "text/csv",
        (Some(Format::Ndjson), _) | (None, Some("ndjson" | "jsonl")) => "application/x-ndjson",
        _ => {
            let hint = "the name does not say how it is written; give --format csv or --format ndjson";
            return Err(Failure::Usage(format!("{}: {hint}", args.file.display())));
        }
    };
    let door = Door::of(&args.service)?;
    let id = match (&args.id, args.dry_run) {
        (None, true) => None,
        (given, _) => Some(value::given_or_fresh(given.as_ref(), "id")),
    };
    let meaning = match args.meaning {
        Meaning::Target => "target",
        Meaning::Delivery => "delivery",
    };
    let flag = |set: bool| set.then(|| "true".to_owned());
    let parameters = [
        ("as", Some(meaning.to_owned())),
        ("id", id.clone()),
        ("dry_run", flag(args.dry_run)),
        ("force", flag(args.force)),
        ("reason", args.reason.clone()),
    ];
    let path = format!("/v1/stock/import{}", query(&parameters));
    let mut tries = 0;
    let answer = loop {
        tries += 1;
        let result = send(args, &door, &path, content_type, id.as_deref()).await;
        let again = match &result {
            Err(Failure::Refused(problem)) => problem.may_pass(),
            Err(Failure::Unreachable(_)) => tries > 1 || args.id.is_some(),
            _ => false,
        };
        // Standard input cannot be read twice. What was done has no second effect.
        if !again || is_stdin || tries == TRIES_MAX {
            break result;
        }
        sleep(PAUSE).await;
    };
    let answer = output::or_problem(args.service.json, answer)?;
    output::print(args.service.json, &answer, people)?;
    let refused = answer.body.get("refused").and_then(Value::as_object);
    Ok(refused.is_none_or(serde_json::Map::is_empty))
}

async fn send(
    args: &Args,
    door: &Door,
    path: &str,
    content_type: &str,
    id: Option<&str>,
) -> Result<Answer, Failure> {
    let (source, length): (Box<dyn Read + Send>, Option<u64>) = if args.file.as_os_str() == "-" {
        (Box::new(std::io::stdin()), None)
    } else {
        let failed = |e: std::io::Error| Failure::Usage(format!("{}: {e}", args.file.display()));
        let file = File::open(&args.file).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        (Box::new(file), Some(length))
    };
    let bar = bar(length);
    let (pieces, body) = Pieces::new(PIECES);
    let read = bar.clone();
    std::thread::spawn(move || feed(source, &pieces, &read));
    let request = door.request(&Method::POST, path, content_type, body)?;
    let cut = |why: &str| {
        let hint = match id {
            Some(id) => format!(
                "rows may have been done; send it again with --id '{id}': those have no second effect"
            ),
            None => "nothing was changed".to_owned(),
        };
        Failure::Unreachable(format!("no answer from {}: {why}; {hint}", door.base))
    };
    let talking = async {
        let response = match open(door, request).await? {
            Opened::Answered(response) => response,
            Opened::Cut(why) => return Err(cut(&why)),
        };
        let status = response.status();
        let body = response
            .into_body()
            .collect()
            .await
            .map_err(|e| cut(&e.to_string()))?;
        judged(status, String::from_utf8_lossy(&body.to_bytes()).into_owned(), id)
    };
    let within = STILL_WITHIN.max(Duration::from_millis(args.service.timeout_ms));
    let mut talking = std::pin::pin!(talking);
    let answer = loop {
        let before = bar.position();
        match timeout(within, talking.as_mut()).await {
            Ok(answer) => break answer,
            Err(_) if bar.position() == before => break Err(cut("nothing moves any more")),
            Err(_) => {}
        }
    };
    bar.finish_and_clear();
    answer
}

/// Reads the file piece by piece, as fast as the service takes it.
fn feed(mut source: impl Read, pieces: &Source, bar: &ProgressBar) {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let read = loop {
            match source.read(&mut piece) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let next = match read {
            Ok(0) => return,
            Ok(read) => {
                piece.truncate(read);
                Ok((read, Bytes::from(piece)))
            }
            Err(error) => Err(error),
        };
        let (read, next) = match next {
            Ok((read, bytes)) => (read, Ok(bytes)),
            Err(error) => (0, Err(error)),
        };
        let failed = next.is_err();
        // Nobody takes it any more: the answer is there, or the connection is gone.
        if pieces.blocking_send(next).is_err() || failed {
            return;
        }
        bar.inc(read as u64);
    }
}

/// Draws on standard error, and only if that is a terminal.
fn bar(length: Option<u64>) -> ProgressBar {
    let (bar, template) = match length {
        Some(length) => (
            ProgressBar::new(length),
            "{bar:32} {bytes}/{total_bytes} {bytes_per_sec} {elapsed}",
        ),
        None => (ProgressBar::no_length(), "{bytes} {bytes_per_sec} {elapsed}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("##-"));
    }
    bar
}

fn people(body: &Value) -> String {
    let number = |name: &str| body.get(name).and_then(Value::as_u64).unwrap_or(0);
    let dry = body.get("dry_run").and_then(Value::as_bool) == Some(true);
    let would = if dry { "would be " } else { "" };
    let mut parts = Vec::new();
    let reports = body.get("reports").and_then(Value::as_array);
    let reports = reports.map(Vec::as_slice).unwrap_or_default();
    if !reports.is_empty() {
        let columns = ["row", "line", "sku", "location", "code", "detail"];
        let mut table = output::table(&columns);
        for report in reports {
            table.add_row(columns.iter().map(|name| output::shown(report.get(name))));
        }
        parts.push(table.to_string());
    }
    if body.get("reports_truncated").and_then(Value::as_bool) == Some(true) {
        parts.push(format!("the first {} refused rows are shown", reports.len()));
    }
    let decreases = body.get("decreases").and_then(Value::as_array);
    for less in decreases.into_iter().flatten() {
        let part = |name: &str| output::shown(less.get(name));
        parts.push(format!(
            "less: row {}, {} at {}: on hand {} -> {}",
            part("row"),
            part("sku"),
            part("location"),
            part("on_hand_before"),
            part("on_hand_after")
        ));
    }
    let ignored = body
        .get("ignored_columns")
        .filter(|names| names.as_array().is_some_and(|n| !n.is_empty()));
    if let Some(names) = ignored {
        parts.push(format!("not looked at: {}", output::shown(Some(names))));
    }
    let refused: Vec<String> = body
        .get("refused")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(code, count)| format!("{count} {code}"))
        .collect();
    let refused = if refused.is_empty() {
        "none".to_owned()
    } else {
        refused.join(", ")
    };
    parts.push(format!(
        "{} rows: {} {would}created, {} {would}changed, {} done before, refused: {refused}",
        number("rows"),
        number("created"),
        number("changed"),
        number("replayed")
    ));
    if dry {
        parts.push("nothing was changed: a dry run".to_owned());
    }
    parts.join("\n")
}

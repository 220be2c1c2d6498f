//! `stockade stock export`, `stockade movements export`: rows to standard output or a file, as they come.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use clap::ValueEnum;
use http_body_util::{BodyExt as _, Empty};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::timeout;

use super::client::{Door, judged, query};
use super::stream::{Opened, open};
use super::{Failure, Service, output};

/// How and where to write.
#[derive(Debug, clap::Args)]
pub(crate) struct File {
    /// How to write it.
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    format: Format,
    /// Of CSV: a quote before texts that a spreadsheet would take for formulas (= + - @, tab, CR).
    #[arg(long)]
    escape_formulas: bool,
    /// The file to write, put in place when it is whole; standard output when not given.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Csv,
    Ndjson,
}

/// Where the rows go.
enum Sink {
    Out(std::io::Stdout),
    /// Beside its place, until it is whole.
    File(std::fs::File, PathBuf),
}

/// Writes what the service sends until its end.
pub(crate) async fn export(
    service: &Service,
    file: &File,
    path: &str,
    filter: &[(&'static str, Option<String>)],
) -> Result<(), Failure> {
    let format = match file.format {
        Format::Csv => "csv",
        Format::Ndjson => "ndjson",
    };
    let mut parameters = filter.to_vec();
    parameters.push(("format", Some(format.to_owned())));
    parameters.push(("escape_formulas", file.escape_formulas.then(|| "true".to_owned())));
    let door = Door::of(service)?;
    let nothing = Empty::<Bytes>::new().map_err(|never| match never {});
    let path = format!("{path}{}", query(&parameters));
    let request = door.request(&Method::GET, &path, "application/json", nothing)?;
    let within = Duration::from_millis(service.timeout_ms);
    let cut = |why: &str| {
        Failure::Unreachable(format!(
            "{}: {why}; what came is not whole, export again",
            door.base
        ))
    };
    let late = || cut(&format!("nothing more within {} ms", service.timeout_ms));
    let response = match timeout(within, open(&door, request)).await {
        Ok(opened) => match opened? {
            Opened::Answered(response) => response,
            Opened::Cut(why) => return Err(cut(&why)),
        },
        Err(_) => return Err(late()),
    };
    let status = response.status();
    let mut body = response.into_body();
    if !status.is_success() {
        let body = body.collect().await.map_err(|e| cut(&e.to_string()))?;
        let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        return output::or_problem(service.json, judged(status, text, None)).map(|_| ());
    }
    let mut sink = Sink::open(file.output.as_deref())?;
    let bar = bar(file.output.is_some());
    let done = loop {
        match timeout(within, body.frame()).await {
            Err(_) => break Err(late()),
            Ok(None) => break Ok(()),
            Ok(Some(Err(error))) => break Err(cut(&error.to_string())),
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                match sink.write(&data) {
                    Ok(()) => bar.inc(data.len() as u64),
                    // Whoever reads had enough, as `head` does.
                    Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
                    Err(error) => break Err(Failure::Other(format!("cannot write: {error}"))),
                }
            }
        }
    };
    bar.finish_and_clear();
    sink.end(file.output.as_deref(), done)
}

impl Sink {
    fn open(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(file) = file else {
            return Ok(Self::Out(std::io::stdout()));
        };
        let mut beside = file.as_os_str().to_owned();
        beside.push(".part");
        let beside = PathBuf::from(beside);
        match std::fs::File::create(&beside) {
            Ok(made) => Ok(Self::File(made, beside)),
            Err(error) => Err(Failure::Usage(format!("{}: {error}", beside.display()))),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Out(out) => out.write_all(bytes),
            Self::File(file, _) => file.write_all(bytes),
        }
    }

    /// Puts a whole file in its place; of another one nothing is left.
    fn end(self, place: Option<&Path>, done: Result<(), Failure>) -> Result<(), Failure> {
        match (self, place) {
            (Self::Out(mut out), _) => {
                done?;
                match out.flush() {
                    Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                        Err(Failure::Other(format!("cannot write: {error}")))
                    }
                    _ => Ok(()),
                }
            }
            (Self::File(file, beside), Some(place)) if done.is_ok() => file
                .sync_all()
                .and_then(|()| std::fs::rename(&beside, place))
                .map_err(|e| Failure::Other(format!("{}: {e}", place.display()))),
            (Self::File(_, beside), _) => {
                // The first error is the one that counts.
                let _ = std::fs::remove_file(&beside);
                done
            }
        }
    }
}

/// Draws on standard error, and only if that is a terminal and the rows go elsewhere.
fn bar(to_file: bool) -> ProgressBar {
    if !to_file {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{bytes} {bytes_per_sec} {elapsed}") {
        bar.set_style(style);
    }
    bar
}

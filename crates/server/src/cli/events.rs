//! `stockade events`: what happens, one JSON object a line, for pipes and for people who watch.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use stockade_core::Id;
use tokio::time::{sleep, timeout};

use super::client::{Door, judged, query};
use super::stream::{Opened, open};
use super::{Failure, Service, ended, output, value};

/// How long to wait before going on after a cut.
const PAUSE: Duration = Duration::from_secs(1);
/// The service gives a sign of life every 15 s.
const SILENT_WITHIN: Duration = Duration::from_secs(45);

/// What happens, as it is recorded: one JSON object a line (docs/events.md).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Go on with what comes; after a cut, from where it was. Without it, what is recorded now is shown, then it ends.
    #[arg(short, long)]
    follow: bool,
    /// Only events after this one; 0 is the beginning. When not given: from the beginning, or from now on with --follow.
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Only this kind; may be given for several.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only movements of this SKU.
    #[arg(long, value_parser = value::id)]
    sku: Option<Id>,
    /// Tell `low_stock` when no more than so many units are available.
    #[arg(long, value_name = "N", value_parser = value::figure)]
    low_stock: Option<u64>,
    #[command(flatten)]
    service: Service,
}

pub(crate) async fn run(args: Args) -> ExitCode {
    ended(events(args).await)
}

/// How a stream came to its end.
enum End {
    /// Whoever reads the lines had enough.
    Enough,
    /// In order: with --follow the service wants it to be taken up again.
    Over,
    Cut(String),
}

async fn events(args: Args) -> Result<(), Failure> {
    let door = Door::of(&args.service)?;
    let mut after = args
        .after
        .clone()
        .or_else(|| (!args.follow).then(|| "0".to_owned()));
    let mut told = false;
    loop {
        let parameters = [
            ("after", after.clone()),
            ("kind", (!args.kind.is_empty()).then(|| args.kind.join(","))),
            ("sku", args.sku.as_ref().map(ToString::to_string)),
            ("low_stock", args.low_stock.map(|units| units.to_string())),
            ("follow", Some(args.follow.to_string())),
        ];
        let path = format!("/v1/events{}", query(&parameters));
        let why = match stream(&args.service, &door, &path, &mut after).await {
            Ok(End::Enough) => return Ok(()),
            Ok(End::Over) if !args.follow => return Ok(()),
            Ok(End::Over) => "the service ended the stream".to_owned(),
            Ok(End::Cut(why)) => why,
            // Once it was there, it may come back.
            Err(Failure::Unreachable(why)) if args.follow && told => why,
            Err(Failure::Refused(problem)) if args.follow && told && problem.may_pass() => {
                problem.to_string()
            }
            Err(failure) => return Err(failure),
        };
        let place = after.as_deref().unwrap_or("now");
        if !args.follow {
            let hint = format!("what came is not whole; go on with --after {place}");
            return Err(Failure::Unreachable(format!("{}: {why}; {hint}", door.base)));
        }
        told = true;
        eprintln!("cut ({why}); going on after {place}");
        sleep(PAUSE).await;
    }
}

async fn stream(
    service: &Service,
    door: &Door,
    path: &str,
    after: &mut Option<String>,
) -> Result<End, Failure> {
    let nothing = Empty::<Bytes>::new().map_err(|never| match never {});
    let request = door.request(&Method::GET, path, "application/json", nothing)?;
    let within = Duration::from_millis(service.timeout_ms);
    let response = match timeout(within, open(door, request)).await {
        Ok(opened) => match opened? {
            Opened::Answered(response) => response,
            Opened::Cut(why) => return Ok(End::Cut(why)),
        },
        Err(_) => return Ok(End::Cut(format!("no answer within {} ms", service.timeout_ms))),
    };
    let status = response.status();
    if !status.is_success() {
        let body = response.into_body().collect().await;
        let bytes = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        return output::or_problem(service.json, judged(status, text, None)).map(|_| End::Over);
    }
    lines(response.into_body(), after).await
}

/// Prints the data of each event as it comes, and remembers the last id.
async fn lines(mut body: Incoming, after: &mut Option<String>) -> Result<End, Failure> {
    let mut text = Vec::new();
    let mut id = None;
    loop {
        let frame = match timeout(SILENT_WITHIN, body.frame()).await {
            Err(_) => return Ok(End::Cut("no sign of life".to_owned())),
            Ok(None) => return Ok(End::Over),
            Ok(Some(Err(error))) => return Ok(End::Cut(error.to_string())),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        text.extend_from_slice(&data);
        let mut out = std::io::stdout().lock();
        let mut begin = 0;
        while let Some(length) = text
            .get(begin..)
            .and_then(|rest| rest.iter().position(|b| *b == b'\n'))
        {
            let line =
                String::from_utf8_lossy(text.get(begin..begin + length).unwrap_or_default()).into_owned();
            begin += length + 1;
            if let Some(new) = line.strip_prefix("id: ") {
                id = Some(new.to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                match writeln!(out, "{data}") {
                    Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(End::Enough),
                    Err(error) => return Err(Failure::Other(format!("cannot write to stdout: {error}"))),
                    Ok(()) => {}
                }
            } else if line.is_empty() && id.is_some() {
                // The whole event is out: only now it is behind us.
                *after = id.take();
            }
        }
        text.drain(..begin);
        match out.flush() {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(End::Enough),
            Err(error) => return Err(Failure::Other(format!("cannot write to stdout: {error}"))),
            Ok(()) => {}
        }
    }
}

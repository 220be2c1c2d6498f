//! `stockade audit`: against a running service, or on the folder of a stopped one.

use std::path::PathBuf;
use std::process::ExitCode;

use axum::http::Method;
use serde_json::{Value, json};
use stockade::OpenError;

use super::client::{AUDIT, Answer, send};
use super::{Failure, Service, ended, output, value};

/// An audit reads everything: asking again after the usual time would only make it slower.
const AUDIT_WITHIN_MS: u64 = 600_000;

/// How to audit.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The data folder of a stopped service, instead of asking the running one.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The most findings to list.
    #[arg(long, value_name = "N", default_value = "100", value_parser = value::finding_limit)]
    limit: u64,
    #[command(flatten)]
    service: Service,
}

pub(crate) async fn run(args: Args) -> ExitCode {
    match audit(&args).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => ended(Err(failure)),
    }
}

/// Whether all is well.
async fn audit(args: &Args) -> Result<bool, Failure> {
    let answer = if let Some(folder) = &args.data {
        on_folder(folder, args.limit).await?
    } else {
        let body = json!({"limit": args.limit});
        let patient = Service {
            timeout_ms: args.service.timeout_ms.max(AUDIT_WITHIN_MS),
            ..args.service.clone()
        };
        let answer = send(&patient, Method::POST, AUDIT, Some(&body)).await;
        output::or_problem(args.service.json, answer)?
    };
    output::print(args.service.json, &answer, people)?;
    Ok(answer.body.get("clean").and_then(Value::as_bool) == Some(true))
}

async fn on_folder(folder: &PathBuf, limit: u64) -> Result<Answer, Failure> {
    // A mistyped folder must not become a new, empty and clean store.
    if !folder.is_dir() {
        let message = format!(
            "{}: no such folder; give the --data of the service",
            folder.display()
        );
        return Err(Failure::Usage(message));
    }
    let store = stockade::Stockade::open(folder).await.map_err(|e| match e {
        OpenError::Locked { .. } => {
            Failure::Other(format!("{e}; or leave out --data to ask the running service"))
        }
        OpenError::Folder { .. } | OpenError::Ledger(_) => Failure::Other(e.to_string()),
    })?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let report = store.audit(limit).await;
    let closed = store.close().await;
    let report = report.map_err(|e| Failure::Other(e.to_string()))?;
    closed.map_err(|e| Failure::Other(format!("the store did not close well: {e}")))?;
    let failed = |e: serde_json::Error| Failure::Other(format!("the report could not be written: {e}"));
    let view = crate::http::AuditView::of(&report);
    let text = serde_json::to_string(&view).map_err(failed)?;
    let body = serde_json::from_str(&text).map_err(failed)?;
    Ok(Answer { body, text })
}

fn people(body: &Value) -> String {
    let number = |name: &str| output::shown(body.get(name));
    let compared = format!(
        "{} SKUs and {} live reservations compared",
        number("skus"),
        number("live_reservations")
    );
    let findings = body
        .get("findings")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if findings.is_empty() {
        return format!("clean: {compared}, nothing differs");
    }
    let mut table = output::table(&["what", "where", "expected", "found"]);
    for finding in &findings {
        table.add_row(
            ["what", "place", "expected", "found"]
                .iter()
                .map(|name| output::shown(finding.get(name))),
        );
    }
    let more = if body.get("truncated").and_then(Value::as_bool) == Some(true) {
        " and more"
    } else {
        ""
    };
    format!("{table}\n{}{more} findings; {compared}", findings.len())
}

//! `stockade audit`: against a running service, or on the folder of a stopped one.
//!
//! On a folder no store is opened: that would start a new epoch, end what is due, and fail on just those ledgers whose
//! audit is wanted most. The ledger is compared with its own movements; there is no memory to compare it with.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use axum::http::Method;
use serde_json::{Value, json};
use stockade_core::Reason;
use stockade_ledger::{Finding, Ledger as _, LedgerError};

use super::client::{AUDIT, Answer, send};
use super::folder::SHARD;
use super::{Failure, Service, ended, output, value};

/// An audit reads everything: asking again after the usual time would only make it slower.
const AUDIT_WITHIN_MS: u64 = 600_000;

/// How to audit.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The data folder of a stopped service, instead of asking the running one. Compares the ledger with its movements
    /// and changes neither.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Mend what differs: counters by recorded movements, derived tables by making them anew.
    #[arg(long, requires = "data")]
    repair: bool,
    /// Only show what would be mended.
    #[arg(long, requires = "repair")]
    dry_run: bool,
    /// Why; the movements say so.
    #[arg(long, value_name = "TEXT", requires = "repair", value_parser = value::reason)]
    reason: Option<Reason>,
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
    if let (Some(folder), true) = (&args.data, args.repair) {
        return super::repair::repair(folder, args.dry_run, args.reason.as_ref(), args.service.json);
    }
    let answer = if let Some(folder) = &args.data {
        on_folder(folder, args.limit)?
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

fn on_folder(folder: &Path, limit: u64) -> Result<Answer, Failure> {
    let other = |e: LedgerError| Failure::Other(e.to_string());
    let (ledger, lock) = super::folder::open(folder, "or leave out --data to ask the running service")?;
    let view = ledger.view().map_err(other)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // One more than there is room for shows whether there are more.
    let mut findings = Vec::new();
    match view.audit(SHARD, limit.saturating_add(1)) {
        Ok(found) => findings = found,
        Err(why) => findings.push(unreadable("movements", &why)?),
    }
    let mut skus = 0;
    if let Err(why) = view.skus(SHARD, &mut |_| skus += 1) {
        findings.push(unreadable("sku", &why)?);
    }
    let mut live = 0;
    if let Err(why) = view.live(SHARD, &mut |_| live += 1) {
        findings.push(unreadable("reservation", &why)?);
    }
    let truncated = findings.len() > limit;
    findings.truncate(limit);
    drop((view, ledger, lock));
    let failed = |e: serde_json::Error| Failure::Other(format!("the report could not be written: {e}"));
    let view = crate::http::AuditView::new(&findings, truncated, skus, live);
    let text = serde_json::to_string(&view).map_err(failed)?;
    let body = serde_json::from_str(&text).map_err(failed)?;
    Ok(Answer { body, text })
}

/// A value that no ledger writes is a finding: a store would stop at it. Anything else is trouble with the disk.
fn unreadable(what: &str, why: &LedgerError) -> Result<Finding, Failure> {
    match why {
        LedgerError::Corrupt { .. } | LedgerError::Database(_) => Ok(Finding {
            what: what.to_owned(),
            place: format!("shard {SHARD}"),
            expected: "records that can be read".to_owned(),
            found: why.to_string(),
        }),
        _ => Err(Failure::Other(why.to_string())),
    }
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

//! Audits that nobody has to ask for: a difference is found when it comes up, and not when somebody wonders.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stockade::AuditReport;
use tokio::time::{MissedTickBehavior, interval};

use super::app::App;
use super::problem::Problem;

/// Findings that are counted.
const FINDINGS: usize = 1_000;

impl App {
    /// Audits now and then, for as long as the service runs.
    pub(crate) async fn audit_every(self: Arc<Self>, every: Duration) {
        let mut due = interval(every);
        // One that takes longer than that is not followed by the next at once.
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            match self.audit(FINDINGS).await {
                Ok(report) => say(&report),
                Err(Problem::Auditing) => tracing::info!("no audit now: somebody else's is under way"),
                Err(problem) => {
                    let detail = problem.view().detail().to_owned();
                    tracing::warn!(detail, "the audit could not be done");
                }
            }
        }
    }
}

/// Without what differs: ids of buyers are not for the log.
fn say(report: &AuditReport) {
    let (skus, live, at) = (report.skus, report.live, report.at.seq);
    if report.is_clean() {
        tracing::info!(skus, live, at, "audited: nothing differs");
        return;
    }
    let kinds: BTreeSet<&str> = report.findings.iter().map(|one| one.what.as_str()).collect();
    tracing::error!(
        findings = report.findings.len(),
        truncated = report.truncated,
        ?kinds,
        at,
        "THE AUDIT FOUND DIFFERENCES: `stockade audit` lists them, docs/operations.md says what to do"
    );
}

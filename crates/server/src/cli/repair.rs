//! `stockade audit --repair`: mends the ledger of a stopped service by recorded movements, so that what was done about it
//! can be read later like everything else.

use std::path::Path;

use serde_json::{Value, json};
use stockade_core::{Counters, Id, Reason};
use stockade_ledger::{Finding, Ledger as _, LedgerCare as _, RepairPlan};

use super::client::Answer;
use super::folder::{self, SHARD};
use super::{Failure, output};

/// Whom the movements name.
const ACTOR: &str = "cli";
/// Findings of the audit afterwards that are listed.
const FINDINGS: usize = 100;

/// Plans, and carries it out unless it is a dry run. Whether all is well then.
pub(super) fn repair(
    folder: &Path,
    is_dry: bool,
    reason: Option<&Reason>,
    json: bool,
) -> Result<bool, Failure> {
    if !is_dry && reason.is_none() {
        return Err(Failure::Usage(
            "--repair needs a --reason, which the movements will say; --dry-run shows what would be mended"
                .to_owned(),
        ));
    }
    let (ledger, _lock) = folder::open(folder, "stop the service first")?;
    let failed = |e: &dyn std::fmt::Display| Failure::Other(e.to_string());
    let plan = ledger
        .plan_repair(SHARD)
        .map_err(|e| Failure::Other(format!("{e}; this cannot be mended: restore a backup")))?;
    let mut left = plan.left.clone();
    let mut is_repaired = false;
    if let Some(reason) = reason.filter(|_| !is_dry && !plan.is_empty()) {
        let actor = Id::new(ACTOR).map_err(|e| failed(&e))?;
        ledger.repair(&plan, &actor, reason).map_err(|e| failed(&e))?;
        is_repaired = true;
        let view = ledger.view().map_err(|e| failed(&e))?;
        left = view.audit(SHARD, FINDINGS).map_err(|e| failed(&e))?;
    }
    let is_clean = left.is_empty() && (is_repaired || plan.is_empty());
    let body = shown(&plan, &left, is_dry, is_repaired, is_clean);
    let text = body.to_string();
    output::print(json, &Answer { body, text }, |_| {
        people(&plan, &left, is_repaired)
    })?;
    Ok(is_clean)
}

fn shown(plan: &RepairPlan, left: &[Finding], is_dry: bool, is_repaired: bool, is_clean: bool) -> Value {
    let counters = |counters: &Counters| {
        json!({
            "on_hand": counters.on_hand,
            "reserved": counters.reserved,
            "sold": counters.sold,
            "safety_stock": counters.safety_stock,
        })
    };
    let mended: Vec<Value> = plan
        .counters
        .iter()
        .map(|one| {
            json!({
                "tenant": one.tenant.as_str(),
                "sku": one.sku.as_str(),
                "location": one.location.as_str(),
                "found": one.found.as_ref().map(counters),
                "right": counters(&one.right),
            })
        })
        .collect();
    let left: Vec<Value> = left
        .iter()
        .map(
            |one| json!({"what": one.what, "place": one.place, "expected": one.expected, "found": one.found}),
        )
        .collect();
    json!({
        "dry_run": is_dry,
        "repaired": is_repaired,
        "clean": is_clean,
        "counters": mended,
        "derived": plan.derived,
        "left": left,
    })
}

fn people(plan: &RepairPlan, left: &[Finding], is_repaired: bool) -> String {
    let mut parts = Vec::new();
    if !plan.counters.is_empty() {
        let mut table = output::table(&["tenant", "SKU", "location", "counter", "found", "right"]);
        for one in &plan.counters {
            let found = one.found.unwrap_or_default();
            let rows = [
                ("on_hand", found.on_hand, one.right.on_hand),
                ("reserved", found.reserved, one.right.reserved),
                ("sold", found.sold, one.right.sold),
                ("safety_stock", found.safety_stock, one.right.safety_stock),
                ("version", found.version, one.right.version),
            ];
            // A mended row gets a new version whatever was wrong with it.
            for (name, found, right) in rows.iter().filter(|row| row.1 != row.2) {
                let found = one
                    .found
                    .map_or_else(|| "no row".to_owned(), |_| found.to_string());
                table.add_row([
                    one.tenant.as_str(),
                    one.sku.as_str(),
                    one.location.as_str(),
                    name,
                    &found,
                    &right.to_string(),
                ]);
            }
        }
        parts.push(table.to_string());
    }
    if plan.derived {
        parts.push(
            "tables that follow from the others (by id, owner, SKU, what is live): made anew".to_owned(),
        );
    }
    if !left.is_empty() {
        let mut table = output::table(&["what", "where", "expected", "found"]);
        for one in left {
            table.add_row([&one.what, &one.place, &one.expected, &one.found]);
        }
        parts.push(format!(
            "{table}\n{} left that no movement can mend: somebody changed the history. Restore a backup, or live with it",
            left.len()
        ));
    }
    parts.push(match (plan.is_empty(), is_repaired) {
        (true, _) => "nothing to mend".to_owned(),
        (false, true) => format!(
            "mended: counters of {} places; the next start builds the hot state anew",
            plan.counters.len()
        ),
        (false, false) => {
            "nothing was changed; without --dry-run and with a --reason this is mended".to_owned()
        }
    });
    parts.join("\n")
}

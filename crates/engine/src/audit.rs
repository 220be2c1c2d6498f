//! Compares the hot tier with the ledger, and the ledger with its movements, at one moment.
//!
//! The deciding thread copies the shard between two entries, and opens the ledger's view when exactly the entries up
//! to there are recorded. Everything else happens on another thread, from the copy and the view.

use std::collections::HashMap;
use std::fmt::Debug;

use stockade_core::{Id, Reservation, SkuRecord};
use stockade_ledger::{Finding, LedgerError, View};

use crate::api::AuditReport;
use crate::tier::Frozen;

/// Findings, up to a limit.
struct Findings {
    found: Vec<Finding>,
    limit: usize,
    truncated: bool,
}

impl Findings {
    fn add(
        &mut self,
        what: &str,
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        if self.found.len() >= self.limit {
            self.truncated = true;
            return;
        }
        self.found.push(Finding {
            what: what.into(),
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
        });
    }

    /// The ledger is what is expected, since everything is rebuilt from it.
    fn compare<T: PartialEq + Debug>(&mut self, what: &str, place: &str, ledger: &T, hot: &T) {
        if ledger != hot {
            self.add(what, place, format!("{ledger:?}"), format!("{hot:?}"));
        }
    }
}

/// Compares; blocks for as long as reading the ledger takes.
pub(crate) fn compare(shard: u32, frozen: Frozen, limit: usize) -> Result<AuditReport, LedgerError> {
    let mut findings = Findings {
        found: Vec::new(),
        limit,
        truncated: false,
    };
    let Frozen {
        at,
        skus,
        live,
        usage,
        view,
    } = frozen;
    let row = view.shard(shard)?;
    let position = row.map(|row| (row.epoch, row.cursor, row.tag));
    let expected = Some((at.epoch, at.seq, at.tag));
    if position == expected {
        let counts = (skus.len(), live.len());
        compare_skus(shard, skus, &*view, &mut findings)?;
        compare_live(shard, live, &*view, &mut findings)?;
        compare_usage(shard, usage, &*view, &mut findings)?;
        // One more than there is room for shows whether there are more.
        let room = limit.saturating_sub(findings.found.len()).saturating_add(1);
        for finding in view.audit(shard, room)? {
            findings.add(&finding.what, finding.place, finding.expected, finding.found);
        }
        return Ok(report(at, counts, findings));
    }
    findings.add(
        "chain",
        format!("shard {shard}"),
        format!("{expected:?}"),
        format!("{position:?}"),
    );
    Ok(report(at, (0, 0), findings))
}

fn report(at: stockade_core::Position, (skus, live): (usize, usize), findings: Findings) -> AuditReport {
    AuditReport {
        findings: findings.found,
        truncated: findings.truncated,
        skus: u64::try_from(skus).unwrap_or(u64::MAX),
        live: u64::try_from(live).unwrap_or(u64::MAX),
        at,
    }
}

fn compare_skus(
    shard: u32,
    hot: Vec<SkuRecord>,
    view: &dyn View,
    findings: &mut Findings,
) -> Result<(), LedgerError> {
    let mut hot: HashMap<(Id, Id), SkuRecord> = hot
        .into_iter()
        .map(|sku| ((sku.tenant.clone(), sku.sku.clone()), sku))
        .collect();
    view.skus(shard, &mut |ledger| {
        let place = format!("{}/{}", ledger.tenant, ledger.sku);
        match hot.remove(&(ledger.tenant.clone(), ledger.sku.clone())) {
            None => findings.add("sku", place, "in the hot tier", "only in the ledger"),
            Some(hot) => compare_sku(&place, &ledger, &hot, findings),
        }
    })?;
    for (tenant, sku) in hot.into_keys() {
        findings.add(
            "sku",
            format!("{tenant}/{sku}"),
            "in the ledger",
            "only in the hot tier",
        );
    }
    Ok(())
}

fn compare_sku(place: &str, ledger: &SkuRecord, hot: &SkuRecord, findings: &mut Findings) {
    findings.compare("revision", place, &ledger.revision, &hot.revision);
    findings.compare("settings", place, &ledger.settings, &hot.settings);
    let names = |sku: &SkuRecord| -> Vec<Id> { sku.locations.iter().map(|l| l.location.clone()).collect() };
    findings.compare("locations", place, &names(ledger), &names(hot));
    for location in &ledger.locations {
        let Some(other) = hot.locations.iter().find(|l| l.location == location.location) else {
            continue;
        };
        let place = format!("{place} at {}", location.location);
        let (ledger, hot) = (&location.counters, &other.counters);
        findings.compare("on_hand", &place, &ledger.on_hand, &hot.on_hand);
        findings.compare("reserved", &place, &ledger.reserved, &hot.reserved);
        findings.compare("sold", &place, &ledger.sold, &hot.sold);
        findings.compare("safety_stock", &place, &ledger.safety_stock, &hot.safety_stock);
        findings.compare("version", &place, &ledger.version, &hot.version);
    }
}

fn compare_live(
    shard: u32,
    hot: Vec<Reservation>,
    view: &dyn View,
    findings: &mut Findings,
) -> Result<(), LedgerError> {
    let mut hot: HashMap<(Id, Id), Reservation> = hot
        .into_iter()
        .map(|reservation| ((reservation.tenant.clone(), reservation.id.clone()), reservation))
        .collect();
    view.live(shard, &mut |ledger| {
        let place = format!("{}/{}", ledger.tenant, ledger.id);
        match hot.remove(&(ledger.tenant.clone(), ledger.id.clone())) {
            None => findings.add(
                "reservation",
                place,
                "live in the hot tier",
                "live only in the ledger",
            ),
            Some(hot) => findings.compare("reservation", &place, &ledger, &hot),
        }
    })?;
    for (tenant, id) in hot.into_keys() {
        findings.add(
            "reservation",
            format!("{tenant}/{id}"),
            "live in the ledger",
            "live only in the hot tier",
        );
    }
    Ok(())
}

fn compare_usage(
    shard: u32,
    hot: Vec<(Id, Id, Id, u64)>,
    view: &dyn View,
    findings: &mut Findings,
) -> Result<(), LedgerError> {
    let mut hot: HashMap<(Id, Id, Id), u64> = hot
        .into_iter()
        .map(|(tenant, sku, owner, used)| ((tenant, sku, owner), used))
        .collect();
    view.usage(shard, &mut |tenant, sku, owner, used| {
        let found = hot
            .remove(&(tenant.clone(), sku.clone(), owner.clone()))
            .unwrap_or(0);
        findings.compare("usage", &format!("{tenant}/{sku} of {owner}"), &used, &found);
    })?;
    for ((tenant, sku, owner), used) in hot {
        findings.compare("usage", &format!("{tenant}/{sku} of {owner}"), &0, &used);
    }
    Ok(())
}

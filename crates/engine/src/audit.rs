//! Compares the hot tier with the ledger, and the ledger with its movements.
//!
//! In memory, at one moment: the deciding thread copies the shard between two entries, and opens the ledger's view when
//! exactly the entries up to there are recorded. Everything else happens on another thread, from the copy and the view.
//!
//! On Redis the state is read piece by piece while commands go on, and the view is opened when everything that was read
//! is recorded. What changed meanwhile differs then, each time in another way. So that is done several times, and a
//! finding is what differs in the same way every time.

use std::collections::{HashMap, HashSet};
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

/// The most differences of a moving state that are held against the next reading.
const MOVING_MAX: usize = 100_000;

/// What is left of a moving state's differences after several readings.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    left: Option<Vec<Finding>>,
}

impl Rounds {
    /// Takes one more reading; whether the readings are enough.
    pub(crate) fn add(&mut self, shard: u32, frozen: Frozen) -> Result<AuditReport, LedgerError> {
        let mut report = compare_hot(shard, frozen, MOVING_MAX)?.0;
        if let Some(left) = self.left.take() {
            report.findings.retain(|finding| left.contains(finding));
        }
        self.left = Some(report.findings.clone());
        Ok(report)
    }
}

/// The ledger against its own movements, added to a report of a moving state.
pub(crate) fn add_ledger(
    shard: u32,
    view: &dyn View,
    mut report: AuditReport,
    limit: usize,
) -> Result<AuditReport, LedgerError> {
    let room = limit.saturating_sub(report.findings.len()).saturating_add(1);
    report.findings.extend(view.audit(shard, room)?);
    report.truncated |= report.findings.len() > limit;
    report.findings.truncate(limit);
    Ok(report)
}

/// Compares; blocks for as long as reading the ledger takes.
pub(crate) fn compare(shard: u32, frozen: Frozen, limit: usize) -> Result<AuditReport, LedgerError> {
    let (mut report, view) = compare_hot(shard, frozen, limit)?;
    if report.findings.iter().any(|finding| finding.what == "chain") {
        return Ok(report);
    }
    let truncated = report.truncated;
    report = add_ledger(shard, &*view, report, limit)?;
    report.truncated |= truncated;
    Ok(report)
}

/// The hot tier against the ledger.
fn compare_hot(
    shard: u32,
    frozen: Frozen,
    limit: usize,
) -> Result<(AuditReport, Box<dyn View>), LedgerError> {
    let mut findings = Findings {
        found: Vec::new(),
        limit,
        truncated: false,
    };
    let Frozen {
        at,
        moving,
        skus,
        live,
        usage,
        view,
    } = frozen;
    let row = view.shard(shard)?;
    let position = row.map(|row| (row.epoch, row.cursor, row.tag));
    let expected = Some((at.epoch, at.seq, at.tag));
    // Of a moving state, everything that was read is recorded, and possibly more.
    let follows =
        moving.is_some() && position.is_some_and(|(epoch, cursor, _)| epoch == at.epoch && cursor >= at.seq);
    if position == expected || follows {
        let counts = (skus.len(), live.len());
        compare_skus(shard, skus, moving.is_some(), &*view, &mut findings)?;
        compare_live(shard, live, &*view, &mut findings)?;
        compare_usage(shard, usage, moving.as_ref(), &*view, &mut findings)?;
        return Ok((report(at, counts, findings), view));
    }
    findings.add(
        "chain",
        format!("shard {shard}"),
        format!("{expected:?}"),
        format!("{position:?}"),
    );
    Ok((report(at, (0, 0), findings), view))
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
    moving: bool,
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
            // On Redis it is loaded when it is asked for.
            None if moving => {}
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
    tracked: Option<&HashSet<(Id, Id)>>,
    view: &dyn View,
    findings: &mut Findings,
) -> Result<(), LedgerError> {
    let mut hot: HashMap<(Id, Id, Id), u64> = hot
        .into_iter()
        .map(|(tenant, sku, owner, used)| ((tenant, sku, owner), used))
        .collect();
    view.usage(shard, &mut |tenant, sku, owner, used| {
        if tracked.is_some_and(|tracked| !tracked.contains(&(tenant.clone(), sku.clone()))) {
            return;
        }
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

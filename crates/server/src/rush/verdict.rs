//! Whether the sale was right: the buyers' accounts against the final state.

use super::account::{Account, End};
use super::plan::Plan;
use crate::load::answer::StockCounters;
use crate::load::audit::Audit;

/// One SKU's units at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SkuUnits {
    pub(crate) supply: u64,
    /// By the buyers' own history, returned ones included.
    pub(crate) confirmed: u64,
    /// By the buyers' own history.
    pub(crate) returned: u64,
    /// As the service shows it.
    pub(crate) available: u64,
}

impl SkuUnits {
    /// Units sold that were not there.
    pub(crate) fn oversold(&self) -> u64 {
        self.confirmed
            .saturating_sub(self.returned)
            .saturating_sub(self.supply)
    }

    /// Units that were there, were not sold, and cannot be bought.
    pub(crate) fn undersold(&self) -> u64 {
        (self.supply + self.returned)
            .saturating_sub(self.confirmed)
            .saturating_sub(self.available)
    }
}

/// What a run came to, in orders and in units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    pub(crate) confirmed: u64,
    pub(crate) cancelled: u64,
    pub(crate) expired: u64,
    pub(crate) replayed: u64,
    pub(crate) errors: u64,
    pub(crate) oversold: u64,
    pub(crate) undersold: u64,
    /// Findings of the audit, contradictions between answers, counters that do not agree with the buyers.
    pub(crate) drift: Vec<String>,
    /// Units sold, by the buyers' own history.
    pub(crate) units_sold: u64,
    /// Units that can still be bought.
    pub(crate) units_left: u64,
}

impl Verdict {
    /// Judges a run. `stock` holds the final counters of the plan's SKUs, in its order.
    pub(crate) fn of(plan: &Plan, accounts: &[Account], stock: &[StockCounters], audit: &Audit) -> Self {
        let mut verdict = Self::default();
        let mut units: Vec<SkuUnits> = plan
            .supply
            .iter()
            .map(|supply| SkuUnits {
                supply: *supply,
                ..SkuUnits::default()
            })
            .collect();
        for (order, account) in plan.orders.iter().zip(accounts) {
            verdict.granted += u64::from(account.granted);
            verdict.replayed += account.replayed;
            verdict.errors += account.errors;
            match account.end {
                End::Refused => verdict.refused += 1,
                End::Cancelled => verdict.cancelled += 1,
                End::Expired => verdict.expired += 1,
                End::Unknown => {}
                End::Confirmed => {
                    verdict.confirmed += 1;
                    if let Some(units) = units.get_mut(order.sku as usize) {
                        units.confirmed += u64::from(order.quantity);
                    }
                }
            }
        }
        for (index, units) in units.iter_mut().enumerate() {
            let sku = plan.sku_name(index);
            let Some(shown) = stock.get(index) else {
                verdict.drift.push(format!("{sku}: its final state is not known"));
                continue;
            };
            units.available = shown.available;
            verdict.oversold += units.oversold();
            verdict.undersold += units.undersold();
            verdict.units_sold += units.confirmed;
            verdict.units_left += units.available;
            if shown.sold != units.confirmed {
                verdict.drift.push(format!(
                    "{sku}: buyers bought {}, the service sold {}",
                    units.confirmed, shown.sold
                ));
            }
            if shown.reserved != 0 {
                verdict.drift.push(format!(
                    "{sku}: {} units are reserved after the longest end",
                    shown.reserved
                ));
            }
            if shown.on_hand + shown.sold != units.supply {
                verdict
                    .drift
                    .push(format!("{sku}: {} units were supplied, {shown:?}", units.supply));
            }
        }
        let contradictions = accounts
            .iter()
            .flat_map(|account| account.contradictions.iter().cloned());
        verdict.drift.extend(contradictions);
        verdict
            .drift
            .extend(audit.findings.iter().map(|finding| format!("audit: {finding}")));
        if audit.truncated {
            verdict.drift.push("audit: there are more findings".to_owned());
        }
        verdict
    }

    pub(crate) fn is_good(&self) -> bool {
        self.oversold == 0 && self.undersold == 0 && self.drift.is_empty() && self.errors == 0
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;

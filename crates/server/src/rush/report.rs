//! What a run is reported as: one JSON object for programs, a page for people.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::plan::Plan;
use super::verdict::Verdict;

/// The JSON object, its fields and their order. Buyers' orders are counted, not units.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) buyers: u64,
    pub(crate) units: u64,
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    pub(crate) confirmed: u64,
    pub(crate) cancelled: u64,
    pub(crate) expired: u64,
    pub(crate) replayed: u64,
    pub(crate) errors: u64,
    pub(crate) oversold: u64,
    pub(crate) undersold: u64,
    pub(crate) drift: u64,
    pub(crate) seconds: f64,
    pub(crate) orders_per_second: u64,
    pub(crate) latency_us: Latency,
}

/// From the first time a request was sent to its answer, tries again included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

impl Report {
    /// `rush` is the time from the first request until every buyer had been served once.
    pub(crate) fn new(plan: &Plan, verdict: &Verdict, rush: Duration, latency_us: &Histogram<u64>) -> Self {
        let buyers = plan.orders.len() as u64;
        let seconds = rush.as_secs_f64();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is positive and far below 2^53"
        )]
        let orders_per_second = if seconds > 0.0 {
            (buyers as f64 / seconds).round() as u64
        } else {
            0
        };
        Self {
            buyers,
            units: plan.supply.iter().sum(),
            granted: verdict.granted,
            refused: verdict.refused,
            confirmed: verdict.confirmed,
            cancelled: verdict.cancelled,
            expired: verdict.expired,
            replayed: verdict.replayed,
            errors: verdict.errors,
            oversold: verdict.oversold,
            undersold: verdict.undersold,
            drift: verdict.drift.len() as u64,
            seconds: (seconds * 1_000.0).round() / 1_000.0,
            orders_per_second,
            latency_us: Latency {
                p50: latency_us.value_at_quantile(0.5),
                p99: latency_us.value_at_quantile(0.99),
                max: latency_us.max(),
            },
        }
    }

    /// The page for people.
    pub(crate) fn page(&self, plan: &Plan, verdict: &Verdict) -> String {
        let mut page = String::new();
        let skus = plan.supply.len();
        let mut row =
            |name: &str, value: String| page.extend(["  ", &format!("{name:<18}{value:>14}"), "\n"]);
        row("buyers", grouped(self.buyers));
        row("units for sale", grouped(self.units));
        row("SKUs", grouped(skus as u64));
        row("orders granted", grouped(self.granted));
        row("  confirmed", grouped(self.confirmed));
        row("  cancelled", grouped(self.cancelled));
        row("  ran out", grouped(self.expired));
        row("orders refused", grouped(self.refused));
        row("answers replayed", grouped(self.replayed));
        row("units sold", grouped(verdict.units_sold));
        row("units left", grouped(verdict.units_left));
        row("seconds", format!("{:.2}", self.seconds));
        row("orders/s", grouped(self.orders_per_second));
        row("latency p50", milliseconds(self.latency_us.p50));
        row("latency p99", milliseconds(self.latency_us.p99));
        row("latency max", milliseconds(self.latency_us.max));
        row("seed", plan.seed.to_string());
        let word = if verdict.is_good() { "PASSED" } else { "FAILED" };
        let line = format!(
            "\n{word}: oversold {}, undersold {}, drift {}, errors {}\n",
            self.oversold, self.undersold, self.drift, self.errors
        );
        page.push_str(&line);
        page
    }
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn milliseconds(us: u64) -> String {
    format!("{}.{:02} ms", us / 1_000, us % 1_000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            seed: 42,
            name: "x".to_owned(),
            supply: vec![600, 400],
            orders: Vec::new(),
        }
    }

    #[test]
    fn the_json_object_has_these_fields_in_this_order_and_no_others() {
        let latency = Histogram::new(3).unwrap();
        let report = Report::new(
            &plan(),
            &Verdict::default(),
            Duration::from_millis(1_234),
            &latency,
        );
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            "{\"buyers\":0,\"units\":1000,\"granted\":0,\"refused\":0,\"confirmed\":0,\"cancelled\":0,\"expired\":0,\
             \"replayed\":0,\"errors\":0,\"oversold\":0,\"undersold\":0,\"drift\":0,\"seconds\":1.234,\
             \"orders_per_second\":0,\"latency_us\":{\"p50\":0,\"p99\":0,\"max\":0}}"
        );
    }

    #[test]
    fn the_page_ends_with_the_verdict() {
        let latency = Histogram::new(3).unwrap();
        let good = Verdict::default();
        let page = Report::new(&plan(), &good, Duration::from_secs(1), &latency).page(&plan(), &good);
        assert!(
            page.ends_with("\nPASSED: oversold 0, undersold 0, drift 0, errors 0\n"),
            "{page}"
        );
        let bad = Verdict {
            oversold: 3,
            ..Verdict::default()
        };
        let page = Report::new(&plan(), &bad, Duration::from_secs(1), &latency).page(&plan(), &bad);
        assert!(
            page.ends_with("\nFAILED: oversold 3, undersold 0, drift 0, errors 0\n"),
            "{page}"
        );
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"],
            [0, 999, 1_000, 1_234_567].map(grouped).as_slice()
        );
        assert_eq!(milliseconds(12_345), "12.34 ms");
    }
}

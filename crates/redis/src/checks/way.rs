//! The way to the server: how long it is, and whether both ends have the same time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Finding;
use crate::error::CallError;
use crate::hot::Hot;

const ROUND_TRIPS: usize = 30;
/// A deduction is one round trip, so this is what every order waits at least.
const MEDIAN_MAX: Duration = Duration::from_millis(5);
const LONGEST_MAX: Duration = Duration::from_millis(100);
const OFFSET_MS_MAX: u64 = 1_000;

pub(super) async fn latency(hot: &Hot) -> Result<Finding, CallError> {
    let mut trips = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let begun = Instant::now();
        hot.time().await?;
        trips.push(begun.elapsed());
    }
    trips.sort_unstable();
    let median = trips.get(trips.len() / 2).copied().unwrap_or_default();
    let longest = trips.last().copied().unwrap_or_default();
    let found = format!(
        "{} us in the middle, {} us at most, of {ROUND_TRIPS} round trips",
        median.as_micros(),
        longest.as_micros()
    );
    Ok(if median > MEDIAN_MAX || longest > LONGEST_MAX {
        Finding::warning(
            "latency",
            found,
            "Run the service near the server, and look for slow commands (SLOWLOG GET) and a machine that swaps.",
        )
    } else {
        Finding::ok("latency", found)
    })
}

pub(super) async fn clock(hot: &Hot) -> Result<Finding, CallError> {
    let begun = Instant::now();
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let there = hot.time().await?;
    let middle = before + begun.elapsed() / 2;
    let here = i64::try_from(middle.as_millis()).unwrap_or(i64::MAX);
    Ok(apart(there.saturating_sub(here)))
}

fn apart(offset: i64) -> Finding {
    let found = format!("the server's clock differs from this machine's by {offset} ms");
    if offset.unsigned_abs() > OFFSET_MS_MAX {
        Finding::warning(
            "clock",
            found,
            "Keep both machines' clocks with NTP: reservations end by the server's.",
        )
    } else {
        Finding::ok("clock", found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    #[test]
    fn a_second_apart_is_too_much() {
        for (offset, severity) in [
            (0, Severity::Ok),
            (-1_000, Severity::Ok),
            (1_001, Severity::Warning),
            (i64::MIN, Severity::Warning),
        ] {
            assert_eq!(apart(offset).severity, severity, "{offset}");
        }
    }
}

//! The tier's metrics.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};
use stockade_core::Id;
use stockade_redis::{NodeStats, ScriptKind, SweepReply};

use crate::names;

/// A grant that was answered and could not be kept.
pub(super) fn lost(tenant: &Id, id: &Id, why: &str) {
    metrics::counter!(names::LOST).increment(1);
    tracing::error!(
        %tenant,
        reservation = %id,
        why,
        "a reservation that Redis alone had answered is lost: Redis lost it, and it does not fit any more"
    );
}

/// A call came back.
pub(super) fn call(kind: ScriptKind, took: Duration) {
    let kind = match kind {
        ScriptKind::Reserve => "reserve",
        ScriptKind::Confirm => "confirm",
        ScriptKind::Cancel => "cancel",
        ScriptKind::Extend => "extend",
        ScriptKind::Return => "return",
        ScriptKind::Stock => "stock",
        ScriptKind::Show => "show",
    };
    metrics::histogram!(names::CALL_SECONDS, "script" => kind).record(took.as_secs_f64());
}

/// See the module's text.
pub(super) struct Numbers {
    batch: Histogram,
    orders: Gauge,
    age: Gauge,
    entries: Gauge,
    bytes: Gauge,
    swept: Counter,
    lag: Gauge,
    live: Gauge,
    epoch: Gauge,
    waiting: Gauge,
    ready: Gauge,
    look_ups: Counter,
    again: Counter,
    loads: Counter,
    reloads: Counter,
    seen: NodeStats,
}

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Numbers").finish_non_exhaustive()
    }
}

impl Numbers {
    pub(super) fn new() -> Self {
        // So that it is there, as 0, before anything is lost.
        metrics::counter!(names::LOST).increment(0);
        metrics::counter!(names::REBUILDS).increment(0);
        Self {
            batch: metrics::histogram!(names::BATCH_COMMANDS),
            orders: metrics::gauge!(names::OUTBOX_ORDERS),
            age: metrics::gauge!(names::OUTBOX_SECONDS),
            entries: metrics::gauge!(names::OUTBOX_ENTRIES),
            bytes: metrics::gauge!(names::OUTBOX_BYTES),
            swept: metrics::counter!(names::SWEPT),
            lag: metrics::gauge!(names::SWEEP_LAG_SECONDS),
            live: metrics::gauge!(names::LIVE_RESERVATIONS),
            epoch: metrics::gauge!(names::EPOCH),
            waiting: metrics::gauge!(names::WAITING_COMMANDS),
            ready: metrics::gauge!(names::READY),
            look_ups: metrics::counter!(names::LOOK_UPS),
            again: metrics::counter!(names::ASKED_AGAIN),
            loads: metrics::counter!(names::SKU_LOADS),
            reloads: metrics::counter!(names::NOSCRIPT),
            seen: NodeStats::default(),
        }
    }

    pub(super) fn batch(&self, commands: usize) {
        self.batch.record(names::count(commands));
    }

    pub(super) fn backlog(&self, orders: usize, age: Duration) {
        self.orders.set(names::count(orders));
        self.age.set(age.as_secs_f64());
    }

    pub(super) fn outbox(&self, entries: u64, bytes: u64) {
        self.entries.set(count(entries));
        self.bytes.set(count(bytes));
    }

    pub(super) fn swept(&self, swept: &SweepReply) {
        self.swept
            .increment(u64::try_from(swept.ended).unwrap_or(u64::MAX));
        self.lag
            .set(count(u64::try_from(swept.lag_ms).unwrap_or(0)) / 1e3);
    }

    pub(super) fn look_up(&self) {
        self.look_ups.increment(1);
    }

    pub(super) fn load(&self) {
        self.loads.increment(1);
    }

    pub(super) fn asked_again(&self, commands: usize) {
        self.again.increment(u64::try_from(commands).unwrap_or(u64::MAX));
    }

    pub(super) fn publish(
        &mut self,
        stats: &NodeStats,
        epoch: u64,
        live: usize,
        waiting: usize,
        ready: bool,
    ) {
        self.epoch.set(count(epoch));
        self.live.set(names::count(live));
        self.waiting.set(names::count(waiting));
        self.ready.set(if ready { 1.0 } else { 0.0 });
        self.reloads
            .increment(stats.reloads.saturating_sub(self.seen.reloads));
        for (kind, number) in &stats.errors {
            let seen = self
                .seen
                .errors
                .iter()
                .find(|(other, _)| other == kind)
                .map_or(0, |(_, seen)| *seen);
            if *number > seen {
                metrics::counter!(names::REDIS_ERRORS, "kind" => kind.as_str()).increment(number - seen);
            }
        }
        self.seen = stats.clone();
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "metrics are floating point; counts stay far below 2^53"
)]
fn count(number: u64) -> f64 {
    number as f64
}

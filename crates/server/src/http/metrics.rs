//! What is counted about requests. Handles are made once, so that counting costs an addition and no look-up.

use std::sync::OnceLock;
use std::time::Instant;

use metrics::{Counter, Histogram, counter, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use stockade::{Health, Readiness};

use super::code::Code;
use crate::gate::Line;

/// Upper bounds of the latency histograms, in seconds.
const SECONDS: [f64; 16] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];
/// Upper bounds of everything that counts things.
const SIZES: [f64; 13] = [
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0,
];

/// The routes, as metrics name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Reserve,
    Batch,
    ShowReservation,
    Confirm,
    Cancel,
    Extend,
    Return,
    Reservations,
    ShowStock,
    SetStock,
    ConfigureStock,
    AdjustStock,
    TransferStock,
    StockPage,
    Movements,
    ImportStock,
    ExportStock,
    ExportMovements,
    Events,
    Audit,
    Backup,
    Metrics,
    Overview,
    Dashboard,
    Other,
}

impl Route {
    pub(super) const ALL: [(Self, &'static str); 25] = [
        (Self::Reserve, "POST /v1/reservations"),
        (Self::Batch, "POST /v1/reservations/batch"),
        (Self::ShowReservation, "GET /v1/reservations/{id}"),
        (Self::Confirm, "POST /v1/reservations/{id}/confirm"),
        (Self::Cancel, "POST /v1/reservations/{id}/cancel"),
        (Self::Extend, "POST /v1/reservations/{id}/extend"),
        (Self::Return, "POST /v1/reservations/{id}/return"),
        (Self::Reservations, "GET /v1/reservations"),
        (Self::ShowStock, "GET /v1/stock/{sku}"),
        (Self::SetStock, "PUT /v1/stock/{sku}"),
        (Self::ConfigureStock, "PATCH /v1/stock/{sku}"),
        (Self::AdjustStock, "POST /v1/stock/{sku}/adjustments"),
        (Self::TransferStock, "POST /v1/stock/{sku}/transfers"),
        (Self::StockPage, "GET /v1/stock"),
        (Self::Movements, "GET /v1/movements"),
        (Self::ImportStock, "POST /v1/stock/import"),
        (Self::ExportStock, "GET /v1/stock/export"),
        (Self::ExportMovements, "GET /v1/movements/export"),
        (Self::Events, "GET /v1/events"),
        (Self::Audit, "POST /v1/audit"),
        (Self::Backup, "POST /v1/backup"),
        (Self::Metrics, "GET /metrics"),
        (Self::Overview, "GET /v1/overview"),
        (Self::Dashboard, "dashboard"),
        (Self::Other, "other"),
    ];
    /// As metrics and logs name it.
    pub(super) fn name(self) -> &'static str {
        Self::ALL.get(self as usize).map_or("other", |(_, name)| *name)
    }

    const STATUSES: [u16; 17] = [
        200, 201, 400, 401, 403, 404, 405, 408, 409, 410, 412, 413, 415, 422, 429, 503, 504,
    ];
}

/// The handles.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Vec<[OnceLock<Counter>; Route::STATUSES.len()]>,
    seconds: Vec<OnceLock<Histogram>>,
    outcomes: [OnceLock<Counter>; Code::ALL.len()],
    stopped: [OnceLock<Counter>; Line::ALL.len()],
    prometheus: PrometheusHandle,
}

impl Metrics {
    /// Takes over the process's metrics. May be called once.
    pub(crate) fn install() -> Result<Self, String> {
        let say = |e: &dyn std::fmt::Display| format!("metrics could not be set up: {e}");
        let recorder = PrometheusBuilder::new()
            .set_buckets(&SIZES)
            .and_then(|b| b.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS))
            .map_err(|e| say(&e))?
            .build_recorder();
        let prometheus = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|e| say(&e))?;
        metrics::describe_counter!("stockade_http_requests_total", "Requests by route and status.");
        metrics::describe_counter!(
            "stockade_outcomes_total",
            "Outcomes by code; each of a batch counts."
        );
        metrics::describe_counter!(
            "stockade_stopped_total",
            "Requests that were not done, by the line that stopped them; each of a batch counts."
        );
        metrics::describe_histogram!(
            "stockade_http_request_seconds",
            "From the whole head to the answer."
        );
        metrics::describe_gauge!(
            "stockade_waiting_commands",
            "Commands waiting for a decision or the disk."
        );
        metrics::describe_gauge!("stockade_live_reservations", "Live reservations.");
        metrics::describe_gauge!("stockade_decided_entry", "The last entry decided.");
        metrics::describe_gauge!("stockade_recorded_entry", "The last entry on disk.");
        metrics::describe_gauge!("stockade_event_listeners", "Open streams of events.");
        metrics::describe_counter!(
            "stockade_event_listeners_cut_total",
            "Streams of events cut because they were read too slowly."
        );
        metrics::describe_gauge!("stockade_audit_findings", "What the last audit found.");
        metrics::describe_gauge!(
            "stockade_audit_last_timestamp_seconds",
            "When the last audit was done, in seconds since 1970."
        );
        metrics::describe_gauge!("stockade_ready", "1 if commands are taken.");
        Ok(Self {
            requests: Route::ALL
                .iter()
                .map(|_| [const { OnceLock::new() }; Route::STATUSES.len()])
                .collect(),
            seconds: Route::ALL.iter().map(|_| OnceLock::new()).collect(),
            outcomes: [const { OnceLock::new() }; Code::ALL.len()],
            stopped: [const { OnceLock::new() }; Line::ALL.len()],
            prometheus,
        })
    }

    /// Counts a request.
    pub(crate) fn request(&self, route: Route, status: u16, since: Instant) {
        let index = route as usize;
        let name = route.name();
        let position = Route::STATUSES.iter().position(|known| *known == status);
        match position.and_then(|at| self.requests.get(index)?.get(at)) {
            Some(slot) => slot
                .get_or_init(|| {
                    counter!("stockade_http_requests_total", "route" => name, "status" => status.to_string())
                })
                .increment(1),
            None => counter!("stockade_http_requests_total", "route" => name, "status" => status.to_string())
                .increment(1),
        }
        if let Some(slot) = self.seconds.get(index) {
            slot.get_or_init(|| histogram!("stockade_http_request_seconds", "route" => name))
                .record(since.elapsed().as_secs_f64());
        }
    }

    /// Counts an outcome.
    pub(crate) fn outcome(&self, code: Code) {
        self.outcomes(code, 1);
    }

    /// Counts outcomes of one request's many parts.
    pub(crate) fn outcomes(&self, code: Code, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(slot) = self.outcomes.get(code as usize) {
            slot.get_or_init(|| counter!("stockade_outcomes_total", "code" => code.as_str()))
                .increment(count);
        }
    }

    /// Counts what was stopped, by the line that stopped it.
    pub(crate) fn stopped(&self, line: Line) {
        if let Some(slot) = self.stopped.get(line as usize) {
            slot.get_or_init(|| counter!("stockade_stopped_total", "line" => line.as_str()))
                .increment(1);
        }
    }

    /// An audit was done.
    #[expect(
        clippy::cast_precision_loss,
        reason = "gauges are floats, and these numbers stay far below 2^53"
    )]
    pub(crate) fn audited(findings: usize, at: stockade_core::Millis) {
        metrics::gauge!("stockade_audit_findings").set(findings as f64);
        metrics::gauge!("stockade_audit_last_timestamp_seconds").set(at as f64 / 1_000.0);
    }

    /// Everything, in Prometheus's text format.
    #[expect(
        clippy::cast_precision_loss,
        reason = "gauges are floats, and these numbers stay far below 2^53"
    )]
    pub(crate) fn render(&self, health: &Health) -> String {
        metrics::gauge!("stockade_waiting_commands").set(health.waiting as f64);
        metrics::gauge!("stockade_live_reservations").set(health.live as f64);
        metrics::gauge!("stockade_decided_entry").set(health.decided.seq as f64);
        metrics::gauge!("stockade_recorded_entry").set(health.recorded as f64);
        let ready = matches!(health.readiness, Readiness::Ready);
        metrics::gauge!("stockade_ready").set(if ready { 1.0 } else { 0.0 });
        self.prometheus.render()
    }

    /// Folds what was recorded since the last call; without it memory grows.
    pub(crate) fn upkeep(&self) {
        self.prometheus.run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_numbers() {
        for (index, (route, _)) in Route::ALL.iter().enumerate() {
            assert_eq!(*route as usize, index);
        }
        for (index, line) in Line::ALL.iter().enumerate() {
            assert_eq!(*line as usize, index);
        }
        for (index, code) in Code::ALL.iter().enumerate() {
            assert_eq!(*code as usize, index);
            assert!(Route::STATUSES.contains(&code.status()), "{code:?}");
        }
    }
}

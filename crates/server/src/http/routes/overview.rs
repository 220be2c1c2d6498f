//! One small answer for whoever watches: how the service is, how far it has come, what the asker may do.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Serialize;
use stockade::Readiness;
use utoipa::ToSchema;

use crate::http::answer::Answer;
use crate::http::app::App;
use crate::http::metrics::Route;
use crate::http::openapi::ReadProblems;
use crate::http::request::Query;
use crate::keys::Scope;

/// How the service is, at one moment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Overview)]
pub(crate) struct OverviewView<'a> {
    /// The service's clock, by which reservations end.
    at_ms: i64,
    /// `ready`, `recovering`, `closing` or `poisoned`; commands are taken only when `ready`.
    status: &'static str,
    version: &'static str,
    /// Where the asker's ids live.
    tenant: &'a str,
    /// What the asker may do: any of `reserve`, `stock`, `read`, `admin`.
    scopes: Vec<&'static str>,
    /// Null for a key without the scope `read`.
    figures: Option<FiguresView<'a>>,
}

/// How far the service has come; of all tenants together.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Figures)]
pub(crate) struct FiguresView<'a> {
    /// What failed; null when nothing did.
    why: Option<&'a str>,
    epoch: u64,
    /// The last entry decided.
    decided_entry: u64,
    /// The last entry on disk.
    recorded_entry: u64,
    /// Commands that wait for a decision or for the disk.
    waiting_commands: u64,
    live_reservations: u64,
}

/// How the service is, and what the asker may do.
///
/// Answered with 200 also when the service takes no commands: `status` says so.
#[utoipa::path(
    get,
    path = "/v1/overview",
    tag = "system",
    responses((status = 200, description = "The overview", body = OverviewView<'static>), ReadProblems)
)]
pub(crate) async fn overview(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Overview, request, |app, request| async move {
        Query::of(&request)?.done()?;
        let health = app.store.health();
        let (status, why) = match &health.readiness {
            Readiness::Ready => ("ready", None),
            Readiness::Recovering { why } => ("recovering", Some(why.as_str())),
            Readiness::Closing => ("closing", None),
            Readiness::Poisoned { why } => ("poisoned", Some(why.as_str())),
        };
        let caller = app.caller(&request);
        let scopes = Scope::ALL.into_iter().filter(|scope| app.may(&request, *scope));
        Answer::json(&OverviewView {
            at_ms: app.store.now(),
            status,
            version: env!("CARGO_PKG_VERSION"),
            tenant: caller.tenant.as_str(),
            scopes: scopes.map(Scope::as_str).collect(),
            figures: app.may(&request, Scope::Read).then_some(FiguresView {
                why,
                epoch: health.decided.epoch,
                decided_entry: health.decided.seq,
                recorded_entry: health.recorded,
                waiting_commands: health.waiting as u64,
                live_reservations: health.live as u64,
            }),
        })
    })
    .await
}

//! Movements, audit, and how the service is.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Serialize;
use stockade::Readiness;
use stockade_core::Id;
use stockade_ledger::{Finding, Movement, MovementQuery};
use utoipa::ToSchema;

use crate::http::answer::Answer;
use crate::http::app::App;
use crate::http::body::AuditBody;
use crate::http::kind::FIGURE;
use crate::http::metrics::Route;
use crate::http::openapi::{CommandProblems, ReadProblems};
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::http::view::{Each, FindingView, MovementView};

/// Movements, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MovementPage)]
pub(crate) struct MovementPageView<'a> {
    #[schema(value_type = Vec<MovementView<'a>>)]
    movements: Each<'a, Movement>,
    /// Give it as `before` to get the next page; null: there is none.
    next_before: Option<i64>,
}

/// Who changed what and why, newest first, with the counters after each change.
#[utoipa::path(
    get,
    path = "/v1/movements",
    tag = "movements",
    params(
        ("sku" = Option<String>, Query, description = "Of this SKU"),
        ("reservation" = Option<String>, Query, description = "Of this reservation"),
        ("owner" = Option<String>, Query, description = "Of this owner"),
        ("from_ms" = Option<i64>, Query, description = "At or after"),
        ("until_ms" = Option<i64>, Query, description = "Before"),
        ("before" = Option<i64>, Query, description = "Only movements with a smaller number"),
        ("limit" = Option<u64>, Query, description = "1..=1000, 100 when not given")
    ),
    responses((status = 200, description = "A page", body = MovementPageView<'static>), ReadProblems)
)]
pub(crate) async fn movements(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Movements, request, |app, request| async move {
        let mut query = Query::of(&request)?;
        let mut asked = movement_query(&mut query, app.caller(&request).tenant, 0)?;
        asked.limit = query.limit()?;
        query.done()?;
        let page = app.ask(app.store.movements(asked)).await?;
        Answer::json(&MovementPageView {
            movements: Each(&page.movements),
            next_before: page.next_before,
        })
    })
    .await
}

/// Which movements.
pub(super) fn movement_query(query: &mut Query, tenant: Id, limit: usize) -> Result<MovementQuery, Problem> {
    Ok(MovementQuery {
        tenant,
        sku: query.id("sku")?,
        reservation: query.id("reservation")?,
        owner: query.id("owner")?,
        from: query.moment("from_ms")?,
        until: query.moment("until_ms")?,
        before: query
            .number("before", &FIGURE)?
            .and_then(|number| i64::try_from(number).ok()),
        limit,
    })
}

/// What an audit found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditAnswer)]
pub(crate) struct AuditView<'a> {
    /// Nothing differs.
    clean: bool,
    #[schema(value_type = Vec<FindingView<'a>>)]
    findings: Each<'a, Finding>,
    /// There were more findings than asked for.
    truncated: bool,
    /// SKUs compared.
    skus: u64,
    /// Live reservations compared.
    live_reservations: u64,
}

impl<'a> AuditView<'a> {
    pub(crate) fn of(report: &'a stockade::AuditReport) -> Self {
        Self::new(&report.findings, report.truncated, report.skus, report.live)
    }

    pub(crate) fn new(findings: &'a [Finding], truncated: bool, skus: u64, live_reservations: u64) -> Self {
        Self {
            clean: findings.is_empty(),
            findings: Each(findings),
            truncated,
            skus,
            live_reservations,
        }
    }
}

/// Compare what decides with what is recorded, and that with its own history.
#[utoipa::path(
    post,
    path = "/v1/audit",
    tag = "system",
    request_body = AuditBody,
    responses((status = 200, description = "Compared; see `clean`", body = AuditView<'static>), CommandProblems)
)]
pub(crate) async fn audit(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Audit, request, |app, request| async move {
        let read = app.read(request, |object, _| AuditBody::read(object)).await?;
        let limit = read
            .body
            .limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(100);
        let report = app.audit(limit).await?;
        Answer::json(&AuditView::of(&report))
    })
    .await
}

/// Everything that is counted, in Prometheus's text format.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "system",
    responses((status = 200, description = "Metrics", body = String, content_type = "text/plain; version=0.0.4"))
)]
pub(crate) async fn metrics(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Metrics, request, |app, _| async move {
        let text = app.metrics.render(&app.store.health());
        Ok(Answer::Bytes {
            content_type: "text/plain; version=0.0.4",
            bytes: text.into(),
        })
    })
    .await
}

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatusAnswer)]
pub(crate) struct StatusView {
    status: &'static str,
}

/// The process answers.
#[utoipa::path(
    get,
    path = "/livez",
    tag = "system",
    responses((status = 200, description = "It does", body = StatusView))
)]
pub(crate) async fn live(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Other, request, |_, _| async {
        Answer::json(&StatusView { status: "alive" })
    })
    .await
}

/// The store takes commands.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "system",
    responses((status = 200, description = "It does", body = StatusView), ReadProblems)
)]
pub(crate) async fn ready(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Other, request, |app, _| async move {
        match app.store.health().readiness {
            Readiness::Ready => Answer::json(&StatusView { status: "ready" }),
            Readiness::Closing => Err(Problem::Unavailable {
                why: "the service is stopping".to_owned(),
            }),
            Readiness::Recovering { why } | Readiness::Poisoned { why } => Err(Problem::Unavailable { why }),
        }
    })
    .await
}

/// This document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "system",
    responses((status = 200, description = "OpenAPI 3.1", body = Object))
)]
pub(crate) async fn document(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Other, request, |app, _| async move {
        let bytes = app.openapi.get().cloned().unwrap_or_default();
        Ok(Answer::Bytes {
            content_type: "application/json",
            bytes,
        })
    })
    .await
}

//! The routes. Each handler is documented where it stands, and the document is made from the same list.

mod backup;
mod events;
mod export;
mod import;
mod overview;
mod reservations;
mod stock;
mod system;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::app::App;
use super::dashboard;
use super::docs;
use super::metrics::Route;
use super::openapi;
use super::problem::Problem;
use super::secure;

pub(crate) use system::AuditView;

/// The service's routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (router, mut document) = OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(reservations::reserve, reservations::page))
        .routes(routes!(reservations::batch))
        .routes(routes!(reservations::show))
        .routes(routes!(reservations::confirm))
        .routes(routes!(reservations::cancel))
        .routes(routes!(reservations::extend))
        .routes(routes!(reservations::give_back))
        .routes(routes!(stock::page))
        .routes(routes!(stock::show, stock::set, stock::configure))
        .routes(routes!(import::import))
        .routes(routes!(export::stock))
        .routes(routes!(export::movements))
        .routes(routes!(stock::adjust))
        .routes(routes!(stock::transfer))
        .routes(routes!(overview::overview))
        .routes(routes!(system::movements))
        .routes(routes!(events::events))
        .routes(routes!(system::audit))
        .routes(routes!(backup::backup))
        .routes(routes!(system::metrics))
        .routes(routes!(system::live))
        .routes(routes!(system::ready))
        .routes(routes!(system::document))
        .split_for_parts();
    secure::describe(&mut document);
    // The document is made of plain values; if it could not be written, the route says so.
    let bytes = serde_json::to_vec_pretty(&document).unwrap_or_default();
    let page = serde_json::from_slice(&bytes).map(|document| docs::written(&document));
    app.docs.get_or_init(|| Bytes::from(page.unwrap_or_default()));
    app.openapi.get_or_init(|| Bytes::from(bytes));
    router
        // `batch` is an id like any other: only POST is taken for the batch itself.
        .route("/v1/reservations/batch", axum::routing::get(reservations::show))
        .route("/", axum::routing::get(dashboard::index))
        .route("/docs", axum::routing::get(docs::page))
        .route("/docs/style.css", axum::routing::get(docs::style))
        .route("/assets/{name}", axum::routing::get(dashboard::asset))
        .fallback(unknown_route)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(app)
}

async fn unknown_route(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Other, request, |_, _| async { Err(Problem::UnknownRoute) })
        .await
}

async fn method_not_allowed(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Other, request, |_, _| async {
        Err(Problem::MethodNotAllowed)
    })
    .await
}

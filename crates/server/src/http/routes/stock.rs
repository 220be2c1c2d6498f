//! Stock: counts, changes, settings, reads.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Serialize;
use stockade_core::{Action, Adjust, Configure, Set, SkuRecord, Transfer};
use utoipa::ToSchema;

use crate::http::answer::{Answer, StockAnswer};
use crate::http::app::App;
use crate::http::body::{AdjustBody, ConfigureBody, ConfigureSchema, SetBody, TransferBody};
use crate::http::metrics::Route;
use crate::http::openapi::{ReadProblems, StockProblems, StockReadProblems};
use crate::http::request::{Query, agreed_id, expect, path_id};
use crate::http::view::{Each, StockView};

/// A SKU as it stands.
#[utoipa::path(
    get,
    path = "/v1/stock/{sku}",
    tag = "stock",
    params(("sku" = String, Path, description = "Percent-encoded")),
    responses(
        (status = 200, description = "The SKU", body = StockAnswer<'static>,
         headers(("ETag" = String, description = "The revision, in quotes"))),
        StockReadProblems
    )
)]
pub(crate) async fn show(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::ShowStock, request, |app, request| async move {
        let sku = path_id(&request, "sku")?;
        Query::of(&request)?.done()?;
        app.show(&app.caller(&request), Action::ShowStock { sku }).await
    })
    .await
}

/// Set a count for one location; creates SKU and location.
///
/// `sold_seen` says how many had been sold when the units were counted, `force` takes the count as it is; neither is
/// needed to create.
#[utoipa::path(
    put,
    path = "/v1/stock/{sku}",
    tag = "stock",
    params(
        ("sku" = String, Path, description = "Percent-encoded"),
        ("If-Match" = Option<String>, Header, description = "Only if the SKU has this ETag"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is no such SKU"),
        ("Idempotency-Key" = Option<String>, Header, description = "The command's id, instead of `id`")
    ),
    request_body = SetBody,
    responses(
        (status = 201, description = "The SKU is new", body = StockAnswer<'static>,
         headers(("ETag" = String, description = "The revision, in quotes"))),
        (status = 200, description = "Set", body = StockAnswer<'static>,
         headers(("ETag" = String, description = "The revision, in quotes"))),
        StockProblems
    )
)]
pub(crate) async fn set(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::SetStock, request, |app, request| async move {
        let sku = path_id(&request, "sku")?;
        let read = app.read(request, SetBody::read).await?;
        let count = read.body.count();
        let SetBody {
            id,
            location,
            on_hand: target,
            if_revision,
            reason,
            ..
        } = read.body;
        let id = agreed_id(read.header_id, id)?;
        let expect = expect(&read.headers, if_revision)?;
        let action = Action::Set(Set {
            id,
            sku,
            location,
            target,
            count,
            expect,
            reason,
        });
        Ok(Answer::granted(app.submit(&read.caller, action).await?))
    })
    .await
}

/// Change the settings of a SKU.
#[utoipa::path(
    patch,
    path = "/v1/stock/{sku}",
    tag = "stock",
    params(
        ("sku" = String, Path, description = "Percent-encoded"),
        ("If-Match" = Option<String>, Header, description = "Only if the SKU has this ETag"),
        ("Idempotency-Key" = Option<String>, Header, description = "The command's id, instead of `id`")
    ),
    request_body = ConfigureSchema,
    responses(
        (status = 200, description = "Changed", body = StockAnswer<'static>,
         headers(("ETag" = String, description = "The revision, in quotes"))),
        StockProblems
    )
)]
pub(crate) async fn configure(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::ConfigureStock, request, |app, request| async move {
        let sku = path_id(&request, "sku")?;
        let read = app.read(request, ConfigureBody::read).await?;
        let ConfigureBody {
            id,
            changes,
            if_revision,
            reason,
        } = read.body;
        let id = agreed_id(read.header_id, id)?;
        let expect = expect(&read.headers, if_revision)?;
        let action = Action::Configure(Configure {
            id,
            sku,
            changes,
            expect,
            reason,
        });
        Ok(Answer::changed(app.submit(&read.caller, action).await?))
    })
    .await
}

/// Add units to a location, or take them away.
#[utoipa::path(
    post,
    path = "/v1/stock/{sku}/adjustments",
    tag = "stock",
    params(
        ("sku" = String, Path, description = "Percent-encoded"),
        ("If-Match" = Option<String>, Header, description = "Only if the SKU has this ETag"),
        ("Idempotency-Key" = Option<String>, Header, description = "The command's id, instead of `id`")
    ),
    request_body = AdjustBody,
    responses(
        (status = 200, description = "Adjusted", body = StockAnswer<'static>,
         headers(("ETag" = String, description = "The revision, in quotes"))),
        StockProblems
    )
)]
pub(crate) async fn adjust(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::AdjustStock, request, |app, request| async move {
        let sku = path_id(&request, "sku")?;
        let read = app.read(request, AdjustBody::read).await?;
        let AdjustBody {
            id,
            location,
            delta,
            if_revision,
            reason,
        } = read.body;
        let id = agreed_id(read.header_id, id)?;
        let expect = expect(&read.headers, if_revision)?;
        let action = Action::Adjust(Adjust {
            id,
            sku,
            location,
            delta,
            expect,
            reason,
        });
        Ok(Answer::changed(app.submit(&read.caller, action).await?))
    })
    .await
}

/// Move units between two locations of a SKU.
#[utoipa::path(
    post,
    path = "/v1/stock/{sku}/transfers",
    tag = "stock",
    params(
        ("sku" = String, Path, description = "Percent-encoded"),
        ("If-Match" = Option<String>, Header, description = "Only if the SKU has this ETag"),
        ("Idempotency-Key" = Option<String>, Header, description = "The command's id, instead of `id`")
    ),
    request_body = TransferBody,
    responses(
        (status = 200, description = "Transferred", body = StockAnswer<'static>,
         headers(("ETag" = String, description = "The revision, in quotes"))),
        StockProblems
    )
)]
pub(crate) async fn transfer(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::TransferStock, request, |app, request| async move {
        let sku = path_id(&request, "sku")?;
        let read = app.read(request, TransferBody::read).await?;
        let TransferBody {
            id,
            from,
            to,
            quantity,
            if_revision,
            reason,
        } = read.body;
        let id = agreed_id(read.header_id, id)?;
        let expect = expect(&read.headers, if_revision)?;
        let action = Action::Transfer(Transfer {
            id,
            sku,
            from,
            to,
            quantity,
            expect,
            reason,
        });
        Ok(Answer::changed(app.submit(&read.caller, action).await?))
    })
    .await
}

/// SKUs in the order of their bytes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StockPage)]
pub(crate) struct StockPageView<'a> {
    #[schema(value_type = Vec<StockView<'a>>)]
    stock: Each<'a, SkuRecord>,
    /// Give it as `after` to get the next page; null: there is none.
    next_after: Option<&'a str>,
}

/// SKUs in the order of their bytes.
#[utoipa::path(
    get,
    path = "/v1/stock",
    tag = "stock",
    params(
        ("after" = Option<String>, Query, description = "Only SKUs after this one"),
        ("limit" = Option<u64>, Query, description = "1..=1000, 100 when not given")
    ),
    responses((status = 200, description = "A page", body = StockPageView<'static>), ReadProblems)
)]
pub(crate) async fn page(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::StockPage, request, |app, request| async move {
        let mut query = Query::of(&request)?;
        let after = query.id("after")?;
        let limit = query.limit()?;
        query.done()?;
        let tenant = app.caller(&request).tenant;
        let stock = app
            .ask(app.store.stock_page(&tenant, after.as_ref(), limit))
            .await?;
        let next_after = stock
            .last()
            .filter(|_| stock.len() >= limit)
            .map(|last| last.sku.as_str());
        Answer::json(&StockPageView {
            stock: Each(&stock),
            next_after,
        })
    })
    .await
}

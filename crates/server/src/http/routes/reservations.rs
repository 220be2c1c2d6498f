//! Reservations and what happens to them.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Serialize;
use stockade::Durability;
use stockade_core::{Action, Cancel, Confirm, Extend, Reservation, Return, Status};
use stockade_ledger::ReservationQuery;
use utoipa::ToSchema;

use crate::http::answer::{Answer, BatchAnswer, ReservationAnswer, ReturnAnswer};
use crate::http::app::App;
use crate::http::body::{
    BatchBody, CancelBody, ConfirmBody, ExtendBody, ReserveBody, ReturnBody, read_batch,
};
use crate::http::kind::Choice;
use crate::http::metrics::Route;
use crate::http::openapi::{CommandProblems, LifecycleProblems, ReadProblems, ReserveProblems};
use crate::http::problem::Problem;
use crate::http::request::{Query, agreed_id, path_id, same_id};
use crate::http::view::{Each, ReservationView};

const STATUSES: Choice<Status> = Choice(&[
    ("pending", Status::Pending),
    ("confirmed", Status::Confirmed),
    ("cancelled", Status::Cancelled),
    ("expired", Status::Expired),
    ("lost", Status::Lost),
]);

/// Reserve, or reserve and confirm in one step.
///
/// All lines or none. Sent again with the same id and payload it answers `replayed`, with no second effect.
#[utoipa::path(
    post,
    path = "/v1/reservations",
    tag = "reservations",
    params(("Idempotency-Key" = Option<String>, Header, description = "The reservation's id, instead of `id`")),
    request_body = ReserveBody,
    responses(
        (status = 201, description = "Granted now", body = ReservationAnswer<'static>),
        (status = 200, description = "Granted before", body = ReservationAnswer<'static>),
        ReserveProblems
    )
)]
pub(crate) async fn reserve(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Reserve, request, |app, request| async move {
        let mut read = app.read(request, ReserveBody::read).await?;
        let id = agreed_id(read.header_id.take(), read.body.id())?;
        let durability = read.body.durability();
        let reserve = read.body.command(id);
        let answered = app.reserve(&read.caller, reserve, durability).await?;
        Ok(Answer::granted(answered))
    })
    .await
}

/// Many reservations at once, independent of each other.
///
/// Each is answered as if it had been sent alone, also when it is invalid.
#[utoipa::path(
    post,
    path = "/v1/reservations/batch",
    tag = "reservations",
    request_body = BatchBody,
    responses((status = 200, description = "One result for each", body = BatchAnswer<'static>), CommandProblems)
)]
pub(crate) async fn batch(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Batch, request, |app, request| async move {
        let read = app.read(request, |object, _| read_batch(object)).await?;
        let mut reserves = Vec::with_capacity(read.body.len());
        let mut invalid = Vec::new();
        let mut durability = None;
        for (index, item) in read.body.into_iter().enumerate() {
            match item {
                Ok((reserve, asked)) => {
                    reserves.push(reserve);
                    // They are answered together: one that waits for the ledger makes all wait.
                    durability = match (durability, asked) {
                        (Some(Durability::Ledger), _) | (_, Some(Durability::Ledger)) => {
                            Some(Durability::Ledger)
                        }
                        (before, asked) => asked.or(before),
                    };
                }
                Err(problem) => invalid.push((index, problem)),
            }
        }
        let mut results = if reserves.is_empty() {
            Vec::new()
        } else {
            app.reserve_many(&read.caller, reserves, durability).await?
        };
        // In rising order, so that each lands where it stood.
        for (index, problem) in invalid {
            results.insert(index.min(results.len()), Err(problem));
        }
        Ok(Answer::Batch(results))
    })
    .await
}

/// A reservation as it stands.
#[utoipa::path(
    get,
    path = "/v1/reservations/{id}",
    tag = "reservations",
    params(("id" = String, Path, description = "Percent-encoded")),
    responses((status = 200, description = "The reservation", body = ReservationAnswer<'static>), LifecycleProblems)
)]
pub(crate) async fn show(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::ShowReservation, request, |app, request| async move {
        let id = path_id(&request, "id")?;
        Query::of(&request)?.done()?;
        app.show(&app.caller(&request), Action::ShowReservation { id })
            .await
    })
    .await
}

/// Turn reserved units into sold ones, whole or in part.
///
/// With `payload` it also works when the reserve never arrived. What is not confirmed is released.
#[utoipa::path(
    post,
    path = "/v1/reservations/{id}/confirm",
    tag = "reservations",
    params(
        ("id" = String, Path, description = "Percent-encoded"),
        ("Idempotency-Key" = Option<String>, Header, description = "Not needed; if given, the id of the path")
    ),
    request_body = ConfirmBody,
    responses((status = 200, description = "Confirmed", body = ReservationAnswer<'static>), ReserveProblems)
)]
pub(crate) async fn confirm(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Confirm, request, |app, request| async move {
        let id = path_id(&request, "id")?;
        let read = app.read(request, |object, _| ConfirmBody::read(object)).await?;
        same_id(read.header_id.as_ref(), &id)?;
        let ConfirmBody { lines, payload } = read.body;
        let action = Action::Confirm(Confirm { id, lines, payload });
        Ok(Answer::changed(app.submit(&read.caller, action).await?))
    })
    .await
}

/// Give reserved units back.
///
/// An id that never came is sealed: if the lost request turns up later, it is refused.
#[utoipa::path(
    post,
    path = "/v1/reservations/{id}/cancel",
    tag = "reservations",
    params(
        ("id" = String, Path, description = "Percent-encoded"),
        ("Idempotency-Key" = Option<String>, Header, description = "Not needed; if given, the id of the path")
    ),
    request_body = CancelBody,
    responses((status = 200, description = "Cancelled", body = ReservationAnswer<'static>), LifecycleProblems)
)]
pub(crate) async fn cancel(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Cancel, request, |app, request| async move {
        let id = path_id(&request, "id")?;
        let read = app.read(request, |object, _| CancelBody::read(object)).await?;
        same_id(read.header_id.as_ref(), &id)?;
        let action = Action::Cancel(Cancel {
            id,
            reason: read.body.reason,
        });
        Ok(Answer::changed(app.submit(&read.caller, action).await?))
    })
    .await
}

/// Move the end of a pending reservation; it may also come nearer.
#[utoipa::path(
    post,
    path = "/v1/reservations/{id}/extend",
    tag = "reservations",
    params(
        ("id" = String, Path, description = "Percent-encoded"),
        ("Idempotency-Key" = Option<String>, Header, description = "Not needed; if given, the id of the path")
    ),
    request_body = ExtendBody,
    responses((status = 200, description = "Extended", body = ReservationAnswer<'static>), LifecycleProblems)
)]
pub(crate) async fn extend(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Extend, request, |app, request| async move {
        let id = path_id(&request, "id")?;
        let read = app.read(request, |object, _| ExtendBody::read(object)).await?;
        same_id(read.header_id.as_ref(), &id)?;
        let action = Action::Extend(Extend {
            id,
            ends_at: read.body.expires_at_ms,
        });
        Ok(Answer::changed(app.submit(&read.caller, action).await?))
    })
    .await
}

/// Give sold units back to where they came from.
#[utoipa::path(
    post,
    path = "/v1/reservations/{id}/return",
    tag = "reservations",
    params(
        ("id" = String, Path, description = "Percent-encoded"),
        ("Idempotency-Key" = Option<String>, Header, description = "The return's id, instead of `id`")
    ),
    request_body = ReturnBody,
    responses((status = 200, description = "Returned", body = ReturnAnswer<'static>), LifecycleProblems)
)]
pub(crate) async fn give_back(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Return, request, |app, request| async move {
        let reservation = path_id(&request, "id")?;
        let read = app.read(request, ReturnBody::read).await?;
        let ReturnBody { id, reason, lines } = read.body;
        let id = agreed_id(read.header_id, id)?;
        let action = Action::Return(Return {
            id,
            reservation,
            lines,
            reason,
        });
        Ok(Answer::changed(app.submit(&read.caller, action).await?))
    })
    .await
}

/// Reservations, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReservationPage)]
pub(crate) struct ReservationPageView<'a> {
    #[schema(value_type = Vec<ReservationView<'a>>)]
    reservations: Each<'a, Reservation>,
    /// Give it as `before` to get the next page; null: there is none.
    next_before: Option<&'a str>,
}

/// Recorded reservations, newest first.
#[utoipa::path(
    get,
    path = "/v1/reservations",
    tag = "reservations",
    params(
        ("owner" = Option<String>, Query, description = "Of this owner"),
        ("sku" = Option<String>, Query, description = "With a line of this SKU"),
        ("status" = Option<String>, Query, description = "With this status"),
        ("from_ms" = Option<i64>, Query, description = "Granted at or after"),
        ("until_ms" = Option<i64>, Query, description = "Granted before"),
        ("before" = Option<String>, Query, description = "The id that `next_before` of the page before named"),
        ("limit" = Option<u64>, Query, description = "1..=1000, 100 when not given")
    ),
    responses((status = 200, description = "A page", body = ReservationPageView<'static>), ReadProblems)
)]
pub(crate) async fn page(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Reservations, request, |app, request| async move {
        let mut query = Query::of(&request)?;
        let asked = ReservationQuery {
            tenant: app.caller(&request).tenant,
            owner: query.id("owner")?,
            sku: query.id("sku")?,
            status: query.word("status", &STATUSES)?,
            from: query.moment("from_ms")?,
            until: query.moment("until_ms")?,
            before: query.id("before")?,
            limit: query.limit()?,
        };
        query.done()?;
        let limit = asked.limit;
        let reservations = app.ask(app.store.reservations(asked)).await?;
        let last = reservations.last().filter(|_| reservations.len() >= limit);
        let next_before = last.map(|reservation| reservation.id.as_str());
        let page: Result<Answer, Problem> = Answer::json(&ReservationPageView {
            reservations: Each(&reservations),
            next_before,
        });
        page
    })
    .await
}

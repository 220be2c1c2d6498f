//! What the OpenAPI document says of the service as a whole, and the problems that routes have in common.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::{ContentBuilder, HeaderBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder, Type};
use utoipa::{IntoResponses, OpenApi as _};

use super::body::{AskLineBody, PickLineBody};
use super::problem::FieldError;
use super::problem_view::{LineProblem, ProblemView};

const ABOUT: &str = "Deducts stock under flash-sale load and never sells what is not there. Every command carries \
an id chosen by the caller: sent again, it gives the same answer without a second effect. Whole numbers are written \
with digits only. Unknown fields, duplicate keys and wrong types are refused with the field, what was found and what \
is allowed. Ids are 1..=128 bytes of UTF-8 without control characters, not `.` or `..`; in paths they are \
percent-encoded (`/` as %2F; `+` is a plus), in queries form-encoded (`+` is a blank). Errors are problem details \
(RFC 9457) with a stable `code`.";

/// The document before the routes are added.
pub(super) fn base() -> OpenApi {
    #[derive(utoipa::OpenApi)]
    #[openapi(
        info(title = "Stockade", license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")),
        components(schemas(ProblemView<'static>, LineProblem<'static>, FieldError, AskLineBody, PickLineBody))
    )]
    struct Document;
    let mut document = Document::openapi();
    document.info.description = Some(ABOUT.to_owned());
    document
}

fn problem(status: u16) -> (String, RefOr<Response>) {
    let about = match status {
        400 => "`malformed`: not JSON",
        404 => "`not_found`, `unknown_sku`",
        408 => "`body_timeout`",
        409 => {
            "`insufficient_stock`, `limit_exceeded`, `not_open`, `closed`, `paused`, `below_reserved`, \
             `already_confirmed`, `already_cancelled`, `not_confirmed`"
        }
        410 => "`expired`",
        412 => "`revision_conflict`",
        413 => "`body_too_large`",
        415 => "`unsupported_media_type`",
        422 => "`invalid`, `id_reused`, `cross_shard`",
        429 => "`rate_limited`: nothing was changed",
        503 => "`overloaded`, `unavailable`: nothing was changed",
        _ => "`outcome_unknown`: ask by id, or send the same id again",
    };
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .build();
    let mut response = ResponseBuilder::new()
        .description(about)
        .content("application/problem+json", content);
    if [429, 503].contains(&status) {
        let seconds = Schema::from(Object::with_type(Type::Integer));
        let header = HeaderBuilder::new()
            .schema(Some(seconds))
            .description(Some("Seconds"))
            .build();
        response = response.header("Retry-After", header);
    }
    (status.to_string(), RefOr::T(response.build()))
}

macro_rules! problems {
    ($($(#[$about:meta])* $name:ident: $($status:literal)*;)*) => {$(
        $(#[$about])*
        #[derive(Debug)]
        pub(super) struct $name;
        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                [$($status),*].into_iter().map(problem).collect()
            }
        }
    )*};
}

problems! {
    /// Of every request with a body.
    CommandProblems: 400 408 413 415 422 503 504;
    /// Of reserve and deduct, and of confirm with a payload.
    ReserveProblems: 400 404 408 409 410 412 413 415 422 503 504;
    /// Of what happens to a reservation.
    LifecycleProblems: 400 404 408 409 410 413 415 422 503 504;
    /// Of stock commands.
    StockProblems: 400 404 408 409 412 413 415 422 503 504;
    /// Of the read of a SKU.
    StockReadProblems: 404 422 503;
    /// Of reads.
    ReadProblems: 422 503;
}

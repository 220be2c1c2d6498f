//! Stock by the file.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use stockade_core::{Id, IdError};

use crate::http::answer::Answer;
use crate::http::app::App;
use crate::http::import::{self, Format, IMPORT_ID_BYTES_MAX, Import, ImportView, Meaning};
use crate::http::kind::Choice;
use crate::http::metrics::Route;
use crate::http::openapi::CommandProblems;
use crate::http::problem::Problem;
use crate::http::request::{Query, check_origin, header_id};

const MEANINGS: Choice<Meaning> = Choice(&[("target", Meaning::Target), ("delivery", Meaning::Delivery)]);
/// The types of a file, as a refusal shows them.
const TYPES: &str = "text/csv or application/x-ndjson, in UTF-8";

/// Set or add stock by the file, row by row.
///
/// `as` says what the figures are: `target` counts, `delivery` adds. Each row is a stock command with an id of its own,
/// made of the import's id and the row's number: sent again with the same id, what was done has no second effect. A row
/// that is refused is reported and does not stop the others. The file is read as it comes, up to 10,000,000 rows of
/// 16 KiB; the limit on bodies does not count here, and the time-out of a body is one of each pause.
#[utoipa::path(
    post,
    path = "/v1/stock/import",
    tag = "stock",
    params(
        ("as" = String, Query, description = "`target`: `on_hand` is what is there. `delivery`: `quantity` came in"),
        ("id" = Option<String>, Query, description = "The import's id, at most 112 bytes; needed unless it is a dry run"),
        ("dry_run" = Option<bool>, Query, description = "Check everything, change nothing"),
        ("force" = Option<bool>, Query, description = "Of `target`: take the counts as they are, whatever was sold meanwhile"),
        ("reason" = Option<String>, Query, description = "Of rows that have none of their own"),
        ("Idempotency-Key" = Option<String>, Header, description = "The import's id, instead of `id`")
    ),
    request_body(content((String = "text/csv"), (String = "application/x-ndjson"))),
    responses((status = 200, description = "Read to its end; see `refused`", body = ImportView<'static>), CommandProblems)
)]
pub(crate) async fn import(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::ImportStock, request, |app, request| async move {
        let import = read(&request)?;
        let importer = app.importer(app.caller(&request));
        let summary = import::run(importer, import, request.into_body()).await?;
        for (code, rows) in summary.codes() {
            app.metrics.outcomes(code, rows);
        }
        Answer::json(&summary.view())
    })
    .await
}

fn read(request: &Request) -> Result<Import, Problem> {
    check_origin(request.headers())?;
    let format = format_of(request.headers())?;
    let mut query = Query::of(request)?;
    let meaning = query.word("as", &MEANINGS)?.ok_or_else(|| {
        Problem::invalid(
            "as",
            "nothing",
            "target (counts) or delivery (adds); it must be said",
        )
    })?;
    let id = query.id("id")?;
    let dry_run = query.flag("dry_run")?;
    let force = query.flag("force")?;
    let reason = query.reason("reason")?;
    query.done()?;
    if force && meaning == Meaning::Delivery {
        return Err(Problem::invalid("force", "true", "only with as=target"));
    }
    let id = import_id(header_id(request.headers())?, id, dry_run)?;
    Ok(Import {
        id,
        meaning,
        format,
        dry_run,
        force,
        reason,
    })
}

fn import_id(header: Option<Id>, query: Option<Id>, dry_run: bool) -> Result<Option<Id>, Problem> {
    let allowed = || {
        format!(
            "the import's id: {}, here at most {IMPORT_ID_BYTES_MAX}",
            IdError::ALLOWED
        )
    };
    match (header, query) {
        (Some(header), Some(query)) if header != query => {
            let allowed = format!("the id of the query, {query}");
            Err(Problem::invalid("Idempotency-Key", header.as_str(), allowed))
        }
        (_, Some(id)) | (Some(id), None) if id.as_str().len() > IMPORT_ID_BYTES_MAX => {
            Err(Problem::invalid("id", id.as_str(), allowed()))
        }
        (None, None) if !dry_run => Err(Problem::invalid("id", "nothing", allowed())),
        (header, query) => Ok(query.or(header)),
    }
}

/// How the file is written: it must be said, since curl says something else on its own.
fn format_of(headers: &HeaderMap) -> Result<Format, Problem> {
    let value = headers
        .get(CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()));
    let text = value.as_deref().unwrap_or_default();
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    let in_utf8 = parts.all(|parameter| match parameter.split_once('=') {
        Some((name, charset)) if name.trim().eq_ignore_ascii_case("charset") => {
            let charset = charset.trim().trim_matches('"');
            charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8")
        }
        _ => true,
    });
    match essence.as_str() {
        "text/csv" if in_utf8 => Ok(Format::Csv),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" if in_utf8 => Ok(Format::Ndjson),
        _ => Err(Problem::UnsupportedMediaType {
            found: if text.is_empty() {
                "nothing".to_owned()
            } else {
                crate::http::json::shortened(text)
            },
            allowed: TYPES,
        }),
    }
}

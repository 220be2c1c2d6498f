//! Stock and movements as files, written while they are read: page by page, whatever they add up to.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use stockade_core::{Id, SkuRecord};
use stockade_ledger::{MovementPage, MovementQuery};

use crate::http::answer::Answer;
use crate::http::app::App;
use crate::http::kind::Choice;
use crate::http::metrics::Route;
use crate::http::openapi::ReadProblems;
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::http::routes::system::movement_query;
use crate::http::table::{Format, Table};
use crate::pieces::{Pieces, Source};

/// How many rows are read at once: each such page is of one moment.
const PAGE: usize = 1_000;
/// How many pages wait to be sent.
const PAGES_WAITING: usize = 1;

#[derive(Clone, Copy)]
enum Word {
    Csv,
    Ndjson,
}

const FORMATS: Choice<Word> = Choice(&[("csv", Word::Csv), ("ndjson", Word::Ndjson)]);

/// What the query says of the form.
fn format(query: &mut Query) -> Result<Format, Problem> {
    let word = query.word("format", &FORMATS)?.unwrap_or(Word::Csv);
    let escape_formulas = query.flag("escape_formulas")?;
    match word {
        Word::Csv => Ok(Format::Csv { escape_formulas }),
        Word::Ndjson if escape_formulas => Err(Problem::invalid(
            "escape_formulas",
            "true",
            "only with format=csv",
        )),
        Word::Ndjson => Ok(Format::Ndjson),
    }
}

const fn content_type(format: Format) -> &'static str {
    match format {
        Format::Csv { .. } => "text/csv; charset=utf-8",
        Format::Ndjson => "application/x-ndjson",
    }
}

/// All stock, one row for each SKU and location, in the order of the SKUs' bytes.
///
/// Read page by page, each of one moment, while selling goes on: two pages may be of different moments. A connection that
/// breaks off before the end is broken on purpose when the stock could not be read on. The rows are what an import with
/// `as=target` takes: `sold` is then what had been sold when the units were counted.
#[utoipa::path(
    get,
    path = "/v1/stock/export",
    tag = "stock",
    params(
        ("format" = Option<String>, Query, description = "`csv` (when not given) or `ndjson`"),
        ("escape_formulas" = Option<bool>, Query, description = "Of CSV: a quote before texts that begin with = + - @, tab or CR"),
        ("after" = Option<String>, Query, description = "Only SKUs after this one")
    ),
    responses(
        (status = 200, description = "The rows",
         content((String = "text/csv; charset=utf-8"), (String = "application/x-ndjson"))),
        ReadProblems
    )
)]
pub(crate) async fn stock(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::ExportStock, request, |app, request| async move {
        let mut query = Query::of(&request)?;
        let format = format(&mut query)?;
        let after = query.id("after")?;
        query.done()?;
        let tenant = app.caller(&request).tenant;
        // The first page before the first byte, so that a ledger that cannot be read is a problem and not a cut.
        let first = app
            .ask(app.store.stock_page(&tenant, after.as_ref(), PAGE))
            .await?;
        let (source, body) = Pieces::new(PAGES_WAITING);
        tokio::spawn(send_stock(app, tenant, first, Table::of_stock(format), source));
        Ok(Answer::Pieces {
            content_type: content_type(format),
            file: Some(match format {
                Format::Csv { .. } => "attachment; filename=\"stock.csv\"",
                Format::Ndjson => "attachment; filename=\"stock.ndjson\"",
            }),
            body,
        })
    })
    .await
}

async fn send_stock(app: Arc<App>, tenant: Id, mut page: Vec<SkuRecord>, mut table: Table, source: Source) {
    loop {
        for stock in &page {
            table.stock(stock);
        }
        let next = page
            .last()
            .filter(|_| page.len() >= PAGE)
            .map(|last| last.sku.clone());
        if !send(&source, &mut table).await {
            return;
        }
        let Some(after) = next else { return };
        match app.ask(app.store.stock_page(&tenant, Some(&after), PAGE)).await {
            Ok(next) => page = next,
            Err(problem) => return break_off(&source, &problem).await,
        }
    }
}

/// Movements, newest first; those that come meanwhile are left out.
///
/// Read page by page. A connection that breaks off before the end is broken on purpose when the movements could not be
/// read on.
#[utoipa::path(
    get,
    path = "/v1/movements/export",
    tag = "movements",
    params(
        ("format" = Option<String>, Query, description = "`csv` (when not given) or `ndjson`"),
        ("escape_formulas" = Option<bool>, Query, description = "Of CSV: a quote before texts that begin with = + - @, tab or CR"),
        ("sku" = Option<String>, Query, description = "Of this SKU"),
        ("reservation" = Option<String>, Query, description = "Of this reservation"),
        ("owner" = Option<String>, Query, description = "Of this owner"),
        ("from_ms" = Option<i64>, Query, description = "At or after"),
        ("until_ms" = Option<i64>, Query, description = "Before"),
        ("before" = Option<i64>, Query, description = "Only movements with a smaller number")
    ),
    responses(
        (status = 200, description = "The rows",
         content((String = "text/csv; charset=utf-8"), (String = "application/x-ndjson"))),
        ReadProblems
    )
)]
pub(crate) async fn movements(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::ExportMovements, request, |app, request| async move {
        let mut query = Query::of(&request)?;
        let format = format(&mut query)?;
        let asked = movement_query(&mut query, app.caller(&request).tenant, PAGE)?;
        query.done()?;
        let first = app.ask(app.store.movements(asked.clone())).await?;
        let (source, body) = Pieces::new(PAGES_WAITING);
        tokio::spawn(send_movements(
            app,
            asked,
            first,
            Table::of_movements(format),
            source,
        ));
        Ok(Answer::Pieces {
            content_type: content_type(format),
            file: Some(match format {
                Format::Csv { .. } => "attachment; filename=\"movements.csv\"",
                Format::Ndjson => "attachment; filename=\"movements.ndjson\"",
            }),
            body,
        })
    })
    .await
}

async fn send_movements(
    app: Arc<App>,
    asked: MovementQuery,
    mut page: MovementPage,
    mut table: Table,
    source: Source,
) {
    loop {
        for movement in &page.movements {
            table.movement(movement);
        }
        if !send(&source, &mut table).await {
            return;
        }
        let Some(before) = page.next_before else { return };
        let next = MovementQuery {
            before: Some(before),
            ..asked.clone()
        };
        match app.ask(app.store.movements(next)).await {
            Ok(next) => page = next,
            Err(problem) => return break_off(&source, &problem).await,
        }
    }
}

/// Whether anybody still takes it.
async fn send(source: &Source, table: &mut Table) -> bool {
    source.send(Ok(Bytes::from(table.take()))).await.is_ok()
}

/// A file without its end must not look whole: the connection breaks off before the last chunk.
async fn break_off(source: &Source, problem: &Problem) {
    let code = problem.code().as_str();
    tracing::warn!(code, detail = problem.view().detail(), "an export was broken off");
    let error = std::io::Error::other(format!("broken off: {code}"));
    // Whoever has gone does not need to be told.
    drop(source.send(Err(error)).await);
}

//! What happens, as it is recorded.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderName;
use axum::response::Response;

use crate::http::answer::Answer;
use crate::http::app::App;
use crate::http::events::{EventView, Listener, PIECES_WAITING, Place, Wanted};
use crate::http::metrics::Route;
use crate::http::openapi::ReadProblems;
use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::pieces::Pieces;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What happens, in the order in which it was recorded, as server-sent events.
///
/// Only what is on disk is told. `data` of each event is one `Event`; `id` and `event` are its id and kind. After a cut, a
/// client goes on after the last id that it saw and misses nothing; browsers do so by themselves.
#[utoipa::path(
    get,
    path = "/v1/events",
    tag = "events",
    params(
        ("after" = Option<String>, Query, description = "Go on after this event; 0 is the beginning. When not given: from now on"),
        ("kind" = Option<String>, Query, description = "Only these kinds, separated by commas"),
        ("sku" = Option<String>, Query, description = "Only movements of this SKU"),
        ("low_stock" = Option<u64>, Query, description = "Tell `low_stock` when no more than so many units are available"),
        ("follow" = Option<bool>, Query, description = "`false`: end at what is recorded now"),
        ("Last-Event-ID" = Option<String>, Header, description = "Goes before `after`")
    ),
    responses(
        (status = 200, description = "Events", content((EventView<'static> = "text/event-stream"))),
        ReadProblems
    )
)]
pub(crate) async fn events(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Events, request, |app, request| async move {
        let mut query = Query::of(&request)?;
        let after = query
            .text("after")
            .map(|text| Place::read("after", &text))
            .transpose()?;
        let follow = query.flag_or("follow", true)?;
        let wanted = Wanted::read(&mut query, app.caller(&request).tenant)?;
        query.done()?;
        let last = request.headers().get(LAST_EVENT_ID).map(|value| {
            let text = String::from_utf8_lossy(value.as_bytes());
            Place::read("Last-Event-ID", &text)
        });
        let after = last.transpose()?.or(after);
        // A ledger that cannot be read is a problem, not an empty stream.
        app.ask(app.store.movements_kept()).await?;
        let (source, body) = Pieces::new(PIECES_WAITING);
        let headers = request.headers().clone();
        let keeper = Arc::clone(&app);
        let listener = Listener {
            hub: Arc::clone(&app.events),
            wanted,
            after,
            follow,
            source,
            may_go_on: Box::new(move || keeper.may_go_on(Route::Events, &headers)),
        };
        tokio::spawn(listener.run());
        Ok::<_, Problem>(Answer::Pieces {
            content_type: "text/event-stream",
            file: None,
            body,
        })
    })
    .await
}

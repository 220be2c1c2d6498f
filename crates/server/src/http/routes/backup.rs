//! A backup for whoever may have everything: made beside the ledger, read back, then sent.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use stockade::PassingCopy;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::http::answer::Answer;
use crate::http::app::App;
use crate::http::metrics::Route;
use crate::http::openapi::ReadProblems;
use crate::http::request::Query;
use crate::pieces::{Pieces, Source};

const PIECE: usize = 256 * 1_024;
/// How many pieces wait to be sent.
const PIECES_WAITING: usize = 2;
/// A caller that takes nothing for so long is cut off: the copy takes room, and the next one waits for it.
const STALLED: Duration = Duration::from_secs(60);

/// A copy of the ledger as it is at one moment, with the data of all tenants, while selling goes on.
///
/// The copy is made in the data folder, which needs as much room again, and read back before the first byte is sent: that
/// takes seconds for each million reservations. One backup at a time; while one is made or sent, another is refused with
/// 503. `stockade restore` takes the file.
#[utoipa::path(
    post,
    path = "/v1/backup",
    tag = "system",
    params(
        ("skip_audit" = Option<bool>, Query,
         description = "Do not compare the copy with its movements; what restores it does")
    ),
    responses(
        (status = 200, description = "A SQLite database", body = String, content_type = "application/vnd.sqlite3"),
        ReadProblems
    )
)]
pub(crate) async fn backup(State(app): State<Arc<App>>, request: Request) -> Response {
    app.answer(Route::Backup, request, |app, request| async move {
        let mut query = Query::of(&request)?;
        let skip_audit = query.flag("skip_audit")?;
        query.done()?;
        // However long it takes; when the caller hangs up, the copy is finished and dropped.
        let copy = app.store.backup_to_pass_on(!skip_audit).await?;
        tracing::info!(bytes = copy.bytes, "sending a backup");
        let (source, body) = Pieces::of(copy.bytes, PIECES_WAITING);
        tokio::task::spawn_blocking(move || send(copy, &source));
        Ok(Answer::Pieces {
            content_type: "application/vnd.sqlite3",
            file: Some("attachment; filename=\"stockade-backup.db\""),
            body,
        })
    })
    .await
}

fn send(copy: PassingCopy, source: &Source) {
    let mut copy = copy;
    let put = |piece| Handle::current().block_on(timeout(STALLED, source.send(piece)));
    let mut piece = vec![0; PIECE];
    loop {
        match copy.file.read(&mut piece) {
            Ok(0) => return,
            Ok(length) => match put(Ok(Bytes::copy_from_slice(
                piece.get(..length).unwrap_or_default(),
            ))) {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    tracing::warn!("a backup was broken off: its caller took nothing more");
                    return;
                }
            },
            Err(error) => {
                tracing::warn!(%error, "a backup was broken off");
                // Whoever has gone does not need to be told.
                drop(put(Err(std::io::Error::other("the copy could not be read"))));
                return;
            }
        }
    }
}

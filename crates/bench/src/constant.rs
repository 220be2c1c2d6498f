//! The same HTTP stack answering a constant after parsing the same body: what the service is measured against.

use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use serde::Deserialize;

use crate::Failure;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "parsed and dropped: that is the work to be measured")]
struct Body {
    id: String,
    owner: String,
    mode: String,
    ttl_seconds: u64,
    lines: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "parsed and dropped: that is the work to be measured")]
struct Line {
    sku: String,
    quantity: u64,
}

/// As long as a real answer.
const ANSWER: &str = r#"{"code":"ok","recorded":true,"reservation":{"id":"order-000000000000000001","owner":"owner0000001","mode":"reserve","status":"pending","sealed":false,"granted_at_ms":1767000000000,"expires_at_ms":1767000000000,"lines":[{"sku":"sku-000000","quantity":1,"confirmed":0,"returned":0,"allocations":[{"location":"default","quantity":1,"confirmed":0,"returned":0}]}]}}"#;

/// Serves on a free loopback port, printed on a line of its own, until its standard input ends.
pub(crate) fn run() -> Result<(), Failure> {
    crate::drive::runtime()?.block_on(async {
        let routes = Router::new().route("/v1/reservations", post(answer));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            if let Err(error) = stream.set_nodelay(true) {
                eprintln!("stockade-bench: no TCP_NODELAY: {error}");
            }
        });
        let ended = async {
            let mut nothing = Vec::new();
            let mut input = tokio::io::stdin();
            if let Err(error) = tokio::io::AsyncReadExt::read_to_end(&mut input, &mut nothing).await {
                eprintln!("stockade-bench: standard input: {error}");
            }
        };
        axum::serve(listener, routes)
            .with_graceful_shutdown(ended)
            .await?;
        Ok(())
    })
}

async fn answer(Json(_): Json<Body>) -> impl IntoResponse {
    (StatusCode::CREATED, [(CONTENT_TYPE, "application/json")], ANSWER)
}

//! Requests and answers that do not fit into memory, or never end: sent and read as they come.

use axum::http::Request;
use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body, Incoming};
use hyper_util::rt::TokioIo;

use super::Failure;
use super::client::Door;

/// A request on its way, or the head of its answer.
pub(super) enum Opened {
    /// The answer has begun.
    Answered(Response<Incoming>),
    /// There is none; the request may have arrived.
    Cut(String),
}

/// Sends a request and waits for the head of the answer. The rest is read by the caller; the connection goes on in a
/// task of its own and ends with the answer.
pub(super) async fn open<B>(door: &Door, request: Request<B>) -> Result<Opened, Failure>
where
    B: Body<Data = Bytes, Error = std::io::Error> + Send + 'static,
{
    let stream = door.connect().await.map_err(|no| door.refused(&no))?;
    let (mut sender, connection) = match hyper::client::conn::http1::handshake(TokioIo::new(stream)).await {
        Ok(both) => both,
        Err(error) => return Ok(Opened::Cut(error.to_string())),
    };
    // How it ends is seen by whoever reads the answer.
    tokio::spawn(async move { drop(connection.await) });
    Ok(match sender.send_request(request).await {
        Ok(response) => Opened::Answered(response),
        Err(error) => Opened::Cut(error.to_string()),
    })
}

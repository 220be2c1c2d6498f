//! A small HTTP client: one connection a request. Without an answer it sends the same request again, which is safe
//! because each command carries its id.

use std::fmt::Write as _;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use axum::http::{HeaderValue, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::{sleep, timeout};

use super::connect::{NoConnection, Stream, Target};
use super::output::Problem;
use super::{Failure, Service};

/// How the command line names itself; the service's movements then say `cli`.
pub(crate) const AGENT: &str = concat!("stockade-cli/", env!("CARGO_PKG_VERSION"));

/// The one thing that is posted and changes nothing.
pub(crate) const AUDIT: &str = "/v1/audit";

/// How often a command is sent at most.
const TRIES_MAX: u32 = 3;
/// The pause before the first repeat, doubled for each further one; a service that says when to come back wins.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Everything but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An id as a part of a path or query.
pub(crate) fn encoded(id: &str) -> String {
    utf8_percent_encode(id, ENCODED).to_string()
}

/// A query from the parameters that were given.
pub(crate) fn query(parameters: &[(&str, Option<String>)]) -> String {
    let mut query = String::new();
    for (name, value) in parameters {
        if let Some(value) = value {
            let sign = if query.is_empty() { '?' } else { '&' };
            // Writing to a String does not fail.
            let _ = write!(query, "{sign}{name}={}", encoded(value));
        }
    }
    query
}

/// Where the service is, and what opens it.
#[derive(Debug)]
pub(super) struct Door {
    /// Its address, for messages.
    pub(super) base: String,
    target: Target,
    authorization: Option<HeaderValue>,
}

impl Door {
    pub(super) fn of(service: &Service) -> Result<Self, Failure> {
        let base = service.url.trim_end_matches('/');
        let target = Target::of(base, service.ca.as_deref())?;
        let key = service.credentials.key().map_err(Failure::Usage)?;
        let authorization = key
            .map(|key| HeaderValue::from_str(&format!("Bearer {}", key.reveal())))
            .transpose()
            .map_err(|_| Failure::Usage("the API key has characters that no key has".to_owned()))?;
        Ok(Self {
            base: base.to_owned(),
            target,
            authorization,
        })
    }

    pub(super) async fn connect(&self) -> Result<Box<dyn Stream>, NoConnection> {
        self.target.connect().await
    }

    pub(super) fn request<B>(
        &self,
        method: &Method,
        path: &str,
        content_type: &str,
        body: B,
    ) -> Result<Request<B>, Failure> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.target.authority)
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, content_type)
            .body(body)
            .map_err(|e| Failure::Other(format!("the request could not be made: {e}")))?;
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }

    /// Why nobody could be reached, or nobody who can be trusted.
    pub(super) fn refused(&self, no: &NoConnection) -> Failure {
        match no {
            NoConnection::NotThere(why) => self.closed(why),
            NoConnection::Untrusted(why) => {
                Failure::Unreachable(format!("cannot trust the service at {}: {why}", self.base))
            }
        }
    }

    fn closed(&self, why: &str) -> Failure {
        let hint = "is it running? start it with `stockade serve`, or give its address with --url";
        Failure::Unreachable(format!(
            "cannot reach the service at {}: {why}; {hint}",
            self.base
        ))
    }
}

/// What the service answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: serde_json::Value,
    /// As it came.
    pub(crate) text: String,
}

/// Why a request had no answer.
enum Unanswered {
    /// Nobody listens, or nobody who can be trusted: nothing was sent.
    NotSent(NoConnection),
    /// It may have arrived.
    Unknown(String),
}

/// Sends a request until there is an answer.
pub(crate) async fn send(
    service: &Service,
    method: Method,
    path: &str,
    body: Option<&serde_json::Value>,
) -> Result<Answer, Failure> {
    let door = Door::of(service)?;
    let base = &door.base;
    let bytes = Bytes::from(body.map(ToString::to_string).unwrap_or_default());
    let within = Duration::from_millis(service.timeout_ms);
    let id = body.and_then(|body| body.get("id")).and_then(|id| id.as_str());
    let changes = method != Method::GET && path != AUDIT;
    let unknown = |tries: u32, why: &str| {
        let hint = match id {
            _ if !changes => "try again later".to_owned(),
            Some(id) => format!("it may or may not have been done; send it again with the same id, {id}"),
            None => "it may or may not have been done; send it again, or ask for the reservation".to_owned(),
        };
        Failure::Unreachable(format!(
            "no certain answer from {base} in {tries} tries: {why}; {hint}"
        ))
    };

    // Whether a try may have been done unseen. What a later try says of itself says nothing about that one.
    let mut unseen = false;
    let mut pause = PAUSE;
    let mut tries = 0;
    loop {
        tries += 1;
        let request = door.request(&method, path, "application/json", Full::new(bytes.clone()))?;
        let answered = match timeout(within, exchange(&door, request)).await {
            Ok(answered) => answered,
            Err(_) => Err(Unanswered::Unknown(format!(
                "no answer within {} ms",
                service.timeout_ms
            ))),
        };
        match answered {
            Ok((status, retry_after, text)) => {
                let busy = status == StatusCode::SERVICE_UNAVAILABLE;
                let again = busy || status == StatusCode::GATEWAY_TIMEOUT;
                if busy && unseen && tries == TRIES_MAX {
                    return Err(unknown(
                        tries,
                        &format!("HTTP {status} after a try without an answer"),
                    ));
                }
                if !again || tries == TRIES_MAX {
                    return judged(status, text, id);
                }
                unseen |= changes && !busy;
                pause = retry_after.map_or(pause, |after| pause.max(after));
            }
            Err(Unanswered::NotSent(no)) if !unseen => return Err(door.refused(&no)),
            Err(Unanswered::NotSent(no)) if tries == TRIES_MAX => {
                return Err(unknown(tries, no.why()));
            }
            Err(Unanswered::Unknown(why)) if tries == TRIES_MAX => return Err(unknown(tries, &why)),
            Err(Unanswered::NotSent(_)) => {}
            Err(Unanswered::Unknown(_)) => unseen = changes,
        }
        sleep(pause.min(PAUSE_MAX)).await;
        pause = pause.saturating_mul(2);
    }
}

async fn exchange(
    door: &Door,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Option<Duration>, String), Unanswered> {
    let stream = door.connect().await.map_err(Unanswered::NotSent)?;
    let unknown = |e: hyper::Error| Unanswered::Unknown(e.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(unknown)?;
    let mut talking = std::pin::pin!(async move {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let seconds = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|v| v.to_str().ok()?.parse().ok());
        let body = response.into_body().collect().await?.to_bytes();
        Ok::<_, hyper::Error>((status, seconds.map(Duration::from_secs), body))
    });
    let (status, retry_after, body) = tokio::select! {
        answered = talking.as_mut() => answered.map_err(unknown)?,
        // What had arrived before the end may be a whole answer.
        ended = connection => match (talking.await, ended) {
            (Ok(answered), _) => answered,
            (Err(_), Err(why)) | (Err(why), Ok(())) => return Err(unknown(why)),
        },
    };
    Ok((status, retry_after, String::from_utf8_lossy(&body).into_owned()))
}

pub(super) fn judged(status: StatusCode, text: String, id: Option<&str>) -> Result<Answer, Failure> {
    let body = serde_json::from_str(&text);
    match body {
        Ok(body) if status.is_success() => Ok(Answer { body, text }),
        Ok(body) => Err(Failure::Refused(Box::new(Problem::of(
            status.as_u16(),
            body,
            text,
            id.map(str::to_owned),
        )))),
        Err(_) => Err(Failure::Other(format!(
            "HTTP {status} with a body that is not JSON; is this the address of a Stockade service?"
        ))),
    }
}

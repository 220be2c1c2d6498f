//! Answers: the shapes of what is done, and how an answer or a problem becomes bytes, once.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use stockade::Answered;
use stockade_core::{Done, DoneCode, Subject};
use utoipa::ToSchema;

use super::access::NoKey;
use super::code::Code;
use super::problem::{Ask, Problem};
use super::problem_view::ProblemView;
use super::view::{Each, ReservationView, ReturnView, StockView};
use crate::gate::{Level, Line, Stop};

/// The room that most answers fit into, so that their bytes are written without growing.
const BODY_BYTES: usize = 512;

/// An answer to a request that was not refused.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A command that is done, or a record that was read.
    Done { answered: Answered, created: bool },
    /// Bytes that are ready.
    Bytes {
        content_type: &'static str,
        bytes: bytes::Bytes,
    },
    /// A body that is made while it is sent.
    Pieces {
        content_type: &'static str,
        /// What a browser calls the file; `None`: it is none.
        file: Option<&'static str>,
        body: crate::pieces::Pieces,
    },
    /// Many answers in one.
    Batch(Vec<Result<Answered, Problem>>),
}

impl Answer {
    /// A command that creates a reservation or SKU when it is done now.
    pub(crate) fn granted(answered: Answered) -> Self {
        let created = match (&answered.done.code, &answered.done.subject) {
            (DoneCode::Ok, Subject::Stock(subject)) => subject.created,
            (DoneCode::Ok, Subject::Reservation(_) | Subject::Return(_)) => true,
            (DoneCode::Replayed | DoneCode::Sealed, _) => false,
        };
        Self::Done { answered, created }
    }

    /// A command that changes, or a read.
    pub(crate) fn changed(answered: Answered) -> Self {
        Self::Done {
            answered,
            created: false,
        }
    }

    /// Something to be shown as JSON.
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, Problem> {
        let bytes = to_bytes(value, BODY_BYTES)?;
        Ok(Self::Bytes {
            content_type: "application/json",
            bytes: bytes.into(),
        })
    }

    /// What stopped some of many.
    pub(crate) fn stopped(&self, mut each: impl FnMut(Line)) {
        if let Self::Batch(results) = self {
            for problem in results.iter().filter_map(|result| result.as_ref().err()) {
                each(problem.line());
            }
        }
    }

    /// The codes to count.
    pub(crate) fn codes(&self, mut each: impl FnMut(Code)) {
        match self {
            Self::Done { answered, .. } => each(done_code(&answered.done)),
            Self::Bytes { .. } | Self::Pieces { .. } => each(Code::Ok),
            Self::Batch(results) => {
                for result in results {
                    each(match result {
                        Ok(answered) => done_code(&answered.done),
                        Err(problem) => problem.code(),
                    });
                }
            }
        }
    }
}

fn done_code(done: &Done) -> Code {
    match done.code {
        DoneCode::Ok => Code::Ok,
        DoneCode::Replayed => Code::Replayed,
        DoneCode::Sealed => Code::Sealed,
    }
}

/// A reservation after a command, or as it was read.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReservationAnswer)]
pub(crate) struct ReservationAnswer<'a> {
    /// `ok`, `replayed` or `sealed`.
    code: &'static str,
    /// Whether the ledger has it; always true with the hot tier in memory.
    recorded: bool,
    reservation: ReservationView<'a>,
}

/// A return, and the reservation after it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReturnAnswer)]
pub(crate) struct ReturnAnswer<'a> {
    /// `ok` or `replayed`.
    code: &'static str,
    /// Whether the ledger has it; always true with the hot tier in memory.
    recorded: bool,
    r#return: ReturnView<'a>,
    reservation: ReservationView<'a>,
}

/// A SKU after a command, or as it was read.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StockAnswer)]
pub(crate) struct StockAnswer<'a> {
    /// `ok` or `replayed`.
    code: &'static str,
    stock: StockView<'a>,
    /// Of a replay: the revision that the command made when it was done; `stock` is as it stands now.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision_made: Option<u64>,
}

/// What a done command looks like.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum DoneView<'a> {
    Reservation(ReservationAnswer<'a>),
    Return(ReturnAnswer<'a>),
    Stock(StockAnswer<'a>),
}

impl<'a> DoneView<'a> {
    fn of(answered: &'a Answered) -> Self {
        let Answered { done, recorded } = answered;
        let recorded = *recorded;
        let code = done_code(done).as_str();
        match &done.subject {
            Subject::Reservation(reservation) => Self::Reservation(ReservationAnswer {
                code,
                recorded,
                reservation: ReservationView::of(reservation),
            }),
            Subject::Return(both) => Self::Return(ReturnAnswer {
                code,
                recorded,
                r#return: ReturnView::of(&both.0),
                reservation: ReservationView::of(&both.1),
            }),
            Subject::Stock(subject) => Self::Stock(StockAnswer {
                code,
                stock: StockView::of(&subject.stock),
                revision_made: (done.code == DoneCode::Replayed).then_some(subject.revision),
            }),
        }
    }
}

/// The answers of a batch, in the order of its reservations.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchAnswer)]
pub(crate) struct BatchAnswer<'a> {
    #[schema(value_type = Vec<BatchResult<'a>>)]
    results: Each<'a, Result<Answered, Problem>>,
}

/// One answer of a batch: what the same request alone would have been answered with.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchResult)]
pub(crate) struct BatchResult<'a> {
    status: u16,
    /// A reservation answer, or a problem.
    #[schema(value_type = Object)]
    body: BatchBody<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum BatchBody<'a> {
    Done(DoneView<'a>),
    Problem(Box<ProblemView<'a>>),
}

impl super::view::Shown for Result<Answered, Problem> {
    type View<'a> = BatchResult<'a>;
    fn view(&self) -> BatchResult<'_> {
        match self {
            Ok(answered) => BatchResult {
                status: if answered.done.code == DoneCode::Ok {
                    201
                } else {
                    200
                },
                body: BatchBody::Done(DoneView::of(answered)),
            },
            Err(problem) => BatchResult {
                status: problem.code().status(),
                body: BatchBody::Problem(Box::new(problem.view())),
            },
        }
    }
}

fn to_bytes(value: &impl Serialize, room: usize) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::with_capacity(room);
    match serde_json::to_writer(&mut bytes, value) {
        Ok(()) => Ok(bytes),
        // Views hold texts and integers only, which cannot fail; said rather than hidden if it ever does.
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            Err(Problem::OutcomeUnknown {
                why: format!("the answer could not be written: {error}"),
                ask: Ask::BySendingAgain,
            })
        }
    }
}

fn response(status: StatusCode, content_type: &'static str, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // Counters change with every sale: nobody may answer from a copy.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Names may hold markup: no browser may take an answer for a page.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

impl Answer {
    /// The answer as bytes.
    pub(crate) fn into_response(self) -> Response {
        let written = match &self {
            Self::Bytes { .. } | Self::Pieces { .. } => Ok(Vec::new()),
            Self::Done { answered, .. } => to_bytes(&DoneView::of(answered), BODY_BYTES),
            Self::Batch(results) => to_bytes(
                &BatchAnswer {
                    results: Each(results),
                },
                BODY_BYTES * results.len().max(1),
            ),
        };
        let bytes = match written {
            Ok(bytes) => bytes,
            Err(unwritten) => return problem(&unwritten),
        };
        match self {
            Self::Bytes { content_type, bytes } => response(StatusCode::OK, content_type, bytes),
            Self::Pieces {
                content_type,
                file,
                body,
            } => {
                let mut response = response(StatusCode::OK, content_type, Body::new(body));
                if let Some(file) = file {
                    response
                        .headers_mut()
                        .insert(CONTENT_DISPOSITION, HeaderValue::from_static(file));
                }
                response
            }
            Self::Batch(_) => response(StatusCode::OK, "application/json", bytes),
            Self::Done { answered, created } => {
                let status = if created {
                    StatusCode::CREATED
                } else {
                    StatusCode::OK
                };
                let mut response = response(status, "application/json", bytes);
                if let Subject::Stock(subject) = &answered.done.subject {
                    let tag = HeaderValue::from_str(&format!("\"{}\"", subject.stock.revision));
                    if let Ok(tag) = tag {
                        response.headers_mut().insert(ETAG, tag);
                    }
                }
                response
            }
        }
    }
}

/// `RateLimit` and `RateLimit-Policy` as the IETF's draft has them: tokens left and until when, of so many in a time.
pub(super) fn rate_headers(headers: &mut HeaderMap, name: &str, level: Level) {
    let Level {
        burst,
        window_s,
        left,
        wait_s,
    } = level;
    let policy = format!(r#""{name}";q={burst};w={window_s}"#);
    let limit = format!(r#""{name}";r={left};t={wait_s}"#);
    for (header, text) in [("ratelimit-policy", policy), ("ratelimit", limit)] {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.append(HeaderName::from_static(header), value);
        }
    }
}

/// A problem as bytes.
pub(crate) fn problem(problem: &Problem) -> Response {
    let view = problem.view();
    let status = StatusCode::from_u16(problem.code().status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let Ok(bytes) = to_bytes(&view, BODY_BYTES) else {
        return status.into_response();
    };
    let mut response = response(status, "application/problem+json", bytes);
    if let Some(seconds) = view.retry_after_s() {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Problem::Stopped(Stop::Limit {
        line,
        level: Some(level),
        ..
    }) = problem
    {
        rate_headers(response.headers_mut(), line.as_str(), *level);
    }
    if let Problem::Unauthorized(why) = problem {
        let challenge = match why {
            NoKey::Missing => HeaderValue::from_static(r#"Bearer realm="stockade""#),
            NoKey::Malformed => {
                HeaderValue::from_static(r#"Bearer realm="stockade", error="invalid_request""#)
            }
            NoKey::Denied(_) => HeaderValue::from_static(r#"Bearer realm="stockade", error="invalid_token""#),
        };
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

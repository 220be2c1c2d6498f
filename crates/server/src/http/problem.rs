//! The one place where a refusal or failure becomes a problem detail (RFC 9457): status, title, code and the numbers.
//!
//! Clients see what they can act on; causes that only an operator can mend go to the log.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use serde::Serialize;
use stockade::Error;
use stockade_core::{Action, Refusal};
use utoipa::ToSchema;

use super::access::NoKey;
use super::answer;
use super::code::Code;
use super::problem_view::ProblemView;
use crate::gate::{Line, Stop};
use crate::keys::{Denied, Scope};

/// When to ask for an audit again while one is under way: it takes a few seconds per million reservations.
const AUDIT_AGAIN_MS: u64 = 5_000;

/// A fault of the request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// Where: `lines[0].quantity`, a query parameter, a header.
    pub(crate) field: String,
    /// The text as it was sent; `nothing` where the field is missing.
    pub(crate) found: String,
    /// What is allowed.
    #[schema(value_type = String)]
    pub(crate) allowed: Cow<'static, str>,
}

/// How a caller finds out whether a command was done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    /// The reservation shows it.
    ByReservation,
    /// Nothing that can be asked shows it, or not of this command alone: returns and stock commands.
    BySendingAgain,
}

impl Ask {
    pub(crate) fn about(action: &Action) -> Self {
        match action {
            Action::Reserve(_) | Action::Confirm(_) | Action::Cancel(_) | Action::Extend(_) => {
                Self::ByReservation
            }
            _ => Self::BySendingAgain,
        }
    }
}

/// Why a request was not answered with what it asked for.
#[derive(Debug)]
pub(crate) enum Problem {
    Refused(Refusal),
    Overloaded {
        retry_after_ms: u64,
    },
    /// Another audit is under way.
    Auditing,
    Unavailable {
        why: String,
    },
    OutcomeUnknown {
        why: String,
        ask: Ask,
    },
    Malformed {
        line: usize,
        column: usize,
        what: String,
    },
    Invalid(Vec<FieldError>),
    Unauthorized(NoKey),
    /// The key has none of these.
    Forbidden {
        scopes: &'static [Scope],
    },
    /// The gate did not let it on, and its id is not known.
    Stopped(Stop),
    /// The queue is too long.
    Shed {
        retry_after_ms: u64,
    },
    UnknownRoute,
    MethodNotAllowed,
    BodyTimeout {
        after_ms: u64,
    },
    BodyTooLarge {
        bytes_max: usize,
    },
    UnsupportedMediaType {
        found: String,
        allowed: &'static str,
    },
    /// An import ended before its file did.
    ImportStopped {
        cause: Box<Problem>,
        /// Rows that have an answer.
        rows: u64,
        dry_run: bool,
    },
}

impl Problem {
    /// One fault.
    pub(crate) fn invalid(field: &str, found: &str, allowed: impl Into<Cow<'static, str>>) -> Self {
        let found = super::json::shortened(found);
        Self::Invalid(vec![FieldError {
            field: field.to_owned(),
            found,
            allowed: allowed.into(),
        }])
    }

    /// The same, where it is known how to ask.
    pub(crate) fn asked(self, ask: Ask) -> Self {
        match self {
            Self::OutcomeUnknown { why, .. } => Self::OutcomeUnknown { why, ask },
            other => other,
        }
    }

    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Refused(refusal) => refusal_code(refusal),
            Self::Overloaded { .. } | Self::Auditing | Self::Shed { .. } => Code::Overloaded,
            Self::Unavailable { .. } => Code::Unavailable,
            Self::OutcomeUnknown { .. } => Code::OutcomeUnknown,
            Self::Malformed { .. } => Code::Malformed,
            Self::Invalid(_) => Code::Invalid,
            Self::Unauthorized(_) => Code::Unauthorized,
            Self::Forbidden { .. } => Code::Forbidden,
            Self::Stopped(Stop::Limit { .. }) => Code::RateLimited,
            Self::Stopped(Stop::SoldOut(_)) => Code::InsufficientStock,
            Self::UnknownRoute => Code::UnknownRoute,
            Self::MethodNotAllowed => Code::MethodNotAllowed,
            Self::BodyTimeout { .. } => Code::BodyTimeout,
            Self::BodyTooLarge { .. } => Code::BodyTooLarge,
            Self::UnsupportedMediaType { .. } => Code::UnsupportedMediaType,
            Self::ImportStopped { cause, .. } => cause.code(),
        }
    }

    /// The line of defence that stopped the request.
    pub(crate) fn line(&self) -> Line {
        match self {
            Self::Refused(_) => Line::HotTier,
            Self::Overloaded { .. } | Self::Auditing => Line::Backlog,
            Self::Unavailable { .. } | Self::OutcomeUnknown { .. } => Line::Unavailable,
            Self::Unauthorized(_) | Self::Forbidden { .. } => Line::Key,
            Self::Stopped(stop) => stop.line(),
            Self::Shed { .. } => Line::Shed,
            _ => Line::Shape,
        }
    }

    /// The body of the answer.
    pub(crate) fn view(&self) -> ProblemView<'_> {
        let mut view = ProblemView::new(self.code());
        match self {
            Self::Refused(refusal) => view.refusal(refusal),
            Self::Overloaded { retry_after_ms } => {
                view.detail = "Too many commands wait. Nothing was changed; send it again later.".into();
                view.retry_after_ms = Some(*retry_after_ms);
            }
            Self::Auditing => {
                view.detail =
                    "An audit is under way; one at a time. Nothing was changed; ask again later.".into();
                view.retry_after_ms = Some(AUDIT_AGAIN_MS);
            }
            Self::Unavailable { why } => {
                view.detail = format!("Nothing was changed: {why}").into();
                view.retry_after_ms = Some(1_000);
            }
            Self::OutcomeUnknown { why, ask } => {
                let then = match ask {
                    Ask::ByReservation => "Ask by the reservation's id, or send the same id again.",
                    Ask::BySendingAgain => "Send it again with the same id: it has no second effect.",
                };
                view.detail = format!("It may or may not have happened ({why}). {then}").into();
            }
            Self::Malformed { line, column, what } => {
                view.detail = format!("Line {line}, column {column}: {what}.").into();
                view.line = Some(*line);
                view.column = Some(*column);
            }
            Self::Invalid(errors) => {
                view.detail = match errors.as_slice() {
                    [one] => format!("{}: found {}, allowed {}.", one.field, one.found, one.allowed).into(),
                    _ => format!("{} faults; see errors.", errors.len()).into(),
                };
                view.errors = Some(Cow::Borrowed(errors));
            }
            Self::Unauthorized(why) => {
                view.detail = match why {
                    NoKey::Missing => {
                        "Send a key as `Authorization: Bearer sk_...` or `X-API-Key`. Nothing was changed."
                    }
                    NoKey::Malformed => {
                        "Send one key, as `Authorization: Bearer sk_...` or `X-API-Key`. Nothing was changed."
                    }
                    NoKey::Denied(Denied::Unknown) => "There is no such key. Nothing was changed.",
                    NoKey::Denied(Denied::Revoked) => "This key was revoked. Nothing was changed.",
                    NoKey::Denied(Denied::Ended) => "This key has ended. Nothing was changed.",
                }
                .into();
            }
            Self::Forbidden { scopes } => {
                let words: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
                view.detail = format!(
                    "The key needs the scope {}. Nothing was changed.",
                    words.join(" or ")
                )
                .into();
                view.scopes = Some(words);
            }
            Self::Stopped(Stop::Limit { line, wait_ms, .. }) => {
                let what = match line {
                    Line::OwnerInterval => "The owner asked for this SKU a moment ago.",
                    Line::OwnerLive => "The owner has as many live reservations as one may have.",
                    Line::CoolDown => "The owner's reservations keep ending unpaid.",
                    Line::OwnerRate => "The owner asks too often.",
                    _ => "This key asks too often.",
                };
                view.detail = format!("{what} Nothing was changed; send it again later.").into();
                view.limit = Some(line.as_str());
                view.retry_after_ms = Some((*wait_ms).max(1));
            }
            Self::Stopped(Stop::SoldOut(lines)) => view.short(lines),
            Self::Shed { retry_after_ms } => {
                view.detail = "The queue is too long. Nothing was changed; send it again later.".into();
                view.retry_after_ms = Some(*retry_after_ms);
            }
            Self::UnknownRoute => {
                view.detail =
                    "No such path. /openapi.json lists them all; a slash within an id is written %2F.".into();
            }
            Self::MethodNotAllowed => view.detail = "The header Allow lists what this path takes.".into(),
            Self::BodyTimeout { after_ms } => {
                view.detail =
                    format!("The body was not there after {after_ms} ms. Nothing was changed.").into();
            }
            Self::BodyTooLarge { bytes_max } => {
                view.detail = format!("A body may have {bytes_max} bytes. Nothing was changed.").into();
            }
            Self::UnsupportedMediaType { found, allowed } => {
                view.detail = format!("Send the body as {allowed}, not as {found}.").into();
            }
            Self::ImportStopped { cause, rows, dry_run } => {
                view = cause.view();
                let then = if *dry_run {
                    "Nothing was changed."
                } else {
                    "Send the file again with the same id: rows that were done have no second effect."
                };
                view.detail = format!(
                    "The import stopped after {rows} rows that have an answer: {} {then}",
                    view.stop()
                )
                .into();
            }
        }
        view
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => Self::Refused(refusal),
            Error::Overloaded { retry_after_ms, .. } => Self::Overloaded { retry_after_ms },
            Error::Unavailable { why } => Self::Unavailable { why },
            // Whoever knows the command says what can be asked; sending again is right for all.
            Error::OutcomeUnknown { why } => Self::OutcomeUnknown {
                why,
                ask: Ask::BySendingAgain,
            },
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        answer::problem(&self)
    }
}

fn refusal_code(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::InsufficientStock(_) => Code::InsufficientStock,
        Refusal::UnknownSku(_) => Code::UnknownSku,
        Refusal::RevisionConflict(_) => Code::RevisionConflict,
        Refusal::LimitExceeded(_) => Code::LimitExceeded,
        Refusal::NotOpen(_) => Code::NotOpen,
        Refusal::Closed(_) => Code::Closed,
        Refusal::Paused(_) => Code::Paused,
        Refusal::BelowReserved { .. } => Code::BelowReserved,
        Refusal::IdReused => Code::IdReused,
        Refusal::CrossShard => Code::CrossShard,
        Refusal::NotFound { .. } => Code::NotFound,
        Refusal::Expired { .. } => Code::Expired,
        Refusal::AlreadyConfirmed(_) => Code::AlreadyConfirmed,
        Refusal::AlreadyCancelled(_) => Code::AlreadyCancelled,
        Refusal::NotConfirmed(_) => Code::NotConfirmed,
        Refusal::Invalid(_) => Code::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems that no test can bring about in a running service.
    #[test]
    fn rare_problems_say_what_to_do() {
        let rows = [
            (
                Problem::Refused(Refusal::CrossShard),
                422,
                "cross_shard",
                None,
                "one group",
            ),
            (
                Problem::Overloaded {
                    retry_after_ms: 1_200,
                },
                503,
                "overloaded",
                Some(2),
                "Nothing was changed",
            ),
            (
                Problem::Unavailable {
                    why: "the disk is full".to_owned(),
                },
                503,
                "unavailable",
                Some(1),
                "Nothing was changed: the disk is full",
            ),
            (
                Problem::OutcomeUnknown {
                    why: "no answer within 5 ms".to_owned(),
                    ask: Ask::ByReservation,
                },
                504,
                "outcome_unknown",
                None,
                "Ask by the reservation's id, or send the same id again",
            ),
            (
                Problem::OutcomeUnknown {
                    why: "no answer within 5 ms".to_owned(),
                    ask: Ask::BySendingAgain,
                },
                504,
                "outcome_unknown",
                None,
                "(no answer within 5 ms). Send it again with the same id",
            ),
        ];
        for (problem, status, code, retry_after_s, detail) in rows {
            let view = problem.view();
            assert_eq!((view.status, view.code), (status, code));
            assert_eq!(view.retry_after_s(), retry_after_s, "{code}");
            assert!(view.detail.contains(detail), "{}", view.detail);
        }
    }
}

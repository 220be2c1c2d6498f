//! The one place where a refusal or failure becomes a problem detail (RFC 9457): status, title, code and the numbers.
//!
//! Clients see what they can act on; causes that only an operator can mend go to the log.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use serde::Serialize;
use stockade::Error;
use stockade_core::{Action, Conflict, LateReason, OverLimit, Refusal, RefusedLine, Reservation, Short};
use utoipa::ToSchema;

use super::access::NoKey;
use super::answer;
use super::code::Code;
use super::view::ReservationView;
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
            Self::Overloaded { .. } | Self::Auditing => Code::Overloaded,
            Self::Unavailable { .. } => Code::Unavailable,
            Self::OutcomeUnknown { .. } => Code::OutcomeUnknown,
            Self::Malformed { .. } => Code::Malformed,
            Self::Invalid(_) => Code::Invalid,
            Self::Unauthorized(_) => Code::Unauthorized,
            Self::Forbidden { .. } => Code::Forbidden,
            Self::UnknownRoute => Code::UnknownRoute,
            Self::MethodNotAllowed => Code::MethodNotAllowed,
            Self::BodyTimeout { .. } => Code::BodyTimeout,
            Self::BodyTooLarge { .. } => Code::BodyTooLarge,
            Self::UnsupportedMediaType { .. } => Code::UnsupportedMediaType,
            Self::ImportStopped { cause, .. } => cause.code(),
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

/// The name of a field in bodies, where the core has one of its own.
fn wire_name(field: &str) -> &str {
    match field {
        "ends_at" => "expires_at_ms",
        "opens_at" => "opens_at_ms",
        "closes_at" => "closes_at_ms",
        "ttl_ms" => "ttl_seconds",
        other => other,
    }
}

/// A revision, or null where there is no SKU to have one.
#[derive(Debug, Serialize)]
struct Revision(Option<u64>);

/// A refused line with the numbers of its refusal.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct LineProblem<'a> {
    /// Where the line stood in the request: of lines that were summed, the first.
    index: u32,
    sku: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    /// Units asked for, summed.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<u64>,
    /// Units that this line could have had.
    #[serde(skip_serializing_if = "Option::is_none")]
    available: Option<u64>,
    /// Units that the owner holds and has bought.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
    /// The most that one owner may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    /// The revision asked for; null: the SKU was to be absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    expected: Option<Revision>,
    /// The revision found; null: there is no such SKU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    found: Option<Revision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closes_at_ms: Option<i64>,
}

/// A problem detail (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemView<'a> {
    /// Always `about:blank`; `code` says what it is.
    r#type: &'static str,
    title: &'static str,
    status: u16,
    /// A stable word for programs.
    code: &'static str,
    /// For people; may change.
    #[schema(value_type = String)]
    detail: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Vec<LineProblem<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<FieldError>>)]
    errors: Option<Cow<'a, [FieldError]>>,
    /// Of `not_found`.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    /// Of `expired`: `over`, `insufficient_stock` or `limit_exceeded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// Of the lifecycle refusals: the reservation as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    reservation: Option<ReservationView<'a>>,
    /// Of `below_reserved`.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    /// Of `below_reserved`: what `on_hand` would have become.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<i64>,
    /// Of `below_reserved`: units reserved there.
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved: Option<u64>,
    /// Of `malformed`, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// Of `malformed`, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    /// Of `forbidden`: any one of these scopes is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<Vec<&'static str>>,
    /// When to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl<'a> ProblemView<'a> {
    fn new(code: Code) -> Self {
        Self {
            r#type: "about:blank",
            title: code.title(),
            status: code.status(),
            code: code.as_str(),
            detail: Cow::Borrowed(""),
            lines: None,
            errors: None,
            id: None,
            reason: None,
            reservation: None,
            location: None,
            result: None,
            reserved: None,
            line: None,
            column: None,
            scopes: None,
            retry_after_ms: None,
        }
    }

    /// The seconds of the header `Retry-After`.
    pub(crate) fn retry_after_s(&self) -> Option<u64> {
        self.retry_after_ms.map(|ms| ms.div_ceil(1_000).max(1))
    }

    /// What it says to people.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// What was wrong with which field.
    pub(crate) fn errors(&self) -> &[FieldError] {
        self.errors.as_deref().unwrap_or_default()
    }

    /// What it says to people, where "nothing was changed" would not be true of the whole.
    fn stop(&self) -> &str {
        self.detail
            .strip_prefix("Nothing was changed: ")
            .unwrap_or(&self.detail)
    }

    fn refusal(&mut self, refusal: &'a Refusal) {
        match refusal {
            Refusal::InsufficientStock(lines) => self.short(lines),
            Refusal::UnknownSku(lines) => {
                self.detail = "There is no such SKU, or it has no such location. Set its stock first.".into();
                self.lines(lines, |line, &()| line);
            }
            Refusal::RevisionConflict(lines) => {
                self.detail = "The stock was changed meanwhile. Read it again.".into();
                self.lines(lines, |line, conflict: &Conflict| LineProblem {
                    expected: Some(Revision(conflict.expected)),
                    found: Some(Revision(conflict.found)),
                    ..line
                });
            }
            Refusal::LimitExceeded(lines) => self.over_limit(lines),
            Refusal::NotOpen(lines) => {
                self.detail = "The sale is not open yet.".into();
                self.lines(lines, |line, at| LineProblem {
                    opens_at_ms: Some(*at),
                    ..line
                });
            }
            Refusal::Closed(lines) => {
                self.detail = "The sale is over.".into();
                self.lines(lines, |line, at| LineProblem {
                    closes_at_ms: Some(*at),
                    ..line
                });
            }
            Refusal::Paused(lines) => {
                self.detail = "The sale is paused.".into();
                self.lines(lines, |line, &()| line);
            }
            Refusal::BelowReserved {
                location,
                result,
                reserved,
            } => {
                self.detail =
                    format!("On hand would become {result}, below the {reserved} units reserved.").into();
                self.location = Some(location.as_str());
                self.result = Some(*result);
                self.reserved = Some(*reserved);
            }
            Refusal::IdReused => {
                self.detail = "This id was used with another payload. Nothing was changed.".into();
            }
            Refusal::CrossShard => {
                self.detail = "One shard cannot hold this cart. Give its SKUs one group.".into();
            }
            Refusal::NotFound { id } => {
                self.detail = "There is no such reservation.".into();
                self.id = Some(id.as_str());
            }
            Refusal::Expired { reservation, reason } => {
                match reason {
                    LateReason::Over => self.reason = Some("over"),
                    LateReason::Short(lines) => {
                        self.short(lines);
                        self.reason = Some(Code::InsufficientStock.as_str());
                    }
                    LateReason::Limit(lines) => {
                        self.over_limit(lines);
                        self.reason = Some(Code::LimitExceeded.as_str());
                    }
                }
                self.detail = "The reservation is past its end and cannot be had again.".into();
                self.shows(reservation);
            }
            Refusal::AlreadyConfirmed(reservation) => {
                self.detail = "The units are sold. Use return to give them back.".into();
                self.shows(reservation);
            }
            Refusal::AlreadyCancelled(reservation) => {
                self.detail = if reservation.sealed {
                    "This id was cancelled before it came.".into()
                } else {
                    "The reservation was cancelled.".into()
                };
                self.shows(reservation);
            }
            Refusal::NotConfirmed(reservation) => {
                self.detail = "Nothing was sold by this reservation, so nothing can come back.".into();
                self.shows(reservation);
            }
            Refusal::Invalid(fields) => {
                let errors: Vec<FieldError> = fields
                    .iter()
                    .map(|f| FieldError {
                        field: wire_name(&f.field).to_owned(),
                        found: f.found.clone(),
                        allowed: f.allowed.clone().into(),
                    })
                    .collect();
                self.detail = match errors.as_slice() {
                    [one] => format!("{}: found {}, allowed {}.", one.field, one.found, one.allowed).into(),
                    _ => format!("{} faults; see errors.", errors.len()).into(),
                };
                self.errors = Some(Cow::Owned(errors));
            }
        }
    }

    fn shows(&mut self, reservation: &'a Reservation) {
        self.reservation = Some(ReservationView::of(reservation));
    }

    fn short(&mut self, lines: &'a [RefusedLine<Short>]) {
        self.detail = match lines {
            [one] => format!(
                "{} units asked, {} available.",
                one.detail.asked, one.detail.available
            )
            .into(),
            _ => format!("{} lines are short; see lines.", lines.len()).into(),
        };
        self.lines(lines, |line, short| LineProblem {
            asked: Some(short.asked),
            available: Some(short.available),
            ..line
        });
    }

    fn over_limit(&mut self, lines: &'a [RefusedLine<OverLimit>]) {
        self.detail = match lines {
            [one] => {
                let OverLimit { asked, used, limit } = one.detail;
                format!("{asked} units asked, the owner has {used} of at most {limit}.").into()
            }
            _ => format!("{} lines pass the owner's limit; see lines.", lines.len()).into(),
        };
        self.lines(lines, |line, over| LineProblem {
            asked: Some(over.asked),
            used: Some(over.used),
            limit: Some(over.limit),
            ..line
        });
    }

    fn lines<T>(
        &mut self,
        lines: &'a [RefusedLine<T>],
        with: impl Fn(LineProblem<'a>, &T) -> LineProblem<'a>,
    ) {
        let base = |line: &'a RefusedLine<T>| LineProblem {
            index: line.index,
            sku: line.sku.as_str(),
            location: line.location.as_ref().map(stockade_core::Id::as_str),
            ..LineProblem::default()
        };
        self.lines = Some(lines.iter().map(|line| with(base(line), &line.detail)).collect());
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

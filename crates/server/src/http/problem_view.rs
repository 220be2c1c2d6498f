//! The body of a problem detail (RFC 9457), with the numbers of the refusal.

use std::borrow::Cow;

use serde::Serialize;
use stockade_core::{Conflict, LateReason, OverLimit, Refusal, RefusedLine, Reservation, Short};
use utoipa::ToSchema;

use super::code::Code;
use super::problem::FieldError;
use super::view::ReservationView;

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
    pub(super) r#type: &'static str,
    pub(super) title: &'static str,
    pub(super) status: u16,
    /// A stable word for programs.
    pub(super) code: &'static str,
    /// For people; may change.
    #[schema(value_type = String)]
    pub(super) detail: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lines: Option<Vec<LineProblem<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<FieldError>>)]
    pub(super) errors: Option<Cow<'a, [FieldError]>>,
    /// Of `not_found`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    /// Of `expired`: `over`, `insufficient_stock` or `limit_exceeded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
    /// Of the lifecycle refusals: the reservation as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reservation: Option<ReservationView<'a>>,
    /// Of `below_reserved`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) location: Option<&'a str>,
    /// Of `below_reserved`: what `on_hand` would have become.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<i64>,
    /// Of `below_reserved`: units reserved there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reserved: Option<u64>,
    /// Of `malformed`, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<usize>,
    /// Of `malformed`, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<usize>,
    /// Of `forbidden`: any one of these scopes is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scopes: Option<Vec<&'static str>>,
    /// Of `rate_limited`: which limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<&'static str>,
    /// When to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after_ms: Option<u64>,
}

impl<'a> ProblemView<'a> {
    pub(super) fn new(code: Code) -> Self {
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
            limit: None,
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
    pub(super) fn stop(&self) -> String {
        let detail = self.detail.strip_prefix("Nothing was changed: ");
        detail
            .unwrap_or(&self.detail)
            .replace(" Nothing was changed; send it again later.", "")
            .replace(" Nothing was changed.", "")
    }

    pub(super) fn refusal(&mut self, refusal: &'a Refusal) {
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

    pub(super) fn short(&mut self, lines: &'a [RefusedLine<Short>]) {
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

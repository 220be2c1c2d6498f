//! What a request carries outside its body: the id in its path, its query, its headers; and the body's bytes, within
//! a limit of size and time.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HOST, IF_MATCH, IF_NONE_MATCH, ORIGIN};
use axum::http::{HeaderMap, HeaderName};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;
use stockade_core::{Expect, Id, IdError, Reason};
use tokio::time::timeout;

use super::kind::{FIGURE, Whole};
use super::problem::Problem;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How much of a body that is too large is read on, so that its sender gets to see the answer.
const DISCARDED_BYTES_MAX: usize = 16 << 20;
/// What a percent sign may stand before.
const ESCAPES: &str = "two hexadecimal digits after each %; a percent sign itself is %25";
const DISCARD_WITHIN: Duration = Duration::from_secs(2);

/// The id in a path: always its third part. It is taken from the path as it was sent, percent-decoded once; `+` is a
/// plus.
pub(crate) fn path_id(request: &Request, name: &'static str) -> Result<Id, Problem> {
    let part = request.uri().path().split('/').nth(3).unwrap_or_default();
    if broken_escape(part) {
        return Err(Problem::invalid(name, part, ESCAPES));
    }
    let decoded = percent_decode_str(part).decode_utf8();
    decoded
        .ok()
        .and_then(|text| Id::new(&text).ok())
        .ok_or_else(|| Problem::invalid(name, part, format!("{}, percent-encoded", IdError::ALLOWED)))
}

/// Whether a `%` stands before something else than two hexadecimal digits. Decoders leave it as it is, and then `%zz` and
/// `%25zz` would be one id.
fn broken_escape(text: &str) -> bool {
    text.split('%').skip(1).any(|after| {
        let digits = after.as_bytes().get(..2);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// The id in `Idempotency-Key`, byte for byte.
pub(crate) fn header_id(headers: &HeaderMap) -> Result<Option<Id>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(value.as_bytes());
    let id = std::str::from_utf8(value.as_bytes())
        .ok()
        .and_then(|text| Id::new(text).ok());
    match id {
        Some(id) if values.next().is_none() => Ok(Some(id)),
        Some(_) => Err(Problem::invalid(
            "Idempotency-Key",
            "more than one",
            "the header once",
        )),
        None => Err(Problem::invalid("Idempotency-Key", &text, IdError::ALLOWED)),
    }
}

/// The command's id: from the body or from `Idempotency-Key`; where both are given they must agree.
pub(crate) fn agreed_id(header: Option<Id>, body: Option<Id>) -> Result<Id, Problem> {
    match (header, body) {
        (Some(header), Some(body)) if header != body => {
            let allowed = format!("the id of the body, {body}");
            Err(Problem::invalid("Idempotency-Key", header.as_str(), allowed))
        }
        (_, Some(id)) | (Some(id), None) => Ok(id),
        (None, None) => Err(Problem::invalid("id", "nothing", IdError::ALLOWED)),
    }
}

/// The command's id is the one in the path: an `Idempotency-Key` that says another one is a mistake of the caller.
pub(crate) fn same_id(header: Option<&Id>, path: &Id) -> Result<(), Problem> {
    match header {
        Some(header) if header != path => {
            let allowed = format!("the id of the path, {path}, or no such header");
            Err(Problem::invalid("Idempotency-Key", header.as_str(), allowed))
        }
        _ => Ok(()),
    }
}

/// The condition on the revision: `If-Match: "3"`, `If-None-Match: *`, or `if_revision` of the body.
pub(crate) fn expect(headers: &HeaderMap, if_revision: Option<u64>) -> Result<Expect, Problem> {
    let one = |name: HeaderName, shown: &'static str| {
        let mut values = headers.get_all(name).iter();
        let first = values
            .next()
            .map(|value| String::from_utf8_lossy(value.as_bytes()));
        if values.next().is_some() {
            return Err(Problem::invalid(shown, "more than one", "the header once"));
        }
        Ok(first)
    };
    let matched = one(IF_MATCH, "If-Match")?;
    let none_matched = one(IF_NONE_MATCH, "If-None-Match")?;
    let revision = match &matched {
        None => None,
        Some(tag) => {
            let tag = tag.trim();
            let figure = tag
                .strip_prefix('"')
                .and_then(|t| t.strip_suffix('"'))
                .and_then(|t| FIGURE.of(t));
            if figure.is_none() {
                return Err(Problem::invalid(
                    "If-Match",
                    tag,
                    "one revision in quotes, as in ETag: \"3\"",
                ));
            }
            figure
        }
    };
    if let Some(tag) = &none_matched {
        if tag.trim() != "*" {
            return Err(Problem::invalid("If-None-Match", tag, "*"));
        }
        if revision.is_some() || if_revision.is_some() {
            return Err(Problem::invalid(
                "If-None-Match",
                tag,
                "no other condition beside it",
            ));
        }
        return Ok(Expect::Absent);
    }
    match (revision, if_revision) {
        (Some(header), Some(body)) if header != body => Err(Problem::invalid(
            "if_revision",
            &body.to_string(),
            format!("{header}, as If-Match says"),
        )),
        (Some(revision), _) | (None, Some(revision)) => Ok(Expect::Revision(revision)),
        (None, None) => Ok(Expect::Any),
    }
}

/// The parameters after `?`, form-encoded (`+` is a blank), each at most once.
#[derive(Debug)]
pub(crate) struct Query {
    pairs: Vec<(String, Option<String>)>,
    asked: Vec<&'static str>,
}

impl Query {
    pub(crate) fn of(request: &Request) -> Result<Self, Problem> {
        let mut pairs: Vec<(String, Option<String>)> = Vec::new();
        for pair in request
            .uri()
            .query()
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
        {
            if broken_escape(pair) {
                return Err(Problem::invalid("query", pair, ESCAPES));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text: &str| {
                let blanks = text.replace('+', " ");
                percent_decode_str(&blanks)
                    .decode_utf8()
                    .map(std::borrow::Cow::into_owned)
            };
            let (Ok(name), Ok(value)) = (decode(name), decode(value)) else {
                return Err(Problem::invalid("query", pair, "UTF-8, percent-encoded"));
            };
            if pairs.iter().any(|(known, _)| *known == name) {
                return Err(Problem::invalid(&name, &value, "the parameter once"));
            }
            pairs.push((name, Some(value)));
        }
        Ok(Self {
            pairs,
            asked: Vec::new(),
        })
    }

    fn take(&mut self, name: &'static str) -> Option<String> {
        self.asked.push(name);
        self.pairs.iter_mut().find(|(known, _)| known == name)?.1.take()
    }

    pub(crate) fn id(&mut self, name: &'static str) -> Result<Option<Id>, Problem> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        Id::new(&text)
            .map(Some)
            .map_err(|_| Problem::invalid(name, &text, IdError::ALLOWED))
    }

    pub(crate) fn number(&mut self, name: &'static str, range: &Whole) -> Result<Option<u64>, Problem> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        let allowed = || format!("{}..={}", range.0.start(), range.0.end());
        range
            .of(&text)
            .map(Some)
            .ok_or_else(|| Problem::invalid(name, &text, allowed()))
    }

    /// The page size: 1..=1,000, 100 when not given.
    pub(crate) fn limit(&mut self) -> Result<usize, Problem> {
        let limit = self.number("limit", &Whole(1..=1_000))?;
        Ok(limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(100))
    }

    pub(crate) fn moment(&mut self, name: &'static str) -> Result<Option<i64>, Problem> {
        Ok(self.number(name, &FIGURE)?.and_then(|ms| i64::try_from(ms).ok()))
    }

    /// `true` or `false`; false when not given.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        self.flag_or(name, false)
    }

    /// `true` or `false`.
    pub(crate) fn flag_or(&mut self, name: &'static str, otherwise: bool) -> Result<bool, Problem> {
        const WORDS: super::kind::Choice<bool> = super::kind::Choice(&[("true", true), ("false", false)]);
        Ok(self.word(name, &WORDS)?.unwrap_or(otherwise))
    }

    /// As it was sent.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.take(name)
    }

    /// Why; empty when not given.
    pub(crate) fn reason(&mut self, name: &'static str) -> Result<Reason, Problem> {
        let text = self.take(name).unwrap_or_default();
        Reason::new(&text).map_err(|_| Problem::invalid(name, &text, Reason::ALLOWED))
    }

    pub(crate) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        choice: &super::kind::Choice<T>,
    ) -> Result<Option<T>, Problem> {
        use super::kind::Kind as _;
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        choice
            .of(&text)
            .map(Some)
            .ok_or_else(|| Problem::invalid(name, &text, choice.allowed()))
    }

    /// Refuses what nobody asked for.
    pub(crate) fn done(self) -> Result<(), Problem> {
        match self.pairs.iter().find(|(_, value)| value.is_some()) {
            None => Ok(()),
            Some((name, value)) => {
                let known = if self.asked.is_empty() {
                    "no parameters".to_owned()
                } else {
                    format!("no such parameter; known are {}", self.asked.join(", "))
                };
                Err(Problem::invalid(
                    name,
                    value.as_deref().unwrap_or_default(),
                    known,
                ))
            }
        }
    }
}

/// Refuses commands that a page of another site makes a browser send. Without a body, or with one that has no type, a
/// browser asks nobody first; and listening on loopback only keeps other machines out, not other pages.
pub(crate) fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(value) = headers.get(ORIGIN) else {
        return Ok(());
    };
    let page = value.to_str().ok().and_then(|origin| origin.split_once("://"));
    let own = headers.get(HOST).and_then(|host| host.to_str().ok());
    match (page, own) {
        (Some((_, page)), Some(own)) if page.eq_ignore_ascii_case(own) => Ok(()),
        _ => Err(Problem::invalid(
            "Origin",
            &String::from_utf8_lossy(value.as_bytes()),
            "the service's own address: pages of other sites may not send commands",
        )),
    }
}

/// Refuses a body that says it is something else than JSON. Saying nothing is fine.
fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let refused = || Problem::UnsupportedMediaType {
        found: super::json::shortened(&String::from_utf8_lossy(value.as_bytes())),
        allowed: "application/json in UTF-8",
    };
    let text = value.to_str().map_err(|_| refused())?;
    let mut parts = text.split(';');
    let essence = parts.next().unwrap_or_default().trim();
    let is_json = essence.eq_ignore_ascii_case("application/json")
        || (essence.len() > 5 && essence[..].to_ascii_lowercase().ends_with("+json"));
    let charset_fits = parts.all(|parameter| match parameter.trim().split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let value = value.trim().trim_matches('"');
            value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8")
        }
        _ => true,
    });
    if is_json && charset_fits {
        Ok(())
    } else {
        Err(refused())
    }
}

/// The bytes of a body, within the limits.
pub(crate) async fn read_body(
    request: Request,
    bytes_max: usize,
    within: Duration,
) -> Result<(axum::http::request::Parts, Bytes), Problem> {
    let (parts, body) = request.into_parts();
    check_origin(&parts.headers)?;
    check_content_type(&parts.headers)?;
    let announced = body.size_hint().lower();
    if announced > bytes_max as u64 {
        discard(body).await;
        return Err(Problem::BodyTooLarge { bytes_max });
    }
    let mut body = body;
    let Ok(collected) = timeout(within, collect(&mut body, bytes_max)).await else {
        let after_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        return Err(Problem::BodyTimeout { after_ms });
    };
    match collected {
        Ok(Some(bytes)) => Ok((parts, bytes)),
        Ok(None) => {
            discard(body).await;
            Err(Problem::BodyTooLarge { bytes_max })
        }
        // The connection broke or its framing is wrong; whoever is left to read the answer gets one.
        Err(error) => {
            let what = format!("the body ended early: {error}");
            Err(Problem::Malformed {
                line: 1,
                column: 1,
                what,
            })
        }
    }
}

/// A body's bytes, not copied where they came in one piece; `None` if there are more than may be.
async fn collect(body: &mut Body, bytes_max: usize) -> Result<Option<Bytes>, axum::Error> {
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let so_far = rest.as_ref().map_or(first.len(), BytesMut::len);
        if so_far + data.len() > bytes_max {
            return Ok(None);
        }
        match &mut rest {
            Some(rest) => rest.extend_from_slice(&data),
            None if first.is_empty() => first = data,
            None => {
                let mut both = BytesMut::with_capacity(so_far + data.len());
                both.extend_from_slice(&first);
                both.extend_from_slice(&data);
                rest = Some(both);
            }
        }
    }
    Ok(Some(rest.map_or(first, BytesMut::freeze)))
}

/// Reads on for a moment: closing a connection with unread bytes resets it, and the answer would be lost.
pub(crate) async fn discard(mut body: Body) {
    let mut left = DISCARDED_BYTES_MAX;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let read = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(read) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    };
    // Whether it was read to its end makes no difference to the answer.
    if timeout(DISCARD_WITHIN, reading).await.is_err() {
        tracing::debug!("gave up reading a body that is too large");
    }
}

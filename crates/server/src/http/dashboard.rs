//! The dashboard at `/`: files that were built from `web/` and taken into the binary. It is a client of the API like
//! any other, so this module only hands out files.
//!
//! The page is the one place where a browser runs something for this service, and what it shows comes from strangers:
//! SKUs, owners, reasons. So it may load and run what came from here and nothing else, and a text cannot become markup.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use rust_embed::{Embed, EmbeddedFile};

use super::app::App;
use super::metrics::Route;
use super::problem::Problem;

/// What `make web` built; empty where it did not run.
#[derive(Embed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

/// Scripts and styles from here only, none inside the page, no text taken for a script; no forms, frames or plug-ins.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const NOT_BUILT: &str = include_str!("not_built.html");

/// The page.
pub(crate) async fn index(State(app): State<Arc<App>>, request: Request) -> Response {
    let since = Instant::now();
    let response = page(request.headers());
    app.metrics
        .request(Route::Dashboard, response.status().as_u16(), since);
    response
}

/// A script, a style or an image of the page. Their names hold a digest of their content, so they may be kept for good.
pub(crate) async fn asset(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let since = Instant::now();
    let path = format!("assets/{name}");
    let Some((kind, file)) = kind(&name).zip(Files::get(&path)) else {
        return app
            .answer(Route::Dashboard, request, |_, _| async {
                Err(Problem::UnknownRoute)
            })
            .await;
    };
    let mut response = file_response(request.headers(), &path, file, kind);
    response.headers_mut().insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    app.metrics
        .request(Route::Dashboard, response.status().as_u16(), since);
    response
}

fn page(asked: &HeaderMap) -> Response {
    let mut response = match Files::get("index.html") {
        Some(file) => file_response(asked, "index.html", file, "text/html; charset=utf-8"),
        None => respond(
            asked,
            NOT_BUILT.as_bytes().into(),
            "\"not-built\"",
            "text/html; charset=utf-8",
        ),
    };
    let headers = response.headers_mut();
    // Kept, and asked about each time: a new binary has a new page.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    let fixed: [(HeaderName, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The types of files that a build makes; others are not handed out.
fn kind(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

/// A file, packed where the build packed it and the asker can unpack it.
fn file_response(asked: &HeaderMap, path: &str, file: EmbeddedFile, kind: &'static str) -> Response {
    let packed = takes_gzip(asked)
        .then(|| Files::get(&format!("{path}.gz")))
        .flatten();
    let is_packed = packed.is_some();
    let file = packed.unwrap_or(file);
    let mut tag = String::with_capacity(34);
    tag.push('"');
    for byte in file.metadata.sha256_hash().iter().take(16) {
        // Writing to a String cannot fail.
        _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    let mut response = respond(asked, file.data, &tag, kind);
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if is_packed && !response.status().is_redirection() {
        response
            .headers_mut()
            .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn respond(asked: &HeaderMap, bytes: Cow<'static, [u8]>, tag: &str, kind: &'static str) -> Response {
    let mut response = if has(asked, tag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let bytes = match bytes {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        };
        let mut response = Response::new(Body::from(bytes));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    response
}

/// Whether the asker has this version.
fn has(asked: &HeaderMap, tag: &str) -> bool {
    items(asked, &IF_NONE_MATCH).any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// Whether the asker can unpack gzip: it is named, and not with weight 0.
fn takes_gzip(asked: &HeaderMap) -> bool {
    items(asked, &ACCEPT_ENCODING).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let refused = parts.any(|part| {
            part.strip_prefix("q=")
                .and_then(|weight| weight.parse::<f32>().ok())
                .is_some_and(|weight| weight <= 0.0)
        });
        named && !refused
    })
}

fn items<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        for (value, takes) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip; q=0", false),
            ("gzip;q=0.000", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(&asking(ACCEPT_ENCODING, value)), takes, "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_known_version_is_recognised() {
        for (value, has_it) in [
            ("\"a\"", true),
            ("\"b\", W/\"a\"", true),
            ("*", true),
            ("\"b\"", false),
        ] {
            assert_eq!(has(&asking(IF_NONE_MATCH, value), "\"a\""), has_it, "{value}");
        }
    }
}

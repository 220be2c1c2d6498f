//! Who asks: the key of a request, the scope that its route needs, and in whose name it is done.

use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, USER_AGENT};
use axum::http::{Extensions, HeaderMap, HeaderName};
use stockade_core::{Id, Millis};

use super::metrics::Route;
use super::problem::Problem;
use crate::keys::{Denied, Key, Keys, Scope};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// In whose name a request is done.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Where its ids live.
    pub(crate) tenant: Id,
    /// Who asks, for the movements: the key's name, or how it came.
    pub(crate) actor: Id,
    /// The key, if one is needed.
    pub(crate) key: Option<Arc<Key>>,
}

/// Why a request has no key that opens anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// There is none.
    Missing,
    /// What there is has not the form of one, or there are two.
    Malformed,
    /// It opens nothing.
    Denied(Denied),
}

/// Checks requests before anything else is looked at.
#[derive(Debug)]
pub(crate) struct Access {
    keys: Option<Arc<Keys>>,
    metrics_open: bool,
    http: Id,
    cli: Id,
}

impl Access {
    pub(crate) fn new(keys: Option<Arc<Keys>>, metrics_open: bool) -> Self {
        // Both names are ids; should that ever change, the movements say `default`.
        let name = |text| Id::new(text).unwrap_or_else(|_| Id::default_name());
        Self {
            keys,
            metrics_open,
            http: name("http"),
            cli: name("cli"),
        }
    }

    /// The key with which a request may go on: `None` where none is needed.
    pub(crate) fn check(
        &self,
        route: Route,
        headers: &HeaderMap,
        now: impl FnOnce() -> Millis,
    ) -> Result<Option<Arc<Key>>, Problem> {
        let Some(keys) = &self.keys else {
            return Ok(None);
        };
        let scopes = scopes(route);
        if scopes.is_empty() || (route == Route::Metrics && self.metrics_open) {
            return Ok(None);
        }
        let text = presented(headers).map_err(Problem::Unauthorized)?;
        let key = keys
            .find(text, now())
            .map_err(|denied| Problem::Unauthorized(NoKey::Denied(denied)))?;
        if key.may(scopes) {
            Ok(Some(key))
        } else {
            Err(Problem::Forbidden { scopes })
        }
    }

    /// What a request may do: everything where no keys are, else what its key may.
    pub(crate) fn may(&self, extensions: &Extensions, scope: Scope) -> bool {
        match &self.keys {
            None => true,
            Some(_) => extensions.get::<Arc<Key>>().is_some_and(|key| key.may(&[scope])),
        }
    }

    /// In whose name: the key's that [`Access::check`] left with the request.
    pub(crate) fn caller(&self, extensions: &Extensions, headers: &HeaderMap) -> Caller {
        if self.keys.is_some()
            && let Some(key) = extensions.get::<Arc<Key>>()
        {
            return Caller {
                tenant: key.tenant.clone(),
                actor: key.name.clone(),
                key: Some(Arc::clone(key)),
            };
        }
        let is_cli = headers
            .get(USER_AGENT)
            .is_some_and(|agent| agent.as_bytes().starts_with(crate::cli::AGENT.as_bytes()));
        Caller {
            tenant: Id::default_name(),
            actor: if is_cli {
                self.cli.clone()
            } else {
                self.http.clone()
            },
            key: None,
        }
    }
}

/// Any one of these opens the route; none is needed where there are none. A new route has to be given its row.
pub(crate) const fn scopes(route: Route) -> &'static [Scope] {
    match route {
        Route::Reserve | Route::Batch | Route::Confirm | Route::Cancel | Route::Extend | Route::Return => {
            &[Scope::Reserve]
        }
        // Whoever got no answer asks by id, with the key that reserved.
        Route::ShowReservation => &[Scope::Read, Scope::Reserve],
        Route::ShowStock => &[Scope::Read, Scope::Stock],
        Route::SetStock
        | Route::ConfigureStock
        | Route::AdjustStock
        | Route::TransferStock
        | Route::ImportStock => &[Scope::Stock],
        Route::Reservations
        | Route::StockPage
        | Route::Movements
        | Route::ExportStock
        | Route::ExportMovements
        | Route::Events
        | Route::Metrics => &[Scope::Read],
        // Says to each key what it may do; figures only to those that may read.
        Route::Overview => &Scope::ALL,
        Route::Audit | Route::Backup => &[Scope::Admin],
        // The page's files hold nothing; what it shows it asks for with a key.
        Route::Dashboard | Route::Other => &[],
    }
}

/// The key of a request: `Authorization: Bearer`, or `X-API-Key`.
fn presented(headers: &HeaderMap) -> Result<&[u8], NoKey> {
    let one = |name: HeaderName| {
        let mut values = headers.get_all(name).iter();
        let first = values.next().map(axum::http::HeaderValue::as_bytes);
        if values.next().is_some() {
            return Err(NoKey::Malformed);
        }
        Ok(first)
    };
    let bearer = one(AUTHORIZATION)?.map(|value| {
        let (scheme, key) = value.split_at_checked(7).ok_or(NoKey::Malformed)?;
        if scheme.eq_ignore_ascii_case(b"bearer ") {
            Ok(key.trim_ascii())
        } else {
            Err(NoKey::Malformed)
        }
    });
    match (bearer.transpose()?, one(X_API_KEY)?) {
        (Some(bearer), Some(other)) if bearer != other => Err(NoKey::Malformed),
        (Some(key), _) | (None, Some(key)) => Ok(key),
        (None, None) => Err(NoKey::Missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_one_of_two_headers() {
        type Given = &'static [(&'static str, &'static str)];
        let rows: [(Given, Result<&[u8], NoKey>); 10] = [
            (&[], Err(NoKey::Missing)),
            (&[("authorization", "Bearer k")], Ok(b"k")),
            (&[("authorization", "bearer  k ")], Ok(b"k")),
            (&[("x-api-key", "k")], Ok(b"k")),
            (&[("authorization", "Bearer k"), ("x-api-key", "k")], Ok(b"k")),
            (
                &[("authorization", "Bearer k"), ("x-api-key", "l")],
                Err(NoKey::Malformed),
            ),
            (&[("authorization", "Basic a2V5Og==")], Err(NoKey::Malformed)),
            (&[("authorization", "k")], Err(NoKey::Malformed)),
            (
                &[("authorization", "Bearer k"), ("authorization", "Bearer k")],
                Err(NoKey::Malformed),
            ),
            (&[("x-api-key", "k"), ("x-api-key", "k")], Err(NoKey::Malformed)),
        ];
        for (given, expected) in rows {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.append(*name, axum::http::HeaderValue::from_static(value));
            }
            assert_eq!(presented(&headers), expected, "{given:?}");
        }
    }

    #[test]
    fn every_route_but_the_open_ones_needs_a_scope() {
        for (route, name) in Route::ALL {
            let is_open = matches!(route, Route::Dashboard | Route::Other);
            assert_eq!(scopes(route).is_empty(), is_open, "{name}");
        }
    }
}

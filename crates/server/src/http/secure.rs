//! What the OpenAPI document says of keys: made from the table that is in force, so that no route can be forgotten.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, OpenApi, Ref, RefOr, ResponseBuilder, SecurityRequirement,
};

use super::access::scopes;
use super::metrics::Route;

const BEARER: &str = "bearer";
const HEADER: &str = "api_key";

/// Adds the two ways of sending a key, and to each operation the scopes of which it needs one.
pub(super) fn describe(document: &mut OpenApi) {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "An API key, `sk_...`. Needed as soon as the service has keys.",
        ))
        .build();
    let header = ApiKey::Header(ApiKeyValue::with_description("X-API-Key", "The same key."));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    components.add_security_scheme(HEADER, SecurityScheme::ApiKey(header));
    for (route, name) in Route::ALL {
        let operation = name
            .split_once(' ')
            .and_then(|(method, path)| operation(document.paths.paths.get_mut(path)?, method));
        if let Some(operation) = operation {
            guard(operation, route);
        }
    }
}

fn operation<'d>(item: &'d mut PathItem, method: &str) -> Option<&'d mut Operation> {
    match method {
        "GET" => item.get.as_mut(),
        "PUT" => item.put.as_mut(),
        "POST" => item.post.as_mut(),
        "PATCH" => item.patch.as_mut(),
        "DELETE" => item.delete.as_mut(),
        _ => None,
    }
}

/// What the gate may answer to a request with a key.
const LIMITED: &str =
    "`rate_limited`: nothing was changed; `Retry-After`, and for a rate `RateLimit` and `RateLimit-Policy`";

fn guard(operation: &mut Operation, route: Route) {
    let scopes = scopes(route);
    if scopes.is_empty() {
        return;
    }
    // One requirement for each scope that opens it, in both ways.
    let requirements = scopes
        .iter()
        .flat_map(|scope| [BEARER, HEADER].map(|way| SecurityRequirement::new(way, [scope.as_str()])));
    operation.security = Some(requirements.collect());
    for (status, about) in [
        (
            "401",
            "`unauthorized`: no key, or one that is unknown, revoked or over",
        ),
        ("403", "`forbidden`: the key has not the scope"),
        ("429", LIMITED),
    ] {
        let problem = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name("Problem")))
            .build();
        let mut response = ResponseBuilder::new()
            .description(about)
            .content("application/problem+json", problem);
        if status == "401" {
            response = response.header("WWW-Authenticate", HeaderBuilder::new().build());
        }
        operation
            .responses
            .responses
            .insert(status.to_owned(), RefOr::T(response.build()));
    }
}

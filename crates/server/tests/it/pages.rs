//! docs/api.md names what the service has: every route of the OpenAPI document and every code.

use std::collections::BTreeSet;

use crate::service::Service;

#[test]
fn the_api_page_names_every_route_and_code() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md")).unwrap();
    let words: BTreeSet<_> = page.split('`').skip(1).step_by(2).collect();
    let service = Service::start();
    let document = service.get("/openapi.json").json();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let route = format!("{} {path}", method.to_uppercase());
            assert!(
                words.contains(route.as_str()),
                "docs/api.md does not name {route}"
            );
        }
    }
    let codes = include_str!("../../src/http/code.rs");
    let codes: Vec<_> = codes
        .split("=> (\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(codes.len() > 20, "the codes are rows of a table: {codes:?}");
    for code in codes {
        assert!(words.contains(code), "docs/api.md does not name the code {code}");
    }
}

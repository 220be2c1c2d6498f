//! The OpenAPI document: what it says is a snapshot, and what the service answers is what it says.

use serde_json::Value;

use crate::service::{Answer, Service};

/// Checks that a status and its body are documented for the route.
#[track_caller]
pub(crate) fn check(document: &Value, method: &str, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap();
    let Some(operation) = operation(document, method, path) else {
        assert!(
            [404, 405].contains(&answer.status),
            "{method} {path} is not documented: {}",
            answer.text
        );
        return;
    };
    let response = &operation["responses"][answer.status.to_string()];
    assert!(
        response.is_object(),
        "{method} {path}: {} is not documented: {}",
        answer.status,
        answer.text
    );
    let content_type = answer.header("content-type").unwrap_or_default();
    let content = &response["content"][content_type];
    assert!(
        content.is_object(),
        "{method} {path}: {} as {content_type} is not documented",
        answer.status
    );
    // A file of objects is no object.
    if content_type.ends_with("json") && !content_type.ends_with("ndjson") {
        conforms(document, &content["schema"], &answer.json(), "body");
    }
}

/// The operation of a path, with fixed parts before parameters.
fn operation<'d>(document: &'d Value, method: &str, path: &str) -> Option<&'d Value> {
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let template: Vec<&str> = template.split('/').collect();
        template.len() == parts.len()
            && template
                .iter()
                .zip(&parts)
                .all(|(t, p)| t == p || (t.starts_with('{') && !p.is_empty()))
    };
    let method = method.to_lowercase();
    let paths = document["paths"].as_object().unwrap().iter();
    let fitting = paths.filter(|(template, item)| fits(template) && item.get(&method).is_some());
    fitting
        .min_by_key(|(template, _)| template.contains('{'))
        .map(|(_, item)| &item[&method])
}

/// Types, required and unknown fields, all the way down.
#[track_caller]
fn conforms(document: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        let target = &document["components"]["schemas"][name];
        assert!(target.is_object(), "{at}: the document has no schema {name}");
        return conforms(document, target, value, at);
    }
    for all in schema["allOf"].as_array().into_iter().flatten() {
        conforms(document, all, value, at);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let is_null = |choice: &&Value| choice["type"] == "null";
        let choice = if value.is_null() {
            choices.iter().find(is_null)
        } else {
            choices.iter().find(|choice| !is_null(choice))
        };
        return conforms(
            document,
            choice.unwrap_or_else(|| panic!("{at}: {value}")),
            value,
            at,
        );
    }
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    assert!(allowed.contains(&actual), "{at}: {value} is not {allowed:?}");
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        conforms(document, &schema["items"], item, &format!("{at}[{index}]"));
    }
    if let (Some(fields), Some(known)) = (value.as_object(), schema["properties"].as_object()) {
        for (name, field) in fields {
            let schema = known
                .get(name)
                .unwrap_or_else(|| panic!("{at}: {name} is not documented: {value}"));
            conforms(document, schema, field, &format!("{at}.{name}"));
        }
        for required in schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            assert!(
                fields.contains_key(required),
                "{at}: {required} is missing: {value}"
            );
        }
    }
}

#[test]
fn the_document_is_what_was_reviewed() {
    let service = Service::start();
    insta::assert_json_snapshot!("openapi", service.document());
}

#[test]
fn the_document_is_whole() {
    let service = Service::start();
    let document = service.document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let text = document.to_string();
    for part in text.split("#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(
            document["components"]["schemas"][name].is_object(),
            "no schema {name}"
        );
    }
}

/// A body's documented fields are the fields that its reader knows.
#[test]
fn bodies_take_exactly_the_fields_that_are_documented() {
    let service = Service::start();
    let document = service.document();
    let mut bodies = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(reference) =
                operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str()
            else {
                continue;
            };
            bodies += 1;
            let name = reference.rsplit('/').next().unwrap();
            let schema = &document["components"]["schemas"][name];
            let documented: Vec<&str> = schema["properties"]
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            let path = path.replace("{id}", "x").replace("{sku}", "x");
            let answer = service.call(&method.to_uppercase(), &path, &[], br#"{"no such":1}"#);
            let problem = answer.is(422, "invalid");
            let errors = problem["errors"].as_array().unwrap();
            let unknown = errors.iter().find(|e| e["field"] == "no such").unwrap();
            let known = unknown["allowed"]
                .as_str()
                .unwrap()
                .strip_prefix("no such field; known are ")
                .unwrap();
            let mut known: Vec<&str> = known.split(", ").collect();
            let mut documented = documented;
            known.sort_unstable();
            documented.sort_unstable();
            assert_eq!(known, documented, "{method} {path}");
            // What the reader misses is what the document requires; an id may also come as a header.
            let mut missing: Vec<&str> = errors
                .iter()
                .filter(|e| e["found"] == "nothing" && e["field"] != "id")
                .map(|e| e["field"].as_str().unwrap())
                .collect();
            let mut required: Vec<&str> = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            missing.sort_unstable();
            required.sort_unstable();
            assert_eq!(missing, required, "{method} {path}");
        }
    }
    assert_eq!(bodies, 11);
}

//! The page at `/docs`: the OpenAPI document, written out once when the service starts. It runs no script and loads
//! nothing but its own style, so nothing in it can do anything.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use serde_json::{Map, Value};

use super::app::App;
use super::metrics::Route;

const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("docs.css");
const SCHEMAS: &str = "#/components/schemas/";

/// The page.
pub(crate) async fn page(State(app): State<Arc<App>>, _: Request) -> Response {
    let bytes = app.docs.get().cloned().unwrap_or_default();
    respond(&app, bytes, "text/html; charset=utf-8")
}

/// Its style.
pub(crate) async fn style(State(app): State<Arc<App>>, _: Request) -> Response {
    respond(
        &app,
        Bytes::from_static(STYLE.as_bytes()),
        "text/css; charset=utf-8",
    )
}

fn respond(app: &App, bytes: Bytes, kind: &'static str) -> Response {
    let since = Instant::now();
    let mut response = Response::new(bytes.into());
    let headers: [(HeaderName, &'static str); 6] = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    app.metrics
        .request(Route::Other, response.status().as_u16(), since);
    response
}

/// The document as a page.
pub(crate) fn written(document: &Value) -> String {
    let mut page = Page(String::with_capacity(64 << 10));
    page.all(document);
    page.0
}

struct Page(String);

impl Page {
    /// Markup of this file's own.
    fn put(&mut self, markup: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = self.0.write_fmt(markup);
    }

    fn all(&mut self, document: &Value) {
        let info = &document["info"];
        let title = escaped(text(&info["title"]));
        self.put(format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}: HTTP API</title>\n\
             <link rel=\"stylesheet\" href=\"/docs/style.css\">\n<header><h1>{title}: HTTP API</h1>\n<p>{}</p>\n\
             <p><a href=\"/openapi.json\">openapi.json</a></p></header>\n",
            prose(text(&info["description"]))
        ));
        let operations = operations(document);
        self.put(format_args!("<nav><h2>Routes</h2><ul>\n"));
        for operation in &operations {
            let anchor = escaped(&operation.anchor());
            let (method, path) = (escaped(&operation.method), escaped(operation.path));
            self.put(format_args!(
                "<li><a href=\"#{anchor}\"><b>{method}</b> <code>{path}</code></a> {}</li>\n",
                prose(text(&operation.value["summary"]))
            ));
        }
        self.put(format_args!("</ul></nav>\n<main>\n"));
        for operation in &operations {
            self.operation(operation);
        }
        self.put(format_args!("<h2>Bodies</h2>\n"));
        for (name, schema) in object(&document["components"]["schemas"]) {
            self.schema(name, schema);
        }
        self.put(format_args!("</main>\n</html>\n"));
    }

    fn operation(&mut self, operation: &Operation<'_>) {
        let value = operation.value;
        self.put(format_args!(
            "<section id=\"{}\"><h3><b>{}</b> <code>{}</code></h3>\n<p>{}</p>\n",
            escaped(&operation.anchor()),
            escaped(&operation.method),
            escaped(operation.path),
            prose(text(&value["summary"]))
        ));
        if let Some(about) = value["description"].as_str() {
            self.put(format_args!("<p>{}</p>\n", prose(about)));
        }
        let scopes = scopes(value);
        if !scopes.is_empty() {
            let words: Vec<String> = scopes
                .iter()
                .map(|scope| format!("<code>{}</code>", escaped(scope)))
                .collect();
            self.put(format_args!("<p>Scope: {}</p>\n", words.join(" or ")));
        }
        let parameters = value["parameters"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if !parameters.is_empty() {
            self.put(format_args!("<table><caption>Parameters</caption>\n"));
            for parameter in parameters {
                let needed = if parameter["required"] == true {
                    ", required"
                } else {
                    ""
                };
                self.put(format_args!(
                    "<tr><th><code>{}</code><td>{}{needed}<td>{}\n",
                    escaped(text(&parameter["name"])),
                    escaped(text(&parameter["in"])),
                    prose(text(&parameter["description"]))
                ));
            }
            self.put(format_args!("</table>\n"));
        }
        for (kind, content) in object(&value["requestBody"]["content"]) {
            let shape = shape(&content["schema"]);
            self.put(format_args!(
                "<p>Body: {shape} as <code>{}</code></p>\n",
                escaped(kind)
            ));
        }
        self.put(format_args!("<table><caption>Answers</caption>\n"));
        for (status, response) in object(&value["responses"]) {
            let bodies = object(&response["content"]).map(|(_, content)| shape(&content["schema"]));
            let bodies: Vec<String> = bodies.collect();
            self.put(format_args!(
                "<tr><th>{}<td>{}<td>{}\n",
                escaped(status),
                prose(text(&response["description"])),
                bodies.join(", ")
            ));
        }
        self.put(format_args!("</table></section>\n"));
    }

    fn schema(&mut self, name: &str, schema: &Value) {
        self.put(format_args!(
            "<section id=\"{name}\"><h3>{name}</h3>\n<p>{}</p>\n",
            prose(text(&schema["description"])),
            name = escaped(name)
        ));
        if let Some(words) = schema["enum"].as_array() {
            let words: Vec<String> = words
                .iter()
                .map(|word| format!("<code>{}</code>", escaped(text(word))))
                .collect();
            self.put(format_args!("<p>{}</p>\n", words.join(" or ")));
        }
        let required: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        self.put(format_args!("<table>\n"));
        for (field, schema) in object(&schema["properties"]) {
            let needed = if required.contains(&field.as_str()) {
                ", required"
            } else {
                ""
            };
            self.put(format_args!(
                "<tr><th><code>{}</code><td>{}{needed}<td>{}\n",
                escaped(field),
                shape(schema),
                prose(text(&schema["description"]))
            ));
        }
        self.put(format_args!("</table></section>\n"));
    }
}

struct Operation<'d> {
    method: String,
    path: &'d str,
    value: &'d Value,
}

impl Operation<'_> {
    fn anchor(&self) -> String {
        text(&self.value["operationId"]).to_owned()
    }
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = object(&document["paths"]);
    paths
        .flat_map(|(path, item)| {
            object(item).map(move |(method, value)| Operation {
                method: method.to_uppercase(),
                path,
                value,
            })
        })
        .collect()
}

/// The scopes of which an operation needs one.
fn scopes(operation: &Value) -> Vec<&str> {
    let mut scopes: Vec<&str> = Vec::new();
    for requirement in operation["security"].as_array().into_iter().flatten() {
        for scope in object(requirement).flat_map(|(_, scopes)| scopes.as_array().into_iter().flatten()) {
            if !scopes.contains(&text(scope)) {
                scopes.push(text(scope));
            }
        }
    }
    scopes
}

/// A type in a few words, with links to those that have a name.
fn shape(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|to| to.strip_prefix(SCHEMAS)) {
        let name = escaped(name);
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    for together in ["oneOf", "anyOf", "allOf"] {
        if let Some(choices) = schema[together].as_array() {
            let choices: Vec<String> = choices.iter().map(shape).collect();
            return choices.join(" or ");
        }
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().map(text).collect(),
        one => vec![text(one)],
    };
    let types: Vec<String> = types
        .into_iter()
        .map(|name| match name {
            "array" => format!("list of {}", shape(&schema["items"])),
            other => escaped(other),
        })
        .collect();
    types.join(" or ")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// A text in which what stands between backticks is code.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| {
        if index % 2 == 1 {
            format!("<code>{}</code>", escaped(part))
        } else {
            escaped(part)
        }
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_in_the_document_becomes_markup() {
        let bad = "<script>alert(\"1\")</script>`<b>'`&";
        let document = json!({
            "info": {"title": bad, "description": bad},
            "paths": {bad: {"get": {"operationId": bad, "summary": bad, "description": bad,
                "parameters": [{"name": bad, "in": bad, "description": bad}],
                "security": [{"bearer": [bad]}],
                "requestBody": {"content": {bad: {"schema": {"type": bad}}}},
                "responses": {bad: {"description": bad, "content": {bad: {"schema": {"$ref": format!("{SCHEMAS}{bad}")}}}}}}}},
            "components": {"schemas": {bad: {"description": bad, "enum": [bad],
                "properties": {bad: {"type": ["array", bad], "items": {"oneOf": [{"type": bad}]}, "description": bad}}}}}
        });
        let page = written(&document);
        assert!(
            !page.contains("<script") && !page.contains("<b>&#39;") && !page.contains("<b>'"),
            "{page}"
        );
        assert!(page.contains("&lt;script&gt;"));
    }
}

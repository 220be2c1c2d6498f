//! The page at `/docs` shows the whole document, and loads nothing from elsewhere.

use crate::service::Service;

#[test]
fn the_page_shows_every_route_and_body_and_needs_nothing_else() {
    // Also where everything else needs a key.
    let service = Service::with(&["--require-keys"]);
    let page = service.send("GET", "/docs", &[], b"");
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'self';"),
        "{policy}"
    );
    assert!(
        !policy.contains("unsafe") && !policy.contains("script-src"),
        "{policy}"
    );
    let html = &page.text;
    let document = service.document();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            let head = format!(
                "<section id=\"{id}\"><h3><b>{}</b> <code>{path}</code>",
                method.to_uppercase()
            );
            assert_eq!(
                html.matches(&head).count(),
                1,
                "{method} {path}: one section, with an id of its own"
            );
        }
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(html.contains(&format!("<section id=\"{name}\">")), "{name}");
    }
    // Every link within leads somewhere, and every other one to this service.
    for link in html
        .split("href=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
    {
        match link.strip_prefix('#') {
            Some(anchor) => assert!(html.contains(&format!("id=\"{anchor}\"")), "{link}"),
            None => assert_eq!(service.send("GET", link, &[], b"").status, 200, "{link}"),
        }
    }
    assert!(!html.contains("<script") && !html.contains("style=") && !html.contains("src="));
    assert!(html.contains("Scope: <code>read</code> or <code>reserve</code>"));
    let style = service.send("GET", "/docs/style.css", &[], b"");
    assert_eq!(style.header("content-type"), Some("text/css; charset=utf-8"));
    assert!(!style.text.contains("url(") && !style.text.contains("@import"));
}

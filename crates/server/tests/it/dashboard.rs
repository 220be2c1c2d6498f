//! The page at `/` and the overview it asks for. The page itself is tested in a browser (`web/browser`).

use crate::service::Service;

#[test]
fn the_page_may_run_only_what_came_from_here() {
    let service = Service::start();
    let page = service.send("GET", "/", &[], b"");
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
    assert!(!policy.contains("unsafe"), "{policy}");
    // Nothing inside the page that the policy would forbid.
    for inline in ["<style", " style=", "onclick=", "javascript:"] {
        assert!(!page.text.contains(inline), "{inline}");
    }
    assert_eq!(
        page.text.matches("<script").count(),
        page.text.matches(" src=\"/assets/").count()
    );

    let tag = page.header("etag").unwrap();
    let again = service.send("GET", "/", &[("if-none-match", tag)], b"");
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    assert_eq!(again.header("etag"), Some(tag));
    assert_eq!(
        service
            .send("GET", "/", &[("if-none-match", "\"other\"")], b"")
            .status,
        200
    );
}

#[test]
fn what_the_page_names_is_there_and_may_be_kept() {
    let service = Service::start();
    let page = service.send("GET", "/", &[], b"");
    // Without a built dashboard the page names no files, and says how to build it.
    let names: Vec<&str> = page
        .text
        .split("\"/assets/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(names.is_empty(), page.text.contains("make web"));
    for name in names {
        let file = service.send("GET", &format!("/assets/{name}"), &[], b"");
        assert_eq!(file.status, 200, "{name}");
        assert_eq!(
            file.header("cache-control"),
            Some("public, max-age=31536000, immutable")
        );
        assert_eq!(file.header("vary"), Some("Accept-Encoding"));
        assert_eq!(file.header("content-encoding"), None);
        assert!(file.header("etag").is_some());
    }
    for path in [
        "/assets/no-such.js",
        "/assets/..%2Findex.html",
        "/assets/.gitignore",
        "/assets/",
        "/index.html",
    ] {
        service.send("GET", path, &[], b"").is(404, "unknown_route");
    }
    service.send("POST", "/", &[], b"").is(405, "method_not_allowed");
}

#[test]
fn the_overview_counts() {
    let service = Service::start();
    service.stock("A", 5);
    service.reserve("o", "u", "A", 2).is(201, "ok");
    let overview = service.get("/v1/overview").json();
    assert_eq!(overview["status"], "ready");
    assert_eq!(overview["tenant"], "default");
    assert_eq!(
        overview["scopes"],
        serde_json::json!(["reserve", "stock", "read", "admin"])
    );
    assert!(overview["at_ms"].as_i64().unwrap() > 1_700_000_000_000);
    let figures = &overview["figures"];
    assert_eq!(figures["why"], serde_json::Value::Null);
    assert_eq!(figures["live_reservations"], 1);
    assert_eq!(figures["decided_entry"], figures["recorded_entry"]);
    service.get("/v1/overview?x=1").is(422, "invalid");
}

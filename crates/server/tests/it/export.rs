//! Stock and movements as files, and back again.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::Command;

use serde_json::Value;

use crate::service::{BINARY, Service};

const CSV: (&str, &str) = ("content-type", "text/csv");

fn shop() -> Service {
    let service = Service::start();
    let odd = format!("/v1/stock/{}", crate::service::encoded("a,\"b\" /é"));
    service.put(&odd, r#"{"id":"odd","on_hand":5}"#);
    service.stock("=1+1", 3);
    let body = r#"{"id":"shop","on_hand":9,"location":"shop, 1"}"#;
    service.put("/v1/stock/%3D1%2B1", body);
    service.patch(
        "/v1/stock/%3D1%2B1",
        r#"{"id":"floor","safety_stock":[{"location":"default","safety_stock":1}]}"#,
    );
    service.order("deduct", "o-1", "u-1", "=1+1", 1).is(201, "ok");
    service.reserve("o-2", "u,2", "a,\"b\" /é", 2).is(201, "ok");
    service
}

#[test]
fn stock_is_written_row_by_row() {
    let service = shop();
    let csv = service.get("/v1/stock/export");
    assert_eq!(
        csv.header("content-disposition"),
        Some("attachment; filename=\"stock.csv\"")
    );
    insta::assert_snapshot!(csv.text, @r#"
    sku,location,on_hand,reserved,sold,safety_stock,available,revision
    =1+1,default,2,0,1,1,1,3
    =1+1,"shop, 1",9,0,0,0,9,3
    "a,""b"" /é",default,5,2,0,0,3,1
    "#);
    let escaped = service
        .get("/v1/stock/export?escape_formulas=true&format=csv")
        .text;
    assert_eq!(escaped.lines().nth(1), Some("'=1+1,default,2,0,1,1,1,3"));
    let lines = service.get("/v1/stock/export?format=ndjson&after=%3D1%2B1");
    insta::assert_snapshot!(lines.text, @r#"{"sku":"a,\"b\" /é","location":"default","on_hand":5,"reserved":2,"sold":0,"safety_stock":0,"available":3,"revision":1}"#);
    for query in [
        "format=xlsx",
        "format=ndjson&escape_formulas=true",
        "sku=a",
        "escape_formulas=1",
    ] {
        service
            .get(&format!("/v1/stock/export?{query}"))
            .is(422, "invalid");
    }
}

#[test]
fn movements_are_written_newest_first() {
    let service = shop();
    let csv = service.get("/v1/movements/export?sku=%3D1%2B1").text;
    let first = csv.lines().nth(1).unwrap();
    assert!(
        first.ends_with(",deduct,http,,o-1,u-1,,=1+1,default,-1,0,1,2,0,1,1,1"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 5, "{csv}");
    let columns = csv.lines().next().unwrap().split(',').count();
    assert_eq!(first.split(',').count(), columns);
    let escaped = service
        .get("/v1/movements/export?owner=u%2C2&escape_formulas=true")
        .text;
    assert!(
        escaped.contains(",o-2,\"u,2\",,\"a,\"\"b\"\" /é\",default,0,2,0,5,2,0,0,3\n"),
        "{escaped}"
    );
    // Objects are those of the list.
    let lines = service.get("/v1/movements/export?format=ndjson").text;
    let exported: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let listed = service.get("/v1/movements").json();
    assert_eq!(Value::Array(exported), listed["movements"]);
    // A movement without units has a whole row too.
    service.act("never", "cancel", "{}").is(200, "sealed");
    let seal = service.get("/v1/movements/export?reservation=never").text;
    assert_eq!(seal.lines().nth(1).unwrap().split(',').count(), columns, "{seal}");
}

/// What is exported is taken back: into the same service it changes nothing, into another it is all there.
#[test]
fn an_export_is_imported() {
    for (format, kind) in [("csv", CSV), ("ndjson", ("content-type", "application/x-ndjson"))] {
        let service = shop();
        let export = format!("/v1/stock/export?format={format}");
        let text = service.get(&export).text;
        // Sold meanwhile: the count knows of it.
        service.order("deduct", "o-3", "u", "=1+1", 1).is(201, "ok");
        let before = service.counters("=1+1");
        let back = service.call(
            "POST",
            "/v1/stock/import?as=target&id=back",
            &[kind],
            text.as_bytes(),
        );
        let summary = back.json();
        assert_eq!(
            (&summary["changed"], &summary["refused"]),
            (&3.into(), &serde_json::json!({})),
            "{summary}"
        );
        assert_eq!(
            summary["ignored_columns"].as_array().unwrap().len(),
            4,
            "{summary}"
        );
        assert_eq!(service.counters("=1+1"), before);
        service.audit_is_clean();

        let other = Service::start();
        let all = other.call(
            "POST",
            "/v1/stock/import?as=target&force=true&id=1",
            &[kind],
            text.as_bytes(),
        );
        assert_eq!(all.json()["refused"], serde_json::json!({}), "{}", all.text);
        let on_hand = |text: &str| -> Vec<(String, String, u64)> {
            text.lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap())
                .map(|row| {
                    let of = |name: &str| row[name].as_str().unwrap().to_owned();
                    (of("sku"), of("location"), row["on_hand"].as_u64().unwrap())
                })
                .collect()
        };
        let lines = other.get("/v1/stock/export?format=ndjson").text;
        assert_eq!(
            on_hand(&lines),
            [
                ("=1+1", "default", 2),
                ("=1+1", "shop, 1", 9),
                ("a,\"b\" /é", "default", 5)
            ]
            .map(|(sku, location, units)| (sku.to_owned(), location.to_owned(), units))
        );
    }
}

/// More than one page, while somebody reads slowly; and every row is there once.
#[test]
fn long_exports_are_whole() {
    let service = Service::start();
    let mut file = String::from("sku,quantity\n");
    for n in 0..2_500 {
        writeln!(file, "sku-{n:04},{n}").unwrap();
    }
    file.push_str("sku-0000,1\n");
    let done = service.call(
        "POST",
        "/v1/stock/import?as=delivery&id=1",
        &[CSV],
        file.as_bytes(),
    );
    // A delivery of nothing is refused.
    assert_eq!(
        done.json()["refused"],
        serde_json::json!({"invalid": 1}),
        "{}",
        done.text
    );
    let text = service.get("/v1/stock/export").text;
    let skus: Vec<&str> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(skus.len(), 2_500);
    assert!(skus.is_sorted() && skus[0] == "sku-0000" && skus[2_499] == "sku-2499");
    let moved = service.get("/v1/movements/export").text;
    let numbers: Vec<i64> = moved
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers.len(), 2_500);
    assert!(numbers.is_sorted_by(|one, next| one > next), "each once");
}

#[test]
fn the_command_line_writes_a_file_when_it_is_whole() {
    let service = shop();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stock.csv");
    let run = |line: &[&str]| {
        let output = Command::new(BINARY)
            .args(line)
            .args(["--url", &service.url()])
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, out, told) = run(&["stock", "export"]);
    assert_eq!((code, out), (0, service.get("/v1/stock/export").text), "{told}");
    let file = path.to_str().unwrap();
    let (code, out, told) = run(&["stock", "export", "--escape-formulas", "-o", file]);
    assert_eq!((code, out.as_str()), (0, ""), "{told}");
    assert!(std::fs::read_to_string(&path).unwrap().contains("\n'=1+1,"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let (code, out, _) = run(&[
        "movements",
        "export",
        "--reservation",
        "o-2",
        "--format",
        "ndjson",
    ]);
    assert_eq!((code, out.lines().count()), (0, 1));
    let (code, _, told) = run(&["stock", "export", "-o", "/nowhere/stock.csv"]);
    assert_eq!((code, told.contains("/nowhere/stock.csv")), (2, true), "{told}");
}

/// A body that breaks off leaves no file that looks whole.
#[test]
fn a_cut_export_is_not_taken_for_a_whole_one() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4_096];
        let read = stream.read(&mut head).unwrap();
        assert!(read > 0);
        let text =
            "HTTP/1.1 200 OK\r\ncontent-type: text/csv\r\ntransfer-encoding: chunked\r\n\r\n4\r\nsku,\r\n";
        stream.write_all(text.as_bytes()).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stock.csv");
    let output = Command::new(BINARY)
        .args(["stock", "export", "--url", &url, "-o", path.to_str().unwrap()])
        .output()
        .unwrap();
    serving.join().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not whole"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

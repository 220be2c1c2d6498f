//! Stock by the file: counts and deliveries, bad rows, cuts in the middle, dry runs, marks and odd files.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::service::{Answer, BINARY, Service};

const CSV: (&str, &str) = ("content-type", "text/csv");
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

#[track_caller]
fn import(service: &Service, query: &str, kind: (&str, &str), file: &[u8]) -> Answer {
    service.call("POST", &format!("/v1/stock/import?{query}"), &[kind], file)
}

/// An import that was read to its end: created, changed, replayed, refused.
#[track_caller]
fn counts(answer: &Answer) -> (u64, u64, u64, Value) {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let body = answer.json();
    let of = |name: &str| body[name].as_u64().unwrap();
    (
        of("created"),
        of("changed"),
        of("replayed"),
        body["refused"].clone(),
    )
}

#[test]
fn a_file_of_counts_is_sent_twice_and_done_once() {
    let service = Service::start();
    service.stock("old", 7);
    let file = b"sku,location,on_hand,sold_seen\r\nnew,,5,\r\n\"a,\"\"b\"\"/\xC3\xA9\",shop 1,3,0\r\nold,default,9,0\r\n";
    let answer = import(&service, "as=target&id=erp-1&reason=stocktaking", CSV, file);
    assert_eq!(counts(&answer), (2, 1, 0, json!({})));
    assert_eq!(service.counters("old"), [9, 0, 0, 9]);
    let name = "/v1/stock/a%2C%22b%22%2F%C3%A9";
    let odd = service.get(name).is(200, "ok");
    assert_eq!(odd["stock"]["locations"][0]["location"], "shop 1");
    let again = import(&service, "as=target&id=erp-1", CSV, file);
    assert_eq!(counts(&again), (0, 0, 3, json!({})));
    // Other figures under the same id are another file.
    let other = String::from_utf8_lossy(file).replace("new,,5", "new,,6");
    let refused = import(&service, "as=target&id=erp-1", CSV, other.as_bytes());
    assert_eq!(counts(&refused), (0, 0, 2, json!({"id_reused": 1})));
    let moved = service.get("/v1/movements?sku=old&limit=1").json();
    let movement = &moved["movements"][0];
    assert_eq!(
        (movement["reason"].as_str(), movement["command"].as_str()),
        (Some("stocktaking"), Some("import:erp-1:3"))
    );
    service.audit_is_clean();
}

/// Open units, a count that includes them: the figure says what is there, and the order can still be confirmed.
#[test]
fn a_count_from_elsewhere_includes_what_is_reserved_and_knows_what_was_sold() {
    let service = Service::start();
    service.stock("S", 1);
    service.reserve("o-1", "u", "S", 1).is(201, "ok");
    let zero = import(
        &service,
        "as=target&id=erp-1",
        CSV,
        b"sku,on_hand,sold_seen\nS,0,0\n",
    );
    assert_eq!(counts(&zero).3, json!({"below_reserved": 1}));
    let report = &zero.json()["reports"][0];
    assert_eq!(
        (report["row"].as_u64(), report["line"].as_u64()),
        (Some(1), Some(2)),
        "{report}"
    );
    assert!(
        report["detail"]
            .as_str()
            .unwrap()
            .contains("below the 1 units reserved"),
        "{report}"
    );
    service.act("o-1", "confirm", "{}").is(200, "ok");
    assert_eq!(service.counters("S"), [0, 0, 1, 0]);
    // Counted before the sale: what was sold since is taken off.
    let late = import(
        &service,
        "as=target&id=erp-2",
        CSV,
        b"sku,on_hand,sold_seen\nS,10,0\n",
    );
    assert_eq!(counts(&late), (0, 1, 0, json!({})));
    assert_eq!(service.counters("S"), [9, 0, 1, 9]);
    // A count that says neither is refused, unless it shall hold whatever was sold.
    let bare = b"sku,on_hand\nS,10\n";
    assert_eq!(
        counts(&import(&service, "as=target&id=erp-3", CSV, bare)).3,
        json!({"invalid": 1})
    );
    assert_eq!(
        counts(&import(&service, "as=target&id=erp-4&force=true", CSV, bare)).1,
        1
    );
    assert_eq!(service.counters("S"), [10, 0, 1, 10]);
    // A stale page is refused by the revision.
    let stale = import(
        &service,
        "as=target&id=erp-5&force=true",
        CSV,
        b"sku,on_hand,if_revision\nS,100,1\n",
    );
    assert_eq!(counts(&stale).3, json!({"revision_conflict": 1}));
    service.audit_is_clean();
}

#[test]
fn what_a_figure_means_must_be_said() {
    let service = Service::start();
    service.stock("A", 8);
    let file = b"sku,quantity\nA,5\n";
    for query in ["id=1", "id=1&as=add", "as=target", "as=delivery&id=1&force=true"] {
        import(&service, query, CSV, file).is(422, "invalid");
    }
    assert_eq!(service.counters("A"), [8, 0, 0, 8]);
    // The dry run shows the decrease before it happens.
    let dry = import(&service, "as=target&force=true&dry_run=true", CSV, file).json();
    assert_eq!(dry["decreased"], 1, "{dry}");
    assert_eq!(dry["decreases"][0]["on_hand_before"], 8);
    assert_eq!(dry["decreases"][0]["on_hand_after"], 5);
    assert_eq!(service.counters("A"), [8, 0, 0, 8]);
    import(&service, "as=delivery&id=1", CSV, file);
    assert_eq!(service.counters("A"), [13, 0, 0, 13]);
    // An export counts; added, it would double everything.
    let export = b"sku,location,on_hand,reserved,sold\nA,default,13,0,0\n";
    let problem = import(&service, "as=delivery&id=2", CSV, export).is(422, "invalid");
    assert!(problem["errors"].to_string().contains("on_hand"), "{problem}");
}

#[test]
fn a_delivery_creates_what_is_not_there_and_is_never_added_twice() {
    let service = Service::start();
    let file = b"{\"sku\":\"A\",\"quantity\":5}\n\n{\"sku\":\"A\",\"quantity\":2}\r\n{\"sku\":\"A\",\"quantity\":1,\"location\":\"shop\",\"id\":\"own\"}";
    let answer = import(&service, "as=delivery&id=d-1", NDJSON, file);
    assert_eq!(counts(&answer), (1, 2, 0, json!({})));
    for _ in 0..2 {
        let again = import(&service, "as=delivery&id=d-1", NDJSON, file);
        assert_eq!(counts(&again), (0, 0, 3, json!({})));
    }
    assert_eq!(service.counters("A"), [7, 0, 0, 7]);
    let dry = import(&service, "as=delivery&id=d-1&dry_run=true", NDJSON, file);
    assert_eq!(counts(&dry), (0, 0, 3, json!({})));
    let dry = import(&service, "as=delivery&id=d-2&dry_run=true", NDJSON, file);
    // The row with an id of its own was done, whatever the import is called.
    assert_eq!(counts(&dry), (0, 2, 1, json!({})));
    assert_eq!(service.counters("A"), [7, 0, 0, 7]);
    service.audit_is_clean();
}

#[test]
fn each_bad_row_is_reported_and_stops_no_other() {
    let service = Service::start();
    let long = "x".repeat(20_000);
    let file = format!(
        "sku,on_hand,location,id\nok-1,1,,\n,1,,\nB,0x10,,\nC,1e3,..,\nD,-1,,\nE,4.0,,\n\
         F,9007199254740992,,\nG,1\n{long},1,,\n\"H\nI\",1,,\nok-2,0,,own\n"
    );
    let answer = import(&service, "as=target&id=1", CSV, file.as_bytes());
    assert_eq!(counts(&answer), (2, 0, 0, json!({"invalid": 9})));
    let body = answer.json();
    assert_eq!(body["rows"], 11);
    let reports = body["reports"].as_array().unwrap();
    let errors: Vec<(u64, u64, String)> = reports
        .iter()
        .map(|report| {
            let fields: Vec<String> = report["errors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|e| {
                    format!(
                        "{} {}",
                        e["field"].as_str().unwrap(),
                        e["found"].as_str().unwrap()
                    )
                })
                .collect();
            (
                report["row"].as_u64().unwrap(),
                report["line"].as_u64().unwrap(),
                fields.join(", "),
            )
        })
        .collect();
    let expected = [
        (2, 3, "sku nothing"),
        (3, 4, "on_hand 0x10"),
        (4, 5, "location .., on_hand 1e3"),
        (5, 6, "on_hand -1"),
        (6, 7, "on_hand 4.0"),
        (7, 8, "on_hand 9007199254740992"),
        (8, 9, "row 2 columns"),
        (9, 10, "row more bytes"),
        (10, 12, "sku H\nI"),
    ];
    assert_eq!(
        errors,
        expected.map(|(row, line, text)| (row, line, text.to_owned()))
    );
    // The same as objects.
    let file = "{\"sku\":\"n-1\",\"on_hand\":1}\n{\"sku\":1,\"on_hand\":1}\n{\"sku\":\"B\",\"on_hand\":1,\"on_hand\":2}\n\
                {\"sku\":\"C\",\"on_hand\":4.0}\nnot json\n{\"sku\":\"D\",\"on_hand\":1,\"quantity\":1}\n{\"sku\":\"E\"}\n\
                {\"sku\":\"F\",\"on_hand\":1,\"color\":\"red\"}\n";
    let answer = import(&service, "as=target&id=2", NDJSON, file.as_bytes());
    assert_eq!(
        counts(&answer),
        (1, 0, 0, json!({"invalid": 7})),
        "{}",
        answer.text
    );
    let text = answer.text;
    for said in [
        "sku",
        "the field once",
        "an object in JSON",
        "only one of on_hand and quantity",
        "no such field",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    service.audit_is_clean();
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let service = Service::start();
    let rows: [(&[u8], u16, &str); 10] = [
        (b"", 422, "an empty file"),
        (b"sku;on_hand\nA;1\n", 422, "separated by commas"),
        (b"sku,on_hand,colour\nA,1,red\n", 422, "colour"),
        (b"sku,sku,on_hand\nA,B,1\n", 422, "the column sku once"),
        (
            b"sku,on_hand,quantity\nA,1,1\n",
            422,
            "only one of on_hand and quantity",
        ),
        (b"sku\nA\n", 422, "a column on_hand"),
        (b"on_hand\n1\n", 422, "a column sku"),
        (b"\xFF\xFEs\0k\0u\0", 400, "UTF-16"),
        (b"PK\x03\x04 a workbook", 400, "save it as CSV"),
        (b"\x1F\x8B\x08 zipped", 400, "compressed"),
    ];
    for (file, status, said) in rows {
        let answer = import(&service, "as=target&id=1", CSV, file);
        assert_eq!(answer.status, status, "{}", answer.text);
        assert!(answer.text.contains(said), "{said}: {}", answer.text);
    }
    for kind in [
        ("content-type", "application/json"),
        ("content-type", "text/csv; charset=latin1"),
        ("accept", "*/*"),
    ] {
        let answer = import(&service, "as=target&id=1", kind, b"sku,on_hand\nA,1\n");
        answer.is(415, "unsupported_media_type");
        assert!(answer.text.contains("text/csv"), "{}", answer.text);
    }
    let page = [CSV, ("origin", "http://evil.example")];
    service
        .call(
            "POST",
            "/v1/stock/import?as=target&id=1",
            &page,
            b"sku,on_hand\nA,1\n",
        )
        .is(422, "invalid");
    service.get("/v1/stock/A").is(404, "unknown_sku");
}

/// Names with markup are names; a mark before the text is none.
#[test]
fn a_byte_order_mark_is_not_part_of_a_name() {
    let service = Service::start();
    let csv = "\u{feff}sku,on_hand\n<script>alert(1)</script>,1\n";
    assert_eq!(
        counts(&import(&service, "as=target&id=1", CSV, csv.as_bytes())).0,
        1
    );
    let lines = "\u{feff}{\"sku\":\"=1+1\",\"on_hand\":1}\n";
    assert_eq!(
        counts(&import(&service, "as=target&id=2", NDJSON, lines.as_bytes())).0,
        1
    );
    let page = service.get("/v1/stock").json();
    let names: Vec<&str> = page["stock"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["sku"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["<script>alert(1)</script>", "=1+1"]);
}

fn many(rows: usize) -> String {
    let mut file = String::from("sku,quantity\n");
    for row in 0..rows {
        writeln!(file, "sku-{},1", row % 97).unwrap();
    }
    file
}

/// The service is killed in the middle, then the same file is sent again: every unit came in once.
#[test]
fn an_import_that_was_cut_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let file = many(40_000);
    let mut service = Service::on(&data, &[]);
    let mut stream = service.connect();
    let head = format!(
        "POST /v1/stock/import?as=delivery&id=d HTTP/1.1\r\nhost: x\r\ncontent-type: text/csv\r\ncontent-length: {}\r\n\r\n",
        file.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&file.as_bytes()[..file.len() * 3 / 4]).unwrap();
    // Some of it is done, and the rest is still to come.
    let moved = || service.get("/v1/movements?sku=sku-0&limit=1").json()["movements"][0].clone();
    while moved().is_null() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    service.signal("-KILL");
    service.ended();
    drop(stream);
    let service = Service::on(&data, &[]);
    let answer = import(&service, "as=delivery&id=d", CSV, file.as_bytes());
    let (created, changed, replayed, refused) = counts(&answer);
    assert_eq!((created + changed + replayed, refused), (40_000, json!({})));
    assert!(replayed > 0, "nothing had been done before the cut");
    let units: u64 = (0..97).map(|n| service.counters(&format!("sku-{n}"))[0]).sum();
    assert_eq!(units, 40_000);
    service.audit_is_clean();
}

#[test]
fn a_file_that_stops_coming_is_given_up_and_says_how_far_it_went() {
    let service = Service::with(&["--body-timeout-ms", "300"]);
    let mut stream = service.connect();
    let file = many(2_500);
    let head = format!(
        "POST /v1/stock/import?as=delivery&id=d HTTP/1.1\r\nhost: x\r\ncontent-type: text/csv\r\ncontent-length: {}\r\n\r\n",
        file.len() + 1_000
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(file.as_bytes()).unwrap();
    let answer = crate::service::read_answer(&mut stream);
    let problem = answer.is(408, "body_timeout");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("after 2500 rows") && !detail.contains("Nothing"),
        "{problem}"
    );
    let whole = import(&service, "as=delivery&id=d", CSV, many(2_600).as_bytes());
    assert_eq!(counts(&whole), (0, 100, 2_500, json!({})));
}

#[test]
fn a_dry_run_changes_nothing_and_says_what_would_happen() {
    let service = Service::start();
    service.stock("A", 5);
    let before = service.get("/v1/movements").text;
    let file = b"sku,on_hand,sold_seen,location\nA,3,0,\nA,9,0,\nB,1,,\nB,2,,\nA,1,7,\n,1,,\n";
    let dry = import(&service, "as=target&id=1&dry_run=true", CSV, file);
    // The second row of B meets the first.
    assert_eq!(counts(&dry), (1, 2, 0, json!({"invalid": 3})));
    assert_eq!(dry.json()["decreased"], 1);
    assert_eq!(service.get("/v1/movements").text, before);
    service.get("/v1/stock/B").is(404, "unknown_sku");
    let real = import(&service, "as=target&id=1", CSV, file);
    assert_eq!(counts(&real), counts(&dry));
}

#[test]
fn the_command_line_imports_from_a_file_and_from_a_pipe() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("count.csv");
    std::fs::write(&path, "sku,on_hand\nA,5\nB,x\n").unwrap();
    let run = |line: &[&str], input: &str| {
        let mut child = Command::new(BINARY)
            .args(["stock", "import", "--url", &service.url()])
            .args(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let file = path.to_str().unwrap();
    let (code, said, _) = run(&[file, "--as", "target", "--dry-run"], "");
    assert_eq!(code, 1);
    assert!(
        said.contains("on_hand: found x") && said.contains("nothing was changed"),
        "{said}"
    );
    let (code, said, told) = run(&[file, "--as", "target"], "");
    assert_eq!(code, 1, "{told}");
    assert!(
        told.starts_with("id: ") && said.contains("2 rows: 1 created"),
        "{told}{said}"
    );
    let (code, said, _) = run(
        &[
            "-", "--as", "delivery", "--format", "ndjson", "--id", "d", "--json",
        ],
        "{\"sku\":\"A\",\"quantity\":2}\n",
    );
    assert_eq!(code, 0);
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["changed"], 1);
    assert_eq!(service.counters("A"), [7, 0, 0, 7]);
    let (code, _, told) = run(&["-", "--as", "delivery"], "");
    assert_eq!((code, told.contains("--format")), (2, true), "{told}");
    let (code, _, told) = run(&[file], "");
    assert_eq!((code, told.contains("--as")), (2, true), "{told}");
    let (code, _, told) = run(&["/nowhere.csv", "--as", "target"], "");
    assert_eq!((code, told.contains("/nowhere.csv")), (2, true), "{told}");
}

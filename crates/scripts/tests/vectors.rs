//! Every script does what its header says: headers, typed calls and vectors are held together, and every vector is run on
//! a real server (Valkey too: `STOCKADE_TEST_REDIS` names the program).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fmt::Write;

use stockade_scripts::Scripts;
use stockade_scripts::header::{Header, Parameter};
use stockade_scripts::scripts::{all, named};
use stockade_scripts::vectors::{Stored, VectorFile};
use stockade_testkit::redis::Server;

#[tokio::test]
async fn every_vector_holds_on_a_real_server() {
    let server = Server::start();
    let client = redis::Client::open(server.url()).unwrap();
    let scripts = Scripts::new(client.get_multiplexed_async_connection().await.unwrap());
    let mut problems = Vec::new();
    for entry in all() {
        if let Err(error) = VectorFile::of(entry.script).unwrap().run(&scripts).await {
            problems.push(error.to_string());
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(server.run::<i64>(&["DBSIZE"]), 0, "vectors remove what they made");
}

#[test]
fn headers_and_typed_calls_name_the_same_keys_and_arguments() {
    for entry in all() {
        let name = entry.script.name();
        let header = &entry
            .script
            .ready()
            .unwrap_or_else(|error| panic!("{error}"))
            .header;
        let names = |list: &[Parameter]| list.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&header.keys), entry.keys, "{name}: keys");
        assert_eq!(names(&header.args), entry.args, "{name}: arguments");
        assert!(!header.returns.is_empty(), "{name} returns something");
        for list in [&header.keys, &header.args] {
            for (index, one) in list.iter().enumerate() {
                assert_eq!(one.first, index + 1, "{name}: {} is out of order", one.name);
            }
        }
    }
}

#[test]
fn every_key_and_argument_is_read_once_and_none_that_the_header_lacks() {
    for entry in all() {
        let name = entry.script.name();
        let ready = entry.script.ready().unwrap();
        let body: String = ready
            .text
            .lines()
            .filter(|line| !line.starts_with("--"))
            .collect::<Vec<_>>()
            .join("\n");
        for (word, list) in [("KEYS", &ready.header.keys), ("ARGV", &ready.header.args)] {
            let whole = body.matches(word).count() - body.matches(&format!("{word}[")).count();
            if list.iter().any(|one| one.many) {
                assert_eq!(whole, 1, "{name}: {word} is bound once, whole");
            } else {
                assert_eq!(whole, 0, "{name}: {word} is read by position");
                for one in list {
                    let uses = body.matches(&format!("{word}[{}]", one.first)).count();
                    assert_eq!(uses, 1, "{name}: {word}[{}] is bound once", one.first);
                }
                assert_eq!(
                    body.matches(&format!("{word}[")).count(),
                    list.len(),
                    "{name}: only declared {word}"
                );
            }
        }
    }
}

/// How much has been written since the server started.
fn writes(server: &Server) -> u64 {
    let info: redis::InfoDict = server.run(&["INFO", "persistence"]);
    info.get("rdb_changes_since_last_save").unwrap()
}

fn eval(server: &Server, text: &str, keys: &[String], args: &[String]) -> redis::RedisResult<redis::Value> {
    let mut admin = server.admin().unwrap();
    redis::cmd("EVAL")
        .arg(text)
        .arg(keys.len())
        .arg(keys)
        .arg(args)
        .query(&mut admin)
}

/// The first call of the first vector, with one key spoilt: an error, whichever key it is, comes before the first write.
#[test]
fn a_key_that_is_missing_given_twice_or_of_another_type_writes_nothing() {
    let server = Server::start();
    let mut problems = String::new();
    for entry in all() {
        let (name, ready) = (entry.script.name(), entry.script.ready().unwrap());
        let file = VectorFile::of(entry.script).unwrap();
        let vector = &file.vectors[0];
        let own = vector
            .calls
            .iter()
            .position(|call| call.script.is_none())
            .unwrap();
        let call = &vector.calls[own];
        let keys = call.keys.as_ref().unwrap_or(&vector.keys);
        let mut attempts = vec![("the last key missing", keys[..keys.len() - 1].to_vec(), None)];
        for (at, key) in keys.iter().enumerate() {
            attempts.push(("another type", keys.clone(), Some(key)));
            for other in keys.iter().filter(|other| *other != key) {
                let mut twice = keys.clone();
                twice[at].clone_from(other);
                attempts.push(("given twice", twice, None));
            }
        }
        for (what, keys, spoilt) in attempts {
            server.run::<()>(&["FLUSHALL"]);
            for (key, stored) in &vector.before {
                let Stored::Plain(text) = stored else {
                    panic!("{name}: a plain value first")
                };
                server.run::<()>(&["SET", key, text]);
            }
            for earlier in &vector.calls[..own] {
                let other = named(earlier.script.as_deref().unwrap())
                    .unwrap()
                    .ready()
                    .unwrap();
                let keys = earlier.keys.as_ref().unwrap_or(&vector.keys);
                eval(&server, &other.text, keys, &earlier.args).unwrap();
            }
            if let Some(key) = spoilt {
                server.run::<()>(&["DEL", key]);
                server.run::<String>(&["XADD", key, "*", "a", "b"]);
            }
            let before = writes(&server);
            let reply = eval(&server, &ready.text, &keys, &call.args);
            if reply.is_err() && writes(&server) != before {
                writeln!(problems, "{name}, {what}, {keys:?}: wrote, then {reply:?}").unwrap();
            }
            let summed = ["deduct_many", "warm"].contains(&name);
            if what == "given twice"
                && !summed
                && !matches!(&reply, Err(error) if error.code() == Some("BADARG"))
            {
                writeln!(problems, "{name}, {what}, {keys:?}: {reply:?}").unwrap();
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

/// `n` stands for any number of 0 or more, a name for any value, `name...` for any number of them.
fn fits(form: &str, reply: &serde_json::Value) -> bool {
    let place = |form: &str, value: &serde_json::Value| match form {
        "n" => value.as_i64().is_some_and(|number| number >= 0),
        other => other
            .parse::<i64>()
            .map_or(true, |code| value.as_i64() == Some(code)),
    };
    let Some(inside) = form.strip_prefix('{').and_then(|form| form.strip_suffix('}')) else {
        return place(form, reply);
    };
    let Some(values) = reply.as_array() else {
        return false;
    };
    let places: Vec<&str> = inside.split(", ").collect();
    let open = places.last().is_some_and(|last| last.ends_with("..."));
    let fixed = if open { places.len() - 1 } else { places.len() };
    values.len() >= fixed
        && (open || values.len() == fixed)
        && places
            .iter()
            .take(fixed)
            .zip(values)
            .all(|(form, value)| place(form, value))
}

fn form_of<'a>(header: &'a Header, reply: &serde_json::Value) -> Option<&'a str> {
    // A form that names the code wins over one that takes any number.
    let mut forms: Vec<&str> = header.returns.iter().map(|one| one.form.as_str()).collect();
    forms.sort_by_key(|form| form.starts_with('n') || form.starts_with("{n"));
    forms.into_iter().find(|form| fits(form, reply))
}

fn as_reply(value: &serde_json::Value) -> redis::Value {
    match value {
        serde_json::Value::Number(number) => redis::Value::Int(number.as_i64().unwrap()),
        serde_json::Value::String(text) => redis::Value::BulkString(text.clone().into_bytes()),
        serde_json::Value::Array(parts) => redis::Value::Array(parts.iter().map(as_reply).collect()),
        _ => redis::Value::Nil,
    }
}

#[test]
fn the_vectors_show_every_reply_and_error_of_every_header_and_no_other() {
    for entry in all() {
        let name = entry.script.name();
        let header = &entry.script.ready().unwrap().header;
        let file = VectorFile::of(entry.script).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(file.script, name);
        let (mut forms, mut errors) = (BTreeSet::new(), BTreeSet::new());
        for vector in &file.vectors {
            for call in vector.calls.iter().filter(|call| call.script.is_none()) {
                if let Some(error) = &call.error {
                    errors.insert(error.split(' ').next().unwrap().to_owned());
                    continue;
                }
                let reply = call.reply.as_ref().unwrap();
                let form = form_of(header, reply)
                    .unwrap_or_else(|| panic!("{name}: {}: {reply} is in no RETURNS line", vector.name));
                forms.insert(form.to_owned());
                assert!(
                    (entry.understands)(&as_reply(reply)),
                    "{name}: the typed call does not read {reply}"
                );
                let keys = call.keys.as_ref().unwrap_or(&vector.keys).len();
                if call.reply != Some((-1).into()) {
                    assert!(
                        header.fits(keys, call.args.len()),
                        "{name}: {}: keys or arguments",
                        vector.name
                    );
                }
            }
        }
        let promised: BTreeSet<String> = header.returns.iter().map(|one| one.form.clone()).collect();
        assert_eq!(forms, promised, "{name}: replies shown and promised");
        assert_eq!(
            errors,
            header.errors.iter().cloned().collect(),
            "{name}: errors shown and promised"
        );
        for strange in [
            redis::Value::Int(-99),
            redis::Value::Nil,
            redis::Value::Array(vec![]),
        ] {
            assert!(
                !(entry.understands)(&strange),
                "{name}: takes {strange:?} for an answer"
            );
        }
    }
}

/// The page's contracts are the headers; `STOCKADE_WRITE_DOCS=1` writes them into the page.
#[test]
fn the_page_has_every_header_as_it_is() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scripts.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("## Contracts\n").unwrap();
    let (_, after) = rest.split_once("## Sizes\n").unwrap();
    let mut contracts =
        "\nThe headers of the files. `n` is any number of 0 or more, `?` marks what may be left out.\n"
            .to_owned();
    for entry in all() {
        let ready = entry.script.ready().unwrap();
        let name = entry.script.name();
        let summary = capital(&ready.header.summary);
        write!(contracts, "\n### {name}\n\n{summary}.\n\n```text\n").unwrap();
        let header = ready
            .text
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with("-- "));
        // What an include says about itself is not part of the contract.
        for line in header {
            contracts.push_str(line.trim_start_matches("-- "));
            contracts.push('\n');
            if line.starts_with("-- ERRORS") {
                break;
            }
        }
        contracts.push_str("```\n");
    }
    let wanted = format!("{before}## Contracts\n{contracts}\n## Sizes\n{after}");
    if std::env::var_os("STOCKADE_WRITE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
    } else {
        assert!(
            page == wanted,
            "docs/scripts.md is behind the headers; STOCKADE_WRITE_DOCS=1 writes them"
        );
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

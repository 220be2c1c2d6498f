//! What `config show` says, and completions.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::service::BINARY;

fn show(line: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STOCKADE_")) {
        command.env_remove(name);
    }
    command
        .args(["config", "show"])
        .args(line)
        .envs(variables.iter().copied());
    command.output().unwrap()
}

#[test]
fn every_setting_says_where_it_came_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stockade.toml");
    std::fs::write(
        &file,
        "head_timeout_ms = 5\nbody_timeout_ms = 6\nlog_level = 'warn'",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let line = [
        "--json",
        "--config",
        file,
        "--log-level",
        "error",
        "--require-keys",
    ];
    let shown = show(
        &line,
        &[("STOCKADE_BODY_TIMEOUT_MS", "7"), ("STOCKADE_LISTTEN", "x")],
    );
    assert!(shown.status.success());
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let setting = |name: &str| {
        let all = shown["settings"].as_array().unwrap();
        all.iter()
            .find(|setting| setting["name"] == name)
            .unwrap()
            .clone()
    };
    let row = |name, value: Value, source, from: Value| {
        let mut row = json!({"name": name, "value": value, "source": source});
        if !from.is_null() {
            row["from"] = from;
        }
        row
    };
    for expected in [
        row("listen", json!("127.0.0.1:7077"), "default", Value::Null),
        row("head_timeout_ms", json!(5), "file", json!(file)),
        row(
            "body_timeout_ms",
            json!(7),
            "environment",
            json!("STOCKADE_BODY_TIMEOUT_MS"),
        ),
        row("log_level", json!("error"), "flag", json!("--log-level")),
        row("require_keys", json!(true), "flag", json!("--require-keys")),
    ] {
        assert_eq!(setting(expected["name"].as_str().unwrap()), expected);
    }
    assert_eq!(shown["unknown_variables"], json!(["STOCKADE_LISTTEN"]));
}

#[test]
fn people_get_a_table_and_are_told_what_serve_would_refuse() {
    let shown = show(&["--listen", "0.0.0.0:1"], &[]);
    let table = String::from_utf8(shown.stdout).unwrap();
    assert!(
        table.contains("listen") && table.contains("flag --listen"),
        "{table}"
    );
    assert_eq!(shown.status.code(), Some(2));
    let said = String::from_utf8(shown.stderr).unwrap();
    assert!(said.contains("no API keys"), "{said}");
}

#[test]
fn shells_can_complete() {
    for shell in ["bash", "zsh", "fish"] {
        let output = Command::new(BINARY)
            .args(["completions", shell])
            .output()
            .unwrap();
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(
            script.contains("stockade") && script.contains("reservation"),
            "{shell}"
        );
    }
    // What bash is given, bash can read.
    let output = Command::new(BINARY)
        .args(["completions", "bash"])
        .output()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stockade.bash");
    std::fs::write(&file, output.stdout).unwrap();
    let read = Command::new("bash").arg("-n").arg(&file).status().unwrap();
    assert!(read.success());
}

//! The house rules that a compiler does not check: who may depend on whom, what ARCHITECTURE.md claims, how long files
//! are.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop with the place"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Which crates of this workspace each crate may depend on outside of its tests. A new crate needs a row, and a reason.
const MAY_DEPEND: &[(&str, &[&str])] = &[
    ("stockade-core", &[]),
    ("stockade-ledger", &["stockade-core"]),
    (
        "stockade",
        &["stockade-core", "stockade-ledger", "stockade-redis"],
    ),
    // The tier on Redis knows the rules' words and the script machinery, and not the ledger.
    ("stockade-redis", &["stockade-core", "stockade-scripts"]),
    // The model of the protocol stands on nothing, so that nothing can mend it by accident.
    ("stockade-model", &[]),
    // Shops take the scripts without the rest, so they know none of it.
    ("stockade-scripts", &[]),
    (
        "stockade-server",
        &[
            "stockade",
            "stockade-core",
            "stockade-ledger",
            "stockade-redis",
            "stockade-scripts",
        ],
    ),
    ("stockade-testkit", &["stockade-core"]),
    (
        "stockade-bench",
        &[
            "stockade",
            "stockade-core",
            "stockade-ledger",
            "stockade-redis",
            "stockade-scripts",
            "stockade-testkit",
        ],
    ),
];

/// Crates that speak HTTP; only the server and the benches may.
const HTTP: &[&str] = &[
    "axum",
    "axum-server",
    "hyper",
    "hyper-util",
    "reqwest",
    "tower",
    "tower-http",
    "http",
];

/// The rules may only use crates that work without std.
const CORE_MAY_USE: &[&str] = &[
    "compact_str",
    "foldhash",
    "hashbrown",
    "siphasher",
    "smallvec",
    "thiserror",
];

/// A source file longer than this needs a row below.
const LINES_MAX: usize = 600;

/// Longer files, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[(
    "crates/core/tests/common/oracle.rs",
    "a second set of rules, written to be read beside the first from top to bottom",
)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Normal and build dependencies of every crate of the workspace, by name.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--locked",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut all = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let needs = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|d| d["kind"] != "dev");
        let names = needs.map(|d| d["name"].as_str().unwrap().to_owned()).collect();
        all.insert(package["name"].as_str().unwrap().to_owned(), names);
    }
    all
}

fn tracked(ending: &str) -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "this test reads the list of files from git"
    );
    let files = String::from_utf8(output.stdout).unwrap();
    files
        .lines()
        .filter(|f| f.ends_with(ending) && root().join(f).exists())
        .map(str::to_owned)
        .collect()
}

#[test]
fn crates_depend_in_one_direction() {
    let all = dependencies();
    let rows: BTreeMap<_, _> = MAY_DEPEND.iter().copied().collect();
    let known: BTreeSet<_> = all.keys().cloned().collect();
    assert_eq!(
        known,
        rows.keys().map(|k| (*k).to_owned()).collect(),
        "every crate has a row in MAY_DEPEND"
    );
    for (name, needs) in &all {
        let ours: BTreeSet<_> = needs.intersection(&known).map(String::as_str).collect();
        let allowed: BTreeSet<_> = rows[name.as_str()].iter().copied().collect();
        assert!(
            ours.is_subset(&allowed),
            "{name} depends on {ours:?}; allowed are {allowed:?}"
        );
    }
}

#[test]
fn only_the_server_and_the_benches_speak_http() {
    for (name, needs) in dependencies() {
        if name == "stockade-server" || name == "stockade-bench" {
            continue;
        }
        let http: Vec<_> = HTTP.iter().filter(|h| needs.contains(**h)).collect();
        assert!(http.is_empty(), "{name} depends on {http:?}");
    }
}

#[test]
fn the_rules_need_no_standard_library() {
    let allowed: BTreeSet<_> = CORE_MAY_USE.iter().map(|n| (*n).to_owned()).collect();
    let needs = &dependencies()["stockade-core"];
    assert!(
        needs.is_subset(&allowed),
        "stockade-core depends on {:?}",
        needs.difference(&allowed)
    );
    let lib = std::fs::read_to_string(root().join("crates/core/src/lib.rs")).unwrap();
    assert!(lib.contains("#![no_std]"));
}

/// Words in backticks that look like paths of this tree.
fn named_paths(text: &str) -> Vec<&str> {
    let tops = [
        "crates/",
        "docs/",
        "tools/",
        "web/",
        "deploy/",
        "examples/",
        ".ci/",
        ".config/",
    ];
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|w| tops.iter().any(|t| w.starts_with(t)))
        .collect()
}

#[test]
fn architecture_names_what_exists() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let paths = named_paths(&text);
    assert!(
        paths.len() > 20,
        "ARCHITECTURE.md is the map: it names the files that matter"
    );
    for path in paths {
        assert!(
            root().join(path).exists(),
            "ARCHITECTURE.md names {path}, which does not exist"
        );
    }
    for name in dependencies().keys() {
        assert!(
            text.contains(&format!("`{name}`")),
            "ARCHITECTURE.md does not name the crate {name}"
        );
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for file in tracked(".md") {
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        let folder = root().join(&file).parent().unwrap().to_owned();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            assert!(
                folder.join(path).exists(),
                "{file} links to {target}, which does not exist"
            );
        }
    }
}

#[test]
fn files_are_short_enough_to_read_at_once() {
    let long: BTreeMap<_, _> = LONG_FILES.iter().copied().collect();
    for file in tracked(".rs") {
        let lines = std::fs::read_to_string(root().join(&file))
            .unwrap()
            .lines()
            .count();
        let listed = long.contains_key(file.as_str());
        assert!(
            lines <= LINES_MAX || listed,
            "{file} has {lines} lines: split it, or give a reason in LONG_FILES"
        );
        assert!(
            lines > LINES_MAX || !listed,
            "{file} is short now: take it out of LONG_FILES"
        );
    }
}

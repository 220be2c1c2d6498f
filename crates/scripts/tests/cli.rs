//! The `scripts` subcommands: what they print, what they refuse, and that the lines they print work.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use clap::Parser;
use stockade_scripts::cli::{CliError, ScriptsArgs, run};
use stockade_scripts::scripts::all;
use stockade_testkit::redis::{Cluster, Server};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    scripts: ScriptsArgs,
}

async fn say(words: &[&str]) -> Result<String, CliError> {
    let words = std::iter::once("scripts").chain(words.iter().copied());
    let mut out = Vec::new();
    let result = run(Program::try_parse_from(words).unwrap().scripts, &mut out).await;
    let text = String::from_utf8(out).unwrap();
    result.map(|()| text)
}

#[tokio::test]
async fn list_and_show_name_every_script() {
    let list = say(&["list"]).await.unwrap();
    assert_eq!(list.lines().count(), all().len());
    assert!(list.contains("deduct           take units from one stock, never below zero\n"));
    let json: serde_json::Value = serde_json::from_str(&say(&["list", "--json"]).await.unwrap()).unwrap();
    assert_eq!(json[0]["args"][0]["name"], "quantity");
    assert!(
        say(&["show", "deduct"])
            .await
            .unwrap()
            .starts_with("#!lua\n-- deduct: ")
    );
    let error = say(&["show", "nobody"]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no script \"nobody\"; `stockade scripts list` names them all"
    );
}

#[tokio::test]
async fn every_redis_cli_line_works_as_it_stands() {
    let server = Server::start();
    server.run::<()>(&["SET", "stock:1001", "1000"]);
    for entry in all() {
        let name = entry.script.name();
        let line = say(&["show", name, "--cli"]).await.unwrap();
        assert!(line.starts_with("redis-cli EVAL '#!lua"), "{line}");
        // The line as printed, on this test's port.
        let shell = format!(
            "redis-cli() {{ command redis-cli -e -p {} \"$@\"; }}\n{line}",
            server.port()
        );
        let output = std::process::Command::new("bash")
            .arg("-c")
            .arg(shell)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{name}: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(!said.trim().is_empty(), "{name} answers");
    }
    assert_eq!(server.run::<i64>(&["EXISTS", "{stock:1001}:sold"]), 1);
}

#[tokio::test]
async fn exported_files_are_whole_and_load_by_the_digest_that_is_listed() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/scripts");
    say(&["export", path.to_str().unwrap()]).await.unwrap();
    let index: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path.join("index.json")).unwrap()).unwrap();
    for one in index.as_array().unwrap() {
        let name = one["name"].as_str().unwrap();
        let text = std::fs::read_to_string(path.join(format!("{name}.lua"))).unwrap();
        assert!(!text.contains("@include"), "{name}");
        assert_eq!(
            server.run::<String>(&["SCRIPT", "LOAD", &text]),
            one["sha"].as_str().unwrap()
        );
        assert!(path.join(format!("{name}.json")).exists());
    }
}

#[tokio::test]
async fn load_test_and_run_on_a_server() {
    let server = Server::start();
    let url = server.url();
    let loaded = say(&["load", "--redis", &url]).await.unwrap();
    let sha = loaded.lines().next().unwrap().split(' ').next().unwrap();
    assert_eq!(server.run::<Vec<i64>>(&["SCRIPT", "EXISTS", sha]), [1]);
    assert!(
        say(&["test", "--redis", &url])
            .await
            .unwrap()
            .lines()
            .all(|line| line.starts_with("ok "))
    );
    assert!(
        say(&["test", "--redis", &url, "--json", "deduct"])
            .await
            .unwrap()
            .starts_with("[{\"ok\":true")
    );

    server.run::<()>(&["SET", "stock:1001", "5"]);
    assert_eq!(
        say(&["run", "--redis", &url, "deduct", "stock:1001", ",", "2"])
            .await
            .unwrap(),
        "3\n"
    );
    let sold = [
        "run",
        "--redis",
        &url,
        "deduct_sold",
        "stock:1001",
        "{stock:1001}:sold",
        ",",
        "1",
        "zh",
    ];
    assert_eq!(say(&sold).await.unwrap(), "1 扣减成功 2 1\n");
    let floor = [
        "run",
        "--redis",
        &url,
        "--json",
        "deduct_floor",
        "stock:1001",
        ",",
        "1",
        "-9",
    ];
    assert_eq!(say(&floor).await.unwrap(), "1\n");
    for bad in ["0x10", "1e3", "0.1", "-5", "9007199254740992"] {
        let error = say(&["run", "--redis", &url, "deduct", "stock:1001", ",", bad])
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("deduct: quantity must be a whole number"),
            "{error}"
        );
    }
    let error = say(&["run", "--redis", &url, "deduct", "stock:1001"])
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("deduct takes stock , quantity; found 1 keys and 0"),
        "{error}"
    );
    assert_eq!(server.run::<i64>(&["GET", "stock:1001"]), 1);
    // Vectors use plain keys, so they keep away from a database in use.
    let error = say(&["test", "--redis", &url]).await.unwrap_err();
    assert!(error.to_string().contains("empty database"), "{error}");
    assert_eq!(server.run::<i64>(&["GET", "stock:1001"]), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_and_a_cluster() {
    let server = Server::start();
    let url = server.url();
    drop(server);
    let error = say(&["load", "--redis", &url]).await.unwrap_err();
    assert!(error.to_string().contains("cannot connect"), "{error}");
    assert_eq!(error.exit_code(), 3);
    let cluster = Cluster::start();
    let said = say(&["test", "--redis", &cluster.urls()[0], "--cluster"])
        .await
        .unwrap();
    assert!(said.lines().all(|line| line.starts_with("ok ")), "{said}");
}

//! One server process.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{free_port, until};

/// How a server is to be started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keeps an append-only file with fsync at every write, so that a killed server comes back with all its data.
    pub append_only: bool,
    /// Port of the primary to follow.
    pub replica_of: Option<u16>,
    /// Runs as a cluster node.
    pub cluster: bool,
    /// Further settings, as in `redis.conf`: `("maxmemory", "3mb")`.
    pub settings: Vec<(String, String)>,
}

impl Options {
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running server. Dropping it kills the process and removes its folder.
#[derive(Debug)]
pub struct Server {
    options: Options,
    folder: TempDir,
    port: u16,
    bus_port: u16,
    child: Option<Child>,
}

impl Server {
    /// A standalone server without persistence.
    pub fn start() -> Self {
        Self::with(Options::default())
    }

    /// A standalone server with an append-only file.
    pub fn append_only() -> Self {
        Self::with(Options {
            append_only: true,
            ..Options::default()
        })
    }

    /// A replica of this server, in step with it.
    #[must_use]
    pub fn replica(&self) -> Self {
        let replica = Self::with(Options {
            replica_of: Some(self.port),
            ..Options::default()
        });
        until("the replica's first synchronisation", || {
            let info: String = ::redis::cmd("INFO")
                .arg("replication")
                .query(&mut replica.admin()?)
                .ok()?;
            info.contains("master_link_status:up").then_some(())
        });
        replica
    }

    #[must_use]
    pub fn with(options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the server");
        let mut server = Self {
            options,
            folder,
            port: 0,
            bus_port: 0,
            child: None,
        };
        // A port can be lost to another process between finding it and using it: then another one is tried.
        for _ in 0..20 {
            server.port = free_port();
            server.bus_port = free_port();
            if server.launch() {
                return server;
            }
        }
        panic!("no server came up; its log: {}", server.log());
    }

    /// Starts the process and waits until it answers as itself. `false`: it ended, most likely since the port is taken.
    fn launch(&mut self) -> bool {
        let child = self.spawn();
        let id = child.id();
        self.child = Some(child);
        until("the server to answer", || {
            if let Some(child) = &mut self.child
                && matches!(child.try_wait(), Ok(Some(_)))
            {
                return Some(false);
            }
            let mut connection = self.admin()?;
            // Answers from another process on this port, or "still loading", do not count.
            let info: String = ::redis::cmd("INFO").arg("server").query(&mut connection).ok()?;
            let own = info.lines().any(|line| line.trim() == format!("process_id:{id}"));
            let loaded = ::redis::cmd("PING").query::<String>(&mut connection).is_ok();
            (own && loaded).then_some(true)
        })
    }

    fn spawn(&self) -> Child {
        let program = program();
        let mut command = Command::new(&program);
        let on_off = |on| if on { "yes" } else { "no" };
        command
            .args([
                "--port",
                &self.port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--daemonize",
                "no",
            ])
            .args([
                "--logfile",
                "server.log",
                "--repl-diskless-sync-delay",
                "0",
                "--maxmemory-policy",
                "noeviction",
            ])
            .args([
                "--appendonly",
                on_off(self.options.append_only),
                "--appendfsync",
                "always",
            ])
            .args(["--enable-debug-command", "yes"])
            .arg("--dir")
            .arg(self.folder.path());
        if let Some(primary) = self.options.replica_of {
            command.args(["--replicaof", "127.0.0.1", &primary.to_string()]);
        }
        if self.options.cluster {
            command.args(["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]);
            command.args(["--cluster-port", &self.bus_port.to_string()]);
        }
        for (name, value) in &self.options.settings {
            command.arg(format!("--{name}")).arg(value);
        }
        command.current_dir(self.folder.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap_or_else(|error| {
            panic!(
                "{} does not start ({error}); `make setup` installs redis-server, STOCKADE_TEST_REDIS names another",
                program.display()
            )
        })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn bus_port(&self) -> u16 {
        self.bus_port
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the server wrote into its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }

    /// A blocking connection for what a test arranges or looks up; none while the server is down.
    pub fn admin(&self) -> Option<::redis::Connection> {
        let client = ::redis::Client::open((Ipv4Addr::LOCALHOST.to_string(), self.port)).ok()?;
        let connection = client.get_connection_with_timeout(Duration::from_secs(5)).ok()?;
        connection.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
        Some(connection)
    }

    /// Runs one command given as words, for arranging a test.
    pub fn run<T: ::redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = ::redis::Cmd::new();
        for word in words {
            command.arg(word);
        }
        let mut connection = self.admin().expect("the server is up");
        command
            .query(&mut connection)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("the server runs");
        let id = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process id");
        kill_process(id, signal).expect("the server takes the signal");
    }

    /// Stops the process where it stands; its sockets stay open and nothing answers.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// `kill -9`: nothing is flushed, nobody is told.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Either may fail only when the process is gone already, which is what is wanted.
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Starts it again after [`kill`](Self::kill), on the same port and folder.
    pub fn restart(&mut self) {
        self.kill();
        self.start_again();
    }

    fn start_again(&mut self) {
        for _ in 0..50 {
            if self.launch() {
                return;
            }
            // The port is taken for the moment (an outgoing connection of somebody may have got it).
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!(
            "the server does not come back on port {}; its log: {}",
            self.port,
            self.log()
        );
    }

    /// Starts it again with further settings and returns as soon as it answers at all, which may be "still loading".
    pub fn restart_slowly(&mut self, settings: &[(&str, &str)]) {
        self.kill();
        for (name, value) in settings {
            self.options
                .settings
                .push(((*name).to_owned(), (*value).to_owned()));
        }
        self.child = Some(self.spawn());
        until("the server to answer at all", || self.admin().map(drop));
    }

    /// Whether it answers and has loaded its data.
    pub fn is_ready(&self) -> bool {
        self.admin()
            .is_some_and(|mut admin| ::redis::cmd("PING").query::<String>(&mut admin).is_ok())
    }

    /// Starts it again without what it had stored.
    pub fn restart_empty(&mut self) {
        self.kill();
        for entry in std::fs::read_dir(self.folder.path())
            .expect("the server's folder")
            .flatten()
        {
            let path = entry.path();
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            removed.expect("the server's file can be removed");
        }
        self.start_again();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program() -> PathBuf {
    std::env::var_os("STOCKADE_TEST_REDIS").map_or_else(|| PathBuf::from("redis-server"), PathBuf::from)
}

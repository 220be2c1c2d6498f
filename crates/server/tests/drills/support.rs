//! What the tests of the drills share: the program, a service of their own, the plainest HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stockade"));
    command.stdin(Stdio::null());
    command
}

/// Exit code, stdout, stderr.
pub(crate) fn output(mut command: Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Polls until there is something, for at most half a minute.
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "waited too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An address on which nobody listens: it was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Command lines of running processes that name a path.
pub(crate) fn processes_naming(path: &Path) -> Vec<String> {
    let path = path.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(path)).collect()
}

/// A running service.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
    _data: tempfile::TempDir,
}

impl Served {
    pub(crate) fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = program();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data.path());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .expect("an address")
            .to_owned();
        Self {
            child,
            url,
            _data: data,
        }
    }

    /// Status and body.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Every SKU in the service.
    pub(crate) fn skus(&self) -> Vec<String> {
        let page: Value = serde_json::from_str(&self.request("GET", "/v1/stock?limit=1000", "").1).unwrap();
        let rows = page.as_object().unwrap().values().find_map(Value::as_array);
        rows.unwrap()
            .iter()
            .map(|row| row["sku"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Stops in order; the exit code.
    pub(crate) fn stop(mut self) -> i32 {
        signal(self.child.id(), Signal::TERM);
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Fails when it has been stopped.
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

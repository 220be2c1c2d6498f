//! A service of one's own, and a client that sends exactly what it is told and checks each answer against the
//! service's own OpenAPI document.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::document;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_stockade");
const PATIENCE: Duration = Duration::from_secs(30);

/// A running service; it is killed when dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) data: PathBuf,
    folder: Option<tempfile::TempDir>,
    document: OnceLock<Value>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
    /// Asserts status and code, and gives the body.
    #[track_caller]
    pub(crate) fn is(&self, status: u16, code: &str) -> Value {
        assert_eq!(
            (self.status, self.code().as_str()),
            (status, code),
            "{}",
            self.text
        );
        self.json()
    }
}

/// The command that starts a service.
pub(crate) fn serve(data: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["serve", "--json", "--data"]).arg(data);
    command
        .args(flags)
        .env("STOCKADE_LISTEN", "127.0.0.1:0")
        .env("STOCKADE_LOG_LEVEL", "warn")
        .stdin(Stdio::null());
    command
}

impl Service {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let mut service = Self::on(&data, flags);
        service.folder = Some(folder);
        service
    }

    pub(crate) fn on(data: &Path, flags: &[&str]) -> Self {
        Self::of(serve(data, flags).stdout(Stdio::piped()), data)
    }

    /// What a command starts, once it says where it listens.
    pub(crate) fn of(command: &mut Command, data: &Path) -> Self {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        let url = ready["listening"].as_str().unwrap();
        let address = url.rsplit('/').next().unwrap().parse().unwrap();
        Self {
            child,
            address,
            data: data.to_owned(),
            folder: None,
            document: OnceLock::new(),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The service's own description.
    pub(crate) fn document(&self) -> &Value {
        self.document
            .get_or_init(|| self.send("GET", "/openapi.json", &[], b"").json())
    }

    /// Sends bytes and reads the answer, as it is.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
            self.address
        );
        for (name, value) in headers {
            request = format!("{request}{name}: {value}\r\n");
        }
        let request = format!("{request}content-length: {}\r\n\r\n", body.len());
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        read_answer(&mut stream)
    }

    /// Sends, and checks the answer against the document.
    #[track_caller]
    pub(crate) fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let answer = self.send(method, path, headers, body);
        document::check(self.document(), method, path, &answer);
        answer
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], b"")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.call(
            "POST",
            path,
            &[("content-type", "application/json")],
            body.as_bytes(),
        )
    }

    #[track_caller]
    pub(crate) fn put(&self, path: &str, body: &str) -> Answer {
        self.call(
            "PUT",
            path,
            &[("content-type", "application/json")],
            body.as_bytes(),
        )
    }

    #[track_caller]
    pub(crate) fn patch(&self, path: &str, body: &str) -> Answer {
        self.call(
            "PATCH",
            path,
            &[("content-type", "application/json")],
            body.as_bytes(),
        )
    }

    /// A SKU with so many units.
    #[track_caller]
    pub(crate) fn stock(&self, sku: &str, units: u64) {
        let body = format!(r#"{{"id":"create {sku}","on_hand":{units}}}"#);
        let answer = self.put(&format!("/v1/stock/{}", encoded(sku)), &body);
        assert_eq!(answer.status, 201, "{}", answer.text);
    }

    #[track_caller]
    pub(crate) fn reserve(&self, id: &str, owner: &str, sku: &str, quantity: u64) -> Answer {
        self.order("reserve", id, owner, sku, quantity)
    }

    #[track_caller]
    pub(crate) fn order(&self, mode: &str, id: &str, owner: &str, sku: &str, quantity: u64) -> Answer {
        let body = serde_json::json!({"id": id, "owner": owner, "mode": mode,
            "lines": [{"sku": sku, "quantity": quantity}]});
        self.post("/v1/reservations", &body.to_string())
    }

    /// What happens to a reservation.
    #[track_caller]
    pub(crate) fn act(&self, id: &str, verb: &str, body: &str) -> Answer {
        self.post(&format!("/v1/reservations/{}/{verb}", encoded(id)), body)
    }

    /// `on_hand`, `reserved`, `sold`, `available` of the location `default`.
    #[track_caller]
    pub(crate) fn counters(&self, sku: &str) -> [u64; 4] {
        let stock = self.get(&format!("/v1/stock/{}", encoded(sku))).is(200, "ok");
        let at = &stock["stock"]["locations"][0];
        ["on_hand", "reserved", "sold", "available"].map(|name| at[name].as_u64().unwrap())
    }

    /// Nothing differs.
    #[track_caller]
    pub(crate) fn audit_is_clean(&self) {
        let report = self.post("/v1/audit", "{}").json();
        assert_eq!(report["clean"], true, "{report}");
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Waits for the end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "the service does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal("-TERM");
        self.ended()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended already.
        if self.child.kill().is_ok() {
            let _ = self.child.wait();
        }
    }
}

/// Reads one answer.
pub(crate) fn read_answer(stream: &mut TcpStream) -> Answer {
    try_read_answer(stream).unwrap_or_else(|e| panic!("no answer: {e}"))
}

/// Reads one answer, if there is one.
pub(crate) fn try_read_answer(stream: &mut TcpStream) -> std::io::Result<Answer> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Err(std::io::Error::other(format!(
                "closed after {:?}",
                String::from_utf8_lossy(&head)
            )));
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut answer = Answer {
        status,
        headers,
        text: String::new(),
    };
    let is_stream = answer.header("content-type") == Some("text/event-stream");
    let body = if answer.header("transfer-encoding") == Some("chunked") {
        // What never ends is read by whoever knows what to wait for.
        if is_stream {
            Vec::new()
        } else {
            read_chunks(stream)?
        }
    } else {
        let length = answer
            .header("content-length")
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        body
    };
    answer.text = if answer.header("content-type") == Some("application/vnd.sqlite3") {
        String::from_utf8_lossy(&body).into_owned()
    } else {
        String::from_utf8(body).unwrap()
    };
    Ok(answer)
}

/// Reads chunks to the last one; a body that breaks off before is an error.
fn read_chunks(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = read_chunk(stream)? {
        body.extend(chunk);
    }
    Ok(body)
}

/// Reads one chunk; `None`: it was the last.
pub(crate) fn read_chunk(stream: &mut TcpStream) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).unwrap();
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk)?;
    chunk.truncate(size);
    Ok((size > 0).then_some(chunk))
}

/// An id as a part of a path.
pub(crate) fn encoded(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    id.bytes()
        .map(|b| {
            if plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

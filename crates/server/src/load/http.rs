//! The least HTTP/1.1 client that a drill needs: one request at a time on a keep-alive connection.
//!
//! A connection on which anything unexpected happened is never used again, so that no answer can be taken for the
//! answer to another request.

use std::io;
use std::ops::Range;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::LoadError;

/// Bodies larger than this are not read: no answer of the service is.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Where the service is.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Host and port, as in the `host` header.
    authority: String,
    host: String,
    port: u16,
    /// A path in front of every path, without a slash at its end.
    prefix: String,
}

impl Target {
    /// Reads `http://host[:port][/prefix]`.
    pub(crate) fn parse(url: &str) -> Result<Self, LoadError> {
        let refuse = |why: &str| LoadError::Url {
            url: url.to_owned(),
            why: why.to_owned(),
        };
        let Some(rest) = url.strip_prefix("http://") else {
            return Err(refuse(
                "must begin with http:// (the drill speaks plain HTTP), as http://127.0.0.1:7077",
            ));
        };
        let (authority, path) = rest
            .split_once('/')
            .map_or((rest, ""), |(authority, path)| (authority, path));
        if authority.contains('@') || path.contains(['?', '#']) || url.contains(|c: char| c <= ' ') {
            return Err(refuse(
                "give scheme, host, port and perhaps a path, as http://127.0.0.1:7077",
            ));
        }
        // An IPv6 address stands in brackets, and its colons are no port.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (
                host,
                port.parse()
                    .map_err(|_| refuse("the port must be a number from 1 to 65535"))?,
            ),
            _ => (authority, 80),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || port == 0 {
            return Err(refuse("needs a host and a port, as http://127.0.0.1:7077"));
        }
        let path = path.trim_end_matches('/');
        Ok(Self {
            authority: authority.to_owned(),
            host: host.to_owned(),
            port,
            prefix: if path.is_empty() {
                String::new()
            } else {
                format!("/{path}")
            },
        })
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// What an answer's head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// The service asks to wait so long.
    pub(crate) retry_after: Option<Duration>,
    /// The connection ends after this answer.
    pub(crate) close: bool,
}

/// A connection with at most one request under way.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    /// Where the last answer's body lies in `input`.
    body: Range<usize>,
}

impl Connection {
    pub(crate) async fn open(target: &Target) -> io::Result<Self> {
        Ok(Self {
            stream: target.connect().await?,
            input: Vec::with_capacity(2_048),
            body: 0..0,
        })
    }

    /// Sends one request and reads its answer. After an error or a dropped future the connection must be dropped.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Head> {
        self.input.clear();
        self.body = 0..0;
        self.stream.write_all(request).await?;
        loop {
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "closed before the answer was whole",
                ));
            }
            if let Some((head, body)) = whole_answer(&mut self.input)? {
                self.body = body;
                return Ok(head);
            }
        }
    }

    /// The body of the last answer.
    pub(crate) fn body(&self) -> &[u8] {
        self.input.get(self.body.clone()).unwrap_or_default()
    }
}

/// The head and the place of the body, once all of an answer has come. A chunked body is put together in place.
pub(crate) fn whole_answer(input: &mut Vec<u8>) -> io::Result<Option<(Head, Range<usize>)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = response.parse(input).map_err(|error| bad(&error.to_string()))?
    else {
        return Ok(None);
    };
    let mut head = Head {
        status: response.code.unwrap_or_default(),
        retry_after: None,
        close: false,
    };
    let mut length = None;
    let mut chunked = false;
    for header in response.headers.iter() {
        let text = || {
            std::str::from_utf8(header.value)
                .map(str::trim)
                .map_err(|_| bad("a header is not text"))
        };
        if header.name.eq_ignore_ascii_case("content-length") {
            length = Some(
                text()?
                    .parse::<usize>()
                    .map_err(|_| bad("content-length is not a number"))?,
            );
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = text()?.eq_ignore_ascii_case("chunked");
        } else if header.name.eq_ignore_ascii_case("connection") {
            head.close = text()?.eq_ignore_ascii_case("close");
        } else if header.name.eq_ignore_ascii_case("retry-after") {
            // A date is also legal there; then the caller's own pause serves.
            head.retry_after = text()?.parse().ok().map(Duration::from_secs);
        }
    }
    if head.status < 200 {
        return Err(bad("an interim answer was not asked for"));
    }
    let end = if chunked {
        match join_chunks(input, start)? {
            Some(end) => end,
            None => return Ok(None),
        }
    } else {
        let length = if head.status == 204 {
            0
        } else {
            length.ok_or_else(|| bad("the answer has no length"))?
        };
        if length > BODY_BYTES_MAX {
            return Err(bad("the answer is too large"));
        }
        let end = start + length;
        if input.len() < end {
            return Ok(None);
        }
        if input.len() > end {
            return Err(bad("more came than the answer"));
        }
        end
    };
    Ok(Some((head, start..end)))
}

/// Moves the chunks that begin at `start` together once the last one has come; tells where the body ends.
fn join_chunks(input: &mut Vec<u8>, start: usize) -> io::Result<Option<usize>> {
    let mut chunks = Vec::new();
    let mut at = start;
    loop {
        let rest = input.get(at..).unwrap_or_default();
        let (skip, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(bad("a chunk has no size")),
        };
        let size = usize::try_from(size).ok().filter(|size| *size <= BODY_BYTES_MAX);
        let size = size.ok_or_else(|| bad("a chunk is too large"))?;
        let from = at + skip;
        // Each chunk, the empty last one too, ends with a line break. Trailers are not sent by the service.
        let Some(end) = input.get(from + size..from + size + 2) else {
            return Ok(None);
        };
        if end != b"\r\n" {
            return Err(bad("a chunk is longer than its size"));
        }
        at = from + size + 2;
        if size == 0 {
            break;
        }
        chunks.push(from..from + size);
    }
    if at != input.len() {
        return Err(bad("more came than the answer"));
    }
    let mut end = start;
    for chunk in chunks {
        let length = chunk.len();
        input.copy_within(chunk, end);
        end += length;
    }
    input.truncate(end);
    Ok(Some(end))
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<Option<(u16, String, bool)>> {
        let mut input = text.as_bytes().to_vec();
        Ok(whole_answer(&mut input)?.map(|(head, body)| {
            (
                head.status,
                String::from_utf8_lossy(&input[body]).into_owned(),
                head.close,
            )
        }))
    }

    #[test]
    fn an_answer_is_whole_at_its_last_byte_and_not_before() {
        for text in [
            "HTTP/1.1 201 Created\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
            "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n4\r\nhell\r\n1\r\no\r\n0\r\n\r\n",
        ] {
            for cut in 0..text.len() {
                assert_eq!(read(&text[..cut]).unwrap(), None, "cut at {cut} of {text:?}");
            }
            assert_eq!(read(text).unwrap(), Some((201, "hello".to_owned(), true)));
            assert!(
                read(&format!("{text}H")).is_err(),
                "a byte too many is another request's answer"
            );
        }
    }

    #[test]
    fn an_answer_without_a_length_is_refused() {
        assert!(read("HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(read("HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n").is_err());
        assert_eq!(
            read("HTTP/1.1 204 No Content\r\n\r\n").unwrap(),
            Some((204, String::new(), false))
        );
    }

    #[test]
    fn retry_after_is_read_in_seconds() {
        let mut input = b"HTTP/1.1 503 X\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n".to_vec();
        let (head, _) = whole_answer(&mut input).unwrap().unwrap();
        assert_eq!(head.retry_after, Some(Duration::from_secs(2)));
    }

    #[test]
    fn urls() {
        let target = Target::parse("http://127.0.0.1:7077").unwrap();
        assert_eq!((target.authority(), target.prefix()), ("127.0.0.1:7077", ""));
        let target = Target::parse("http://shop.example/stock/").unwrap();
        assert_eq!(
            (target.authority(), target.port, target.prefix()),
            ("shop.example", 80, "/stock")
        );
        let target = Target::parse("http://[::1]:80").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("::1", 80));
        for bad in [
            "",
            "127.0.0.1:7077",
            "https://x",
            "http://",
            "http://:80",
            "http://x:0",
            "http://x:99999",
            "http://x/?a",
            "http://u@x",
            "http://x y",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
    }
}

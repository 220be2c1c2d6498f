//! The least HTTP/1.1 client that a drill needs: one request at a time on a keep-alive connection.
//!
//! A connection on which anything unexpected happened is never used again, so that no answer can be taken for the
//! answer to another request.

use std::io;
use std::ops::Range;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::target::Target;

/// Bodies larger than this are not read: no answer of the service is.
const BODY_BYTES_MAX: usize = 64 << 20;

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

    /// Whether an idle connection can be used: the service has not closed it, nor said anything unasked. Costs no call
    /// into the kernel unless something has come.
    pub(crate) fn is_usable(&self) -> bool {
        let nothing_came = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
        self.stream.try_read(&mut [0]).is_err_and(nothing_came)
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
}

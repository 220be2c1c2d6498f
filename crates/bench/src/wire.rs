//! A keep-alive HTTP/1.1 connection that costs as little as possible, so that the client is not what is measured.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Failure;

pub(crate) struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            input: Vec::with_capacity(4096),
            output: Vec::with_capacity(1024),
        })
    }

    /// Posts a JSON body and returns the status of the answer, whose body is read and dropped.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Result<u16, Failure> {
        use std::io::Write as _;
        self.output.clear();
        write!(
            self.output,
            "POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        self.stream.write_all(&self.output).await?;
        self.input.clear();
        loop {
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err("the server closed the connection".into());
            }
            if let Some((status, length)) = complete(&self.input)? {
                return if length == self.input.len() {
                    Ok(status)
                } else {
                    Err("more than one answer".into())
                };
            }
        }
    }
}

/// Status and length of the whole answer, once all of it is there.
fn complete(input: &[u8]) -> Result<Option<(u16, usize)>, Failure> {
    let Some(head) = input.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&input[..head])?;
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|l| l.split(' ').nth(1))
        .ok_or("no status line")?
        .parse()?;
    let mut length = 0;
    for line in lines {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let whole = head + 4 + length;
    Ok((input.len() >= whole).then_some((status, whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_with_its_body() {
        let whole = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(complete(whole).unwrap(), Some((201, whole.len())));
        assert_eq!(complete(&whole[..whole.len() - 1]).unwrap(), None);
        assert_eq!(complete(&whole[..10]).unwrap(), None);
    }
}

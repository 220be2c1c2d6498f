//! Requests as bytes, written into buffers that are used again.

use std::io::Write as _;

use super::target::Target;

/// The bytes of one request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    bytes: Vec<u8>,
}

/// A line of an order: one SKU and how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderLine<'a> {
    pub(crate) sku: &'a str,
    pub(crate) quantity: u64,
}

/// How a reservation is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Hold the units for so many seconds.
    Reserve { ttl_seconds: u64 },
    /// Sell them at once.
    Deduct,
}

// Ids and SKUs in here are made by the drills from letters, digits, '-' and '.': nothing to escape.
impl Request {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn order(&mut self, target: &Target, id: &str, owner: &str, ask: Ask, line: OrderLine<'_>) {
        let OrderLine { sku, quantity } = line;
        let mut body = [0_u8; 512];
        let mut rest = &mut body[..];
        let written = match ask {
            Ask::Reserve { ttl_seconds } => write!(
                rest,
                r#"{{"id":"{id}","owner":"{owner}","mode":"reserve","ttl_seconds":{ttl_seconds},"lines":[{{"sku":"{sku}","quantity":{quantity}}}]}}"#
            ),
            Ask::Deduct => write!(
                rest,
                r#"{{"id":"{id}","owner":"{owner}","mode":"deduct","lines":[{{"sku":"{sku}","quantity":{quantity}}}]}}"#
            ),
        };
        debug_assert!(written.is_ok(), "the ids of a drill are short");
        let left = rest.len();
        self.with_body(
            "POST",
            target,
            format_args!("/v1/reservations"),
            &body[..512 - left],
        );
    }

    /// `confirm` or `cancel` of a whole reservation.
    pub(crate) fn action(&mut self, target: &Target, id: &str, action: &str) {
        self.with_body(
            "POST",
            target,
            format_args!("/v1/reservations/{id}/{action}"),
            b"{}",
        );
    }

    pub(crate) fn give_back(&mut self, target: &Target, id: &str, return_id: &str, line: OrderLine<'_>) {
        let OrderLine { sku, quantity } = line;
        let body = format!(
            r#"{{"id":"{return_id}","reason":"drill","lines":[{{"sku":"{sku}","quantity":{quantity}}}]}}"#
        );
        self.with_body(
            "POST",
            target,
            format_args!("/v1/reservations/{id}/return"),
            body.as_bytes(),
        );
    }

    pub(crate) fn show(&mut self, target: &Target, id: &str) {
        self.without_body("GET", target, format_args!("/v1/reservations/{id}"));
    }

    pub(crate) fn set_stock(&mut self, target: &Target, sku: &str, command_id: &str, on_hand: u64) {
        let body =
            format!(r#"{{"id":"{command_id}","location":"default","on_hand":{on_hand},"sold_seen":0}}"#);
        self.with_body("PUT", target, format_args!("/v1/stock/{sku}"), body.as_bytes());
    }

    pub(crate) fn adjust_stock(&mut self, target: &Target, sku: &str, command_id: &str, delta: i64) {
        let body =
            format!(r#"{{"id":"{command_id}","location":"default","delta":{delta},"reason":"drill"}}"#);
        self.with_body(
            "POST",
            target,
            format_args!("/v1/stock/{sku}/adjustments"),
            body.as_bytes(),
        );
    }

    pub(crate) fn show_stock(&mut self, target: &Target, sku: &str) {
        self.without_body("GET", target, format_args!("/v1/stock/{sku}"));
    }

    pub(crate) fn post(&mut self, target: &Target, path: &str) {
        self.with_body("POST", target, format_args!("{path}"), b"{}");
    }

    fn with_body(&mut self, method: &str, target: &Target, path: std::fmt::Arguments<'_>, body: &[u8]) {
        self.bytes.clear();
        let written = write!(
            self.bytes,
            "{method} {}{path} HTTP/1.1\r\nhost: {}\r\n{}content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            target.prefix(),
            target.authority(),
            target.key_line(),
            body.len()
        );
        debug_assert!(written.is_ok(), "writing to a Vec does not fail");
        self.bytes.extend_from_slice(body);
    }

    fn without_body(&mut self, method: &str, target: &Target, path: std::fmt::Arguments<'_>) {
        self.bytes.clear();
        let written = write!(
            self.bytes,
            "{method} {}{path} HTTP/1.1\r\nhost: {}\r\n{}\r\n",
            target.prefix(),
            target.authority(),
            target.key_line()
        );
        debug_assert!(written.is_ok(), "writing to a Vec does not fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(request: &Request) -> String {
        String::from_utf8(request.bytes().to_vec()).unwrap()
    }

    #[test]
    fn requests_as_sent() {
        let target = Target::parse("http://h:1/p").unwrap();
        let mut request = Request::default();
        let line = OrderLine {
            sku: "s",
            quantity: 2,
        };
        request.order(&target, "o-1", "u-1", Ask::Reserve { ttl_seconds: 3 }, line);
        let body = r#"{"id":"o-1","owner":"u-1","mode":"reserve","ttl_seconds":3,"lines":[{"sku":"s","quantity":2}]}"#;
        let head = "POST /p/v1/reservations HTTP/1.1\r\nhost: h:1\r\ncontent-type: application/json\r\n";
        assert_eq!(
            text(&request),
            format!("{head}content-length: {}\r\n\r\n{body}", body.len())
        );
        request.show(&target, "o-1");
        assert_eq!(
            text(&request),
            "GET /p/v1/reservations/o-1 HTTP/1.1\r\nhost: h:1\r\n\r\n"
        );
        request.action(&target, "o-1", "confirm");
        assert!(text(&request).starts_with("POST /p/v1/reservations/o-1/confirm HTTP/1.1\r\n"));
        assert!(text(&request).ends_with("content-length: 2\r\n\r\n{}"));
    }
}

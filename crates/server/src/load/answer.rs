//! What the service answers, by the few fields that a drill judges by.

use std::borrow::Cow;

use serde::Deserialize;

/// The codes that buyers meet. Anything else is no answer to a buyer's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Code {
    /// Done now.
    Ok,
    /// Done before.
    Replayed,
    /// Cancelled before it ever came.
    Sealed,
    /// Sold out, or not enough.
    InsufficientStock,
    /// No such reservation.
    NotFound,
    /// Past its end.
    Expired,
    AlreadyConfirmed,
    AlreadyCancelled,
    NotConfirmed,
    /// Something that no buyer should be told: a defect, or a service set up in another way.
    Other,
}

impl Code {
    fn read(text: &str) -> Self {
        match text {
            "ok" => Self::Ok,
            "replayed" => Self::Replayed,
            "sealed" => Self::Sealed,
            "insufficient_stock" => Self::InsufficientStock,
            "not_found" => Self::NotFound,
            "expired" => Self::Expired,
            "already_confirmed" => Self::AlreadyConfirmed,
            "already_cancelled" => Self::AlreadyCancelled,
            "not_confirmed" => Self::NotConfirmed,
            _ => Self::Other,
        }
    }

    /// It is done, now or before.
    pub(crate) fn is_done(self) -> bool {
        matches!(self, Self::Ok | Self::Replayed)
    }
}

/// Where a reservation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    Pending,
    Confirmed,
    Cancelled,
    Expired,
    /// A word that the drill does not know.
    Other,
}

impl Status {
    fn read(text: &str) -> Self {
        match text {
            "pending" => Self::Pending,
            "confirmed" => Self::Confirmed,
            "cancelled" => Self::Cancelled,
            "expired" => Self::Expired,
            _ => Self::Other,
        }
    }
}

/// A reservation as an answer shows it; the orders of drills have one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) status: Status,
    pub(crate) expires_at_ms: i64,
    pub(crate) quantity: u64,
    /// Units confirmed, returned ones included.
    pub(crate) confirmed: u64,
    pub(crate) returned: u64,
}

/// An answer about a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) http: u16,
    pub(crate) code: Code,
    pub(crate) standing: Option<Standing>,
}

impl Answer {
    /// Reads the answer to a request about `id`. An answer about another id, or one whose HTTP status contradicts its
    /// code, is an error.
    pub(crate) fn read(http: u16, body: &[u8], id: &str) -> Result<Self, String> {
        let wire: Wire<'_> = serde_json::from_slice(body)
            .map_err(|error| format!("HTTP {http} with a body that cannot be read: {error}"))?;
        let code = wire.code.as_deref().map_or(Code::Ok, Code::read);
        if code == Code::Other || (200..300).contains(&http) != (code.is_done() || code == Code::Sealed) {
            return Err(format!("HTTP {http}: {}", excerpt(body)));
        }
        let standing = match wire.reservation {
            None => None,
            Some(shown) if shown.id == id => Some(shown.standing()),
            Some(shown) => return Err(format!("asked about {id}, answered about {}", shown.id)),
        };
        Ok(Self { http, code, standing })
    }
}

/// The beginning of a body, for messages.
pub(crate) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into_owned(),
    }
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    code: Option<Cow<'a, str>>,
    #[serde(borrow)]
    reservation: Option<WireReservation<'a>>,
}

#[derive(Deserialize)]
struct WireReservation<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    expires_at_ms: i64,
    lines: Vec<WireLine>,
}

#[derive(Deserialize)]
struct WireLine {
    quantity: u64,
    confirmed: u64,
    returned: u64,
}

impl WireReservation<'_> {
    fn standing(&self) -> Standing {
        let mut standing = Standing {
            status: Status::read(&self.status),
            expires_at_ms: self.expires_at_ms,
            quantity: 0,
            confirmed: 0,
            returned: 0,
        };
        for line in &self.lines {
            standing.quantity += line.quantity;
            standing.confirmed += line.confirmed;
            standing.returned += line.returned;
        }
        standing
    }
}

/// The counters of a SKU, summed over its locations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct StockCounters {
    pub(crate) on_hand: u64,
    pub(crate) reserved: u64,
    pub(crate) sold: u64,
    pub(crate) available: u64,
}

impl StockCounters {
    pub(crate) fn read(body: &[u8], sku: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow)]
            stock: Stock<'a>,
        }
        #[derive(Deserialize)]
        struct Stock<'a> {
            #[serde(borrow)]
            sku: Cow<'a, str>,
            available: u64,
            locations: Vec<StockCounters>,
        }
        let wire: Wire<'_> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        if wire.stock.sku != sku {
            return Err(format!("asked about {sku}, answered about {}", wire.stock.sku));
        }
        let mut sum = Self {
            available: wire.stock.available,
            ..Self::default()
        };
        for at in &wire.stock.locations {
            sum.on_hand += at.on_hand;
            sum.reserved += at.reserved;
            sum.sold += at.sold;
        }
        Ok(sum)
    }
}

/// The code of an answer to a stock command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StockCode(pub(crate) Code);

impl StockCode {
    pub(crate) fn read(http: u16, body: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow)]
            code: Cow<'a, str>,
        }
        let said = || format!("HTTP {http}: {}", excerpt(body));
        let wire: Wire<'_> = serde_json::from_slice(body).map_err(|_| said())?;
        match Code::read(&wire.code) {
            code if code.is_done() && (200..300).contains(&http) => Ok(Self(code)),
            _ => Err(said()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANTED: &[u8] = br#"{"code":"ok","recorded":true,"reservation":{"id":"o-1","owner":"u-1","status":"pending",
        "sealed":false,"expires_at_ms":1767000000000,"lines":[{"sku":"A/1","quantity":2,"confirmed":0,"returned":0,
        "allocations":[{"location":"default","quantity":2,"confirmed":0,"returned":0}]}]}}"#;

    #[test]
    fn a_grant() {
        let standing = Standing {
            status: Status::Pending,
            expires_at_ms: 1_767_000_000_000,
            quantity: 2,
            confirmed: 0,
            returned: 0,
        };
        let expected = Answer {
            http: 201,
            code: Code::Ok,
            standing: Some(standing),
        };
        assert_eq!(Answer::read(201, GRANTED, "o-1"), Ok(expected));
    }

    #[test]
    fn answers_that_are_not_to_be_believed() {
        assert!(Answer::read(201, GRANTED, "o-2").is_err(), "about another id");
        assert!(
            Answer::read(409, GRANTED, "o-1").is_err(),
            "the status contradicts the code"
        );
        assert!(Answer::read(200, br#"{"code":"insufficient_stock"}"#, "o-1").is_err());
        assert!(
            Answer::read(422, br#"{"code":"invalid"}"#, "o-1").is_err(),
            "no answer to a buyer's question"
        );
        assert!(Answer::read(500, b"oops", "o-1").is_err());
    }

    #[test]
    fn a_refusal() {
        let body =
            br#"{"type":"about:blank","title":"Insufficient stock","status":409,"code":"insufficient_stock",
            "detail":"...","lines":[{"index":0,"sku":"A/1","asked":3,"available":2}]}"#;
        let expected = Answer {
            http: 409,
            code: Code::InsufficientStock,
            standing: None,
        };
        assert_eq!(Answer::read(409, body, "o-1"), Ok(expected));
    }

    #[test]
    fn stock() {
        let body = br#"{"code":"ok","stock":{"sku":"A","revision":3,"available":98,"locations":[{"location":"default",
            "on_hand":100,"reserved":2,"sold":7,"safety_stock":0,"available":98}]}}"#;
        let expected = StockCounters {
            on_hand: 100,
            reserved: 2,
            sold: 7,
            available: 98,
        };
        assert_eq!(StockCounters::read(body, "A"), Ok(expected));
        assert!(StockCounters::read(body, "B").is_err());
    }
}

//! From movements to events: which kinds a movement is, which of them somebody wants, and how each is written.
//!
//! An event is made from its movement alone. So its id, the movement's number, says all that is needed to go on after it,
//! whoever asks and whenever.

use std::fmt;
use std::fmt::Write as _;

use serde::Serialize;
use smallvec::SmallVec;
use stockade_core::{Counters, Id};
use stockade_ledger::Movement;
use utoipa::ToSchema;

use crate::http::problem::Problem;
use crate::http::request::Query;
use crate::http::view::{MovementView, Shown as _};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Reserved,
    Extended,
    Confirmed,
    Cancelled,
    Expired,
    Returned,
    Lost,
    PaidNotFulfilled,
    StockChanged,
    SoldOut,
    LowStock,
}

impl Kind {
    pub(crate) const ALL: [(Self, &'static str); 11] = [
        (Self::Reserved, "reserved"),
        (Self::Extended, "extended"),
        (Self::Confirmed, "confirmed"),
        (Self::Cancelled, "cancelled"),
        (Self::Expired, "expired"),
        (Self::Returned, "returned"),
        (Self::Lost, "lost"),
        (Self::PaidNotFulfilled, "paid_not_fulfilled"),
        (Self::StockChanged, "stock_changed"),
        (Self::SoldOut, "sold_out"),
        (Self::LowStock, "low_stock"),
    ];

    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("", |(_, name)| name)
    }

    /// Of a movement's word. Each word has its kind; a test holds the two together.
    fn of(word: &str) -> Self {
        match word {
            "reserve" => Self::Reserved,
            "extend" => Self::Extended,
            "deduct" | "confirm" | "revive" => Self::Confirmed,
            "cancel" | "seal" => Self::Cancelled,
            "expire" => Self::Expired,
            "return" => Self::Returned,
            "lose" => Self::Lost,
            "note" => Self::PaidNotFulfilled,
            _ => Self::StockChanged,
        }
    }
}

/// Where somebody stands: a movement, and how many of its events came after the first. Written `812` or `812.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) number: i64,
    pub(crate) part: u8,
}

impl Place {
    /// What a place may look like.
    const ALLOWED: &'static str = "the id of an event, such as 812 or 812.1; 0 is the beginning";

    /// Behind everything of a movement.
    pub(crate) const fn behind(number: i64) -> Self {
        Self {
            number,
            part: u8::MAX,
        }
    }

    pub(crate) fn read(name: &'static str, text: &str) -> Result<Self, Problem> {
        let figure = |text: &str| crate::http::kind::FIGURE.of(text);
        let (number, part) = text.split_once('.').unwrap_or((text, "0"));
        figure(number)
            .and_then(|number| i64::try_from(number).ok())
            .zip(figure(part).and_then(|part| u8::try_from(part).ok()))
            .map(|(number, part)| Self { number, part })
            .ok_or_else(|| Problem::invalid(name, text, Self::ALLOWED))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            0 => write!(f, "{}", self.number),
            part => write!(f, "{}.{part}", self.number),
        }
    }
}

/// What somebody wants to hear of.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    tenant: Id,
    /// Empty: all.
    kinds: SmallVec<[Kind; 4]>,
    sku: Option<Id>,
    low_stock: Option<u64>,
}

impl Wanted {
    pub(crate) fn read(query: &mut Query, tenant: Id) -> Result<Self, Problem> {
        let low_stock = query.number("low_stock", &crate::http::kind::FIGURE)?;
        let text = query.text("kind").unwrap_or_default();
        let mut kinds = SmallVec::new();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let Some((kind, _)) = Kind::ALL.iter().find(|(_, name)| *name == word) else {
                let names: Vec<&str> = Kind::ALL.iter().map(|(_, name)| *name).collect();
                return Err(Problem::invalid(
                    "kind",
                    word,
                    format!("any of {}", names.join(", ")),
                ));
            };
            kinds.push(*kind);
        }
        if kinds.contains(&Kind::LowStock) && low_stock.is_none() {
            let allowed = "with kind=low_stock: at how many units available it is low";
            return Err(Problem::invalid("low_stock", "nothing", allowed));
        }
        Ok(Self {
            tenant,
            kinds,
            sku: query.id("sku")?,
            low_stock,
        })
    }

    /// Writes the events of a movement that are wanted and come after a place.
    pub(crate) fn write(&self, tenant: &Id, movement: &Movement, after: Place, text: &mut String) {
        let concerns = *tenant == self.tenant
            && self
                .sku
                .as_ref()
                .is_none_or(|sku| movement.sku.as_ref() == Some(sku));
        if !concerns {
            return;
        }
        for kind in kinds(movement, self.low_stock) {
            let place = Place {
                number: movement.number,
                part: part_of(kind),
            };
            if place > after && (self.kinds.is_empty() || self.kinds.contains(&kind)) {
                let threshold = self.low_stock.filter(|_| kind == Kind::LowStock);
                let id = place.to_string();
                let event = EventView {
                    id: &id,
                    kind: kind.name(),
                    threshold,
                    movement: movement.view(),
                };
                // Views hold texts and integers only, which cannot fail; said rather than hidden if it ever does.
                match serde_json::to_string(&event) {
                    Ok(data) => {
                        // Writing to a String does not fail.
                        let _ = write!(text, "id: {id}\nevent: {}\ndata: {data}\n\n", kind.name());
                    }
                    Err(error) => tracing::error!(%error, "an event could not be written"),
                }
            }
        }
    }
}

/// The part of an event's id does not depend on what else somebody asked for.
fn part_of(kind: Kind) -> u8 {
    match kind {
        Kind::SoldOut => 1,
        Kind::LowStock => 2,
        _ => 0,
    }
}

/// What a movement is, first what was done and then what that led to.
fn kinds(movement: &Movement, low_stock: Option<u64>) -> SmallVec<[Kind; 3]> {
    let mut kinds = SmallVec::from_slice(&[Kind::of(&movement.kind)]);
    let Some(after) = &movement.after else {
        return kinds;
    };
    let now = after.available();
    // What a change of the floor came from is not in the movement: it is told whenever it leaves so little.
    let before = if movement.kind == "configure" {
        u64::MAX
    } else {
        available_before(movement, after)
    };
    if before > 0 && now == 0 {
        kinds.push(Kind::SoldOut);
    }
    if low_stock.is_some_and(|low| before > low && now <= low) {
        kinds.push(Kind::LowStock);
    }
    kinds
}

fn available_before(movement: &Movement, after: &Counters) -> u64 {
    let on_hand = after
        .on_hand
        .saturating_add_signed(movement.on_hand.saturating_neg());
    let reserved = after
        .reserved
        .saturating_add_signed(movement.reserved.saturating_neg());
    Counters {
        on_hand,
        reserved,
        ..*after
    }
    .available()
}

/// Something that happened, as it is recorded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventView<'a> {
    /// Send it as `Last-Event-ID` or `after` to go on after this event.
    id: &'a str,
    /// `reserved`, `extended`, `confirmed`, `cancelled`, `expired`, `returned`, `lost`, `paid_not_fulfilled`,
    /// `stock_changed`, `sold_out` or `low_stock`.
    kind: &'a str,
    /// Of `low_stock`: the figure that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<u64>,
    /// What was recorded.
    movement: MovementView<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn movement(kind: &str, change: [i64; 3], after: Option<[u64; 4]>) -> Movement {
        let id = Id::default_name();
        Movement {
            number: 7,
            at: 0,
            kind: kind.to_owned(),
            actor: id.clone(),
            reason: String::new(),
            reservation: None,
            owner: None,
            command: None,
            sku: Some(id.clone()),
            location: Some(id),
            on_hand: change[0],
            reserved: change[1],
            sold: change[2],
            after: after.map(|[on_hand, reserved, sold, safety_stock]| Counters {
                on_hand,
                reserved,
                sold,
                safety_stock,
                version: 1,
            }),
        }
    }

    #[test]
    fn crossings_are_seen_once() {
        use Kind::{Confirmed, Expired, LowStock, Reserved, SoldOut, StockChanged};
        type Row = (&'static str, [i64; 3], [u64; 4], &'static [Kind]);
        let rows: [Row; 10] = [
            ("reserve", [0, 1, 0], [5, 1, 0, 0], &[Reserved]),
            ("reserve", [0, 1, 0], [5, 3, 0, 0], &[Reserved, LowStock]),
            ("reserve", [0, 1, 0], [5, 4, 0, 0], &[Reserved]),
            ("reserve", [0, 1, 0], [5, 5, 0, 0], &[Reserved, SoldOut]),
            ("reserve", [0, 5, 0], [5, 5, 0, 0], &[Reserved, SoldOut, LowStock]),
            ("reserve", [0, 1, 0], [5, 4, 0, 1], &[Reserved, SoldOut]),
            // Confirming moves no available unit.
            ("confirm", [-1, -1, 1], [4, 4, 1, 0], &[Confirmed]),
            ("expire", [0, -1, 0], [5, 4, 0, 0], &[Expired]),
            ("set", [0, 0, 0], [0, 0, 0, 0], &[StockChanged]),
            (
                "configure",
                [0, 0, 0],
                [5, 0, 0, 5],
                &[StockChanged, SoldOut, LowStock],
            ),
        ];
        for (kind, change, after, expected) in rows {
            let found = kinds(&movement(kind, change, Some(after)), Some(2));
            assert_eq!(found.as_slice(), expected, "{kind} {change:?} {after:?}");
        }
        assert_eq!(
            kinds(&movement("note", [0; 3], None), Some(2)).as_slice(),
            [Kind::PaidNotFulfilled]
        );
    }

    #[test]
    fn every_word_of_movements_has_its_kind() {
        use stockade_core::{StockVerb, Verb};
        let stock = [
            StockVerb::Set,
            StockVerb::Adjust,
            StockVerb::Transfer,
            StockVerb::Configure,
        ];
        for verb in stock {
            assert_eq!(Kind::of(verb.as_str()), Kind::StockChanged);
        }
        let rows = [
            (Verb::Reserve, Kind::Reserved),
            (Verb::Deduct, Kind::Confirmed),
            (Verb::Confirm, Kind::Confirmed),
            (Verb::Revive, Kind::Confirmed),
            (Verb::Cancel, Kind::Cancelled),
            (Verb::Seal, Kind::Cancelled),
            (Verb::Extend, Kind::Extended),
            (Verb::Expire, Kind::Expired),
            (Verb::Lose, Kind::Lost),
            (Verb::Note, Kind::PaidNotFulfilled),
        ];
        for (verb, kind) in rows {
            assert_eq!(Kind::of(verb.as_str()), kind);
        }
        assert_eq!(Kind::of("return"), Kind::Returned);
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["0", "812", "812.1", "9007199254740991.2"] {
            assert_eq!(Place::read("after", text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "-1",
            "1.",
            ".1",
            "1.256",
            "01",
            "1.1.1",
            "9007199254740992",
            "x",
        ] {
            assert!(Place::read("after", text).is_err(), "{text:?}");
        }
        let place = |text| Place::read("after", text).unwrap();
        assert!(place("7") < place("7.1") && place("7.2") < place("8"));
    }
}

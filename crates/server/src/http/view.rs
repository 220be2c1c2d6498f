//! How records look on the wire. The views borrow, so that an answer is written once, straight from the record.

use serde::{Serialize, Serializer};
use stockade_core::{
    Allocation, Id, Line, LocationRecord, Mode, Reservation, ReturnRecord, ReturnedLine, Settings, SkuRecord,
};
use stockade_ledger::{Finding, Movement};
use utoipa::ToSchema;

/// A list of records, each shown by its view.
#[derive(Debug)]
pub(crate) struct Each<'a, T>(pub(crate) &'a [T]);

/// A record that has a view.
pub(crate) trait Shown {
    type View<'a>: Serialize
    where
        Self: 'a;
    fn view(&self) -> Self::View<'_>;
}

impl<T: Shown> Serialize for Each<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Shown::view))
    }
}

/// A reservation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reservation)]
pub(crate) struct ReservationView<'a> {
    id: &'a str,
    /// Who buys; null for a sealed id.
    owner: Option<&'a str>,
    /// `pending`, `confirmed`, `cancelled`, `expired` or `lost`.
    status: &'static str,
    /// Cancelled before it ever came.
    sealed: bool,
    /// `reserve` or `deduct`.
    mode: &'static str,
    granted_at_ms: i64,
    expires_at_ms: i64,
    #[schema(value_type = Vec<LineView<'a>>)]
    lines: Each<'a, Line>,
}

impl<'a> ReservationView<'a> {
    pub(crate) fn of(reservation: &'a Reservation) -> Self {
        Self {
            id: reservation.id.as_str(),
            owner: reservation.owner.as_ref().map(Id::as_str),
            status: reservation.status.as_str(),
            sealed: reservation.sealed,
            mode: match reservation.mode {
                Mode::Reserve => "reserve",
                Mode::Deduct => "deduct",
            },
            granted_at_ms: reservation.granted_at,
            expires_at_ms: reservation.ends_at,
            lines: Each(&reservation.lines),
        }
    }
}

impl Shown for Reservation {
    type View<'a> = ReservationView<'a>;
    fn view(&self) -> ReservationView<'_> {
        ReservationView::of(self)
    }
}

/// A line of a reservation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReservationLine)]
pub(crate) struct LineView<'a> {
    sku: &'a str,
    /// The location asked for, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    quantity: u64,
    /// Units confirmed, returned ones included.
    confirmed: u64,
    returned: u64,
    /// Where the units came from.
    #[schema(value_type = Vec<AllocationView<'a>>)]
    allocations: Each<'a, Allocation>,
}

impl Shown for Line {
    type View<'a> = LineView<'a>;
    fn view(&self) -> LineView<'_> {
        LineView {
            sku: self.sku.as_str(),
            location: self.location.as_ref().map(Id::as_str),
            quantity: self.quantity(),
            confirmed: self.confirmed(),
            returned: self.returned(),
            allocations: Each(&self.allocations),
        }
    }
}

/// Units of a line that come from one location.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Allocation)]
pub(crate) struct AllocationView<'a> {
    location: &'a str,
    quantity: u64,
    confirmed: u64,
    returned: u64,
}

impl Shown for Allocation {
    type View<'a> = AllocationView<'a>;
    fn view(&self) -> AllocationView<'_> {
        AllocationView {
            location: self.location.as_str(),
            quantity: self.quantity,
            confirmed: self.confirmed,
            returned: self.returned,
        }
    }
}

/// A return.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Return)]
pub(crate) struct ReturnView<'a> {
    id: &'a str,
    #[schema(value_type = Vec<ReturnedLineView<'a>>)]
    lines: Each<'a, ReturnedLine>,
}

impl<'a> ReturnView<'a> {
    pub(crate) fn of(record: &'a ReturnRecord) -> Self {
        Self {
            id: record.id.as_str(),
            lines: Each(&record.lines),
        }
    }
}

/// A line of a return.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReturnedLine)]
pub(crate) struct ReturnedLineView<'a> {
    sku: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    quantity: u64,
}

impl Shown for ReturnedLine {
    type View<'a> = ReturnedLineView<'a>;
    fn view(&self) -> ReturnedLineView<'_> {
        ReturnedLineView {
            sku: self.sku.as_str(),
            location: self.location.as_ref().map(Id::as_str),
            quantity: self.quantity,
        }
    }
}

/// A SKU.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stock)]
pub(crate) struct StockView<'a> {
    sku: &'a str,
    /// Counts operators' changes; the header `ETag`.
    revision: u64,
    /// Summed over the locations.
    available: u64,
    #[schema(value_type = Vec<LocationView<'a>>)]
    locations: Each<'a, LocationRecord>,
    settings: SettingsView<'a>,
}

impl<'a> StockView<'a> {
    pub(crate) fn of(stock: &'a SkuRecord) -> Self {
        Self {
            sku: stock.sku.as_str(),
            revision: stock.revision,
            available: stock
                .locations
                .iter()
                .fold(0, |sum, at| sum.saturating_add(at.counters.available())),
            locations: Each(&stock.locations),
            settings: SettingsView::of(&stock.settings),
        }
    }
}

impl Shown for SkuRecord {
    type View<'a> = StockView<'a>;
    fn view(&self) -> StockView<'_> {
        StockView::of(self)
    }
}

/// One location of a SKU.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Location)]
pub(crate) struct LocationView<'a> {
    location: &'a str,
    on_hand: u64,
    reserved: u64,
    sold: u64,
    safety_stock: u64,
    available: u64,
}

impl Shown for LocationRecord {
    type View<'a> = LocationView<'a>;
    fn view(&self) -> LocationView<'_> {
        LocationView {
            location: self.location.as_str(),
            on_hand: self.counters.on_hand,
            reserved: self.counters.reserved,
            sold: self.counters.sold,
            safety_stock: self.counters.safety_stock,
            available: self.counters.available(),
        }
    }
}

impl Shown for Id {
    type View<'a> = &'a str;
    fn view(&self) -> &str {
        self.as_str()
    }
}

/// The settings of a SKU.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Settings)]
pub(crate) struct SettingsView<'a> {
    limit_per_owner: Option<u64>,
    opens_at_ms: Option<i64>,
    closes_at_ms: Option<i64>,
    paused: bool,
    /// Locations named by the operator; the others follow in the order in which they were created.
    #[schema(value_type = Vec<String>)]
    order: Each<'a, Id>,
    split: bool,
    group: Option<&'a str>,
}

impl<'a> SettingsView<'a> {
    fn of(settings: &'a Settings) -> Self {
        Self {
            limit_per_owner: settings.limit_per_owner,
            opens_at_ms: settings.opens_at,
            closes_at_ms: settings.closes_at,
            paused: settings.paused,
            order: Each(&settings.order),
            split: settings.split,
            group: settings.group.as_ref().map(Id::as_str),
        }
    }
}

/// One change of the counters of a SKU at a location, or a change without units.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Movement)]
pub(crate) struct MovementView<'a> {
    /// Grows with time, with gaps.
    number: i64,
    at_ms: i64,
    /// `reserve`, `confirm`, `set` ...
    kind: &'a str,
    actor: &'a str,
    reason: &'a str,
    reservation: Option<&'a str>,
    owner: Option<&'a str>,
    /// The id of the return or stock command.
    command: Option<&'a str>,
    sku: Option<&'a str>,
    location: Option<&'a str>,
    on_hand: i64,
    reserved: i64,
    sold: i64,
    /// The counters after; null where no units moved.
    after: Option<AfterView>,
}

/// Counters after a movement.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Counters)]
pub(crate) struct AfterView {
    on_hand: u64,
    reserved: u64,
    sold: u64,
    safety_stock: u64,
    available: u64,
}

impl Shown for Movement {
    type View<'a> = MovementView<'a>;
    fn view(&self) -> MovementView<'_> {
        MovementView {
            number: self.number,
            at_ms: self.at,
            kind: &self.kind,
            actor: self.actor.as_str(),
            reason: &self.reason,
            reservation: self.reservation.as_ref().map(Id::as_str),
            owner: self.owner.as_ref().map(Id::as_str),
            command: self.command.as_ref().map(Id::as_str),
            sku: self.sku.as_ref().map(Id::as_str),
            location: self.location.as_ref().map(Id::as_str),
            on_hand: self.on_hand,
            reserved: self.reserved,
            sold: self.sold,
            after: self.after.map(|after| AfterView {
                on_hand: after.on_hand,
                reserved: after.reserved,
                sold: after.sold,
                safety_stock: after.safety_stock,
                available: after.available(),
            }),
        }
    }
}

/// A difference that an audit found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Finding)]
pub(crate) struct FindingView<'a> {
    /// What differs.
    what: &'a str,
    /// Where.
    place: &'a str,
    expected: &'a str,
    found: &'a str,
}

impl Shown for Finding {
    type View<'a> = FindingView<'a>;
    fn view(&self) -> FindingView<'_> {
        FindingView {
            what: &self.what,
            place: &self.place,
            expected: &self.expected,
            found: &self.found,
        }
    }
}

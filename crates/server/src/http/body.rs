//! The bodies that requests may have: which fields, of which kinds, and the actions that they become.

use smallvec::SmallVec;
use stockade::Durability;
use stockade_core::{
    AskLine, Changes, ConfirmPayload, Count, Id, LINES_MAX, LOCATIONS_MAX, Mode, PickLine, Reason, Reserve,
    TTL_MS_DEFAULT, TTL_MS_MAX,
};
use utoipa::ToSchema;

use super::json::{Faults, ListShape, Object, Path};
use super::kind::{Choice, Delta, FIGURE, Flag, IdText, Moment, OrNull, QUANTITY, ReasonText, Whole};

/// The most reservations of a batch.
pub(crate) const BATCH_MAX: usize = 1_000;

const LINES: ListShape = ListShape {
    min: 1,
    max: LINES_MAX,
    like: r#"{"sku":"B-7","quantity":3}"#,
};
const RESERVATIONS: ListShape = ListShape {
    min: 1,
    max: BATCH_MAX,
    like: r#"{"id":"order-1","owner":"user-1","mode":"reserve","lines":[{"sku":"B-7","quantity":3}]}"#,
};
const FLOORS: ListShape = ListShape {
    min: 1,
    max: LOCATIONS_MAX,
    like: r#"{"location":"default","safety_stock":5}"#,
};
const LOCATION_ORDER: ListShape = ListShape {
    min: 0,
    max: LOCATIONS_MAX,
    like: r#""default""#,
};
const MODES: Choice<Mode> = Choice(&[("reserve", Mode::Reserve), ("deduct", Mode::Deduct)]);
const DURABILITIES: Choice<Durability> = Choice(&[("hot", Durability::Hot), ("ledger", Durability::Ledger)]);
const TTL_SECONDS: Whole = Whole(1..=(TTL_MS_MAX / 1_000).cast_unsigned());

/// How a reservation is asked for.
#[derive(Debug, ToSchema)]
#[schema(as = Mode, rename_all = "lowercase")]
#[expect(
    dead_code,
    reason = "describes the words in the OpenAPI document; they are read by MODES"
)]
pub(crate) enum ModeWord {
    Reserve,
    Deduct,
}

/// When an answer may go out.
#[derive(Debug, ToSchema)]
#[schema(as = Durability, rename_all = "lowercase")]
#[expect(
    dead_code,
    reason = "describes the words in the OpenAPI document; they are read by DURABILITIES"
)]
pub(crate) enum DurabilityWord {
    Hot,
    Ledger,
}

/// What is asked for: all lines or none.
#[derive(Debug, ToSchema)]
pub(crate) struct ReserveBody {
    /// The reservation's id; may be given as `Idempotency-Key` instead.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    id: Option<Id>,
    /// Who buys.
    #[schema(value_type = String, min_length = 1, max_length = 128)]
    owner: Id,
    /// `reserve` holds the units until an end, `deduct` sells them at once.
    #[schema(value_type = ModeWord)]
    mode: Mode,
    /// How long the units are held: 1..=2592000, 1800 when not given.
    #[schema(value_type = u64, required = false, minimum = 1, maximum = 2_592_000)]
    ttl_seconds: Option<u64>,
    /// `hot`: answered when it is decided; `ledger`: when it is recorded. With the hot tier in memory always the latter.
    #[schema(value_type = DurabilityWord, required = false)]
    durability: Option<Durability>,
    /// The owner's own pending reservation that this one takes the place of.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    supersedes: Option<Id>,
    /// 1..=100 lines.
    #[schema(value_type = Vec<AskLineBody>, min_items = 1, max_items = 100)]
    lines: SmallVec<[AskLine; 1]>,
}

impl ReserveBody {
    pub(crate) fn read(body: &mut Object<'_, '_>, id_given: bool) -> Option<Self> {
        let id = body.need_unless(id_given, "id", &IdText);
        let owner = body.need("owner", &IdText);
        let mode = body.need("mode", &MODES);
        let ttl_seconds = body.may("ttl_seconds", &TTL_SECONDS);
        let durability = body.may("durability", &DURABILITIES);
        let supersedes = body.may("supersedes", &IdText);
        let lines = ask_lines(body);
        Some(Self {
            id,
            owner: owner?,
            mode: mode?,
            ttl_seconds,
            durability,
            supersedes,
            lines: lines?,
        })
    }

    pub(crate) fn id(&mut self) -> Option<Id> {
        self.id.take()
    }

    /// When it wants to be answered, if it says so.
    pub(crate) fn durability(&self) -> Option<Durability> {
        self.durability
    }

    pub(crate) fn command(self, id: Id) -> Reserve {
        let ttl_ms = self
            .ttl_seconds
            .and_then(|seconds| i64::try_from(seconds * 1_000).ok());
        Reserve {
            id,
            owner: self.owner,
            mode: self.mode,
            ttl_ms: ttl_ms.unwrap_or(TTL_MS_DEFAULT),
            lines: self.lines,
            supersedes: self.supersedes,
        }
    }
}

/// A line of a reservation.
#[derive(Debug, ToSchema)]
#[schema(as = AskLine)]
#[expect(
    dead_code,
    reason = "describes the line in the OpenAPI document; it is read as the core's own type"
)]
pub(crate) struct AskLineBody {
    #[schema(min_length = 1, max_length = 128)]
    sku: String,
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    quantity: u64,
    /// Take the units from here only.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    location: Option<String>,
    /// Refuse unless the SKU has this revision.
    #[schema(value_type = u64, required = false)]
    if_revision: Option<u64>,
}

fn ask_lines(body: &mut Object<'_, '_>) -> Option<SmallVec<[AskLine; 1]>> {
    let lines = body.need_list("lines", &LINES, |text, path, faults| {
        Object::read(text, path, faults, |line| {
            let sku = line.need("sku", &IdText);
            let quantity = line.need("quantity", &QUANTITY);
            let location = line.may("location", &IdText);
            let if_revision = line.may("if_revision", &FIGURE);
            Some(AskLine {
                sku: sku?,
                quantity: quantity?,
                location,
                if_revision,
            })
        })
    });
    lines.map(SmallVec::from_vec)
}

/// A line of a confirm or a return.
#[derive(Debug, ToSchema)]
#[schema(as = PickLine)]
#[expect(
    dead_code,
    reason = "describes the line in the OpenAPI document; it is read as the core's own type"
)]
pub(crate) struct PickLineBody {
    #[schema(min_length = 1, max_length = 128)]
    sku: String,
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    quantity: u64,
    /// The location that the reservation's line asked for, if it did.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    location: Option<String>,
}

fn pick_lines(body: &mut Object<'_, '_>) -> Option<Vec<PickLine>> {
    body.may_list("lines", &LINES, |text, path, faults| {
        Object::read(text, path, faults, |line| {
            let sku = line.need("sku", &IdText);
            let quantity = line.need("quantity", &QUANTITY);
            let location = line.may("location", &IdText);
            Some(PickLine {
                sku: sku?,
                quantity: quantity?,
                location,
            })
        })
    })
}

/// Many reservations, independent of each other.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "describes the body in the OpenAPI document; each item is judged on its own"
)]
pub(crate) struct BatchBody {
    /// 1..=1,000.
    #[schema(min_items = 1, max_items = 1_000)]
    reservations: Vec<ReserveBody>,
}

/// Reads a batch: one verdict for each reservation, since they do not depend on each other.
pub(crate) fn read_batch(body: &mut Object<'_, '_>) -> Option<Vec<BatchItem>> {
    body.need_list("reservations", &RESERVATIONS, |text, _, _| {
        let mut faults = Faults::default();
        let read = Object::read(text, Path::Root, &mut faults, |item| {
            ReserveBody::read(item, false)
        });
        let reserve = read.and_then(|mut read| {
            let id = read.id()?;
            let durability = read.durability();
            Some((read.command(id), durability))
        });
        Some(faults.done(reserve))
    })
}

/// A reservation of a batch and when it wants to be answered, or what is wrong with it.
type BatchItem = Result<(Reserve, Option<Durability>), super::problem::Problem>;

/// What is confirmed; without lines everything.
#[derive(Debug, ToSchema)]
pub(crate) struct ConfirmBody {
    /// What is not listed is released.
    #[schema(value_type = Vec<PickLineBody>, required = false, min_items = 1, max_items = 100)]
    pub(crate) lines: Option<Vec<PickLine>>,
    /// What the reservation asked for: lets the confirm stand in for a reserve that was lost.
    #[schema(value_type = PayloadBody, required = false)]
    pub(crate) payload: Option<ConfirmPayload>,
}

/// The payload of a reservation.
#[derive(Debug, ToSchema)]
#[schema(as = Payload)]
#[expect(
    dead_code,
    reason = "describes the payload in the OpenAPI document; it is read as the core's own type"
)]
pub(crate) struct PayloadBody {
    #[schema(min_length = 1, max_length = 128)]
    owner: String,
    #[schema(min_items = 1, max_items = 100)]
    lines: Vec<AskLineBody>,
}

impl ConfirmBody {
    #[expect(clippy::unnecessary_wraps, reason = "the shape that every body's reader has")]
    pub(crate) fn read(body: &mut Object<'_, '_>) -> Option<Self> {
        let lines = pick_lines(body);
        let payload = body.may_object("payload", |payload| {
            let owner = payload.need("owner", &IdText);
            let lines = ask_lines(payload);
            Some(ConfirmPayload {
                owner: owner?,
                lines: lines?,
            })
        });
        Some(Self { lines, payload })
    }
}

/// Why a reservation is cancelled.
#[derive(Debug, ToSchema)]
pub(crate) struct CancelBody {
    #[schema(value_type = String, required = false, max_length = 256)]
    pub(crate) reason: Reason,
}

impl CancelBody {
    #[expect(clippy::unnecessary_wraps, reason = "the shape that every body's reader has")]
    pub(crate) fn read(body: &mut Object<'_, '_>) -> Option<Self> {
        Some(Self { reason: reason(body) })
    }
}

fn reason(body: &mut Object<'_, '_>) -> Reason {
    body.may("reason", &ReasonText).unwrap_or_default()
}

/// The new end.
#[derive(Debug, ToSchema)]
pub(crate) struct ExtendBody {
    /// In the future, at most 30 days away; may come nearer.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    pub(crate) expires_at_ms: i64,
}

impl ExtendBody {
    pub(crate) fn read(body: &mut Object<'_, '_>) -> Option<Self> {
        Some(Self {
            expires_at_ms: body.need("expires_at_ms", &Moment)?,
        })
    }
}

/// What comes back; without lines everything that was confirmed and not yet returned.
#[derive(Debug, ToSchema)]
pub(crate) struct ReturnBody {
    /// The return's own id; may be given as `Idempotency-Key` instead.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    pub(crate) id: Option<Id>,
    #[schema(value_type = String, required = false, max_length = 256)]
    pub(crate) reason: Reason,
    #[schema(value_type = Vec<PickLineBody>, required = false, min_items = 1, max_items = 100)]
    pub(crate) lines: Option<Vec<PickLine>>,
}

impl ReturnBody {
    #[expect(clippy::unnecessary_wraps, reason = "the shape that every body's reader has")]
    pub(crate) fn read(body: &mut Object<'_, '_>, id_given: bool) -> Option<Self> {
        let id = body.need_unless(id_given, "id", &IdText);
        let reason = reason(body);
        let lines = pick_lines(body);
        Some(Self { id, reason, lines })
    }
}

/// A count of one location, reserved units included.
#[derive(Debug, ToSchema)]
pub(crate) struct SetBody {
    /// The command's id; may be given as `Idempotency-Key` instead.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    pub(crate) id: Option<Id>,
    /// `default` when not given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    pub(crate) location: Id,
    /// The units counted.
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub(crate) on_hand: u64,
    /// The sold figure at the time of the count: sales since then are taken off the count.
    #[schema(value_type = u64, required = false)]
    pub(crate) sold_seen: Option<u64>,
    /// Take the count as it is, whatever was sold meanwhile.
    #[schema(value_type = bool, required = false)]
    pub(crate) force: bool,
    /// Refuse unless the SKU has this revision; may be given as `If-Match` instead.
    #[schema(value_type = u64, required = false)]
    pub(crate) if_revision: Option<u64>,
    #[schema(value_type = String, required = false, max_length = 256)]
    pub(crate) reason: Reason,
}

impl SetBody {
    pub(crate) fn read(body: &mut Object<'_, '_>, id_given: bool) -> Option<Self> {
        let id = body.need_unless(id_given, "id", &IdText);
        let location = location(body);
        let on_hand = body.need("on_hand", &FIGURE);
        let sold_seen = body.may("sold_seen", &FIGURE);
        let force = body.may("force", &Flag).unwrap_or(false);
        if force && sold_seen.is_some() {
            body.fault("force", "true", "only one of force and sold_seen");
        }
        let if_revision = body.may("if_revision", &FIGURE);
        let reason = reason(body);
        Some(Self {
            id,
            location,
            on_hand: on_hand?,
            sold_seen,
            force,
            if_revision,
            reason,
        })
    }

    pub(crate) fn count(&self) -> Count {
        match self.sold_seen {
            _ if self.force => Count::Force,
            Some(sold_seen) => Count::Seen { sold_seen },
            None => Count::Create,
        }
    }
}

fn location(body: &mut Object<'_, '_>) -> Id {
    body.may("location", &IdText).unwrap_or_else(Id::default_name)
}

/// A signed change of one location.
#[derive(Debug, ToSchema)]
pub(crate) struct AdjustBody {
    /// The command's id; may be given as `Idempotency-Key` instead.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    pub(crate) id: Option<Id>,
    /// `default` when not given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    pub(crate) location: Id,
    /// Not 0.
    #[schema(minimum = -9_007_199_254_740_991_i64, maximum = 9_007_199_254_740_991_i64)]
    pub(crate) delta: i64,
    /// Refuse unless the SKU has this revision; may be given as `If-Match` instead.
    #[schema(value_type = u64, required = false)]
    pub(crate) if_revision: Option<u64>,
    #[schema(value_type = String, required = false, max_length = 256)]
    pub(crate) reason: Reason,
}

impl AdjustBody {
    pub(crate) fn read(body: &mut Object<'_, '_>, id_given: bool) -> Option<Self> {
        let id = body.need_unless(id_given, "id", &IdText);
        let location = location(body);
        let delta = body.need("delta", &Delta);
        let if_revision = body.may("if_revision", &FIGURE);
        let reason = reason(body);
        Some(Self {
            id,
            location,
            delta: delta?,
            if_revision,
            reason,
        })
    }
}

/// Units move from one location to another.
#[derive(Debug, ToSchema)]
pub(crate) struct TransferBody {
    /// The command's id; may be given as `Idempotency-Key` instead.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    pub(crate) id: Option<Id>,
    #[schema(value_type = String, min_length = 1, max_length = 128)]
    pub(crate) from: Id,
    #[schema(value_type = String, min_length = 1, max_length = 128)]
    pub(crate) to: Id,
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub(crate) quantity: u64,
    /// Refuse unless the SKU has this revision; may be given as `If-Match` instead.
    #[schema(value_type = u64, required = false)]
    pub(crate) if_revision: Option<u64>,
    #[schema(value_type = String, required = false, max_length = 256)]
    pub(crate) reason: Reason,
}

impl TransferBody {
    pub(crate) fn read(body: &mut Object<'_, '_>, id_given: bool) -> Option<Self> {
        let id = body.need_unless(id_given, "id", &IdText);
        let from = body.need("from", &IdText);
        let to = body.need("to", &IdText);
        let quantity = body.need("quantity", &QUANTITY);
        let if_revision = body.may("if_revision", &FIGURE);
        let reason = reason(body);
        Some(Self {
            id,
            from: from?,
            to: to?,
            quantity: quantity?,
            if_revision,
            reason,
        })
    }
}

/// Settings to change; what is left out stays, and null takes a setting away.
#[derive(Debug, ToSchema)]
#[schema(as = ConfigureBody)]
#[expect(
    dead_code,
    reason = "describes the body in the OpenAPI document; it is read as the core's own type"
)]
pub(crate) struct ConfigureSchema {
    /// The command's id; may be given as `Idempotency-Key` instead.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    id: Option<String>,
    /// Floors that stay back, by location.
    #[schema(value_type = Vec<SafetyStockBody>, required = false)]
    safety_stock: Option<Vec<SafetyStockBody>>,
    /// The most units that one owner may hold and have bought.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    limit_per_owner: Option<u64>,
    /// Before this no reserve is granted.
    opens_at_ms: Option<i64>,
    /// From this on no reserve is granted.
    closes_at_ms: Option<i64>,
    /// Refuse reserves for now.
    #[schema(value_type = bool, required = false)]
    paused: Option<bool>,
    /// Locations in the order in which lines without a location take from them.
    #[schema(value_type = Vec<String>, required = false)]
    order: Option<Vec<String>>,
    /// Whether one line may take from several locations.
    #[schema(value_type = bool, required = false)]
    split: Option<bool>,
    /// SKUs of one group lie on one shard.
    group: Option<String>,
    /// Owner usage starts again from zero for everybody.
    #[schema(value_type = bool, required = false)]
    reset_usage: Option<bool>,
    /// Refuse unless the SKU has this revision; may be given as `If-Match` instead.
    #[schema(value_type = u64, required = false)]
    if_revision: Option<u64>,
    #[schema(value_type = String, required = false, max_length = 256)]
    reason: Option<String>,
}

/// The floor of a location.
#[derive(Debug, ToSchema)]
#[schema(as = SafetyStock)]
#[expect(
    dead_code,
    reason = "describes the item in the OpenAPI document; it is read as a pair"
)]
pub(crate) struct SafetyStockBody {
    /// `default` when not given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 128)]
    location: Option<String>,
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    safety_stock: u64,
}

/// Settings to change, as they were read.
#[derive(Debug)]
pub(crate) struct ConfigureBody {
    pub(crate) id: Option<Id>,
    pub(crate) changes: Changes,
    pub(crate) if_revision: Option<u64>,
    pub(crate) reason: Reason,
}

impl ConfigureBody {
    #[expect(clippy::unnecessary_wraps, reason = "the shape that every body's reader has")]
    pub(crate) fn read(body: &mut Object<'_, '_>, id_given: bool) -> Option<Self> {
        let id = body.need_unless(id_given, "id", &IdText);
        let safety_stock = body.may_list("safety_stock", &FLOORS, |text, path, faults| {
            Object::read(text, path, faults, |item| {
                let location = location(item);
                Some((location, item.need("safety_stock", &FIGURE)?))
            })
        });
        let changes = Changes {
            safety_stock: safety_stock.unwrap_or_default(),
            limit_per_owner: body.may("limit_per_owner", &OrNull(QUANTITY)),
            opens_at: body.may("opens_at_ms", &OrNull(Moment)),
            closes_at: body.may("closes_at_ms", &OrNull(Moment)),
            paused: body.may("paused", &Flag),
            order: body.may_list("order", &LOCATION_ORDER, |text, path, faults| {
                use super::kind::Kind as _;
                let id = IdText.parse(text);
                if id.is_none() {
                    faults.push(&path, text, IdText.allowed());
                }
                id
            }),
            split: body.may("split", &Flag),
            group: body.may("group", &OrNull(IdText)),
            reset_usage: body.may("reset_usage", &Flag).unwrap_or(false),
        };
        let if_revision = body.may("if_revision", &FIGURE);
        let reason = reason(body);
        Some(Self {
            id,
            changes,
            if_revision,
            reason,
        })
    }
}

/// How far an audit goes.
#[derive(Debug, ToSchema)]
pub(crate) struct AuditBody {
    /// The most findings to list: 1..=10,000, 100 when not given.
    #[schema(value_type = u64, required = false, minimum = 1, maximum = 10_000)]
    pub(crate) limit: Option<u64>,
}

impl AuditBody {
    #[expect(clippy::unnecessary_wraps, reason = "the shape that every body's reader has")]
    pub(crate) fn read(body: &mut Object<'_, '_>) -> Option<Self> {
        Some(Self {
            limit: body.may("limit", &Whole(1..=10_000)),
        })
    }
}

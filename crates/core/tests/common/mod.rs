//! Short words for commands, and a shard with a ledger beside it that folds its entries.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::unnecessary_wraps,
    clippy::needless_for_each,
    reason = "helpers of tests fail as tests do"
)]

pub mod ledger;
pub mod oracle;
pub mod script;

use stockade_core::{
    Action, Adjust, AskLine, Cancel, Changes, Command, Configure, Confirm, ConfirmPayload, Count, Counters,
    Decision, Done, DoneCode, Expect, Extend, Id, LateConfirm, LateReason, Millis, Mode, PickLine, Reason,
    Refusal, Reply, Reservation, Reserve, Return, Rules, Set, Shard, SkuRecord, Subject, Transfer,
};

/// A time to start from.
pub const T0: Millis = 1_767_000_000_000;
pub const SECOND: Millis = 1_000;
pub const MINUTE: Millis = 60_000;

pub fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

pub fn command(action: Action) -> Command {
    Command {
        tenant: Id::default_name(),
        actor: id("test"),
        action,
    }
}

pub fn revive() -> Shard {
    Shard::new(0, Rules::default(), 1)
}

pub fn reject() -> Shard {
    let late_confirm = LateConfirm::Reject;
    Shard::new(0, Rules { late_confirm }, 1)
}

/// `S*2`, `S@W1*2`: SKU, location, quantity.
pub fn ask(text: &str) -> AskLine {
    let PickLine {
        sku,
        quantity,
        location,
    } = pick(text);
    AskLine {
        sku,
        quantity,
        location,
        if_revision: None,
    }
}

pub fn pick(text: &str) -> PickLine {
    let (name, quantity) = text.split_once('*').unwrap_or((text, "1"));
    let (sku, location) = match name.split_once('@') {
        None => (name, None),
        Some((sku, location)) => (sku, Some(id(location))),
    };
    PickLine {
        sku: id(sku),
        quantity: quantity.parse().unwrap(),
        location,
    }
}

pub fn picks(text: &str) -> Option<Vec<PickLine>> {
    Some(text.split_whitespace().map(pick).collect())
}

pub fn reserve(reservation: &str, owner: &str, lines: &str) -> Reserve {
    Reserve {
        id: id(reservation),
        owner: id(owner),
        mode: Mode::Reserve,
        ttl_ms: 15 * MINUTE,
        lines: lines.split_whitespace().map(ask).collect(),
        supersedes: None,
    }
}

pub fn deduct(reservation: &str, owner: &str, lines: &str) -> Reserve {
    Reserve {
        mode: Mode::Deduct,
        ..reserve(reservation, owner, lines)
    }
}

pub fn confirm(reservation: &str) -> Confirm {
    Confirm {
        id: id(reservation),
        lines: None,
        payload: None,
    }
}

pub fn confirm_some(reservation: &str, lines: &str) -> Confirm {
    Confirm {
        lines: picks(lines),
        ..confirm(reservation)
    }
}

pub fn confirm_with(reservation: &str, owner: &str, lines: &str) -> Confirm {
    Confirm {
        payload: Some(ConfirmPayload {
            owner: id(owner),
            lines: lines.split_whitespace().map(ask).collect(),
        }),
        ..confirm(reservation)
    }
}

pub fn cancel(reservation: &str) -> Cancel {
    Cancel {
        id: id(reservation),
        reason: Reason::default(),
    }
}

pub fn extend(reservation: &str, ends_at: Millis) -> Extend {
    Extend {
        id: id(reservation),
        ends_at,
    }
}

pub fn give(own: &str, reservation: &str, lines: Option<Vec<PickLine>>) -> Return {
    Return {
        id: id(own),
        reservation: id(reservation),
        lines,
        reason: Reason::default(),
    }
}

pub fn set(own: &str, sku: &str, location: &str, target: u64, count: Count) -> Set {
    Set {
        id: id(own),
        sku: id(sku),
        location: id(location),
        target,
        count,
        expect: Expect::Any,
        reason: Reason::default(),
    }
}

pub fn adjust(own: &str, sku: &str, location: &str, delta: i64) -> Adjust {
    Adjust {
        id: id(own),
        sku: id(sku),
        location: id(location),
        delta,
        expect: Expect::Any,
        reason: Reason::default(),
    }
}

pub fn transfer(own: &str, sku: &str, from: &str, to: &str, quantity: u64) -> Transfer {
    Transfer {
        id: id(own),
        sku: id(sku),
        from: id(from),
        to: id(to),
        quantity,
        expect: Expect::Any,
        reason: Reason::default(),
    }
}

pub fn configure(own: &str, sku: &str, changes: Changes) -> Configure {
    Configure {
        id: id(own),
        sku: id(sku),
        changes,
        expect: Expect::Any,
        reason: Reason::default(),
    }
}

/// Anything that can be given to a shard.
pub trait IntoAction {
    fn into_action(self) -> Action;
}

macro_rules! into_action {
    ($($kind:ident),*) => {
        $(impl IntoAction for $kind {
            fn into_action(self) -> Action {
                Action::$kind(self)
            }
        })*
    };
}
into_action!(
    Reserve, Confirm, Cancel, Extend, Return, Set, Adjust, Transfer, Configure
);

impl IntoAction for Action {
    fn into_action(self) -> Action {
        self
    }
}

pub fn apply(shard: &mut Shard, now: Millis, action: impl IntoAction) -> Decision {
    shard.apply(now, &command(action.into_action()))
}

pub fn show(shard: &mut Shard, now: Millis, reservation: &str) -> Decision {
    let action = Action::ShowReservation { id: id(reservation) };
    shard.apply(now, &command(action))
}

pub fn stock(shard: &mut Shard, now: Millis, sku: &str) -> SkuRecord {
    let action = Action::ShowStock { sku: id(sku) };
    match shard.apply(now, &command(action)).reply {
        Reply::Done(Done {
            subject: Subject::Stock(stock),
            ..
        }) => stock.stock,
        other => panic!("{sku}: {other:?}"),
    }
}

/// A SKU with units at `default`.
pub fn supply(shard: &mut Shard, sku: &str, units: u64) {
    supply_at(shard, sku, "default", units);
}

pub fn supply_at(shard: &mut Shard, sku: &str, location: &str, units: u64) {
    let own = format!("supply-{sku}-{location}");
    let decision = apply(shard, T0, set(&own, sku, location, units, Count::Create));
    assert_eq!(code(&decision), "ok");
}

pub fn settings(shard: &mut Shard, sku: &str, changes: Changes) {
    let revision = stock(shard, T0, sku).revision;
    let decision = apply(
        shard,
        T0,
        configure(&format!("conf-{sku}-{revision}"), sku, changes),
    );
    assert_eq!(code(&decision), "ok", "{decision:?}");
}

/// `on_hand/reserved/sold` at a location.
pub fn counters(shard: &mut Shard, now: Millis, sku: &str, location: &str) -> Counters {
    stock(shard, now, sku)
        .locations
        .iter()
        .find(|found| found.location.as_str() == location)
        .unwrap_or_else(|| panic!("no location {location}"))
        .counters
}

pub fn three(counters: Counters) -> (u64, u64, u64) {
    (counters.on_hand, counters.reserved, counters.sold)
}

/// Counters as the shard holds them now, without a command that could end anything.
pub fn raw(shard: &Shard, sku: &str) -> Vec<(u64, u64, u64)> {
    shard
        .skus()
        .filter(|found| found.sku.as_str() == sku)
        .flat_map(|found| found.locations)
        .map(|location| three(location.counters))
        .collect()
}

pub fn available(shard: &mut Shard, now: Millis, sku: &str) -> u64 {
    let stock = stock(shard, now, sku);
    stock
        .locations
        .iter()
        .map(|location| location.counters.available())
        .sum()
}

/// The code of an answer, as every interface spells it.
pub fn code(decision: &Decision) -> &'static str {
    match &decision.reply {
        Reply::Done(done) => match done.code {
            DoneCode::Ok => "ok",
            DoneCode::Replayed => "replayed",
            DoneCode::Sealed => "sealed",
        },
        Reply::LookUp { .. } => "look_up",
        Reply::Again => "again",
        Reply::Corrupt { .. } => "corrupt",
        Reply::Refused(refusal) => match refusal {
            Refusal::InsufficientStock(_) => "insufficient_stock",
            Refusal::UnknownSku(_) => "unknown_sku",
            Refusal::RevisionConflict(_) => "revision_conflict",
            Refusal::LimitExceeded(_) => "limit_exceeded",
            Refusal::NotOpen(_) => "not_open",
            Refusal::Closed(_) => "closed",
            Refusal::Paused(_) => "paused",
            Refusal::BelowReserved { .. } => "below_reserved",
            Refusal::IdReused => "id_reused",
            Refusal::CrossShard => "cross_shard",
            Refusal::NotFound { .. } => "not_found",
            Refusal::Expired { reason, .. } => match reason {
                LateReason::Over => "expired",
                LateReason::Short(_) => "expired (short)",
                LateReason::Limit(_) => "expired (limit)",
            },
            Refusal::AlreadyConfirmed(_) => "already_confirmed",
            Refusal::AlreadyCancelled(_) => "already_cancelled",
            Refusal::NotConfirmed(_) => "not_confirmed",
            Refusal::Invalid(_) => "invalid",
        },
    }
}

/// The reservation that an answer shows.
pub fn shown(decision: &Decision) -> &Reservation {
    match &decision.reply {
        Reply::Done(Done { subject, .. }) => match subject {
            Subject::Reservation(reservation) => reservation,
            Subject::Return(both) => &both.1,
            Subject::Stock(_) => panic!("{decision:?}"),
        },
        Reply::Refused(
            Refusal::Expired { reservation, .. }
            | Refusal::AlreadyConfirmed(reservation)
            | Refusal::AlreadyCancelled(reservation)
            | Refusal::NotConfirmed(reservation),
        ) => reservation,
        _ => panic!("{decision:?}"),
    }
}

pub fn field(decision: &Decision) -> &str {
    match &decision.reply {
        Reply::Refused(Refusal::Invalid(fields)) => &fields[0].field,
        _ => panic!("{decision:?}"),
    }
}

/// Asked and available of the short lines.
pub fn short(decision: &Decision) -> Vec<(u32, u64, u64)> {
    match &decision.reply {
        Reply::Refused(
            Refusal::InsufficientStock(lines)
            | Refusal::Expired {
                reason: LateReason::Short(lines),
                ..
            },
        ) => lines
            .iter()
            .map(|line| (line.index, line.detail.asked, line.detail.available))
            .collect(),
        _ => panic!("{decision:?}"),
    }
}

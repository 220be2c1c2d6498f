//! What commands ask for, as the scripts take it. In a rush nearly everybody asks for the same, so that what is asked
//! (the shape) is sent once a batch, and each command is no more than its id, its owner and the number of its shape.

use std::collections::HashMap;

use stockade_core::payload::{self, SummedLine};
use stockade_core::{
    Action, AskLine, Changes, Command, Confirm, Count, Digest, Expect, Id, LateConfirm, Mode, PickLine,
    Record, Reserve, Return, Space,
};

use super::msgpack::{Map, Writer};
use crate::layout::{hex, name};
use crate::packed::{pack_command, pack_reservation, pack_return};
use crate::types::{Asked, Sent};

/// The arguments of a batch.
#[derive(Debug, Default)]
pub(super) struct Sending<'a> {
    /// A list of maps.
    pub(super) shapes: Vec<u8>,
    /// Of each command: its name, what else its script wants to see, the number of its shape.
    pub(super) texts: Vec<Text<'a>>,
}

/// One argument.
#[derive(Debug)]
pub(super) enum Text<'a> {
    Borrowed(&'a [u8]),
    Digest([u8; 16]),
    Owned(Vec<u8>),
    Nothing,
}

impl AsRef<[u8]> for Text<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Digest(bytes) => bytes,
            Self::Owned(bytes) => bytes,
            Self::Nothing => &[],
        }
    }
}

// A name, without a copy where the tenant needs none.
fn named<'a>(tenant: &Id, id: &'a Id) -> Text<'a> {
    if tenant.as_str() == crate::layout::DEFAULT {
        Text::Borrowed(id.as_str().as_bytes())
    } else {
        Text::Owned(name(tenant, id).into_bytes())
    }
}

pub(super) fn sending<'a>(sent: &Sent, asked: &[Asked<'a>]) -> Sending<'a> {
    let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut all = Writer::default();
    let mut texts = Vec::with_capacity(asked.len() * 4);
    for one in asked {
        let tenant = &one.command.tenant;
        let shape = shape(sent, one);
        match &one.command.action {
            Action::Reserve(reserve) => {
                texts.push(named(tenant, &reserve.id));
                texts.push(Text::Borrowed(reserve.owner.as_str().as_bytes()));
                let digest = payload::reservation(reserve.mode, &reserve.owner, &reserve.lines);
                texts.push(digest.map_or(Text::Nothing, |digest| Text::Digest(digest.0.to_be_bytes())));
            }
            Action::Confirm(confirm) => texts.push(named(tenant, &confirm.id)),
            Action::Cancel(cancel) => texts.push(named(tenant, &cancel.id)),
            Action::Extend(extend) => texts.push(named(tenant, &extend.id)),
            Action::Return(give) => texts.push(named(tenant, &give.id)),
            Action::Set(set) => texts.push(named(tenant, &set.id)),
            Action::Adjust(adjust) => texts.push(named(tenant, &adjust.id)),
            Action::Transfer(transfer) => texts.push(named(tenant, &transfer.id)),
            Action::Configure(configure) => texts.push(named(tenant, &configure.id)),
            Action::ShowReservation { id } => texts.push(named(tenant, id)),
            Action::ShowStock { sku } => texts.push(named(tenant, sku)),
        }
        let next = numbers.len() + 1;
        let number = *numbers.entry(shape).or_insert_with_key(|shape| {
            all.0.extend_from_slice(shape);
            next
        });
        texts.push(Text::Owned(number.to_string().into_bytes()));
    }
    let mut shapes = Writer::default();
    shapes.list(numbers.len());
    shapes.0.extend_from_slice(&all.0);
    Sending {
        shapes: shapes.0,
        texts,
    }
}

fn shape(sent: &Sent, one: &Asked<'_>) -> Vec<u8> {
    let command = one.command;
    let mut map = Map::default();
    known(&mut map, sent, one);
    match &command.action {
        Action::Reserve(reserve) => self::reserve(&mut map, one, reserve),
        Action::Confirm(confirm) => self::confirm(&mut map, sent, one, confirm),
        Action::Cancel(cancel) => map.key("reason").text(cancel.reason.as_str()),
        Action::Extend(extend) => map.key("ends").signed(extend.ends_at),
        Action::Return(give) => give_back(&mut map, command, give),
        Action::ShowReservation { .. } => {}
        Action::ShowStock { .. } => {
            map.key("stock").flag(true);
            absent(&mut map, one);
        }
        Action::Set(_) | Action::Adjust(_) | Action::Transfer(_) | Action::Configure(_) => {
            stock(&mut map, one, &command.action);
        }
    }
    map.key("actor").text(command.actor.as_str());
    map.bytes()
}

// The id that a command brings.
const fn own(action: &Action) -> Option<(Space, &Id)> {
    Some(match action {
        Action::Reserve(reserve) => (Space::Reservation, &reserve.id),
        Action::Confirm(confirm) => (Space::Reservation, &confirm.id),
        Action::Cancel(cancel) => (Space::Reservation, &cancel.id),
        Action::Extend(extend) => (Space::Reservation, &extend.id),
        Action::ShowReservation { id } => (Space::Reservation, id),
        Action::Return(give) => (Space::Return, &give.id),
        Action::Set(set) => (Space::Stock, &set.id),
        Action::Adjust(adjust) => (Space::Stock, &adjust.id),
        Action::Transfer(transfer) => (Space::Stock, &transfer.id),
        Action::Configure(configure) => (Space::Stock, &configure.id),
        Action::ShowStock { .. } => return None,
    })
}

// The ledger's words that were read in this epoch; the script compares their cursor.
fn known(map: &mut Map, sent: &Sent, one: &Asked<'_>) {
    let tenant = &one.command.tenant;
    let mut words = Map::default();
    let mut any = false;
    let own = own(&one.command.action);
    for known in one.known.iter().filter(|known| known.epoch == sent.epoch) {
        if known.record.is_none() && own == Some((known.space, &known.id)) {
            // What is said of most commands, so that it is in a shape that many share.
            map.key("unknown_at").number(known.cursor);
            continue;
        }
        let is = |tenant_found: &Id, id: &Id| tenant_found == tenant && *id == known.id;
        let packed = match (&known.record, known.space) {
            (None, _) => None,
            (Some(Record::Reservation(r)), Space::Reservation) if is(&r.tenant, &r.id) => {
                Some(pack_reservation(r, 0))
            }
            (Some(Record::Return(r)), Space::Return) if is(&r.tenant, &r.id) => Some(pack_return(r, 0)),
            (Some(Record::Stock(r)), Space::Stock) if is(&r.tenant, &r.id) => Some(pack_command(r, 0)),
            // Another record than was looked up says nothing.
            _ => continue,
        };
        any = true;
        let kind = space_letter(known.space);
        let word = words.key(&format!("{kind}{}", name(tenant, &known.id)));
        word.list(2);
        word.number(known.cursor);
        word.text_or_false(packed);
    }
    if any {
        words.put(map.key("known"));
    }
}

pub(super) const fn space_letter(space: Space) -> char {
    match space {
        Space::Reservation => 'r',
        Space::Return => 'x',
        Space::Stock => 'c',
    }
}

// Tokens of SKUs that the ledger does not know.
fn absent(map: &mut Map, one: &Asked<'_>) {
    if one.absent.is_empty() {
        return;
    }
    let mut tokens = Map::default();
    for absent in one.absent {
        tokens
            .key(&name(&one.command.tenant, &absent.sku))
            .text(hex(absent.token.0));
    }
    tokens.put(map.key("absent"));
}

fn lines(to: &mut Writer, tenant: &Id, lines: &[SummedLine<'_>]) {
    to.list(lines.len());
    for line in lines {
        let revisions: Vec<u64> = line.if_revision.iter().flatten().copied().collect();
        to.list(if revisions.is_empty() { 4 } else { 5 });
        to.text(named(tenant, line.sku));
        to.number(line.quantity);
        to.text_or_false(line.location.map(Id::as_str));
        to.number(u64::from(line.index));
        if !revisions.is_empty() {
            to.list(revisions.len());
            for revision in revisions {
                to.number(revision);
            }
        }
    }
}

fn reserve(map: &mut Map, one: &Asked<'_>, reserve: &Reserve) {
    let tenant = &one.command.tenant;
    map.key("mode").number(u64::from(reserve.mode == Mode::Deduct));
    map.key("ttl").signed(reserve.ttl_ms);
    lines(map.key("lines"), tenant, &payload::sum(&reserve.lines));
    if payload::check_reserve(reserve).is_err() {
        map.key("invalid").flag(true);
    }
    if let Some(old) = &reserve.supersedes {
        map.key("old").text(named(tenant, old));
        map.key("reason").text(format!("superseded by {}", reserve.id));
    }
    absent(map, one);
}

fn digest(to: &mut Writer, digest: Option<Digest>) {
    match digest {
        Some(digest) => to.text(digest.0.to_be_bytes()),
        None => to.text(""),
    }
}

fn picks(map: &mut Map, picks: Option<&[PickLine]>) {
    let Some(picks) = picks else { return };
    let to = map.key("picks");
    to.list(picks.len());
    for pick in picks {
        to.list(3);
        to.text(pick.sku.as_str());
        to.number(pick.quantity);
        to.text_or_false(pick.location.as_ref().map(Id::as_str));
    }
}

/// What a confirm picks of the lines of its payload, in their order; or the refusal.
pub(super) fn payload_picks(
    lines: &[AskLine],
    picks: Option<&[PickLine]>,
) -> Result<Option<Vec<u64>>, stockade_core::Refusal> {
    let Some(picks) = picks else { return Ok(None) };
    let keys: Vec<_> = payload::sum(lines)
        .iter()
        .map(|line| (line.sku, line.location, line.quantity))
        .collect();
    payload::pick(&keys, picks).map(Some)
}

fn confirm(map: &mut Map, sent: &Sent, one: &Asked<'_>, confirm: &Confirm) {
    map.key("late").text(match sent.late_confirm {
        LateConfirm::Revive => "revive",
        LateConfirm::Reject => "reject",
    });
    picks(map, confirm.lines.as_deref());
    let Some(asked) = &confirm.payload else { return };
    let mut inner = Map::default();
    inner.key("owner").text(asked.owner.as_str());
    lines(
        inner.key("lines"),
        &one.command.tenant,
        &payload::sum(&asked.lines),
    );
    let of = |mode| payload::reservation(mode, &asked.owner, &asked.lines);
    digest(inner.key("reserve_digest"), of(Mode::Reserve));
    digest(inner.key("deduct_digest"), of(Mode::Deduct));
    let units = payload_picks(&asked.lines, confirm.lines.as_deref());
    match (payload::check_payload(asked), units) {
        (Ok(()), Ok(None)) => {}
        (Ok(()), Ok(Some(units))) => {
            let to = inner.key("units");
            to.list(units.len());
            for units in units {
                to.number(units);
            }
        }
        (Err(_), _) | (_, Err(_)) => inner.key("invalid").flag(true),
    }
    absent(&mut inner, one);
    inner.put(map.key("payload"));
}

fn give_back(map: &mut Map, command: &Command, give: &Return) {
    map.key("reservation")
        .text(named(&command.tenant, &give.reservation));
    digest(map.key("digest"), Some(payload::give_back(give)));
    map.key("reason").text(give.reason.as_str());
    picks(map, give.lines.as_deref());
}

fn stock(map: &mut Map, one: &Asked<'_>, action: &Action) {
    let (verb, sku, expect, reason, own) = match action {
        Action::Set(set) => {
            map.key("location").text(set.location.as_str());
            map.key("target").number(set.target);
            match set.count {
                Count::Create => map.key("count").text("create"),
                Count::Seen { sold_seen } => {
                    map.key("count").text("seen");
                    map.key("seen").number(sold_seen);
                }
                Count::Force => map.key("count").text("force"),
            }
            if payload::check_set(set).is_err() {
                map.key("invalid").flag(true);
            }
            ("s", &set.sku, set.expect, &set.reason, payload::set(set))
        }
        Action::Adjust(adjust) => {
            map.key("location").text(adjust.location.as_str());
            map.key("delta").signed(adjust.delta);
            if payload::check_adjust(adjust).is_err() {
                map.key("invalid").flag(true);
            }
            (
                "a",
                &adjust.sku,
                adjust.expect,
                &adjust.reason,
                payload::adjust(adjust),
            )
        }
        Action::Transfer(transfer) => {
            map.key("from").text(transfer.from.as_str());
            map.key("to").text(transfer.to.as_str());
            map.key("quantity").number(transfer.quantity);
            if payload::check_transfer(transfer).is_err() {
                map.key("invalid").flag(true);
            }
            (
                "t",
                &transfer.sku,
                transfer.expect,
                &transfer.reason,
                payload::transfer(transfer),
            )
        }
        Action::Configure(configure) => {
            changes(map, &configure.changes);
            (
                "f",
                &configure.sku,
                configure.expect,
                &configure.reason,
                payload::configure(configure),
            )
        }
        // Of no other kind.
        _ => return,
    };
    map.key("verb").text(verb);
    map.key("sku").text(named(&one.command.tenant, sku));
    match expect {
        Expect::Any => {}
        Expect::Revision(revision) => map.key("expect").number(revision),
        Expect::Absent => map.key("expect").text("absent"),
    }
    map.key("reason").text(reason.as_str());
    digest(map.key("digest"), Some(own));
    absent(map, one);
}

fn changes(map: &mut Map, changes: &Changes) {
    if payload::check_changes(changes).is_err() {
        map.key("invalid").flag(true);
    }
    let to = map.key("safety");
    to.list(changes.safety_stock.len());
    for (location, floor) in &changes.safety_stock {
        to.list(2);
        to.text(location.as_str());
        to.number(*floor);
    }
    match changes.limit_per_owner {
        None => {}
        Some(None) => map.key("limit").flag(false),
        Some(Some(limit)) => map.key("limit").number(limit),
    }
    for (name, change) in [("opens", changes.opens_at), ("closes", changes.closes_at)] {
        if let Some(at) = change {
            map.key(name).text_or_false(at.map(|at| at.to_string()));
        }
    }
    if let Some(order) = &changes.order {
        let to = map.key("order");
        to.list(order.len());
        for location in order {
            to.text(location.as_str());
        }
    }
    for (name, change) in [("paused", changes.paused), ("split", changes.split)] {
        if let Some(flag) = change {
            map.key(name).flag(flag);
        }
    }
    if let Some(group) = &changes.group {
        map.key("group").text_or_false(group.as_ref().map(Id::as_str));
    }
    if changes.reset_usage {
        map.key("reset").flag(true);
    }
}

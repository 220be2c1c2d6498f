//! Entries: what a script put into the outbox, as core would have sealed it. The script writes what it decided and, for
//! each counter that it touched, the text before and after; the moves in between follow from what was decided, and have
//! to lead from the one to the other.
//!
//! ```text
//! entry   1 FS AT FS N FS { NAME FS LOCATION FS BEFORE_OR_NOTHING FS AFTER FS } (N times) effects
//! effect  VERB BEFORE ACTOR US REASON FS NAME FS VALUE, and more by verb, with FS between:
//!           R D C V X S E P L N  a reservation: VALUE is its packed form; BEFORE its status, - for none
//!           B                    a return: VALUE is its packed form; NAME FS VALUE of the reservation after it
//!           s a t f              a stock command: VALUE is its packed form; 1 if it made the SKU, else 0; the settings
//!                                (if it made or configured the SKU); M; M times LOCATION US ON_HAND US SAFETY_OR_NOTHING
//! ```

use std::collections::HashMap;

use smallvec::SmallVec;
use stockade_core::{
    Change, Counters, Effect, Entry, Id, Line, Millis, Move, QUANTITY_MAX, Reason, Reservation, ReturnRecord,
    Status, StockVerb, Verb,
};

use super::reservation::status_of;
use super::{unpack_command, unpack_counters, unpack_reservation, unpack_return, unpack_settings};
use crate::layout::{FS, US, number, split_name};

const DIGEST: usize = 16;

/// An entry from the bytes of its field `e`; `None` if they are not what a script writes.
pub fn unpack_entry(shard: u32, epoch: u64, seq: u64, tag: u64, prev: u64, packed: &[u8]) -> Option<Entry> {
    let mut parts = Parts(Some(packed));
    if parts.text()? != "1" {
        return None;
    }
    let at = number(parts.text()?)?;
    let mut counters = Touched::read(&mut parts)?;
    let mut effects = Vec::new();
    while parts.0.is_some() {
        effects.push(effect(&mut parts, at, &mut counters)?);
    }
    (counters.are_as_written() && !effects.is_empty()).then_some(Entry {
        shard,
        epoch,
        seq,
        tag,
        prev,
        at,
        effects,
    })
}

// What is left to read; nothing after the last part.
struct Parts<'a>(Option<&'a [u8]>);

impl<'a> Parts<'a> {
    /// The next part, in which the first `raw` bytes may be anything.
    fn next(&mut self, raw: usize) -> Option<&'a [u8]> {
        let rest = self.0?;
        let text = rest.get(raw..)?;
        if let Some(at) = text.iter().position(|byte| *byte == FS as u8) {
            self.0 = Some(&text[at + 1..]);
            Some(&rest[..raw + at])
        } else {
            self.0 = None;
            Some(rest)
        }
    }
    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.next(0)?).ok()
    }
    fn name(&mut self) -> Option<(Id, Id)> {
        split_name(self.text()?)
    }
    fn reservation(&mut self) -> Option<Reservation> {
        let (tenant, id) = self.name()?;
        Some(unpack_reservation(tenant, id, self.next(2 + DIGEST)?)?.0)
    }
}

type Key = (Id, Id, Id);

// Counters of each (tenant, SKU, location): as they are, and as they have to become.
struct Touched(HashMap<Key, (Counters, Counters)>);

impl Touched {
    fn read(parts: &mut Parts<'_>) -> Option<Self> {
        let mut all = HashMap::new();
        for _ in 0..number::<u32>(parts.text()?)? {
            let (tenant, sku) = parts.name()?;
            let location = Id::new(parts.text()?).ok()?;
            let before = match parts.text()? {
                "" => Counters::default(),
                text => unpack_counters(text)?,
            };
            let after = unpack_counters(parts.text()?)?;
            all.insert((tenant, sku, location), (before, after));
        }
        Some(Self(all))
    }

    fn are_as_written(&self) -> bool {
        self.0.values().all(|(now, after)| now == after)
    }

    fn carry(&mut self, tenant: &Id, mut shifts: Vec<Shift>) -> Option<SmallVec<[Move; 1]>> {
        if shifts.len() > 1 {
            shifts.sort_by(|one, two| one.key().cmp(&two.key()));
            shifts.dedup_by(|next, first| {
                let same = next.key() == first.key();
                if same {
                    first.on_hand += next.on_hand;
                    first.reserved += next.reserved;
                    first.sold += next.sold;
                }
                same
            });
        }
        shifts
            .into_iter()
            .map(|shift| {
                let key = (tenant.clone(), shift.sku, shift.location);
                let (now, _) = self.0.get_mut(&key)?;
                *now = Counters {
                    on_hand: now.on_hand.checked_add_signed(shift.on_hand)?,
                    reserved: now.reserved.checked_add_signed(shift.reserved)?,
                    sold: now.sold.checked_add_signed(shift.sold)?,
                    safety_stock: shift.safety_stock.unwrap_or(now.safety_stock),
                    version: now.version.checked_add(1)?,
                };
                let (_, sku, location) = key;
                Some(Move {
                    sku,
                    location,
                    on_hand: shift.on_hand,
                    reserved: shift.reserved,
                    sold: shift.sold,
                    after: *now,
                })
            })
            .collect()
    }
}

struct Shift {
    sku: Id,
    location: Id,
    on_hand: i64,
    reserved: i64,
    sold: i64,
    safety_stock: Option<u64>,
}

impl Shift {
    fn key(&self) -> (&Id, &Id) {
        (&self.sku, &self.location)
    }
}

fn effect(parts: &mut Parts<'_>, at: Millis, counters: &mut Touched) -> Option<Effect> {
    let head = parts.text()?;
    let mut letters = head.bytes();
    let (verb, before) = (letters.next()?, letters.next()?);
    let (actor, reason) = head.get(2..)?.split_once(US)?;
    let (change, moves) = match verb {
        b'B' => given_back(parts, counters)?,
        b's' | b'a' | b't' | b'f' => stock(parts, counters, verb)?,
        _ => reservation(parts, counters, verb, before)?,
    };
    Some(Effect {
        at,
        actor: Id::new(actor).ok()?,
        reason: Reason::new(reason).ok()?,
        change,
        moves,
    })
}

type Changed = (Change, SmallVec<[Move; 1]>);

fn reservation(parts: &mut Parts<'_>, counters: &mut Touched, verb: u8, before: u8) -> Option<Changed> {
    let verb = match verb {
        b'R' => Verb::Reserve,
        b'D' => Verb::Deduct,
        b'C' => Verb::Confirm,
        b'V' => Verb::Revive,
        b'X' => Verb::Cancel,
        b'S' => Verb::Seal,
        b'E' => Verb::Extend,
        b'P' => Verb::Expire,
        b'L' => Verb::Lose,
        b'N' => Verb::Note,
        _ => return None,
    };
    let before = match before {
        b'-' => None,
        letter => Some(status_of(letter)?),
    };
    let after = parts.reservation()?;
    let released = before == Some(Status::Pending);
    let mut shifts = Vec::new();
    for (line, a) in after
        .lines
        .iter()
        .flat_map(|line| line.allocations.iter().map(move |a| (line, a)))
    {
        let quantity = i64::try_from(a.quantity).ok()?;
        let sold = i64::try_from(a.confirmed).ok()?;
        let (on_hand, reserved, sold) = match verb {
            Verb::Reserve => (0, quantity, 0),
            Verb::Deduct | Verb::Revive => (-sold, 0, sold),
            Verb::Confirm => (-sold, -quantity, sold),
            Verb::Cancel | Verb::Expire if released => (0, -quantity, 0),
            Verb::Cancel | Verb::Expire | Verb::Seal | Verb::Extend | Verb::Lose | Verb::Note => (0, 0, 0),
        };
        push(&mut shifts, line, &a.location, (on_hand, reserved, sold));
    }
    let moves = counters.carry(&after.tenant, shifts)?;
    Some((Change::Reservation { verb, before, after }, moves))
}

// No move where nothing changes.
fn push(shifts: &mut Vec<Shift>, line: &Line, location: &Id, (on_hand, reserved, sold): (i64, i64, i64)) {
    if (on_hand, reserved, sold) != (0, 0, 0) {
        shifts.push(Shift {
            sku: line.sku.clone(),
            location: location.clone(),
            on_hand,
            reserved,
            sold,
            safety_stock: None,
        });
    }
}

fn given_back(parts: &mut Parts<'_>, counters: &mut Touched) -> Option<Changed> {
    let (tenant, id) = parts.name()?;
    let (record, _) = unpack_return(tenant, id, parts.next(DIGEST)?)?;
    let after = parts.reservation()?;
    let mut shifts = Vec::new();
    for line in &after.lines {
        let mut left = units_back(&record, line);
        // What came back last lies nearest to the front, since returns fill from the end.
        for a in &line.allocations {
            let back = left.min(a.returned);
            left -= back;
            let back = i64::try_from(back).ok()?;
            push(&mut shifts, line, &a.location, (back, 0, -back));
        }
    }
    let moves = counters.carry(&after.tenant, shifts)?;
    Some((Change::Return { record, after }, moves))
}

fn units_back(record: &ReturnRecord, line: &Line) -> u64 {
    let of_line = |one: &&stockade_core::ReturnedLine| one.sku == line.sku && one.location == line.location;
    record.lines.iter().filter(of_line).map(|one| one.quantity).sum()
}

fn stock(parts: &mut Parts<'_>, counters: &mut Touched, verb: u8) -> Option<Changed> {
    let (tenant, id) = parts.name()?;
    let (record, _) = unpack_command(tenant, id, parts.next(DIGEST)?)?;
    let created = match parts.text()? {
        "1" => true,
        "0" => false,
        _ => return None,
    };
    let verb = match verb {
        b's' => StockVerb::Set,
        b'a' => StockVerb::Adjust,
        b't' => StockVerb::Transfer,
        _ => StockVerb::Configure,
    };
    let settings = parts.text()?;
    let settings = if created || verb == StockVerb::Configure {
        Some(unpack_settings(settings)?)
    } else {
        None
    };
    let mut shifts = Vec::new();
    for _ in 0..number::<u32>(parts.text()?)? {
        let mut fields = parts.text()?.split(US);
        let (location, on_hand, safety) = (fields.next()?, fields.next()?, fields.next()?);
        shifts.push(Shift {
            sku: record.sku.clone(),
            location: Id::new(location).ok()?,
            on_hand: on_hand
                .parse()
                .ok()
                .filter(|n: &i64| n.unsigned_abs() <= QUANTITY_MAX)?,
            reserved: 0,
            sold: 0,
            safety_stock: match safety {
                "" => None,
                safety => Some(number(safety)?),
            },
        });
    }
    let moves = counters.carry(&record.tenant, shifts)?;
    let change = Change::Stock {
        verb,
        record,
        settings,
        created,
    };
    Some((change, moves))
}

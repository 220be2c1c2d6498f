//! Lines as asked: summed per (SKU, location asked), sorted, and checked for their ranges.

use alloc::format;
use alloc::vec::Vec;
use smallvec::SmallVec;

use super::digest;
use super::stop::{Stop, Try, field, invalid};
use crate::command::{AskLine, Mode, PickLine};
use crate::id::{Id, LINES_MAX, QUANTITY_MAX};
use crate::record::Digest;
use crate::reply::{InvalidField, Refusal, RefusedLine};

/// A summed line.
#[derive(Clone, Debug)]
pub(super) struct Ask<'a> {
    /// The first of the input lines that were summed.
    pub(super) index: u32,
    pub(super) sku: &'a Id,
    pub(super) location: Option<&'a Id>,
    /// The sum; beyond 2^53-1 it is refused before it is used.
    pub(super) quantity: u64,
    /// The first revision asked for, and the first other one: if any of them fails, one of these does.
    pub(super) if_revision: [Option<u64>; 2],
    /// The SKU's slot, once it is known.
    pub(super) slot: u32,
}

pub(super) type Asks<'a> = SmallVec<[Ask<'a>; 1]>;

impl<'a> Ask<'a> {
    pub(super) fn key(&self) -> (&'a Id, Option<&'a Id>) {
        (self.sku, self.location)
    }

    /// A row of a refusal.
    pub(super) fn row<T>(&self, detail: T) -> RefusedLine<T> {
        RefusedLine {
            index: self.index,
            sku: self.sku.clone(),
            location: self.location.cloned(),
            detail,
        }
    }
}

/// Sums and sorts; of a list whose length is out of range, nothing.
pub(super) fn sum(lines: &[AskLine]) -> Asks<'_> {
    if lines.len() > LINES_MAX {
        return Asks::new();
    }
    let mut asks: Asks<'_> = (0..)
        .zip(lines)
        .map(|(index, line)| Ask {
            index,
            sku: &line.sku,
            location: line.location.as_ref(),
            quantity: line.quantity,
            if_revision: [line.if_revision, None],
            slot: u32::MAX,
        })
        .collect();
    if asks.len() > 1 {
        asks.sort_by(|one, two| one.key().cmp(&two.key()));
        // A stable sort: the first of equal keys is the first of the input.
        asks.dedup_by(|next, first| {
            let same = next.key() == first.key();
            if same {
                first.quantity = first.quantity.saturating_add(next.quantity);
                match (first.if_revision, next.if_revision[0]) {
                    ([None, _], revision) => first.if_revision[0] = revision,
                    ([Some(one), None], Some(two)) if one != two => first.if_revision[1] = Some(two),
                    ([Some(_), _], _) => {}
                }
            }
            same
        });
    }
    asks
}

/// The digest of summed lines; `None` for lines that could never have been granted.
pub(super) fn digest_of(mode: Mode, owner: &Id, asks: &[Ask<'_>]) -> Option<Digest> {
    let granted = !asks.is_empty() && asks.iter().all(|ask| ask.quantity <= QUANTITY_MAX);
    granted.then(|| {
        let lines = asks.iter().map(|ask| (ask.sku, ask.location, ask.quantity));
        digest::reservation(mode, owner, lines)
    })
}

/// Every value of the lines that is out of its range.
pub(super) fn check(lines: &[AskLine], asks: &[Ask<'_>], wrong: &mut Vec<InvalidField>) {
    if lines.is_empty() || lines.len() > LINES_MAX {
        wrong.push(field("lines", lines.len(), format!("1..={LINES_MAX} lines")));
        return;
    }
    for (index, line) in lines.iter().enumerate() {
        if line.quantity == 0 || line.quantity > QUANTITY_MAX {
            wrong.push(field(
                format!("lines[{index}].quantity"),
                line.quantity,
                format!("1..={QUANTITY_MAX}"),
            ));
        }
    }
    if wrong.is_empty() {
        for ask in asks.iter().filter(|ask| ask.quantity > QUANTITY_MAX) {
            wrong.push(field(
                format!("lines[{}].quantity", ask.index),
                ask.quantity,
                format!("1..={QUANTITY_MAX}, summed over lines of the same SKU and location"),
            ));
        }
    }
}

/// What is picked of one line of a reservation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Picked {
    pub(super) units: u64,
    /// Where the line stands in the command: of picks that were summed, the first.
    pub(super) index: u32,
}

pub(super) type Picks = SmallVec<[Picked; 1]>;

/// Matches picks with lines, given as (SKU, location asked, room): for each line what is picked of it, 0 if it is not
/// named.
pub(super) fn pick(lines: &[(&Id, Option<&Id>, u64)], picks: &[PickLine]) -> Try<Picks> {
    if picks.is_empty() || picks.len() > LINES_MAX {
        return Err(invalid("lines", picks.len(), format!("1..={LINES_MAX} lines")));
    }
    let mut found: SmallVec<[Option<Picked>; 1]> = lines.iter().map(|_| None).collect();
    let mut wrong = Vec::new();
    for (index, pick) in (0_u32..).zip(picks) {
        if pick.quantity == 0 || pick.quantity > QUANTITY_MAX {
            wrong.push(field(
                format!("lines[{index}].quantity"),
                pick.quantity,
                format!("1..={QUANTITY_MAX}"),
            ));
            continue;
        }
        let line = lines
            .iter()
            .zip(&mut found)
            .find(|((sku, location, _), _)| **sku == pick.sku && *location == pick.location.as_ref());
        let Some((_, picked)) = line else {
            wrong.push(field(
                format!("lines[{index}].sku"),
                &pick.sku,
                "a (SKU, location asked) of the reservation",
            ));
            continue;
        };
        let picked = picked.get_or_insert(Picked { units: 0, index });
        picked.units = picked.units.saturating_add(pick.quantity);
    }
    if wrong.is_empty() {
        for ((_, _, room), picked) in lines.iter().zip(&found) {
            if let Some(picked) = picked
                && picked.units > *room
            {
                let allowed = match room {
                    0 => "nothing: none is left of this line".into(),
                    room => format!("1..={room}"),
                };
                wrong.push(field(
                    format!("lines[{}].quantity", picked.index),
                    picked.units,
                    allowed,
                ));
            }
        }
    }
    if wrong.is_empty() {
        Ok(found.into_iter().map(Option::unwrap_or_default).collect())
    } else {
        Err(Stop::from(Refusal::Invalid(wrong)))
    }
}

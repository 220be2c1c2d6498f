//! What is worked out of a command alone, for hot tiers that decide elsewhere: summed lines, digests, and the words of a
//! refusal once its numbers are known. The shard itself uses the same functions, so that the rules are written once.

use alloc::vec::Vec;

use super::stop::{Stop, Try};
use super::{ask, cancel, configure as settings, digest, giveback, reserve as grants, stock};
use crate::command::{
    Adjust, AskLine, Changes, Configure, ConfirmPayload, Extend, Mode, PickLine, Reserve, Return, Set,
    Transfer,
};
use crate::id::{Id, Millis};
use crate::record::{Counters, Digest};
use crate::reply::Refusal;

/// A line summed per (SKU, location asked).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummedLine<'a> {
    /// The first of the input lines that were summed.
    pub index: u32,
    /// The SKU.
    pub sku: &'a Id,
    /// The location asked for, if one was.
    pub location: Option<&'a Id>,
    /// The sum.
    pub quantity: u64,
    /// The first revision asked for, and the first other one.
    pub if_revision: [Option<u64>; 2],
}

// None of these functions stops for another reason than a refusal.
fn refused<T>(tried: Try<T>) -> Result<T, Refusal> {
    tried.map_err(|stop| match stop {
        Stop::Refused(refusal, _) => refusal,
        Stop::LookUp(..) | Stop::Again | Stop::Corrupt(_) => Refusal::Invalid(Vec::new()),
    })
}

/// Lines summed and sorted; of a list whose length is out of range, nothing.
pub fn sum(lines: &[AskLine]) -> Vec<SummedLine<'_>> {
    ask::sum(lines)
        .into_iter()
        .map(|ask| SummedLine {
            index: ask.index,
            sku: ask.sku,
            location: ask.location,
            quantity: ask.quantity,
            if_revision: ask.if_revision,
        })
        .collect()
}

/// The digest of a reservation's payload; `None` for one that could never have been granted.
pub fn reservation(mode: Mode, owner: &Id, lines: &[AskLine]) -> Option<Digest> {
    ask::digest_of(mode, owner, &ask::sum(lines))
}
/// The digest of a return.
pub fn give_back(give: &Return) -> Digest {
    digest::give_back(&give.reservation, give.lines.as_deref())
}
/// The digest of a count.
pub fn set(set: &Set) -> Digest {
    digest::set(set)
}
/// The digest of a signed change.
pub fn adjust(adjust: &Adjust) -> Digest {
    digest::adjust(adjust)
}
/// The digest of a transfer.
pub fn transfer(transfer: &Transfer) -> Digest {
    digest::transfer(transfer)
}
/// The digest of a change of settings.
pub fn configure(configure: &Configure) -> Digest {
    digest::configure(configure)
}

/// Whether a reserve's values are in their ranges.
pub fn check_reserve(reserve: &Reserve) -> Result<(), Refusal> {
    refused(grants::check_values(reserve, &ask::sum(&reserve.lines)))
}
/// Whether the values of a payload that comes with a confirm are in their ranges.
pub fn check_payload(payload: &ConfirmPayload) -> Result<(), Refusal> {
    let mut wrong = Vec::new();
    ask::check(&payload.lines, &ask::sum(&payload.lines), &mut wrong);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Invalid(wrong))
    }
}
/// Whether changed settings are in their ranges.
pub fn check_changes(changes: &Changes) -> Result<(), Refusal> {
    refused(settings::check_values(changes))
}
/// Whether a count's values are in their ranges, as far as that can be told without the SKU.
pub fn check_set(set: &Set) -> Result<(), Refusal> {
    refused(stock::check_set(set))
}
/// Whether a signed change is in its range, as far as that can be told without the SKU.
pub fn check_adjust(adjust: &Adjust) -> Result<(), Refusal> {
    refused(stock::check_adjust(adjust))
}
/// Whether a transfer's values are in their ranges, as far as that can be told without the SKU.
pub fn check_transfer(transfer: &Transfer) -> Result<(), Refusal> {
    refused(stock::check_transfer(transfer))
}

/// Units picked of each line, given as (SKU, location asked, room).
pub fn pick(lines: &[(&Id, Option<&Id>, u64)], picks: &[PickLine]) -> Result<Vec<u64>, Refusal> {
    let picked = refused(ask::pick(lines, picks))?;
    Ok(picked.into_iter().map(|one| one.units).collect())
}
/// The refusal of a new end that is not within its range at this time.
pub fn bad_end(extend: &Extend, clock: Millis) -> Refusal {
    cancel::bad_end(extend, clock)
}
/// The refusal of a return of everything when nothing is left.
pub fn nothing_left() -> Refusal {
    giveback::nothing_left()
}
/// The refusal of a further location of a SKU that has as many as it may.
pub fn no_more_locations(location: &Id) -> Refusal {
    stock::no_more_locations(location)
}
/// What a count changes `on_hand` by, at a location that exists or not.
pub fn counted(set: &Set, exists: bool, before: Counters) -> Result<i64, Refusal> {
    refused(stock::counted(set, exists, before))
}
/// Whether `on_hand` may change so by an adjust.
pub fn adjusted(adjust: &Adjust, before: Counters) -> Result<(), Refusal> {
    refused(stock::adjusted(adjust, before))
}
/// Whether `on_hand` of one of its locations may change so by a transfer.
pub fn transferred(transfer: &Transfer, location: &Id, before: Counters) -> Result<(), Refusal> {
    refused(stock::transferred(transfer, location, before))
}
/// Whether a sale opens before it closes.
pub fn check_window(opens_at: Option<Millis>, closes_at: Option<Millis>) -> Result<(), Refusal> {
    refused(settings::check_window(opens_at, closes_at))
}

//! A stock spread over several keys. [`Segments`](crate::segments::Segments) puts these calls together.

use redis::Value;

use super::{call, script};
use crate::call::{count, flag, number, numbers};

script!(SEGMENT_INIT, "segment_init");
script!(SEGMENT_DEDUCT, "segment_deduct");
script!(SEGMENT_GATHER, "segment_gather");
script!(SEGMENT_RESTORE, "segment_restore");
script!(SEGMENT_PART, "segment_part");

/// Spreads a stock evenly over segments that are not there yet. Answers whether it did.
#[derive(Clone, Copy, Debug)]
pub struct SegmentInit<'a> {
    pub segments: &'a [String],
    pub total: u64,
}

call! {
    SegmentInit<'_>, SEGMENT_INIT => bool,
    keys ["segments"] |call| call.segments.iter().map(String::as_str).collect(),
    args ["total"] |call, to| to.number(call.total),
    reply |reply| flag(number(reply)?)
}

/// What was taken from which segment; segments count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub segment: u64,
    pub units: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentReply {
    Done {
        parts: Vec<Part>,
        replayed: bool,
    },
    /// No single segment has enough; all together have.
    Gather {
        sum: u64,
    },
    Short {
        sum: u64,
    },
    NoSuchSegment {
        segment: u64,
    },
    OtherQuantity,
    GivenBack,
}

fn segment_reply(reply: &Value) -> Option<SegmentReply> {
    match numbers(reply)?.as_slice() {
        [1, replayed, parts @ ..] => Some(SegmentReply::Done {
            parts: parts_of(parts)?,
            replayed: flag(*replayed)?,
        }),
        &[0, sum] => Some(SegmentReply::Gather { sum: count(sum)? }),
        &[-1, sum] => Some(SegmentReply::Short { sum: count(sum)? }),
        &[-2, segment] => Some(SegmentReply::NoSuchSegment {
            segment: count(segment)?,
        }),
        [-4, 0] => Some(SegmentReply::OtherQuantity),
        [-6, 0] => Some(SegmentReply::GivenBack),
        _ => None,
    }
}

fn parts_of(numbers: &[i64]) -> Option<Vec<Part>> {
    let pairs = numbers.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| {
            Some(Part {
                segment: count(pair[0])?,
                units: count(pair[1])?,
            })
        })
        .collect()
}

fn order_first<'a>(order: &'a str, segments: &'a [String]) -> Vec<&'a str> {
    std::iter::once(order)
        .chain(segments.iter().map(String::as_str))
        .collect()
}

/// Takes units from one segment: the caller's own, or the next one that has enough.
#[derive(Clone, Copy, Debug)]
pub struct SegmentDeduct<'a> {
    pub order: &'a str,
    pub segments: &'a [String],
    pub quantity: u64,
    pub caller: &'a str,
    pub keep_ms: u64,
}

call! {
    SegmentDeduct<'_>, SEGMENT_DEDUCT => SegmentReply,
    keys ["order", "segments"] |call| order_first(call.order, call.segments),
    args ["quantity", "caller", "keep"] |call, to|
        to.number(call.quantity).text(call.caller).number(call.keep_ms),
    reply |reply| segment_reply(reply)
}

/// Takes units from as many segments as it needs.
#[derive(Clone, Copy, Debug)]
pub struct SegmentGather<'a> {
    pub order: &'a str,
    pub segments: &'a [String],
    pub quantity: u64,
    pub caller: &'a str,
    pub keep_ms: u64,
}

call! {
    SegmentGather<'_>, SEGMENT_GATHER => SegmentReply,
    keys ["order", "segments"] |call| order_first(call.order, call.segments),
    args ["quantity", "caller", "keep"] |call, to|
        to.number(call.quantity).text(call.caller).number(call.keep_ms),
    reply |reply| segment_reply(reply)
}

/// Gives back what an order took.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRestore<'a> {
    pub order: &'a str,
    pub segments: &'a [String],
    pub keep_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentRestoreReply {
    Done { parts: Vec<Part>, replayed: bool },
    NoSuchSegment { segment: u64 },
    UnknownOrder,
}

call! {
    SegmentRestore<'_>, SEGMENT_RESTORE => SegmentRestoreReply,
    keys ["order", "segments"] |call| order_first(call.order, call.segments),
    args ["keep"] |call, to| to.number(call.keep_ms),
    reply |reply| match numbers(reply)?.as_slice() {
        [1, replayed, parts @ ..] => {
            Some(SegmentRestoreReply::Done { parts: parts_of(parts)?, replayed: flag(*replayed)? })
        }
        &[-2, segment] => Some(SegmentRestoreReply::NoSuchSegment { segment: count(segment)? }),
        [-5, 0] => Some(SegmentRestoreReply::UnknownOrder),
        _ => None,
    }
}

/// One segment's share of an order that is gathered over several nodes.
#[derive(Clone, Copy, Debug)]
pub struct SegmentPart<'a> {
    pub segment: &'a str,
    pub order: &'a str,
    pub quantity: u64,
    /// With fewer than this there, none are taken.
    pub least: u64,
    pub keep_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartReply {
    /// 0 units are remembered too.
    Taken {
        units: u64,
        replayed: bool,
    },
    NoSuchSegment,
    OtherQuantity,
    GivenBack,
}

call! {
    SegmentPart<'_>, SEGMENT_PART => PartReply,
    keys ["segment", "order"] |call| vec![call.segment, call.order],
    args ["quantity", "least", "keep"] |call, to|
        to.number(call.quantity).number(call.least).number(call.keep_ms),
    reply |reply| match *numbers(reply)?.as_slice() {
        [-2, 0] => Some(PartReply::NoSuchSegment),
        [-4, 0] => Some(PartReply::OtherQuantity),
        [-6, 0] => Some(PartReply::GivenBack),
        [units, replayed] => Some(PartReply::Taken { units: count(units)?, replayed: flag(replayed)? }),
        _ => None,
    }
}

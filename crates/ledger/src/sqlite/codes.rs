//! How values are stored, in both directions.

use rusqlite::types::Type;
use stockade_core::{Digest, Id, Mode, QUANTITY_MAX, Status, StockVerb, Verb};

use crate::api::ShardMode;

/// A stored value that cannot be.
pub(super) fn wrong(column: usize, what: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Null, what.into())
}

pub(super) fn status_code(status: Status) -> i64 {
    match status {
        Status::Pending => 0,
        Status::Confirmed => 1,
        Status::Cancelled => 2,
        Status::Expired => 3,
        Status::Lost => 4,
    }
}

pub(super) fn status(column: usize, code: i64) -> rusqlite::Result<Status> {
    Status::ALL
        .into_iter()
        .find(|status| status_code(*status) == code)
        .ok_or_else(|| wrong(column, format!("status {code}")))
}

pub(super) fn mode_code(mode: Mode) -> i64 {
    match mode {
        Mode::Reserve => 0,
        Mode::Deduct => 1,
    }
}

pub(super) fn mode(column: usize, code: i64) -> rusqlite::Result<Mode> {
    match code {
        0 => Ok(Mode::Reserve),
        1 => Ok(Mode::Deduct),
        _ => Err(wrong(column, format!("mode {code}"))),
    }
}

pub(super) fn shard_mode(column: usize, text: &str) -> rusqlite::Result<ShardMode> {
    match text {
        "hot" => Ok(ShardMode::Hot),
        "sql" => Ok(ShardMode::Sql),
        "rebuild" => Ok(ShardMode::Rebuild),
        _ => Err(wrong(column, format!("mode {text:?}"))),
    }
}

/// The words of movements by their stored code.
pub(super) const KINDS: [&str; 16] = [
    "reserve",
    "deduct",
    "confirm",
    "revive",
    "cancel",
    "seal",
    "extend",
    "expire",
    "lose",
    "note",
    "return",
    "set",
    "adjust",
    "transfer",
    "configure",
    "repair",
];

pub(super) const RESERVE: i64 = 0;
pub(super) const DEDUCT: i64 = 1;
pub(super) const RETURN: i64 = 10;
pub(super) const REPAIR: i64 = 15;

pub(super) fn verb_code(verb: Verb) -> i64 {
    match verb {
        Verb::Reserve => RESERVE,
        Verb::Deduct => DEDUCT,
        Verb::Confirm => 2,
        Verb::Revive => 3,
        Verb::Cancel => 4,
        Verb::Seal => 5,
        Verb::Extend => 6,
        Verb::Expire => 7,
        Verb::Lose => 8,
        Verb::Note => 9,
    }
}

pub(super) fn stock_verb_code(verb: StockVerb) -> i64 {
    match verb {
        StockVerb::Set => 11,
        StockVerb::Adjust => 12,
        StockVerb::Transfer => 13,
        StockVerb::Configure => 14,
    }
}

pub(super) fn kind(column: usize, code: i64) -> rusqlite::Result<&'static str> {
    usize::try_from(code)
        .ok()
        .and_then(|code| KINDS.get(code).copied())
        .ok_or_else(|| wrong(column, format!("kind {code}")))
}

pub(super) fn digest(column: usize, bytes: &[u8]) -> rusqlite::Result<Digest> {
    <[u8; 16]>::try_from(bytes)
        .map(|bytes| Digest(u128::from_be_bytes(bytes)))
        .map_err(|_| wrong(column, format!("a digest of {} bytes", bytes.len())))
}

pub(super) fn id(column: usize, text: &str) -> rusqlite::Result<Id> {
    Id::new(text).map_err(|error| wrong(column, format!("an id that {error}")))
}

/// A count as it is stored.
pub(super) fn count(column: usize, value: i64) -> rusqlite::Result<u64> {
    u64::try_from(value)
        .ok()
        .filter(|count| *count <= QUANTITY_MAX)
        .ok_or_else(|| wrong(column, format!("count {value}")))
}

/// Places in a reservation's allocations: more than lines times locations.
pub(super) const PLACES: i64 = 16_384;

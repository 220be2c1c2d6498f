//! Where a shard's state lies on Redis, and how each value is written: the one place that says so. The Lua under
//! `lua/include` reads and writes the same forms; the tests compare the two.
//!
//! # Keys
//!
//! `TAG` is `{PREFIX:SHARD}`, the same in every key of a shard, so that they all lie in one slot; it holds nothing that
//! a user wrote. All keys but the first two carry the epoch, so that nothing of an old one can be read or hit.
//!
//! | key | type | what |
//! |---|---|---|
//! | `TAG:meta` | hash | `epoch`, `open` (0, 1), `seq`, `tag`, `base_seq`, `base_tag`, `clock`, `forgot`, `count`, `live`, `chunks` |
//! | `TAG:epochs` | set | epochs that have keys |
//! | `TAG:EPOCH:sku:NAME` | hash | a SKU, for people too: see below |
//! | `TAG:EPOCH:reservations` | hash | NAME: a reservation, packed; `count` of meta is how many |
//! | `TAG:EPOCH:returns` | hash | NAME: a return, packed |
//! | `TAG:EPOCH:commands` | hash | NAME: a stock command, packed |
//! | `TAG:EPOCH:ends` | zset | seconds that have a bucket, scored by themselves |
//! | `TAG:EPOCH:end:SECOND` | list | the NAME of each reservation with an end in `(SECOND - 1, SECOND]`, in seconds |
//! | `TAG:EPOCH:usage` | hash | NAME RS owner: `ERA:UNITS`, of SKUs that are tracked; no 0 is kept |
//! | `TAG:EPOCH:markers` | hash | NAME of a SKU: `loading TOKEN EPOCH SEQ TAG` or `absent TOKEN SECOND` |
//! | `TAG:EPOCH:ended` | list | records that ended, oldest change first: see below |
//! | `TAG:EPOCH:outbox` | stream | entries, id `EPOCH-SEQ`: fields `tag`, `prev`, `e` |
//!
//! In `meta`, `seq` and `tag` are the tip's, `base_seq` and `base_tag` those of the entry up to which the outbox was
//! trimmed (at opening, the ledger's cursor); `clock` is the latest time seen, `forgot` the highest entry of an id that
//! is not held here, `live` the number of pending reservations. Tags are 16 digits of hex, tokens too; everything else
//! is decimal.
//!
//! NAME is the id itself in the tenant `default`, else `TENANT US ID`. Ids have no control characters, so that the
//! separators below are never a part of one: US 0x1f, RS 0x1e, GS 0x1d, FS 0x1c.
//!
//! # A SKU
//!
//! `revision` (decimal), `locations` (names in the order of their making, one a line), and for each of them
//! `location:NAME`: `on_hand=5 reserved=1 sold=0 safety_stock=0 version=2`. Where they differ from the default only:
//! `limit_per_owner`, `opens_at`, `closes_at`, `paused` (1), `split` (0), `era`, `order` (names, one a line), `group`,
//! `tracked` (1: owner usage is kept here). Any other field, or a number written otherwise, is damage.
//!
//! # A reservation
//!
//! ```text
//! STATUS FLAGS DIGEST GRANTED_AT US ENDS_AT US SEQ US OWNER LINES
//!   STATUS  p pending, c confirmed, x cancelled, e expired, l lost
//!   FLAGS   one byte: '@' + 1 if it was a deduct + 2 if sealed + 4 if noted
//!   DIGEST  16 bytes, the highest first
//!   SEQ     entry of the last change; nothing while pending
//!   OWNER   nothing when sealed
//!   LINES   nothing, or US SKU US QUANTITY (plain), or { RS LINE }
//!   LINE    SKU US LOCATION_ASKED_OR_NOTHING US ERA { GS LOCATION US QUANTITY US CONFIRMED US RETURNED }
//! ```
//!
//! Plain is: one line that names no location, of era 0, whose units come from `default` alone; all of them confirmed
//! if the status is c, else none; none returned. Whatever is plain is written so.
//!
//! A pending reservation's NAME stands in the bucket of second `ceil(ENDS_AT / 1000)`; it may also stand in buckets
//! that it has left, where it is passed over.
//!
//! # Returns and stock commands
//!
//! ```text
//! return   DIGEST AT US SEQ US RESERVATION_ID { RS SKU US LOCATION_ASKED_OR_NOTHING US QUANTITY }
//! command  DIGEST REVISION US AT US SEQ US SKU
//! ```
//!
//! # Ended records
//!
//! An item is `KIND AT US SEQ { RS NAME }` with KIND r (reservation), x (return), c (stock command): what one entry
//! ended at that time. An item's NAME is passed over when the record's own SEQ is another one by now.
//!
//! # An entry
//!
//! See `entry.rs`.

use stockade_core::Id;

/// Separators: control characters, which no id has.
pub(crate) const US: char = '\u{1f}';
pub(crate) const RS: char = '\u{1e}';
pub(crate) const GS: char = '\u{1d}';
pub(crate) const FS: char = '\u{1c}';

/// The tenant without keys, whose ids need no prefix; also the location when nobody names one.
pub(crate) const DEFAULT: &str = "default";

/// The keys of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    tag: String,
}

impl Keys {
    /// Of a shard: `{PREFIX:SHARD}` stands in each.
    pub fn new(prefix: &str, shard: u32) -> Self {
        Self {
            tag: format!("{{{prefix}:{shard}}}"),
        }
    }

    /// `{PREFIX:SHARD}`.
    pub fn tag(&self) -> &str {
        &self.tag
    }
    /// The one key without an epoch in its name that scripts begin with.
    pub fn meta(&self) -> String {
        format!("{}:meta", self.tag)
    }
    /// Epochs that have keys.
    pub fn epochs(&self) -> String {
        format!("{}:epochs", self.tag)
    }
    /// What all keys of an epoch begin with.
    pub fn of_epoch(&self, epoch: u64) -> String {
        format!("{}:{epoch}:", self.tag)
    }
    /// `reservations`, `returns`, `commands`, `ends`, `usage`, `markers`, `ended`, `outbox`.
    pub fn part(&self, epoch: u64, part: &str) -> String {
        format!("{}:{epoch}:{part}", self.tag)
    }
    /// A SKU.
    pub fn sku(&self, epoch: u64, tenant: &Id, sku: &Id) -> String {
        format!("{}:{epoch}:sku:{}", self.tag, name(tenant, sku))
    }
    /// The bucket of an end.
    pub fn bucket(&self, epoch: u64, ends_at: i64) -> String {
        format!("{}:{epoch}:end:{}", self.tag, second(ends_at))
    }
}

/// The second in whose bucket an end stands: the first one at or after it.
pub fn second(ends_at: i64) -> i64 {
    ends_at.div_euclid(1_000) + i64::from(ends_at.rem_euclid(1_000) > 0)
}

/// An id with its tenant, as a field or part of a key.
pub fn name(tenant: &Id, id: &Id) -> String {
    if tenant.as_str() == DEFAULT {
        id.as_str().to_owned()
    } else {
        format!("{tenant}{US}{id}")
    }
}

/// Tenant and id of a [`name`].
pub fn split_name(name: &str) -> Option<(Id, Id)> {
    let (tenant, id) = name.split_once(US).unwrap_or((DEFAULT, name));
    Some((Id::new(tenant).ok()?, Id::new(id).ok()?))
}

/// A tag or a token, as text.
pub fn hex(number: u64) -> String {
    format!("{number:016x}")
}

/// A tag or a token from its text: 16 digits, nothing else.
pub fn from_hex(text: &str) -> Option<u64> {
    let strict = text.len() == 16
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    strict.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// A whole number from its text: decimal digits, no sign, no leading zero.
pub fn number<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let strict = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    strict
        .then(|| text.parse::<u64>().ok())
        .flatten()
        .and_then(|number| T::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    #[test]
    fn names_tell_tenants_apart() {
        assert_eq!(name(&id("default"), &id("a")), "a");
        assert_eq!(name(&id("t"), &id("a")), "t\u{1f}a");
        for (tenant, own) in [("default", "a"), ("t", "default"), ("t", "a:b {c}")] {
            let whole = name(&id(tenant), &id(own));
            assert_eq!(split_name(&whole), Some((id(tenant), id(own))));
        }
    }

    #[test]
    fn an_end_stands_in_the_first_second_that_is_not_before_it() {
        for (ends_at, bucket) in [(0, 0), (1, 1), (999, 1), (1_000, 1), (1_001, 2)] {
            assert_eq!(second(ends_at), bucket);
        }
    }

    #[test]
    fn numbers_are_read_strictly() {
        assert_eq!(number::<u64>("9007199254740991"), Some(9_007_199_254_740_991));
        assert_eq!(number::<u32>("0"), Some(0));
        for text in [
            "",
            "00",
            "01",
            "+1",
            "-1",
            " 1",
            "1 ",
            "0x10",
            "1e3",
            "99999999999999999999",
        ] {
            assert_eq!(number::<u64>(text), None, "{text:?}");
        }
        assert_eq!(number::<u32>("4294967296"), None);
        assert_eq!(from_hex("00000000000000ff"), Some(255));
        for text in ["ff", "+0000000000000ff", "00000000000000FF"] {
            assert_eq!(from_hex(text), None);
        }
    }
}

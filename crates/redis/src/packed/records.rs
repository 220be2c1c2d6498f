//! Returns and stock commands.

use std::fmt::Write as _;

use stockade_core::{Id, ReturnRecord, ReturnedLine, StockRecord};

use super::{id, id_or_none, split_digest};
use crate::layout::{RS, US, number};

/// A return as it is stored; `seq` is its entry.
pub fn pack_return(record: &ReturnRecord, seq: u64) -> Vec<u8> {
    let mut packed = record.digest.0.to_be_bytes().to_vec();
    let mut text = format!("{}{US}{seq}{US}{}", record.at, record.reservation);
    for line in &record.lines {
        let asked = line.location.as_ref().map_or("", Id::as_str);
        // Writing to a String cannot fail.
        let _ = write!(text, "{RS}{}{US}{asked}{US}{}", line.sku, line.quantity);
    }
    packed.extend_from_slice(text.as_bytes());
    packed
}

/// A stored return and its entry.
pub fn unpack_return(tenant: Id, own: Id, packed: &[u8]) -> Option<(ReturnRecord, u64)> {
    let (digest, text) = split_digest(packed)?;
    let mut lines = text.split(RS);
    let mut head = lines.next()?.split(US);
    let (at, seq) = (number(head.next()?)?, number(head.next()?)?);
    let reservation = id(head.next()?)?;
    if head.next().is_some() {
        return None;
    }
    let record = ReturnRecord {
        tenant,
        id: own,
        reservation,
        digest,
        at,
        lines: lines.map(unpack_line).collect::<Option<_>>()?,
    };
    Some((record, seq))
}

fn unpack_line(text: &str) -> Option<ReturnedLine> {
    let mut fields = text.split(US);
    let line = ReturnedLine {
        sku: id(fields.next()?)?,
        location: id_or_none(fields.next()?)?,
        quantity: number(fields.next()?)?,
    };
    fields.next().is_none().then_some(line)
}

/// A stock command as it is stored; `seq` is its entry.
pub fn pack_command(record: &StockRecord, seq: u64) -> Vec<u8> {
    let mut packed = record.digest.0.to_be_bytes().to_vec();
    let (revision, at, sku) = (record.revision, record.at, &record.sku);
    packed.extend_from_slice(format!("{revision}{US}{at}{US}{seq}{US}{sku}").as_bytes());
    packed
}

/// A stored stock command and its entry.
pub fn unpack_command(tenant: Id, own: Id, packed: &[u8]) -> Option<(StockRecord, u64)> {
    let (digest, text) = split_digest(packed)?;
    let mut fields = text.split(US);
    let (revision, at) = (number(fields.next()?)?, number(fields.next()?)?);
    let seq = number(fields.next()?)?;
    let sku = id(fields.next()?)?;
    let record = StockRecord {
        tenant,
        id: own,
        digest,
        sku,
        revision,
        at,
    };
    fields.next().is_none().then_some((record, seq))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stockade_core::Digest;

    fn new(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let line = |location: Option<&str>| ReturnedLine {
            sku: new("S"),
            location: location.map(new),
            quantity: 9_007_199_254_740_991,
        };
        let mut record = ReturnRecord {
            tenant: new("t"),
            id: new("x"),
            reservation: new("r"),
            digest: Digest(u128::MAX - 3),
            at: 1_767_000_000_000,
            lines: vec![line(None), line(Some("W 1"))],
        };
        for _ in 0..3 {
            let packed = pack_return(&record, 9);
            assert_eq!(
                unpack_return(new("t"), new("x"), &packed),
                Some((record.clone(), 9))
            );
            record.lines.pop();
        }
        let record = StockRecord {
            tenant: new("t"),
            id: new("c"),
            digest: Digest(5),
            sku: new("S"),
            revision: 3,
            at: 1_767_000_000_000,
        };
        let packed = pack_command(&record, 9);
        assert_eq!(unpack_command(new("t"), new("c"), &packed), Some((record, 9)));
        assert_eq!(unpack_command(new("t"), new("c"), &packed[..20]), None);
        assert_eq!(unpack_return(new("t"), new("c"), &packed), None);
    }
}

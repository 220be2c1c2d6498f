//! Digests of payloads: what makes a replay a replay.
//!
//! `SipHash-2-4` with 128 bits and fixed keys over a length-prefixed encoding, the same on every machine and in every
//! release: digests are recorded.

use core::hash::Hasher;
use siphasher::sip128::{Hasher128, SipHasher24};

use crate::command::{Adjust, Configure, Count, Mode, PickLine, Set, Transfer};
use crate::id::Id;
use crate::record::Digest;

struct Encoder(SipHasher24);

impl Encoder {
    // The keys are the first digits of pi; they only must never change.
    fn new(kind: u8) -> Self {
        let mut encoder = Self(SipHasher24::new_with_keys(
            0x2436_f6a8_885a_308d,
            0x1319_8a2e_0370_7344,
        ));
        encoder.byte(kind);
        encoder
    }
    fn byte(&mut self, value: u8) {
        self.0.write(&[value]);
    }
    fn number(&mut self, value: u64) {
        self.0.write(&value.to_le_bytes());
    }
    fn signed(&mut self, value: i64) {
        self.0.write(&value.to_le_bytes());
    }
    fn id(&mut self, id: &Id) {
        self.number(id.as_str().len() as u64);
        self.0.write(id.as_str().as_bytes());
    }
    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
    fn line(&mut self, (sku, location, quantity): (&Id, Option<&Id>, u64)) {
        self.id(sku);
        self.option(location, Self::id);
        self.number(quantity);
    }
    fn finish(&self) -> Digest {
        Digest(self.0.finish128().as_u128())
    }
}

/// Of a reservation's payload; `lines` summed and sorted.
pub(super) fn reservation<'a>(
    mode: Mode,
    owner: &Id,
    lines: impl ExactSizeIterator<Item = (&'a Id, Option<&'a Id>, u64)>,
) -> Digest {
    let mut encoder = Encoder::new(1);
    encoder.byte(match mode {
        Mode::Reserve => 0,
        Mode::Deduct => 1,
    });
    encoder.id(owner);
    encoder.number(lines.len() as u64);
    for line in lines {
        encoder.line(line);
    }
    encoder.finish()
}

/// Of a return's payload: everything that is left is another payload than a list.
pub(super) fn give_back(reservation: &Id, lines: Option<&[PickLine]>) -> Digest {
    let mut encoder = Encoder::new(2);
    encoder.id(reservation);
    encoder.option(lines, |encoder, lines| {
        let mut sorted: alloc::vec::Vec<_> = lines
            .iter()
            .map(|line| (&line.sku, line.location.as_ref(), line.quantity))
            .collect();
        sorted.sort_unstable();
        // The first of each key takes the sum; the rest are left out.
        sorted.dedup_by(|next, first| {
            let same = (next.0, next.1) == (first.0, first.1);
            if same {
                first.2 = first.2.saturating_add(next.2);
            }
            same
        });
        encoder.number(sorted.len() as u64);
        for line in sorted {
            encoder.line(line);
        }
    });
    encoder.finish()
}

fn expect(encoder: &mut Encoder, expect: crate::command::Expect) {
    match expect {
        crate::command::Expect::Any => encoder.byte(0),
        crate::command::Expect::Revision(revision) => {
            encoder.byte(1);
            encoder.number(revision);
        }
        crate::command::Expect::Absent => encoder.byte(2),
    }
}

/// Of a count.
pub(super) fn set(set: &Set) -> Digest {
    let mut encoder = Encoder::new(3);
    encoder.id(&set.sku);
    encoder.id(&set.location);
    encoder.number(set.target);
    match set.count {
        Count::Create => encoder.byte(0),
        Count::Seen { sold_seen } => {
            encoder.byte(1);
            encoder.number(sold_seen);
        }
        Count::Force => encoder.byte(2),
    }
    expect(&mut encoder, set.expect);
    encoder.finish()
}

/// Of a signed change.
pub(super) fn adjust(adjust: &Adjust) -> Digest {
    let mut encoder = Encoder::new(4);
    encoder.id(&adjust.sku);
    encoder.id(&adjust.location);
    encoder.signed(adjust.delta);
    expect(&mut encoder, adjust.expect);
    encoder.finish()
}

/// Of a transfer.
pub(super) fn transfer(transfer: &Transfer) -> Digest {
    let mut encoder = Encoder::new(5);
    encoder.id(&transfer.sku);
    encoder.id(&transfer.from);
    encoder.id(&transfer.to);
    encoder.number(transfer.quantity);
    expect(&mut encoder, transfer.expect);
    encoder.finish()
}

/// Of a change of settings.
pub(super) fn configure(configure: &Configure) -> Digest {
    let mut encoder = Encoder::new(6);
    encoder.id(&configure.sku);
    let changes = &configure.changes;
    encoder.number(changes.safety_stock.len() as u64);
    for (location, floor) in &changes.safety_stock {
        encoder.id(location);
        encoder.number(*floor);
    }
    encoder.option(changes.limit_per_owner, |encoder, limit| {
        encoder.option(limit, Encoder::number);
    });
    encoder.option(changes.opens_at, |encoder, at| {
        encoder.option(at, Encoder::signed);
    });
    encoder.option(changes.closes_at, |encoder, at| {
        encoder.option(at, Encoder::signed);
    });
    encoder.option(changes.paused, |encoder, paused| encoder.byte(u8::from(paused)));
    encoder.option(changes.order.as_ref(), |encoder, order| {
        encoder.number(order.len() as u64);
        for location in order {
            encoder.id(location);
        }
    });
    encoder.option(changes.split, |encoder, split| encoder.byte(u8::from(split)));
    encoder.option(changes.group.as_ref(), |encoder, group| {
        encoder.option(group.as_ref(), Encoder::id);
    });
    encoder.byte(u8::from(changes.reset_usage));
    expect(&mut encoder, configure.expect);
    encoder.finish()
}

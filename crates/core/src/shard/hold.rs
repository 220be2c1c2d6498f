//! Reservations as the shard keeps them: names as numbers, and one line from one location without a block of its own.

use alloc::boxed::Box;
use smallvec::SmallVec;

use crate::command::Mode;
use crate::id::{Id, Millis};
use crate::record::{Digest, Status};

/// A reservation, compact.
#[derive(Clone)]
pub(super) struct Hold {
    pub(super) id: Id,
    pub(super) packed: Packed,
    // Two words and not one of 128 bits, which would be aligned to 16 bytes.
    digest: [u64; 2],
    pub(super) granted_at: Millis,
    pub(super) ends_at: Millis,
    /// The entry of its last change; 0 or an older entry's when it came from the ledger.
    pub(super) seq: u64,
    pub(super) tenant: u32,
    pub(super) owner: u32,
    pub(super) status: Status,
    pub(super) mode: Mode,
    pub(super) sealed: bool,
    pub(super) noted: bool,
}

/// What a hold is made of, but for its lines and its place in the chain.
pub(super) struct Terms {
    pub(super) id: Id,
    pub(super) tenant: u32,
    pub(super) owner: u32,
    pub(super) mode: Mode,
    pub(super) digest: Digest,
    pub(super) status: Status,
    pub(super) granted_at: Millis,
    pub(super) ends_at: Millis,
}

/// Lines, packed.
#[derive(Clone)]
pub(super) enum Packed {
    /// One line from one location: all or nothing of it confirmed, nothing returned.
    One {
        sku: u32,
        era: u32,
        quantity: u64,
        asked: Option<u8>,
        place: u8,
    },
    /// Anything else.
    Many(Box<[HeldLine]>),
}

/// Lines, spelled out.
pub(super) type HeldLines = SmallVec<[HeldLine; 1]>;

/// A line.
#[derive(Clone, Debug)]
pub(super) struct HeldLine {
    pub(super) sku: u32,
    pub(super) era: u32,
    /// The location asked for: its number within the SKU.
    pub(super) asked: Option<u8>,
    pub(super) parts: SmallVec<[Part; 1]>,
}

/// Units of a line from one location.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) place: u8,
    pub(super) quantity: u64,
    pub(super) confirmed: u64,
    pub(super) returned: u64,
}

impl HeldLine {
    fn sum(&self, of: impl Fn(&Part) -> u64) -> u64 {
        self.parts
            .iter()
            .fold(0, |sum, part| sum.saturating_add(of(part)))
    }
    pub(super) fn quantity(&self) -> u64 {
        self.sum(|part| part.quantity)
    }
    pub(super) fn confirmed(&self) -> u64 {
        self.sum(|part| part.confirmed)
    }
    /// Confirmed and not yet returned.
    pub(super) fn sold(&self) -> u64 {
        self.sum(|part| part.confirmed.saturating_sub(part.returned))
    }

    /// Marks `units` of the line as confirmed, in allocation order.
    pub(super) fn confirm(&mut self, mut units: u64) {
        for part in &mut self.parts {
            part.confirmed = units.min(part.quantity);
            units = units.saturating_sub(part.confirmed);
        }
    }
}

impl Hold {
    pub(super) fn new(terms: Terms, lines: HeldLines, seq: u64) -> Self {
        let Terms {
            id,
            tenant,
            owner,
            mode,
            digest,
            status,
            granted_at,
            ends_at,
        } = terms;
        Self {
            id,
            packed: pack(lines, status),
            #[expect(clippy::cast_possible_truncation, reason = "both halves are kept")]
            digest: [(digest.0 >> 64) as u64, digest.0 as u64],
            granted_at,
            ends_at,
            seq,
            tenant,
            owner,
            status,
            mode,
            sealed: false,
            noted: false,
        }
    }

    pub(super) const fn digest(&self) -> Digest {
        Digest(((self.digest[0] as u128) << 64) | self.digest[1] as u128)
    }

    pub(super) fn is_live(&self) -> bool {
        self.status == Status::Pending
    }

    pub(super) fn lines(&self) -> HeldLines {
        match &self.packed {
            &Packed::One {
                sku,
                era,
                quantity,
                asked,
                place,
            } => {
                let confirmed = if self.status == Status::Confirmed {
                    quantity
                } else {
                    0
                };
                let part = Part {
                    place,
                    quantity,
                    confirmed,
                    returned: 0,
                };
                HeldLines::from_buf([HeldLine {
                    sku,
                    era,
                    asked,
                    parts: SmallVec::from_buf([part]),
                }])
            }
            Packed::Many(lines) => lines.iter().cloned().collect(),
        }
    }

    pub(super) fn become_status(&mut self, status: Status, lines: HeldLines, seq: u64) {
        self.packed = pack(lines, status);
        self.status = status;
        self.seq = seq;
    }
}

fn pack(lines: HeldLines, status: Status) -> Packed {
    if let [line] = lines.as_slice()
        && let [part] = line.parts.as_slice()
        && part.returned == 0
        && part.confirmed
            == (if status == Status::Confirmed {
                part.quantity
            } else {
                0
            })
    {
        return Packed::One {
            sku: line.sku,
            era: line.era,
            quantity: part.quantity,
            asked: line.asked,
            place: part.place,
        };
    }
    Packed::Many(lines.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    // The memory that a live reservation takes is a promise; these are most of it.
    #[test]
    fn a_hold_stays_small() {
        assert!(size_of::<Option<Hold>>() <= 104, "{}", size_of::<Option<Hold>>());
        assert_eq!(size_of::<Option<Id>>(), 24);
    }
}

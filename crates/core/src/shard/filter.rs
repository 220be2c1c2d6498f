//! Which ids may be among the forgotten: a Bloom filter that grows by layers, about 1 % false positives in all.

use alloc::vec;
use alloc::vec::Vec;

const FIRST_CAPACITY: usize = 8_192;
/// Bits a key in the first layer: 0.2 % false positives. Each further layer has one bit in two more (a fifth fewer
/// false positives), so that the sum stays below 1 %.
const BITS_FIRST: usize = 13;

struct Layer {
    words: Vec<u64>,
    probes: u32,
    room: usize,
}

impl Layer {
    fn new(number: usize) -> Self {
        let capacity = FIRST_CAPACITY << number.min(40);
        let bits_a_key = BITS_FIRST.saturating_add(number.div_ceil(2));
        let words = (capacity.saturating_mul(bits_a_key) >> 6).max(1);
        Self {
            words: vec![0; words],
            // ln 2 times the bits a key.
            probes: u32::try_from(bits_a_key.saturating_mul(7) / 10).unwrap_or(9),
            room: capacity,
        }
    }

    // Word and bit of each probe: double hashing on the two halves of a widened hash.
    fn probe(&self, hash: u64, number: u32) -> (usize, u64) {
        let step = hash.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mixed = hash.wrapping_add(step.wrapping_mul(u64::from(number)));
        // A multiply instead of a remainder: the high bits choose the word.
        let wide = u128::from(mixed).wrapping_mul(self.words.len() as u128);
        let word = usize::try_from(wide >> 64).unwrap_or(0);
        (word, 1 << (mixed & 63))
    }

    fn has(&self, hash: u64) -> bool {
        (0..self.probes).all(|number| {
            let (word, bit) = self.probe(hash, number);
            self.words.get(word).is_some_and(|found| found & bit != 0)
        })
    }

    fn add(&mut self, hash: u64) {
        for number in 0..self.probes {
            let (word, bit) = self.probe(hash, number);
            if let Some(found) = self.words.get_mut(word) {
                *found |= bit;
            }
        }
        self.room = self.room.saturating_sub(1);
    }
}

/// The filter.
pub(super) struct Filter {
    layers: Vec<Layer>,
}

impl Filter {
    pub(super) const fn new() -> Self {
        Self { layers: Vec::new() }
    }

    /// Whether the key may have been added.
    pub(super) fn may_have(&self, hash: u64) -> bool {
        // The newest layer is the largest.
        self.layers.iter().rev().any(|layer| layer.has(hash))
    }

    pub(super) fn add(&mut self, hash: u64) {
        if self.may_have(hash) {
            return;
        }
        if self.layers.last().is_none_or(|layer| layer.room == 0) {
            self.layers.push(Layer::new(self.layers.len()));
        }
        if let Some(layer) = self.layers.last_mut() {
            layer.add(hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Space;
    use crate::shard::names::{Hashing, Kind};

    #[test]
    fn keeps_every_key_and_few_others() {
        let hashing = Hashing::new(7);
        let hash = |n: u32| {
            hashing.key(
                Kind::Of(Space::Reservation),
                "default",
                &alloc::format!("order-{n}"),
            )
        };
        let mut filter = Filter::new();
        for n in 0..100_000 {
            filter.add(hash(n));
        }
        assert!((0..100_000).all(|n| filter.may_have(hash(n))));
        let wrong = (100_000..200_000).filter(|n| filter.may_have(hash(*n))).count();
        assert!(wrong < 1_500, "{wrong} of 100,000");
    }
}

//! A small generator whose runs can be repeated from a seed.

#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    /// `SplitMix64`.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number under `bound`, which is small; 0 for 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        if bound == 0 {
            return 0;
        }
        usize::try_from((self.next() >> 33) % bound).unwrap_or(0)
    }

    /// An index, as often as its weight says.
    pub fn weighted(&mut self, weights: &[u16]) -> usize {
        let total: usize = weights.iter().map(|w| usize::from(*w)).sum();
        let mut at = self.below(total);
        for (i, w) in weights.iter().enumerate() {
            let w = usize::from(*w);
            if at < w {
                return i;
            }
            at -= w;
        }
        0
    }
}

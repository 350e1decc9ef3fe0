//! Chance from a seed. Every part of a run throws its own dice, so that one more throw in one part
//! does not change what the others do.

use std::sync::atomic::{AtomicU64, Ordering};

use broker::env::Rng;

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads the bits of a number over all 64 (the last step of SplitMix64).
pub fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// SplitMix64.
#[derive(Debug)]
pub struct Dice(AtomicU64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(AtomicU64::new(mix(seed ^ GAMMA)))
    }

    /// Dice for a part of the run; the same for the same seed, name and number.
    pub fn of(seed: u64, part: &str, number: u64) -> Dice {
        let name = part.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        Dice::new(mix(seed).wrapping_add(name).wrapping_add(mix(number)))
    }

    fn next(&self) -> u64 {
        mix(self.0.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA))
    }

    /// A number in `0..bound`; 0 for an empty range.
    pub fn below(&self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A number in `low..=high`.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True `per_mille` times in a thousand.
    pub fn chance(&self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

impl Rng for Dice {
    fn next_u64(&self) -> u64 {
        self.next()
    }
}

//! What the environment decides: sizes of the long loops and the seed of chance.

use std::time::{SystemTime, UNIX_EPOCH};

/// A number from the environment, or `default`. Panics at one that does not parse: a loop that
/// silently ran a wrong number of times would prove nothing.
pub fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}

/// A small generator (splitmix64), so that a printed seed repeats a run's choices.
pub struct Chance(u64);

impl Chance {
    /// From GRACCHUS_SEED, else from the clock. Prints the seed.
    pub fn from_env(what: &str) -> Chance {
        let seed = number("GRACCHUS_SEED", nanos());
        println!("{what}: GRACCHUS_SEED={seed}");
        Chance(seed)
    }

    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next_u64() % (high - low + 1)
    }
}

/// A name that no earlier test or run has used.
pub fn unique(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    let mixed = Chance::new(nanos() ^ (u64::from(std::process::id()) << 32)).next_u64();
    format!("{prefix}-{:08x}-{count}", mixed as u32)
}

fn nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is before 1970");
    since.as_nanos() as u64
}

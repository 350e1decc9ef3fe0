//! What one seed lets go wrong. Each seed switches on its own subset: many faults at once hide each
//! other.

/// SplitMix64: small, seeded, good enough to pick faults.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// In `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }
}

pub fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Chances are per mille: per message, or per fault event (one each 20 ms).
#[derive(Debug)]
pub struct Plan {
    pub learners: usize,
    /// How long trouble lasts, in ms.
    pub trouble_ms: u64,
    pub delay_max_ms: u64,
    pub loss: u64,
    pub duplicates: u64,
    pub partitions: u64,
    pub one_way_cuts: u64,
    pub crashes: u64,
    pub down_max_ms: u64,
    pub failing_writes: u64,
    /// A node may look at its inbox only this much later.
    pub pump_delay_max_ms: u64,
    /// This node is always late, by much more.
    pub slow_node: Option<usize>,
    /// A snapshot after so many entries; truncation keeps few.
    pub snapshot_each: u64,
    pub snapshot_padding: u64,
    pub proposals: u64,
    pub member_changes: u64,
    pub transfers: u64,
    /// Learners come back with an empty disk.
    pub wipes: u64,
}

impl Plan {
    pub fn draw(voters: usize, rng: &mut Rng) -> Plan {
        let mut some =
            |chance: u64, max: u64| if rng.per_mille(chance) { rng.below(max) } else { 0 };
        let mut plan = Plan {
            learners: 0,
            trouble_ms: 1500,
            delay_max_ms: 1 + some(600, 60),
            loss: some(500, 150),
            duplicates: some(400, 150),
            partitions: some(500, 60),
            one_way_cuts: some(300, 40),
            crashes: some(600, 40),
            down_max_ms: 1 + some(700, 500),
            failing_writes: some(400, 30),
            pump_delay_max_ms: some(500, 8),
            slow_node: None,
            snapshot_each: 4 + some(900, 40),
            snapshot_padding: some(500, 400),
            proposals: 300 + some(900, 700),
            member_changes: some(300, 100),
            transfers: some(300, 30),
            wipes: 0,
        };
        if voters == 1 {
            plan.crashes += 20;
        }
        if voters > 1 {
            plan.slow_node = rng.per_mille(300).then(|| rng.below(voters as u64) as usize);
        }
        if rng.per_mille(500) {
            plan.learners = 1 + rng.below(2) as usize;
        }
        if plan.member_changes == 0 && rng.per_mille(300) {
            plan.wipes = 20;
        }
        plan
    }
}

//! How large a run is.

use std::time::Duration;

pub struct Scale {
    pub name: &'static str,
    /// Times the record counts of the plan.
    pub factor: f64,
    /// A paced load lasts this long.
    pub paced: Duration,
    pub warm: Duration,
    /// Between two brokers, for files that the one left and that were deleted.
    pub between: Duration,
    pub consumers: &'static [u32],
    pub partitions: &'static [i32],
    pub idle_connections: &'static [u32],
    pub starts: usize,
    pub idle: Duration,
    pub recovery_partitions: i32,
    pub recovery_mb: u64,
}

impl Scale {
    pub fn records(&self, planned: u64) -> u64 {
        ((planned as f64 * self.factor) as u64).max(1)
    }
}

/// Says that everything works, not how fast.
pub const TINY: Scale = Scale {
    name: "tiny",
    factor: 0.005,
    paced: Duration::from_millis(500),
    warm: Duration::ZERO,
    between: Duration::ZERO,
    consumers: &[1, 3],
    partitions: &[1, 20],
    idle_connections: &[0, 50],
    starts: 1,
    idle: Duration::from_millis(500),
    recovery_partitions: 10,
    recovery_mb: 10,
};

/// Everything in twenty minutes with a peer.
pub const QUICK: Scale = Scale {
    name: "quick",
    factor: 0.3,
    paced: Duration::from_secs(4),
    warm: Duration::from_secs(10),
    between: Duration::from_secs(61),
    consumers: &[1, 10, 100],
    partitions: &[1, 100, 1000],
    idle_connections: &[0, 1000],
    starts: 3,
    idle: Duration::from_secs(5),
    recovery_partitions: 100,
    recovery_mb: 300,
};

/// The plan as written.
pub const FULL: Scale = Scale {
    name: "full",
    factor: 1.0,
    paced: Duration::from_secs(60),
    warm: Duration::from_secs(40),
    between: Duration::from_secs(61),
    consumers: &[1, 10, 100, 500],
    partitions: &[1, 100, 1000, 10_000],
    idle_connections: &[0, 900, 4900],
    starts: 20,
    idle: Duration::from_secs(60),
    recovery_partitions: 1000,
    recovery_mb: 2000,
};

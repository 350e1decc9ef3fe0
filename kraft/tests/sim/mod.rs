//! A simulated quorum. `plan` says what may go wrong, `world` runs it, `check` holds it to Raft's
//! promises.

mod check;
mod plan;
mod world;

use world::World;

/// What a run met. Two runs of a seed are equal in all of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Hash over every event and its outcome.
    pub trace: u64,
    pub crashes: u64,
    pub failed_writes: u64,
    pub leaders: u64,
    pub committed: u64,
    pub acknowledged: u64,
    pub snapshots_installed: u64,
    pub member_changes: u64,
    pub wiped: u64,
}

impl Summary {
    pub fn add(&mut self, other: &Summary) {
        self.crashes += other.crashes;
        self.failed_writes += other.failed_writes;
        self.leaders += other.leaders;
        self.committed += other.committed;
        self.acknowledged += other.acknowledged;
        self.snapshots_installed += other.snapshots_installed;
        self.member_changes += other.member_changes;
        self.wiped += other.wiped;
    }
}

/// One cluster from one seed: faults, then healing, then rest.
pub fn run(voters: usize, seed: u64) -> Summary {
    let guard = TellSeed { voters, seed };
    let mut world = World::new(voters, seed);
    world.trouble();
    world.heal();
    let summary = world.summary();
    drop(guard);
    summary
}

/// Names the seed when a run panics, wherever it does.
struct TellSeed {
    voters: usize,
    seed: u64,
}

impl Drop for TellSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with {} voters, seed {}", self.voters, self.seed);
        }
    }
}

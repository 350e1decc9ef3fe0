//! What one seed stands for: how slow, how many clients, which faults.

use crate::dice::Dice;
use crate::net::Latency;
use crate::node::Lag;
use crate::workload::{MemberPlan, WriterPlan};

/// The kinds of faults a run may have. Each seed has a subset, so that none hides another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FaultKind {
    /// One stream is reset.
    Cut,
    /// The power fails: what was not synced is lost or torn.
    PowerCut,
    /// The process is killed; the machine stays up.
    Kill,
    /// A stop in order, and a start.
    Restart,
    /// The disk is full for a while.
    DiskFull,
    /// A process is killed on a full disk, and started there.
    KillWhileFull,
    /// The power fails between two writes of one operation, or within one.
    PowerCutMidway,
    /// A sync fails: the process must end itself.
    SyncFails,
    /// A sync fails during a stop in order, and then the power: what the stop wrote down must hold.
    SyncFailsAtStop,
    /// Writes to logs fail for a while.
    WritesFail,
    /// Nothing arrives anywhere for a while; clients give up and ask again.
    Stall,
    /// The wall clock of the machine is set.
    ClockJump,
}

pub const KINDS: [FaultKind; 12] = [
    FaultKind::Cut,
    FaultKind::PowerCut,
    FaultKind::Kill,
    FaultKind::Restart,
    FaultKind::DiskFull,
    FaultKind::KillWhileFull,
    FaultKind::PowerCutMidway,
    FaultKind::SyncFails,
    FaultKind::SyncFailsAtStop,
    FaultKind::WritesFail,
    FaultKind::Stall,
    FaultKind::ClockJump,
];

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub partitions: i32,
    pub latency: Latency,
    pub lag: Lag,
    pub writers: Vec<WriterPlan>,
    pub members: Vec<MemberPlan>,
    pub readers: u32,
    /// Partitions from whose front records are deleted.
    pub deletions: Vec<i32>,
    pub faults: Vec<FaultKind>,
    pub fault_count: u32,
    /// Whether the power fails once more before the end is read.
    pub power_cut_at_end: bool,
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Plan {
        let dice = Dice::of(seed, "plan", 0);
        let partitions = dice.between(1, 5) as i32;
        let any = |dice: &Dice| dice.below(partitions as u64) as i32;
        let writers = (0..dice.between(2, 6) as u32).map(|at| WriterPlan {
            writer: at + 1,
            partition: any(&dice),
            idempotent: dice.chance(700),
            numbered: true,
            batches: dice.between(15, 40) as u32,
            pause_max_ms: dice.between(1, 600),
        });
        let writers = writers.collect();
        let members = (0..dice.below(3) as u32).map(|at| MemberPlan {
            group: at + 1,
            partition: any(&dice),
            commits: dice.between(10, 40) as u32,
        });
        let members = members.collect();
        let mut faults: Vec<FaultKind> = KINDS.into_iter().filter(|_| dice.chance(300)).collect();
        if faults.is_empty() {
            faults.push(FaultKind::PowerCut);
        }
        let latency = Latency { low_ms: dice.below(3), high_ms: dice.between(3, 60) };
        let lag = Lag { per_mille: dice.below(800), max_ms: dice.between(1, 300) };
        Plan {
            seed,
            partitions,
            latency,
            lag,
            writers,
            members,
            readers: dice.between(1, 3) as u32,
            deletions: (0..partitions).filter(|_| dice.chance(300)).collect(),
            faults,
            fault_count: dice.between(3, 14) as u32,
            power_cut_at_end: dice.chance(600),
        }
    }
}

//! The faults of a run, one after another, drawn from the seed.
//!
//! A failing sync is not among them: it must end the process, which in a simulation is the test.

use std::path::Path;

use storage::disk::Disk;

use crate::clock::pause_ms;
use crate::dice::Dice;
use crate::history::Event;
use crate::net::Network;
use crate::node::SimNode;
use crate::plan::{FaultKind, Plan};
use crate::trace::Trace;
use crate::workload::Run;

/// How often each kind took effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effects {
    pub cuts: u32,
    pub power_cuts: u32,
    pub kills: u32,
    pub restarts: u32,
    pub full_disks: u32,
}

impl Effects {
    pub fn add(&mut self, other: Effects) {
        self.cuts += other.cuts;
        self.power_cuts += other.power_cuts;
        self.kills += other.kills;
        self.restarts += other.restarts;
        self.full_disks += other.full_disks;
    }

    /// Whether every kind did something.
    pub fn all_took_effect(&self) -> bool {
        let Effects { cuts, power_cuts, kills, restarts, full_disks } = *self;
        [cuts, power_cuts, kills, restarts, full_disks].iter().all(|count| *count > 0)
    }
}

pub struct Faults<'a> {
    pub plan: &'a Plan,
    pub network: &'a Network,
    pub trace: &'a Trace,
    pub run: &'a Run,
    pub dice: Dice,
    pub effects: Effects,
}

impl Faults<'_> {
    /// All faults of the plan on one node; it runs afterwards, with room on its disk.
    ///
    /// # Errors
    /// What the node itself did wrong.
    pub async fn run(&mut self, node: &mut SimNode) -> Result<(), String> {
        for _ in 0..self.plan.fault_count {
            pause_ms(self.dice.between(1, 3_000)).await;
            node.look()?;
            let kinds = &self.plan.faults;
            let kind = kinds[self.dice.below(kinds.len() as u64) as usize];
            self.trace.number("fault", kind as u64, 0);
            match kind {
                FaultKind::Cut => self.cut(),
                FaultKind::PowerCut => self.crash(node, true).await,
                FaultKind::Kill => self.crash(node, false).await,
                FaultKind::Restart => self.restart(node).await,
                FaultKind::DiskFull => self.fill(node).await?,
            }
            self.trace.number("mended", kind as u64, 0);
        }
        Ok(())
    }

    fn cut(&mut self) {
        self.effects.cuts += u32::from(self.network.cut_one(self.dice.below(1 << 20)));
    }

    async fn crash(&mut self, node: &mut SimNode, power: bool) {
        node.crash(power).await;
        self.run.record(Event::Crash);
        match power {
            true => self.effects.power_cuts += 1,
            false => self.effects.kills += 1,
        }
        pause_ms(self.dice.between(0, 2_000)).await;
        node.start();
    }

    async fn restart(&mut self, node: &mut SimNode) {
        // A node that does not serve yet cannot be stopped in order.
        if !node.serves() {
            return;
        }
        if node.stop().await.is_ok() {
            self.effects.restarts += 1;
        }
        pause_ms(self.dice.between(0, 500)).await;
        node.start();
    }

    async fn fill(&mut self, node: &mut SimNode) -> Result<(), String> {
        let Ok(space) = node.disk().space(Path::new("/")) else { return Ok(()) };
        let leave = self.dice.below(20_000);
        node.disk().set_capacity(space.total - space.usable + leave);
        self.effects.full_disks += 1;
        pause_ms(self.dice.between(100, 3_000)).await;
        node.disk().set_capacity(space.total);
        node.look()
    }
}

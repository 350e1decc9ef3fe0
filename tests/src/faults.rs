//! The faults of a run, one after another, drawn from the seed.

use std::collections::BTreeMap;
use std::path::Path;

use storage::disk::Disk;
use storage::disk::sim::{Fault, FaultOp};

use crate::clock::{SimClock, pause_ms};
use crate::dice::Dice;
use crate::history::Event;
use crate::net::Network;
use crate::node::SimNode;
use crate::plan::{FaultKind, KINDS, Plan};
use crate::trace::Trace;
use crate::workload::Run;

/// How far the wall clock is set, forward or back: less than what makes records too new.
const JUMP_MS_MAX: u64 = 50 * 60_000;

/// How long a fault waits to strike.
const STRIKE_MS_MAX: u64 = 3_000;

/// How often each kind took effect.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Effects(BTreeMap<FaultKind, u32>);

impl Effects {
    fn count(&mut self, kind: FaultKind) {
        *self.0.entry(kind).or_default() += 1;
    }

    pub fn add(&mut self, other: &Effects) {
        for (kind, count) in &other.0 {
            *self.0.entry(*kind).or_default() += count;
        }
    }

    /// Whether every kind did something.
    pub fn all_took_effect(&self) -> bool {
        KINDS.iter().all(|kind| self.0.contains_key(kind))
    }
}

pub struct Faults<'a> {
    pub plan: &'a Plan,
    pub clock: &'a SimClock,
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
            let took_effect = match kind {
                FaultKind::Cut => self.network.cut_one(self.dice.below(1 << 20)),
                FaultKind::PowerCut => self.crash(node, true).await,
                FaultKind::Kill => self.crash(node, false).await,
                FaultKind::Restart => self.restart(node).await,
                FaultKind::DiskFull => self.fill(node).await?,
                FaultKind::KillWhileFull => self.kill_while_full(node).await?,
                FaultKind::PowerCutMidway => self.cut_power_midway(node).await,
                FaultKind::SyncFails => self.fail_sync(node).await?,
                FaultKind::SyncFailsAtStop => self.fail_sync_at_stop(node).await,
                FaultKind::WritesFail => self.fail_writes(node).await?,
                FaultKind::Stall => self.stall().await,
                FaultKind::ClockJump => self.set_clock(),
            };
            if took_effect {
                self.effects.count(kind);
            }
            self.trace.number("mended", kind as u64, 0);
        }
        Ok(())
    }

    /// The process ends; another starts a little later.
    async fn crash(&mut self, node: &mut SimNode, power: bool) -> bool {
        node.crash(power).await;
        self.run.record(Event::Crash);
        pause_ms(self.dice.between(0, 2_000)).await;
        node.start();
        true
    }

    async fn restart(&mut self, node: &mut SimNode) -> bool {
        // A node that does not serve yet cannot be stopped in order.
        if !node.serves() {
            return false;
        }
        let stopped = node.stop().await.is_ok();
        pause_ms(self.dice.between(0, 500)).await;
        node.start();
        stopped
    }

    /// Takes nearly all room away, and gives it back with what this returns.
    fn take_room(&self, node: &SimNode) -> Option<u64> {
        let space = node.disk().space(Path::new("/")).ok()?;
        node.disk().set_capacity(space.total - space.usable + self.dice.below(20_000));
        Some(space.total)
    }

    async fn fill(&mut self, node: &mut SimNode) -> Result<bool, String> {
        let Some(total) = self.take_room(node) else { return Ok(false) };
        pause_ms(self.dice.between(100, 3_000)).await;
        node.disk().set_capacity(total);
        node.look()?;
        Ok(true)
    }

    /// A start that fails for want of room is tried again with room.
    async fn kill_while_full(&mut self, node: &mut SimNode) -> Result<bool, String> {
        let Some(total) = self.take_room(node) else { return Ok(false) };
        pause_ms(self.dice.between(0, 1_000)).await;
        self.crash(node, self.dice.chance(500)).await;
        pause_ms(self.dice.between(100, 3_000)).await;
        let started = node.look();
        node.disk().set_capacity(total);
        if started.is_err() {
            self.crash(node, false).await;
        }
        Ok(true)
    }

    async fn cut_power_midway(&mut self, node: &mut SimNode) -> bool {
        node.disk().cut_power_after(self.dice.below(40));
        let deadline_ms = self.clock.now_ms() + STRIKE_MS_MAX;
        while !node.disk().power_is_off() && self.clock.now_ms() < deadline_ms {
            pause_ms(1).await;
        }
        let struck = node.disk().power_is_off();
        self.crash(node, true).await;
        struck
    }

    /// The process must end itself before anybody is told that the records are safe; the checker
    /// sees to the latter.
    async fn fail_sync(&mut self, node: &mut SimNode) -> Result<bool, String> {
        let paths = [".log", "journal"];
        let path = paths[self.dice.below(paths.len() as u64) as usize];
        node.disk().inject(Fault::io(FaultOp::Sync, path).nth(self.dice.below(3)));
        let deadline_ms = self.clock.now_ms() + STRIKE_MS_MAX;
        while !node.gave_up() && self.clock.now_ms() < deadline_ms {
            pause_ms(1).await;
        }
        let struck = node.gave_up();
        if struck {
            self.crash(node, false).await;
        } else {
            self.mend(node).await?;
        }
        Ok(struck)
    }

    async fn fail_sync_at_stop(&mut self, node: &mut SimNode) -> bool {
        if !node.serves() {
            return false;
        }
        let paths = [".log", "journal"];
        let path = paths[self.dice.below(paths.len() as u64) as usize];
        node.disk().inject(Fault::io(FaultOp::Sync, path).nth(self.dice.below(6)));
        node.stop_and_cut_power().await;
        self.run.record(Event::Crash);
        pause_ms(self.dice.between(0, 500)).await;
        node.start();
        true
    }

    async fn fail_writes(&mut self, node: &mut SimNode) -> Result<bool, String> {
        node.disk().inject(Fault::io(FaultOp::Write, ".log"));
        pause_ms(self.dice.between(100, 2_000)).await;
        self.mend(node).await?;
        Ok(true)
    }

    /// The disk is well again; a process that met the fault at its start is started anew, as is
    /// one with partitions that could not be opened.
    async fn mend(&mut self, node: &mut SimNode) -> Result<(), String> {
        node.mend_disk();
        let looked = node.look();
        if !node.start_failed() {
            looked?;
        }
        if node.start_failed() || node.has_offline() {
            self.crash(node, false).await;
        }
        Ok(())
    }

    async fn stall(&mut self) -> bool {
        let ms = self.dice.between(500, 8_000);
        self.network.stall(ms);
        pause_ms(ms).await;
        true
    }

    fn set_clock(&mut self) -> bool {
        let ahead_ms = self.dice.below(2 * JUMP_MS_MAX) as i64 - JUMP_MS_MAX as i64;
        self.clock.set_ahead(ahead_ms);
        true
    }
}

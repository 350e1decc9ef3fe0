//! Consumer groups: the coordinator over `__consumer_offsets`.
//!
//! [`Groups`] is the handle: it knows which partitions are led here, finds the shard of a group,
//! and answers. What is decided is `machine.rs` and below, pure; where records go is [`GroupLog`].
//! Time is an argument; one task of the broker drives the timers:
//!
//! ```text
//! loop { select! { biased; stop => return, groups.deadline_moved() => {},
//!                  clock reaches groups.next_deadline() => groups.fire(clock.now()) } }
//! ```
//!
//! Lock order: a shard's lock may be held while the log's are taken, never the other way round.

mod calls;
mod classic;
mod codec;
mod describe;
mod hard;
mod lag;
mod load;
mod log;
mod machine;
mod messages;
mod offsets;
mod settings;
mod shell;
mod soft;
mod sweep;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use arc_swap::ArcSwap;
use kraft::machine::Refused;
use parking_lot::RwLock;
use protocol_compat::error::ErrorCode;
use protocol_compat::ids::coordinator_partition;
use tokio::sync::Notify;
use tracing::{info, warn};

pub use hard::{GroupValue, Hard, MemberValue, OffsetValue, Record};
pub use lag::{CommittedOffset, GroupSummary};
pub use load::{LoadError, Loaded};
pub use log::{GroupLog, LogBounds};
pub use machine::{GroupMachine, Timer};
pub use messages::*;
pub use settings::GroupSettings;
pub use shell::WAITING_MAX;
pub use soft::Soft;

use shell::{Answer, NEVER_MS, Slot};

/// All groups that are coordinated here.
pub struct Groups {
    log: Arc<dyn GroupLog>,
    settings: ArcSwap<GroupSettings>,
    /// How many partitions `__consumer_offsets` has, or will have.
    partitions: AtomicI32,
    /// The partitions led here, loading ones included.
    slots: RwLock<BTreeMap<i32, Arc<Slot>>>,
    /// What the timer task waits for; lower deadlines have to wake it.
    scheduled_ms: AtomicI64,
    moved: Notify,
}

impl Groups {
    /// No partition is led here yet. `partitions` is `offsets.topic.num.partitions`, at least 1.
    pub fn new(log: Arc<dyn GroupLog>, settings: GroupSettings, partitions: i32) -> Self {
        assert!(partitions > 0, "the offsets topic has at least one partition");
        Groups {
            log,
            settings: ArcSwap::from_pointee(settings),
            partitions: AtomicI32::new(partitions),
            slots: RwLock::new(BTreeMap::new()),
            scheduled_ms: AtomicI64::new(NEVER_MS),
            moved: Notify::new(),
        }
    }

    /// The offsets topic exists with this many partitions.
    pub fn set_partitions(&self, partitions: i32) {
        assert!(partitions > 0, "the offsets topic has at least one partition");
        self.partitions.store(partitions, Ordering::SeqCst);
    }

    /// The partition of `__consumer_offsets` that a group belongs to, led here or not.
    pub fn partition_of(&self, group: &str) -> i32 {
        coordinator_partition(group, self.partitions.load(Ordering::SeqCst))
    }

    /// Settings count for everything that happens from now on.
    pub fn set_settings(&self, settings: GroupSettings) {
        let settings = Arc::new(settings);
        self.settings.store(settings.clone());
        for slot in self.slots() {
            slot.adjust(|soft| soft.settings = settings.clone());
        }
    }

    /// This broker leads the partition in `leader_epoch`: replays it and takes requests from then
    /// on. Blocks for as long as reading takes; requests meanwhile are answered
    /// COORDINATOR_LOAD_IN_PROGRESS. An earlier epoch's shard is closed; an epoch not later than
    /// the one here is ignored.
    ///
    /// Errors: as [`LoadError`]; the partition is then not coordinated here.
    pub fn load(
        &self,
        partition: i32,
        leader_epoch: i32,
        now: &dyn Fn() -> i64,
    ) -> Result<Loaded, LoadError> {
        let slot = Arc::new(Slot::loading(partition, leader_epoch));
        if !self.take_place(&slot) {
            return Err(LoadError::Overtaken);
        }
        let loaded = self.fill(&slot, now);
        match &loaded {
            Ok(loaded) => {
                let Loaded { records, bytes, end_offset } = loaded;
                info!(partition, leader_epoch, records, bytes, end_offset, "groups loaded");
                self.reschedule(slot.deadline_ms());
            }
            Err(LoadError::Overtaken) => {}
            Err(error) => {
                warn!(partition, leader_epoch, %error, "groups not loaded");
                self.drop_slot(&slot);
            }
        }
        loaded
    }

    fn fill(&self, slot: &Arc<Slot>, now: &dyn Fn() -> i64) -> Result<Loaded, LoadError> {
        let soft = Soft::new(self.settings.load_full());
        let still_loading = || slot.ready() == Err(Refused::Loading);
        let log = &*self.log;
        let (shard, loaded) = load::replay(log, slot.partition, soft, &still_loading)?;
        let bounds = || {
            let bounds = log.bounds(slot.partition).map_err(LoadError::Log)?;
            Ok((loaded.end_offset, bounds.high_watermark))
        };
        slot.activate(shard, now(), bounds)?;
        slot.adjust(|soft| soft.settings = self.settings.load_full());
        match slot.ready() {
            Ok(()) => Ok(loaded),
            Err(_) => Err(LoadError::Overtaken),
        }
    }

    /// Puts a slot in the place of one of an earlier epoch.
    fn take_place(&self, slot: &Arc<Slot>) -> bool {
        let mut slots = self.slots.write();
        match slots.get(&slot.partition) {
            Some(there) if there.leader_epoch >= slot.leader_epoch => return false,
            Some(there) => there.close(Refused::NotLeader),
            None => {}
        }
        slots.insert(slot.partition, slot.clone());
        true
    }

    fn drop_slot(&self, slot: &Arc<Slot>) {
        let mut slots = self.slots.write();
        if slots.get(&slot.partition).is_some_and(|there| Arc::ptr_eq(there, slot)) {
            slots.remove(&slot.partition);
        }
        slot.close(Refused::NotLeader);
    }

    /// This broker no longer leads the partition. Whoever waits is answered NOT_COORDINATOR.
    pub fn unload(&self, partition: i32) {
        let slot = self.slots.write().remove(&partition);
        if let Some(slot) = slot {
            slot.close(Refused::NotLeader);
            info!(partition, leader_epoch = slot.leader_epoch, "groups unloaded");
        }
    }

    /// The broker stops. Whoever waits is answered COORDINATOR_NOT_AVAILABLE.
    pub fn close(&self) {
        let slots = std::mem::take(&mut *self.slots.write());
        slots.into_values().for_each(|slot| slot.close(Refused::Closing));
    }

    /// The log's watermark moved (after a flush, or when followers have it). Answers that waited
    /// for it leave. To be called without any lock of the partition held.
    pub fn on_high_watermark(&self, partition: i32, watermark: i64) {
        let slot = self.slots.read().get(&partition).cloned();
        if let Some(slot) = slot {
            slot.committed(watermark);
        }
    }

    /// Asks about one group and waits for the answer, which may take a rebalance. Of the variant of
    /// the same name.
    pub async fn handle(&self, now_ms: i64, group: &str, input: Input) -> Reply {
        if let Err(error) = input.check(&self.settings.load()) {
            return input.refusal(error);
        }
        let slot = self.slots.read().get(&self.partition_of(group)).cloned();
        match slot {
            Some(slot) => self.ask(&slot, now_ms, input).await,
            None => input.refusal(ErrorCode::NotCoordinator),
        }
    }

    async fn ask(&self, slot: &Slot, now_ms: i64, input: Input) -> Reply {
        let lost = input.refusal(ErrorCode::CoordinatorNotAvailable);
        let answer = slot.submit(&*self.log, now_ms, input);
        self.reschedule(slot.deadline_ms());
        match answer {
            Answer::Now(reply) => reply,
            // The sender lives in the slot until it has answered; the error is for a slot that is
            // gone.
            Answer::Later(receiver) => receiver.await.unwrap_or(lost),
        }
    }

    /// The groups of all partitions led here that pass the filter, by name.
    ///
    /// Errors: COORDINATOR_LOAD_IN_PROGRESS if one of them is not loaded yet.
    pub async fn list(
        &self,
        now_ms: i64,
        filter: ListFilter,
    ) -> Result<Vec<ListedGroup>, ErrorCode> {
        let mut all = Vec::new();
        for slot in self.slots() {
            match self.ask(&slot, now_ms, Input::List(filter.clone())).await {
                Reply::List(Ok(groups)) => all.extend(groups),
                Reply::List(Err(ErrorCode::NotCoordinator)) => {}
                Reply::List(Err(error)) => return Err(error),
                other => unreachable!("a list was answered with {other:?}"),
            }
        }
        all.sort_by(|a, b| a.group.cmp(&b.group));
        Ok(all)
    }

    /// Topics are gone; their offsets go from all groups coordinated here, in the background.
    pub async fn topics_deleted(&self, now_ms: i64, topics: Vec<DeletedTopic>) {
        for slot in self.slots() {
            self.ask(&slot, now_ms, Input::TopicsDeleted(topics.clone())).await;
        }
    }

    /// When [`Groups::fire`] wants to be called next. Asking makes it the time that
    /// [`Groups::deadline_moved`] compares with.
    pub fn next_deadline(&self) -> Option<i64> {
        // While the deadlines are looked at every change counts as a move.
        self.scheduled_ms.store(NEVER_MS, Ordering::SeqCst);
        let earliest_ms = self.slots().iter().map(|slot| slot.deadline_ms()).min();
        let earliest_ms = earliest_ms.filter(|at_ms| *at_ms < NEVER_MS);
        self.scheduled_ms.store(earliest_ms.unwrap_or(NEVER_MS), Ordering::SeqCst);
        earliest_ms
    }

    /// Completes when some deadline may be earlier than [`Groups::next_deadline`] last said.
    pub async fn deadline_moved(&self) {
        self.moved.notified().await;
    }

    fn reschedule(&self, deadline_ms: i64) {
        if deadline_ms < self.scheduled_ms.load(Ordering::SeqCst) {
            self.moved.notify_one();
        }
    }

    /// Runs the timers that are due.
    pub fn fire(&self, now_ms: i64) {
        for slot in self.slots().iter().filter(|slot| slot.deadline_ms() <= now_ms) {
            slot.fire(&*self.log, now_ms);
        }
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.read().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests;

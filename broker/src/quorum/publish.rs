//! Turns a new image into what this node serves: logs are opened and deleted, roles taken, settings
//! changed, coordinators told.
//!
//! Runs on the quorum thread, after the records are committed and before their requests are
//! answered, so that a topic serves when its creator hears of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use kraft::image::{self, Changes, Configs, Image, PartitionAt, Topic, changes};
use kraft::record::{ConfigResource, ResourceKind};
use parking_lot::Mutex;
use protocol_compat::ids::TopicPartition;
use storage::errors::StorageError;

use crate::config::DynamicConfig;
use crate::env::{BoxFuture, Env};
use crate::groups::{DeletedTopic, Groups};
use crate::log_dirs::{Dir, LogDirs, Wanted};
use crate::node::{OFFSETS_TOPIC, is_internal};
use crate::partition::Partition;
use crate::partition::table::{PartitionTable, TopicHandle};
use crate::progress::{Phase, Progress};
use crate::runtime::Runtime;

/// Partitions that found no room are made when their disks have this much.
const ROOM_BYTES: u64 = 64 << 20;

/// Partitions of one topic are opened in runs of this length.
const OPENED_TOGETHER: usize = 16;

/// What the publisher changes.
pub struct Publisher {
    pub env: Env,
    pub node_id: i32,
    pub partitions: Arc<PartitionTable>,
    pub dirs: Arc<LogDirs>,
    pub runtime: Arc<ArcSwap<Runtime>>,
    pub groups: Arc<Groups>,
    pub progress: Arc<Progress>,
    /// Partitions that the disk had no room for.
    pub unmade: Mutex<Vec<PartitionAt>>,
    /// When the log heard of the recovery last.
    pub told_ms: AtomicI64,
}

/// How often the log hears how far a long recovery is.
const TELL_EVERY_MS: i64 = 5_000;

impl Publisher {
    /// Acts on what differs between two images.
    pub fn publish(self: &Arc<Self>, old: &Image, new: &Image) {
        let changes = changes(old, new);
        if changes.is_empty() {
            return;
        }
        self.configs(new, &changes);
        self.delete(&changes);
        for topic in &changes.topics_created {
            if &*topic.name == OFFSETS_TOPIC {
                self.groups.set_partitions(topic.partition_count());
            }
            self.partitions.insert(Arc::new(self.handle(topic, new)));
        }
        self.open(&changes.partitions_created);
        for changed in &changes.partitions_changed {
            self.partition_changed(changed);
        }
    }

    /// Dynamic settings first: what follows is opened with them.
    fn configs(&self, new: &Image, changes: &Changes) {
        let broker_changed = changes.configs.iter().any(|at| at.kind == ResourceKind::Broker);
        if broker_changed {
            let current = self.runtime.load();
            let (config, notices) = DynamicConfig::new(
                Arc::clone(current.config.fixed()),
                overrides(new, &ConfigResource::default_broker()),
                overrides(new, &ConfigResource::broker(self.node_id)),
            );
            for notice in notices {
                tracing::warn!(%notice, "configuration");
            }
            self.runtime.store(Arc::new(Runtime::new(config)));
            self.groups.set_settings(self.runtime.load().group_settings());
            for topic in self.partitions.load().topics() {
                self.settings_changed(&topic.name, new);
            }
            return;
        }
        for at in changes.configs.iter().filter(|at| at.kind == ResourceKind::Topic) {
            self.settings_changed(&at.name, new);
        }
    }

    fn settings_changed(&self, topic: &str, new: &Image) {
        let Some(handle) = self.partitions.topic(topic) else { return };
        let settings = self.settings(topic, new);
        let config = settings.log_config();
        handle.settings.store(Arc::new(settings));
        for partition in handle.partitions() {
            partition.with_log(|log| log.set_config(config.clone()));
        }
    }

    fn settings(&self, topic: &str, image: &Image) -> crate::config::TopicSettings {
        let overrides = overrides(image, &ConfigResource::topic(topic));
        let mut settings = self.runtime.load().config.topic(&overrides);
        if is_internal(topic) {
            // What coordinators answered is on disk, however relaxed the other topics are.
            settings.flush_messages = 1;
        }
        settings
    }

    fn handle(&self, topic: &Topic, image: &Image) -> TopicHandle {
        TopicHandle::new(&topic.name, topic.id, self.settings(&topic.name, image))
    }

    fn delete(&self, changes: &Changes) {
        let (mut deleted, mut gone) = (Vec::new(), BTreeSet::new());
        let now_ms = self.env.clock.wall_ms();
        for topic in &changes.topics_deleted {
            deleted.push(DeletedTopic { topic: Arc::clone(&topic.name), topic_id: topic.id });
            let Some(handle) = self.partitions.remove(&topic.id) else { continue };
            for partition in handle.partitions() {
                if &*topic.name == OFFSETS_TOPIC {
                    self.groups.unload(partition.tp.partition);
                }
                if let Err(error) =
                    self.dirs.delete_partition(&partition, self.env.rng.uuid(), now_ms)
                {
                    tracing::error!(partition = %partition.tp, %error, "not deleted yet");
                }
                gone.insert(partition.tp.clone());
            }
            gone.extend(self.delete_unopened(topic, &handle, now_ms));
        }
        if deleted.is_empty() {
            return;
        }
        if let Err(error) = self.dirs.forget(&gone) {
            tracing::warn!(%error, "deleted partitions are still in the checkpoints");
        }
        self.forget_offsets(deleted);
    }

    /// Those of a deleted topic that are here and could not be opened, or made.
    fn delete_unopened(
        &self,
        topic: &Topic,
        handle: &TopicHandle,
        now_ms: i64,
    ) -> Vec<TopicPartition> {
        let mut gone = Vec::new();
        let delay_ms = handle.settings.load().file_delete_delay_ms;
        for index in (0..topic.partition_count()).filter(|at| handle.partition(*at).is_none()) {
            let tp = TopicPartition { topic: Arc::clone(&topic.name), partition: index };
            let unique = self.env.rng.uuid();
            match self.dirs.delete_unopened(&tp, unique, delay_ms, now_ms) {
                Ok(was_here) if was_here => {
                    self.progress.partition_tried_again();
                    gone.push(tp);
                }
                Ok(_) => {}
                Err(error) => tracing::error!(partition = %tp, %error, "not deleted yet"),
            }
        }
        gone
    }

    /// Lets the coordinators drop the offsets of deleted topics, in the background.
    fn forget_offsets(&self, deleted: Vec<DeletedTopic>) {
        let (groups, clock) = (Arc::clone(&self.groups), Arc::clone(&self.env.clock));
        let task = move || {
            Box::pin(async move { groups.topics_deleted(clock.steady_ms(), deleted).await })
                as BoxFuture<()>
        };
        self.env.tasks.spawn_on(0, "forget-offsets", Box::new(task));
    }

    /// Opens partitions, several at a time, each serving as soon as it is ready.
    fn open(self: &Arc<Self>, created: &[PartitionAt]) {
        let mine = created.iter().filter(|at| at.new.replicas.contains(&self.node_id));
        let mine: Vec<PartitionAt> = mine.cloned().collect();
        self.progress.expect_partitions(mine.len());
        let mut by_topic: BTreeMap<uuid::Uuid, Vec<PartitionAt>> = BTreeMap::new();
        for at in mine {
            by_topic.entry(at.topic.id).or_default().push(at);
        }
        let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        for list in by_topic.into_values() {
            for chunk in list.chunks(OPENED_TOGETHER) {
                let (this, chunk) = (Arc::clone(self), chunk.to_vec());
                jobs.push(Box::new(move || this.open_some(&chunk)));
            }
        }
        self.env.tasks.parallel(jobs);
    }

    fn open_some(&self, list: &[PartitionAt]) {
        let Some(first) = list.first() else { return };
        let tables = self.partitions.load();
        let Some(handle) = tables.by_id(&first.topic.id) else { return };
        let opened = list.iter().filter_map(|at| self.open_partition(handle, at)).collect();
        handle.place(opened);
        if &*handle.name == OFFSETS_TOPIC {
            for at in list {
                self.load_groups(at.index, &at.new);
            }
        }
    }

    fn open_partition(&self, handle: &TopicHandle, at: &PartitionAt) -> Option<Arc<Partition>> {
        let tp = TopicPartition { topic: Arc::clone(&handle.name), partition: at.index };
        let wanted =
            Wanted { tp: tp.clone(), topic_id: handle.id, settings: Arc::clone(&handle.settings) };
        let now_ms = self.env.clock.wall_ms();
        match self.dirs.open_partition(self.node_id, wanted, now_ms) {
            Ok(partition) => {
                let partition = Arc::new(partition);
                self.take_role(&partition, &at.new);
                self.progress.partition_opened();
                self.tell_progress();
                Some(partition)
            }
            Err(error) if error.is_failed_sync() => {
                tracing::error!(partition = %tp, %error, "a sync failed, stopping");
                self.env.tasks.abort();
            }
            Err(error) => {
                tracing::error!(partition = %tp, %error, "the partition is offline");
                self.progress.partition_failed();
                if let StorageError::Full { .. } = error {
                    self.unmade.lock().push(at.clone());
                }
                None
            }
        }
    }

    /// Tries again what the disk had no room for; quiet while it still has none.
    pub fn make_again(self: &Arc<Self>) {
        if self.unmade.lock().is_empty() || !self.has_room() {
            return;
        }
        for at in std::mem::take(&mut *self.unmade.lock()) {
            self.progress.partition_tried_again();
            // Deleted meanwhile, maybe.
            if self.partitions.load().by_id(&at.topic.id).is_some() {
                tracing::info!(topic = %at.topic.name, partition = at.index, "tried again");
                self.open_some(&[at]);
            }
        }
    }

    fn has_room(&self) -> bool {
        let space = |dir: &Dir| self.env.disk.space(dir.log_dir.path());
        self.dirs.dirs().iter().all(|dir| space(dir).is_ok_and(|space| space.usable >= ROOM_BYTES))
    }

    fn tell_progress(&self) {
        let (now_ms, told_ms) = (self.env.clock.mono_ms(), self.told_ms.load(Ordering::Relaxed));
        if self.progress.phase() != Phase::Recovering || now_ms - told_ms < TELL_EVERY_MS {
            return;
        }
        if told_ms > 0 {
            let (opened, wanted) = self.progress.partitions();
            tracing::info!(opened, wanted, "partitions are being opened");
        }
        self.told_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Says which directories belong to no topic. They are left alone: if the metadata was lost,
    /// they are all there is.
    pub fn tell_strays(&self, image: &Image) {
        let strays = self.dirs.strays(|tp| image.partition(&tp.topic, tp.partition).is_some());
        if let Some(first) = strays.first() {
            let count = strays.len();
            tracing::warn!(count, %first, "partition directories that no topic has: left alone");
        }
    }

    fn take_role(&self, partition: &Partition, state: &image::Partition) {
        if state.leader() != Some(self.node_id) {
            return;
        }
        let isr = state.isr.iter().copied().collect();
        partition.become_leader(state.leader_epoch, isr);
    }

    fn partition_changed(&self, at: &PartitionAt) {
        let Some(partition) = self.partitions.partition(&at.topic.name, at.index) else { return };
        self.take_role(&partition, &at.new);
        let was = at.old.as_ref().map(|old| old.leader_epoch);
        if &*at.topic.name == OFFSETS_TOPIC && was != Some(at.new.leader_epoch) {
            self.load_groups(at.index, &at.new);
        }
    }

    fn load_groups(&self, index: i32, state: &image::Partition) {
        if state.leader() == Some(self.node_id) {
            let clock = &self.env.clock;
            // A partition that cannot be loaded is logged there, and not coordinated here.
            let _ = self.groups.load(index, state.leader_epoch, &|| clock.steady_ms());
        } else {
            self.groups.unload(index);
        }
    }
}

/// The overrides of a resource; none is an empty map.
pub fn overrides(image: &Image, at: &ConfigResource) -> Arc<Configs> {
    image.configs(at).cloned().unwrap_or_default()
}

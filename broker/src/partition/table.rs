//! The topics and partitions that this node serves, for look-up from any thread.
//!
//! The map is persistent: a change copies a path, readers keep the picture they took. Only the
//! publisher (`quorum/publish.rs`) changes it.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use imbl::OrdMap;
use parking_lot::Mutex;
use uuid::Uuid;

use super::Partition;
use crate::config::TopicSettings;
use crate::metrics::TopicMetrics;

/// A topic as this node serves it.
pub struct TopicHandle {
    pub name: Arc<str>,
    pub id: Uuid,
    /// Shared with every partition; replaced when a config changes.
    pub settings: Arc<ArcSwap<TopicSettings>>,
    pub metrics: TopicMetrics,
    /// By index; a hole is a partition that is not here, or not open yet.
    partitions: ArcSwap<Vec<Option<Arc<Partition>>>>,
    placing: Mutex<()>,
}

impl TopicHandle {
    pub fn new(name: &str, id: Uuid, settings: TopicSettings) -> TopicHandle {
        TopicHandle {
            name: Arc::from(name),
            id,
            settings: Arc::new(ArcSwap::from_pointee(settings)),
            metrics: TopicMetrics::new(name),
            partitions: ArcSwap::from_pointee(Vec::new()),
            placing: Mutex::new(()),
        }
    }

    pub fn partition(&self, index: i32) -> Option<Arc<Partition>> {
        let index = usize::try_from(index).ok()?;
        self.partitions.load().get(index)?.clone()
    }

    pub fn partitions(&self) -> Vec<Arc<Partition>> {
        self.partitions.load().iter().flatten().cloned().collect()
    }

    /// Puts opened partitions in their places.
    pub fn place(&self, opened: Vec<Arc<Partition>>) {
        let _one_at_a_time = self.placing.lock();
        let mut list = Vec::clone(&self.partitions.load());
        for partition in opened {
            let Ok(index) = usize::try_from(partition.tp.partition) else { continue };
            if list.len() <= index {
                list.resize(index + 1, None);
            }
            list[index] = Some(partition);
        }
        self.partitions.store(Arc::new(list));
    }
}

/// One picture of all topics.
#[derive(Clone, Default)]
pub struct Tables {
    by_name: OrdMap<Arc<str>, Arc<TopicHandle>>,
    by_id: OrdMap<Uuid, Arc<TopicHandle>>,
}

impl Tables {
    pub fn by_name(&self, name: &str) -> Option<&Arc<TopicHandle>> {
        self.by_name.get(name)
    }

    pub fn by_id(&self, id: &Uuid) -> Option<&Arc<TopicHandle>> {
        self.by_id.get(id)
    }

    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicHandle>> {
        self.by_name.values()
    }
}

/// The current picture.
#[derive(Default)]
pub struct PartitionTable {
    tables: ArcSwap<Tables>,
    change: Mutex<()>,
}

impl PartitionTable {
    pub fn load(&self) -> Guard<Arc<Tables>> {
        self.tables.load()
    }

    pub fn topic(&self, name: &str) -> Option<Arc<TopicHandle>> {
        self.tables.load().by_name(name).cloned()
    }

    pub fn partition(&self, topic: &str, index: i32) -> Option<Arc<Partition>> {
        self.tables.load().by_name(topic)?.partition(index)
    }

    /// Every partition that is open here.
    pub fn all(&self) -> Vec<Arc<Partition>> {
        self.tables.load().topics().flat_map(|topic| topic.partitions()).collect()
    }

    pub fn insert(&self, topic: Arc<TopicHandle>) {
        let _one_at_a_time = self.change.lock();
        let mut tables = Tables::clone(&self.tables.load());
        tables.by_id.insert(topic.id, Arc::clone(&topic));
        tables.by_name.insert(Arc::clone(&topic.name), topic);
        self.tables.store(Arc::new(tables));
    }

    /// Takes a topic out, by id: its name may belong to a newer one already.
    pub fn remove(&self, id: &Uuid) -> Option<Arc<TopicHandle>> {
        let _one_at_a_time = self.change.lock();
        let mut tables = Tables::clone(&self.tables.load());
        let topic = tables.by_id.remove(id)?;
        if tables.by_name.get(&topic.name).is_some_and(|current| current.id == *id) {
            tables.by_name.remove(&topic.name);
        }
        self.tables.store(Arc::new(tables));
        Some(topic)
    }
}

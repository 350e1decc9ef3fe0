//! What differs between two images. Costs what changed, not what there is: parts that both images
//! share are passed over. Acting on it is the broker's publisher.

use std::sync::Arc;

use imbl::ordmap::DiffItem;

use super::{Image, Partition, Topic};
use crate::record::ConfigResource;

/// A partition of the newer image.
#[derive(Clone, Debug)]
pub struct PartitionAt {
    pub topic: Arc<Topic>,
    pub index: i32,
    /// As it was in the older image; `None` if it is new.
    pub old: Option<Arc<Partition>>,
    pub new: Arc<Partition>,
}

/// What differs between an older image and a newer one. Everything is in order of name, id or
/// index.
///
/// A topic that was deleted and made again under the same name is in both topic lists, and all its
/// partitions count as created.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub topics_created: Vec<Arc<Topic>>,
    /// As they were in the older image; their partitions are not listed elsewhere.
    pub topics_deleted: Vec<Arc<Topic>>,
    /// New partitions, of new topics and of old ones.
    pub partitions_created: Vec<PartitionAt>,
    pub partitions_changed: Vec<PartitionAt>,
    /// Resources any of whose overrides differ, also those that lost all of them.
    pub configs: Vec<ConfigResource>,
    /// Brokers that came, went or changed.
    pub brokers: Vec<i32>,
    pub features: bool,
    pub quotas: bool,
    pub acls: bool,
    pub scrams: bool,
}

impl Changes {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.topics_created.is_empty()
            && self.topics_deleted.is_empty()
            && self.partitions_created.is_empty()
            && self.partitions_changed.is_empty()
            && self.configs.is_empty()
            && self.brokers.is_empty()
            && !(self.features || self.quotas || self.acls || self.scrams)
    }

    fn topic_created(&mut self, topic: &Arc<Topic>) {
        self.topics_created.push(topic.clone());
        self.partitions_from(topic, 0);
    }

    fn topic_changed(&mut self, old: &Arc<Topic>, new: &Arc<Topic>) {
        if old.id != new.id {
            self.topics_deleted.push(old.clone());
            self.topic_created(new);
            return;
        }
        for (index, (was, is)) in (0..).zip(old.partitions.iter().zip(&new.partitions)) {
            if !Arc::ptr_eq(was, is) && was != is {
                let (topic, old, new) = (new.clone(), Some(was.clone()), is.clone());
                self.partitions_changed.push(PartitionAt { topic, index, old, new });
            }
        }
        self.partitions_from(new, old.partitions.len());
    }

    fn partitions_from(&mut self, topic: &Arc<Topic>, first: usize) {
        for (index, new) in (0..).zip(&topic.partitions).skip(first) {
            let (topic, new) = (topic.clone(), new.clone());
            self.partitions_created.push(PartitionAt { topic, index, old: None, new });
        }
    }
}

/// What differs between `old` and `new`.
pub fn changes(old: &Image, new: &Image) -> Changes {
    let mut out = Changes::default();
    for item in old.topics.diff(&new.topics) {
        match item {
            DiffItem::Add(_, topic) => out.topic_created(topic),
            DiffItem::Remove(_, topic) => out.topics_deleted.push(topic.clone()),
            DiffItem::Update { old: (_, old), new: (_, new) } => out.topic_changed(old, new),
        }
    }
    for item in old.configs.diff(&new.configs) {
        let (DiffItem::Add(resource, _)
        | DiffItem::Remove(resource, _)
        | DiffItem::Update { new: (resource, _), .. }) = item;
        out.configs.push(resource.clone());
    }
    for item in old.brokers.diff(&new.brokers) {
        let (DiffItem::Add(id, _)
        | DiffItem::Remove(id, _)
        | DiffItem::Update { new: (id, _), .. }) = item;
        out.brokers.push(*id);
    }
    out.features = old.features.diff(&new.features).next().is_some();
    out.quotas = old.quotas.diff(&new.quotas).next().is_some();
    out.acls = old.acls.diff(&new.acls).next().is_some();
    out.scrams = old.scrams.diff(&new.scrams).next().is_some();
    out
}

//! The cluster's metadata at one moment: what the applied records add up to.
//!
//! Built from persistent maps, so that a clone costs nothing and readers keep the one they took.
//! `apply.rs` changes it, `changes.rs` says what differs between two. Deciding what may change is
//! `controller/`; keeping the records is `raft/`.

mod apply;
mod changes;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use uuid::Uuid;

pub use apply::ImageError;
pub use changes::{Changes, PartitionAt, changes};

use crate::record::{
    AclRecord, ConfigResource, Endpoint, FeatureRange, NO_LEADER, PartitionRecord, QuotaEntity,
    ScramRecord,
};

/// The feature that switches eligible leader replicas on (KIP-966).
pub const ELR_FEATURE: &str = "eligible.leader.replicas.version";
/// The feature that stands for the level of the whole cluster.
pub const METADATA_FEATURE: &str = "metadata.version";

/// Overrides of one resource, by key.
pub type Configs = BTreeMap<Arc<str>, Arc<str>>;

/// All metadata of the cluster. Equality looks at the contents, not at [`Image::last_applied`].
#[derive(Clone, Debug)]
pub struct Image {
    last_applied: i64,
    topics: OrdMap<Arc<str>, Arc<Topic>>,
    names: OrdMap<Uuid, Arc<str>>,
    brokers: OrdMap<i32, Arc<Broker>>,
    last_broker_epoch: i64,
    configs: OrdMap<ConfigResource, Arc<Configs>>,
    features: OrdMap<Arc<str>, i16>,
    next_producer_id: i64,
    quotas: OrdMap<QuotaEntity, Arc<BTreeMap<Arc<str>, f64>>>,
    acls: OrdMap<Uuid, Arc<AclRecord>>,
    scrams: OrdMap<(Arc<str>, i8), Arc<ScramRecord>>,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: Arc<str>,
    pub id: Uuid,
    /// Partition `n` is at position `n`.
    pub partitions: Vec<Arc<Partition>>,
}

impl Topic {
    /// The partition with this index.
    pub fn partition(&self, partition: i32) -> Option<&Arc<Partition>> {
        self.partitions.get(usize::try_from(partition).ok()?)
    }

    /// How many partitions there are.
    pub fn partition_count(&self) -> i32 {
        i32::try_from(self.partitions.len()).expect("a topic holds fewer than 2^31 partitions")
    }
}

/// A partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// In order of preference: the first is the preferred leader.
    pub replicas: Vec<i32>,
    /// One directory id for each replica, in the order of `replicas`; zero = unassigned.
    pub directories: Vec<Uuid>,
    /// In-sync replicas, a subset of `replicas`.
    pub isr: Vec<i32>,
    /// Replicas that a reassignment adds; part of `replicas` until it ends.
    pub adding: Vec<i32>,
    /// Replicas that a reassignment removes; part of `replicas` until it ends.
    pub removing: Vec<i32>,
    /// Replicas outside the ISR that are known to hold every committed record (KIP-966).
    pub elr: Vec<i32>,
    /// The last leader, when ISR and ELR are both empty.
    pub last_known_elr: Vec<i32>,
    /// [`NO_LEADER`] if there is none.
    pub leader: i32,
    /// True after an unclean election until the leader says it has recovered.
    pub recovering: bool,
    /// Rises when the leader changes or must notice a change.
    pub leader_epoch: i32,
    /// Rises with every change.
    pub partition_epoch: i32,
}

impl Partition {
    /// The leader's broker id, if there is a leader.
    pub fn leader(&self) -> Option<i32> {
        (self.leader != NO_LEADER).then_some(self.leader)
    }

    /// Whether replicas are being added or removed.
    pub fn is_reassigning(&self) -> bool {
        !self.adding.is_empty() || !self.removing.is_empty()
    }

    /// The directory that a broker keeps its replica in; zero = unassigned.
    pub fn directory(&self, broker_id: i32) -> Option<Uuid> {
        let at = self.replicas.iter().position(|replica| *replica == broker_id)?;
        self.directories.get(at).copied()
    }

    fn to_record(&self, topic_id: Uuid, partition: i32) -> PartitionRecord {
        PartitionRecord {
            topic_id,
            partition,
            replicas: self.replicas.clone(),
            directories: self.directories.clone(),
            isr: self.isr.clone(),
            adding: self.adding.clone(),
            removing: self.removing.clone(),
            elr: self.elr.clone(),
            last_known_elr: self.last_known_elr.clone(),
            leader: self.leader,
            recovering: self.recovering,
            leader_epoch: self.leader_epoch,
            partition_epoch: self.partition_epoch,
        }
    }
}

/// A registered broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    pub id: i32,
    /// Drawn by the broker at each start.
    pub incarnation_id: Uuid,
    /// Rises with each registration of any broker.
    pub epoch: i64,
    pub endpoints: Vec<Endpoint>,
    pub features: Vec<FeatureRange>,
    pub rack: Option<Arc<str>>,
    /// A fenced broker leads nothing and is in no new ISR.
    pub fenced: bool,
    pub in_controlled_shutdown: bool,
    pub directories: Vec<Uuid>,
}

impl Broker {
    /// Neither fenced nor on its way out: may lead and may join an ISR.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// Where this listener is reached.
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| &*endpoint.name == listener)
    }
}

impl Default for Image {
    /// The image before the first record. The first producer id is 0, and nothing is applied.
    fn default() -> Image {
        Image {
            last_applied: -1,
            topics: OrdMap::new(),
            names: OrdMap::new(),
            brokers: OrdMap::new(),
            last_broker_epoch: -1,
            configs: OrdMap::new(),
            features: OrdMap::new(),
            next_producer_id: 0,
            quotas: OrdMap::new(),
            acls: OrdMap::new(),
            scrams: OrdMap::new(),
        }
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Image) -> bool {
        self.topics == other.topics
            && self.names == other.names
            && self.brokers == other.brokers
            && self.last_broker_epoch == other.last_broker_epoch
            && self.configs == other.configs
            && self.features == other.features
            && self.next_producer_id == other.next_producer_id
            && self.quotas == other.quotas
            && self.acls == other.acls
            && self.scrams == other.scrams
    }
}

impl Image {
    /// Index of the last applied entry of the metadata log; -1 before the first.
    pub fn last_applied(&self) -> i64 {
        self.last_applied
    }

    /// The topic with this name.
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(name)
    }

    /// The topic with this id.
    pub fn topic_by_id(&self, id: Uuid) -> Option<&Arc<Topic>> {
        self.topics.get(self.names.get(&id)?)
    }

    /// All topics, by name.
    pub fn topics(&self) -> impl DoubleEndedIterator<Item = &Arc<Topic>> {
        self.topics.values()
    }

    /// Topics whose names are not below `name`, by name.
    pub fn topics_from(&self, name: &str) -> impl Iterator<Item = &Arc<Topic>> {
        let range = (Bound::Included(name), Bound::Unbounded);
        self.topics.range::<_, str>(range).map(|(_, topic)| topic)
    }

    /// How many topics there are.
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// A partition by topic name and index.
    pub fn partition(&self, topic: &str, partition: i32) -> Option<&Arc<Partition>> {
        self.topic(topic)?.partition(partition)
    }

    /// The broker with this id, fenced or not.
    pub fn broker(&self, id: i32) -> Option<&Arc<Broker>> {
        self.brokers.get(&id)
    }

    /// All registered brokers, by id.
    pub fn brokers(&self) -> impl DoubleEndedIterator<Item = &Arc<Broker>> {
        self.brokers.values()
    }

    /// Whether this broker is registered and neither fenced nor shutting down.
    pub fn is_active(&self, broker_id: i32) -> bool {
        self.broker(broker_id).is_some_and(|broker| broker.is_active())
    }

    /// The highest broker epoch given out so far; -1 before the first registration.
    pub fn last_broker_epoch(&self) -> i64 {
        self.last_broker_epoch
    }

    /// The overrides of a resource; `None` if it has none.
    pub fn configs(&self, resource: &ConfigResource) -> Option<&Arc<Configs>> {
        self.configs.get(resource)
    }

    /// One override of a resource.
    pub fn config(&self, resource: &ConfigResource, key: &str) -> Option<&Arc<str>> {
        self.configs.get(resource)?.get(key)
    }

    /// All resources that have overrides, by kind and name.
    pub fn all_configs(&self) -> impl Iterator<Item = (&ConfigResource, &Arc<Configs>)> {
        self.configs.iter()
    }

    /// The finalized level of a feature; 0 if it is not finalized.
    pub fn feature(&self, name: &str) -> i16 {
        self.features.get(name).copied().unwrap_or(0)
    }

    /// All finalized features and their levels, none of them 0.
    pub fn features(&self) -> impl Iterator<Item = (&Arc<str>, i16)> {
        self.features.iter().map(|(name, level)| (name, *level))
    }

    /// The lowest producer id not given out.
    pub fn next_producer_id(&self) -> i64 {
        self.next_producer_id
    }

    /// All client quotas: entity, then key and value.
    pub fn quotas(&self) -> impl Iterator<Item = (&QuotaEntity, &Arc<BTreeMap<Arc<str>, f64>>)> {
        self.quotas.iter()
    }

    /// The quotas of exactly this entity (pairs ordered by type).
    pub fn quota(&self, entity: &QuotaEntity) -> Option<&Arc<BTreeMap<Arc<str>, f64>>> {
        self.quotas.get(entity)
    }

    /// All access control entries, by id.
    pub fn acls(&self) -> impl Iterator<Item = &Arc<AclRecord>> {
        self.acls.values()
    }

    /// The access control entry with this id.
    pub fn acl(&self, id: Uuid) -> Option<&Arc<AclRecord>> {
        self.acls.get(&id)
    }

    /// All SCRAM credentials, by user and mechanism.
    pub fn scrams(&self) -> impl Iterator<Item = &Arc<ScramRecord>> {
        self.scrams.values()
    }

    /// The credential of a user for a mechanism.
    pub fn scram(&self, user: &str, mechanism: i8) -> Option<&Arc<ScramRecord>> {
        self.scrams.get(&(Arc::from(user), mechanism))
    }
}

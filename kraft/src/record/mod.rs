//! The records of the metadata log: Kafka's meanings, our own bytes (`codec.rs`).
//!
//! A record says what became true; `image/` applies it and cannot refuse what a controller decided.
//! Source of the meanings: Kafka's metadata record schemas (KRaft, KIP-500 and later). Types that
//! only matter to Kafka's own log format (begin/end of a transaction, ZooKeeper migration) have no
//! twin here.

mod codec;
mod fields;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

pub use codec::{BATCH_VERSION, RecordError, decode_batch, encode_batch};

/// The leader of a partition that has none.
pub const NO_LEADER: i32 = -1;

/// One fact of the metadata log.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataRecord {
    /// A topic exists; its partitions follow as [`MetadataRecord::Partition`].
    Topic(TopicRecord),
    /// A partition exists. Partitions of a topic come in order, from 0.
    Partition(PartitionRecord),
    /// A partition changed. Its partition epoch rises by one; see [`PartitionChangeRecord`] for the
    /// leader epoch.
    PartitionChange(PartitionChangeRecord),
    /// A topic, its partitions and its configs are gone.
    RemoveTopic { topic_id: Uuid },
    /// A broker (re-)registered.
    RegisterBroker(BrokerRecord),
    /// A broker was taken out of the cluster.
    UnregisterBroker { broker_id: i32, broker_epoch: i64 },
    /// Part of a broker's registration changed: fencing, controlled shutdown, directories.
    BrokerChange(BrokerChangeRecord),
    /// A config of a resource was set (`Some`) or deleted (`None`).
    Config(ConfigRecord),
    /// A feature is finalized at this level; level 0 takes it off the list.
    FeatureLevel { name: Arc<str>, level: i16 },
    /// Producer ids below `next_producer_id` are given out.
    ProducerIds { broker_id: i32, broker_epoch: i64, next_producer_id: i64 },
    /// A client quota was set (`Some`) or removed (`None`).
    ClientQuota(ClientQuotaRecord),
    /// An access control entry exists.
    Acl(AclRecord),
    /// An access control entry is gone.
    RemoveAcl { id: Uuid },
    /// A SCRAM credential was set.
    Scram(ScramRecord),
    /// A SCRAM credential is gone.
    RemoveScram { user: Arc<str>, mechanism: i8 },
    /// The eligible leader replicas of a topic (of all topics when `None`) are void where the ISR
    /// is not empty, because min.insync.replicas changed (KIP-966).
    ClearElr { topic: Option<Arc<str>> },
    /// The highest broker epoch given out so far. Written in snapshots, where the registrations
    /// that carried it may be gone.
    BrokerEpoch { last: i64 },
    /// Nothing; moves the log on.
    NoOp,
}

/// A topic's name and id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRecord {
    pub name: Arc<str>,
    pub topic_id: Uuid,
}

/// A whole partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRecord {
    pub topic_id: Uuid,
    pub partition: i32,
    /// In order of preference: the first is the preferred leader.
    pub replicas: Vec<i32>,
    /// One directory id for each replica, in the order of `replicas`; zero = unassigned.
    pub directories: Vec<Uuid>,
    pub isr: Vec<i32>,
    pub adding: Vec<i32>,
    pub removing: Vec<i32>,
    pub elr: Vec<i32>,
    pub last_known_elr: Vec<i32>,
    /// [`NO_LEADER`] if there is none.
    pub leader: i32,
    /// True after an unclean election until the leader says it has recovered.
    pub recovering: bool,
    pub leader_epoch: i32,
    pub partition_epoch: i32,
}

/// What changed in a partition; `None` = unchanged.
///
/// Every such record raises the partition epoch by one. It raises the leader epoch by one if
/// `leader` is given, even if it names the leader that was there already (Kafka's
/// `PartitionRegistration.merge`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionChangeRecord {
    pub topic_id: Uuid,
    pub partition: i32,
    pub isr: Option<Vec<i32>>,
    pub leader: Option<i32>,
    pub replicas: Option<Vec<i32>>,
    pub directories: Option<Vec<Uuid>>,
    pub removing: Option<Vec<i32>>,
    pub adding: Option<Vec<i32>>,
    pub elr: Option<Vec<i32>>,
    pub last_known_elr: Option<Vec<i32>>,
    pub recovering: Option<bool>,
}

/// Where a listener of a broker is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Listener name, as in `advertised.listeners`.
    pub name: Arc<str>,
    pub host: Arc<str>,
    pub port: u16,
    /// Kafka's security protocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// The levels of a feature that a node can work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureRange {
    pub name: Arc<str>,
    pub min_level: i16,
    pub max_level: i16,
}

/// A broker's registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerRecord {
    pub broker_id: i32,
    /// Drawn by the broker at each start.
    pub incarnation_id: Uuid,
    /// Rises with each registration of any broker.
    pub broker_epoch: i64,
    pub endpoints: Vec<Endpoint>,
    pub features: Vec<FeatureRange>,
    pub rack: Option<Arc<str>>,
    pub fenced: bool,
    pub in_controlled_shutdown: bool,
    pub directories: Vec<Uuid>,
}

/// What changed in a broker's registration; `None` = unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerChangeRecord {
    pub broker_id: i32,
    pub broker_epoch: i64,
    pub fenced: Option<bool>,
    pub in_controlled_shutdown: Option<bool>,
    pub directories: Option<Vec<Uuid>>,
}

/// What kind of thing a config belongs to; the numbers are those of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i8)]
pub enum ResourceKind {
    Topic = 2,
    Broker = 4,
    ClientMetrics = 16,
    Group = 32,
}

impl ResourceKind {
    /// The kind with this number; `None` for numbers that keep no configs in the metadata log.
    pub fn from_code(code: i8) -> Option<ResourceKind> {
        match code {
            2 => Some(ResourceKind::Topic),
            4 => Some(ResourceKind::Broker),
            16 => Some(ResourceKind::ClientMetrics),
            32 => Some(ResourceKind::Group),
            _ => None,
        }
    }

    /// The number of this kind in the protocol.
    pub fn code(self) -> i8 {
        self as i8
    }
}

/// A thing that has configs. The empty name of a broker resource is the default of all brokers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigResource {
    pub kind: ResourceKind,
    pub name: Arc<str>,
}

impl ConfigResource {
    /// A resource of this kind and name.
    pub fn new(kind: ResourceKind, name: &str) -> ConfigResource {
        ConfigResource { kind, name: name.into() }
    }

    /// The configs of a topic.
    pub fn topic(name: &str) -> ConfigResource {
        ConfigResource::new(ResourceKind::Topic, name)
    }

    /// The configs of one broker.
    pub fn broker(broker_id: i32) -> ConfigResource {
        ConfigResource::new(ResourceKind::Broker, &broker_id.to_string())
    }

    /// The dynamic defaults of all brokers.
    pub fn default_broker() -> ConfigResource {
        ConfigResource::new(ResourceKind::Broker, "")
    }
}

/// One config of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigRecord {
    pub resource: ConfigResource,
    pub key: Arc<str>,
    /// `None` deletes the config.
    pub value: Option<Arc<str>>,
}

/// Whom a quota is for: pairs of entity type and name, ordered by type; a `None` name is the
/// default entity of that type.
pub type QuotaEntity = Vec<(Arc<str>, Option<Arc<str>>)>;

/// One quota of one entity.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientQuotaRecord {
    pub entity: QuotaEntity,
    pub key: Arc<str>,
    /// `None` removes the quota.
    pub value: Option<f64>,
}

/// An access control entry; the numbers are those of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclRecord {
    pub id: Uuid,
    pub resource_type: i8,
    pub resource_name: Arc<str>,
    pub pattern_type: i8,
    pub principal: Arc<str>,
    pub host: Arc<str>,
    pub operation: i8,
    pub permission_type: i8,
}

/// A SCRAM credential (RFC 5802). `mechanism`: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramRecord {
    pub user: Arc<str>,
    pub mechanism: i8,
    pub salt: Vec<u8>,
    pub stored_key: Vec<u8>,
    pub server_key: Vec<u8>,
    pub iterations: i32,
}

/// Keeps the keys out of logs.
impl fmt::Debug for ScramRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramRecord")
            .field("user", &self.user)
            .field("mechanism", &self.mechanism)
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

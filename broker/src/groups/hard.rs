//! What the log says: one entry per group, with its last group record and its committed offsets.
//!
//! [`Hard::apply`] is the only way it changes. The life of a group between two records (joins,
//! parked requests, timers) is `soft.rs` and `classic/`.

use std::collections::BTreeMap;

use bytes::Bytes;
use uuid::Uuid;

use super::messages::Name;

/// One entry of `__consumer_offsets` that the coordinator understands; `None` is a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Group { group: Name, value: Option<GroupValue> },
    Offset { group: Name, topic: Name, partition: i32, value: Option<OffsetValue> },
}

/// A classic group as it is stored: written when the leader has assigned, when a static member is
/// replaced and when the group becomes empty (Kafka's `GroupMetadataValue`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupValue {
    /// `None` for a group that so far only stores offsets.
    pub protocol_type: Option<Name>,
    pub generation: i32,
    /// `None` in an empty group.
    pub protocol: Option<Name>,
    pub leader: Option<Name>,
    /// When the group entered its state; not in records of old versions.
    pub state_since_ms: Option<i64>,
    pub members: Vec<MemberValue>,
}

/// One member as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberValue {
    pub member_id: Name,
    pub instance_id: Option<Name>,
    pub client_id: Name,
    pub client_host: Name,
    /// -1 in records of old versions: the session timeout counts.
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// What it said about itself under the group's protocol.
    pub subscription: Bytes,
    pub assignment: Bytes,
}

/// A committed offset (Kafka's `OffsetCommitValue`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetValue {
    pub offset: i64,
    /// -1 when not known.
    pub leader_epoch: i32,
    pub metadata: Name,
    pub commit_ms: i64,
    /// A deadline of its own, from a commit with a retention time; else the group's rule holds.
    pub expire_ms: Option<i64>,
    /// Nil when not known.
    pub topic_id: Uuid,
}

/// Everything the log of one partition says.
#[derive(Debug, Default, PartialEq)]
pub struct Hard {
    groups: BTreeMap<Name, Stored>,
}

/// Offsets by topic and partition; no topic is empty.
pub type Offsets = BTreeMap<Name, BTreeMap<i32, OffsetValue>>;

/// One group. It exists from its first record until the tombstone of its group record, also when
/// all its offsets are gone (Kafka's "simple" group has no group record at all).
#[derive(Debug, Default, PartialEq)]
pub struct Stored {
    /// The last group record; a simple group has none.
    pub value: Option<GroupValue>,
    pub offsets: Offsets,
}

impl Stored {
    /// Whether nobody was a member when the last record was written.
    pub fn is_empty_group(&self) -> bool {
        self.value.as_ref().is_none_or(|value| value.members.is_empty())
    }

    /// The protocol type, for a group that ever had members.
    pub fn protocol_type(&self) -> Option<&Name> {
        self.value.as_ref().and_then(|value| value.protocol_type.as_ref())
    }

    /// One committed offset.
    pub fn offset(&self, topic: &str, partition: i32) -> Option<&OffsetValue> {
        self.offsets.get(topic)?.get(&partition)
    }
}

impl Hard {
    /// One group.
    pub fn group(&self, group: &str) -> Option<&Stored> {
        self.groups.get(group)
    }

    /// Whether the group exists.
    pub fn has(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// All groups, by name.
    pub fn groups(&self) -> impl Iterator<Item = (&Name, &Stored)> {
        self.groups.iter()
    }

    /// The groups whose names follow `after`, by name.
    pub fn groups_after(&self, after: Option<&Name>) -> impl Iterator<Item = (&Name, &Stored)> {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, |name| Bound::Excluded(name.clone()));
        self.groups.range((from, Bound::Unbounded))
    }

    /// Changes the state by one record. Any sequence of records is legal: compaction may have taken
    /// the records in between.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Group { group, value: Some(value) } => {
                self.entry(group).value = Some(value.clone());
            }
            Record::Group { group, value: None } => {
                if let Some(stored) = self.groups.get_mut(group) {
                    stored.value = None;
                    if stored.offsets.is_empty() {
                        self.groups.remove(group);
                    }
                }
            }
            Record::Offset { group, topic, partition, value: Some(value) } => {
                let topics = &mut self.entry(group).offsets;
                match topics.get_mut(topic) {
                    Some(partitions) => partitions.insert(*partition, value.clone()),
                    None => {
                        topics.entry(topic.clone()).or_default().insert(*partition, value.clone())
                    }
                };
            }
            Record::Offset { group, topic, partition, value: None } => {
                let Some(stored) = self.groups.get_mut(group) else { return };
                let Some(partitions) = stored.offsets.get_mut(topic) else { return };
                partitions.remove(partition);
                if partitions.is_empty() {
                    stored.offsets.remove(topic);
                }
            }
        }
    }

    fn entry(&mut self, group: &Name) -> &mut Stored {
        if !self.groups.contains_key(group) {
            self.groups.insert(group.clone(), Stored::default());
        }
        self.groups.get_mut(group).expect("inserted above")
    }
}

//! What decisions look at: an image, the settings, and the few facts derived from both.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::change::{Conditions, Target, change};
use super::election::Election;
use super::placement::Usable;
use super::request::Refusal;
use super::{Configs, Settings};
use crate::image::{ELR_FEATURE, Image, Partition, Topic};
use crate::record::{ConfigResource, MetadataRecord, PartitionChangeRecord};

/// The config that says how many replicas must be in sync (topic and broker level).
pub(super) const MIN_ISR: &str = "min.insync.replicas";
const UNCLEAN_ELECTION: &str = "unclean.leader.election.enable";

/// An image and the settings to judge it by.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) image: &'a Image,
    pub(super) settings: &'a Settings,
}

/// A broker whose state is about to change, as partitions shall see it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is fenced or shuts down: it leads nothing and leaves every ISR.
    Leaves(i32),
    /// It may lead again.
    Returns(i32),
    /// It is gone, or came back without knowing that its log is whole: it leaves every ELR too.
    Forgets(i32),
}

impl Turn {
    fn gone(self) -> Option<i32> {
        match self {
            Turn::Leaves(broker) | Turn::Forgets(broker) => Some(broker),
            Turn::Returns(_) => None,
        }
    }
}

impl<'a> View<'a> {
    /// All partitions, by topic name and index.
    pub(super) fn partitions(self) -> impl Iterator<Item = (&'a Topic, i32, &'a Partition)> {
        self.image.topics().flat_map(|topic| {
            (0..).zip(&topic.partitions).map(move |(index, p)| (&**topic, index, &**p))
        })
    }

    /// Whether eligible leader replicas are kept.
    pub(super) fn elr(self) -> bool {
        self.image.feature(ELR_FEATURE) >= 1
    }

    /// The value of a topic config: topic, then this node (not for a value that ELR wants the same
    /// everywhere), then the default of all brokers.
    fn topic_config(self, topic: &str, key: &str) -> Option<&'a Arc<str>> {
        let node = ConfigResource::broker(self.settings.node_id);
        let node = if key == MIN_ISR && self.elr() { None } else { Some(node) };
        self.image
            .config(&ConfigResource::topic(topic), key)
            .or_else(|| self.image.config(&node?, key))
            .or_else(|| self.image.config(&ConfigResource::default_broker(), key))
    }

    /// min.insync.replicas of a topic, at most its replication factor, at least 1.
    pub(super) fn min_isr(self, topic: &Topic) -> usize {
        let value = self.topic_config(&topic.name, MIN_ISR).and_then(|v| v.trim().parse().ok());
        let factor = topic.partitions.first().map_or(1, |partition| partition.replicas.len());
        value.unwrap_or(self.settings.min_isr).min(factor).max(1)
    }

    /// How far an election may go that nobody asked for.
    pub(super) fn election(self, topic: &str) -> Election {
        let unclean = match self.topic_config(topic, UNCLEAN_ELECTION) {
            Some(value) => value.trim().eq_ignore_ascii_case("true"),
            None => self.settings.unclean_election,
        };
        if unclean { Election::Unclean } else { Election::Online }
    }

    /// Where a broker puts a new replica: its only directory, else not known yet (zero).
    pub(super) fn new_directory(self, broker: i32) -> Uuid {
        match self.image.broker(broker).map(|broker| broker.directories.as_slice()) {
            Some([directory]) => *directory,
            _ => Uuid::nil(),
        }
    }

    /// Whether the directory of a broker's replica works, as far as is known.
    fn directory_online(self, partition: &Partition, broker: i32) -> bool {
        let directory = partition.directory(broker).unwrap_or(Uuid::nil());
        directory.is_nil()
            || self.image.broker(broker).is_some_and(|broker| {
                broker.directories.is_empty() || broker.directories.contains(&directory)
            })
    }

    /// The record that makes a partition what `target` says, if it is not that already.
    pub(super) fn change(
        self,
        topic: &Topic,
        index: i32,
        partition: &Partition,
        target: Target,
    ) -> Option<PartitionChangeRecord> {
        self.change_during(None, topic, index, partition, target)
    }

    fn change_during(
        self,
        turn: Option<Turn>,
        topic: &Topic,
        index: i32,
        partition: &Partition,
        target: Target,
    ) -> Option<PartitionChangeRecord> {
        let alive = |broker| match turn {
            Some(turn) if turn.gone() == Some(broker) => false,
            Some(Turn::Returns(returning)) if returning == broker => true,
            _ => self.image.is_active(broker),
        };
        let conditions = Conditions {
            elr: self.elr(),
            min_isr: self.min_isr(topic),
            acceptable: &|broker| alive(broker) && self.directory_online(partition, broker),
            new_directory: &|broker| self.new_directory(broker),
        };
        change((topic.id, index), partition, target, &conditions)
    }

    /// Records for every partition that a broker's change of state touches and that `which` lets
    /// through.
    pub(super) fn follow(
        self,
        turn: Turn,
        which: impl Fn(&Partition) -> bool,
    ) -> Vec<MetadataRecord> {
        let touched = |partition: &Partition| match turn {
            Turn::Leaves(id) => partition.isr.contains(&id) || partition.leader == id,
            Turn::Forgets(id) => partition.isr.contains(&id) || partition.elr.contains(&id),
            Turn::Returns(_) => partition.leader().is_none(),
        };
        let mut records = Vec::new();
        let mut rules: BTreeMap<Uuid, Election> = BTreeMap::new();
        for (topic, index, partition) in self.partitions() {
            if !touched(partition) || !which(partition) {
                continue;
            }
            let election = rules.entry(topic.id).or_insert_with(|| self.election(&topic.name));
            let mut target = Target::keep(partition, *election);
            if let Some(gone) = turn.gone() {
                target.isr.retain(|broker| *broker != gone);
            }
            if let Turn::Forgets(broker) = turn {
                target.unclean = Some(broker);
            }
            let change = self.change_during(Some(turn), topic, index, partition, target);
            records.extend(change.map(MetadataRecord::PartitionChange));
        }
        records
    }

    /// Brokers that may get replicas.
    pub(super) fn usable(self) -> Vec<Usable> {
        let usable = |broker: &Arc<crate::image::Broker>| Usable {
            id: broker.id,
            rack: broker.rack.clone(),
            fenced: broker.fenced,
        };
        self.image.brokers().filter(|b| !b.in_controlled_shutdown).map(usable).collect()
    }

    /// Refuses with STALE_BROKER_EPOCH unless the broker is registered under this epoch.
    pub(super) fn check_broker_epoch(self, broker_id: i32, epoch: i64) -> Result<(), Refusal> {
        let text = match self.image.broker(broker_id) {
            Some(broker) if broker.epoch == epoch => return Ok(()),
            Some(broker) => {
                format!("Expected broker epoch {}, but got broker epoch {epoch}", broker.epoch)
            }
            None => format!("No broker registration found for broker id {broker_id}"),
        };
        Err(Refusal::new(ErrorCode::StaleBrokerEpoch, text))
    }

    /// The overrides of a resource.
    pub(super) fn overrides(self, resource: &ConfigResource) -> Configs {
        self.image.configs(resource).map(|configs| (**configs).clone()).unwrap_or_default()
    }
}

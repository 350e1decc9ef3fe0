//! AlterPartitionReassignments: moving partitions to other brokers, and taking that back.
//!
//! A move first adds the new replicas beside the old ones; it ends in `change.rs`, as soon as an
//! ISR holds all that stay. A move that only drops or reorders replicas ends at once.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use protocol_compat::error::ErrorCode;

use super::change::Target;
use super::election::Election;
use super::isr::without;
use super::request::{
    AlterReassignments, PartitionResult, PerName, Reassignment, Refusal, RunningReassignment,
};
use super::topics::{RECORDS_MAX, too_large};
use super::view::View;
use crate::image::{Image, Partition, Topic};
use crate::record::{MetadataRecord, PartitionChangeRecord};

/// Reassignments under way in these partitions (`None` = all), by topic
/// (ListPartitionReassignments). Topics and partitions that do not exist or move nothing are left
/// out.
pub fn running_reassignments(
    image: &Image,
    asked: Option<&[(String, Vec<i32>)]>,
) -> Vec<(String, Vec<RunningReassignment>)> {
    let running = |topic: &Topic, index: i32| {
        let partition = topic.partition(index).filter(|partition| partition.is_reassigning())?;
        Some(RunningReassignment {
            partition: index,
            replicas: partition.replicas.clone(),
            adding: partition.adding.clone(),
            removing: partition.removing.clone(),
        })
    };
    let of = |topic: &Topic, indexes: &mut dyn Iterator<Item = i32>| {
        let found: Vec<_> = indexes.filter_map(|index| running(topic, index)).collect();
        (!found.is_empty()).then(|| (topic.name.to_string(), found))
    };
    match asked {
        None => image
            .topics()
            .filter_map(|topic| of(topic, &mut (0..topic.partition_count())))
            .collect(),
        Some(asked) => asked
            .iter()
            .filter_map(|(name, indexes)| of(image.topic(name)?, &mut indexes.iter().copied()))
            .collect(),
    }
}

impl View<'_> {
    pub(super) fn alter_reassignments(
        self,
        request: &AlterReassignments,
    ) -> (Vec<MetadataRecord>, PerName<Vec<PartitionResult>>) {
        // Of several changes of one partition the last one counts: all start from the same state.
        let mut changes = BTreeMap::new();
        let mut reply = Vec::new();
        for (name, asked) in &request.topics {
            let topic_id = self.image.topic(name).map(|topic| topic.id);
            let mut results = Vec::new();
            for ask in asked {
                let (partition, at) = (ask.partition, (topic_id, ask.partition));
                let result = self.reassign(name, ask, request.allow_factor_change);
                let result = result.map(|change| match change {
                    Some(change) => drop(changes.insert(at, change)),
                    None => drop(changes.remove(&at)),
                });
                results.push(PartitionResult { partition, result });
            }
            reply.push((name.clone(), Ok(results)));
        }
        if changes.len() > RECORDS_MAX {
            changes.clear();
            for (_, result) in &mut reply {
                for partition in result.iter_mut().flatten() {
                    partition.result = Err(too_large());
                }
            }
        }
        (changes.into_values().map(MetadataRecord::PartitionChange).collect(), reply)
    }

    fn reassign(
        self,
        name: &str,
        ask: &Reassignment,
        allow_factor_change: bool,
    ) -> Result<Option<PartitionChangeRecord>, Refusal> {
        let unknown = |text| Refusal::new(ErrorCode::UnknownTopicOrPartition, text);
        let topic = self.image.topic(name);
        let topic =
            topic.ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
        let partition = topic.partition(ask.partition).ok_or_else(|| {
            unknown(format!("Unable to find partition {name}:{}.", ask.partition))
        })?;
        let target = match &ask.replicas {
            None => self.cancelled(topic, ask.partition, partition)?,
            Some(replicas) => {
                self.check_assignment(replicas, None)?;
                let before = without(&partition.replicas, &partition.adding).len();
                if !allow_factor_change && before != replicas.len() {
                    let text = format!(
                        "The replication factor is changed from {before} to {}",
                        replicas.len()
                    );
                    return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, text));
                }
                self.retargeted(topic, partition, replicas)
            }
        };
        Ok(self.change(topic, ask.partition, partition, target))
    }

    /// The way to `wanted`, from wherever a running move has got to.
    fn retargeted(self, topic: &Topic, partition: &Partition, wanted: &[i32]) -> Target {
        let mut target = Target::keep(partition, self.election(&topic.name));
        let original = without(&partition.replicas, &partition.adding);
        // Replicas that a running move was adding and that are not wanted any more go at once, if
        // enough of the ISR is left to lead.
        let stale = without(&partition.adding, wanted);
        let isr = without(&partition.isr, &stale);
        let droppable = isr.iter().any(|broker| self.image.is_active(*broker))
            || partition.leader().is_none() && !isr.is_empty();
        let (from, isr) = if droppable {
            (without(&partition.replicas, &stale), isr)
        } else {
            (partition.replicas.clone(), partition.isr.clone())
        };
        target.isr = isr;
        target.removing = without(&from, wanted);
        target.adding = without(wanted, &original);
        target.replicas = [wanted, target.removing.as_slice()].concat();
        target
    }

    /// The partition as it was before the running move.
    fn cancelled(
        self,
        topic: &Topic,
        index: i32,
        partition: &Partition,
    ) -> Result<Target, Refusal> {
        if !partition.is_reassigning() {
            return Err(Refusal::bare(ErrorCode::NoReassignmentInProgress));
        }
        let refuse = |why: &str| {
            let text = format!(
                "Unable to revert partition assignment for {}:{index} because {why}.",
                topic.name
            );
            Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, text))
        };
        let mut target = Target::keep(partition, self.election(&topic.name));
        target.replicas = without(&partition.replicas, &partition.adding);
        target.isr = without(&partition.isr, &partition.adding);
        target.adding.clear();
        target.removing.clear();
        let Some(first) = target.replicas.first() else {
            return refuse("no replica would be left");
        };
        if target.isr.is_empty() && !partition.isr.is_empty() {
            if target.election != Election::Unclean {
                return refuse("it would require an unclean leader election");
            }
            target.isr.push(*first);
        }
        // Never trade a live leader for none.
        let led = partition.leader().is_some();
        if led && !target.replicas.iter().any(|broker| self.image.is_active(*broker)) {
            return refuse("none of its original replicas is alive");
        }
        let in_sync = target.isr.iter().any(|broker| self.image.is_active(*broker));
        if led && !in_sync && target.election != Election::Unclean {
            return refuse("none of its original replicas that is in sync is alive");
        }
        Ok(target)
    }
}

//! CreatePartitions, and the changes that brokers report: AlterPartition (ISR),
//! AssignReplicasToDirs.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use protocol_compat::error::ErrorCode;

use super::change::Target;
use super::duplicates;
use super::isr::check_wish;
use super::placement::place;
use super::request::{
    AlterPartition, AlteredPartition, AssignDirectories, AssignedDirectory, AssignedReplica,
    CreatePartitions, GrowTopic, IsrChange, PerName, Refusal,
};
use super::topics::{PARTITIONS_MAX, RECORDS_MAX, all_fenced, too_large};
use super::view::View;
use crate::image::{Partition, Topic};
use crate::record::{MetadataRecord, PartitionRecord};

impl View<'_> {
    pub(super) fn create_partitions(
        self,
        random: &mut dyn FnMut() -> u128,
        request: &CreatePartitions,
    ) -> (Vec<MetadataRecord>, PerName<()>) {
        let twice = duplicates(request.topics.iter().map(|topic| &topic.name));
        let duplicate = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
        let mut reply: PerName<()> =
            twice.iter().map(|name| ((*name).clone(), Err(duplicate.clone()))).collect();
        let mut records = Vec::new();
        for topic in request.topics.iter().filter(|topic| !twice.contains(&&topic.name)) {
            let made = self.more_partitions(random, topic, records.len());
            let result = made.map(|made| records.extend(made));
            reply.push((topic.name.clone(), result));
        }
        if records.len() > RECORDS_MAX {
            records.clear();
            reply.iter_mut().for_each(|(_, result)| *result = Err(too_large()));
        }
        if request.validate_only {
            records.clear();
        }
        (records, reply)
    }

    fn more_partitions(
        self,
        random: &mut dyn FnMut() -> u128,
        ask: &GrowTopic,
        so_far: usize,
    ) -> Result<Vec<MetadataRecord>, Refusal> {
        let topic = self.image.topic(&ask.name);
        let topic = topic.ok_or(Refusal::bare(ErrorCode::UnknownTopicOrPartition))?;
        let present = topic.partition_count();
        if ask.count <= present {
            let text = if ask.count == present {
                format!("Topic already has {present} partition(s).")
            } else {
                format!(
                    "The topic {} currently has {present} partition(s); {} would not be an \
                     increase.",
                    ask.name, ask.count
                )
            };
            return Err(Refusal::new(ErrorCode::InvalidPartitions, text));
        }
        let additional = (ask.count - present) as usize;
        if (so_far + additional) as i64 > PARTITIONS_MAX {
            let text = "Excessively large number of additional partitions per request.";
            return Err(Refusal::new(ErrorCode::PolicyViolation, text));
        }
        let factor = topic.partitions.first().map_or(1, |first| first.replicas.len());
        let states: Vec<PartitionRecord> = match &ask.assignments {
            Some(chosen) if chosen.len() != additional => {
                let text = format!(
                    "Attempted to add {additional} additional partition(s), but only {} \
                     assignment(s) were specified.",
                    chosen.len()
                );
                return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, text));
            }
            Some(chosen) => (present..)
                .zip(chosen)
                .map(|(index, replicas)| {
                    self.check_assignment(replicas, Some(factor))?;
                    self.assigned_partition(index, replicas)
                })
                .collect::<Result<_, _>>()?,
            None => place(&self.usable(), additional, factor, random)?
                .into_iter()
                .map(|replicas| self.new_partition(replicas).ok_or_else(|| all_fenced(factor)))
                .collect::<Result<_, _>>()?,
        };
        let numbered = (present..).zip(states).map(|(partition, state)| {
            let topic_id = topic.id;
            MetadataRecord::Partition(PartitionRecord { topic_id, partition, ..state })
        });
        Ok(numbered.collect())
    }

    pub(super) fn alter_partition(
        self,
        request: &AlterPartition,
    ) -> (Vec<MetadataRecord>, Result<Vec<AlteredPartition>, Refusal>) {
        if let Err(refusal) = self.check_broker_epoch(request.broker_id, request.broker_epoch) {
            return (Vec::new(), Err(refusal));
        }
        let mut records = Vec::new();
        let mut reply: Vec<AlteredPartition> = Vec::new();
        for wish in &request.partitions {
            let (topic_id, partition) = (wish.topic_id, wish.partition);
            // A partition named twice: the second wish was made against a state that is gone.
            let again = reply.iter().any(|r| (r.topic_id, r.partition) == (topic_id, partition));
            let result = if again {
                Err(Refusal::bare(ErrorCode::InvalidUpdateVersion))
            } else {
                self.alter_isr(request.broker_id, wish, &mut records)
            };
            reply.push(AlteredPartition { topic_id, partition, result });
        }
        (records, Ok(reply))
    }

    fn alter_isr(
        self,
        sender: i32,
        wish: &IsrChange,
        records: &mut Vec<MetadataRecord>,
    ) -> Result<Arc<Partition>, Refusal> {
        let topic = self.image.topic_by_id(wish.topic_id);
        let topic = topic.ok_or(Refusal::bare(ErrorCode::UnknownTopicId))?;
        let partition = topic.partition(wish.partition);
        let partition = partition.ok_or(Refusal::bare(ErrorCode::UnknownTopicOrPartition))?;
        let ineligible = |broker: i32, epoch: i64| match self.image.broker(broker) {
            Some(known) => !known.is_active() || (epoch != -1 && epoch != known.epoch),
            None => true,
        };
        check_wish(partition, sender, wish, &ineligible)?;
        let mut target = Target::keep(partition, self.election(&topic.name));
        target.isr = wish.isr.iter().map(|(broker, _)| *broker).collect();
        target.recovering = wish.recovering;
        let Some(change) = self.change(topic, wish.partition, partition, target) else {
            return Ok(partition.clone());
        };
        let changed = partition.merge(&change);
        records.push(MetadataRecord::PartitionChange(change));
        if changed.leader == sender {
            return Ok(Arc::new(changed));
        }
        // The ISR completed a reassignment that the sender is not part of.
        Err(Refusal::bare(ErrorCode::NewLeaderElected))
    }

    pub(super) fn assign_directories(
        self,
        request: &AssignDirectories,
    ) -> (Vec<MetadataRecord>, Result<Vec<AssignedDirectory>, Refusal>) {
        if let Err(refusal) = self.check_broker_epoch(request.broker_id, request.broker_epoch) {
            return (Vec::new(), Err(refusal));
        }
        let mut records = Vec::new();
        let reply = request.replicas.iter().map(|replica| {
            let found = self.assigned_replica(request.broker_id, replica);
            let result = found.map(|(topic, partition)| {
                let mut target = Target::keep(partition, self.election(&topic.name));
                target.moved = Some((request.broker_id, replica.directory));
                let change = self.change(topic, replica.partition, partition, target);
                records.extend(change.map(MetadataRecord::PartitionChange));
            });
            AssignedDirectory { replica: replica.clone(), result }
        });
        let reply = reply.collect();
        (records, Ok(reply))
    }

    fn assigned_replica(
        &self,
        broker: i32,
        replica: &AssignedReplica,
    ) -> Result<(&Topic, &Partition), Refusal> {
        let topic = self.image.topic_by_id(replica.topic_id);
        let topic = topic.ok_or(Refusal::bare(ErrorCode::UnknownTopicId))?;
        let partition = topic.partition(replica.partition);
        let partition = partition.ok_or(Refusal::bare(ErrorCode::UnknownTopicOrPartition))?;
        if !partition.replicas.contains(&broker) {
            return Err(Refusal::bare(ErrorCode::NotLeaderOrFollower));
        }
        Ok((topic, partition))
    }
}

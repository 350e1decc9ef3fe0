//! CreateTopics and DeleteTopics: every check of Kafka's, in its order and with its texts.
//!
//! More partitions for a topic are `partitions.rs`; where replicas go is `placement.rs`.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::configs::{check_values, config_records};
use super::duplicates;
use super::isr::has_duplicates;
use super::names::{check_name, colliding};
use super::placement::place;
use super::request::{
    CreateTopics, CreatedTopic, DeleteTopics, DeletedTopic, NewTopic, PerName, Refusal, TopicRef,
};
use super::view::View;
use crate::image::Configs;
use crate::record::{ConfigResource, MetadataRecord, PartitionRecord, TopicRecord};

/// One request may make this many records; a topic can so have at most 9,999 partitions
/// (Kafka's `MAX_RECORDS_PER_USER_OP`).
pub const RECORDS_MAX: usize = 10_000;
/// One request may add this many partitions (Kafka's `MAX_PARTITIONS_PER_BATCH`).
pub(super) const PARTITIONS_MAX: i64 = 10_000;
/// Kafka's own name for the metadata log; nobody may take it.
const METADATA_TOPIC: &str = "__cluster_metadata";

const MANUAL: &str = "The manual partition assignment includes";

/// The refusal of a request that would make more than [`RECORDS_MAX`] records.
pub(super) fn too_large() -> Refusal {
    let text = "Unable to perform excessively large batch operation.";
    Refusal::new(ErrorCode::PolicyViolation, text)
}

impl View<'_> {
    pub(super) fn create_topics(
        self,
        random: &mut dyn FnMut() -> u128,
        request: &CreateTopics,
    ) -> (Vec<MetadataRecord>, PerName<CreatedTopic>) {
        let twice = duplicates(request.topics.iter().map(|topic| &topic.name));
        let (mut records, mut reply) = (Vec::new(), Vec::new());
        let mut total = 0;
        for topic in request.topics.iter().filter(|topic| !twice.contains(&&topic.name)) {
            total += self.partition_count(topic);
            reply.push((topic.name.clone(), Err(Refusal::bare(ErrorCode::None))));
        }
        let once = request.topics.iter().filter(|topic| !twice.contains(&&topic.name));
        for ((_, result), topic) in reply.iter_mut().zip(once) {
            *result = if topic.name == METADATA_TOPIC {
                let text = format!("Creation of internal topic {METADATA_TOPIC} is prohibited.");
                Err(Refusal::new(ErrorCode::InvalidRequest, text))
            } else if total > PARTITIONS_MAX {
                let text = "Excessively large number of partitions per request.";
                Err(Refusal::new(ErrorCode::PolicyViolation, text))
            } else {
                self.create_topic(random, topic).map(|(created, made)| {
                    records.extend(made);
                    created
                })
            };
        }
        if records.len() > RECORDS_MAX {
            records.clear();
            reply.iter_mut().for_each(|(_, result)| *result = Err(too_large()));
        }
        let duplicate = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
        reply.extend(twice.into_iter().map(|name| (name.clone(), Err(duplicate.clone()))));
        if request.validate_only {
            records.clear();
        }
        (records, reply)
    }

    /// How many partitions a topic asks for, good or bad.
    fn partition_count(self, topic: &NewTopic) -> i64 {
        match topic.partitions {
            _ if !topic.assignments.is_empty() => topic.assignments.len() as i64,
            -1 => i64::from(self.settings.default_partitions),
            count => i64::from(count.max(0)),
        }
    }

    fn create_topic(
        self,
        random: &mut dyn FnMut() -> u128,
        topic: &NewTopic,
    ) -> Result<(CreatedTopic, Vec<MetadataRecord>), Refusal> {
        check_name(&topic.name)?;
        if self.image.topic(&topic.name).is_some() {
            let text = format!("Topic '{}' already exists.", topic.name);
            return Err(Refusal::new(ErrorCode::TopicAlreadyExists, text));
        }
        if let Some(other) = colliding(self.image, &topic.name) {
            let text = format!("Topic '{}' collides with existing topic: {other}", topic.name);
            return Err(Refusal::new(ErrorCode::InvalidTopicException, text));
        }
        let resource = ConfigResource::topic(&topic.name);
        let configs = self.new_topic_configs(&resource, topic)?;
        let partitions = self.new_topic_partitions(random, topic)?;
        let (name, topic_id) = (Arc::from(topic.name.as_str()), self.new_topic_id(random));
        let created = CreatedTopic {
            topic_id,
            partitions: partitions.len() as i32,
            replication_factor: partitions.first().map_or(-1, |first| first.replicas.len() as i16),
        };
        let mut records = vec![MetadataRecord::Topic(TopicRecord { name, topic_id })];
        records.extend(config_records(&resource, &configs));
        records.extend((0..).zip(partitions).map(|(partition, state)| {
            MetadataRecord::Partition(PartitionRecord { topic_id, partition, ..state })
        }));
        Ok((created, records))
    }

    fn new_topic_configs(
        self,
        resource: &ConfigResource,
        topic: &NewTopic,
    ) -> Result<Configs, Refusal> {
        let nulls: Vec<&str> = topic
            .configs
            .iter()
            .filter(|(_, value)| value.is_none())
            .map(|(key, _)| key.as_str())
            .collect();
        if !nulls.is_empty() {
            let text = format!("Null value not supported for topic configs: {}", nulls.join(","));
            return Err(Refusal::new(ErrorCode::InvalidConfig, text));
        }
        let configs: Configs = topic
            .configs
            .iter()
            .filter_map(|(key, value)| Some((Arc::from(key.as_str()), value.as_deref()?.into())))
            .collect();
        if !configs.is_empty() {
            check_values(&configs)?;
            self.check_configs(resource, &configs, &Configs::new())?;
        }
        Ok(configs)
    }

    fn new_topic_partitions(
        self,
        random: &mut dyn FnMut() -> u128,
        topic: &NewTopic,
    ) -> Result<Vec<PartitionRecord>, Refusal> {
        if !topic.assignments.is_empty() {
            return self.assigned_partitions(topic);
        }
        if topic.replication_factor < -1 || topic.replication_factor == 0 {
            let text = "Replication factor must be larger than 0, or -1 to use the default value.";
            return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, text));
        }
        if topic.partitions < -1 || topic.partitions == 0 {
            let text = "Number of partitions was set to an invalid non-positive value.";
            return Err(Refusal::new(ErrorCode::InvalidPartitions, text));
        }
        let count = self.partition_count(topic).max(1) as usize;
        let factor = match topic.replication_factor {
            -1 => self.settings.default_replication_factor,
            factor => factor,
        };
        let wrap = |refusal: Refusal| {
            let why = refusal.message.unwrap_or_default();
            let text = format!("Unable to replicate the partition {factor} time(s): {why}");
            Refusal::new(refusal.code, text)
        };
        let placed = place(&self.usable(), count, factor.max(0) as usize, random).map_err(wrap)?;
        placed
            .into_iter()
            .map(|replicas| self.new_partition(replicas).ok_or_else(|| all_fenced(factor as usize)))
            .collect()
    }

    fn assigned_partitions(self, topic: &NewTopic) -> Result<Vec<PartitionRecord>, Refusal> {
        let invalid = |what| {
            let text =
                format!("A manual partition assignment was specified, but {what} not set to -1.");
            Refusal::new(ErrorCode::InvalidRequest, text)
        };
        if topic.replication_factor != -1 {
            return Err(invalid("replication factor was"));
        }
        if topic.partitions != -1 {
            return Err(invalid("numPartitions was"));
        }
        let refuse = |text| Refusal::new(ErrorCode::InvalidReplicaAssignment, text);
        let mut partitions = BTreeMap::new();
        let mut factor = None;
        for (index, replicas) in &topic.assignments {
            if partitions.contains_key(index) {
                return Err(refuse(format!(
                    "Found multiple manual partition assignments for partition {index}"
                )));
            }
            self.check_assignment(replicas, factor)?;
            factor = Some(replicas.len());
            partitions.insert(*index, self.assigned_partition(*index, replicas)?);
        }
        if !partitions.keys().copied().eq(0..partitions.len() as i32) {
            let text = "partitions should be a consecutive 0-based integer sequence";
            return Err(refuse(text.to_string()));
        }
        Ok(partitions.into_values().collect())
    }

    /// A new partition with replicas somebody chose.
    pub(super) fn assigned_partition(
        self,
        index: i32,
        replicas: &[i32],
    ) -> Result<PartitionRecord, Refusal> {
        self.new_partition(replicas.to_vec()).ok_or_else(|| {
            let text = format!(
                "All brokers specified in the manual partition assignment for partition {index} \
                 are fenced or in controlled shutdown."
            );
            Refusal::new(ErrorCode::InvalidReplicaAssignment, text)
        })
    }

    /// Whether replicas that somebody chose are registered brokers, each once, and `factor` of
    /// them.
    pub(super) fn check_assignment(
        self,
        replicas: &[i32],
        factor: Option<usize>,
    ) -> Result<(), Refusal> {
        let refuse = |text| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, text));
        if replicas.is_empty() {
            return refuse(format!("{MANUAL} an empty replica list."));
        }
        let ordered: BTreeSet<i32> = replicas.iter().copied().collect();
        for broker in &ordered {
            if self.image.broker(*broker).is_none() {
                return refuse(format!(
                    "{MANUAL} broker {broker}, but no such broker is registered."
                ));
            }
            if replicas.iter().filter(|other| *other == broker).count() > 1 {
                return refuse(format!("{MANUAL} the broker {broker} more than once."));
            }
        }
        match factor {
            Some(factor) if factor != replicas.len() => refuse(format!(
                "{MANUAL} a partition with {} replica(s), but this is not consistent with previous \
                 partitions, which have {factor} replica(s).",
                replicas.len()
            )),
            _ => Ok(()),
        }
    }

    /// A new partition on these brokers, whose topic and index the caller fills in; `None` if no
    /// broker is alive.
    pub(super) fn new_partition(self, replicas: Vec<i32>) -> Option<PartitionRecord> {
        assert!(!has_duplicates(&replicas), "a broker holds one replica of a partition");
        let alive = replicas.iter().copied().filter(|broker| self.image.is_active(*broker));
        let isr: Vec<i32> = alive.collect();
        Some(PartitionRecord {
            topic_id: Uuid::nil(),
            partition: -1,
            directories: replicas.iter().map(|broker| self.new_directory(*broker)).collect(),
            replicas,
            leader: *isr.first()?,
            isr,
            adding: Vec::new(),
            removing: Vec::new(),
            elr: Vec::new(),
            last_known_elr: Vec::new(),
            recovering: false,
            leader_epoch: 0,
            partition_epoch: 0,
        })
    }

    /// A random (version 4) uuid that no topic has and that does not look like an option when typed
    /// after a command: Kafka too gives out no id that begins with a dash.
    fn new_topic_id(self, random: &mut dyn FnMut() -> u128) -> Uuid {
        let mut chance = random();
        loop {
            let id = uuid::Builder::from_random_bytes(chance.to_be_bytes()).into_uuid();
            let dashed = id.as_bytes()[0] >> 2 == 62;
            if !dashed && self.image.topic_by_id(id).is_none() {
                return id;
            }
            // Rarely here; walks on from there, should chance be a poor one.
            chance = random() ^ chance.rotate_left(1).wrapping_add(1);
        }
    }

    pub(super) fn delete_topics(
        self,
        request: &DeleteTopics,
    ) -> (Vec<MetadataRecord>, Vec<DeletedTopic>) {
        let asked = Asked::new(request);
        let (mut records, mut reply) = (Vec::new(), Vec::new());
        // What was asked for twice is answered once.
        let mut said = BTreeSet::new();
        for topic in &request.topics {
            let Some(entry) = self.delete_topic(&asked, topic) else { continue };
            let nameless = entry.name.is_none() && entry.id.is_nil();
            if !nameless && !said.insert((entry.name.clone(), entry.id)) {
                continue;
            }
            if entry.result.is_ok() {
                records.push(MetadataRecord::RemoveTopic { topic_id: entry.id });
            }
            reply.push(entry);
        }
        if records.len() > RECORDS_MAX {
            records.clear();
            reply.iter_mut().for_each(|entry| entry.result = Err(too_large()));
        }
        (records, reply)
    }

    /// What becomes of one entry; `None` if another entry speaks for it.
    fn delete_topic(self, asked: &Asked<'_>, topic: &TopicRef) -> Option<DeletedTopic> {
        let entry = |name: Option<&str>, id, result| {
            Some(DeletedTopic { name: name.map(str::to_string), id, result })
        };
        let invalid = |text: &str| Err(Refusal::new(ErrorCode::InvalidRequest, text));
        match topic.name.as_deref() {
            Some(name) if !topic.id.is_nil() => {
                let text = "You may not specify both topic name and topic id.";
                entry(Some(name), topic.id, invalid(text))
            }
            None if topic.id.is_nil() => {
                entry(None, topic.id, invalid("Neither topic name nor id were specified."))
            }
            Some(name) if asked.names_twice.contains(&name) => {
                entry(Some(name), topic.id, invalid("Duplicate topic name."))
            }
            None if asked.ids_twice.contains(&topic.id) => {
                entry(None, topic.id, invalid("Duplicate topic id."))
            }
            Some(name) => match self.image.topic(name) {
                Some(known) if asked.ids.contains(&known.id) => {
                    let text = "The provided topic name maps to an ID that was already supplied.";
                    entry(Some(name), known.id, invalid(text))
                }
                Some(known) => entry(Some(name), known.id, self.may_delete()),
                None => {
                    let text = "This server does not host this topic-partition.";
                    let code = ErrorCode::UnknownTopicOrPartition;
                    entry(Some(name), topic.id, Err(Refusal::new(code, text)))
                }
            },
            None => match self.image.topic_by_id(topic.id) {
                Some(known) if asked.names.contains(&*known.name) => None,
                Some(known) => entry(Some(&known.name), known.id, self.may_delete()),
                None => {
                    let text = "This server does not host this topic ID.";
                    entry(None, topic.id, Err(Refusal::new(ErrorCode::UnknownTopicId, text)))
                }
            },
        }
    }

    fn may_delete(self) -> Result<(), Refusal> {
        if self.settings.delete_topics {
            return Ok(());
        }
        Err(Refusal::new(ErrorCode::TopicDeletionDisabled, "Topic deletion is disabled."))
    }
}

/// What a DeleteTopics request names, by name only and by id only.
struct Asked<'a> {
    names: BTreeSet<&'a str>,
    ids: BTreeSet<Uuid>,
    names_twice: Vec<&'a str>,
    ids_twice: Vec<Uuid>,
}

impl<'a> Asked<'a> {
    fn new(request: &'a DeleteTopics) -> Asked<'a> {
        let by_name = request.topics.iter().filter(|topic| topic.id.is_nil());
        let names: Vec<&str> = by_name.filter_map(|topic| topic.name.as_deref()).collect();
        let by_id = request.topics.iter().filter(|topic| topic.name.is_none());
        let ids: Vec<Uuid> = by_id.map(|topic| topic.id).filter(|id| !id.is_nil()).collect();
        Asked {
            names_twice: duplicates(names.iter().copied()),
            ids_twice: duplicates(ids.iter().copied()),
            names: names.into_iter().collect(),
            ids: ids.into_iter().collect(),
        }
    }
}

/// The refusal of partitions that only fenced brokers could hold.
pub(super) fn all_fenced(factor: usize) -> Refusal {
    let text = format!(
        "Unable to replicate the partition {factor} time(s): \
         All brokers are currently fenced or in controlled shutdown."
    );
    Refusal::new(ErrorCode::InvalidReplicationFactor, text)
}

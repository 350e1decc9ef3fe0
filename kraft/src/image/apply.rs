//! Records into the image, and the image back into records.
//!
//! The controller never writes a record that does not fit, so an error here means that the log and
//! this program disagree: the caller must stop. A record that fails leaves the image as it was.

use std::sync::Arc;

use uuid::Uuid;

use super::{Broker, Image, Partition, Topic};
use crate::record::{
    BrokerChangeRecord, BrokerRecord, ClientQuotaRecord, ConfigRecord, ConfigResource,
    MetadataRecord, PartitionChangeRecord, PartitionRecord, TopicRecord,
};

/// Why a record does not fit the image it is applied to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    #[error("metadata record names topic {0}, which does not exist")]
    UnknownTopic(Uuid),
    #[error("metadata record creates topic {0}, which exists already")]
    TopicExists(Arc<str>),
    #[error("metadata record names partition {partition} of topic {topic_id}, out of order")]
    UnknownPartition { topic_id: Uuid, partition: i32 },
    #[error("metadata record holds a partition whose lists do not fit together: {0}")]
    BadPartition(&'static str),
    #[error("metadata record names broker {broker_id} epoch {broker_epoch}, not registered so")]
    UnknownBroker { broker_id: i32, broker_epoch: i64 },
    #[error("metadata record has producer id {0}, lower than one given out")]
    ProducerIdFell(i64),
}

impl Image {
    /// An image made of a snapshot's records; `last_applied` is the index that the snapshot stands
    /// for.
    pub fn from_records<'a>(
        last_applied: i64,
        records: impl IntoIterator<Item = &'a MetadataRecord>,
    ) -> Result<Image, ImageError> {
        let mut image = Image::default();
        image.apply_all(last_applied, records)?;
        Ok(image)
    }

    /// Applies one entry of the metadata log, whose index it remembers.
    pub fn apply_all<'a>(
        &mut self,
        index: i64,
        records: impl IntoIterator<Item = &'a MetadataRecord>,
    ) -> Result<(), ImageError> {
        records.into_iter().try_for_each(|record| self.apply(record))?;
        self.last_applied = index;
        Ok(())
    }

    /// Applies one record.
    pub fn apply(&mut self, record: &MetadataRecord) -> Result<(), ImageError> {
        match record {
            MetadataRecord::Topic(topic) => self.add_topic(topic)?,
            MetadataRecord::Partition(partition) => self.add_partition(partition)?,
            MetadataRecord::PartitionChange(change) => self.change_partition(change)?,
            MetadataRecord::RemoveTopic { topic_id } => self.remove_topic(*topic_id)?,
            MetadataRecord::RegisterBroker(broker) => self.register_broker(broker),
            MetadataRecord::UnregisterBroker { broker_id, broker_epoch } => {
                self.check_broker(*broker_id, *broker_epoch)?;
                self.brokers.remove(broker_id);
            }
            MetadataRecord::BrokerChange(change) => self.change_broker(change)?,
            MetadataRecord::Config(config) => self.set_config(config),
            MetadataRecord::FeatureLevel { name, level: 0 } => {
                self.features.remove(name);
            }
            MetadataRecord::FeatureLevel { name, level } => {
                self.features.insert(name.clone(), *level);
            }
            MetadataRecord::ProducerIds { next_producer_id, .. } => {
                if *next_producer_id < self.next_producer_id {
                    return Err(ImageError::ProducerIdFell(*next_producer_id));
                }
                self.next_producer_id = *next_producer_id;
            }
            MetadataRecord::ClientQuota(quota) => self.set_quota(quota),
            MetadataRecord::Acl(acl) => {
                self.acls.insert(acl.id, Arc::new(acl.clone()));
            }
            MetadataRecord::RemoveAcl { id } => {
                self.acls.remove(id);
            }
            MetadataRecord::Scram(scram) => {
                let key = (scram.user.clone(), scram.mechanism);
                self.scrams.insert(key, Arc::new(scram.clone()));
            }
            MetadataRecord::RemoveScram { user, mechanism } => {
                self.scrams.remove(&(user.clone(), *mechanism));
            }
            MetadataRecord::ClearElr { topic } => self.clear_elr(topic.as_deref()),
            MetadataRecord::BrokerEpoch { last } => {
                self.last_broker_epoch = self.last_broker_epoch.max(*last);
            }
            MetadataRecord::NoOp => {}
        }
        Ok(())
    }

    /// Records that, applied to an empty image, give this one (but for [`Image::last_applied`]).
    pub fn to_records(&self) -> Vec<MetadataRecord> {
        let mut out = Vec::new();
        for (name, level) in self.features() {
            out.push(MetadataRecord::FeatureLevel { name: name.clone(), level });
        }
        out.push(MetadataRecord::BrokerEpoch { last: self.last_broker_epoch });
        out.extend(self.brokers().map(|b| MetadataRecord::RegisterBroker(b.to_record())));
        for topic in self.topics() {
            let (name, topic_id) = (topic.name.clone(), topic.id);
            out.push(MetadataRecord::Topic(TopicRecord { name, topic_id }));
            out.extend((0..).zip(&topic.partitions).map(|(index, partition)| {
                MetadataRecord::Partition(partition.to_record(topic_id, index))
            }));
        }
        for (resource, configs) in &self.configs {
            out.extend(configs.iter().map(|(key, value)| {
                let (resource, key) = (resource.clone(), key.clone());
                MetadataRecord::Config(ConfigRecord { resource, key, value: Some(value.clone()) })
            }));
        }
        for (entity, quotas) in &self.quotas {
            out.extend(quotas.iter().map(|(key, value)| {
                let (entity, key) = (entity.clone(), key.clone());
                MetadataRecord::ClientQuota(ClientQuotaRecord { entity, key, value: Some(*value) })
            }));
        }
        out.extend(self.acls().map(|acl| MetadataRecord::Acl((**acl).clone())));
        out.extend(self.scrams().map(|scram| MetadataRecord::Scram((**scram).clone())));
        out.push(MetadataRecord::ProducerIds {
            broker_id: -1,
            broker_epoch: -1,
            next_producer_id: self.next_producer_id,
        });
        out
    }

    fn add_topic(&mut self, record: &TopicRecord) -> Result<(), ImageError> {
        let taken = self.names.contains_key(&record.topic_id);
        if taken || self.topics.contains_key(&record.name) {
            return Err(ImageError::TopicExists(record.name.clone()));
        }
        let (name, id) = (record.name.clone(), record.topic_id);
        self.names.insert(id, name.clone());
        self.topics.insert(name.clone(), Arc::new(Topic { name, id, partitions: Vec::new() }));
        Ok(())
    }

    fn remove_topic(&mut self, topic_id: Uuid) -> Result<(), ImageError> {
        let name = self.names.remove(&topic_id).ok_or(ImageError::UnknownTopic(topic_id))?;
        self.topics.remove(&name);
        self.configs.remove(&ConfigResource::topic(&name));
        Ok(())
    }

    fn topic_mut(&mut self, topic_id: Uuid) -> Result<&mut Topic, ImageError> {
        let unknown = ImageError::UnknownTopic(topic_id);
        let Some(name) = self.names.get(&topic_id) else { return Err(unknown) };
        self.topics.get_mut(name).map(Arc::make_mut).ok_or(unknown)
    }

    fn add_partition(&mut self, record: &PartitionRecord) -> Result<(), ImageError> {
        let (topic_id, partition) = (record.topic_id, record.partition);
        let topic = self.topic_mut(topic_id)?;
        if topic.partition_count() != partition {
            return Err(ImageError::UnknownPartition { topic_id, partition });
        }
        let added = Partition::from_record(record);
        added.check()?;
        topic.partitions.push(Arc::new(added));
        Ok(())
    }

    fn change_partition(&mut self, change: &PartitionChangeRecord) -> Result<(), ImageError> {
        let (topic_id, partition) = (change.topic_id, change.partition);
        let unknown = ImageError::UnknownPartition { topic_id, partition };
        let topic = self.topic_mut(topic_id)?;
        let at = usize::try_from(partition).map_err(|_| unknown.clone())?;
        let slot = topic.partitions.get_mut(at).ok_or(unknown)?;
        let changed = slot.merge(change);
        changed.check()?;
        *slot = Arc::new(changed);
        Ok(())
    }

    fn register_broker(&mut self, record: &BrokerRecord) {
        self.last_broker_epoch = self.last_broker_epoch.max(record.broker_epoch);
        self.brokers.insert(record.broker_id, Arc::new(Broker::from_record(record)));
    }

    fn check_broker(&self, broker_id: i32, broker_epoch: i64) -> Result<(), ImageError> {
        match self.brokers.get(&broker_id) {
            Some(broker) if broker.epoch == broker_epoch => Ok(()),
            _ => Err(ImageError::UnknownBroker { broker_id, broker_epoch }),
        }
    }

    fn change_broker(&mut self, change: &BrokerChangeRecord) -> Result<(), ImageError> {
        self.check_broker(change.broker_id, change.broker_epoch)?;
        if let Some(broker) = self.brokers.get_mut(&change.broker_id) {
            let broker = Arc::make_mut(broker);
            broker.fenced = change.fenced.unwrap_or(broker.fenced);
            broker.in_controlled_shutdown =
                change.in_controlled_shutdown.unwrap_or(broker.in_controlled_shutdown);
            if let Some(directories) = &change.directories {
                broker.directories.clone_from(directories);
            }
        }
        Ok(())
    }

    fn set_config(&mut self, record: &ConfigRecord) {
        let mut configs = self.configs.get(&record.resource).cloned().unwrap_or_default();
        match &record.value {
            Some(value) => {
                Arc::make_mut(&mut configs).insert(record.key.clone(), value.clone());
            }
            None => {
                Arc::make_mut(&mut configs).remove(&record.key);
            }
        }
        if configs.is_empty() {
            self.configs.remove(&record.resource);
        } else {
            self.configs.insert(record.resource.clone(), configs);
        }
    }

    fn set_quota(&mut self, record: &ClientQuotaRecord) {
        let mut quotas = self.quotas.get(&record.entity).cloned().unwrap_or_default();
        match record.value {
            Some(value) => {
                Arc::make_mut(&mut quotas).insert(record.key.clone(), value);
            }
            None => {
                Arc::make_mut(&mut quotas).remove(&record.key);
            }
        }
        if quotas.is_empty() {
            self.quotas.remove(&record.entity);
        } else {
            self.quotas.insert(record.entity.clone(), quotas);
        }
    }

    /// Unlike other changes this one raises no epoch (Kafka's `ClearElrRecord`). Where the ISR is
    /// empty no high watermark moves, so whoever is eligible there stays so; Kafka would leave such
    /// a partition without a leader for good.
    fn clear_elr(&mut self, only: Option<&str>) {
        let has_elr = |partition: &Arc<Partition>| {
            let none = partition.elr.is_empty() && partition.last_known_elr.is_empty();
            !none && !partition.isr.is_empty()
        };
        let names: Vec<Arc<str>> = self
            .topics()
            .filter(|topic| only.is_none_or(|name| name == &*topic.name))
            .filter(|topic| topic.partitions.iter().any(has_elr))
            .map(|topic| topic.name.clone())
            .collect();
        for name in names {
            let Some(topic) = self.topics.get_mut(&name) else { continue };
            for partition in Arc::make_mut(topic).partitions.iter_mut().filter(|p| has_elr(p)) {
                let partition = Arc::make_mut(partition);
                partition.elr.clear();
                partition.last_known_elr.clear();
            }
        }
    }
}

impl Partition {
    fn from_record(record: &PartitionRecord) -> Partition {
        Partition {
            replicas: record.replicas.clone(),
            directories: record.directories.clone(),
            isr: record.isr.clone(),
            adding: record.adding.clone(),
            removing: record.removing.clone(),
            elr: record.elr.clone(),
            last_known_elr: record.last_known_elr.clone(),
            leader: record.leader,
            recovering: record.recovering,
            leader_epoch: record.leader_epoch,
            partition_epoch: record.partition_epoch,
        }
    }

    /// This partition after the change.
    pub fn merge(&self, change: &PartitionChangeRecord) -> Partition {
        let pick = |new: &Option<Vec<i32>>, old: &Vec<i32>| new.as_ref().unwrap_or(old).clone();
        Partition {
            replicas: pick(&change.replicas, &self.replicas),
            directories: change.directories.as_ref().unwrap_or(&self.directories).clone(),
            isr: pick(&change.isr, &self.isr),
            adding: pick(&change.adding, &self.adding),
            removing: pick(&change.removing, &self.removing),
            elr: pick(&change.elr, &self.elr),
            last_known_elr: pick(&change.last_known_elr, &self.last_known_elr),
            leader: change.leader.unwrap_or(self.leader),
            recovering: change.recovering.unwrap_or(self.recovering),
            leader_epoch: self.leader_epoch + i32::from(change.leader.is_some()),
            partition_epoch: self.partition_epoch + 1,
        }
    }

    fn check(&self) -> Result<(), ImageError> {
        let within = |list: &[i32]| list.iter().all(|broker| self.replicas.contains(broker));
        let problem = if self.replicas.is_empty() {
            "no replicas"
        } else if self.directories.len() != self.replicas.len() {
            "not one directory for each replica"
        } else if !within(&self.isr) {
            "ISR is not among the replicas"
        } else if self.leader().is_some_and(|leader| !self.isr.contains(&leader)) {
            "leader is not in the ISR"
        } else {
            return Ok(());
        };
        Err(ImageError::BadPartition(problem))
    }
}

impl Broker {
    fn from_record(record: &BrokerRecord) -> Broker {
        Broker {
            id: record.broker_id,
            incarnation_id: record.incarnation_id,
            epoch: record.broker_epoch,
            endpoints: record.endpoints.clone(),
            features: record.features.clone(),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            directories: record.directories.clone(),
        }
    }

    fn to_record(&self) -> BrokerRecord {
        BrokerRecord {
            broker_id: self.id,
            incarnation_id: self.incarnation_id,
            broker_epoch: self.epoch,
            endpoints: self.endpoints.clone(),
            features: self.features.clone(),
            rack: self.rack.clone(),
            fenced: self.fenced,
            in_controlled_shutdown: self.in_controlled_shutdown,
            directories: self.directories.clone(),
        }
    }
}

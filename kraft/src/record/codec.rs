//! Bytes of metadata records. A promise: what one release wrote every later one reads.
//!
//! A batch is one entry of the metadata log, or a snapshot: `batch version (u8 = 1), count
//! (varint), then per record: length (varint), type (u8), version (u8), fields`. Integers are
//! zigzag varints, uuids 16 bytes, text and bytes have a varint length, lists a varint count,
//! options a byte 0/1. A record that gains a field gets a new version; its reader keeps reading the
//! old ones. Unknown types and versions are errors, never skipped.

use super::fields::{
    Reader, put_bool, put_bytes, put_ints, put_long, put_option, put_text, put_uuid, put_uuids,
    put_varint,
};
use super::{
    AclRecord, BrokerChangeRecord, BrokerRecord, ClientQuotaRecord, ConfigRecord, ConfigResource,
    Endpoint, FeatureRange, MetadataRecord, PartitionChangeRecord, PartitionRecord, ResourceKind,
    ScramRecord, TopicRecord,
};

/// The version of a batch's layout.
pub const BATCH_VERSION: u8 = 1;

/// The only version of every record type so far.
const RECORD_VERSION: u8 = 1;

/// Why bytes are not metadata records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes end before the record does.
    #[error("metadata record is cut off")]
    Truncated,
    /// Bytes are left over after the last record or field.
    #[error("metadata record has bytes left over")]
    Surplus,
    /// A field holds what it may not.
    #[error("metadata record is malformed: {0}")]
    Malformed(&'static str),
    /// Written by a newer release.
    #[error("metadata batch version {0} is not known to this release")]
    UnknownBatchVersion(u8),
    /// Written by a newer release.
    #[error("metadata record type {0} is not known to this release")]
    UnknownType(u8),
    /// Written by a newer release.
    #[error("version {version} of metadata record type {kind} is not known to this release")]
    UnknownVersion { kind: u8, version: u8 },
}

/// Numbers of record types, taken from Kafka's api keys where there is one; never reused.
mod kind {
    pub(super) const REGISTER_BROKER: u8 = 0;
    pub(super) const UNREGISTER_BROKER: u8 = 1;
    pub(super) const TOPIC: u8 = 2;
    pub(super) const PARTITION: u8 = 3;
    pub(super) const CONFIG: u8 = 4;
    pub(super) const PARTITION_CHANGE: u8 = 5;
    pub(super) const REMOVE_TOPIC: u8 = 9;
    pub(super) const SCRAM: u8 = 11;
    pub(super) const FEATURE_LEVEL: u8 = 12;
    pub(super) const CLIENT_QUOTA: u8 = 14;
    pub(super) const PRODUCER_IDS: u8 = 15;
    pub(super) const BROKER_CHANGE: u8 = 17;
    pub(super) const ACL: u8 = 18;
    pub(super) const REMOVE_ACL: u8 = 19;
    pub(super) const NO_OP: u8 = 20;
    pub(super) const REMOVE_SCRAM: u8 = 22;
    pub(super) const CLEAR_ELR: u8 = 28;
    pub(super) const BROKER_EPOCH: u8 = 128;
}

/// Bytes of one batch: an entry of the metadata log or a snapshot.
pub fn encode_batch(records: &[MetadataRecord]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + records.len() * 64);
    out.push(BATCH_VERSION);
    put_varint(&mut out, records.len() as u64);
    let mut body = Vec::with_capacity(64);
    for record in records {
        body.clear();
        record.encode(&mut body);
        put_bytes(&mut out, &body);
    }
    out
}

/// The records of one batch. Allocates no more than a small multiple of `bytes`.
pub fn decode_batch(bytes: &[u8]) -> Result<Vec<MetadataRecord>, RecordError> {
    let mut reader = Reader::new(bytes);
    let version = reader.byte()?;
    if version != BATCH_VERSION {
        return Err(RecordError::UnknownBatchVersion(version));
    }
    // The shortest record is a length, a type and a version.
    let records = reader.list(3, |reader| MetadataRecord::decode(reader.bytes()?))?;
    if reader.is_empty() { Ok(records) } else { Err(RecordError::Surplus) }
}

impl MetadataRecord {
    /// Appends the bytes of this record: type, version, fields.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind());
        out.push(RECORD_VERSION);
        match self {
            MetadataRecord::Topic(topic) => {
                put_text(out, &topic.name);
                put_uuid(out, topic.topic_id);
            }
            MetadataRecord::Partition(partition) => put_partition(out, partition),
            MetadataRecord::PartitionChange(change) => put_partition_change(out, change),
            MetadataRecord::RemoveTopic { topic_id } => put_uuid(out, *topic_id),
            MetadataRecord::RegisterBroker(broker) => put_broker(out, broker),
            MetadataRecord::UnregisterBroker { broker_id, broker_epoch } => {
                put_long(out, i64::from(*broker_id));
                put_long(out, *broker_epoch);
            }
            MetadataRecord::BrokerChange(change) => put_broker_change(out, change),
            MetadataRecord::Config(config) => put_config(out, config),
            MetadataRecord::FeatureLevel { name, level } => {
                put_text(out, name);
                put_long(out, i64::from(*level));
            }
            MetadataRecord::ProducerIds { broker_id, broker_epoch, next_producer_id } => {
                put_long(out, i64::from(*broker_id));
                put_long(out, *broker_epoch);
                put_long(out, *next_producer_id);
            }
            MetadataRecord::ClientQuota(quota) => put_quota(out, quota),
            MetadataRecord::Acl(acl) => put_acl(out, acl),
            MetadataRecord::RemoveAcl { id } => put_uuid(out, *id),
            MetadataRecord::Scram(scram) => put_scram(out, scram),
            MetadataRecord::RemoveScram { user, mechanism } => {
                put_text(out, user);
                out.push(*mechanism as u8);
            }
            MetadataRecord::ClearElr { topic } => {
                put_option(out, topic.as_deref(), put_text);
            }
            MetadataRecord::BrokerEpoch { last } => put_long(out, *last),
            MetadataRecord::NoOp => {}
        }
    }

    /// The record that `bytes` hold, all of them.
    pub fn decode(bytes: &[u8]) -> Result<MetadataRecord, RecordError> {
        let mut reader = Reader::new(bytes);
        let kind = reader.byte()?;
        let version = reader.byte()?;
        let record = decode_fields(kind, version, &mut reader)?;
        if reader.is_empty() { Ok(record) } else { Err(RecordError::Surplus) }
    }

    fn kind(&self) -> u8 {
        match self {
            MetadataRecord::Topic(_) => kind::TOPIC,
            MetadataRecord::Partition(_) => kind::PARTITION,
            MetadataRecord::PartitionChange(_) => kind::PARTITION_CHANGE,
            MetadataRecord::RemoveTopic { .. } => kind::REMOVE_TOPIC,
            MetadataRecord::RegisterBroker(_) => kind::REGISTER_BROKER,
            MetadataRecord::UnregisterBroker { .. } => kind::UNREGISTER_BROKER,
            MetadataRecord::BrokerChange(_) => kind::BROKER_CHANGE,
            MetadataRecord::Config(_) => kind::CONFIG,
            MetadataRecord::FeatureLevel { .. } => kind::FEATURE_LEVEL,
            MetadataRecord::ProducerIds { .. } => kind::PRODUCER_IDS,
            MetadataRecord::ClientQuota(_) => kind::CLIENT_QUOTA,
            MetadataRecord::Acl(_) => kind::ACL,
            MetadataRecord::RemoveAcl { .. } => kind::REMOVE_ACL,
            MetadataRecord::Scram(_) => kind::SCRAM,
            MetadataRecord::RemoveScram { .. } => kind::REMOVE_SCRAM,
            MetadataRecord::ClearElr { .. } => kind::CLEAR_ELR,
            MetadataRecord::BrokerEpoch { .. } => kind::BROKER_EPOCH,
            MetadataRecord::NoOp => kind::NO_OP,
        }
    }
}

fn decode_fields(
    kind: u8,
    version: u8,
    reader: &mut Reader<'_>,
) -> Result<MetadataRecord, RecordError> {
    let decode: fn(&mut Reader<'_>) -> Result<MetadataRecord, RecordError> = match kind {
        kind::TOPIC => {
            |r| Ok(MetadataRecord::Topic(TopicRecord { name: r.text()?, topic_id: r.uuid()? }))
        }
        kind::PARTITION => |r| partition(r).map(MetadataRecord::Partition),
        kind::PARTITION_CHANGE => |r| partition_change(r).map(MetadataRecord::PartitionChange),
        kind::REMOVE_TOPIC => |r| Ok(MetadataRecord::RemoveTopic { topic_id: r.uuid()? }),
        kind::REGISTER_BROKER => |r| broker(r).map(MetadataRecord::RegisterBroker),
        kind::UNREGISTER_BROKER => |r| {
            let (broker_id, broker_epoch) = (r.int()?, r.long()?);
            Ok(MetadataRecord::UnregisterBroker { broker_id, broker_epoch })
        },
        kind::BROKER_CHANGE => |r| broker_change(r).map(MetadataRecord::BrokerChange),
        kind::CONFIG => |r| config(r).map(MetadataRecord::Config),
        kind::FEATURE_LEVEL => {
            |r| Ok(MetadataRecord::FeatureLevel { name: r.text()?, level: r.short()? })
        }
        kind::PRODUCER_IDS => |r| {
            let (broker_id, broker_epoch, next_producer_id) = (r.int()?, r.long()?, r.long()?);
            Ok(MetadataRecord::ProducerIds { broker_id, broker_epoch, next_producer_id })
        },
        kind::CLIENT_QUOTA => |r| quota(r).map(MetadataRecord::ClientQuota),
        kind::ACL => |r| acl(r).map(MetadataRecord::Acl),
        kind::REMOVE_ACL => |r| Ok(MetadataRecord::RemoveAcl { id: r.uuid()? }),
        kind::SCRAM => |r| scram(r).map(MetadataRecord::Scram),
        kind::REMOVE_SCRAM => {
            |r| Ok(MetadataRecord::RemoveScram { user: r.text()?, mechanism: r.tiny()? })
        }
        kind::CLEAR_ELR => |r| Ok(MetadataRecord::ClearElr { topic: r.option(Reader::text)? }),
        kind::BROKER_EPOCH => |r| Ok(MetadataRecord::BrokerEpoch { last: r.long()? }),
        kind::NO_OP => |_| Ok(MetadataRecord::NoOp),
        _ => return Err(RecordError::UnknownType(kind)),
    };
    if version != RECORD_VERSION {
        return Err(RecordError::UnknownVersion { kind, version });
    }
    decode(reader)
}

fn put_partition(out: &mut Vec<u8>, partition: &PartitionRecord) {
    put_uuid(out, partition.topic_id);
    put_long(out, i64::from(partition.partition));
    put_ints(out, &partition.replicas);
    put_uuids(out, &partition.directories);
    put_ints(out, &partition.isr);
    put_ints(out, &partition.adding);
    put_ints(out, &partition.removing);
    put_ints(out, &partition.elr);
    put_ints(out, &partition.last_known_elr);
    put_long(out, i64::from(partition.leader));
    put_bool(out, partition.recovering);
    put_long(out, i64::from(partition.leader_epoch));
    put_long(out, i64::from(partition.partition_epoch));
}

fn partition(r: &mut Reader<'_>) -> Result<PartitionRecord, RecordError> {
    Ok(PartitionRecord {
        topic_id: r.uuid()?,
        partition: r.int()?,
        replicas: r.ints()?,
        directories: r.uuids()?,
        isr: r.ints()?,
        adding: r.ints()?,
        removing: r.ints()?,
        elr: r.ints()?,
        last_known_elr: r.ints()?,
        leader: r.int()?,
        recovering: r.bool()?,
        leader_epoch: r.int()?,
        partition_epoch: r.int()?,
    })
}

fn put_partition_change(out: &mut Vec<u8>, change: &PartitionChangeRecord) {
    put_uuid(out, change.topic_id);
    put_long(out, i64::from(change.partition));
    put_option(out, change.isr.as_deref(), put_ints);
    put_option(out, change.leader, |out, leader| put_long(out, i64::from(leader)));
    put_option(out, change.replicas.as_deref(), put_ints);
    put_option(out, change.directories.as_deref(), put_uuids);
    put_option(out, change.removing.as_deref(), put_ints);
    put_option(out, change.adding.as_deref(), put_ints);
    put_option(out, change.elr.as_deref(), put_ints);
    put_option(out, change.last_known_elr.as_deref(), put_ints);
    put_option(out, change.recovering, put_bool);
}

fn partition_change(r: &mut Reader<'_>) -> Result<PartitionChangeRecord, RecordError> {
    Ok(PartitionChangeRecord {
        topic_id: r.uuid()?,
        partition: r.int()?,
        isr: r.option(Reader::ints)?,
        leader: r.option(Reader::int)?,
        replicas: r.option(Reader::ints)?,
        directories: r.option(Reader::uuids)?,
        removing: r.option(Reader::ints)?,
        adding: r.option(Reader::ints)?,
        elr: r.option(Reader::ints)?,
        last_known_elr: r.option(Reader::ints)?,
        recovering: r.option(Reader::bool)?,
    })
}

fn put_broker(out: &mut Vec<u8>, broker: &BrokerRecord) {
    put_long(out, i64::from(broker.broker_id));
    put_uuid(out, broker.incarnation_id);
    put_long(out, broker.broker_epoch);
    put_varint(out, broker.endpoints.len() as u64);
    for endpoint in &broker.endpoints {
        put_text(out, &endpoint.name);
        put_text(out, &endpoint.host);
        put_long(out, i64::from(endpoint.port));
        put_long(out, i64::from(endpoint.security_protocol));
    }
    put_varint(out, broker.features.len() as u64);
    for feature in &broker.features {
        put_text(out, &feature.name);
        put_long(out, i64::from(feature.min_level));
        put_long(out, i64::from(feature.max_level));
    }
    put_option(out, broker.rack.as_deref(), put_text);
    put_bool(out, broker.fenced);
    put_bool(out, broker.in_controlled_shutdown);
    put_uuids(out, &broker.directories);
}

fn broker(r: &mut Reader<'_>) -> Result<BrokerRecord, RecordError> {
    Ok(BrokerRecord {
        broker_id: r.int()?,
        incarnation_id: r.uuid()?,
        broker_epoch: r.long()?,
        endpoints: r.list(4, |r| {
            Ok(Endpoint {
                name: r.text()?,
                host: r.text()?,
                port: r.port()?,
                security_protocol: r.short()?,
            })
        })?,
        features: r.list(3, |r| {
            Ok(FeatureRange { name: r.text()?, min_level: r.short()?, max_level: r.short()? })
        })?,
        rack: r.option(Reader::text)?,
        fenced: r.bool()?,
        in_controlled_shutdown: r.bool()?,
        directories: r.uuids()?,
    })
}

fn put_broker_change(out: &mut Vec<u8>, change: &BrokerChangeRecord) {
    put_long(out, i64::from(change.broker_id));
    put_long(out, change.broker_epoch);
    put_option(out, change.fenced, put_bool);
    put_option(out, change.in_controlled_shutdown, put_bool);
    put_option(out, change.directories.as_deref(), put_uuids);
}

fn broker_change(r: &mut Reader<'_>) -> Result<BrokerChangeRecord, RecordError> {
    Ok(BrokerChangeRecord {
        broker_id: r.int()?,
        broker_epoch: r.long()?,
        fenced: r.option(Reader::bool)?,
        in_controlled_shutdown: r.option(Reader::bool)?,
        directories: r.option(Reader::uuids)?,
    })
}

fn put_config(out: &mut Vec<u8>, config: &ConfigRecord) {
    out.push(config.resource.kind.code() as u8);
    put_text(out, &config.resource.name);
    put_text(out, &config.key);
    put_option(out, config.value.as_deref(), put_text);
}

fn config(r: &mut Reader<'_>) -> Result<ConfigRecord, RecordError> {
    let kind = ResourceKind::from_code(r.tiny()?)
        .ok_or(RecordError::Malformed("unknown config resource type"))?;
    Ok(ConfigRecord {
        resource: ConfigResource { kind, name: r.text()? },
        key: r.text()?,
        value: r.option(Reader::text)?,
    })
}

fn put_quota(out: &mut Vec<u8>, quota: &ClientQuotaRecord) {
    put_varint(out, quota.entity.len() as u64);
    for (entity_type, name) in &quota.entity {
        put_text(out, entity_type);
        put_option(out, name.as_deref(), put_text);
    }
    put_text(out, &quota.key);
    put_option(out, quota.value, |out, value| out.extend_from_slice(&value.to_be_bytes()));
}

fn quota(r: &mut Reader<'_>) -> Result<ClientQuotaRecord, RecordError> {
    Ok(ClientQuotaRecord {
        entity: r.list(2, |r| Ok((r.text()?, r.option(Reader::text)?)))?,
        key: r.text()?,
        value: r.option(Reader::double)?,
    })
}

fn put_acl(out: &mut Vec<u8>, acl: &AclRecord) {
    put_uuid(out, acl.id);
    out.push(acl.resource_type as u8);
    put_text(out, &acl.resource_name);
    out.push(acl.pattern_type as u8);
    put_text(out, &acl.principal);
    put_text(out, &acl.host);
    out.push(acl.operation as u8);
    out.push(acl.permission_type as u8);
}

fn acl(r: &mut Reader<'_>) -> Result<AclRecord, RecordError> {
    Ok(AclRecord {
        id: r.uuid()?,
        resource_type: r.tiny()?,
        resource_name: r.text()?,
        pattern_type: r.tiny()?,
        principal: r.text()?,
        host: r.text()?,
        operation: r.tiny()?,
        permission_type: r.tiny()?,
    })
}

fn put_scram(out: &mut Vec<u8>, scram: &ScramRecord) {
    put_text(out, &scram.user);
    out.push(scram.mechanism as u8);
    put_bytes(out, &scram.salt);
    put_bytes(out, &scram.stored_key);
    put_bytes(out, &scram.server_key);
    put_long(out, i64::from(scram.iterations));
}

fn scram(r: &mut Reader<'_>) -> Result<ScramRecord, RecordError> {
    Ok(ScramRecord {
        user: r.text()?,
        mechanism: r.tiny()?,
        salt: r.bytes()?.to_vec(),
        stored_key: r.bytes()?.to_vec(),
        server_key: r.bytes()?.to_vec(),
        iterations: r.int()?,
    })
}

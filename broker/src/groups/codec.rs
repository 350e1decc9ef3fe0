//! Between the machine's records and the bytes of `__consumer_offsets`; the formats themselves are
//! `protocol_compat::group_records`.

use bytes::{Bytes, BytesMut};
use protocol_compat::batch::BatchBuilder;
use protocol_compat::compression::Codec;
use protocol_compat::group_records::{
    GROUP_METADATA_VERSION, GroupKey, GroupMember, GroupMetadataValue, GroupRecord,
    GroupRecordError, OffsetCommitValue,
};

use super::hard::{GroupValue, MemberValue, OffsetValue, Record};
use super::messages::Name;

/// A time that is not there.
const NO_TIME_MS: i64 = -1;

/// The records of one step as one batch, as Kafka's coordinator writes it: no producer, base
/// sequence 0.
pub fn batch(records: &[Record], now_ms: i64) -> BytesMut {
    let mut builder = BatchBuilder::new(0, Codec::None).producer(-1, -1, 0, false);
    for record in records {
        let (key, value) = encode(record);
        builder.append(now_ms, Some(&key), value.as_deref(), &[]);
    }
    builder.build()
}

fn encode(record: &Record) -> (Bytes, Option<Bytes>) {
    match record {
        Record::Group { group, value } => {
            let key = GroupKey::GroupMetadata { group: group.to_string() };
            let value = value.as_ref().map(stored_group);
            (key.encode(), value.map(|value| value.encode(GROUP_METADATA_VERSION)))
        }
        Record::Offset { group, topic, partition, value } => {
            let (group, topic) = (group.to_string(), topic.to_string());
            let key = GroupKey::OffsetCommit { group, topic, partition: *partition };
            let value = value.as_ref().map(stored_offset);
            (key.encode(), value.map(|value| value.encode(value.natural_version())))
        }
    }
}

fn stored_offset(value: &OffsetValue) -> OffsetCommitValue {
    OffsetCommitValue {
        offset: value.offset,
        leader_epoch: value.leader_epoch,
        metadata: value.metadata.to_string(),
        commit_timestamp_ms: value.commit_ms,
        expire_timestamp_ms: value.expire_ms.unwrap_or(NO_TIME_MS),
        topic_id: value.topic_id,
    }
}

fn stored_group(value: &GroupValue) -> GroupMetadataValue {
    let text = |name: &Option<Name>| name.as_deref().map(str::to_owned);
    let member = |member: &MemberValue| GroupMember {
        member_id: member.member_id.to_string(),
        group_instance_id: text(&member.instance_id),
        client_id: member.client_id.to_string(),
        client_host: member.client_host.to_string(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        session_timeout_ms: member.session_timeout_ms,
        subscription: member.subscription.clone(),
        assignment: member.assignment.clone(),
    };
    GroupMetadataValue {
        protocol_type: text(&value.protocol_type).unwrap_or_default(),
        generation: value.generation,
        protocol: text(&value.protocol),
        leader: text(&value.leader),
        current_state_timestamp_ms: value.state_since_ms.unwrap_or(NO_TIME_MS),
        members: value.members.iter().map(member).collect(),
    }
}

/// Reads one record; `None` for a type that is not known here (newer group protocols).
///
/// Errors: a key or value that is malformed, or of an unknown version.
pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Option<Record>, GroupRecordError> {
    Ok(match GroupRecord::decode(key, value)? {
        GroupRecord::GroupMetadata { key: GroupKey::GroupMetadata { group }, value } => {
            Some(Record::Group { group: Name::from(group), value: value.map(loaded_group) })
        }
        GroupRecord::OffsetCommit {
            key:
                GroupKey::OffsetCommit { group, topic, partition }
                | GroupKey::LegacyOffsetCommit { group, topic, partition },
            value,
        } => Some(Record::Offset {
            group: Name::from(group),
            topic: Name::from(topic),
            partition,
            value: value.map(loaded_offset),
        }),
        _ => None,
    })
}

fn loaded_offset(value: OffsetCommitValue) -> OffsetValue {
    OffsetValue {
        offset: value.offset,
        leader_epoch: value.leader_epoch,
        metadata: Name::from(value.metadata),
        commit_ms: value.commit_timestamp_ms,
        expire_ms: time(value.expire_timestamp_ms),
        topic_id: value.topic_id,
    }
}

fn loaded_group(value: GroupMetadataValue) -> GroupValue {
    let member = |member: GroupMember| MemberValue {
        member_id: Name::from(member.member_id),
        instance_id: member.group_instance_id.map(Name::from),
        client_id: Name::from(member.client_id),
        client_host: Name::from(member.client_host),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        session_timeout_ms: member.session_timeout_ms,
        subscription: member.subscription,
        assignment: member.assignment,
    };
    GroupValue {
        protocol_type: Some(Name::from(value.protocol_type)).filter(|name| !name.is_empty()),
        generation: value.generation,
        protocol: value.protocol.map(Name::from),
        leader: value.leader.map(Name::from),
        state_since_ms: time(value.current_state_timestamp_ms),
        members: value.members.into_iter().map(member).collect(),
    }
}

fn time(stored_ms: i64) -> Option<i64> {
    (stored_ms != NO_TIME_MS).then_some(stored_ms)
}

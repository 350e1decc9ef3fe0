//! The records of `__consumer_offsets` that classic groups and committed offsets leave there.
//!
//! Key types 0 to 2 with every version of their values (Kafka `OffsetCommitKey`,
//! `OffsetCommitValue`, `GroupMetadataKey`, `GroupMetadataValue`); other types are carried along
//! unread. What the records mean to a group is not known here.

use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

use crate::wire::{
    Malformed, Reader, put_len, put_no_tags, put_nullable_bytes, put_nullable_string, put_string,
    put_uvarint, text,
};

/// The version in which Kafka 4.4 writes committed offsets, unless they carry an expiry of their
/// own: then it is 1.
pub const OFFSET_COMMIT_VERSION: i16 = 4;
/// The version in which Kafka 4.4 writes classic groups.
pub const GROUP_METADATA_VERSION: i16 = 3;
/// The highest version there is of either value, the first one in the flexible encoding.
const VERSION_MAX: i16 = 4;

/// Why a record of `__consumer_offsets` cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupRecordError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Written by a later release.
    #[error("unknown value version {version} of key type {kind}")]
    Version { kind: i16, version: i16 },
}

/// The key of a record: what it is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// Type 1: an offset committed for a partition.
    OffsetCommit { group: String, topic: String, partition: i32 },
    /// Type 0: the same, from the early days.
    LegacyOffsetCommit { group: String, topic: String, partition: i32 },
    /// Type 2: a classic group and its members.
    GroupMetadata { group: String },
    /// Any other type; `rest` is what follows the type.
    Unknown { kind: i16, rest: Bytes },
}

impl GroupKey {
    /// Reads a key. Bytes after the last field are ignored.
    pub fn decode(key: &[u8]) -> Result<GroupKey, Malformed> {
        let mut reader = Reader::new(key);
        Ok(match reader.i16()? {
            kind @ (0 | 1) => {
                let group = string(&mut reader, false)?;
                let topic = string(&mut reader, false)?;
                let partition = reader.i32()?;
                match kind {
                    0 => GroupKey::LegacyOffsetCommit { group, topic, partition },
                    _ => GroupKey::OffsetCommit { group, topic, partition },
                }
            }
            2 => GroupKey::GroupMetadata { group: string(&mut reader, false)? },
            kind => GroupKey::Unknown { kind, rest: Bytes::copy_from_slice(reader.rest()) },
        })
    }

    /// The bytes of the key.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_i16(self.kind());
        match self {
            GroupKey::OffsetCommit { group, topic, partition }
            | GroupKey::LegacyOffsetCommit { group, topic, partition } => {
                put_string(&mut out, false, group);
                put_string(&mut out, false, topic);
                out.put_i32(*partition);
            }
            GroupKey::GroupMetadata { group } => put_string(&mut out, false, group),
            GroupKey::Unknown { rest, .. } => out.put_slice(rest),
        }
        out.freeze()
    }

    /// The number in front of the key.
    pub fn kind(&self) -> i16 {
        match self {
            GroupKey::LegacyOffsetCommit { .. } => 0,
            GroupKey::OffsetCommit { .. } => 1,
            GroupKey::GroupMetadata { .. } => 2,
            GroupKey::Unknown { kind, .. } => *kind,
        }
    }
}

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommitValue {
    pub offset: i64,
    /// -1 for none; from version 3 on.
    pub leader_epoch: i32,
    pub metadata: String,
    pub commit_timestamp_ms: i64,
    /// -1 for none; in version 1 alone.
    pub expire_timestamp_ms: i64,
    /// Nil for none; from version 4 on.
    pub topic_id: Uuid,
}

impl OffsetCommitValue {
    /// The version that Kafka would choose for this value.
    pub fn natural_version(&self) -> i16 {
        if self.expire_timestamp_ms == -1 { OFFSET_COMMIT_VERSION } else { 1 }
    }

    /// Reads a value of any version.
    pub fn decode(value: &[u8]) -> Result<OffsetCommitValue, GroupRecordError> {
        let mut reader = Reader::new(value);
        let version = version(&mut reader, 1)?;
        let flexible = version >= 4;
        let offset = reader.i64()?;
        let leader_epoch = if version >= 3 { reader.i32()? } else { -1 };
        let metadata = string(&mut reader, flexible)?;
        let commit_timestamp_ms = reader.i64()?;
        let expire_timestamp_ms = if version == 1 { reader.i64()? } else { -1 };
        let mut topic_id = Uuid::nil();
        if flexible {
            reader.tagged(|tag, reader| {
                if tag == 0 {
                    topic_id = reader.uuid()?;
                }
                Ok(tag == 0)
            })?;
        }
        Ok(OffsetCommitValue {
            offset,
            leader_epoch,
            metadata,
            commit_timestamp_ms,
            expire_timestamp_ms,
            topic_id,
        })
    }

    /// The bytes of the value in `version`, 0 to 4; what the version lacks is left out.
    pub fn encode(&self, version: i16) -> Bytes {
        assert!((0..=VERSION_MAX).contains(&version), "a version of ours");
        let flexible = version >= 4;
        let mut out = BytesMut::new();
        out.put_i16(version);
        out.put_i64(self.offset);
        if version >= 3 {
            out.put_i32(self.leader_epoch);
        }
        put_string(&mut out, flexible, &self.metadata);
        out.put_i64(self.commit_timestamp_ms);
        if version == 1 {
            out.put_i64(self.expire_timestamp_ms);
        }
        if !flexible || self.topic_id.is_nil() {
            put_no_tags(&mut out, flexible);
        } else {
            put_uvarint(&mut out, 1); // One tag: number 0, of 16 bytes.
            put_uvarint(&mut out, 0);
            put_uvarint(&mut out, 16);
            out.put_slice(self.topic_id.as_bytes());
        }
        out.freeze()
    }
}

/// A classic group as it was when it last became stable, or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadataValue {
    /// `consumer`, or whatever the members said; may be empty.
    pub protocol_type: String,
    pub generation: i32,
    pub protocol: Option<String>,
    pub leader: Option<String>,
    /// -1 for unknown; from version 2 on.
    pub current_state_timestamp_ms: i64,
    pub members: Vec<GroupMember>,
}

/// A member of a classic group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    pub member_id: String,
    /// From version 3 on.
    pub group_instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    /// From version 1 on; -1 for none, and before that: see [`GroupMember::rebalance_timeout`].
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// What the member said in the protocol that was chosen.
    pub subscription: Bytes,
    pub assignment: Bytes,
}

/// The least that a member takes in any version: four empty strings or bytes, two numbers.
const MEMBER_LEN_MIN: usize = 9;

impl GroupMetadataValue {
    /// Reads a value of any version.
    pub fn decode(value: &[u8]) -> Result<GroupMetadataValue, GroupRecordError> {
        let mut reader = Reader::new(value);
        let version = version(&mut reader, 2)?;
        let flexible = version >= 4;
        let protocol_type = string(&mut reader, flexible)?;
        let generation = reader.i32()?;
        let protocol = nullable_string(&mut reader, flexible)?;
        let leader = nullable_string(&mut reader, flexible)?;
        let current_state_timestamp_ms = if version >= 2 { reader.i64()? } else { -1 };
        let count = reader.count(flexible, MEMBER_LEN_MIN)?;
        let members = (0..count)
            .map(|_| GroupMember::decode(&mut reader, version))
            .collect::<Result<Vec<_>, _>>()?;
        if flexible {
            reader.skip_tags()?;
        }
        Ok(GroupMetadataValue {
            protocol_type,
            generation,
            protocol,
            leader,
            current_state_timestamp_ms,
            members,
        })
    }

    /// The bytes of the value in `version`, 0 to 4; what the version lacks is left out.
    pub fn encode(&self, version: i16) -> Bytes {
        assert!((0..=VERSION_MAX).contains(&version), "a version of ours");
        let flexible = version >= 4;
        let mut out = BytesMut::new();
        out.put_i16(version);
        put_string(&mut out, flexible, &self.protocol_type);
        out.put_i32(self.generation);
        put_nullable_string(&mut out, flexible, self.protocol.as_deref());
        put_nullable_string(&mut out, flexible, self.leader.as_deref());
        if version >= 2 {
            out.put_i64(self.current_state_timestamp_ms);
        }
        put_len(&mut out, flexible, Some(self.members.len()));
        for member in &self.members {
            member.encode(&mut out, version);
        }
        put_no_tags(&mut out, flexible);
        out.freeze()
    }
}

impl GroupMember {
    /// How long a rebalance may wait for this member, in milliseconds: as long as its session if
    /// it said nothing else.
    pub fn rebalance_timeout(&self) -> i32 {
        match self.rebalance_timeout_ms {
            -1 => self.session_timeout_ms,
            timeout_ms => timeout_ms,
        }
    }

    fn decode(reader: &mut Reader<'_>, version: i16) -> Result<GroupMember, Malformed> {
        let flexible = version >= 4;
        let member_id = string(reader, flexible)?;
        let group_instance_id =
            if version >= 3 { nullable_string(reader, flexible)? } else { None };
        let client_id = string(reader, flexible)?;
        let client_host = string(reader, flexible)?;
        let rebalance_timeout_ms = if version >= 1 { reader.i32()? } else { -1 };
        let session_timeout_ms = reader.i32()?;
        let subscription = Bytes::copy_from_slice(reader.bytes(flexible)?);
        let assignment = Bytes::copy_from_slice(reader.bytes(flexible)?);
        if flexible {
            reader.skip_tags()?;
        }
        Ok(GroupMember {
            member_id,
            group_instance_id,
            client_id,
            client_host,
            rebalance_timeout_ms,
            session_timeout_ms,
            subscription,
            assignment,
        })
    }

    fn encode(&self, out: &mut BytesMut, version: i16) {
        let flexible = version >= 4;
        put_string(out, flexible, &self.member_id);
        if version >= 3 {
            put_nullable_string(out, flexible, self.group_instance_id.as_deref());
        }
        put_string(out, flexible, &self.client_id);
        put_string(out, flexible, &self.client_host);
        if version >= 1 {
            out.put_i32(self.rebalance_timeout_ms);
        }
        out.put_i32(self.session_timeout_ms);
        put_nullable_bytes(out, flexible, Some(&self.subscription));
        put_nullable_bytes(out, flexible, Some(&self.assignment));
        put_no_tags(out, flexible);
    }
}

/// A whole record: `None` for a value is a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRecord {
    /// Key types 0 and 1.
    OffsetCommit {
        key: GroupKey,
        value: Option<OffsetCommitValue>,
    },
    GroupMetadata {
        key: GroupKey,
        value: Option<GroupMetadataValue>,
    },
    /// A type that is not read here; the value as it is.
    Unknown {
        key: GroupKey,
        value: Option<Bytes>,
    },
}

impl GroupRecord {
    /// Reads key and value of a record.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<GroupRecord, GroupRecordError> {
        let key = GroupKey::decode(key)?;
        Ok(match &key {
            GroupKey::OffsetCommit { .. } | GroupKey::LegacyOffsetCommit { .. } => {
                let value = value.map(OffsetCommitValue::decode).transpose()?;
                GroupRecord::OffsetCommit { key, value }
            }
            GroupKey::GroupMetadata { .. } => {
                let value = value.map(GroupMetadataValue::decode).transpose()?;
                GroupRecord::GroupMetadata { key, value }
            }
            GroupKey::Unknown { .. } => {
                GroupRecord::Unknown { key, value: value.map(Bytes::copy_from_slice) }
            }
        })
    }

    pub fn key(&self) -> &GroupKey {
        match self {
            GroupRecord::OffsetCommit { key, .. }
            | GroupRecord::GroupMetadata { key, .. }
            | GroupRecord::Unknown { key, .. } => key,
        }
    }
}

/// The version in front of a value of key type `kind`.
fn version(reader: &mut Reader<'_>, kind: i16) -> Result<i16, GroupRecordError> {
    match reader.i16()? {
        version @ 0..=VERSION_MAX => Ok(version),
        version => Err(GroupRecordError::Version { kind, version }),
    }
}

fn string(reader: &mut Reader<'_>, flexible: bool) -> Result<String, Malformed> {
    reader.string(flexible).map(|bytes| text(bytes).into_owned())
}

fn nullable_string(reader: &mut Reader<'_>, flexible: bool) -> Result<Option<String>, Malformed> {
    let bytes = reader.nullable_string(flexible)?;
    Ok(bytes.map(|bytes| text(bytes).into_owned()))
}

#[cfg(test)]
mod tests;

//! Fetch (1), v4-18: request parser and response frame writer.
//!
//! v5: log start offset. v7: sessions. v9: leader epoch. v11: rack and preferred replica.
//! v12: flexible, diverging epochs. v13: topic ids instead of names. v15: replica state.
//! v16: node endpoints. v17: replica directory id. v18: high watermark of the replica.
//! Where records come from is the broker's: the writer leaves their places open.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use uuid::Uuid;

use super::produce::spend;
use super::{NodeEndpoint, PARTITIONS_MAX, put_node_endpoints};
use crate::header::{put_response_header, response_header_len};
use crate::wire::{self, Malformed, Reader};

const KEY: i16 = 1;
/// The first version with compact lengths and tagged fields.
const FLEXIBLE: i16 = 12;
/// The first version that names topics by id.
const TOPIC_IDS: i16 = 13;

/// A Fetch request. A field that its version lacks has Kafka's default.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchRequest<'a> {
    /// Only ever sent by raft peers (v12).
    pub cluster_id: Option<Cow<'a, str>>,
    /// -1 is a consumer. Of the body up to v14, of the replica state from v15 on.
    pub replica_id: i32,
    /// The broker epoch of a follower (v15), else -1.
    pub replica_epoch: i64,
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
    /// 0 read uncommitted, 1 read committed.
    pub isolation_level: i8,
    pub session_id: i32,
    /// -1 is no session (and what versions before v7 mean).
    pub session_epoch: i32,
    pub topics: Vec<FetchTopic<'a>>,
    pub forgotten: Vec<ForgottenTopic<'a>>,
    pub rack_id: Cow<'a, str>,
}

/// The partitions to fetch of one topic.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchTopic<'a> {
    /// Empty from v13 on.
    pub name: Cow<'a, str>,
    /// Nil before v13.
    pub topic_id: Uuid,
    pub partitions: Vec<FetchPartition>,
}

/// One partition to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPartition {
    pub partition: i32,
    /// -1 if the client does not know it.
    pub current_leader_epoch: i32,
    pub fetch_offset: i64,
    /// Followers: the epoch of their last record, or -1 (v12).
    pub last_fetched_epoch: i32,
    /// Followers: where their log starts, or -1 (v5).
    pub log_start_offset: i64,
    pub partition_max_bytes: i32,
    /// Raft followers (v17), else nil.
    pub replica_directory_id: Uuid,
    /// Followers: the high watermark they know (v18), else `i64::MAX`.
    pub high_watermark: i64,
}

/// Partitions that leave an incremental session.
#[derive(Debug, Clone, PartialEq)]
pub struct ForgottenTopic<'a> {
    /// Empty from v13 on.
    pub name: Cow<'a, str>,
    /// Nil before v13.
    pub topic_id: Uuid,
    pub partitions: Vec<i32>,
}

/// Reads a request body of version 4 to 18. Bytes behind the body are left alone, as in Kafka.
pub fn parse(version: i16, body: &[u8]) -> Result<FetchRequest<'_>, Malformed> {
    let flexible = version >= FLEXIBLE;
    let mut reader = Reader::new(body);
    let reader = &mut reader;
    let mut budget = PARTITIONS_MAX;
    let mut request = FetchRequest {
        cluster_id: None,
        replica_id: if version < 15 { reader.i32()? } else { -1 },
        replica_epoch: -1,
        max_wait_ms: reader.i32()?,
        min_bytes: reader.i32()?,
        max_bytes: reader.i32()?,
        isolation_level: reader.i8()?,
        session_id: if version >= 7 { reader.i32()? } else { 0 },
        session_epoch: if version >= 7 { reader.i32()? } else { -1 },
        topics: parse_topics(version, reader, &mut budget)?,
        forgotten: match version {
            7.. => parse_forgotten(version, reader, &mut budget)?,
            _ => Vec::new(),
        },
        rack_id: match version {
            11.. => wire::text(reader.string(flexible)?),
            _ => Cow::Borrowed(""),
        },
    };
    if flexible {
        parse_tags(version, reader, &mut request)?;
    }
    Ok(request)
}

fn parse_tags<'a>(
    version: i16,
    reader: &mut Reader<'a>,
    request: &mut FetchRequest<'a>,
) -> Result<(), Malformed> {
    reader.tagged(|tag, reader| match tag {
        0 => {
            request.cluster_id = reader.nullable_string(true)?.map(wire::text);
            Ok(true)
        }
        1 if version >= 15 => {
            request.replica_id = reader.i32()?;
            request.replica_epoch = reader.i64()?;
            reader.skip_tags()?;
            Ok(true)
        }
        1 => Err(Malformed::Tag { at: reader.position(), tag }),
        _ => Ok(false),
    })
}

/// The smallest topic entry: its name or id, and no partitions.
fn topic_smallest(version: i16) -> usize {
    match version {
        TOPIC_IDS.. => 16 + 1 + 1,
        FLEXIBLE.. => 1 + 1 + 1,
        _ => 2 + 4,
    }
}

fn parse_topic_key<'a>(
    version: i16,
    reader: &mut Reader<'a>,
) -> Result<(Cow<'a, str>, Uuid), Malformed> {
    if version >= TOPIC_IDS {
        return Ok((Cow::Borrowed(""), reader.uuid()?));
    }
    Ok((wire::text(reader.string(version >= FLEXIBLE)?), Uuid::nil()))
}

fn parse_topics<'a>(
    version: i16,
    reader: &mut Reader<'a>,
    budget: &mut usize,
) -> Result<Vec<FetchTopic<'a>>, Malformed> {
    let flexible = version >= FLEXIBLE;
    let partition_smallest = match version {
        FLEXIBLE.. => 33,
        9.. => 28,
        5.. => 24,
        _ => 16,
    };
    let count = reader.count(flexible, topic_smallest(version))?;
    spend(budget, count)?;
    let mut topics = Vec::with_capacity(count);
    for _ in 0..count {
        let (name, topic_id) = parse_topic_key(version, reader)?;
        let count = reader.count(flexible, partition_smallest)?;
        spend(budget, count)?;
        let mut partitions = Vec::with_capacity(count);
        for _ in 0..count {
            partitions.push(parse_partition(version, reader)?);
        }
        if flexible {
            reader.skip_tags()?;
        }
        topics.push(FetchTopic { name, topic_id, partitions });
    }
    Ok(topics)
}

fn parse_partition(version: i16, reader: &mut Reader<'_>) -> Result<FetchPartition, Malformed> {
    let mut partition = FetchPartition {
        partition: reader.i32()?,
        current_leader_epoch: if version >= 9 { reader.i32()? } else { -1 },
        fetch_offset: reader.i64()?,
        last_fetched_epoch: if version >= 12 { reader.i32()? } else { -1 },
        log_start_offset: if version >= 5 { reader.i64()? } else { -1 },
        partition_max_bytes: reader.i32()?,
        replica_directory_id: Uuid::nil(),
        high_watermark: i64::MAX,
    };
    if version >= FLEXIBLE {
        reader.tagged(|tag, reader| {
            match tag {
                0 if version >= 17 => partition.replica_directory_id = reader.uuid()?,
                1 if version >= 18 => partition.high_watermark = reader.i64()?,
                0 | 1 => return Err(Malformed::Tag { at: reader.position(), tag }),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
    }
    Ok(partition)
}

fn parse_forgotten<'a>(
    version: i16,
    reader: &mut Reader<'a>,
    budget: &mut usize,
) -> Result<Vec<ForgottenTopic<'a>>, Malformed> {
    let flexible = version >= FLEXIBLE;
    let count = reader.count(flexible, topic_smallest(version))?;
    spend(budget, count)?;
    let mut forgotten = Vec::with_capacity(count);
    for _ in 0..count {
        let (name, topic_id) = parse_topic_key(version, reader)?;
        let count = reader.count(flexible, 4)?;
        spend(budget, count)?;
        let mut partitions = Vec::with_capacity(count);
        for _ in 0..count {
            partitions.push(reader.i32()?);
        }
        if flexible {
            reader.skip_tags()?;
        }
        forgotten.push(ForgottenTopic { name, topic_id, partitions });
    }
    Ok(forgotten)
}

/// A Fetch response without its records. Fields that a version lacks are left out when written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub session_id: i32,
    pub topics: Vec<FetchTopicResponse>,
    /// The leaders named in `current_leader` (v16).
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// The answers for one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchTopicResponse {
    /// Written before v13.
    pub name: Arc<str>,
    /// Written from v13 on.
    pub topic_id: Uuid,
    pub partitions: Vec<FetchPartitionResponse>,
}

/// The answer for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchPartitionResponse {
    pub index: i32,
    pub error_code: i16,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
    /// Epoch and its end offset: the follower must truncate (v12).
    pub diverging_epoch: Option<(i32, i64)>,
    /// Leader id and epoch, where the request went to the wrong node (v12).
    pub current_leader: Option<(i32, i32)>,
    /// Producer id and first offset of each; null for read uncommitted.
    pub aborted: Option<Vec<(i64, i64)>>,
    /// -1 when the leader itself is as good (v11).
    pub preferred_read_replica: i32,
    /// How many bytes of records belong at this partition's place in the frame.
    pub records_len: usize,
}

impl FetchPartitionResponse {
    /// The answer with an error code and nothing else known.
    pub fn error(index: i32, error_code: i16) -> Self {
        FetchPartitionResponse {
            index,
            error_code,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: None,
            current_leader: None,
            aborted: None,
            preferred_read_replica: -1,
            records_len: 0,
        }
    }
}

impl FetchResponse {
    /// Writes the whole frame (size, header, body of a version from 4 to 18) but for the record
    /// bytes. Returns where in `out` the records of each partition with `records_len` above 0
    /// belong, in order, counted from the start of `out`. The size field counts the records.
    pub fn encode_frame(
        &self,
        version: i16,
        correlation_id: i32,
        out: &mut BytesMut,
    ) -> Vec<usize> {
        out.reserve(self.len_about());
        let start = out.len();
        out.put_i32(0);
        put_response_header(out, KEY, version, correlation_id);
        let mut places = Vec::new();
        let mut records_len = 0;
        let flexible = version >= FLEXIBLE;
        out.put_i32(self.throttle_time_ms);
        if version >= 7 {
            out.put_i16(self.error_code);
            out.put_i32(self.session_id);
        }
        wire::put_len(out, flexible, Some(self.topics.len()));
        for topic in &self.topics {
            if version >= TOPIC_IDS {
                out.put_slice(topic.topic_id.as_bytes());
            } else {
                wire::put_string(out, flexible, &topic.name);
            }
            wire::put_len(out, flexible, Some(topic.partitions.len()));
            for partition in &topic.partitions {
                partition.encode_head(version, out);
                if partition.records_len > 0 {
                    places.push(out.len());
                    records_len += partition.records_len;
                }
                partition.encode_tail(version, out);
            }
            wire::put_no_tags(out, flexible);
        }
        match version {
            16.. => put_node_endpoints(out, &self.node_endpoints),
            _ => wire::put_no_tags(out, flexible),
        }
        let size = out.len() - start - 4 + records_len;
        let size = i32::try_from(size).unwrap_or_else(|_| panic!("a response of {size} bytes"));
        if let Some(field) = out.get_mut(start..start + 4) {
            field.copy_from_slice(&size.to_be_bytes());
        }
        places
    }

    /// How many bytes the frame takes without records, a little more than needed.
    fn len_about(&self) -> usize {
        let topics = self.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| {
                80 + partition.aborted.as_ref().map_or(0, |aborted| aborted.len() * 17)
            });
            topic.name.len() + 32 + partitions.sum::<usize>()
        });
        4 + response_header_len(KEY, FLEXIBLE) + 32 + topics.sum::<usize>()
    }
}

impl FetchPartitionResponse {
    /// All up to the records.
    fn encode_head(&self, version: i16, out: &mut BytesMut) {
        let flexible = version >= FLEXIBLE;
        out.put_i32(self.index);
        out.put_i16(self.error_code);
        out.put_i64(self.high_watermark);
        out.put_i64(self.last_stable_offset);
        if version >= 5 {
            out.put_i64(self.log_start_offset);
        }
        wire::put_len(out, flexible, self.aborted.as_ref().map(Vec::len));
        for (producer_id, first_offset) in self.aborted.iter().flatten() {
            out.put_i64(*producer_id);
            out.put_i64(*first_offset);
            wire::put_no_tags(out, flexible);
        }
        if version >= 11 {
            out.put_i32(self.preferred_read_replica);
        }
        wire::put_len(out, flexible, Some(self.records_len));
    }

    /// All behind the records: tagged fields at their default are not written.
    fn encode_tail(&self, version: i16, out: &mut BytesMut) {
        if version < FLEXIBLE {
            return;
        }
        let diverging = self.diverging_epoch.filter(|end| *end != (-1, -1));
        let leader = self.current_leader.filter(|leader| *leader != (-1, -1));
        out.put_u8(u8::from(diverging.is_some()) + u8::from(leader.is_some()));
        if let Some((epoch, end_offset)) = diverging {
            out.put_slice(&[0, 13]);
            out.put_i32(epoch);
            out.put_i64(end_offset);
            out.put_u8(0);
        }
        if let Some((leader_id, leader_epoch)) = leader {
            out.put_slice(&[1, 9]);
            out.put_i32(leader_id);
            out.put_i32(leader_epoch);
            out.put_u8(0);
        }
    }
}

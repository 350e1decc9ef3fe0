//! Produce (0), v3-13: request parser and response writer.
//!
//! v5: log start offset. v8: record errors and message. v9: flexible. v10: current leader and
//! node endpoints. v12: same bytes as v11. v13: topic ids instead of names.
//! What the records are is `batch`; what an answer says is the broker's.

use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use uuid::Uuid;

use super::{NodeEndpoint, PARTITIONS_MAX, put_node_endpoints};
use crate::wire::{self, Malformed, Reader};

/// The first version with compact lengths and tagged fields.
const FLEXIBLE: i16 = 9;
/// The first version that names topics by id.
const TOPIC_IDS: i16 = 13;

/// A Produce request. Text and records are ranges into the body, so that the records can be
/// patched where they lie; [`wire::text_at`] gives the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProduceRequest {
    pub transactional_id: Option<Range<usize>>,
    pub acks: i16,
    pub timeout_ms: i32,
    pub topics: Vec<ProduceTopic>,
}

/// The partitions of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProduceTopic {
    /// Empty from v13 on.
    pub name: Range<usize>,
    /// Nil before v13.
    pub topic_id: Uuid,
    pub partitions: Vec<ProducePartition>,
}

/// The records for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducePartition {
    pub index: i32,
    /// Null is legal on the wire, and an error of the partition.
    pub records: Option<Range<usize>>,
}

/// Reads a request body of version 3 to 13. Bytes behind the body are left alone, as in Kafka.
pub fn parse(version: i16, body: &[u8]) -> Result<ProduceRequest, Malformed> {
    let flexible = version >= FLEXIBLE;
    let mut reader = Reader::new(body);
    let transactional_id = reader.nullable_string(flexible)?;
    let transactional_id = transactional_id.map(|text| range_before(&reader, text.len()));
    let acks = reader.i16()?;
    let timeout_ms = reader.i32()?;
    let topic_smallest = match version {
        TOPIC_IDS.. => 16 + 1 + 1,
        FLEXIBLE.. => 1 + 1 + 1,
        _ => 2 + 4,
    };
    let count = reader.count(flexible, topic_smallest)?;
    let mut budget = PARTITIONS_MAX;
    spend(&mut budget, count)?;
    let mut topics = Vec::with_capacity(count);
    for _ in 0..count {
        topics.push(parse_topic(version, flexible, &mut reader, &mut budget)?);
    }
    if flexible {
        reader.skip_tags()?;
    }
    Ok(ProduceRequest { transactional_id, acks, timeout_ms, topics })
}

fn parse_topic(
    version: i16,
    flexible: bool,
    reader: &mut Reader<'_>,
    budget: &mut usize,
) -> Result<ProduceTopic, Malformed> {
    let (name, topic_id) = if version >= TOPIC_IDS {
        (0..0, reader.uuid()?)
    } else {
        let len = reader.string(flexible)?.len();
        (range_before(reader, len), Uuid::nil())
    };
    let count = reader.count(flexible, if flexible { 4 + 1 + 1 } else { 4 + 4 })?;
    spend(budget, count)?;
    let mut partitions = Vec::with_capacity(count);
    for _ in 0..count {
        let index = reader.i32()?;
        let records = reader.nullable_bytes(flexible)?;
        let records = records.map(|bytes| range_before(reader, bytes.len()));
        if flexible {
            reader.skip_tags()?;
        }
        partitions.push(ProducePartition { index, records });
    }
    if flexible {
        reader.skip_tags()?;
    }
    Ok(ProduceTopic { name, topic_id, partitions })
}

/// Where the `len` bytes that were just read lie.
fn range_before(reader: &Reader<'_>, len: usize) -> Range<usize> {
    reader.position() - len..reader.position()
}

pub(super) fn spend(budget: &mut usize, count: usize) -> Result<(), Malformed> {
    *budget = budget.checked_sub(count).ok_or(Malformed::TooMuch)?;
    Ok(())
}

/// A Produce response. Fields that a version lacks are left out when it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProduceResponse {
    pub topics: Vec<ProduceTopicResponse>,
    pub throttle_time_ms: i32,
    /// The leaders named in `current_leader` (v10).
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// The answers for one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProduceTopicResponse {
    /// Written before v13.
    pub name: Arc<str>,
    /// Written from v13 on.
    pub topic_id: Uuid,
    pub partitions: Vec<ProducePartitionResponse>,
}

/// The answer for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducePartitionResponse {
    pub index: i32,
    pub error_code: i16,
    pub base_offset: i64,
    /// -1 unless the topic has LogAppendTime.
    pub log_append_time_ms: i64,
    pub log_start_offset: i64,
    /// Which records were refused, by their place in the batch (v8).
    pub record_errors: Vec<(i32, Option<String>)>,
    pub error_message: Option<String>,
    /// Leader id and epoch, for NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH (v10).
    pub current_leader: Option<(i32, i32)>,
}

impl ProducePartitionResponse {
    /// The answer with an error code and nothing else known.
    pub fn error(index: i32, error_code: i16) -> Self {
        ProducePartitionResponse {
            index,
            error_code,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            current_leader: None,
        }
    }
}

impl ProduceResponse {
    /// Writes the body in a version from 3 to 13.
    pub fn encode(&self, version: i16, out: &mut BytesMut) {
        let flexible = version >= FLEXIBLE;
        wire::put_len(out, flexible, Some(self.topics.len()));
        for topic in &self.topics {
            if version >= TOPIC_IDS {
                out.put_slice(topic.topic_id.as_bytes());
            } else {
                wire::put_string(out, flexible, &topic.name);
            }
            wire::put_len(out, flexible, Some(topic.partitions.len()));
            for partition in &topic.partitions {
                partition.encode(version, out);
            }
            wire::put_no_tags(out, flexible);
        }
        out.put_i32(self.throttle_time_ms);
        match version {
            10.. => put_node_endpoints(out, &self.node_endpoints),
            _ => wire::put_no_tags(out, flexible),
        }
    }
}

impl ProducePartitionResponse {
    fn encode(&self, version: i16, out: &mut BytesMut) {
        let flexible = version >= FLEXIBLE;
        out.put_i32(self.index);
        out.put_i16(self.error_code);
        out.put_i64(self.base_offset);
        out.put_i64(self.log_append_time_ms);
        if version >= 5 {
            out.put_i64(self.log_start_offset);
        }
        if version >= 8 {
            wire::put_len(out, flexible, Some(self.record_errors.len()));
            for (batch_index, message) in &self.record_errors {
                out.put_i32(*batch_index);
                wire::put_nullable_string(out, flexible, message.as_deref());
                wire::put_no_tags(out, flexible);
            }
            wire::put_nullable_string(out, flexible, self.error_message.as_deref());
        }
        let leader = self.current_leader.filter(|leader| version >= 10 && *leader != (-1, -1));
        match leader {
            Some((leader_id, leader_epoch)) => {
                out.put_slice(&[1, 0, 9]);
                out.put_i32(leader_id);
                out.put_i32(leader_epoch);
                out.put_u8(0);
            }
            None => wire::put_no_tags(out, flexible),
        }
    }
}

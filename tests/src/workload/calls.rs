//! Requests about one partition of the run's topic, and the parts of their answers that matter.

use anyhow::{Context, anyhow};
use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    BrokerId, FetchRequest, InitProducerIdRequest, ListOffsetsRequest, ProduceRequest, ProducerId,
    TopicName,
};
use kafka_protocol::protocol::StrBytes;
use protocol_compat::batch::{batches, records};
use protocol_compat::error::ErrorCode;

use super::{TOPIC, value};
use crate::client::Client;
use crate::history::Seen;

/// `timestamp` of ListOffsets for the log start and the watermark.
pub const EARLIEST: i64 = -2;
pub const LATEST: i64 = -1;

/// No batch of a run inflates to more.
const BATCH_BYTES_MAX: usize = 16 << 20;

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn topic() -> TopicName {
    TopicName(text(TOPIC))
}

pub fn code(code: i16) -> ErrorCode {
    ErrorCode::from_code(code).unwrap_or(ErrorCode::UnknownServerError)
}

/// A producer id and its epoch.
pub async fn init_producer(client: &mut Client) -> anyhow::Result<(i64, i16)> {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(60_000)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1);
    let response = client.call(4, &request).await?;
    match code(response.error_code) {
        ErrorCode::None => Ok((response.producer_id.0, response.producer_epoch)),
        other => Err(anyhow!("InitProducerId: {}", other.name())),
    }
}

/// Produces one batch with acks=all: the code, and the base offset.
pub async fn produce(
    client: &mut Client,
    partition: i32,
    batch: Bytes,
) -> anyhow::Result<(ErrorCode, i64)> {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(batch));
    let data = TopicProduceData::default().with_name(topic()).with_partition_data(vec![data]);
    let request = ProduceRequest::default()
        .with_transactional_id(None)
        .with_acks(-1)
        .with_timeout_ms(3_000)
        .with_topic_data(vec![data]);
    let response = client.call(9, &request).await?;
    let topic = response.responses.first().context("an answer without a topic")?;
    let answer = topic.partition_responses.first().context("an answer without a partition")?;
    Ok((code(answer.error_code), answer.base_offset))
}

pub struct Fetched {
    pub error: ErrorCode,
    pub high_watermark: i64,
    pub log_start: i64,
    pub records: Vec<Seen>,
}

/// Fetches from an offset on; batches that end in the middle are left for the next time.
pub async fn fetch(
    client: &mut Client,
    partition: i32,
    offset: i64,
    max_bytes: i32,
) -> anyhow::Result<Fetched> {
    let at = FetchPartition::default()
        .with_partition(partition)
        .with_current_leader_epoch(-1)
        .with_fetch_offset(offset)
        .with_last_fetched_epoch(-1)
        .with_log_start_offset(-1)
        .with_partition_max_bytes(max_bytes);
    let request = FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(300)
        .with_min_bytes(1)
        .with_max_bytes(max_bytes)
        .with_session_id(0)
        .with_session_epoch(-1)
        .with_topics(vec![FetchTopic::default().with_topic(topic()).with_partitions(vec![at])]);
    let response = client.call(12, &request).await?;
    let answer = response.responses.first().and_then(|topic| topic.partitions.first());
    let answer = answer.context("an answer without a partition")?;
    Ok(Fetched {
        error: code(answer.error_code),
        high_watermark: answer.high_watermark,
        log_start: answer.log_start_offset,
        records: seen(answer.records.as_deref().unwrap_or_default(), offset)?,
    })
}

fn seen(bytes: &[u8], from: i64) -> anyhow::Result<Vec<Seen>> {
    let mut all = Vec::new();
    for batch in batches(bytes) {
        // A last batch may be cut off by the size limit.
        let Ok((_, batch)) = batch else { break };
        if !protocol_compat::batch::crc_matches(batch) {
            return Err(anyhow!("a batch with a wrong checksum"));
        }
        let mut scratch = Vec::new();
        let (header, records) = records(batch, &mut scratch, BATCH_BYTES_MAX)?;
        for record in records {
            let record = record?;
            let offset = header.base_offset + i64::from(record.offset_delta);
            let known = record.value.and_then(value::decode);
            let (id, partition) = known.map_or((None, -1), |(id, at)| (Some(id), at));
            all.push(Seen { offset, id, partition });
        }
    }
    // The batch that holds the offset comes whole.
    all.retain(|seen| seen.offset >= from);
    Ok(all)
}

/// The log start ([`EARLIEST`]) or the watermark ([`LATEST`]) of a partition.
pub async fn list_offset(
    client: &mut Client,
    partition: i32,
    timestamp: i64,
) -> anyhow::Result<i64> {
    let at = ListOffsetsPartition::default()
        .with_partition_index(partition)
        .with_current_leader_epoch(-1)
        .with_timestamp(timestamp);
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![
        ListOffsetsTopic::default().with_name(topic()).with_partitions(vec![at]),
    ]);
    let response = client.call(7, &request).await?;
    let answer = response.topics.first().and_then(|topic| topic.partitions.first());
    let answer = answer.context("an answer without a partition")?;
    match code(answer.error_code) {
        ErrorCode::None => Ok(answer.offset),
        other => Err(anyhow!("ListOffsets: {}", other.name())),
    }
}

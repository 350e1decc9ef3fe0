//! DeleteRecords (21), 0-2. v2: flexible.

use std::collections::BTreeMap;

use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse, TopicName};
use protocol_compat::error::ErrorCode;

use super::{Ctx, Handler};
use crate::node::is_internal;

/// Asks for everything below the high watermark to go.
const UP_TO_THE_WATERMARK: i64 = -1;

pub struct DeleteRecords;

impl Handler for DeleteRecords {
    type Request = DeleteRecordsRequest;

    async fn handle(
        ctx: Ctx,
        _version: i16,
        request: DeleteRecordsRequest,
    ) -> DeleteRecordsResponse {
        // A partition named twice counts as it is named last; a topic has one entry.
        let mut asked: BTreeMap<TopicName, BTreeMap<i32, i64>> = BTreeMap::new();
        for topic in request.topics {
            for partition in topic.partitions {
                let offsets = asked.entry(topic.name.clone()).or_default();
                offsets.insert(partition.partition_index, partition.offset);
            }
        }
        let topics = asked.into_iter().map(|(name, offsets)| {
            let results = offsets.into_iter().map(|(index, offset)| {
                let mut result = DeleteRecordsPartitionResult::default();
                result.partition_index = index;
                match delete(&ctx, name.as_str(), index, offset) {
                    Ok(low_watermark) => result.low_watermark = low_watermark,
                    Err(code) => {
                        result.low_watermark = -1;
                        result.error_code = code.code();
                    }
                }
                result
            });
            let mut answer = DeleteRecordsTopicResult::default();
            answer.partitions = results.collect();
            answer.name = name;
            answer
        });
        let topics = topics.collect();
        ctx.node.log_starts.note().await;
        DeleteRecordsResponse::default().with_topics(topics)
    }
}

/// Raises the log start offset; returns where it is now.
fn delete(ctx: &Ctx, topic: &str, index: i32, offset: i64) -> Result<i64, ErrorCode> {
    let partition = ctx.led_here(topic, index)?;
    if is_internal(topic) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let settings = partition.settings();
    if settings.compact && !settings.delete {
        return Err(ErrorCode::PolicyViolation);
    }
    let watermark = partition.high_watermark();
    let to = if offset == UP_TO_THE_WATERMARK { watermark } else { offset };
    if to < 0 || to > watermark {
        return Err(ErrorCode::OffsetOutOfRange);
    }
    partition.with_log(|log| log.advance_log_start(to)).map_err(|error| {
        tracing::error!(partition = %partition.tp, ?error, "records were not deleted");
        ErrorCode::KafkaStorageError
    })?;
    Ok(partition.log_start_offset())
}

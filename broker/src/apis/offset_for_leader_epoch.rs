//! OffsetForLeaderEpoch (23), 2-4. v3: the asker's replica id. v4: flexible.

use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
use protocol_compat::error::ErrorCode;

use super::{Ctx, Handler};

pub struct OffsetForLeaderEpoch;

impl Handler for OffsetForLeaderEpoch {
    type Request = OffsetForLeaderEpochRequest;

    async fn handle(
        ctx: Ctx,
        _version: i16,
        request: OffsetForLeaderEpochRequest,
    ) -> OffsetForLeaderEpochResponse {
        let topics = request.topics.into_iter().map(|topic| {
            let asked = topic.partitions.iter();
            let mut answer = OffsetForLeaderTopicResult::default();
            answer.partitions =
                asked.map(|asked| answer_partition(&ctx, topic.topic.as_str(), asked)).collect();
            answer.topic = topic.topic;
            answer
        });
        OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
    }
}

fn answer_partition(ctx: &Ctx, topic: &str, asked: &OffsetForLeaderPartition) -> EpochEndOffset {
    let mut answer = EpochEndOffset::default();
    answer.partition = asked.partition;
    (answer.leader_epoch, answer.end_offset) = (-1, -1);
    match find(ctx, topic, asked) {
        Ok((epoch, end_offset)) => {
            (answer.leader_epoch, answer.end_offset) = (epoch, end_offset);
        }
        Err(code) => answer.error_code = code.code(),
    }
    answer
}

fn find(ctx: &Ctx, topic: &str, asked: &OffsetForLeaderPartition) -> Result<(i32, i64), ErrorCode> {
    let partition = ctx.led_here(topic, asked.partition)?;
    match partition.check_epoch(asked.current_leader_epoch) {
        ErrorCode::None => {}
        code => return Err(code),
    }
    Ok(partition.with_log(|log| {
        let end = log.log_end_offset();
        log.leader_epochs().end_offset(asked.leader_epoch, end)
    }))
}

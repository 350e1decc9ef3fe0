//! OffsetDelete (47), 0.

use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use protocol_compat::error::ErrorCode;

use super::ctx::name;
use super::{Ctx, Handler};
use crate::groups;

pub struct OffsetDelete;

impl Handler for OffsetDelete {
    type Request = OffsetDeleteRequest;

    async fn handle(ctx: Ctx, _version: i16, request: OffsetDeleteRequest) -> OffsetDeleteResponse {
        let image = ctx.node.quorum.image();
        let mut response = OffsetDeleteResponse::default();
        let (mut topics, mut places) = (Vec::new(), Vec::new());
        for asked in request.topics.iter().filter(|topic| !topic.partitions.is_empty()) {
            let mut answer = OffsetDeleteResponseTopic::default();
            answer.name = asked.name.clone();
            let (mut known, mut at) = (Vec::new(), Vec::new());
            for partition in &asked.partitions {
                let index = partition.partition_index;
                let mut entry = OffsetDeleteResponsePartition::default();
                entry.partition_index = index;
                if image.partition(asked.name.as_str(), index).is_some() {
                    known.push(index);
                    at.push(answer.partitions.len());
                } else {
                    entry.error_code = ErrorCode::UnknownTopicOrPartition.code();
                }
                answer.partitions.push(entry);
            }
            topics.push((name(&asked.name), known));
            places.push(at);
            response.topics.push(answer);
        }
        let group = name(&request.group_id);
        let input = groups::OffsetDeleteRequest { group, topics };
        let now_ms = ctx.node.env.clock.steady_ms();
        let reply = ctx.node.groups.delete_offsets(now_ms, input).await;
        if reply.error != ErrorCode::None {
            return OffsetDeleteResponse::default().with_error_code(reply.error.code());
        }
        for (topic, (at, codes)) in places.iter().zip(&reply.partitions).enumerate() {
            for (place, code) in at.iter().zip(codes) {
                response.topics[topic].partitions[*place].error_code = code.code();
            }
        }
        response
    }
}

//! DescribeProducers (61), 0.

use kafka_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use kafka_protocol::messages::{DescribeProducersRequest, DescribeProducersResponse, ProducerId};
use protocol_compat::error::ErrorCode;
use protocol_compat::ids::valid_topic_name;

use super::ctx::text;
use super::{Ctx, Handler};

pub struct DescribeProducers;

impl Handler for DescribeProducers {
    type Request = DescribeProducersRequest;

    async fn handle(
        ctx: Ctx,
        _version: i16,
        request: DescribeProducersRequest,
    ) -> DescribeProducersResponse {
        let topics = request.topics.into_iter().map(|topic| {
            let mut answer = TopicResponse::default();
            let name = topic.name.as_str();
            let is_known = ctx.node.quorum.image().topic(name).is_some();
            let partitions = topic.partition_indexes.iter().map(|&index| {
                let mut entry = PartitionResponse::default();
                entry.partition_index = index;
                match producers(&ctx, name, index) {
                    Ok(active) => entry.active_producers = active,
                    Err(code) => {
                        entry.error_code = code.code();
                        // Kafka has no words for a partition that a topic lacks.
                        entry.error_message = (!is_known).then(|| text(code.message()));
                    }
                }
                entry
            });
            answer.partitions = partitions.collect();
            answer.name = topic.name;
            answer
        });
        DescribeProducersResponse::default().with_topics(topics.collect())
    }
}

fn producers(ctx: &Ctx, topic: &str, index: i32) -> Result<Vec<ProducerState>, ErrorCode> {
    valid_topic_name(topic).map_err(|_| ErrorCode::InvalidTopicException)?;
    let partition = ctx.led_here(topic, index)?;
    Ok(partition.with_log(|log| {
        let active = log.producers().iter().map(|(producer_id, producer)| {
            let mut state = ProducerState::default();
            state.producer_id = ProducerId(producer_id);
            state.producer_epoch = i32::from(producer.epoch);
            state.last_sequence = producer.last_sequence();
            state.last_timestamp = producer.last_timestamp_ms;
            state.coordinator_epoch = producer.coordinator_epoch;
            state.current_txn_start_offset = producer.txn_first_offset.unwrap_or(-1);
            state
        });
        active.collect()
    }))
}

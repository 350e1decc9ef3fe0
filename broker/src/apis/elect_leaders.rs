//! ElectLeaders (43), 0-2. v1: unclean elections, an error for all. v2: flexible.

use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse, TopicName};
use kraft::controller::{ControllerReply, ControllerRequest, ElectLeaders as Ask};
use protocol_compat::error::ErrorCode;

use super::ctx::{opt_text, text};
use super::{Ctx, Handler};

pub struct ElectLeaders;

impl Handler for ElectLeaders {
    type Request = ElectLeadersRequest;

    async fn handle(ctx: Ctx, version: i16, request: ElectLeadersRequest) -> ElectLeadersResponse {
        let is_empty = request.topic_partitions.as_ref().is_some_and(Vec::is_empty);
        if request.timeout_ms <= 0 && !is_empty {
            return timed_out(version, &request);
        }
        let topics = request.topic_partitions.as_ref().map(|topics| {
            let asked = topics.iter();
            asked.map(|topic| (topic.topic.to_string(), topic.partitions.clone())).collect()
        });
        let election = if version >= 1 { request.election_type } else { 0 };
        let ask = ControllerRequest::ElectLeaders(Ask { election, topics });
        let mut response = ElectLeadersResponse::default();
        let elected = match ctx.node.quorum.submit(ask).await {
            Ok(ControllerReply::ElectLeaders(elected)) => elected,
            Ok(other) => unreachable!("the answer to an election is one: {other:?}"),
            Err(code) => {
                if version >= 1 {
                    response.error_code = code.code();
                }
                return response;
            }
        };
        if version >= 1 {
            response.error_code = elected.code.code();
        }
        let results = elected.topics.into_iter().map(|(topic, partitions)| {
            let partitions = partitions.into_iter().map(|partition| {
                let mut result = PartitionResult::default();
                result.partition_id = partition.partition;
                if let Err(refusal) = partition.result {
                    result.error_code = refusal.code.code();
                    result.error_message = opt_text(refusal.message.as_deref());
                }
                result
            });
            ReplicaElectionResult::default()
                .with_topic(TopicName(text(&topic)))
                .with_partition_result(partitions.collect())
        });
        response.replica_election_results = results.collect();
        response
    }
}

/// Kafka looks at the clock before anything is done.
fn timed_out(version: i16, request: &ElectLeadersRequest) -> ElectLeadersResponse {
    let code = ErrorCode::RequestTimedOut.code();
    let topics = request.topic_partitions.iter().flatten().map(|topic| {
        let partitions = topic.partitions.iter().map(|&index| {
            PartitionResult::default()
                .with_partition_id(index)
                .with_error_code(code)
                .with_error_message(None)
        });
        ReplicaElectionResult::default()
            .with_topic(topic.topic.clone())
            .with_partition_result(partitions.collect())
    });
    let response = ElectLeadersResponse::default().with_replica_election_results(topics.collect());
    if version >= 1 { response.with_error_code(code) } else { response }
}

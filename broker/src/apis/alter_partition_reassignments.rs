//! AlterPartitionReassignments (45), 0-1. v1: whether the number of replicas may change.

use kafka_protocol::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, TopicName,
};
use kraft::controller::{
    AlterReassignments as Ask, ControllerReply, ControllerRequest, PartitionResult, Reassignment,
    Refusal,
};
use protocol_compat::error::ErrorCode;

use super::ctx::{opt_text, text};
use super::{Ctx, Handler};

pub struct AlterPartitionReassignments;

impl Handler for AlterPartitionReassignments {
    type Request = AlterPartitionReassignmentsRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: AlterPartitionReassignmentsRequest,
    ) -> AlterPartitionReassignmentsResponse {
        let allow_factor_change = version == 0 || request.allow_replication_factor_change;
        let mut response = AlterPartitionReassignmentsResponse::default();
        if request.topics.is_empty() {
            // Kafka answers without its controller, and with this text instead of none.
            return response.with_error_message(Some(text("")));
        }
        let topics: Vec<(String, Vec<Reassignment>)> = request
            .topics
            .iter()
            .map(|topic| {
                let asked = topic.partitions.iter().map(|one| Reassignment {
                    partition: one.partition_index,
                    replicas: one
                        .replicas
                        .as_ref()
                        .map(|brokers| brokers.iter().map(|broker| broker.0).collect()),
                });
                (topic.name.to_string(), asked.collect())
            })
            .collect();
        let ask = Ask { topics: topics.clone(), allow_factor_change };
        // Kafka looks at the clock before anything is done.
        let reply = match request.timeout_ms {
            ..=0 => Err(ErrorCode::RequestTimedOut),
            _ => ctx.node.quorum.submit(ControllerRequest::AlterReassignments(ask)).await,
        };
        response.allow_replication_factor_change = allow_factor_change;
        response.error_message = None;
        response.responses = match reply {
            Ok(ControllerReply::AlterReassignments(results)) => {
                results.into_iter().map(|(name, results)| answer(&name, results)).collect()
            }
            Ok(other) => unreachable!("the answer to a reassignment is one: {other:?}"),
            Err(code) => {
                response.error_code = code.code();
                let refused = topics.into_iter().map(|(name, asked)| {
                    let all = asked.iter().map(|one| PartitionResult {
                        partition: one.partition,
                        result: Err(Refusal::bare(code)),
                    });
                    answer(&name, Ok(all.collect()))
                });
                refused.collect()
            }
        };
        response
    }
}

fn answer(name: &str, results: Result<Vec<PartitionResult>, Refusal>) -> ReassignableTopicResponse {
    // Refusals are told for each partition; a topic as a whole is never refused.
    let partitions = results.unwrap_or_default().into_iter().map(|partition| {
        let mut answer = ReassignablePartitionResponse::default();
        answer.partition_index = partition.partition;
        answer.error_message = None;
        if let Err(refusal) = partition.result {
            answer.error_code = refusal.code.code();
            answer.error_message = opt_text(refusal.message.as_deref());
        }
        answer
    });
    ReassignableTopicResponse::default()
        .with_name(TopicName(text(name)))
        .with_partitions(partitions.collect())
}

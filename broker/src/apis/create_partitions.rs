//! CreatePartitions (37), 0-3. v2: flexible. v3: refused by quota.

use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse, TopicName};
use kraft::controller::{
    ControllerReply, ControllerRequest, CreatePartitions as Ask, GrowTopic, Refusal,
};
use protocol_compat::error::ErrorCode;

use super::ctx::{opt_text, text};
use super::{Ctx, Handler};

pub struct CreatePartitions;

impl Handler for CreatePartitions {
    type Request = CreatePartitionsRequest;

    async fn handle(
        ctx: Ctx,
        _version: i16,
        request: CreatePartitionsRequest,
    ) -> CreatePartitionsResponse {
        let topics = request.topics.iter().map(|topic| GrowTopic {
            name: topic.name.to_string(),
            count: topic.count,
            assignments: topic.assignments.as_ref().map(|list| {
                let brokers = list.iter();
                brokers.map(|one| one.broker_ids.iter().map(|id| id.0).collect()).collect()
            }),
        });
        let ask = Ask { topics: topics.collect(), validate_only: request.validate_only };
        let names: Vec<String> = ask.topics.iter().map(|topic| topic.name.clone()).collect();
        // Kafka looks at the clock before anything is done.
        let reply = match request.timeout_ms {
            ..=0 => Err(ErrorCode::RequestTimedOut),
            _ => ctx.node.quorum.submit(ControllerRequest::CreatePartitions(ask)).await,
        };
        let results = match reply {
            Ok(ControllerReply::CreatePartitions(results)) => results,
            Ok(other) => unreachable!("the answer to a creation is one: {other:?}"),
            Err(code) => names.into_iter().map(|name| (name, Err(Refusal::bare(code)))).collect(),
        };
        let results = results.into_iter().map(|(name, result)| {
            let mut answer = CreatePartitionsTopicResult::default();
            answer.name = TopicName(text(&name));
            if let Err(refusal) = result {
                answer.error_code = refusal.code.code();
                answer.error_message = opt_text(refusal.message.as_deref());
            }
            answer
        });
        CreatePartitionsResponse::default().with_results(results.collect())
    }
}

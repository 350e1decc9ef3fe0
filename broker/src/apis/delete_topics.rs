//! DeleteTopics (20), 1-6. v4: flexible. v5: a text with each error. v6: by id.

use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, TopicName};
use kraft::controller::{
    ControllerReply, ControllerRequest, DeleteTopics as Ask, DeletedTopic, Refusal, TopicRef,
};
use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::ctx::{opt_text, text};
use super::{Ctx, Handler};

pub struct DeleteTopics;

impl Handler for DeleteTopics {
    type Request = DeleteTopicsRequest;

    async fn handle(ctx: Ctx, version: i16, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
        let topics: Vec<TopicRef> = if version >= 6 {
            let asked = request.topics.iter();
            asked
                .map(|topic| TopicRef {
                    name: topic.name.as_ref().map(|name| name.to_string()),
                    id: topic.topic_id,
                })
                .collect()
        } else {
            let named =
                |name: &TopicName| TopicRef { name: Some(name.to_string()), id: Uuid::nil() };
            request.topic_names.iter().map(named).collect()
        };
        let results = if request.timeout_ms <= 0 {
            refused(&topics, ErrorCode::RequestTimedOut)
        } else {
            let ask = Ask { topics: topics.clone() };
            match ctx.node.quorum.submit(ControllerRequest::DeleteTopics(ask)).await {
                Ok(ControllerReply::DeleteTopics(results)) => results,
                Ok(other) => unreachable!("the answer to a deletion is one: {other:?}"),
                Err(code) => refused(&topics, code),
            }
        };
        let responses = results.into_iter().map(|result| answer(version, result));
        DeleteTopicsResponse::default().with_responses(responses.collect())
    }
}

fn refused(topics: &[TopicRef], code: ErrorCode) -> Vec<DeletedTopic> {
    let refused = topics.iter().map(|topic| DeletedTopic {
        name: topic.name.clone(),
        id: topic.id,
        result: Err(Refusal::bare(code)),
    });
    refused.collect()
}

fn answer(version: i16, deleted: DeletedTopic) -> DeletableTopicResult {
    let mut answer = DeletableTopicResult::default();
    answer.name = deleted.name.map(|name| TopicName(text(&name)));
    if version >= 6 {
        answer.topic_id = deleted.id;
    } else if answer.name.is_none() {
        answer.name = Some(TopicName(text("")));
    }
    if let Err(refusal) = deleted.result {
        // The code came with v3.
        let code = match refusal.code {
            ErrorCode::TopicDeletionDisabled if version < 3 => ErrorCode::InvalidRequest,
            code => code,
        };
        answer.error_code = code.code();
        if version >= 5 {
            answer.error_message = opt_text(refusal.message.as_deref());
        }
    }
    answer
}

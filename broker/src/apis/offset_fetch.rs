//! OffsetFetch (9), 1-10.
//!
//! v2: null asks for everything. v5: leader epochs. v6: flexible. v7: only stable offsets. v8:
//! several groups. v9: member id and epoch. v10: topics by id.

use std::sync::Arc;

use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse, TopicName};
use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::ctx::{name, text};
use super::{Ctx, Handler};
use crate::groups::{FetchReply, FetchRequest, FetchTopic, FetchedTopic, Name};

pub struct OffsetFetch;

impl Handler for OffsetFetch {
    type Request = OffsetFetchRequest;

    async fn handle(ctx: Ctx, version: i16, request: OffsetFetchRequest) -> OffsetFetchResponse {
        let mut response = OffsetFetchResponse::default();
        if version >= 8 {
            for group in &request.groups {
                response.groups.push(many(&ctx, version, group, request.require_stable).await);
            }
            return response;
        }
        let topics = request.topics.as_ref().map(|topics| {
            let asked = topics.iter().map(|topic| FetchTopic {
                topic: name(&topic.name),
                topic_id: Uuid::nil(),
                partitions: topic.partition_indexes.clone(),
            });
            asked.collect()
        });
        let reply = ask(&ctx, name(&request.group_id), topics, request.require_stable).await;
        one(version, &request, reply)
    }
}

async fn ask(
    ctx: &Ctx,
    group: Name,
    topics: Option<Vec<FetchTopic>>,
    require_stable: bool,
) -> FetchReply {
    let input = FetchRequest { group, topics, require_stable };
    ctx.node.groups.fetch_offsets(ctx.node.env.clock.steady_ms(), input).await
}

/// The answer for the one group of versions before 8.
fn one(version: i16, request: &OffsetFetchRequest, reply: FetchReply) -> OffsetFetchResponse {
    let mut response = OffsetFetchResponse::default();
    if reply.error != ErrorCode::None {
        response.error_code = reply.error.code();
        if version >= 2 {
            return response;
        }
        // v1 has no error of its own: every partition carries it.
        for topic in request.topics.iter().flatten() {
            let mut answer = OffsetFetchResponseTopic::default();
            answer.name = topic.name.clone();
            let partitions = topic.partition_indexes.iter().map(|&index| {
                let mut entry = OffsetFetchResponsePartition::default();
                entry.partition_index = index;
                entry.committed_offset = -1;
                entry.metadata = Some(text(""));
                entry.error_code = reply.error.code();
                entry
            });
            answer.partitions = partitions.collect();
            response.topics.push(answer);
        }
        return response;
    }
    for topic in reply.topics {
        let mut answer = OffsetFetchResponseTopic::default();
        answer.name = TopicName(text(&topic.topic));
        let partitions = topic.partitions.iter().map(|fetched| {
            let mut entry = OffsetFetchResponsePartition::default();
            entry.partition_index = fetched.partition;
            entry.committed_offset = fetched.offset;
            entry.committed_leader_epoch = fetched.leader_epoch;
            entry.metadata = Some(text(&fetched.metadata));
            entry.error_code = fetched.error.code();
            entry
        });
        answer.partitions = partitions.collect();
        response.topics.push(answer);
    }
    response
}

/// One group of several.
async fn many(
    ctx: &Ctx,
    version: i16,
    asked: &OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let mut answer = OffsetFetchResponseGroup::default();
    answer.group_id = asked.group_id.clone();
    let mut unknown = Vec::new();
    let topics = asked.topics.as_ref().map(|topics| {
        let image = ctx.node.quorum.image();
        let mut known = Vec::new();
        for topic in topics {
            let partitions = topic.partition_indexes.clone();
            if version < 10 {
                known.push(FetchTopic {
                    topic: name(&topic.name),
                    topic_id: Uuid::nil(),
                    partitions,
                });
                continue;
            }
            let topic_id = topic.topic_id;
            match image.topic_by_id(topic_id) {
                Some(found) => {
                    known.push(FetchTopic { topic: Arc::clone(&found.name), topic_id, partitions });
                }
                None => unknown.push(unknown_topic(topic_id, &partitions)),
            }
        }
        known
    });
    let reply = ask(ctx, name(&asked.group_id), topics, require_stable).await;
    answer.error_code = reply.error.code();
    if reply.error == ErrorCode::None {
        let image = ctx.node.quorum.image();
        let id_of = |topic: &FetchedTopic| match topic.topic_id {
            id if id != Uuid::nil() => Some(id),
            _ => image.topic(&topic.topic).map(|topic| topic.id),
        };
        for topic in reply.topics {
            let id = id_of(&topic);
            // A topic that is gone has no id to be named by.
            if version >= 10 && id.is_none() {
                continue;
            }
            answer.topics.push(known_topic(version, topic, id.unwrap_or_default()));
        }
        answer.topics.append(&mut unknown);
    }
    answer
}

fn unknown_topic(topic_id: Uuid, partitions: &[i32]) -> OffsetFetchResponseTopics {
    let mut answer = OffsetFetchResponseTopics::default();
    answer.topic_id = topic_id;
    let partitions = partitions.iter().map(|&index| {
        let mut entry = OffsetFetchResponsePartitions::default();
        entry.partition_index = index;
        entry.committed_offset = -1;
        entry.metadata = Some(text(""));
        entry.error_code = ErrorCode::UnknownTopicId.code();
        entry
    });
    answer.partitions = partitions.collect();
    answer
}

fn known_topic(version: i16, topic: FetchedTopic, topic_id: Uuid) -> OffsetFetchResponseTopics {
    let mut answer = OffsetFetchResponseTopics::default();
    if version >= 10 {
        answer.topic_id = topic_id;
    } else {
        answer.name = TopicName(text(&topic.topic));
    }
    let partitions = topic.partitions.iter().map(|fetched| {
        let mut entry = OffsetFetchResponsePartitions::default();
        entry.partition_index = fetched.partition;
        entry.committed_offset = fetched.offset;
        entry.committed_leader_epoch = fetched.leader_epoch;
        entry.metadata = Some(text(&fetched.metadata));
        entry.error_code = fetched.error.code();
        entry
    });
    answer.partitions = partitions.collect();
    answer
}

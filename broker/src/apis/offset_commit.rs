//! OffsetCommit (8), 2-10.
//!
//! v2-4: the client says how long the commit is kept. v6: leader epochs. v7: static membership. v8:
//! flexible. v9: GROUP_ID_NOT_FOUND. v10: topics by id.

use std::sync::Arc;

use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestTopic;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};
use protocol_compat::error::ErrorCode;

use super::ctx::{name, opt_name};
use super::{Ctx, Handler};
use crate::groups::{CommitPartition, CommitRequest, CommitTopic, PerPartition};

pub struct OffsetCommit;

impl Handler for OffsetCommit {
    type Request = OffsetCommitRequest;

    async fn handle(ctx: Ctx, version: i16, request: OffsetCommitRequest) -> OffsetCommitResponse {
        let mut sorted = Sorted::default();
        for topic in request.topics.iter().filter(|topic| !topic.partitions.is_empty()) {
            sorted.add(&ctx, version, topic);
        }
        let retention = (2..=4).contains(&version) && request.retention_time_ms != -1;
        let input = CommitRequest {
            group: name(&request.group_id),
            generation: request.generation_id_or_member_epoch,
            member_id: name(&request.member_id),
            instance_id: opt_name(request.group_instance_id.as_ref()),
            retention_ms: retention.then_some(request.retention_time_ms),
            topics: std::mem::take(&mut sorted.topics),
        };
        let reply = ctx.node.groups.commit(ctx.node.env.clock.steady_ms(), input).await;
        sorted.fill(version, &reply)
    }
}

/// The request in two parts: what the coordinator is asked, and what is answered without it.
#[derive(Default)]
struct Sorted {
    topics: Vec<CommitTopic>,
    response: OffsetCommitResponse,
    /// For each asked topic its entry in the response, and the entries of its partitions there.
    places: Vec<(usize, Vec<usize>)>,
}

impl Sorted {
    fn add(&mut self, ctx: &Ctx, version: i16, asked: &OffsetCommitRequestTopic) {
        let image = ctx.node.quorum.image();
        let (topic, missing) = if version >= 10 {
            (image.topic_by_id(asked.topic_id), ErrorCode::UnknownTopicId)
        } else {
            (image.topic(asked.name.as_str()), ErrorCode::UnknownTopicOrPartition)
        };
        let mut answer = OffsetCommitResponseTopic::default();
        answer.name = asked.name.clone();
        answer.topic_id = asked.topic_id;
        let (mut partitions, mut places) = (Vec::new(), Vec::new());
        for partition in &asked.partitions {
            let index = partition.partition_index;
            let code = match topic {
                None => missing,
                Some(topic) if topic.partition(index).is_none() => {
                    ErrorCode::UnknownTopicOrPartition
                }
                Some(_) => {
                    places.push(answer.partitions.len());
                    partitions.push(CommitPartition {
                        partition: index,
                        offset: partition.committed_offset,
                        leader_epoch: partition.committed_leader_epoch,
                        metadata: opt_name(partition.committed_metadata.as_ref()),
                    });
                    ErrorCode::None
                }
            };
            let mut entry = OffsetCommitResponsePartition::default();
            entry.partition_index = index;
            entry.error_code = code.code();
            answer.partitions.push(entry);
        }
        if let Some(topic) = topic {
            self.places.push((self.response.topics.len(), places));
            let (topic, topic_id) = (Arc::clone(&topic.name), topic.id);
            self.topics.push(CommitTopic { topic, topic_id, partitions });
        }
        self.response.topics.push(answer);
    }

    fn fill(mut self, version: i16, reply: &PerPartition) -> OffsetCommitResponse {
        for (asked, (topic, places)) in self.places.iter().enumerate() {
            for (nth, place) in places.iter().enumerate() {
                let of_partition = reply.partitions.get(asked).and_then(|codes| codes.get(nth));
                let code = match reply.error {
                    ErrorCode::None => of_partition.copied().unwrap_or(ErrorCode::None),
                    error => error,
                };
                let entry = &mut self.response.topics[*topic].partitions[*place];
                entry.error_code = for_version(version, code).code();
            }
        }
        self.response
    }
}

/// Clients before v9 do not know GROUP_ID_NOT_FOUND here.
fn for_version(version: i16, code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::GroupIdNotFound if version < 9 => ErrorCode::IllegalGeneration,
        code => code,
    }
}

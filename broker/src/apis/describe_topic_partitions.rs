//! DescribeTopicPartitions (75), 0: topics in pages (KIP-966).

use std::collections::BTreeSet;

use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::{
    BrokerId, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicName,
};
use kraft::image::{Image, Partition, Topic};
use protocol_compat::error::ErrorCode;
use protocol_compat::ids::valid_topic_name;

use super::ctx::text;
use super::metadata::TOPIC_OPERATIONS;
use super::{Ctx, Handler};
use crate::config::keys;
use crate::node::is_internal;

pub struct DescribeTopicPartitions;

impl Handler for DescribeTopicPartitions {
    type Request = DescribeTopicPartitionsRequest;

    async fn handle(
        ctx: Ctx,
        _version: i16,
        request: DescribeTopicPartitionsRequest,
    ) -> DescribeTopicPartitionsResponse {
        let image = ctx.node.quorum.image();
        let all = request.topics.is_empty();
        let mut names: BTreeSet<String> =
            request.topics.iter().map(|topic| topic.name.to_string()).collect();
        if all {
            names = image.topics().map(|topic| topic.name.to_string()).collect();
        }
        let mut first_partition = 0;
        if let Some(cursor) = &request.cursor {
            let at = cursor.topic_name.to_string();
            if cursor.partition_index < 0 || !(all || names.contains(&at)) {
                return refused(&request);
            }
            names.retain(|name| *name >= at);
            if names.contains(&at) {
                first_partition = cursor.partition_index;
            }
        }
        let most = ctx.node.runtime().config.int(keys::MAX_REQUEST_PARTITION_SIZE_LIMIT);
        let limit = request.response_partition_limit.min(most).max(1);
        page(&image, &names, first_partition, usize::try_from(limit).unwrap_or(1))
    }
}

/// A cursor that does not fit the request: every topic of it is refused.
fn refused(request: &DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter().map(|topic| {
        let mut answer = DescribeTopicPartitionsResponseTopic::default();
        answer.error_code = ErrorCode::InvalidRequest.code();
        answer.name = Some(topic.name.clone());
        answer
    });
    DescribeTopicPartitionsResponse::default().with_topics(topics.collect())
}

/// One page of at most `limit` partitions, from `first_partition` of the first topic on.
fn page(
    image: &Image,
    names: &BTreeSet<String>,
    mut first_partition: i32,
    limit: usize,
) -> DescribeTopicPartitionsResponse {
    let mut response = DescribeTopicPartitionsResponse::default();
    let mut left = limit;
    for name in names {
        let first = std::mem::take(&mut first_partition);
        if left == 0 {
            response.next_cursor = Some(cursor(name, first));
            break;
        }
        let Some(topic) = image.topic(name) else {
            let code = match valid_topic_name(name) {
                Ok(()) => ErrorCode::UnknownTopicOrPartition,
                Err(_) => ErrorCode::InvalidTopicException,
            };
            response.topics.push(unknown(name, code));
            continue;
        };
        let skip = usize::try_from(first).unwrap_or(0);
        let described = known(image, topic, skip, left);
        let taken = described.partitions.len();
        left -= taken;
        response.topics.push(described);
        if skip + taken < topic.partitions.len() {
            let next = i32::try_from(skip + taken).unwrap_or(i32::MAX);
            response.next_cursor = Some(cursor(name, next));
            break;
        }
    }
    response
}

fn cursor(topic: &str, partition: i32) -> Cursor {
    Cursor::default().with_topic_name(TopicName(text(topic))).with_partition_index(partition)
}

fn unknown(name: &str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic {
    let mut answer = DescribeTopicPartitionsResponseTopic::default();
    answer.error_code = code.code();
    answer.name = Some(TopicName(text(name)));
    answer.is_internal = is_internal(name);
    if !name.is_empty() {
        answer.topic_authorized_operations = TOPIC_OPERATIONS;
    }
    answer
}

fn known(
    image: &Image,
    topic: &Topic,
    skip: usize,
    limit: usize,
) -> DescribeTopicPartitionsResponseTopic {
    let mut answer = DescribeTopicPartitionsResponseTopic::default();
    answer.name = Some(TopicName(text(&topic.name)));
    answer.topic_id = topic.id;
    answer.is_internal = is_internal(&topic.name);
    answer.topic_authorized_operations = TOPIC_OPERATIONS;
    let partitions = (0..).zip(&topic.partitions).skip(skip).take(limit);
    answer.partitions =
        partitions.map(|(index, partition)| describe(image, index, partition)).collect();
    answer
}

fn describe(
    image: &Image,
    index: i32,
    partition: &Partition,
) -> DescribeTopicPartitionsResponsePartition {
    let ids = |list: &[i32]| -> Vec<BrokerId> { list.iter().map(|id| BrokerId(*id)).collect() };
    let mut answer = DescribeTopicPartitionsResponsePartition::default();
    answer.partition_index = index;
    let leader = partition.leader().filter(|leader| image.is_active(*leader));
    if leader.is_none() {
        answer.error_code = ErrorCode::LeaderNotAvailable.code();
    }
    answer.leader_id = BrokerId(leader.unwrap_or(-1));
    answer.leader_epoch = partition.leader_epoch;
    answer.replica_nodes = ids(&partition.replicas);
    answer.isr_nodes = ids(&partition.isr);
    answer.eligible_leader_replicas = Some(ids(&partition.elr));
    answer.last_known_elr = Some(ids(&partition.last_known_elr));
    let offline = partition.replicas.iter().filter(|id| !image.is_active(**id));
    answer.offline_replicas = offline.map(|id| BrokerId(*id)).collect();
    answer
}

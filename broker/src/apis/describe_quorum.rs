//! DescribeQuorum (55), 0-2. v1: times. v2: texts, directory ids, the nodes' listeners.

use kafka_protocol::messages::describe_quorum_request::TopicData as AskedTopic;
use kafka_protocol::messages::describe_quorum_response::{
    Listener, Node as NodeEntry, PartitionData, ReplicaState, TopicData,
};
use kafka_protocol::messages::{BrokerId, DescribeQuorumRequest, DescribeQuorumResponse};
use kraft::raft::{MemberProgress, Status};
use protocol_compat::error::ErrorCode;

use super::ctx::text;
use super::{Ctx, Handler};

/// The name of the metadata log, as Kafka's tools ask for it.
const METADATA_TOPIC: &str = "__cluster_metadata";

pub struct DescribeQuorum;

impl Handler for DescribeQuorum {
    type Request = DescribeQuorumRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: DescribeQuorumRequest,
    ) -> DescribeQuorumResponse {
        // Kafka knows one way to ask: for the one partition of the metadata log.
        let is_asked_well = match request.topics.as_slice() {
            [topic] => {
                let indexes = topic.partitions.iter().map(|partition| partition.partition_index);
                topic.topic_name.as_str() == METADATA_TOPIC && indexes.eq([0])
            }
            _ => false,
        };
        let status = ctx.node.quorum.status().filter(|_| is_asked_well);
        let topics = request.topics.iter();
        let mut response = DescribeQuorumResponse::default();
        response.topics =
            topics.map(|topic| describe(&ctx, version, topic, status.as_ref())).collect();
        if version >= 2 {
            response.error_message = Some(text(""));
            let topics = response.topics.iter();
            let partitions = topics.flat_map(|topic| &topic.partitions);
            if partitions.map(|partition| partition.error_code).eq([ErrorCode::None.code()]) {
                response.nodes = nodes(&ctx, status.as_ref());
            }
        }
        response
    }
}

fn describe(ctx: &Ctx, version: i16, asked: &AskedTopic, status: Option<&Status>) -> TopicData {
    let mut topic = TopicData::default();
    topic.topic_name = asked.topic_name.clone();
    let partitions = asked.partitions.iter().map(|partition| {
        let index = partition.partition_index;
        let mut answer = PartitionData::default();
        answer.partition_index = index;
        match status {
            Some(status) => fill(ctx, version, status, &mut answer),
            None => {
                answer.error_code = ErrorCode::UnknownTopicOrPartition.code();
                if version >= 2 {
                    answer.error_message = Some(text(ErrorCode::UnknownTopicOrPartition.message()));
                }
            }
        }
        answer
    });
    topic.partitions = partitions.collect();
    topic
}

fn fill(ctx: &Ctx, version: i16, status: &Status, answer: &mut PartitionData) {
    answer.leader_id = BrokerId(status.leader.unwrap_or(-1));
    answer.leader_epoch = i32::try_from(status.term).unwrap_or(i32::MAX);
    // Kafka's offsets are exclusive ends.
    answer.high_watermark = offset(status.commit_index);
    if version >= 2 {
        answer.error_message = Some(text(""));
    }
    for member in &status.progress {
        let state = replica(ctx, version, member);
        if member.is_voter {
            answer.current_voters.push(state);
        } else {
            answer.observers.push(state);
        }
    }
}

fn offset(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX).saturating_add(1)
}

fn replica(ctx: &Ctx, version: i16, member: &MemberProgress) -> ReplicaState {
    let mut state = ReplicaState::default();
    state.replica_id = BrokerId(member.node_id);
    state.log_end_offset = offset(member.matched_index);
    if version >= 1 {
        let now_ms = ctx.node.env.clock.wall_ms();
        let own = member.node_id == ctx.node.id;
        state.last_fetch_timestamp = if own { now_ms } else { member.heard_ms.unwrap_or(-1) };
        state.last_caught_up_timestamp =
            if own { now_ms } else { member.caught_up_ms.unwrap_or(-1) };
    }
    if version >= 2 && member.node_id == ctx.node.id {
        let first = ctx.node.dirs.dirs().first();
        state.replica_directory_id =
            first.map(|dir| dir.log_dir.directory_id()).unwrap_or_default();
    }
    state
}

/// The voters and where they are reached. A node alone has no listener for its quorum alone: it
/// answers where the client found it.
fn nodes(ctx: &Ctx, status: Option<&Status>) -> Vec<NodeEntry> {
    let voters = status.into_iter().flat_map(|status| status.members.voters.iter());
    let nodes = voters.map(|&id| {
        let mut node = NodeEntry::default();
        node.node_id = BrokerId(id);
        if id == ctx.node.id {
            let (host, port) = ctx.conn.endpoint();
            let listener = Listener::default()
                .with_name(text(&ctx.conn.listener))
                .with_host(text(&host))
                .with_port(port);
            node.listeners = vec![listener];
        }
        node
    });
    nodes.collect()
}

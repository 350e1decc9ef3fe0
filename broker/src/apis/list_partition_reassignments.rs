//! ListPartitionReassignments (46), 0.

use kafka_protocol::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use kafka_protocol::messages::{
    BrokerId, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse, TopicName,
};
use kraft::controller::running_reassignments;

use super::ctx::text;
use super::{Ctx, Handler};

pub struct ListPartitionReassignments;

impl Handler for ListPartitionReassignments {
    type Request = ListPartitionReassignmentsRequest;

    async fn handle(
        ctx: Ctx,
        _version: i16,
        request: ListPartitionReassignmentsRequest,
    ) -> ListPartitionReassignmentsResponse {
        let image = ctx.node.quorum.image();
        let asked: Option<Vec<(String, Vec<i32>)>> = request.topics.as_ref().map(|topics| {
            let asked = topics.iter();
            asked.map(|topic| (topic.name.to_string(), topic.partition_indexes.clone())).collect()
        });
        let running = running_reassignments(&image, asked.as_deref());
        let ids = |list: &[i32]| -> Vec<BrokerId> { list.iter().map(|id| BrokerId(*id)).collect() };
        let topics = running.into_iter().map(|(name, partitions)| {
            let partitions = partitions.into_iter().map(|partition| {
                OngoingPartitionReassignment::default()
                    .with_partition_index(partition.partition)
                    .with_replicas(ids(&partition.replicas))
                    .with_adding_replicas(ids(&partition.adding))
                    .with_removing_replicas(ids(&partition.removing))
            });
            OngoingTopicReassignment::default()
                .with_name(TopicName(text(&name)))
                .with_partitions(partitions.collect())
        });
        ListPartitionReassignmentsResponse::default()
            .with_error_message(None)
            .with_topics(topics.collect())
    }
}

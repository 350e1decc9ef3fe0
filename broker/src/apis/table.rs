//! The one list of APIs. What is in it is advertised, dispatched, counted and swept by the tests;
//! what is not in it does not exist here.

use std::sync::LazyLock;

use bytes::Bytes;
use kafka_protocol::protocol::Request;
use protocol_compat::schema;

use super::dispatch::{self, Handler, ResponseOf};
use super::{Ctx, FETCH, PRODUCE, Started};
use super::{
    alter_configs, alter_partition_reassignments, alter_replica_log_dirs, api_versions,
    create_partitions, create_topics, delete_groups, delete_records, delete_topics,
    describe_cluster, describe_configs, describe_groups, describe_log_dirs, describe_producers,
    describe_quorum, describe_topic_partitions, elect_leaders, find_coordinator, heartbeat,
    init_producer_id, join_group, leave_group, list_config_resources, list_groups, list_offsets,
    list_partition_reassignments, metadata, offset_commit, offset_delete, offset_fetch,
    offset_for_leader_epoch, sync_group, update_features,
};

pub const API_VERSIONS: i16 = 18;

/// One API: everything about it that is not its logic.
pub struct Row {
    pub key: i16,
    pub name: &'static str,
    /// What ApiVersions says.
    pub advertised: (i16, i16),
    /// What is really read; differs for Produce, where librdkafka wants to see 0 (KAFKA-18659).
    pub served: (i16, i16),
    pub run: fn(Ctx, Bytes) -> Started,
}

impl Row {
    pub fn decodes(&self, version: i16) -> bool {
        (self.served.0..=self.served.1).contains(&version)
    }

    fn of<H: Handler>() -> Row
    where
        ResponseOf<H>: Send,
    {
        Row::new(<H::Request as Request>::KEY, dispatch::run::<H>)
    }

    /// An API that `apis::start` runs itself.
    fn hot(key: i16) -> Row {
        Row::new(key, |_, _| Started::close("this API has a path of its own"))
    }

    fn new(key: i16, run: fn(Ctx, Bytes) -> Started) -> Row {
        let Some(api) = schema::api(key) else {
            panic!("API key {key} is not in the field table");
        };
        let served = (api.min, api.max_stable());
        let advertised = if key == PRODUCE { (0, served.1) } else { served };
        Row { key, name: api.name, advertised, served, run }
    }
}

/// Every API, in the order of the keys.
pub static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut rows = vec![
        Row::hot(PRODUCE),
        Row::hot(FETCH),
        Row::of::<alter_configs::AlterConfigs>(),
        Row::of::<alter_configs::IncrementalAlterConfigs>(),
        Row::of::<alter_partition_reassignments::AlterPartitionReassignments>(),
        Row::of::<alter_replica_log_dirs::AlterReplicaLogDirs>(),
        Row::of::<api_versions::ApiVersions>(),
        Row::of::<create_partitions::CreatePartitions>(),
        Row::of::<create_topics::CreateTopics>(),
        Row::of::<delete_groups::DeleteGroups>(),
        Row::of::<delete_records::DeleteRecords>(),
        Row::of::<delete_topics::DeleteTopics>(),
        Row::of::<describe_cluster::DescribeCluster>(),
        Row::of::<describe_configs::DescribeConfigs>(),
        Row::of::<describe_groups::DescribeGroups>(),
        Row::of::<describe_log_dirs::DescribeLogDirs>(),
        Row::of::<describe_producers::DescribeProducers>(),
        Row::of::<describe_quorum::DescribeQuorum>(),
        Row::of::<describe_topic_partitions::DescribeTopicPartitions>(),
        Row::of::<elect_leaders::ElectLeaders>(),
        Row::of::<find_coordinator::FindCoordinator>(),
        Row::of::<heartbeat::Heartbeat>(),
        Row::of::<init_producer_id::InitProducerId>(),
        Row::of::<join_group::JoinGroup>(),
        Row::of::<leave_group::LeaveGroup>(),
        Row::of::<list_config_resources::ListConfigResources>(),
        Row::of::<list_groups::ListGroups>(),
        Row::of::<list_offsets::ListOffsets>(),
        Row::of::<list_partition_reassignments::ListPartitionReassignments>(),
        Row::of::<metadata::Metadata>(),
        Row::of::<offset_commit::OffsetCommit>(),
        Row::of::<offset_delete::OffsetDelete>(),
        Row::of::<offset_fetch::OffsetFetch>(),
        Row::of::<offset_for_leader_epoch::OffsetForLeaderEpoch>(),
        Row::of::<sync_group::SyncGroup>(),
        Row::of::<update_features::UpdateFeatures>(),
    ];
    rows.sort_by_key(|row| row.key);
    rows
});

/// Index by key, for dispatch.
static BY_KEY: LazyLock<Vec<Option<&'static Row>>> = LazyLock::new(|| {
    let mut index = Vec::new();
    for row in TABLE.iter() {
        let Ok(at) = usize::try_from(row.key) else { continue };
        if index.len() <= at {
            index.resize(at + 1, None);
        }
        index[at] = Some(row);
    }
    index
});

/// The row of an API, if it is served.
pub fn row(key: i16) -> Option<&'static Row> {
    BY_KEY.get(usize::try_from(key).ok()?).copied().flatten()
}

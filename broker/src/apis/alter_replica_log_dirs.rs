//! AlterReplicaLogDirs (34), 1-2. v2: flexible.
//!
//! A replica stays in its directory: asking for another one is refused, see docs/differences.md.

use std::collections::BTreeMap;

use kafka_protocol::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
};
use kafka_protocol::messages::{
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, TopicName,
};
use protocol_compat::error::ErrorCode;

use super::ctx::text;
use super::{Ctx, Handler};

pub struct AlterReplicaLogDirs;

impl Handler for AlterReplicaLogDirs {
    type Request = AlterReplicaLogDirsRequest;

    async fn handle(
        ctx: Ctx,
        _version: i16,
        request: AlterReplicaLogDirsRequest,
    ) -> AlterReplicaLogDirsResponse {
        // Of a partition that is named twice the last directory counts.
        let mut wanted: BTreeMap<&str, BTreeMap<i32, &str>> = BTreeMap::new();
        for dir in &request.dirs {
            for topic in &dir.topics {
                let places = wanted.entry(&topic.name).or_default();
                places.extend(topic.partitions.iter().map(|&index| (index, &*dir.path)));
            }
        }
        let results = wanted.into_iter().map(|(topic, places)| {
            let partitions = places.into_iter().map(|(index, path)| {
                let result = place(&ctx, topic, index, path);
                AlterReplicaLogDirPartitionResult::default()
                    .with_partition_index(index)
                    .with_error_code(result.err().map_or(0, ErrorCode::code))
            });
            AlterReplicaLogDirTopicResult::default()
                .with_topic_name(TopicName(text(topic)))
                .with_partitions(partitions.collect())
        });
        AlterReplicaLogDirsResponse::default().with_results(results.collect())
    }
}

/// The directory is looked at before the partition, as in Kafka.
fn place(ctx: &Ctx, topic: &str, index: i32, path: &str) -> Result<(), ErrorCode> {
    let dirs = ctx.node.dirs.dirs();
    let dir = dirs.iter().position(|dir| dir.shown == path).ok_or(ErrorCode::LogDirNotFound)?;
    match ctx.kept_here(topic, index)?.dir == dir {
        true => Ok(()),
        false => Err(ErrorCode::InvalidRequest),
    }
}

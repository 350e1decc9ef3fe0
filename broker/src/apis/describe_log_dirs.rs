//! DescribeLogDirs (35), 1-5. v2: flexible. v3: an error for all. v4: sizes of the disks. v5: cordoned.

use std::collections::BTreeMap;

use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse, TopicName};

use super::ctx::text;
use super::{Ctx, Handler};
use crate::log_dirs::Dir;

pub struct DescribeLogDirs;

impl Handler for DescribeLogDirs {
    type Request = DescribeLogDirsRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: DescribeLogDirsRequest,
    ) -> DescribeLogDirsResponse {
        let dirs = ctx.node.dirs.dirs().iter().enumerate();
        let results = dirs.map(|(index, dir)| describe(&ctx, version, &request, index, dir));
        DescribeLogDirsResponse::default().with_results(results.collect())
    }
}

fn describe(
    ctx: &Ctx,
    version: i16,
    request: &DescribeLogDirsRequest,
    index: usize,
    dir: &Dir,
) -> DescribeLogDirsResult {
    let mut result = DescribeLogDirsResult::default();
    result.log_dir = text(&dir.shown);
    if version >= 4 {
        if let Ok(space) = ctx.node.env.disk.space(dir.log_dir.path()) {
            result.total_bytes = i64::try_from(space.total).unwrap_or(i64::MAX);
            result.usable_bytes = i64::try_from(space.usable).unwrap_or(i64::MAX);
        }
    }
    let mut topics: BTreeMap<String, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    for partition in ctx.node.partitions.all() {
        let (topic, at) = (&partition.tp.topic, partition.tp.partition);
        if partition.dir != index || !is_asked(request, topic, at) {
            continue;
        }
        let mut entry = DescribeLogDirsPartition::default();
        entry.partition_index = at;
        let size = partition.with_log(|log| log.size_bytes());
        entry.partition_size = i64::try_from(size).unwrap_or(i64::MAX);
        entry.offset_lag = (partition.high_watermark() - partition.log_end_offset()).max(0);
        topics.entry(topic.to_string()).or_default().push(entry);
    }
    let topics = topics.into_iter().map(|(name, partitions)| {
        DescribeLogDirsTopic::default()
            .with_name(TopicName(text(&name)))
            .with_partitions(partitions)
    });
    result.topics = topics.collect();
    result
}

fn is_asked(request: &DescribeLogDirsRequest, topic: &str, partition: i32) -> bool {
    let Some(topics) = &request.topics else {
        return true;
    };
    topics
        .iter()
        .any(|asked| asked.topic.as_str() == topic && asked.partitions.contains(&partition))
}

//! DescribeLogDirs (35), 1-5. v2: flexible. v3: an error for all. v4: sizes of the disks. v5:
//! cordoned.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse, TopicName};

use super::ctx::text;
use super::{Ctx, Handler};
use crate::log_dirs::Dir;

/// Topics and partitions, for look-up.
type Asked<'a> = BTreeSet<(&'a str, i32)>;

pub struct DescribeLogDirs;

impl Handler for DescribeLogDirs {
    type Request = DescribeLogDirsRequest;

    async fn handle(
        ctx: Ctx,
        version: i16,
        request: DescribeLogDirsRequest,
    ) -> DescribeLogDirsResponse {
        let dirs = ctx.node.dirs.dirs().iter().enumerate();
        let asked = asked(&request);
        let asked = asked.as_ref();
        let results = dirs.map(|(index, dir)| describe(&ctx, version, asked, index, dir));
        DescribeLogDirsResponse::default().with_results(results.collect())
    }
}

fn describe(
    ctx: &Ctx,
    version: i16,
    asked: Option<&Asked<'_>>,
    index: usize,
    dir: &Dir,
) -> DescribeLogDirsResult {
    let mut result = DescribeLogDirsResult::default();
    result.log_dir = text(&dir.shown);
    if version >= 4
        && let Ok(space) = ctx.node.env.disk.space(dir.log_dir.path())
    {
        result.total_bytes = i64::try_from(space.total).unwrap_or(i64::MAX);
        result.usable_bytes = i64::try_from(space.usable).unwrap_or(i64::MAX);
    }
    let mut topics: BTreeMap<String, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    for partition in ctx.node.partitions.all() {
        let (topic, at) = (&partition.tp.topic, partition.tp.partition);
        if partition.dir != index || asked.is_some_and(|asked| !asked.contains(&(&**topic, at))) {
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

/// The partitions asked for, when they are named.
fn asked(request: &DescribeLogDirsRequest) -> Option<Asked<'_>> {
    let topics = request.topics.as_ref()?.iter();
    let partitions = topics.flat_map(|topic| {
        topic.partitions.iter().map(|&partition| (topic.topic.as_str(), partition))
    });
    Some(partitions.collect())
}

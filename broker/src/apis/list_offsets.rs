//! ListOffsets (2), 1-11.
//!
//! v2: isolation. v4: leader epochs. v6: flexible. v7: the record with the largest time (-3). v8:
//! earliest local (-4). v9: latest tiered (-5). v10: a time limit. v11: earliest pending upload
//! (-6).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse, TopicName};
use protocol_compat::error::ErrorCode;
use storage::log::TimedOffset;

use super::{Ctx, Handler};
use crate::errors;
use crate::partition::Partition;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

pub struct ListOffsets;

impl Handler for ListOffsets {
    type Request = ListOffsetsRequest;

    async fn handle(ctx: Ctx, version: i16, request: ListOffsetsRequest) -> ListOffsetsResponse {
        let terms = Terms {
            version,
            replica: request.replica_id.0 >= 0,
            isolation: request.isolation_level,
        };
        let mut asked = request.topics.iter().flat_map(|topic| &topic.partitions);
        if !asked.any(|asked| reads_records(asked.timestamp)) {
            return answer(&ctx, &terms, &request);
        }
        let node = Arc::clone(&ctx.node);
        let answer = node.cold.run(move || answer(&ctx, &terms, &request)).await;
        // Only a node that stops gives none, and it closes the connection.
        answer.unwrap_or_default()
    }
}

/// Whether a look-up reads indexes and inflates a batch, which takes its time.
fn reads_records(timestamp: i64) -> bool {
    timestamp >= 0 || timestamp == MAX_TIMESTAMP
}

fn answer(ctx: &Ctx, terms: &Terms, request: &ListOffsetsRequest) -> ListOffsetsResponse {
    let mut response = ListOffsetsResponse::default();
    let doubled = named_twice(&request.topics);
    for (topic, asked) in by_name(&request.topics) {
        response.topics.push(answer_topic(ctx, terms, topic, &asked, &doubled));
    }
    response
}

struct Terms {
    version: i16,
    replica: bool,
    isolation: i8,
}

/// Where a look-up ended: time, offset, leader epoch.
type Found = (i64, i64, i32);

const NOTHING: Found = (-1, -1, -1);

fn found(at: TimedOffset) -> Found {
    (at.timestamp_ms, at.offset, at.leader_epoch)
}

/// Partitions that the request names more than once, under one entry of their topic or several.
fn named_twice(topics: &[ListOffsetsTopic]) -> BTreeSet<(&str, i32)> {
    let (mut seen, mut doubled) = (BTreeSet::new(), BTreeSet::new());
    for topic in topics {
        for asked in &topic.partitions {
            let place = (topic.name.as_str(), asked.partition_index);
            if !seen.insert(place) {
                doubled.insert(place);
            }
        }
    }
    doubled
}

/// Each topic once, with all that is asked of it; none of which nothing is asked.
fn by_name(topics: &[ListOffsetsTopic]) -> Vec<(&TopicName, Vec<&ListOffsetsPartition>)> {
    let mut places = BTreeMap::new();
    let mut all: Vec<(&TopicName, Vec<&ListOffsetsPartition>)> = Vec::new();
    for topic in topics.iter().filter(|topic| !topic.partitions.is_empty()) {
        let place = *places.entry(topic.name.as_str()).or_insert(all.len());
        if place == all.len() {
            all.push((&topic.name, Vec::new()));
        }
        all[place].1.extend(&topic.partitions);
    }
    all
}

fn answer_topic(
    ctx: &Ctx,
    terms: &Terms,
    topic: &TopicName,
    partitions: &[&ListOffsetsPartition],
    doubled: &BTreeSet<(&str, i32)>,
) -> ListOffsetsTopicResponse {
    let mut answer = ListOffsetsTopicResponse::default();
    answer.name = topic.clone();
    let mut refused = BTreeSet::new();
    for asked in partitions {
        let is_doubled = doubled.contains(&(topic.as_str(), asked.partition_index));
        // Named twice: refused, with one entry in the answer.
        if is_doubled && !refused.insert(asked.partition_index) {
            continue;
        }
        let found = if is_doubled {
            Err(ErrorCode::InvalidRequest)
        } else {
            find(ctx, terms, topic.as_str(), asked)
        };
        let mut entry = ListOffsetsPartitionResponse::default();
        entry.partition_index = asked.partition_index;
        let (timestamp, offset, leader_epoch) = match found {
            Ok(found) => found,
            Err(code) => {
                entry.error_code = code.code();
                NOTHING
            }
        };
        entry.timestamp = timestamp;
        entry.offset = offset;
        if terms.version >= 4 {
            entry.leader_epoch = leader_epoch;
        }
        answer.partitions.push(entry);
    }
    answer
}

fn find(
    ctx: &Ctx,
    terms: &Terms,
    topic: &str,
    asked: &ListOffsetsPartition,
) -> Result<Found, ErrorCode> {
    if !is_known(terms.version, asked.timestamp) {
        return Err(ErrorCode::UnsupportedVersion);
    }
    if !matches!(terms.isolation, 0 | 1) {
        return Err(ErrorCode::InvalidRequest);
    }
    let partition = ctx.led_here(topic, asked.partition_index)?;
    match partition.check_epoch(asked.current_leader_epoch) {
        ErrorCode::None => {}
        code => return Err(code),
    }
    look_up(terms, &partition, asked.timestamp)
}

/// Which special times a version may ask for.
fn is_known(version: i16, timestamp: i64) -> bool {
    match timestamp {
        MAX_TIMESTAMP => version >= 7,
        EARLIEST_LOCAL => version >= 8,
        LATEST_TIERED => version >= 9,
        EARLIEST_PENDING_UPLOAD => version >= 11,
        other => other >= EARLIEST,
    }
}

fn look_up(terms: &Terms, partition: &Partition, timestamp: i64) -> Result<Found, ErrorCode> {
    let view = partition.view();
    let upper = match (terms.replica, terms.isolation) {
        (true, _) => view.log_end_offset(),
        (false, 1) => partition.last_stable_offset(),
        (false, _) => partition.high_watermark(),
    };
    let failed = |error| {
        tracing::error!(partition = %partition.tp, ?error, "a look-up by time failed");
        errors::read_code(&error)
    };
    match timestamp {
        LATEST => Ok((-1, upper, partition.leader_epoch())),
        EARLIEST | EARLIEST_LOCAL => {
            let start = view.log_start_offset();
            let epoch = partition.with_log(|log| log.leader_epochs().epoch_of(start));
            Ok((-1, start, epoch.unwrap_or(partition.leader_epoch())))
        }
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => Ok(NOTHING),
        MAX_TIMESTAMP => match view.max_timestamp().map_err(failed)? {
            Some(at) => Ok(found(at)),
            None if view.log_start_offset() == view.log_end_offset() => Ok(NOTHING),
            // Records without a time: the first of them, as Kafka has it.
            None => {
                let start = view.log_start_offset();
                let epoch = partition.with_log(|log| log.leader_epochs().epoch_of(start));
                Ok((-1, start, epoch.unwrap_or(partition.leader_epoch())))
            }
        },
        time => Ok(view.offset_for_timestamp(time, upper).map_err(failed)?.map_or(NOTHING, found)),
    }
}

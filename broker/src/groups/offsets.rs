//! Committed offsets: commit, fetch, delete on request. Their expiry is `sweep.rs`.
//!
//! Kafka's `OffsetMetadataManager`.

use kraft::machine::Outbox;
use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::classic::Cx;
use super::classic::state::{Group, State};
use super::hard::{Hard, OffsetValue, Record, Stored};
use super::machine::GroupMachine;
use super::messages::*;
use super::soft::Soft;

/// Stores what a member, or anybody while the group is empty, commits. An unknown group is created
/// by it if the committer is no member ("simple" group).
pub fn commit(
    hard: &Hard,
    soft: &mut Soft,
    now_ms: i64,
    request: CommitRequest,
    out: &mut Outbox<GroupMachine>,
) -> PerPartition {
    let live = soft.live(hard, &request.group);
    if let Err(error) = may_commit(hard, live, &request) {
        return PerPartition::refused(error);
    }
    if let Some(live) = live
        && matches!(live.state, State::Stable | State::Preparing(_))
    {
        // A commit is as good as a heartbeat.
        Cx { settings: &soft.settings, now_ms, out }.arm_session(live, &request.member_id);
    }
    let expire_ms = request.retention_ms.map(|retention_ms| now_ms.saturating_add(retention_ms));
    let metadata_max = soft.settings.offset_metadata_max;
    let mut partitions = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut errors = Vec::with_capacity(topic.partitions.len());
        for commit in topic.partitions {
            let metadata = commit.metadata.unwrap_or_default();
            if is_longer(&metadata, metadata_max) {
                errors.push(ErrorCode::OffsetMetadataTooLarge);
                continue;
            }
            let value = OffsetValue {
                offset: commit.offset,
                leader_epoch: commit.leader_epoch,
                metadata,
                commit_ms: now_ms,
                expire_ms,
                topic_id: topic.topic_id,
            };
            out.record(Record::Offset {
                group: request.group.clone(),
                topic: topic.topic.clone(),
                partition: commit.partition,
                value: Some(value),
            });
            errors.push(ErrorCode::None);
        }
        partitions.push(errors);
    }
    PerPartition { error: ErrorCode::None, partitions }
}

/// Java's string length counts UTF-16 units.
fn is_longer(text: &str, max: usize) -> bool {
    text.len() > max && text.encode_utf16().count() > max
}

/// Errors: GROUP_ID_NOT_FOUND for a member of no group; UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
/// ILLEGAL_GENERATION; REBALANCE_IN_PROGRESS between join and sync, when the new owner may be at
/// work.
fn may_commit(hard: &Hard, live: Option<&Group>, request: &CommitRequest) -> Result<(), ErrorCode> {
    let is_member = request.generation >= 0;
    let Some(live) = live.filter(|live| live.state != State::Empty) else {
        return match (is_member, hard.has(&request.group)) {
            (false, _) => Ok(()),
            (true, true) => Err(ErrorCode::UnknownMemberId),
            (true, false) => Err(ErrorCode::GroupIdNotFound),
        };
    };
    let says_who = is_member || !request.member_id.is_empty() || request.instance_id.is_some();
    if !says_who {
        return Err(ErrorCode::UnknownMemberId);
    }
    live.check_member(&request.member_id, request.instance_id.as_deref())?;
    if request.generation != live.generation {
        return Err(ErrorCode::IllegalGeneration);
    }
    match live.state {
        State::Completing => Err(ErrorCode::RebalanceInProgress),
        State::Empty | State::Preparing(_) | State::Stable => Ok(()),
    }
}

/// What is committed; a group or partition that is not known is answered like one without commits.
pub fn fetch(hard: &Hard, request: FetchRequest) -> FetchReply {
    let stored = hard.group(&request.group);
    let topics = match request.topics {
        Some(topics) => topics.into_iter().map(|topic| fetch_topic(stored, topic)).collect(),
        None => stored.map(fetch_all).unwrap_or_default(),
    };
    FetchReply { error: ErrorCode::None, topics }
}

fn fetch_topic(stored: Option<&Stored>, asked: FetchTopic) -> FetchedTopic {
    let row = |partition: &i32| {
        let value = stored.and_then(|stored| stored.offset(&asked.topic, *partition));
        let value = value.filter(|value| same_topic(value.topic_id, asked.topic_id));
        fetched(*partition, value)
    };
    let partitions = asked.partitions.iter().map(row).collect();
    FetchedTopic { topic: asked.topic, topic_id: asked.topic_id, partitions }
}

fn fetch_all(stored: &Stored) -> Vec<FetchedTopic> {
    let all = stored.offsets.iter().map(|(topic, partitions)| FetchedTopic {
        topic: topic.clone(),
        topic_id: partitions.values().next().map(|value| value.topic_id).unwrap_or_default(),
        partitions: partitions.iter().map(|(at, value)| fetched(*at, Some(value))).collect(),
    });
    all.collect()
}

fn fetched(partition: i32, value: Option<&OffsetValue>) -> FetchedPartition {
    FetchedPartition {
        partition,
        offset: value.map_or(-1, |value| value.offset),
        leader_epoch: value.map_or(-1, |value| value.leader_epoch),
        metadata: value.map(|value| value.metadata.clone()).unwrap_or_default(),
        error: ErrorCode::None,
    }
}

/// Whether two ids can mean one topic; an id that is not known means any.
pub fn same_topic(a: Uuid, b: Uuid) -> bool {
    a.is_nil() || b.is_nil() || a == b
}

/// Deletes committed offsets, except for topics that members of a consumer group subscribe to.
/// Other groups have to be empty.
pub fn delete(
    hard: &Hard,
    soft: &Soft,
    request: &OffsetDeleteRequest,
    out: &mut Outbox<GroupMachine>,
) -> PerPartition {
    let Some(stored) = hard.group(&request.group) else {
        return PerPartition::refused(ErrorCode::GroupIdNotFound);
    };
    let live = soft.live(hard, &request.group).filter(|live| live.state != State::Empty);
    if live.is_some_and(|live| !live.is_consumer()) {
        return PerPartition::refused(ErrorCode::NonEmptyGroup);
    }
    let mut partitions = Vec::with_capacity(request.topics.len());
    for (topic, asked) in &request.topics {
        if live.is_some_and(|live| live.is_subscribed(topic)) {
            partitions.push(vec![ErrorCode::GroupSubscribedToTopic; asked.len()]);
            continue;
        }
        for partition in asked.iter().filter(|at| stored.offset(topic, **at).is_some()) {
            out.record(tombstone(&request.group, topic, *partition));
        }
        partitions.push(vec![ErrorCode::None; asked.len()]);
    }
    PerPartition { error: ErrorCode::None, partitions }
}

/// The record that takes an offset away.
pub fn tombstone(group: &Name, topic: &Name, partition: i32) -> Record {
    Record::Offset { group: group.clone(), topic: topic.clone(), partition, value: None }
}

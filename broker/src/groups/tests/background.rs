//! Expiry and the removal of deleted topics' offsets, in steps of bounded size.

use std::sync::Arc;

use kraft::machine::rig::Rig;
use kraft::machine::{Outbox, Refused};
use uuid::Uuid;

use super::script::START_MS;
use crate::groups::sweep::{self, TOMBSTONE_BYTES_PER_STEP};
use crate::groups::*;

/// As many groups as take several steps, each with as many offsets.
const GROUPS: usize = 2_500;
const PARTITIONS: i32 = 4;

/// `a-0`, `a-1`, ... and the same of `b` in every group, and one group with very many of `a`.
fn log() -> Vec<Record> {
    let record = |group: &str, topic: &str, partition| Record::Offset {
        group: Name::from(group),
        topic: Name::from(topic),
        partition,
        value: Some(OffsetValue {
            offset: 1,
            leader_epoch: -1,
            metadata: Name::from(""),
            commit_ms: START_MS,
            expire_ms: None,
            topic_id: Uuid::nil(),
        }),
    };
    let mut log = Vec::new();
    for group in 0..GROUPS {
        for partition in 0..PARTITIONS {
            log.push(record(&format!("g{group}"), "a", partition));
            log.push(record(&format!("g{group}"), "b", partition));
        }
    }
    log.extend((0..20_000).map(|partition| record("big", "a", partition)));
    log
}

fn rig(retention_ms: i64) -> Rig<GroupMachine> {
    let settings = GroupSettings { offsets_retention_ms: retention_ms, ..GroupSettings::default() };
    Rig::with_soft(START_MS, log(), Soft::new(Arc::new(settings)))
}

fn bytes_of(records: &[Record]) -> usize {
    codec::batch(records, START_MS).len()
}

#[test]
fn steps_are_bounded() {
    let rig = rig(0);
    let mut soft = Soft::default();
    soft.settings = Arc::new(GroupSettings { offsets_retention_ms: 0, ..GroupSettings::default() });
    let mut out = Outbox::default();
    sweep::expired(rig.shard.hard(), &mut soft, START_MS, &mut out);
    let size = bytes_of(&out.records);
    assert!((1..=TOMBSTONE_BYTES_PER_STEP).contains(&size), "{size} bytes in one step");
    assert_eq!(out.arm, [(Timer::Sweep, START_MS)], "there is more to do");

    let mut out = Outbox::default();
    let gone = DeletedTopic { topic: Name::from("a"), topic_id: Uuid::nil() };
    sweep::topics_deleted(&mut soft, START_MS, vec![gone], &mut out);
    let mut out = Outbox::default();
    sweep::purge(rig.shard.hard(), &mut soft, START_MS, &mut out);
    let size = bytes_of(&out.records);
    assert!((1..=TOMBSTONE_BYTES_PER_STEP).contains(&size), "{size} bytes in one step");
    assert_eq!(out.arm, [(Timer::Purge, START_MS)], "there is more to do");
}

#[test]
fn in_the_end_everything_is_done() {
    let mut rig = rig(700_000);
    let gone = DeletedTopic { topic: Name::from("a"), topic_id: Uuid::nil() };
    rig.send(1, Input::TopicsDeleted(vec![gone]));
    // In the middle of it the disk fills up for a while.
    rig.refuse = Some(Refused::Storage);
    rig.advance(2_000);
    rig.refuse = None;
    rig.advance(1_000);
    let left = |rig: &Rig<GroupMachine>, topic: &str| {
        let with = |(_, stored): &(&Name, &hard::Stored)| stored.offsets.contains_key(topic);
        rig.shard.hard().groups().filter(with).count()
    };
    assert_eq!((left(&rig, "a"), left(&rig, "b")), (0, GROUPS));
    // At the first check only the group without offsets goes, at the second all do.
    rig.advance(600_000);
    assert_eq!(rig.shard.hard().groups().count(), GROUPS);
    rig.advance(600_000);
    assert_eq!(rig.shard.hard().groups().count(), 0);
    rig.check_replay();
    assert_eq!(rig.shard.next_deadline(), Some(START_MS + 1_800_000));
}

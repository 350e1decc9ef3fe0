//! The handle over a log in memory: loading, watermarks, leadership, timers.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use protocol_compat::batch::{BatchHeader, assign};
use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::script::{START_MS, subscription};
use crate::groups::*;

const PARTITIONS: i32 = 4;

/// Called in the middle of a read.
type Hook = Box<dyn Fn() + Send>;

/// Logs of all partitions. What is appended is committed when `commit` says so.
#[derive(Default)]
struct MemLog {
    logs: Mutex<BTreeMap<i32, Log>>,
    refuse: Mutex<Option<ErrorCode>>,
    hook: Mutex<Option<Hook>>,
    /// What is appended is committed at once.
    at_once: Mutex<bool>,
}

#[derive(Default)]
struct Log {
    batches: Vec<(i64, Vec<u8>)>,
    end_offset: i64,
    high_watermark: i64,
    epochs: Vec<i32>,
}

impl GroupLog for MemLog {
    fn append(
        &self,
        partition: i32,
        leader_epoch: i32,
        mut batch: BytesMut,
        now_ms: i64,
    ) -> Result<i64, ErrorCode> {
        if let Some(error) = *self.refuse.lock() {
            return Err(error);
        }
        let mut logs = self.logs.lock();
        let log = logs.entry(partition).or_default();
        assign(&mut batch, log.end_offset, leader_epoch);
        let header = BatchHeader::parse(&batch).expect("a batch");
        assert_eq!((header.producer_id, header.base_sequence), (-1, 0));
        assert_eq!((header.base_timestamp, header.max_timestamp), (now_ms, now_ms));
        log.batches.push((log.end_offset, batch.to_vec()));
        log.end_offset = header.next_offset();
        log.epochs.push(leader_epoch);
        if *self.at_once.lock() {
            log.high_watermark = log.end_offset;
        }
        Ok(log.end_offset)
    }

    fn bounds(&self, partition: i32) -> Result<LogBounds, ErrorCode> {
        let mut logs = self.logs.lock();
        let Log { end_offset, high_watermark, .. } = *logs.entry(partition).or_default();
        Ok(LogBounds { start_offset: 0, end_offset, high_watermark })
    }

    /// One batch at a time, and half of the next.
    fn read(&self, partition: i32, from_offset: i64, _max: usize) -> Result<Vec<u8>, ErrorCode> {
        let hook = self.hook.lock().take();
        if let Some(hook) = hook {
            hook();
        }
        let mut logs = self.logs.lock();
        let log = logs.entry(partition).or_default();
        let mut rest = log.batches.iter().filter(|(base_offset, _)| *base_offset >= from_offset);
        let mut bytes = rest.next().map(|(_, batch)| batch.clone()).unwrap_or_default();
        if let Some((_, next)) = rest.next() {
            bytes.extend_from_slice(&next[..next.len() / 2]);
        }
        Ok(bytes)
    }
}

struct World {
    log: Arc<MemLog>,
    groups: Arc<Groups>,
}

impl World {
    /// All partitions led in epoch 1.
    fn new() -> Self {
        let world = Self::on(Arc::new(MemLog::default()));
        for partition in 0..PARTITIONS {
            world.load(partition, 1).expect("an empty log loads");
        }
        world
    }

    fn on(log: Arc<MemLog>) -> Self {
        let settings = GroupSettings { initial_rebalance_delay_ms: 0, ..GroupSettings::default() };
        let groups = Arc::new(Groups::new(log.clone(), settings, PARTITIONS));
        World { log, groups }
    }

    fn load(&self, partition: i32, leader_epoch: i32) -> Result<Loaded, LoadError> {
        self.groups.load(partition, leader_epoch, &|| START_MS)
    }

    /// Everything appended is flushed.
    fn commit(&self) {
        for partition in 0..PARTITIONS {
            let end_offset = {
                let mut logs = self.log.logs.lock();
                let log = logs.entry(partition).or_default();
                log.high_watermark = log.end_offset;
                log.end_offset
            };
            self.groups.on_high_watermark(partition, end_offset);
        }
    }

    /// Asks, lets timers fire and flushes happen, and takes the answer.
    fn ask<T>(&self, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            if let Poll::Ready(reply) = call.as_mut().poll(&mut context) {
                return reply;
            }
            self.groups.fire(START_MS);
            self.commit();
        }
        panic!("no answer");
    }

    fn join(&self, group: &str) -> impl Future<Output = JoinReply> {
        let groups = self.groups.clone();
        let request = join(group);
        async move { groups.join(START_MS, request).await }
    }

    /// A group with one stable member, whose id is returned.
    fn stable(&self, group: &str) -> Name {
        let JoinReply { error, generation, member_id, .. } = self.ask(self.join(group));
        assert_eq!((error, generation), (ErrorCode::None, 1));
        let request = SyncRequest {
            group: Name::from(group),
            generation: 1,
            member_id: member_id.clone(),
            instance_id: None,
            protocol_type: None,
            protocol: None,
            requires_protocol: false,
            assignments: vec![(member_id.clone(), Bytes::from_static(b"part"))],
        };
        let reply = self.ask(self.groups.sync(START_MS, request));
        assert_eq!((reply.error, &reply.assignment[..]), (ErrorCode::None, &b"part"[..]));
        member_id
    }

    fn beat(&self, group: &str, member_id: &Name) -> impl Future<Output = ErrorCode> {
        let request = HeartbeatRequest {
            group: Name::from(group),
            generation: 1,
            member_id: member_id.clone(),
            instance_id: None,
        };
        let groups = self.groups.clone();
        async move { groups.heartbeat(START_MS, request).await }
    }

    fn put(&self, group: &str, topic: &str, offset: i64) -> impl Future<Output = PerPartition> {
        let request = put(group, topic, offset);
        let groups = self.groups.clone();
        async move { groups.commit(START_MS, request).await }
    }

    fn offset(&self, group: &str, topic: &str) -> i64 {
        let asked =
            FetchTopic { topic: Name::from(topic), topic_id: Uuid::nil(), partitions: vec![0] };
        let request = FetchRequest {
            group: Name::from(group),
            topics: Some(vec![asked]),
            require_stable: false,
        };
        self.ask(self.groups.fetch_offsets(START_MS, request)).topics[0].partitions[0].offset
    }
}

fn join(group: &str) -> JoinRequest {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    let fresh_uuid = Uuid::from_u128(DRAWN.fetch_add(1, Ordering::Relaxed).into());
    JoinRequest {
        group: Name::from(group),
        member_id: Name::from(""),
        instance_id: None,
        client_id: Name::from("c"),
        client_host: Name::from("/h"),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: Name::from("consumer"),
        protocols: vec![Protocol { name: Name::from("range"), metadata: subscription("t") }],
        requires_member_id: false,
        can_skip_assignment: false,
        reason: None,
        fresh_uuid,
    }
}

fn put(group: &str, topic: &str, offset: i64) -> CommitRequest {
    let partition = CommitPartition { partition: 0, offset, leader_epoch: -1, metadata: None };
    CommitRequest {
        group: Name::from(group),
        generation: -1,
        member_id: Name::from(""),
        instance_id: None,
        retention_ms: None,
        topics: vec![CommitTopic {
            topic: Name::from(topic),
            topic_id: Uuid::nil(),
            partitions: vec![partition],
        }],
    }
}

fn poll<T>(call: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match call.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(reply) => Some(reply),
        Poll::Pending => None,
    }
}

#[test]
fn another_broker_takes_over() {
    let world = World::new();
    let member_id = world.stable("g");
    assert_eq!(world.ask(world.put("simple", "t", 5)).partitions, [[ErrorCode::None]]);
    assert_eq!(world.ask(world.beat("g", &member_id)), ErrorCode::None);

    let other = World::on(world.log.clone());
    assert_eq!(other.ask(other.beat("g", &member_id)), ErrorCode::NotCoordinator);
    let mut records = 0;
    for partition in 0..PARTITIONS {
        records += other.load(partition, 2).expect("loads").records;
    }
    assert_eq!(records, 3);
    assert_eq!(other.ask(other.beat("g", &member_id)), ErrorCode::None);
    assert_eq!(other.offset("simple", "t"), 5);
    let described = other.ask(other.groups.describe(START_MS, Name::from("g")));
    assert_eq!((described.state, described.members.len()), (GroupState::Stable, 1));
    assert_eq!(&described.members[0].assignment[..], b"part");
    other.ask(other.put("simple", "t", 6));
    let epochs = world.log.logs.lock()[&other.groups.partition_of("simple")].epochs.clone();
    assert_eq!(epochs.last(), Some(&2));
}

#[test]
fn answers_wait_for_the_flush() {
    let world = World::new();
    let mut put = pin!(world.put("g", "t", 5));
    assert!(poll(put.as_mut()).is_none());
    let mut fetch = pin!(world.groups.describe(START_MS, Name::from("g")));
    assert!(poll(fetch.as_mut()).is_none(), "a read may not see what can still be lost");
    world.commit();
    assert_eq!(poll(put).map(|reply| reply.error), Some(ErrorCode::None));
    assert_eq!(poll(fetch).map(|reply| reply.state), Some(GroupState::Empty));
}

#[test]
fn a_log_that_commits_as_it_appends() {
    let world = World::new();
    *world.log.at_once.lock() = true;
    assert!(poll(pin!(world.put("g", "t", 5))).is_some());
    let mut join = pin!(world.join("g"));
    assert!(poll(join.as_mut()).is_none());
    world.groups.fire(START_MS);
    assert!(poll(join).is_some());
}

#[test]
fn loading() {
    let world = World::new();
    let member_id = world.stable("g");
    let partition = world.groups.partition_of("g");

    let other = World::on(world.log.clone());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (groups, heard) = (other.groups.clone(), asked.clone());
    let member = member_id.clone();
    *world.log.hook.lock() = Some(Box::new(move || {
        let there = World { log: Arc::default(), groups: groups.clone() };
        let mut heard = heard.lock();
        heard.push(poll(pin!(there.beat("g", &member))).expect("at once"));
        heard.push(poll(pin!(there.join("g"))).expect("at once").error);
        heard.push(poll(pin!(there.put("g", "t", 1))).expect("at once").error);
        let listed = poll(pin!(groups.list(START_MS, ListFilter::default()))).expect("at once");
        heard.push(listed.expect_err("not all is known"));
        let gone = DeletedTopic { topic: Name::from("t"), topic_id: Uuid::nil() };
        poll(pin!(groups.topics_deleted(START_MS, vec![gone]))).expect("at once");
        groups.on_high_watermark(partition, 1);
    }));
    world.ask(world.put("other", "t", 1));
    other.load(partition, 2).expect("loads");
    let loading = ErrorCode::CoordinatorLoadInProgress;
    assert_eq!(*asked.lock(), [ErrorCode::None, loading, loading, loading]);
    assert_eq!(other.ask(other.beat("g", &member_id)), ErrorCode::None);
    // The topic that went meanwhile is not forgotten.
    other.groups.fire(START_MS);
    let left = other.groups.committed_offsets();
    assert!(left.is_empty(), "still there: {left:?}");
}

#[test]
fn leadership_moves() {
    let world = World::new();
    world.stable("g");
    let partition = world.groups.partition_of("g");
    // Somebody waits for the others to join again, and for a flush.
    let mut parked = pin!(world.join("g"));
    assert!(poll(parked.as_mut()).is_none());
    let mut unflushed = pin!(world.put("g2", "t", 1));
    assert!(poll(unflushed.as_mut()).is_none());
    world.groups.unload(partition);
    assert_eq!(poll(parked).map(|reply| reply.error), Some(ErrorCode::NotCoordinator));
    let there = world.groups.partition_of("g2") == partition;
    let refused = poll(unflushed.as_mut()).map(|reply| reply.error);
    assert_eq!(refused, there.then_some(ErrorCode::NotCoordinator));
    assert_eq!(world.ask(world.join("g")).error, ErrorCode::NotCoordinator);

    world.load(partition, 3).expect("loads");
    assert!(matches!(world.load(partition, 2), Err(LoadError::Overtaken)));
    assert!(matches!(world.load(partition, 3), Err(LoadError::Overtaken)));
    let mut parked = pin!(world.join("g"));
    assert!(poll(parked.as_mut()).is_none());
    world.load(partition, 4).expect("a later epoch");
    assert_eq!(poll(parked).map(|reply| reply.error), Some(ErrorCode::NotCoordinator));

    let mut parked = pin!(world.join("g"));
    assert!(poll(parked.as_mut()).is_none());
    world.groups.close();
    assert_eq!(poll(parked).map(|reply| reply.error), Some(ErrorCode::CoordinatorNotAvailable));
    assert_eq!(world.groups.next_deadline(), None);
}

#[test]
fn a_load_is_overtaken() {
    for later in [None, Some(9)] {
        let world = World::new();
        world.ask(world.put("g", "t", 1));
        world.ask(world.put("g", "t", 2));
        let partition = world.groups.partition_of("g");
        let other = World::on(world.log.clone());
        let groups = other.groups.clone();
        *world.log.hook.lock() = Some(Box::new(move || match later {
            None => groups.unload(partition),
            Some(epoch) => drop(groups.load(partition, epoch, &|| START_MS)),
        }));
        assert!(matches!(other.load(partition, 2), Err(LoadError::Overtaken)));
        match later {
            None => assert_eq!(other.ask(other.put("g", "t", 3)).error, ErrorCode::NotCoordinator),
            Some(_) => assert_eq!(other.offset("g", "t"), 2),
        }
    }
}

#[test]
fn damage_is_not_served() {
    let world = World::new();
    world.ask(world.put("g", "t", 1));
    let partition = world.groups.partition_of("g");
    {
        let mut logs = world.log.logs.lock();
        let (_, batch) = &mut logs.get_mut(&partition).expect("a log").batches[0];
        *batch.last_mut().expect("bytes") ^= 1;
    }
    let other = World::on(world.log.clone());
    assert!(matches!(other.load(partition, 2), Err(LoadError::Damage { offset: 0, .. })));
    assert_eq!(other.ask(other.put("g", "t", 3)).error, ErrorCode::NotCoordinator);
    // Cut short.
    world.log.logs.lock().get_mut(&partition).expect("a log").batches[0].1.truncate(70);
    assert!(matches!(other.load(partition, 3), Err(LoadError::Damage { offset: 0, .. })));
    // Nothing there at all: the end may be an offset that compaction emptied.
    world.log.logs.lock().get_mut(&partition).expect("a log").batches.clear();
    let loaded = other.load(partition, 4).expect("loads");
    assert_eq!((loaded.records, loaded.end_offset), (0, 1));
    other.groups.unload(partition);
    assert_eq!(other.ask(other.put("g", "t", 3)).error, ErrorCode::NotCoordinator);
}

#[test]
fn refused_appends() {
    let world = World::new();
    for (error, want) in [
        (ErrorCode::NotLeaderOrFollower, ErrorCode::NotCoordinator),
        (ErrorCode::KafkaStorageError, ErrorCode::NotCoordinator),
        (ErrorCode::NotEnoughReplicas, ErrorCode::CoordinatorNotAvailable),
        (ErrorCode::UnknownTopicOrPartition, ErrorCode::CoordinatorNotAvailable),
        (ErrorCode::MessageTooLarge, ErrorCode::UnknownServerError),
        (ErrorCode::RecordListTooLarge, ErrorCode::UnknownServerError),
    ] {
        *world.log.refuse.lock() = Some(error);
        assert_eq!(world.ask(world.put("g", "t", 1)).error, want);
        assert_eq!(world.ask(world.join("h")).error, want);
    }
    *world.log.refuse.lock() = None;
    assert_eq!(world.ask(world.put("g", "t", 1)).error, ErrorCode::None);
}

#[test]
fn too_many_wait() {
    let world = World::new();
    let mut waiting: Vec<_> = (0..=WAITING_MAX).map(|_| Box::pin(world.put("g", "t", 1))).collect();
    let mut last = waiting.pop().expect("one too many");
    assert!(waiting.iter_mut().all(|put| poll(put.as_mut()).is_none()));
    let refused = poll(last.as_mut()).map(|reply| reply.error);
    assert_eq!(refused, Some(ErrorCode::CoordinatorLoadInProgress));
    world.commit();
    assert!(waiting.iter_mut().all(|put| poll(put.as_mut()).is_some()));
}

#[test]
fn timers_are_driven_from_outside() {
    let world = World::new();
    let check_ms = GroupSettings::default().offsets_check_interval_ms;
    assert_eq!(world.groups.next_deadline(), Some(START_MS + check_ms));
    let mut moved = pin!(world.groups.deadline_moved());
    // Loading armed the check for expired offsets.
    assert!(poll(moved.as_mut()).is_some());
    let mut moved = pin!(world.groups.deadline_moved());
    assert!(poll(moved.as_mut()).is_none());
    let mut join = pin!(world.join("g"));
    assert!(poll(join.as_mut()).is_none());
    assert!(poll(moved.as_mut()).is_some(), "a join phase has a deadline");
    assert_eq!(world.groups.next_deadline(), Some(START_MS));
    world.groups.fire(START_MS);
    world.commit();
    assert_eq!(poll(join.as_mut()).map(|reply| reply.error), Some(ErrorCode::None));
    assert_eq!(world.groups.next_deadline(), Some(START_MS + 10_000));
    // Nobody syncs: out, and empty in the end.
    world.groups.fire(START_MS + 10_000);
    world.commit();
    let summaries = world.groups.summaries();
    assert_eq!(summaries[0].state, GroupState::Empty);
}

#[test]
fn over_all_shards() {
    let world = World::new();
    for group in ["a", "b", "c", "d", "e"] {
        world.ask(world.put(group, "t", 1));
        world.ask(world.put(group, "u", 2));
    }
    world.stable("f");
    let list = |states: &[&str]| {
        let states = states.iter().map(|state| (*state).to_owned()).collect();
        let filter = ListFilter { states, types: Vec::new() };
        let rows = world.ask(world.groups.list(START_MS, filter)).expect("a list");
        rows.iter().map(|row| row.group.to_string()).collect::<Vec<_>>().concat()
    };
    assert_eq!(list(&[]), "abcdef");
    assert_eq!(list(&["stable"]), "f");
    assert_eq!(world.groups.committed_offsets().len(), 10);
    let gone = DeletedTopic { topic: Name::from("t"), topic_id: Uuid::nil() };
    world.ask(world.groups.topics_deleted(START_MS, vec![gone]));
    world.groups.fire(START_MS);
    let left = world.groups.committed_offsets();
    assert!(left.len() == 5 && left.iter().all(|row| &*row.topic == "u"));
    let summaries = world.groups.summaries();
    assert_eq!(summaries.iter().map(|row| row.members).sum::<usize>(), 1);
    let partitions = world.groups.partition_of("a");
    world.groups.set_partitions(1);
    assert!(world.groups.partition_of("a") == 0 && partitions < PARTITIONS);
}

#[test]
fn settings_change_while_running() {
    let world = World::new();
    let settings = GroupSettings { max_session_timeout_ms: 7_000, ..GroupSettings::default() };
    world.groups.set_settings(settings);
    assert_eq!(world.ask(world.join("g")).error, ErrorCode::InvalidSessionTimeout);
    let settings = GroupSettings { offset_metadata_max: 0, ..GroupSettings::default() };
    world.groups.set_settings(settings);
    let mut request = put("g", "t", 1);
    request.topics[0].partitions[0].metadata = Some(Name::from("x"));
    let reply = world.ask(world.groups.commit(START_MS, request));
    assert_eq!(reply.partitions, [[ErrorCode::OffsetMetadataTooLarge]]);
}

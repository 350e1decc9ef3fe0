//! Partitions on a simulated disk, flushed by hand.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Waker;

use arc_swap::ArcSwap;
use kraft::image::Configs;
use protocol_compat::batch::BatchBuilder;
use protocol_compat::compression::Codec;
use protocol_compat::ids::TopicPartition;
use storage::disk::{Disk, SimConfig, SimDisk, create_dir_durable};
use storage::flush::{FlushConfig, Flusher as Engine, InTurn};
use storage::log::{Log, LogConfig};
use storage::producers::Origin;
use uuid::Uuid;

use super::flush::{Flusher, sync_group};
use super::room::Room;
use super::{Append, Partition, WriteError, Written};
use crate::config::{Config, DynamicConfig, TopicSettings};

const DIR: &str = "data";

fn settings() -> TopicSettings {
    DynamicConfig::of(Arc::new(Config::defaults())).topic(&Configs::default())
}

/// A disk, a partition on it that this node leads, and the engine that flushes.
struct World {
    disk: SimDisk,
    partition: Arc<Partition>,
    engine: Engine,
}

impl World {
    fn new(settings: TopicSettings) -> World {
        let disk = SimDisk::new(SimConfig::seeded(7));
        create_dir_durable(&disk, Path::new(DIR)).expect("a new disk");
        let tp = TopicPartition::new("t", 0);
        let path = Path::new(DIR).join("t-0");
        let topic_id = Uuid::from_u128(5);
        let config = LogConfig::default();
        let log = Log::create(disk.shared(), &path, tp, topic_id, config, 0).expect("a log");
        let settings = Arc::new(ArcSwap::from_pointee(settings));
        let flusher = Arc::new(Flusher::new(Room::new(disk.shared(), DIR.into())));
        let partition = Partition::new(0, 0, log, topic_id, settings, flusher);
        partition.become_leader(1, [0].into());
        let (config, dir) = (FlushConfig::default(), Path::new(DIR));
        let opened =
            Engine::open(disk.shared(), dir, config, Box::new(InTurn::default()), 1, false);
        World { disk, partition: Arc::new(partition), engine: opened.expect("an engine").0 }
    }

    fn append(&self, producer: Option<i32>) -> Result<Written, WriteError> {
        let mut builder = BatchBuilder::new(0, Codec::None);
        if let Some(sequence) = producer {
            builder = builder.producer(9, 0, sequence, false);
        }
        builder.append(1, None, Some(b"value"), &[]);
        let append = Append { now_ms: 1, origin: Origin::Client, waker: Some(Waker::noop()) };
        self.partition.append(&mut builder.build(), 1, &append)
    }

    fn flush(&mut self) {
        sync_group(&mut self.engine, &[Arc::clone(&self.partition)], 1).expect("the disk is fine");
    }

    /// As the directories do it.
    fn delete(&self) -> PathBuf {
        self.partition.take_offline();
        let renamed = self.partition.with_log(|log| log.mark_deleted(&"0".repeat(32)));
        renamed.expect("the disk is fine")
    }
}

#[test]
fn an_acknowledgement_waits_for_the_flush_and_a_repeated_batch_too() {
    let mut world = World::new(settings());
    let written = world.append(Some(0)).expect("appended");
    let again = world.append(Some(0)).expect("a repeated batch");
    assert!(again.duplicate_ms.is_some() && again.end_offset == written.end_offset);
    for acks in [1, -1] {
        assert!(!world.partition.is_acked(acks, written.end_offset));
    }
    assert_eq!(world.partition.high_watermark(), 0);
    world.flush();
    for acks in [1, -1] {
        assert!(world.partition.is_acked(acks, again.end_offset));
    }
    assert_eq!(world.partition.high_watermark(), 1);
    // What is acknowledged survives a power cut.
    let lost = world.disk.crash();
    let path = Path::new(DIR).join("t-0/00000000000000000000.log");
    assert!(lost.stat(&path).expect("a disk").is_some_and(|stat| stat.len > 0));
}

#[test]
fn a_relaxed_topic_acknowledges_at_once_until_its_flush_is_due() {
    let mut world = World::new(TopicSettings { flush_messages: 2, ..settings() });
    let first = world.append(None).expect("appended");
    assert!(world.partition.is_acked(1, first.end_offset));
    let second = world.append(None).expect("appended");
    assert!(!world.partition.is_acked(1, second.end_offset));
    world.flush();
    assert!(world.partition.is_acked(1, second.end_offset));
}

#[test]
fn a_partition_deleted_before_its_first_flush_does_not_stop_the_flusher() {
    let mut world = World::new(settings());
    let written = world.append(None).expect("appended");
    world.delete();
    world.flush();
    assert!(!world.partition.is_acked(1, written.end_offset));
    assert!(matches!(world.append(None), Err(WriteError::Offline)));
}

#[test]
fn a_partition_deleted_while_it_is_flushed_does_not_stop_the_flusher() {
    let mut world = World::new(settings());
    world.append(None).expect("appended");
    let dirty = world.partition.begin_flush().expect("something to flush");
    world.delete();
    world.engine.flush(std::slice::from_ref(&dirty), 1).expect("not a failure");
    world.partition.end_flush(&dirty);
    assert_eq!(world.partition.high_watermark(), 0);
}

#[test]
fn a_disk_that_is_nearly_full_takes_no_records_of_clients() {
    let world = World::new(settings());
    world.append(None).expect("there is room");
    let space = world.disk.space(Path::new(DIR)).expect("a disk");
    world.disk.set_capacity(space.total - space.usable);
    world.partition.flusher.room.look(1);
    let Err(WriteError::Log(error)) = world.append(None) else { panic!("appended") };
    let code = crate::errors::append_code(&error);
    assert_eq!(code, protocol_compat::error::ErrorCode::KafkaStorageError);
    world.disk.set_capacity(1 << 30);
    world.partition.flusher.room.look(1);
    world.append(None).expect("there is room again");
}

#[test]
fn a_closed_partition_takes_nothing_more() {
    let world = World::new(settings());
    let written = world.append(None).expect("appended");
    world.partition.close().expect("the disk is fine");
    assert!(matches!(world.append(None), Err(WriteError::Offline)));
    assert_eq!(world.partition.log_end_offset(), written.end_offset);
}

//! What a start finds: after stops, kills, deletions and failures, on a simulated disk.

use std::path::Path;
use std::sync::Arc;
use std::task::Waker;

use arc_swap::ArcSwap;
use kraft::image::Configs;
use protocol_compat::batch::BatchBuilder;
use protocol_compat::compression::Codec;
use protocol_compat::ids::TopicPartition;
use storage::checkpoint::{RECOVERY_POINTS, read_offsets};
use storage::dirs::{LogDir, Owner};
use storage::disk::{Disk, OpenMode, SimConfig, SimDisk};
use storage::errors::StorageError;
use storage::log::stray_dir_name;
use storage::producers::Origin;
use uuid::Uuid;

use super::{LogDirs, Wanted};
use crate::config::{Config, DynamicConfig};
use crate::partition::{Append, Partition};

const DIR: &str = "data";
const OLD: Uuid = Uuid::from_u128(1 << 70);
const NEW: Uuid = Uuid::from_u128(2 << 70);

fn disk() -> SimDisk {
    SimDisk::new(SimConfig::seeded(3))
}

fn open(disk: &SimDisk) -> LogDirs {
    let id = Uuid::from_u128(99 << 70);
    let owner = Owner { cluster_id: Some("c".into()), node_id: 0, new_directory_id: id };
    let shown = |path: &Path| path.display().to_string();
    let claim = LogDir::claim(disk.shared(), Path::new(DIR), &owner).expect("a free directory");
    LogDirs::open_on(&disk.shared(), vec![claim], shown).expect("a start")
}

fn partition(dirs: &LogDirs, name: &str, id: Uuid) -> Result<Arc<Partition>, StorageError> {
    let settings = DynamicConfig::of(Arc::new(Config::defaults())).topic(&Configs::default());
    let wanted = Wanted {
        tp: TopicPartition::new(name, 0),
        topic_id: id,
        settings: Arc::new(ArcSwap::from_pointee(settings)),
    };
    let partition = dirs.open_partition(0, wanted, 0)?;
    partition.become_leader(1, [0].into());
    Ok(Arc::new(partition))
}

/// Appends records, each a batch, and makes them durable.
fn fill(partition: &Arc<Partition>, records: usize) {
    for _ in 0..records {
        let mut builder = BatchBuilder::new(0, Codec::None);
        builder.append(1, None, Some(b"value"), &[]);
        let append = Append { now_ms: 1, origin: Origin::Client, waker: Some(Waker::noop()) };
        partition.append(&mut builder.build(), 1, &append).expect("appended");
    }
    partition.with_log(storage::log::Log::close).expect("synced");
}

fn recovery_point(disk: &SimDisk, name: &str) -> Option<i64> {
    let path = Path::new(DIR).join(RECOVERY_POINTS);
    read_offsets(disk, &path).expect("a checkpoint").get(&TopicPartition::new(name, 0)).copied()
}

#[test]
fn a_partition_that_is_not_open_keeps_its_recovery_point() {
    let disk = disk();
    let dirs = open(&disk);
    let (good, bad) = (partition(&dirs, "good", OLD), partition(&dirs, "bad", OLD));
    let (good, bad) = (good.expect("made"), bad.expect("made"));
    fill(&good, 3);
    fill(&bad, 5);
    assert!(dirs.checkpoint(&[good, bad]));
    drop(dirs);
    // Damage below what was flushed: it must never pass for a torn tail.
    let disk = disk.kill();
    let path = Path::new(DIR).join("bad-0/00000000000000000000.log");
    let file = disk.open(&path, OpenMode::Write).expect("it is there");
    file.set_len(100).expect("there are bytes");
    for _ in 0..2 {
        let dirs = open(&disk);
        let good = partition(&dirs, "good", OLD).expect("it is fine");
        assert!(matches!(partition(&dirs, "bad", OLD), Err(StorageError::Corrupt { .. })));
        assert!(dirs.checkpoint(&[good]));
        assert_eq!(recovery_point(&disk, "bad"), Some(5));
        // The next start has to look again.
        dirs.leave_clean_markers(1).expect("the disk is fine");
        drop(dirs);
        assert!(open(&disk).dirs()[0].log_dir.clean_stop().is_none());
    }
}

/// A topic is deleted and made again under its name; then the process is killed.
#[track_caller]
fn check_made_again(forgotten: bool) {
    let disk = disk();
    let dirs = open(&disk);
    let old = partition(&dirs, "t", OLD).expect("made");
    fill(&old, 9);
    old.with_log(|log| log.advance_log_start(8)).expect("in range");
    assert!(dirs.checkpoint(&[Arc::clone(&old)]));
    dirs.delete_partition(&old, OLD, 0).expect("deleted");
    if forgotten {
        dirs.forget(&[old.tp.clone()].into()).expect("the disk is fine");
    }
    // A housekeeper that still holds the old one writes nothing of it.
    let new = partition(&dirs, "t", NEW).expect("made again");
    fill(&new, 2);
    assert_eq!(recovery_point(&disk, "t"), None);
    drop((dirs, old, new));
    let disk = disk.kill();
    let found = partition(&open(&disk), "t", NEW).expect("the old offsets do not count");
    assert_eq!((found.log_start_offset(), found.log_end_offset()), (0, 2));
}

#[test]
fn a_topic_made_again_does_not_start_by_the_old_ones_offsets() {
    check_made_again(true);
    check_made_again(false);
}

#[test]
fn a_deleted_partition_leaves_the_checkpoints() {
    let disk = disk();
    let dirs = open(&disk);
    let old = partition(&dirs, "t", OLD).expect("made");
    fill(&old, 9);
    dirs.delete_partition(&old, OLD, 0).expect("deleted");
    assert!(dirs.checkpoint(&[old]));
    assert_eq!(recovery_point(&disk, "t"), None);
}

#[test]
fn a_directory_of_an_earlier_topic_makes_way_and_is_kept() {
    let disk = disk();
    let dirs = open(&disk);
    let old = partition(&dirs, "t", OLD).expect("made");
    fill(&old, 9);
    assert!(dirs.checkpoint(&[old]));
    drop(dirs);
    let disk = disk.kill();
    // Nobody has to be able to open it.
    let path = Path::new(DIR).join("t-0/00000000000000000000.log");
    disk.open(&path, OpenMode::Write).and_then(|file| file.set_len(9)).expect("it is there");
    let dirs = open(&disk);
    let is_known = |tp: &TopicPartition| &*tp.topic != "t";
    let tp = TopicPartition::new("t", 0);
    assert_eq!(dirs.strays(is_known), std::slice::from_ref(&tp));
    let new = partition(&dirs, "t", NEW).expect("made");
    assert_eq!(new.log_end_offset(), 0);
    assert!(dirs.deleted.lock().is_empty());
    let kept = dirs.dirs[0].log_dir.path().join(stray_dir_name(&tp, &NEW.simple().to_string()));
    assert!(disk.stat(&kept.join("00000000000000000000.log")).expect("a disk").is_some());
}

#[test]
fn a_partition_that_is_not_open_can_be_deleted() {
    let disk = disk();
    let dirs = open(&disk);
    drop(partition(&dirs, "t", OLD).expect("made"));
    let tp = TopicPartition::new("t", 0);
    assert!(dirs.delete_unopened(&tp, OLD, 0, 0).expect("the disk is fine"));
    assert!(!dirs.delete_unopened(&tp, OLD, 0, 0).expect("there is none"));
    assert!(disk.stat(&Path::new(DIR).join("t-0")).expect("a disk").is_none());
    dirs.purge_deleted(1, false);
    assert!(open(&disk.kill()).strays(|_| false).is_empty());
}

#[test]
fn a_full_disk_leaves_no_half_partition() {
    let disk = disk();
    let dirs = open(&disk);
    disk.set_capacity(0);
    assert!(matches!(partition(&dirs, "t", NEW), Err(StorageError::Full { .. })));
    disk.set_capacity(1 << 30);
    let made = partition(&dirs, "t", NEW).expect("there is room");
    assert_eq!(made.with_log(|log| log.topic_id()), Some(NEW));
}

//! The flusher under the real log: crashes at random, replay, recovery; what was flushed is read
//! back byte for byte, and damage below the recovery point is never found.

use std::path::{Path, PathBuf};

use protocol_compat::batch::BatchBuilder;
use protocol_compat::compression::Codec;
use protocol_compat::ids::TopicPartition;
use uuid::Uuid;

use super::crash_tests::seeds;
use super::{FlushConfig, Flusher, InTurn};
use crate::disk::{SimConfig, SimDisk, create_dir_durable};
use crate::log::{Log, LogConfig, LogStart};
use crate::producers::Origin;

const DIR: &str = "data";

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A log and what it must hold.
struct Kept {
    n: u64,
    log: Log,
    epoch: i32,
    recovery_point: i64,
    flushed: i64,
    /// Base offset and bytes of every batch, flushed or not.
    batches: Vec<(i64, Vec<u8>)>,
}

fn tp(n: u64) -> TopicPartition {
    TopicPartition::new("t", n as i32)
}

fn dir(n: u64) -> PathBuf {
    Path::new(DIR).join(tp(n).to_string())
}

fn config() -> LogConfig {
    LogConfig { segment_bytes: 4_000, ..LogConfig::default() }
}

impl Kept {
    fn create(disk: &SimDisk, n: u64) -> Kept {
        let id = Uuid::from_u128(u128::from(n) + 1);
        let log = Log::create(disk.shared(), &dir(n), tp(n), id, config(), 0).unwrap();
        Kept { n, log, epoch: 0, recovery_point: 0, flushed: 0, batches: Vec::new() }
    }

    /// `false`: the disk failed.
    fn append(&mut self, size: usize) -> bool {
        let mut builder = BatchBuilder::new(0, Codec::None);
        builder.append(1, None, Some(&vec![7; size]), &[]);
        let mut bytes = builder.build();
        let appended = self.log.append(&mut bytes, self.epoch, 1, Origin::Coordinator);
        let Ok(appended) = appended else { return false };
        self.batches.push((appended.base_offset, bytes.to_vec()));
        true
    }

    fn truncate(&mut self, back: i64) -> bool {
        let offset = (self.log.log_end_offset() - back).max(0);
        self.recovery_point = self.recovery_point.min(offset);
        self.flushed = self.flushed.min(offset);
        self.batches.retain(|(base, _)| *base < offset);
        self.epoch += 1;
        self.log.truncate_to(offset, 1).is_ok()
    }

    fn read(&self, offset: i64, len: usize) -> Vec<u8> {
        let slice = self.log.view().read(offset, len, i64::MAX, true).unwrap().unwrap();
        assert_eq!(slice.base_offset, offset);
        let mut bytes = vec![0; len];
        assert_eq!(slice.file.read_at(&mut bytes, slice.position).unwrap(), len);
        bytes
    }

    fn reopen(mut self, disk: &SimDisk, context: &str) -> Kept {
        let start =
            LogStart { log_start_offset: 0, recovery_point: self.recovery_point, clean: false };
        let opened = Log::open(disk.shared(), &dir(self.n), tp(self.n), config(), start, 1);
        self.log = opened.unwrap_or_else(|error| panic!("{context}: {error}")).0;
        let end = self.log.log_end_offset();
        assert!(end >= self.flushed, "{context}: ends at {end}, flushed {}", self.flushed);
        for (offset, bytes) in self.batches.iter().filter(|(base, _)| *base < self.flushed) {
            assert_eq!(&self.read(*offset, bytes.len()), bytes, "{context}: offset {offset}");
        }
        // What else is there counts from now on; the next leader has another epoch.
        self.batches.retain(|(base, _)| *base < self.flushed);
        self.epoch += 1;
        assert!(self.truncate(end - self.flushed));
        self
    }
}

/// Appends, cuts and flushes until the power fails.
fn work(disk: &SimDisk, logs: &mut [Kept], flusher: &mut Flusher, random: &mut Random) {
    disk.cut_power_after(random.below(300));
    for now_ms in 0..100 {
        for kept in logs.iter_mut() {
            let done = match random.below(40) {
                0 => kept.truncate(random.below(4) as i64),
                1..25 => kept.append(random.below(600) as usize),
                _ => true,
            };
            if !done {
                return;
            }
        }
        let mut group = Vec::new();
        let taken = logs.iter_mut().filter_map(|kept| Some((kept.log.take_dirty()?, kept)));
        let mut taken: Vec<_> = taken.collect();
        group.extend(taken.iter().map(|(dirty, _)| dirty.clone()));
        if flusher.flush(&group, now_ms).is_err() {
            return;
        }
        for (dirty, kept) in &mut taken {
            assert!(dirty.is_current());
            kept.log.flushed(dirty.end_offset);
            kept.flushed = dirty.end_offset;
            if random.below(10) == 0 {
                kept.recovery_point = kept.flushed;
            }
        }
        if flusher.tick(now_ms).is_err() {
            return;
        }
    }
}

#[test]
fn the_real_log_keeps_what_was_flushed() {
    let (mut journalled, mut restored) = (0, 0);
    for seed in seeds(60) {
        let mut disk = SimDisk::new(SimConfig::seeded(seed));
        let mut random = Random(seed);
        create_dir_durable(&disk, Path::new(DIR)).unwrap();
        let flush_config = FlushConfig {
            journal_bytes: 64 << 10,
            journal_step_bytes: 8 << 10,
            direct_files: 0,
            settle_after_ms: 20,
            ..FlushConfig::default()
        };
        let open = |disk: &SimDisk| {
            let syncer = Box::new(InTurn::default());
            let (dir, secret) = (Path::new(DIR), u128::from(seed));
            Flusher::open(disk.shared(), dir, flush_config, syncer, secret, false).unwrap()
        };
        let (mut flusher, _) = open(&disk);
        let mut logs: Vec<Kept> = (0..4).map(|n| Kept::create(&disk, n)).collect();
        for round in 0..4 {
            work(&disk, &mut logs, &mut flusher, &mut random);
            journalled += flusher.stats().journalled_groups;
            disk = disk.crash();
            let (next, replayed) = open(&disk);
            flusher = next;
            restored += replayed.restored.len();
            let reopen = |kept: Kept| {
                let context = format!("seed {seed}, round {round}, log {}", kept.n);
                kept.reopen(&disk, &context)
            };
            logs = logs.into_iter().map(reopen).collect();
        }
    }
    assert!(journalled > 500 && restored > 50, "{journalled} {restored}");
}

//! What the tests of the log have in common: a log on a simulated disk, and batches to put in it.

mod append;
mod crash;
mod golden;
mod model;
mod read;
mod recover;
mod retain;
mod times;
mod truncate;

use std::io;
use std::path::PathBuf;

use protocol_compat::batch::{BatchBuilder, BatchHeader, batches, crc_matches};
use protocol_compat::compression::Codec;

use super::*;
use crate::disk::{Disk, OpenMode, SimConfig, SimDisk, parent};
use crate::errors::{AppendError, ReadError};
use crate::flush::Dirty;
use crate::producers::Origin;

const DIR: &str = "/data/topic-0";
const NOW: i64 = 1_700_000_000_000;
const HEX: &str = "0123456789abcdef0123456789abcdef";

fn tp() -> TopicPartition {
    TopicPartition::new("topic", 0)
}

/// Small segments and a dense index.
fn small() -> LogConfig {
    LogConfig { segment_bytes: 1000, index_interval_bytes: 150, ..LogConfig::default() }
}

/// A log on a disk that can be crashed, and what its log directory's checkpoints hold.
struct Rig {
    disk: SimDisk,
    log: Log,
    start: LogStart,
    now_ms: i64,
    report: Recovered,
}

impl Rig {
    fn new(config: LogConfig) -> Rig {
        Rig::on(SimDisk::new(SimConfig::seeded(1)), config)
    }

    fn on(disk: SimDisk, config: LogConfig) -> Rig {
        disk.set_now(NOW);
        crate::disk::create_dir_durable(&disk, parent(DIR.as_ref())).expect("a log directory");
        let id = Uuid::from_u128(7);
        let log = Log::create(disk.shared(), DIR.as_ref(), tp(), id, config, NOW);
        let log = log.expect("a new log");
        Rig { disk, log, start: LogStart::default(), now_ms: NOW, report: Recovered::default() }
    }

    fn try_append(&mut self, mut batch: Vec<u8>, origin: Origin) -> Result<Appended, AppendError> {
        self.log.append(&mut batch, 0, self.now_ms, origin)
    }

    /// Appends; the base offset it got.
    #[track_caller]
    fn append(&mut self, batch: Vec<u8>) -> i64 {
        self.try_append(batch, Origin::Verified).expect("an append").base_offset
    }

    /// Appends `count` batches of one record and 100 bytes.
    fn fill(&mut self, count: usize) {
        for _ in 0..count {
            self.append(sized(100, self.now_ms));
        }
    }

    /// One round of a flusher.
    fn flush(&mut self) {
        while let Some(dirty) = self.log.take_dirty() {
            sync(&self.disk, &dirty).expect("a sync");
            self.log.flushed(dirty.end_offset);
        }
    }

    /// What a broker does now and then.
    fn checkpoint(&mut self) {
        self.log.checkpoint().expect("a checkpoint");
        self.flush();
        self.start.recovery_point = self.log.flushed_end();
        self.start.log_start_offset = self.log.log_start_offset();
    }

    /// A clean stop and a start.
    fn restart(&mut self) {
        self.log.close().expect("a close");
        self.crash();
        self.start = LogStart {
            log_start_offset: self.log.log_start_offset(),
            recovery_point: self.log.log_end_offset(),
            clean: true,
        };
        self.open().expect("a log");
        self.start.clean = false;
    }

    fn open(&mut self) -> Result<(), StorageError> {
        let config = self.log.config().clone();
        let opened =
            Log::open(self.disk.shared(), DIR.as_ref(), tp(), config, self.start, self.now_ms);
        (self.log, self.report) = opened?;
        Ok(())
    }

    /// The process dies.
    fn kill(&mut self) {
        self.disk = self.disk.kill();
    }

    /// The power fails.
    fn crash(&mut self) {
        self.disk = self.disk.crash();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.log.dir().join(name)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        let path = self.path(name);
        crate::disk::read_to_vec(&self.disk, &path, 1 << 30).expect("a file")
    }

    fn write(&self, name: &str, bytes: &[u8], at: u64) {
        let file = self.disk.open(&self.path(name), OpenMode::Create).expect("a file");
        file.write_at(&[bytes], at).expect("a write");
    }

    fn set_len(&self, name: &str, len: u64) {
        let file = self.disk.open(&self.path(name), OpenMode::Write).expect("a file");
        file.set_len(len).expect("a cut");
    }

    /// Names in the partition's directory, sorted.
    fn names(&self) -> Vec<String> {
        let names = self.disk.list(self.log.dir()).expect("a directory");
        names.into_iter().map(|entry| entry.name).collect()
    }

    fn bases(&self) -> Vec<i64> {
        self.log.view().segments().iter().map(|segment| segment.base_offset).collect()
    }

    /// Everything from `offset` up to the log end: base offsets and sizes of the batches, all of
    /// which must be sound.
    #[track_caller]
    fn read_from(&self, offset: i64) -> Vec<(i64, usize)> {
        read_all(&self.log.view(), offset)
            .iter()
            .map(|(header, batch)| (header.base_offset, batch.len()))
            .collect()
    }
}

fn sync(disk: &dyn Disk, dirty: &Dirty) -> io::Result<()> {
    dirty.files.iter().try_for_each(|file| file.file.sync_data())?;
    dirty.dirs.iter().try_for_each(|dir| disk.sync_dir(dir))
}

/// The batches of a log from an offset on, as a consumer would fetch them.
#[track_caller]
fn read_all(view: &LogView, offset: i64) -> Vec<(BatchHeader, Vec<u8>)> {
    let (mut all, mut at) = (Vec::new(), offset);
    let end = view.log_end_offset();
    while let Some(slice) = view.read(at, 300, end, true).expect("a read") {
        let mut bytes = vec![0; slice.len];
        let read = slice.file.read_at(&mut bytes, slice.position).expect("a read");
        assert_eq!(read, slice.len, "the slice is in the file");
        assert!(slice.len >= slice.first_batch);
        let before = at;
        for batch in batches(&bytes) {
            let (header, batch) = batch.expect("a batch");
            assert!(crc_matches(batch));
            assert!(header.next_offset() > at);
            all.push((header, batch.to_vec()));
            at = header.next_offset();
        }
        assert!(at > before, "a slice holds a whole batch");
    }
    all
}

/// A batch of one record at the time given, exactly `size` bytes long.
fn sized(size: usize, timestamp: i64) -> Vec<u8> {
    // Header 61; record: size, attributes, time, offset, key, value size, value, headers.
    let value = vec![b'x'; size - 61 - 7];
    let mut builder = BatchBuilder::new(0, Codec::None);
    builder.append(timestamp, None, Some(&value), &[]);
    let batch = builder.build().to_vec();
    let over = batch.len() - size;
    if over == 0 {
        return batch;
    }
    let mut builder = BatchBuilder::new(0, Codec::None);
    builder.append(timestamp, None, Some(&value[over..]), &[]);
    let batch = builder.build().to_vec();
    assert_eq!(batch.len(), size);
    batch
}

/// A batch of records with these times.
fn timed(times: &[i64], codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0, codec);
    times.iter().for_each(|time| builder.append(*time, None, Some(b"v"), &[]));
    builder.build().to_vec()
}

/// A batch of an idempotent producer.
fn of_producer(id: i64, epoch: i16, sequence: i32, records: usize) -> Vec<u8> {
    in_txn(id, epoch, sequence, records, false)
}

fn in_txn(id: i64, epoch: i16, sequence: i32, records: usize, transactional: bool) -> Vec<u8> {
    let builder = BatchBuilder::new(0, Codec::None);
    let mut builder = builder.producer(id, epoch, sequence, transactional);
    (0..records).for_each(|_| builder.append(NOW, Some(b"k"), Some(b"v"), &[]));
    builder.build().to_vec()
}

fn marker(id: i64, epoch: i16, abort: bool, coordinator_epoch: i32) -> Vec<u8> {
    use protocol_compat::batch::{ControlType, control_key, end_txn_value};
    let kind = if abort { ControlType::Abort } else { ControlType::Commit };
    let mut builder = BatchBuilder::new(0, Codec::None).producer(id, epoch, -1, true).control();
    let value = end_txn_value(coordinator_epoch);
    builder.append(NOW, Some(&control_key(kind)), Some(&value), &[]);
    builder.build().to_vec()
}

//! The log against a list of batches: any course of appends, flushes, rolls, cuts, deletions, stops
//! and crashes leaves what the list says.

use proptest::prelude::*;
use protocol_compat::batch::{assign, records};

use super::*;
use crate::producers::{Marker, Producers};

/// A batch as it was appended.
#[derive(Clone, Debug)]
struct Stored {
    header: BatchHeader,
    bytes: Vec<u8>,
    marker: Option<Marker>,
}

/// What the log must hold.
#[derive(Clone, Debug, Default)]
struct Model {
    /// From offset 0 on, also what was deleted.
    batches: Vec<Stored>,
    log_start: i64,
    /// Acknowledged: nothing below may be lost.
    flushed: i64,
    epoch: i32,
    next_sequence: [i32; 3],
    in_txn: [bool; 3],
}

impl Model {
    fn end(&self) -> i64 {
        self.batches.last().map_or(0, |last| last.header.next_offset())
    }

    /// The offset where a batch begins, a share of the way through the log.
    fn border(&self, share: u8) -> i64 {
        let at = self.batches.len() * usize::from(share) / 256;
        self.batches.get(at).map_or(self.end(), |batch| batch.header.base_offset)
    }

    fn push(&mut self, mut bytes: Vec<u8>, marker: Option<Marker>) {
        assign(&mut bytes, self.end(), self.epoch);
        let header = BatchHeader::parse(&bytes).expect("a header");
        self.batches.push(Stored { header, bytes, marker });
    }

    fn cut(&mut self, end: i64) {
        self.batches.retain(|batch| batch.header.next_offset() <= end);
        self.flushed = self.flushed.min(end);
        self.log_start = self.log_start.min(end);
        self.settle();
    }

    /// What producers do next follows from what is in the log.
    fn settle(&mut self) {
        let producers = self.producers();
        let open = producers.open_transactions();
        for id in 0..3 {
            let known = producers.get(id as i64);
            self.next_sequence[id] = known.map_or(0, |known| known.last_sequence() + 1);
            self.in_txn[id] = open.contains(&(id as i64));
        }
    }

    fn producers(&self) -> Producers {
        let mut producers = Producers::default();
        for batch in &self.batches {
            producers.note(&batch.header, batch.marker);
        }
        producers
    }

    fn aborted(&self) -> Vec<AbortedTxn> {
        let mut producers = Producers::default();
        let ended = self.batches.iter().filter_map(|b| producers.note(&b.header, b.marker));
        ended.filter(|txn| txn.aborted).map(|txn| AbortedTxn::of(&txn)).collect()
    }

    /// The first record at or above the log start as late as `time`.
    fn offset_at(&self, time: i64) -> Option<i64> {
        for batch in &self.batches {
            let mut scratch = Vec::new();
            let (header, walk) = records(&batch.bytes, &mut scratch, 1 << 20).expect("records");
            for record in walk.map(|record| record.expect("a record")) {
                let offset = header.base_offset + i64::from(record.offset_delta);
                if offset >= self.log_start && record.timestamp(&header) >= time {
                    return Some(offset);
                }
            }
        }
        None
    }

    /// Compares everything that can be seen.
    #[track_caller]
    fn check(&self, log: &Log) {
        let view = log.view();
        assert_eq!(view.log_end_offset(), self.end());
        assert_eq!(view.log_start_offset(), self.log_start);
        assert!(log.flushed_end() <= self.end());
        let read = read_all(&view, self.log_start);
        let live = |batch: &&Stored| batch.header.next_offset() > self.log_start;
        let want: Vec<&Stored> = self.batches.iter().filter(live).collect();
        assert_eq!(read.len(), want.len());
        for ((header, bytes), want) in read.iter().zip(&want) {
            assert_eq!(bytes, &want.bytes, "batch at offset {}", header.base_offset);
            let epoch = log.leader_epochs().epoch_of(header.base_offset.max(self.log_start));
            assert_eq!(epoch, Some(want.header.partition_leader_epoch));
        }
        for offset in (self.log_start..self.end()).step_by(7) {
            let slice = view.read(offset, 1, self.end(), true).expect("a read").expect("a slice");
            assert!(slice.base_offset <= offset);
        }
        assert_eq!(log.producers().encode(), self.producers().encode());
        let aborted = view.aborted_transactions(self.log_start, i64::MAX).expect("a list");
        let mut want = self.aborted();
        want.retain(|txn| txn.last_offset >= self.log_start);
        assert_eq!(aborted, want);
        for time in (0..60).step_by(9) {
            let found = view.offset_for_timestamp(NOW + time, i64::MAX).expect("a look-up");
            assert_eq!(found.map(|found| found.offset), self.offset_at(NOW + time), "{time}");
        }
        let bases: Vec<i64> = view.segments().iter().map(|s| s.base_offset).collect();
        assert!(bases.is_sorted() && bases.first().is_some_and(|first| *first <= self.log_start));
    }
}

#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A batch of so many records.
    Plain {
        records: u8,
        late: u8,
    },
    /// A batch of a producer, within a transaction or not.
    Produce {
        id: u8,
        txn: bool,
    },
    /// A marker for a producer's transaction.
    End {
        id: u8,
        abort: bool,
    },
    NewEpoch,
    /// Hands a group to the flusher.
    Take,
    /// The flusher ends its oldest group.
    Sync,
    Flush,
    Checkpoint,
    Truncate(u8),
    AdvanceStart(u8),
    Retain {
        bytes: u16,
    },
    Restart,
    Kill,
    Crash,
    /// The power fails in so many calls.
    CutPower(u8),
}

/// A log, what it should hold, and a flusher.
pub(super) struct Course {
    pub(super) rig: Rig,
    model: Model,
    groups: VecDeque<Dirty>,
    /// The batch under way when the power failed.
    maybe: Option<(Vec<u8>, Option<Marker>)>,
    pub(super) crashes: usize,
}

impl Course {
    pub(super) fn new(seed: u64) -> Course {
        let config = LogConfig { retention_ms: -1, ..small() };
        let rig = Rig::on(SimDisk::new(SimConfig::seeded(seed)), config);
        Course { rig, model: Model::default(), groups: VecDeque::new(), maybe: None, crashes: 0 }
    }

    #[track_caller]
    pub(super) fn check(&self) {
        self.model.check(&self.rig.log);
    }

    /// Does one thing and compares.
    #[track_caller]
    fn step(&mut self, op: &Op) {
        self.step_quickly(op);
        self.check();
    }

    /// Does one thing; should the power fail, goes through the crash, starts again and compares.
    #[track_caller]
    pub(super) fn step_quickly(&mut self, op: &Op) {
        let done = self.try_step(op);
        if done.is_err() {
            assert!(self.rig.disk.power_is_off(), "{op:?}: {done:?}");
        }
        if self.rig.disk.power_is_off() {
            self.restart_after_crash();
            self.check();
        }
    }

    fn try_step(&mut self, op: &Op) -> Result<(), Box<dyn std::error::Error>> {
        match *op {
            Op::Plain { records, late } => {
                let times = vec![NOW + i64::from(late % 64); usize::from(records % 4) + 1];
                self.append(timed(&times, Codec::None), None, Origin::Client)?;
            }
            Op::Produce { id, txn } => {
                let id = usize::from(id % 3);
                let txn = txn || self.model.in_txn[id];
                let batch = in_txn(id as i64, 0, self.model.next_sequence[id], 2, txn);
                self.append(batch, None, Origin::Verified)?;
            }
            Op::End { id, abort } => {
                let id = i64::from(id % 3);
                let said = Marker { abort, coordinator_epoch: 0 };
                self.append(marker(id, 0, abort, 0), Some(said), Origin::Coordinator)?;
            }
            Op::NewEpoch => {
                self.model.epoch += 2;
                self.rig.log.assign_epoch(self.model.epoch);
            }
            Op::Take => self.groups.extend(self.rig.log.take_dirty()),
            Op::Sync => self.sync_oldest()?,
            Op::Flush => self.flush()?,
            Op::Checkpoint => {
                self.rig.log.checkpoint()?;
                self.flush()?;
                self.rig.start.recovery_point = self.rig.log.flushed_end();
                self.rig.start.log_start_offset = self.model.log_start;
            }
            Op::Truncate(share) => self.truncate(self.model.border(share))?,
            Op::AdvanceStart(share) => {
                // Nobody deletes what is above the high watermark.
                let offset = self.model.border(share).min(self.model.flushed);
                self.rig.log.advance_log_start(offset)?;
                self.model.log_start = self.model.log_start.max(offset);
                self.rig.start.log_start_offset = self.model.log_start;
            }
            Op::Retain { bytes } => {
                let mut config = self.rig.log.config().clone();
                config.retention_bytes = i64::from(bytes);
                self.rig.log.set_config(config);
                let kept = self.rig.log.retain(self.model.flushed, NOW)?;
                self.rig.log.purge_deleted(NOW + 60_000);
                assert!(kept.log_start_offset <= self.model.flushed.max(self.model.log_start));
                self.model.log_start = kept.log_start_offset;
            }
            Op::Restart => {
                self.rig.log.close()?;
                self.groups.clear();
                self.model.flushed = self.model.end();
                self.rig.start = LogStart {
                    log_start_offset: self.model.log_start,
                    recovery_point: self.model.end(),
                    clean: true,
                };
                // A clean stop needs nothing that is not on the disk.
                self.rig.crash();
                self.rig.open()?;
                assert!(self.rig.report.clean);
                self.rig.start.clean = false;
            }
            Op::Kill => {
                self.rig.kill();
                self.groups.clear();
                self.rig.open()?;
                assert_eq!(self.rig.report.cut, None);
                self.adopt_start();
            }
            Op::Crash => self.restart_after_crash(),
            Op::CutPower(calls) => self.rig.disk.cut_power_after(u64::from(calls)),
        }
        Ok(())
    }

    fn append(
        &mut self,
        batch: Vec<u8>,
        marker: Option<Marker>,
        origin: Origin,
    ) -> Result<(), AppendError> {
        self.maybe = Some((batch.clone(), marker));
        let mut buffer = batch.clone();
        let appended = self.rig.log.append(&mut buffer, self.model.epoch, NOW, origin)?;
        assert_eq!(appended.base_offset, self.model.end());
        self.maybe = None;
        self.model.push(batch, marker);
        self.model.settle();
        Ok(())
    }

    fn sync_oldest(&mut self) -> io::Result<()> {
        if let Some(dirty) = self.groups.pop_front() {
            sync(&self.rig.disk, &dirty)?;
            if dirty.is_current() {
                self.rig.log.flushed(dirty.end_offset);
                self.model.flushed = self.model.flushed.max(dirty.end_offset);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        loop {
            self.groups.extend(self.rig.log.take_dirty());
            if self.groups.is_empty() {
                return Ok(());
            }
            while !self.groups.is_empty() {
                self.sync_oldest()?;
            }
        }
    }

    fn truncate(&mut self, end: i64) -> Result<(), StorageError> {
        if end < self.model.log_start {
            return Ok(());
        }
        self.rig.start.recovery_point = self.rig.start.recovery_point.min(end);
        self.model.flushed = self.model.flushed.min(end);
        self.rig.log.truncate_to(end, NOW)?;
        self.model.cut(end);
        Ok(())
    }

    #[track_caller]
    fn restart_after_crash(&mut self) {
        self.crashes += 1;
        self.rig.crash();
        self.groups.clear();
        self.rig.open().expect("a log");
        if let Some((batch, marker)) = self.maybe.take() {
            self.model.push(batch, marker);
        }
        let end = self.rig.log.log_end_offset();
        let ends = |batch: &Stored| batch.header.next_offset() == end;
        assert!(end >= self.model.flushed, "acknowledged and lost: {} {end}", self.model.flushed);
        assert!(end == 0 || self.model.batches.iter().any(ends) || end == self.model.log_start);
        self.model.cut(end);
        self.adopt_start();
    }

    /// A log start that nobody wrote down is that of the first segment.
    fn adopt_start(&mut self) {
        let start = self.rig.log.log_start_offset();
        assert!(start >= self.rig.start.log_start_offset);
        self.model.log_start = start;
    }
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => (any::<u8>(), any::<u8>()).prop_map(|(records, late)| Op::Plain { records, late }),
        6 => (any::<u8>(), any::<bool>()).prop_map(|(id, txn)| Op::Produce { id, txn }),
        3 => (any::<u8>(), any::<bool>()).prop_map(|(id, abort)| Op::End { id, abort }),
        1 => Just(Op::NewEpoch),
        2 => Just(Op::Take),
        2 => Just(Op::Sync),
        2 => Just(Op::Flush),
        1 => Just(Op::Checkpoint),
        1 => any::<u8>().prop_map(Op::Truncate),
        1 => any::<u8>().prop_map(Op::AdvanceStart),
        1 => (0..6000u16).prop_map(|bytes| Op::Retain { bytes }),
        1 => Just(Op::Restart),
        1 => Just(Op::Kill),
        1 => Just(Op::Crash),
        2 => any::<u8>().prop_map(Op::CutPower),
    ];
    prop::collection::vec(op, 1..120)
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_course(seed in any::<u64>(), ops in ops()) {
        let mut course = Course::new(seed);
        ops.iter().for_each(|op| course.step(op));
    }
}

/// Leader epochs read off a segment that begins in an older epoch than is missing.
#[test]
fn a_course_whose_epoch_file_is_old() {
    let mut course = Course::new(0);
    let ops = [
        Op::Plain { records: 0, late: 0 },
        Op::Plain { records: 9, late: 106 },
        Op::Restart,
        Op::Plain { records: 76, late: 111 },
        Op::End { id: 143, abort: false },
        Op::Plain { records: 124, late: 241 },
        Op::End { id: 190, abort: true },
        Op::Produce { id: 147, txn: false },
        Op::End { id: 243, abort: true },
        Op::End { id: 128, abort: false },
        Op::Produce { id: 208, txn: true },
        Op::Produce { id: 129, txn: false },
        Op::Produce { id: 106, txn: false },
        Op::Plain { records: 203, late: 109 },
        Op::Produce { id: 240, txn: false },
        Op::Plain { records: 20, late: 172 },
        Op::End { id: 19, abort: false },
        Op::End { id: 215, abort: false },
        Op::End { id: 81, abort: true },
        Op::End { id: 62, abort: true },
        Op::Produce { id: 232, txn: true },
        Op::NewEpoch,
        Op::Produce { id: 16, txn: false },
        Op::End { id: 236, abort: false },
        Op::Produce { id: 231, txn: true },
        Op::Produce { id: 107, txn: false },
        Op::Produce { id: 83, txn: true },
        Op::Plain { records: 47, late: 90 },
        Op::Produce { id: 148, txn: true },
        Op::Plain { records: 70, late: 107 },
        Op::Plain { records: 181, late: 188 },
        Op::Plain { records: 168, late: 235 },
        Op::Checkpoint,
        Op::End { id: 12, abort: false },
        Op::Plain { records: 117, late: 196 },
        Op::Plain { records: 33, late: 60 },
        Op::Produce { id: 68, txn: false },
        Op::Plain { records: 36, late: 139 },
        Op::Produce { id: 48, txn: false },
        Op::Produce { id: 71, txn: true },
        Op::Truncate(161),
        Op::CutPower(32),
        Op::Produce { id: 238, txn: false },
        Op::Produce { id: 217, txn: false },
        Op::Produce { id: 217, txn: true },
        Op::NewEpoch,
        Op::Produce { id: 49, txn: false },
        Op::Restart,
    ];
    ops.iter().for_each(|op| course.step(op));
}

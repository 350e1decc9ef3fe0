//! Idempotent and transactional producers as one partition knows them.
//!
//! Owns sequences, epochs, the window of duplicates, open transactions and what follows from them
//! (the last stable offset). Pure: a batch is checked first and noted once it is in the log. The
//! bytes of a snapshot are `producers/snapshot.rs`; when one is written is `log/`'s business.
//! Rules: Kafka `ProducerStateManager`, `ProducerAppendInfo`, `ProducerStateEntry`.

mod snapshot;

use std::collections::{BTreeMap, BTreeSet};

use protocol_compat::batch::{BatchHeader, add_sequence};

use crate::errors::AppendError;

pub(crate) use snapshot::SNAPSHOT_MAX;
pub use snapshot::SnapshotError;

/// So many of a producer's last batches are recognised when they come again.
pub const WINDOW: usize = 5;

const NO_SEQUENCE: i32 = -1;
const NO_EPOCH: i16 = -1;

/// Who asks for an append, and so which checks it goes through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A Produce request: duplicates, epoch, sequence; a transactional batch needs an open
    /// transaction on this partition.
    Client,
    /// A Produce request whose transaction the coordinator has just confirmed for this partition
    /// (KIP-890): it may open the transaction here.
    Verified,
    /// A coordinator: offset commits, markers. Epochs are checked, sequences are not.
    Coordinator,
}

/// One batch of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchMark {
    pub last_sequence: i32,
    pub last_offset: i64,
    /// Last offset less first offset.
    pub offset_delta: i32,
    pub timestamp_ms: i64,
}

impl BatchMark {
    const NONE: BatchMark = BatchMark {
        last_sequence: NO_SEQUENCE,
        last_offset: -1,
        offset_delta: 0,
        timestamp_ms: -1,
    };

    fn of(header: &BatchHeader) -> BatchMark {
        BatchMark {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp_ms: header.max_timestamp,
        }
    }

    pub fn first_offset(&self) -> i64 {
        self.last_offset - i64::from(self.offset_delta)
    }

    fn first_sequence(&self) -> i32 {
        match self.last_sequence {
            NO_SEQUENCE => NO_SEQUENCE,
            last => add_sequence(last, self.offset_delta.wrapping_neg()),
        }
    }
}

/// What is known of one producer id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Producer {
    pub epoch: i16,
    /// Of the last marker; -1 before the first.
    pub coordinator_epoch: i32,
    pub last_timestamp_ms: i64,
    /// Offset of the first record of the open transaction.
    pub txn_first_offset: Option<i64>,
    /// Oldest first; the first `len` are in use.
    marks: [BatchMark; WINDOW],
    len: u8,
}

impl Producer {
    fn new() -> Producer {
        Producer {
            epoch: NO_EPOCH,
            coordinator_epoch: -1,
            last_timestamp_ms: -1,
            txn_first_offset: None,
            marks: [BatchMark::NONE; WINDOW],
            len: 0,
        }
    }

    /// The last batches of the current epoch, oldest first.
    pub fn marks(&self) -> &[BatchMark] {
        &self.marks[..usize::from(self.len)]
    }

    pub fn last_sequence(&self) -> i32 {
        self.marks().last().map_or(NO_SEQUENCE, |mark| mark.last_sequence)
    }

    fn duplicate(&self, header: &BatchHeader) -> Option<BatchMark> {
        if header.producer_epoch != self.epoch {
            return None;
        }
        let sequences = (header.base_sequence, header.last_sequence());
        let same = |mark: &&BatchMark| (mark.first_sequence(), mark.last_sequence) == sequences;
        self.marks().iter().find(same).copied()
    }

    fn set_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.forget_marks();
        }
    }

    fn forget_marks(&mut self) {
        self.marks = [BatchMark::NONE; WINDOW];
        self.len = 0;
    }

    fn push(&mut self, mark: BatchMark) {
        if usize::from(self.len) == WINDOW {
            self.marks.rotate_left(1);
            self.marks[WINDOW - 1] = mark;
        } else {
            self.marks[usize::from(self.len)] = mark;
            self.len += 1;
        }
    }
}

/// What a transaction marker says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marker {
    pub abort: bool,
    pub coordinator_epoch: i32,
}

/// A transaction that its marker has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompletedTxn {
    pub producer_id: i64,
    pub first_offset: i64,
    /// Of the marker.
    pub last_offset: i64,
    pub aborted: bool,
    /// The last stable offset right after the marker, before the high watermark bounds it.
    pub last_stable_offset: i64,
}

/// The producers of one partition.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Producers {
    by_id: BTreeMap<i64, Producer>,
    /// Open transactions by first offset.
    open: BTreeMap<i64, i64>,
    /// Ended transactions whose marker the high watermark has not passed: first offset to last.
    unreplicated: BTreeMap<i64, i64>,
}

impl Producers {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn get(&self, producer_id: i64) -> Option<&Producer> {
        self.by_id.get(&producer_id)
    }

    /// By producer id.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &Producer)> {
        self.by_id.iter().map(|(id, producer)| (*id, producer))
    }

    /// Whether the batch may be appended; `Some` when it is one of the last five come again, which
    /// is then answered like the first time and not appended.
    ///
    /// # Errors
    /// The refusals of Kafka's `ProducerAppendInfo.appendDataBatch`, in its order.
    pub fn check(
        &self,
        header: &BatchHeader,
        origin: Origin,
    ) -> Result<Option<BatchMark>, AppendError> {
        if !header.has_producer_id() {
            return Ok(None);
        }
        let producer_id = header.producer_id;
        let known = self.by_id.get(&producer_id);
        let from_client = origin != Origin::Coordinator;
        if from_client && let Some(mark) = known.and_then(|known| known.duplicate(header)) {
            return Ok(Some(mark));
        }
        let open = |known: &Producer| {
            known.txn_first_offset.is_some() && known.epoch == header.producer_epoch
        };
        if origin == Origin::Client && header.is_transactional() && !known.is_some_and(open) {
            let what = "no transaction is open here and none was verified";
            return Err(AppendError::InvalidTxnState { producer_id, what });
        }
        let Some(known) = known else { return Ok(None) };
        check_epoch(producer_id, known, header.producer_epoch)?;
        if from_client {
            check_sequence(producer_id, known, header)?;
        }
        if known.txn_first_offset.is_some() && !header.is_transactional() {
            let what = "a plain batch inside a transaction";
            return Err(AppendError::InvalidTxnState { producer_id, what });
        }
        Ok(None)
    }

    /// Whether a transaction marker may be appended.
    ///
    /// # Errors
    /// An older producer epoch, or an older coordinator.
    pub fn check_marker(&self, header: &BatchHeader, marker: Marker) -> Result<(), AppendError> {
        let Some(known) = self.by_id.get(&header.producer_id) else { return Ok(()) };
        check_epoch(header.producer_id, known, header.producer_epoch)?;
        if marker.coordinator_epoch < known.coordinator_epoch {
            return Err(AppendError::CoordinatorFenced {
                producer_id: header.producer_id,
                current: known.coordinator_epoch,
                got: marker.coordinator_epoch,
            });
        }
        Ok(())
    }

    /// Notes a batch that is in the log, with what it says if it is a marker; `Some` when it ended
    /// a transaction that had records here.
    pub fn note(&mut self, header: &BatchHeader, marker: Option<Marker>) -> Option<CompletedTxn> {
        match marker {
            Some(marker) => self.note_marker(header, marker),
            None if header.is_control() => None,
            None => {
                self.note_batch(header);
                None
            }
        }
    }

    /// Notes a data batch.
    fn note_batch(&mut self, header: &BatchHeader) {
        if !header.has_producer_id() {
            return;
        }
        let producer = self.by_id.entry(header.producer_id).or_insert_with(Producer::new);
        producer.set_epoch(header.producer_epoch);
        producer.push(BatchMark::of(header));
        producer.last_timestamp_ms = header.max_timestamp;
        if header.is_transactional() && producer.txn_first_offset.is_none() {
            producer.txn_first_offset = Some(header.base_offset);
            self.open.insert(header.base_offset, header.producer_id);
        }
    }

    fn note_marker(&mut self, header: &BatchHeader, marker: Marker) -> Option<CompletedTxn> {
        let producer_id = header.producer_id;
        let producer = self.by_id.entry(producer_id).or_insert_with(Producer::new);
        producer.set_epoch(header.producer_epoch);
        producer.coordinator_epoch = marker.coordinator_epoch;
        producer.last_timestamp_ms = header.max_timestamp;
        let first_offset = producer.txn_first_offset.take()?;
        let last_offset = header.last_offset();
        self.open.remove(&first_offset);
        self.unreplicated.insert(first_offset, last_offset);
        let oldest_open = self.open.keys().next().copied();
        Some(CompletedTxn {
            producer_id,
            first_offset,
            last_offset,
            aborted: marker.abort,
            last_stable_offset: oldest_open.unwrap_or(last_offset + 1),
        })
    }

    /// The offset below which every record is of no transaction or of an ended one whose marker is
    /// below the high watermark; never above the high watermark.
    pub fn last_stable_offset(&mut self, high_watermark: i64) -> i64 {
        self.forget_replicated(high_watermark);
        let open = self.open.keys().next().copied();
        let unreplicated = self.unreplicated.keys().next().copied();
        let unstable = [open, unreplicated].into_iter().flatten().min();
        unstable.unwrap_or(i64::MAX).min(high_watermark)
    }

    /// Ended transactions below `offset` hold nobody back any more.
    pub(crate) fn forget_replicated(&mut self, offset: i64) {
        while let Some(entry) = self.unreplicated.first_entry() {
            if *entry.get() >= offset {
                break;
            }
            entry.remove();
        }
    }

    /// Forgets producers that were silent for `expiration_ms` and have no transaction open.
    pub fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.by_id.retain(|_, producer| !is_expired(producer, now_ms, expiration_ms));
    }

    pub(crate) fn clear(&mut self) {
        *self = Producers::default();
    }

    /// Puts in a producer read from a snapshot.
    fn insert(&mut self, producer_id: i64, producer: Producer) {
        if let Some(first_offset) = producer.txn_first_offset {
            self.open.insert(first_offset, producer_id);
        }
        self.by_id.insert(producer_id, producer);
    }

    /// The ids with a transaction open here.
    pub fn open_transactions(&self) -> BTreeSet<i64> {
        self.open.values().copied().collect()
    }
}

fn is_expired(producer: &Producer, now_ms: i64, expiration_ms: i64) -> bool {
    let silent_ms = now_ms.saturating_sub(producer.last_timestamp_ms);
    producer.txn_first_offset.is_none() && silent_ms >= expiration_ms
}

fn check_epoch(producer_id: i64, known: &Producer, got: i16) -> Result<(), AppendError> {
    if got < known.epoch {
        return Err(AppendError::InvalidProducerEpoch { producer_id, current: known.epoch, got });
    }
    Ok(())
}

fn check_sequence(
    producer_id: i64,
    known: &Producer,
    header: &BatchHeader,
) -> Result<(), AppendError> {
    // Without an epoch nothing is known, and any sequence may be the first.
    let (first, last) = (header.base_sequence, known.last_sequence());
    let fits = if known.epoch == NO_EPOCH {
        true
    } else if header.producer_epoch != known.epoch {
        first == 0
    } else {
        i64::from(first) == i64::from(last) + 1 || (first == 0 && last == i32::MAX)
    };
    if fits {
        return Ok(());
    }
    let epoch = header.producer_epoch;
    Err(AppendError::OutOfOrderSequence { producer_id, epoch, last, got: first })
}

#[cfg(test)]
mod tests;

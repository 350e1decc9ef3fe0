//! Building batches: the bytes that Kafka's own writer would produce (`MemoryRecordsBuilder`).
//!
//! For what the broker writes itself: coordinator records, markers, tests. Re-encoding a
//! producer's batch is `recode.rs`.

use bytes::{BufMut, Bytes, BytesMut};

use super::header::{
    BatchHeader, CONTROL, CRC_AT, HEADER_LEN, LOG_APPEND_TIME, LOG_OVERHEAD, MAGIC, TRANSACTIONAL,
    crc_of,
};
use crate::compression::{Codec, Deflater};

/// A batch in the making. Records get the offsets base, base + 1, ... in the order of `append`.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    codec: Codec,
    level: i32,
    base_offset: i64,
    leader_epoch: i32,
    attributes: i16,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    append_time_ms: Option<i64>,
    base_timestamp: i64,
    max_timestamp: i64,
    count: i32,
    records: Vec<u8>,
}

impl BatchBuilder {
    /// An empty batch without a producer, of leader epoch -1.
    pub fn new(base_offset: i64, codec: Codec) -> BatchBuilder {
        BatchBuilder {
            codec,
            level: codec.default_level(),
            base_offset,
            leader_epoch: -1,
            attributes: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            append_time_ms: None,
            base_timestamp: -1,
            max_timestamp: -1,
            count: 0,
            records: Vec::new(),
        }
    }

    /// The compression level, as Kafka's configurations count them.
    pub fn level(mut self, level: i32) -> Self {
        self.level = level;
        self
    }

    /// The leader epoch; whoever appends the batch may set another.
    pub fn leader_epoch(mut self, leader_epoch: i32) -> Self {
        self.leader_epoch = leader_epoch;
        self
    }

    /// The producer and the sequence of the first record. The group and share coordinators write
    /// id -1, epoch -1, sequence **0**.
    pub fn producer(mut self, id: i64, epoch: i16, sequence: i32, transactional: bool) -> Self {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, sequence);
        self.flag(TRANSACTIONAL, transactional)
    }

    /// Marks the records as control records: see [`control_key`] and [`end_txn_value`].
    pub fn control(self) -> Self {
        self.flag(CONTROL, true)
    }

    /// All records bear this time, whatever they were appended with.
    pub fn log_append_time(mut self, now_ms: i64) -> Self {
        self.append_time_ms = Some(now_ms);
        self.flag(LOG_APPEND_TIME, true)
    }

    fn flag(mut self, bit: i16, on: bool) -> Self {
        self.attributes = if on { self.attributes | bit } else { self.attributes & !bit };
        self
    }

    /// Adds a record. `timestamp` in milliseconds, -1 for none; `None` is null.
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) {
        if self.count == 0 {
            self.base_timestamp = timestamp;
            self.max_timestamp = timestamp;
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp);
        put_record(&mut self.records, timestamp_delta, self.count, key, value, headers);
        self.count += 1;
    }

    /// Records so far.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the batch so far, before compression.
    pub fn size(&self) -> usize {
        HEADER_LEN + self.records.len()
    }

    /// Bytes that a record with this key and value and no headers adds at most.
    pub fn record_size_max(key: Option<&[u8]>, value: Option<&[u8]>) -> usize {
        // Size, attributes, timestamp, offset, two lengths, header count.
        5 + 1 + 10 + 5 + 5 + 5 + 1 + key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len)
    }

    /// The batch. There must be a record in it. Stored as it is if the compressor fails.
    pub fn build(self) -> BytesMut {
        assert!(self.count > 0, "a batch has records");
        let (codec, mut batch) = match self.deflate() {
            Some(deflated) => (self.codec, deflated),
            None => (Codec::None, [&[0; HEADER_LEN], &self.records[..]].concat()),
        };
        let header = self.header(codec, batch.len());
        seal(&mut batch, header);
        BytesMut::from(Bytes::from(batch))
    }

    /// Room for the header and the compressed records.
    fn deflate(&self) -> Option<Vec<u8>> {
        if self.codec == Codec::None {
            return None;
        }
        let out = vec![0; HEADER_LEN];
        let mut deflater = Deflater::new(self.codec, self.level, out, usize::MAX).ok()?;
        deflater.write(&self.records).ok()?;
        deflater.finish().ok()
    }

    fn header(&self, codec: Codec, size: usize) -> BatchHeader {
        let length = i32::try_from(size - LOG_OVERHEAD).expect("a batch is below 2 GiB");
        BatchHeader {
            base_offset: self.base_offset,
            batch_length: length,
            partition_leader_epoch: self.leader_epoch,
            magic: MAGIC,
            crc: 0,
            attributes: self.attributes | i16::from(codec.number()),
            last_offset_delta: self.count - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.append_time_ms.unwrap_or(self.max_timestamp),
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            record_count: self.count,
        }
    }
}

/// Puts `header` over the front of a batch, with the checksum of what follows.
pub(super) fn seal(batch: &mut [u8], header: BatchHeader) {
    batch[..HEADER_LEN].copy_from_slice(&header.encode());
    let crc = crc_of(batch);
    batch[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
}

/// What a control record does (Kafka `ControlRecordType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum ControlType {
    Abort = 0,
    Commit = 1,
    LeaderChange = 2,
    SnapshotHeader = 3,
    SnapshotFooter = 4,
    KraftVersion = 5,
    KraftVoters = 6,
}

impl ControlType {
    /// Reads the key of a control record: version 0 or later, then the type. `None` for a key
    /// too short or a type not known.
    pub fn parse(key: &[u8]) -> Option<ControlType> {
        let [v0, v1, t0, t1] = *key.first_chunk::<4>()?;
        if i16::from_be_bytes([v0, v1]) < 0 {
            return None;
        }
        Some(match i16::from_be_bytes([t0, t1]) {
            0 => ControlType::Abort,
            1 => ControlType::Commit,
            2 => ControlType::LeaderChange,
            3 => ControlType::SnapshotHeader,
            4 => ControlType::SnapshotFooter,
            5 => ControlType::KraftVersion,
            6 => ControlType::KraftVoters,
            _ => return None,
        })
    }
}

/// The key of a control record: version 0 and the type.
pub fn control_key(kind: ControlType) -> [u8; 4] {
    let [t0, t1] = (kind as i16).to_be_bytes();
    [0, 0, t0, t1]
}

/// The value of a transaction marker: version 0 and the epoch of the coordinator.
pub fn end_txn_value(coordinator_epoch: i32) -> [u8; 6] {
    let [a, b, c, d] = coordinator_epoch.to_be_bytes();
    [0, 0, a, b, c, d]
}

/// Appends one record, as `DefaultRecord.writeTo`.
fn put_record(
    out: &mut Vec<u8>,
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(&str, Option<&[u8]>)],
) {
    let mut buffer = [0; FRONT_MAX];
    let front = front(&mut buffer, timestamp_delta, offset_delta);
    let header_size =
        |(key, value): &(&str, Option<&[u8]>)| bytes_len(Some(key.as_bytes())) + bytes_len(*value);
    let rest = bytes_len(key)
        + bytes_len(value)
        + varint_len(zigzag(headers.len() as i64))
        + headers.iter().map(header_size).sum::<usize>();
    let size = front.len() + rest;
    assert!(size <= i32::MAX as usize, "a record is below 2 GiB");
    put_varint(out, zigzag(size as i64));
    out.extend_from_slice(front);
    put_bytes(out, key);
    put_bytes(out, value);
    put_varint(out, zigzag(headers.len() as i64));
    for (key, value) in headers {
        put_bytes(out, Some(key.as_bytes()));
        put_bytes(out, *value);
    }
}

/// The most bytes that [`front`] needs.
pub(super) const FRONT_MAX: usize = 1 + 10 + 5;

/// Attributes, timestamp delta and offset delta of a record, written into `buffer`.
pub(super) fn front(
    buffer: &mut [u8; FRONT_MAX],
    timestamp_delta: i64,
    offset_delta: i32,
) -> &[u8] {
    let mut room = &mut buffer[..];
    room.put_u8(0);
    put_varint(&mut room, zigzag(timestamp_delta));
    put_varint(&mut room, zigzag(i64::from(offset_delta)));
    let len = FRONT_MAX - room.len();
    &buffer[..len]
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            put_varint(out, zigzag(bytes.len() as i64));
            out.extend_from_slice(bytes);
        }
        None => put_varint(out, zigzag(-1)),
    }
}

fn bytes_len(bytes: Option<&[u8]>) -> usize {
    match bytes {
        Some(bytes) => varint_len(zigzag(bytes.len() as i64)) + bytes.len(),
        None => 1,
    }
}

/// Zig-zag: small numbers of either sign become small.
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(super) fn put_varint(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

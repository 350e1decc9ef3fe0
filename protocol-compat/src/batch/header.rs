//! The 61 bytes in front of every record batch, and its checksum.
//!
//! Reading only; what a leader writes into a batch is `assign.rs`, what it demands of one is
//! `validate.rs`. Layout: Kafka `DefaultRecordBatch`, magic 2.

use super::BatchError;
use crate::compression::Codec;

/// Bytes of the batch header, up to the first record.
pub const HEADER_LEN: usize = 61;
/// Bytes of a batch that its length field does not count: the base offset and the length itself.
pub const LOG_OVERHEAD: usize = 12;
/// The smallest legal value of the length field: a header and no records.
pub const LENGTH_MIN: i32 = (HEADER_LEN - LOG_OVERHEAD) as i32;
/// The only magic that is written nowadays.
pub const MAGIC: i8 = 2;

/// Attribute bits 0 to 2: the codec.
pub const CODEC_MASK: i16 = 0x07;
/// Attribute bit 3: every record bears the time of the append, which is the max timestamp.
pub const LOG_APPEND_TIME: i16 = 0x08;
/// Attribute bit 4: the batch belongs to a transaction.
pub const TRANSACTIONAL: i16 = 0x10;
/// Attribute bit 5: the records are control records (markers), not data.
pub const CONTROL: i16 = 0x20;
/// Attribute bit 6: the base timestamp is a delete horizon (set by compaction).
pub const DELETE_HORIZON: i16 = 0x40;

pub(super) const LENGTH_AT: usize = 8;
pub(super) const LEADER_EPOCH_AT: usize = 12;
pub(super) const MAGIC_AT: usize = 16;
pub(super) const CRC_AT: usize = 17;
pub(super) const ATTRIBUTES_AT: usize = 21;
pub(super) const MAX_TIMESTAMP_AT: usize = 35;

/// The header of one batch, by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    /// Bytes after this field; see [`BatchHeader::total_size`].
    pub batch_length: i32,
    /// Set by the leader; -1 when unset.
    pub partition_leader_epoch: i32,
    pub magic: i8,
    /// CRC-32C of everything from the attributes on.
    pub crc: u32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    /// Milliseconds; the delete horizon when [`DELETE_HORIZON`] is set.
    pub base_timestamp: i64,
    /// Milliseconds.
    pub max_timestamp: i64,
    /// -1 for none.
    pub producer_id: i64,
    /// -1 for none.
    pub producer_epoch: i16,
    /// -1 for none.
    pub base_sequence: i32,
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads a header. Needs [`HEADER_LEN`] bytes, magic 2 and a length field that covers the
    /// header; whether the records are all there, and whole, is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        let Some(head) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(BatchError::Truncated { need: HEADER_LEN, have: bytes.len() });
        };
        let header = BatchHeader::decode(head);
        if header.magic != MAGIC {
            return Err(BatchError::Magic(header.magic));
        }
        if header.batch_length < LENGTH_MIN {
            return Err(BatchError::Length(header.batch_length));
        }
        Ok(header)
    }

    pub(super) fn decode(head: &[u8; HEADER_LEN]) -> BatchHeader {
        BatchHeader {
            base_offset: i64::from_be_bytes(field(head, 0)),
            batch_length: i32::from_be_bytes(field(head, LENGTH_AT)),
            partition_leader_epoch: i32::from_be_bytes(field(head, LEADER_EPOCH_AT)),
            magic: i8::from_be_bytes(field(head, MAGIC_AT)),
            crc: u32::from_be_bytes(field(head, CRC_AT)),
            attributes: i16::from_be_bytes(field(head, ATTRIBUTES_AT)),
            last_offset_delta: i32::from_be_bytes(field(head, 23)),
            base_timestamp: i64::from_be_bytes(field(head, 27)),
            max_timestamp: i64::from_be_bytes(field(head, MAX_TIMESTAMP_AT)),
            producer_id: i64::from_be_bytes(field(head, 43)),
            producer_epoch: i16::from_be_bytes(field(head, 51)),
            base_sequence: i32::from_be_bytes(field(head, 53)),
            record_count: i32::from_be_bytes(field(head, 57)),
        }
    }

    /// The 61 bytes that [`BatchHeader::parse`] reads, `crc` as it stands.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut head = [0; HEADER_LEN];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.base_offset.to_be_bytes());
        put(LENGTH_AT, &self.batch_length.to_be_bytes());
        put(LEADER_EPOCH_AT, &self.partition_leader_epoch.to_be_bytes());
        put(MAGIC_AT, &self.magic.to_be_bytes());
        put(CRC_AT, &self.crc.to_be_bytes());
        put(ATTRIBUTES_AT, &self.attributes.to_be_bytes());
        put(23, &self.last_offset_delta.to_be_bytes());
        put(27, &self.base_timestamp.to_be_bytes());
        put(MAX_TIMESTAMP_AT, &self.max_timestamp.to_be_bytes());
        put(43, &self.producer_id.to_be_bytes());
        put(51, &self.producer_epoch.to_be_bytes());
        put(53, &self.base_sequence.to_be_bytes());
        put(57, &self.record_count.to_be_bytes());
        head
    }

    /// Bytes of the whole batch, header included.
    pub fn total_size(&self) -> usize {
        usize::try_from(self.batch_length).unwrap_or(0) + LOG_OVERHEAD
    }

    /// The offset of the last record, or the one it had before compaction took it.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The offset after this batch.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    /// The codec of the records; numbers 5 to 7 are unknown.
    pub fn codec(&self) -> Result<Codec, BatchError> {
        let number = (self.attributes & CODEC_MASK) as u8;
        Codec::from_number(number).ok_or(BatchError::Codec(number))
    }

    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON != 0
    }

    /// Whether an idempotent or transactional producer wrote this batch.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > -1
    }

    /// The sequence of the last record, -1 if the batch has none. After `i32::MAX` comes 0.
    pub fn last_sequence(&self) -> i32 {
        match self.base_sequence {
            -1 => -1,
            base => add_sequence(base, self.last_offset_delta),
        }
    }
}

/// The sequence `by` records after `sequence`, wrapping from `i32::MAX` to 0
/// (Kafka `DefaultRecordBatch.incrementSequence`).
pub fn add_sequence(sequence: i32, by: i32) -> i32 {
    (sequence.wrapping_add(by)) & i32::MAX
}

/// Whether `batch`, one whole batch and nothing else, bears the checksum of its bytes.
/// Anything shorter than a header does not match.
pub fn crc_matches(batch: &[u8]) -> bool {
    match batch.first_chunk::<HEADER_LEN>() {
        Some(head) => u32::from_be_bytes(field(head, CRC_AT)) == crc_of(batch),
        None => false,
    }
}

/// CRC-32C from the attributes to the end. The caller has seen that there is a header.
pub(super) fn crc_of(batch: &[u8]) -> u32 {
    crc32c::crc32c(&batch[ATTRIBUTES_AT..])
}

/// `N` bytes of the header from `at`; all callers name offsets within it.
#[inline(always)]
fn field<const N: usize>(head: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    *head[at..].first_chunk().expect("a field lies inside the header")
}

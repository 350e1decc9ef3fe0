//! What a leader writes into a batch before it goes to the log: offsets, leader epoch, times.
//!
//! All in place, without touching the records (Kafka `DefaultRecordBatch.setLastOffset`,
//! `setPartitionLeaderEpoch`, `setMaxTimestamp`). Every function here wants one whole batch whose
//! header has been parsed, and panics on less than a header.

use super::header::{
    ATTRIBUTES_AT, CODEC_MASK, CONTROL, CRC_AT, DELETE_HORIZON, HEADER_LEN, LEADER_EPOCH_AT,
    LOG_APPEND_TIME, MAX_TIMESTAMP_AT, TRANSACTIONAL, crc_of,
};

/// The attribute bits that have a meaning.
const KNOWN_BITS: i16 = CODEC_MASK | LOG_APPEND_TIME | TRANSACTIONAL | CONTROL | DELETE_HORIZON;

/// Sets the base offset and the leader epoch. Both lie before the checksum's area, so the
/// checksum stays as it is.
pub fn assign(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    assert!(batch.len() >= HEADER_LEN, "a parsed batch has a header");
    batch[..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[LEADER_EPOCH_AT..LEADER_EPOCH_AT + 4].copy_from_slice(&leader_epoch.to_be_bytes());
}

/// Marks the batch as bearing the time of the append: bit 3, the max timestamp, a new checksum.
pub fn set_append_time(batch: &mut [u8], now_ms: i64) {
    set_time(batch, LOG_APPEND_TIME, now_ms);
}

/// Makes the batch say that its records bear the producer's times, the highest of which is
/// `max_timestamp`: bit 3 cleared, a new checksum. A batch that says so already is not touched.
pub fn correct_header(batch: &mut [u8], max_timestamp: i64) {
    set_time(batch, 0, max_timestamp);
}

/// Sets time type and max timestamp, and the checksum, if either differs from before. Then the
/// attribute bits that mean nothing go, too.
fn set_time(batch: &mut [u8], time_type: i16, max_timestamp: i64) {
    assert!(batch.len() >= HEADER_LEN, "a parsed batch has a header");
    let old = i16::from_be_bytes([batch[ATTRIBUTES_AT], batch[ATTRIBUTES_AT + 1]]);
    let time = max_timestamp.to_be_bytes();
    if old & LOG_APPEND_TIME == time_type && batch[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8] == time {
        return;
    }
    let attributes = old & KNOWN_BITS & !LOG_APPEND_TIME | time_type;
    batch[ATTRIBUTES_AT..ATTRIBUTES_AT + 2].copy_from_slice(&attributes.to_be_bytes());
    batch[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8].copy_from_slice(&time);
    let crc = crc_of(batch);
    batch[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
}

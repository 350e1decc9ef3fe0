//! The log as the group coordinator sees it. The broker core implements it over the partitions of
//! `__consumer_offsets`; tests implement it in memory.

use bytes::BytesMut;
use protocol_compat::error::ErrorCode;

/// Where the log of one partition begins and ends, all offsets exclusive but the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    pub start_offset: i64,
    pub end_offset: i64,
    /// Everything below it is flushed and replicated as the topic demands.
    pub high_watermark: i64,
}

/// One topic's partitions, synchronously. No call may wait for a lock that is held while calling
/// into `Groups`, nor call back into it: `on_high_watermark` is called with no partition locked,
/// and not from within `append`. A watermark that moves with the append itself is seen in `bounds`,
/// which is asked after each append.
pub trait GroupLog: Send + Sync + 'static {
    /// Appends one v2 batch (base offset 0, as built) as a coordinator does: written, not yet
    /// flushed. Returns the end offset (exclusive) after it.
    ///
    /// Errors: NOT_LEADER_OR_FOLLOWER if the partition is not led here in `leader_epoch`;
    /// NOT_ENOUGH_REPLICAS; MESSAGE_TOO_LARGE or RECORD_LIST_TOO_LARGE; KAFKA_STORAGE_ERROR.
    fn append(
        &self,
        partition: i32,
        leader_epoch: i32,
        batch: BytesMut,
        now_ms: i64,
    ) -> Result<i64, ErrorCode>;

    /// The log's bounds now.
    ///
    /// Errors: as `append` for a partition that is not here.
    fn bounds(&self, partition: i32) -> Result<LogBounds, ErrorCode>;

    /// Whole batches from the one that holds `from_offset` on, about `max_bytes` of them, at least
    /// one if there is one; a torn batch at the end is allowed. Empty at the log's end.
    ///
    /// Errors: as `bounds`; OFFSET_OUT_OF_RANGE.
    fn read(
        &self,
        partition: i32,
        from_offset: i64,
        max_bytes: usize,
    ) -> Result<Vec<u8>, ErrorCode>;
}

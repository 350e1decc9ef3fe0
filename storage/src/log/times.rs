//! Offsets by time (ListOffsets): exact to the record.

use std::sync::Arc;

use protocol_compat::batch::{BatchError, BatchHeader, records};
use protocol_compat::compression::CompressionError;

use super::index::read_exact;
use super::names::Kind;
use super::scan::Scanned;
use super::segment::Segment;
use super::view::LogView;
use crate::errors::{ReadError, StorageError};

/// A batch is inflated up to this size to find a record in it. Beyond it the answer is the begin of
/// the batch: early, so that a reader from there misses nothing.
const INFLATED_MAX: usize = 128 << 20;

/// A record found by its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimedOffset {
    pub timestamp_ms: i64,
    pub offset: i64,
    /// Of the leader that appended it; -1 for unset.
    pub leader_epoch: i32,
}

impl LogView {
    /// The first record at or above the log start whose timestamp is at or after `timestamp_ms`;
    /// `None` when there is none, or when it is not below `upper_offset`
    /// (Kafka `UnifiedLog.fetchOffsetByTimestamp`).
    ///
    /// # Errors
    /// The disk's, and corruption of what had to be read.
    pub fn offset_for_timestamp(
        &self,
        timestamp_ms: i64,
        upper_offset: i64,
    ) -> Result<Option<TimedOffset>, ReadError> {
        let found = self.settled(|| self.first_at(timestamp_ms).map_err(ReadError::from))?;
        Ok(found.filter(|found| found.offset < upper_offset))
    }

    fn first_at(&self, timestamp_ms: i64) -> Result<Option<TimedOffset>, StorageError> {
        let start = self.log_start_offset();
        let reads = self.reads();
        for segment in self.shared.segments.load().iter() {
            if segment.largest(reads)?.timestamp < timestamp_ms {
                continue;
            }
            let mut from = start.max(segment.base_offset);
            while let Some(batch) = segment.locate_time(reads, timestamp_ms, from)? {
                let wanted = |time: i64, offset: i64| time >= timestamp_ms && offset >= start;
                if let Some(found) = self.first_record(segment, &batch, wanted)? {
                    return Ok(Some(found));
                }
                // The late record of this batch lies below the log start.
                from = batch.header.next_offset();
            }
        }
        Ok(None)
    }

    /// The earliest record with the highest timestamp of the log; the log start does not matter, as
    /// in Kafka. `None` when no record has a timestamp.
    ///
    /// # Errors
    /// The disk's, and corruption of what had to be read.
    pub fn max_timestamp(&self) -> Result<Option<TimedOffset>, ReadError> {
        self.settled(|| self.latest().map_err(ReadError::from))
    }

    fn latest(&self) -> Result<Option<TimedOffset>, StorageError> {
        let reads = self.reads();
        let mut latest = None;
        for segment in self.shared.segments.load().iter() {
            let largest = segment.largest(reads)?.timestamp;
            if latest.as_ref().is_none_or(|(most, _)| largest > *most) {
                latest = Some((largest, segment.clone()));
            }
        }
        let Some((most, segment)) = latest.filter(|(most, _)| *most >= 0) else { return Ok(None) };
        let Some(batch) = segment.locate_time(reads, most, segment.base_offset)? else {
            return Ok(None);
        };
        self.first_record(&segment, &batch, |time, _| time >= most)
    }

    /// The first record of a batch that `wanted` accepts, by timestamp and offset.
    fn first_record(
        &self,
        segment: &Arc<Segment>,
        batch: &Scanned,
        wanted: impl Fn(i64, i64) -> bool,
    ) -> Result<Option<TimedOffset>, StorageError> {
        let path = segment.path(Kind::Log);
        let file = self.reads().of(segment.log_file(self.reads().disk)?);
        // No more than the file holds: the scan saw to that.
        let mut bytes = vec![0; batch.header.total_size()];
        read_exact(&*file, &mut bytes, batch.position)
            .map_err(|e| StorageError::io("read", &path, e))?;
        first_in_batch(&bytes, &batch.header, wanted)
            .map_err(|e| StorageError::corrupt(&path, batch.position, e.to_string()))
    }
}

fn first_in_batch(
    bytes: &[u8],
    header: &BatchHeader,
    wanted: impl Fn(i64, i64) -> bool,
) -> Result<Option<TimedOffset>, BatchError> {
    let found = |timestamp_ms: i64, offset: i64| TimedOffset {
        timestamp_ms,
        offset,
        leader_epoch: header.partition_leader_epoch,
    };
    let mut scratch = Vec::new();
    let walk = match records(bytes, &mut scratch, INFLATED_MAX) {
        Ok((_, walk)) => walk,
        Err(BatchError::Compression(CompressionError::TooLarge { .. })) => {
            let (time, offset) = (header.max_timestamp, header.base_offset);
            return Ok(wanted(time, offset).then(|| found(time, offset)));
        }
        Err(error) => return Err(error),
    };
    for record in walk {
        let record = record?;
        let offset = header.base_offset + i64::from(record.offset_delta);
        let time = record.timestamp(header);
        if wanted(time, offset) {
            return Ok(Some(found(time, offset)));
        }
    }
    Ok(None)
}

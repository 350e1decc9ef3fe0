//! The time index (`.timeindex`, Kafka `TimeIndex`): how late the records up to an offset may be.

use super::index::{Entries, Entry, u32_at};

/// The highest timestamp up to a batch, and the last offset of the batch that bears it, less the
/// base offset of the segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimeEntry {
    pub(crate) timestamp: i64,
    pub(crate) relative: u32,
}

impl Entry for TimeEntry {
    const SIZE: usize = 12;

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.relative.to_be_bytes());
    }

    fn get(bytes: &[u8]) -> TimeEntry {
        let high = i64::from(u32_at(bytes, 0)) << 32;
        TimeEntry { timestamp: high | i64::from(u32_at(bytes, 4)), relative: u32_at(bytes, 8) }
    }
}

impl Entries<TimeEntry> {
    /// Adds the entry if time has moved on since the last one; records without a time add none.
    pub(crate) fn push_if_later(&mut self, entry: TimeEntry) {
        let last = self.last().map_or(-1, |last| last.timestamp);
        if entry.timestamp > last {
            self.push(entry);
        }
    }
}

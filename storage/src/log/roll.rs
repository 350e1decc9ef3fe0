//! When a segment is full, and starting the next one (Kafka `LogSegment.shouldRoll`,
//! `LocalLog.roll`).

use std::sync::Arc;

use protocol_compat::batch::{BatchHeader, HEADER_LEN};

use super::index::read_exact;
use super::names::{Kind, file_path};
use super::segment::{Segment, State};
use super::{Active, FirstTimestamp, Log, LogConfig};
use crate::disk::OpenMode;
use crate::errors::StorageError;

/// What decides whether the active segment takes another batch.
#[derive(Clone, Copy, Debug)]
struct Full {
    size: u64,
    base_offset: i64,
    offset_entries: usize,
    time_entries: usize,
    /// How long the segment has been filling, were the batch in it.
    age_ms: i64,
    batch_size: u64,
    batch_last_offset: i64,
}

/// Whether the batch belongs into a new segment. An empty segment is only too narrow, never full.
fn is_due(full: &Full, config: &LogConfig) -> bool {
    if !spans(full.base_offset, full.batch_last_offset) {
        return true;
    }
    full.size > 0
        && (full.size + full.batch_size > u64::from(config.segment_bytes)
            || full.age_ms > config.segment_ms.saturating_sub(config.segment_jitter_ms)
            || full.offset_entries >= config.index_entries_max()
            || full.time_entries >= config.time_entries_max())
}

/// Whether an index of a segment can hold the offset.
pub(super) fn spans(base_offset: i64, offset: i64) -> bool {
    offset.checked_sub(base_offset).is_some_and(|relative| relative <= i64::from(i32::MAX))
}

impl Log {
    /// Whether the active segment can hold the offset.
    pub(super) fn spans(&self, offset: i64) -> bool {
        spans(self.active.segment.base_offset, offset)
    }

    /// Starts a new segment if the batch, with its final offsets, belongs into one.
    pub(super) fn roll_if_due(
        &mut self,
        header: &BatchHeader,
        size: usize,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let age_ms = match self.first_timestamp()? {
            Some(first) if first >= 0 => header.max_timestamp.saturating_sub(first),
            _ => now_ms.saturating_sub(self.active.created_ms),
        };
        let (offset_entries, time_entries) = {
            let state = self.active.segment.state.read();
            (state.offsets.len(), state.times.len())
        };
        let full = Full {
            size: self.active.size,
            base_offset: self.active.segment.base_offset,
            offset_entries,
            time_entries,
            age_ms,
            batch_size: size as u64,
            batch_last_offset: header.last_offset(),
        };
        if !is_due(&full, &self.config) {
            return Ok(());
        }
        // At the log end, so that segments follow each other without a gap and recovery can tell a
        // lost tail from a gap. Only a batch too far off for that begins its own segment.
        let base_offset = match spans(self.log_end_offset, header.last_offset()) {
            true => self.log_end_offset,
            false => header.base_offset,
        };
        self.roll(base_offset, now_ms)
    }

    /// The max timestamp of the active segment's first batch.
    fn first_timestamp(&mut self) -> Result<Option<i64>, StorageError> {
        if self.active.first_timestamp == FirstTimestamp::Unread {
            let path = self.active.segment.path(Kind::Log);
            let mut bytes = [0; HEADER_LEN];
            read_exact(&*self.active.file, &mut bytes, 0).map_err(Log::failed("read", &path))?;
            let header = BatchHeader::parse(&bytes)
                .map_err(|e| StorageError::corrupt(&path, 0, e.to_string()))?;
            self.active.first_timestamp = FirstTimestamp::Known(header.max_timestamp);
        }
        match self.active.first_timestamp {
            FirstTimestamp::Known(first) => Ok(Some(first)),
            FirstTimestamp::NoBatch | FirstTimestamp::Unread => Ok(None),
        }
    }

    /// Ends the active segment and starts one at `base_offset`. After an error the log goes on with
    /// the segment it had.
    pub(super) fn roll(&mut self, base_offset: i64, now_ms: i64) -> Result<(), StorageError> {
        let old = self.active.segment.clone();
        assert!(base_offset > old.base_offset, "segments rise");
        // Behind a sealed segment's last batch recovery takes it for damage.
        self.heal()?;
        old.state.write().note_final_time(old.base_offset);
        self.write_indexes(&old, true)?;
        self.write_snapshot()?;
        // The last step that can fail: a file of that name that is not part of the log would count
        // as its end, and the records that go on before it would be cut off at the next start.
        let new = match self.start_segment(base_offset, now_ms) {
            Ok(new) => new,
            Err(error) => {
                // Its removal is durable before anything more is acknowledged.
                self.flush.dirs.insert(self.dir.to_path_buf());
                return Err(error);
            }
        };
        self.take_active();
        self.give_back_room();
        old.seal();
        let mut segments = self.segments().to_vec();
        segments.push(new.segment.clone());
        self.shared.segments.store(Arc::new(segments));
        self.active = new;
        self.flush.next_segment(&self.dir);
        // Nothing is between, and nothing will be.
        self.publish_end(self.log_end_offset.max(base_offset));
        Ok(())
    }

    /// An empty segment with its file, not yet part of the log. After an error there is no file.
    pub(super) fn start_segment(
        &self,
        base_offset: i64,
        now_ms: i64,
    ) -> Result<Active, StorageError> {
        let path = file_path(&self.dir, base_offset, Kind::Log);
        let open = || {
            let file = self.disk.open(&path, OpenMode::Create)?;
            // One that could not be removed, maybe.
            if !file.is_empty()? {
                file.set_len(0)?;
            }
            let mut allocated = 0;
            if self.config.preallocate {
                allocated = u64::from(self.config.segment_bytes);
                file.allocate(0, allocated)?;
            }
            Ok((file, allocated))
        };
        let (file, allocated) = open().map_err(|error| {
            // Neither if it was not made nor if it cannot be removed is there more to do.
            let _ = self.disk.remove_file(&path);
            Log::failed("create", &path)(error)
        })?;
        let segment = Segment::new(&self.dir, base_offset, State::empty(base_offset));
        segment.set_log_file(file.clone());
        Ok(Active {
            segment: Arc::new(segment),
            file,
            size: 0,
            allocated,
            created_ms: now_ms,
            first_timestamp: FirstTimestamp::NoBatch,
            torn: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: i64 = i32::MAX as i64;

    /// `size age offset-entries time-entries last-offset`, with a batch of 100 bytes for a segment
    /// of 1000 bytes and 1000 ms less 100 ms of jitter, ten offset entries, seven time entries,
    /// base 5.
    #[track_caller]
    fn check(size: u64, age_ms: i64, entries: (usize, usize), last_offset: i64, want: bool) {
        let config = LogConfig {
            segment_bytes: 1000,
            segment_ms: 1000,
            segment_jitter_ms: 100,
            segment_index_bytes: 87,
            ..LogConfig::default()
        };
        let full = Full {
            size,
            base_offset: 5,
            offset_entries: entries.0,
            time_entries: entries.1,
            age_ms,
            batch_size: 100,
            batch_last_offset: last_offset,
        };
        assert_eq!(is_due(&full, &config), want, "{full:?}");
    }

    #[test]
    fn a_segment_is_full() {
        // By size: it may be filled to the byte.
        check(900, 0, (0, 0), 9, false);
        check(901, 0, (0, 0), 9, true);
        // By time, jitter taken off; a clock that ran backwards rolls nothing.
        check(1, 900, (0, 0), 9, false);
        check(1, 901, (0, 0), 9, true);
        check(1, i64::MIN, (0, 0), 9, false);
        check(1, i64::MAX, (0, 0), 9, true);
        // By index entries; the last slot of the time index is kept for the roll.
        check(1, 0, (9, 0), 9, false);
        check(1, 0, (10, 0), 9, true);
        check(1, 0, (0, 5), 9, false);
        check(1, 0, (0, 6), 9, true);
        // By span.
        check(1, 0, (0, 0), 5 + SPAN, false);
        check(1, 0, (0, 0), 6 + SPAN, true);
    }

    #[test]
    fn an_empty_segment_is_never_full() {
        check(0, 901, (10, 6), 9, false);
        check(0, 0, (0, 0), 5 + SPAN, false);
        check(0, 0, (0, 0), 6 + SPAN, true);
    }
}

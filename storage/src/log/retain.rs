//! What may go from the begin of a log, and letting it go (Kafka `UnifiedLog.deleteOldSegments`).
//!
//! Segments go whole and oldest first. Their files get `.deleted` names at once and are removed
//! after `file.delete.delay.ms`, so that readers which have them open are not hurried.

use std::io;
use std::sync::Arc;

use super::names::{DELETED, Kind};
use super::segment::{Reads, Segment};
use super::{Deleted, Log};
use crate::disk::suffixed;
use crate::errors::{ReadError, StorageError};

/// What retention has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retained {
    pub segments: usize,
    pub bytes: u64,
    pub log_start_offset: i64,
}

impl Log {
    /// Moves the log start up to `offset` (DeleteRecords, or a follower told by its leader); lower
    /// than it is changes nothing. Whole segments below go with the next [`Log::retain`].
    ///
    /// # Errors
    /// `OffsetOutOfRange` above the log end.
    pub fn advance_log_start(&mut self, offset: i64) -> Result<(), ReadError> {
        let (start, end) = (self.log_start_offset, self.log_end_offset);
        if offset > end {
            return Err(ReadError::OffsetOutOfRange { offset, start, end });
        }
        self.raise_start(offset);
        Ok(())
    }

    fn raise_start(&mut self, offset: i64) {
        if offset <= self.log_start_offset {
            return;
        }
        self.publish_start(offset);
        self.epochs.truncate_from_start(offset);
        self.producers.forget_replicated(offset);
    }

    /// Lets go of segments below the log start and, if the policy holds `delete`, of those the log
    /// is too large or they too old for, in this order; of none at or above the high watermark.
    /// Also closes files that no reader used since the last call.
    ///
    /// # Errors
    /// The disk's; what was taken before stays taken.
    pub fn retain(&mut self, high_watermark: i64, now_ms: i64) -> Result<Retained, StorageError> {
        let mut done = Retained::default();
        let start = self.log_start_offset;
        self.delete_while(high_watermark, now_ms, &mut done, |_, _, next| {
            Ok(next.is_some_and(|next| next.base_offset <= start))
        })?;
        if self.config.delete {
            self.delete_by_size(high_watermark, now_ms, &mut done)?;
            self.delete_by_time(high_watermark, now_ms, &mut done)?;
        }
        done.log_start_offset = self.log_start_offset;
        let segments = self.segments();
        let (active, sealed) = (&self.active.segment, segments.iter().rev().skip(1));
        sealed.for_each(|segment| segment.close_idle_files());
        active.close_idle_indexes();
        Ok(done)
    }

    /// As much as keeps the log at or above its size.
    fn delete_by_size(
        &mut self,
        high_watermark: i64,
        now_ms: i64,
        done: &mut Retained,
    ) -> Result<(), StorageError> {
        let Ok(keep) = u64::try_from(self.config.retention_bytes) else { return Ok(()) };
        let Some(mut surplus) = self.size_bytes().checked_sub(keep) else { return Ok(()) };
        self.delete_while(high_watermark, now_ms, done, |_, segment, _| {
            match surplus.checked_sub(segment.size()) {
                Some(left) => surplus = left,
                None => return Ok(false),
            }
            Ok(true)
        })
    }

    /// By the highest timestamp of a segment or, where its records have none, the last write.
    fn delete_by_time(
        &mut self,
        high_watermark: i64,
        now_ms: i64,
        done: &mut Retained,
    ) -> Result<(), StorageError> {
        let retention_ms = self.config.retention_ms;
        if retention_ms < 0 {
            return Ok(());
        }
        self.delete_while(high_watermark, now_ms, done, |log, segment, _| {
            Ok(now_ms.saturating_sub(log.age_from(segment)?) > retention_ms)
        })
    }

    fn age_from(&self, segment: &Segment) -> Result<i64, StorageError> {
        let largest = segment.largest(Reads::patient(&*self.disk))?.timestamp;
        if largest >= 0 {
            return Ok(largest);
        }
        let path = segment.path(Kind::Log);
        let stat = self.disk.stat(&path).map_err(Log::failed("stat", &path))?;
        Ok(stat.map_or(i64::MAX, |stat| stat.modified_ms))
    }

    /// Deletes from the begin as long as `may_go` says so of a segment and the one after it. An
    /// empty active segment stays; if all others go with an active one that is not, a new one
    /// comes.
    fn delete_while(
        &mut self,
        high_watermark: i64,
        now_ms: i64,
        done: &mut Retained,
        mut may_go: impl FnMut(&Log, &Segment, Option<&Segment>) -> Result<bool, StorageError>,
    ) -> Result<(), StorageError> {
        let segments = self.segments();
        let mut count = 0;
        for (at, segment) in segments.iter().enumerate() {
            let next = segments.get(at + 1).map(|next| &**next);
            let upper_offset = next.map_or(self.log_end_offset, |next| next.base_offset);
            let is_empty_tail = next.is_none() && segment.size() == 0;
            if is_empty_tail || high_watermark < upper_offset || !may_go(self, segment, next)? {
                break;
            }
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        if count == segments.len() {
            self.roll(self.log_end_offset, now_ms)?;
        }
        let segments = self.segments();
        let (gone, kept) = segments.split_at(count);
        if let Some(first) = kept.first() {
            self.keep_producers_below(first.base_offset, now_ms)?;
        }
        if let Some(first) = kept.first() {
            self.raise_start(first.base_offset);
        }
        self.shared.segments.store(Arc::new(kept.to_vec()));
        done.segments += gone.len();
        done.bytes += gone.iter().map(|segment| segment.size()).sum::<u64>();
        self.flush.dirs.insert(self.dir.to_path_buf());
        self.flush.touch();
        gone.iter().for_each(|segment| self.mark_segment_deleted(segment, now_ms));
        Ok(())
    }

    /// Renames the files of a segment. One that keeps its name is deleted by a later start.
    fn mark_segment_deleted(&mut self, segment: &Segment, now_ms: i64) {
        let mut files = Vec::new();
        for kind in Kind::ALL {
            let path = segment.path(kind);
            let to = suffixed(&path, DELETED);
            match self.disk.rename(&path, &to) {
                Ok(()) => files.push(to),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::warn!(path = %path.display(), %error, "not deleted"),
            }
        }
        self.snapshots.remove(&segment.base_offset);
        self.deleted.push_back(Deleted { at_ms: now_ms, files });
    }

    /// Removes files that were deleted `file.delete.delay.ms` ago. What cannot be removed is left
    /// to the next start.
    pub fn purge_deleted(&mut self, now_ms: i64) {
        let delay_ms = self.config.file_delete_delay_ms;
        while let Some(deleted) = self.deleted.front()
            && now_ms.saturating_sub(deleted.at_ms) >= delay_ms
        {
            for path in &deleted.files {
                if let Err(error) = self.disk.remove_file(path) {
                    tracing::warn!(path = %path.display(), %error, "not removed");
                }
            }
            self.deleted.pop_front();
        }
    }
}

//! What readers hold of a log: they never need the log itself, nor any lock of its writer.
//!
//! A view is live: it sees appends, rolls and deletions as they happen. The writer publishes bytes
//! before segments and segments before the log end, so whatever lies below a log end that was read
//! first is found. Look-ups by time are `times.rs`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;

use super::names::Kind;
use super::segment::{Placed, Reads, Segment, Spot};
use super::txn_index::AbortedTxn;
use crate::disk::{Disk, File};
use crate::errors::{ReadError, StorageError};
use crate::flush::Cuts;

/// The end of a log is in memory: it was written just now. So much of it is not asked for.
const TAIL_BYTES: u64 = 4 << 20;

/// One byte in so many is asked for to see whether a range is in memory: the system reads and drops
/// pages in long runs.
const TOUCH_EVERY: usize = 256 << 10;

/// `WouldBlock` when the bytes are not in memory.
fn touch(file: &dyn File, position: u64, len: usize) -> io::Result<()> {
    let mut places = (0..len).step_by(TOUCH_EVERY).chain(len.checked_sub(1));
    places.try_for_each(|at| file.read_cached_at(&mut [0], position + at as u64).map(|_| ()))
}

/// What the writer publishes.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) log_start_offset: AtomicI64,
    pub(crate) log_end_offset: AtomicI64,
    /// Counts cuts: what a reader found broken while one was made may be whole.
    pub(crate) cuts: Cuts,
    /// By base offset; never empty, the last one is active.
    pub(crate) segments: ArcSwap<Vec<Arc<Segment>>>,
}

impl Shared {
    /// The segment that holds `offset` if any does: the last that begins at or before it.
    pub(crate) fn index_of(segments: &[Arc<Segment>], offset: i64) -> usize {
        segments.partition_point(|segment| segment.base_offset <= offset).saturating_sub(1)
    }
}

/// A reader's access to a log. Cheap to clone, good for as long as the log is open.
#[derive(Clone, Debug)]
pub struct LogView {
    pub(crate) shared: Arc<Shared>,
    pub(crate) from_memory: bool,
}

/// A range of a segment file: raw batches, from the one that holds the offset asked for.
#[derive(Clone, Debug)]
pub struct Slice {
    pub file: Arc<dyn File>,
    /// Of the first byte, in the file.
    pub position: u64,
    /// In bytes; may end within a batch, even within its header.
    pub len: usize,
    /// Whole size of the first batch. The slice holds no whole batch if `len` is below it.
    pub first_batch: usize,
    pub base_offset: i64,
}

/// One segment, as `describe` sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentInfo {
    pub base_offset: i64,
    pub size_bytes: u64,
}

impl LogView {
    /// For who must not wait for the disk: what is not in memory is answered with an error that
    /// [`ReadError::is_cold`] knows. (The index of aborted transactions is waited for.)
    #[must_use]
    pub fn from_memory(self) -> LogView {
        LogView { from_memory: true, ..self }
    }

    pub(super) fn reads(&self) -> Reads<'_> {
        Reads { disk: &*self.shared.disk, from_memory: self.from_memory }
    }

    /// The first offset that can be read.
    pub fn log_start_offset(&self) -> i64 {
        self.shared.log_start_offset.load(Ordering::Acquire)
    }

    /// The offset of the next record.
    pub fn log_end_offset(&self) -> i64 {
        self.shared.log_end_offset.load(Ordering::Acquire)
    }

    /// Bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        self.shared.segments.load().iter().map(|segment| segment.size()).sum()
    }

    /// By base offset.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let info = |segment: &Arc<Segment>| SegmentInfo {
            base_offset: segment.base_offset,
            size_bytes: segment.size(),
        };
        self.shared.segments.load().iter().map(info).collect()
    }

    /// Finds the bytes of the records from `offset` on and below `upper_offset` (a high watermark,
    /// a last stable offset, or the log end), as Kafka does: raw, from the begin of the batch that
    /// holds `offset` or the next one after a gap, at most `max_bytes` even if that tears a batch,
    /// all from one segment. With `at_least_one_batch` the first batch comes whole whatever its
    /// size. `None`: nothing there yet.
    ///
    /// # Errors
    /// `OffsetOutOfRange` below the log start or above the log end.
    pub fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        upper_offset: i64,
        at_least_one_batch: bool,
    ) -> Result<Option<Slice>, ReadError> {
        self.settled(|| {
            let (start, end) = (self.log_start_offset(), self.log_end_offset());
            if offset < start || offset > end {
                return Err(ReadError::OffsetOutOfRange { offset, start, end });
            }
            self.slice(offset, max_bytes, upper_offset.min(end), at_least_one_batch)
        })
    }

    /// Looks again if a file was renamed by retention since the list of segments was read, or if
    /// the log was cut meanwhile.
    pub(super) fn settled<T>(
        &self,
        look: impl Fn() -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let cuts = self.shared.cuts.count();
        match look() {
            Err(ReadError::Storage(error))
                if error.is_not_found() || cuts != self.shared.cuts.count() =>
            {
                look()
            }
            other => other,
        }
    }

    fn slice(
        &self,
        offset: i64,
        max_bytes: usize,
        upper_offset: i64,
        at_least_one_batch: bool,
    ) -> Result<Option<Slice>, ReadError> {
        if offset >= upper_offset {
            return Ok(None);
        }
        let segments = self.shared.segments.load();
        let Some((at, batch)) = self.find(&segments, offset)? else { return Ok(None) };
        let Some(segment) = segments.get(at) else { return Ok(None) };
        if batch.base_offset >= upper_offset {
            return Ok(None);
        }
        let next_base = segments.get(at + 1).map(|next| next.base_offset);
        let limit = match next_base {
            Some(next_base) if next_base <= upper_offset => segment.size(),
            _ => segment.locate(self.reads(), upper_offset)?.position(),
        };
        let there = usize::try_from(limit.saturating_sub(batch.position)).unwrap_or(usize::MAX);
        let allowed = if at_least_one_batch { max_bytes.max(batch.size) } else { max_bytes };
        let len = there.min(allowed);
        if len == 0 {
            return Ok(None);
        }
        let file = segment.log_file(&*self.shared.disk)?;
        let is_tail = next_base.is_none() && segment.size() - batch.position <= TAIL_BYTES;
        if self.from_memory && !is_tail {
            touch(&*file, batch.position, len)
                .map_err(|error| StorageError::io("read", &segment.path(Kind::Log), error))?;
        }
        Ok(Some(Slice {
            file,
            position: batch.position,
            len,
            first_batch: batch.size,
            base_offset: batch.base_offset,
        }))
    }

    /// The batch that holds `offset`, or the next one, and the number of its segment.
    pub(crate) fn find(
        &self,
        segments: &[Arc<Segment>],
        offset: i64,
    ) -> Result<Option<(usize, Placed)>, StorageError> {
        let first = Shared::index_of(segments, offset);
        for (at, segment) in segments.iter().enumerate().skip(first) {
            if let Spot::At(batch) = segment.locate(self.reads(), offset)? {
                return Ok(Some((at, batch)));
            }
        }
        Ok(None)
    }

    /// The aborted transactions that overlap the offsets from `fetch_offset` to below
    /// `upper_offset`, for a reader of committed records (Kafka `collectAbortedTransactions`).
    ///
    /// # Errors
    /// The disk's.
    pub fn aborted_transactions(
        &self,
        fetch_offset: i64,
        upper_offset: i64,
    ) -> Result<Vec<AbortedTxn>, ReadError> {
        self.settled(|| {
            let segments = self.shared.segments.load();
            let mut found = Vec::new();
            for segment in segments.iter().skip(Shared::index_of(&segments, fetch_offset)) {
                for txn in segment.aborted(&*self.shared.disk)?.iter() {
                    if txn.last_offset >= fetch_offset && txn.first_offset < upper_offset {
                        found.push(*txn);
                    }
                    // Whatever aborted later began at or above this.
                    if txn.last_stable_offset >= upper_offset {
                        return Ok(found);
                    }
                }
            }
            Ok(found)
        })
    }
}

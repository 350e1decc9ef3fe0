//! Appending: check, assign, roll if due, write once, publish.
//!
//! A batch that cannot be written leaves nothing behind: the file is cut back, and what memory
//! knows changes only after the write.

use std::ops::Range;

use protocol_compat::batch::{BatchHeader, ControlType, assign, batches, crc_matches, records};

use super::names::Kind;
use super::txn_index::AbortedTxn;
use super::{FirstTimestamp, Log};
use crate::errors::{AppendError, StorageError};
use crate::producers::{Marker, Origin};

/// A control batch is a marker of some hundred bytes; more is not looked into.
pub(super) const CONTROL_MAX: usize = 64 << 10;
/// Room is reserved in such steps, once a segment has seen [`ALLOCATE_FROM`] bytes.
const ALLOCATE_STEP: u64 = 16 << 20;
const ALLOCATE_FROM: u64 = 1 << 20;

/// Where a batch went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    pub base_offset: i64,
    pub last_offset: i64,
    pub log_start_offset: i64,
    /// The batch had been appended before, with this timestamp (its highest), at these offsets;
    /// nothing was written now.
    pub duplicate: Option<i64>,
}

/// A checked batch on its way into the log.
struct Coming {
    header: BatchHeader,
    marker: Option<Marker>,
}

impl Log {
    /// Appends one batch that `protocol_compat::batch::validate_produce` (or the broker itself) has
    /// found in order: `batch` is exactly that batch. Offsets and leader epoch are set in place.
    ///
    /// # Errors
    /// See [`AppendError`]; the log is as it was.
    pub fn append(
        &mut self,
        batch: &mut [u8],
        leader_epoch: i32,
        now_ms: i64,
        origin: Origin,
    ) -> Result<Appended, AppendError> {
        let mut header = parse(batch)?;
        if header.total_size() != batch.len() {
            let (size, len) = (header.total_size(), batch.len());
            return Err(AppendError::Malformed(format!("{len} bytes for a batch of {size}")));
        }
        self.check_fits(batch.len())?;
        let marker = marker_of(&header, batch)?;
        if let Some(marker) = marker {
            self.producers.check_marker(&header, marker)?;
        } else if !header.is_control()
            && let Some(mark) = self.producers.check(&header, origin)?
        {
            return Ok(Appended {
                base_offset: mark.first_offset(),
                last_offset: mark.last_offset,
                log_start_offset: self.log_start_offset,
                duplicate: Some(mark.timestamp_ms),
            });
        }
        header.base_offset = self.log_end_offset;
        header.partition_leader_epoch = leader_epoch;
        check_offsets(&header)?;
        assign(batch, header.base_offset, leader_epoch);
        self.roll_if_due(&header, batch.len(), now_ms)?;
        self.write(batch)?;
        self.note(&Coming { header, marker });
        Ok(Appended {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            log_start_offset: self.log_start_offset,
            duplicate: None,
        })
    }

    /// Appends batches as a leader sent them, offsets and epochs as they are. A batch cut short at
    /// the end is left out. Producers are not checked: the leader did. The answer spans what was
    /// appended, `None` when there was no whole batch.
    ///
    /// # Errors
    /// See [`AppendError`]. On a full or failing disk, batches before the failing one may have been
    /// appended; look at the log end.
    pub fn append_replica(
        &mut self,
        bytes: &[u8],
        now_ms: i64,
    ) -> Result<Option<Appended>, AppendError> {
        let coming = self.check_replica(bytes)?;
        let Some((first, _)) = coming.first() else { return Ok(None) };
        let base_offset = first.header.base_offset;
        let mut rest = &coming[..];
        while let Some((next, _)) = rest.first() {
            self.roll_if_due(&next.header, next.header.total_size(), now_ms)?;
            let fits = self.run_that_fits(rest);
            let (run, after) = rest.split_at(fits);
            self.write_run(bytes, run)?;
            rest = after;
        }
        Ok(Some(Appended {
            base_offset,
            last_offset: self.log_end_offset - 1,
            log_start_offset: self.log_start_offset,
            duplicate: None,
        }))
    }

    fn check_replica(&self, bytes: &[u8]) -> Result<Vec<(Coming, Range<usize>)>, AppendError> {
        let (mut coming, mut at, mut end) = (Vec::new(), 0, self.log_end_offset);
        for batch in batches(bytes) {
            let (header, batch) = batch.map_err(|e| AppendError::Malformed(e.to_string()))?;
            check_offsets(&header)?;
            if !crc_matches(batch) {
                let text = format!("checksum of the batch at offset {}", header.base_offset);
                return Err(AppendError::Malformed(text));
            }
            if header.base_offset < end {
                let got = header.base_offset;
                return Err(AppendError::OffsetsBehind { got, log_end_offset: end });
            }
            self.check_fits(batch.len())?;
            let marker = marker_of(&header, batch)?;
            coming.push((Coming { header, marker }, at..at + batch.len()));
            at += batch.len();
            end = header.next_offset();
        }
        Ok(coming)
    }

    /// How many of the batches, at least one, go into the active segment with one write.
    fn run_that_fits(&self, coming: &[(Coming, Range<usize>)]) -> usize {
        let room = u64::from(self.config.segment_bytes).saturating_sub(self.active.size);
        let mut size = 0;
        let fits = |(next, range): &&(Coming, Range<usize>)| {
            size += range.len() as u64;
            size <= room && self.spans(next.header.last_offset())
        };
        coming.iter().take_while(fits).count().max(1)
    }

    fn write_run(
        &mut self,
        bytes: &[u8],
        run: &[(Coming, Range<usize>)],
    ) -> Result<(), AppendError> {
        let (Some((_, first)), Some((_, last))) = (run.first(), run.last()) else { return Ok(()) };
        self.write(bytes.get(first.start..last.end).unwrap_or_default())?;
        run.iter().for_each(|(coming, _)| self.note(coming));
        Ok(())
    }

    fn check_fits(&self, size: usize) -> Result<(), AppendError> {
        let segment_bytes = self.config.segment_bytes;
        if size as u64 > u64::from(segment_bytes) {
            return Err(AppendError::RecordListTooLarge { size, segment_bytes });
        }
        Ok(())
    }

    /// Writes at the end of the active segment. After a failure the file ends where it did.
    fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.heal()?;
        self.reserve(bytes.len() as u64);
        if let Err(error) = self.active.file.write_at(&[bytes], self.active.size) {
            self.active.torn = true;
            self.flush.touch();
            self.active.allocated = self.active.size;
            // If that is not possible now it is done before the next write, roll or close.
            let _ = self.heal();
            return Err(StorageError::io("append to", &self.active.segment.path(Kind::Log), error));
        }
        self.active.size += bytes.len() as u64;
        Ok(())
    }

    /// Takes away what a failed write left behind the end of the active segment; the next group
    /// makes that durable.
    pub(super) fn heal(&mut self) -> Result<(), StorageError> {
        if self.active.torn {
            let path = self.active.segment.path(Kind::Log);
            self.active.file.set_len(self.active.size).map_err(Log::failed("trim", &path))?;
            self.active.torn = false;
            self.flush.name_active();
        }
        Ok(())
    }

    /// Reserves room ahead of a busy segment. Whether that works does not matter: a full disk
    /// shows at the write, and only when there is no room for the write itself.
    fn reserve(&mut self, len: u64) {
        let active = &mut self.active;
        if active.size < ALLOCATE_FROM || active.size + len <= active.allocated {
            return;
        }
        let limit = u64::from(self.config.segment_bytes).max(active.size + len);
        let until = (active.size + len + ALLOCATE_STEP).min(limit);
        if active.file.allocate(active.size, until - active.size).is_ok() {
            active.allocated = until;
        } else {
            // Not again for this many bytes.
            active.allocated = active.size + ALLOCATE_FROM;
        }
    }

    /// Gives back the room that was reserved and not used: others need it more.
    pub fn give_back_room(&mut self) {
        let active = &mut self.active;
        if active.allocated > active.size && active.file.set_len(active.size).is_ok() {
            active.allocated = active.size;
        }
    }

    /// Makes a batch that is in the file part of the log.
    fn note(&mut self, coming: &Coming) {
        let header = &coming.header;
        if self.active.first_timestamp == FirstTimestamp::NoBatch {
            self.active.first_timestamp = FirstTimestamp::Known(header.max_timestamp);
        }
        self.epochs.assign(header.partition_leader_epoch, header.base_offset);
        self.flush.wrote(header.total_size());
        let aborted = self.producers.note(header, coming.marker).filter(|txn| txn.aborted);
        let segment = &self.active.segment;
        {
            let mut state = segment.state.write();
            state.note(segment.base_offset, header, self.config.index_interval_bytes);
            if let Some(txn) = aborted {
                state.note_abort(AbortedTxn::of(&txn));
            }
        }
        self.publish_end(header.next_offset());
    }
}

/// Reads the header of a batch that claims to be whole.
fn parse(batch: &[u8]) -> Result<BatchHeader, AppendError> {
    BatchHeader::parse(batch).map_err(|e| AppendError::Malformed(e.to_string()))
}

fn check_offsets(header: &BatchHeader) -> Result<(), AppendError> {
    let last = header.base_offset.checked_add(i64::from(header.last_offset_delta));
    if header.base_offset < 0
        || header.last_offset_delta < 0
        || last.is_none_or(|last| last == i64::MAX)
    {
        let (base, delta) = (header.base_offset, header.last_offset_delta);
        return Err(AppendError::Malformed(format!("offsets {base} and {delta} more")));
    }
    Ok(())
}

/// What a control batch of a producer says; `None` for data, for other control batches, and for
/// markers that compaction has emptied.
pub(super) fn marker_of(header: &BatchHeader, batch: &[u8]) -> Result<Option<Marker>, AppendError> {
    if !header.is_control() || !header.has_producer_id() {
        return Ok(None);
    }
    let bad = |what: String| AppendError::Malformed(format!("control batch: {what}"));
    let mut scratch = Vec::new();
    let (_, mut records) =
        records(batch, &mut scratch, CONTROL_MAX).map_err(|e| bad(e.to_string()))?;
    let Some(record) = records.next() else { return Ok(None) };
    let record = record.map_err(|e| bad(e.to_string()))?;
    let abort = match record.key.and_then(ControlType::parse) {
        Some(ControlType::Abort) => true,
        Some(ControlType::Commit) => false,
        _ => return Ok(None),
    };
    // Version i16, then the coordinator's epoch.
    let epoch = record.value.and_then(|value| value.get(2..6)).and_then(|four| four.first_chunk());
    let Some(epoch) = epoch else { return Err(bad("marker without an epoch".to_owned())) };
    Ok(Some(Marker { abort, coordinator_epoch: i32::from_be_bytes(*epoch) }))
}

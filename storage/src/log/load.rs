//! Making the state of segments from their files, and of producers from batches.
//!
//! What opening, recovery and truncation have in common: begin with the index entries that can be
//! trusted, scan the headers of the rest.

use std::io;
use std::sync::Arc;

use protocol_compat::batch::{BatchHeader, HEADER_LEN};

use super::Log;
use super::append::{CONTROL_MAX, marker_of};
use super::index::{Entries, Entry, OffsetEntry, entries_in, read_exact, search_file};
use super::names::Kind;
use super::recover::Recovered;
use super::roll::spans;
use super::scan::{CHECK, HeaderScan, LOOK_UP, ScanError, Scanned};
use super::segment::{Largest, Segment, State};
use super::time_index::TimeEntry;
use super::txn_index::AbortedTxn;
use super::view::Shared;
use crate::disk::{Disk, File, OpenMode};
use crate::errors::StorageError;
use crate::producers::{Marker, Producers};

/// Where a segment's indexes can be trusted up to.
pub(super) struct Prefix {
    offset_entries: usize,
    last: OffsetEntry,
    time_entries: usize,
    last_time: Option<TimeEntry>,
}

impl Prefix {
    /// The state up to the batch of the last entry, which is scanned again.
    fn begin(self, state: &mut State, base_offset: i64) {
        state.size = u64::from(self.last.position);
        state.offsets = Entries::after(self.offset_entries, Some(self.last));
        state.times = Entries::after(self.time_entries, self.last_time);
        if let Some(time) = self.last_time {
            let offset = base_offset + i64::from(time.relative);
            state.largest = Some(Largest { timestamp: time.timestamp, offset });
        }
    }
}

impl Log {
    /// The aborted transactions of a segment whose marker lies below `offset`.
    pub(super) fn aborted_below(
        &self,
        segment: &Segment,
        offset: i64,
    ) -> Result<Vec<AbortedTxn>, StorageError> {
        let mut aborted = segment.aborted(&*self.disk)?.to_vec();
        aborted.retain(|txn| txn.last_offset < offset);
        Ok(aborted)
    }

    /// Makes the state of a segment anew from its first `end` bytes, beginning with what `prefix`
    /// trusts. On damage the state is that of the batches before it.
    pub(super) fn scan_into(
        &self,
        segment: &Segment,
        file: &dyn File,
        end: u64,
        chunk: usize,
        prefix: Option<Prefix>,
        mut check: impl FnMut(&mut HeaderScan<'_>, &Scanned) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        let base_offset = segment.base_offset;
        let mut state = State::empty(base_offset);
        if let Some(prefix) = prefix {
            prefix.begin(&mut state, base_offset);
        }
        state.aborted = None;
        let mut scan = HeaderScan::new(file, state.size, end, chunk);
        let result = loop {
            let batch = match scan.next() {
                Ok(Some(batch)) => batch,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            if let Err(error) = in_order(&state, base_offset, &batch) {
                break Err(error);
            }
            if let Err(error) = check(&mut scan, &batch) {
                break Err(error);
            }
            state.note(base_offset, &batch.header, self.config.index_interval_bytes);
        };
        let aborted = segment.state.write().aborted.take();
        *segment.state.write() = State { aborted, ..state };
        result
    }

    /// Makes the state of the active segment from its first `end` bytes, trusting index entries of
    /// batches below `below_offset`; the log end, or `None` when the bytes are not whole batches.
    pub(super) fn load_active(
        &mut self,
        end: u64,
        below_offset: i64,
        report: &mut Recovered,
    ) -> Result<Option<i64>, StorageError> {
        let (segment, file) = (self.active.segment.clone(), self.active.file.clone());
        let mut load = || {
            let prefix = trusted_prefix(&*self.disk, &segment, &*file, end, below_offset)?;
            self.scan_into(&segment, &*file, end, LOOK_UP, prefix, |_, batch| {
                report.count(batch);
                Ok(())
            })
        };
        match load() {
            Ok(()) => Ok(Some(segment.state.read().next_offset)),
            Err(ScanError::Bad { .. }) => Ok(None),
            Err(error) => Err(segment.scan_error(error)),
        }
    }

    /// Notes the producers of the batches from `offset` on, which a snapshot does not hold.
    pub(super) fn replay_producers(
        &mut self,
        offset: i64,
        report: &mut Recovered,
    ) -> Result<(), StorageError> {
        let segments = self.segments();
        let mut from = offset;
        for segment in segments.iter().skip(Shared::index_of(&segments, offset)) {
            if from >= self.log_end_offset {
                break;
            }
            let file = segment.log_file(&*self.disk)?;
            let position = segment.locate(&*self.disk, from)?.position();
            let mut scan = HeaderScan::new(&*file, position, segment.size(), CHECK);
            let mut replay = |producers: &mut Producers| {
                while let Some(batch) = scan.next()? {
                    report.count(&batch);
                    from = from.max(batch.header.next_offset());
                    producers.note(&batch.header, read_marker(&*file, &batch)?);
                }
                Ok(())
            };
            replay(&mut self.producers).map_err(|error| segment.scan_error(error))?;
        }
        Ok(())
    }

    /// Writes the indexes of a sealed segment that were made anew and lets go of them in memory. If
    /// they cannot be written they stay in memory, and the next start makes them again.
    pub(super) fn finish_rebuilt(
        &mut self,
        segment: &Arc<Segment>,
        report: &mut Recovered,
    ) -> Result<(), StorageError> {
        report.indexes_rebuilt += 1;
        segment.state.write().note_final_time(segment.base_offset);
        segment.forget_index_files();
        let written = self.write_indexes(segment, true).and_then(|()| self.rewrite_aborts(segment));
        match written {
            Ok(()) => segment.seal(),
            Err(error) => tracing::warn!(partition = %self.tp, %error, "index stays in memory"),
        }
        Ok(())
    }

    /// Makes the file of aborted transactions hold what memory does.
    pub(super) fn rewrite_aborts(&mut self, segment: &Arc<Segment>) -> Result<(), StorageError> {
        let aborted = segment.state.read().aborted.clone().unwrap_or_default();
        let path = segment.path(Kind::TxnIndex);
        if aborted.is_empty() {
            return match self.disk.remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(StorageError::io("remove", &path, error))
                }
                _ => Ok(()),
            };
        }
        let bytes: Vec<u8> = aborted.iter().flat_map(AbortedTxn::encode).collect();
        self.write_side_file(&path, &bytes, 0).map_err(Log::failed("write", &path))
    }
}

/// The index entries of batches below `below_offset`, if the files are there and the last entry is
/// of the batch it points to.
pub(super) fn trusted_prefix(
    disk: &dyn Disk,
    segment: &Segment,
    file: &dyn File,
    end: u64,
    below_offset: i64,
) -> io::Result<Option<Prefix>> {
    let below = u32::try_from(below_offset.saturating_sub(segment.base_offset)).unwrap_or(u32::MAX);
    let holds = |entry: &OffsetEntry| entry.relative < below && u64::from(entry.position) < end;
    let Some((offset_entries, Some(last))) = search_path(disk, segment, Kind::Index, holds)? else {
        return Ok(None);
    };
    if !is_entry_of(file, segment.base_offset, last)? {
        return Ok(None);
    }
    let holds = |entry: &TimeEntry| entry.relative <= last.relative;
    let Some((time_entries, last_time)) = search_path(disk, segment, Kind::TimeIndex, holds)?
    else {
        return Ok(None);
    };
    Ok(Some(Prefix { offset_entries, last, time_entries, last_time }))
}

/// Searches a whole index file; `None` when it is absent.
fn search_path<E: Entry>(
    disk: &dyn Disk,
    segment: &Segment,
    kind: Kind,
    holds: impl Fn(&E) -> bool,
) -> io::Result<Option<(usize, Option<E>)>> {
    let file = match disk.open(&segment.path(kind), OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let entries = entries_in::<E>(&*file)?;
    search_file(&*file, entries, holds).map(Some)
}

/// Whether the batch at the entry's position ends with the entry's offset.
fn is_entry_of(file: &dyn File, base_offset: i64, entry: OffsetEntry) -> io::Result<bool> {
    let mut bytes = [0; HEADER_LEN];
    match read_exact(file, &mut bytes, u64::from(entry.position)) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        other => other?,
    }
    let offset = base_offset + i64::from(entry.relative);
    Ok(BatchHeader::parse(&bytes).is_ok_and(|header| header.last_offset() == offset))
}

/// Whether a batch may follow what the state holds.
fn in_order(state: &State, base_offset: i64, batch: &Scanned) -> Result<(), ScanError> {
    let header = &batch.header;
    if header.base_offset < state.next_offset {
        return Err(batch.bad(format!("offset {} after {}", header.base_offset, state.next_offset)));
    }
    if !spans(base_offset, header.last_offset()) {
        return Err(batch.bad(format!("offset {} is too far off", header.last_offset())));
    }
    Ok(())
}

/// What a control batch of a producer says. One that cannot be understood says nothing.
pub(super) fn read_marker(file: &dyn File, batch: &Scanned) -> io::Result<Option<Marker>> {
    let (header, size) = (&batch.header, batch.header.total_size());
    if !header.is_control() || !header.has_producer_id() || size > CONTROL_MAX {
        return Ok(None);
    }
    let mut bytes = vec![0; size];
    read_exact(file, &mut bytes, batch.position)?;
    marker_of(header, &bytes).or_else(|error| {
        tracing::warn!(offset = header.base_offset, %error, "control batch passed over");
        Ok(None)
    })
}

/// An error of a call made during a scan.
pub(super) fn as_scan_error(error: StorageError) -> ScanError {
    match error {
        StorageError::Io { source, .. } => ScanError::Io(source),
        other => ScanError::Io(io::Error::other(other)),
    }
}

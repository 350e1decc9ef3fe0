//! Making the state of segments from their files, and of producers from batches.
//!
//! What opening, recovery and truncation have in common: begin with the index entries that can be
//! trusted, scan the headers of the rest.

use std::io;
use std::sync::Arc;

use protocol_compat::batch::{BatchHeader, HEADER_LEN};

use super::Log;
use super::append::{CONTROL_MAX, marker_of};
use super::index::{Entries, Entry, OffsetEntry, entries_in, read_entry, read_exact};
use super::names::Kind;
use super::recover::Recovered;
use super::roll::spans;
use super::scan::{HeaderScan, LOOK_UP, ScanError, Scanned};
use super::segment::{Largest, Segment, State};
use super::time_index::TimeEntry;
use super::txn_index::AbortedTxn;
use crate::disk::{Disk, File, OpenMode};
use crate::errors::StorageError;
use crate::producers::Marker;

/// Index entries read at a time.
const READ_ENTRIES: usize = 8192;

/// Where a segment's indexes can be trusted up to.
pub(super) struct Prefix {
    offset_entries: usize,
    last: Option<OffsetEntry>,
    time_entries: usize,
    last_time: Option<TimeEntry>,
    /// The files lack nothing: the batches that follow get no entries.
    is_whole: bool,
}

/// How far index files are believed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trust {
    /// A clean stop wrote them: if the last entry is of its batch, all are.
    Closed,
    /// Only so many entries of each, and only for batches below an offset; the files may hold
    /// anything after those.
    Below { offset: i64, offsets: usize, times: usize },
}

impl Trust {
    pub(super) fn below(offset: i64) -> Trust {
        Trust::Below { offset, offsets: usize::MAX, times: usize::MAX }
    }
}

impl Prefix {
    /// The state up to the batch of the last entry, which is scanned again.
    fn begin(self, state: &mut State, base_offset: i64) {
        state.size = self.last.map_or(0, |last| u64::from(last.position));
        state.offsets = Entries::after(self.offset_entries, self.last);
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
        let is_indexed = prefix.as_ref().is_some_and(|prefix| prefix.is_whole);
        let interval = if is_indexed { u32::MAX } else { self.config.index_interval_bytes };
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
            state.note(base_offset, &batch.header, interval);
        };
        if is_indexed {
            // As in Kafka, what comes now is counted anew.
            state.since_index = 0;
        }
        let aborted = segment.state.write().aborted.take();
        *segment.state.write() = State { aborted, ..state };
        result
    }

    /// Makes the state of the active segment from its first `end` bytes; the log end, or `None`
    /// when the bytes are not whole batches.
    pub(super) fn load_active(
        &mut self,
        end: u64,
        trust: Trust,
        report: &mut Recovered,
    ) -> Result<Option<i64>, StorageError> {
        let (segment, file) = (self.active.segment.clone(), self.active.file.clone());
        let mut load = || {
            let prefix = trusted_prefix(&*self.disk, &segment, &*file, end, trust)?;
            self.scan_into(&segment, &*file, end, LOOK_UP, prefix, |_, batch| {
                report.count(batch);
                Ok(())
            })
        };
        match load() {
            Ok(()) => {
                let state = segment.state.read();
                let last = state.times.last().map_or(-1, |last| i64::from(last.relative));
                Ok(Some(state.next_offset).filter(|next| segment.base_offset + last < *next))
            }
            Err(ScanError::Bad { .. }) => Ok(None),
            Err(error) => Err(segment.scan_error(error)),
        }
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

/// The index entries of a segment that can be trusted, if the last of them is of the batch it
/// points to. The log file ends at `end`.
pub(super) fn trusted_prefix(
    disk: &dyn Disk,
    segment: &Segment,
    file: &dyn File,
    end: u64,
    trust: Trust,
) -> io::Result<Option<Prefix>> {
    let open = |kind: Kind| match disk.open(&segment.path(kind), OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    };
    let Some(index) = open(Kind::Index)? else { return Ok(None) };
    let (offset_entries, last) = match trust {
        Trust::Closed => last_entry(&*index)?,
        Trust::Below { offset, offsets, .. } => {
            let below = u32::try_from(offset.saturating_sub(segment.base_offset));
            rising_offsets(&*index, offsets, below.unwrap_or(u32::MAX), end)?
        }
    };
    let is_whole = matches!(trust, Trust::Closed);
    let is_sound = match last {
        Some(last) => {
            u64::from(last.position) < end && is_entry_of(file, segment.base_offset, last)?
        }
        None => is_whole,
    };
    if !is_sound {
        return Ok(None);
    }
    let Some(index) = open(Kind::TimeIndex)? else { return Ok(None) };
    let (time_entries, last_time) = match trust {
        // The very last one may be of a later batch than the offset index knows.
        Trust::Closed => last_entry(&*index)?,
        Trust::Below { times, .. } => {
            rising_times(&*index, times, last.map_or(0, |last| last.relative))?
        }
    };
    Ok(Some(Prefix { offset_entries, last, time_entries, last_time, is_whole }))
}

/// The last entry of a file, and how many there are.
fn last_entry<E: Entry>(index: &dyn File) -> io::Result<(usize, Option<E>)> {
    let entries = entries_in::<E>(index)?;
    let last = entries.checked_sub(1).map(|last| read_entry(index, last)).transpose()?;
    Ok((entries, last))
}

/// The first entries of a file as long as they rise and lie below the bounds.
fn rising_offsets(
    index: &dyn File,
    entries_max: usize,
    below: u32,
    end: u64,
) -> io::Result<(usize, Option<OffsetEntry>)> {
    entries_while(index, entries_max, |last: Option<&OffsetEntry>, entry: &OffsetEntry| {
        entry.relative < below
            && u64::from(entry.position) < end
            && last
                .is_none_or(|last| last.relative < entry.relative && last.position < entry.position)
    })
}

/// The same for times; they go up to the offset `relative`.
fn rising_times(
    index: &dyn File,
    entries_max: usize,
    relative: u32,
) -> io::Result<(usize, Option<TimeEntry>)> {
    entries_while(index, entries_max, |last: Option<&TimeEntry>, entry: &TimeEntry| {
        entry.relative <= relative
            && last.is_none_or(|last| {
                last.timestamp < entry.timestamp && last.relative < entry.relative
            })
    })
}

/// How many entries of a file `fits` accepts, given the one before, up to the first that it does
/// not; and the last of them.
fn entries_while<E: Entry>(
    index: &dyn File,
    entries_max: usize,
    fits: impl Fn(Option<&E>, &E) -> bool,
) -> io::Result<(usize, Option<E>)> {
    let entries = entries_in::<E>(index)?.min(entries_max);
    let (mut at, mut last) = (0, None);
    let mut block = Vec::new();
    while at < entries {
        block.resize((entries - at).min(READ_ENTRIES) * E::SIZE, 0);
        read_exact(index, &mut block, (at * E::SIZE) as u64)?;
        for bytes in block.chunks_exact(E::SIZE) {
            let entry = E::get(bytes);
            if !fits(last.as_ref(), &entry) {
                return Ok((at, last));
            }
            last = Some(entry);
            at += 1;
        }
    }
    Ok((at, last))
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

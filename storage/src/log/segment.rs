//! One segment: a log file, its indexes, and what is known of it in memory.
//!
//! Shared by the writer and by readers. The writer publishes each batch under a short lock
//! ([`State`]); readers look up positions under it and do their I/O after it. Files are opened when
//! first needed and closed again when idle; the active segment's log file stays open.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use protocol_compat::batch::BatchHeader;

use super::index::{Entries, Entry, OffsetEntry, entries_in, read_entry, search_file};
use super::names::{Kind, file_path};
use super::scan::{HeaderScan, LOOK_UP, ScanError, Scanned};
use super::time_index::TimeEntry;
use super::txn_index::{self, AbortedTxn};
use crate::disk::{Disk, File, FromMemory, OpenMode};
use crate::errors::StorageError;

/// The exact places of so many of a segment's newest batches are kept in memory.
const RECENT: usize = 64;

/// A batch and where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    pub(crate) base_offset: i64,
    pub(crate) next_offset: i64,
    pub(crate) position: u64,
    pub(crate) size: usize,
}

impl From<Scanned> for Placed {
    fn from(batch: Scanned) -> Placed {
        Placed {
            base_offset: batch.header.base_offset,
            next_offset: batch.header.next_offset(),
            position: batch.position,
            size: batch.header.total_size(),
        }
    }
}

/// Where an offset is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spot {
    /// In this batch, or this is the next one after a gap.
    At(Placed),
    /// Behind the last batch, which ends here.
    End(u64),
}

impl Spot {
    pub(crate) fn position(&self) -> u64 {
        match self {
            Spot::At(batch) => batch.position,
            Spot::End(position) => *position,
        }
    }
}

/// The highest timestamp of a segment and the last offset of the batch that bears it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Largest {
    pub(crate) timestamp: i64,
    pub(crate) offset: i64,
}

/// What readers and the writer share of a segment.
#[derive(Debug)]
pub(crate) struct State {
    /// The offset after the last batch; `i64::MAX` for a sealed segment that was not scanned.
    pub(crate) next_offset: i64,
    /// Bytes of whole batches.
    pub(crate) size: u64,
    pub(crate) offsets: Entries<OffsetEntry>,
    pub(crate) times: Entries<TimeEntry>,
    /// The newest batches, oldest first; empty once sealed.
    pub(crate) recent: VecDeque<Placed>,
    /// `None`: look at the files.
    pub(crate) largest: Option<Largest>,
    /// Bytes of batches since the last index entry.
    pub(crate) since_index: u64,
    /// `None`: look at the file.
    pub(crate) aborted: Option<Arc<Vec<AbortedTxn>>>,
}

impl State {
    /// Of a segment with nothing in it.
    pub(crate) fn empty(base_offset: i64) -> State {
        State {
            next_offset: base_offset,
            size: 0,
            offsets: Entries::empty(),
            times: Entries::empty(),
            recent: VecDeque::new(),
            largest: Some(Largest { timestamp: -1, offset: base_offset }),
            since_index: 0,
            aborted: Some(Arc::default()),
        }
    }

    /// Of a segment that will not change and was not looked into.
    pub(crate) fn sealed(size: u64) -> State {
        State {
            next_offset: i64::MAX,
            size,
            offsets: Entries::unread(),
            times: Entries::unread(),
            recent: VecDeque::new(),
            largest: None,
            since_index: 0,
            aborted: None,
        }
    }

    /// Notes the batch that follows the last one: its place, and its index entries if they are due
    /// (Kafka `LogSegment.append`).
    pub(crate) fn note(&mut self, base_offset: i64, header: &BatchHeader, interval: u32) {
        let size = header.total_size();
        let last_offset = header.last_offset();
        let relative = relative(base_offset, last_offset);
        let largest = self.largest.get_or_insert(Largest { timestamp: -1, offset: base_offset });
        if header.max_timestamp > largest.timestamp {
            *largest = Largest { timestamp: header.max_timestamp, offset: last_offset };
        }
        let largest = *largest;
        if self.since_index > u64::from(interval) {
            let position = u32::try_from(self.size).unwrap_or(u32::MAX);
            self.offsets.push(OffsetEntry { relative, position });
            self.note_time(base_offset, largest);
            self.since_index = 0;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Placed {
            base_offset: header.base_offset,
            next_offset: header.next_offset(),
            position: self.size,
            size,
        });
        self.size += size as u64;
        self.since_index += size as u64;
        self.next_offset = header.next_offset();
    }

    /// Notes a transaction that the last batch aborted.
    pub(crate) fn note_abort(&mut self, txn: AbortedTxn) {
        Arc::make_mut(self.aborted.get_or_insert_default()).push(txn);
    }

    fn note_time(&mut self, base_offset: i64, largest: Largest) {
        let relative = relative(base_offset, largest.offset);
        self.times.push_if_later(TimeEntry { timestamp: largest.timestamp, relative });
    }

    /// The last entry of the time index, which a segment gets when nothing more will be added.
    pub(crate) fn note_final_time(&mut self, base_offset: i64) {
        if let Some(largest) = self.largest {
            self.note_time(base_offset, largest);
        }
    }
}

/// An offset as an index holds it. A segment spans less than 2^31 offsets, by the rules of rolling.
fn relative(base_offset: i64, offset: i64) -> u32 {
    let relative = u32::try_from(offset - base_offset);
    assert!(relative.is_ok(), "offset {offset} does not belong to the segment of {base_offset}");
    relative.unwrap_or_default()
}

/// How readers come to the bytes of a segment.
#[derive(Clone, Copy)]
pub(crate) struct Reads<'a> {
    pub(crate) disk: &'a dyn Disk,
    /// Fail with `WouldBlock` rather than wait for the disk.
    pub(crate) from_memory: bool,
}

impl<'a> Reads<'a> {
    /// Waits for the disk where it must.
    pub(crate) fn patient(disk: &'a dyn Disk) -> Reads<'a> {
        Reads { disk, from_memory: false }
    }

    pub(crate) fn of(self, file: Arc<dyn File>) -> Arc<dyn File> {
        if self.from_memory { Arc::new(FromMemory(file)) } else { file }
    }
}

/// A file that is opened when first used.
#[derive(Debug, Default)]
struct Handle {
    file: Mutex<Option<Arc<dyn File>>>,
    used: AtomicBool,
}

impl Handle {
    fn open(&self, disk: &dyn Disk, path: impl FnOnce() -> PathBuf) -> io::Result<Arc<dyn File>> {
        self.used.store(true, Ordering::Relaxed);
        let mut slot = self.file.lock();
        if let Some(file) = &*slot {
            return Ok(file.clone());
        }
        let file = disk.open(&path(), OpenMode::Read)?;
        *slot = Some(file.clone());
        Ok(file)
    }

    fn close_if_idle(&self) {
        if !self.used.swap(false, Ordering::Relaxed) {
            *self.file.lock() = None;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) base_offset: i64,
    dir: Arc<Path>,
    log: Handle,
    index: Handle,
    time_index: Handle,
    pub(crate) state: RwLock<State>,
}

/// What a look into memory says about an offset.
enum Start {
    Known(Spot),
    /// Scan from here to there.
    Scan {
        from: u64,
        end: u64,
    },
    /// Ask the index file, of which so many entries count; the log ends there.
    Search {
        count: usize,
        end: u64,
    },
}

impl Segment {
    pub(crate) fn new(dir: &Arc<Path>, base_offset: i64, state: State) -> Segment {
        Segment {
            base_offset,
            dir: dir.clone(),
            log: Handle::default(),
            index: Handle::default(),
            time_index: Handle::default(),
            state: RwLock::new(state),
        }
    }

    pub(crate) fn path(&self, kind: Kind) -> PathBuf {
        file_path(&self.dir, self.base_offset, kind)
    }

    pub(crate) fn size(&self) -> u64 {
        self.state.read().size
    }

    /// The log file; the writer's own while the segment is active.
    pub(crate) fn log_file(&self, disk: &dyn Disk) -> Result<Arc<dyn File>, StorageError> {
        self.log
            .open(disk, || self.path(Kind::Log))
            .map_err(|e| StorageError::io("open", &self.path(Kind::Log), e))
    }

    /// Lets readers use the writer's handle.
    pub(crate) fn set_log_file(&self, file: Arc<dyn File>) {
        *self.log.file.lock() = Some(file);
    }

    /// No more batches will come, and the index files hold every entry.
    pub(crate) fn seal(&self) {
        let mut state = self.state.write();
        state.offsets.drop_memory();
        state.times.drop_memory();
        state.recent = VecDeque::new();
        // Read again when someone asks; most segments have none.
        if state.aborted.as_ref().is_some_and(|aborted| !aborted.is_empty()) {
            state.aborted = None;
        }
    }

    /// Closes files that nobody used since the last call. Not for the active segment.
    pub(crate) fn close_idle_files(&self) {
        self.log.close_if_idle();
        self.close_idle_indexes();
    }

    pub(crate) fn close_idle_indexes(&self) {
        self.index.close_if_idle();
        self.time_index.close_if_idle();
    }

    /// Makes the next look-up open the index files anew.
    pub(crate) fn forget_index_files(&self) {
        *self.index.file.lock() = None;
        *self.time_index.file.lock() = None;
    }

    /// The batch that holds `offset`, or the first one after it.
    pub(crate) fn locate(&self, reads: Reads<'_>, offset: i64) -> Result<Spot, StorageError> {
        let (from, end) = match self.start_in_memory(offset) {
            Start::Known(spot) => return Ok(spot),
            Start::Scan { from, end } => (from, end),
            Start::Search { count, end } => {
                let relative = u32::try_from(offset - self.base_offset).unwrap_or(u32::MAX);
                let floor = self
                    .search(reads, Kind::Index, count, |e: &OffsetEntry| e.relative <= relative)?;
                let from = floor.map_or(0, |entry| u64::from(entry.position));
                // An index that points past the end is of another log.
                (if from < end { from } else { 0 }, end)
            }
        };
        let found = self.scan_for(reads, from..end, offset, |b| b.next_offset() > offset)?;
        Ok(found.map_or(Spot::End(end), |batch| Spot::At(batch.into())))
    }

    fn start_in_memory(&self, offset: i64) -> Start {
        let state = self.state.read();
        if offset >= state.next_offset {
            return Start::Known(Spot::End(state.size));
        }
        if let Some(oldest) = state.recent.front()
            && offset >= oldest.base_offset
        {
            let at = state.recent.partition_point(|batch| batch.next_offset <= offset);
            let spot = state.recent.get(at).copied().map_or(Spot::End(state.size), Spot::At);
            return Start::Known(spot);
        }
        let end = state.size;
        let relative = u32::try_from(offset.saturating_sub(self.base_offset)).unwrap_or(u32::MAX);
        if offset < self.base_offset {
            return Start::Scan { from: 0, end };
        }
        match state.offsets.floor_in_memory(|entry| entry.relative <= relative) {
            Some(entry) => Start::Scan { from: u64::from(entry.position), end },
            None if state.offsets.on_disk() == 0 => Start::Scan { from: 0, end },
            None => Start::Search { count: state.offsets.on_disk(), end },
        }
    }

    /// The last entry of an index file for which `holds`. No file, no entry: the log itself is the
    /// truth, and a scan from its begin finds everything.
    fn search<E: Entry>(
        &self,
        reads: Reads<'_>,
        kind: Kind,
        count: usize,
        holds: impl Fn(&E) -> bool,
    ) -> Result<Option<E>, StorageError> {
        let path = self.path(kind);
        let handle = if kind == Kind::Index { &self.index } else { &self.time_index };
        let search = || {
            let file = match handle.open(reads.disk, || path.clone()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                other => reads.of(other?),
            };
            let count = count.min(entries_in::<E>(&*file)?);
            search_file(&*file, count, holds).map(|(_, floor)| floor)
        };
        search().map_err(|e| StorageError::io("read", &path, e))
    }

    /// The first batch of a range that `wanted` accepts. Should the index have pointed to something
    /// that is no batch, or to one past `offset`, the scan starts again at the begin of the log.
    fn scan_for(
        &self,
        reads: Reads<'_>,
        range: Range<u64>,
        offset: i64,
        wanted: impl Fn(&BatchHeader) -> bool,
    ) -> Result<Option<Scanned>, StorageError> {
        let file = reads.of(self.log_file(reads.disk)?);
        match first_match(&*file, range.clone(), offset, &wanted) {
            Err(ScanError::Bad { .. }) if range.start > 0 => {
                tracing::warn!(file = %self.path(Kind::Index).display(), "index is not of its log");
                first_match(&*file, 0..range.end, offset, &wanted)
            }
            other => other,
        }
        .map_err(|error| self.scan_error(error))
    }

    pub(crate) fn scan_error(&self, error: ScanError) -> StorageError {
        let path = self.path(Kind::Log);
        match error {
            ScanError::Io(error) => StorageError::io("read", &path, error),
            ScanError::Bad { position, what } => StorageError::corrupt(&path, position, what),
        }
    }

    /// The first batch with a record as late as `timestamp`, by the batches' own word.
    pub(crate) fn locate_time(
        &self,
        reads: Reads<'_>,
        timestamp: i64,
        from_offset: i64,
    ) -> Result<Option<Scanned>, StorageError> {
        let from_offset = from_offset.max(self.base_offset);
        let earlier = self.time_floor(reads, timestamp)?;
        let floor = earlier.map_or(self.base_offset, |e| self.base_offset + i64::from(e.relative));
        let Spot::At(batch) = self.locate(reads, floor.max(from_offset))? else { return Ok(None) };
        let wanted = |batch: &BatchHeader| {
            batch.max_timestamp >= timestamp && batch.last_offset() >= from_offset
        };
        self.scan_for(reads, batch.position..self.size(), i64::MAX, wanted)
    }

    /// The last time entry at or before `timestamp`.
    fn time_floor(
        &self,
        reads: Reads<'_>,
        timestamp: i64,
    ) -> Result<Option<TimeEntry>, StorageError> {
        let holds = |entry: &TimeEntry| entry.timestamp <= timestamp;
        let (in_memory, on_disk) = {
            let state = self.state.read();
            (state.times.floor_in_memory(holds), state.times.on_disk())
        };
        match in_memory {
            Some(entry) => Ok(Some(entry)),
            None if on_disk == 0 => Ok(None),
            None => self.search(reads, Kind::TimeIndex, on_disk, holds),
        }
    }

    /// The highest timestamp, from memory, the time index or, where that is empty, the log.
    pub(crate) fn largest(&self, reads: Reads<'_>) -> Result<Largest, StorageError> {
        if let Some(largest) = self.state.read().largest {
            return Ok(largest);
        }
        let largest = match self.last_time_entry(reads)? {
            Some(entry) => Largest {
                timestamp: entry.timestamp,
                offset: self.base_offset + i64::from(entry.relative),
            },
            None => self.largest_by_scan(reads)?,
        };
        self.state.write().largest = Some(largest);
        Ok(largest)
    }

    /// The last entry of the time index file, which is not kept open: retention asks every segment
    /// once.
    fn last_time_entry(&self, reads: Reads<'_>) -> Result<Option<TimeEntry>, StorageError> {
        let path = self.path(Kind::TimeIndex);
        let read = || {
            let file = match reads.disk.open(&path, OpenMode::Read) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                other => reads.of(other?),
            };
            let last = entries_in::<TimeEntry>(&*file)?.checked_sub(1);
            last.map(|last| read_entry(&*file, last)).transpose()
        };
        read().map_err(|e| StorageError::io("read", &path, e))
    }

    fn largest_by_scan(&self, reads: Reads<'_>) -> Result<Largest, StorageError> {
        let mut largest = Largest { timestamp: -1, offset: self.base_offset };
        let file = reads.of(self.log_file(reads.disk)?);
        let mut scan = HeaderScan::new(&*file, 0, self.size(), LOOK_UP);
        while let Some(batch) = scan.next().map_err(|e| self.scan_error(e))? {
            let header = batch.header;
            if header.max_timestamp > largest.timestamp {
                largest = Largest { timestamp: header.max_timestamp, offset: header.last_offset() };
            }
        }
        Ok(largest)
    }

    /// The aborted transactions whose marker lies here, by marker.
    pub(crate) fn aborted(&self, disk: &dyn Disk) -> Result<Arc<Vec<AbortedTxn>>, StorageError> {
        if let Some(aborted) = &self.state.read().aborted {
            return Ok(aborted.clone());
        }
        let path = self.path(Kind::TxnIndex);
        let read = txn_index::read(disk, &path).map_err(|e| StorageError::io("read", &path, e))?;
        let aborted = Arc::new(read);
        self.state.write().aborted = Some(aborted.clone());
        Ok(aborted)
    }
}

fn first_match(
    file: &dyn File,
    range: Range<u64>,
    offset: i64,
    wanted: &impl Fn(&BatchHeader) -> bool,
) -> Result<Option<Scanned>, ScanError> {
    let mut scan = HeaderScan::new(file, range.start, range.end, LOOK_UP);
    while let Some(batch) = scan.next()? {
        let position = batch.position;
        if position == range.start && position > 0 && batch.header.base_offset > offset {
            return Err(ScanError::Bad { position, what: format!("is past offset {offset}") });
        }
        if wanted(&batch.header) {
            return Ok(Some(batch));
        }
    }
    Ok(None)
}

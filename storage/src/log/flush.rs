//! What is not yet durable, and the files that go along with the log: indexes, producer snapshots,
//! leader epochs.
//!
//! Nothing here syncs. [`Log::take_dirty`] hands out what a flusher must make durable and
//! [`Log::flushed`] is told that it did; several groups may be under way, in order. A file that
//! recovery trusts is written under a `.tmp` name and gets its own only when the group it went with
//! is durable. So a producer snapshot that can be seen says that everything below its offset is on
//! the disk: the batches, their index entries, their aborted transactions.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::index::{Entries, Entry};
use super::names::{Kind, TMP, file_path};
use super::segment::Segment;
use super::{Log, txn_index};
use crate::disk::{OpenMode, parent, suffixed};
use crate::epochs::EPOCH_FILE;
use crate::errors::StorageError;
use crate::flush::{Dirty, DirtyFile};

/// A checkpoint writes a producer snapshot once so many bytes were appended since the last one:
/// about what recovery reads at most below its recovery point.
const SNAPSHOT_EVERY: u64 = 1 << 20;

/// So many bytes at once are written over themselves.
const WRITE_AGAIN: usize = 1 << 20;

/// A file that gets its name when it is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Publish {
    Snapshot(i64),
    Epochs,
}

/// A group that is being flushed.
#[derive(Debug)]
struct InFlight {
    end_offset: i64,
    files: Vec<DirtyFile>,
    dirs: Vec<PathBuf>,
    publish: Vec<Publish>,
}

#[derive(Debug, Default)]
pub(super) struct FlushState {
    flushed_end: i64,
    /// Bytes of the active segment that were handed out.
    active_from: u64,
    /// The active segment's file has to be named although it may have no new bytes.
    active_named: bool,
    /// Of sealed segments, in order.
    pub(super) sealed: Vec<DirtyFile>,
    /// Files beside the log.
    pub(super) beside: Vec<DirtyFile>,
    pub(super) dirs: BTreeSet<PathBuf>,
    publish: Vec<Publish>,
    in_flight: VecDeque<InFlight>,
    /// A `.tmp` of the leader epochs waits for its name.
    epochs_waiting: bool,
    /// Bytes appended since the last snapshot.
    since_snapshot: u64,
    /// Whether anything was written since the log was opened after a clean stop.
    touched: bool,
    /// Aborted transactions of the active segment that are in its file.
    pub(super) aborts_written: usize,
}

impl FlushState {
    /// Of a log just opened: durable up to `flushed_end`, of the active segment up to
    /// `active_from`.
    pub(super) fn new(flushed_end: i64, active_from: u64, aborts_written: usize) -> FlushState {
        FlushState { flushed_end, active_from, aborts_written, ..FlushState::default() }
    }

    pub(super) fn flushed_end(&self) -> i64 {
        self.flushed_end
    }

    pub(super) fn wrote(&mut self, bytes: usize) {
        self.touched = true;
        self.since_snapshot += bytes as u64;
    }

    pub(super) fn touch(&mut self) {
        self.touched = true;
    }

    /// A new segment, in `dir`, is the active one.
    pub(super) fn next_segment(&mut self, dir: &Path) {
        (self.active_from, self.aborts_written) = (0, 0);
        self.dirs.insert(dir.to_path_buf());
        self.touched = true;
    }

    /// The active segment's file was changed other than by appends.
    pub(super) fn name_active(&mut self) {
        self.active_named = true;
    }

    /// The log was cut to end at `end_offset`, durably. The active segment, in `path`, ends at
    /// `size`, of which the flusher has been told `told` at most, and holds so many aborts, all in
    /// the file. Groups under way are void: what they have of files that stay is handed out again.
    pub(super) fn cut(
        &mut self,
        end_offset: i64,
        (path, size): (&Path, u64),
        told: u64,
        aborts: usize,
    ) {
        self.flushed_end = self.flushed_end.min(end_offset);
        self.active_from = size.min(told);
        self.active_named = true;
        self.aborts_written = aborts;
        self.publish.clear();
        self.epochs_waiting = false;
        let mut sealed = Vec::new();
        for group in std::mem::take(&mut self.in_flight) {
            let is_log = |file: &DirtyFile| file.path.extension() == path.extension();
            let (logs, beside): (Vec<_>, Vec<_>) = group.files.into_iter().partition(is_log);
            sealed.extend(logs);
            self.beside.extend(beside);
            self.dirs.extend(group.dirs);
        }
        sealed.append(&mut self.sealed);
        sealed.retain(|file| file.path.as_path() < path);
        sealed.sort_by(|a, b| a.path.cmp(&b.path));
        // Earlier ranges of a file come first, and they join.
        sealed.dedup_by(|later, kept| {
            let same = later.path == kept.path;
            if same {
                (kept.from, kept.to) = (kept.from.min(later.from), kept.to.max(later.to));
            }
            same
        });
        self.sealed = sealed;
        self.touched = true;
    }

    /// The log was emptied and begins, durably, at `offset`.
    pub(super) fn restart(&mut self, offset: i64) {
        self.in_flight.clear();
        self.sealed.clear();
        self.beside.clear();
        self.cut(offset, (Path::new(""), 0), 0, 0);
        self.flushed_end = offset;
        self.since_snapshot = 0;
    }

    /// How many bytes of a segment's file the flusher may know of.
    pub(super) fn told_of(&self, path: &Path, is_active: bool) -> u64 {
        if is_active {
            return self.active_from;
        }
        let pending = self.sealed.iter().find(|dirty| dirty.path == path);
        pending.map_or(u64::MAX, |dirty| dirty.from)
    }
}

impl Log {
    /// Everything that is not durable and not being flushed; `None` when there is nothing. Answer
    /// with [`Log::flushed`], in order, once it is durable.
    pub fn take_dirty(&mut self) -> Option<Dirty> {
        if let Err(error) = self.write_epochs() {
            tracing::warn!(partition = %self.tp, %error, "leader epochs not written, will retry");
        }
        let mut files = std::mem::take(&mut self.flush.beside);
        let active = self.active_dirty();
        let is_active_new = active.from < active.to || self.flush.active_named;
        let named = is_active_new || !self.flush.sealed.is_empty();
        files.append(&mut self.flush.sealed);
        files.extend(named.then_some(active));
        self.flush.active_from = self.active.size;
        self.flush.active_named = false;
        let dirs = std::mem::take(&mut self.flush.dirs);
        if files.is_empty() && dirs.is_empty() {
            return None;
        }
        let end_offset = self.log_end_offset;
        let publish = std::mem::take(&mut self.flush.publish);
        let dirs: Vec<PathBuf> = dirs.into_iter().collect();
        let group = InFlight { end_offset, files: files.clone(), dirs: dirs.clone(), publish };
        self.flush.in_flight.push_back(group);
        Some(Dirty {
            topic_id: self.topic_id.unwrap_or_default(),
            files,
            dirs,
            end_offset,
            cuts: self.shared.cuts.clone(),
            cuts_taken: self.shared.cuts.count(),
        })
    }

    fn active_dirty(&self) -> DirtyFile {
        DirtyFile {
            file: self.active.file.clone(),
            path: self.active.segment.path(Kind::Log),
            from: self.flush.active_from,
            to: self.active.size,
        }
    }

    /// The oldest group with this end offset, and all before it, are durable. Not to be called for
    /// a group that is not current any more (`Dirty::is_current`).
    ///
    /// # Panics
    /// If no such group was handed out.
    pub fn flushed(&mut self, end_offset: i64) {
        let mut ends = self.flush.in_flight.iter().map(|group| group.end_offset);
        let found = ends.position(|end| end == end_offset);
        let Some(last) = found else {
            // [`Log::close`] does not wait for groups under way.
            let known = end_offset <= self.flush.flushed_end;
            assert!(known, "no group that was handed out ends at offset {end_offset}");
            return;
        };
        for _ in 0..=last {
            let Some(group) = self.flush.in_flight.pop_front() else { break };
            self.flush.flushed_end = self.flush.flushed_end.max(group.end_offset);
            group.publish.into_iter().for_each(|publish| self.publish_file(publish));
        }
        assert!(self.flush.flushed_end <= self.log_end_offset, "no more is durable than there is");
    }

    fn publish_file(&mut self, publish: Publish) {
        let path = match publish {
            Publish::Snapshot(offset) => file_path(&self.dir, offset, Kind::Snapshot),
            Publish::Epochs => self.dir.join(EPOCH_FILE),
        };
        let renamed = self.disk.rename(&suffixed(&path, TMP), &path);
        match (publish, &renamed) {
            (Publish::Snapshot(offset), Ok(())) => {
                self.snapshots.insert(offset);
                self.prune_snapshots();
            }
            (Publish::Snapshot(_), Err(_)) => {}
            (Publish::Epochs, renamed) => {
                self.flush.epochs_waiting = false;
                if renamed.is_err() {
                    self.epochs.mark_changed();
                }
            }
        }
        match renamed {
            Ok(()) => drop(self.flush.dirs.insert(self.dir.to_path_buf())),
            Err(error) => tracing::warn!(path = %path.display(), %error, "rename failed"),
        }
    }

    /// The active segment is about to be sealed: its bytes go with those of the sealed ones.
    pub(super) fn take_active(&mut self) {
        let active = self.active_dirty();
        if active.from < active.to || self.flush.active_named {
            self.flush.sealed.push(active);
        }
        self.flush.active_from = self.active.size;
        self.flush.active_named = false;
    }

    /// Writes, without waiting for the disk, what shortens recovery: new index entries and, if much
    /// was appended, a snapshot of the producers. Flush afterwards, then write the recovery point.
    ///
    /// # Errors
    /// The disk's; nothing is lost by it.
    pub fn checkpoint(&mut self) -> Result<(), StorageError> {
        self.write_indexes(&self.active.segment.clone(), false)?;
        if self.flush.since_snapshot >= SNAPSHOT_EVERY {
            self.write_snapshot()?;
        }
        Ok(())
    }

    /// Writes everything that lets the log open again without a look at its batches (whole indexes,
    /// producers, epochs) and makes it and all that was appended durable, whatever a flusher has
    /// under way. The stop is clean only if this succeeds. Append no more.
    ///
    /// # Errors
    /// The disk's; the next start recovers.
    pub fn close(&mut self) -> Result<(), StorageError> {
        if !self.flush.touched {
            return Ok(());
        }
        let segment = self.active.segment.clone();
        if self.active.size > 0 {
            segment.state.write().note_final_time(segment.base_offset);
            self.write_indexes(&segment, true)?;
        }
        self.active.torn |= self.active.allocated > self.active.size;
        self.heal()?;
        self.active.allocated = self.active.size;
        if self.log_end_offset > 0 {
            self.write_snapshot()?;
        }
        let dirs = [parent(&self.dir).to_path_buf(), self.dir.to_path_buf()];
        self.flush_here(&dirs).map_err(Log::failed("sync", &self.dir.clone()))?;
        self.flush.touched = false;
        Ok(())
    }

    /// Makes what opening found above the recovery point durable, if there is any: a killed process
    /// leaves a tail that is in the page cache and nowhere else. Readers must not see it before,
    /// and a duplicate in it must not be acknowledged: a loss of power would take it away again.
    ///
    /// After a sync that failed (`again`) it has to be written once more: the page cache takes what
    /// it could not write for clean, and a sync would skip it.
    ///
    /// The name of the log's own directory is the caller's to make durable: once for all logs.
    ///
    /// # Errors
    /// A sync failed: the log must not be used.
    pub fn flush_recovered(&mut self, again: bool) -> Result<(), StorageError> {
        if self.flush.flushed_end() == self.log_end_offset {
            return Ok(());
        }
        if again {
            self.take_dirty();
            let files = self.flush.in_flight.iter().flat_map(|group| &group.files);
            for dirty in files {
                self.write_again(dirty).map_err(Log::failed("write", &dirty.path))?;
            }
        }
        let dirs = [self.dir.to_path_buf()];
        self.flush_here(&dirs).map_err(Log::failed("sync", &self.dir.clone()))
    }

    /// Writes the new bytes of a log, or the whole of a file beside it, over themselves.
    fn write_again(&self, dirty: &DirtyFile) -> io::Result<()> {
        let file = self.disk.open(&dirty.path, OpenMode::Write)?;
        let is_log = dirty.path.extension().is_some_and(|end| end == "log");
        let (mut at, to) = if is_log { (dirty.from, dirty.to) } else { (0, file.len()?) };
        let mut chunk = vec![0; WRITE_AGAIN];
        while at < to {
            let len = (to - at).min(WRITE_AGAIN as u64) as usize;
            let read = file.read_at(&mut chunk[..len], at)?;
            if read == 0 {
                break;
            }
            file.write_at(&[&chunk[..read]], at)?;
            at += read as u64;
        }
        Ok(())
    }

    /// Makes everything durable, the names in `dirs` too.
    fn flush_here(&mut self, dirs: &[PathBuf]) -> io::Result<()> {
        while self.take_dirty().is_some() || !self.flush.in_flight.is_empty() {
            let mut files = self.flush.in_flight.iter().flat_map(|group| &group.files);
            files.try_for_each(|dirty| dirty.file.sync_data())?;
            dirs.iter().try_for_each(|dir| self.disk.sync_dir(dir))?;
            if let Some(last) = self.flush.in_flight.back() {
                // Of groups with the same end this may leave some, for the next round.
                self.flushed(last.end_offset);
            }
        }
        Ok(())
    }

    /// Writes what the index files of a segment lack. With `whole`, both exist afterwards even if
    /// there is nothing to hold.
    pub(super) fn write_indexes(
        &mut self,
        segment: &Arc<Segment>,
        whole: bool,
    ) -> Result<(), StorageError> {
        let (offsets, times) = {
            let state = segment.state.read();
            (Lacking::of(&state.offsets), Lacking::of(&state.times))
        };
        self.write_index(&segment.path(Kind::Index), &offsets, whole)?;
        self.write_index(&segment.path(Kind::TimeIndex), &times, whole)?;
        let mut state = segment.state.write();
        state.offsets.mark_written();
        state.times.mark_written();
        drop(state);
        self.write_aborts(segment)
    }

    fn write_index(
        &mut self,
        path: &Path,
        lacking: &Lacking,
        whole: bool,
    ) -> Result<(), StorageError> {
        if lacking.bytes.is_empty() && !whole {
            return Ok(());
        }
        self.write_side_file(path, &lacking.bytes, lacking.position)
            .map_err(Log::failed("write", path))
    }

    /// Writes at the end of a file beside the log, which ends there afterwards.
    pub(super) fn write_side_file(
        &mut self,
        path: &Path,
        bytes: &[u8],
        position: u64,
    ) -> io::Result<()> {
        let file = self.disk.open(path, OpenMode::Create)?;
        let len = file.len()?;
        if len > position {
            file.set_len(position)?;
        } else if len == 0 {
            self.flush.dirs.insert(self.dir.to_path_buf());
        }
        if !bytes.is_empty() {
            file.write_at(&[bytes], position)?;
        }
        let to = position + bytes.len() as u64;
        self.flush.beside.push(DirtyFile { file, path: path.to_path_buf(), from: position, to });
        Ok(())
    }

    /// Writes the aborted transactions that the file of the active segment lacks.
    fn write_aborts(&mut self, segment: &Arc<Segment>) -> Result<(), StorageError> {
        if !Arc::ptr_eq(segment, &self.active.segment) {
            return Ok(());
        }
        let written = self.flush.aborts_written;
        let (bytes, count) = {
            let state = segment.state.read();
            let aborted = state.aborted.as_deref().map_or(&[][..], Vec::as_slice);
            let new = aborted.get(written..).unwrap_or_default();
            (new.iter().flat_map(|txn| txn.encode()).collect::<Vec<u8>>(), aborted.len())
        };
        if bytes.is_empty() {
            return Ok(());
        }
        let path = segment.path(Kind::TxnIndex);
        self.write_side_file(&path, &bytes, txn_index::position(written))
            .map_err(Log::failed("write", &path))?;
        self.flush.aborts_written = count;
        Ok(())
    }

    /// Writes a producer snapshot, to get its name with the next group.
    pub(super) fn write_snapshot_bytes(
        &mut self,
        offset: i64,
        bytes: &[u8],
    ) -> Result<(), StorageError> {
        if self.snapshots.contains(&offset) || self.is_snapshot_waiting(offset) {
            return Ok(());
        }
        let path = suffixed(&file_path(&self.dir, offset, Kind::Snapshot), TMP);
        self.write_whole(&path, bytes).map_err(Log::failed("write", &path))?;
        self.flush.publish.push(Publish::Snapshot(offset));
        self.flush.since_snapshot = 0;
        Ok(())
    }

    /// Whether a snapshot was written and has no name yet.
    pub(super) fn is_snapshot_waiting(&self, offset: i64) -> bool {
        let publish = Publish::Snapshot(offset);
        let mut groups = self.flush.in_flight.iter().map(|group| &group.publish);
        self.flush.publish.contains(&publish) || groups.any(|group| group.contains(&publish))
    }

    /// A snapshot that was made durable under its name is not to be renamed any more.
    pub(super) fn forget_waiting_snapshot(&mut self, offset: i64) {
        let groups = self.flush.in_flight.iter_mut().map(|group| &mut group.publish);
        for waiting in groups.chain([&mut self.flush.publish]) {
            waiting.retain(|publish| *publish != Publish::Snapshot(offset));
        }
    }

    /// Writes the leader epochs if they changed; not while an older version waits for its name.
    fn write_epochs(&mut self) -> Result<(), StorageError> {
        if self.flush.epochs_waiting || !self.epochs.is_changed() {
            return Ok(());
        }
        let path = suffixed(&self.dir.join(EPOCH_FILE), TMP);
        let text = self.epochs.encode();
        self.write_whole(&path, text.as_bytes()).map_err(Log::failed("write", &path))?;
        self.epochs.take_changed();
        self.flush.epochs_waiting = true;
        self.flush.publish.push(Publish::Epochs);
        Ok(())
    }

    fn write_whole(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.disk.open(path, OpenMode::Create)?;
        if !file.is_empty()? {
            file.set_len(0)?;
        }
        file.write_at(&[bytes], 0)?;
        let (path, to) = (path.to_path_buf(), bytes.len() as u64);
        self.flush.beside.push(DirtyFile { file, path, from: 0, to });
        Ok(())
    }

    /// Removes `.tmp` files that will not get their name any more.
    pub(super) fn drop_waiting_files(&mut self) {
        let groups = self.flush.in_flight.iter().flat_map(|group| group.publish.iter());
        let waiting: Vec<Publish> = self.flush.publish.iter().chain(groups).copied().collect();
        for publish in waiting {
            if let Publish::Snapshot(offset) = publish {
                let path = suffixed(&file_path(&self.dir, offset, Kind::Snapshot), TMP);
                // A leftover is removed when the log is opened next.
                let _ = self.disk.remove_file(&path);
            }
        }
    }
}

/// What an index file lacks, and where it belongs.
struct Lacking {
    bytes: Vec<u8>,
    position: u64,
}

impl Lacking {
    /// Of an index that is in memory at least in part.
    fn of<E: Entry>(entries: &Entries<E>) -> Lacking {
        match entries.unwritten() {
            Some((bytes, position)) => Lacking { bytes, position },
            None => Lacking { bytes: Vec::new(), position: (entries.len() * E::SIZE) as u64 },
        }
    }
}

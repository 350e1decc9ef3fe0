//! Opening after an unclean stop: what lies above the recovery point is checked, what lies below is
//! trusted, and nothing else is read.
//!
//! ```text
//!       snapshot <= recovery point
//! ---------|--------------|-----------------------------| end of the files
//! trusted    headers read   headers, checksums, order
//!            damage: corrupt, refused      damage: a torn write, cut off with all that follows
//! ```
//!
//! A producer snapshot has its name only since everything below its offset is durable (`flush.rs`),
//! index entries included, so the walk begins at the newest one. From there on indexes, aborted
//! transactions, producers and leader epochs are made again from the batches.

use std::sync::Arc;

use protocol_compat::batch::BatchHeader;

use super::flush::FlushState;
use super::found::Found;
use super::load::{Trust, as_scan_error, read_marker, trusted_prefix};
use super::names::{Kind, METADATA_FILE, file_path};
use super::roll::spans;
use super::scan::{CHECK, HeaderScan, LOOK_UP, ScanError, Scanned};
use super::segment::{Reads, Segment, Spot};
use super::txn_index::AbortedTxn;
use super::view::Shared;
use super::{FirstTimestamp, Log};
use crate::disk::{File, OpenMode, parent};
use crate::errors::StorageError;
use crate::flush::DirtyFile;

/// What the checkpoints of the log directory say of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogStart {
    /// From `log-start-offset-checkpoint`; 0 when absent.
    pub log_start_offset: i64,
    /// From `recovery-point-offset-checkpoint`; 0 when absent. Below it everything was flushed. It
    /// must be lowered, durably, before the log is truncated below it or made anew.
    pub recovery_point: i64,
    /// Whether the last run ended with [`Log::close`] and its flush.
    pub clean: bool,
}

/// What opening a log took.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Opened without a check.
    pub clean: bool,
    /// Headers looked at, and the bytes of their batches.
    pub batches: u64,
    pub bytes: u64,
    /// What was cut off the end.
    pub cut: Option<Cut>,
    pub indexes_rebuilt: usize,
    /// Files removed: left by deletions, compactions and writes that were under way.
    pub leftovers_removed: usize,
}

/// The end of a log that was cut off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The log end now.
    pub offset: i64,
    pub bytes: u64,
    /// Whole segments among it.
    pub segments: usize,
    pub what: String,
    /// A sound batch followed the damage. Disks write in any order, so a torn write can look like
    /// this; so can damage to batches that were acknowledged after the recovery point was noted.
    pub sound_batch_follows: bool,
}

impl Recovered {
    pub(super) fn count(&mut self, batch: &Scanned) {
        self.batches += 1;
        self.bytes += batch.header.total_size() as u64;
    }
}

/// The way through the log.
struct Walk {
    /// Everything below is durable, its index entries too, and the producers are those of here.
    trusted: i64,
    recovery_point: i64,
    /// The segment the walk begins with.
    begin: usize,
    /// Segment and position of the first batch above the recovery point.
    flushed_to: Option<(usize, u64)>,
}

/// A walk that found damage.
struct Damage {
    /// Number of the segment, and the position in it.
    segment: usize,
    position: u64,
    what: String,
}

impl Log {
    /// Checks the log above the recovery point and makes anew what depends on it.
    pub(super) fn recover(
        &mut self,
        found: &Found,
        recovery_point: i64,
        now_ms: i64,
        report: &mut Recovered,
    ) -> Result<(), StorageError> {
        let segments = self.segments();
        let first = segments.first().map_or(0, |segment| segment.base_offset);
        let trusted = match self.load_snapshot(recovery_point.max(first), now_ms)? {
            Some((offset, producers)) => {
                self.producers = producers;
                offset
            }
            None => first,
        };
        self.epochs = self.read_epochs(found).unwrap_or_default();
        self.complete_epochs(recovery_point, report)?;
        let begin = Shared::index_of(&segments, trusted);
        let mut walk = Walk { trusted, recovery_point, begin, flushed_to: None };
        if let Some(damage) = self.walk(&segments, &mut walk, report)? {
            self.cut(&segments, &damage, report)?;
        }
        let segments = self.segments();
        let end_offset = segments.last().map_or(0, |last| last.state.read().next_offset);
        if end_offset < recovery_point {
            let path = self.active.segment.path(Kind::Log);
            let what = format!("log ends at {end_offset}, it was flushed up to {recovery_point}");
            return Err(StorageError::corrupt(&path, self.active.size, what));
        }
        self.publish_end(end_offset);
        self.epochs.truncate_from_end(end_offset);
        if self.remove_snapshots_above(end_offset)? {
            // Or one could come back and be taken for a later one of the same offset.
            self.disk.sync_dir(&self.dir).map_err(Log::failed("sync", &self.dir))?;
        }
        self.start_flush_state(&segments, &walk, report)?;
        if let Err(error) = self.rewrite_aborts(&self.active.segment.clone()) {
            tracing::warn!(partition = %self.tp, %error, "transaction index stays in memory");
            self.flush.aborts_written = 0;
        }
        let (_, sealed) = segments.split_last().unwrap_or((&self.active.segment, &[]));
        for segment in sealed.iter().skip(walk.begin) {
            self.finish_rebuilt(segment, report)?;
        }
        Ok(())
    }

    /// Completes the leader epochs for what lies below `offset`. The file may be older than that,
    /// since it gets its name after the flush; then the headers tell.
    pub(super) fn complete_epochs(
        &mut self,
        offset: i64,
        report: &mut Recovered,
    ) -> Result<(), StorageError> {
        self.epochs.truncate_from_end(offset);
        let Some(last) = self.batch_below(offset)? else { return Ok(()) };
        let epoch = last.partition_leader_epoch;
        if epoch >= 0 && self.epochs.epoch_of(last.base_offset) != Some(epoch) {
            let first = self.segments().first().map_or(0, |segment| segment.base_offset);
            let from = self.epochs.latest().map_or(first, |latest| latest.start_offset);
            self.rebuild_epochs(from, report)?;
            self.epochs.truncate_from_end(offset);
        }
        Ok(())
    }

    /// The last batch that begins below `offset`.
    fn batch_below(&self, offset: i64) -> Result<Option<BatchHeader>, StorageError> {
        let segments = self.segments();
        if segments.first().is_none_or(|first| offset <= first.base_offset) {
            return Ok(None);
        }
        let at = Shared::index_of(&segments, offset - 1);
        let Some(segment) = segments.get(at) else { return Ok(None) };
        let Spot::At(batch) = segment.locate(Reads::patient(&*self.disk), offset - 1)? else {
            return Ok(None);
        };
        if batch.base_offset >= offset {
            return Ok(None);
        }
        let file = segment.log_file(&*self.disk)?;
        let mut scan = HeaderScan::new(&*file, batch.position, segment.size(), 512);
        let batch = scan.next().map_err(|error| segment.scan_error(error))?;
        Ok(batch.map(|batch| batch.header))
    }

    /// Reads leader epochs off the batches from `offset` on.
    fn rebuild_epochs(&mut self, offset: i64, report: &mut Recovered) -> Result<(), StorageError> {
        let segments = self.segments();
        let mut epochs = self.epochs.clone();
        for segment in segments.iter().skip(Shared::index_of(&segments, offset)) {
            let file = segment.log_file(&*self.disk)?;
            let mut scan = HeaderScan::new(&*file, 0, segment.size(), CHECK);
            loop {
                match scan.next() {
                    Ok(Some(batch)) => {
                        report.count(&batch);
                        let (epoch, base) =
                            (batch.header.partition_leader_epoch, batch.header.base_offset);
                        // What comes before, in the same segment, is known: assigned again it
                        // would count as a later begin of its epoch.
                        if base >= offset {
                            epochs.assign(epoch, base);
                        }
                    }
                    // The walk will say what that means.
                    Ok(None) | Err(ScanError::Bad { .. }) => break,
                    Err(error) => return Err(segment.scan_error(error)),
                }
            }
        }
        self.epochs = epochs;
        Ok(())
    }

    /// Goes through the segments from the one that holds the trusted offset; ends at damage.
    fn walk(
        &mut self,
        segments: &[Arc<Segment>],
        walk: &mut Walk,
        report: &mut Recovered,
    ) -> Result<Option<Damage>, StorageError> {
        let mut end_offset = walk.trusted;
        let mut last_base = walk.trusted;
        for (at, segment) in segments.iter().enumerate().skip(walk.begin) {
            if at > walk.begin && segment.base_offset > end_offset.max(walk.recovery_point) {
                // The tail of the segment before is gone, unless no segment could have held both.
                let first = first_header(&*segment.log_file(&*self.disk)?, segment.size());
                let forced = first.is_some_and(|first| !spans(last_base, first.last_offset()));
                if !forced {
                    let what = format!("nothing from {end_offset} to {}", segment.base_offset);
                    let before = segments.get(at - 1).map_or(0, |before| before.size());
                    return Ok(Some(Damage { segment: at - 1, position: before, what }));
                }
            }
            let result = self.walk_segment(segment, walk, at, report);
            end_offset = segment.state.read().next_offset;
            last_base = segment.base_offset;
            match result {
                Ok(()) => {}
                Err(ScanError::Io(error)) => {
                    return Err(segment.scan_error(ScanError::Io(error)));
                }
                Err(ScanError::Bad { position, what }) if end_offset < walk.recovery_point => {
                    return Err(StorageError::corrupt(&segment.path(Kind::Log), position, what));
                }
                Err(ScanError::Bad { position, what }) => {
                    return Ok(Some(Damage { segment: at, position, what }));
                }
            }
        }
        Ok(None)
    }

    fn walk_segment(
        &mut self,
        segment: &Arc<Segment>,
        walk: &mut Walk,
        at: usize,
        report: &mut Recovered,
    ) -> Result<(), ScanError> {
        let file = segment.log_file(&*self.disk).map_err(as_scan_error)?;
        let size = segment.size();
        let prefix = if at == walk.begin && segment.base_offset < walk.trusted {
            trusted_prefix(&*self.disk, segment, &*file, size, Trust::below(walk.trusted))?
        } else {
            None
        };
        let mut aborted = self.aborted_below(segment, walk.trusted).map_err(as_scan_error)?;
        let mut producers = std::mem::take(&mut self.producers);
        let mut epochs = std::mem::take(&mut self.epochs);
        let (trusted, recovery_point) = (walk.trusted, walk.recovery_point);
        let flushed_to = &mut walk.flushed_to;
        let result = self.scan_into(segment, &*file, size, CHECK, prefix, |scan, batch| {
            let header = &batch.header;
            if header.next_offset() > recovery_point {
                if !scan.crc_matches(batch)? {
                    return Err(batch.bad("checksum does not match"));
                }
                flushed_to.get_or_insert((at, batch.position));
            }
            report.count(batch);
            if header.base_offset >= recovery_point {
                epochs.assign(header.partition_leader_epoch, header.base_offset);
            }
            if header.base_offset >= trusted {
                let marker = read_marker(&*file, batch)?;
                let ended = producers.note(header, marker).filter(|txn| txn.aborted);
                aborted.extend(ended.as_ref().map(AbortedTxn::of));
            }
            Ok(())
        });
        self.producers = producers;
        self.epochs = epochs;
        segment.state.write().aborted = Some(Arc::new(aborted));
        result
    }

    /// Cuts the log before the damage.
    fn cut(
        &mut self,
        segments: &[Arc<Segment>],
        damage: &Damage,
        report: &mut Recovered,
    ) -> Result<(), StorageError> {
        let (kept, gone) = segments.split_at(damage.segment + 1);
        let Some(last) = kept.last() else { return Ok(()) };
        let path = last.path(Kind::Log);
        let file = self.disk.open(&path, OpenMode::Write).map_err(Log::failed("open", &path))?;
        let size = file.len().map_err(Log::failed("stat", &path))?;
        let follows = sound_batch_follows(&*file, damage.position, size);
        let bytes = size - damage.position + gone.iter().map(|segment| segment.size()).sum::<u64>();
        let offset = last.state.read().next_offset;
        let (partition, what) = (&self.tp, &damage.what);
        if follows {
            tracing::error!(%partition, offset, bytes, what, "cut a log although batches follow");
        } else {
            tracing::warn!(%partition, offset, bytes, what, "cut a torn tail off a log");
        }
        for segment in gone.iter().rev() {
            self.remove_segment_files(segment.base_offset)?;
        }
        file.set_len(damage.position).map_err(Log::failed("cut", &path))?;
        self.disk.sync_dir(&self.dir).map_err(Log::failed("sync", &self.dir))?;
        report.cut = Some(Cut {
            offset,
            bytes,
            segments: gone.len(),
            what: damage.what.clone(),
            sound_batch_follows: follows,
        });
        last.set_log_file(file.clone());
        self.shared.segments.store(Arc::new(kept.to_vec()));
        self.active.segment = last.clone();
        self.active.file = file;
        Ok(())
    }

    /// Everything the walk found above the recovery point has yet to be flushed.
    fn start_flush_state(
        &mut self,
        segments: &[Arc<Segment>],
        walk: &Walk,
        report: &Recovered,
    ) -> Result<(), StorageError> {
        let size = self.active.segment.size();
        (self.active.size, self.active.allocated) = (size, size);
        self.active.first_timestamp = FirstTimestamp::of_size(size);
        let flushed_end = walk.recovery_point.min(self.log_end_offset);
        let last = segments.len().saturating_sub(1);
        let (from_segment, position) = walk.flushed_to.unwrap_or((last, size));
        let active_from = match from_segment < last {
            true => 0,
            false => position.min(size),
        };
        let aborts = self.active.segment.aborted(&*self.disk)?.len();
        self.flush = FlushState::new(flushed_end.max(self.log_start_offset), active_from, aborts);
        self.flush.touch();
        // Who made these names may have been killed before it made them durable.
        self.flush.dirs.extend([self.dir.to_path_buf(), parent(&self.dir).to_path_buf()]);
        self.flush.beside.extend(self.metadata_file());
        let mut from = position;
        for segment in segments.get(from_segment..last).unwrap_or_default() {
            let (file, path) = (segment.log_file(&*self.disk)?, segment.path(Kind::Log));
            let to = segment.size();
            self.flush.sealed.push(DirtyFile { file, path, from: from.min(to), to });
            from = 0;
        }
        if report.cut.is_some() {
            self.flush.name_active();
        }
        Ok(())
    }

    /// `partition.metadata`, to be made durable.
    fn metadata_file(&self) -> Option<DirtyFile> {
        let path = self.dir.join(METADATA_FILE);
        let file = self.disk.open(&path, OpenMode::Read).ok()?;
        Some(DirtyFile { file, path, from: 0, to: 0 })
    }

    /// Removes every file of a segment, its snapshot included.
    pub(super) fn remove_segment_files(&mut self, base_offset: i64) -> Result<(), StorageError> {
        for kind in Kind::ALL {
            let path = file_path(&self.dir, base_offset, kind);
            match self.disk.remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StorageError::io("remove", &path, error));
                }
                _ => {}
            }
        }
        self.snapshots.remove(&base_offset);
        Ok(())
    }
}

/// The first header of a file, if it can be read.
fn first_header(file: &dyn File, size: u64) -> Option<BatchHeader> {
    let first = HeaderScan::new(file, 0, size, LOOK_UP).next();
    first.ok().flatten().map(|batch| batch.header)
}

/// Whether, if the damaged bytes at `position` begin with a sound length, a sound batch follows
/// where they end.
fn sound_batch_follows(file: &dyn File, position: u64, size: u64) -> bool {
    let mut scan = HeaderScan::new(file, position, size, CHECK);
    let Ok(Some(damaged)) = scan.next() else { return false };
    let Ok(Some(next)) = scan.next() else { return false };
    let follows = next.header.base_offset == damaged.header.next_offset();
    follows && scan.crc_matches(&next).unwrap_or(false)
}

//! Making and opening a log.
//!
//! Opening after a clean stop looks at the last index entry, the batches after it and the newest
//! producer snapshot, and trusts the rest. What an unclean stop takes is `recover.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use arc_swap::ArcSwap;
use protocol_compat::ids::{TopicPartition, parse_topic_id, topic_id_text};
use uuid::Uuid;

use super::flush::FlushState;
use super::found::{Found, FoundSegment, look};
use super::load::Trust;
use super::names::{Kind, METADATA_FILE};
use super::recover::{LogStart, Recovered};
use super::scan::CHECK;
use super::segment::{Segment, State};
use super::view::Shared;
use super::{Active, FirstTimestamp, Log, LogConfig};
use crate::disk::{Disk, OpenMode, parent, read_to_vec};
use crate::epochs::{EPOCH_FILE, EPOCH_FILE_MAX, EpochCache};
use crate::errors::StorageError;
use crate::flush::{Cuts, DirtyFile};
use crate::producers::Producers;

const METADATA_MAX: usize = 4096;

impl Log {
    /// Makes a new, empty log in `dir`, which must hold none. A few system calls and no sync: the
    /// partition exists durably once its first `take_dirty` was flushed.
    ///
    /// # Errors
    /// The disk's; `AlreadyExists` when there is a log.
    pub fn create(
        disk: Arc<dyn Disk>,
        dir: &Path,
        tp: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        now_ms: i64,
    ) -> Result<Log, StorageError> {
        disk.create_dir_all(dir).map_err(Log::failed("create", dir))?;
        let path = dir.join(METADATA_FILE);
        let text = metadata_text(topic_id);
        let write = || {
            let file = disk.open(&path, OpenMode::Create)?;
            if !file.is_empty()? {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            file.write_at(&[text.as_bytes()], 0)?;
            Ok(file)
        };
        let file = write().map_err(Log::failed("write", &path))?;
        let mut log = Log::bare(disk, dir, tp, config, 0, now_ms)?;
        log.topic_id = Some(topic_id);
        log.flush.beside.push(DirtyFile { file, path, from: 0, to: text.len() as u64 });
        log.flush.dirs.extend([dir.to_path_buf(), parent(dir).to_path_buf()]);
        Ok(log)
    }

    /// Writes `partition.metadata` again where it was lost: a power cut before the first flush of a
    /// partition may leave it empty. Durable with the next flush.
    ///
    /// # Errors
    /// The disk's.
    pub fn adopt(&mut self, topic_id: Uuid) -> Result<(), StorageError> {
        assert!(self.topic_id.is_none_or(|id| id == topic_id), "it is another topic's");
        let path = self.dir.join(METADATA_FILE);
        let text = metadata_text(topic_id);
        let write = || {
            let file = self.disk.open(&path, OpenMode::Create)?;
            file.write_at(&[text.as_bytes()], 0)?;
            file.set_len(text.len() as u64)?;
            Ok(file)
        };
        let file = write().map_err(Log::failed("write", &path))?;
        self.topic_id = Some(topic_id);
        self.flush.beside.push(DirtyFile { file, path, from: 0, to: text.len() as u64 });
        self.flush.dirs.insert(self.dir.to_path_buf());
        Ok(())
    }

    /// Opens the log in `dir`; an absent directory is made and holds an empty log.
    ///
    /// # Errors
    /// The disk's; `Corrupt` when something is damaged or missing below the recovery point.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        tp: TopicPartition,
        config: LogConfig,
        start: LogStart,
        now_ms: i64,
    ) -> Result<(Log, Recovered), StorageError> {
        let found = match look(&*disk, dir) {
            Err(error) if error.is_not_found() => {
                disk.create_dir_all(dir).map_err(Log::failed("create", dir))?;
                look(&*disk, dir)?
            }
            other => other?,
        };
        let mut report = Recovered { leftovers_removed: found.removed, ..Recovered::default() };
        let mut log = Log::bare_from(disk, dir, tp, config, &found, &start, now_ms)?;
        log.read_small_files(&found);
        let opened_clean = start.clean && log.open_clean(&found, now_ms, &mut report)?;
        if !opened_clean {
            let size = log.active.size;
            *log.active.segment.state.write() = State::sealed(size);
            log.recover(&found, start.recovery_point, now_ms, &mut report)?;
        }
        log.rebuild_missing_indexes(&found, &mut report)?;
        log.settle_start(start.log_start_offset, now_ms)?;
        Ok((log, report))
    }

    /// A log of one new segment.
    fn bare(
        disk: Arc<dyn Disk>,
        dir: &Path,
        tp: TopicPartition,
        config: LogConfig,
        base_offset: i64,
        now_ms: i64,
    ) -> Result<Log, StorageError> {
        let dir: Arc<Path> = dir.into();
        let segment = Arc::new(Segment::new(&dir, base_offset, State::empty(base_offset)));
        let mut log = Log::around(disk, dir, tp, config, vec![segment], now_ms)?;
        log.active = log.start_segment(base_offset, now_ms)?;
        log.shared.segments.store(Arc::new(vec![log.active.segment.clone()]));
        log.flush = FlushState::new(base_offset, 0, 0);
        log.flush.next_segment(&log.dir);
        Ok(log)
    }

    /// A log of the segments found, nothing known of them but their sizes.
    fn bare_from(
        disk: Arc<dyn Disk>,
        dir: &Path,
        tp: TopicPartition,
        config: LogConfig,
        found: &Found,
        start: &LogStart,
        now_ms: i64,
    ) -> Result<Log, StorageError> {
        if found.segments.is_empty() {
            return Log::bare(disk, dir, tp, config, start.log_start_offset.max(0), now_ms);
        }
        let dir: Arc<Path> = dir.into();
        let segment = |(base_offset, found): (&i64, &FoundSegment)| {
            let mut state = State::sealed(found.size);
            if !found.txn_index {
                state.aborted = Some(Arc::default());
            }
            Arc::new(Segment::new(&dir, *base_offset, state))
        };
        let segments = found.segments.iter().map(segment).collect();
        Log::around(disk, dir.clone(), tp, config, segments, now_ms)
    }

    /// The last of `segments` becomes the active one; its file is opened, or made.
    fn around(
        disk: Arc<dyn Disk>,
        dir: Arc<Path>,
        tp: TopicPartition,
        config: LogConfig,
        segments: Vec<Arc<Segment>>,
        now_ms: i64,
    ) -> Result<Log, StorageError> {
        let first = segments.first().map_or(0, |segment| segment.base_offset);
        let Some(segment) = segments.last().cloned() else { unreachable!("a log has a segment") };
        let path = segment.path(Kind::Log);
        let file = disk.open(&path, OpenMode::Create).map_err(Log::failed("open", &path))?;
        segment.set_log_file(file.clone());
        let size = segment.size();
        let active = Active {
            segment,
            file,
            size,
            allocated: size,
            created_ms: now_ms,
            first_timestamp: FirstTimestamp::of_size(size),
            torn: false,
        };
        let shared = Shared {
            cuts: Cuts::default(),
            disk: disk.clone(),
            log_start_offset: AtomicI64::new(first),
            log_end_offset: AtomicI64::new(first),
            segments: ArcSwap::from_pointee(segments),
        };
        Ok(Log {
            disk,
            dir,
            tp,
            topic_id: None,
            config,
            shared: Arc::new(shared),
            active,
            log_start_offset: first,
            log_end_offset: first,
            producers: Producers::default(),
            snapshots: BTreeSet::new(),
            epochs: EpochCache::default(),
            flush: FlushState::default(),
            deleted: VecDeque::new(),
        })
    }

    fn read_small_files(&mut self, found: &Found) {
        self.snapshots = found.snapshots.clone();
        if found.metadata {
            let bytes = read_to_vec(&*self.disk, &self.dir.join(METADATA_FILE), METADATA_MAX);
            self.topic_id = bytes.ok().and_then(|bytes| topic_id_of(&bytes));
            if self.topic_id.is_none() {
                tracing::warn!(partition = %self.tp, "partition.metadata cannot be read");
            }
        }
    }

    /// The leader epochs as the file has them; `None` when it is absent or damaged.
    pub(super) fn read_epochs(&self, found: &Found) -> Option<EpochCache> {
        if !found.epochs {
            return None;
        }
        let path = self.dir.join(EPOCH_FILE);
        let bytes = read_to_vec(&*self.disk, &path, EPOCH_FILE_MAX).ok()?;
        let epochs = std::str::from_utf8(&bytes).ok().and_then(EpochCache::decode);
        if epochs.is_none() {
            tracing::warn!(path = %path.display(), "damaged, rebuilding it from the log");
        }
        epochs
    }

    /// Opens trusting what the last run wrote at its end. `false` when the end of the log is not as
    /// it must have left it.
    fn open_clean(
        &mut self,
        found: &Found,
        now_ms: i64,
        report: &mut Recovered,
    ) -> Result<bool, StorageError> {
        let size = self.active.size;
        let Some(end_offset) = self.load_active(size, Trust::Closed, report)? else {
            return Ok(false);
        };
        self.publish_end(end_offset);
        self.epochs = self.read_epochs(found).unwrap_or_default();
        self.complete_epochs(end_offset, report)?;
        self.epochs.truncate_from_end(end_offset);
        self.producers = self.producers_at(end_offset, now_ms, report)?;
        let aborts = self.active.segment.aborted(&*self.disk)?.len();
        self.flush = FlushState::new(end_offset, size, aborts);
        if end_offset > 0 && !self.snapshots.contains(&end_offset) {
            // Or every start reads the batches again, and Kafka takes it for "no producers".
            self.flush.touch();
        }
        report.clean = true;
        Ok(true)
    }

    /// Makes the log begin where it is said to. A log that ends before that begins anew there.
    fn settle_start(&mut self, log_start_offset: i64, now_ms: i64) -> Result<(), StorageError> {
        if log_start_offset > self.log_end_offset {
            tracing::warn!(
                partition = %self.tp,
                log_end_offset = self.log_end_offset,
                log_start_offset,
                "log ends before its start, starting over"
            );
            return self.truncate_fully_and_start_at(log_start_offset, now_ms);
        }
        let first = self.segments().first().map_or(0, |segment| segment.base_offset);
        self.publish_start(log_start_offset.max(first));
        self.epochs.truncate_from_start(self.log_start_offset);
        Ok(())
    }

    /// Makes indexes for sealed segments that came without.
    fn rebuild_missing_indexes(
        &mut self,
        found: &Found,
        report: &mut Recovered,
    ) -> Result<(), StorageError> {
        let segments = self.segments();
        let Some((_, sealed)) = segments.split_last() else { return Ok(()) };
        let by_offset: &BTreeMap<i64, FoundSegment> = &found.segments;
        for segment in sealed {
            let known = by_offset.get(&segment.base_offset);
            let is_unread = segment.state.read().offsets.on_disk() == usize::MAX;
            if known.is_none_or(|known| known.is_indexed() || known.size == 0) || !is_unread {
                continue;
            }
            let file = segment.log_file(&*self.disk)?;
            self.scan_into(segment, &*file, segment.size(), CHECK, None, |_, _| Ok(()))
                .map_err(|error| segment.scan_error(error))?;
            self.finish_rebuilt(segment, report)?;
        }
        Ok(())
    }
}

impl FirstTimestamp {
    pub(super) fn of_size(size: u64) -> FirstTimestamp {
        if size == 0 { FirstTimestamp::NoBatch } else { FirstTimestamp::Unread }
    }
}

/// What `partition.metadata` holds.
fn metadata_text(topic_id: Uuid) -> String {
    format!("version: 0\ntopic_id: {}", topic_id_text(topic_id))
}

/// Whose log lies in `dir`, for who does not want to open it; `None` where that is not known.
pub fn topic_id_in(disk: &dyn Disk, dir: &Path) -> Option<Uuid> {
    let bytes = read_to_vec(disk, &dir.join(METADATA_FILE), METADATA_MAX).ok()?;
    topic_id_of(&bytes)
}

/// Reads `partition.metadata`.
fn topic_id_of(bytes: &[u8]) -> Option<Uuid> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines().map(|line| line.split_once(": "));
    if lines.next()?? != ("version", "0") {
        return None;
    }
    match lines.next()?? {
        ("topic_id", id) => parse_topic_id(id.trim()),
        _ => None,
    }
}

//! The log directories of this node: which partition lies where, opening and deleting them, and the
//! checkpoints that make a start quick.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use protocol_compat::ids::TopicPartition;
use storage::checkpoint::{
    CheckpointError, HIGH_WATERMARKS, LOG_START_OFFSETS, Offsets, RECOVERY_POINTS, read_offsets,
    write_offsets,
};
use storage::dirs::{Claim, DirError, LogDir, Owner};
use storage::disk::Disk;
use storage::errors::StorageError;
use storage::log::{Log, LogStart, delete_dir_name, stray_dir_name, topic_id_in};
use uuid::Uuid;

use crate::config::TopicSettings;
use crate::env::Env;
use crate::partition::Partition;
use crate::partition::flush::Flusher;
use crate::partition::room::Room;

/// One entry of `log.dirs`.
pub struct Dir {
    pub log_dir: LogDir,
    /// The path as clients see it: absolute.
    pub shown: String,
    pub flusher: Arc<Flusher>,
    checkpoints: Mutex<Checkpoints>,
    /// A partition of it could not be opened: the next start has to look at it again.
    has_failed: AtomicBool,
}

/// What the checkpoint files of a directory say. Of a partition that is not open they go on saying
/// what they said: without its recovery point, damage in it would pass for a torn tail and be cut.
#[derive(Clone, Default)]
struct Checkpoints {
    recovery_points: Offsets,
    log_starts: Offsets,
    high_watermarks: Offsets,
}

impl Checkpoints {
    fn read(disk: &dyn Disk, dir: &Path) -> Checkpoints {
        Checkpoints {
            recovery_points: offsets(disk, dir, RECOVERY_POINTS),
            log_starts: offsets(disk, dir, LOG_START_OFFSETS),
            high_watermarks: offsets(disk, dir, HIGH_WATERMARKS),
        }
    }

    fn write(&self, disk: &dyn Disk, dir: &Path) -> Result<(), CheckpointError> {
        write_offsets(disk, &dir.join(RECOVERY_POINTS), &self.recovery_points)?;
        write_offsets(disk, &dir.join(LOG_START_OFFSETS), &self.log_starts)?;
        write_offsets(disk, &dir.join(HIGH_WATERMARKS), &self.high_watermarks)
    }

    fn all(&mut self) -> [&mut Offsets; 3] {
        [&mut self.recovery_points, &mut self.log_starts, &mut self.high_watermarks]
    }

    /// Whether there was anything to forget.
    fn forget(&mut self, gone: &BTreeSet<TopicPartition>) -> bool {
        let mut before = 0;
        let mut after = 0;
        for offsets in self.all() {
            before += offsets.len();
            offsets.retain(|tp, _| !gone.contains(tp));
            after += offsets.len();
        }
        before != after
    }

    fn note(&mut self, partition: &Partition) {
        let tp = &partition.tp;
        let (flushed_end, start) = partition.with_log(|log| {
            if let Err(error) = log.checkpoint() {
                tracing::warn!(partition = %tp, %error, "indexes were not written");
            }
            (log.flushed_end(), log.log_start_offset())
        });
        self.recovery_points.insert(tp.clone(), flushed_end);
        self.high_watermarks.insert(tp.clone(), partition.high_watermark());
        if start > 0 {
            self.log_starts.insert(tp.clone(), start);
        }
    }
}

/// All of them.
pub struct LogDirs {
    disk: Arc<dyn Disk>,
    dirs: Vec<Dir>,
    places: Mutex<BTreeMap<TopicPartition, usize>>,
    /// Renamed directories and when they may go.
    deleted: Mutex<Vec<(i64, PathBuf)>>,
}

/// A directory that could not be removed is tried again after this long.
const PURGE_RETRY_MS: i64 = 60_000;

/// A partition to open.
pub struct Wanted {
    pub tp: TopicPartition,
    pub topic_id: Uuid,
    pub settings: Arc<ArcSwap<TopicSettings>>,
}

impl LogDirs {
    /// Locks and checks every directory, creating what is missing.
    ///
    /// # Errors
    /// One clear line each: in use, not writable, of another node, of a newer version.
    pub fn claim(env: &Env, paths: &[PathBuf], owner: &Owner) -> Result<Vec<Claim>, DirError> {
        let claim = |path: &PathBuf| {
            let owner = Owner { new_directory_id: env.rng.uuid(), ..owner.clone() };
            LogDir::claim(Arc::clone(&env.disk), path, &owner)
        };
        paths.iter().map(claim).collect()
    }

    /// Settles what was claimed and looks at what lies in it.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(env: &Env, claims: Vec<Claim>) -> Result<LogDirs, DirError> {
        let shown = |path: &Path| env.absolute(path).display().to_string();
        LogDirs::open_on(&env.disk, claims, shown)
    }

    fn open_on(
        disk: &Arc<dyn Disk>,
        claims: Vec<Claim>,
        shown: impl Fn(&Path) -> String,
    ) -> Result<LogDirs, DirError> {
        let mut dirs = Vec::with_capacity(claims.len());
        let (mut places, mut deleted) = (BTreeMap::new(), Vec::new());
        for (index, claim) in claims.into_iter().enumerate() {
            let log_dir = claim.settle()?;
            let path = log_dir.path().to_owned();
            let listing = log_dir.list()?;
            if log_dir.clean_stop().is_none() && !listing.partitions.is_empty() {
                // A partition made just before a kill may have a name in the page cache alone.
                let fail = |source| DirError::Unusable {
                    dir: path.clone(),
                    what: "cannot sync it",
                    source,
                };
                disk.sync_dir(&path).map_err(fail)?;
            }
            for partition in listing.partitions {
                places.insert(partition.tp, index);
            }
            deleted.extend(listing.deleted.into_iter().map(|path| (0, path)));
            for left in listing.stray.iter().chain(&listing.future).chain(&listing.other) {
                tracing::debug!(dir = %left.display(), "not a partition of ours: left alone");
            }
            dirs.push(Dir {
                checkpoints: Mutex::new(Checkpoints::read(&**disk, &path)),
                has_failed: AtomicBool::new(false),
                shown: shown(&path),
                log_dir,
                flusher: Arc::new(Flusher::new(Room::new(Arc::clone(disk), path.clone()))),
            });
        }
        Ok(LogDirs {
            disk: Arc::clone(disk),
            dirs,
            places: Mutex::new(places),
            deleted: Mutex::new(deleted),
        })
    }

    pub fn dirs(&self) -> &[Dir] {
        &self.dirs
    }

    /// Opens a partition where it lies, or makes it where the fewest are.
    ///
    /// # Errors
    /// The disk failed, or the log is damaged below what was flushed. Of a partition that could not
    /// be made nothing is left, so that it can be tried again.
    pub fn open_partition(
        &self,
        node_id: i32,
        wanted: Wanted,
        now_ms: i64,
    ) -> Result<Partition, StorageError> {
        let (index, known) = self.place(&wanted.tp);
        let dir = &self.dirs[index];
        let is_here = known && self.is_ours(dir, &wanted)?;
        let log = match is_here {
            true => self
                .open_log(dir, &wanted, now_ms)
                .inspect_err(|_| dir.has_failed.store(true, Ordering::Release))?,
            false => {
                self.create_log(dir, &wanted, now_ms).inspect_err(|_| self.undo(dir, &wanted))?
            }
        };
        let Wanted { topic_id, settings, .. } = wanted;
        let flusher = Arc::clone(&dir.flusher);
        Ok(Partition::new(node_id, index, log, topic_id, settings, flusher))
    }

    fn open_log(&self, dir: &Dir, wanted: &Wanted, now_ms: i64) -> Result<Log, StorageError> {
        let Wanted { tp, topic_id, settings } = wanted;
        let path = dir.log_dir.partition_path(tp);
        let start = {
            let known = dir.checkpoints.lock();
            LogStart {
                log_start_offset: known.log_starts.get(tp).copied().unwrap_or(0),
                recovery_point: known.recovery_points.get(tp).copied().unwrap_or(0),
                clean: dir.log_dir.clean_stop().is_some(),
            }
        };
        let disk = Arc::clone(&self.disk);
        let config = settings.load().log_config();
        let (mut log, recovered) = Log::open(disk, &path, tp.clone(), config, start, now_ms)?;
        if let Some(cut) = recovered.cut {
            let (offset, bytes, what) = (cut.offset, cut.bytes, cut.what);
            tracing::info!(partition = %tp, offset, bytes, what, "cut a torn tail");
        }
        // The watermark of what was just opened is its end.
        if let Err(error) = log.flush_recovered(dir.log_dir.sync_failed()) {
            dir.flusher.room.note_failed_sync();
            return Err(error);
        }
        if log.topic_id().is_none() {
            log.adopt(*topic_id)?;
        }
        Ok(log)
    }

    /// Whether the directory holds the topic's log. One of an earlier topic of the same name makes
    /// way, unopened: it may be damaged. It is kept: a topic that is deleted takes its directories
    /// along, so one that is still here may be all that is left of lost metadata.
    fn is_ours(&self, dir: &Dir, wanted: &Wanted) -> Result<bool, StorageError> {
        let Wanted { tp, topic_id, .. } = wanted;
        let path = dir.log_dir.partition_path(tp);
        if topic_id_in(&*self.disk, &path).is_none_or(|found| found == *topic_id) {
            return Ok(true);
        }
        let name = stray_dir_name(tp, &topic_id.simple().to_string());
        tracing::warn!(partition = %tp, kept_as = name, "directory of another topic of this name");
        self.rename(dir, tp, name)?;
        Ok(false)
    }

    fn rename(
        &self,
        dir: &Dir,
        tp: &TopicPartition,
        name: String,
    ) -> Result<PathBuf, StorageError> {
        let (path, to) = (dir.log_dir.partition_path(tp), dir.log_dir.path().join(name));
        self.disk.rename(&path, &to).map_err(|error| StorageError::io("rename", &path, error))?;
        Ok(to)
    }

    /// Deletes a partition that could not be opened; whether there was one.
    ///
    /// # Errors
    /// The disk's; the directory makes way when its name is used again.
    pub fn delete_unopened(
        &self,
        tp: &TopicPartition,
        unique: Uuid,
        delay_ms: i64,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let place = self.places.lock().get(tp).and_then(|&index| self.dirs.get(index));
        let Some(dir) = place else { return Ok(false) };
        let to = self.rename(dir, tp, delete_dir_name(tp, &unique.simple().to_string()))?;
        self.deleted.lock().push((now_ms.saturating_add(delay_ms), to));
        self.places.lock().remove(tp);
        Ok(true)
    }

    /// Makes an empty log, after what an earlier partition of this name left in the checkpoints is
    /// gone from the disk: its offsets would make the new one's start by the old one's end.
    fn create_log(&self, dir: &Dir, wanted: &Wanted, now_ms: i64) -> Result<Log, StorageError> {
        let Wanted { tp, topic_id, settings } = wanted;
        let path = dir.log_dir.partition_path(tp);
        self.forget_in(dir, &BTreeSet::from([tp.clone()])).map_err(|error| match error {
            CheckpointError::Io { path, source } => StorageError::io("write", &path, source),
            malformed => StorageError::io("write", &path, io::Error::other(malformed)),
        })?;
        let disk = Arc::clone(&self.disk);
        Log::create(disk, &path, tp.clone(), *topic_id, settings.load().log_config(), now_ms)
    }

    /// Takes back what a failed creation left.
    fn undo(&self, dir: &Dir, wanted: &Wanted) {
        let path = dir.log_dir.partition_path(&wanted.tp);
        match self.disk.remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(dir = %path.display(), %error, "half a partition is left");
            }
            _ => drop(self.places.lock().remove(&wanted.tp)),
        }
    }

    /// Takes deleted partitions out of the checkpoints, on the disk too.
    ///
    /// # Errors
    /// The disk's; they are still in it then, and whoever makes them again tries again.
    pub fn forget(&self, gone: &BTreeSet<TopicPartition>) -> Result<(), CheckpointError> {
        self.dirs.iter().try_for_each(|dir| self.forget_in(dir, gone))
    }

    fn forget_in(&self, dir: &Dir, gone: &BTreeSet<TopicPartition>) -> Result<(), CheckpointError> {
        let mut checkpoints = dir.checkpoints.lock();
        let mut rest = checkpoints.clone();
        if rest.forget(gone) {
            rest.write(&*self.disk, dir.log_dir.path())?;
            *checkpoints = rest;
        }
        Ok(())
    }

    /// Where a partition lies, and whether it is there already.
    fn place(&self, tp: &TopicPartition) -> (usize, bool) {
        let mut places = self.places.lock();
        if let Some(&index) = places.get(tp) {
            return (index, true);
        }
        let mut counts = vec![0usize; self.dirs.len()];
        if self.dirs.len() > 1 {
            for &index in places.values() {
                counts[index] += 1;
            }
        }
        let fewest = (0..counts.len()).min_by_key(|&index| counts[index]).unwrap_or(0);
        places.insert(tp.clone(), fewest);
        (fewest, false)
    }

    /// Takes a deleted partition out: its directory gets a name that nobody opens.
    ///
    /// # Errors
    /// The disk failed; the directory is cleaned up at the next start.
    pub fn delete_partition(
        &self,
        partition: &Partition,
        unique: Uuid,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        partition.take_offline();
        let hex = unique.simple().to_string();
        let path = partition.with_log(|log| log.mark_deleted(&hex))?;
        self.places.lock().remove(&partition.tp);
        let delay_ms = partition.settings().file_delete_delay_ms;
        self.deleted.lock().push((now_ms.saturating_add(delay_ms), path));
        Ok(())
    }

    /// Bytes of all directories made durable since the start.
    pub fn flushed_bytes(&self) -> u64 {
        self.dirs.iter().map(|dir| dir.flusher.flushed_bytes()).sum()
    }

    /// Whether a disk is so full that clients' records are refused.
    pub fn is_short(&self) -> bool {
        self.dirs.iter().any(|dir| dir.flusher.room.is_short())
    }

    /// Removes directories of deleted partitions, those of which it is time or all.
    pub fn purge_deleted(&self, now_ms: i64, all: bool) {
        let due: Vec<PathBuf> = {
            let mut deleted = self.deleted.lock();
            let due = deleted.extract_if(.., |(at_ms, _)| all || *at_ms <= now_ms);
            due.map(|(_, path)| path).collect()
        };
        for path in due {
            if let Err(error) = self.disk.remove_dir_all(&path) {
                tracing::warn!(dir = %path.display(), %error, "not removed, tried again later");
                self.deleted.lock().push((now_ms.saturating_add(PURGE_RETRY_MS), path));
            }
        }
    }

    /// The broker epoch of the last run, if every directory was left cleanly (KIP-966).
    pub fn previous_epoch(&self) -> Option<i64> {
        let mut epochs = self.dirs.iter().map(|dir| dir.log_dir.clean_stop()?.broker_epoch);
        epochs.next()?.filter(|first| epochs.all(|epoch| epoch == Some(*first)))
    }

    /// Leaves the marker of a clean stop in every directory whose partitions were all open.
    ///
    /// # Errors
    /// The disk's; the next start looks at the logs.
    pub fn leave_clean_markers(&self, broker_epoch: i64) -> Result<(), DirError> {
        let mut whole = self.dirs.iter().filter(|dir| !dir.has_failed.load(Ordering::Acquire));
        whole.try_for_each(|dir| dir.log_dir.leave_marker(broker_epoch))
    }

    /// Writes down how far every partition is flushed, so that the next start need not look below.
    /// Whether all of it was written.
    pub fn checkpoint(&self, partitions: &[Arc<Partition>]) -> bool {
        let mut all = true;
        for (index, dir) in self.dirs.iter().enumerate() {
            let mut checkpoints = dir.checkpoints.lock();
            for partition in partitions.iter().filter(|partition| partition.dir == index) {
                // A deleted one's name may be another's by now.
                if !partition.is_offline() {
                    checkpoints.note(partition);
                }
            }
            {
                let places = self.places.lock();
                for offsets in checkpoints.all() {
                    offsets.retain(|tp, _| places.get(tp) == Some(&index));
                }
            }
            let path = dir.log_dir.path();
            if let Err(error) = checkpoints.write(&*self.disk, path) {
                tracing::warn!(dir = %path.display(), %error, "checkpoints were not written");
                all = false;
            }
        }
        all
    }

    /// Writes down where every log starts, when that was moved by request: what a client deleted
    /// would come back after a crash.
    pub fn note_log_starts(&self, partitions: &[Arc<Partition>]) {
        for (index, dir) in self.dirs.iter().enumerate() {
            let mut checkpoints = dir.checkpoints.lock();
            let here = |partition: &&Arc<Partition>| partition.dir == index;
            for partition in partitions.iter().filter(here) {
                let start = partition.log_start_offset();
                if start > 0 && !partition.is_offline() {
                    checkpoints.log_starts.insert(partition.tp.clone(), start);
                }
            }
            let path = dir.log_dir.path().join(LOG_START_OFFSETS);
            if let Err(error) = write_offsets(&*self.disk, &path, &checkpoints.log_starts) {
                tracing::warn!(file = %path.display(), %error, "log starts were not written");
            }
        }
    }

    /// Directories of partitions that no topic of the metadata has, in order.
    pub fn strays(&self, is_known: impl Fn(&TopicPartition) -> bool) -> Vec<TopicPartition> {
        self.places.lock().keys().filter(|tp| !is_known(tp)).cloned().collect()
    }
}

/// A checkpoint of the last run. A missing one means a look at the whole log; a broken one too.
fn offsets(disk: &dyn Disk, dir: &Path, name: &str) -> Offsets {
    let path = dir.join(name);
    read_offsets(disk, &path).unwrap_or_else(|error| {
        tracing::warn!(file = %path.display(), %error, "the checkpoint is not used");
        Offsets::new()
    })
}

#[cfg(test)]
#[path = "log_dirs_tests.rs"]
mod tests;

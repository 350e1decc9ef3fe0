//! The log directories of this node: which partition lies where, opening and deleting them, and the
//! checkpoints that make a start quick.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use protocol_compat::ids::TopicPartition;
use storage::checkpoint::{
    HIGH_WATERMARKS, LOG_START_OFFSETS, Offsets, RECOVERY_POINTS, read_offsets, write_offsets,
};
use storage::dirs::{DirError, LogDir, Owner};
use storage::disk::Disk;
use storage::errors::StorageError;
use storage::log::{Log, LogStart};
use uuid::Uuid;

use crate::config::TopicSettings;
use crate::env::Env;
use crate::partition::Partition;
use crate::partition::flush::Flusher;

/// One entry of `log.dirs`.
pub struct Dir {
    pub log_dir: LogDir,
    /// The path as clients see it: absolute.
    pub shown: String,
    pub flusher: Arc<Flusher>,
    /// What the last run wrote down; used once, when the partition is opened.
    recovery_points: Offsets,
    log_starts: Offsets,
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
    pub fn open(env: &Env, paths: &[PathBuf], owner: &Owner) -> Result<LogDirs, DirError> {
        let mut dirs = Vec::with_capacity(paths.len());
        let (mut places, mut deleted) = (BTreeMap::new(), Vec::new());
        for (index, path) in paths.iter().enumerate() {
            let owner = Owner { new_directory_id: env.rng.uuid(), ..owner.clone() };
            let log_dir = LogDir::open(Arc::clone(&env.disk), path, &owner)?;
            let listing = log_dir.list()?;
            for partition in listing.partitions {
                places.insert(partition.tp, index);
            }
            deleted.extend(listing.deleted.into_iter().map(|path| (0, path)));
            for left in listing.stray.iter().chain(&listing.future).chain(&listing.other) {
                tracing::debug!(dir = %left.display(), "not a partition of ours: left alone");
            }
            dirs.push(Dir {
                recovery_points: offsets(&*env.disk, path, RECOVERY_POINTS),
                log_starts: offsets(&*env.disk, path, LOG_START_OFFSETS),
                shown: env.absolute(path).display().to_string(),
                log_dir,
                flusher: Arc::new(Flusher::new()),
            });
        }
        Ok(LogDirs {
            disk: Arc::clone(&env.disk),
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
    /// The disk failed, or the log is damaged below what was flushed.
    pub fn open_partition(
        &self,
        node_id: i32,
        wanted: Wanted,
        now_ms: i64,
    ) -> Result<Partition, StorageError> {
        let Wanted { tp, topic_id, settings } = wanted;
        let (index, known) = self.place(&tp);
        let dir = &self.dirs[index];
        let path = dir.log_dir.partition_path(&tp);
        let config = settings.load().log_config();
        let disk = Arc::clone(&self.disk);
        let log = if known {
            let start = LogStart {
                log_start_offset: dir.log_starts.get(&tp).copied().unwrap_or(0),
                recovery_point: dir.recovery_points.get(&tp).copied().unwrap_or(0),
                clean: dir.log_dir.clean_stop().is_some(),
            };
            let (mut log, recovered) = Log::open(disk, &path, tp.clone(), config, start, now_ms)?;
            if let Some(cut) = recovered.cut {
                let (offset, bytes, what) = (cut.offset, cut.bytes, cut.what);
                tracing::info!(partition = %tp, offset, bytes, what, "cut a torn tail");
            }
            let found = log.topic_id();
            if found == Some(topic_id) {
                log
            } else if found.is_none() {
                log.adopt(topic_id)?;
                log
            } else {
                // The name was used before by a topic that is deleted now.
                log.mark_deleted(topic_id.simple().to_string().as_str())?;
                let disk = Arc::clone(&self.disk);
                Log::create(disk, &path, tp, topic_id, settings.load().log_config(), now_ms)?
            }
        } else {
            Log::create(disk, &path, tp, topic_id, config, now_ms)?
        };
        let flusher = Arc::clone(&dir.flusher);
        Ok(Partition::new(node_id, index, log, topic_id, settings, flusher))
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
        self.places.lock().remove(&partition.tp);
        let hex = unique.simple().to_string();
        let path = partition.with_log(|log| log.mark_deleted(&hex))?;
        let delay_ms = partition.settings().file_delete_delay_ms;
        self.deleted.lock().push((now_ms.saturating_add(delay_ms), path));
        Ok(())
    }

    /// Removes directories of deleted partitions when their time has come.
    pub fn purge_deleted(&self, now_ms: i64) {
        let due: Vec<PathBuf> = {
            let mut deleted = self.deleted.lock();
            deleted.extract_if(.., |(at_ms, _)| *at_ms <= now_ms).map(|(_, path)| path).collect()
        };
        for path in due {
            if let Err(error) = self.disk.remove_dir_all(&path) {
                tracing::warn!(dir = %path.display(), %error, "not removed, tried again later");
                self.deleted.lock().push((now_ms + PURGE_RETRY_MS, path));
            }
        }
    }

    /// The broker epoch of the last run, if every directory was left cleanly (KIP-966).
    pub fn previous_epoch(&self) -> Option<i64> {
        let mut epochs = self.dirs.iter().map(|dir| dir.log_dir.clean_stop()?.broker_epoch);
        epochs.next()?.filter(|first| epochs.all(|epoch| epoch == Some(*first)))
    }

    /// Leaves the marker of a clean stop in every directory.
    pub fn leave_clean_markers(&self, broker_epoch: i64) {
        for dir in &self.dirs {
            if let Err(error) = dir.log_dir.leave_marker(broker_epoch) {
                tracing::warn!(%error, "the next start will look at the logs");
            }
        }
    }

    /// Writes down how far every partition is flushed, so that the next start need not look below.
    pub fn checkpoint(&self, partitions: &[Arc<Partition>]) {
        let mut points = vec![(Offsets::new(), Offsets::new(), Offsets::new()); self.dirs.len()];
        for partition in partitions {
            let (recovery, starts, marks) = &mut points[partition.dir];
            let tp = &partition.tp;
            let (flushed_end, start) = partition.with_log(|log| {
                if let Err(error) = log.checkpoint() {
                    tracing::warn!(partition = %tp, ?error, "indexes were not written");
                }
                (log.flushed_end(), log.log_start_offset())
            });
            recovery.insert(tp.clone(), flushed_end);
            marks.insert(tp.clone(), partition.high_watermark());
            if start > 0 {
                starts.insert(tp.clone(), start);
            }
        }
        for (dir, (recovery, starts, marks)) in self.dirs.iter().zip(points) {
            let files = [
                (RECOVERY_POINTS, recovery),
                (LOG_START_OFFSETS, starts),
                (HIGH_WATERMARKS, marks),
            ];
            for (name, offsets) in files {
                let path = dir.log_dir.path().join(name);
                if let Err(error) = write_offsets(&*self.disk, &path, &offsets) {
                    tracing::warn!(file = %path.display(), %error, "a checkpoint was not written");
                }
            }
        }
    }
}

/// A checkpoint of the last run. A missing one means a look at the whole log; a broken one too.
fn offsets(disk: &dyn Disk, dir: &std::path::Path, name: &str) -> Offsets {
    let path = dir.join(name);
    read_offsets(disk, &path).unwrap_or_else(|error| {
        tracing::warn!(file = %path.display(), %error, "the checkpoint is not used");
        Offsets::new()
    })
}

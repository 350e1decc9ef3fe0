//! Group commit: makes what many logs appended durable with as few syncs as the disk allows.
//!
//! A group is what gathered while the group before it was synced. Large files of it are synced
//! directly. Many small ones are journalled: their new bytes go once more to one file, which takes
//! one sync, and the segments are synced later, in the background ([`Flusher::tick`]). After a
//! crash [`Flusher::open`] puts the journal's bytes back, so it must run before any log is opened.
//!
//! `plan.rs` decides, `commit.rs` carries out, `journal.rs` and `format.rs` keep the journal,
//! `replay.rs` reads it, `pool.rs` syncs several files at once. Threads, queues and when to call
//! what are the broker's.
//!
//! # What a log owes the flusher
//! - A cut counts in [`Cuts`] before the first file is touched; removes the segments behind it,
//!   newest first, and syncs the directory; then cuts the last one and syncs it. It shows in the
//!   next [`Dirty`]: `from` is where the file was cut, even when nothing was appended since.
//! - A new segment's or partition's directory is in `Dirty::dirs`.
//! - A segment may be replaced or rewritten (compaction) only when its end offset is strictly below
//!   the log's flushed end: then nothing in the journal speaks of it any more.
//!
//! # Why replay never brings back what a log has dropped
//! A flush whose file starts before the end of what the journal holds of that file tells that it
//! was cut. Journalled, it replaces what stood there; synced directly, it voids the earlier items
//! before it counts as flushed. A roll voids what the journal says of the older segments, after
//! syncing them. A crash before that flush finds either the log before the cut or, by the checks of
//! `replay.rs`, the log after it; for these each item names the batch that it follows, and a
//! segment's first bytes are never journalled.

mod batches;
mod commit;
mod dirty;
mod format;
mod journal;
mod plan;
mod pool;
mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

pub use dirty::{Cuts, Dirty, DirtyFile};
use format::{SegmentKey, Stamp};
use journal::Journal;
pub use pool::{InTurn, SyncPool, Synced, Syncer, Target};
pub use replay::Replayed;
use replay::{Found, ReplayError};

use crate::disk::{Disk, File, parent};

/// The journal's name in the log directory. Apache Kafka ignores it.
pub const JOURNAL_FILE: &str = "gracchus-flush.journal";

/// After the disk was found full, the journal is left alone for this long.
const JOURNAL_PAUSE_MS: i64 = 10_000;

/// How a flusher weighs syncs against copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlushConfig {
    /// Whether to journal at all. An existing journal is replayed in any case.
    pub journal: bool,
    /// The journal's size when full grown, in bytes. Bounds the replay.
    pub journal_bytes: u64,
    /// The file is made with so many bytes and grows by as many, in bytes.
    pub journal_step_bytes: u64,
    /// A file with at least so many new bytes is synced directly.
    pub direct_file_bytes: u64,
    /// So many small files, or fewer, are synced directly too.
    pub direct_files: usize,
    /// Bytes per second beyond which the journal would take too much of the disk's throughput.
    pub journal_bytes_per_second: u64,
    /// When a journalled file's own sync falls due, in ms.
    pub settle_after_ms: i64,
    /// Files that are synced in the background at a time.
    pub settle_files: usize,
    /// Journalled files' syncs fall due, too, when the journal holds so many bytes, and so many for
    /// each of them. Synced late, a lot is written at once, and groups wait behind it at the disk.
    pub settle_bytes: u64,
    pub settle_bytes_per_file: u64,
}

impl Default for FlushConfig {
    fn default() -> FlushConfig {
        FlushConfig {
            journal: true,
            journal_bytes: 32 << 20,
            journal_step_bytes: 1 << 20,
            direct_file_bytes: 256 << 10,
            direct_files: 2,
            journal_bytes_per_second: 64 << 20,
            settle_after_ms: 2_000,
            settle_files: 64,
            settle_bytes: 2 << 20,
            settle_bytes_per_file: 64 << 10,
        }
    }
}

/// A flush failed. Whatever it was, nobody knows what is durable now and the process must end;
/// the flusher refuses to work from here on.
#[derive(Debug, Error)]
pub enum FlushError {
    /// `fdatasync` or a directory's `fsync`. A second call would say OK over bytes that are lost.
    #[error("cannot sync {}: {source}", path.display())]
    Sync { path: PathBuf, source: io::Error },
    /// The journal could not be written, and going without it is not possible here.
    #[error("cannot write the flush journal {}: {source}", path.display())]
    Journal { path: PathBuf, source: io::Error },
    /// At start: the journal or a segment could not be read or put right.
    #[error("cannot replay the flush journal into {}: {source}", path.display())]
    Replay { path: PathBuf, source: io::Error },
    /// At start: the journal was written by a newer version.
    #[error("{} has version {version}, written by a newer Gracchus", path.display())]
    TooNew { path: PathBuf, version: u32 },
    /// A call after one of the above.
    #[error("an earlier flush failed")]
    Failed,
}

/// Counts since the flusher was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlushStats {
    pub groups: u64,
    /// Groups of which at least a part was journalled.
    pub journalled_groups: u64,
    pub journalled_bytes: u64,
    /// Segment files synced as part of a group.
    pub direct_syncs: u64,
    /// Segment files synced after their bytes were journalled.
    pub settled_files: u64,
}

/// A journalled file whose own sync is still to come.
struct Pending {
    file: Arc<dyn File>,
    path: PathBuf,
    first_sequence: u64,
    since_ms: i64,
}

/// What groups on the disk say of a segment, also after it was settled.
struct OnDisk {
    /// Position at which the last item ended.
    end: u64,
    /// Where the last batch of it begins, if that is known.
    last_batch: Option<u64>,
    last_sequence: u64,
}

/// The group commit engine of one log directory. Owned by one thread.
pub struct Flusher {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    config: FlushConfig,
    syncer: Box<dyn Syncer>,
    stamp: Stamp,
    journal: Option<Journal>,
    pending: BTreeMap<SegmentKey, Pending>,
    /// `pending` by its first group.
    by_age: BTreeSet<(u64, SegmentKey)>,
    /// What is being synced in the background, in the syncer's order. What a group journals of it
    /// meanwhile makes it pending anew.
    settling: Vec<(SegmentKey, Pending)>,
    on_disk: BTreeMap<SegmentKey, OnDisk>,
    /// Before this time the journal is not used: the disk was full.
    journal_paused_until_ms: i64,
    second_started_ms: i64,
    second_bytes: u64,
    stats: FlushStats,
    failed: bool,
}

impl Flusher {
    /// Takes over the journal of `dir`: replays it, unless `clean` says that whoever used the
    /// directory last stopped cleanly (a journal that lies there all the same is older than that
    /// run, which may have been Apache Kafka's, and is thrown away). `secret` must be fresh, random
    /// and never leave the process. The caller holds the directory's lock.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        config: FlushConfig,
        syncer: Box<dyn Syncer>,
        secret: u128,
        clean: bool,
    ) -> Result<(Flusher, Replayed), FlushError> {
        let path = dir.join(JOURNAL_FILE);
        let of_replay = |error| match error {
            ReplayError::Io(path, source) => FlushError::Replay { path, source },
            ReplayError::TooNew(version) => FlushError::TooNew { path: path.clone(), version },
        };
        let mut flusher = Flusher {
            disk,
            dir: dir.to_owned(),
            config,
            syncer,
            stamp: Stamp { secret, incarnation: 1 },
            journal: None,
            pending: BTreeMap::new(),
            by_age: BTreeSet::new(),
            settling: Vec::new(),
            on_disk: BTreeMap::new(),
            journal_paused_until_ms: i64::MIN,
            second_started_ms: i64::MIN,
            second_bytes: 0,
            stats: FlushStats::default(),
            failed: false,
        };
        let disk = flusher.disk.clone();
        let mut report = Replayed::default();
        match replay::find(&*disk, &path).map_err(of_replay)? {
            Found::Nothing => return Ok((flusher, report)),
            Found::Useless { damaged } => report.damaged = damaged && !clean,
            Found::Journal(old) => {
                flusher.stamp.incarnation = old.incarnation().saturating_add(1);
                if !clean {
                    report = old.replay(&*disk, dir, &*flusher.syncer).map_err(of_replay)?;
                }
            }
        }
        // From here on nothing that lies in the file counts: logs may change once we return.
        flusher.renew(&path).map_err(|source| FlushError::Journal { path, source })?;
        Ok((flusher, report))
    }

    /// Puts a new stamp on the journal, or removes the file where that is not possible or wanted.
    fn renew(&mut self, path: &Path) -> io::Result<()> {
        if self.config.journal {
            match self.create_journal(path) {
                Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
                other => {
                    self.journal = Some(other?);
                    return Ok(());
                }
            }
        }
        self.remove_journal(path)
    }

    fn create_journal(&self, path: &Path) -> io::Result<Journal> {
        let config = &self.config;
        let (size, step) = (config.journal_bytes, config.journal_step_bytes);
        let size = size.max(4 * format::RING_START) / format::BLOCK * format::BLOCK;
        Journal::create(&*self.disk, path, self.stamp, size, step)
    }

    fn remove_journal(&self, path: &Path) -> io::Result<()> {
        match self.disk.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => self.disk.sync_dir(parent(path)),
        }
    }

    /// Makes a group durable. On return everything in it is, except what was cut meanwhile (see
    /// [`Dirty::is_current`], to be asked under the partition's lock).
    pub fn flush(&mut self, group: &[Dirty], now_ms: i64) -> Result<(), FlushError> {
        self.guarded(|flusher| flusher.commit(group, now_ms))
    }

    /// Sees to it that what was journalled is synced, beside the groups. To be called after each
    /// group, and when the time comes that it returns: at once for one that has come, `None` for
    /// no need.
    pub fn tick(&mut self, now_ms: i64) -> Result<Option<i64>, FlushError> {
        self.guarded(|flusher| flusher.work(now_ms))
    }

    /// Syncs all that was journalled and removes the journal: the last act of a clean stop, before
    /// the marker is written.
    pub fn close(mut self) -> Result<(), FlushError> {
        self.guarded(|flusher| {
            flusher.settle_all()?;
            let path = flusher.dir.join(JOURNAL_FILE);
            flusher.journal = None;
            flusher.remove_journal(&path).map_err(|source| FlushError::Journal { path, source })
        })
    }

    pub fn stats(&self) -> FlushStats {
        self.stats
    }

    /// Journalled files whose own sync is still to come, or to end.
    pub fn unsettled(&self) -> usize {
        self.pending.len() + self.settling.len()
    }

    fn guarded<T>(
        &mut self,
        body: impl FnOnce(&mut Flusher) -> Result<T, FlushError>,
    ) -> Result<T, FlushError> {
        if self.failed {
            return Err(FlushError::Failed);
        }
        let result = body(self);
        self.failed = result.is_err();
        result
    }
}

fn sync_error(path: &Path, source: io::Error) -> FlushError {
    FlushError::Sync { path: path.to_owned(), source }
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod tests;

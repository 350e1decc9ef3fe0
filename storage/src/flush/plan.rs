//! What to do with a group: which files to sync, which to journal. Pure but for the handles it
//! carries along.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::format::SegmentKey;
use super::{Dirty, FlushConfig};
use crate::disk::File;

/// Header and name of an item.
const ITEM_OVERHEAD_MAX: u64 = 320;

/// The new bytes of one file, all `Dirty` of the group taken together.
pub(super) struct Job {
    /// `None` where the path is not a segment of this directory: cannot be journalled.
    pub key: Option<SegmentKey>,
    pub file: Arc<dyn File>,
    pub path: PathBuf,
    pub topic_id: Uuid,
    pub from: u64,
    to: u64,
    /// Where the last of the new batches begins, once they were read.
    pub last_batch: Option<u64>,
    /// The last `Dirty` of the group that names the file.
    dirty: Option<usize>,
}

impl Job {
    /// A file to sync of which the group has no bytes.
    pub fn sync_only(key: &SegmentKey, file: &Arc<dyn File>, path: &Path) -> Job {
        Job {
            key: Some(key.clone()),
            file: file.clone(),
            path: path.to_owned(),
            topic_id: Uuid::nil(),
            from: u64::MAX,
            to: u64::MAX,
            last_batch: None,
            dirty: None,
        }
    }

    pub fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether the log was not cut since its bytes were taken.
    pub fn is_current(&self, group: &[Dirty]) -> bool {
        self.dirty.and_then(|at| group.get(at)).is_none_or(Dirty::is_current)
    }
}

/// A group, sorted out.
pub(super) struct Plan<'g> {
    pub group: &'g [Dirty],
    /// To be synced.
    pub direct: Vec<Job>,
    /// To be journalled.
    pub small: Vec<Job>,
    /// To be synced, each once.
    pub dirs: BTreeSet<PathBuf>,
    /// Logs that have new files: directory name and base offset of the active segment.
    pub rolled: BTreeMap<String, i64>,
}

impl<'g> Plan<'g> {
    pub fn of(log_dir: &Path, config: &FlushConfig, group: &'g [Dirty]) -> Plan<'g> {
        let mut plan = Plan {
            group,
            direct: Vec::new(),
            small: Vec::new(),
            dirs: group.iter().flat_map(|dirty| dirty.dirs.iter().cloned()).collect(),
            rolled: rolled(log_dir, group),
        };
        for (job, is_last) in jobs(log_dir, group) {
            let base = |key: &SegmentKey| plan.rolled.get(&key.dir).copied();
            let is_active = |key: &SegmentKey| base(key).is_none_or(|base| base == key.base_offset);
            // Without bytes before it nothing ties an item to this very file: a segment that was
            // removed and made again would get the old one's bytes.
            let is_small = job.len() < config.direct_file_bytes && job.from > 0;
            let may_wait = is_last && job.key.as_ref().is_some_and(is_active);
            if is_small && may_wait && job.is_current(group) {
                plan.small.push(job);
            } else {
                plan.direct.push(job);
            }
        }
        if plan.small.len() <= config.direct_files {
            plan.all_direct();
        }
        plan
    }

    /// What the small files take in the journal, at most.
    pub fn small_bytes(&self) -> u64 {
        self.small.iter().map(|job| job.len() + ITEM_OVERHEAD_MAX).sum()
    }

    /// Whether only logs that were cut since name the directory: a deleted partition's has another
    /// name by now, and nothing in it has to last.
    pub fn is_gone(&self, dir: &Path) -> bool {
        let mut named = self.group.iter().filter(|dirty| dirty.dirs.iter().any(|at| at == dir));
        named.all(|dirty| !dirty.is_current())
    }

    pub fn all_direct(&mut self) {
        self.direct.append(&mut self.small);
    }
}

/// The group's files in order of path, and whether each is the last segment of its log.
fn jobs(log_dir: &Path, group: &[Dirty]) -> impl Iterator<Item = (Job, bool)> {
    let mut jobs = BTreeMap::<&Path, (Job, bool)>::new();
    for (at, dirty) in group.iter().enumerate() {
        for (nth, file) in dirty.files.iter().enumerate() {
            let mut job = Job {
                key: SegmentKey::of_path(log_dir, &file.path),
                file: file.file.clone(),
                path: file.path.clone(),
                topic_id: dirty.topic_id,
                from: file.from,
                to: file.to,
                last_batch: None,
                dirty: Some(at),
            };
            // The later one knows where the file ends; a cut between them may lie below both
            // starts.
            if let Some((earlier, _)) = jobs.get(file.path.as_path()) {
                job.from = job.from.min(earlier.from);
            }
            jobs.insert(&file.path, (job, nth + 1 == dirty.files.len()));
        }
    }
    jobs.into_values()
}

fn rolled(log_dir: &Path, group: &[Dirty]) -> BTreeMap<String, i64> {
    let mut rolled = BTreeMap::new();
    for dirty in group.iter().filter(|dirty| !dirty.dirs.is_empty() || dirty.files.len() > 1) {
        let active = dirty.files.last().and_then(|file| SegmentKey::of_path(log_dir, &file.path));
        rolled.extend(active.map(|key| (key.dir, key.base_offset)));
    }
    rolled
}

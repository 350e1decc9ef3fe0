//! Carrying out: a group, and the background work. All of the flusher's I/O but opening and
//! closing.
//!
//! Every failure here is final; `mod.rs` sees to it that no call follows one.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol_compat::batch::BatchHeader;

use super::batches;
use super::format::{Context, GroupBuilder, SegmentKey};
use super::journal::AppendError;
use super::plan::{Job, Plan};
use super::pool::{DirNames, Synced, Target};
use super::{
    Dirty, FlushError, Flusher, JOURNAL_FILE, JOURNAL_PAUSE_MS, OnDisk, Pending, sync_error,
};

/// How often to look whether background syncs have ended, where no group comes.
const SETTLING_LOOK_MS: i64 = 5;

impl Flusher {
    pub(super) fn commit(&mut self, group: &[Dirty], now_ms: i64) -> Result<(), FlushError> {
        if group.is_empty() {
            return Ok(());
        }
        self.stats.groups += 1;
        self.look_at_settling()?;
        let mut plan = Plan::of(&self.dir, &self.config, group);
        let mut voids = self.superseded_segments(&mut plan);
        let builder = self.read_small(&mut plan, now_ms)?;
        voids.extend(self.cut_segments(&plan.direct));
        // In this order: a void must not be durable before what makes its items unnecessary is.
        self.sync_plan(&plan)?;
        match builder.or_else(|| self.journal.as_mut().map(|journal| journal.builder())) {
            Some(builder) if !plan.small.is_empty() || !voids.is_empty() => {
                self.write_group(builder, plan.small, voids, now_ms)
            }
            _ => Ok(()),
        }
    }

    /// Segments of rolled logs of which the journal speaks though they are not the active one any
    /// more: queued to be synced, and returned to be voided.
    fn superseded_segments(&self, plan: &mut Plan) -> BTreeSet<SegmentKey> {
        let mut voids = BTreeSet::new();
        for (dir, active) in &plan.rolled {
            let first = SegmentKey { dir: dir.clone(), base_offset: i64::MIN };
            let of_log = self.on_disk.range(first..).take_while(|(key, _)| key.dir == *dir);
            for (key, _) in of_log.filter(|(key, _)| key.base_offset != *active) {
                voids.insert(key.clone());
                let pending = self.pending.get(key).or_else(|| self.settling_file(key));
                let Some(pending) = pending else { continue };
                if !plan.direct.iter().any(|job| job.path == pending.path) {
                    plan.direct.push(Job::sync_only(key, &pending.file, &pending.path));
                }
            }
        }
        voids
    }

    /// Segments to be synced directly of which the journal holds bytes that were cut since.
    fn cut_segments<'p>(&self, jobs: &'p [Job]) -> impl Iterator<Item = SegmentKey> + use<'_, 'p> {
        jobs.iter().filter_map(|job| {
            let key = job.key.as_ref()?;
            self.on_disk.get(key).filter(|on_disk| job.from < on_disk.end)?;
            Some(key.clone())
        })
    }

    /// Reads the new bytes of the small files into a group. What cannot be journalled, for whatever
    /// reason, moves to the files to be synced directly.
    fn read_small(
        &mut self,
        plan: &mut Plan,
        now_ms: i64,
    ) -> Result<Option<GroupBuilder>, FlushError> {
        let may = !plan.small.is_empty() && self.may_journal(plan.small_bytes(), now_ms)?;
        let Some(journal) = self.journal.as_mut().filter(|_| may) else {
            plan.all_direct();
            return Ok(None);
        };
        let mut builder = journal.builder();
        for mut job in std::mem::take(&mut plan.small) {
            let mark = builder.mark();
            let before = self.batch_before(&job);
            if put_job(&mut builder, &mut job, before) && job.is_current(plan.group) {
                plan.small.push(job);
            } else {
                builder.back_to(mark);
                plan.direct.push(job);
            }
        }
        Ok(Some(builder))
    }

    /// Where the batch before a job's bytes begins: as remembered, or as found in the file.
    fn batch_before(&self, job: &Job) -> Option<u64> {
        let on_disk = job.key.as_ref().and_then(|key| self.on_disk.get(key));
        match on_disk.filter(|on_disk| on_disk.end == job.from) {
            Some(OnDisk { last_batch: Some(start), .. }) => Some(*start),
            _ => batches::batch_before(&*job.file, job.from).ok().flatten(),
        }
    }

    /// Whether `bytes` may go to the journal now. Makes the journal on first need.
    fn may_journal(&mut self, bytes: u64, now_ms: i64) -> Result<bool, FlushError> {
        if !self.config.journal || now_ms < self.journal_paused_until_ms {
            return Ok(false);
        }
        if !(0..1000).contains(&now_ms.saturating_sub(self.second_started_ms)) {
            (self.second_started_ms, self.second_bytes) = (now_ms, 0);
        }
        if self.second_bytes.saturating_add(bytes) > self.config.journal_bytes_per_second {
            return Ok(false);
        }
        if self.journal.is_none() {
            let path = self.journal_path();
            match self.create_journal(&path) {
                Ok(journal) => self.journal = Some(journal),
                Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                    tracing::warn!(path = %path.display(), %error, "no room for the flush journal");
                    self.journal_paused_until_ms = now_ms.saturating_add(JOURNAL_PAUSE_MS);
                    // What there is of it holds no group and only takes room.
                    return match self.remove_journal(&path) {
                        Ok(()) => Ok(false),
                        Err(source) => Err(FlushError::Journal { path, source }),
                    };
                }
                Err(source) => return Err(FlushError::Journal { path, source }),
            }
        }
        Ok(self.journal.as_ref().is_some_and(|journal| bytes <= journal.group_bytes_max()))
    }

    /// Writes a group of `small` files' bytes and `voids`, and remembers what the journal now says.
    /// No segment is both: voids are for files that were just synced.
    fn write_group(
        &mut self,
        mut group: GroupBuilder,
        small: Vec<Job>,
        voids: BTreeSet<SegmentKey>,
        now_ms: i64,
    ) -> Result<(), FlushError> {
        voids.iter().for_each(|key| group.put_void(key));
        let (bytes, sequence, result) = self.append(group, now_ms)?;
        match result {
            Ok(()) => {
                self.on_disk.retain(|key, _| !voids.contains(key));
                small.iter().for_each(|job| self.note_on_disk(job, 0, sequence));
                self.note_pending(small, sequence, now_ms);
                self.forget_overtaken();
                self.second_bytes = self.second_bytes.saturating_add(bytes);
                self.stats.journalled_groups += 1;
                self.stats.journalled_bytes += bytes;
                Ok(())
            }
            Err(AppendError::Write(error))
                if error.kind() == io::ErrorKind::StorageFull && voids.is_empty() =>
            {
                self.journal_paused_until_ms = now_ms.saturating_add(JOURNAL_PAUSE_MS);
                self.sync_instead(small, sequence, now_ms)
            }
            Err(AppendError::Write(source)) => {
                Err(FlushError::Journal { path: self.journal_path(), source })
            }
            Err(AppendError::Sync(source)) => Err(sync_error(&self.journal_path(), source)),
        }
    }

    /// Group `sequence` found no room on the disk: syncs its files. What was to be replaced in the
    /// journal by the group has to be voided then, and without room for that there is no going on.
    fn sync_instead(
        &mut self,
        small: Vec<Job>,
        sequence: u64,
        now_ms: i64,
    ) -> Result<(), FlushError> {
        let voids: BTreeSet<_> = self.cut_segments(&small).collect();
        for job in &small {
            // The group may be on the disk all the same, so its items have to be reckoned with.
            let end = job.key.as_ref().and_then(|key| self.on_disk.get(key)).map_or(0, |o| o.end);
            self.note_on_disk(job, end, sequence);
        }
        self.sync_jobs(&small, &[])?;
        match &mut self.journal {
            Some(journal) if !voids.is_empty() => {
                let group = journal.builder();
                self.write_group(group, Vec::new(), voids, now_ms)
            }
            _ => Ok(()),
        }
    }

    /// Makes room for a group and appends it: its size and sequence, and how that went.
    fn append(
        &mut self,
        group: GroupBuilder,
        now_ms: i64,
    ) -> Result<(u64, u64, Result<(), AppendError>), FlushError> {
        let bytes = group.len();
        if !self.journal()?.fits(bytes) {
            self.settle_all()?;
            self.mark(now_ms)?;
        }
        let sequence = self.journal()?.next_sequence();
        let needed_from = self.oldest_needed().unwrap_or(sequence);
        Ok((bytes, sequence, self.journal()?.append(group, needed_from)))
    }

    fn journal(&mut self) -> Result<&mut super::Journal, FlushError> {
        self.journal.as_mut().ok_or(FlushError::Failed)
    }

    fn journal_path(&self) -> PathBuf {
        self.dir.join(JOURNAL_FILE)
    }

    /// The first group that replay needs.
    fn oldest_needed(&self) -> Option<u64> {
        let pending = self.by_age.first().map(|(sequence, _)| *sequence);
        let settling = self.settling.iter().map(|(_, file)| file.first_sequence).min();
        pending.into_iter().chain(settling).min()
    }

    /// Remembers that a group speaks of a segment up to the job's end, or to `end_min`.
    fn note_on_disk(&mut self, job: &Job, end_min: u64, sequence: u64) {
        if let Some(key) = &job.key {
            let end = end_min.max(job.from + job.len());
            let on_disk = OnDisk { end, last_sequence: sequence, last_batch: job.last_batch };
            self.on_disk.insert(key.clone(), on_disk);
        }
    }

    fn note_pending(&mut self, small: Vec<Job>, sequence: u64, now_ms: i64) {
        for job in small {
            let Some(key) = job.key else { continue };
            let (file, path) = (job.file, job.path);
            match self.pending.get_mut(&key) {
                // A deleted and recreated segment has another handle under the old name.
                Some(pending) => pending.file = file,
                None => {
                    self.by_age.insert((sequence, key.clone()));
                    let first_sequence = sequence;
                    let pending = Pending { file, path, first_sequence, since_ms: now_ms };
                    self.pending.insert(key, pending);
                }
            }
        }
    }

    /// After a group became durable: what it made unnecessary need not be remembered.
    fn forget_overtaken(&mut self) {
        let Some(journal) = &self.journal else { return };
        let needed_from = self.oldest_needed().unwrap_or(journal.next_sequence() - 1);
        self.on_disk.retain(|_, on_disk| on_disk.last_sequence >= needed_from);
    }

    /// Syncs the files and directories of a plan, side by side: nobody hears of any of them before
    /// all are durable.
    fn sync_plan(&mut self, plan: &Plan) -> Result<(), FlushError> {
        let dirs = plan.dirs.iter().map(|dir| Arc::new(DirNames::new(&self.disk, dir)));
        let dirs: Vec<Arc<DirNames>> = dirs.collect();
        self.sync_jobs(&plan.direct, &dirs)?;
        match dirs.iter().find(|dir| dir.is_missing() && !plan.is_gone(&dir.path)) {
            Some(dir) => Err(sync_error(&dir.path, io::ErrorKind::NotFound.into())),
            None => Ok(()),
        }
    }

    /// Syncs the files of jobs, and directories; what was pending of the files is settled thereby.
    fn sync_jobs(&mut self, jobs: &[Job], dirs: &[Arc<DirNames>]) -> Result<(), FlushError> {
        let files = jobs.iter().map(|job| Target::File(job.file.clone()));
        let targets: Vec<Target> = files.chain(dirs.iter().cloned().map(Target::Dir)).collect();
        let path = |at: usize| match jobs.get(at) {
            Some(job) => job.path.as_path(),
            None => dirs.get(at - jobs.len()).map_or(Path::new(""), |dir| &dir.path),
        };
        self.syncer.sync(&targets).map_err(|(at, source)| sync_error(path(at), source))?;
        // The kernel tells one sync of a file that bytes could not be written, and not the next:
        // what this one did not see, the one in the background may have seen.
        let mut keys = jobs.iter().filter_map(|job| job.key.as_ref());
        if keys.any(|key| self.settling_file(key).is_some()) {
            self.await_settling()?;
        }
        self.stats.direct_syncs += jobs.len() as u64;
        for key in jobs.iter().filter_map(|job| job.key.as_ref()) {
            if let Some(pending) = self.pending.remove(key) {
                self.by_age.remove(&(pending.first_sequence, key.clone()));
            }
        }
        Ok(())
    }

    /// Begins to sync up to `files` of the files that were journalled, those first that were first.
    fn begin_settling(&mut self, files: usize) {
        let mut targets = Vec::new();
        while targets.len() < files
            && let Some((_, key)) = self.by_age.pop_first()
        {
            let Some(pending) = self.pending.remove(&key) else { continue };
            targets.push(Target::File(pending.file.clone()));
            self.settling.push((key, pending));
        }
        self.syncer.begin(targets);
    }

    /// Takes note of background syncs that have ended.
    fn look_at_settling(&mut self) -> Result<(), FlushError> {
        if !self.settling.is_empty()
            && let Some(synced) = self.syncer.poll()
        {
            return self.end_settling(synced);
        }
        Ok(())
    }

    fn end_settling(&mut self, synced: Synced) -> Result<(), FlushError> {
        let files = std::mem::take(&mut self.settling);
        let path = |at: usize| files.get(at).map_or(Path::new(""), |(_, file)| &file.path);
        synced.map_err(|(at, source)| sync_error(path(at), source))?;
        self.stats.settled_files += files.len() as u64;
        Ok(())
    }

    fn settling_file(&self, key: &SegmentKey) -> Option<&Pending> {
        self.settling.iter().find(|(settling, _)| settling == key).map(|(_, file)| file)
    }

    /// Waits for the background syncs, if any are under way.
    fn await_settling(&mut self) -> Result<(), FlushError> {
        if self.settling.is_empty() {
            return Ok(());
        }
        let synced = self.syncer.wait();
        self.end_settling(synced)
    }

    /// Syncs all files that were journalled.
    pub(super) fn settle_all(&mut self) -> Result<(), FlushError> {
        self.await_settling()?;
        if !self.pending.is_empty() {
            self.begin_settling(usize::MAX);
        }
        self.await_settling()
    }

    /// What there is to do beside the groups; when to look again.
    pub(super) fn work(&mut self, now_ms: i64) -> Result<Option<i64>, FlushError> {
        self.look_at_settling()?;
        let soon_ms = now_ms.saturating_add(SETTLING_LOOK_MS);
        if !self.settling.is_empty() {
            return Ok(Some(soon_ms));
        }
        let due = |since_ms: i64| {
            let waited_ms = now_ms.saturating_sub(since_ms);
            // A clock that went back counts as due.
            !(0..self.config.settle_after_ms).contains(&waited_ms)
        };
        let of_files = self.config.settle_bytes_per_file.saturating_mul(self.pending.len() as u64);
        let bytes_max = self.config.settle_bytes.max(of_files);
        let crowded = self.journal.as_ref().is_some_and(|journal| journal.is_crowded(bytes_max));
        let oldest = self.by_age.first().and_then(|(_, key)| self.pending.get(key));
        if let Some(oldest) = oldest {
            let due_ms = oldest.since_ms.saturating_add(self.config.settle_after_ms);
            if !crowded && !due(oldest.since_ms) {
                return Ok(self.fill_ahead(now_ms)?.or(Some(due_ms)));
            }
            self.begin_settling(self.config.settle_files.max(1));
            return Ok(Some(soon_ms));
        }
        if self.on_disk.is_empty() {
            return self.fill_ahead(now_ms);
        }
        if now_ms >= self.journal_paused_until_ms {
            self.mark(now_ms)?;
        }
        Ok(Some(now_ms.max(self.journal_paused_until_ms)))
    }

    /// Says in the journal that everything was settled: replay need not look at what is before. On
    /// a full disk that may have to wait.
    fn mark(&mut self, now_ms: i64) -> Result<(), FlushError> {
        assert!(self.unsettled() == 0, "a mark would lose what is not settled");
        match self.journal()?.mark() {
            Ok(()) => self.on_disk.clear(),
            Err(AppendError::Write(error)) if error.kind() == io::ErrorKind::StorageFull => {
                self.journal_paused_until_ms = now_ms.saturating_add(JOURNAL_PAUSE_MS);
            }
            Err(AppendError::Write(source)) => {
                return Err(FlushError::Journal { path: self.journal_path(), source });
            }
            Err(AppendError::Sync(source)) => {
                return Err(sync_error(&self.journal_path(), source));
            }
        }
        Ok(())
    }

    /// Grows the written part of the journal by one step, if it is nearly used up.
    fn fill_ahead(&mut self, now_ms: i64) -> Result<Option<i64>, FlushError> {
        let Some(journal) = &mut self.journal else { return Ok(None) };
        match journal.fill_ahead(self.config.journal_step_bytes) {
            Ok(more) => Ok(more.then_some(now_ms)),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(None),
            Err(source) => Err(FlushError::Journal { path: self.journal_path(), source }),
        }
    }
}

/// Reads a job's bytes into the group; `false` when that is not possible: the batch before them is
/// not found, or the file was cut.
fn put_job(group: &mut GroupBuilder, job: &mut Job, before: Option<u64>) -> bool {
    let (Some(key), Some(before), Ok(len)) = (&job.key, before, u32::try_from(job.len())) else {
        return false;
    };
    let Ok(header) = batches::header_bytes(&*job.file, before) else { return false };
    let batch_len = u32::try_from(job.from.saturating_sub(before)).unwrap_or(u32::MAX);
    let context = Context::of(batch_len, &header);
    let data = group.put_bytes(key, job.topic_id, job.from, context, len);
    if !job.file.read_at(data, job.from).is_ok_and(|read| read == len as usize) {
        return false;
    }
    let last = batches::batches(data).last();
    let is_end = |(start, header): &(usize, BatchHeader)| start + header.total_size() == data.len();
    job.last_batch = last.filter(is_end).map(|(start, _)| job.from + start as u64);
    true
}

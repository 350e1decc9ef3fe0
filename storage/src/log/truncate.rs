//! Taking away the end of a log (a follower that diverged, KIP-101), or all of it.
//!
//! Rare, so everything is made durable before it returns: a segment or a snapshot that came back
//! after a crash could pass for one written later.

use std::path::PathBuf;
use std::sync::Arc;

use super::load::Trust;
use super::names::{Kind, delete_dir_name};
use super::recover::Recovered;
use super::segment::{Reads, Segment, Spot, State};
use super::view::Shared;
use super::{Active, FirstTimestamp, Log};
use crate::disk::{OpenMode, parent, write_atomic};
use crate::epochs::EPOCH_FILE;
use crate::errors::StorageError;

impl Log {
    /// Cuts the log to end at `offset`, or before the batch that holds it. Whether anything was
    /// cut. The recovery point must have been lowered first, durably.
    ///
    /// # Errors
    /// The disk's. The log must then be opened again.
    pub fn truncate_to(&mut self, offset: i64, now_ms: i64) -> Result<bool, StorageError> {
        if offset >= self.log_end_offset {
            self.epochs.truncate_from_end(offset);
            return Ok(false);
        }
        let segments = self.segments();
        if segments.first().is_none_or(|first| offset < first.base_offset) {
            self.truncate_fully_and_start_at(offset, now_ms)?;
            return Ok(true);
        }
        let (kept, gone) = segments.split_at(Shared::index_of(&segments, offset) + 1);
        let Some(last) = kept.last() else { return Ok(false) };
        let spot = last.locate(Reads::patient(&*self.disk), offset)?;
        let cut_at = match spot {
            Spot::At(batch) => batch.base_offset.min(offset),
            Spot::End(_) => offset,
        };
        self.shared.cuts.begin();
        // Readers first: nothing that is about to go is found from here on.
        self.publish_both(cut_at);
        self.shared.segments.store(Arc::new(kept.to_vec()));
        self.drop_waiting_files();
        for segment in gone.iter().rev() {
            self.remove_segment_files(segment.base_offset)?;
        }
        self.remove_snapshots_above(cut_at)?;
        self.reactivate(last.clone(), spot.position(), cut_at, now_ms)?;
        self.disk.sync_dir(&self.dir).map_err(Log::failed("sync", &self.dir))?;
        self.epochs.truncate_from_end(self.log_end_offset);
        self.save_epochs()?;
        self.producers =
            self.producers_at(self.log_end_offset, now_ms, &mut Recovered::default())?;
        Ok(true)
    }

    /// Publishes a lower log end, and a log start that is not above it.
    fn publish_both(&mut self, end_offset: i64) {
        self.publish_start(self.log_start_offset.min(end_offset));
        self.publish_end(end_offset);
    }

    /// Makes a segment the active one, with its first `size` bytes, which end before `cut_at`. The
    /// log ends where they do: after a gap that compaction made, recovery would find no other end.
    fn reactivate(
        &mut self,
        segment: Arc<Segment>,
        size: u64,
        cut_at: i64,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let path = segment.path(Kind::Log);
        let file = self.disk.open(&path, OpenMode::Write).map_err(Log::failed("open", &path))?;
        let is_active = Arc::ptr_eq(&segment, &self.active.segment);
        let told = self.flush.told_of(&path, is_active);
        let cut = || {
            file.set_len(size)?;
            file.sync_data()
        };
        cut().map_err(Log::failed("cut", &path))?;
        segment.set_log_file(file.clone());
        let aborted = self.aborted_below(&segment, cut_at)?;
        let aborts = aborted.len();
        self.active = Active {
            segment: segment.clone(),
            file,
            size,
            allocated: size,
            created_ms: now_ms,
            first_timestamp: FirstTimestamp::of_size(size),
            torn: false,
        };
        let trust = {
            let state = segment.state.read();
            let (offsets, times) = (state.offsets.in_file(), state.times.in_file());
            Trust::Below { offset: cut_at, offsets, times }
        };
        let Some(end_offset) = self.load_active(size, trust, &mut Recovered::default())? else {
            let what = "batches before the cut cannot be read";
            return Err(StorageError::corrupt(&path, 0, what));
        };
        segment.state.write().aborted = Some(Arc::new(aborted));
        self.publish_both(end_offset);
        self.flush.cut(end_offset, (&path, size), told, aborts);
        segment.forget_index_files();
        self.write_indexes(&segment, true)?;
        self.rewrite_aborts(&segment)
    }

    fn save_epochs(&mut self) -> Result<(), StorageError> {
        let path = self.dir.join(EPOCH_FILE);
        let text = self.epochs.encode();
        write_atomic(&*self.disk, &path, text.as_bytes()).map_err(Log::failed("write", &path))?;
        self.epochs.take_changed();
        Ok(())
    }

    /// Throws everything away; the next record gets `offset`. The recovery point must have been
    /// lowered to 0 first, durably.
    ///
    /// # Errors
    /// The disk's. The log must then be opened again.
    pub fn truncate_fully_and_start_at(
        &mut self,
        offset: i64,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let segments = self.segments();
        self.shared.cuts.begin();
        self.drop_waiting_files();
        for segment in segments.iter() {
            // Readers that still hold the list find the end of the file at once.
            *segment.state.write() = State::empty(segment.base_offset);
            self.remove_segment_files(segment.base_offset)?;
        }
        self.remove_snapshots_above(i64::MIN)?;
        self.disk.sync_dir(&self.dir).map_err(Log::failed("sync", &self.dir))?;
        self.epochs.clear();
        self.save_epochs()?;
        self.producers.clear();
        self.active = self.start_segment(offset, now_ms)?;
        self.disk.sync_dir(&self.dir).map_err(Log::failed("sync", &self.dir))?;
        self.shared.segments.store(Arc::new(vec![self.active.segment.clone()]));
        self.publish_start(offset.min(self.log_start_offset));
        self.publish_end(offset);
        self.publish_start(offset);
        self.flush.restart(offset);
        Ok(())
    }

    /// Renames the directory for deletion to `<topic>-<partition>.<unique_hex>-delete` and gives
    /// its new path; it is removed by whoever asked, later. `unique_hex` is a random id of 32
    /// digits. Readers that hold files open go on reading them.
    ///
    /// # Errors
    /// The disk's.
    pub fn mark_deleted(&mut self, unique_hex: &str) -> Result<PathBuf, StorageError> {
        self.shared.cuts.begin();
        let to = parent(&self.dir).join(delete_dir_name(&self.tp, unique_hex));
        self.disk.rename(&self.dir, &to).map_err(Log::failed("rename", &self.dir))?;
        Ok(to)
    }
}

//! Producer snapshots on the disk: loading, making, and keeping those that will be needed.
//!
//! A snapshot is needed at the begin of each segment, so that the producers of segments that
//! retention takes are not forgotten, and near the log end, so that recovery reads little. Their
//! bytes are `producers/snapshot.rs`; how they get durable is `flush.rs`.

use super::Log;
use super::load::read_marker;
use super::names::{Kind, file_path};
use super::recover::Recovered;
use super::scan::{CHECK, HeaderScan, ScanError};
use super::segment::{Reads, Segment};
use super::view::Shared;
use crate::disk::{read_to_vec, write_atomic};
use crate::errors::StorageError;
use crate::producers::{Producers, SNAPSHOT_MAX};

/// So many snapshots are kept besides those at the begin of a segment.
const SNAPSHOTS_KEPT: usize = 2;

impl Log {
    /// The newest sound snapshot at or below `offset`; damaged ones are removed on the way.
    pub(super) fn load_snapshot(
        &mut self,
        offset: i64,
        now_ms: i64,
    ) -> Result<Option<(i64, Producers)>, StorageError> {
        while let Some(newest) = self.snapshots.range(..=offset).next_back().copied() {
            let path = file_path(&self.dir, newest, Kind::Snapshot);
            let bytes = read_to_vec(&*self.disk, &path, SNAPSHOT_MAX)
                .map_err(Log::failed("read", &path))?;
            match Producers::decode(&bytes, now_ms, self.config.producer_id_expiration_ms) {
                Ok(producers) => return Ok(Some((newest, producers))),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "producer snapshot removed");
                    self.disk.remove_file(&path).map_err(Log::failed("remove", &path))?;
                    self.snapshots.remove(&newest);
                }
            }
        }
        Ok(None)
    }

    /// The producers as they were when the log ended at `offset`: the newest snapshot and the
    /// batches from there on, or all that there are (also below the log start: a retry is a retry).
    pub(super) fn producers_at(
        &mut self,
        offset: i64,
        now_ms: i64,
        report: &mut Recovered,
    ) -> Result<Producers, StorageError> {
        let segments = self.segments();
        let first = segments.first().map_or(0, |first| first.base_offset);
        let snapshot = self.load_snapshot(offset, now_ms)?;
        let (from, mut producers) = snapshot.unwrap_or((first, Producers::default()));
        for segment in segments.iter().skip(Shared::index_of(&segments, from)) {
            if segment.base_offset >= offset || from >= offset {
                break;
            }
            self.replay(segment, from..offset, &mut producers, report)?;
        }
        Ok(producers)
    }

    /// Notes the batches of a segment that begin within the offsets.
    fn replay(
        &self,
        segment: &Segment,
        offsets: std::ops::Range<i64>,
        producers: &mut Producers,
        report: &mut Recovered,
    ) -> Result<(), StorageError> {
        let file = segment.log_file(&*self.disk)?;
        let position = segment.locate(Reads::patient(&*self.disk), offsets.start)?.position();
        let mut scan = HeaderScan::new(&*file, position, segment.size(), CHECK);
        let mut walk = || -> Result<(), ScanError> {
            while let Some(batch) = scan.next()? {
                if batch.header.base_offset >= offsets.end {
                    break;
                }
                report.count(&batch);
                producers.note(&batch.header, read_marker(&*file, &batch)?);
            }
            Ok(())
        };
        walk().map_err(|error| segment.scan_error(error))
    }

    /// Writes the producers as of the log end.
    pub(super) fn write_snapshot(&mut self) -> Result<(), StorageError> {
        self.write_snapshot_bytes(self.log_end_offset, &self.producers.encode())
    }

    /// Sees to it that the log can lose what lies below `offset`, where a segment begins, and still
    /// know the producers of that: there is a durable snapshot of then. Rarely has one to be made;
    /// a roll does it, and its flush makes it durable before the high watermark lets segments go.
    pub(super) fn keep_producers_below(
        &mut self,
        offset: i64,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        if self.producers.is_empty() || self.snapshots.contains(&offset) {
            return Ok(());
        }
        let producers = match offset == self.log_end_offset {
            true => self.producers.clone(),
            false => self.producers_at(offset, now_ms, &mut Recovered::default())?,
        };
        let path = file_path(&self.dir, offset, Kind::Snapshot);
        write_atomic(&*self.disk, &path, &producers.encode())
            .map_err(Log::failed("write", &path))?;
        self.forget_waiting_snapshot(offset);
        self.snapshots.insert(offset);
        Ok(())
    }

    /// Keeps the snapshots that begin a segment, and the newest few.
    pub(super) fn prune_snapshots(&mut self) {
        let segments = self.segments();
        let begins =
            |offset: i64| segments.binary_search_by_key(&offset, |s| s.base_offset).is_ok();
        let old = self.snapshots.iter().rev().skip(SNAPSHOTS_KEPT).copied();
        let gone: Vec<i64> = old.filter(|offset| !begins(*offset)).collect();
        for offset in gone {
            self.snapshots.remove(&offset);
            let path = file_path(&self.dir, offset, Kind::Snapshot);
            if let Err(error) = self.disk.remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "old producer snapshot stays");
            }
        }
    }

    /// Removes snapshots of a future that was cut off; whether there were any. Durable only after a
    /// sync of the directory.
    pub(super) fn remove_snapshots_above(&mut self, offset: i64) -> Result<bool, StorageError> {
        let above = self.snapshots.split_off(&offset.saturating_add(1));
        for offset in &above {
            let path = file_path(&self.dir, *offset, Kind::Snapshot);
            self.disk.remove_file(&path).map_err(Log::failed("remove", &path))?;
        }
        Ok(!above.is_empty())
    }
}

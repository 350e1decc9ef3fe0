//! The log of one partition: one writer, any number of readers, Kafka's files.
//!
//! `Log` is the writer's side and is driven under its owner's lock; [`LogView`] is the readers' and
//! takes no lock of the writer. What must hold at any time:
//!
//! ```text
//! log start <= log end      flushed end <= log end      the last segment is the active one
//! bytes of a segment below its published size are whole batches, and never change
//! ```
//!
//! Who does what: `append` checks, assigns and writes; `roll` starts segments; `flush` knows what
//! is not yet durable; `view`, `times` read; `retain`, `truncate` take away; `recover` opens.
//! Waiting for a flush, the high watermark and replication are the broker's.

mod append;
mod config;
mod flush;
mod found;
mod index;
mod load;
mod names;
mod open;
mod recover;
mod retain;
mod roll;
mod scan;
mod segment;
mod snapshots;
mod time_index;
mod times;
mod truncate;
mod txn_index;
mod view;

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use protocol_compat::ids::TopicPartition;
use uuid::Uuid;

pub use append::Appended;
pub use config::LogConfig;
pub use names::{METADATA_FILE, delete_dir_name, stray_dir_name};
pub use open::topic_id_in;
pub use recover::{Cut, LogStart, Recovered};
pub use retain::Retained;
pub use times::TimedOffset;
pub use txn_index::AbortedTxn;
pub use view::{LogView, SegmentInfo, Slice};

use crate::disk::{Disk, File};
use crate::epochs::EpochCache;
use crate::errors::StorageError;
use crate::producers::Producers;
use flush::FlushState;
use segment::Segment;
use view::Shared;

/// The writer's side of a partition's log.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    dir: Arc<Path>,
    tp: TopicPartition,
    topic_id: Option<Uuid>,
    config: LogConfig,
    shared: Arc<Shared>,
    active: Active,
    log_start_offset: i64,
    log_end_offset: i64,
    producers: Producers,
    /// Offsets of the producer snapshots that are durable.
    snapshots: BTreeSet<i64>,
    epochs: EpochCache,
    flush: FlushState,
    /// Renamed files, oldest first.
    deleted: VecDeque<Deleted>,
}

/// What the writer alone knows of the active segment.
#[derive(Debug)]
struct Active {
    segment: Arc<Segment>,
    file: Arc<dyn File>,
    /// Bytes of whole batches.
    size: u64,
    /// Room was reserved up to here.
    allocated: u64,
    created_ms: i64,
    first_timestamp: FirstTimestamp,
    /// A failed write could not be cut off again: bytes past `size` are worthless.
    torn: bool,
}

/// The max timestamp of a segment's first batch, from which its age counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstTimestamp {
    /// The segment has batches and nobody has looked yet.
    Unread,
    NoBatch,
    Known(i64),
}

/// Files waiting for their end.
#[derive(Debug)]
struct Deleted {
    at_ms: i64,
    files: Vec<PathBuf>,
}

impl Log {
    /// Readers' access. It stays good while the log is open and sees what the writer does.
    pub fn view(&self) -> LogView {
        LogView { shared: self.shared.clone(), from_memory: false }
    }

    pub fn topic_partition(&self) -> &TopicPartition {
        &self.tp
    }

    /// From `partition.metadata`; `None` when that is absent or unreadable.
    pub fn topic_id(&self) -> Option<Uuid> {
        self.topic_id
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// Takes effect with the next append, roll or retention.
    pub fn set_config(&mut self, config: LogConfig) {
        self.config = config;
    }

    pub fn log_start_offset(&self) -> i64 {
        self.log_start_offset
    }

    /// The offset of the next record.
    pub fn log_end_offset(&self) -> i64 {
        self.log_end_offset
    }

    /// Everything below is durable.
    pub fn flushed_end(&self) -> i64 {
        self.flush.flushed_end()
    }

    /// Bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        self.view().size_bytes()
    }

    pub fn leader_epochs(&self) -> &EpochCache {
        &self.epochs
    }

    pub fn producers(&self) -> &Producers {
        &self.producers
    }

    /// Readers of committed records see what lies below.
    pub fn last_stable_offset(&mut self, high_watermark: i64) -> i64 {
        self.producers.last_stable_offset(high_watermark)
    }

    /// A leader was elected: its epoch begins at the log end.
    pub fn assign_epoch(&mut self, leader_epoch: i32) {
        self.epochs.assign(leader_epoch, self.log_end_offset);
    }

    /// Forgets producers that were silent for too long.
    pub fn expire_producers(&mut self, now_ms: i64) {
        self.producers.expire(now_ms, self.config.producer_id_expiration_ms);
    }

    fn publish_start(&mut self, offset: i64) {
        self.log_start_offset = offset;
        self.shared.log_start_offset.store(offset, Ordering::Release);
    }

    fn publish_end(&mut self, offset: i64) {
        assert!(self.log_start_offset <= offset, "the log start is never above the log end");
        self.log_end_offset = offset;
        self.shared.log_end_offset.store(offset, Ordering::Release);
    }

    fn segments(&self) -> Arc<Vec<Arc<Segment>>> {
        self.shared.segments.load_full()
    }

    fn failed<'a>(
        what: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(std::io::Error) -> StorageError + 'a {
        move |error| StorageError::io(what, path, error)
    }
}

#[cfg(test)]
mod tests;

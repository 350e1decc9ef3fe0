//! What a log hands to the flusher: the bytes it appended and the names it made since the last
//! time.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use crate::disk::File;

/// Everything a log appended and has not handed out before.
///
/// A flusher makes it durable outside every lock; then, under the partition's lock again,
/// `if dirty.is_current() { log.flushed(dirty.end_offset) }`.
#[derive(Clone, Debug)]
pub struct Dirty {
    /// Nil where the partition's topic has none.
    pub topic_id: Uuid,
    /// In order of base offset; the last one is the active segment.
    pub files: Vec<DirtyFile>,
    /// Directories in which a file or a directory is new.
    pub dirs: Vec<PathBuf>,
    /// The log end these bytes reach.
    pub end_offset: i64,
    /// Counts the log's cuts.
    pub cuts: Cuts,
    /// [`Cuts::count`] when this was taken.
    pub cuts_taken: u64,
}

impl Dirty {
    /// Whether the log was not cut since. If it was, the bytes may be others now and `end_offset`
    /// says nothing: what replaced them is in a later `Dirty`.
    pub fn is_current(&self) -> bool {
        self.cuts.count() == self.cuts_taken
    }
}

/// Whole batches appended to one segment.
#[derive(Clone, Debug)]
pub struct DirtyFile {
    pub file: Arc<dyn File>,
    /// `<log directory>/<topic>-<partition>/<20 digits>.log`
    pub path: PathBuf,
    /// Position of the first new byte: where the last `Dirty` ended, or, when the log was cut below
    /// that, where it was cut.
    pub from: u64,
    /// Position behind the last new byte. Equal to `from` right after a cut.
    pub to: u64,
}

/// Counts how often a log was cut (truncated, restarted elsewhere, deleted). The log counts before
/// it touches a file, so whoever reads bytes and then finds the count unchanged has read bytes of
/// one history.
#[derive(Clone, Debug, Default)]
pub struct Cuts(Arc<AtomicU64>);

impl Cuts {
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Whether both count the same log's cuts.
    pub fn is_same(&self, other: &Cuts) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// To be called before the first file is touched.
    pub fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

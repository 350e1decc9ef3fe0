//! Group commit: makes what many logs appended durable with as few syncs as the disk allows.
//!
//! # What a log owes the flusher
//! - A cut counts in [`Cuts`] before the first file is touched, syncs the file it cut, and shows in
//!   the next [`Dirty`]: `from` is where the file was cut, even when nothing was appended since.
//! - A new segment's or partition's directory is in `Dirty::dirs`.
//! - A segment may be replaced or rewritten (compaction) only when its end offset is strictly below
//!   the log's flushed end: then nothing in the journal speaks of it any more.

mod dirty;

pub use dirty::{Cuts, Dirty, DirtyFile};

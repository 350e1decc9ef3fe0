//! The journal file as a ring of groups: where the next one goes, and what may be overwritten.
//!
//! Two rules keep replay right at every moment, whatever a crash tears:
//! - The last durable group is never overwritten: its `needed_from` says what replay looks at.
//! - Groups are overwritten oldest first, so that what voids or replaces an item outlives the item.
//!   The one exception is going back to the start of the ring early, and that waits until the last
//!   durable group says that nothing before it is needed.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::format::{BLOCK, GroupBuilder, RING_START, Stamp, Superblock, padded};
use crate::disk::{Disk, File, OpenMode, parent};

/// A longer buffer is given back after its group, so that an idle broker does not hold it.
const BUFFER_KEPT_MAX: usize = 1 << 20;

/// A group on the disk.
#[derive(Clone, Copy, Debug)]
struct Extent {
    sequence: u64,
    needed_from: u64,
    start: u64,
    end: u64,
}

/// The open journal of one incarnation.
pub(super) struct Journal {
    file: Arc<dyn File>,
    stamp: Stamp,
    /// Where the ring ends.
    size: u64,
    /// Up to here the file was written before, so that overwriting it moves no metadata.
    filled: u64,
    cursor: u64,
    next_sequence: u64,
    /// Groups that must not be overwritten, oldest first: those still needed and the last one.
    kept: VecDeque<Extent>,
    buffer: Vec<u8>,
}

impl Journal {
    /// Makes a journal that holds no group: a new file, or the old one under a new stamp, by which
    /// all that is in it counts no more. Durable on return.
    pub fn create(
        disk: &dyn Disk,
        path: &Path,
        stamp: Stamp,
        size: u64,
        first_fill: u64,
    ) -> io::Result<Journal> {
        let file = disk.open(path, OpenMode::Create)?;
        if file.len()? < RING_START {
            file.allocate(0, size)?;
            let end = RING_START.saturating_add(first_fill).min(size);
            fill(&*file, 0, end)?;
        }
        let superblock = Superblock { stamp, size }.encode();
        file.write_at(&[&superblock], 0)?;
        file.write_at(&[&superblock], BLOCK)?;
        file.sync_data()?;
        disk.sync_dir(parent(path))?;
        Ok(Journal {
            filled: file.len()?,
            file,
            stamp,
            size,
            cursor: RING_START,
            next_sequence: 1,
            kept: VecDeque::new(),
            buffer: Vec::new(),
        })
    }

    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    pub fn builder(&mut self) -> GroupBuilder {
        GroupBuilder::new(std::mem::take(&mut self.buffer))
    }

    /// The largest group that is worth journalling; a bigger one would push all others out.
    pub fn group_bytes_max(&self) -> u64 {
        (self.size - RING_START) / 4
    }

    /// Forgets groups before `needed_from`, but never the last one.
    pub fn release(&mut self, needed_from: u64) {
        while self.kept.len() > 1 && self.kept.front().is_some_and(|g| g.sequence < needed_from) {
            self.kept.pop_front();
        }
    }

    /// Whether a group of `len` bytes fits without overwriting a kept one.
    pub fn fits(&self, len: u64) -> bool {
        self.place(padded(len)).is_some()
    }

    /// Whether more than half of the ring is kept.
    pub fn is_crowded(&self) -> bool {
        self.kept.iter().map(|g| g.end - g.start).sum::<u64>() > (self.size - RING_START) / 2
    }

    fn place(&self, len: u64) -> Option<u64> {
        let ends_by = |start: u64, limit: u64| start.saturating_add(len) <= limit;
        let Some(oldest) = self.kept.front() else {
            return ends_by(RING_START, self.size).then_some(RING_START);
        };
        let last = self.kept.back().filter(|last| last.needed_from == last.sequence);
        if let Some(last) = last.filter(|_| self.kept.len() == 1)
            && ends_by(RING_START, last.start - 1)
        {
            return Some(RING_START);
        }
        if self.cursor < oldest.start {
            // Wrapped. The ends never touch, so that a full ring does not look like an empty one.
            return ends_by(self.cursor, oldest.start - 1).then_some(self.cursor);
        }
        if ends_by(self.cursor, self.size) {
            return Some(self.cursor);
        }
        ends_by(RING_START, oldest.start - 1).then_some(RING_START)
    }

    /// Writes a group and syncs it. The caller has made room ([`Journal::fits`]).
    ///
    /// # Errors
    /// `Write`: nobody knows what of the group is on the disk; it may be replayed. `Sync`: end the
    /// process.
    pub fn append(&mut self, group: GroupBuilder, needed_from: u64) -> Result<(), AppendError> {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let bytes = group.seal(self.stamp, sequence, needed_from);
        let len = bytes.len() as u64;
        let start = self.place(len).ok_or(AppendError::Write(io::ErrorKind::StorageFull.into()))?;
        let end = start + len;
        self.file.write_at(&[&bytes], start).map_err(AppendError::Write)?;
        self.file.sync_data().map_err(AppendError::Sync)?;
        if bytes.capacity() <= BUFFER_KEPT_MAX {
            self.buffer = bytes;
        }
        self.kept.push_back(Extent { sequence, needed_from, start, end });
        self.cursor = end;
        self.filled = self.filled.max(end);
        Ok(())
    }

    /// Writes zeros ahead of the cursor, one step of `step` bytes, when it comes near the end of what
    /// was ever written; `false` when there is nothing to do. Not synced: the next group's sync is.
    pub fn fill_ahead(&mut self, step: u64) -> io::Result<bool> {
        if self.filled >= self.size || self.cursor.saturating_add(step / 2) < self.filled {
            return Ok(false);
        }
        let end = self.filled.saturating_add(step).min(self.size);
        fill(&*self.file, self.filled, end)?;
        self.filled = end;
        Ok(true)
    }
}

/// What went wrong with a group.
pub(super) enum AppendError {
    Write(io::Error),
    Sync(io::Error),
}

fn fill(file: &dyn File, from: u64, to: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = from;
    while at < to {
        let len = (to - at).min(ZEROS.len() as u64);
        let (zeros, _) = ZEROS.split_at(len as usize);
        file.write_at(&[zeros], at)?;
        at += len;
    }
    Ok(())
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;

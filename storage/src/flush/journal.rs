//! The journal file: where the next group goes, and what may be overwritten.
//!
//! One rule keeps replay right whatever a crash tears: a group is overwritten only when the last
//! durable group says that replay does not need it (`needed_from`), and the last durable group
//! itself never. So what replay looks at is always whole but for the group that was being written.
//!
//! Groups go behind one another and back to the start where that is free. A mark, a group without
//! items, has two blocks of its own and so always finds room: it is what frees the others.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::format::{BLOCK, GroupBuilder, MARK_SLOTS, RING_START, Stamp, Superblock, padded};
use crate::disk::{Disk, File, OpenMode, parent};

/// A longer buffer is given back after its group, so that an idle broker does not hold it.
const BUFFER_KEPT_MAX: usize = 1 << 20;

/// A group in the ring that must not be overwritten.
#[derive(Clone, Copy, Debug)]
struct Extent {
    sequence: u64,
    start: u64,
    end: u64,
}

/// The open journal of one incarnation.
pub(super) struct Journal {
    file: Arc<dyn File>,
    stamp: Stamp,
    /// Where the ring ends at most.
    size: u64,
    /// Up to here the file was written before, so that overwriting it moves no metadata.
    filled: u64,
    cursor: u64,
    next_sequence: u64,
    /// In order of sequence.
    kept: VecDeque<Extent>,
    marks: usize,
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
            let end = RING_START.saturating_add(first_fill).min(size);
            file.allocate(0, end)?;
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
            marks: 0,
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

    /// Whether a group of `len` bytes finds room.
    pub fn fits(&self, len: u64) -> bool {
        self.place(padded(len)).is_some()
    }

    /// Whether groups of more than `bytes` are kept, or more than half of the ring is.
    pub fn is_crowded(&self, bytes: u64) -> bool {
        let kept: u64 = self.kept.iter().map(|group| group.end - group.start).sum();
        kept > bytes.min((self.size - RING_START) / 2)
    }

    /// Where a group goes: behind the last one, but back to the start before the file grows.
    fn place(&self, len: u64) -> Option<u64> {
        let is_free = |start: u64, limit: u64| {
            let end = start.saturating_add(len);
            end <= limit && self.kept.iter().all(|kept| end <= kept.start || kept.end <= start)
        };
        let places = [
            (self.cursor, self.filled.min(self.size)),
            (RING_START, self.size),
            (self.cursor, self.size),
        ];
        places.into_iter().find(|(start, limit)| is_free(*start, *limit)).map(|(start, _)| start)
    }

    /// Writes a group and syncs it. Once durable, it lets what is before `needed_from` be
    /// overwritten.
    ///
    /// # Errors
    /// `Write`: nobody knows what of the group is on the disk; it may be replayed. `Sync`: end the
    /// process.
    pub fn append(&mut self, group: GroupBuilder, needed_from: u64) -> Result<(), AppendError> {
        let full = || AppendError::Write(io::ErrorKind::StorageFull.into());
        let start = self.place(padded(group.len())).ok_or_else(full)?;
        let end = start + padded(group.len());
        let sequence = self.next_sequence;
        self.write(group, needed_from, start)?;
        self.kept.push_back(Extent { sequence, start, end });
        self.cursor = end;
        self.filled = self.filled.max(end);
        Ok(())
    }

    /// Writes a group without items that says that nothing before it is needed.
    pub fn mark(&mut self) -> Result<(), AppendError> {
        // In turn: the last one may be the last durable group.
        let slot = MARK_SLOTS.get(self.marks % MARK_SLOTS.len()).copied().unwrap_or_default();
        self.marks += 1;
        let group = self.builder();
        self.write(group, self.next_sequence, slot)?;
        self.cursor = RING_START;
        Ok(())
    }

    fn write(
        &mut self,
        group: GroupBuilder,
        needed_from: u64,
        start: u64,
    ) -> Result<(), AppendError> {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let bytes = group.seal(self.stamp, sequence, needed_from);
        self.file.write_at(&[&bytes], start).map_err(AppendError::Write)?;
        self.file.sync_data().map_err(AppendError::Sync)?;
        if bytes.capacity() <= BUFFER_KEPT_MAX {
            self.buffer = bytes;
        }
        self.kept.retain(|group| group.sequence >= needed_from);
        Ok(())
    }

    /// Writes zeros ahead of the cursor, one step of `step` bytes, when it comes near the end of
    /// what was ever written; `false` when there is nothing to do. Not synced: the next group's
    /// sync is.
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

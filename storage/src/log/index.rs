//! Index entries: how they lie in a file, how they are looked up there, and the offset index
//! (`.index`, Kafka `OffsetIndex`).
//!
//! [`Entries`] is one index of one segment: a prefix that is only in the file, and what was added
//! since, in memory. Which batch gets an entry is `segment.rs`; when the file is written is
//! `flush.rs` and `roll.rs`.

use std::io;

use crate::disk::File;

/// Read in one go once a search has come this near.
const BLOCK_ENTRIES: usize = 512;

/// An entry of fixed size.
pub(crate) trait Entry: Copy + PartialEq {
    const SIZE: usize;
    fn put(&self, out: &mut Vec<u8>);
    /// `bytes` are exactly `SIZE` long.
    fn get(bytes: &[u8]) -> Self;
}

/// An entry of the offset index: the last offset of a batch, less the base offset of the segment,
/// and where the batch begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OffsetEntry {
    pub(crate) relative: u32,
    pub(crate) position: u32,
}

impl Entry for OffsetEntry {
    const SIZE: usize = 8;

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.relative.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
    }

    fn get(bytes: &[u8]) -> OffsetEntry {
        OffsetEntry { relative: u32_at(bytes, 0), position: u32_at(bytes, 4) }
    }
}

/// Four bytes of an entry; zero where there are none.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.first_chunk());
    u32::from_be_bytes(four.copied().unwrap_or_default())
}

/// One index: `on_disk` entries in the file that are not in memory, then those in memory, of which
/// `written` are in the file as well.
#[derive(Clone, Debug)]
pub(crate) struct Entries<E> {
    on_disk: usize,
    memory: Vec<E>,
    written: usize,
    last: Option<E>,
}

impl<E: Entry> Entries<E> {
    pub(crate) fn empty() -> Entries<E> {
        Entries { on_disk: 0, memory: Vec::new(), written: 0, last: None }
    }

    /// An index whose file holds it whole and has not been looked at.
    pub(crate) fn unread() -> Entries<E> {
        Entries { on_disk: usize::MAX, ..Entries::empty() }
    }

    /// An index that goes on after `on_disk` entries of its file, the last of which is `last`.
    pub(crate) fn after(on_disk: usize, last: Option<E>) -> Entries<E> {
        Entries { on_disk, last, ..Entries::empty() }
    }

    pub(crate) fn len(&self) -> usize {
        self.on_disk.saturating_add(self.memory.len())
    }

    pub(crate) fn on_disk(&self) -> usize {
        self.on_disk
    }

    /// Entries that are in the file.
    pub(crate) fn in_file(&self) -> usize {
        self.on_disk.saturating_add(self.written)
    }

    pub(crate) fn last(&self) -> Option<E> {
        self.last
    }

    pub(crate) fn push(&mut self, entry: E) {
        self.memory.push(entry);
        self.last = Some(entry);
    }

    /// The last entry in memory of those for which `holds`, which must be a prefix of all;
    /// `None` when there is none in memory, and the file must be asked.
    pub(crate) fn floor_in_memory(&self, holds: impl Fn(&E) -> bool) -> Option<E> {
        let below = self.memory.partition_point(holds);
        self.memory.get(below.checked_sub(1)?).copied()
    }

    /// What the file lacks: bytes, and where they belong.
    pub(crate) fn unwritten(&self) -> Option<(Vec<u8>, u64)> {
        let new = self.memory.get(self.written..).filter(|new| !new.is_empty())?;
        let mut bytes = Vec::with_capacity(new.len() * E::SIZE);
        new.iter().for_each(|entry| entry.put(&mut bytes));
        Some((bytes, ((self.on_disk + self.written) * E::SIZE) as u64))
    }

    /// The file now holds what [`Entries::unwritten`] gave.
    pub(crate) fn mark_written(&mut self) {
        self.written = self.memory.len();
    }

    /// Forgets what is in memory; the file holds it.
    pub(crate) fn drop_memory(&mut self) {
        assert_eq!(self.written, self.memory.len(), "index entries are written before they go");
        self.on_disk += self.memory.len();
        self.memory = Vec::new();
        self.written = 0;
    }
}

/// Reads exactly `buf.len()` bytes, or says that the file ends before.
pub(crate) fn read_exact(file: &dyn File, buf: &mut [u8], position: u64) -> io::Result<()> {
    let read = file.read_at(buf, position)?;
    if read < buf.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// The entry at `at` of a file.
pub(crate) fn read_entry<E: Entry>(file: &dyn File, at: usize) -> io::Result<E> {
    let mut buf = vec![0; E::SIZE];
    read_exact(file, &mut buf, (at * E::SIZE) as u64)?;
    Ok(E::get(&buf))
}

/// How many of the first `count` entries of a file `holds` is true for (they must be a prefix of
/// them), and the last of those. About one read of one entry per halving, and one of a block.
pub(crate) fn search_file<E: Entry>(
    file: &dyn File,
    count: usize,
    holds: impl Fn(&E) -> bool,
) -> io::Result<(usize, Option<E>)> {
    let (mut low, mut high, mut floor) = (0, count, None);
    if let Some(last) = count.checked_sub(1) {
        // Asked for most: the end of the log.
        let entry: E = read_entry(file, last)?;
        if holds(&entry) {
            return Ok((count, Some(entry)));
        }
        high = last;
    }
    while high - low > BLOCK_ENTRIES {
        let middle = low + (high - low) / 2;
        let entry: E = read_entry(file, middle)?;
        if holds(&entry) {
            floor = Some(entry);
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let mut block = vec![0; (high - low) * E::SIZE];
    read_exact(file, &mut block, (low * E::SIZE) as u64)?;
    for bytes in block.chunks_exact(E::SIZE) {
        let entry = E::get(bytes);
        if !holds(&entry) {
            break;
        }
        floor = Some(entry);
        low += 1;
    }
    Ok((low, floor))
}

/// Whole entries in a file.
pub(crate) fn entries_in<E: Entry>(file: &dyn File) -> io::Result<usize> {
    let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
    Ok(len / E::SIZE)
}

//! Walking the batch headers of a segment file, in chunks.
//!
//! Small batches are read many at a time; past a big one only the next header is read. What a bad
//! header means (torn tail, corruption, stale index) is the caller's to say.

use std::io;

use protocol_compat::batch::{BatchHeader, HEADER_LEN, crc_matches};

use crate::disk::File;

/// Read at a time when looking for a batch.
pub(crate) const LOOK_UP: usize = 16 << 10;
/// Read at a time when checking everything.
pub(crate) const CHECK: usize = 256 << 10;
/// Read when the batch before was larger than a chunk.
const ONE_HEADER: usize = 512;

/// A batch and where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanned {
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
}

impl Scanned {
    pub(crate) fn end(&self) -> u64 {
        self.position + self.header.total_size() as u64
    }

    /// Says what is wrong with this batch.
    pub(crate) fn bad(&self, what: impl Into<String>) -> ScanError {
        ScanError::Bad { position: self.position, what: what.into() }
    }
}

#[derive(Debug)]
pub(crate) enum ScanError {
    Io(io::Error),
    /// No batch begins at this position.
    Bad {
        position: u64,
        what: String,
    },
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> ScanError {
        ScanError::Io(error)
    }
}

/// Yields the batches from a position up to `end`, which should be the end of one.
pub(crate) struct HeaderScan<'a> {
    file: &'a dyn File,
    next: u64,
    end: u64,
    chunk: usize,
    /// The bytes of the file from `buffer_at`.
    buffer: Vec<u8>,
    buffer_at: u64,
    last_size: usize,
}

impl<'a> HeaderScan<'a> {
    pub(crate) fn new(file: &'a dyn File, from: u64, end: u64, chunk: usize) -> HeaderScan<'a> {
        let buffer = Vec::new();
        HeaderScan { file, next: from, end, chunk, buffer, buffer_at: from, last_size: 0 }
    }

    /// The next batch; `None` at the end. After an error there is nothing more to ask.
    pub(crate) fn next(&mut self) -> Result<Option<Scanned>, ScanError> {
        let position = self.next;
        if position >= self.end {
            return Ok(None);
        }
        let bad = |what: String| ScanError::Bad { position, what };
        let left = self.end - position;
        if left < HEADER_LEN as u64 {
            return Err(bad(format!("{left} bytes are no batch header")));
        }
        let want = if self.last_size > self.chunk { ONE_HEADER } else { self.chunk };
        self.fill(position, HEADER_LEN, want)?;
        let header = BatchHeader::parse(self.at(position)).map_err(|e| bad(e.to_string()))?;
        if header.base_offset < 0 || header.last_offset_delta < 0 {
            return Err(bad("negative offsets".to_owned()));
        }
        if header.base_offset.checked_add(i64::from(header.last_offset_delta) + 1).is_none() {
            return Err(bad("offsets beyond the last one there can be".to_owned()));
        }
        self.last_size = header.total_size();
        if self.last_size as u64 > left {
            return Err(bad(format!("a batch of {} bytes, {left} are there", self.last_size)));
        }
        self.next = position + self.last_size as u64;
        Ok(Some(Scanned { position, header }))
    }

    /// Whether the batch bears the checksum of its bytes.
    pub(crate) fn crc_matches(&mut self, batch: &Scanned) -> io::Result<bool> {
        let size = batch.header.total_size();
        if size <= self.chunk {
            self.fill(batch.position, size, self.chunk)?;
            return Ok(self.at(batch.position).get(..size).is_some_and(crc_matches));
        }
        crc_of_range(self.file, batch).map(|crc| crc == Some(batch.header.crc))
    }

    /// Makes sure that the buffer holds `need` bytes from `position`, reading `want` if it does
    /// not. A file that ends early leaves fewer.
    fn fill(&mut self, position: u64, need: usize, want: usize) -> io::Result<()> {
        if self.at(position).len() >= need {
            return Ok(());
        }
        let left = usize::try_from(self.end - position).unwrap_or(usize::MAX);
        self.buffer.resize(want.max(need).min(left), 0);
        let read = self.file.read_at(&mut self.buffer, position)?;
        self.buffer.truncate(read);
        self.buffer_at = position;
        Ok(())
    }

    /// What the buffer holds from `position` on.
    fn at(&self, position: u64) -> &[u8] {
        let skip = position.checked_sub(self.buffer_at).and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.buffer.get(skip..)).unwrap_or(&[])
    }
}

/// The checksum of a batch too big for one read; `None` when the file ends within it.
fn crc_of_range(file: &dyn File, batch: &Scanned) -> io::Result<Option<u32>> {
    let mut buffer = vec![0; CHECK];
    let mut at = batch.position + ATTRIBUTES_AT;
    let mut crc = 0;
    while at < batch.end() {
        let left = usize::try_from(batch.end() - at).unwrap_or(usize::MAX);
        let part = left.min(buffer.len());
        let (part, _) = buffer.split_at_mut(part);
        let read = file.read_at(part, at)?;
        if read < part.len() {
            return Ok(None);
        }
        crc = crc32c::crc32c_append(crc, part);
        at += read as u64;
    }
    Ok(Some(crc))
}

/// Where the checksum's area begins in a batch.
const ATTRIBUTES_AT: u64 = 21;

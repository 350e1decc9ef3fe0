//! Batch headers in segments, as far as the flusher looks at them: to tie what the journal holds to
//! the batch it follows.

use std::io;

use protocol_compat::batch::{BatchHeader, HEADER_LEN, MAGIC};

use crate::disk::File;

/// How far back a batch's header is looked for, at first and at most.
const LOOK_BACK: [usize; 2] = [4 << 10, 64 << 10];

/// The batches of `bytes` with their positions in it, up to the first that is not whole.
pub(super) fn batches(bytes: &[u8]) -> impl Iterator<Item = (usize, BatchHeader)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let header = BatchHeader::parse(bytes.get(at..)?).ok()?;
        let start = at;
        at = at.checked_add(header.total_size()).filter(|end| *end <= bytes.len())?;
        Some((start, header))
    })
}

/// The header at a position, if there is one.
pub(super) fn header_at(file: &dyn File, position: u64) -> io::Result<Option<BatchHeader>> {
    Ok(BatchHeader::parse(&header_bytes(file, position)?).ok())
}

/// The bytes that a header takes; fewer at the end of the file.
pub(super) fn header_bytes(file: &dyn File, position: u64) -> io::Result<Vec<u8>> {
    let mut head = vec![0; HEADER_LEN];
    let read = file.read_at(&mut head, position)?;
    head.truncate(read);
    Ok(head)
}

/// Where the batch begins that ends at `end`; `None` when that is too far back to be found.
///
/// A header is known by its magic and by a length that reaches exactly to `end`. What a client sent
/// may look like that; of several the one farthest back is taken, which is the true one unless
/// somebody went out of his way to weaken the checks of his own partition.
pub(super) fn batch_before(file: &dyn File, end: u64) -> io::Result<Option<u64>> {
    for look_back in LOOK_BACK {
        let len = usize::try_from(end).unwrap_or(look_back).min(look_back);
        let start = end - len as u64;
        let mut bytes = vec![0; len];
        if file.read_at(&mut bytes, start)? < len {
            return Ok(None);
        }
        let fits = |at: &usize| {
            let header = bytes.get(*at..).and_then(|bytes| BatchHeader::parse(bytes).ok());
            header.is_some_and(|header| at + header.total_size() == len)
        };
        let magic_at = |at: &usize| bytes.get(at + 16) == Some(&MAGIC.cast_unsigned());
        if let Some(at) = (0..len).filter(magic_at).find(fits) {
            return Ok(Some(start + at as u64));
        }
    }
    Ok(None)
}

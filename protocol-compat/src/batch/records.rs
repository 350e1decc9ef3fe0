//! Reading the records of a batch, inflated into memory if need be.
//!
//! For batches that were accepted once; what a producer sends is walked by `validate.rs`, which
//! needs no memory for it.

use super::walk::{Fault, Plain, Source, varint, walk};
use super::{BatchError, BatchHeader, HEADER_LEN};
use crate::compression::Codec;

/// The header and the records of `batch`, which may be followed by other bytes. Compressed
/// records are inflated into `scratch`, at most `max_bytes` of them. The checksum is not looked at.
///
/// # Errors
/// Anything that keeps the records from being read; a faulty record shows only in the iterator.
pub fn records<'a>(
    batch: &'a [u8],
    scratch: &'a mut Vec<u8>,
    max_bytes: usize,
) -> Result<(BatchHeader, RecordIter<'a>), BatchError> {
    let header = BatchHeader::parse(batch)?;
    let size = header.total_size();
    let payload = batch
        .get(HEADER_LEN..size)
        .ok_or(BatchError::Truncated { need: size, have: batch.len() })?;
    let codec = header.codec()?;
    if codec == Codec::None {
        return Ok((header, RecordIter::new(payload, header.record_count)));
    }
    codec.decompress(payload, max_bytes, scratch)?;
    Ok((header, RecordIter::new(scratch, header.record_count)))
}

/// The records of an uncompressed payload. Ends after as many as the header announces, after the
/// bytes, or after the first error; bytes left over after the last record are an error, too.
pub struct RecordIter<'a> {
    source: Plain<'a>,
    left: i32,
}

impl<'a> RecordIter<'a> {
    /// `payload` is what follows the header, inflated; `record_count` is the header's.
    pub fn new(payload: &'a [u8], record_count: i32) -> RecordIter<'a> {
        RecordIter { source: Plain::new(payload), left: record_count.max(0) }
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let before = self.source.taken();
        let record = walk(&mut self.source).and_then(|seen| {
            if self.left == 0 && !self.source.is_empty() {
                return Err(Fault::Malformed("bytes after the last record"));
            }
            Ok(Record {
                offset_delta: seen.front.offset_delta,
                timestamp_delta: seen.front.timestamp_delta,
                attributes: seen.front.attributes,
                key: seen.key.map(|span| self.source.slice(span)),
                value: seen.value.map(|span| self.source.slice(span)),
                headers: HeaderIter {
                    source: Plain::new(self.source.slice((
                        seen.headers_at,
                        (self.source.taken() - seen.headers_at) as usize,
                    ))),
                    left: seen.header_count,
                },
                size: (self.source.taken() - before) as usize,
            })
        });
        if record.is_err() {
            self.left = 0;
        }
        Some(record.map_err(BatchError::from))
    }
}

impl From<Fault> for BatchError {
    fn from(fault: Fault) -> BatchError {
        match fault {
            Fault::End => BatchError::Record("ends too early"),
            Fault::Overlong => BatchError::Record("size too long"),
            Fault::TooLarge => BatchError::Record("too large"),
            Fault::Malformed(what) => BatchError::Record(what),
            Fault::Inflate(error) => BatchError::Compression(error),
        }
    }
}

/// One record, by reference. Its offset is the base offset plus `offset_delta`; its time is the
/// base timestamp plus `timestamp_delta`, or the max timestamp of a batch with append time.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    pub offset_delta: i32,
    /// Milliseconds.
    pub timestamp_delta: i64,
    /// Not used by Kafka so far.
    pub attributes: i8,
    /// `None` is null, which is not the same as empty.
    pub key: Option<&'a [u8]>,
    /// `None` is null: a tombstone in a compacted topic.
    pub value: Option<&'a [u8]>,
    pub headers: HeaderIter<'a>,
    /// Bytes of the whole record, its size field included.
    pub size: usize,
}

impl Record<'_> {
    /// When the record was made or, in a batch with append time, appended; milliseconds.
    pub fn timestamp(&self, header: &BatchHeader) -> i64 {
        if header.is_log_append_time() {
            return header.max_timestamp;
        }
        header.base_timestamp.wrapping_add(self.timestamp_delta)
    }
}

/// The headers of a record in their order: key (UTF-8 by custom, not checked) and value.
#[derive(Clone, Debug)]
pub struct HeaderIter<'a> {
    source: Plain<'a>,
    left: usize,
}

impl<'a> HeaderIter<'a> {
    fn take(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        let Ok(len) = usize::try_from(varint(&mut self.source)?) else { return Ok(None) };
        let at = self.source.taken();
        self.source.skip(len)?;
        Ok(Some(self.source.slice((at, len))))
    }
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        // The record was walked before, so nothing here can fail.
        let key = self.take().ok()??;
        let value = self.take().ok()?;
        Some((key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

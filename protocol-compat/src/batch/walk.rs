//! One record, field by field, from bytes that may still be inflating.
//!
//! The only place that knows the layout of a record (Kafka `DefaultRecord.readFrom`). What to do
//! with a record, or with a faulty one, is the caller's affair.

use crate::compression::{CompressionError, Inflater};

/// Why a record could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The bytes end within a record, or before it.
    End,
    /// A number of more bytes than its type has.
    Overlong,
    /// The fields contradict each other or break a rule.
    Malformed(&'static str),
    /// The record is longer than the limit for records in compressed batches.
    TooLarge,
    /// The compressed bytes cannot be inflated, or not within the limit.
    Inflate(CompressionError),
}

impl From<CompressionError> for Fault {
    fn from(error: CompressionError) -> Fault {
        Fault::Inflate(error)
    }
}

/// Where records come from.
pub(super) trait Source {
    /// Takes one byte.
    fn byte(&mut self) -> Result<u8, Fault>;
    /// Hands the next `len` bytes to `use_piece`, in one or more pieces.
    fn pieces<E: From<Fault>>(
        &mut self,
        len: usize,
        use_piece: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E>;
    /// Bytes taken so far.
    fn taken(&self) -> u64;
    /// Refuses a record whose body cannot be `size` bytes long.
    fn admit(&self, size: usize) -> Result<(), Fault>;
    /// An upper bound of the bytes that are left.
    fn left(&self) -> usize;

    /// Passes over `len` bytes.
    #[inline]
    fn skip(&mut self, len: usize) -> Result<(), Fault> {
        self.pieces(len, |_| Ok(()))
    }
}

/// A key or a value: where its bytes lie, or `None` for null.
pub(super) type Span = Option<(u64, usize)>;

/// What a record says of itself, and where its parts lie in the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub front: Front,
    pub key: Span,
    pub value: Span,
    pub header_count: usize,
    /// Where the first header begins.
    pub headers_at: u64,
}

/// The front of a record, before its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    /// Bytes of the body, without the size field.
    pub size: usize,
    /// Where the body begins.
    pub body_at: u64,
    pub attributes: i8,
    pub timestamp_delta: i64,
    pub offset_delta: i32,
}

/// Takes one record and checks that its fields fill its size exactly.
#[inline(always)]
pub(super) fn walk<S: Source>(source: &mut S) -> Result<Seen, Fault> {
    let front = front(source)?;
    body(source, front).map_err(within)
}

/// Takes the size of a record and what stands before its key.
#[inline(always)]
pub(super) fn front<S: Source>(source: &mut S) -> Result<Front, Fault> {
    let size = varint(source)?;
    let size = usize::try_from(size).map_err(|_| Fault::Malformed("negative record size"))?;
    source.admit(size)?;
    let body_at = source.taken();
    let attributes = source.byte()? as i8;
    let timestamp_delta = varlong(source).map_err(within)?;
    let offset_delta = varint(source).map_err(within)?;
    Ok(Front { size, body_at, attributes, timestamp_delta, offset_delta })
}

/// An overlong number inside a record is one of many ways to be malformed.
fn within(fault: Fault) -> Fault {
    match fault {
        Fault::Overlong => Fault::Malformed("number too long"),
        other => other,
    }
}

#[inline(always)]
fn body<S: Source>(source: &mut S, front: Front) -> Result<Seen, Fault> {
    let key = span(source)?;
    let value = span(source)?;
    let header_count = usize::try_from(varint(source)?)
        .map_err(|_| Fault::Malformed("negative number of headers"))?;
    if header_count > source.left() {
        return Err(Fault::Malformed("more headers than bytes"));
    }
    let headers_at = source.taken();
    for _ in 0..header_count {
        // A null key is refused, a null value is not.
        span(source)?.ok_or(Fault::Malformed("negative header key size"))?;
        span(source)?;
        if source.taken() - front.body_at > front.size as u64 {
            break;
        }
    }
    if source.taken() - front.body_at != front.size as u64 {
        return Err(Fault::Malformed("record size does not match its fields"));
    }
    Ok(Seen { front, key, value, header_count, headers_at })
}

/// Passes over a size and so many bytes; any negative size means null.
#[inline(always)]
fn span<S: Source>(source: &mut S) -> Result<Span, Fault> {
    let Ok(len) = usize::try_from(varint(source)?) else { return Ok(None) };
    let at = source.taken();
    source.skip(len)?;
    Ok(Some((at, len)))
}

/// A zig-zag number of at most five bytes; bits beyond 32 are dropped, as Java does.
#[inline(always)]
pub(super) fn varint<S: Source>(source: &mut S) -> Result<i32, Fault> {
    let first = source.byte()?;
    let raw = if first < 0x80 { u32::from(first) } else { long_varint(source, first)? };
    Ok((raw >> 1) as i32 ^ -((raw & 1) as i32))
}

fn long_varint<S: Source>(source: &mut S, first: u8) -> Result<u32, Fault> {
    let mut raw = u32::from(first & 0x7f);
    for shift in [7, 14, 21, 28] {
        let byte = source.byte()?;
        raw |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(raw);
        }
    }
    Err(Fault::Overlong)
}

/// A zig-zag number of at most ten bytes.
#[inline(always)]
fn varlong<S: Source>(source: &mut S) -> Result<i64, Fault> {
    let first = source.byte()?;
    let raw = if first < 0x80 { u64::from(first) } else { long_varlong(source, first)? };
    Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

fn long_varlong<S: Source>(source: &mut S, first: u8) -> Result<u64, Fault> {
    let mut raw = u64::from(first & 0x7f);
    for shift in [7, 14, 21, 28, 35, 42, 49, 56, 63] {
        let byte = source.byte()?;
        raw |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(raw);
        }
    }
    Err(Fault::Overlong)
}

/// Records that lie in memory.
#[derive(Clone, Debug)]
pub(super) struct Plain<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Plain<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Plain { bytes, at: 0 }
    }

    /// The bytes at a place that [`walk`] named.
    pub fn slice(&self, (at, len): (u64, usize)) -> &'a [u8] {
        let at = at as usize;
        &self.bytes[at..at + len]
    }

    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }
}

impl Source for Plain<'_> {
    #[inline(always)]
    fn byte(&mut self) -> Result<u8, Fault> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::End)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn pieces<E: From<Fault>>(
        &mut self,
        len: usize,
        mut use_piece: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let piece = self.bytes[self.at..].get(..len).ok_or(Fault::End)?;
        self.at += len;
        use_piece(piece)
    }

    #[inline(always)]
    fn taken(&self) -> u64 {
        self.at as u64
    }

    #[inline(always)]
    fn admit(&self, size: usize) -> Result<(), Fault> {
        if size > self.left() {
            return Err(Fault::Malformed("record larger than what is left"));
        }
        Ok(())
    }

    #[inline(always)]
    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }
}

/// Records that are inflated as they are walked; memory holds one piece of them.
pub(super) struct Inflating<'a, 'w> {
    inflater: Inflater<'a>,
    window: &'w mut Vec<u8>,
    at: usize,
    /// Bytes that were in the window and are gone.
    gone: u64,
    record_max: usize,
}

impl<'a, 'w> Inflating<'a, 'w> {
    /// Uses `window` as its memory; refuses records of more than `record_max` bytes.
    pub fn new(inflater: Inflater<'a>, window: &'w mut Vec<u8>, record_max: usize) -> Self {
        window.clear();
        Inflating { inflater, window, at: 0, gone: 0, record_max }
    }

    /// Whether nothing is left; reads on to find out, and so meets a damaged end.
    pub fn is_empty(&mut self) -> Result<bool, Fault> {
        Ok(self.at >= self.window.len() && !self.refill()?)
    }

    /// Replaces the window, all of which was taken, by the next piece.
    fn refill(&mut self) -> Result<bool, Fault> {
        self.gone += self.window.len() as u64;
        self.window.clear();
        self.at = 0;
        Ok(self.inflater.fill(self.window)? > 0)
    }
}

impl Source for Inflating<'_, '_> {
    #[inline(always)]
    fn byte(&mut self) -> Result<u8, Fault> {
        if self.at >= self.window.len() && !self.refill()? {
            return Err(Fault::End);
        }
        let byte = self.window[self.at];
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn pieces<E: From<Fault>>(
        &mut self,
        len: usize,
        mut use_piece: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut wanted = len;
        while wanted > self.window.len() - self.at {
            let piece = &self.window[self.at..];
            wanted -= piece.len();
            use_piece(piece)?;
            if !self.refill()? {
                return Err(Fault::End.into());
            }
        }
        let piece = &self.window[self.at..self.at + wanted];
        self.at += wanted;
        use_piece(piece)
    }

    #[inline(always)]
    fn taken(&self) -> u64 {
        self.gone + self.at as u64
    }

    #[inline(always)]
    fn admit(&self, size: usize) -> Result<(), Fault> {
        if size > self.record_max { Err(Fault::TooLarge) } else { Ok(()) }
    }

    #[inline(always)]
    fn left(&self) -> usize {
        usize::MAX
    }
}

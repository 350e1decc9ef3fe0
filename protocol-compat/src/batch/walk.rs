//! One record, field by field, from bytes that may still be inflating.
//!
//! The only place that knows the layout of a record (Kafka `DefaultRecord.readFrom`). Records that
//! are whole and good, nearly all, take the quick way; the slow way takes the others and knows what
//! is wrong with them. What to do with a record, or with a fault, is the caller's affair.

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
    /// The next bytes, as many as lie in memory; [`Source::advance`] takes them.
    fn window(&self) -> &[u8];
    /// Takes `len` bytes of the window.
    fn advance(&mut self, len: usize);
    /// No body may be larger.
    fn size_max(&self) -> usize;
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

/// What makes a record ordinary: nothing about it needs a closer look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordinary {
    /// Records of the batch; their offset deltas count from 0.
    pub count: i32,
    pub base_timestamp: i64,
    /// The lowest and the highest time that is fine.
    pub times: (i64, i64),
    pub needs_key: bool,
    /// Bytes of a body.
    pub size_max: usize,
}

/// A stretch of ordinary records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Bytes that they take.
    pub taken: usize,
    /// Index of the record after them.
    pub index: i32,
    /// The highest time among them and the one given.
    pub max_timestamp: i64,
}

/// Passes over records from the front of `bytes`, the first of which is number `index`, for as long
/// as they are whole, good and ordinary. This is where Produce spends its time, so it decides
/// nothing: whatever stops it is for [`walk`] to judge.
#[inline(never)]
pub(super) fn run(bytes: &[u8], index: i32, max_timestamp: i64, ordinary: &Ordinary) -> Run {
    let Ordinary { count, base_timestamp, times: (low, high), needs_key, size_max } = *ordinary;
    let span = high.wrapping_sub(low) as u64;
    let mut rest = bytes;
    let (mut index, mut max_timestamp) = (index, max_timestamp);
    while index < count {
        let Some(record) = quick(rest, size_max) else { break };
        let timestamp = base_timestamp.wrapping_add(record.timestamp_delta);
        let time_fits = timestamp.wrapping_sub(low) as u64 <= span;
        if !time_fits || record.offset_delta != index || (needs_key && record.key_len < 0) {
            break;
        }
        max_timestamp = max_timestamp.max(timestamp);
        index += 1;
        rest = &rest[record.end..];
    }
    Run { taken: bytes.len() - rest.len(), index, max_timestamp }
}

/// The parts of a record that decide whether it is ordinary.
#[derive(Clone, Copy, Debug)]
struct Quick {
    timestamp_delta: i64,
    offset_delta: i32,
    /// Negative for null.
    key_len: i32,
    /// Bytes of the whole record.
    end: usize,
}

/// A record that is whole, good and at the front of `bytes`; `None` if anything is out of the
/// ordinary.
#[inline(always)]
fn quick(bytes: &[u8], size_max: usize) -> Option<Quick> {
    let (size, at) = quick_varint(bytes, 0)?;
    let size = usize::try_from(size).ok()?;
    let end = at + size;
    if size > size_max || end > bytes.len() {
        return None;
    }
    let (raw, at) = quick_raw(bytes, at + 1)?; // Behind the attributes.
    let timestamp_delta = i64::from(unzigzag(raw));
    let (offset_delta, at) = quick_varint(bytes, at)?;
    let (key_len, at) = quick_varint(bytes, at)?;
    let (value_len, at) = quick_varint(bytes, at + key_len.max(0) as usize)?;
    let (header_count, at) = quick_raw(bytes, at + value_len.max(0) as usize)?;
    let at = if header_count == 0 { at } else { quick_headers(bytes, at, header_count, end)? };
    (at == end).then_some(Quick { timestamp_delta, offset_delta, key_len, end })
}

/// Where the headers end that begin at `at`, as many as `raw` says.
#[inline(never)]
fn quick_headers(bytes: &[u8], at: usize, raw: u32, end: usize) -> Option<usize> {
    let count = u32::try_from(unzigzag(raw)).ok()?;
    let mut at = at;
    for _ in 0..count {
        let (key_len, value_at) = quick_varint(bytes, at)?;
        let value_at = value_at + usize::try_from(key_len).ok()?;
        let (value_len, next_at) = quick_varint(bytes, value_at)?;
        at = next_at + value_len.max(0) as usize;
        if at > end {
            return None;
        }
    }
    Some(at)
}

/// A zig-zag number at `at`, and where it ends.
#[inline(always)]
fn quick_varint(bytes: &[u8], at: usize) -> Option<(i32, usize)> {
    let (raw, at) = quick_raw(bytes, at)?;
    Some((unzigzag(raw), at))
}

#[inline(always)]
fn unzigzag(raw: u32) -> i32 {
    (raw >> 1) as i32 ^ -((raw & 1) as i32)
}

/// An unsigned number of at most three bytes at `at`, and where it ends.
#[inline(always)]
fn quick_raw(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let rest = bytes.get(at..)?;
    let word = match rest.first_chunk::<4>() {
        Some(word) => u32::from_le_bytes(*word),
        None => last_word(rest),
    };
    if word & 0x80 == 0 {
        return Some((word & 0x7f, at + 1));
    }
    if word & 0x8000 == 0 {
        return Some((word & 0x7f | word >> 1 & 0x3f80, at + 2));
    }
    let raw = word & 0x7f | word >> 1 & 0x3f80 | word >> 2 & 0x1f_c000;
    (word & 0x80_0000 == 0).then_some((raw, at + 3))
}

/// The last bytes, filled up with some that never end a number.
#[cold]
#[inline(never)]
fn last_word(rest: &[u8]) -> u32 {
    rest.iter().rev().take(4).fold(u32::MAX, |word, byte| word << 8 | u32::from(*byte))
}

/// Takes one record and checks that its fields fill its size exactly.
pub(super) fn walk<S: Source>(source: &mut S) -> Result<Seen, Fault> {
    let front = front(source)?;
    body(source, front).map_err(within)
}

/// Takes the size of a record and what stands before its key.
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
fn span<S: Source>(source: &mut S) -> Result<Span, Fault> {
    let Ok(len) = usize::try_from(varint(source)?) else { return Ok(None) };
    let at = source.taken();
    source.skip(len)?;
    Ok(Some((at, len)))
}

/// A zig-zag number of at most five bytes; bits beyond 32 are dropped, as Java does.
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
    fn window(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    #[inline(always)]
    fn advance(&mut self, len: usize) {
        self.at += len;
    }

    #[inline(always)]
    fn size_max(&self) -> usize {
        usize::MAX
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
    size_max: usize,
}

impl<'a, 'w> Inflating<'a, 'w> {
    /// Uses `window` as its memory; refuses records of more than `size_max` bytes.
    pub fn new(inflater: Inflater<'a>, window: &'w mut Vec<u8>, size_max: usize) -> Self {
        window.clear();
        Inflating { inflater, window, at: 0, gone: 0, size_max }
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
    fn window(&self) -> &[u8] {
        &self.window[self.at..]
    }

    #[inline(always)]
    fn advance(&mut self, len: usize) {
        self.at += len;
    }

    #[inline(always)]
    fn size_max(&self) -> usize {
        self.size_max
    }

    #[inline(always)]
    fn taken(&self) -> u64 {
        self.gone + self.at as u64
    }

    #[inline(always)]
    fn admit(&self, size: usize) -> Result<(), Fault> {
        if size > self.size_max { Err(Fault::TooLarge) } else { Ok(()) }
    }

    #[inline(always)]
    fn left(&self) -> usize {
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compression::Codec;

    fn zigzag(value: i64, out: &mut Vec<u8>) {
        crate::batch::build::put_varint(out, crate::batch::build::zigzag(value));
    }

    /// A record of these fields; `pad` bytes more or less than it says.
    fn record(time: i64, offset: i32, lens: [i32; 2], headers: &[[i32; 2]], pad: i32) -> Vec<u8> {
        let mut body = vec![0];
        zigzag(time, &mut body);
        zigzag(i64::from(offset), &mut body);
        let span = |len: i32, body: &mut Vec<u8>| {
            zigzag(i64::from(len), body);
            body.resize(body.len() + len.max(0) as usize, 0x5a);
        };
        lens.iter().for_each(|len| span(*len, &mut body));
        zigzag(headers.len() as i64, &mut body);
        headers.iter().flatten().for_each(|len| span(*len, &mut body));
        let mut out = Vec::new();
        zigzag(body.len() as i64 + i64::from(pad), &mut out);
        out.extend_from_slice(&body);
        out
    }

    /// What [`quick`] sees must be what [`walk`] sees, from memory and from a stream, and it may
    /// pass on only what has a number of more than three bytes.
    fn same_both_ways(bytes: &[u8]) -> Result<(), TestCaseError> {
        let mut source = Plain::new(bytes);
        let want = walk(&mut source);
        match quick(bytes, usize::MAX) {
            Some(record) => {
                let seen = want.expect("good");
                prop_assert_eq!(record.timestamp_delta, seen.front.timestamp_delta);
                prop_assert_eq!(record.offset_delta, seen.front.offset_delta);
                prop_assert_eq!(record.key_len < 0, seen.key.is_none());
                prop_assert_eq!(record.end as u64, source.taken());
            }
            None if want.is_ok() => {
                prop_assert!(bytes.windows(3).any(|w| w.iter().all(|byte| *byte >= 0x80)));
            }
            None => {}
        }
        let packed = Codec::Zstd.compress(3, bytes).expect("compresses");
        let mut window = Vec::new();
        let inflater = Inflater::new(Codec::Zstd, &packed, usize::MAX).expect("a frame");
        let got = walk(&mut Inflating::new(inflater, &mut window, usize::MAX));
        let text = |seen: Result<Seen, Fault>| seen.map(|seen| format!("{seen:?}")).ok();
        prop_assert_eq!(text(got), text(want));
        Ok(())
    }

    proptest! {
        #[test]
        fn records_are_the_same_both_ways(
            time: i64,
            offset: i32,
            lens in [-2..300i32, -2..300i32],
            headers in prop::collection::vec([-1..3i32, -1..3i32], 0..4),
            pad in prop_oneof![8 => Just(0i32), 1 => -3..3i32],
            cut in prop::option::weighted(0.2, 0usize..400),
            tail in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            for time in [time, time % 100, time >> 8] {
                let mut bytes = record(time, offset, lens, &headers, pad);
                bytes.truncate(cut.unwrap_or(bytes.len()));
                bytes.extend_from_slice(&tail);
                same_both_ways(&bytes)?;
            }
        }

        #[test]
        fn noise_is_the_same_both_ways(noise in prop::collection::vec(0u8..12, 0..40)) {
            same_both_ways(&noise)?;
        }
    }

    #[test]
    fn numbers_of_every_length() {
        for bits in 0..64 {
            let power = 1i64 << bits;
            for value in [power, power.wrapping_sub(1), power.wrapping_neg(), !power] {
                for tail in [0, 9] {
                    let mut bytes = Vec::new();
                    zigzag(value, &mut bytes);
                    let len = bytes.len();
                    bytes.resize(len + tail, 0xff);
                    let raw = crate::batch::build::zigzag(value) as u32;
                    assert_eq!(quick_raw(&bytes, 0), (len <= 3).then_some((raw, len)), "{value}");
                    assert_eq!(varlong(&mut Plain::new(&bytes)), Ok(value));
                    if let Ok(value) = i32::try_from(value) {
                        assert_eq!(varint(&mut Plain::new(&bytes)), Ok(value));
                    }
                }
            }
        }
    }

    #[test]
    fn a_run_stops_where_something_is_odd() {
        let ordinary = Ordinary {
            count: 4,
            base_timestamp: 1_000,
            times: (1_000, 1_010),
            needs_key: true,
            size_max: 1_000,
        };
        let check = |records: &[(i64, i32, i32)], want: (i32, i64), ordinary: Ordinary| {
            let lens: Vec<Vec<u8>> = records
                .iter()
                .map(|(time, offset, key)| record(*time, *offset, [*key, 50], &[[1, -1]], 0))
                .collect();
            let bytes = lens.concat();
            let got = run(&bytes, 0, -1, &ordinary);
            assert_eq!((got.index, got.max_timestamp), want);
            let taken: usize = lens.iter().take(got.index as usize).map(Vec::len).sum();
            assert_eq!(got.taken, taken);
        };
        let good = [(0, 0, 0), (10, 1, 3), (5, 2, 0), (6, 3, 0)];
        check(&good, (4, 1_010), ordinary);
        check(&[good[0], good[1], good[2], good[3], (0, 4, 0)], (4, 1_010), ordinary);
        check(&good[..3], (3, 1_010), ordinary);
        check(&[good[0], (11, 1, 0)], (1, 1_000), ordinary);
        check(&[good[0], (-1, 1, 0)], (1, 1_000), ordinary);
        check(&[good[0], (1, 2, 0)], (1, 1_000), ordinary);
        check(&[good[0], (1, 1, -1)], (1, 1_000), ordinary);
        check(&[good[0], (1, 1, -1)], (2, 1_001), Ordinary { needs_key: false, ..ordinary });
        check(&[good[0], (1, 1, 1)], (1, 1_000), Ordinary { size_max: 59, ..ordinary });
        check(&[], (0, -1), ordinary);
    }
}

//! Inflating piece by piece: the caller sees the output grow and may drop what it has read.
//!
//! Memory is bounded by the piece, never by what the input claims: 64 KiB for gzip and zstd (and
//! zstd's window, at most 128 MiB, touched only as far as output is produced), one block for lz4
//! (at most 4 MiB) and snappy (at most [`SNAPPY_RATIO_MAX`] times its compressed size).

use std::io::Read;

use flate2::bufread::GzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use super::lz4_frame::Lz4Frame;
use super::xerial::{Xerial, snappy_block};
use super::{Codec, CompressionError};

/// Bytes that a gzip or zstd stream yields at a time; fewer from a small input.
const PIECE: usize = 64 * 1024;
const SMALL_PIECE: usize = 4 * 1024;

/// The most that snappy can shrink data: a copy of 64 bytes takes 3.
pub(super) const SNAPPY_RATIO_MAX: usize = 22;

/// A compressed block of records being read.
pub(crate) struct Inflater<'a> {
    source: Source<'a>,
    piece: usize,
    /// Output bytes still allowed.
    left: usize,
    limit: usize,
}

enum Source<'a> {
    Plain(&'a [u8]),
    /// The decoder of the current member, or what follows the last one.
    Gzip(Option<GzDecoder<&'a [u8]>>),
    /// A lone block without framing, as librdkafka writes it; `None` once it was read.
    Snappy(Option<&'a [u8]>),
    Xerial(Xerial<'a>),
    Lz4(Lz4Frame<'a>),
    Zstd(ZstdDecoder<'static, &'a [u8]>),
}

impl<'a> Inflater<'a> {
    /// Looks at the front of the framing. No more than `limit` bytes will be yielded.
    pub fn new(codec: Codec, input: &'a [u8], limit: usize) -> Result<Self, CompressionError> {
        let source = match codec {
            Codec::None => Source::Plain(input),
            Codec::Gzip => Source::Gzip(Some(GzDecoder::new(input))),
            Codec::Snappy => match Xerial::new(input)? {
                Some(framed) => Source::Xerial(framed),
                None => Source::Snappy(Some(input)),
            },
            Codec::Lz4 => Source::Lz4(Lz4Frame::new(input)?),
            Codec::Zstd => Source::Zstd(
                ZstdDecoder::with_buffer(input).map_err(|_| CompressionError::Failed(codec))?,
            ),
        };
        let piece = input.len().saturating_mul(8).clamp(SMALL_PIECE, PIECE);
        Ok(Inflater { source, piece, left: limit, limit })
    }

    /// Appends the next piece to `out` and returns its size; 0 at the end of the data, which has
    /// then been checked as far as the codec has checksums.
    pub fn fill(&mut self, out: &mut Vec<u8>) -> Result<usize, CompressionError> {
        let before = out.len();
        let filled = match &mut self.source {
            Source::Plain(input) => {
                // One more than allowed is enough to know.
                let take = input.len().min(self.left.saturating_add(1));
                let (piece, rest) = input.split_at(take);
                out.extend_from_slice(piece);
                *input = rest;
                Ok(())
            }
            Source::Gzip(member) => fill_gzip(member, self.piece, out),
            Source::Snappy(block) => match block.take() {
                Some(block) => snappy_block(block, self.left, out),
                None => Ok(()),
            },
            Source::Xerial(framed) => framed.fill(self.left, out),
            Source::Lz4(frame) => frame.fill(out),
            Source::Zstd(decoder) => fill_from(decoder, Codec::Zstd, self.piece, out).map(|_| ()),
        };
        let limit = self.limit;
        filled.map_err(|error| match error {
            CompressionError::TooLarge { .. } => CompressionError::TooLarge { limit },
            other => other,
        })?;
        let got = out.len() - before;
        self.left = self.left.checked_sub(got).ok_or(CompressionError::TooLarge { limit })?;
        Ok(got)
    }
}

/// Reads on in a gzip member, and past its end in the next one. Members may follow each other;
/// what comes after the last and is no member is ignored (Java `GZIPInputStream`).
fn fill_gzip(
    member: &mut Option<GzDecoder<&[u8]>>,
    piece: usize,
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    while let Some(mut decoder) = member.take() {
        if fill_from(&mut decoder, Codec::Gzip, piece, out)? > 0 {
            *member = Some(decoder);
            return Ok(());
        }
        let next = GzDecoder::new(decoder.into_inner());
        if next.header().is_some() {
            *member = Some(next);
        }
    }
    Ok(())
}

/// Appends what one read of `decoder` gives, at most `piece` bytes.
fn fill_from(
    decoder: &mut impl Read,
    codec: Codec,
    piece: usize,
    out: &mut Vec<u8>,
) -> Result<usize, CompressionError> {
    let before = out.len();
    out.resize(before + piece, 0);
    let got = decoder.read(&mut out[before..]);
    out.truncate(before + got.as_ref().copied().unwrap_or(0));
    got.map_err(|_| CompressionError::Damaged(codec))
}

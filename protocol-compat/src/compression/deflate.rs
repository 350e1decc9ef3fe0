//! Deflating as Kafka's own writer does, into a vector that may not outgrow a limit.
//!
//! Framing per codec (Kafka `MemoryRecordsBuilder` and the `*Compression` classes): gzip with a
//! bare header; snappy in 32 KiB blocks of xerial framing; an lz4 frame of independent 64 KiB
//! blocks without checksums or sizes; a zstd frame without checksum or size.

use std::io::{self, Write};

use flate2::Crc;
use flate2::write::DeflateEncoder;
use lz4::liblz4::BlockChecksum;
use lz4::{BlockMode, BlockSize, ContentChecksum};
use zstd::stream::write::Encoder as ZstdEncoder;

use super::xerial::HEADER as XERIAL_HEADER;
use super::{Codec, CompressionError};

/// What Java writes: no time, no flags, operating system unknown.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Bytes that the Java client packs into one snappy block.
const SNAPPY_BLOCK: usize = 32 * 1024;

/// A compressed block of records being written.
pub(crate) struct Deflater {
    codec: Codec,
    limit: usize,
    sink: Sink,
}

enum Sink {
    Plain(Capped),
    Gzip(DeflateEncoder<Capped>, Crc),
    /// The output, and what waits to become a block.
    Snappy(Capped, Vec<u8>),
    Lz4(lz4::Encoder<Capped>),
    Zstd(ZstdEncoder<'static, Capped>),
}

impl Deflater {
    /// Appends to `out`, which may grow to `limit` bytes in all, what it holds already included.
    pub fn new(
        codec: Codec,
        level: i32,
        out: Vec<u8>,
        limit: usize,
    ) -> Result<Deflater, CompressionError> {
        let mut out = Capped { out, limit };
        let sink = match codec {
            Codec::None => Ok(Sink::Plain(out)),
            Codec::Gzip => out
                .write_all(&GZIP_HEADER)
                .map(|()| Sink::Gzip(DeflateEncoder::new(out, gzip_level(level)), Crc::new())),
            Codec::Snappy => out.write_all(&XERIAL_HEADER).map(|()| Sink::Snappy(out, Vec::new())),
            Codec::Lz4 => lz4(level, out).map(Sink::Lz4),
            Codec::Zstd => zstd(level, out).map(Sink::Zstd),
        };
        let sink = sink.map_err(|error| explain(codec, limit, &error))?;
        Ok(Deflater { codec, limit, sink })
    }

    /// Takes more input.
    pub fn write(&mut self, input: &[u8]) -> Result<(), CompressionError> {
        let done = match &mut self.sink {
            Sink::Plain(out) => out.write_all(input),
            Sink::Gzip(encoder, crc) => {
                crc.update(input);
                encoder.write_all(input)
            }
            Sink::Snappy(out, waiting) => write_snappy(out, waiting, input),
            Sink::Lz4(encoder) => encoder.write_all(input),
            Sink::Zstd(encoder) => encoder.write_all(input),
        };
        done.map_err(|error| explain(self.codec, self.limit, &error))
    }

    /// Ends the frame and gives the vector back.
    pub fn finish(self) -> Result<Vec<u8>, CompressionError> {
        let done = match self.sink {
            Sink::Plain(out) => Ok(out),
            Sink::Gzip(encoder, crc) => encoder.finish().and_then(|mut out| {
                out.write_all(&crc.sum().to_le_bytes())?;
                out.write_all(&crc.amount().to_le_bytes())?;
                Ok(out)
            }),
            Sink::Snappy(mut out, waiting) => {
                let block = if waiting.is_empty() { Ok(()) } else { snappy(&mut out, &waiting) };
                block.map(|()| out)
            }
            Sink::Lz4(encoder) => {
                let (out, done) = encoder.finish();
                done.map(|()| out)
            }
            Sink::Zstd(encoder) => encoder.finish(),
        };
        done.map(|capped| capped.out).map_err(|error| explain(self.codec, self.limit, &error))
    }
}

/// Kafka's levels are 1 to 9, and -1 for zlib's own choice, which is 6.
fn gzip_level(level: i32) -> flate2::Compression {
    let level = if level < 0 { 6 } else { level.clamp(1, 9) };
    flate2::Compression::new(level.unsigned_abs())
}

/// Kafka's levels are 1 to 17; 9 stands for the fast compressor, the others for the slow one.
fn lz4(level: i32, out: Capped) -> io::Result<lz4::Encoder<Capped>> {
    let level = if level == Codec::Lz4.default_level() { 0 } else { level.clamp(3, 12) };
    lz4::EncoderBuilder::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Independent)
        .block_checksum(BlockChecksum::NoBlockChecksum)
        .checksum(ContentChecksum::NoChecksum)
        .level(level.unsigned_abs())
        .build(out)
}

fn zstd(level: i32, out: Capped) -> io::Result<ZstdEncoder<'static, Capped>> {
    let levels = zstd::compression_level_range();
    ZstdEncoder::new(out, level.clamp(*levels.start(), *levels.end()))
}

fn write_snappy(out: &mut Capped, waiting: &mut Vec<u8>, mut input: &[u8]) -> io::Result<()> {
    while !input.is_empty() {
        let (piece, rest) = input.split_at(input.len().min(SNAPPY_BLOCK - waiting.len()));
        waiting.extend_from_slice(piece);
        input = rest;
        if waiting.len() == SNAPPY_BLOCK {
            snappy(out, waiting)?;
            waiting.clear();
        }
    }
    Ok(())
}

/// Writes one block, its size first.
fn snappy(out: &mut Capped, block: &[u8]) -> io::Result<()> {
    let packed = snap::raw::Encoder::new().compress_vec(block).map_err(io::Error::other)?;
    let size = i32::try_from(packed.len()).map_err(io::Error::other)?;
    out.write_all(&size.to_be_bytes())?;
    out.write_all(&packed)
}

/// The only errors of a writer into memory are its limit and the compressor's own.
fn explain(codec: Codec, limit: usize, error: &io::Error) -> CompressionError {
    match error.kind() {
        io::ErrorKind::StorageFull => CompressionError::TooLarge { limit },
        _ => CompressionError::Failed(codec),
    }
}

/// A vector that refuses to outgrow its limit.
struct Capped {
    out: Vec<u8>,
    limit: usize,
}

impl Write for Capped {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if piece.len() > self.limit.saturating_sub(self.out.len()) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.out.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

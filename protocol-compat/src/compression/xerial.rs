//! Snappy inside the framing of snappy-java, which the Java client writes; and single blocks.
//!
//! Frame: 8 magic bytes, version and lowest compatible version as i32, then blocks: size as i32
//! and a raw snappy block. Frames may follow each other (`SnappyInputStream`).

use super::inflate::SNAPPY_RATIO_MAX;
use super::{Codec, CompressionError};

pub(super) const HEADER: [u8; 16] =
    [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
const MAGIC_LEN: usize = 8;
const DAMAGED: CompressionError = CompressionError::Damaged(Codec::Snappy);

/// A frame being read.
pub(super) struct Xerial<'a> {
    rest: &'a [u8],
}

impl<'a> Xerial<'a> {
    /// `None` if `input` does not begin with a whole frame header: then it is one bare block.
    pub fn new(input: &'a [u8]) -> Result<Option<Self>, CompressionError> {
        match input.split_first_chunk::<{ HEADER.len() }>() {
            Some((header, rest)) if header[..MAGIC_LEN] == HEADER[..MAGIC_LEN] => {
                check_version(header)?;
                Ok(Some(Xerial { rest }))
            }
            _ => Ok(None),
        }
    }

    /// Appends the next block that is not empty; nothing at the end.
    pub fn fill(&mut self, left: usize, out: &mut Vec<u8>) -> Result<(), CompressionError> {
        let before = out.len();
        while out.len() == before {
            // Up to three bytes at the end count as nothing.
            let Some((size, rest)) = self.rest.split_first_chunk::<4>() else { return Ok(()) };
            if size[..] == HEADER[..4] {
                let header = self.rest.first_chunk::<{ HEADER.len() }>().ok_or(DAMAGED)?;
                check_version(header)?;
                self.rest = &self.rest[HEADER.len()..];
                continue;
            }
            let size = usize::try_from(i32::from_be_bytes(*size)).map_err(|_| DAMAGED)?;
            let (block, rest) = rest.split_at_checked(size).ok_or(DAMAGED)?;
            snappy_block(block, left, out)?;
            self.rest = rest;
        }
        Ok(())
    }
}

fn check_version(header: &[u8; HEADER.len()]) -> Result<(), CompressionError> {
    let [.., a, b, c, d, _, _, _, _] = *header;
    let version = i32::from_be_bytes([a, b, c, d]);
    if header[..MAGIC_LEN] != HEADER[..MAGIC_LEN] || version < 1 {
        return Err(DAMAGED);
    }
    Ok(())
}

/// Appends what a raw snappy block holds; the size it claims is believed only as far as the block
/// could hold it, and not beyond `left`.
pub(super) fn snappy_block(
    block: &[u8],
    left: usize,
    out: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    if block.is_empty() {
        return Err(DAMAGED);
    }
    let size = snap::raw::decompress_len(block).map_err(|_| DAMAGED)?;
    if size > block.len().saturating_mul(SNAPPY_RATIO_MAX) {
        return Err(DAMAGED);
    }
    if size > left {
        return Err(CompressionError::TooLarge { limit: left });
    }
    let before = out.len();
    out.resize(before + size, 0);
    match snap::raw::Decoder::new().decompress(block, &mut out[before..]) {
        Ok(got) if got == size => Ok(()),
        _ => {
            out.truncate(before);
            Err(DAMAGED)
        }
    }
}

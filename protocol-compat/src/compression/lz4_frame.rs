//! The LZ4 frame format as Kafka reads it: independent blocks only (Kafka
//! `Lz4BlockInputStream`). Checksums of the descriptor and of blocks are checked, that of the
//! content is not.

use super::{Codec, CompressionError};

const MAGIC: u32 = 0x184d_2204;
const DAMAGED: CompressionError = CompressionError::Damaged(Codec::Lz4);

/// A frame being read.
pub(super) struct Lz4Frame<'a> {
    rest: &'a [u8],
    block_max: usize,
    block_checksums: bool,
    content_checksum: bool,
    finished: bool,
}

impl<'a> Lz4Frame<'a> {
    /// Reads the frame descriptor.
    pub fn new(input: &'a [u8]) -> Result<Self, CompressionError> {
        let mut rest = input;
        if u32::from_le_bytes(take(&mut rest)?) != MAGIC {
            return Err(DAMAGED);
        }
        let descriptor = rest;
        let [flags, block] = take::<2>(&mut rest)?;
        let (version, independent, reserved) = (flags >> 6, flags & 0x20 != 0, flags & 0x03);
        let size_code = block >> 4;
        if version != 1 || !independent || reserved != 0 || block & 0x0f != 0 {
            return Err(DAMAGED);
        }
        let block_max = match size_code {
            4..=7 => 1usize << (8 + 2 * size_code),
            _ => return Err(DAMAGED),
        };
        if flags & 0x08 != 0 {
            take::<8>(&mut rest)?; // The content size, which nobody needs.
        }
        let (described, _) = descriptor.split_at(descriptor.len() - rest.len());
        let [checksum] = take(&mut rest)?;
        if checksum != xxh32(described).to_be_bytes()[2] {
            return Err(DAMAGED);
        }
        Ok(Lz4Frame {
            rest,
            block_max,
            block_checksums: flags & 0x10 != 0,
            content_checksum: flags & 0x04 != 0,
            finished: false,
        })
    }

    /// Appends the next block that is not empty; nothing after the end mark.
    pub fn fill(&mut self, out: &mut Vec<u8>) -> Result<(), CompressionError> {
        let before = out.len();
        while !self.finished && out.len() == before {
            self.block(out)?;
        }
        Ok(())
    }

    fn block(&mut self, out: &mut Vec<u8>) -> Result<(), CompressionError> {
        let word = u32::from_le_bytes(take(&mut self.rest)?);
        let size = (word & 0x7fff_ffff) as usize;
        if size == 0 {
            if self.content_checksum {
                take::<4>(&mut self.rest)?;
            }
            self.finished = true;
            return Ok(());
        }
        if size > self.block_max {
            return Err(DAMAGED);
        }
        let (block, rest) = self.rest.split_at_checked(size).ok_or(DAMAGED)?;
        self.rest = rest;
        if self.block_checksums && u32::from_le_bytes(take(&mut self.rest)?) != xxh32(block) {
            return Err(DAMAGED);
        }
        if word == size as u32 {
            return unpack(block, self.block_max, out);
        }
        out.extend_from_slice(block); // Stored as it is.
        Ok(())
    }
}

/// Unpacks one block. Most shrink to no less than a sixteenth; only for the others is room made
/// for the largest block of the frame.
fn unpack(block: &[u8], block_max: usize, out: &mut Vec<u8>) -> Result<(), CompressionError> {
    let before = out.len();
    let likely = block_max.min((16 * block.len()).max(4 * 1024));
    for room in [likely, block_max] {
        out.resize(before + room, 0);
        let size = i32::try_from(room).map_err(|_| DAMAGED)?;
        match lz4::block::decompress_to_buffer(block, Some(size), &mut out[before..]) {
            Ok(got) => {
                out.truncate(before + got);
                return Ok(());
            }
            Err(_) if room < block_max => {}
            Err(_) => break,
        }
    }
    out.truncate(before);
    Err(DAMAGED)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], CompressionError> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(DAMAGED)?;
    *rest = tail;
    Ok(*head)
}

/// XXH32 with seed 0, the checksum of the frame format.
fn xxh32(data: &[u8]) -> u32 {
    const P1: u32 = 2_654_435_761;
    const P2: u32 = 2_246_822_519;
    const P3: u32 = 3_266_489_917;
    const P4: u32 = 668_265_263;
    const P5: u32 = 374_761_393;
    let word = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    let (stripes, mut tail) = data.as_chunks::<16>();
    let mut hash = P5;
    if !stripes.is_empty() {
        let mut lanes = [P1.wrapping_add(P2), P2, 0, 0u32.wrapping_sub(P1)];
        for stripe in stripes {
            let (words, _) = stripe.as_chunks::<4>();
            for (lane, bytes) in lanes.iter_mut().zip(words) {
                let mixed = lane.wrapping_add(word(bytes).wrapping_mul(P2));
                *lane = mixed.rotate_left(13).wrapping_mul(P1);
            }
        }
        let turned = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, by)| lane.rotate_left(by));
        hash = turned.fold(0, u32::wrapping_add);
    }
    hash = hash.wrapping_add(data.len() as u32);
    while let Some((bytes, rest)) = tail.split_first_chunk::<4>() {
        hash = hash.wrapping_add(word(bytes).wrapping_mul(P3)).rotate_left(17).wrapping_mul(P4);
        tail = rest;
    }
    for byte in tail {
        hash =
            hash.wrapping_add(u32::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 13)).wrapping_mul(P3);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xxh32_vectors() {
        for (text, want) in [
            ("", 0x02cc_5d05),
            ("a", 0x550d_7456),
            ("abc", 0x32d1_53ff),
            ("Nobody inspects the spammish repetition", 0xe229_3b2f),
        ] {
            assert_eq!(xxh32(text.as_bytes()), want, "{text}");
        }
        // The descriptor of Kafka's own frames.
        assert_eq!(xxh32(&[0x60, 0x40]).to_be_bytes()[2], 0x82);
    }
}

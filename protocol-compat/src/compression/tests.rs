//! Every codec there and back, foreign framings, limits while inflating.

use std::io::Write;

use proptest::prelude::*;

use super::*;

fn inflate(codec: Codec, input: &[u8], limit: usize) -> Result<Vec<u8>, CompressionError> {
    let mut out = vec![1, 2, 3]; // Old content must go.
    codec.decompress(input, limit, &mut out).map(|()| out)
}

/// Bytes that compress to some degree, `len` of them.
fn text(len: usize) -> Vec<u8> {
    (0..len).map(|i| b"broker"[(i * i / 7 + i / 11) % 6]).collect()
}

#[test]
fn numbers_and_names() {
    for (number, name) in ["none", "gzip", "snappy", "lz4", "zstd"].into_iter().enumerate() {
        let codec = Codec::from_number(number as u8).expect("a codec");
        assert_eq!((codec.number() as usize, codec.name()), (number, name));
        assert_eq!(Codec::from_name(name), Some(codec));
    }
    assert_eq!(Codec::from_number(5), None);
    assert_eq!(Codec::from_name("uncompressed"), None);
}

#[test]
fn every_size_comes_back() {
    for codec in Codec::ALL {
        for len in [0, 1, 100, 32_767, 32_768, 32_769, 65_536, 65_537, 300_000] {
            let plain = text(len);
            let packed = codec.compress(codec.default_level(), &plain).expect("compresses");
            assert_eq!(inflate(codec, &packed, len).as_ref(), Ok(&plain), "{codec} {len}");
        }
    }
}

#[test]
fn every_level_comes_back() {
    let plain = text(70_000);
    for codec in Codec::ALL {
        for level in [i32::MIN, -7, -1, 0, 1, 2, 3, 6, 9, 12, 17, 22, i32::MAX] {
            let packed = codec.compress(level, &plain).expect("compresses");
            assert_eq!(
                inflate(codec, &packed, plain.len()).as_ref(),
                Ok(&plain),
                "{codec} {level}"
            );
        }
    }
}

/// The first bytes of what Kafka's writer puts out.
#[test]
fn framing_is_kafkas() {
    let check = |codec: Codec, front: &[u8], back: &[u8]| {
        let packed = codec.compress(codec.default_level(), b"hello hello hello").expect("fits");
        assert_eq!(&packed[..front.len()], front, "{codec}");
        assert_eq!(&packed[packed.len() - back.len()..], back, "{codec}");
    };
    check(Codec::None, b"hello hello hello", b"");
    check(Codec::Gzip, &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff], &[17, 0, 0, 0]);
    check(Codec::Snappy, b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0", b"");
    check(Codec::Lz4, &[4, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82], &[0, 0, 0, 0]);
    check(Codec::Zstd, &[0x28, 0xb5, 0x2f, 0xfd, 0x00], b"");
    assert_eq!(Codec::Snappy.compress(0, b"").as_deref(), Ok(&xerial::HEADER[..]));
    // 16 of header; then a block for each 32 KiB begun, each with its size.
    let packed = Codec::Snappy.compress(0, &vec![7; 70_000]).expect("fits");
    let mut rest = &packed[16..];
    let mut sizes = Vec::new();
    while let Some((size, tail)) = rest.split_first_chunk::<4>() {
        let (block, tail) = tail.split_at(i32::from_be_bytes(*size) as usize);
        sizes.push(snap::raw::decompress_len(block).expect("a block"));
        rest = tail;
    }
    assert_eq!(sizes, [32_768, 32_768, 4_464]);
}

#[test]
fn bare_and_framed_snappy_are_told_apart() {
    let plain = text(100_000);
    let bare = snap::raw::Encoder::new().compress_vec(&plain).expect("compresses");
    assert_eq!(inflate(Codec::Snappy, &bare, plain.len()).as_ref(), Ok(&plain));
    let framed = Codec::Snappy.compress(0, &plain).expect("compresses");
    let twice = [framed.clone(), framed.clone()].concat();
    assert_eq!(inflate(Codec::Snappy, &twice, 1 << 20), Ok([&plain[..], &plain[..]].concat()));
    // One to three bytes after the last block count as nothing.
    let loose = [&framed[..], &[0, 0, 0]].concat();
    assert_eq!(inflate(Codec::Snappy, &loose, 1 << 20).as_ref(), Ok(&plain));
    for bad in [
        &b""[..],
        b"\x82SNAPPY\0\0\0\0\0\0\0\0\x01", // Version 0.
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\xff\xff\xff\xff", // A negative block size.
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\x7f\xff\xff\xff\0", // A block that is not there.
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\0", // A block of nothing.
        b"\xff\xff\xff\xff\x0f\0",         // 4 GiB in one byte.
    ] {
        assert_eq!(
            inflate(Codec::Snappy, bad, 1 << 30),
            Err(CompressionError::Damaged(Codec::Snappy))
        );
    }
}

#[test]
fn gzip_members_may_follow_each_other() {
    let one = Codec::Gzip.compress(-1, b"one").expect("compresses");
    let none = Codec::Gzip.compress(-1, b"").expect("compresses");
    for (parts, want) in [
        (vec![&one[..], &one[..]], "oneone"),
        (vec![&none[..], &one[..], &none[..]], "one"),
        (vec![&one[..], b"junk after the end"], "one"),
        (vec![&none[..]], ""),
    ] {
        assert_eq!(inflate(Codec::Gzip, &parts.concat(), 100), Ok(want.as_bytes().to_vec()));
    }
    let mut bad = one.clone();
    bad[one.len() - 5] ^= 1; // The checksum.
    assert_eq!(inflate(Codec::Gzip, &bad, 100), Err(CompressionError::Damaged(Codec::Gzip)));
    bad[one.len() - 5] ^= 1;
    let second_bad = [&one[..], &bad[..one.len() - 1]].concat();
    assert_eq!(inflate(Codec::Gzip, &second_bad, 100), Err(CompressionError::Damaged(Codec::Gzip)));
}

#[test]
fn lz4_frames_of_other_writers() {
    use lz4::liblz4::BlockChecksum;
    use lz4::{BlockMode, BlockSize, ContentChecksum};
    let plain = [text(500_000), vec![0; 5_000_000]].concat();
    let frame = |size: BlockSize, mode: BlockMode, block_sum: BlockChecksum, content: u64| {
        let mut encoder = lz4::EncoderBuilder::new()
            .block_size(size)
            .block_mode(mode)
            .block_checksum(block_sum)
            .checksum(ContentChecksum::ChecksumEnabled)
            .content_size(content)
            .build(Vec::new())
            .expect("an encoder");
        encoder.write_all(&plain).expect("compresses");
        encoder.finish().0
    };
    let full = plain.len() as u64;
    let good =
        frame(BlockSize::Max4MB, BlockMode::Independent, BlockChecksum::BlockChecksumEnabled, full);
    assert_eq!(inflate(Codec::Lz4, &good, plain.len()).as_ref(), Ok(&plain));
    let good =
        frame(BlockSize::Max256KB, BlockMode::Independent, BlockChecksum::NoBlockChecksum, 0);
    assert_eq!(inflate(Codec::Lz4, &good, plain.len()).as_ref(), Ok(&plain));
    // Kafka refuses blocks that lean on each other.
    let linked = frame(BlockSize::Max64KB, BlockMode::Linked, BlockChecksum::NoBlockChecksum, 0);
    assert_eq!(
        inflate(Codec::Lz4, &linked, plain.len()),
        Err(CompressionError::Damaged(Codec::Lz4))
    );
    // The end mark must be there.
    let packed = Codec::Lz4.compress(9, &plain).expect("compresses");
    for cut in [1, 4, 5, packed.len() - 6, packed.len()] {
        assert!(inflate(Codec::Lz4, &packed[..packed.len() - cut], plain.len()).is_err());
    }
}

/// Small inputs that grow without end stop at the limit, and take no more memory than that and a
/// piece.
#[test]
fn bombs_stop_at_the_limit() {
    let zeros = vec![0; 8_000_000];
    let limit = 1_000_000;
    for codec in Codec::ALL {
        let packed = codec.compress(codec.default_level(), &zeros).expect("compresses");
        let mut out = Vec::new();
        let got = codec.decompress(&packed, limit, &mut out);
        assert_eq!(got, Err(CompressionError::TooLarge { limit }), "{codec}");
        assert!(out.capacity() < 4_000_000, "{codec} took {}", out.capacity());
        assert!(inflate(codec, &packed, zeros.len()).is_ok());
        assert!(inflate(codec, &packed, zeros.len() - 1).is_err());
    }
}

#[test]
fn output_stops_at_the_limit() {
    let noise: Vec<u8> =
        (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for codec in Codec::ALL {
        let mut deflater =
            Deflater::new(codec, codec.default_level(), vec![9; 61], 1_000).expect("fits");
        let done = noise.chunks(100).try_for_each(|piece| deflater.write(piece));
        let done = done.and_then(|()| deflater.finish().map(|_| ()));
        assert_eq!(done, Err(CompressionError::TooLarge { limit: 1_000 }), "{codec}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn round_trips(
        plain in prop::collection::vec(0u8..4, 0..5_000),
        number in 0u8..5,
        cut in 0usize..5_000,
    ) {
        let codec = Codec::from_number(number).expect("a codec");
        let level = codec.default_level();
        let mut deflater = Deflater::new(codec, level, Vec::new(), usize::MAX).expect("fits");
        let (a, b) = plain.split_at(cut.min(plain.len()));
        deflater.write(a).expect("fits");
        deflater.write(b).expect("fits");
        let packed = deflater.finish().expect("fits");
        prop_assert_eq!(inflate(codec, &packed, plain.len()), Ok(plain));
    }

    #[test]
    fn damage_never_panics(
        number in 1u8..5,
        flips in prop::collection::vec((0usize..10_000, any::<u8>()), 0..4),
        keep in 0usize..10_000,
        len in 0usize..3_000,
    ) {
        let codec = Codec::from_number(number).expect("a codec");
        let mut packed = codec.compress(codec.default_level(), &text(len)).expect("compresses");
        for (at, xor) in flips {
            let at = at % packed.len();
            packed[at] ^= xor;
        }
        packed.truncate(keep);
        if let Ok(out) = inflate(codec, &packed, 100_000) {
            prop_assert!(out.len() <= 100_000);
        }
    }

    #[test]
    fn noise_never_panics(number in 0u8..5, noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let codec = Codec::from_number(number).expect("a codec");
        let _ = inflate(codec, &noise, 100_000);
    }
}

//! Input that was built to hurt. Nothing here may take more memory than twice its own size and
//! 64 KiB, whatever it claims; most of it made kafka-protocol ask for gigabytes and abort.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiVersionsRequest, CreateTopicsRequest, FetchRequest, MetadataRequest, OffsetFetchRequest,
    ProduceRequest,
};
use kafka_protocol::protocol::Request;
use protocol_compat::batch::{
    BatchBuilder, BatchError, BatchHeader, HEADER_LEN, crc_matches, records,
};
use protocol_compat::compression::Codec;
use protocol_compat::frame::{self, FrameError};
use protocol_compat::header::{HeaderError, RequestHeader};
use protocol_compat::hot::{fetch, produce};
use protocol_compat::later::{DecodeError, decode_request};
use protocol_compat::shape::{ShapeError, check_request};
use protocol_compat::wire::{Malformed, put_uvarint};

thread_local! {
    /// Bytes this thread holds, and the most it held since the last look.
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn grew(by: usize) {
    let held = HELD.get().wrapping_add(by);
    HELD.set(held);
    // What is freed here may have been taken elsewhere, so the count can pass below 0.
    if held < usize::MAX / 2 {
        MOST.set(MOST.get().max(held));
    }
}

// SAFETY: hands everything to the system's allocator unchanged; the counting takes no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: as our caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(layout.size()));
        // SAFETY: as our caller promised.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `work` on `input`, and checks what it takes in memory beyond what was there.
#[track_caller]
fn bounded<T>(input: &[u8], work: impl FnOnce() -> T) -> T {
    let before = HELD.get();
    MOST.set(before);
    let result = work();
    let most = MOST.get() - before;
    let bound = 2 * input.len() + (64 << 10);
    assert!(most <= bound, "{most} bytes taken for {} bytes of input", input.len());
    result
}

/// Decodes as a broker does, in bounds.
#[track_caller]
fn decode<R: Request + 'static>(version: i16, body: Vec<u8>) -> Result<R, Malformed> {
    let body = Bytes::from(body);
    match bounded(&body, || decode_request::<R>(version, &body)) {
        Ok(request) => Ok(request),
        Err(DecodeError::Shape(ShapeError::Malformed(malformed))) => Err(malformed),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn counts_that_cannot_fit_are_refused() {
    let refused = |result: Result<_, _>| matches!(result, Err(Malformed::Count { at: 0, .. }));
    // Old arrays, from no elements there to millions announced in a few bytes.
    for count in [i32::MAX, 50_000_000, 5] {
        let body = count.to_be_bytes().to_vec();
        assert!(refused(decode::<MetadataRequest>(1, body)), "{count}");
    }
    // Compact ones: the length is count + 1.
    for count in [0x7fff_ffff_u32, 50_000_001, 3] {
        let mut body = BytesMut::new();
        put_uvarint(&mut body, count);
        assert!(refused(decode::<MetadataRequest>(12, body.to_vec())), "{count}");
    }
    // Inside a struct, where the first array is honest.
    let body = [&[0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 1][..], &[0x7f; 100]].concat();
    assert!(matches!(decode::<CreateTopicsRequest>(2, body), Err(Malformed::Count { .. })));
}

/// 2^32 - 2 is what kafka-protocol takes for 309 GB of topics. It is null, in Java's int.
#[test]
fn counts_above_2_31_are_null() {
    for count in [0xffff_fffe_u32, 0x8000_0001, 0xffff_ffff] {
        let mut body = BytesMut::new();
        put_uvarint(&mut body, count);
        body.put_slice(&[1, 0, 0]);
        let request = decode::<MetadataRequest>(12, body.to_vec()).expect("Kafka takes it");
        assert_eq!(request.topics, None);
        let mut body = body.to_vec();
        body.splice(0..0, [0, 0, 0, 0, 0, 0, 0]);
        assert!(decode::<ProduceRequest>(9, body).is_err(), "null where none may be");
    }
    // One less is not negative, even with the 1 taken off, but very large.
    let mut body = BytesMut::new();
    put_uvarint(&mut body, 0x8000_0000);
    let verdict = decode::<MetadataRequest>(12, body.to_vec());
    assert_eq!(verdict, Err(Malformed::Count { at: 0, count: i32::MAX }));
}

#[test]
fn lengths_that_lie_are_refused() {
    let truncated =
        |result: Result<ApiVersionsRequest, _>| matches!(result, Err(Malformed::Truncated { .. }));
    assert!(truncated(decode(3, vec![100, b'a'])));
    // A tag of nearly 2 GiB, one of a negative size, and 2^31 - 1 tags of nothing.
    assert!(truncated(decode(3, vec![1, 1, 1, 50, 0xff, 0xff, 0xff, 0xff, 7])));
    assert!(truncated(decode(3, vec![1, 1, 1, 50, 0xff, 0xff, 0xff, 0xff, 15])));
    assert!(truncated(decode(3, vec![1, 1, 0xff, 0xff, 0xff, 0xff, 7])));
    // Kafka has strings of up to 32767 bytes, also where the encoding could say more.
    let mut body = BytesMut::new();
    put_uvarint(&mut body, 0x8001);
    body.resize(50_000, b'a');
    let verdict = decode::<ApiVersionsRequest>(3, body.to_vec());
    assert_eq!(verdict, Err(Malformed::LongString { at: 0, len: 0x8000 }));
    let verdict = decode::<ApiVersionsRequest>(3, vec![0x80; 20]);
    assert_eq!(verdict, Err(Malformed::Varint { at: 0 }));
}

#[test]
fn millions_of_empty_names_are_refused() {
    // 20 MB that would be 725 MB once decoded.
    let mut body = BytesMut::new();
    body.put_i32(10_000_000);
    body.resize(4 + 20_000_000, 0);
    assert_eq!(decode::<MetadataRequest>(1, body.to_vec()), Err(Malformed::TooMuch));
    // A real client's thousands are fine: this is near the most that a cluster has.
    let mut body = BytesMut::new();
    body.put_i32(200_000);
    for topic in 0..200_000 {
        body.put_i16(10);
        body.put_slice(format!("topic{topic:05}").get(..10).expect("ten").as_bytes());
    }
    let shape = check_request(3, 1, &body).expect("well formed");
    assert_eq!(shape.len, body.len());
}

#[test]
fn millions_of_tags_cost_nothing() {
    let mut body = BytesMut::from([1, 1].as_slice());
    put_uvarint(&mut body, 1_000_000);
    for tag in 0..1_000_000 {
        put_uvarint(&mut body, tag);
        body.put_u8(0);
    }
    let request = decode::<ApiVersionsRequest>(3, body.to_vec()).expect("Kafka takes it");
    assert!(request.unknown_tagged_fields.is_empty());
}

#[test]
fn hot_parsers_believe_no_count() {
    for version in 3..=13 {
        for tail in [&[0x7f; 4][..], &[0xff, 0xff, 0xff, 0xff, 7]] {
            let mut body = if version < 9 { vec![0xff, 0xff] } else { vec![0] };
            body.extend_from_slice(&[0; 6]);
            body.extend_from_slice(tail);
            assert!(bounded(&body, || produce::parse(version, &body)).is_err());
            let _ = decode::<ProduceRequest>(version, body);
        }
    }
    for version in 4..=18 {
        for len in 17..40 {
            let body = vec![0x7f; len];
            assert!(bounded(&body, || fetch::parse(version, &body).map(drop)).is_err());
            assert!(decode::<FetchRequest>(version, body).is_err());
        }
    }
    let _ = decode::<OffsetFetchRequest>(8, vec![0x7f; 20]);
}

#[test]
fn short_and_endless_frames() {
    assert_eq!(frame::split(&[0, 0, 0], 100), Ok(None));
    assert_eq!(frame::split(&[0, 0, 0, 2, 9], 100), Ok(None));
    assert_eq!(frame::split(&[0, 0, 0, 2, 9, 9, 9], 100), Ok(Some(2)));
    assert_eq!(frame::split(&[0xff; 4], 100), Err(FrameError::Negative(-1)));
    let too_large = FrameError::TooLarge { size: 101, max: 100 };
    assert_eq!(frame::split(&[0, 0, 0, 101], 100), Err(too_large));
    let header = [0, 18, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0];
    for len in 0..header.len() {
        let cut = header.get(..len).expect("shorter than all of it");
        let verdict = bounded(cut, || RequestHeader::parse(cut).map(drop));
        assert!(matches!(verdict, Err(HeaderError::Malformed(_))), "{len} bytes: {verdict:?}");
    }
    assert!(RequestHeader::parse(&header).is_ok());
}

/// A batch of one record with the given header count, its checksum right.
fn batch(record: &[u8], record_count: i32) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0, Codec::None);
    builder.append(0, None, None, &[]);
    let mut batch = builder.build().to_vec();
    batch.truncate(HEADER_LEN);
    batch.extend_from_slice(record);
    let len = batch.len() as i32 - 12;
    batch[8..12].copy_from_slice(&len.to_be_bytes());
    batch[57..61].copy_from_slice(&record_count.to_be_bytes());
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    assert!(crc_matches(&batch));
    batch
}

#[track_caller]
fn count_records(batch: &[u8], max_bytes: usize) -> Result<usize, BatchError> {
    bounded(batch, || {
        let mut scratch = Vec::new();
        let (_, iter) = records(batch, &mut scratch, max_bytes)?;
        let mut count = 0;
        for record in iter {
            count += record?.headers.count();
        }
        Ok(count)
    })
}

#[test]
fn record_counts_are_not_believed() {
    // Length 6: attributes, timestamp delta, offset delta, no key, no value, no headers.
    let record = [12, 0, 0, 0, 1, 1, 0];
    assert_eq!(count_records(&batch(&record, 1), 1000), Ok(0));
    assert!(count_records(&batch(&record, i32::MAX), 1000).is_err());
    // 2^31 - 1 headers in a record of ten bytes.
    let record = [20, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f];
    assert!(count_records(&batch(&record, 1), 1000).is_err());
}

#[test]
fn two_headers_of_one_key_stay_two() {
    // Two headers "k" without values.
    let record = [24, 0, 0, 0, 1, 1, 4, 2, b'k', 1, 2, b'k', 1];
    assert_eq!(count_records(&batch(&record, 1), 1000), Ok(2));
}

#[test]
fn batches_that_lie_about_themselves_are_refused() {
    let good = batch(&[12, 0, 0, 0, 1, 1, 0], 1);
    for length in [i32::MIN, -1, 0, 48, i32::MAX] {
        let mut bad = good.clone();
        bad[8..12].copy_from_slice(&length.to_be_bytes());
        let verdict = BatchHeader::parse(&bad).map(|header| header.total_size() > bad.len());
        assert!(matches!(verdict, Err(_) | Ok(true)), "length {length}");
        assert!(count_records(&bad, 1000).is_err(), "length {length}");
    }
    let mut bad = good.clone();
    bad[40] ^= 1;
    assert!(!crc_matches(&bad));
    for codec in [5, 6, 7] {
        let mut bad = good.clone();
        bad[22] = codec;
        assert_eq!(count_records(&bad, 1000), Err(BatchError::Codec(codec)));
    }
}

#[test]
fn bombs_do_not_go_off() {
    const LIMIT: usize = 256 << 10;
    let zeros = vec![0u8; 16 << 20];
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let bomb = codec.compress(codec.default_level(), &zeros).expect("compresses");
        let before = HELD.get();
        MOST.set(before);
        let mut out = Vec::new();
        assert!(codec.decompress(&bomb, LIMIT, &mut out).is_err(), "{codec}");
        drop(out);
        let most = MOST.get() - before;
        // The output allowed, grown by doubling, and the codec's own window.
        let bound = 3 * LIMIT + 2 * bomb.len() + (1 << 20);
        assert!(most <= bound, "{codec}: {most} bytes for a bomb of {}", bomb.len());
    }
}

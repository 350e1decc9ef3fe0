//! Headers, records and the builder of batches, and the edits in place.

use super::*;
use crate::compression::Codec;

/// A header of distinct values, with the checksum of an empty batch.
fn sample() -> Vec<u8> {
    let header = BatchHeader {
        base_offset: 0x0102_0304_0506_0708,
        batch_length: 49,
        partition_leader_epoch: 7,
        magic: 2,
        crc: 0,
        attributes: 0x14,
        last_offset_delta: 2,
        base_timestamp: 1_600_000_000_000,
        max_timestamp: 1_600_000_000_001,
        producer_id: 5,
        producer_epoch: 6,
        base_sequence: i32::MAX - 1,
        record_count: 3,
    };
    let mut bytes = header.encode().to_vec();
    let crc = header::crc_of(&bytes);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

#[test]
fn header_fields() {
    let bytes = sample();
    let header = BatchHeader::parse(&bytes).expect("a header");
    assert_eq!(header.encode().as_slice(), bytes);
    assert_eq!(header.total_size(), 61);
    assert_eq!(header.last_offset(), header.base_offset + 2);
    assert_eq!(header.next_offset(), header.base_offset + 3);
    assert_eq!(header.codec().expect("a codec"), Codec::Zstd);
    assert!(header.is_transactional() && !header.is_control());
    assert!(!header.is_log_append_time() && !header.has_delete_horizon());
    assert_eq!(header.last_sequence(), 0);
    assert!(crc_matches(&bytes));
}

#[test]
fn header_refusals() {
    let check = |at: usize, value: &[u8], want: &str| {
        let mut bytes = sample();
        bytes[at..at + value.len()].copy_from_slice(value);
        let got = BatchHeader::parse(&bytes).err().map(|e| e.to_string());
        assert_eq!(got.as_deref(), Some(want));
    };
    check(16, &[1], "magic 1 is not 2");
    check(16, &[0xff], "magic -1 is not 2");
    check(8, &48i32.to_be_bytes(), "length field 48 does not cover the header");
    check(8, &(-1i32).to_be_bytes(), "length field -1 does not cover the header");
    for len in 0..61 {
        assert!(BatchHeader::parse(&sample()[..len]).is_err());
        assert!(!crc_matches(&sample()[..len]));
    }
}

#[test]
fn sequences_wrap_to_zero() {
    for (base, by, want) in [
        (0, 0, 0),
        (0, 4, 4),
        (i32::MAX, 0, i32::MAX),
        (i32::MAX, 1, 0),
        (i32::MAX - 1, 3, 1),
        (i32::MAX, i32::MAX, i32::MAX - 1),
    ] {
        assert_eq!(add_sequence(base, by), want);
    }
}

#[test]
fn assigning_leaves_the_checksum_alone() {
    let mut bytes = sample();
    let before = BatchHeader::parse(&bytes).expect("a header");
    assign(&mut bytes, 99, 3);
    let after = BatchHeader::parse(&bytes).expect("a header");
    assert_eq!(after, BatchHeader { base_offset: 99, partition_leader_epoch: 3, ..before });
    assert!(crc_matches(&bytes));
}

#[test]
fn times_go_in_with_a_new_checksum() {
    let mut bytes = sample();
    let before = BatchHeader::parse(&bytes).expect("a header");
    set_append_time(&mut bytes, 1_700_000_000_000);
    let after = BatchHeader::parse(&bytes).expect("a header");
    assert!(after.is_log_append_time() && crc_matches(&bytes));
    assert_eq!(after.max_timestamp, 1_700_000_000_000);
    correct_header(&mut bytes, before.max_timestamp);
    assert_eq!(bytes, sample());
    // Nothing to correct: not even a wrong checksum is touched.
    bytes[20] ^= 1;
    let wrong = bytes.clone();
    correct_header(&mut bytes, before.max_timestamp);
    assert_eq!(bytes, wrong);
}

#[test]
fn batches_end_before_a_torn_tail() {
    let mut bytes = [sample(), sample()].concat();
    assert_eq!(batches(&bytes).filter(|b| b.is_ok()).count(), 2);
    bytes.extend_from_slice(&sample()[..60]);
    assert_eq!(batches(&bytes).count(), 2);
    bytes.push(0xff);
    bytes[61 + 16] = 9;
    let seen: Vec<bool> = batches(&bytes).map(|b| b.is_ok()).collect();
    assert_eq!(seen, [true, false]);
}

#[test]
fn built_records_read_back() {
    for codec in Codec::ALL {
        let mut builder = BatchBuilder::new(40, codec).producer(5, 1, 7, true).leader_epoch(3);
        builder.append(1_000, Some(b"k"), Some(b"v"), &[("h", None), ("h", Some(b""))]);
        builder.append(999, None, None, &[]);
        builder.append(1_002, Some(b""), Some(b""), &[("", Some(b"x"))]);
        assert_eq!(builder.len(), 3);
        let bytes = builder.build();
        assert!(crc_matches(&bytes), "{codec}");
        let mut scratch = Vec::new();
        let (header, iter) = records(&bytes, &mut scratch, 1_000).expect("records");
        assert_eq!((header.base_offset, header.last_offset_delta, header.record_count), (40, 2, 3));
        assert_eq!((header.base_timestamp, header.max_timestamp), (1_000, 1_002));
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (5, 1, 7));
        assert_eq!((header.partition_leader_epoch, header.total_size()), (3, bytes.len()));
        assert!(header.is_transactional());
        let all: Vec<Record<'_>> = iter.map(|record| record.expect("a record")).collect();
        let parts: Vec<_> = all
            .iter()
            .map(|r| {
                (r.offset_delta, r.timestamp(&header), r.key, r.value, r.headers.clone().count())
            })
            .collect();
        assert_eq!(
            parts,
            [
                (0, 1_000, Some(&b"k"[..]), Some(&b"v"[..]), 2),
                (1, 999, None, None, 0),
                (2, 1_002, Some(&b""[..]), Some(&b""[..]), 1),
            ]
        );
        let headers: Vec<_> = all[0].headers.clone().collect();
        assert_eq!(headers, [(&b"h"[..], None), (&b"h"[..], Some(&b""[..]))]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

// The bytes that Kafka 4.4.0's own writer makes of the same records.

fn built(builder: BatchBuilder) -> Vec<u8> {
    let mut builder = builder.leader_epoch(3);
    builder.append(1_000, Some(b"k"), Some(b"v"), &[("h", None), ("h", Some(b""))]);
    builder.append(999, None, None, &[]);
    builder.append(1_002, Some(b""), Some(&[0; 300]), &[]);
    builder.build().to_vec()
}

#[test]
fn plain_batches_are_built_as_kafka_does() {
    let check = |builder: BatchBuilder, want: &str| assert_eq!(hex(&built(builder)), want);
    check(
        BatchBuilder::new(40, Codec::None).producer(-1, -1, 0, false),
        &format!(
            "00000000000000280000017c00000003026be8df6300000000000200000000000003e80000000000\
             0003eaffffffffffffffffffff00000000000000031c000000026b0276040268010268000c000102\
             010100e60400040400d804{}",
            "00".repeat(301)
        ),
    );
    check(
        BatchBuilder::new(40, Codec::None).producer(5, 1, 7, true),
        &format!(
            "00000000000000280000017c0000000302456a638100100000000200000000000003e80000000000\
             0003ea0000000000000005000100000007000000031c000000026b0276040268010268000c000102\
             010100e60400040400d804{}",
            "00".repeat(301)
        ),
    );
    check(
        BatchBuilder::new(40, Codec::None).log_append_time(5_555),
        &format!(
            "00000000000000280000017c000000030286e62e6900080000000200000000000003e80000000000\
             0015b3ffffffffffffffffffffffffffff000000031c000000026b0276040268010268000c000102\
             010100e60400040400d804{}",
            "00".repeat(301)
        ),
    );
}

/// gzip and zstd are compared unpacked: of these the compressors differ.
#[test]
fn compressed_batches_are_built_as_kafka_does() {
    let check = |builder: BatchBuilder, want: &str| assert_eq!(hex(&built(builder)), want);
    let check_content = |codec: Codec, want: &str| {
        let content = |batch: &[u8]| {
            assert!(crc_matches(batch));
            let header = BatchHeader::parse(batch).expect("a header");
            let mut records = Vec::new();
            codec.decompress(&batch[HEADER_LEN..], 1_000, &mut records).expect("readable");
            (BatchHeader { batch_length: 0, crc: 0, ..header }, records)
        };
        assert_eq!(content(&built(BatchBuilder::new(40, codec))), content(&unhex(want)));
    };
    check(
        BatchBuilder::new(40, Codec::Lz4),
        "00000000000000280000006b0000000302b235373900030000000200000000000003e80000000000\
             0003eaffffffffffffffffffffffffffff0000000304224d186040822b000000ff101c000000026b\
             0276040268010268000c000102010100e60400040400d804000100ff1550000000000000000000",
    );
    check(
        BatchBuilder::new(40, Codec::Snappy),
        "0000000000000028000000760000000302a936d19a00020000000200000000000003e80000000000\
             0003eaffffffffffffffffffffffffffff0000000382534e41505059000000000100000001000000\
             31cb02781c000000026b0276040268010268000c000102010100e60400040400d80400fe0100fe01\
             00fe0100fe0100ae0100",
    );
    check_content(
        Codec::Gzip,
        "000000000000002800000067000000030227ec476b00010000000200000000000003e80000000000\
             0003eaffffffffffffffffffffffffffff000000031f8b08000000000000ff9361606060ca662a63\
             61ca6064ca60e061606462646478c6c2c0c2c27083856114100f0012fcea204b010000",
    );
    check_content(
        Codec::Zstd,
        "000000000000002800000063000000030247b76f6000040000000200000000000003e80000000000\
             0003eaffffffffffffffffffffffffffff0000000328b52ffd0058340100f81c000000026b027604\
             0268010268000c000102010100e60400040400d804000100a7a8c009010000",
    );
}

#[test]
fn markers_are_built_as_kafka_does() {
    let mut marker = BatchBuilder::new(9, Codec::None).producer(5, 2, -1, true).control();
    let key = control_key(ControlType::Commit);
    marker.append(777, Some(&key), Some(&end_txn_value(4)), &[]);
    let marker = marker.leader_epoch(3).build();
    assert_eq!(
        hex(&marker),
        "000000000000000900000042000000030258aa262100300000000000000000000003090000000000\
             00030900000000000000050002ffffffff000000012000000008000000010c00000000000400"
    );
    let mut scratch = Vec::new();
    let (header, mut iter) = records(&marker, &mut scratch, 0).expect("readable");
    let record = iter.next().expect("one").expect("readable");
    assert!(header.is_control() && header.is_transactional());
    assert_eq!(record.key.and_then(ControlType::parse), Some(ControlType::Commit));
}

#[test]
fn control_types_read_back() {
    for (number, kind) in (0i16..).zip([
        ControlType::Abort,
        ControlType::Commit,
        ControlType::LeaderChange,
        ControlType::SnapshotHeader,
        ControlType::SnapshotFooter,
        ControlType::KraftVersion,
        ControlType::KraftVoters,
    ]) {
        assert_eq!(kind as i16, number);
        assert_eq!(ControlType::parse(&control_key(kind)), Some(kind));
    }
    for bad in [&[0, 0, 0, 7][..], &[0, 0, 0], &[0xff, 0xff, 0, 0], &[]] {
        assert_eq!(ControlType::parse(bad), None);
    }
    assert_eq!(ControlType::parse(&[0, 1, 0, 1, 9]), Some(ControlType::Commit));
}

#[test]
fn reading_stops_at_limits_and_lies() {
    let mut builder = BatchBuilder::new(0, Codec::Zstd);
    builder.append(0, None, Some(&[0; 10_000]), &[]);
    let bytes = builder.build();
    let mut scratch = Vec::new();
    let got = records(&bytes, &mut scratch, 9_999).map(|_| ());
    assert_eq!(got, Err(BatchError::Compression(CompressionError::TooLarge { limit: 9_999 })));
    for len in 0..bytes.len() {
        let got = records(&bytes[..len], &mut scratch, 20_000).map(|_| ());
        assert!(matches!(got, Err(BatchError::Truncated { .. })));
    }
    // Counts that the bytes do not bear out: too many end in an error, none is none.
    let payload = [12, 0, 0, 0, 1, 1, 0];
    let payload = [&payload[..], &payload].concat();
    let seen = |count: i32| -> Vec<bool> {
        RecordIter::new(&payload, count).map(|record| record.is_ok()).collect()
    };
    assert_eq!(seen(i32::MAX), [true, true, false]);
    assert_eq!(seen(2), [true, true]);
    assert_eq!(seen(1), [false]);
    assert_eq!(seen(0), []);
    assert_eq!(seen(-1), []);
}

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

//! What Kafka 4.4's parser takes and refuses, case by case. Random bodies are in `tests/`.

use super::*;
use crate::wire::put_uvarint;
use bytes::BytesMut;

/// Metadata v12: `topics` as given, then both flags and no tags.
fn metadata(topics: &[u8]) -> Vec<u8> {
    [topics, &[1, 0, 0]].concat()
}

/// Wants (odd, surplus bytes).
#[track_caller]
fn check(key: i16, version: i16, body: &[u8], want: Result<(bool, usize), Malformed>) {
    let got = check_request(key, version, body);
    let want = want.map_err(ShapeError::Malformed);
    assert_eq!(got.map(|shape| (shape.odd, body.len() - shape.len)), want);
}

#[test]
fn plain_bodies() {
    check(3, 0, &[0, 0, 0, 0], Ok((false, 0)));
    check(3, 1, &[0xff, 0xff, 0xff, 0xff], Ok((false, 0)));
    check(3, 12, &metadata(&[0]), Ok((false, 0)));
    check(18, 0, &[], Ok((false, 0)));
}

#[test]
fn what_the_parser_lets_through() {
    // Bytes behind the body.
    check(18, 0, &[1, 2, 3], Ok((false, 3)));
    check(3, 12, &[metadata(&[0]), vec![9; 5]].concat(), Ok((false, 5)));
    // Any negative count or length as null.
    check(3, 1, &[0xff, 0xff, 0xff, 0xfe], Ok((true, 0)));
    check(3, 12, &metadata(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok((true, 0)));
    // Any byte as a bool.
    check(3, 12, &[0, 7, 0x80, 0], Ok((false, 0)));
    // Unknown tags, doubled and out of order.
    check(3, 12, &[0, 1, 0, 3, 9, 0, 9, 0, 4, 1, 9], Ok((true, 0)));
    // Text that is not UTF-8.
    check(3, 0, &[0, 0, 0, 1, 0, 2, 0xc3, 0x28], Ok((true, 0)));
    // A tag section of a negative number of tags.
    check(3, 12, &[0, 1, 0, 0x80, 0x80, 0x80, 0x80, 8], Ok((true, 0)));
}

#[test]
fn what_the_parser_refuses() {
    check(3, 0, &[0xff, 0xff, 0xff, 0xff], Err(Malformed::Null { at: 0 }));
    check(3, 0, &[0, 0, 0, 1, 0xff, 0xff], Err(Malformed::Null { at: 4 }));
    check(3, 12, &[0, 1, 0], Err(Malformed::Truncated { at: 3 }));
    check(3, 12, &[0, 1, 0, 1, 9, 2, 0], Err(Malformed::Truncated { at: 6 }));
    check(3, 12, &[0x80; 6], Err(Malformed::Varint { at: 0 }));
    let name = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0x80, 2];
    let body = [&name[..], &[b'a'; 0x8000], &[0, 1, 0, 0]].concat();
    check(3, 12, &body, Err(Malformed::LongString { at: 17, len: 0x8000 }));
}

#[test]
fn the_size_of_a_known_tag_is_not_looked_at() {
    // Fetch v18, no topics, tag 0 (cluster id "c") with a wrong size.
    let body = |size: u8| {
        let mut body = vec![0; 21];
        body.extend([1, 1, 1, 1, 0, size, 2, b'c']);
        body
    };
    for size in [0, 2, 100] {
        check(1, 18, &body(size), Ok((false, 0)));
    }
}

#[test]
fn known_tags_belong_to_their_versions() {
    // Replica state (tag 1) came with Fetch v15; 12 has the cluster id (tag 0) only.
    let body = |version: i16, tag: u8| {
        let mut body = vec![0; if version < 15 { 25 } else { 21 }];
        body.extend([1, 1, 1, 1, tag, 13]);
        body.extend([0; 13]);
        body
    };
    check(1, 15, &body(15, 1), Ok((false, 0)));
    check(1, 12, &body(12, 1), Err(Malformed::Tag { at: 30, tag: 1 }));
    check(1, 12, &body(12, 2), Ok((true, 0)));
}

#[test]
fn unknown_apis_and_versions() {
    assert_eq!(check_request(4, 0, &[]), Err(ShapeError::UnknownApi(4)));
    let unsupported = Err(ShapeError::UnsupportedVersion { key: 0, version: 2 });
    assert_eq!(check_request(0, 2, &[]), unsupported);
}

#[test]
fn memory_is_bounded() {
    let mut body = BytesMut::new();
    put_uvarint(&mut body, 4_000_001);
    body.resize(body.len() + 40_000_000, 0);
    // DescribeConfigs v4: millions of empty resources.
    check(32, 4, &body, Err(Malformed::TooMuch));
}

#[test]
fn bodies_are_not_copied_without_need() {
    let body = Bytes::from([metadata(&[0]), vec![9; 5]].concat());
    let same = request_body(3, 12, &body).expect("well formed");
    assert_eq!(same.as_ptr(), body.as_ptr());
    assert_eq!(same.len(), body.len() - 5);
    let body = Bytes::from([&[0, 1, 0, 3, 9, 0, 9, 0, 4, 1, 9][..], b"surplus"].concat());
    let canonical = request_body(3, 12, &body).expect("well formed");
    assert_eq!(canonical.as_ref(), metadata(&[0]));
}

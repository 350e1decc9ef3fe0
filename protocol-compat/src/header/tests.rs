//! Headers, byte by byte.

use super::*;

/// Key, version, correlation id 7, then `rest`; wants client id and where the body starts.
#[track_caller]
fn check(key: i16, version: i16, rest: &[u8], want: Result<(Option<&str>, usize), HeaderError>) {
    let frame = [&key.to_be_bytes()[..], &version.to_be_bytes(), &[0, 0, 0, 7], rest].concat();
    let got = RequestHeader::parse(&frame);
    let got = got.as_ref().map(|header| (header.client_id.as_deref(), header.body_start));
    assert_eq!(got, want.as_ref().copied());
}

#[test]
fn both_forms() {
    // Produce v3 has the old header, v9 the flexible one: with tags, but the old client id.
    check(0, 3, &[0, 2, b'm', b'e', 99], Ok((Some("me"), 12)));
    check(0, 9, &[0, 2, b'm', b'e', 0, 99], Ok((Some("me"), 13)));
    check(0, 9, &[0xff, 0xff, 1, 5, 2, 9, 9, 99], Ok((None, 15)));
    check(0, 9, &[0, 0, 0], Ok((Some(""), 11)));
    check(0, 3, &[0x80, 0], Ok((None, 10)));
    check(0, 3, &[0, 1, 0xff], Ok((Some("\u{fffd}"), 11)));
}

#[test]
fn what_is_refused() {
    check(0, 9, &[0, 2, b'm', b'e'], Err(Malformed::Truncated { at: 12 }.into()));
    check(0, 3, &[0, 5, b'm', b'e'], Err(Malformed::Truncated { at: 10 }.into()));
    check(0, 9, &[0, 0, 2, 1, 0], Err(Malformed::Truncated { at: 13 }.into()));
    for (key, version) in [(0, 2), (0, 14), (0, -1), (22, 6), (3, 99)] {
        check(key, version, &[0, 0, 0], Err(HeaderError::UnsupportedVersion { key, version }));
    }
    for key in [4, 7, 95, -1, i16::MAX] {
        check(key, 0, &[0, 0, 0], Err(HeaderError::UnknownApi(key)));
    }
}

#[test]
fn api_versions_is_read_in_any_version() {
    check(18, 0, &[0, 1, b'c'], Ok((Some("c"), 11)));
    check(18, 3, &[0, 1, b'c', 0], Ok((Some("c"), 12)));
    check(18, 99, &[0, 1, b'c', 0], Ok((Some("c"), 12)));
    check(18, 99, &[0, 1, b'c'], Err(Malformed::Truncated { at: 11 }.into()));
    check(18, -1, &[0, 1, b'c'], Ok((Some("c"), 11)));
    let unsupported = |version: i16| {
        let frame = [&[0, 18][..], &version.to_be_bytes(), &[0, 0, 0, 7, 0, 0, 0]].concat();
        RequestHeader::parse(&frame).expect("parses").is_unsupported()
    };
    assert!(!unsupported(5));
    assert!(unsupported(6));
    assert!(unsupported(-1));
}

#[test]
fn response_headers() {
    for (key, version, want) in [
        (0, 8, &[0, 0, 0, 7][..]),
        (0, 9, &[0, 0, 0, 7, 0]),
        (17, 1, &[0, 0, 0, 7]),
        (18, 4, &[0, 0, 0, 7]),
        (94, 0, &[0, 0, 0, 7, 0]),
    ] {
        let mut out = BytesMut::new();
        put_response_header(&mut out, key, version, 7);
        assert_eq!(out.as_ref(), want);
        assert_eq!(response_header_len(key, version), want.len());
    }
}

//! Primitives against bytes written by hand; texts as Java's `new String(bytes, UTF_8)` has them.

use super::*;

#[test]
fn varints_go_there_and_back() {
    for value in [0, 1, 127, 128, 300, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000, 0xfff_ffff, u32::MAX] {
        let mut out = BytesMut::new();
        put_uvarint(&mut out, value);
        assert_eq!(out.len(), uvarint_len(value), "{value}");
        let mut reader = Reader::new(&out);
        assert_eq!(reader.uvarint(), Ok(value));
        assert_eq!(reader.remaining(), 0);
    }
}

#[test]
fn varints_as_java_reads_them() {
    let read = |bytes: &[u8]| Reader::new(bytes).uvarint();
    // Longer than needed is fine, the bits above 32 are dropped, a sixth byte is not.
    assert_eq!(read(&[0x81, 0x80, 0]), Ok(1));
    assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x7f]), Ok(0xf000_0000));
    assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]), Err(Malformed::Varint { at: 0 }));
    assert_eq!(read(&[0x80, 0x80]), Err(Malformed::Truncated { at: 2 }));
    assert_eq!(read(&[]), Err(Malformed::Truncated { at: 0 }));
}

#[test]
fn texts_are_javas() {
    let check = |bytes: &[u8], want: &str| assert_eq!(text(bytes), want, "{bytes:02x?}");
    check("é→😀".as_bytes(), "é→😀");
    check(b"a\xffb", "a\u{fffd}b");
    check(b"a\xc3", "a\u{fffd}");
    check(b"\xe2\x86x", "\u{fffd}x");
    check(b"\xf0\x9f\x98", "\u{fffd}");
    check(b"\xc0\x80", "\u{fffd}\u{fffd}");
    check(b"\xe0\x80\x80", "\u{fffd}\u{fffd}\u{fffd}");
    // A surrogate is one character to Java, three to Rust.
    check(b"x\xed\xa0\x80y\xed\xbf\xbfz", "x\u{fffd}y\u{fffd}z");
    check(b"\xed\xa0", "\u{fffd}\u{fffd}");
}

#[test]
fn strings_too_long_are_cut_at_a_character() {
    let long = "é".repeat(20_000);
    for flexible in [false, true] {
        let mut out = BytesMut::new();
        put_string(&mut out, flexible, &long);
        let mut reader = Reader::new(&out);
        let read = reader.string(flexible).expect("fits");
        assert_eq!((read.len(), reader.remaining()), (STRING_MAX - 1, 0));
        assert!(std::str::from_utf8(read).is_ok());
    }
}

#[test]
fn nulls_and_lengths() {
    for flexible in [false, true] {
        let mut out = BytesMut::new();
        put_nullable_string(&mut out, flexible, None);
        put_nullable_bytes(&mut out, flexible, None);
        put_nullable_bytes(&mut out, flexible, Some(&[7; 200]));
        put_len(&mut out, flexible, Some(3));
        out.put_slice(&[1, 2, 3]);
        let mut reader = Reader::new(&out);
        assert_eq!(reader.nullable_string(flexible), Ok(None));
        assert_eq!(reader.nullable_bytes(flexible), Ok(None));
        assert_eq!(reader.bytes(flexible), Ok(&[7; 200][..]));
        assert_eq!(reader.clone().count(flexible, 1), Ok(3));
        assert!(matches!(reader.count(flexible, 2), Err(Malformed::Count { count: 3, .. })));
    }
}

//! The journal's bytes are a promise; and whatever is not ours is refused.

use super::*;
use proptest::prelude::*;

const STAMP: Stamp = Stamp { secret: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10, incarnation: 7 };

fn key() -> SegmentKey {
    SegmentKey { dir: "t-1".to_owned(), base_offset: 9 }
}

fn sample() -> Vec<u8> {
    let mut group = GroupBuilder::new(vec![1; 10]);
    let topic_id = Uuid::from_u128(3);
    group.put_bytes(&key(), topic_id, 300, Context::of(6, b"before"), 4).copy_from_slice(b"data");
    let mark = group.mark();
    group.put_bytes(&key(), topic_id, 0, Context::of(0, b""), 100);
    group.back_to(mark);
    group.put_void(&key());
    group.seal(STAMP, 5, 2)
}

#[test]
fn bytes_never_change() {
    let superblock = Superblock { stamp: STAMP, size: 16 << 20 }.encode();
    assert_eq!(superblock.len(), SUPERBLOCK_LEN);
    assert!(superblock.ends_with(&0xf33b_7f22_u32.to_be_bytes()));
    let head = b"GRJSUPER\0\0\0\x01\0\0\0\0\
        \x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\
        \0\0\0\0\0\0\0\x07\0\0\0\0\x01\0\0\0";
    assert!(superblock.starts_with(head));
    let group = sample();
    assert_eq!(group.len(), BLOCK as usize);
    let head = b"GRJGROUP\
        \x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\
        \0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x02\0\0\0\x6a\0\0\0\x02";
    assert!(group.starts_with(head));
    let item = b"\x01\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x09\
        \0\0\0\0\0\0\x01\x2c\0\0\0\x04\0\0\0\x06\xed\x96\x84\xa2t-1data";
    assert_eq!(group.get(GROUP_HEADER_LEN..GROUP_HEADER_LEN + item.len()).unwrap(), item);
}

#[test]
fn what_is_written_is_read() {
    let superblock = Superblock { stamp: STAMP, size: 1 << 20 };
    assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock));
    let group = sample();
    let header = GroupHeader::decode(&group, STAMP).unwrap();
    assert_eq!((header.sequence, header.needed_from, header.items), (5, 2, 2));
    let payload = &group[GROUP_HEADER_LEN..][..header.payload_len as usize];
    assert!(header.payload_is_whole(payload));
    let context = Context::of(6, b"before");
    let bytes = Change::Bytes { position: 300, context, bytes: b"data" };
    let want = [
        Item { key: key(), topic_id: Uuid::from_u128(3), change: bytes },
        Item { key: key(), topic_id: Uuid::nil(), change: Change::Void },
    ];
    assert_eq!(items(payload, 2), want);
    assert_eq!(items(payload, 1), want[..1]);
}

#[test]
fn only_this_incarnation_counts() {
    let group = sample();
    for stamp in [Stamp { secret: 1, ..STAMP }, Stamp { incarnation: 8, ..STAMP }] {
        assert_eq!(GroupHeader::decode(&group, stamp), None);
    }
}

#[test]
fn every_flipped_byte_is_noticed() {
    let (superblock, group) = (Superblock { stamp: STAMP, size: 1 << 20 }.encode(), sample());
    for at in 0..SUPERBLOCK_LEN {
        let mut bytes = superblock.clone();
        bytes[at] ^= 0x40;
        assert_eq!(Superblock::decode(&bytes), Err(BadSuperblock::Damaged), "byte {at}");
    }
    for at in 0..GROUP_HEADER_LEN + 0x6a {
        let mut bytes = group.clone();
        bytes[at] ^= 1;
        let whole = GroupHeader::decode(&bytes, STAMP).is_some_and(|header| {
            header.payload_is_whole(&bytes[GROUP_HEADER_LEN..][..header.payload_len as usize])
        });
        assert!(!whole, "byte {at}");
    }
}

#[test]
fn a_newer_superblock_says_so() {
    let mut bytes = Superblock { stamp: STAMP, size: 1 << 20 }.encode();
    bytes[11] = 2;
    let crc = crc32c::crc32c(&bytes[..SUPERBLOCK_LEN - 4]);
    bytes[SUPERBLOCK_LEN - 4..].copy_from_slice(&crc.to_be_bytes());
    assert_eq!(Superblock::decode(&bytes), Err(BadSuperblock::TooNew(2)));
    assert_eq!(Superblock::decode(&bytes[..100]), Err(BadSuperblock::Damaged));
}

#[test]
fn only_segments_of_partitions_have_keys() {
    let check = |path: &str, want: Option<(&str, i64)>| {
        let key = SegmentKey::of_path(Path::new("/data"), Path::new(path));
        let parts = key.as_ref().map(|key| (key.dir.as_str(), key.base_offset));
        assert_eq!(parts, want);
        if let Some(key) = key {
            assert_eq!(key.path(Path::new("/data")), Path::new(path));
        }
    };
    check("/data/a-b-0/00000000000000000042.log", Some(("a-b-0", 42)));
    check("/data/a-0/00000000000000000042.index", None);
    check("/data/a-0/42.log", None);
    check("/data/a-0/-0000000000000000042.log", None);
    check("/data/a-0/99999999999999999999.log", None);
    check("/data/a-0.0123-delete/00000000000000000042.log", None);
    check("/data/a-0/x/00000000000000000042.log", None);
    check("/data/../a-0/00000000000000000042.log", None);
    check("/other/a-0/00000000000000000042.log", None);
    check("/data/00000000000000000042.log", None);
}

proptest! {
    #[test]
    fn any_payload_is_survived(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        count in 0u32..9,
    ) {
        let _ = items(&bytes, count);
    }

    /// A payload that is almost right reaches every branch of the parser.
    #[test]
    fn a_damaged_payload_is_survived(at in 0usize..0x6a, byte: u8, count: u32) {
        let mut payload = sample()[GROUP_HEADER_LEN..][..0x6a].to_vec();
        payload[at] = byte;
        for item in items(&payload, count.min(1000)) {
            prop_assert!(item.key.is_sound());
        }
    }
}

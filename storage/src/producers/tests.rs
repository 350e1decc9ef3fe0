//! Sequences and epochs of producers, their expiry and their snapshots.

use proptest::prelude::*;

use super::*;

const MAX: i32 = i32::MAX;

/// A batch of `count` records; transactional with `txn`.
fn header(id: i64, epoch: i16, sequence: i32, count: i32, offset: i64, txn: bool) -> BatchHeader {
    BatchHeader {
        base_offset: offset,
        batch_length: 100,
        partition_leader_epoch: 0,
        magic: 2,
        crc: 0,
        attributes: if txn { protocol_compat::batch::TRANSACTIONAL } else { 0 },
        last_offset_delta: count - 1,
        base_timestamp: 0,
        max_timestamp: 1000 + offset,
        producer_id: id,
        producer_epoch: epoch,
        base_sequence: sequence,
        record_count: count,
    }
}

/// Sends batches of a producer one after the other; each is `epoch/sequence+count=answer`, where
/// the answer is `ok`, `dup`, or the refusal's first word.
#[track_caller]
fn check(script: &str) {
    let (mut producers, mut offset) = (Producers::default(), 0);
    for step in script.split_whitespace() {
        let (batch, want) = step.split_once('=').expect("batch=answer");
        let (epoch, rest) = batch.split_once('/').expect("epoch/..");
        let (sequence, count) = rest.split_once('+').expect("sequence+count");
        let sequence = match sequence.strip_prefix("max") {
            Some("") => MAX,
            Some(less) => MAX + less.parse::<i32>().expect("max-n"),
            None => sequence.parse().expect("a sequence"),
        };
        let count: i32 = count.parse().expect("a count");
        let header = header(1, epoch.parse().expect("an epoch"), sequence, count, offset, false);
        let got = match producers.check(&header, Origin::Client) {
            Ok(None) => "ok",
            Ok(Some(_)) => "dup",
            Err(AppendError::OutOfOrderSequence { .. }) => "order",
            Err(AppendError::InvalidProducerEpoch { .. }) => "epoch",
            Err(other) => panic!("{other}"),
        };
        assert_eq!(got, want, "{step} of {script}");
        if got == "ok" {
            producers.note(&header, None);
            offset += i64::from(count);
        }
    }
}

#[test]
fn sequences() {
    check("0/0+5=ok 0/5+1=ok 0/7+1=order 0/6+1=ok");
    // Nothing is known of a producer: any sequence may be the first.
    check("0/77+3=ok 0/80+1=ok 0/0+1=order");
    check("3/77+3=ok 3/0+1=order");
    // A new epoch begins with 0; an old one is fenced.
    check("0/0+5=ok 1/5+1=order 1/0+1=ok 0/5+1=epoch 1/1+1=ok");
    check("1/0+1=ok 0/1+1=epoch 0/0+1=epoch");
    // Without an epoch, as good as unknown.
    check("-1/5+1=ok -1/9+1=ok 0/3+1=ok 0/4+1=ok 0/9+1=order");
}

#[test]
fn sequences_wrap() {
    check("0/max-7+5=ok 0/max-2+5=ok 0/2+1=ok 0/3+1=ok");
    check("0/max-1+1=ok 0/0+1=order 0/max+1=ok 0/0+1=ok 0/max-1+1=dup 0/max+1=dup");
    check("0/max-2+3=ok 0/0+1=ok");
    check("0/max-2+5=ok 0/max-2+5=dup 0/2+1=ok");
}

#[test]
fn window_of_five() {
    check("0/0+1=ok 0/1+1=ok 0/2+1=ok 0/3+1=ok 0/4+1=ok 0/0+1=dup 0/4+1=dup 0/2+1=dup");
    check("0/0+1=ok 0/1+1=ok 0/2+1=ok 0/3+1=ok 0/4+1=ok 0/5+1=ok 0/0+1=order 0/1+1=dup");
    // Only the exact batch is a duplicate.
    check("0/0+4=ok 0/0+3=order 0/1+3=order 0/0+5=order 0/0+4=dup");
    // A new epoch has its own window.
    check("0/0+1=ok 1/0+1=ok 1/0+1=dup 0/0+1=epoch");
}

#[test]
fn coordinators_skip_sequences_not_epochs() {
    let mut producers = Producers::default();
    let mut at = |epoch: i16, offset: i64| {
        let header = header(1, epoch, -1, 1, offset, true);
        producers.check(&header, Origin::Coordinator).map(|_| producers.note(&header, None))
    };
    assert!(at(3, 0).is_ok() && at(3, 1).is_ok() && at(4, 2).is_ok());
    assert!(matches!(at(3, 3), Err(AppendError::InvalidProducerEpoch { current: 4, got: 3, .. })));
}

#[test]
fn transactions() {
    let marker = |abort| Marker { abort, coordinator_epoch: 5 };
    let mut producers = Producers::default();
    let first = header(1, 0, 0, 2, 0, true);
    assert!(producers.check(&first, Origin::Client).is_err(), "not verified");
    assert_eq!(producers.check(&first, Origin::Verified).expect("verified"), None);
    producers.note(&first, None);
    producers.note(&header(2, 0, 0, 1, 2, true), None);
    let more = header(1, 0, 2, 1, 3, true);
    assert_eq!(producers.check(&more, Origin::Client).expect("open already"), None);
    producers.note(&more, None);
    assert!(producers.check(&header(1, 0, 3, 1, 4, false), Origin::Client).is_err());
    // An open transaction of an older epoch opens nothing for a newer one.
    assert!(producers.check(&header(1, 1, 0, 1, 4, true), Origin::Client).is_err());
    assert_eq!(producers.last_stable_offset(4), 0);
    producers.expire(i64::MAX, 0);
    assert_eq!(producers.len(), 2, "producers with an open transaction stay");

    let control = BatchHeader { attributes: 0x30, ..header(1, 0, -1, 1, 4, true) };
    producers.check_marker(&control, marker(true)).expect("a marker");
    let ended = producers.note(&control, Some(marker(true)));
    let want = CompletedTxn {
        producer_id: 1,
        first_offset: 0,
        last_offset: 4,
        aborted: true,
        last_stable_offset: 2,
    };
    assert_eq!(ended, Some(want));
    assert_eq!(producers.note(&control, Some(marker(true))), None, "nothing was open");
    let older = Marker { coordinator_epoch: 4, ..marker(true) };
    let fenced = producers.check_marker(&control, older);
    assert!(matches!(fenced, Err(AppendError::CoordinatorFenced { current: 5, got: 4, .. })));
    // Held back until the marker is below the high watermark.
    assert_eq!(producers.last_stable_offset(4), 0);
    assert_eq!(producers.last_stable_offset(5), 2);
    // A marker with a new epoch (KIP-890) ends the sequence as well.
    let bumped = BatchHeader { producer_epoch: 1, base_offset: 5, ..control };
    let bumped = BatchHeader { producer_id: 2, ..bumped };
    assert!(producers.note(&bumped, Some(marker(false))).is_some_and(|txn| !txn.aborted));
    assert_eq!(producers.last_stable_offset(9), 9);
    assert!(producers.check(&header(2, 1, 1, 1, 6, true), Origin::Verified).is_err());
    assert!(producers.check(&header(2, 1, 0, 1, 6, true), Origin::Verified).is_ok());
}

#[test]
fn expiry() {
    let mut producers = Producers::default();
    for id in 0..10 {
        producers.note(&header(id, 0, 0, 1, id, false), None);
    }
    // Last seen at 1000 to 1009.
    producers.expire(1104, 100);
    assert_eq!(producers.iter().map(|(id, _)| id).collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
}

#[test]
fn snapshot_bytes_never_change() {
    let empty = Producers::default().encode();
    assert_eq!(empty.len(), 10);
    assert_eq!(empty, [0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0]);
    let mut producers = Producers::default();
    producers.note(&header(0x0102, 3, 4, 2, 9, true), None);
    let bytes = producers.encode();
    let mut want = vec![0, 1];
    want.extend_from_slice(&bytes[2..6]);
    want.extend_from_slice(&[0, 0, 0, 1]);
    want.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 2, 0, 3, 0, 0, 0, 5]);
    want.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 1]);
    want.extend_from_slice(&[0, 0, 0, 0, 0, 0, 3, 0xf1]);
    want.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 9]);
    assert_eq!(bytes, want);
    assert_eq!(bytes[2..6], crc32c::crc32c(&bytes[6..]).to_be_bytes());
    // A window of more than one batch follows the entries.
    producers.note(&header(0x0102, 3, 6, 1, 11, true), None);
    let bytes = producers.encode();
    assert_eq!(&bytes[56..64], b"GRW1\0\0\0\x01");
    assert_eq!(bytes.len(), 64 + 9 + 24);
}

#[test]
fn damaged_snapshots_are_refused() {
    let mut producers = Producers::default();
    for offset in 0..20 {
        let sequence = (offset / 4) as i32;
        producers.note(&header(offset % 4, 0, sequence, 1, offset, false), None);
    }
    let bytes = producers.encode();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Producers::decode(&damaged, 0, 1).is_err(), "byte {at}");
        assert!(Producers::decode(&bytes[..at], 0, 1).is_err(), "cut at {at}");
    }
    // What Kafka writes, and what a newer version may write after it.
    let mut foreign = bytes[..10 + 4 * 46].to_vec();
    for extra in [&b""[..], b"x", b"GRW1", b"GRW2\0\0\0\x01"] {
        foreign.truncate(10 + 4 * 46);
        foreign.extend_from_slice(extra);
        let crc = crc32c::crc32c(&foreign[6..]);
        foreign[2..6].copy_from_slice(&crc.to_be_bytes());
        let read = Producers::decode(&foreign, 0, i64::MAX).expect("a snapshot");
        assert_eq!(read.get(0).map(|p| (p.last_sequence(), p.marks().len())), Some((4, 1)));
    }
    let mut newer = bytes.clone();
    newer[1] = 2;
    assert_eq!(Producers::decode(&newer, 0, 1), Err(SnapshotError::Version(2)));
    // A count that the bytes do not bear asks for nothing.
    let mut short = vec![0, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff];
    let crc = crc32c::crc32c(&short[6..]);
    short[2..6].copy_from_slice(&crc.to_be_bytes());
    assert_eq!(Producers::decode(&short, 0, 1), Err(SnapshotError::Short));
}

#[test]
fn expired_producers_are_not_read() {
    let mut producers = Producers::default();
    producers.note(&header(1, 0, 0, 1, 0, false), None);
    producers.note(&header(2, 0, 0, 1, 50, true), None);
    let read = Producers::decode(&producers.encode(), 1100, 100).expect("a snapshot");
    assert_eq!(read.iter().map(|(id, _)| id).collect::<Vec<_>>(), [2]);
    assert_eq!(read.open_transactions().into_iter().collect::<Vec<_>>(), [2]);
}

proptest! {
    /// A snapshot holds the whole state, but for ended transactions that wait for the watermark.
    #[test]
    fn snapshots_read_back(
        steps in prop::collection::vec((0..4i64, 0..3i16, any::<bool>()), 0..60),
    ) {
        let mut producers = Producers::default();
        for (at, (id, epoch, txn)) in steps.into_iter().enumerate() {
            let sequence = producers.get(id).map_or(0, |p| p.last_sequence().wrapping_add(1));
            producers.note(&header(id, epoch, sequence, 1, at as i64, txn), None);
        }
        let read = Producers::decode(&producers.encode(), 0, i64::MAX);
        prop_assert_eq!(read, Ok(producers));
    }
}

//! Tests of fetching: order, loss, damage, patience.

use super::*;

const ID: SnapshotId = SnapshotId { index: 9, term: 2 };

fn incoming(bytes: &[u8]) -> Incoming {
    let mut message = Message::default();
    let descriptor = Descriptor { size: bytes.len() as u64, crc: crc32c::crc32c(bytes) };
    message.mut_snapshot().data = descriptor.encode();
    message.mut_snapshot().mut_metadata().index = ID.index;
    message.mut_snapshot().mut_metadata().term = ID.term;
    Incoming::start(message).unwrap()
}

#[test]
fn chunks_are_taken_in_order_and_once() {
    let mut incoming = incoming(b"abcdef");
    assert_eq!(incoming.add(ID, 4, b"ef"), Added::Ignored); // Too early.
    assert_eq!(incoming.add(ID, 0, b"abcd"), Added::More);
    assert_eq!(incoming.add(ID, 0, b"abcd"), Added::Ignored); // Again.
    assert_eq!(incoming.add(SnapshotId { index: 8, term: 2 }, 4, b"ef"), Added::Ignored);
    assert_eq!(incoming.add(ID, 4, b""), Added::Ignored); // Would ask for ever.
    assert_eq!(incoming.add(ID, 4, b"ef"), Added::Complete);
    assert_eq!(&incoming.into_parts().2[..], b"abcdef");
}

#[test]
fn damage_is_seen_at_the_end_at_the_latest() {
    assert_eq!(incoming(b"abcdef").add(ID, 0, b"abcdeg"), Added::Damaged);
    assert_eq!(incoming(b"abcdef").add(ID, 0, b"abcdefg"), Added::Damaged);
    assert_eq!(incoming(b"").state(), Added::Complete);
}

#[test]
fn a_snapshot_beyond_the_bound_is_refused() {
    let mut message = Message::default();
    message.mut_snapshot().data = Descriptor { size: SNAPSHOT_BYTES_MAX + 1, crc: 0 }.encode();
    assert!(Incoming::start(message).is_err());
}

#[test]
fn a_follower_asks_again_and_then_gives_up() {
    let mut incoming = incoming(b"abcdef");
    let due: Vec<Due> = (0..6).map(|_| incoming.tick(2, 6)).collect();
    let (quiet, again) = (Due::Nothing, Due::AskAgain);
    assert_eq!(due, [quiet, again, quiet, again, quiet, Due::GiveUp]);
    incoming.add(ID, 0, b"a"); // Progress buys time.
    assert_eq!(incoming.tick(2, 6), Due::Nothing);
}

#[test]
fn a_leader_gives_up_idle_peers_and_forgets_those_that_moved_on() {
    let mut outgoing = Outgoing::default();
    let other = SnapshotId { index: 10, term: 2 };
    outgoing.start(1, ID);
    outgoing.start(2, other);
    outgoing.start(3, ID);
    assert_eq!(outgoing.indexes(), BTreeSet::from([9, 10]));
    assert_eq!(outgoing.tick(2, |peer| peer != 3), []);
    outgoing.touch(2, other);
    outgoing.touch(1, other); // Asks for another one: no sign of life for this.
    assert_eq!(outgoing.tick(2, |_| true), [1]);
    assert!(!outgoing.end(1, ID) && !outgoing.end(2, ID) && outgoing.end(2, other));
    assert!(outgoing.indexes().is_empty());
}

//! Tests of the bytes: what goes in comes out, nothing else is taken, and they never change.

use proptest::prelude::*;
use raft::eraftpb::ConfChangeType;

use super::*;

fn entry(index: u64, term: u64, data: &[u8]) -> Entry {
    let mut entry = Entry::default();
    entry.index = index;
    entry.term = term;
    entry.data = Bytes::copy_from_slice(data);
    entry
}

fn change(id: u64) -> Entry {
    let directory_id = Uuid::from_u128(9);
    let change = MemberChange { kind: ConfChangeType::AddNode, id, directory_id };
    let mut entry = entry(8, 3, &change.encode());
    entry.set_entry_type(EntryType::EntryConfChange);
    entry
}

fn message(kind: MessageType) -> Message {
    let mut message = Message::default();
    message.set_msg_type(kind);
    (message.from, message.to, message.term) = (1, 2, 3);
    message
}

fn append() -> Message {
    let mut append = message(MessageType::MsgAppend);
    (append.index, append.log_term, append.commit) = (6, 2, 5);
    append.entries = vec![entry(7, 3, b"ab"), change(300)].into();
    append
}

fn snapshot_message() -> Message {
    let mut message = message(MessageType::MsgSnapshot);
    let snapshot = message.mut_snapshot();
    snapshot.data = Descriptor { size: 1000, crc: 77 }.encode();
    let metadata = snapshot.mut_metadata();
    (metadata.index, metadata.term) = (5, 2);
    metadata.mut_conf_state().voters = vec![1, 2];
    metadata.mut_conf_state().learners = vec![3];
    message
}

fn frame(packet: Packet) -> Frame {
    Frame { from: 1, to: 2, directory_id: Uuid::from_u128(0xd1), packet }
}

fn raft_frame(message: Message) -> Frame {
    frame(Packet::Raft(Box::new(message)))
}

#[track_caller]
fn check_round_trip(frame: Frame) {
    let bytes = frame.encode();
    assert_eq!(Frame::decode(&bytes).as_ref(), Ok(&frame));
    for len in 0..bytes.len() {
        assert!(Frame::decode(&bytes[..len]).is_err(), "{len} bytes of {} taken", bytes.len());
    }
    assert!(Frame::decode(&[&bytes[..], &[0]].concat()).is_err(), "a surplus byte taken");
}

#[test]
fn frames_come_out_as_they_went_in() {
    for (_, kind) in RAFT_KINDS {
        let mut message = message(kind);
        match kind {
            MessageType::MsgAppend => message = append(),
            MessageType::MsgSnapshot => message = snapshot_message(),
            MessageType::MsgRequestVote => message.context = TRANSFER.into(),
            _ => (message.reject, message.reject_hint) = (true, 4),
        }
        check_round_trip(raft_frame(message));
    }
    let id = SnapshotId { index: 9, term: 2 };
    check_round_trip(frame(Packet::ChunkWanted(id, 512)));
    check_round_trip(frame(Packet::Chunk(id, 512, Bytes::from_static(b"bytes"))));
    check_round_trip(frame(Packet::ChunkRefused(id)));
    check_round_trip(frame(Packet::SnapshotEnded(id, true)));
}

/// Changes one byte of a frame and expects a refusal.
#[track_caller]
fn check_refused(frame: &Frame, at: usize, byte: u8) {
    let mut bytes = frame.encode();
    assert_ne!(bytes[at], byte);
    bytes[at] = byte;
    assert!(Frame::decode(&bytes).is_err(), "byte {at} = {byte} taken");
}

#[test]
fn what_no_honest_peer_sends_is_refused() {
    let append = raft_frame(append());
    check_refused(&append, 0, 2); // Frame version.
    check_refused(&append, 1, 9); // Kind.
    check_refused(&append, 9, 0); // From nobody.
    check_refused(&append, 2, 1); // From beyond any node id.
    check_refused(&append, 34, 11); // Message type.
    check_refused(&append, 35, 4); // Unknown flag.
    check_refused(&append, 35, 2); // Transfer on an append.
    check_refused(&append, 43, 0); // Term 0 is local.
    check_refused(&append, 36, 1); // A term beyond int32.
    check_refused(&append, 84 + 3, 255); // More entries than bytes.
    check_refused(&append, 88 + 8, 4); // Entry of a term later than the message's.
    check_refused(&append, 88 + 8, 1); // Entry of a term before the one it follows.
    check_refused(&append, 88 + 16, 9); // Entry that does not follow.
    let at_change = 88 + ENTRY_HEADER_LEN + 2;
    check_refused(&append, at_change, 2); // Entry type.
    check_refused(&append, at_change + ENTRY_HEADER_LEN, 0x11); // Not a member change.
    let snapshot = raft_frame(snapshot_message());
    check_refused(&snapshot, 84 + 7, 0); // Of index 0.
    check_refused(&snapshot, 92 + 7, 4); // Of a term later than the message's.
    check_refused(&snapshot, 100 + 3, 0); // Without voters: their bytes are left over.
    check_refused(&snapshot, 104 + 7, 2); // A voter twice.
    check_refused(&snapshot, 120 + 3 + 8, 1); // A voter who is also a learner.
}

#[test]
fn local_messages_do_not_travel() {
    let local = [
        MessageType::MsgHup,
        MessageType::MsgBeat,
        MessageType::MsgPropose,
        MessageType::MsgUnreachable,
        MessageType::MsgSnapStatus,
        MessageType::MsgCheckQuorum,
        MessageType::MsgTransferLeader,
        MessageType::MsgReadIndex,
        MessageType::MsgReadIndexResp,
    ];
    assert_eq!(local.len() + RAFT_KINDS.len(), 19); // All that raft-rs has.
    for kind in local {
        assert!(!travels(&message(kind)), "{kind:?}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn bytes_never_change() {
    let want = [
        "01 00 0000000000000001 0000000000000002 000000000000000000000000000000d1",
        "01 00 0000000000000003 0000000000000002 0000000000000006 0000000000000005",
        "0000000000000000 0000000000000000 00000002",
        "00 0000000000000003 0000000000000007 00000002 6162",
        "01 0000000000000003 0000000000000008 00000017",
        "1000 18ac02 2210 00000000000000000000000000000009",
    ];
    assert_eq!(hex(&raft_frame(append()).encode()), want.concat().replace(' ', ""));
    let mut hard = HardState::default();
    (hard.term, hard.vote, hard.commit) = (3, 1, 9);
    assert_eq!(hex(&hard.to_disk()), "01000000000000000300000000000000010000000000000009");
    let mut members = ConfState::default();
    (members.voters, members.learners) = (vec![1], vec![2]);
    let id = SnapshotId { index: 9, term: 3 };
    let descriptor = Descriptor { size: 5, crc: 6 };
    let stored = StoredSnapshot { id, descriptor, chunk_bytes: 4, members };
    let want = "01000000000000000900000000000000030000000000000005000000060000000\
                4000000010000000000000001000000010000000000000002";
    assert_eq!(hex(&stored.to_disk()), want);
    assert_eq!(StoredSnapshot::from_disk(&stored.to_disk()), Ok(stored));
}

#[test]
fn a_value_of_another_version_is_an_error() {
    let mut bytes = HardState::default().to_disk();
    bytes[0] = 2;
    assert!(HardState::from_disk(&bytes).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Frame::decode(&bytes);
        let _ = Entry::from_disk(&bytes);
        let _ = ConfState::from_disk(&bytes);
        let _ = StoredSnapshot::from_disk(&bytes);
        let _ = MemberChange::decode(&bytes);
    }

    /// What is taken after damage is still a frame that would be written so.
    #[test]
    fn damage_is_refused_or_harmless(at in 0usize..200, byte in any::<u8>(), which in 0usize..2) {
        let frame = raft_frame([append(), snapshot_message()][which].clone());
        let mut bytes = frame.encode();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(frame) = Frame::decode(&bytes) {
            prop_assert_eq!(frame.encode(), bytes);
        }
    }

    #[test]
    fn member_changes_come_out_as_they_went_in(
        kind in 0usize..3,
        id in 1u64..=1 << 31,
        disk in any::<u128>(),
    ) {
        use ConfChangeType::{AddLearnerNode, AddNode, RemoveNode};
        let kind = [AddNode, RemoveNode, AddLearnerNode][kind];
        let change = MemberChange { kind, id, directory_id: Uuid::from_u128(disk) };
        prop_assert_eq!(MemberChange::decode(&change.encode()), Ok(change));
    }
}

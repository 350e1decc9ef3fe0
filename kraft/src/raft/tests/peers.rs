//! What peers may say, what they may not, and snapshots that do not get through.

use proptest::prelude::*;
use raft::eraftpb::{Message, MessageType};

use super::*;

/// A frame from node 1 (as it claims) to node 0.
fn frame(kind: MessageType, fill: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut message = Message::default();
    message.set_msg_type(kind);
    (message.from, message.to, message.term) = (2, 1, 2);
    fill(&mut message);
    let directory_id = config(1, &[]).directory_id;
    let packet = Packet::Raft(Box::new(message));
    Frame { from: 2, to: 1, directory_id, packet }.encode()
}

#[track_caller]
fn check_refused(wired: &mut Wired, from: i32, frame: &[u8], want: &str) {
    let before = wired.nodes[0].status();
    match wired.nodes[0].step(0, from, frame) {
        Err(RaftError::Refused { node_id, why }) => assert_eq!((node_id, why), (from, want)),
        other => panic!("{other:?} instead of {want}"),
    }
    assert_eq!(wired.nodes[0].status(), before);
    assert!(!wired.nodes[0].has_ready());
}

#[test]
fn what_raft_would_panic_on_or_believe_is_refused() {
    let mut wired = Wired::new(3, 0); // Node 0 leads in term 2.
    let response = |index| frame(MessageType::MsgAppendResponse, |it| it.index = index);
    check_refused(&mut wired, 1, &response(99), "acknowledges entries that this log lacks");
    let append = frame(MessageType::MsgAppend, |_| {});
    check_refused(&mut wired, 1, &append, "a second leader in one term");
    let heartbeat =
        |commit: u64| frame(MessageType::MsgHeartbeat, |it| (it.term, it.commit) = (3, commit));
    let lost = "this voter's disk lost entries that it had acknowledged";
    check_refused(&mut wired, 1, &heartbeat(99), lost);
    check_refused(&mut wired, 2, &response(1), "misaddressed");
    check_refused(&mut wired, -1, &response(1), "misaddressed");
    check_refused(&mut wired, 1, b"", "cut off");
    let mut other = response(1);
    other[33] ^= 1;
    check_refused(&mut wired, 1, &other, "another disk speaks for this voter");
    let mut own = response(1);
    own[9] = 1;
    check_refused(&mut wired, 0, &own, "from myself");
}

#[test]
fn a_follower_that_gets_no_chunks_is_tried_again() {
    let mut wired = Wired::new(3, 0);
    wired.deaf = BTreeSet::from([2]);
    wired.propose_many(20);
    wired.snapshot(0);
    wired.deaf.clear();
    wired.lose_chunks = true;
    wired.tick(4);
    let state = |wired: &Wired| wired.nodes[0].status().progress[2].state;
    assert_eq!(state(&wired), ReplicationState::Snapshot);
    let mut probed = false;
    for _ in 0..100 {
        wired.tick(1);
        probed |= state(&wired) == ReplicationState::Probe; // The failure was reported.
    }
    assert!(probed);
    wired.lose_chunks = false;
    wired.tick(60);
    wired.propose(0, "after");
    assert_eq!(state(&wired), ReplicationState::Replicate);
    wired.tick(3);
    assert_eq!(wired.applied(2), wired.applied(0));
}

#[test]
fn nothing_that_a_fetching_follower_needs_is_truncated() {
    let mut wired = Wired::new(3, 0);
    wired.deaf = BTreeSet::from([2]);
    wired.propose_many(20);
    wired.snapshot(0);
    let first = wired.nodes[0].status().snapshot_index;
    wired.deaf.clear();
    wired.lose_chunks = true;
    wired.tick(3);
    for _ in 0..3 {
        wired.propose_many(10);
        wired.snapshot(0);
    }
    let status = wired.nodes[0].status();
    assert_eq!(status.progress[2].state, ReplicationState::Snapshot);
    assert_eq!(status.first_index, first + 1);
    wired.lose_chunks = false;
    wired.tick(12); // It goes on with the snapshot that it began.
    assert_eq!(wired.snapshots[2].as_ref().map(|it| it.index), Some(first));
    assert_eq!(wired.applied(2), wired.applied(0));
    wired.propose_many(10);
    wired.snapshot(0);
    assert!(wired.nodes[0].status().first_index > first + 10); // And then they may go.
}

#[test]
fn a_restarted_leader_has_only_its_newest_snapshot_to_give() {
    let mut wired = Wired::new(1, 1);
    let directory_id = config(1, &[]).directory_id;
    let add = MemberChange::AddLearner { node_id: 1, directory_id };
    wired.nodes[0].change_members(add).unwrap();
    wired.lose_chunks = true;
    wired.settle();
    wired.tick(3);
    let first = wired.nodes[0].status().snapshot_index;
    wired.propose_many(10);
    wired.snapshot(0);
    let newest = wired.nodes[0].status().snapshot_index;
    assert!(first > 1 && newest > first);
    wired.restart(0); // The learner still asks for the first one, and is told that it is gone.
    wired.lose_chunks = false;
    wired.tick(60);
    assert_eq!(wired.snapshots[1].as_ref().map(|it| it.index), Some(newest));
    assert_eq!(wired.applied(1), wired.applied(0));
}

/// Frames of an eventful life, as a dishonest peer would replay them.
fn recorded() -> Vec<(i32, i32, Vec<u8>)> {
    let mut wired = Wired::new(3, 1);
    wired.propose_many(3);
    let directory_id = config(3, &[]).directory_id;
    let add = MemberChange::AddLearner { node_id: 3, directory_id };
    wired.nodes[0].change_members(add).unwrap();
    wired.settle();
    wired.tick(5);
    wired.deaf = BTreeSet::from([2]);
    wired.propose_many(12);
    wired.snapshot(0);
    wired.deaf.clear();
    wired.tick(20);
    wired.nodes[0].transfer_leader(1).unwrap();
    wired.settle();
    wired.tick(5);
    wired.sent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Frames with a damaged byte, in any order, to any node: refused or taken, never a panic.
    #[test]
    fn damaged_frames_never_bring_a_node_down(
        picks in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u8>()), 1..60)
    ) {
        thread_local!(static SENT: Vec<(i32, i32, Vec<u8>)> = recorded());
        SENT.with(|sent| {
            let mut wired = Wired::new(3, 1);
            wired.propose_many(2);
            for (pick, at, byte) in picks {
                let (from, to, mut frame) = sent[pick as usize % sent.len()].clone();
                let at = 34 + at as usize % (frame.len() - 33);
                if let Some(damaged) = frame.get_mut(at) {
                    *damaged = byte;
                }
                let heard = wired.nodes[to as usize].step(0, from, &frame);
                assert!(matches!(heard, Ok(()) | Err(RaftError::Refused { .. })), "{heard:?}");
                while wired.nodes[to as usize].has_ready() {
                    let out = wired.nodes[to as usize].ready().unwrap();
                    if let Some(index) = out.committed.last().map(|entry| entry.index) {
                        wired.nodes[to as usize].applied(index);
                    }
                }
            }
        });
    }
}

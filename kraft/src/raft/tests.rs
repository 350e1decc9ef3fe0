//! Tests of the quorum node from outside: single nodes, and two or three wired together by hand.
//! Whole clusters under faults are `kraft/tests/raft_sim.rs`.

use bytes::Bytes;
use storage::kv::MemStore;
use uuid::Uuid;

use super::*;

fn config(node_id: i32, voters: &[i32]) -> RaftConfig {
    let directory_id = Uuid::from_u128(node_id as u128 + 100);
    RaftConfig {
        entries_kept: 3,
        snapshot_chunk_bytes: 4,
        ..RaftConfig::new(node_id, directory_id, voters.to_vec(), node_id as u64)
    }
}

fn open(store: &MemStore, node_id: i32, voters: &[i32]) -> RaftNode {
    RaftNode::new(config(node_id, voters), Box::new(store.open())).unwrap()
}

/// All outputs until the node is quiet, put together.
fn settle(node: &mut RaftNode) -> Outputs {
    let mut all = node.ready().unwrap();
    while node.has_ready() {
        let more = node.ready().unwrap();
        if more.snapshot.is_some() {
            all.snapshot = more.snapshot;
            all.committed.clear();
        }
        all.committed.extend(more.committed);
        all.messages.extend(more.messages);
        (all.role, all.leader, all.term) = (more.role, more.leader, more.term);
    }
    all
}

#[test]
fn a_sole_voter_leads_from_the_start_and_commits_in_one_ready() {
    let store = MemStore::new();
    let mut node = open(&store, 0, &[0]);
    let out = node.ready().unwrap();
    assert_eq!((out.role, out.leader, out.committed.len()), (Role::Leader, Some(0), 1));
    let proposed = node.propose(Bytes::from_static(b"a")).unwrap();
    let out = node.ready().unwrap();
    let want = Entry { index: proposed.index, term: proposed.term, data: "a".into() };
    assert_eq!(out.committed, [want]);
    assert!(!node.has_ready());
    store.crash(0); // Nothing that was acknowledged may hang on an unsynced batch.
    let mut node = open(&store, 0, &[0]);
    let data: Vec<Bytes> = settle(&mut node).committed.into_iter().map(|it| it.data).collect();
    assert_eq!(data, ["", "a", ""]);
}

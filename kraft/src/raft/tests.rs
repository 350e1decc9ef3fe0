//! Tests of the quorum node from outside: single nodes, and a few wired together by hand.
//! Whole clusters under faults are `kraft/tests/raft_sim.rs`.

mod disk;
mod members;
mod peers;

use std::collections::BTreeSet;

use bytes::Bytes;
use storage::kv::{Kv, MemStore};
use uuid::Uuid;

use super::codec::{Frame, Packet};
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

/// Some nodes and the wires between them; delivers at once, in order.
struct Wired {
    stores: Vec<MemStore>,
    nodes: Vec<RaftNode>,
    /// All that was handed out since the last snapshot, by node.
    committed: Vec<Vec<Entry>>,
    snapshots: Vec<Option<StateSnapshot>>,
    voters: Vec<i32>,
    /// These neither hear nor are heard.
    deaf: BTreeSet<i32>,
    /// No snapshot bytes get through.
    lose_chunks: bool,
    /// Every frame that was sent: (from, to, bytes).
    sent: Vec<(i32, i32, Vec<u8>)>,
}

impl Wired {
    /// `voters` nodes that found a quorum, the first elected, and others that wait to be added.
    fn new(voters: i32, others: i32) -> Wired {
        let mut wired = Wired {
            stores: Vec::new(),
            nodes: Vec::new(),
            committed: Vec::new(),
            snapshots: Vec::new(),
            voters: (0..voters).collect(),
            deaf: BTreeSet::new(),
            lose_chunks: false,
            sent: Vec::new(),
        };
        for node_id in 0..voters + others {
            let store = MemStore::new();
            wired.add_node(node_id, store.clone(), Box::new(store.open()));
        }
        wired.nodes[0].campaign().unwrap();
        wired.settle();
        wired
    }

    fn add_node(&mut self, node_id: i32, store: MemStore, kv: Box<dyn Kv>) {
        self.nodes.push(RaftNode::new(config(node_id, &self.voters), kv).unwrap());
        self.stores.push(store);
        self.committed.push(Vec::new());
        self.snapshots.push(None);
    }

    /// Delivers until nobody has anything to say.
    fn settle(&mut self) {
        while let Some(node) = self.nodes.iter().position(RaftNode::has_ready) {
            let out = self.nodes[node].ready().unwrap();
            self.perform(node, out);
        }
    }

    fn perform(&mut self, node: usize, out: Outputs) {
        if let Some(snapshot) = out.snapshot {
            self.committed[node].clear();
            self.nodes[node].applied(snapshot.index);
            self.snapshots[node] = Some(snapshot);
        }
        if let Some(last) = out.committed.last() {
            self.nodes[node].applied(last.index);
        }
        self.committed[node].extend(out.committed);
        if out.snapshot_wanted {
            self.snapshot(node);
        }
        for (to, frame) in out.messages {
            let from = node as i32;
            self.sent.push((from, to, frame.clone()));
            let is_chunk = matches!(Frame::decode(&frame).unwrap().packet, Packet::Chunk(..));
            let is_lost = is_chunk && self.lose_chunks;
            if !is_lost && !self.deaf.contains(&from) && !self.deaf.contains(&to) {
                let heard = self.nodes[to as usize].step(0, from, &frame);
                assert!(matches!(heard, Ok(()) | Err(RaftError::Refused { .. })), "{heard:?}");
            }
        }
    }

    fn tick(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.nodes.iter_mut().for_each(|node| node.tick().unwrap());
            self.settle();
        }
    }

    fn propose(&mut self, node: usize, data: &str) -> Proposed {
        let proposed = self.nodes[node].propose(Bytes::copy_from_slice(data.as_bytes())).unwrap();
        self.settle();
        proposed
    }

    fn propose_many(&mut self, count: usize) {
        for number in 0..count {
            self.propose(0, &format!("entry {number}"));
        }
    }

    /// The node's state becomes a snapshot.
    fn snapshot(&mut self, node: usize) {
        let index = self.nodes[node].status().applied_index;
        let state = format!("the state at {index}");
        self.nodes[node].create_snapshot(index, state.into()).unwrap();
    }

    /// The process dies, unsynced batches are lost, it starts again.
    fn crash(&mut self, node: usize) {
        self.stores[node].crash(0);
        self.restart(node);
    }

    fn restart(&mut self, node: usize) {
        self.nodes[node] = open(&self.stores[node], node as i32, &self.voters);
        self.committed[node].clear();
        self.snapshots[node] = None;
        self.settle();
    }

    fn data(&self, node: usize) -> Vec<&str> {
        let entries = self.committed[node].iter().filter(|entry| !entry.data.is_empty());
        entries.map(|entry| str::from_utf8(&entry.data).unwrap()).collect()
    }

    fn applied(&self, node: usize) -> u64 {
        self.nodes[node].status().applied_index
    }
}

#[test]
fn a_sole_voter_leads_from_the_start_and_commits_in_one_ready() {
    let store = MemStore::new();
    let mut node = open(&store, 0, &[0]);
    let out = node.ready().unwrap();
    assert_eq!((out.role, out.leader, out.committed.len()), (Role::Leader, Some(0), 1));
    assert!(out.active && out.members.is_some());
    let proposed = node.propose(Bytes::from_static(b"a")).unwrap();
    let out = node.ready().unwrap();
    let want = Entry { index: proposed.index, term: proposed.term, data: "a".into() };
    assert_eq!(out.committed, [want]);
    assert!(!node.has_ready());
}

#[test]
fn what_a_sole_voter_committed_survives_a_crash() {
    let mut wired = Wired::new(1, 0);
    wired.propose(0, "a");
    wired.crash(0);
    wired.propose(0, "b");
    assert_eq!(wired.data(0), ["a", "b"]);
    assert_eq!(wired.committed[0].len(), 4); // An empty entry of each term, too.
}

#[test]
fn three_voters_agree() {
    let mut wired = Wired::new(3, 0);
    wired.propose(0, "a");
    wired.propose(0, "b");
    wired.tick(3);
    for node in 0..3 {
        assert_eq!(wired.data(node), ["a", "b"], "node {node}");
    }
    let status = wired.nodes[1].status();
    assert_eq!((status.role, status.leader), (Role::Follower, Some(0)));
    let refused = wired.nodes[1].propose("c".into());
    assert!(matches!(refused, Err(RaftError::NotLeader { leader: Some(0) })));
}

#[test]
fn a_leader_is_active_only_when_its_first_entry_is_committed() {
    let mut wired = Wired::new(3, 0);
    wired.nodes[0].transfer_leader(1).unwrap();
    // Node 0 and node 1 take turns; each turn sends what the other waits for.
    let mut turns = Vec::new();
    for turn in 0..6 {
        let (from, to) = (turn % 2, 1 - turn % 2);
        let out = wired.nodes[from].ready().unwrap();
        turns.push((out.role, out.active));
        for (_, frame) in out.messages.iter().filter(|(peer, _)| *peer == to as i32) {
            wired.nodes[to].step(0, from as i32, frame).unwrap();
        }
    }
    let want = [
        (Role::Leader, true),     // "Time out now."
        (Role::Candidate, false), // "Vote for me."
        (Role::Follower, false),  // "Granted."
        (Role::Leader, false),    // "Append my first entry."
        (Role::Follower, false),  // "Appended."
        (Role::Leader, true),
    ];
    assert_eq!(turns, want);
}

#[test]
fn a_leader_without_followers_steps_down() {
    let mut wired = Wired::new(3, 0);
    wired.deaf = BTreeSet::from([1, 2]);
    wired.tick(25);
    assert_ne!(wired.nodes[0].status().role, Role::Leader);
}

#[test]
fn proposals_are_bounded() {
    let mut wired = Wired::new(3, 0);
    wired.deaf = BTreeSet::from([1, 2]);
    let data = Bytes::from(vec![7; 4 << 20]);
    let mut taken = 0;
    while wired.nodes[0].propose(data.clone()).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, 4);
    assert!(matches!(wired.nodes[0].propose(data), Err(RaftError::Busy)));
    let large = Bytes::from(vec![7; ENTRY_BYTES_MAX + 1]);
    assert!(matches!(wired.nodes[0].propose(large), Err(RaftError::TooLarge { .. })));
    wired.settle(); // All of it travels, frames within their bound.
    wired.deaf.clear();
    wired.tick(30);
    assert_eq!(wired.applied(1), wired.applied(0));
    assert!(wired.sent.iter().all(|(_, _, frame)| frame.len() <= FRAME_BYTES_MAX));
}

#[test]
fn a_large_backlog_is_handed_out_in_parts() {
    let mut wired = Wired::new(1, 0);
    let data = Bytes::from(vec![7; 1 << 20]);
    for _ in 0..12 {
        wired.nodes[0].propose(data.clone()).unwrap();
        wired.settle();
    }
    let mut node = open(&wired.stores[0], 0, &[0]);
    let mut parts = Vec::new();
    while node.has_ready() {
        parts.push(node.ready().unwrap().committed.len());
    }
    assert!(parts.len() >= 3 && parts.iter().all(|part| *part <= 6), "{parts:?}");
    assert_eq!(parts.iter().sum::<usize>(), 12 + 2);
}

#[test]
fn progress_tells_who_is_behind() {
    let mut wired = Wired::new(3, 0);
    wired.deaf = BTreeSet::from([2]);
    wired.propose(0, "a");
    let status = wired.nodes[0].status();
    let matched: Vec<u64> = status.progress.iter().map(|it| it.matched_index).collect();
    assert_eq!(matched, [3, 3, 2]);
    assert!(status.progress[1].caught_up_ms.is_some());
    assert!(wired.nodes[1].status().progress.is_empty());
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let cases: [(&str, fn(&mut RaftConfig)); 6] = [
        ("node id", |config| config.node_id = -1),
        ("voter id", |config| config.voters = vec![-1, 0]),
        ("voter twice", |config| config.voters = vec![0, 0]),
        ("no heartbeat", |config| config.heartbeat_ticks = 0),
        ("early election", |config| config.election_ticks = 2),
        ("no chunks", |config| config.snapshot_chunk_bytes = 0),
    ];
    for (what, change) in cases {
        let mut config = config(0, &[0]);
        change(&mut config);
        let made = RaftNode::new(config, Box::new(MemStore::new().open()));
        assert!(matches!(made, Err(RaftError::Config(_))), "{what}");
    }
}

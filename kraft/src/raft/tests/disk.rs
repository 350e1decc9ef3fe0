//! What the disk holds after crashes, and what is refused there.

use std::sync::{Arc, Mutex};

use storage::kv::{KvBatch, KvError, KvOp, MemKv, Pairs, RocksKv};

use super::*;

/// Every batch a node ever wrote, in order.
type Batches = Arc<Mutex<Vec<KvBatch>>>;

struct Recording {
    kv: MemKv,
    batches: Batches,
}

impl Kv for Recording {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        self.kv.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], limit: usize) -> Result<Pairs, KvError> {
        self.kv.scan(from, to, limit)
    }

    fn write(&mut self, batch: KvBatch, sync: bool) -> Result<(), KvError> {
        self.batches.lock().unwrap().push(batch.clone());
        self.kv.write(batch, sync)
    }
}

/// A learner whose every batch is kept: it is added, takes entries and member changes, falls
/// behind, installs a snapshot, makes some of its own, is promoted.
fn eventful_life() -> (Wired, Batches) {
    let mut wired = Wired::new(3, 0);
    let batches = Batches::default();
    let store = MemStore::new();
    let kv = Recording { kv: store.open(), batches: batches.clone() };
    wired.add_node(3, store, Box::new(kv));
    wired.propose_many(5);
    let directory_id = config(3, &[]).directory_id;
    let add = MemberChange::AddLearner { node_id: 3, directory_id };
    wired.nodes[0].change_members(add).unwrap();
    wired.settle();
    wired.tick(10);
    wired.propose_many(5);
    wired.snapshot(3);
    wired.propose_many(8);
    wired.deaf = BTreeSet::from([3]);
    wired.propose_many(10);
    wired.snapshot(0);
    wired.deaf.clear();
    wired.tick(10);
    wired.nodes[0].change_members(MemberChange::Promote { node_id: 3 }).unwrap();
    wired.settle();
    wired.propose_many(6);
    wired.snapshot(3);
    wired.nodes[1].campaign().unwrap();
    wired.settle();
    wired.tick(40);
    (wired, batches)
}

#[test]
fn every_flushed_state_can_be_restarted_from() {
    let (wired, batches) = eventful_life();
    assert_eq!(wired.applied(3), wired.applied(0));
    assert!(wired.nodes[3].status().members.voters.contains(&3));
    let batches = batches.lock().unwrap();
    assert!(batches.len() > 25, "{} batches", batches.len());
    let store = MemStore::new();
    let mut last_term = 0;
    for number in 0..=batches.len() {
        let mut node = open(&store, 3, &[0, 1, 2]);
        let status = node.status();
        assert!(status.term >= last_term, "after {number} batches");
        last_term = status.term;
        let mut next = 1;
        while node.has_ready() {
            let out = node.ready().unwrap();
            next = out.snapshot.map_or(next, |snapshot| snapshot.index + 1);
            for entry in out.committed {
                assert!(entry.index == next, "after {number} batches: {} for {next}", entry.index);
                next += 1;
            }
        }
        drop(node);
        if let Some(batch) = batches.get(number) {
            store.open().write(batch.clone(), true).unwrap();
        }
    }
}

#[test]
fn member_changes_take_effect_once() {
    let mut wired = Wired::new(3, 1);
    let directory_id = config(3, &[]).directory_id;
    let add = MemberChange::AddLearner { node_id: 3, directory_id };
    for change in [add, MemberChange::Promote { node_id: 3 }, MemberChange::Remove { node_id: 2 }] {
        wired.nodes[0].change_members(change).unwrap();
        wired.settle();
        wired.tick(5);
    }
    let members = wired.nodes[0].status().members;
    assert_eq!(members.voters, BTreeSet::from([0, 1, 3]));
    let batches = Batches::default();
    let kv = Recording { kv: wired.stores[0].open(), batches: batches.clone() };
    let mut node = RaftNode::new(config(0, &[0, 1, 2]), Box::new(kv)).unwrap();
    let mut replayed = 0;
    while node.has_ready() {
        replayed += node.ready().unwrap().committed.len();
    }
    assert!(replayed >= 2, "nothing to replay");
    assert_eq!(node.status().members, members);
    let batches = batches.lock().unwrap();
    let mut keys = batches.iter().flat_map(|batch| &batch.ops).filter_map(|op| match op {
        KvOp::Put { key, .. } => Some(&key[..6]),
        _ => None,
    });
    assert!(keys.all(|key| key != b"raft/c"));
}

#[test]
fn entries_that_lost_are_gone_from_the_disk() {
    let mut wired = Wired::new(3, 0);
    wired.deaf = BTreeSet::from([0]);
    wired.propose_many(5); // On one disk only.
    wired.tick(25); // The others forget their leader.
    wired.nodes[1].campaign().unwrap();
    wired.settle();
    wired.deaf.clear();
    wired.settle();
    wired.tick(5);
    assert_eq!(wired.nodes[0].status().last_index, wired.nodes[1].status().last_index);
    wired.crash(0); // One entry replaced five; the other four must not come back.
    assert_eq!(wired.nodes[0].status().last_index, wired.nodes[1].status().last_index);
}

/// The same on a real store; the simulator never sees one.
#[test]
fn a_node_lives_on_rocksdb() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let kv = RocksKv::open(&dir.path().join("raft")).unwrap();
        RaftNode::new(config(0, &[0]), Box::new(kv)).unwrap()
    };
    let mut node = open();
    let mut state = Vec::new();
    for number in 0..50u8 {
        node.propose(vec![number; 100].into()).unwrap();
        let out = node.ready().unwrap();
        state.extend(out.committed.iter().filter_map(|entry| entry.data.first().copied()));
        let last_index = out.committed.last().unwrap().index;
        node.applied(last_index);
        if number % 20 == 19 {
            node.create_snapshot(last_index, state.clone().into()).unwrap();
        }
    }
    drop(node);
    let mut node = open();
    let mut state = Vec::new();
    while node.has_ready() {
        let out = node.ready().unwrap();
        state.extend(out.snapshot.into_iter().flat_map(|snapshot| snapshot.data));
        state.extend(out.committed.iter().filter_map(|entry| entry.data.first().copied()));
    }
    assert_eq!(state, (0..50).collect::<Vec<u8>>());
    assert_eq!(node.status().snapshot_index, 42);
}

#[test]
fn an_installed_snapshot_survives_a_crash() {
    let mut wired = Wired::new(3, 0);
    wired.deaf = BTreeSet::from([2]);
    wired.propose_many(20);
    wired.snapshot(0);
    wired.deaf.clear();
    wired.tick(5);
    let installed = wired.snapshots[2].clone().unwrap();
    assert_eq!(installed.data, format!("the state at {}", installed.index));
    wired.deaf = BTreeSet::from([2]);
    wired.crash(2); // raft-rs: "hs.commit is out of range" when the parts do not agree.
    assert_eq!(wired.snapshots[2].as_ref(), Some(&installed));
    assert_eq!(wired.nodes[2].status().first_index, installed.index + 1);
    wired.deaf.clear();
    wired.propose(0, "after");
    wired.tick(5);
    assert_eq!(wired.data(2), ["after"]);
}

#[test]
fn entries_after_the_snapshot_are_handed_out_again() {
    let mut wired = Wired::new(1, 0);
    wired.propose_many(10);
    wired.snapshot(0);
    let snapshot_index = wired.applied(0);
    wired.propose(0, "after");
    wired.crash(0);
    assert_eq!(wired.snapshots[0].as_ref().map(|it| it.index), Some(snapshot_index));
    assert_eq!(wired.data(0), ["after"]);
    assert_eq!(wired.nodes[0].status().first_index, snapshot_index - 3 + 1); // entries_kept
}

#[test]
fn a_snapshot_that_is_not_newer_changes_nothing() {
    let mut wired = Wired::new(1, 0);
    wired.propose_many(10);
    wired.snapshot(0);
    let before = wired.nodes[0].status();
    wired.nodes[0].create_snapshot(before.applied_index - 1, "old".into()).unwrap();
    wired.nodes[0].create_snapshot(before.applied_index, "again".into()).unwrap();
    assert_eq!(wired.nodes[0].status(), before);
}

#[test]
fn a_clean_stop_keeps_the_commit_index() {
    let mut wired = Wired::new(3, 0);
    wired.propose(0, "a");
    wired.tick(3);
    let node = wired.nodes.remove(1);
    let commit_index = node.status().commit_index;
    node.close().unwrap();
    wired.stores[1].crash(0);
    assert_eq!(open(&wired.stores[1], 1, &wired.voters).status().commit_index, commit_index);
}

#[test]
fn a_failed_write_is_the_end_of_the_node() {
    let mut wired = Wired::new(1, 0);
    wired.nodes[0].propose("a".into()).unwrap();
    wired.stores[0].fail_after(0);
    assert!(matches!(wired.nodes[0].ready(), Err(RaftError::Storage(_))));
    assert!(!wired.nodes[0].has_ready());
    assert!(matches!(wired.nodes[0].ready(), Err(RaftError::Dead)));
    assert!(matches!(wired.nodes[0].propose("b".into()), Err(RaftError::Dead)));
    assert!(matches!(wired.nodes[0].tick(), Err(RaftError::Dead)));
    wired.stores[0].crash(0);
    wired.restart(0);
    assert_eq!(wired.data(0), Vec::<&str>::new());
}

#[test]
fn a_store_of_another_node_or_disk_is_refused() {
    let store = MemStore::new();
    drop(open(&store, 0, &[0]));
    let other = RaftNode::new(config(1, &[1]), Box::new(store.open()));
    assert!(matches!(other, Err(RaftError::Config(_))));
    let mut config = config(0, &[0]);
    config.directory_id = Uuid::from_u128(1);
    let other = RaftNode::new(config, Box::new(store.open()));
    assert!(matches!(other, Err(RaftError::Config(_))));
}

/// Changes one value of a good log and expects the node not to start.
#[track_caller]
fn check_damage(key: &str, number: Option<u64>, value: Option<&[u8]>) {
    let mut wired = Wired::new(1, 0);
    wired.propose_many(10);
    wired.snapshot(0);
    wired.propose_many(3);
    let mut full_key = key.as_bytes().to_vec();
    full_key.extend(number.map(u64::to_be_bytes).into_iter().flatten());
    let mut kv = wired.stores[0].open();
    assert!(kv.get(&full_key).unwrap().is_some(), "{key} {number:?} is not there");
    let mut batch = KvBatch::new();
    match value {
        Some(value) => batch.put(full_key, value),
        None => batch.delete(full_key),
    };
    kv.write(batch, true).unwrap();
    let opened = RaftNode::new(config(0, &[0]), Box::new(wired.stores[0].open()));
    assert!(matches!(opened, Err(RaftError::Corrupt(_))), "{key} {number:?}");
}

#[test]
fn damage_is_found_at_start() {
    check_damage("raft/h", None, None); // Everything is beyond commit index 0.
    check_damage("raft/h", None, Some(&[1, 0])); // Cut off.
    check_damage("raft/h", None, Some(&[2; 25])); // Of a later version.
    check_damage("raft/t", None, None); // Entries begin too late.
    check_damage("raft/e", Some(12), None); // A gap.
    check_damage("raft/e", Some(13), Some(b"\x01junk"));
    check_damage("raft/m", Some(12), None); // No snapshot at or above the truncated index.
    check_damage("raft/c", Some(1), None); // Nobody knows the members.
}

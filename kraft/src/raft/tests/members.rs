//! Who belongs, and which disk speaks for whom.

use super::*;

fn add(node_id: i32) -> MemberChange {
    MemberChange::AddLearner { node_id, directory_id: config(node_id, &[]).directory_id }
}

fn change(wired: &mut Wired, change: MemberChange) {
    wired.nodes[0].change_members(change).unwrap();
    wired.settle();
    wired.tick(10);
}

#[test]
fn a_node_joins_with_a_snapshot_is_promoted_and_leaves() {
    let mut wired = Wired::new(3, 1);
    wired.propose(0, "a");
    assert_eq!(wired.nodes[3].status().role, Role::Learner);
    change(&mut wired, add(3)); // Wants a snapshot that knows it; `Wired` makes one.
    assert_eq!(wired.applied(3), wired.applied(0));
    assert!(wired.snapshots[3].is_some());
    assert_eq!(wired.nodes[3].status().members.learners, BTreeSet::from([3]));
    change(&mut wired, MemberChange::Promote { node_id: 3 });
    for node in 0..4 {
        assert_eq!(wired.nodes[node].status().members.voters, BTreeSet::from([0, 1, 2, 3]));
    }
    wired.crash(3); // The membership came in one batch with the commit index that made it so.
    assert_eq!(wired.nodes[3].status().members.voters, BTreeSet::from([0, 1, 2, 3]));
    change(&mut wired, MemberChange::Remove { node_id: 2 });
    assert_eq!(wired.nodes[0].status().members.voters, BTreeSet::from([0, 1, 3]));
    wired.propose(0, "b");
    wired.tick(10);
    assert_eq!(wired.data(3), ["b"]);
    assert_eq!(wired.nodes[0].status().role, Role::Leader);
}

#[test]
fn changes_that_make_no_sense_are_refused() {
    let mut wired = Wired::new(3, 1);
    let refused = [
        add(1),
        MemberChange::AddLearner { node_id: -1, directory_id: Uuid::nil() },
        MemberChange::Promote { node_id: 1 },
        MemberChange::Promote { node_id: 3 },
        MemberChange::Remove { node_id: 3 },
        MemberChange::Remove { node_id: 0 },
    ];
    for change in refused {
        let answer = wired.nodes[0].change_members(change);
        assert!(matches!(answer, Err(RaftError::Members(_))), "{change:?}: {answer:?}");
    }
    let answer = wired.nodes[1].change_members(add(3));
    assert!(matches!(answer, Err(RaftError::NotLeader { leader: Some(0) })));
    wired.nodes[0].change_members(add(3)).unwrap();
    let answer = wired.nodes[0].change_members(add(4));
    assert!(matches!(answer, Err(RaftError::Busy)), "one at a time");
}

#[test]
fn no_change_before_the_leaders_first_entry_is_committed() {
    let store = MemStore::new();
    let mut node = open(&store, 0, &[0]);
    assert_eq!(node.status().role, Role::Leader);
    assert!(matches!(node.change_members(add(1)), Err(RaftError::Busy)));
    node.ready().unwrap();
    node.change_members(add(1)).unwrap();
}

#[test]
fn leadership_moves_on_request() {
    let mut wired = Wired::new(3, 0);
    assert!(matches!(wired.nodes[0].transfer_leader(7), Err(RaftError::Members(_))));
    assert!(matches!(wired.nodes[1].transfer_leader(2), Err(RaftError::NotLeader { .. })));
    wired.nodes[0].transfer_leader(2).unwrap();
    wired.settle();
    assert_eq!(wired.nodes[2].status().role, Role::Leader);
    assert_eq!(wired.nodes[0].status().leader, Some(2));
}

/// Replaces the disk of a node: everything is gone, the directory id is another.
fn wipe(wired: &mut Wired, node: usize) {
    let store = MemStore::new();
    let mut config = config(node as i32, &wired.voters);
    config.directory_id = Uuid::from_u128(999);
    wired.nodes[node] = RaftNode::new(config, Box::new(store.open())).unwrap();
    wired.stores[node] = store;
    wired.committed[node].clear();
    wired.settle();
}

#[test]
fn a_voter_with_another_disk_is_not_heard() {
    let mut wired = Wired::new(3, 0);
    wired.propose(0, "a");
    wipe(&mut wired, 2);
    wired.tick(5);
    wired.deaf = BTreeSet::from([1]);
    wired.tick(50); // Two of three, but one of the two does not count.
    assert_ne!(wired.nodes[0].status().role, Role::Leader);
    assert_eq!(wired.nodes[2].status().role, Role::Candidate);
    wired.deaf.clear();
    wired.tick(50); // The old two are a majority.
    let leader = wired.nodes.iter().position(|node| node.status().role == Role::Leader).unwrap();
    assert_ne!(leader, 2);
    let remove = MemberChange::Remove { node_id: 2 };
    wired.nodes[leader].change_members(remove).unwrap();
    wired.tick(5);
    let directory_id = Uuid::from_u128(999);
    let add = MemberChange::AddLearner { node_id: 2, directory_id };
    wired.nodes[leader].change_members(add).unwrap();
    wired.tick(30);
    assert_eq!(wired.applied(2), wired.applied(leader)); // Added again, it is welcome.
}

#[test]
fn a_learner_with_another_disk_starts_over() {
    let mut wired = Wired::new(1, 1);
    change(&mut wired, add(1));
    wired.propose_many(5);
    assert_eq!(wired.applied(1), wired.applied(0));
    wipe(&mut wired, 1);
    wired.tick(10);
    wired.propose(0, "after");
    wired.tick(10);
    assert_eq!(wired.applied(1), wired.applied(0));
    assert_eq!(wired.data(1).last(), Some(&"after"));
}

//! What the controller does unasked.

use super::super::fixtures::Cluster;
use crate::record::ResourceKind;

/// Lets time pass with heartbeats of these brokers.
fn pass(cluster: &mut Cluster, seconds: i64, brokers: &[i32]) {
    for _ in 0..seconds / 5 {
        cluster.now_ms += 5_000;
        for broker in brokers {
            cluster.beat(*broker);
        }
        cluster.tick();
    }
}

/// Puts a broker back into the ISR of `t-0`.
fn join(cluster: &mut Cluster, isr: &[i32]) {
    let topic_id = cluster.image().topic("t").unwrap().id;
    let change = crate::record::PartitionChangeRecord {
        topic_id,
        isr: Some(isr.to_vec()),
        ..Default::default()
    };
    cluster.commit(&[crate::record::MetadataRecord::PartitionChange(change)]);
}

#[test]
fn preferred_leaders_come_back() {
    for rebalance in [true, false] {
        let mut cluster = Cluster::with(2, |settings| {
            if !rebalance {
                settings.rebalance_interval_ms = None;
            }
        });
        cluster.create_on("t", "1 2");
        cluster.fence(1);
        cluster.beat(1);
        join(&mut cluster, &[2, 1]);
        pass(&mut cluster, 295, &[1, 2]);
        assert_eq!(cluster.show("t", 0), "1 2 leader 2@1 isr 2 1");
        pass(&mut cluster, 10, &[1, 2]);
        let want = if rebalance { "1 2 leader 1@2 isr 2 1" } else { "1 2 leader 2@1 isr 2 1" };
        assert_eq!(cluster.show("t", 0), want);
    }
}

#[test]
fn unclean_elections_only_where_they_are_allowed() {
    let mut cluster = Cluster::new(3);
    cluster.create_on("t", "1 2");
    cluster.fence(2);
    cluster.fence(1);
    cluster.beat(2);
    pass(&mut cluster, 600, &[2, 3]);
    assert_eq!(cluster.show("t", 0), "1 2 leader -1@1 isr - elr 1 last 1");
    cluster.set(ResourceKind::Topic, "t", "unclean.leader.election.enable", "true");
    pass(&mut cluster, 300, &[2, 3]);
    assert_eq!(cluster.show("t", 0), "1 2 leader 2@2 isr 2 recovering");
}

#[test]
fn unclean_elections_at_once_when_the_topic_allows_them() {
    let mut cluster = Cluster::with(3, |settings| settings.unclean_election = true);
    cluster.create_on("t", "1 2");
    cluster.fence(2);
    cluster.beat(2);
    assert_eq!(cluster.show("t", 0), "1 2 leader 1@0 isr 1");
    cluster.fence(1);
    assert_eq!(cluster.show("t", 0), "1 2 leader 2@1 isr 2 recovering");
}

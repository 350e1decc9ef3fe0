//! ElectLeaders against what Apache Kafka 4.4.0 answers.

use super::super::fixtures::Cluster;
use super::super::request::{ControllerReply, ControllerRequest};
use super::*;
use crate::record::ResourceKind;

fn elect(cluster: &mut Cluster, election: i8, topics: Option<&[(&str, &[i32])]>) -> ElectedLeaders {
    let topics =
        topics.map(|list| list.iter().map(|(t, ps)| (t.to_string(), ps.to_vec())).collect());
    match cluster.ask(ControllerRequest::ElectLeaders(ElectLeaders { election, topics })) {
        ControllerReply::ElectLeaders(reply) => reply,
        other => panic!("{other:?}"),
    }
}

/// One election of one partition: the code, and the partition after it.
#[track_caller]
fn check(cluster: &mut Cluster, election: i8, at: (&str, i32), code: ErrorCode, want: &str) {
    let reply = elect(cluster, election, Some(&[(at.0, &[at.1])]));
    let result = &reply.topics[0].1[0].result;
    let got = result.as_ref().map_or_else(|refusal| refusal.code, |()| ErrorCode::None);
    assert_eq!((reply.code, got), (ErrorCode::None, code), "{result:?}");
    if !want.is_empty() {
        assert_eq!(cluster.show(at.0, at.1), want);
    }
}

#[test]
fn preferred_elections() {
    let mut cluster = Cluster::new(3);
    cluster.create_on("t", "1 2 3");
    use ErrorCode::{
        ElectionNotNeeded, None, PreferredLeaderNotAvailable, UnknownTopicOrPartition,
    };
    check(&mut cluster, 0, ("t", 0), ElectionNotNeeded, "1 2 3 leader 1@0 isr 1 2 3");
    check(&mut cluster, 0, ("t", 9), UnknownTopicOrPartition, "");
    check(&mut cluster, 0, ("none", 0), UnknownTopicOrPartition, "");
    cluster.fence(1);
    let want = "1 2 3 leader 2@1 isr 2 3";
    check(&mut cluster, 0, ("t", 0), PreferredLeaderNotAvailable, want);
    cluster.beat(1);
    check(&mut cluster, 0, ("t", 0), PreferredLeaderNotAvailable, want); // Not in the ISR.
    let topic_id = cluster.image().topic("t").unwrap().id;
    cluster.commit(&[MetadataRecord::PartitionChange(crate::record::PartitionChangeRecord {
        topic_id,
        isr: Some(vec![2, 3, 1]),
        ..Default::default()
    })]);
    check(&mut cluster, 0, ("t", 0), None, "1 2 3 leader 1@2 isr 2 3 1");
}

#[test]
fn unclean_elections() {
    let mut cluster = Cluster::new(3);
    cluster.create_on("t", "1 2");
    use ErrorCode::{ElectionNotNeeded, EligibleLeadersNotAvailable, None};
    check(&mut cluster, 1, ("t", 0), ElectionNotNeeded, "");
    cluster.set(ResourceKind::Broker, "", "min.insync.replicas", "1");
    cluster.fence(2);
    cluster.fence(1);
    let want = "1 2 leader -1@1 isr - elr 1 last 1";
    check(&mut cluster, 1, ("t", 0), EligibleLeadersNotAvailable, want);
    cluster.beat(2);
    check(&mut cluster, 1, ("t", 0), None, "1 2 leader 2@2 isr 2 recovering");
}

#[test]
fn texts_and_odd_requests() {
    let mut cluster = Cluster::new(1);
    cluster.create("t", 2, 1);
    let reply = elect(&mut cluster, 0, Some(&[("none", &[0]), ("t", &[0, 9])]));
    let texts: Vec<&str> = reply
        .topics
        .iter()
        .flat_map(|(_, partitions)| partitions)
        .map(|partition| partition.result.as_ref().unwrap_err().message.as_deref().unwrap())
        .collect();
    let want = [
        "No such topic as none",
        "Leader election not needed for topic partition.",
        "No such partition as t-9",
    ];
    assert_eq!(texts, want);
    // All partitions: those that need nothing are left out, their topics stay.
    let all = elect(&mut cluster, 0, None);
    assert_eq!(all.topics, [("t".to_string(), vec![])]);
    assert_eq!(elect(&mut cluster, 0, Some(&[])).topics, []);
    for odd in [2, -1] {
        let reply = elect(&mut cluster, odd, Some(&[("t", &[0]), ("none", &[3])]));
        assert_eq!(reply.code, ErrorCode::InvalidRequest);
        assert_eq!(reply.topics.len(), 2);
        let refusal = reply.topics[1].1[0].result.as_ref().unwrap_err();
        assert_eq!(refusal.message, Some(format!("Unknown election type {odd}")));
        assert_eq!(elect(&mut cluster, odd, Some(&[])).code, ErrorCode::None);
    }
}

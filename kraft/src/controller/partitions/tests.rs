//! CreatePartitions against what Apache Kafka 4.4.0 answers; AlterPartition and directories.

use super::super::fixtures::Cluster;
use super::super::request::{ControllerReply, ControllerRequest};
use super::*;
use uuid::Uuid;

fn grow(cluster: &mut Cluster, topics: Vec<GrowTopic>, validate_only: bool) -> PerName<()> {
    let request = CreatePartitions { topics, validate_only };
    match cluster.ask(ControllerRequest::CreatePartitions(request)) {
        ControllerReply::CreatePartitions(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn ask(name: &str, count: i32, assignments: Option<&[&[i32]]>) -> GrowTopic {
    let assignments = assignments.map(|lists| lists.iter().map(|ids| ids.to_vec()).collect());
    GrowTopic { name: name.to_string(), count, assignments }
}

/// One broker (1), topic `a` with two partitions.
#[track_caller]
fn check(topic: GrowTopic, code: ErrorCode, message: Option<&str>) {
    let mut cluster = Cluster::new(1);
    cluster.create("a", 2, 1);
    let reply = grow(&mut cluster, vec![topic.clone()], false);
    let refusal = Refusal { code, message: message.map(str::to_string) };
    assert_eq!(reply, [(topic.name, Err(refusal))]);
    assert_eq!(cluster.image().topic("a").unwrap().partition_count(), 2);
}

#[test]
fn bad_growth() {
    use ErrorCode::{
        InvalidPartitions, InvalidReplicaAssignment, PolicyViolation, UnknownTopicOrPartition,
    };
    for count in [1, 0, -1] {
        let text =
            format!("The topic a currently has 2 partition(s); {count} would not be an increase.");
        check(ask("a", count, None), InvalidPartitions, Some(&text));
    }
    let text = "Topic already has 2 partition(s).";
    check(ask("a", 2, None), InvalidPartitions, Some(text));
    check(ask("none", 3, None), UnknownTopicOrPartition, None);
    check(ask("a b", 3, None), UnknownTopicOrPartition, None);
    let text =
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.";
    check(ask("a", 4, Some(&[&[1]])), InvalidReplicaAssignment, Some(text));
    let manual = "The manual partition assignment includes";
    let text = format!("{manual} broker 4711, but no such broker is registered.");
    check(ask("a", 3, Some(&[&[4711]])), InvalidReplicaAssignment, Some(&text));
    check(ask("a", 3, Some(&[&[1, 4711]])), InvalidReplicaAssignment, Some(&text));
    let text = format!("{manual} the broker 1 more than once.");
    check(ask("a", 3, Some(&[&[1, 1]])), InvalidReplicaAssignment, Some(&text));
    let text = format!("{manual} an empty replica list.");
    check(ask("a", 3, Some(&[&[]])), InvalidReplicaAssignment, Some(&text));
    let text = "Excessively large number of additional partitions per request.";
    check(ask("a", 20_000, None), PolicyViolation, Some(text));
    check(ask("a", i32::MAX, None), PolicyViolation, Some(text));
}

#[test]
fn good_growth() {
    let mut cluster = Cluster::new(3);
    cluster.create("a", 2, 2);
    let before = cluster.image().topic("a").unwrap().partitions.clone();
    assert_eq!(grow(&mut cluster, vec![ask("a", 4, None)], true)[0].1, Ok(()));
    assert_eq!(cluster.image().topic("a").unwrap().partition_count(), 2);
    assert_eq!(grow(&mut cluster, vec![ask("a", 4, None)], false)[0].1, Ok(()));
    assert_eq!(grow(&mut cluster, vec![ask("a", 5, Some(&[&[3, 1]]))], false)[0].1, Ok(()));
    let after = &cluster.image().topic("a").unwrap().partitions;
    assert_eq!(after[..2], before);
    assert!(after.iter().all(|partition| partition.replicas.len() == 2));
    assert_eq!(cluster.show("a", 4), "3 1 leader 3@0 isr 3 1");
    let twice = grow(&mut cluster, vec![ask("a", 9, None), ask("a", 8, None)], false);
    let refusal = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
    assert_eq!(twice, [("a".to_string(), Err(refusal))]);
}

#[test]
fn too_few_brokers_to_grow_on() {
    let mut cluster = Cluster::new(2);
    cluster.create("a", 1, 2);
    let broker_id = 2;
    cluster.ask(ControllerRequest::UnregisterBroker(super::super::UnregisterBroker { broker_id }));
    let reply = grow(&mut cluster, vec![ask("a", 2, None)], false);
    assert_eq!(reply[0].1.as_ref().unwrap_err().code, ErrorCode::InvalidReplicationFactor);
}

/// The leader of `a-0` asks for an ISR; gives the code.
fn wish(cluster: &mut Cluster, isr: &[i32], edit: impl FnOnce(&mut AlterPartition)) -> ErrorCode {
    let topic = cluster.image().topic("a").unwrap();
    let partition = &topic.partitions[0];
    let epoch = |id: i32| cluster.image().broker(id).map_or(-1, |broker| broker.epoch);
    let mut request = AlterPartition {
        broker_id: partition.leader,
        broker_epoch: epoch(partition.leader),
        partitions: vec![IsrChange {
            topic_id: topic.id,
            partition: 0,
            leader_epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            isr: isr.iter().map(|id| (*id, epoch(*id))).collect(),
            recovering: false,
        }],
    };
    edit(&mut request);
    match cluster.ask(ControllerRequest::AlterPartition(request)) {
        ControllerReply::AlterPartition(Err(refusal)) => refusal.code,
        ControllerReply::AlterPartition(Ok(reply)) => {
            let state = cluster.image().partition("a", 0).unwrap();
            match &reply[0].result {
                Ok(answered) => assert_eq!(answered, state),
                Err(refusal) => return refusal.code,
            }
            ErrorCode::None
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn isr_changes() {
    let mut cluster = Cluster::new(4);
    cluster.create_on("a", "1 2 3");
    assert_eq!(wish(&mut cluster, &[1, 2, 3], |_| {}), ErrorCode::None);
    assert_eq!(cluster.show("a", 0), "1 2 3 leader 1@0 isr 1 2 3");
    assert_eq!(wish(&mut cluster, &[1, 3], |_| {}), ErrorCode::None);
    assert_eq!(cluster.show("a", 0), "1 2 3 leader 1@0 isr 1 3");
    assert_eq!(wish(&mut cluster, &[1, 3, 2], |_| {}), ErrorCode::None);
    let code = |cluster: &mut Cluster, edit: fn(&mut AlterPartition)| {
        let before = cluster.image().clone();
        let code = wish(cluster, &[1, 2], edit);
        assert_eq!(*cluster.image(), before);
        code
    };
    use ErrorCode::{
        FencedLeaderEpoch, InvalidUpdateVersion, NotController, StaleBrokerEpoch, UnknownTopicId,
        UnknownTopicOrPartition,
    };
    assert_eq!(code(&mut cluster, |ask| ask.broker_epoch += 1), StaleBrokerEpoch);
    assert_eq!(code(&mut cluster, |ask| ask.broker_id = 77), StaleBrokerEpoch);
    assert_eq!(code(&mut cluster, |ask| ask.partitions[0].topic_id = Uuid::nil()), UnknownTopicId);
    let unknown = code(&mut cluster, |ask| ask.partitions[0].partition = 5);
    assert_eq!(unknown, UnknownTopicOrPartition);
    assert_eq!(code(&mut cluster, |ask| ask.partitions[0].leader_epoch -= 1), FencedLeaderEpoch);
    assert_eq!(code(&mut cluster, |ask| ask.partitions[0].leader_epoch += 1), NotController);
    let stale = code(&mut cluster, |ask| ask.partitions[0].partition_epoch -= 1);
    assert_eq!(stale, InvalidUpdateVersion);
}

#[test]
fn only_the_living_join() {
    let mut cluster = Cluster::new(3);
    cluster.create_on("a", "1 2 3");
    wish(&mut cluster, &[1], |_| {});
    let stale = wish(&mut cluster, &[1, 2], |ask| ask.partitions[0].isr[1].1 -= 1);
    assert_eq!(stale, ErrorCode::IneligibleReplica); // Known under an older epoch (KIP-903).
    cluster.fence(3);
    assert_eq!(wish(&mut cluster, &[1, 3], |_| {}), ErrorCode::IneligibleReplica);
    assert_eq!(wish(&mut cluster, &[1, 2], |_| {}), ErrorCode::None);
}

#[test]
fn one_partition_twice_in_a_request() {
    let mut cluster = Cluster::new(2);
    cluster.create_on("a", "1 2");
    let code = wish(&mut cluster, &[1], |ask| ask.partitions.push(ask.partitions[0].clone()));
    assert_eq!(code, ErrorCode::None);
    assert_eq!(cluster.show("a", 0), "1 2 leader 1@0 isr 1");
    assert_eq!(cluster.image().partition("a", 0).unwrap().partition_epoch, 1);
}

#[test]
fn directories_are_assigned() {
    let mut cluster = Cluster::new(2);
    cluster.create_on("a", "1 2");
    let topic_id = cluster.image().topic("a").unwrap().id;
    let directory = Uuid::from_u128(1_002);
    let replica = |partition, topic_id| AssignedReplica { directory, topic_id, partition };
    let replicas = vec![replica(0, topic_id), replica(5, topic_id), replica(0, Uuid::nil())];
    let broker_epoch = cluster.image().broker(2).unwrap().epoch;
    let request = AssignDirectories { broker_id: 2, broker_epoch, replicas };
    let ControllerReply::AssignDirectories(Ok(reply)) =
        cluster.ask(ControllerRequest::AssignDirectories(request.clone()))
    else {
        panic!()
    };
    let codes: Vec<i16> = reply
        .iter()
        .map(|entry| entry.result.as_ref().map_or_else(|refusal| refusal.code.code(), |()| 0))
        .collect();
    assert_eq!(codes, [0, 3, 100]);
    assert_eq!(cluster.image().partition("a", 0).unwrap().directory(2), Some(directory));
    let stale = AssignDirectories { broker_epoch: 99, ..request };
    let ControllerReply::AssignDirectories(Err(refusal)) =
        cluster.ask(ControllerRequest::AssignDirectories(stale))
    else {
        panic!()
    };
    assert_eq!(refusal.code, ErrorCode::StaleBrokerEpoch);
}

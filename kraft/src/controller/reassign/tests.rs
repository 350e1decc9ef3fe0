//! Reassignments against what Apache Kafka 4.4.0 answers, and what becomes of moves that are
//! changed.

use super::super::fixtures::Cluster;
use super::super::request::{AlterPartition, ControllerReply, ControllerRequest, IsrChange};
use super::*;

/// Asks for `t-0` on these brokers ("" = nobody, "-" = cancel); gives "ok" or code and text.
fn go(cluster: &mut Cluster, replicas: &str) -> String {
    ask(cluster, "t", 0, replicas, true)
}

fn ask(cluster: &mut Cluster, name: &str, partition: i32, to: &str, change: bool) -> String {
    let replicas =
        (to != "-").then(|| to.split_whitespace().map(|id| id.parse().unwrap()).collect());
    let topics = vec![(name.to_string(), vec![Reassignment { partition, replicas }])];
    let request = AlterReassignments { topics, allow_factor_change: change };
    match cluster.ask(ControllerRequest::AlterReassignments(request)) {
        ControllerReply::AlterReassignments(reply) => {
            match &reply[0].1.as_ref().unwrap()[0].result {
                Ok(()) => "ok".to_string(),
                Err(refusal) => {
                    format!("{} {}", refusal.code.code(), refusal.message.as_deref().unwrap_or("-"))
                }
            }
        }
        other => panic!("{other:?}"),
    }
}

/// The leader of `t-0` reports its ISR.
fn report(cluster: &mut Cluster, isr: &[i32]) -> Option<ErrorCode> {
    let topic = cluster.image().topic("t").unwrap();
    let partition = &topic.partitions[0];
    let request = AlterPartition {
        broker_id: partition.leader,
        broker_epoch: cluster.image().broker(partition.leader).unwrap().epoch,
        partitions: vec![IsrChange {
            topic_id: topic.id,
            partition: 0,
            leader_epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            isr: isr.iter().map(|id| (*id, -1)).collect(),
            recovering: false,
        }],
    };
    match cluster.ask(ControllerRequest::AlterPartition(request)) {
        ControllerReply::AlterPartition(Ok(reply)) => {
            reply[0].result.as_ref().err().map(|r| r.code)
        }
        other => panic!("{other:?}"),
    }
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::new(5);
    cluster.create_on("t", "1 2 3");
    cluster
}

#[test]
fn refused_moves() {
    let mut c = cluster();
    let before = c.image().clone();
    let manual = "39 The manual partition assignment includes";
    assert_eq!(go(&mut c, "-"), "85 -");
    assert_eq!(go(&mut c, ""), format!("{manual} an empty replica list."));
    assert_eq!(go(&mut c, "1 1"), format!("{manual} the broker 1 more than once."));
    for id in ["4711", "-1"] {
        let text = format!("{manual} broker {id}, but no such broker is registered.");
        assert_eq!(go(&mut c, id), text);
        assert_eq!(ask(&mut c, "t", 0, id, false), text); // Before the factor.
    }
    let text = "38 The replication factor is changed from 3 to 2";
    assert_eq!(ask(&mut c, "t", 0, "1 2", false), text);
    assert_eq!(ask(&mut c, "none", 0, "1", true), "3 Unable to find a topic named none.");
    assert_eq!(ask(&mut c, "t", 9, "1", true), "3 Unable to find partition t:9.");
    assert_eq!(go(&mut c, "1 2 3"), "ok"); // As it is.
    assert_eq!(*c.image(), before);
}

#[test]
fn a_move_and_its_end() {
    let mut c = cluster();
    assert_eq!(go(&mut c, "4 2 3"), "ok");
    let moving = "4 2 3 1 leader 1@0 isr 1 2 3 adding 4 removing 1";
    assert_eq!(c.show("t", 0), moving);
    assert_eq!(go(&mut c, "4 2 3"), "ok"); // Again.
    assert_eq!(c.show("t", 0), moving);
    assert_eq!(report(&mut c, &[1, 2, 4]), None); // 3 lags.
    // The sender is not part of the outcome.
    assert_eq!(report(&mut c, &[1, 2, 3, 4]), Some(ErrorCode::NewLeaderElected));
    assert_eq!(c.show("t", 0), "4 2 3 leader 4@1 isr 2 3 4");
}

#[test]
fn moves_that_end_at_once() {
    for (to, want) in [
        ("3 2 1", "3 2 1 leader 1@0 isr 1 2 3"), // The leader stays until an election is asked for.
        ("1 2", "1 2 leader 1@1 isr 1 2"),
        ("2 3", "2 3 leader 2@1 isr 2 3"),
    ] {
        let mut c = cluster();
        assert_eq!(go(&mut c, to), "ok");
        assert_eq!(c.show("t", 0), want, "{to}");
    }
}

#[test]
fn cancelling() {
    let mut c = cluster();
    go(&mut c, "4 5 3");
    assert_eq!(go(&mut c, "-"), "ok");
    assert_eq!(c.show("t", 0), "3 1 2 leader 1@1 isr 1 2 3");
    assert_eq!(go(&mut c, "-"), "85 -");
    // With a new replica in sync and in the lead.
    let mut c = cluster();
    go(&mut c, "4 2 3");
    report(&mut c, &[1, 4]);
    c.fence(1);
    assert_eq!(c.show("t", 0), "4 2 3 1 leader 4@1 isr 4 adding 4 removing 1");
    // Nobody of the old ones is in sync: a live leader is not traded for none.
    assert!(go(&mut c, "-").starts_with("39 "), "{}", c.show("t", 0));
    assert_eq!(c.show("t", 0), "4 2 3 1 leader 4@1 isr 4 adding 4 removing 1");
}

#[test]
fn another_target() {
    let mut c = cluster();
    go(&mut c, "4 2 3");
    assert_eq!(go(&mut c, "5 2 3"), "ok");
    // 4 never was part of it and goes at once.
    assert_eq!(c.show("t", 0), "5 2 3 1 leader 1@1 isr 1 2 3 adding 5 removing 1");
    assert_eq!(go(&mut c, "-"), "ok");
    assert_eq!(c.show("t", 0), "2 3 1 leader 1@2 isr 1 2 3");
    // A move to a broker that died is rescued by another target.
    go(&mut c, "4 2 3");
    c.fence(4);
    assert_eq!(go(&mut c, "1 2 3"), "ok");
    assert_eq!(c.show("t", 0), "1 2 3 leader 1@3 isr 1 2 3");
    // The only one in sync is not dropped.
    go(&mut c, "4 2 3");
    c.beat(4);
    report(&mut c, &[1, 4]);
    c.fence(1);
    assert_eq!(c.show("t", 0), "4 2 3 1 leader 4@4 isr 4 adding 4 removing 1");
    assert_eq!(go(&mut c, "5 2 3"), "ok");
    assert_eq!(c.show("t", 0), "5 2 3 4 1 leader 4@4 isr 4 adding 5 removing 4 1");
}

#[test]
fn listing() {
    let mut c = cluster();
    c.create_on("u", "1 2/1 2");
    assert_eq!(running_reassignments(c.image(), None), []);
    go(&mut c, "4 2 3");
    ask(&mut c, "u", 1, "2 5", true);
    let list = |asked: Option<&[(String, Vec<i32>)]>| {
        running_reassignments(c.image(), asked)
            .into_iter()
            .map(|(name, running)| {
                let indexes: Vec<i32> = running.iter().map(|r| r.partition).collect();
                format!("{name}{indexes:?}")
            })
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(list(None), "t[0] u[1]");
    assert_eq!(list(Some(&[("u".into(), vec![0, 1, 7])])), "u[1]");
    assert_eq!(list(Some(&[("u".into(), vec![0]), ("none".into(), vec![0])])), "");
    assert_eq!(list(Some(&[])), "");
    let (_, running) = running_reassignments(c.image(), None).remove(0);
    let want = RunningReassignment {
        partition: 0,
        replicas: vec![4, 2, 3, 1],
        adding: vec![4],
        removing: vec![1],
    };
    assert_eq!(running, [want]);
}

#[test]
fn one_partition_twice_in_a_request() {
    let mut c = cluster();
    let to = |replicas: &[i32]| Reassignment { partition: 0, replicas: Some(replicas.to_vec()) };
    for last in [&[1, 2, 3], &[5, 2, 3]] {
        assert_eq!(c.show("t", 0), "1 2 3 leader 1@0 isr 1 2 3");
        let topics = vec![("t".to_string(), vec![to(&[4, 2, 3]), to(last)])];
        let request = AlterReassignments { topics, allow_factor_change: true };
        c.ask(ControllerRequest::AlterReassignments(request));
    }
    assert_eq!(c.show("t", 0), "5 2 3 1 leader 1@0 isr 1 2 3 adding 5 removing 1");
}

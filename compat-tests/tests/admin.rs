//! Topics, partitions, records and groups as an administrator makes and removes them.

use std::sync::OnceLock;

use compat_tests::broker::Broker;
use compat_tests::client::{self, Admin, Got, PATIENCE, Sender};
use compat_tests::settings::unique;
use rdkafka::Offset;
use rdkafka::admin::{NewTopic, TopicReplication};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode as Code;
use rdkafka::metadata::Metadata;

fn broker() -> &'static str {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    &BROKER.get_or_init(Broker::shared).bootstrap
}

fn metadata(topic: Option<&str>) -> Metadata {
    let mut config = client::base(broker());
    config.set("allow.auto.create.topics", "false");
    let probe: BaseConsumer = config.create().expect("no client");
    probe.fetch_metadata(topic, PATIENCE).expect("no metadata")
}

fn partitions_of(topic: &str) -> usize {
    metadata(Some(topic)).topics()[0].partitions().len()
}

#[test]
fn create_topic() {
    let topic = Admin::new(broker()).topic(3, &[]);
    client::until("3 partitions", || partitions_of(&topic) == 3);
}

#[test]
fn create_topic_with_default_partitions() {
    let topic = unique("t");
    let new = NewTopic::new(&topic, -1, TopicReplication::Fixed(-1));
    Admin::new(broker()).create_new(&new).expect("created");
    client::until("partitions", || partitions_of(&topic) >= 1);
}

#[test]
fn create_topic_twice() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    assert_eq!(admin.create(&topic, 1, &[]), Err(Code::TopicAlreadyExists));
}

#[test]
fn create_topic_validated_only() {
    let topic = unique("t");
    let admin = Admin::new(broker()).validating();
    assert_eq!(admin.create(&topic, 1, &[]), Ok(()));
    let all = metadata(None);
    assert!(all.topics().iter().all(|one| one.name() != topic));
}

#[test]
fn create_topic_with_an_assignment() {
    let admin = Admin::new(broker());
    let id = metadata(None).brokers()[0].id();
    let topic = unique("t");
    let assignment: [&[i32]; 2] = [&[id], &[id]];
    let new = NewTopic::new(&topic, 2, TopicReplication::Variable(&assignment));
    admin.create_new(&new).expect("created");
    client::until("2 partitions", || partitions_of(&topic) == 2);
}

/// A topic that cannot be made.
fn check_refused(topic: &str, partitions: i32, replication: i32, set: &[(&str, &str)], want: Code) {
    let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(replication));
    for (key, value) in set {
        new = new.set(key, value);
    }
    assert_eq!(Admin::new(broker()).create_new(&new), Err(want), "{topic}");
}

#[test]
fn names_with_bad_characters() {
    for name in ["a b", "a/b", "a:b", "a,b", "\u{e9}"] {
        check_refused(name, 1, 1, &[], Code::InvalidTopic);
    }
}

#[test]
fn names_that_are_dots() {
    for name in [".", ".."] {
        check_refused(name, 1, 1, &[], Code::InvalidTopic);
    }
}

#[test]
fn names_of_250_characters() {
    check_refused(&"n".repeat(250), 1, 1, &[], Code::InvalidTopic);
}

#[test]
fn names_that_collide() {
    let base = unique("c");
    Admin::new(broker()).create(&format!("{base}.x"), 1, &[]).expect("created");
    check_refused(&format!("{base}_x"), 1, 1, &[], Code::InvalidTopic);
}

#[test]
fn replication_beyond_the_brokers() {
    let brokers = metadata(None).brokers().len() as i32;
    check_refused(&unique("t"), 1, brokers + 1, &[], Code::InvalidReplicationFactor);
}

#[test]
fn settings_that_do_not_exist() {
    check_refused(&unique("t"), 1, 1, &[("no.such.thing", "1")], Code::InvalidConfig);
}

#[test]
fn settings_out_of_bounds() {
    check_refused(&unique("t"), 1, 1, &[("segment.bytes", "-3")], Code::InvalidConfig);
    check_refused(&unique("t"), 1, 1, &[("cleanup.policy", "burn")], Code::InvalidConfig);
}

#[test]
fn delete_topic() {
    let admin = Admin::new(broker());
    let topic = admin.topic(2, &[]);
    admin.delete(&topic).expect("deleted");
    client::until("it is gone", || metadata(None).topics().iter().all(|t| t.name() != topic));
}

#[test]
fn delete_topic_that_is_not() {
    let deleted = Admin::new(broker()).delete(&unique("never"));
    assert_eq!(deleted, Err(Code::UnknownTopicOrPartition));
}

#[test]
fn a_topic_made_again_is_empty() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    Sender::new(broker(), &[]).fill(&topic, 0, ["old".to_owned()]);
    admin.delete(&topic).expect("deleted");
    client::until("it can be made", || admin.create(&topic, 1, &[]).is_ok());
    client::until("it is empty", || client::watermarks(broker(), &topic, 0) == (0, 0));
    Sender::new(broker(), &[]).fill(&topic, 0, ["new".to_owned()]);
    assert_eq!(client::read(broker(), &topic, 0, 1)[0].text(), "new");
}

#[test]
fn more_partitions() {
    let admin = Admin::new(broker());
    let topic = admin.topic(2, &[]);
    Sender::new(broker(), &[]).fill(&topic, 1, ["kept".to_owned()]);
    admin.add_partitions(&topic, 5).expect("added");
    client::until("5 partitions", || partitions_of(&topic) == 5);
    Sender::new(broker(), &[]).fill(&topic, 4, ["new".to_owned()]);
    assert_eq!(client::read(broker(), &topic, 1, 1)[0].text(), "kept");
    assert_eq!(client::read(broker(), &topic, 4, 1)[0].text(), "new");
}

#[test]
fn fewer_or_as_many_partitions() {
    let admin = Admin::new(broker());
    let topic = admin.topic(3, &[]);
    assert_eq!(admin.add_partitions(&topic, 2), Err(Code::InvalidPartitions));
    assert_eq!(admin.add_partitions(&topic, 3), Err(Code::InvalidPartitions));
}

#[test]
fn partitions_of_an_unknown_topic() {
    let added = Admin::new(broker()).add_partitions(&unique("never"), 3);
    assert_eq!(added, Err(Code::UnknownTopicOrPartition));
}

#[test]
fn delete_records() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    Sender::new(broker(), &[]).fill(&topic, 0, (0..10).map(|n| n.to_string()));
    assert_eq!(admin.delete_records(&topic, 0, Offset::Offset(3)), Ok(3));
    let got = client::read(broker(), &topic, 0, 7);
    assert_eq!((got[0].offset, got[0].text()), (3, "3".to_owned()));
    // Back is no error, and changes nothing.
    assert_eq!(admin.delete_records(&topic, 0, Offset::Offset(1)), Ok(3));
}

#[test]
fn delete_all_records() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    Sender::new(broker(), &[]).fill(&topic, 0, (0..10).map(|n| n.to_string()));
    assert_eq!(admin.delete_records(&topic, 0, Offset::End), Ok(10));
    assert_eq!(client::watermarks(broker(), &topic, 0), (10, 10));
    Sender::new(broker(), &[]).fill(&topic, 0, ["next".to_owned()]);
    assert_eq!(client::read(broker(), &topic, 0, 1)[0].offset, 10);
}

#[test]
fn delete_records_beyond_the_end() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    Sender::new(broker(), &[]).fill(&topic, 0, ["one".to_owned()]);
    let deleted = admin.delete_records(&topic, 0, Offset::Offset(50));
    assert_eq!(deleted, Err(Code::OffsetOutOfRange));
}

#[test]
fn delete_a_group() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    let group = unique("g");
    let consumer = client::consumer(broker(), &group, &[]);
    let place = client::list(&[(&topic, 0, Offset::Offset(1))]);
    consumer.commit(&place, rdkafka::consumer::CommitMode::Sync).expect("committed");
    drop(consumer);
    assert_eq!(admin.delete_group(&group), Ok(()));
    assert_eq!(admin.delete_group(&group), Err(Code::GroupIdNotFound));
}

#[test]
fn delete_a_group_at_work() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    Sender::new(broker(), &[]).fill(&topic, 0, ["one".to_owned()]);
    let group = unique("g");
    let consumer = client::consumer(broker(), &group, &[]);
    consumer.subscribe(&[&topic]).expect("subscribed");
    client::poll(&consumer, 1);
    assert_eq!(admin.delete_group(&group), Err(Code::NonEmptyGroup));
}

#[test]
fn metadata_of_the_cluster() {
    let all = metadata(None);
    let places: Vec<String> =
        all.brokers().iter().map(|one| format!("{}:{}", one.host(), one.port())).collect();
    assert!(places.iter().any(|place| broker().contains(place)), "{places:?}");
}

#[test]
fn metadata_of_a_topic() {
    let topic = Admin::new(broker()).topic(4, &[]);
    client::until("4 partitions", || partitions_of(&topic) == 4);
    let all = metadata(Some(&topic));
    let ids: Vec<i32> = all.brokers().iter().map(|one| one.id()).collect();
    for partition in all.topics()[0].partitions() {
        assert!(ids.contains(&partition.leader()));
        assert_eq!(partition.replicas(), [partition.leader()]);
        assert_eq!(partition.isr(), [partition.leader()]);
        assert!(partition.error().is_none());
    }
}

#[test]
fn cluster_has_an_id() {
    let probe: BaseConsumer = client::base(broker()).create().expect("no client");
    let id = probe.client().fetch_cluster_id(PATIENCE).expect("a cluster has an id");
    assert!(!id.is_empty());
}

#[test]
fn compacted_topic_takes_keys_and_refuses_none() {
    use client::Rec;
    let topic = Admin::new(broker()).topic(1, &[("cleanup.policy", "compact")]);
    let sender = Sender::new(broker(), &[]);
    let rec = Rec::to(&topic).partition(0);
    assert_eq!(sender.send_one(&rec.clone().key("k").value("v")), Ok((0, 0)));
    assert_eq!(sender.send_one(&rec.value("v")), Err(Code::InvalidRecord));
    let got: Vec<Got> = client::read(broker(), &topic, 0, 1);
    assert_eq!(got[0].key.as_deref(), Some(&b"k"[..]));
}

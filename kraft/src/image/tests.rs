//! Tests of the image: what records do to it, its way back into records, differences.

use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::record::*;

pub(crate) fn topic(name: &str, id: u128) -> MetadataRecord {
    MetadataRecord::Topic(TopicRecord { name: name.into(), topic_id: Uuid::from_u128(id) })
}

pub(crate) fn partition(id: u128, index: i32, replicas: &[i32]) -> PartitionRecord {
    PartitionRecord {
        topic_id: Uuid::from_u128(id),
        partition: index,
        replicas: replicas.to_vec(),
        directories: vec![Uuid::nil(); replicas.len()],
        isr: replicas.to_vec(),
        adding: vec![],
        removing: vec![],
        elr: vec![],
        last_known_elr: vec![],
        leader: replicas[0],
        recovering: false,
        leader_epoch: 0,
        partition_epoch: 0,
    }
}

fn broker(id: i32, epoch: i64) -> MetadataRecord {
    MetadataRecord::RegisterBroker(BrokerRecord {
        broker_id: id,
        incarnation_id: Uuid::from_u128(7),
        broker_epoch: epoch,
        endpoints: vec![],
        features: vec![],
        rack: None,
        fenced: true,
        in_controlled_shutdown: false,
        directories: vec![],
    })
}

fn config(resource: ConfigResource, key: &str, value: Option<&str>) -> MetadataRecord {
    MetadataRecord::Config(ConfigRecord { resource, key: key.into(), value: value.map(Arc::from) })
}

fn quota(user: Option<&str>, key: &str, value: Option<f64>) -> MetadataRecord {
    let entity = vec![(Arc::from("user"), user.map(Arc::from))];
    MetadataRecord::ClientQuota(ClientQuotaRecord { entity, key: key.into(), value })
}

fn acl(id: u128) -> MetadataRecord {
    MetadataRecord::Acl(AclRecord {
        id: Uuid::from_u128(id),
        resource_type: 2,
        resource_name: "t".into(),
        pattern_type: 3,
        principal: "User:a".into(),
        host: "*".into(),
        operation: 3,
        permission_type: 3,
    })
}

fn scram(user: &str, mechanism: i8) -> MetadataRecord {
    MetadataRecord::Scram(ScramRecord {
        user: user.into(),
        mechanism,
        salt: vec![1],
        stored_key: vec![2],
        server_key: vec![3],
        iterations: 4096,
    })
}

/// An image with something of everything.
fn full() -> Image {
    let records = [
        topic("b", 2),
        MetadataRecord::Partition(partition(2, 0, &[1, 2])),
        topic("a", 1),
        MetadataRecord::Partition(partition(1, 0, &[1, 2])),
        MetadataRecord::Partition(partition(1, 1, &[2, 1])),
        broker(1, 0),
        broker(2, 1),
        MetadataRecord::UnregisterBroker { broker_id: 2, broker_epoch: 1 },
        config(ConfigResource::topic("a"), "k", Some("v")),
        config(ConfigResource::default_broker(), "k", Some("v")),
        MetadataRecord::FeatureLevel { name: "f".into(), level: 3 },
        MetadataRecord::ProducerIds { broker_id: 1, broker_epoch: 0, next_producer_id: 1000 },
        quota(Some("u"), "x", Some(1.5)),
        quota(None, "y", Some(2.0)),
        acl(5),
        scram("u", 1),
        scram("u", 2),
    ];
    Image::from_records(17, &records).unwrap()
}

fn applied(image: &Image, records: &[MetadataRecord]) -> Image {
    let mut image = image.clone();
    image.apply_all(image.last_applied() + 1, records).unwrap();
    image
}

#[test]
fn what_is_there_can_be_found() {
    let image = full();
    assert_eq!(image.last_applied(), 17);
    let names: Vec<&str> = image.topics().map(|topic| &*topic.name).collect();
    assert_eq!(names, ["a", "b"]);
    let names: Vec<&str> = image.topics_from("aa").map(|topic| &*topic.name).collect();
    assert_eq!(names, ["b"]);
    assert_eq!(image.topic_by_id(Uuid::from_u128(2)).unwrap().name.as_ref(), "b");
    assert_eq!(image.partition("a", 1).unwrap().leader(), Some(2));
    for missing in [-1, 2] {
        assert_eq!(image.partition("a", missing), None);
    }
    assert_eq!(image.brokers().count(), 1);
    assert_eq!(image.last_broker_epoch(), 1);
    assert_eq!((image.feature("f"), image.feature("g")), (3, 0));
    assert_eq!(image.next_producer_id(), 1000);
    assert_eq!(image.scram("u", 2).unwrap().iterations, 4096);
    assert!(image.acl(Uuid::from_u128(5)).is_some());
    let entity = vec![(Arc::from("user"), None)];
    assert_eq!(image.quota(&entity).unwrap().get("y"), Some(&2.0));
}

#[test]
fn a_snapshot_gives_the_same_image() {
    for image in [Image::default(), full()] {
        let records = image.to_records();
        let bytes = encode_batch(&records);
        let read = decode_batch(&bytes).unwrap();
        let again = Image::from_records(image.last_applied(), &read).unwrap();
        assert_eq!(again, image);
        assert_eq!(again.to_records(), records);
    }
}

#[test]
fn what_was_set_can_be_taken_back() {
    let image = applied(
        &full(),
        &[
            config(ConfigResource::topic("a"), "k", None),
            config(ConfigResource::topic("a"), "never", None),
            MetadataRecord::FeatureLevel { name: "f".into(), level: 0 },
            quota(Some("u"), "x", None),
            MetadataRecord::RemoveAcl { id: Uuid::from_u128(5) },
            MetadataRecord::RemoveScram { user: "u".into(), mechanism: 1 },
        ],
    );
    assert_eq!(image.configs(&ConfigResource::topic("a")), None);
    assert_eq!(image.features().count(), 0);
    assert_eq!(image.quotas().count(), 1);
    assert_eq!(image.acls().count(), 0);
    assert_eq!(image.scrams().count(), 1);
}

#[track_caller]
fn check_refused(record: MetadataRecord, want: ImageError) {
    let mut image = full();
    assert_eq!(image.apply(&record), Err(want));
    assert_eq!(image, full());
}

#[test]
fn records_that_do_not_fit_change_nothing() {
    let unknown = ImageError::UnknownTopic(Uuid::from_u128(9));
    check_refused(topic("a", 9), ImageError::TopicExists("a".into()));
    check_refused(topic("c", 1), ImageError::TopicExists("c".into()));
    check_refused(MetadataRecord::RemoveTopic { topic_id: Uuid::from_u128(9) }, unknown.clone());
    check_refused(MetadataRecord::Partition(partition(9, 0, &[1])), unknown.clone());
    let change = PartitionChangeRecord { topic_id: Uuid::from_u128(9), ..Default::default() };
    check_refused(MetadataRecord::PartitionChange(change), unknown);
    let topic_id = Uuid::from_u128(1);
    for at in [-1, 0, 3] {
        let order = ImageError::UnknownPartition { topic_id, partition: at };
        check_refused(MetadataRecord::Partition(partition(1, at, &[1])), order);
    }
    let bad = |edit: fn(&mut PartitionRecord), why| {
        let mut record = partition(1, 2, &[1, 2]);
        edit(&mut record);
        check_refused(MetadataRecord::Partition(record), ImageError::BadPartition(why));
    };
    bad(|p| p.replicas.clear(), "no replicas");
    bad(|p| p.directories.clear(), "not one directory for each replica");
    bad(|p| p.isr.push(3), "ISR is not among the replicas");
    bad(|p| p.leader = 3, "leader is not in the ISR");
    bad(|p| p.isr.clear(), "leader is not in the ISR");
    let stranger = ImageError::UnknownBroker { broker_id: 1, broker_epoch: 5 };
    check_refused(MetadataRecord::UnregisterBroker { broker_id: 1, broker_epoch: 5 }, stranger);
    let ids = MetadataRecord::ProducerIds { broker_id: 1, broker_epoch: 0, next_producer_id: 9 };
    check_refused(ids, ImageError::ProducerIdFell(9));
}

#[test]
fn epochs_of_a_partition() {
    let topic_id = Uuid::from_u128(1);
    let change = |edit: fn(&mut PartitionChangeRecord)| {
        let mut change = PartitionChangeRecord { topic_id, ..Default::default() };
        edit(&mut change);
        let image = applied(&full(), &[MetadataRecord::PartitionChange(change)]);
        let partition = image.partition("a", 0).unwrap();
        (partition.leader_epoch, partition.partition_epoch)
    };
    assert_eq!(change(|change| change.isr = Some(vec![1])), (0, 1));
    assert_eq!(change(|change| change.leader = Some(2)), (1, 1));
    assert_eq!(change(|change| change.leader = Some(1)), (1, 1)); // The same again counts.
}

/// Differences as text.
fn show(old: &Image, new: &Image) -> String {
    let changes = changes(old, new);
    let topics = |topics: &[Arc<Topic>]| {
        topics
            .iter()
            .map(|t| format!("{}#{}", t.name, t.id.as_u128()))
            .collect::<Vec<_>>()
            .join(",")
    };
    let at = |list: &[PartitionAt]| {
        list.iter().map(|p| format!("{}-{}", p.topic.name, p.index)).collect::<Vec<_>>().join(",")
    };
    let mut text = Vec::new();
    let mut say = |what: &str, list: String| {
        if !list.is_empty() {
            text.push(format!("{what} {list}"));
        }
    };
    say("created", topics(&changes.topics_created));
    say("deleted", topics(&changes.topics_deleted));
    say("new", at(&changes.partitions_created));
    say("changed", at(&changes.partitions_changed));
    let configs: Vec<String> = changes.configs.iter().map(|r| r.name.to_string()).collect();
    say("configs", configs.join(","));
    let brokers: Vec<String> = changes.brokers.iter().map(i32::to_string).collect();
    say("brokers", brokers.join(","));
    for (name, differs) in [
        ("features", changes.features),
        ("quotas", changes.quotas),
        ("acls", changes.acls),
        ("scrams", changes.scrams),
    ] {
        say(name, if differs { "differ".into() } else { String::new() });
    }
    assert_eq!(changes.is_empty(), text.is_empty());
    text.join("; ")
}

#[track_caller]
fn check_changes(records: &[MetadataRecord], want: &str) {
    let old = full();
    let new = applied(&old, records);
    assert_eq!(show(&old, &new), want);
}

#[test]
fn differences() {
    let one = Uuid::from_u128(1);
    let shrink = PartitionChangeRecord {
        topic_id: one,
        partition: 1,
        isr: Some(vec![2]),
        ..Default::default()
    };
    check_changes(&[], "");
    check_changes(&[MetadataRecord::NoOp], "");
    check_changes(&[MetadataRecord::PartitionChange(shrink)], "changed a-1");
    let more = MetadataRecord::Partition(partition(1, 2, &[1]));
    check_changes(&[more], "new a-2");
    let new = [topic("c", 3), MetadataRecord::Partition(partition(3, 0, &[1]))];
    check_changes(&new, "created c#3; new c-0");
    let gone = MetadataRecord::RemoveTopic { topic_id: one };
    check_changes(std::slice::from_ref(&gone), "deleted a#1; configs a");
    let again = [gone, topic("a", 8), MetadataRecord::Partition(partition(8, 0, &[1]))];
    check_changes(&again, "created a#8; deleted a#1; new a-0; configs a");
    check_changes(&[config(ConfigResource::topic("a"), "k", Some("v"))], "");
    check_changes(&[config(ConfigResource::topic("a"), "k", Some("w"))], "configs a");
    check_changes(&[config(ConfigResource::topic("a"), "k", None)], "configs a");
    check_changes(&[config(ConfigResource::topic("b"), "k", Some("v"))], "configs b");
    check_changes(&[broker(1, 5), broker(3, 6)], "brokers 1,3");
    check_changes(
        &[MetadataRecord::FeatureLevel { name: "f".into(), level: 0 }],
        "features differ",
    );
    check_changes(&[quota(None, "y", Some(3.0))], "quotas differ");
    check_changes(&[acl(6)], "acls differ");
    check_changes(&[scram("v", 1)], "scrams differ");
}

#[test]
fn one_difference_among_many_topics() {
    let mut records = Vec::new();
    for id in 0..5_000 {
        records.push(topic(&format!("t{id:05}"), id + 1));
        records.push(MetadataRecord::Partition(partition(id + 1, 0, &[1])));
    }
    let old = Image::from_records(0, &records).unwrap();
    let topic_id = Uuid::from_u128(2_501);
    let change = PartitionChangeRecord { topic_id, leader: Some(-1), ..Default::default() };
    let new = applied(&old, &[MetadataRecord::PartitionChange(change)]);
    assert_eq!(show(&old, &new), "changed t02500-0");
    assert_eq!(show(&new, &new), "");
}

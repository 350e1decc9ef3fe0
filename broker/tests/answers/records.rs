//! Produce, Fetch and DeleteRecords.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    BrokerId, DeleteRecordsRequest, FetchRequest, ListOffsetsRequest, ProduceRequest,
};
use protocol_compat::batch::BatchBuilder;
use protocol_compat::compression::Codec;

use crate::node::{Client, Node, name};

fn batch() -> Bytes {
    let mut batch = BatchBuilder::new(0, Codec::None);
    batch.append(1_600_000_000_000, None, Some(b"x"), &[]);
    batch.build().freeze()
}

/// Produces one record to each place (`a:0 b:1`); the answer as `a:0@7 b:1@0 c:0!3`, by name.
fn produce(client: &mut Client, places: &str) -> String {
    let topics = places.split_whitespace().map(|place| {
        let (topic, partition) = place.split_once(':').expect("topic:partition");
        let data = PartitionProduceData::default()
            .with_index(partition.parse().expect("a number"))
            .with_records(Some(batch()));
        TopicProduceData::default().with_name(name(topic)).with_partition_data(vec![data])
    });
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(10_000)
        .with_topic_data(topics.collect());
    let mut answers = BTreeMap::new();
    for topic in client.ask(9, &request).responses {
        for partition in topic.partition_responses {
            let place = format!("{}:{}", topic.name.as_str(), partition.index);
            let what = match partition.error_code {
                0 => format!("@{}", partition.base_offset),
                code => format!("!{code}"),
            };
            assert!(answers.insert(place, what).is_none(), "named once");
        }
    }
    let answers = answers.into_iter().map(|(place, what)| place + &what);
    answers.collect::<Vec<_>>().join(" ")
}

/// Fills partition 0 of a new topic with records.
fn filled(client: &mut Client, topic: &str, records: usize) {
    client.topic(topic, 2, &[]);
    for _ in 0..records {
        produce(client, &format!("{topic}:0"));
    }
}

#[test]
fn a_partition_produced_to_twice_is_written_once() {
    let node = Node::start();
    let mut client = node.connect();
    client.topic("a", 2, &[]);
    client.topic("b", 1, &[]);
    assert_eq!(produce(&mut client, "a:0 a:0"), "a:0@0");
    assert_eq!(produce(&mut client, "a:0 b:0 a:0 a:1"), "a:0@1 a:1@0 b:0@0");
    assert_eq!(produce(&mut client, "b:0 no:0 a:9 a:0"), "a:0@2 a:9!3 b:0@1 no:0!3");
}

/// Fetches each place from offset 0; the answer in its order, `a:0` or `a:9!3`, topics by `|`.
fn fetch(client: &mut Client, replica: i32, places: &str) -> String {
    let topics = places.split_whitespace().map(|place| {
        let (topic, partition) = place.split_once(':').expect("topic:partition");
        let partition = FetchPartition::default()
            .with_partition(partition.parse().expect("a number"))
            .with_current_leader_epoch(-5)
            .with_partition_max_bytes(1 << 20);
        FetchTopic::default().with_topic(name(topic)).with_partitions(vec![partition])
    });
    let request = FetchRequest::default()
        .with_replica_id(BrokerId(replica))
        .with_max_bytes(1 << 20)
        .with_topics(topics.collect());
    let topics = client.ask(11, &request).responses.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let place = format!("{}:{}", topic.topic.as_str(), partition.partition_index);
            match partition.error_code {
                0 => place,
                code => format!("{place}!{code}"),
            }
        });
        partitions.collect::<Vec<_>>().join(" ")
    });
    topics.collect::<Vec<_>>().join(" | ")
}

#[test]
fn what_a_fetch_is_refused_comes_last() {
    let node = Node::start();
    let mut client = node.connect();
    filled(&mut client, "a", 1);
    filled(&mut client, "b", 1);
    let check = |client: &mut Client, places, want| assert_eq!(fetch(client, -1, places), want);
    check(&mut client, "a:0 no:0 b:0 b:1", "a:0 | b:0 b:1 | no:0!3");
    check(&mut client, "a:0 a:9 a:1", "a:0 a:1 a:9!3");
    check(&mut client, "a:0 a:9 b:0", "a:0 | b:0 | a:9!3");
    // The leader is no follower of its own. An epoch below -1 is none, here only.
    assert_eq!(fetch(&mut client, 0, "a:0"), "a:0!6");
}

#[test]
fn sizes_below_zero() {
    let node = Node::start();
    let mut client = node.connect();
    filled(&mut client, "a", 2);
    let mut check = |whole: i32, part: i32, offset: i64, want: i16| {
        let partition =
            FetchPartition::default().with_fetch_offset(offset).with_partition_max_bytes(part);
        let topic = FetchTopic::default().with_topic(name("a")).with_partitions(vec![partition]);
        let request = FetchRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_max_bytes(whole)
            .with_topics(vec![topic]);
        let answer = client.ask(11, &request).responses[0].partitions[0].clone();
        assert_eq!(answer.error_code, want, "{whole} {part} from {offset}");
    };
    for (whole, part) in [(-1, 100), (100, -1), (-5, -5)] {
        check(whole, part, 0, -1);
        // Nothing to read.
        check(whole, part, 2, 0);
        check(whole, part, 3, 1);
        check(whole, part, -1, 1);
    }
    check(0, 0, 0, 0);
}

#[test]
fn an_isolation_level_that_does_not_exist() {
    let node = Node::start();
    let mut client = node.connect();
    let id = client.topic("a", 1, &[]);
    for (version, want) in [(4, 1), (12, 1), (13, 0), (17, 0)] {
        let topic = FetchTopic::default()
            .with_topic(name("a"))
            .with_topic_id(id)
            .with_partitions(vec![FetchPartition::default()]);
        let request = FetchRequest::default().with_isolation_level(3).with_topics(vec![topic]);
        assert_eq!(client.ask(version, &request).responses.len(), want, "{version}");
    }
}

/// Deletes up to offsets (`a:0@2`); the answer as `a:0=2`, topics by `|`.
fn delete(client: &mut Client, places: &str) -> String {
    let topics = places.split_whitespace().map(|place| {
        let (topic, place) = place.split_once(':').expect("topic:partition@offset");
        let mut topic = DeleteRecordsTopic::default().with_name(name(topic));
        if let Some((partition, offset)) = place.split_once('@') {
            let partition = DeleteRecordsPartition::default()
                .with_partition_index(partition.parse().expect("a number"))
                .with_offset(offset.parse().expect("a number"));
            topic.partitions.push(partition);
        }
        topic
    });
    let request =
        DeleteRecordsRequest::default().with_topics(topics.collect()).with_timeout_ms(10_000);
    let topics = client.ask(2, &request).topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let place = format!("{}:{}", topic.name.as_str(), partition.partition_index);
            match partition.error_code {
                0 => format!("{place}={}", partition.low_watermark),
                code => format!("{place}!{code}"),
            }
        });
        partitions.collect::<Vec<_>>().join(" ")
    });
    topics.collect::<Vec<_>>().join(" | ")
}

#[test]
fn deleting_records_counts_the_last_word() {
    let node = Node::start();
    let mut client = node.connect();
    filled(&mut client, "a", 4);
    filled(&mut client, "b", 2);
    let check = |client: &mut Client, places, want| assert_eq!(delete(client, places), want);
    check(&mut client, "a:0@1 a:0@2", "a:0=2");
    check(&mut client, "b:0@1 a:0@3 b:1@0", "a:0=3 | b:0=1 b:1=0");
    check(&mut client, "a:0@1 a:9@0 no:0@0 b:0@3 b:0@-2", "a:0=3 a:9!3 | b:0!1 | no:0!3");
    // Of a topic of which nothing is asked nothing is said.
    check(&mut client, "a: b:0@-1", "b:0=2");
}

/// The log start and the end of partition 0.
fn bounds(client: &mut Client, topic: &str) -> [i64; 2] {
    [-2, -1].map(|time| {
        let partition = ListOffsetsPartition::default().with_timestamp(time);
        let asked =
            ListOffsetsTopic::default().with_name(name(topic)).with_partitions(vec![partition]);
        let request =
            ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![asked]);
        client.ask(7, &request).topics[0].partitions[0].offset
    })
}

#[test]
fn deleted_records_stay_deleted_when_the_process_is_killed() {
    let mut node = Node::start();
    let mut client = node.connect();
    filled(&mut client, "a", 4);
    assert_eq!(delete(&mut client, "a:0@3"), "a:0=3");
    // It is written down at once, not before the answer.
    client.until("log start on the disk", |_| {
        node.file("log-start-offset-checkpoint").contains("a 0 3")
    });
    node.kill_and_start();
    let mut client = node.connect();
    client.until("leader", |client| bounds(client, "a")[1] == 4);
    assert_eq!(bounds(&mut client, "a"), [3, 4]);
}

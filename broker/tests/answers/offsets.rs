//! ListOffsets, OffsetForLeaderEpoch, DescribeTopicPartitions: what is looked up.

use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{
    BrokerId, DescribeTopicPartitionsRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest,
};

use crate::node::{Client, Node, name};

/// Asks for the end of each place (`a:0`, with an epoch `a:0/7`); the answer as `a:0=5`, topics
/// by `|`.
fn ends(client: &mut Client, version: i16, places: &str) -> String {
    let topics = places.split_whitespace().map(|place| {
        let (topic, place) = place.split_once(':').expect("topic:partition");
        let mut topic = ListOffsetsTopic::default().with_name(name(topic));
        let (partition, epoch) = place.split_once('/').unwrap_or((place, "-1"));
        if let Ok(partition) = partition.parse() {
            let asked = ListOffsetsPartition::default()
                .with_partition_index(partition)
                .with_current_leader_epoch(epoch.parse().expect("a number"))
                .with_timestamp(-1);
            topic.partitions.push(asked);
        }
        topic
    });
    let request =
        ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(topics.collect());
    let topics = client.ask(version, &request).topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let place = format!("{}:{}", topic.name.as_str(), partition.partition_index);
            match partition.error_code {
                0 => format!("{place}={}", partition.offset),
                code => format!("{place}!{code}"),
            }
        });
        partitions.collect::<Vec<_>>().join(" ")
    });
    topics.collect::<Vec<_>>().join(" | ")
}

#[test]
fn offsets_of_a_topic_have_one_entry() {
    let node = Node::start();
    let mut client = node.connect();
    client.topic("a", 2, &[]);
    client.topic("b", 1, &[]);
    for version in [4, 7, 10] {
        let mut check = |places, want| assert_eq!(ends(&mut client, version, places), want);
        check("a:0 b:0 a:1", "a:0=0 a:1=0 | b:0=0");
        check("a:0 a:0", "a:0!42");
        check("a:0 a:1 b:0 a:0", "a:0!42 a:1=0 | b:0=0");
        check("a: b:0", "b:0=0");
        // Only -1 says that no epoch is known.
        check("a:0/0 a:1/1 b:0/-2", "a:0=0 a:1!75 | b:0!74");
    }
}

#[test]
fn ends_of_epochs() {
    let node = Node::start();
    let mut client = node.connect();
    client.topic("a", 1, &[]);
    let mut check = |epoch: i32, current: i32, want: (i16, i32, i64)| {
        let partition = OffsetForLeaderPartition::default()
            .with_leader_epoch(epoch)
            .with_current_leader_epoch(current);
        let asked =
            OffsetForLeaderTopic::default().with_topic(name("a")).with_partitions(vec![partition]);
        let request = OffsetForLeaderEpochRequest::default().with_topics(vec![asked]);
        let got = client.ask(4, &request).topics[0].partitions[0].clone();
        assert_eq!((got.error_code, got.leader_epoch, got.end_offset), want, "{epoch} {current}");
    };
    check(0, 0, (0, 0, 0));
    // Below all that is known, -1 apart: itself, and where what is known begins.
    check(-2, 0, (0, -2, 0));
    check(-1, 0, (0, -1, -1));
    check(1, -1, (0, -1, -1));
    check(0, -2, (74, -1, -1));
    check(0, 1, (75, -1, -1));
}

/// One page: topics with the number of their partitions, and where the next one begins.
fn page(client: &mut Client, topics: &str, limit: i32, cursor: Option<(&str, i32)>) -> String {
    let topics = topics.split_whitespace();
    let topics = topics.map(|topic| TopicRequest::default().with_name(name(topic)));
    let cursor = cursor.map(|(topic, index)| {
        Cursor::default().with_topic_name(name(topic)).with_partition_index(index)
    });
    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(topics.collect())
        .with_response_partition_limit(limit)
        .with_cursor(cursor);
    let answer = client.ask(0, &request);
    let topics = answer.topics.iter().map(|topic| {
        let shown = topic.name.as_ref().map_or("?", |name| name.as_str());
        match topic.error_code {
            0 => format!("{shown}={}", topic.partitions.len()),
            code => format!("{shown}!{code}/{}", topic.topic_authorized_operations),
        }
    });
    let mut said: Vec<String> = topics.collect();
    if let Some(next) = answer.next_cursor {
        said.push(format!("next {}:{}", next.topic_name.as_str(), next.partition_index));
    }
    said.join(" ")
}

#[test]
fn pages_of_topics() {
    let node = Node::start();
    let mut client = node.connect();
    client.topic("a", 3, &[]);
    client.topic("c", 2, &[]);
    let mut check = |topics, limit, cursor, want| {
        assert_eq!(page(&mut client, topics, limit, cursor), want, "{topics} {limit} {cursor:?}");
    };
    check("c a", 5, None, "a=3 c=2");
    check("c a", 4, None, "a=3 c=1 next c:1");
    check("c a", 3, None, "a=3 next c:0");
    // A topic that is not there ends a full page, too.
    check("c b a", 3, None, "a=3 next b:0");
    check("c b a", 4, None, "a=3 b!3/3576 c=1 next c:1");
    check("c a", 5, Some(("c", 1)), "c=1");
    // A cursor that the request does not name: all is refused, in the order of the request.
    let none = i32::MIN;
    let refused = format!("c!42/{none} a!42/{none}");
    check("c a", 5, Some(("b", 0)), &refused);
    check("c a", 5, Some(("c", -1)), &refused);
}

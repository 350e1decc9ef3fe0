//! Topics, settings, elections, the quorum: what an administrator asks.

use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::alter_replica_log_dirs_request::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic,
};
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterReplicaLogDirsRequest, BrokerId,
    CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest,
    DescribeLogDirsRequest, DescribeProducersRequest, DescribeQuorumRequest, ElectLeadersRequest,
    InitProducerIdRequest, MetadataRequest, ProducerId,
};

use crate::node::{Node, name, text};

const REQUEST_TIMED_OUT: i16 = 7;

#[test]
fn no_time_left_is_no_time() {
    let node = Node::start();
    let mut client = node.connect();
    client.topic("a", 1, &[]);
    for timeout_ms in [0, -1] {
        let new = CreatableTopic::default()
            .with_name(name("new"))
            .with_num_partitions(1)
            .with_replication_factor(1);
        let request =
            CreateTopicsRequest::default().with_topics(vec![new]).with_timeout_ms(timeout_ms);
        assert_eq!(client.ask(7, &request).topics[0].error_code, REQUEST_TIMED_OUT);
        let request = DeleteTopicsRequest::default()
            .with_topic_names(vec![name("a")])
            .with_timeout_ms(timeout_ms);
        assert_eq!(client.ask(5, &request).responses[0].error_code, REQUEST_TIMED_OUT);
        let more = CreatePartitionsTopic::default().with_name(name("a")).with_count(2);
        let request =
            CreatePartitionsRequest::default().with_topics(vec![more]).with_timeout_ms(timeout_ms);
        assert_eq!(client.ask(3, &request).results[0].error_code, REQUEST_TIMED_OUT);
        let which = TopicPartitions::default().with_topic(name("a")).with_partitions(vec![0]);
        let request = ElectLeadersRequest::default()
            .with_topic_partitions(Some(vec![which]))
            .with_timeout_ms(timeout_ms);
        for version in [0, 2] {
            let answer = client.ask(version, &request);
            assert_eq!(answer.error_code, if version == 0 { 0 } else { REQUEST_TIMED_OUT });
            let partition = &answer.replica_election_results[0].partition_result[0];
            assert_eq!(partition.error_code, REQUEST_TIMED_OUT);
        }
    }
    // Names are looked at before the clock; nothing asked needs no time.
    let twin = CreatableTopic::default().with_name(name("twin")).with_num_partitions(1);
    let twins = vec![twin.clone(), twin];
    let request = CreateTopicsRequest::default().with_topics(twins).with_timeout_ms(0);
    let codes: Vec<i16> = client.ask(7, &request).topics.iter().map(|t| t.error_code).collect();
    assert_eq!(codes, [42]);
    let request = ElectLeadersRequest::default().with_topic_partitions(Some(Vec::new()));
    assert_eq!(client.ask(2, &request.with_timeout_ms(0)).error_code, 0);
    let all = client.ask(9, &MetadataRequest::default().with_topics(None)).topics;
    let all: Vec<(&str, usize)> = all
        .iter()
        .map(|topic| (topic.name.as_ref().expect("a name").as_str(), topic.partitions.len()))
        .collect();
    assert_eq!(all, [("a", 1)]);
}

#[test]
fn a_resource_type_that_does_not_exist_spoils_the_request() {
    let node = Node::start();
    let mut client = node.connect();
    client.topic("a", 1, &[]);
    let mut check = |kinds: &[(i8, &str)], want: &[i16]| {
        let resources = kinds.iter().map(|&(kind, name)| {
            DescribeConfigsResource::default()
                .with_resource_type(kind)
                .with_resource_name(text(name))
        });
        let request = DescribeConfigsRequest::default().with_resources(resources.collect());
        let codes: Vec<i16> =
            client.ask(4, &request).results.iter().map(|result| result.error_code).collect();
        assert_eq!(codes, want, "{kinds:?}");
    };
    check(&[(2, "a"), (2, "no"), (2, "a b"), (4, "77")], &[0, 3, 17, 42]);
    check(&[(2, "a"), (3, "x"), (2, "no")], &[42, 42, 42]);
    check(&[(0, "a")], &[42]);
}

#[test]
fn the_quorum_is_asked_for_one_partition() {
    let node = Node::start();
    let mut client = node.connect();
    let mut check = |asked: &[(&str, &[i32])], want: &[i16]| {
        let topics = asked.iter().map(|(topic, partitions)| {
            let partitions = partitions.iter();
            let partitions =
                partitions.map(|&index| PartitionData::default().with_partition_index(index));
            TopicData::default().with_topic_name(name(topic)).with_partitions(partitions.collect())
        });
        let request = DescribeQuorumRequest::default().with_topics(topics.collect());
        let topics = client.ask(2, &request).topics;
        let partitions = topics.iter().flat_map(|topic| &topic.partitions);
        let codes: Vec<i16> = partitions.map(|partition| partition.error_code).collect();
        assert_eq!(codes, want, "{asked:?}");
    };
    check(&[("__cluster_metadata", &[0])], &[0]);
    check(&[("__cluster_metadata", &[0, 1])], &[3, 3]);
    check(&[("__cluster_metadata", &[0, 0])], &[3, 3]);
    check(&[("__cluster_metadata", &[0]), ("x", &[0])], &[3, 3]);
    check(&[("__cluster_metadata", &[1])], &[3]);
}

#[test]
fn producers_of_what_is_not_there() {
    let node = Node::start();
    let mut client = node.connect();
    client.topic("a", 1, &[]);
    let topics = [("a", 0), ("a", 9), ("no", 0), ("a b", 0)].map(|(topic, index)| {
        TopicRequest::default().with_name(name(topic)).with_partition_indexes(vec![index])
    });
    let request = DescribeProducersRequest::default().with_topics(topics.to_vec());
    let topics = client.ask(0, &request).topics;
    let partitions = topics.iter().flat_map(|topic| &topic.partitions);
    let said: Vec<(i16, bool)> = partitions
        .map(|partition| (partition.error_code, partition.error_message.is_some()))
        .collect();
    assert_eq!(said, [(0, false), (3, false), (3, true), (17, true)]);
}

#[test]
fn a_producer_goes_on_with_an_id_and_its_epoch() {
    let node = Node::start();
    let mut client = node.connect();
    let mut check = |version: i16, id: i64, epoch: i16, want: i16| {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(1_000)
            .with_producer_id(ProducerId(id))
            .with_producer_epoch(epoch);
        let answer = client.ask(version, &request);
        assert_eq!(answer.error_code, want, "{id} {epoch}");
        assert_eq!(answer.producer_id.0 >= 0, want == 0);
    };
    check(2, -1, -1, 0);
    for version in [3, 5] {
        check(version, -1, -1, 0);
        check(version, 5, 1, 0);
        check(version, -1, 0, 42);
        check(version, 5, -1, 42);
    }
}

/// What Kafka 4.4 answers, code and text.
#[test]
fn reassignments_of_a_lone_node() {
    let node = Node::start();
    let mut client = node.connect();
    client.topic("a", 1, &[]);
    let mut check =
        |version: i16, topic: &str, index: i32, to: Option<&[i32]>, want: (i16, &str)| {
            let brokers = to.map(|to| to.iter().map(|id| BrokerId(*id)).collect());
            let one = ReassignablePartition::default().with_partition_index(index);
            let asked = ReassignableTopic::default()
                .with_name(name(topic))
                .with_partitions(vec![one.with_replicas(brokers)]);
            let request = AlterPartitionReassignmentsRequest::default()
                .with_topics(vec![asked])
                .with_timeout_ms(30_000)
                .with_allow_replication_factor_change(version == 0);
            let answer = client.ask(version, &request);
            assert_eq!((answer.error_code, answer.error_message), (0, None));
            assert_eq!(answer.allow_replication_factor_change, version == 0);
            let one = &answer.responses[0].partitions[0];
            let said = one.error_message.as_ref().map_or("", |text| text.as_str());
            assert_eq!((one.error_code, said), want, "{topic}-{index} to {to:?}");
        };
    let manual = "The manual partition assignment includes";
    for version in [0, 1] {
        check(version, "a", 0, Some(&[0]), (0, ""));
        check(version, "a", 0, None, (85, ""));
        let text = format!("{manual} an empty replica list.");
        check(version, "a", 0, Some(&[]), (39, &text));
        let text = format!("{manual} the broker 0 more than once.");
        check(version, "a", 0, Some(&[0, 0]), (39, &text));
        let text = format!("{manual} broker 4711, but no such broker is registered.");
        check(version, "a", 0, Some(&[0, 4711]), (39, &text));
        check(version, "no", 0, Some(&[0]), (3, "Unable to find a topic named no."));
        check(version, "a", 9, Some(&[0]), (3, "Unable to find partition a:9."));
    }
    let empty = AlterPartitionReassignmentsRequest::default();
    assert_eq!(client.ask(0, &empty).error_message, Some(text("")));
}

#[test]
fn a_replica_stays_in_its_directory() {
    let node = Node::start();
    let mut client = node.connect();
    client.topic("a", 1, &[]);
    let dirs = client.ask(4, &DescribeLogDirsRequest::default().with_topics(None)).results;
    let here = dirs[0].log_dir.to_string();
    let mut check = |path: &str, topic: &str, index: i32, want: i16| {
        let asked =
            AlterReplicaLogDirTopic::default().with_name(name(topic)).with_partitions(vec![index]);
        let dir = AlterReplicaLogDir::default().with_path(text(path)).with_topics(vec![asked]);
        for version in [1, 2] {
            let request = AlterReplicaLogDirsRequest::default().with_dirs(vec![dir.clone()]);
            let answer = client.ask(version, &request);
            let one = &answer.results[0].partitions[0];
            assert_eq!((one.partition_index, one.error_code), (index, want), "{path} {topic}");
        }
    };
    check(&here, "a", 0, 0);
    check(&here, "no", 0, 3);
    check(&here, "a", 1, 3);
    check("/nowhere", "a", 0, 57);
    check("/nowhere", "no", 0, 57);
}

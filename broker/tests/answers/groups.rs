//! Groups and their offsets.

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DescribeGroupsRequest, GroupId, JoinGroupRequest, JoinGroupResponse, ListGroupsRequest,
    OffsetCommitRequest, OffsetDeleteRequest, SyncGroupRequest,
};

use crate::node::{Client, Node, name, text};

fn group(id: &str) -> GroupId {
    GroupId(text(id))
}

fn join(id: &str, member: &str) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(text("range"))
        .with_metadata(Bytes::from_static(b"m"));
    JoinGroupRequest::default()
        .with_group_id(group(id))
        .with_member_id(text(member))
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(10_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

/// A group of one stable member with some work.
fn stable(client: &mut Client, id: &str) -> JoinGroupResponse {
    client.coordinator();
    let member = client.ask(3, &join(id, ""));
    assert_eq!(member.error_code, 0);
    let work = SyncGroupRequestAssignment::default()
        .with_member_id(member.member_id.clone())
        .with_assignment(Bytes::from_static(b"work"));
    let sync = SyncGroupRequest::default()
        .with_group_id(group(id))
        .with_generation_id(member.generation_id)
        .with_member_id(member.member_id.clone())
        .with_assignments(vec![work]);
    assert_eq!(client.ask(3, &sync).error_code, 0);
    member
}

/// State, and what each member said and has to do.
fn described(client: &mut Client, id: &str) -> String {
    let request = DescribeGroupsRequest::default().with_groups(vec![group(id)]);
    let found = client.ask(5, &request).groups.remove(0);
    let mut members: Vec<String> = found
        .members
        .iter()
        .map(|member| {
            let utf8 = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
            format!("{}:{}", utf8(&member.member_metadata), utf8(&member.member_assignment))
        })
        .collect();
    members.sort();
    format!("{} {}", found.group_state, members.join(" "))
}

#[test]
fn work_is_shown_until_there_is_other_work() {
    let node = Node::start();
    let mut client = node.connect();
    let first = stable(&mut client, "g");
    assert_eq!(described(&mut client, "g"), "Stable m:work");
    let mut second = node.connect();
    let joining = std::thread::spawn(move || second.ask(3, &join("g", "")).error_code);
    client.until("rebalance", |client| described(client, "g").starts_with("PreparingRebalance"));
    assert_eq!(described(&mut client, "g"), "PreparingRebalance : :work");
    assert_eq!(client.ask(3, &join("g", &first.member_id)).error_code, 0);
    assert_eq!(described(&mut client, "g"), "CompletingRebalance : :work");
    assert_eq!(joining.join().expect("joined"), 0);
}

#[test]
fn states_may_be_asked_for_in_any_case_and_with_spaces() {
    let node = Node::start();
    let mut client = node.connect();
    stable(&mut client, "g");
    let mut check = |state: &str, want: usize| {
        let request = ListGroupsRequest::default().with_states_filter(vec![text(state)]);
        assert_eq!(client.ask(4, &request).groups.len(), want, "{state:?}");
    };
    check("stable", 1);
    check(" Stable ", 1);
    check("Empty", 0);
    check("", 0);
}

/// `a:0` is a partition, `a:` a topic of which nothing is asked.
fn places(places: &str) -> impl Iterator<Item = (&str, Option<i32>)> {
    places.split_whitespace().map(|place| {
        let (topic, partition) = place.split_once(':').expect("topic:partition");
        (topic, partition.parse().ok())
    })
}

#[test]
fn topics_without_partitions_have_no_answer() {
    let node = Node::start();
    let mut client = node.connect();
    client.coordinator();
    client.topic("a", 1, &[]);
    let commits = places("a: a:0 no:").map(|(topic, partition)| {
        let partition = partition.map(|index| {
            OffsetCommitRequestPartition::default()
                .with_partition_index(index)
                .with_committed_offset(1)
                .with_committed_metadata(Some(text("")))
        });
        OffsetCommitRequestTopic::default()
            .with_name(name(topic))
            .with_partitions(partition.into_iter().collect())
    });
    let request = OffsetCommitRequest::default()
        .with_group_id(group("g"))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(commits.collect());
    assert_eq!(client.ask(8, &request).topics.len(), 1);
    let deletes = places("a: a:0 no:").map(|(topic, partition)| {
        let partition = partition
            .map(|index| OffsetDeleteRequestPartition::default().with_partition_index(index));
        OffsetDeleteRequestTopic::default()
            .with_name(name(topic))
            .with_partitions(partition.into_iter().collect())
    });
    let request =
        OffsetDeleteRequest::default().with_group_id(group("g")).with_topics(deletes.collect());
    let topics = client.ask(0, &request).topics;
    assert_eq!(topics.len(), 1);
    assert_eq!(topics[0].partitions[0].error_code, 0);
}

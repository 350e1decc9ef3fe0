//! Metadata: which topics, which are made, what is allowed, which epochs.

use std::collections::BTreeSet;

use compat_tests::broker::Broker;
use compat_tests::differ::conn::Conn;
use compat_tests::differ::context::{T, with};
use compat_tests::settings::unique;
use serde_json::{Value, json};

use crate::{broker, case, code, number};

const NOT_ASKED: i64 = i32::MIN as i64;

#[test]
fn null_means_all_and_empty_none() {
    let mut t = case("lists");
    t.topic("a", 1, &[]).expect("a topic");
    for (version, topics, want) in [
        (0, json!([]), 1),
        (1, Value::Null, 1),
        (1, json!([]), 0),
        (8, Value::Null, 1),
        (8, json!([]), 0),
        (9, Value::Null, 1),
        (9, json!([]), 0),
        (12, Value::Null, 1),
        (12, json!([]), 0),
        (13, Value::Null, 1),
        (13, json!([]), 0),
    ] {
        let answer = t.ask("Metadata", version, json!({ "Topics": topics }));
        let label = format!("v{version} {topics}: {answer}");
        let listed = answer["Topics"].as_array().expect("a list");
        let mine = listed.iter().filter(|topic| t.is_mine(&topic["Name"])).count();
        assert_eq!(mine, want, "{label}");
        assert!(want == 1 || listed.is_empty(), "{label}");
        assert_eq!(answer["Brokers"].as_array().map(Vec::len), Some(1), "{label}");
        if version >= 1 {
            assert_eq!(answer["ControllerId"], answer["Brokers"][0]["NodeId"], "{label}");
        }
    }
}

fn about(t: &mut T, version: i16, name: &str, creates: bool) -> i64 {
    let body = json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": creates});
    number(&t.ask("Metadata", version, body), "/Topics/0/ErrorCode")
}

#[test]
fn asking_creates_if_both_sides_allow_it() {
    let mut t = case("creation");
    for version in [0, 1, 3, 4, 9, 12] {
        let name = t.name(&format!("v{version}"));
        let first = about(&mut t, version, &name, true);
        // Being made, or there already: 3 and 5 are both repeated by clients.
        assert!([0, 3, 5].contains(&first), "v{version}: {first}");
        let body = json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": false});
        let made = t.poll(
            |t| t.ask("Metadata", 4, body.clone()),
            |answer| number(answer, "/Topics/0/ErrorCode") == 0,
        );
        assert_eq!(number(&made, "/Topics/0/ErrorCode"), 0, "v{version}");
    }
    let never = t.name("never");
    for version in [4, 9, 12] {
        assert_eq!(about(&mut t, version, &never, false), 3);
        t.pause(100);
        assert_eq!(about(&mut t, version, &never, false), 3);
    }
    for bad in ["a b", "a/b", ".", "..", "\u{e9}", &"x".repeat(250)] {
        assert_eq!(about(&mut t, 9, bad, true), 17, "{bad}");
    }
}

#[test]
fn a_broker_may_forbid_creation_by_asking() {
    let broker = Broker::start(&[("auto.create.topics.enable", "false")]);
    let mut t = T::new(&broker.bootstrap, "forbidden", 0);
    for version in [1, 4, 12] {
        assert_eq!(about(&mut t, version, "some-topic", true), 3);
        t.pause(100);
        assert_eq!(about(&mut t, version, "some-topic", true), 3);
    }
}

#[test]
fn fifty_who_ask_at_once_make_one_topic() {
    let name = unique("once");
    let body = json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": true});
    let ids: BTreeSet<String> = std::thread::scope(|scope| {
        let ask = || {
            let mut conn = Conn::new(broker(), Some("first"));
            loop {
                let answer = conn.ask("Metadata", 12, &body);
                match number(&answer, "/Topics/0/ErrorCode") {
                    0 => return answer["Topics"][0]["TopicId"].to_string(),
                    3 | 5 => std::thread::sleep(std::time::Duration::from_millis(20)),
                    other => panic!("error {other}"),
                }
            }
        };
        let all: Vec<_> = (0..50).map(|_| scope.spawn(ask)).collect();
        all.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    assert_eq!(ids.len(), 1, "{ids:?}");
}

/// KIP-430: a bit for each operation, and a number of its own for "not asked".
#[test]
fn operations_are_told_to_who_asks() {
    let bits = |operations: &[i64]| operations.iter().map(|bit| 1i64 << bit).sum::<i64>();
    let of_topic = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);
    let of_cluster = bits(&[5, 7, 8, 9, 10, 11, 12]);
    let mut t = case("operations");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    for version in 8..=13 {
        for (asks, topics, cluster) in [(false, NOT_ASKED, NOT_ASKED), (true, of_topic, of_cluster)]
        {
            let has_cluster = version <= 10;
            let mut body =
                json!({"Topics": [{"Name": topic}], "IncludeTopicAuthorizedOperations": asks});
            if has_cluster {
                body["IncludeClusterAuthorizedOperations"] = json!(asks);
            }
            let answer = t.ask("Metadata", version, body);
            assert_eq!(number(&answer, "/Topics/0/TopicAuthorizedOperations"), topics);
            let got = answer.get("ClusterAuthorizedOperations").map(|got| got.as_i64());
            assert_eq!(got, has_cluster.then_some(Some(cluster)), "v{version}");
        }
    }
    for (asks, want) in [(false, NOT_ASKED), (true, of_cluster)] {
        let body = json!({ "IncludeClusterAuthorizedOperations": asks });
        let answer = t.ask("DescribeCluster", 1, body);
        assert_eq!(number(&answer, "/ClusterAuthorizedOperations"), want);
    }
}

#[test]
fn groups_tell_their_operations_to_who_asks() {
    let mut t = case("operations-of-groups");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let group = t.group("g").expect("groups are served");
    let partition = json!([{"PartitionIndex": 0, "CommittedOffset": 1}]);
    let topics = json!([{"Name": topic, "Partitions": partition}]);
    let body = json!({"GroupId": group, "GenerationIdOrMemberEpoch": -1, "Topics": topics});
    t.need("OffsetCommit", 5, body).expect("a commit");
    for version in 3..=6 {
        for asks in [false, true] {
            let body = json!({"Groups": [group], "IncludeAuthorizedOperations": asks});
            let answer = t.ask("DescribeGroups", version, body);
            let got = number(&answer, "/Groups/0/AuthorizedOperations");
            // Read, delete and describe at least.
            let some = 1 << 3 | 1 << 6 | 1 << 8;
            assert!(if asks { got & some == some } else { got == NOT_ASKED }, "{got}");
        }
    }
}

/// Whatever epoch Metadata names is one that the leader accepts, and it never falls.
#[test]
fn leader_epochs_rise_over_restarts() {
    let Some(mut broker) = Broker::restartable(&[]) else { return };
    let mut t = T::new(&broker.bootstrap, "epochs", 0);
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let mut last = 0;
    for round in 0..4 {
        let mut t = T::new(&broker.bootstrap, "epochs", 0);
        t.await_topic(&topic, 1).expect("it serves");
        let answer = t.ask("Metadata", 12, json!({"Topics": [{"Name": topic}]}));
        assert_eq!(number(&answer, "/Topics/0/Partitions/0/LeaderId"), 0);
        let epoch = number(&answer, "/Topics/0/Partitions/0/LeaderEpoch");
        assert!(epoch >= last, "{epoch} after {last}");
        last = epoch;
        let mut body = t.fetch_body(&topic, 0);
        body["Topics"][0]["Partitions"][0]["CurrentLeaderEpoch"] = json!(epoch);
        let fetched = t.ask("Fetch", 12, body);
        assert_eq!(code(&fetched["Responses"][0]["Partitions"][0]), 0, "{fetched}");
        if round % 2 == 0 {
            broker.kill()
        } else {
            broker.stop()
        }
        broker.resume();
    }
}

/// Node ids of leaders, replicas and the controller are those of the list of brokers, and hosts
/// are bare addresses.
#[test]
fn every_node_that_is_named_is_listed() {
    let mut t = case("nodes");
    let topic = t.topic("a", 3, &[]).expect("a topic");
    let answer = t.ask("Metadata", 12, with(json!({}), json!({"Topics": [{"Name": topic}]})));
    let listed: BTreeSet<i64> = answer["Brokers"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|broker| number(broker, "/NodeId"))
        .collect();
    let host = answer["Brokers"][0]["Host"].as_str().expect("a host");
    assert!(!host.is_empty() && !host.contains(['[', ']']) && host != "0.0.0.0", "{host}");
    assert!(listed.contains(&number(&answer, "/ControllerId")));
    for partition in answer["Topics"][0]["Partitions"].as_array().expect("a list") {
        assert!(listed.contains(&number(partition, "/LeaderId")), "{partition}");
        for list in ["ReplicaNodes", "IsrNodes"] {
            let nodes = partition[list].as_array().expect("a list");
            assert!(nodes.iter().all(|id| listed.contains(&id.as_i64().expect("an id"))));
        }
    }
}

/// Each listener advertises its own address, and node ids are the same on all.
#[test]
fn every_listener_tells_its_own_address() {
    let Ok(socket) = std::net::TcpListener::bind("[::1]:0") else {
        println!("SKIPPED: this machine has no IPv6");
        return;
    };
    let six = socket.local_addr().expect("it is bound").to_string();
    drop(socket);
    let broker = Broker::start_plain(Some(&format!("SIX://{six}")));
    let addresses = [broker.bootstrap.clone(), six];
    let mut ids = BTreeSet::new();
    for address in &addresses {
        let mut t = T::new(address, "listeners", 0);
        let body = json!({"Topics": [{"Name": "both"}], "AllowAutoTopicCreation": true});
        let answer = t.poll(
            |t| t.ask("Metadata", 9, body.clone()),
            |answer| number(answer, "/Topics/0/ErrorCode") == 0,
        );
        let node = &answer["Brokers"][0];
        let host = node["Host"].as_str().expect("a host");
        let port = number(node, "/Port");
        let shown =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        assert_eq!(&shown, address, "{answer}");
        assert_eq!(node["NodeId"], answer["Topics"][0]["Partitions"][0]["LeaderId"], "{answer}");
        assert_eq!(node["NodeId"], answer["ControllerId"], "{answer}");
        ids.insert(number(node, "/NodeId"));
    }
    assert_eq!(ids.len(), 1);
}

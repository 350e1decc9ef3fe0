//! Groups over the wire: what their state machine's own tests cannot show, versions and lists.

use compat_tests::broker::Broker;
use compat_tests::differ::conn::Conn;
use compat_tests::differ::context::{T, dig, with};
use serde_json::{Value, json};

use crate::{case, code, codes, number};

fn commit(t: &mut T, group: &str, topic: &str, partitions: &[(i32, i64, i32)]) -> Vec<i64> {
    let partitions = partitions.iter().map(|(index, offset, epoch)| {
        json!({
            "PartitionIndex": index, "CommittedOffset": offset, "CommittedLeaderEpoch": epoch,
            "CommittedMetadata": "note",
        })
    });
    let partitions: Vec<Value> = partitions.collect();
    let topics = json!([{"Name": topic, "Partitions": partitions}]);
    let body = json!({"GroupId": group, "GenerationIdOrMemberEpoch": -1, "Topics": topics});
    codes(&t.ask("OffsetCommit", 7, body), "/Topics/0/Partitions")
}

/// Joins alone and syncs; the member's id. From then on it has a subscription to `topic`.
fn join(t: &mut T, conn: &mut Conn, group: &str, topic: &str) -> String {
    // ConsumerProtocolSubscription 0: version, one topic, no user data.
    let mut subscription = vec![0, 0, 0, 0, 0, 1];
    subscription.extend((topic.len() as i16).to_be_bytes());
    subscription.extend(topic.as_bytes());
    subscription.extend([0xff; 4]);
    let protocol = json!({
        "Name": "range", "Metadata": compat_tests::differ::codec::hex(&subscription),
    });
    let body = json!({
        "GroupId": group, "SessionTimeoutMs": 30_000, "RebalanceTimeoutMs": 30_000,
        "ProtocolType": "consumer", "Protocols": [protocol],
    });
    let joined = conn.ask("JoinGroup", 3, &body);
    assert_eq!(code(&joined), 0, "{joined}");
    let member = joined["MemberId"].as_str().expect("an id").to_owned();
    let sync = json!({
        "GroupId": group, "MemberId": member, "GenerationId": joined["GenerationId"],
        "Assignments": [{"MemberId": member, "Assignment": "x"}],
    });
    assert_eq!(code(&conn.ask("SyncGroup", 3, &sync)), 0);
    t.pause(1);
    member
}

fn leave(conn: &mut Conn, group: &str, member: &str) {
    assert_eq!(code(&conn.ask("LeaveGroup", 2, &json!({"GroupId": group, "MemberId": member}))), 0);
}

#[test]
fn the_first_join_gets_an_id_from_version_4_on() {
    let mut t = case("first-join");
    let group = t.group("g").expect("groups are served");
    let protocols = json!([{"Name": "range", "Metadata": "x"}]);
    let body = json!({
        "GroupId": group, "SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 10_000,
        "ProtocolType": "consumer", "Protocols": protocols,
    });
    for version in 4..=9 {
        let answer = t.ask("JoinGroup", version, body.clone());
        assert_eq!(code(&answer), 79, "v{version}: {answer}");
        assert!(answer["MemberId"].as_str().is_some_and(|id| !id.is_empty()), "{answer}");
    }
    for version in [0, 3] {
        let own = with(body.clone(), json!({ "GroupId": t.name(&format!("v{version}")) }));
        assert_eq!(code(&t.ask("JoinGroup", version, own)), 0, "v{version}");
    }
    for version in [5, 9] {
        let own = json!({ "GroupId": t.name(&format!("s{version}")), "GroupInstanceId": "one" });
        assert_eq!(code(&t.ask("JoinGroup", version, with(body.clone(), own))), 0, "v{version}");
    }
}

#[test]
fn commits_from_outside_are_for_empty_groups() {
    let mut t = case("outside");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let group = t.group("g").expect("groups are served");
    assert_eq!(commit(&mut t, &group, &topic, &[(0, 5, -1)]), [0], "a new group");
    let mut conn = t.conn();
    let member = join(&mut t, &mut conn, &group, &topic);
    assert_eq!(commit(&mut t, &group, &topic, &[(0, 6, -1)]), [25], "while it works");
    leave(&mut conn, &group, &member);
    assert_eq!(commit(&mut t, &group, &topic, &[(0, 7, -1)]), [0], "when it is empty");
    let never = t.name("never");
    for version in 2..=9 {
        let partition = json!([{"PartitionIndex": 0, "CommittedOffset": 1}]);
        let body = json!({
            "GroupId": never, "GenerationIdOrMemberEpoch": 3, "MemberId": "m",
            "Topics": [{"Name": topic, "Partitions": partition}],
        });
        let got = codes(&t.ask("OffsetCommit", version, body), "/Topics/0/Partitions");
        assert_eq!(got, [if version < 9 { 22 } else { 69 }], "v{version}");
    }
    // An empty commit is an empty success.
    for version in [2, 7, 9] {
        let body = json!({"GroupId": group, "GenerationIdOrMemberEpoch": -1, "Topics": []});
        assert_eq!(t.ask("OffsetCommit", version, body)["Topics"], json!([]), "v{version}");
    }
}

#[test]
fn offsets_are_fetched_once_each_with_their_epochs() {
    let mut t = case("fetched");
    let topic = t.topic("a", 4, &[]).expect("a topic");
    let group = t.group("g").expect("groups are served");
    assert_eq!(commit(&mut t, &group, &topic, &[(0, 5, 3), (2, 7, -1)]), [0, 0]);
    let by_name = json!([{"Name": topic, "PartitionIndexes": [0, 1, 2]}]);
    for version in 1..=10 {
        let mut named = by_name.clone();
        if version >= 10 {
            named[0]["TopicId"] = json!(t.id(&topic));
        }
        let lists = [("named", named.clone(), 3), ("all", Value::Null, 2)];
        for (label, topics, count) in lists.into_iter().take(if version < 2 { 1 } else { 2 }) {
            let named = topics.is_array();
            let one = with(json!({ "GroupId": group }), json!({ "Topics": topics }));
            let body = if version < 8 { one } else { json!({ "Groups": [one] }) };
            let answer = t.ask("OffsetFetch", version, body);
            let answer = if version < 8 { answer } else { dig(&answer, "/Groups/0") };
            assert!(version < 2 || code(&answer) == 0, "{answer}");
            let mut list = answer["Topics"][0]["Partitions"].as_array().expect("a list").clone();
            list.sort_by_key(|one| number(one, "/PartitionIndex"));
            assert_eq!(list.len(), count, "v{version} {label}: {answer}");
            let offsets: Vec<i64> =
                list.iter().map(|one| number(one, "/CommittedOffset")).collect();
            assert_eq!(offsets, if named { vec![5, -1, 7] } else { vec![5, 7] }, "v{version}");
            assert_eq!(list[0]["Metadata"], json!("note"));
            assert!(list.iter().all(|one| code(one) == 0), "{answer}");
            if version >= 5 {
                assert_eq!(number(&list[0], "/CommittedLeaderEpoch"), 3, "v{version} {label}");
            }
            if named {
                assert_eq!(list[1]["Metadata"], json!(""), "v{version}");
            }
        }
    }
}

#[test]
fn many_groups_in_one_request() {
    let mut t = case("fifty");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    t.group("warm").expect("groups are served");
    let groups: Vec<String> = (0..50).map(|number| t.name(&format!("g{number}"))).collect();
    for (group, offset) in groups.iter().zip(0..) {
        assert_eq!(commit(&mut t, group, &topic, &[(0, offset, -1)]), [0]);
    }
    let asked = groups.iter().map(|group| json!({"GroupId": group, "Topics": null}));
    let body = json!({"Groups": asked.collect::<Vec<_>>(), "RequireStable": true});
    for version in 8..=10 {
        let answer = t.ask("OffsetFetch", version, body.clone());
        let list = answer["Groups"].as_array().expect("a list");
        assert_eq!(list.len(), 50, "v{version}");
        for got in list {
            assert_eq!(code(got), 0, "{got}");
            let at = groups.iter().position(|group| got["GroupId"] == json!(group));
            let offset = number(got, "/Topics/0/Partitions/0/CommittedOffset");
            assert_eq!(Some(offset as usize), at, "{got}");
        }
    }
}

#[test]
fn groups_are_listed_described_and_deleted() {
    let mut t = case("admin");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let (live, left) = (t.group("live").expect("groups are served"), t.name("left"));
    let (none, simple) = (t.name("none"), t.name("simple"));
    let mut conn = t.conn();
    let member = join(&mut t, &mut conn, &live, &topic);
    let other = join(&mut t, &mut conn, &left, &topic);
    leave(&mut conn, &left, &other);
    assert_eq!(commit(&mut t, &simple, &topic, &[(0, 1, -1)]), [0]);
    for version in 0..=6 {
        let body = json!({"Groups": [live, left, none]});
        // Kafka answers in the order of its coordinators, from what they have written down.
        let of = |answer: &Value, name: &str, field: &str| {
            let groups = answer["Groups"].as_array().cloned().unwrap_or_default();
            let group = groups.into_iter().find(|group| group["GroupId"] == json!(name));
            group.map(|group| group[field].clone())
        };
        let states =
            |answer: &Value| [&live, &left, &none].map(|name| of(answer, name, "GroupState"));
        let want = ["Stable", "Empty", "Dead"].map(|state| Some(json!(state)));
        let ask = |t: &mut T| t.ask("DescribeGroups", version, body.clone());
        let answer = t.poll(ask, |answer| states(answer) == want);
        assert_eq!(states(&answer), want, "v{version}");
        let want = if version < 6 { 0 } else { 69 };
        let codes = [&live, &left, &none].map(|name| of(&answer, name, "ErrorCode"));
        assert_eq!(codes, [0, 0, want].map(|code| Some(json!(code))), "v{version}");
    }
    for version in 0..=5 {
        let answer = t.ask("ListGroups", version, json!({}));
        let answer = t.only_mine(answer, "/Groups", "GroupId");
        let list = answer["Groups"].as_array().expect("a list");
        assert_eq!(list.len(), 3, "v{version}: {answer}");
        let find = |name: &str| list.iter().find(|one| one["GroupId"] == json!(name));
        if version >= 4 {
            for (name, state) in [(&live, "Stable"), (&left, "Empty"), (&simple, "Empty")] {
                assert_eq!(find(name).expect("listed")["GroupState"], json!(state), "v{version}");
            }
            let body = json!({"StatesFilter": ["stable"]});
            let answer = t.ask("ListGroups", version, body);
            let answer = t.only_mine(answer, "/Groups", "GroupId");
            assert_eq!(answer["Groups"].as_array().map(Vec::len), Some(1), "{answer}");
        }
        if version >= 5 {
            assert_eq!(find(&live).expect("listed")["GroupType"], json!("classic"));
        }
    }
    let unsubscribe = json!([{"Name": topic, "Partitions": [{"PartitionIndex": 0}]}]);
    let body = json!({"GroupId": live, "Topics": unsubscribe});
    let answer = t.ask("OffsetDelete", 0, body);
    assert_eq!(number(&answer, "/Topics/0/Partitions/0/ErrorCode"), 86, "{answer}");
    for (version, group, want) in [
        (0, &live, 68),
        (3, &live, 68),
        (2, &none, 69),
        (1, &left, 0),
        (2, &left, 69),
        (2, &simple, 0),
    ] {
        let answer = t.ask("DeleteGroups", version, json!({"GroupsNames": [group]}));
        assert_eq!(codes(&answer, "/Results"), [want], "v{version} {group}");
    }
    leave(&mut conn, &live, &member);
}

/// A single node that nobody configured serves groups, though the topic of offsets is meant to
/// have three replicas; and who is named as coordinator is one.
#[test]
fn the_first_question_for_a_coordinator_is_answered() {
    let broker = Broker::start_plain(None);
    let mut t = T::new(&broker.bootstrap, "fresh", 0);
    for version in 0..=6 {
        first_question(&mut t, version);
    }
}

fn first_question(t: &mut T, version: i16) {
    let group = t.name(&format!("v{version}"));
    let body = match version < 4 {
        true => json!({ "Key": group }),
        false => json!({"KeyType": 0, "CoordinatorKeys": [group, "other"]}),
    };
    let whole = |answer: &Value| match version < 4 {
        true => vec![answer.clone()],
        false => answer["Coordinators"].as_array().expect("a list").clone(),
    };
    let answer = t.poll(
        |t| t.ask("FindCoordinator", version, body.clone()),
        |answer| {
            let codes: Vec<i64> = whole(answer).iter().map(code).collect();
            assert!(codes.iter().all(|code| [0, 14, 15].contains(code)), "{answer}");
            codes.iter().all(|code| *code == 0)
        },
    );
    assert!(whole(&answer).iter().all(|one| number(one, "/NodeId") == 0), "{answer}");
    // The node that was named does not refuse for good.
    let heartbeat = t.poll(
        |t| t.ask("Heartbeat", 3, json!({"GroupId": group, "MemberId": "m"})),
        |answer| ![14, 15, 16].contains(&code(answer)),
    );
    assert_eq!(code(&heartbeat), 25, "{heartbeat}");
}

/// Lag exporters read the topic itself.
#[test]
fn the_topic_of_offsets_is_what_exporters_expect() {
    let mut t = case("exporters");
    t.group("g").expect("groups are served");
    let name = "__consumer_offsets";
    let answer = t.ask("Metadata", 9, json!({"Topics": [{"Name": name}]}));
    assert_eq!(answer["Topics"][0]["IsInternal"], json!(true), "{answer}");
    let keys = json!(["cleanup.policy"]);
    let resource = json!({"ResourceType": 2, "ResourceName": name, "ConfigurationKeys": keys});
    let answer = t.ask("DescribeConfigs", 4, json!({"Resources": [resource]}));
    assert_eq!(answer["Results"][0]["Configs"][0]["Value"], json!("compact"), "{answer}");
}

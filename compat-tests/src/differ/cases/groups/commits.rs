//! OffsetCommit, OffsetFetch and OffsetDelete.

use serde_json::{Value, json};

use super::{Member, stable};
use crate::differ::context::{Step, T, with};
use crate::differ::run::Cases;

pub fn add(cases: &mut Cases) {
    committing(cases);
    committing_in_states(cases);
    fetching(cases);
    deleting(cases);
    contents(cases);
    names_and_topics(cases);
}

/// A commit of offset 5 for partition 0.
fn commit(t: &T, group: &str, topic: &str, more: Value) -> Value {
    let partition = json!({"PartitionIndex": 0, "CommittedOffset": 5, "CommittedMetadata": "m"});
    let topic = json!({"Name": topic, "TopicId": t.id(topic), "Partitions": [partition]});
    let body = json!({"GroupId": group, "GenerationIdOrMemberEpoch": -1, "Topics": [topic]});
    with(body, more)
}

/// Who commits, as a member of its group.
fn of(member: &Member) -> Value {
    json!({"GenerationIdOrMemberEpoch": member.generation, "MemberId": member.id})
}

/// What a group has for one topic, or for all.
fn fetch(t: &T, version: i16, group: &str, topic: Option<&str>) -> Value {
    let topics = match topic {
        Some(name) => {
            let topic = json!({"Name": name, "PartitionIndexes": [0, 1]});
            json!([if version < 8 { topic } else { with(topic, json!({"TopicId": t.id(name)})) }])
        }
        None => Value::Null,
    };
    match version {
        0..8 => json!({"GroupId": group, "Topics": topics}),
        _ => json!({"Groups": [{"GroupId": group, "Topics": topics}]}),
    }
}

fn see_offsets(t: &mut T, label: &str, group: &str, topic: &str) {
    let body = fetch(t, 7, group, Some(topic));
    t.look(label, "OffsetFetch", 7, body);
}

fn committing(cases: &mut Cases) {
    for version in 2..=10 {
        cases.add(format!("commits/without members v{version}"), move |t| {
            let topic = t.topic("a", 2, &[])?;
            let group = t.group("g")?;
            let missing = t.name("missing");
            let all = [
                ("plain", json!({})),
                ("member", json!({"MemberId": "nobody"})),
                ("instance", json!({"GroupInstanceId": "nobody"})),
                ("generation 3", json!({"GenerationIdOrMemberEpoch": 3})),
                ("generation 0", json!({"GenerationIdOrMemberEpoch": 0})),
                ("generation -2", json!({"GenerationIdOrMemberEpoch": -2})),
                ("nothing", json!({"Topics": []})),
                ("retention", json!({"RetentionTimeMs": 5000})),
            ];
            for (label, more) in all {
                let body = commit(t, &group, &topic, more);
                // Retention is in versions 2 to 4.
                t.look(label, "OffsetCommit", version, body);
            }
            let body = commit(t, &group, &missing, json!({}));
            t.look("unknown topic", "OffsetCommit", version, body);
            let fresh = t.group("fresh")?;
            let body =
                commit(t, &fresh, &topic, json!({"GenerationIdOrMemberEpoch": 3, "MemberId": "x"}));
            t.look("unknown group with generation", "OffsetCommit", version, body);
            see_offsets(t, "now", &group, &topic);
            t.look("described", "DescribeGroups", 5, json!({"Groups": [group]}));
            Ok(())
        });
        cases.add(format!("commits/by members v{version}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let member = stable(t, "g")?;
            let group = member.group.clone();
            let all = [
                ("good", json!({})),
                ("generation 0", json!({"GenerationIdOrMemberEpoch": 0})),
                ("generation 9", json!({"GenerationIdOrMemberEpoch": 9})),
                ("generation -1", json!({"GenerationIdOrMemberEpoch": -1})),
                ("unknown member", json!({"MemberId": "nobody"})),
                ("no member", json!({"MemberId": ""})),
                ("as admin", json!({"MemberId": "", "GenerationIdOrMemberEpoch": -1})),
                ("instance", json!({"GroupInstanceId": "stranger"})),
            ];
            for (label, more) in all {
                let body = commit(t, &group, &topic, with(of(&member), more));
                t.look(label, "OffsetCommit", version, body);
            }
            see_offsets(t, "now", &group, &topic);
            Ok(())
        });
    }
}

fn committing_in_states(cases: &mut Cases) {
    cases.add("commits/in every state", |t| {
        let topic = t.topic("a", 1, &[])?;
        let group = t.group("g")?;
        let mut member = Member::new(t, &group);
        member.joined(5)?;
        let body = commit(t, &group, &topic, of(&member));
        t.look("before the sync", "OffsetCommit", 8, body);
        member.sync(3, &[]);
        let body = commit(t, &group, &topic, of(&member));
        t.look("stable", "OffsetCommit", 8, body);
        let mut second = Member::new(t, &group);
        second.join(4);
        second.conn.start("JoinGroup", 4, &second.join_body()).ok();
        t.pause(150);
        let body = commit(t, &group, &topic, of(&member));
        t.look("in a rebalance", "OffsetCommit", 8, body);
        let left = member.leave(3);
        t.see("left", left);
        let body = commit(t, &group, &topic, of(&member));
        t.look("after leaving", "OffsetCommit", 8, body);
        Ok(())
    });
    cases.add("commits/static member is replaced", |t| {
        let topic = t.topic("a", 1, &[])?;
        let group = t.group("g")?;
        let mut first = Member::fixed(t, &group, "one");
        first.joined(5)?;
        first.sync(3, &[]);
        let mut again = Member::fixed(t, &group, "one");
        again.joined(5)?;
        for (label, member, instance) in [
            ("old", &first, Some("one")),
            ("old without", &first, None),
            ("new", &again, Some("one")),
        ] {
            let more = with(of(member), json!({ "GroupInstanceId": instance }));
            let body = commit(t, &group, &topic, more);
            t.look(label, "OffsetCommit", 8, body);
        }
        Ok(())
    });
}

fn contents(cases: &mut Cases) {
    let long = |length: usize, text: &str| json!({"CommittedMetadata": text.repeat(length)});
    let all: Vec<(&str, Value)> = vec![
        ("metadata null", json!({"CommittedMetadata": null})),
        ("metadata empty", json!({"CommittedMetadata": ""})),
        ("metadata 4096", long(4096, "x")),
        ("metadata 4097", long(4097, "x")),
        ("metadata 4096 wide", long(4096, "\u{20ac}")),
        ("metadata 4097 wide", long(4097, "\u{20ac}")),
        ("offset 0", json!({"CommittedOffset": 0})),
        ("offset -1", json!({"CommittedOffset": -1})),
        ("offset -5", json!({"CommittedOffset": -5})),
        ("offset max", json!({"CommittedOffset": i64::MAX})),
        ("epoch 7", json!({"CommittedLeaderEpoch": 7})),
        ("epoch -5", json!({"CommittedLeaderEpoch": -5})),
        ("partition 1", json!({"PartitionIndex": 1})),
        ("partition 2", json!({"PartitionIndex": 2})),
        ("partition -1", json!({"PartitionIndex": -1})),
    ];
    for (label, more) in all {
        cases.add(format!("commits/with {label}"), move |t| {
            let topic = t.topic("a", 2, &[])?;
            let group = t.group("g")?;
            let mut body = commit(t, &group, &topic, json!({}));
            let partition = &mut body["Topics"][0]["Partitions"][0];
            *partition = with(partition.take(), more.clone());
            for version in [2, 8, 9] {
                t.look(format!("v{version}"), "OffsetCommit", version, body.clone());
            }
            let offsets = fetch(t, 7, &group, Some(&topic));
            let mut answer = t.ask("OffsetFetch", 7, offsets);
            let metadata = answer.pointer_mut("/Topics/0/Partitions/0/Metadata");
            if let Some(Value::String(text)) = metadata
                && text.len() > 100
            {
                *text = format!("{} characters", text.chars().count());
            }
            t.see("now", answer);
            Ok(())
        });
    }
}

fn names_and_topics(cases: &mut Cases) {
    // All brokers have only one group without a name, so it has only one case.
    cases.add("commits/the group without a name", |t| {
        let topic = t.topic("a", 2, &[])?;
        let named = json!({"Groups": [""]});
        t.look("described", "DescribeGroups", 6, named.clone());
        t.look("deleted", "DeleteGroups", 2, json!({"GroupsNames": [""]}));
        for version in [2, 8, 9] {
            let body = commit(t, "", &topic, json!({}));
            t.look(format!("committed v{version}"), "OffsetCommit", version, body);
        }
        see_offsets(t, "now", "", &topic);
        t.look("described again", "DescribeGroups", 6, named);
        let gone = json!([{"Name": topic, "Partitions": [{"PartitionIndex": 0}]}]);
        t.look("offset deleted", "OffsetDelete", 0, json!({"GroupId": "", "Topics": gone}));
        t.look("deleted again", "DeleteGroups", 2, json!({"GroupsNames": [""]}));
        Ok(())
    });
    cases.add("commits/several", |t| {
        let topic = t.topic("a", 2, &[])?;
        let group = t.group("g")?;
        let one = |index, offset| json!({"PartitionIndex": index, "CommittedOffset": offset});
        let of = |name: &str, partitions: Value| json!({"Name": name, "Partitions": partitions});
        let missing = t.name("missing");
        let topics = json!([
            of(&topic, json!([one(0, 1), one(1, 2), one(5, 3)])),
            of(&missing, json!([one(0, 4)])),
        ]);
        t.look("mixed", "OffsetCommit", 8, json!({"GroupId": group, "Topics": topics}));
        let twice = json!([of(&topic, json!([one(0, 7), one(0, 8)]))]);
        t.look("partition twice", "OffsetCommit", 8, json!({"GroupId": group, "Topics": twice}));
        let twice = json!([of(&topic, json!([one(0, 10)])), of(&topic, json!([one(1, 11)]))]);
        t.look("topic twice", "OffsetCommit", 8, json!({"GroupId": group, "Topics": twice}));
        see_offsets(t, "now", &group, &topic);
        Ok(())
    });
    cases.add("commits/topic deleted and made again", |t| {
        let topic = t.topic("a", 2, &[])?;
        let group = t.group("g")?;
        let body = commit(t, &group, &topic, json!({}));
        t.look("committed", "OffsetCommit", 8, body);
        t.delete_topic(&topic)?;
        let asked = fetch(t, 7, &group, Some(&topic));
        let gone = t.poll(
            |t| t.ask("OffsetFetch", 7, asked.clone()),
            |answer| {
                let offset = answer.pointer("/Topics/0/Partitions/0/CommittedOffset");
                offset == Some(&json!(-1))
            },
        );
        t.see("deleted", gone);
        t.topic("a", 2, &[])?;
        see_offsets(t, "made again", &group, &topic);
        Ok(())
    });
}

/// A group with offsets for a topic.
fn committed(t: &mut T) -> Step<(String, String)> {
    let topic = t.topic("a", 2, &[])?;
    let group = t.group("g")?;
    let body = commit(t, &group, &topic, json!({}));
    t.need("OffsetCommit", 8, body)?;
    Ok((group, topic))
}

fn fetching(cases: &mut Cases) {
    for version in 1..=10 {
        cases.add(format!("offsetfetch/v{version}"), move |t| {
            let (group, topic) = committed(t)?;
            let none = t.group("none")?;
            let missing = t.name("missing");
            let mut all = vec![
                ("one topic", fetch(t, version, &group, Some(&topic))),
                ("unknown topic", fetch(t, version, &group, Some(&missing))),
                ("unknown group", fetch(t, version, &none, Some(&topic))),
            ];
            if version >= 2 {
                all.push(("all topics", fetch(t, version, &group, None)));
                all.push(("all of none", fetch(t, version, &none, None)));
            }
            if version >= 7 {
                let stable =
                    with(fetch(t, version, &group, Some(&topic)), json!({"RequireStable": true}));
                all.push(("stable", stable));
            }
            for (label, body) in all {
                t.look(label, "OffsetFetch", version, body);
            }
            Ok(())
        });
    }
    for version in [8, 9, 10] {
        cases.add(format!("offsetfetch/several groups v{version}"), move |t| {
            let (group, topic) = committed(t)?;
            let none = t.group("none")?;
            let one = fetch(t, version, &group, Some(&topic))["Groups"][0].clone();
            let all = fetch(t, version, &group, None)["Groups"][0].clone();
            let other = fetch(t, version, &none, Some(&topic))["Groups"][0].clone();
            for (label, groups) in [
                ("two", json!([one, other])),
                ("the same twice", json!([one, all])),
                ("none", json!([])),
            ] {
                t.look(label, "OffsetFetch", version, json!({ "Groups": groups }));
            }
            if version >= 9 {
                for (label, more) in [
                    ("member", json!({"MemberId": "nobody", "MemberEpoch": 3})),
                    ("epoch", json!({"MemberEpoch": 3})),
                    ("admin", json!({"MemberEpoch": -1})),
                ] {
                    let groups = json!([with(one.clone(), more)]);
                    t.look(label, "OffsetFetch", version, json!({ "Groups": groups }));
                }
            }
            Ok(())
        });
    }
}

fn deleting(cases: &mut Cases) {
    let body = |group: &str, topic: &str, indexes: &[i32]| {
        let partitions = indexes.iter().map(|index| json!({"PartitionIndex": index}));
        let partitions: Vec<Value> = partitions.collect();
        json!({"GroupId": group, "Topics": [{"Name": topic, "Partitions": partitions}]})
    };
    cases.add("offsetdelete/empty group", move |t| {
        let (group, topic) = committed(t)?;
        let none = t.group("none")?;
        let missing = t.name("missing");
        for (label, body) in [
            ("unknown group", body(&none, &topic, &[0])),
            ("unknown topic", body(&group, &missing, &[0])),
            ("unknown partition", body(&group, &topic, &[7])),
            ("not committed", body(&group, &topic, &[1])),
            ("committed", body(&group, &topic, &[0])),
            ("again", body(&group, &topic, &[0])),
            ("nothing", body(&group, &topic, &[])),
            ("no topics", json!({"GroupId": group})),
        ] {
            t.look(label, "OffsetDelete", 0, body);
        }
        see_offsets(t, "now", &group, &topic);
        Ok(())
    });
    cases.add("offsetdelete/group with a member", move |t| {
        let topic = t.topic("a", 1, &[])?;
        let member = stable(t, "g")?;
        t.look("unreadable subscription", "OffsetDelete", 0, body(&member.group, &topic, &[0]));
        let group = t.group("h")?;
        let mut reader = Member::new(t, &group);
        let mut subscription = vec![0, 0, 0, 0, 0, 1];
        subscription.extend((topic.len() as i16).to_be_bytes());
        subscription.extend(topic.as_bytes());
        subscription.extend((-1i32).to_be_bytes());
        reader.protocols = vec![("range", crate::differ::codec::hex(&subscription))];
        reader.joined(5)?;
        reader.sync(3, &[]);
        let other = t.topic("b", 1, &[])?;
        t.look("subscribed", "OffsetDelete", 0, body(&group, &topic, &[0]));
        t.look("not subscribed", "OffsetDelete", 0, body(&group, &other, &[0]));
        Ok(())
    });
    cases.add("offsetdelete/group of another type", move |t| {
        let topic = t.topic("a", 1, &[])?;
        let group = t.group("g")?;
        let mut member = Member::new(t, &group);
        let join = with(member.join_body(), json!({"ProtocolType": "connect"}));
        let answer = member.conn.ask("JoinGroup", 3, &join);
        member.learn(&answer);
        t.look("joined", "OffsetDelete", 0, body(&group, &topic, &[0]));
        Ok(())
    });
}

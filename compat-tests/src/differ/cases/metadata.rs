//! Metadata, DescribeTopicPartitions and what is known of the cluster.

use serde_json::{Value, json};

use crate::differ::codec::{UNKNOWN_ID, ZERO_ID};
use crate::differ::context::with;
use crate::differ::run::Cases;

pub fn add(cases: &mut Cases) {
    by_name(cases);
    by_odd_name(cases);
    by_id(cases);
    creation(cases);
    pages(cases);
    cluster(cases);
    log_dirs(cases);
}

fn by_name(cases: &mut Cases) {
    for version in 0..=13 {
        cases.add(format!("metadata/names v{version}"), move |t| {
            let topic = t.topic("a", 3, &[])?;
            let missing = t.name("missing");
            let topics = json!([{"Name": topic}, {"Name": missing}, {"Name": "a b"}]);
            let body = json!({"Topics": topics, "AllowAutoTopicCreation": false});
            // Before version 4 asking creates; there only what exists and what cannot exist.
            let old = json!({"Topics": [{"Name": topic}, {"Name": "a b"}]});
            t.look("answer", "Metadata", version, if version < 4 { old } else { body });
            let operations = json!({
                "Topics": [{"Name": topic}], "AllowAutoTopicCreation": false,
                "IncludeTopicAuthorizedOperations": version >= 8,
                "IncludeClusterAuthorizedOperations": (8..=10).contains(&version),
            });
            t.look("operations", "Metadata", version, operations);
            Ok(())
        });
        cases.add(format!("metadata/all and none v{version}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let lists = [("null", Value::Null), ("empty", json!([]))];
            for (label, topics) in lists.into_iter().skip(usize::from(version == 0)) {
                let answer = t.ask("Metadata", version, json!({ "Topics": topics }));
                let mine = t.only_mine(answer, "/Topics", "Name");
                t.see(label, mine);
            }
            let twice = json!({"Topics": [{"Name": topic}, {"Name": topic}]});
            t.look("twice", "Metadata", version, twice);
            Ok(())
        });
    }
}

fn by_odd_name(cases: &mut Cases) {
    let long = "x".repeat(249);
    let names = [
        ("dot", "."),
        ("dots", ".."),
        ("empty", ""),
        ("slash", "a/b"),
        ("not ASCII", "\u{e9}"),
        ("longest", &long),
        ("too long", &"x".repeat(250)),
        ("colon", "a:b"),
        ("star", "*"),
    ]
    .map(|(label, name)| (label, name.to_owned()));
    for (label, name) in names {
        cases.add(format!("metadata/name {label}"), move |t| {
            for version in [1, 4, 12] {
                let body = json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": false});
                // Asking by an old version would create it.
                if version > 1 || name.len() != 249 {
                    t.look(format!("v{version}"), "Metadata", version, body);
                }
            }
            Ok(())
        });
    }
    cases.add("metadata/after deletion", |t| {
        let topic = t.topic("a", 2, &[])?;
        t.delete_topic(&topic)?;
        let body = json!({"Topics": [{"Name": topic}], "AllowAutoTopicCreation": false});
        let gone = t.poll(
            |t| t.ask("Metadata", 12, body.clone()),
            |answer| answer.pointer("/Topics/0/ErrorCode") != Some(&json!(0)),
        );
        t.see("deleted", gone);
        let topic = t.topic("a", 1, &[])?;
        t.look("made again", "Metadata", 12, json!({"Topics": [{"Name": topic}]}));
        Ok(())
    });
    cases.add("metadata/many partitions", |t| {
        let topic = t.topic("a", 60, &[])?;
        t.look("answer", "Metadata", 12, json!({"Topics": [{"Name": topic}]}));
        Ok(())
    });
}

fn by_id(cases: &mut Cases) {
    for version in 10..=13 {
        cases.add(format!("metadata/ids v{version}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let id = t.id(&topic);
            let asked = [
                ("id and null name", json!([{"TopicId": id, "Name": null}])),
                ("unknown id", json!([{"TopicId": UNKNOWN_ID, "Name": null}])),
                ("id and its name", json!([{"TopicId": id, "Name": topic}])),
                ("id and another name", json!([{"TopicId": id, "Name": "other"}])),
                ("neither", json!([{"TopicId": ZERO_ID, "Name": null}])),
                ("name", json!([{"TopicId": ZERO_ID, "Name": topic}])),
                (
                    "two ids",
                    json!([{"TopicId": id, "Name": null}, {"TopicId": UNKNOWN_ID, "Name": null}]),
                ),
                ("id and a name", json!([{"TopicId": id, "Name": null}, {"Name": topic}])),
            ];
            for (label, topics) in asked {
                let body = json!({"Topics": topics, "AllowAutoTopicCreation": false});
                t.look(label, "Metadata", version, body);
            }
            Ok(())
        });
    }
    cases.add("metadata/id of a deleted topic", |t| {
        let topic = t.topic("a", 1, &[])?;
        let id = t.id(&topic);
        t.delete_topic(&topic)?;
        let body = json!({"Topics": [{"TopicId": id, "Name": null}]});
        let gone = t.poll(
            |t| t.ask("Metadata", 12, body.clone()),
            |answer| answer.pointer("/Topics/0/ErrorCode") != Some(&json!(0)),
        );
        t.see("deleted", gone);
        Ok(())
    });
}

fn creation(cases: &mut Cases) {
    for (label, version, allow) in [
        ("v0", 0, true),
        ("v3", 3, true),
        ("v4", 4, true),
        ("v12", 12, true),
        ("forbidden", 12, false),
    ] {
        cases.add(format!("metadata/creation {label}"), move |t| {
            let name = t.name("new");
            let body = json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": allow});
            t.look("first", "Metadata", version, body);
            let look = json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": false});
            t.pause(300);
            let later = t.poll(
                |t| t.ask("Metadata", 12, look.clone()),
                |answer| !allow || answer.pointer("/Topics/0/ErrorCode") == Some(&json!(0)),
            );
            t.see("later", later);
            Ok(())
        });
    }
    cases.add("metadata/creation of a name that collides", |t| {
        let name = t.name("a.b");
        let topic = json!({"Name": name, "NumPartitions": 1, "ReplicationFactor": 1});
        t.need("CreateTopics", 7, json!({"Topics": [topic], "timeoutMs": 10000}))?;
        let other = t.name("a_b");
        for _ in 0..2 {
            t.look("asked", "Metadata", 12, json!({"Topics": [{"Name": other}]}));
            t.pause(200);
        }
        Ok(())
    });
    cases.add("metadata/internal topics", |t| {
        let body = json!({"Topics": [{"Name": "__consumer_offsets"}]});
        t.look("offsets", "Metadata", 12, body.clone());
        t.look("offsets v1", "Metadata", 1, body);
        let metadata =
            json!({"Topics": [{"Name": "__cluster_metadata"}], "AllowAutoTopicCreation": false});
        t.look("metadata", "Metadata", 12, metadata);
        Ok(())
    });
}

fn pages(cases: &mut Cases) {
    cases.add("describetopicpartitions/pages", |t| {
        let a = t.topic("a", 5, &[])?;
        let b = t.topic("b", 3, &[])?;
        let topics = json!([{"Name": b}, {"Name": a}]);
        let mut cursor = Value::Null;
        for page in 0..6 {
            let body = json!({"Topics": topics, "ResponsePartitionLimit": 2, "Cursor": cursor});
            let answer = t.ask("DescribeTopicPartitions", 0, body);
            cursor = answer["NextCursor"].clone();
            t.see(format!("page {page}"), answer);
            if !cursor.is_object() {
                break;
            }
        }
        Ok(())
    });
    for limit in [-1, 0, 1, 2000, 3000] {
        cases.add(format!("describetopicpartitions/limit {limit}"), move |t| {
            let topic = t.topic("a", 3, &[])?;
            let body = json!({"Topics": [{"Name": topic}], "ResponsePartitionLimit": limit});
            t.look("answer", "DescribeTopicPartitions", 0, body);
            Ok(())
        });
    }
    cases.add("describetopicpartitions/cursors", |t| {
        let topic = t.topic("b", 3, &[])?;
        let before = t.name("a");
        let after = t.name("c");
        let cursors = [
            ("in the topic", topic.clone(), 1),
            ("at its end", topic.clone(), 3),
            ("negative", topic.clone(), -1),
            ("before all", before, 0),
            ("behind all", after, 0),
            ("empty name", String::new(), 0),
        ];
        for (label, name, index) in cursors {
            let cursor = json!({"TopicName": name, "PartitionIndex": index});
            let body = json!({"Topics": [{"Name": topic}], "Cursor": cursor});
            t.look(label, "DescribeTopicPartitions", 0, body);
        }
        Ok(())
    });
    cases.add("describetopicpartitions/unknown", |t| {
        let topic = t.topic("a", 1, &[])?;
        let missing = t.name("missing");
        let names = json!([{"Name": missing}, {"Name": topic}, {"Name": "a b"}, {"Name": topic}]);
        t.look("mixed", "DescribeTopicPartitions", 0, json!({ "Topics": names }));
        t.look("empty name", "DescribeTopicPartitions", 0, json!({"Topics": [{"Name": ""}]}));
        Ok(())
    });
}

fn cluster(cases: &mut Cases) {
    for version in 0..=2 {
        cases.add(format!("cluster/describe v{version}"), move |t| {
            for operations in [false, true] {
                let body = json!({"IncludeClusterAuthorizedOperations": operations});
                t.look(format!("operations {operations}"), "DescribeCluster", version, body);
            }
            for kind in [1, 2, 3].into_iter().filter(|_| version >= 1) {
                let body = json!({"EndpointType": kind});
                t.look(format!("endpoint type {kind}"), "DescribeCluster", version, body);
            }
            let fenced = json!({"IncludeFencedBrokers": version >= 2});
            t.look("fenced", "DescribeCluster", version, fenced);
            Ok(())
        });
        cases.add(format!("cluster/quorum v{version}"), move |t| {
            let metadata = |name: &str, index| {
                json!({"Topics": [{"TopicName": name, "Partitions": [{"PartitionIndex": index}]}]})
            };
            for (label, body) in [
                ("unknown topic", metadata("none-such", 0)),
                ("unknown partition", metadata("__cluster_metadata", 1)),
                ("no partitions", json!({"Topics": [{"TopicName": "__cluster_metadata"}]})),
            ] {
                t.look(label, "DescribeQuorum", version, body);
            }
            let mut known = t.ask("DescribeQuorum", version, metadata("__cluster_metadata", 0));
            if let Some(partition) = known.pointer_mut("/Topics/0/Partitions/0") {
                let voters = partition["CurrentVoters"].as_array().map(|voters| voters.len());
                let moves = json!({"LeaderEpoch": 1, "HighWatermark": 1, "CurrentVoters": voters});
                *partition = with(partition.take(), moves);
            }
            t.see("the quorum", known);
            Ok(())
        });
        cases.add(format!("cluster/features v{version}"), move |t| {
            let update = |name: &str, level, kind| {
                let both = json!({"Feature": name, "MaxVersionLevel": level});
                let kind = match version {
                    0 => json!({"AllowDowngrade": kind != 1}),
                    _ => json!({ "UpgradeType": kind }),
                };
                json!({"FeatureUpdates": [with(both, kind)], "timeoutMs": 5000})
            };
            for (label, body) in [
                ("nothing", json!({"timeoutMs": 5000})),
                ("unknown feature", update("none.such", 1, 1)),
                ("level too high", update("metadata.version", 9999, 1)),
                ("level negative", update("metadata.version", -1, 1)),
                ("downgrade as upgrade", update("metadata.version", 20, 1)),
                ("empty name", update("", 1, 1)),
            ] {
                t.look(label, "UpdateFeatures", version, body);
            }
            Ok(())
        });
    }
    cases.add("cluster/features are checked only", |t| {
        for level in [1, 9999] {
            let update =
                json!({"Feature": "none.such", "MaxVersionLevel": level, "UpgradeType": 1});
            let body = json!({"FeatureUpdates": [update], "ValidateOnly": true, "timeoutMs": 5000});
            t.look(format!("level {level}"), "UpdateFeatures", 1, body);
        }
        Ok(())
    });
}

fn log_dirs(cases: &mut Cases) {
    for version in 1..=5 {
        cases.add(format!("cluster/log dirs v{version}"), move |t| {
            let topic = t.topic("a", 2, &[])?;
            let missing = t.name("missing");
            let asked = [
                ("one partition", json!([{"Topic": topic, "Partitions": [1]}])),
                ("unknown partition", json!([{"Topic": topic, "Partitions": [7]}])),
                ("unknown topic", json!([{"Topic": missing, "Partitions": [0]}])),
                ("no partitions", json!([{"Topic": topic, "Partitions": []}])),
                ("no topics", json!([])),
            ];
            for (label, topics) in asked {
                t.look(label, "DescribeLogDirs", version, json!({ "Topics": topics }));
            }
            Ok(())
        });
    }
}

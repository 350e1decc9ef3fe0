//! CreateTopics, DeleteTopics, CreatePartitions, ElectLeaders and reassignments.

use serde_json::{Value, json};

use crate::differ::codec::{UNKNOWN_ID, ZERO_ID};
use crate::differ::context::{Step, T, with};
use crate::differ::run::Cases;

pub fn add(cases: &mut Cases) {
    creating(cases);
    names(cases);
    numbers(cases);
    several(cases);
    deleting(cases);
    growing(cases);
    leaders(cases);
}

/// A topic to create, with some fields other than usual.
fn new(name: &str, more: Value) -> Value {
    with(json!({"Name": name, "NumPartitions": 1, "ReplicationFactor": 1}), more)
}

fn create(topics: Value, validate: bool) -> Value {
    json!({"Topics": topics, "timeoutMs": 10000, "validateOnly": validate})
}

/// Asks whether it may be created, creates it, and looks at what there is.
fn try_new(t: &mut T, name: &str, more: &Value) -> Step {
    for validate in [true, false] {
        let body = create(json!([new(name, more.clone())]), validate);
        t.look(if validate { "validated" } else { "created" }, "CreateTopics", 7, body);
    }
    t.look("v2", "CreateTopics", 2, create(json!([new(name, more.clone())]), false));
    t.settle()?;
    let body = json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": false});
    t.look("there", "Metadata", 9, body);
    Ok(())
}

fn creating(cases: &mut Cases) {
    for version in 2..=7 {
        cases.add(format!("createtopics/v{version}"), move |t| {
            let known = t.topic("known", 1, &[])?;
            let good = new(
                &t.name("a"),
                json!({
                    "NumPartitions": 2, "Configs": [{"Name": "cleanup.policy", "Value": "compact"}],
                }),
            );
            let bad = new(&t.name("b"), json!({"NumPartitions": 0}));
            let defaults = new(&t.name("c"), json!({"NumPartitions": -1, "ReplicationFactor": -1}));
            let mut topics = vec![good, bad, new(&known, json!({})), new("a b", json!({}))];
            // Before version 4 there are no defaults for these; they are refused all the same.
            topics.push(defaults);
            t.look("validated", "CreateTopics", version, create(json!(topics), true));
            let late = with(create(json!([topics[0]]), false), json!({"timeoutMs": 0}));
            t.look("no time", "CreateTopics", version, late);
            t.look("created", "CreateTopics", version, create(json!(topics), false));
            t.look("nothing", "CreateTopics", version, create(json!([]), false));
            Ok(())
        });
    }
}

fn names(cases: &mut Cases) {
    let of = |length: usize| "x".repeat(length);
    let all = [
        ("empty", String::new()),
        ("dot", ".".into()),
        ("dots", "..".into()),
        ("space", "a b".into()),
        ("slash", "a/b".into()),
        ("not ASCII", "\u{e9}".into()),
        ("colon", "a:b".into()),
        ("249 characters", of(249)),
        ("250 characters", of(250)),
        ("three dots", "...".into()),
        ("metadata", "__cluster_metadata".into()),
        ("offsets", "__consumer_offsets".into()),
        ("line end", "a\n".into()),
    ];
    for (label, name) in all {
        cases.add(format!("createtopics/name {label}"), move |t| {
            t.look("validated", "CreateTopics", 7, create(json!([new(&name, json!({}))]), true));
            t.look("v2", "CreateTopics", 2, create(json!([new(&name, json!({}))]), true));
            Ok(())
        });
    }
    for (label, first, second) in [
        ("dot and underscore", "a.b", "a_b"),
        ("underscore and dot", "c_d", "c.d"),
        ("the same", "e.f", "e.f"),
        ("two places", "a.b_c", "a_b.c"),
        ("capitals", "g", "G"),
    ] {
        cases.add(format!("createtopics/collision {label}"), move |t| {
            for name in [first, second] {
                let body = create(json!([new(&t.name(name), json!({}))]), false);
                t.look(name, "CreateTopics", 7, body);
            }
            let both = [t.name(&format!("{first}x")), t.name(&format!("{second}x"))];
            let both = both.iter().map(|name| new(name, json!({}))).collect::<Vec<_>>();
            t.look("in one request", "CreateTopics", 7, create(json!(both), false));
            Ok(())
        });
    }
}

fn numbers(cases: &mut Cases) {
    let assigned = |partitions: &[(i32, &[i32])]| {
        let partitions = partitions
            .iter()
            .map(|(index, brokers)| json!({"PartitionIndex": index, "BrokerIds": brokers}));
        let partitions: Vec<Value> = partitions.collect();
        json!({"NumPartitions": -1, "ReplicationFactor": -1, "Assignments": partitions})
    };
    let config = |name: &str, value: Value| json!({"Configs": [{"Name": name, "Value": value}]});
    let twice = json!({"Configs": [
        {"Name": "retention.ms", "Value": "1"}, {"Name": "retention.ms", "Value": "2"},
    ]});
    let all: Vec<(&str, Value)> = vec![
        ("defaults", json!({"NumPartitions": -1, "ReplicationFactor": -1})),
        ("no partitions", json!({"NumPartitions": 0})),
        ("partitions -2", json!({"NumPartitions": -2})),
        ("10,000 partitions", json!({"NumPartitions": 10_000})),
        ("20,000 partitions", json!({"NumPartitions": 20_000})),
        ("no replicas", json!({"ReplicationFactor": 0})),
        ("replicas -2", json!({"ReplicationFactor": -2})),
        ("two replicas", json!({"ReplicationFactor": 2})),
        ("both wrong", json!({"NumPartitions": 0, "ReplicationFactor": 5})),
        ("assigned", assigned(&[(0, &[0]), (1, &[0])])),
        ("assigned backwards", assigned(&[(1, &[0]), (0, &[0])])),
        ("assigned with a gap", assigned(&[(0, &[0]), (2, &[0])])),
        ("assigned from 1", assigned(&[(1, &[0])])),
        ("assigned negative", assigned(&[(-1, &[0])])),
        ("assigned twice", assigned(&[(0, &[0]), (0, &[0])])),
        ("assigned to nobody", assigned(&[(0, &[])])),
        ("assigned to a stranger", assigned(&[(0, &[7])])),
        ("assigned to -1", assigned(&[(0, &[-1])])),
        ("assigned to one twice", assigned(&[(0, &[0, 0])])),
        ("assigned and numbers", with(assigned(&[(0, &[0])]), json!({"NumPartitions": 1}))),
        ("assigned and replicas", with(assigned(&[(0, &[0])]), json!({"ReplicationFactor": 1}))),
        ("config", config("retention.ms", json!("1000"))),
        ("config unknown", config("none.such", json!("1"))),
        ("config bad", config("retention.ms", json!("abc"))),
        ("config too low", config("retention.ms", json!("-2"))),
        ("config null", config("retention.ms", Value::Null)),
        ("config empty", config("retention.ms", json!(""))),
        ("config with spaces", config("retention.ms", json!(" 7 "))),
        ("config policy", config("cleanup.policy", json!("none-such"))),
        ("config codec", config("compression.type", json!("brotli"))),
        ("config of brokers", config("log.retention.ms", json!("1000"))),
        ("config without name", config("", json!("1"))),
        ("config twice", twice),
        ("config segment too small", config("segment.bytes", json!("100"))),
        ("config min.insync 0", config("min.insync.replicas", json!("0"))),
        ("config throttled", config("leader.replication.throttled.replicas", json!("0:0,1:0"))),
        ("config throttled badly", config("leader.replication.throttled.replicas", json!("zero"))),
        ("config tiered", config("remote.storage.enable", json!("false"))),
    ];
    for (label, more) in all {
        cases.add(format!("createtopics/with {label}"), move |t| {
            let name = t.name("a");
            try_new(t, &name, &more)
        });
    }
}

fn several(cases: &mut Cases) {
    cases.add("createtopics/the same twice", |t| {
        let (a, b) = (t.name("a"), t.name("b"));
        let topics = [new(&a, json!({})), new(&b, json!({})), new(&a, json!({"NumPartitions": 2}))];
        for version in [2, 7] {
            t.look(format!("v{version}"), "CreateTopics", version, create(json!(topics), false));
        }
        Ok(())
    });
    cases.add("createtopics/too many partitions together", |t| {
        let names = ["a", "b", "c"].map(|part| t.name(part));
        let topics = names.iter().map(|name| new(name, json!({"NumPartitions": 4000})));
        let topics: Vec<Value> = topics.collect();
        t.look("validated", "CreateTopics", 7, create(json!(topics), true));
        Ok(())
    });
    cases.add("createtopics/all settings of a new topic", |t| {
        let name = t.name("a");
        let configs = json!({"Configs": [{"Name": "retention.ms", "Value": "5"}]});
        for version in [4, 5, 7] {
            let body = create(json!([new(&name, configs.clone())]), true);
            t.look(format!("v{version}"), "CreateTopics", version, body);
        }
        Ok(())
    });
}

fn deleting(cases: &mut Cases) {
    for version in 1..=6 {
        cases.add(format!("deletetopics/v{version}"), move |t| {
            let [a, b] = [t.topic("a", 1, &[])?, t.topic("b", 1, &[])?];
            let missing = t.name("missing");
            let by_name = |names: &[&str]| {
                let topics = names.iter().map(|name| json!({"Name": name, "TopicId": ZERO_ID}));
                let topics: Vec<Value> = topics.collect();
                json!({"TopicNames": names, "Topics": topics, "TimeoutMs": 10000})
            };
            let ask = |t: &mut T, label: &str, names: &[&str]| {
                let mut body = by_name(names);
                body.as_object_mut()
                    .expect("a struct")
                    .retain(|name, _| (version >= 6) == (name == "Topics") || name == "TimeoutMs");
                t.look(label, "DeleteTopics", version, body);
            };
            ask(t, "unknown", &[&missing]);
            ask(t, "bad name", &["a b"]);
            ask(t, "empty name", &[""]);
            ask(t, "nothing", &[]);
            ask(t, "twice", &[&a, &a]);
            ask(t, "known and unknown", &[&a, &missing]);
            ask(t, "again", &[&a]);
            let late = with(by_name(&[&b]), json!({"TimeoutMs": 0}));
            t.look("no time", "DeleteTopics", version, late);
            Ok(())
        });
    }
    cases.add("deletetopics/by id", |t| {
        let [a, b, c] = [t.topic("a", 1, &[])?, t.topic("b", 1, &[])?, t.topic("c", 1, &[])?];
        let all = [
            ("unknown", json!([{"TopicId": UNKNOWN_ID, "Name": null}])),
            ("id and name", json!([{"TopicId": t.id(&a), "Name": a}])),
            ("neither", json!([{"TopicId": ZERO_ID, "Name": null}])),
            (
                "twice",
                json!([{"TopicId": t.id(&a), "Name": null}, {"TopicId": t.id(&a), "Name": null}]),
            ),
            ("by id and by name", json!([{"TopicId": t.id(&b), "Name": null}, {"Name": b}])),
            ("by id", json!([{"TopicId": t.id(&c), "Name": null}])),
            ("again", json!([{"TopicId": t.id(&c), "Name": null}])),
        ];
        for (label, topics) in all {
            t.look(label, "DeleteTopics", 6, json!({"Topics": topics, "TimeoutMs": 10000}));
        }
        Ok(())
    });
}

fn growing(cases: &mut Cases) {
    for version in 0..=3 {
        cases.add(format!("createpartitions/v{version}"), move |t| {
            let a = t.topic("a", 2, &[])?;
            let missing = t.name("missing");
            let to = |name: &str, count: i32, more: Value| {
                let topic = with(json!({"Name": name, "Count": count}), more);
                json!({"Topics": [topic], "TimeoutMs": 10000})
            };
            let assigned = |brokers: Value| json!({"Assignments": brokers});
            let all = [
                ("fewer", to(&a, 1, json!({}))),
                ("as many", to(&a, 2, json!({}))),
                ("none", to(&a, 0, json!({}))),
                ("negative", to(&a, -1, json!({}))),
                ("unknown", to(&missing, 3, json!({}))),
                ("bad name", to("a b", 3, json!({}))),
                ("20,000", to(&a, 20_000, json!({}))),
                ("too few assigned", to(&a, 4, assigned(json!([{"BrokerIds": [0]}])))),
                ("none assigned", to(&a, 3, assigned(json!([])))),
                ("to a stranger", to(&a, 3, assigned(json!([{"BrokerIds": [7]}])))),
                ("to nobody", to(&a, 3, assigned(json!([{"BrokerIds": []}])))),
                ("to one twice", to(&a, 3, assigned(json!([{"BrokerIds": [0, 0]}])))),
                ("checked only", with(to(&a, 3, json!({})), json!({"ValidateOnly": true}))),
                ("no time", with(to(&a, 3, json!({})), json!({"TimeoutMs": 0}))),
                ("more", to(&a, 3, json!({}))),
                ("assigned", to(&a, 4, assigned(json!([{"BrokerIds": [0]}])))),
            ];
            for (label, body) in all {
                let body = match body.pointer("/Topics/0/Assignments") {
                    Some(_) => body,
                    None => {
                        let mut body = body;
                        body["Topics"][0]["Assignments"] = Value::Null;
                        body
                    }
                };
                t.look(label, "CreatePartitions", version, body);
            }
            let twice = json!({"Topics": [
                {"Name": a, "Count": 6, "Assignments": null},
                {"Name": a, "Count": 7, "Assignments": null},
            ], "TimeoutMs": 10000});
            t.look("twice", "CreatePartitions", version, twice);
            t.await_topic(&a, 4)?;
            t.look("there", "Metadata", 9, json!({"Topics": [{"Name": a}]}));
            Ok(())
        });
    }
}

fn leaders(cases: &mut Cases) {
    for version in 0..=2 {
        cases.add(format!("electleaders/v{version}"), move |t| {
            let a = t.topic("a", 2, &[])?;
            let missing = t.name("missing");
            let of = |topic: &str, partitions: Value, kind: i32| {
                let topics = json!([{"Topic": topic, "Partitions": partitions}]);
                let body = json!({"TopicPartitions": topics, "TimeoutMs": 5000});
                if version == 0 { body } else { with(body, json!({ "ElectionType": kind })) }
            };
            for (label, body) in [
                ("preferred", of(&a, json!([0, 1]), 0)),
                ("unclean", of(&a, json!([0]), 1)),
                ("unknown kind", of(&a, json!([0]), 5)),
                ("unknown partition", of(&a, json!([9]), 0)),
                ("unknown topic", of(&missing, json!([0]), 0)),
                ("no partitions", of(&a, json!([]), 0)),
                ("no topics", json!({"TopicPartitions": [], "TimeoutMs": 5000})),
            ] {
                t.look(label, "ElectLeaders", version, body);
            }
            Ok(())
        });
    }
    cases.add("reassignments/listed", |t| {
        let a = t.topic("a", 1, &[])?;
        let missing = t.name("missing");
        let all = [
            ("known", json!([{"Name": a, "PartitionIndexes": [0]}])),
            ("unknown", json!([{"Name": missing, "PartitionIndexes": [0]}])),
            ("unknown partition", json!([{"Name": a, "PartitionIndexes": [5]}])),
            ("all", Value::Null),
            ("none", json!([])),
        ];
        for (label, topics) in all {
            let body = json!({"Topics": topics, "TimeoutMs": 5000});
            t.look(label, "ListPartitionReassignments", 0, body);
        }
        Ok(())
    });
}

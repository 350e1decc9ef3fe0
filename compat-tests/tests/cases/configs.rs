//! Settings: the two ways to alter them, and what describing them says.

use std::collections::BTreeMap;

use compat_tests::differ::context::T;
use serde_json::{Value, json};

use crate::{case, codes, number};

/// Sources as DescribeConfigs numbers them.
const OF_TOPIC: i64 = 1;
const DEFAULT: i64 = 5;

/// Values and sources of a topic's settings.
fn described(t: &mut T, topic: &str) -> BTreeMap<String, (String, i64)> {
    let resource = json!({"ResourceType": 2, "ResourceName": topic, "ConfigurationKeys": null});
    let answer = t.ask("DescribeConfigs", 4, json!({"Resources": [resource]}));
    let configs = answer["Results"][0]["Configs"].as_array().expect("a list").iter();
    let of = |config: &Value| {
        let text = |field: &str| config[field].as_str().unwrap_or_default().to_owned();
        (text("Name"), (text("Value"), number(config, "/ConfigSource")))
    };
    configs.map(of).collect()
}

fn alter(t: &mut T, topic: &str, configs: &[(&str, &str)], validate: bool) -> Vec<i64> {
    let configs = configs.iter().map(|(name, value)| json!({"Name": name, "Value": value}));
    let configs: Vec<Value> = configs.collect();
    let resource = json!({"ResourceType": 2, "ResourceName": topic, "Configs": configs});
    let answer =
        t.ask("AlterConfigs", 2, json!({"Resources": [resource], "ValidateOnly": validate}));
    t.settle().expect("it is seen");
    codes(&answer, "/Responses")
}

fn change(t: &mut T, topic: &str, changes: &[(&str, i64, Value)]) -> Vec<i64> {
    let configs = changes.iter().map(|(name, operation, value)| {
        let mut config = json!({"Name": name, "ConfigOperation": operation});
        config["Value"] = value.clone();
        config
    });
    let configs: Vec<Value> = configs.collect();
    let resource = json!({"ResourceType": 2, "ResourceName": topic, "Configs": configs});
    let answer = t.ask("IncrementalAlterConfigs", 1, json!({"Resources": [resource]}));
    t.settle().expect("it is seen");
    codes(&answer, "/Responses")
}

#[test]
fn the_old_call_replaces_all_and_the_new_one_does_not() {
    let mut t = case("replaces");
    let set = [("retention.ms", "1000"), ("max.message.bytes", "5000"), ("segment.ms", "7000")];
    let topic = t.topic("a", 1, &set).expect("a topic");
    assert_eq!(alter(&mut t, &topic, &[("segment.ms", "8000")], true), [0]);
    assert_eq!(described(&mut t, &topic)["segment.ms"].0, "7000", "only checked");
    assert_eq!(change(&mut t, &topic, &[("retention.ms", 0, json!("2000"))]), [0]);
    let now = described(&mut t, &topic);
    assert_eq!(now["retention.ms"], ("2000".to_owned(), OF_TOPIC));
    assert_eq!(now["segment.ms"], ("7000".to_owned(), OF_TOPIC));
    assert_eq!(alter(&mut t, &topic, &[("segment.ms", "9000")], false), [0]);
    let now = described(&mut t, &topic);
    assert_eq!(now["segment.ms"], ("9000".to_owned(), OF_TOPIC));
    assert_eq!(now["retention.ms"].1, DEFAULT);
    assert_eq!(now["max.message.bytes"].1, DEFAULT);
    assert_eq!(change(&mut t, &topic, &[("segment.ms", 1, Value::Null)]), [0]);
    assert_eq!(described(&mut t, &topic)["segment.ms"].1, DEFAULT);
    // One bad key fails its resource whole.
    let mixed = [("segment.ms", "1"), ("none.such", "1")];
    assert_eq!(alter(&mut t, &topic, &mixed, false), [40]);
    assert_eq!(described(&mut t, &topic)["segment.ms"].1, DEFAULT);
}

#[test]
fn lists_grow_and_shrink() {
    const SET: i64 = 0;
    const APPEND: i64 = 2;
    const SUBTRACT: i64 = 3;
    let mut t = case("lists");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    for (operation, value, want) in [
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (APPEND, "delete", "compact,delete"),
        (SET, "compact", "compact"),
    ] {
        let changes = [("cleanup.policy", operation, json!(value))];
        assert_eq!(change(&mut t, &topic, &changes), [0], "{operation} {value}");
        assert_eq!(described(&mut t, &topic)["cleanup.policy"].0, want, "{operation} {value}");
    }
    let refused: [(&str, Vec<(&str, i64, Value)>, i64); 5] = [
        ("append to a number", vec![("retention.ms", APPEND, json!("1"))], 40),
        ("subtract from a number", vec![("retention.ms", SUBTRACT, json!("1"))], 40),
        ("null", vec![("retention.ms", SET, Value::Null)], 42),
        (
            "the same key twice",
            vec![("retention.ms", SET, json!("1")), ("retention.ms", SET, json!("2"))],
            42,
        ),
        (
            "one bad of two",
            vec![("segment.ms", SET, json!("1")), ("retention.ms", SET, json!("soon"))],
            40,
        ),
    ];
    let before = described(&mut t, &topic);
    for (label, changes, want) in refused {
        assert_eq!(change(&mut t, &topic, &changes), [want], "{label}");
        assert_eq!(described(&mut t, &topic), before, "{label}");
    }
    assert_ne!(change(&mut t, &topic, &[("retention.ms", 9, json!("1"))]), [0], "unknown");
}

fn resource(t: &mut T, kind: i64, name: &str, keys: Value, version: i16) -> Value {
    let one = json!({"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys});
    let body = json!({"Resources": [one], "IncludeSynonyms": true});
    t.ask("DescribeConfigs", version, body)["Results"][0].clone()
}

#[test]
fn brokers_and_topics_are_described_as_tools_want() {
    let mut t = case("described");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    for version in 1..=4 {
        let broker = resource(&mut t, 4, "0", Value::Null, version);
        assert_eq!(number(&broker, "/ErrorCode"), 0, "{broker}");
        let configs = broker["Configs"].as_array().expect("a list");
        assert!(configs.len() > 150, "{} settings", configs.len());
        for name in [
            "auto.create.topics.enable",
            "num.partitions",
            "default.replication.factor",
            "log.dirs",
        ] {
            let one = configs.iter().find(|config| config["Name"] == json!(name));
            let one = one.unwrap_or_else(|| panic!("no {name}"));
            assert!(!one["Synonyms"].as_array().expect("synonyms").is_empty(), "{one}");
            assert!(version < 3 || number(one, "/ConfigType") > 0, "{one}");
        }
        for config in configs.iter().filter(|config| config["IsSensitive"] == json!(true)) {
            assert!(config["Value"].is_null(), "{config}");
        }
        for name in ["4711", "zero"] {
            let stranger = resource(&mut t, 4, name, Value::Null, version);
            assert_ne!(number(&stranger, "/ErrorCode"), 0, "{stranger}");
        }
        // The defaults of the cluster.
        assert_eq!(number(&resource(&mut t, 4, "", Value::Null, version), "/ErrorCode"), 0);
        let all = resource(&mut t, 2, &topic, Value::Null, version);
        let every = all["Configs"].as_array().expect("a list").len();
        assert!(every > 25, "{every} settings of a topic");
        // Kafka takes an empty list for all, too; names that it does not know are left out.
        let empty = resource(&mut t, 2, &topic, json!([]), version);
        assert_eq!(empty["Configs"].as_array().map(Vec::len), Some(every), "v{version}");
        let some = resource(&mut t, 2, &topic, json!(["retention.ms", "none.such"]), version);
        let names: Vec<&Value> =
            some["Configs"].as_array().expect("a list").iter().map(|c| &c["Name"]).collect();
        assert_eq!(names, [&json!("retention.ms")], "v{version}");
    }
}

#[test]
fn log_dirs_have_sizes() {
    let mut t = case("dirs");
    let topic = t.topic("a", 2, &[]).expect("a topic");
    t.put(&topic, &compat_tests::differ::batch::values(&["x"])).expect("produced");
    for version in 1..=4 {
        let answer = t.ask("DescribeLogDirs", version, json!({"Topics": null}));
        let topics: Vec<&Value> = answer["Results"]
            .as_array()
            .expect("a list")
            .iter()
            .flat_map(|dir| dir["Topics"].as_array().expect("a list"))
            .filter(|one| one["Name"] == json!(topic))
            .collect();
        assert_eq!(topics.len(), 1, "v{version}: {answer}");
        let partitions = topics[0]["Partitions"].as_array().expect("a list");
        let sizes: i64 = partitions.iter().map(|one| number(one, "/PartitionSize")).sum();
        assert!(partitions.len() == 2 && sizes > 60, "{}", topics[0]);
    }
}

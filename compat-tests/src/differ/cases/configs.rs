//! Settings: described, altered whole, altered one by one, and the resources that have some.

use serde_json::{Value, json};

use crate::differ::context::{Step, T, with};
use crate::differ::run::Cases;

const TOPIC: i32 = 2;
const BROKER: i32 = 4;
const LOGGER: i32 = 8;
const METRICS: i32 = 16;
const GROUP: i32 = 32;

const SET: i32 = 0;
const DELETE: i32 = 1;
const APPEND: i32 = 2;
const SUBTRACT: i32 = 3;

pub fn add(cases: &mut Cases) {
    described(cases);
    altered(cases);
    one_by_one(cases);
    by_version(cases);
    brokers(cases);
    listed(cases);
}

fn describe(kind: i32, name: &str, keys: Value) -> Value {
    let resource = json!({"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys});
    json!({"Resources": [resource], "IncludeSynonyms": true})
}

fn described(cases: &mut Cases) {
    for version in 1..=4 {
        cases.add(format!("describeconfigs/v{version}"), move |t| {
            let topic = t.topic("a", 1, &[("cleanup.policy", "compact")])?;
            let missing = t.name("missing");
            t.look("topic", "DescribeConfigs", version, describe(TOPIC, &topic, Value::Null));
            let some = json!(["retention.ms", "cleanup.policy", "none.such"]);
            t.look("some", "DescribeConfigs", version, describe(TOPIC, &topic, some.clone()));
            t.look("no keys", "DescribeConfigs", version, describe(TOPIC, &topic, json!([])));
            for (label, kind, name) in [
                ("unknown topic", TOPIC, &*missing),
                ("bad name", TOPIC, "a b"),
                ("empty name", TOPIC, ""),
                ("another broker", BROKER, "7"),
                ("no number", BROKER, "x"),
                ("unknown kind", 99, "x"),
                ("kind 0", 0, "x"),
                ("broker", BROKER, "0"),
                ("default broker", BROKER, ""),
            ] {
                let body = describe(kind, name, some.clone());
                t.look(label, "DescribeConfigs", version, body);
            }
            let body = with(
                describe(TOPIC, &topic, json!(["retention.ms"])),
                json!({
                    "IncludeSynonyms": false, "IncludeDocumentation": version >= 3,
                }),
            );
            t.look("documented", "DescribeConfigs", version, body);
            Ok(())
        });
    }
    cases.add("describeconfigs/the same twice", |t| {
        let topic = t.topic("a", 1, &[])?;
        let one = describe(TOPIC, &topic, json!(["retention.ms"]))["Resources"][0].clone();
        t.look("answer", "DescribeConfigs", 4, json!({"Resources": [one, one]}));
        t.look("nothing", "DescribeConfigs", 4, json!({"Resources": []}));
        Ok(())
    });
    cases.add("describeconfigs/groups and metrics", |t| {
        let group = t.name("g");
        for (label, kind) in [("group", GROUP), ("metrics", METRICS), ("logger", LOGGER)] {
            let keys = json!(["consumer.session.timeout.ms", "interval.ms", "kafka"]);
            t.look(label, "DescribeConfigs", 4, describe(kind, &group, keys));
        }
        Ok(())
    });
}

fn alter(kind: i32, name: &str, configs: &[(&str, Value)]) -> Value {
    let configs = configs.iter().map(|(name, value)| json!({"Name": name, "Value": value}));
    let configs: Vec<Value> = configs.collect();
    json!({"Resources": [{"ResourceType": kind, "ResourceName": name, "Configs": configs}]})
}

/// What a topic sets itself.
fn see_own(t: &mut T, label: &str, topic: &str) -> Step {
    t.settle()?;
    let mut answer = t.ask("DescribeConfigs", 4, describe(TOPIC, topic, Value::Null));
    if let Some(configs) = answer.pointer_mut("/Results/0/Configs").and_then(Value::as_array_mut) {
        configs.retain(|config| config["ConfigSource"] == json!(1));
    }
    t.see(label, answer);
    Ok(())
}

fn altered(cases: &mut Cases) {
    for version in 0..=2 {
        cases.add(format!("alterconfigs/v{version}"), move |t| {
            let topic = t.topic("a", 1, &[("segment.ms", "60000")])?;
            let missing = t.name("missing");
            let all = [
                ("one", alter(TOPIC, &topic, &[("retention.ms", json!("5"))])),
                ("unknown setting", alter(TOPIC, &topic, &[("none.such", json!("5"))])),
                ("bad value", alter(TOPIC, &topic, &[("retention.ms", json!("x"))])),
                ("null value", alter(TOPIC, &topic, &[("retention.ms", Value::Null)])),
                ("unknown topic", alter(TOPIC, &missing, &[("retention.ms", json!("5"))])),
                ("empty name", alter(TOPIC, "", &[("retention.ms", json!("5"))])),
                ("unknown kind", alter(99, "x", &[("retention.ms", json!("5"))])),
                ("another broker", alter(BROKER, "7", &[("log.retention.ms", json!("5"))])),
                ("nothing", json!({"Resources": []})),
            ];
            for (label, body) in all {
                t.look(label, "AlterConfigs", version, body);
            }
            see_own(t, "now", &topic)?;
            let checked = with(
                alter(TOPIC, &topic, &[("retention.ms", json!("77"))]),
                json!({"ValidateOnly": true}),
            );
            t.look("checked only", "AlterConfigs", version, checked);
            t.look("cleared", "AlterConfigs", version, alter(TOPIC, &topic, &[]));
            see_own(t, "then", &topic)?;
            Ok(())
        });
    }
}

fn step(kind: i32, name: &str, configs: &[(&str, i32, Value)]) -> Value {
    let configs = configs.iter().map(|(name, operation, value)| {
        json!({"Name": name, "ConfigOperation": operation, "Value": value})
    });
    let configs: Vec<Value> = configs.collect();
    json!({"Resources": [{"ResourceType": kind, "ResourceName": name, "Configs": configs}]})
}

fn one_by_one(cases: &mut Cases) {
    let all: Vec<(&str, Vec<(&str, i32, Value)>)> = vec![
        ("set", vec![("retention.ms", SET, json!("5"))]),
        ("set with spaces", vec![("retention.ms", SET, json!(" 5 "))]),
        ("set a list", vec![("cleanup.policy", SET, json!("compact,delete"))]),
        ("set a list with spaces", vec![("cleanup.policy", SET, json!("compact, delete"))]),
        ("set a list twice the same", vec![("cleanup.policy", SET, json!("compact,compact"))]),
        ("set null", vec![("retention.ms", SET, Value::Null)]),
        ("set empty", vec![("retention.ms", SET, json!(""))]),
        ("set too low", vec![("retention.ms", SET, json!("-2"))]),
        ("set a fraction", vec![("retention.ms", SET, json!("1.5"))]),
        ("set too large", vec![("retention.ms", SET, json!("9223372036854775808"))]),
        ("set a plus", vec![("retention.ms", SET, json!("+5"))]),
        ("set true", vec![("preallocate", SET, json!("TRUE"))]),
        ("set yes", vec![("preallocate", SET, json!("yes"))]),
        ("set a ratio", vec![("min.cleanable.dirty.ratio", SET, json!("1.5"))]),
        ("set a codec", vec![("compression.type", SET, json!("ZSTD"))]),
        ("set a level", vec![("compression.gzip.level", SET, json!("99"))]),
        ("set unknown", vec![("none.such", SET, json!("5"))]),
        ("set old", vec![("message.format.version", SET, json!("2.0"))]),
        ("set without name", vec![("", SET, json!("5"))]),
        ("delete", vec![("segment.ms", DELETE, Value::Null)]),
        ("delete what is not set", vec![("retention.bytes", DELETE, Value::Null)]),
        ("delete unknown", vec![("none.such", DELETE, Value::Null)]),
        ("append", vec![("cleanup.policy", APPEND, json!("compact"))]),
        ("append what is there", vec![("cleanup.policy", APPEND, json!("delete"))]),
        ("append bad", vec![("cleanup.policy", APPEND, json!("none-such"))]),
        ("append to a number", vec![("retention.ms", APPEND, json!("5"))]),
        ("append null", vec![("cleanup.policy", APPEND, Value::Null)]),
        ("append unknown", vec![("none.such", APPEND, json!("5"))]),
        ("subtract", vec![("cleanup.policy", SUBTRACT, json!("delete"))]),
        ("subtract what is not there", vec![("cleanup.policy", SUBTRACT, json!("compact"))]),
        ("subtract from a number", vec![("retention.ms", SUBTRACT, json!("5"))]),
        ("unknown operation", vec![("retention.ms", 9, json!("5"))]),
        (
            "the same twice",
            vec![("retention.ms", SET, json!("5")), ("retention.ms", SET, json!("6"))],
        ),
        ("good and bad", vec![("retention.ms", SET, json!("5")), ("segment.ms", SET, json!("x"))]),
        ("throttled", vec![("leader.replication.throttled.replicas", APPEND, json!("0:0"))]),
        ("throttled star", vec![("leader.replication.throttled.replicas", SET, json!("*"))]),
        ("local and whole", vec![("local.retention.ms", SET, json!("5"))]),
    ];
    for (label, configs) in all {
        cases.add(format!("incrementalconfigs/{label}"), move |t| {
            let topic = t.topic("a", 1, &[("segment.ms", "60000")])?;
            let body = step(TOPIC, &topic, &configs);
            let checked = with(body.clone(), json!({"ValidateOnly": true}));
            t.look("checked only", "IncrementalAlterConfigs", 1, checked);
            t.look("v0", "IncrementalAlterConfigs", 0, body);
            see_own(t, "now", &topic)?;
            Ok(())
        });
    }
}

fn by_version(cases: &mut Cases) {
    for version in [0, 1] {
        cases.add(format!("incrementalconfigs/targets v{version}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let missing = t.name("missing");
            let set = [("retention.ms", SET, json!("5"))];
            let broker = [("log.retention.ms", SET, json!("5"))];
            for (label, body) in [
                ("unknown topic", step(TOPIC, &missing, &set)),
                ("bad name", step(TOPIC, "a b", &set)),
                ("empty name", step(TOPIC, "", &set)),
                ("unknown kind", step(99, "x", &set)),
                ("another broker", step(BROKER, "7", &broker)),
                ("no number", step(BROKER, "x", &broker)),
                ("no settings", step(TOPIC, &topic, &[])),
                ("nothing", json!({"Resources": []})),
            ] {
                t.look(label, "IncrementalAlterConfigs", version, body);
            }
            let one = step(TOPIC, &topic, &set)["Resources"][0].clone();
            let twice = json!({"Resources": [one, one]});
            t.look("twice", "IncrementalAlterConfigs", version, twice);
            let mixed = json!({"Resources": [one, step(TOPIC, &missing, &set)["Resources"][0]]});
            t.look("known and unknown", "IncrementalAlterConfigs", version, mixed);
            see_own(t, "now", &topic)?;
            Ok(())
        });
    }
}

/// Changes of a broker's settings are asked about only: other cases need them as they are.
fn brokers(cases: &mut Cases) {
    let all: Vec<(&str, &str, i32, Value)> = vec![
        ("dynamic", "log.retention.ms", SET, json!("100000")),
        ("dynamic, bad", "log.retention.ms", SET, json!("x")),
        ("read-only", "log.dirs", SET, json!("/x")),
        ("read-only number", "num.partitions", SET, json!("5")),
        ("cluster-wide", "log.cleaner.threads", SET, json!("2")),
        ("threads", "num.io.threads", SET, json!("9")),
        ("connections", "max.connections", SET, json!("1000")),
        ("unknown", "none.such", SET, json!("5")),
        ("deleted", "log.retention.ms", DELETE, Value::Null),
        ("list", "log.cleanup.policy", APPEND, json!("compact")),
        ("topic's name", "retention.ms", SET, json!("5")),
    ];
    for (label, name, operation, value) in all {
        cases.add(format!("brokerconfigs/{label}"), move |t| {
            for (whose, broker) in [("one", "0"), ("all", "")] {
                let body = step(BROKER, broker, &[(name, operation, value.clone())]);
                let body = with(body, json!({"ValidateOnly": true}));
                t.look(whose, "IncrementalAlterConfigs", 1, body);
            }
            Ok(())
        });
    }
    let keys: [&[&str]; 6] = [
        &["num.partitions", "log.retention.ms", "log.retention.hours", "log.retention.minutes"],
        &["log.segment.bytes", "log.roll.hours", "log.roll.ms", "log.cleanup.policy"],
        &["message.max.bytes", "fetch.max.bytes", "socket.request.max.bytes", "compression.type"],
        &["group.min.session.timeout.ms", "group.max.session.timeout.ms", "group.max.size"],
        &["offsets.retention.minutes", "offsets.topic.num.partitions", "offset.metadata.max.bytes"],
        &["auto.create.topics.enable", "delete.topic.enable", "min.insync.replicas", "node.id"],
    ];
    for (number, keys) in keys.into_iter().enumerate() {
        cases.add(format!("brokerconfigs/described {number}"), move |t| {
            for (whose, broker) in [("one", "0"), ("all", "")] {
                t.look(whose, "DescribeConfigs", 4, describe(BROKER, broker, json!(keys)));
            }
            Ok(())
        });
    }
}

fn listed(cases: &mut Cases) {
    for kinds in
        [json!([TOPIC]), json!([METRICS]), json!([GROUP]), json!([99]), json!([TOPIC, GROUP])]
    {
        cases.add(format!("configresources/{kinds}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let answer = t.ask("ListConfigResources", 1, json!({ "ResourceTypes": kinds }));
            let mine = t.only_mine(answer, "/ConfigResources", "ResourceName");
            t.see("answer", mine);
            t.set_config(&topic, "retention.ms", "5")?;
            t.settle()?;
            let answer = t.ask("ListConfigResources", 1, json!({ "ResourceTypes": kinds }));
            let mut mine = t.only_mine(answer, "/ConfigResources", "ResourceName");
            if let Some(list) = mine["ConfigResources"].as_array_mut() {
                list.retain(|resource| resource["ResourceName"] == json!(topic));
            }
            t.see("after a setting", mine);
            Ok(())
        });
    }
    cases.add("configresources/brokers", |t| {
        for kind in [BROKER, LOGGER] {
            t.look(format!("{kind}"), "ListConfigResources", 1, json!({"ResourceTypes": [kind]}));
        }
        Ok(())
    });
}

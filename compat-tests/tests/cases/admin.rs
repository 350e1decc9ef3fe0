//! CreateTopics: counts, names, assignments, what is only checked.

use compat_tests::differ::context::{T, with};
use serde_json::{Value, json};

use crate::{case, codes};

fn new(name: &str, more: Value) -> Value {
    with(json!({"Name": name, "NumPartitions": 1, "ReplicationFactor": 1}), more)
}

fn create(t: &mut T, topics: &[Value], validate: bool) -> Vec<i64> {
    let body = json!({"Topics": topics, "timeoutMs": 10000, "validateOnly": validate});
    let answer = t.ask("CreateTopics", 7, body);
    codes(&answer, "/Topics")
}

fn is_there(t: &mut T, name: &str) -> bool {
    t.settle().expect("it is seen");
    let body = json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": false});
    codes(&t.ask("Metadata", 9, body), "/Topics") == [0]
}

#[test]
fn counts_and_settings_are_checked() {
    let assigned = |partitions: &[(i32, &[i32])]| {
        let all = partitions
            .iter()
            .map(|(index, brokers)| json!({"PartitionIndex": index, "BrokerIds": brokers}));
        let all: Vec<Value> = all.collect();
        json!({"NumPartitions": -1, "ReplicationFactor": -1, "Assignments": all})
    };
    let config = |name: &str, value: &str| json!({"Configs": [{"Name": name, "Value": value}]});
    let both = with(assigned(&[(0, &[0])]), json!({"NumPartitions": 1}));
    let replicas = with(assigned(&[(0, &[0])]), json!({"ReplicationFactor": 1}));
    let all = [
        ("replicas", json!({"ReplicationFactor": 3}), 38),
        ("no replicas", json!({"ReplicationFactor": 0}), 38),
        ("no partitions", json!({"NumPartitions": 0}), 37),
        ("fewer than none", json!({"NumPartitions": -2}), 37),
        ("defaults", json!({"NumPartitions": -1, "ReplicationFactor": -1}), 0),
        ("default replicas", json!({"ReplicationFactor": -1}), 0),
        ("assigned", assigned(&[(0, &[0]), (1, &[0])]), 0),
        ("assigned and counted", both, 42),
        ("assigned and replicas", replicas, 42),
        ("a gap", assigned(&[(0, &[0]), (2, &[0])]), 39),
        ("from 1", assigned(&[(1, &[0])]), 39),
        ("one broker twice", assigned(&[(0, &[0, 0])]), 39),
        ("a stranger", assigned(&[(0, &[77])]), 39),
        ("one partition twice", assigned(&[(0, &[0]), (0, &[0])]), 39),
        ("unknown setting", config("none.such", "1"), 40),
        ("bad value", config("retention.ms", "soon"), 40),
        ("bad policy", config("cleanup.policy", "burn"), 40),
    ];
    let mut t = case("counts");
    for (label, more, want) in all {
        let name = t.name(&label.replace(' ', "-"));
        for validate in [true, false] {
            let got = create(&mut t, &[new(&name, more.clone())], validate);
            assert_eq!(got, [want], "{label}, only checked: {validate}");
            let there = is_there(&mut t, &name);
            assert_eq!(there, want == 0 && !validate, "{label}, only checked: {validate}");
        }
        let again = create(&mut t, &[new(&name, json!({}))], true);
        assert_eq!(again, [if want == 0 { 36 } else { 0 }], "{label} again");
    }
}

#[test]
fn one_name_twice_is_refused() {
    let mut t = case("twice");
    let (a, b) = (t.name("a"), t.name("b"));
    let topics = [new(&a, json!({})), new(&b, json!({})), new(&a, json!({}))];
    let body = json!({"Topics": topics, "timeoutMs": 10000});
    let answer = t.ask("CreateTopics", 7, body);
    for topic in answer["Topics"].as_array().expect("a list") {
        let want = if topic["Name"] == json!(a) { 42 } else { 0 };
        assert_eq!(topic["ErrorCode"], json!(want), "{answer}");
    }
    assert!(!is_there(&mut t, &a) && is_there(&mut t, &b));
}

#[test]
fn names_have_rules() {
    let mut t = case("names");
    let longest = t.name(&"x".repeat(249));
    let longest = longest[longest.len() - 249..].to_owned();
    let bad = ["", ".", "..", "a/b", "a b", "\u{e9}", "a:b", &format!("{longest}x")];
    for name in bad {
        assert_eq!(create(&mut t, &[new(name, json!({}))], false), [17], "{name:?}");
        assert!(!is_there(&mut t, name));
    }
    for name in [t.name("A-z.0"), t.name("_"), longest] {
        assert_eq!(create(&mut t, &[new(&name, json!({}))], true), [0], "{name:?}");
    }
}

#[test]
fn names_that_differ_in_dots_only_collide() {
    let mut t = case("collide");
    for (first, second) in [("a.b", "a_b"), ("c_d", "c.d"), ("e.f_g", "e_f.g")] {
        let (first, second) = (t.name(first), t.name(second));
        assert_eq!(create(&mut t, &[new(&first, json!({}))], false), [0], "{first}");
        for validate in [true, false] {
            assert_eq!(create(&mut t, &[new(&second, json!({}))], validate), [17], "{second}");
        }
    }
    // Kafka looks at what is there already, not at the rest of the request.
    let both = [new(&t.name("h.i"), json!({})), new(&t.name("h_i"), json!({}))];
    assert_eq!(create(&mut t, &both, false), [0, 0]);
}

//! Each rule on a value it means and one that it leaves alone.

use super::*;

#[track_caller]
fn check(seen: Value, want: Value) {
    let mut rules = Rules::new("b-case-", "a-case-");
    rules.name_id("0000000000000000000000000000000a", "b-case-t");
    assert_eq!(rules.apply("", &seen), want);
}

#[test]
fn rules() {
    check(
        json!({"ClusterId": "x", "Host": "h"}),
        json!({"ClusterId": "<cluster>", "Host": "<host>"}),
    );
    check(json!({"ClusterId": null, "Host": ""}), json!({"ClusterId": null, "Host": ""}));
    check(json!({"Port": 9092, "LogDir": "/d"}), json!({"Port": "<port>", "LogDir": "<dir>"}));
    check(json!({"Port": -1, "TotalBytes": -1}), json!({"Port": -1, "TotalBytes": -1}));
    check(
        json!({"ProducerId": [7, 3, 7, -1]}),
        json!({"ProducerId": ["<producer 1>", "<producer 2>", "<producer 1>", -1]}),
    );
    check(json!({"SessionId": 9}), json!({"SessionId": "<session>"}));
    check(json!({"SessionId": 0, "ThrottleTimeMs": 5}), json!({"SessionId": 0}));
    check(json!({"Timestamp": now_ms()}), json!({"Timestamp": "<now>"}));
    check(json!({"Timestamp": 5, "Offset": 5}), json!({"Timestamp": 5, "Offset": 5}));
    check(json!({"ErrorMessage": "no"}), json!({"ErrorMessage": "<text>"}));
    check(json!({"ErrorMessage": null}), json!({"ErrorMessage": null}));
}

#[test]
fn names_and_ids() {
    let id = "0000000000000000000000000000000a";
    let other = "0000000000000000000000000000000b";
    check(json!([id, other, ZERO_ID]), json!(["<id a-case-t>", "<id 2>", "<no id>"]));
    check(json!("b-case-t"), json!("a-case-t"));
    let uuid = "01234567-89ab-cdef-0123-456789abcdef";
    check(json!([format!("app-{uuid}"), uuid]), json!(["app-<uuid 1>", "<uuid 1>"]));
}

#[test]
fn order() {
    check(
        json!({"Topics": [{"Name": "b"}, {"Name": "a"}]}),
        json!({"Topics": [{"Name": "a"}, {"Name": "b"}]}),
    );
    check(
        json!({"Partitions": [{"Index": 10}, {"Index": 9}]}),
        json!({"Partitions": [{"Index": 9}, {"Index": 10}]}),
    );
    let synonyms = json!({"Synonyms": [{"Name": "b"}, {"Name": "a"}]});
    check(synonyms.clone(), synonyms);
}

#[test]
fn the_document_has_all_rules() {
    let text = include_str!("../../../recorded/README.md");
    for (name, what) in RULES {
        assert!(text.contains(&format!("| {name} | {what} |\n")), "{name} is not in README.md");
    }
}

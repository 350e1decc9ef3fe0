//! What counts as a difference, and under which path.

use super::*;

#[track_caller]
fn check(kafka: Value, ours: Value, want: &[&str]) {
    let found = differences(&kafka, &ours);
    let paths: Vec<&str> = found.iter().map(|difference| difference.path.as_str()).collect();
    assert_eq!(paths, want);
}

#[test]
fn paths() {
    check(json!({"a": 1}), json!({"a": 1}), &[]);
    check(json!({"a": 1, "b": 2}), json!({"a": 2, "c": 2}), &["a", "b", "c"]);
    check(json!({"a": {"b": [1, 2]}}), json!({"a": {"b": [1, 3, 4]}}), &["a.b[1]", "a.b[2]"]);
    let left = json!([{"Name": "x", "v": 1}, {"Name": "y"}]);
    check(left, json!([{"Name": "y"}, {"Name": "x", "v": 2}, {"Name": "z"}]), &["[x].v", "[z]"]);
    check(json!(null), json!(0), &[""]);
}

#[test]
fn accidents_of_the_reference() {
    check(json!("NO ANSWER"), json!({"a": [{"ErrorCode": 87}]}), &[]);
    check(json!("NO ANSWER"), json!("CLOSED"), &[]);
    check(json!("NO ANSWER"), json!({"a": [{"ErrorCode": 0}]}), &[""]);
    check(json!({"ErrorCode": -1, "x": 1}), json!({"ErrorCode": 42, "x": 1}), &[]);
    check(json!({"ErrorCode": -1}), json!({"ErrorCode": 0}), &["ErrorCode"]);
}

#[test]
fn pins() {
    let text = "# comment\n\nwhy: it is so\na/b :: x[y].z :: {\"n\":null}\n";
    let pin = Pin {
        case: "a/b".to_owned(),
        path: "x[y].z".to_owned(),
        ours: json!({"n": null}),
        why: "it is so".to_owned(),
    };
    assert_eq!(parse_pins(text), [pin]);
}

#[test]
fn patterns() {
    for (pattern, text, want) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "ab", true),
        ("a*", "a", true),
        ("*.c", "a.b.c", true),
        ("*.c", "a.b.cd", false),
        ("a*b*c", "axbyc", true),
        ("a*b", "axc", false),
    ] {
        assert_eq!(fits(pattern, text), want, "{pattern} {text}");
    }
}

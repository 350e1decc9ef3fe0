//! ListOffsets, leader epochs and DeleteRecords.

use compat_tests::differ::batch::{batch, keyed, row, three, values};
use compat_tests::differ::context::{T, dig};
use serde_json::{Value, json};

use crate::{batches, case, code, number};

/// The first offset as late as each of 1 to 9, `-` for none.
fn found(t: &mut T, topic: &str) -> String {
    let ask = |time| {
        let answer = t.offset_at(topic, 5, time);
        assert_eq!(code(&answer), 0, "{answer}");
        match number(&answer, "/Offset") {
            -1 => {
                assert_eq!(number(&answer, "/Timestamp"), -1, "{answer}");
                "-".to_owned()
            }
            offset => {
                assert!(number(&answer, "/Timestamp") >= time, "{answer}");
                offset.to_string()
            }
        }
    };
    (1..=9).map(ask).collect::<Vec<_>>().join(" ")
}

#[test]
fn times_are_found_to_the_record() {
    let mut t = case("times");
    for codec in 0..=4 {
        let mut topic = |part: &str| t.topic(&format!("{part}-{codec}"), 1, &[]).expect("a topic");
        let (one, many, mixed) = (topic("one"), topic("many"), topic("mixed"));
        let at = |times: &[i64]| {
            let rows = times.iter().map(|time| {
                let mut row = row("x");
                row.time_ms = *time;
                row
            });
            batch(&rows.collect::<Vec<_>>()).codec(codec)
        };
        t.put(&one, &at(&[2, 4, 6, 8])).expect("produced");
        assert_eq!(found(&mut t, &one), "0 0 1 1 2 2 3 3 -", "one batch, codec {codec}");
        for time in [2, 4, 6, 8] {
            t.put(&many, &at(&[time])).expect("produced");
        }
        assert_eq!(found(&mut t, &many), "0 0 1 1 2 2 3 3 -", "batches, codec {codec}");
        t.put(&mixed, &at(&[5, 1, 9, 3])).expect("produced");
        assert_eq!(found(&mut t, &mixed), "0 0 0 0 0 2 2 2 2", "out of order, codec {codec}");
    }
}

#[test]
fn special_times_have_versions() {
    let mut t = case("special");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    t.put(&topic, &batch(&three())).expect("produced");
    for version in 1..=11 {
        for (time, since, want) in [(-1, 1, 3), (-2, 1, 0), (-3, 7, 0), (-4, 8, 0), (-5, 9, -1)] {
            let answer = t.offset_at(&topic, version, time);
            if version < since {
                assert_eq!(code(&answer), 35, "v{version} {time}: {answer}");
                continue;
            }
            assert_eq!(code(&answer), 0, "v{version} {time}: {answer}");
            assert_eq!(number(&answer, "/Offset"), want, "v{version} {time}: {answer}");
            if time == -1 || time == -2 {
                assert_eq!(number(&answer, "/Timestamp"), -1, "v{version} {time}: {answer}");
            }
        }
        let late = t.offset_at(&topic, version, i64::MAX);
        let found = (code(&late), number(&late, "/Offset"), number(&late, "/Timestamp"));
        assert_eq!(found, (0, -1, -1), "v{version}: {late}");
    }
}

#[test]
fn the_same_partition_twice_is_refused() {
    let mut t = case("twice");
    let topic = t.topic("a", 2, &[]).expect("a topic");
    let one = |index, time| json!({"PartitionIndex": index, "Timestamp": time});
    for version in [1, 5, 7, 11] {
        for isolation in [0, 1] {
            let body = json!({
                "ReplicaId": -1, "IsolationLevel": isolation,
                "Topics": [{"Name": topic, "Partitions": [one(0, -1), one(0, -2), one(1, -1)]}],
            });
            let body = if version < 2 { without_isolation(body) } else { body };
            let answer = t.ask("ListOffsets", version, body);
            let list = answer["Topics"][0]["Partitions"].as_array().expect("a list");
            for partition in list {
                let want = if number(partition, "/PartitionIndex") == 0 { 42 } else { 0 };
                assert_eq!(code(partition), want, "v{version}: {answer}");
            }
        }
    }
}

fn without_isolation(mut body: Value) -> Value {
    body.as_object_mut().expect("a struct").remove("IsolationLevel");
    body
}

/// KIP-320: a leader epoch that is too old, too new, not said, in all that take one.
#[test]
fn leader_epochs_fence() {
    let mut t = case("fences");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    t.put(&topic, &batch(&three())).expect("produced");
    let known = t.ask("Metadata", 12, json!({"Topics": [{"Name": topic}]}));
    let epoch = number(&known, "/Topics/0/Partitions/0/LeaderEpoch");
    for (current, want) in [(-1, 0), (epoch, 0), (epoch + 1, 75), (i64::from(i32::MAX), 75)] {
        for version in [9, 12, 17] {
            let mut body = t.fetch_body(&topic, 0);
            body["Topics"][0]["Partitions"][0]["CurrentLeaderEpoch"] = json!(current);
            let answer = t.ask("Fetch", version, body);
            assert_eq!(code(&dig(&answer, "/Responses/0/Partitions/0")), want, "{answer}");
        }
        for version in [4, 7, 11] {
            let partition =
                json!({"PartitionIndex": 0, "CurrentLeaderEpoch": current, "Timestamp": -1});
            let topics = json!([{"Name": topic, "Partitions": [partition]}]);
            let answer = t.ask("ListOffsets", version, json!({"ReplicaId": -1, "Topics": topics}));
            assert_eq!(code(&dig(&answer, "/Topics/0/Partitions/0")), want, "{answer}");
        }
        for version in 2..=4 {
            let partition =
                json!({"Partition": 0, "CurrentLeaderEpoch": current, "LeaderEpoch": epoch});
            let topics = json!([{"Topic": topic, "Partitions": [partition]}]);
            let body = json!({"ReplicaId": -1, "Topics": topics});
            let answer = t.ask("OffsetForLeaderEpoch", version, body);
            let got = dig(&answer, "/Topics/0/Partitions/0");
            assert_eq!(code(&got), want, "{answer}");
            if want == 0 {
                let end = (number(&got, "/LeaderEpoch"), number(&got, "/EndOffset"));
                assert_eq!(end, (epoch, 3), "{answer}");
            }
        }
    }
}

fn cut(t: &mut T, topic: &str, offset: i64) -> (i64, i64) {
    let partition = json!({"PartitionIndex": 0, "Offset": offset});
    let topics = json!([{"Name": topic, "Partitions": [partition]}]);
    let answer = t.ask("DeleteRecords", 2, json!({"Topics": topics, "TimeoutMs": 5000}));
    let got = dig(&answer, "/Topics/0/Partitions/0");
    (code(&got), number(&got, "/LowWatermark"))
}

#[test]
fn records_are_deleted_up_to_an_offset() {
    let mut t = case("deleting");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    for _ in 0..3 {
        t.put(&topic, &batch(&three())).expect("produced");
    }
    for (offset, want) in
        [(4, (0, 4)), (2, (0, 4)), (4, (0, 4)), (10, (1, -1)), (5, (0, 5)), (0, (0, 5))]
    {
        assert_eq!(cut(&mut t, &topic, offset), want, "to {offset}");
        let start = number(&t.offset_at(&topic, 7, -2), "/Offset");
        assert_eq!(start, want.1.max(4), "after {offset}");
    }
    // The batch that the new start lies in begins before it.
    let got = t.fetch(&topic, 11, 5);
    let first = &batches(&got)[0];
    assert_eq!((code(&got), number(first, "/baseOffset")), (0, 3), "{got}");
    assert_eq!(number(&got, "/LogStartOffset"), 5, "{got}");
    assert_eq!(code(&t.fetch(&topic, 11, 4)), 1);
    assert_eq!(cut(&mut t, &topic, -1), (0, 9));
    assert_eq!(code(&t.fetch(&topic, 11, 9)), 0);
    assert_eq!(t.put(&topic, &values(&["next"])).expect("produced"), 9);
}

#[test]
fn compacted_topics_keep_their_records() {
    let mut t = case("policies");
    for (policy, want) in [("compact", 44), ("compact,delete", 0), ("delete", 0)] {
        let part = policy.replace(',', "-");
        let topic = t.topic(&part, 1, &[("cleanup.policy", policy)]).expect("a topic");
        t.put(&topic, &batch(&[keyed("k", "1"), keyed("k", "2")])).expect("produced");
        assert_eq!(cut(&mut t, &topic, 1).0, want, "{policy}");
    }
}

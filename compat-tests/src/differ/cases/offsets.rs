//! ListOffsets, OffsetForLeaderEpoch and DeleteRecords.

use serde_json::{Value, json};

use crate::differ::batch::{THEN_MS, batch, row, three, values};
use crate::differ::context::{Step, T, dig};
use crate::differ::run::Cases;

pub fn add(cases: &mut Cases) {
    listing(cases);
    listing_targets(cases);
    leader_epochs(cases);
    deleting(cases);
    retention(cases);
}

/// Batches whose times go up, down and up again.
fn filled(t: &mut T, configs: &[(&str, &str)]) -> Step<String> {
    let topic = t.topic("a", 1, configs)?;
    for time in [100, 300, 200, 500, 500] {
        let mut rows = vec![row("x"), row("y")];
        rows[0].time_ms = THEN_MS + time;
        rows[1].time_ms = THEN_MS + time + 5;
        t.put(&topic, &batch(&rows))?;
    }
    Ok(topic)
}

fn listing(cases: &mut Cases) {
    for version in 1..=11 {
        cases.add(format!("listoffsets/v{version}"), move |t| {
            let topic = filled(t, &[])?;
            for time in [-1, -2, -3, -4, -5, -6, -7, i64::MIN] {
                let answer = t.offset_at(&topic, version, time);
                t.see(format!("special {time}"), answer);
            }
            for time in [0, 1, 100, 104, 105, 106, 201, 300, 306, 500, 505, 506] {
                let answer = t.offset_at(&topic, version, THEN_MS + time);
                t.see(format!("time +{time}"), answer);
            }
            let missing = t.name("missing");
            let answer = t.offset_at(&missing, version, -1);
            t.see("unknown topic", answer);
            Ok(())
        });
    }
    for (label, configs) in [
        ("append time", vec![("message.timestamp.type", "LogAppendTime")]),
        ("compacted", vec![("cleanup.policy", "compact")]),
        ("gzip", vec![("compression.type", "gzip")]),
    ] {
        cases.add(format!("listoffsets/topic {label}"), move |t| {
            let topic = t.topic("a", 1, &configs)?;
            t.put(&topic, &batch(&three()[..2]))?;
            t.put(&topic, &batch(&three()[..1]).codec(4))?;
            for time in [-1, -2, -3, -4, 0, THEN_MS, i64::MAX] {
                let answer = t.offset_at(&topic, 8, time);
                t.see(format!("{time}"), answer);
            }
            Ok(())
        });
    }
    cases.add("listoffsets/empty log", |t| {
        let topic = t.topic("a", 1, &[])?;
        for time in [-1, -2, -3, -4, -5, 0, THEN_MS] {
            let answer = t.offset_at(&topic, 9, time);
            t.see(format!("{time}"), answer);
        }
        Ok(())
    });
}

fn listing_targets(cases: &mut Cases) {
    let one = |topic: &str, index: i32, epoch: i32, time: i64| {
        let partition =
            json!({"PartitionIndex": index, "CurrentLeaderEpoch": epoch, "Timestamp": time});
        json!({"Name": topic, "Partitions": [partition]})
    };
    cases.add("listoffsets/leader epochs", move |t| {
        let topic = filled(t, &[])?;
        for version in [4, 7, 10] {
            for epoch in [-2, -1, 0, 1] {
                let body = json!({"ReplicaId": -1, "Topics": [one(&topic, 0, epoch, -1)]});
                t.look(format!("v{version} epoch {epoch}"), "ListOffsets", version, body);
            }
        }
        Ok(())
    });
    cases.add("listoffsets/partitions", move |t| {
        let topic = t.topic("a", 2, &[])?;
        for index in [-1, 1, 2, i32::MAX] {
            let body = json!({"ReplicaId": -1, "Topics": [one(&topic, index, -1, -1)]});
            t.look(format!("{index}"), "ListOffsets", 7, body);
        }
        let twice =
            json!({"ReplicaId": -1, "Topics": [one(&topic, 0, -1, -1), one(&topic, 0, -1, -2)]});
        for version in [1, 5, 7, 10] {
            t.look(format!("twice v{version}"), "ListOffsets", version, twice.clone());
        }
        let two =
            json!({"ReplicaId": -1, "Topics": [one(&topic, 0, -1, -1), one(&topic, 1, -1, -2)]});
        t.look("topic twice", "ListOffsets", 7, two);
        Ok(())
    });
    for (label, field, values) in
        [("replica", "ReplicaId", [-2, -1, 0, 5]), ("isolation", "IsolationLevel", [0, 1, 2, -1])]
    {
        cases.add(format!("listoffsets/{label}"), move |t| {
            let topic = filled(t, &[])?;
            for value in values {
                let mut body = json!({"ReplicaId": -1, "Topics": [one(&topic, 0, -1, -1)]});
                body[field] = json!(value);
                t.look(format!("{value}"), "ListOffsets", 7, body);
            }
            Ok(())
        });
    }
}

fn leader_epochs(cases: &mut Cases) {
    for version in 2..=4 {
        cases.add(format!("leaderepochs/v{version}"), move |t| {
            let topic = filled(t, &[])?;
            let missing = t.name("missing");
            let ask = |topic: &str, index: i32, current: i32, epoch: i32| {
                let partition = json!({
                    "Partition": index, "CurrentLeaderEpoch": current, "LeaderEpoch": epoch,
                });
                json!({"ReplicaId": -1, "Topics": [{"Topic": topic, "Partitions": [partition]}]})
            };
            for (current, epoch) in [
                (-1, 0),
                (0, 0),
                (1, 0),
                (-1, 1),
                (0, 5),
                (-1, -1),
                (-1, -5),
                (-2, 0),
                (-1, i32::MAX),
            ] {
                let label = format!("current {current} epoch {epoch}");
                t.look(label, "OffsetForLeaderEpoch", version, ask(&topic, 0, current, epoch));
            }
            t.look("partition", "OffsetForLeaderEpoch", version, ask(&topic, 4, -1, 0));
            t.look("topic", "OffsetForLeaderEpoch", version, ask(&missing, 0, -1, 0));
            let empty = t.topic("empty", 1, &[])?;
            t.look("empty log", "OffsetForLeaderEpoch", version, ask(&empty, 0, -1, 0));
            Ok(())
        });
    }
}

fn cut(topic: &str, index: i32, offset: i64) -> Value {
    let partition = json!({"PartitionIndex": index, "Offset": offset});
    json!({"Topics": [{"Name": topic, "Partitions": [partition]}], "TimeoutMs": 5000})
}

fn deleting(cases: &mut Cases) {
    for version in 0..=2 {
        cases.add(format!("deleterecords/v{version}"), move |t| {
            let topic = filled(t, &[])?;
            let missing = t.name("missing");
            let steps = [
                (3, "inside"),
                (2, "back"),
                (3, "the same"),
                (11, "too far"),
                (-2, "negative"),
                (10, "all"),
            ];
            for (offset, label) in steps {
                t.look(label, "DeleteRecords", version, cut(&topic, 0, offset));
                let start = t.offset_at(&topic, 5, -2);
                t.see(format!("{label}, start"), start["Offset"].clone());
            }
            t.look("partition", "DeleteRecords", version, cut(&topic, 5, 0));
            t.look("topic", "DeleteRecords", version, cut(&missing, 0, 0));
            t.look("nothing", "DeleteRecords", version, json!({"Topics": [], "TimeoutMs": 1000}));
            t.put(&topic, &values(&["after"]))?;
            t.look("to the end", "DeleteRecords", version, cut(&topic, 0, -1));
            for time in [-1, -2, -3, THEN_MS] {
                let answer = t.offset_at(&topic, 7, time);
                t.see(format!("offsets {time}"), answer);
            }
            Ok(())
        });
    }
    for policy in ["compact", "compact,delete", "delete", ""] {
        cases.add(format!("deleterecords/policy {policy:?}"), move |t| {
            let topic = t.topic("a", 1, &[("cleanup.policy", policy)])?;
            t.put(&topic, &batch(&three()[..2]))?;
            t.look("one", "DeleteRecords", 2, cut(&topic, 0, 1));
            t.look("all", "DeleteRecords", 2, cut(&topic, 0, -1));
            Ok(())
        });
    }
    cases.add("deleterecords/odd targets", |t| {
        let topic = t.topic("a", 1, &[])?;
        t.look("empty log, 0", "DeleteRecords", 2, cut(&topic, 0, 0));
        t.look("empty log, end", "DeleteRecords", 2, cut(&topic, 0, -1));
        t.look("empty log, 1", "DeleteRecords", 2, cut(&topic, 0, 1));
        t.look("internal", "DeleteRecords", 2, cut("__consumer_offsets", 0, 0));
        t.look("bad name", "DeleteRecords", 2, cut("a b", 0, 0));
        let mut late = cut(&topic, 0, 0);
        late["TimeoutMs"] = json!(0);
        t.look("no time", "DeleteRecords", 2, late);
        Ok(())
    });
}

fn retention(cases: &mut Cases) {
    for (label, configs) in [
        ("time", vec![("retention.ms", "1000")]),
        ("size", vec![("retention.bytes", "1500000"), ("segment.bytes", "1048576")]),
        (
            "size and compact",
            vec![
                ("retention.bytes", "1500000"),
                ("segment.bytes", "1048576"),
                ("cleanup.policy", "compact,delete"),
            ],
        ),
        ("nothing", vec![("retention.bytes", "-1")]),
    ] {
        cases.add(format!("retention/by {label}"), move |t| {
            let topic = t.topic("a", 1, &configs)?;
            for number in 0..4 {
                let rows =
                    [crate::differ::batch::keyed(&format!("k{number}"), &"x".repeat(600_000))];
                t.put(&topic, &batch(&rows))?;
            }
            let moved = label != "nothing";
            let start = t.poll(
                |t| t.offset_at(&topic, 7, -2),
                |answer| !moved || answer["Offset"].as_i64().is_some_and(|offset| offset > 0),
            );
            t.pause(700);
            let start = if moved { t.offset_at(&topic, 7, -2) } else { start };
            t.see("start", start);
            let end = t.offset_at(&topic, 7, -1);
            t.see("end", end);
            let answer = t.fetch(&topic, 11, 0);
            t.see("from 0", dig(&answer, "/ErrorCode"));
            let next = t.produce(&topic, 9, &batch(&three()[..2]));
            t.see("next", next);
            Ok(())
        });
    }
}

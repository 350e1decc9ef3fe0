//! Fetch without a session: what comes, how much of it, and when.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::differ::batch::{batch, three, values};
use crate::differ::codec::{UNKNOWN_ID, ZERO_ID};
use crate::differ::context::{Step, T, with};
use crate::differ::run::Cases;

pub fn add(cases: &mut Cases) {
    versions(cases);
    epochs(cases);
    limits(cases);
    waiting(cases);
    targets(cases);
}

/// A topic with three batches of three records.
fn filled(t: &mut T, part: &str) -> Step<String> {
    let topic = t.topic(part, 1, &[])?;
    for _ in 0..3 {
        t.put(&topic, &batch(&three()))?;
    }
    Ok(topic)
}

fn versions(cases: &mut Cases) {
    for version in 4..=18 {
        cases.add(format!("fetch/v{version}"), move |t| {
            let topic = filled(t, "a")?;
            for (label, offset) in [
                ("start", 0),
                ("inside a batch", 4),
                ("last", 8),
                ("end", 9),
                ("behind the end", 10),
                ("negative", -1),
                ("max", i64::MAX),
            ] {
                let body = t.fetch_body(&topic, offset);
                t.look(label, "Fetch", version, body);
            }
            let mut body = t.fetch_body(&topic, 0);
            body["Topics"][0]["Partitions"][0]["Partition"] = json!(5);
            t.look("unknown partition", "Fetch", version, body);
            let body = t.fetch_body(&t.name("missing"), 0);
            let body = with(
                body.clone(),
                json!({"Topics": [
                    with(body["Topics"][0].clone(), json!({"TopicId": UNKNOWN_ID})),
                ]}),
            );
            t.look("unknown topic", "Fetch", version, body);
            t.look("no topics", "Fetch", version, json!({"MaxWaitMs": 0, "ReplicaId": -1}));
            let committed = with(t.fetch_body(&topic, 6), json!({"IsolationLevel": 1}));
            t.look("read committed", "Fetch", version, committed);
            Ok(())
        });
    }
    for isolation in [2, -1, 127] {
        cases.add(format!("fetch/isolation {isolation}"), move |t| {
            let topic = filled(t, "a")?;
            for version in [4, 11, 16] {
                let body = with(t.fetch_body(&topic, 0), json!({ "IsolationLevel": isolation }));
                t.look(format!("v{version}"), "Fetch", version, body);
            }
            Ok(())
        });
    }
}

fn epochs(cases: &mut Cases) {
    for version in [9, 11, 12, 13, 16, 18] {
        cases.add(format!("fetch/leader epochs v{version}"), move |t| {
            let topic = filled(t, "a")?;
            for epoch in [-2, -1, 0, 1, i32::MAX] {
                let mut body = t.fetch_body(&topic, 0);
                body["Topics"][0]["Partitions"][0]["CurrentLeaderEpoch"] = json!(epoch);
                t.look(format!("current {epoch}"), "Fetch", version, body);
            }
            for (epoch, offset) in [(-1, 3), (0, 3), (0, 9), (0, 10), (1, 3), (7, 9), (-2, 3)] {
                let mut body = t.fetch_body(&topic, offset);
                body["Topics"][0]["Partitions"][0]["LastFetchedEpoch"] = json!(epoch);
                t.look(format!("last fetched {epoch} at {offset}"), "Fetch", version, body);
            }
            Ok(())
        });
    }
    for (label, version, replica) in [
        ("a follower", 11, json!({"ReplicaId": 5})),
        ("a debugger", 11, json!({"ReplicaId": -2})),
        ("the broker itself", 11, json!({"ReplicaId": 0})),
        ("a follower v15", 15, json!({"ReplicaState": {"ReplicaId": 5, "ReplicaEpoch": 1}})),
    ] {
        cases.add(format!("fetch/as {label}"), move |t| {
            let topic = filled(t, "a")?;
            let body = with(t.fetch_body(&topic, 0), replica.clone());
            t.look("answer", "Fetch", version, body);
            Ok(())
        });
    }
    cases.add("fetch/racks", |t| {
        let topic = filled(t, "a")?;
        for rack in ["", "somewhere"] {
            let body = with(t.fetch_body(&topic, 6), json!({ "RackId": rack }));
            t.look(format!("rack {rack:?}"), "Fetch", 12, body);
        }
        Ok(())
    });
}

/// A Fetch of several partitions: topic, partition, offset, bytes.
fn several(t: &T, max_bytes: i32, parts: &[(&str, i32, i64, i32)]) -> Value {
    let topics = parts.iter().map(|(topic, index, offset, bytes)| {
        let partition =
            json!({"Partition": index, "FetchOffset": offset, "PartitionMaxBytes": bytes});
        json!({"Topic": topic, "TopicId": t.id(topic), "Partitions": [partition]})
    });
    json!({
        "ReplicaId": -1, "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": max_bytes,
        "Topics": topics.collect::<Vec<_>>(),
    })
}

fn limits(cases: &mut Cases) {
    let all: [(&str, i32, i32); 10] = [
        ("whole", 100_000, 100_000),
        ("a batch and a bit", 100_000, 1200),
        ("a bit of the second", 100_000, 1070),
        ("less than a batch", 100_000, 500),
        ("one byte", 100_000, 1),
        ("zero for a partition", 100_000, 0),
        ("zero for all", 0, 100_000),
        ("one byte for all", 1, 100_000),
        ("a batch and a bit for all", 1200, 100_000),
        ("three batches for all", 3300, 100_000),
    ];
    for (label, max_bytes, partition_bytes) in all {
        cases.add(format!("fetch/limit {label}"), move |t| {
            let topics = [t.topic("a", 1, &[])?, t.topic("b", 1, &[])?];
            for topic in &topics {
                for _ in 0..3 {
                    t.put(topic, &values(&[&"x".repeat(1000)]))?;
                }
            }
            let [a, b] = &topics;
            for version in [4, 12] {
                let both = [(&**a, 0, 0, partition_bytes), (&**b, 0, 0, partition_bytes)];
                let body = several(t, max_bytes, &both);
                t.look(format!("v{version}"), "Fetch", version, body);
            }
            let late = [(&**a, 0, 3, partition_bytes), (&**b, 0, 1, partition_bytes)];
            let body = several(t, max_bytes, &late);
            t.look("the first has nothing", "Fetch", 12, body);
            Ok(())
        });
    }
    cases.add("fetch/the same partition twice", |t| {
        let topic = filled(t, "a")?;
        for version in [4, 12, 13] {
            let body = several(t, 100_000, &[(&topic, 0, 0, 100_000), (&topic, 0, 6, 100_000)]);
            t.look(format!("v{version}"), "Fetch", version, body);
        }
        Ok(())
    });
    cases.add("fetch/over segments", |t| {
        let topic = t.topic("a", 1, &[("segment.bytes", "1048576")])?;
        for _ in 0..4 {
            t.put(&topic, &values(&[&"x".repeat(400_000)]))?;
        }
        for offset in 0..=4 {
            let body = several(t, 50_000_000, &[(&topic, 0, offset, 50_000_000)]);
            t.look(format!("from {offset}"), "Fetch", 12, body);
        }
        Ok(())
    });
}

/// Whether the answer came at once or after most of the wait, and what it was.
fn timed(t: &mut T, label: &str, version: i16, body: Value) {
    let started = Instant::now();
    let answer = t.ask("Fetch", version, body);
    let waited = started.elapsed() > Duration::from_millis(600);
    t.see(label, json!({"waited": waited, "answer": answer}));
}

fn waiting(cases: &mut Cases) {
    let wait = json!({"MaxWaitMs": 1200, "MinBytes": 1});
    type Change = fn(&T, &str, Value) -> Value;
    let all: [(&str, Change); 12] = [
        ("at the end", |_, _, body| body),
        ("with data", |t, topic, body| with(t.fetch_body(topic, 0), no_topics(body))),
        ("no bytes wanted", |_, _, body| with(body, json!({"MinBytes": 0}))),
        ("more bytes than limit", |_, _, body| with(body, json!({"MinBytes": 5_000_000}))),
        ("no time", |_, _, body| with(body, json!({"MaxWaitMs": 0}))),
        ("negative time", |_, _, body| with(body, json!({"MaxWaitMs": -1}))),
        ("nothing asked", |_, _, body| with(body, json!({"Topics": []}))),
        ("out of range", |t, topic, body| with(t.fetch_body(topic, 100), no_topics(body))),
        ("unknown topic", |t, _, body| with(t.fetch_body(&t.name("missing"), 0), no_topics(body))),
        ("unknown topic beside", |t, _, mut body| {
            let missing = t.fetch_body(&t.name("missing"), 0)["Topics"][0].clone();
            body["Topics"].as_array_mut().expect("a list").push(missing);
            body
        }),
        ("unknown partition beside", |_, _, mut body| {
            let mut other = body["Topics"][0]["Partitions"][0].clone();
            other["Partition"] = json!(8);
            body["Topics"][0]["Partitions"].as_array_mut().expect("a list").push(other);
            body
        }),
        ("old epoch", |_, _, mut body| {
            body["Topics"][0]["Partitions"][0]["CurrentLeaderEpoch"] = json!(9);
            body
        }),
    ];
    for (label, change) in all {
        let wait = wait.clone();
        cases.add(format!("fetch/wait {label}"), move |t| {
            let topic = filled(t, "a")?;
            let body = with(t.fetch_body(&topic, 9), wait.clone());
            let body = change(t, &topic, body);
            timed(t, "answer", 11, body);
            Ok(())
        });
    }
    cases.add("fetch/wake by data", |t| {
        let topic = filled(t, "a")?;
        for (label, min_bytes) in [("enough", 1), ("too little", 5000)] {
            let end = t.offset_at(&topic, 5, -1)["Offset"].as_i64().unwrap_or(0);
            let wait = json!({"MaxWaitMs": 1500, "MinBytes": min_bytes});
            let body = with(t.fetch_body(&topic, end), wait);
            let mut conn = t.conn();
            conn.start("Fetch", 11, &body).ok();
            t.pause(100);
            let started = Instant::now();
            t.put(&topic, &values(&["new"]))?;
            let answer = conn.finish().unwrap_or_else(|why| why.value());
            let waited = started.elapsed() > Duration::from_millis(700);
            t.see(label, json!({"waited": waited, "answer": answer}));
        }
        Ok(())
    });
    cases.add("fetch/wake by deletion", |t| {
        let topic = filled(t, "a")?;
        let body = with(t.fetch_body(&topic, 9), json!({"MaxWaitMs": 3000, "MinBytes": 1}));
        let mut conn = t.conn();
        conn.start("Fetch", 12, &body).ok();
        t.pause(100);
        t.delete_topic(&topic)?;
        let answer = conn.finish().unwrap_or_else(|why| why.value());
        t.see("answer", answer);
        Ok(())
    });
}

fn no_topics(mut body: Value) -> Value {
    body.as_object_mut().expect("a struct").remove("Topics");
    body
}

fn targets(cases: &mut Cases) {
    for version in [13, 15, 17] {
        cases.add(format!("fetch/ids v{version}"), move |t| {
            let topic = filled(t, "a")?;
            let known = t.id(&topic);
            for (label, id) in
                [("known", known.as_str()), ("unknown", UNKNOWN_ID), ("zero", ZERO_ID)]
            {
                let mut body = t.fetch_body(&topic, 6);
                body["Topics"][0]["TopicId"] = json!(id);
                t.look(label, "Fetch", version, body);
            }
            let body = t.fetch_body(&topic, 0);
            t.delete_topic(&topic)?;
            let is_gone = |answer: &Value| {
                answer.pointer("/Responses/0/Partitions/0/ErrorCode") != Some(&json!(0))
            };
            let gone = t.poll(|t| t.ask("Fetch", version, body.clone()), is_gone);
            t.see("deleted", gone);
            t.topic("a", 1, &[])?;
            t.look("made again, old id", "Fetch", version, body);
            Ok(())
        });
    }
    cases.add("fetch/after deleting records", |t| {
        let topic = filled(t, "a")?;
        let cut = json!([{"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": 4}]}]);
        t.look("deleted", "DeleteRecords", 2, json!({"Topics": cut, "TimeoutMs": 5000}));
        for offset in [0, 3, 4, 5, 9] {
            let body = t.fetch_body(&topic, offset);
            t.look(format!("from {offset}"), "Fetch", 11, body);
        }
        Ok(())
    });
    cases.add("fetch/zstd for old versions", |t| {
        let topic = t.topic("a", 1, &[])?;
        t.put(&topic, &batch(&three()).codec(4))?;
        for version in [4, 9, 10, 12] {
            let body = t.fetch_body(&topic, 0);
            t.look(format!("v{version}"), "Fetch", version, body);
        }
        Ok(())
    });
    cases.add("fetch/empty topic", |t| {
        let topic = t.topic("a", 2, &[])?;
        for version in [4, 11, 12, 16] {
            let body = several(t, 1000, &[(&topic, 0, 0, 1000), (&topic, 1, 1, 1000)]);
            t.look(format!("v{version}"), "Fetch", version, body);
        }
        Ok(())
    });
    for (label, name) in [("empty", ""), ("bad", "a b")] {
        cases.add(format!("fetch/topic name {label}"), move |t| {
            let body = t.fetch_body(name, 0);
            t.look("answer", "Fetch", 11, body);
            Ok(())
        });
    }
}

//! Fetch: limits, waiting, the fields of an answer, what lies beyond the log.

use std::time::{Duration, Instant};

use compat_tests::broker::Broker;
use compat_tests::differ::batch::{batch, three, values};
use compat_tests::differ::conn::Conn;
use compat_tests::differ::context::{T, dig, with};
use serde_json::{Value, json};

use crate::{batches, case, code, number};

/// A Fetch of partition 0 of topics, in this order, at once.
fn several(t: &T, max_bytes: i32, each_bytes: i32, parts: &[(&str, i64)]) -> Value {
    let topics = parts.iter().map(|(topic, offset)| {
        let partition =
            json!({"Partition": 0, "FetchOffset": offset, "PartitionMaxBytes": each_bytes});
        json!({"Topic": topic, "TopicId": t.id(topic), "Partitions": [partition]})
    });
    let topics: Vec<Value> = topics.collect();
    json!({"ReplicaId": -1, "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": max_bytes, "Topics": topics})
}

/// How many bytes of records came for each topic.
fn sizes(t: &mut T, body: Value, topics: &[&str]) -> Vec<usize> {
    let answer = t.ask("Fetch", 11, body);
    let list = answer["Responses"].as_array().expect("a list").clone();
    let size = |topic: &&str| {
        let mine = list.iter().find(|one| one["Topic"] == json!(topic)).expect("it is there");
        let records = dig(mine, "/Partitions/0/Records");
        compat_tests::differ::codec::bytes_of(&records).map_or(0, |bytes| bytes.len())
    };
    topics.iter().map(size).collect()
}

/// KIP-74: the first batch of the first partition that has one comes whole, whatever the limits.
#[test]
fn the_first_batch_comes_whole() {
    let mut t = case("first-batch");
    let a = t.topic("a", 1, &[]).expect("a topic");
    let b = t.topic("b", 1, &[]).expect("a topic");
    let c = t.topic("c", 1, &[]).expect("a topic");
    let sent = values(&[&"x".repeat(100_000)]);
    let one = sent.bytes().len();
    for topic in [&a, &b] {
        for _ in 0..2 {
            t.put(topic, &sent).expect("produced");
        }
    }
    for (order, want) in [([&a, &b], [one, 0]), ([&b, &a], [0, one]), ([&c, &b], [one, 0])] {
        let parts: Vec<(&str, i64)> = order.iter().map(|topic| (topic.as_str(), 0)).collect();
        let body = several(&t, 1, 1, &parts);
        let mut topics: Vec<&str> = order.iter().map(|topic| topic.as_str()).collect();
        topics.sort();
        assert_eq!(sizes(&mut t, body, &topics), want, "{order:?}");
    }
    // A limit of the partition holds behind the first batch; the last one may be cut short.
    let body = several(&t, 10_000_000, 150_000, &[(&a, 0), (&b, 0)]);
    assert!(sizes(&mut t, body, &[&a, &b]).iter().all(|size| *size <= 150_000 && *size >= one));
}

/// Named twice, a partition is asked for as it is named last, where it is named first.
#[test]
fn a_partition_named_twice() {
    let mut t = case("twice");
    let topic = t.topic("a", 2, &[]).expect("a topic");
    for text in ["x", "y", "z"] {
        t.put(&topic, &values(&[text])).expect("produced");
    }
    let part = t.fetch_body(&topic, 0)["Topics"][0]["Partitions"][0].clone();
    let ask =
        |at: i32, offset: i64| with(part.clone(), json!({"Partition": at, "FetchOffset": offset}));
    let bases = |partition: &Value| {
        let batches = batches(partition);
        let bases = batches.iter().map(|batch| number(batch, "/baseOffset")).collect();
        (number(partition, "/PartitionIndex"), bases)
    };
    for (asked, want) in [
        (vec![ask(0, 0), ask(1, 0), ask(0, 2)], vec![(0, vec![2]), (1, vec![])]),
        (vec![ask(1, 0), ask(0, 2), ask(0, 1)], vec![(1, vec![]), (0, vec![1, 2])]),
        (vec![ask(0, 1), ask(0, 1)], vec![(0, vec![1, 2])]),
    ] {
        let mut body = with(t.fetch_body(&topic, 0), json!({"MaxWaitMs": 0}));
        body["Topics"][0]["Partitions"] = json!(asked);
        for version in [4, 11] {
            let answer = t.ask("Fetch", version, body.clone());
            let partitions = dig(&answer, "/Responses/0/Partitions");
            let seen: Vec<(i64, Vec<i64>)> =
                partitions.as_array().expect("a list").iter().map(bases).collect();
            assert_eq!(seen, want, "{asked:?}, version {version}");
        }
    }
}

/// There are as many Fetches that wait as there are consumers.
#[test]
fn a_fetch_that_waits_holds_no_buffer() {
    const CONSUMERS: u64 = 200;
    const RECORD: u64 = 200 << 10;
    let Some(broker) = Broker::restartable(&[]) else { return };
    let mut t = T::new(&broker.bootstrap, "waits", 0);
    let (full, empty) = (t.topic("a", 1, &[]), t.topic("b", 1, &[]));
    let large = values(&[&"x".repeat(RECORD as usize)]).bytes();
    let produce = t.produce_body(&full.expect("a topic"), 1, &large);
    let wait = with(
        t.fetch_body(&empty.expect("a topic"), 0),
        json!({"MaxWaitMs": 60_000, "MinBytes": 1}),
    );
    let ask = |conn: &mut Conn| {
        let answer = conn.ask("Produce", 9, &produce);
        assert_eq!(number(&answer, "/Responses/0/PartitionResponses/0/ErrorCode"), 0);
        conn.start("Fetch", 11, &wait).expect("sent");
    };
    // Those of the pool, one for each thread.
    let mut conns: Vec<Conn> = (0..CONSUMERS / 4).map(|_| t.conn()).collect();
    conns.iter_mut().for_each(ask);
    let before = broker.resident_bytes();
    let mut more: Vec<Conn> = (0..CONSUMERS).map(|_| t.conn()).collect();
    more.iter_mut().for_each(ask);
    let grown = broker.resident_bytes().saturating_sub(before);
    assert!(grown < CONSUMERS * RECORD / 4, "{grown} bytes for {CONSUMERS} consumers");
}

/// The answer and whether it took most of the wait of 1.2 s.
fn timed(t: &mut T, body: Value) -> (bool, Value) {
    let started = Instant::now();
    let answer = t.ask("Fetch", 11, body);
    (started.elapsed() > Duration::from_millis(900), answer)
}

#[test]
fn a_fetch_waits_unless_there_is_news() {
    let mut t = case("waits");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    t.put(&topic, &batch(&three())).expect("produced");
    let wait = json!({"MaxWaitMs": 1200, "MinBytes": 1});
    let at_end = with(t.fetch_body(&topic, 3), wait);
    let mut beyond = at_end.clone();
    beyond["Topics"][0]["Partitions"][0]["FetchOffset"] = json!(100);
    let mut elsewhere = at_end.clone();
    elsewhere["Topics"][0]["Partitions"][0]["Partition"] = json!(7);
    // What is no topic is answered with the rest; Kafka does not hurry for it.
    let mut beside = at_end.clone();
    let missing = t.fetch_body(&t.name("missing"), 0)["Topics"][0].clone();
    beside["Topics"].as_array_mut().expect("a list").push(missing);
    let mut fenced = at_end.clone();
    fenced["Topics"][0]["Partitions"][0]["CurrentLeaderEpoch"] = json!(99);
    for (label, body, waits) in [
        ("nothing new", at_end.clone(), true),
        ("no such topic beside it", beside, true),
        ("no bytes wanted", with(at_end.clone(), json!({"MinBytes": 0})), false),
        ("no time", with(at_end.clone(), json!({"MaxWaitMs": 0})), false),
        ("nothing asked", with(at_end.clone(), json!({"Topics": []})), false),
        ("beyond the end", beyond, false),
        ("no such partition", elsewhere, false),
        ("an epoch to come", fenced, false),
    ] {
        assert_eq!(timed(&mut t, body).0, waits, "{label}");
    }
    // In a session an empty list is no question about nothing.
    let open = with(at_end, json!({"SessionEpoch": 0, "MaxWaitMs": 0}));
    let id = number(&t.ask("Fetch", 11, open), "/SessionId");
    assert!(id > 0);
    let next = json!({
        "ReplicaId": -1, "MaxWaitMs": 1200, "MinBytes": 1, "MaxBytes": 1 << 20,
        "SessionId": id, "SessionEpoch": 1, "Topics": [],
    });
    let (waited, answer) = timed(&mut t, next);
    assert!(waited && answer["Responses"] == json!([]), "{answer}");
}

#[test]
fn new_records_end_the_wait_at_once() {
    let mut t = case("wake");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let mut slowest = Duration::ZERO;
    for round in 0..10 {
        let wait = json!({"MaxWaitMs": 10_000, "MinBytes": 1});
        let body = with(t.fetch_body(&topic, round), wait);
        let mut conn = t.conn().patient(20_000);
        conn.start("Fetch", 11, &body).expect("sent");
        t.pause(30);
        let started = Instant::now();
        t.put(&topic, &values(&["new"])).expect("produced");
        let answer = conn.finish().expect("an answer");
        assert_eq!(batches(&answer["Responses"][0]["Partitions"][0]).len(), 1, "{answer}");
        slowest = slowest.max(started.elapsed());
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

/// Where the answer has no error, every field is a real one.
#[test]
fn every_field_is_filled() {
    let mut t = case("filled");
    let empty = t.topic("a", 1, &[]).expect("a topic");
    let full = t.topic("b", 1, &[]).expect("a topic");
    for _ in 0..3 {
        t.put(&full, &batch(&three())).expect("produced");
    }
    let cut = json!([{"Name": full, "Partitions": [{"PartitionIndex": 0, "Offset": 4}]}]);
    t.need("DeleteRecords", 2, json!({"Topics": cut, "TimeoutMs": 5000})).expect("deleted");
    for version in 4..=18 {
        for isolation in [0, 1] {
            for (topic, offset, start, end) in
                [(&empty, 0, 0, 0), (&full, 4, 4, 9), (&full, 5, 4, 9), (&full, 9, 4, 9)]
            {
                let body =
                    with(t.fetch_body(topic, offset), json!({ "IsolationLevel": isolation }));
                let answer = t.ask("Fetch", version, body);
                let got = dig(&answer, "/Responses/0/Partitions/0");
                assert_eq!(code(&got), 0, "{answer}");
                assert_eq!(number(&got, "/HighWatermark"), end, "{got}");
                assert_eq!(number(&got, "/LastStableOffset"), end, "{got}");
                if version >= 5 {
                    assert_eq!(number(&got, "/LogStartOffset"), start, "{got}");
                }
                // Null for who reads everything, a list for who reads what is committed.
                assert_eq!(got["AbortedTransactions"].is_null(), isolation == 0, "{got}");
                if offset < end {
                    let first = &batches(&got)[0];
                    let base = number(first, "/baseOffset");
                    let last = base + number(first, "/lastDelta");
                    assert!(base <= offset && offset <= last, "{first}");
                }
            }
        }
    }
}

#[test]
fn the_edges_of_the_log() {
    let mut t = case("edges");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    for _ in 0..2 {
        t.put(&topic, &batch(&three())).expect("produced");
    }
    let cut = json!([{"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": 2}]}]);
    t.need("DeleteRecords", 2, json!({"Topics": cut, "TimeoutMs": 5000})).expect("deleted");
    for version in [4, 11, 12, 16] {
        for (offset, want) in
            [(-1, 1), (0, 1), (1, 1), (2, 0), (5, 0), (6, 0), (7, 1), (i64::MAX, 1)]
        {
            let got = t.fetch(&topic, version, offset);
            assert_eq!(code(&got), want, "v{version} at {offset}: {got}");
            assert_eq!(batches(&got).is_empty(), !(2..6).contains(&offset), "{got}");
        }
    }
}

/// KIP-392 is not there: the leader serves whoever asks, and names nobody else.
#[test]
fn racks_are_not_looked_at() {
    let mut t = case("racks");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    t.put(&topic, &batch(&three())).expect("produced");
    for version in [11, 12, 15, 18] {
        for rack in ["", "somewhere"] {
            let body = with(t.fetch_body(&topic, 0), json!({ "RackId": rack }));
            let answer = t.ask("Fetch", version, body);
            let got = dig(&answer, "/Responses/0/Partitions/0");
            assert_eq!(number(&got, "/PreferredReadReplica"), -1, "{got}");
            assert_eq!(batches(&got).len(), 1, "{got}");
        }
    }
}

//! Frames, versions and the order of answers.

use std::time::{Duration, Instant};

use compat_tests::broker::Broker;
use compat_tests::differ::batch::values;
use compat_tests::differ::codec::{self, Header};
use compat_tests::differ::conn::{Conn, Failure};
use compat_tests::differ::context::{T, with};
use compat_tests::differ::table;
use serde_json::{Value, json};

use crate::{broker, case, code};

fn hello() -> Value {
    json!({"ClientSoftwareName": "cases", "ClientSoftwareVersion": "1.0"})
}

fn header(key: i16, version: i16, flexible: bool) -> Vec<u8> {
    let header = Header { correlation: 7, client_id: Some("x"), tags: &Value::Null };
    codec::encode_header(key, version, flexible, &header)
}

#[test]
fn api_versions_that_is_too_new() {
    let t = case("too-new");
    for version in [6, 99, i16::MAX] {
        let mut conn = t.conn();
        let mut frame = header(18, version, true);
        frame.extend(b"no body that anybody knows");
        let answer = conn.exchange(&frame).expect("an answer");
        let api = table::api("ApiVersions");
        let mut want = vec![0, 0, 0, 7, 0, 35, 0, 0, 0, 1, 0, 18];
        want.extend(api.stable().start().to_be_bytes());
        want.extend(api.stable().end().to_be_bytes());
        assert_eq!(answer, want, "version {version}");
        // The same connection, as clients go on.
        assert_eq!(code(&conn.ask("ApiVersions", 3, &hello())), 0);
    }
}

#[test]
fn software_names() {
    let mut t = case("software");
    let all = [
        ("a", 0),
        ("a-b.c", 0),
        ("9", 0),
        ("", 42),
        ("a b", 42),
        ("-a", 42),
        ("a-", 42),
        (".a", 42),
        ("\u{e9}", 42),
    ];
    for (text, want) in all {
        for field in ["ClientSoftwareName", "ClientSoftwareVersion"] {
            for version in 3..=5 {
                let answer = t.ask("ApiVersions", version, with(hello(), json!({ field: text })));
                assert_eq!(code(&answer), want, "{field} {text:?} v{version}");
                let is_empty = answer["ApiKeys"] == json!([]);
                assert_eq!(is_empty, want != 0, "{field} {text:?} v{version}");
            }
        }
    }
    for version in 0..3 {
        assert_eq!(code(&t.ask("ApiVersions", version, json!({}))), 0);
    }
}

/// Only what ApiVersions names is answered; for the rest the connection ends.
#[test]
fn versions_are_those_advertised() {
    let mut t = case("versions");
    let answer = t.ask("ApiVersions", 0, json!({}));
    let keys = answer["ApiKeys"].as_array().expect("a list");
    for api in keys {
        let number = |field: &str| api[field].as_i64().expect("a number") as i16;
        let (key, low, high) = (number("ApiKey"), number("MinVersion"), number("MaxVersion"));
        if key == 18 {
            continue;
        }
        // Produce is advertised from 0 for the sake of old clients, served from 3 (KAFKA-18659).
        let below: Vec<i16> = if key == 0 { vec![-1, 0, 1, 2] } else { vec![low - 1] };
        for version in below.into_iter().chain([high + 1]) {
            let flexible = table::apis()[&key].request.flexible.holds(version);
            let frame = [header(key, version, flexible), vec![0; 64]].concat();
            let fate = t.conn().patient(5000).exchange(&frame);
            assert_eq!(fate.err(), Some(Failure::Closed), "api {key} v{version}");
        }
    }
}

/// Refusals in every version; the decoder takes nothing that is short or long.
#[test]
fn errors_are_laid_out_as_their_version_has_it() {
    const NOWHERE: &str = "abababababababababababababababab";
    let mut t = case("errors");
    t.group("warm").expect("groups are served");
    let missing = t.name("missing");
    let records = codec::hex(&values(&["x"]).bytes());
    let group = json!({"GroupId": missing, "MemberId": "m", "GenerationId": 3});
    let all: [(&str, Value); 12] = [
        (
            "Produce",
            json!({"Acks": -1, "TimeoutMs": 1000, "TopicData": [{
                "Name": missing, "TopicId": NOWHERE,
                "PartitionData": [{"Index": 0, "Records": records}],
            }]}),
        ),
        (
            "Fetch",
            json!({"MaxBytes": 1000, "Topics": [{
                "Topic": missing, "TopicId": NOWHERE, "Partitions": [{"Partition": 0}],
            }]}),
        ),
        (
            "ListOffsets",
            json!({"ReplicaId": -1, "Topics": [{
                "Name": missing, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}],
            }]}),
        ),
        ("Metadata", json!({"Topics": [{"Name": "not good"}]})),
        (
            "OffsetCommit",
            with(
                json!({"GroupId": missing, "MemberId": "m", "GenerationIdOrMemberEpoch": 3}),
                json!({"Topics": [{
                    "Name": missing, "TopicId": NOWHERE,
                    "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 1}],
                }]}),
            ),
        ),
        ("Heartbeat", group.clone()),
        ("SyncGroup", group.clone()),
        (
            "LeaveGroup",
            json!({"GroupId": missing, "MemberId": "m", "Members": [{"MemberId": "m"}]}),
        ),
        ("JoinGroup", json!({"GroupId": "", "SessionTimeoutMs": 10000})),
        ("DeleteGroups", json!({"GroupsNames": [missing]})),
        (
            "OffsetForLeaderEpoch",
            json!({"ReplicaId": -1, "Topics": [{
                "Topic": missing, "Partitions": [{"Partition": 0, "LeaderEpoch": 0}],
            }]}),
        ),
        ("CreateTopics", json!({"Topics": [{"Name": "not good", "NumPartitions": 1}]})),
    ];
    for (api, body) in all {
        for version in table::api(api).stable() {
            let answer = t.ask(api, version, body.clone());
            assert!(answer.is_object(), "{api} v{version}: {answer}");
            assert!(has_error(&answer), "{api} v{version}: {answer}");
        }
    }
}

fn has_error(answer: &Value) -> bool {
    match answer {
        Value::Object(fields) => fields.iter().any(|(name, value)| match name.as_str() {
            "ErrorCode" => value != &json!(0),
            _ => has_error(value),
        }),
        Value::Array(items) => items.iter().any(has_error),
        _ => false,
    }
}

#[test]
fn answers_leave_in_the_order_of_their_requests() {
    let mut t = case("order");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let wait = with(t.fetch_body(&topic, 0), json!({"MaxWaitMs": 700, "MinBytes": 1 << 20}));
    let put = t.produce_body(&topic, -1, &values(&["x"]).bytes());
    let mut conn = t.conn();
    let asked = [
        ("Fetch", 11, wait),
        ("Metadata", 9, json!({"Topics": []})),
        ("ApiVersions", 3, hello()),
        ("Produce", 9, put),
        ("Heartbeat", 3, json!({})),
    ];
    for (api, version, body) in &asked {
        conn.start(api, *version, body).expect("sent");
    }
    // `finish` compares the correlation id with that of the oldest request.
    for (api, ..) in &asked {
        conn.finish().unwrap_or_else(|why| panic!("{api}: {why:?}"));
    }
}

/// Who waits for records holds no large buffer; what of a later request is there by then is kept.
#[test]
fn a_request_begun_behind_a_fetch_that_waits() {
    let mut t = case("behind");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let mut wait = with(t.fetch_body(&topic, 0), json!({"MaxWaitMs": 300, "MinBytes": 1}));
    let frame = |api: &str, version, correlation, body: &Value| {
        let header = Header { correlation, client_id: Some("x"), tags: &Value::Null };
        let bytes = codec::encode_request(table::api(api), version, &header, body);
        [&(bytes.len() as i32).to_be_bytes()[..], &bytes].concat()
    };
    let mut offset = 0;
    for len in [1, 5_000, 100_000, 600_000] {
        let sent = values(&[&"x".repeat(len)]).bytes();
        let put = frame("Produce", 9, 2, &t.produce_body(&topic, -1, &sent));
        for cut in [2, 30, put.len() / 2, put.len() - 1] {
            wait["Topics"][0]["Partitions"][0]["FetchOffset"] = json!(offset);
            let (head, tail) = put.split_at(cut);
            let mut conn = t.conn();
            conn.send_raw(&[&frame("Fetch", 11, 1, &wait), head].concat()).expect("sent");
            t.pause(50);
            conn.send_raw(tail).expect("sent");
            assert_eq!(conn.receive().expect("the Fetch")[..4], [0, 0, 0, 1]);
            assert_eq!(conn.receive().expect("the Produce")[..4], [0, 0, 0, 2]);
            let seen = t.fetch(&topic, 11, offset);
            assert_eq!(codec::bytes_of(&seen["Records"]).map_or(0, |all| all.len()), sent.len());
            offset += 1;
        }
    }
}

#[test]
fn order_holds_on_many_connections() {
    let mut t = case("many");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let wait = with(t.fetch_body(&topic, 0), json!({"MaxWaitMs": 3, "MinBytes": 1 << 20}));
    let put = t.produce_body(&topic, -1, &values(&["x"]).bytes());
    let asked = [
        ("Produce", 9, put),
        ("Metadata", 9, json!({"Topics": []})),
        ("Fetch", 11, wait),
        ("ApiVersions", 3, hello()),
        ("Heartbeat", 3, json!({})),
    ];
    std::thread::scope(|scope| {
        for first in 0..40 {
            let asked = &asked;
            scope.spawn(move || {
                let mut conn = Conn::new(broker(), Some("many")).patient(30_000);
                for round in 0..20 {
                    let turn = |at: usize| &asked[(first + round + at) % asked.len()];
                    for (api, version, body) in (0..5).map(turn) {
                        conn.start(api, *version, body).expect("sent");
                    }
                    (0..5).for_each(|_| drop(conn.finish().expect("in order")));
                }
            });
        }
    });
}

#[test]
fn rubbish_ends_its_own_connection_only() {
    let int = |value: i32| value.to_be_bytes().to_vec();
    let all = [
        ("http", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("tls", [vec![0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3], vec![0; 200]].concat()),
        ("length -1", int(-1)),
        ("length 0", int(0)),
        ("length max", int(i32::MAX)),
        ("length above socket.request.max.bytes", int(104_857_601)),
    ];
    let t = case("rubbish");
    let mut other = t.conn();
    for (label, bytes) in all {
        let mut conn = t.conn();
        conn.send_raw(&bytes).expect("sent");
        assert_eq!(conn.watch(5000), json!("closed"), "{label}");
        assert_eq!(code(&other.ask("ApiVersions", 0, &json!({}))), 0, "{label}");
    }
}

/// Connections that promise much and send little cost little and delay nobody. Apache Kafka takes
/// memory for what they promise, and ends for want of it.
#[test]
fn slow_senders_delay_nobody() {
    let Some(broker) = Broker::restartable(&[]) else { return };
    let t = T::new(&broker.bootstrap, "slow", 0);
    let mut slow: Vec<Conn> = (0..500).map(|_| t.conn()).collect();
    for conn in &mut slow {
        conn.send_raw(&[&104_857_600i32.to_be_bytes()[..], &[0]].concat()).expect("sent");
    }
    let mut conn = t.conn();
    for _ in 0..20 {
        let started = Instant::now();
        assert_eq!(code(&conn.ask("ApiVersions", 3, &hello())), 0);
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        slow.iter_mut().for_each(|conn| conn.send_raw(&[0]).expect("it is still open"));
    }
}

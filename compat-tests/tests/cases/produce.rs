//! Produce: what is refused, what is stored, what comes back.

use compat_tests::differ::batch::{Batch, THEN_MS, batch, keyed, row, three, values};
use compat_tests::differ::codec::{self, hex};
use compat_tests::differ::conn::Failure;
use compat_tests::differ::context::T;
use compat_tests::differ::rules::now_ms;
use serde_json::{Value, json};

use crate::{batches, case, code, number};

const HOUR_MS: i64 = 3_600_000;
const YEAR_MS: i64 = 365 * 24 * HOUR_MS;

#[test]
fn append_time_is_told_stored_and_searched() {
    let mut t = case("append-time");
    let topic = t.topic("a", 1, &[("message.timestamp.type", "LogAppendTime")]).expect("a topic");
    for codec in [0, 1, 4] {
        let sent = batch(&three()).at(now_ms() + 10 * YEAR_MS).codec(codec);
        let before = now_ms();
        let answer = t.produce(&topic, 9, &sent);
        let told = number(&answer, "/LogAppendTimeMs");
        assert!((before - 1..=now_ms() + 1).contains(&told), "{answer}");
        let base = number(&answer, "/BaseOffset");
        let stored = &batches(&t.fetch(&topic, 11, base))[0];
        assert_eq!(number(stored, "/attributes") & 8, 8, "{stored}");
        assert_eq!(stored["MaxTimestamp"], json!(told), "{stored}");
        assert_eq!(stored["crcHolds"], json!(true), "{stored}");
        let found = t.offset_at(&topic, 5, told);
        assert!(number(&found, "/Offset") <= base && code(&found) == 0, "{found}");
        assert_eq!(number(&t.offset_at(&topic, 5, told + HOUR_MS), "/Offset"), -1);
    }
    let plain = t.topic("b", 1, &[]).expect("a topic");
    let answer = t.produce(&plain, 9, &batch(&three()));
    assert_eq!(number(&answer, "/LogAppendTimeMs"), -1);
}

/// One forged batch beside a good partition: its code, and that of the good one.
#[test]
fn headers_that_lie_are_refused_alone() {
    type Forge = fn(&mut Batch);
    let all: [(&str, Forge, i64, i64); 12] = [
        ("checksum", |b| b.crc = Some(12345), 2, 0),
        ("last offset delta too large", |b| b.last_delta = Some(5), 87, 0),
        ("last offset delta too small", |b| b.last_delta = Some(1), 87, 0),
        ("more records than are there", |b| (b.count, b.last_delta) = (Some(5), Some(4)), 87, 0),
        ("no records", |b| b.count = Some(0), 87, 0),
        ("fewer than none", |b| b.count = Some(-1), 87, 0),
        ("control batch", |b| b.attributes = 32, 87, 0),
        ("base offset", |b| b.base_offset = 5, 87, 0),
        ("magic 0", |b| b.magic = Some(0), 87, 0),
        ("magic 1", |b| b.magic = Some(1), 87, 0),
        // From magic 3 on Kafka fails the whole request.
        ("magic 3", |b| b.magic = Some(3), 2, 2),
        ("sequence below zero", |b| b.producer = Some((5, 0, -1)), 87, 0),
    ];
    let mut t = case("lies");
    let topic = t.topic("a", 2, &[]).expect("a topic");
    for (label, forge, bad, good) in all {
        let forged = batch(&three()).forge(forge).bytes();
        let answer = beside(&mut t, &topic, &forged);
        let found: Vec<i64> = answer.iter().map(code).collect();
        assert_eq!(found, [bad, good], "{label}");
    }
    let two = [batch(&three()).bytes(), batch(&three()).bytes()].concat();
    let found: Vec<i64> = beside(&mut t, &topic, &two).iter().map(code).collect();
    assert_eq!(found, [87, 0], "two batches");
    let stored = t.fetch(&topic, 11, 0);
    assert_eq!(number(&stored, "/HighWatermark"), 0, "{stored}");
}

/// The answers for partition 0 with these bytes and partition 1 with a good batch.
fn beside(t: &mut T, topic: &str, bytes: &[u8]) -> Vec<Value> {
    let partitions = json!([
        {"Index": 0, "Records": hex(bytes)},
        {"Index": 1, "Records": hex(&batch(&three()).bytes())},
    ]);
    let data = json!([{"Name": topic, "PartitionData": partitions}]);
    let answer = t.ask("Produce", 9, json!({"Acks": -1, "TimeoutMs": 3000, "TopicData": data}));
    let mut list = answer["Responses"][0]["PartitionResponses"].as_array().expect("a list").clone();
    list.sort_by_key(|partition| number(partition, "/Index"));
    list
}

#[test]
fn sequence_numbers_wrap_to_zero() {
    let mut t = case("wrap");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let id = t.producer_id().expect("an id");
    let five = |sequence| values(&["a", "b", "c", "d", "e"]).producer(id, 0, sequence);
    for (first, want) in [
        (2_147_483_640, 0),
        (2_147_483_645, 0),
        (1, 45),
        (2, 0),
        // The batch over the wrap again.
        (2_147_483_645, 0),
    ] {
        let answer = t.produce(&topic, 9, &five(first));
        assert_eq!(code(&answer), want, "{first}: {answer}");
    }
    assert_eq!(number(&t.fetch(&topic, 11, 0), "/HighWatermark"), 15);
    // The largest number is not left out.
    let topic = t.topic("b", 1, &[]).expect("a topic");
    let one = |sequence| values(&["x"]).producer(id, 0, sequence);
    for (sequence, want) in [(2_147_483_646, 0), (0, 45), (2_147_483_647, 0), (0, 0)] {
        let answer = t.produce(&topic, 9, &one(sequence));
        assert_eq!(code(&answer), want, "{sequence}: {answer}");
    }
}

#[test]
fn acks_of_zero_are_never_answered() {
    let mut t = case("acks");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let good = batch(&three()).bytes();
    let mut conn = t.conn();
    for _ in 0..3 {
        conn.start_silent("Produce", 9, &t.produce_body(&topic, 0, &good)).expect("sent");
    }
    // `ask` compares the correlation id: nothing came before.
    assert!(conn.ask("Metadata", 9, &json!({"Topics": []})).is_object());
    // Nobody said that they are on the disk yet.
    let all = |got: &Value| number(got, "/HighWatermark") == 9;
    let stored = t.poll(|t| t.fetch(&topic, 11, 0), all);
    assert!(all(&stored), "{stored}");
    let forged = batch(&three()).forge(|b| b.crc = Some(1)).bytes();
    for (label, body) in [
        ("unknown topic", t.produce_body(&t.name("missing"), 0, &good)),
        ("checksum", t.produce_body(&topic, 0, &forged)),
    ] {
        let mut conn = t.conn();
        conn.start_silent("Produce", 9, &body).expect("sent");
        assert_eq!(conn.watch(5000), json!("closed"), "{label}");
    }
    for acks in [-2, 2, 100, i16::MAX] {
        let answer = t.ask("Produce", 9, t.produce_body(&topic, acks, &good));
        assert_eq!(number(&answer, "/Responses/0/PartitionResponses/0/ErrorCode"), 21, "{acks}");
    }
}

#[test]
fn old_message_sets_are_not_half_supported() {
    let mut t = case("old-sets");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    for version in 0..3 {
        let head = codec::Header { correlation: 1, client_id: None, tags: &Value::Null };
        let mut frame = codec::encode_header(0, version, false, &head);
        frame.extend([0, 1, 0, 0, 3, 0xe8, 0, 0, 0, 0]);
        assert_eq!(t.conn().exchange(&frame).err(), Some(Failure::Closed), "v{version}");
    }
    for magic in [0, 1] {
        let set = compat_tests::differ::batch::message_set(&["a", "b"], magic);
        assert_eq!(code(&t.produce_bytes(&topic, 3, &set)), 87, "magic {magic}");
    }
}

#[test]
fn null_and_empty_stay_what_they_are() {
    let some = |bytes: &[u8]| Some(bytes.to_vec());
    let mut rows = vec![row("v"), row(""), row(""), keyed("", ""), row("h"), row("last")];
    rows[2].value = None;
    rows[4].headers = vec![
        (some(b"same"), some(b"1")),
        (some(b"same"), None),
        (some(b"same"), some(b"")),
        (some(b""), some(b"2")),
    ];
    let want = json!([
        "0 +0ms null=\"v\"",
        "1 +0ms null=\"\"",
        "2 +0ms null=null",
        "3 +0ms \"\"=\"\"",
        "4 +0ms null=\"h\" \"same\":\"1\" \"same\":null \"same\":\"\" \"\":\"2\"",
        "5 +0ms null=\"last\"",
    ]);
    let mut t = case("nulls");
    for codec in ["producer", "uncompressed", "zstd"] {
        let topic = t.topic(codec, 1, &[("compression.type", codec)]).expect("a topic");
        t.put(&topic, &batch(&rows).codec(1)).expect("produced");
        let stored = &batches(&t.fetch(&topic, 11, 0))[0];
        assert_eq!(stored["records"], want, "{codec}");
    }
    let topic = t.topic("null", 1, &[]).expect("a topic");
    rows[4].headers[0].0 = None;
    for codec in [0, 1] {
        assert_eq!(code(&t.produce(&topic, 9, &batch(&rows).codec(codec))), 87);
    }
}

#[test]
fn compacted_topics_name_the_record_without_a_key() {
    let mut t = case("keyless");
    for policy in ["compact", "compact,delete"] {
        let part = policy.replace(',', "-");
        let topic = t.topic(&part, 1, &[("cleanup.policy", policy)]).expect("a topic");
        let rows = [keyed("a", "1"), row("2"), keyed("c", "3")];
        for version in [7, 8, 9, 12] {
            let answer = t.produce(&topic, version, &batch(&rows));
            assert_eq!(code(&answer), 87, "{answer}");
            if version >= 8 {
                let errors = answer["RecordErrors"].as_array().expect("a list");
                assert_eq!(errors.len(), 1, "{answer}");
                assert_eq!(number(&errors[0], "/BatchIndex"), 1, "{answer}");
            }
        }
        assert_eq!(number(&t.fetch(&topic, 11, 0), "/HighWatermark"), 0);
        t.put(&topic, &batch(&[keyed("a", "1"), keyed("", "2")])).expect("empty is a key");
    }
}

#[test]
fn the_limit_is_about_what_is_stored() {
    let mut t = case("limit");
    let sent = values(&[&"x".repeat(2000)]);
    let size = sent.bytes().len();
    for (limit, want) in [(size, 0), (size - 1, 10)] {
        let limit = limit.to_string();
        let topic = t.topic(&limit, 1, &[("max.message.bytes", &limit)]).expect("a topic");
        assert_eq!(code(&t.produce(&topic, 9, &sent)), want, "limit {limit} of {size}");
    }
    let zeros = values(&[&"0".repeat(10_000_000)]).codec(4);
    for (codec, want) in [("producer", 0), ("gzip", 0), ("uncompressed", 10)] {
        let topic = t.topic(codec, 1, &[("compression.type", codec)]).expect("a topic");
        assert_eq!(code(&t.produce(&topic, 9, &zeros)), want, "{codec}");
    }
    let limits = [("segment.bytes", "1048576"), ("max.message.bytes", "3000000")];
    let topic = t.topic("segment", 1, &limits).expect("a topic");
    for (bytes, want) in [(1_000_000, 0), (1_100_000, 18)] {
        let answer = t.produce(&topic, 9, &values(&[&"x".repeat(bytes)]));
        assert_eq!(code(&answer), want, "{bytes}");
    }
}

/// KIP-937: an hour ahead is the most by default, and there is no bound behind.
#[test]
fn times_from_the_future_are_refused_by_record() {
    let mut t = case("future");
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let now = now_ms();
    let mut rows = vec![row("a"), row("b"), row("c")];
    rows[1].time_ms = now + 2 * HOUR_MS;
    for version in [7, 8, 9] {
        let answer = t.produce(&topic, version, &batch(&rows));
        assert_eq!(code(&answer), 32, "{answer}");
        if version >= 8 {
            assert_eq!(number(&answer, "/RecordErrors/0/BatchIndex"), 1, "{answer}");
        }
    }
    let ahead = ("message.timestamp.after.max.ms", "9223372036854775807");
    let behind = ("message.timestamp.before.max.ms", "60000");
    for (part, config, time, want) in [
        ("b", ahead, now + 2 * HOUR_MS, 0),
        ("c", ahead, now + 100 * YEAR_MS, 0),
        ("d", behind, THEN_MS, 32),
        ("e", behind, now, 0),
    ] {
        let topic = t.topic(part, 1, &[config]).expect("a topic");
        assert_eq!(code(&t.produce(&topic, 9, &values(&["x"]).at(time))), want, "{part}");
    }
}

//! Produce: what is taken, what is refused with which code, and what then lies in the log.

use serde_json::{Value, json};

use crate::differ::batch::{Batch, CODECS, THEN_MS, batch, keyed, message_set, row, three, values};
use crate::differ::codec::{UNKNOWN_ID, ZERO_ID, hex};
use crate::differ::context::{Step, T, dig, with};
use crate::differ::rules::now_ms;
use crate::differ::run::Cases;

const HOUR_MS: i64 = 3_600_000;

pub fn add(cases: &mut Cases) {
    versions(cases);
    acks(cases);
    codecs(cases);
    forged(cases);
    contents(cases);
    other_contents(cases);
    sizes(cases);
    times(cases);
    times_by_record(cases);
    targets(cases);
    targets_again(cases);
}

fn versions(cases: &mut Cases) {
    for version in 3..=13 {
        cases.add(format!("produce/v{version}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let good = batch(&three()).bytes();
            for acks in [1, -1] {
                let body = t.produce_body(&topic, acks, &good);
                t.look(format!("acks {acks}"), "Produce", version, body);
            }
            let data = |partitions: Value| {
                json!({"Name": topic, "TopicId": t.id(&topic), "PartitionData": partitions})
            };
            let missing = json!({
                "Name": t.name("missing"), "TopicId": UNKNOWN_ID,
                "PartitionData": [{"Index": 0, "Records": hex(&good)}],
            });
            let two = json!([
                {"Index": 0, "Records": hex(&good)}, {"Index": 7, "Records": hex(&good)},
            ]);
            let bodies = [
                ("mixed", json!([missing, data(two)])),
                ("no topics", json!([])),
                ("no partitions", json!([data(json!([]))])),
            ];
            for (label, topics) in bodies {
                let body = json!({"Acks": -1, "TimeoutMs": 3000, "TopicData": topics});
                t.look(label, "Produce", version, body);
            }
            let refused = batch(&three()).forge(|batch| batch.crc = Some(1)).bytes();
            let body = t.produce_body(&topic, -1, &refused);
            t.look("refused", "Produce", version, body);
            t.see_log("log", &topic);
            Ok(())
        });
    }
    cases.add("produce/versions that are advertised and not there", |t| {
        for version in 0..3 {
            let mut conn = t.conn().patient(2000);
            let head = crate::differ::codec::Header {
                correlation: 1,
                client_id: None,
                tags: &Value::Null,
            };
            let mut frame = crate::differ::codec::encode_header(0, version, false, &head);
            frame.extend([0, 1, 0, 0, 3, 0xe8, 0, 0, 0, 0]);
            let fate = conn.exchange(&frame).map_or_else(|why| why.value(), |_| json!("answered"));
            t.see(format!("v{version}"), fate);
        }
        Ok(())
    });
}

fn acks(cases: &mut Cases) {
    for acks in [-2, 2, 3, 100, i16::MAX, i16::MIN] {
        cases.add(format!("produce/acks {acks}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let good = batch(&three()).bytes();
            for (label, name, version) in [
                ("known", topic.clone(), 9),
                ("unknown", t.name("missing"), 9),
                ("v3", topic.clone(), 3),
            ] {
                let body = t.produce_body(&name, acks, &good);
                t.look(label, "Produce", version, body);
            }
            t.see_log("log", &topic);
            Ok(())
        });
    }
    type Make = fn(&T, &str) -> Value;
    let all: [(&str, Make); 6] = [
        ("good", |t, topic| t.produce_body(topic, 0, &batch(&three()).bytes())),
        ("unknown topic", |t, _| t.produce_body(&t.name("missing"), 0, &batch(&three()).bytes())),
        ("bad CRC", |t, topic| {
            t.produce_body(topic, 0, &batch(&three()).forge(|batch| batch.crc = Some(1)).bytes())
        }),
        ("no records", |t, topic| t.produce_body(topic, 0, &batch(&[]).bytes())),
        ("unknown partition", |t, topic| {
            let mut body = t.produce_body(topic, 0, &batch(&three()).bytes());
            body["TopicData"][0]["PartitionData"][0]["Index"] = json!(9);
            body
        }),
        ("no topics", |_, _| json!({"Acks": 0, "TimeoutMs": 1000})),
    ];
    for (label, make) in all {
        cases.add(format!("produce/acks 0 {label}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let body = make(t, &topic);
            let mut conn = t.conn();
            conn.start_silent("Produce", 9, &body).ok();
            let next = conn.ask("Heartbeat", 0, &json!({}));
            t.see("the next answer", next);
            if label == "good" {
                // What nobody is told of may be visible a moment later.
                t.poll(|t| t.fetch(&topic, 11, 0), |answer| answer["Records"] != json!(""));
            }
            t.see_log("log", &topic);
            Ok(())
        });
    }
}

fn codecs(cases: &mut Cases) {
    for (name, codec) in CODECS {
        cases.add(format!("produce/codec {name}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            for version in [3, 6, 7, 9] {
                let answer = t.produce(&topic, version, &batch(&three()).codec(codec));
                t.see(format!("v{version}"), answer);
            }
            let rows: Vec<_> = (0..200).map(|i| row(&format!("{i}").repeat(100))).collect();
            let answer = t.produce(&topic, 9, &batch(&rows).codec(codec));
            t.see("large", answer);
            t.see_log("log", &topic);
            Ok(())
        });
        cases.add(format!("produce/codec {name} garbage"), move |t| {
            let garbage = Some(b"\x01\x02garbage that is no frame".to_vec());
            for (label, configs) in
                [("as sent", vec![]), ("again", vec![("compression.type", "lz4")])]
            {
                let topic = t.topic(&label[..2].replace(' ', ""), 1, &configs)?;
                let broken =
                    batch(&three()).codec(codec).forge(|batch| batch.payload = garbage.clone());
                let answer = t.produce(&topic, 9, &broken);
                t.see(label, answer);
                t.see_log(format!("{label} log"), &topic);
            }
            Ok(())
        });
        let wanted = if name == "none" { "uncompressed" } else { name };
        cases.add(format!("produce/topic codec {wanted}"), move |t| {
            let topic = t.topic("a", 1, &[("compression.type", wanted)])?;
            for (other, codec) in CODECS {
                let answer = t.produce(&topic, 9, &batch(&three()).codec(codec));
                t.see(other, answer);
            }
            t.see_log("log", &topic);
            Ok(())
        });
    }
    for (label, configs) in [
        ("plain", vec![]),
        ("compacted", vec![("cleanup.policy", "compact")]),
        ("gzip", vec![("compression.type", "gzip")]),
    ] {
        cases.add(format!("produce/snappy without frames {label}"), move |t| {
            let topic = t.topic("a", 1, &configs)?;
            let rows: Vec<_> =
                (0..100).map(|i| keyed(&format!("k{i}"), &"v".repeat(300))).collect();
            for unframed in [false, true] {
                let sent = batch(&rows).codec(2).forge(|batch| batch.unframed = unframed);
                let answer = t.produce(&topic, 9, &sent);
                t.see(format!("unframed {unframed}"), answer);
            }
            t.see_log("log", &topic);
            Ok(())
        });
    }
    cases.add("produce/codecs that do not exist", |t| {
        let topic = t.topic("a", 1, &[])?;
        for codec in 5..8 {
            let sent = batch(&three()).forge(|batch| batch.attributes = codec);
            let answer = t.produce(&topic, 9, &sent);
            t.see(format!("codec {codec}"), answer);
        }
        t.see_log("log", &topic);
        Ok(())
    });
}

/// Makes one thing of a batch wrong.
type Forge = fn(&mut Batch);

fn forgeries() -> [(&'static str, Forge); 47] {
    [
        ("bad CRC", |b| b.crc = Some(12345)),
        ("magic 0", |b| b.magic = Some(0)),
        ("magic 1", |b| b.magic = Some(1)),
        ("magic 3", |b| b.magic = Some(3)),
        ("magic -1", |b| b.magic = Some(-1)),
        ("count 2 of 3", |b| b.count = Some(2)),
        ("count 4 of 3", |b| b.count = Some(4)),
        ("count 0", |b| b.count = Some(0)),
        ("count -1", |b| b.count = Some(-1)),
        ("count max", |b| b.count = Some(i32::MAX)),
        ("last delta 1", |b| b.last_delta = Some(1)),
        ("last delta 5", |b| b.last_delta = Some(5)),
        ("last delta -1", |b| b.last_delta = Some(-1)),
        ("last delta max", |b| b.last_delta = Some(i32::MAX)),
        ("count 5 and delta 4", |b| (b.count, b.last_delta) = (Some(5), Some(4))),
        ("count 2 and delta 1", |b| (b.count, b.last_delta) = (Some(2), Some(1))),
        ("base offset 5", |b| b.base_offset = 5),
        ("base offset -1", |b| b.base_offset = -1),
        ("base offset and CRC", |b| (b.base_offset, b.crc) = (5, Some(1))),
        ("control", |b| b.attributes = 32),
        ("control and CRC", |b| (b.attributes, b.crc) = (32, Some(1))),
        ("log append time", |b| b.attributes = 8),
        ("delete horizon", |b| b.attributes = 64),
        ("unknown attribute", |b| b.attributes = 1 << 14),
        ("attribute sign", |b| b.attributes = i16::MIN),
        ("length 0", |b| b.length = Some(0)),
        ("length -1", |b| b.length = Some(-1)),
        ("length 48", |b| b.length = Some(48)),
        ("length 49", |b| b.length = Some(49)),
        ("length too short", |b| b.length = Some(60)),
        ("length too long", |b| b.length = Some(10_000)),
        ("leader epoch 7", |b| b.leader_epoch = 7),
        ("newest time too low", |b| b.max_time_ms = Some(1)),
        ("newest time too high", |b| b.max_time_ms = Some(THEN_MS + 5)),
        ("newest time -1", |b| b.max_time_ms = Some(-1)),
        ("base time 0", |b| b.base_time_ms = Some(0)),
        ("deltas 0 0 0", |b| deltas(b, [0, 0, 0])),
        ("deltas 0 2 1", |b| deltas(b, [0, 2, 1])),
        ("deltas 1 2 3", |b| deltas(b, [1, 2, 3])),
        ("deltas 0 1 5", |b| deltas(b, [0, 1, 5])),
        ("payload cut short", |b| b.payload = Some(vec![0x10, 0, 0])),
        ("payload empty", |b| b.payload = Some(Vec::new())),
        ("payload garbage", |b| b.payload = Some(vec![0xff; 40])),
        ("producer without sequence", |b| b.producer = Some((5, 0, -1))),
        ("producer without epoch", |b| b.producer = Some((5, -1, 0))),
        ("sequence without producer", |b| b.producer = Some((-1, -1, 3))),
        ("records out of time", |b| b.rows[1].time_ms -= 5000),
    ]
}

/// A batch with one thing wrong: beside a good one, compressed, and what then lies in the log.
fn forged(cases: &mut Cases) {
    for (label, forge) in forgeries() {
        cases.add(format!("produce/forged {label}"), move |t| {
            let topic = t.topic("a", 2, &[])?;
            let bad = batch(&three()).forge(forge);
            let partitions = json!([
                {"Index": 0, "Records": hex(&bad.bytes())},
                {"Index": 1, "Records": hex(&batch(&three()).bytes())},
            ]);
            let data = json!([{"Name": topic, "PartitionData": partitions}]);
            let body = json!({"Acks": -1, "TimeoutMs": 3000, "TopicData": data});
            t.look("beside a good one", "Produce", 9, body);
            if bad.payload.is_none() {
                let answer = t.produce(&topic, 9, &bad.clone().codec(1));
                t.see("compressed", answer);
            }
            let answer = t.produce(&topic, 3, &bad);
            t.see("v3", answer);
            t.see_log("log", &topic);
            Ok(())
        });
    }
}

fn deltas(batch: &mut Batch, deltas: [i32; 3]) {
    for (row, delta) in batch.rows.iter_mut().zip(deltas) {
        row.offset_delta = Some(delta);
    }
}

fn contents(cases: &mut Cases) {
    let some = |bytes: &[u8]| Some(bytes.to_vec());
    let header = move |key: Option<Vec<u8>>, value: Option<Vec<u8>>| {
        let mut row = row("v");
        row.headers.push((key, value));
        row
    };
    let mut nothing = row("");
    nothing.value = None;
    let mut many = row("v");
    many.headers = (0..5).map(|i| (some(b"same"), some(format!("{i}").as_bytes()))).collect();
    let all = [
        ("null value", vec![nothing]),
        ("empty value", vec![row("")]),
        ("empty key", vec![keyed("", "v")]),
        ("header", vec![header(some(b"h"), some(b"1"))]),
        ("header with null value", vec![header(some(b"h"), None)]),
        ("header with empty key", vec![header(some(b""), some(b"1"))]),
        ("header with null key", vec![header(None, some(b"1"))]),
        ("header many times", vec![many]),
        ("header key not UTF-8", vec![header(some(&[0xff, 0xfe]), some(b"1"))]),
    ];
    for (label, rows) in all {
        cases.add(format!("produce/record {label}"), move |t| {
            for (part, configs) in [("a", vec![]), ("b", vec![("compression.type", "gzip")])] {
                let topic = t.topic(part, 1, &configs)?;
                for codec in [0, 1] {
                    let answer = t.produce(&topic, 9, &batch(&rows).codec(codec));
                    t.see(format!("{part} codec {codec}"), answer);
                }
                t.see_log(format!("{part} log"), &topic);
            }
            Ok(())
        });
    }
}

fn other_contents(cases: &mut Cases) {
    for version in [3, 8, 9, 12] {
        cases.add(format!("produce/bytes that are no batch v{version}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let good = batch(&three()).bytes();
            let all = [
                ("none", vec![]),
                ("no record", batch(&[]).bytes()),
                ("short", vec![0; 10]),
                ("zeros", vec![0; 100]),
                ("half", good[..good.len() / 2].to_vec()),
                ("a byte less", good[..good.len() - 1].to_vec()),
                ("and junk", [&good[..], b"junk"].concat()),
                ("and half of one", [&good[..], &good[..40]].concat()),
                ("two", [&good[..], &good[..]].concat()),
                ("old, magic 0", message_set(&["a", "b"], 0)),
                ("old, magic 1", message_set(&["a", "b"], 1)),
            ];
            for (label, bytes) in all {
                let answer = t.produce_bytes(&topic, version, &bytes);
                t.see(label, answer);
            }
            t.see_log("log", &topic);
            Ok(())
        });
    }
    cases.add("produce/null records", |t| {
        let topic = t.topic("a", 1, &[])?;
        let mut body = t.produce_body(&topic, -1, &[]);
        body["TopicData"][0]["PartitionData"][0]["Records"] = Value::Null;
        let answer = t.conn().patient(1500).ask("Produce", 9, &body);
        t.see("answer", answer);
        Ok(())
    });
    cases.add("produce/compacted topics want keys", |t| {
        let topic = t.topic("a", 1, &[("cleanup.policy", "compact")])?;
        let rows = [keyed("k", "1"), row("2"), keyed("k", "3"), row("4"), keyed("", "5")];
        for version in [3, 7, 8, 9] {
            for codec in [0, 4].into_iter().filter(|codec| *codec == 0 || version >= 7) {
                let answer = t.produce(&topic, version, &batch(&rows).codec(codec));
                t.see(format!("v{version} codec {codec}"), answer);
            }
        }
        let answer = t.produce(&topic, 9, &batch(&[keyed("k", "1"), keyed("", "2")]));
        t.see("with keys", answer);
        t.see_log("log", &topic);
        Ok(())
    });
}

fn sizes(cases: &mut Cases) {
    cases.add("produce/size by default", |t| {
        let topic = t.topic("a", 1, &[])?;
        let empty = values(&[""]).bytes().len();
        // The record's three length fields take more bytes for a longer value.
        let room = 1_048_588 - empty - 6;
        for more in 0..3 {
            let sent = values(&[&"x".repeat(room + more - 1)]);
            let answer = t.produce(&topic, 9, &sent);
            t.see(format!("{} bytes", sent.bytes().len()), answer);
        }
        Ok(())
    });
    for (label, forge) in [
        ("alone", (|_| {}) as fn(&mut Batch)),
        ("and bad CRC", |b| b.crc = Some(1)),
        ("and base offset", |b| b.base_offset = 1),
        ("and count", |b| b.count = Some(7)),
    ] {
        cases.add(format!("produce/too large {label}"), move |t| {
            let topic = t.topic("a", 1, &[("max.message.bytes", "500")])?;
            for version in [3, 9] {
                let sent = values(&[&"x".repeat(600)]).forge(forge);
                let answer = t.produce(&topic, version, &sent);
                t.see(format!("v{version}"), answer);
            }
            let answer = t.produce(&topic, 9, &values(&[&"x".repeat(5000)]).codec(1).forge(forge));
            t.see("small when compressed", answer);
            t.see_log("log", &topic);
            Ok(())
        });
    }
    cases.add("produce/too large after compressing again", |t| {
        let zeros = "0".repeat(200_000);
        for (part, codec) in [("a", "producer"), ("b", "uncompressed"), ("c", "gzip")] {
            let configs = [("compression.type", codec), ("max.message.bytes", "100000")];
            let topic = t.topic(part, 1, &configs)?;
            let answer = t.produce(&topic, 9, &values(&[&zeros]).codec(4));
            t.see(codec, answer);
        }
        Ok(())
    });
    cases.add("produce/larger than a segment", |t| {
        let configs = [("segment.bytes", "1048576"), ("max.message.bytes", "3000000")];
        let topic = t.topic("a", 1, &configs)?;
        for size in [1_000_000, 1_100_000] {
            let answer = t.produce(&topic, 9, &values(&[&"x".repeat(size)]));
            t.see(format!("{size}"), answer);
        }
        Ok(())
    });
}

fn times(cases: &mut Cases) {
    let settings: [(&str, &[(&str, &str)]); 5] = [
        ("default", &[]),
        ("after a day", &[("message.timestamp.after.max.ms", "86400000")]),
        ("before a minute", &[("message.timestamp.before.max.ms", "60000")]),
        ("append time", &[("message.timestamp.type", "LogAppendTime")]),
        (
            "append time and bounds",
            &[
                ("message.timestamp.type", "LogAppendTime"),
                ("message.timestamp.before.max.ms", "1"),
            ],
        ),
    ];
    for (label, configs) in settings {
        cases.add(format!("produce/times {label}"), move |t| {
            let topic = t.topic("a", 1, configs)?;
            let now = now_ms();
            let all = [
                ("now", now),
                ("half an hour ahead", now + HOUR_MS / 2),
                ("two hours ahead", now + 2 * HOUR_MS),
                ("two days ahead", now + 48 * HOUR_MS),
                ("half a minute ago", now - 30_000),
                ("two hours ago", now - 2 * HOUR_MS),
                ("1970", 1),
                ("0", 0),
                ("-1", -1),
                ("-5", -5),
            ];
            for (when, time) in all {
                for version in [3, 9] {
                    let answer = t.produce(&topic, version, &values(&["x"]).at(time));
                    t.see(format!("{when} v{version}"), answer);
                }
            }
            Ok(())
        });
    }
}

fn times_by_record(cases: &mut Cases) {
    cases.add("produce/times that fail, by record", |t| {
        let topic = t.topic("a", 1, &[])?;
        let now = now_ms();
        let mut rows = vec![row("a"), row("b"), row("c"), row("d")];
        for (row, ahead) in rows.iter_mut().zip([0, 2, 0, 3]) {
            row.time_ms = now + ahead * HOUR_MS;
        }
        for (version, codec) in [(3, 0), (7, 1), (8, 0), (9, 1), (9, 4)] {
            let answer = t.produce(&topic, version, &batch(&rows).codec(codec));
            t.see(format!("v{version} codec {codec}"), answer);
        }
        t.see_log("log", &topic);
        Ok(())
    });
    for codec in [0, 1, 4] {
        cases.add(format!("produce/append time codec {codec}"), move |t| {
            let topic = t.topic("a", 1, &[("message.timestamp.type", "LogAppendTime")])?;
            let answer = t.produce(&topic, 9, &batch(&three()).codec(codec));
            t.see("append time", answer);
            t.set_config(&topic, "message.timestamp.type", "CreateTime")?;
            t.settle()?;
            let answer = t.produce(&topic, 9, &batch(&three()).codec(codec));
            t.see("create time", answer["LogAppendTimeMs"].clone());
            let first = t.fetch(&topic, 11, 0)["Records"].clone();
            let read = crate::differ::batch::parse(
                &crate::differ::codec::bytes_of(&first).unwrap_or_default(),
            );
            t.see("first batch", json!({ "records": [read[0]] }));
            Ok(())
        });
    }
}

fn targets(cases: &mut Cases) {
    cases.add("produce/ids", |t| {
        let topic = t.topic("a", 1, &[])?;
        let good = batch(&three()).bytes();
        let known = t.id(&topic);
        for (label, id) in [("known", known.as_str()), ("unknown", UNKNOWN_ID), ("zero", ZERO_ID)] {
            let mut body = t.produce_body(&topic, -1, &good);
            body["TopicData"][0]["TopicId"] = json!(id);
            t.look(label, "Produce", 13, body);
        }
        let body = t.produce_body(&topic, -1, &good);
        t.delete_topic(&topic)?;
        let gone = t.poll(
            |t| t.ask("Produce", 13, body.clone()),
            |answer| dig(answer, "/Responses/0/PartitionResponses/0/ErrorCode") != json!(0),
        );
        t.see("deleted", gone);
        t.topic("a", 1, &[])?;
        t.look("made again, old id", "Produce", 13, body);
        Ok(())
    });
    cases.add("produce/internal topics", |t| {
        for name in ["__consumer_offsets", "__cluster_metadata"] {
            for version in [3, 9] {
                let answer = t.produce(name, version, &batch(&[keyed("k", "v")]));
                t.see(format!("{name} v{version}"), answer);
            }
        }
        let body = t.produce_body(
            "__consumer_offsets",
            -1,
            &batch(&three()).forge(|b| b.crc = Some(1)).bytes(),
        );
        let answer = t.conn_as(Some("__admin_client")).ask("Produce", 9, &body);
        t.see("as the admin client", answer);
        Ok(())
    });
    for (label, name) in [("empty", ""), ("bad", "a b"), ("dots", "..")] {
        cases.add(format!("produce/topic name {label}"), move |t| {
            for acks in [1, 2] {
                let body = t.produce_body(name, acks, &batch(&three()).bytes());
                t.look(format!("acks {acks}"), "Produce", 9, body);
            }
            Ok(())
        });
    }
}

fn targets_again(cases: &mut Cases) {
    cases.add("produce/partition numbers", |t| {
        let topic = t.topic("a", 2, &[])?;
        for index in [-1, 1, 2, i32::MAX, i32::MIN] {
            let mut body = t.produce_body(&topic, -1, &batch(&three()).bytes());
            body["TopicData"][0]["PartitionData"][0]["Index"] = json!(index);
            t.look(format!("{index}"), "Produce", 9, body);
        }
        Ok(())
    });
    cases.add("produce/the same twice", |t| {
        let topic = t.topic("a", 2, &[])?;
        let data =
            |index, value: &str| json!({"Index": index, "Records": hex(&values(&[value]).bytes())});
        let of = |partitions: Value| json!({"Name": topic, "PartitionData": partitions});
        let all = [
            ("partition", json!([of(json!([data(0, "a"), data(0, "b")]))])),
            (
                "topic, other partition",
                json!([of(json!([data(0, "c")])), of(json!([data(1, "d")]))]),
            ),
            ("topic and partition", json!([of(json!([data(0, "e")])), of(json!([data(0, "f")]))])),
        ];
        for (label, topics) in all {
            t.look(
                label,
                "Produce",
                9,
                json!({"Acks": -1, "TimeoutMs": 3000, "TopicData": topics}),
            );
        }
        t.see_log("log", &topic);
        Ok(())
    });
    cases.add("produce/time limits", |t| {
        let topic = t.topic("a", 1, &[])?;
        for timeout in [0, -1, 1, i32::MAX] {
            for acks in [1, -1] {
                let body = t.produce_body(&topic, acks, &batch(&three()).bytes());
                let body = with(body, json!({ "TimeoutMs": timeout }));
                t.look(format!("{timeout} acks {acks}"), "Produce", 9, body);
            }
        }
        Ok(())
    });
    cases.add("produce/which error wins", which_error_wins);
}

fn which_error_wins(t: &mut T) -> Step {
    let topic = t.topic("a", 1, &[("max.message.bytes", "500")])?;
    let missing = t.name("missing");
    let large = |forge: fn(&mut Batch)| values(&[&"x".repeat(600)]).forge(forge).bytes();
    let small = |forge: fn(&mut Batch)| batch(&three()).forge(forge).bytes();
    let all = [
        ("acks, missing", &missing, 2, 9, small(|_| {})),
        ("acks, CRC", &topic, 2, 9, small(|b| b.crc = Some(1))),
        ("acks, magic", &topic, 2, 9, small(|b| b.magic = Some(1))),
        ("missing, magic", &missing, -1, 9, message_set(&["a"], 1)),
        ("missing, zstd too early", &missing, -1, 3, small(|b| b.codec = 4)),
        ("large, old", &topic, -1, 9, message_set(&[&"a".repeat(600)], 1)),
        ("large, base, CRC", &topic, -1, 9, large(|b| (b.base_offset, b.crc) = (1, Some(1)))),
        ("large, control", &topic, -1, 9, large(|b| b.attributes = 32)),
        ("CRC, control", &topic, -1, 9, small(|b| (b.attributes, b.crc) = (32, Some(1)))),
        ("zstd too early, CRC", &topic, -1, 3, small(|b| (b.codec, b.crc) = (4, Some(1)))),
        ("zstd too early, two", &topic, -1, 3, [small(|b| b.codec = 4), small(|_| {})].concat()),
        (
            "control, future",
            &topic,
            -1,
            9,
            small(|b| {
                b.attributes = 32;
                b.rows[0].time_ms = now_ms() + 5 * HOUR_MS;
            }),
        ),
        (
            "count, future",
            &topic,
            -1,
            9,
            small(|b| {
                b.count = Some(9);
                b.rows[0].time_ms = now_ms() + 5 * HOUR_MS;
            }),
        ),
    ];
    for (label, name, acks, version, bytes) in all {
        let body = t.produce_body(name, acks, &bytes);
        t.look(label, "Produce", version, body);
    }
    t.see_log("log", &topic);
    Ok(())
}

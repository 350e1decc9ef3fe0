//! What a producer may send: codecs, keys, headers, nulls, timestamps, acks, batches, partitioners.

use std::sync::OnceLock;
use std::time::Duration;

use compat_tests::broker::Broker;
use compat_tests::client::{self, Admin, Got, Rec, Sender};
use compat_tests::differ::rules::now_ms;
use rdkafka::message::Timestamp;
use rdkafka::producer::Producer;

fn broker() -> &'static str {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    &BROKER.get_or_init(Broker::shared).bootstrap
}

fn topic(partitions: i32, set: &[(&str, &str)]) -> String {
    Admin::new(broker()).topic(partitions, set)
}

/// Sends one record with `settings` to a new topic; what comes back.
fn round(settings: &[(&str, &str)], make: impl FnOnce(Rec) -> Rec) -> Got {
    let topic = topic(1, &[]);
    let sent = Sender::new(broker(), settings).send_one(&make(Rec::to(&topic).partition(0)));
    assert_eq!(sent, Ok((0, 0)));
    client::read(broker(), &topic, 0, 1).remove(0)
}

/// 200 records through `codec` into a topic with `compression.type` of `stored`.
fn check_codec(codec: &str, stored: &str) {
    let topic = topic(1, &[("compression.type", stored)]);
    let sender = Sender::new(broker(), &[("compression.type", codec), ("linger.ms", "50")]);
    let values = || (0..200).map(|n| format!("{n}-{}", "abcdefgh".repeat(n % 50)));
    sender.fill(&topic, 0, values());
    let got: Vec<String> = client::read(broker(), &topic, 0, 200).iter().map(Got::text).collect();
    assert_eq!(got, values().collect::<Vec<_>>());
}

#[test]
fn codec_none() {
    check_codec("none", "producer");
}

#[test]
fn codec_gzip() {
    check_codec("gzip", "producer");
}

#[test]
fn codec_snappy() {
    check_codec("snappy", "producer");
}

#[test]
fn codec_lz4() {
    check_codec("lz4", "producer");
}

#[test]
fn codec_zstd() {
    check_codec("zstd", "producer");
}

#[test]
fn topic_recompresses_as_gzip() {
    check_codec("lz4", "gzip");
}

#[test]
fn topic_recompresses_as_zstd() {
    check_codec("none", "zstd");
}

#[test]
fn topic_stores_uncompressed() {
    check_codec("snappy", "uncompressed");
}

#[test]
fn key_and_value_come_back() {
    let got = round(&[], |rec| rec.key("key").value("value"));
    assert_eq!(got.key.as_deref(), Some(&b"key"[..]));
    assert_eq!(got.value.as_deref(), Some(&b"value"[..]));
}

#[test]
fn null_key() {
    assert_eq!(round(&[], |rec| rec.value("value")).key, None);
}

#[test]
fn null_value() {
    assert_eq!(round(&[], |rec| rec.key("gone")).value, None);
}

#[test]
fn null_key_and_value() {
    let got = round(&[], |rec| rec);
    assert_eq!((got.key, got.value), (None, None));
}

#[test]
fn empty_is_not_null() {
    let got = round(&[], |rec| rec.key("").value(""));
    // librdkafka itself cannot tell an empty key from none when it reads.
    assert!(got.key.unwrap_or_default().is_empty());
    assert!(got.value.unwrap_or_default().is_empty());
}

#[test]
fn any_bytes_in_key_and_value() {
    let bytes: Vec<u8> = (0..=255).collect();
    let got = round(&[], |rec| rec.key(bytes.clone()).value(bytes.clone()));
    assert_eq!((got.key.as_ref(), got.value.as_ref()), (Some(&bytes), Some(&bytes)));
}

#[test]
fn headers_come_back_in_order() {
    let got = round(&[], |rec| rec.header("b", Some(b"1")).header("a", Some(b"2")));
    let want = [("b", "1"), ("a", "2")];
    let want = want.map(|(k, v)| (k.to_owned(), Some(v.as_bytes().to_vec())));
    assert_eq!(got.headers, want);
}

#[test]
fn headers_may_repeat_and_be_null() {
    let got =
        round(&[], |rec| rec.header("h", Some(b"1")).header("h", None).header("h", Some(b"")));
    let values: Vec<_> = got.headers.into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, [Some(b"1".to_vec()), None, Some(vec![])]);
}

#[test]
fn many_headers() {
    let names: Vec<String> = (0..300).map(|n| format!("header-{n}")).collect();
    let got = round(&[("compression.type", "lz4")], |rec| {
        names.iter().fold(rec, |rec, name| rec.header(name, Some(name.as_bytes())))
    });
    assert_eq!(got.headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), names);
}

#[test]
fn create_time_comes_back() {
    // Retention would delete what is older than a week.
    let at = now_ms() - 3_600_000;
    let got = round(&[], |rec| rec.timestamp(at));
    assert_eq!(got.timestamp, Timestamp::CreateTime(at));
}

#[test]
fn timestamp_is_now_unless_given() {
    let before = Timestamp::now().to_millis().expect("now");
    let got = round(&[], |rec| rec.value("x")).timestamp.to_millis().expect("a time");
    assert!((before - 1000..before + 30_000).contains(&got), "{got} at {before}");
}

#[test]
fn log_append_time_replaces_the_producers() {
    let topic = topic(1, &[("message.timestamp.type", "LogAppendTime")]);
    let before = Timestamp::now().to_millis().expect("now");
    let sender = Sender::new(broker(), &[]);
    sender.send_one(&Rec::to(&topic).partition(0).timestamp(5).value("x")).expect("sent");
    match client::read(broker(), &topic, 0, 1)[0].timestamp {
        Timestamp::LogAppendTime(at) => assert!(at >= before - 1000, "{at} at {before}"),
        other => panic!("{other:?}"),
    }
}

/// `acks`: every record arrives; what the delivery says of its offset.
fn check_acks(acks: &str, knows_offset: bool) {
    let topic = topic(1, &[]);
    let sender = Sender::new(broker(), &[("acks", acks)]);
    for n in 0..20 {
        sender.send(&Rec::to(&topic).partition(0).value(n.to_string())).expect("queue");
    }
    for (at, delivery) in (0..).zip(sender.flush()) {
        let (_, offset) = delivery.expect("delivered");
        assert!(!knows_offset || offset == at, "{offset} for {at}");
    }
    let got: Vec<String> = client::read(broker(), &topic, 0, 20).iter().map(Got::text).collect();
    assert_eq!(got, (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn acks_0() {
    check_acks("0", false);
}

#[test]
fn acks_1() {
    check_acks("1", true);
}

#[test]
fn acks_all() {
    check_acks("all", true);
}

#[test]
fn offsets_are_dense_over_batches() {
    let topic = topic(1, &[]);
    let sender = Sender::new(broker(), &[("batch.num.messages", "7"), ("linger.ms", "5")]);
    for n in 0..500 {
        sender.send(&Rec::to(&topic).partition(0).value(n.to_string())).expect("queue");
    }
    let offsets: Vec<i64> = sender.flush().into_iter().map(|d| d.expect("delivered").1).collect();
    assert_eq!(offsets, (0..500).collect::<Vec<_>>());
    assert_eq!(client::watermarks(broker(), &topic, 0), (0, 500));
}

#[test]
fn no_linger() {
    let topic = topic(1, &[]);
    let sender = Sender::new(broker(), &[("linger.ms", "0")]);
    for n in 0..10 {
        let sent = sender.send_one(&Rec::to(&topic).partition(0).value("x"));
        assert_eq!(sent, Ok((0, n)));
    }
}

#[test]
fn long_linger_ends_with_flush() {
    let topic = topic(1, &[]);
    let sender = Sender::new(broker(), &[("linger.ms", "20000")]);
    let started = std::time::Instant::now();
    sender.send_one(&Rec::to(&topic).partition(0).value("x")).expect("sent");
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn one_request_in_flight() {
    let topic = topic(1, &[]);
    let sender = Sender::new(broker(), &[("max.in.flight", "1"), ("batch.num.messages", "3")]);
    sender.fill(&topic, 0, (0..50).map(|n| n.to_string()));
    assert_eq!(client::read(broker(), &topic, 0, 50).last().map(Got::text), Some("49".to_owned()));
}

#[test]
fn several_topics_in_one_request() {
    let topics: Vec<String> = (0..5).map(|_| topic(3, &[])).collect();
    let sender = Sender::new(broker(), &[("linger.ms", "100")]);
    for topic in &topics {
        for partition in 0..3 {
            sender.send(&Rec::to(topic).partition(partition).value("x")).expect("queue");
        }
    }
    assert!(sender.flush().into_iter().all(|delivery| matches!(delivery, Ok((_, 0)))));
}

/// Keys spread by `partitioner` over 6 partitions; where each of `keys` went, asked twice.
fn check_partitioner(partitioner: &str, want: &[(&str, i32)]) {
    let topic = topic(6, &[]);
    for _ in 0..2 {
        let sender = Sender::new(broker(), &[("partitioner", partitioner)]);
        for (key, partition) in want {
            let sent = sender.send_one(&Rec::to(&topic).key(*key).value("x"));
            assert_eq!(sent.expect("sent").0, *partition, "{key}");
        }
    }
}

#[test]
fn murmur2_partitions_as_java_does() {
    // kafka.utils murmur2, made positive, modulo 6.
    let want = ["a", "b", "kafka", "21", "foobar"].map(|key| (key, murmur2(key.as_bytes()) % 6));
    check_partitioner("murmur2_random", &want);
}

/// Java's Utils.murmur2, made positive.
fn murmur2(data: &[u8]) -> i32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    for (at, byte) in rest.iter().enumerate() {
        hash ^= u32::from(*byte) << (8 * at);
    }
    if !rest.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    ((hash ^ (hash >> 15)) & 0x7fff_ffff) as i32
}

#[test]
fn one_key_stays_in_one_partition() {
    let topic = topic(5, &[]);
    let sender = Sender::new(broker(), &[("partitioner", "consistent")]);
    for _ in 0..30 {
        sender.send(&Rec::to(&topic).key("same").value("x")).expect("queue");
    }
    let mut partitions: Vec<i32> =
        sender.flush().into_iter().map(|delivery| delivery.expect("sent").0).collect();
    partitions.dedup();
    assert_eq!(partitions.len(), 1, "{partitions:?}");
}

#[test]
fn records_without_key_spread() {
    let topic = topic(4, &[]);
    let sender = Sender::new(broker(), &[("sticky.partitioning.linger.ms", "0")]);
    for _ in 0..200 {
        sender.send(&Rec::to(&topic).value("x")).expect("queue");
    }
    let mut partitions: Vec<i32> =
        sender.flush().into_iter().map(|delivery| delivery.expect("sent").0).collect();
    partitions.sort_unstable();
    partitions.dedup();
    assert_eq!(partitions, [0, 1, 2, 3]);
}

#[test]
fn two_producers_share_a_partition() {
    let topic = topic(1, &[]);
    let senders = [(); 2].map(|()| Sender::new(broker(), &[]));
    for n in 0..50 {
        for sender in &senders {
            sender.send(&Rec::to(&topic).partition(0).value(n.to_string())).expect("queue");
        }
    }
    let mut offsets: Vec<i64> = Vec::new();
    for sender in &senders {
        offsets.extend(sender.flush().into_iter().map(|delivery| delivery.expect("sent").1));
    }
    offsets.sort_unstable();
    assert_eq!(offsets, (0..100).collect::<Vec<_>>());
}

#[test]
fn topics_come_up_by_producing() {
    let topic = compat_tests::settings::unique("auto");
    let sender = Sender::new(broker(), &[]);
    sender.send_one(&Rec::to(&topic).value("first")).expect("created on the way");
    let metadata = sender.producer.client().fetch_metadata(Some(&topic), client::PATIENCE);
    assert!(!metadata.expect("metadata").topics()[0].partitions().is_empty());
}

/// More requests than a connection may have in flight, each larger than the buffer they share: some
/// wait, whole, in the buffer.
#[test]
fn many_large_requests_in_flight() {
    let broker = Broker::start(&[]);
    let topic = Admin::new(&broker.bootstrap).topic(6, &[]);
    let settings = [
        ("enable.idempotence", "false"),
        ("max.in.flight", "1000"),
        ("batch.size", "131072"),
        ("linger.ms", "5"),
        ("queue.buffering.max.messages", "500000"),
    ];
    let sender = Sender::new(&broker.bootstrap, &settings);
    let value = "v".repeat(1024);
    for n in 0..60_000 {
        let rec = Rec::to(&topic).partition(n % 6).value(value.clone());
        sender.send(&rec).expect("the queue has room");
    }
    sender.arrive();
    let (low, high) = client::watermarks(&broker.bootstrap, &topic, 0);
    assert_eq!((low, high), (0, 10_000), "nothing was sent again");
}

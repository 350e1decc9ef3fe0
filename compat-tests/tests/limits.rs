//! Sizes: large records, refusals of too large ones, fetch sizes, many partitions.

use std::sync::OnceLock;

use compat_tests::broker::Broker;
use compat_tests::client::{self, Admin, Got, Rec, Sender};
use rdkafka::Offset;
use rdkafka::error::RDKafkaErrorCode as Code;

fn broker() -> &'static str {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    &BROKER.get_or_init(Broker::shared).bootstrap
}

/// Bytes that no codec makes smaller.
fn noise(len: usize) -> Vec<u8> {
    let mut chance = compat_tests::settings::Chance::new(len as u64);
    (0..len).map(|_| chance.next_u64() as u8).collect()
}

const LARGE: [(&str, &str); 1] = [("message.max.bytes", "4000000")];

/// A record of `len` bytes goes through and back, with `codec`.
fn check_large(len: usize, codec: &str) {
    let topic = Admin::new(broker()).topic(1, &[]);
    let sender = Sender::new(broker(), &[LARGE[0], ("compression.type", codec)]);
    let value = noise(len);
    let sent = sender.send_one(&Rec::to(&topic).partition(0).value(value.clone()));
    assert_eq!(sent, Ok((0, 0)));
    let got = client::read(broker(), &topic, 0, 1).remove(0);
    assert!(got.value == Some(value), "{len} bytes came back changed");
}

#[test]
fn record_of_100_kb() {
    check_large(100_000, "none");
}

#[test]
fn record_of_500_kb() {
    check_large(500_000, "none");
}

#[test]
fn record_of_900_kb() {
    check_large(900_000, "none");
}

#[test]
fn record_of_900_kb_gzip() {
    check_large(900_000, "gzip");
}

#[test]
fn record_of_900_kb_snappy() {
    check_large(900_000, "snappy");
}

#[test]
fn record_of_900_kb_lz4() {
    check_large(900_000, "lz4");
}

#[test]
fn record_of_900_kb_zstd() {
    check_large(900_000, "zstd");
}

#[test]
fn records_of_all_sizes() {
    let topic = Admin::new(broker()).topic(1, &[]);
    let sender = Sender::new(broker(), &LARGE);
    let sizes = [0, 1, 63, 64, 127, 128, 8191, 8192, 16_383, 16_384, 65_535, 65_536, 300_000];
    for size in sizes {
        sender.send(&Rec::to(&topic).partition(0).value(noise(size))).expect("queue");
    }
    sender.arrive();
    let got = client::read(broker(), &topic, 0, sizes.len());
    for (got, size) in got.iter().zip(sizes) {
        assert!(got.value.clone().unwrap_or_default() == noise(size), "{size}");
    }
}

#[test]
fn too_large_for_the_broker() {
    let topic = Admin::new(broker()).topic(1, &[]);
    let sender = Sender::new(broker(), &LARGE);
    let rec = Rec::to(&topic).partition(0);
    assert_eq!(
        sender.send_one(&rec.clone().value(noise(1_200_000))),
        Err(Code::MessageSizeTooLarge)
    );
    // What is small enough still goes through, at the first offset.
    assert_eq!(sender.send_one(&rec.value("small")), Ok((0, 0)));
}

#[test]
fn too_large_for_the_client() {
    let topic = Admin::new(broker()).topic(1, &[]);
    let sender = Sender::new(broker(), &[("message.max.bytes", "2000")]);
    let rec = Rec::to(&topic).partition(0).value(noise(3000));
    assert_eq!(sender.send_one(&rec), Err(Code::MessageSizeTooLarge));
}

#[test]
fn topic_may_allow_less() {
    let topic = Admin::new(broker()).topic(1, &[("max.message.bytes", "1000")]);
    let sender = Sender::new(broker(), &[("compression.type", "none")]);
    let rec = Rec::to(&topic).partition(0);
    assert_eq!(sender.send_one(&rec.clone().value(noise(2000))), Err(Code::MessageSizeTooLarge));
    assert_eq!(sender.send_one(&rec.value(noise(500))), Ok((0, 0)));
}

#[test]
fn topic_may_allow_more() {
    let topic = Admin::new(broker()).topic(1, &[("max.message.bytes", "3000000")]);
    let sender = Sender::new(broker(), &LARGE);
    let rec = Rec::to(&topic).partition(0);
    assert_eq!(sender.send_one(&rec.value(noise(2_000_000))), Ok((0, 0)));
    let got = client::read(broker(), &topic, 0, 1).remove(0);
    assert!(got.value == Some(noise(2_000_000)));
}

#[test]
fn limit_holds_for_the_compressed_batch() {
    let topic = Admin::new(broker()).topic(1, &[("max.message.bytes", "10000")]);
    let sender = Sender::new(broker(), &[LARGE[0], ("compression.type", "zstd")]);
    let sent = sender.send_one(&Rec::to(&topic).partition(0).value("a".repeat(500_000)));
    assert_eq!(sent, Ok((0, 0)));
}

#[test]
fn refused_batch_leaves_no_gap() {
    let topic = Admin::new(broker()).topic(1, &[("max.message.bytes", "1000")]);
    let sender = Sender::new(broker(), &[("batch.num.messages", "1")]);
    let rec = Rec::to(&topic).partition(0);
    for size in [10, 2000, 20, 2000, 30] {
        let _ = sender.send_one(&rec.clone().value(noise(size)));
    }
    let got = client::read(broker(), &topic, 0, 3);
    assert_eq!(got.iter().map(|got| got.offset).collect::<Vec<_>>(), [0, 1, 2]);
}

/// 40 records of 50 KB, fetched with small limits, come whole and in order.
fn check_fetch(settings: &[(&str, &str)]) {
    let topic = Admin::new(broker()).topic(1, &[]);
    let sender = Sender::new(broker(), &[LARGE[0], ("batch.num.messages", "2")]);
    for n in 0..40 {
        sender.send(&Rec::to(&topic).partition(0).value(noise(50_000 + n))).expect("queue");
    }
    sender.arrive();
    let consumer = client::consumer(broker(), "unused", settings);
    client::assign(&consumer, &[(&topic, 0, Offset::Beginning)]);
    let got = client::poll(&consumer, 40);
    let sizes: Vec<usize> = got.iter().map(|got| got.value.as_ref().map_or(0, Vec::len)).collect();
    assert_eq!(sizes, (50_000..50_040).collect::<Vec<_>>());
}

#[test]
fn fetch_limit_below_one_record() {
    check_fetch(&[("fetch.message.max.bytes", "1000")]);
}

#[test]
fn fetch_limit_of_a_few_records() {
    check_fetch(&[
        ("fetch.message.max.bytes", "200000"),
        ("fetch.max.bytes", "200000"),
        ("message.max.bytes", "200000"),
    ]);
}

#[test]
fn fetch_waits_for_min_bytes() {
    check_fetch(&[("fetch.min.bytes", "100000"), ("fetch.wait.max.ms", "100")]);
}

#[test]
fn many_partitions() {
    let topic = Admin::new(broker()).topic(60, &[]);
    let sender = Sender::new(broker(), &[("linger.ms", "100")]);
    for partition in 0..60 {
        sender.send(&Rec::to(&topic).partition(partition).value(partition.to_string())).expect("q");
    }
    sender.arrive();
    let consumer = client::consumer(broker(), "unused", &[]);
    let places: Vec<_> = (0..60).map(|p| (topic.as_str(), p, Offset::Beginning)).collect();
    client::assign(&consumer, &places);
    let mut got = client::poll(&consumer, 60);
    got.sort_by_key(|got| got.partition);
    assert!(got.iter().all(|got: &Got| got.text() == got.partition.to_string()));
}

#[test]
fn ten_thousand_small_records() {
    let topic = Admin::new(broker()).topic(1, &[]);
    let sender = Sender::new(broker(), &[("linger.ms", "5"), ("compression.type", "lz4")]);
    sender.fill(&topic, 0, (0..10_000).map(|n| n.to_string()));
    let got = client::read(broker(), &topic, 0, 10_000);
    assert!(got.iter().enumerate().all(|(n, got)| got.text() == n.to_string()));
}

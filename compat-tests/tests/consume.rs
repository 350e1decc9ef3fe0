//! Reading: where a consumer starts, seek, pause, positions, watermarks, times, isolation.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use compat_tests::broker::Broker;
use compat_tests::client::{self, Admin, Got, PATIENCE, Rec, Sender};
use compat_tests::differ::rules::now_ms;
use rdkafka::Offset;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode as Code;

fn broker() -> &'static str {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    &BROKER.get_or_init(Broker::shared).bootstrap
}

/// A topic of one partition with values "0" to "9", of times 1000, 2000, ... after [`base_ms`].
fn ten() -> String {
    let topic = Admin::new(broker()).topic(1, &[]);
    let sender = Sender::new(broker(), &[("batch.num.messages", "3")]);
    for n in 0..10 {
        let rec = Rec::to(&topic).partition(0).value(n.to_string());
        sender.send(&rec.timestamp(base_ms() + (n + 1) * 1000)).expect("queue");
    }
    sender.arrive();
    topic
}

/// An hour ago: recent enough for retention, the same throughout a run.
fn base_ms() -> i64 {
    static BASE_MS: OnceLock<i64> = OnceLock::new();
    *BASE_MS.get_or_init(|| now_ms() - 3_600_000)
}

fn texts(got: &[Got]) -> String {
    got.iter().map(Got::text).collect::<Vec<_>>().join(" ")
}

/// Reads what `count` records from `from` are.
fn check_from(from: Offset, count: usize, want: &str) {
    let consumer = client::assigned(broker(), &ten(), 0, from);
    assert_eq!(texts(&client::poll(&consumer, count)), want);
}

#[test]
fn from_the_beginning() {
    check_from(Offset::Beginning, 10, "0 1 2 3 4 5 6 7 8 9");
}

#[test]
fn from_an_offset() {
    check_from(Offset::Offset(4), 3, "4 5 6");
}

#[test]
fn from_the_middle_of_a_batch() {
    check_from(Offset::Offset(7), 3, "7 8 9");
}

#[test]
fn from_the_tail() {
    check_from(Offset::OffsetTail(2), 2, "8 9");
}

#[test]
fn from_the_end_sees_what_comes_later() {
    let topic = ten();
    let consumer = client::assigned(broker(), &topic, 0, Offset::End);
    assert_eq!(client::poll_for(&consumer, Duration::from_millis(700)), []);
    Sender::new(broker(), &[]).fill(&topic, 0, ["late".to_owned()]);
    assert_eq!(texts(&client::poll(&consumer, 1)), "late");
}

/// Asks for `from` with `auto.offset.reset` of `reset`.
fn check_reset(from: i64, reset: &str, want: &str) {
    let topic = ten();
    let consumer = client::consumer(broker(), "unused", &[("auto.offset.reset", reset)]);
    client::assign(&consumer, &[(&topic, 0, Offset::Offset(from))]);
    assert_eq!(texts(&client::poll(&consumer, 1)), want);
}

#[test]
fn out_of_range_resets_to_earliest() {
    check_reset(5000, "earliest", "0");
}

#[test]
fn out_of_range_resets_to_latest() {
    let topic = ten();
    let consumer = client::consumer(broker(), "unused", &[("auto.offset.reset", "latest")]);
    client::assign(&consumer, &[(&topic, 0, Offset::Offset(5000))]);
    assert_eq!(client::poll_for(&consumer, Duration::from_millis(700)), []);
    Sender::new(broker(), &[]).fill(&topic, 0, ["late".to_owned()]);
    assert_eq!(texts(&client::poll(&consumer, 1)), "late");
}

#[test]
fn out_of_range_can_be_an_error() {
    let topic = ten();
    let consumer = client::consumer(broker(), "unused", &[("auto.offset.reset", "error")]);
    client::assign(&consumer, &[(&topic, 0, Offset::Offset(5000))]);
    assert_eq!(client::poll_error(&consumer), Code::AutoOffsetReset);
}

#[test]
fn seek_back_and_forth() {
    let topic = ten();
    let consumer = client::assigned(broker(), &topic, 0, Offset::Beginning);
    client::poll(&consumer, 10);
    for at in [3, 0, 9, 5] {
        consumer.seek(&topic, 0, Offset::Offset(at), PATIENCE).expect("seek");
        assert_eq!(client::poll(&consumer, 1)[0].offset, at);
    }
}

#[test]
fn pause_and_resume() {
    let topic = ten();
    let other = ten();
    let consumer = client::consumer(broker(), "unused", &[]);
    client::assign(&consumer, &[(&topic, 0, Offset::Beginning), (&other, 0, Offset::Beginning)]);
    let paused = client::list(&[(&topic, 0, Offset::Invalid)]);
    consumer.pause(&paused).expect("pause");
    let got = client::poll_for(&consumer, Duration::from_secs(1));
    assert!(got.iter().all(|got| got.topic == other), "{got:?}");
    assert_eq!(got.len(), 10);
    consumer.resume(&paused).expect("resume");
    assert_eq!(client::poll(&consumer, 10)[9].topic, topic);
}

#[test]
fn position_is_after_the_last_record() {
    let topic = ten();
    let consumer = client::assigned(broker(), &topic, 0, Offset::Beginning);
    client::poll(&consumer, 4);
    let position = consumer.position().expect("position");
    assert_eq!(position.find_partition(&topic, 0).expect("it").offset(), Offset::Offset(4));
}

#[test]
fn watermarks_of_full_and_empty() {
    assert_eq!(client::watermarks(broker(), &ten(), 0), (0, 10));
    let empty = Admin::new(broker()).topic(1, &[]);
    assert_eq!(client::watermarks(broker(), &empty, 0), (0, 0));
}

#[test]
fn watermarks_after_deleted_records() {
    let topic = ten();
    let admin = Admin::new(broker());
    assert_eq!(admin.delete_records(&topic, 0, Offset::Offset(6)), Ok(6));
    assert_eq!(client::watermarks(broker(), &topic, 0), (6, 10));
    assert_eq!(texts(&client::read(broker(), &topic, 0, 4)), "6 7 8 9");
}

/// The offset for a time, `after_ms` after [`base_ms`].
fn check_time(after_ms: i64, want: Offset) {
    let topic = ten();
    let consumer: BaseConsumer = client::consumer(broker(), "unused", &[]);
    let ask = client::list(&[(&topic, 0, Offset::Offset(base_ms() + after_ms))]);
    let found = consumer.offsets_for_times(ask, PATIENCE).expect("an answer");
    assert_eq!(found.find_partition(&topic, 0).expect("it").offset(), want);
}

#[test]
fn time_before_the_first() {
    check_time(-5000, Offset::Offset(0));
}

#[test]
fn time_of_a_record() {
    check_time(5000, Offset::Offset(4));
}

#[test]
fn time_between_two_records() {
    check_time(5001, Offset::Offset(5));
}

#[test]
fn time_after_the_last() {
    check_time(999_999, Offset::End);
}

#[test]
fn empty_topic_gives_nothing_and_then_something() {
    let topic = Admin::new(broker()).topic(1, &[]);
    let consumer = client::assigned(broker(), &topic, 0, Offset::Beginning);
    assert_eq!(client::poll_for(&consumer, Duration::from_millis(400)), []);
    Sender::new(broker(), &[]).fill(&topic, 0, ["now".to_owned()]);
    assert_eq!(texts(&client::poll(&consumer, 1)), "now");
}

#[test]
fn long_poll_wakes_at_once() {
    let topic = Admin::new(broker()).topic(1, &[]);
    let consumer = client::consumer(
        broker(),
        "unused",
        &[("fetch.wait.max.ms", "20000"), ("socket.timeout.ms", "60000")],
    );
    client::assign(&consumer, &[(&topic, 0, Offset::Beginning)]);
    assert_eq!(client::poll_for(&consumer, Duration::from_secs(1)), []);
    let started = Instant::now();
    Sender::new(broker(), &[]).fill(&topic, 0, ["now".to_owned()]);
    client::poll(&consumer, 1);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn end_of_partition_is_told() {
    let topic = ten();
    let consumer = client::consumer(broker(), "unused", &[("enable.partition.eof", "true")]);
    client::assign(&consumer, &[(&topic, 0, Offset::Offset(10))]);
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "no end was told");
        match consumer.poll(Duration::from_millis(100)) {
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(0))) => return,
            Some(Ok(message)) => panic!("{message:?}"),
            _ => {}
        }
    }
}

#[test]
fn read_uncommitted_and_committed_see_plain_records() {
    let topic = ten();
    for isolation in ["read_uncommitted", "read_committed"] {
        let consumer = client::consumer(broker(), "unused", &[("isolation.level", isolation)]);
        client::assign(&consumer, &[(&topic, 0, Offset::Beginning)]);
        assert_eq!(client::poll(&consumer, 10).len(), 10, "{isolation}");
    }
}

#[test]
fn crcs_hold() {
    let topic = ten();
    let consumer = client::consumer(broker(), "unused", &[("check.crcs", "true")]);
    client::assign(&consumer, &[(&topic, 0, Offset::Beginning)]);
    assert_eq!(client::poll(&consumer, 10).len(), 10);
}

#[test]
fn two_readers_see_the_same() {
    let topic = ten();
    let first = client::read(broker(), &topic, 0, 10);
    assert_eq!(client::read(broker(), &topic, 0, 10), first);
}

#[test]
fn partitions_are_read_together() {
    let topic = Admin::new(broker()).topic(3, &[]);
    let sender = Sender::new(broker(), &[]);
    for partition in 0..3 {
        sender.fill(&topic, partition, (0..20).map(|n| n.to_string()));
    }
    let consumer = client::consumer(broker(), "unused", &[]);
    let places = [0, 1, 2].map(|partition| (topic.as_str(), partition, Offset::Beginning));
    client::assign(&consumer, &places);
    let got = client::poll(&consumer, 60);
    for partition in 0..3 {
        let of: Vec<i64> =
            got.iter().filter(|got| got.partition == partition).map(|got| got.offset).collect();
        assert_eq!(of, (0..20).collect::<Vec<_>>());
    }
}

#[test]
fn assignment_can_change() {
    let (first, second) = (ten(), ten());
    let consumer = client::assigned(broker(), &first, 0, Offset::Beginning);
    client::poll(&consumer, 10);
    client::assign(&consumer, &[(&second, 0, Offset::Offset(8))]);
    let got = client::poll(&consumer, 2);
    assert!(got.iter().all(|got| got.topic == second));
}

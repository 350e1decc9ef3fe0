//! The broker's disk runs full under load: writes are refused and reads go on; once there is space
//! again, writes come back without a restart, and nothing acknowledged is lost.
//!
//! Needs root and loop devices.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use compat_tests::broker::Broker;
use compat_tests::client::{self, Admin, Rec, Sender};
use compat_tests::image::{Image, free_bytes};
use compat_tests::incremental::{Change, alter_topic};
use compat_tests::load::{self, Load, Plan};
use rdkafka::Offset;
use rdkafka::error::RDKafkaErrorCode;

const MIB: u64 = 1 << 20;

fn image(what: &str) -> Option<Image> {
    if std::env::var_os("KAFKA_BOOTSTRAP").is_some() {
        println!("SKIPPED: KAFKA_BOOTSTRAP is set and this test fills its broker's disk");
        return None;
    }
    match Image::new(160) {
        Ok(image) => Some(image),
        Err(why) => {
            println!("DID NOT RUN: {what} needs root and loop devices: {why}");
            None
        }
    }
}

/// Takes all space but `leave` bytes.
fn take_space(path: &Path, leave: u64) {
    let mut file = std::fs::File::create(path).expect("a filler file");
    let block = vec![0x5a; 64 << 10];
    while free_bytes(path) > leave + block.len() as u64 {
        file.write_all(&block).expect("there is space");
    }
    file.sync_all().expect("synced");
}

/// A topic with 100 records that were there before the disk ran full.
fn early(broker: &Broker) -> String {
    let topic = Admin::new(&broker.bootstrap).topic(1, &[]);
    Sender::new(&broker.bootstrap, &[]).fill(&topic, 0, (0..100).map(|n| n.to_string()));
    topic
}

/// Waits until writers get nothing through any more.
fn wait_full(load: &Load, broker: &mut Broker) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while load.wait_acked(1, Duration::from_secs(3)).is_some() {
        assert!(Instant::now() < deadline, "the disk never ran full");
        assert!(broker.exited().is_none(), "the broker is gone\n{}", broker.log_tail(40));
    }
}

/// A topic of some 40 MiB, to be deleted.
fn ballast(broker: &Broker) -> String {
    let settings = [("segment.bytes", "1048576")];
    let topic = Admin::new(&broker.bootstrap).topic(1, &settings);
    let value = "b".repeat(500_000);
    Sender::new(&broker.bootstrap, &[]).fill(&topic, 0, (0..80).map(|_| value.clone()));
    topic
}

/// What a full disk refuses, by Kafka's name for it, and what it must not.
fn check_when_full(broker: &Broker, early_topic: &str, growing: &str) {
    let got = client::read(&broker.bootstrap, early_topic, 0, 100);
    assert_eq!(got.len(), 100, "reads go on");
    let plain = [("enable.idempotence", "false"), ("retries", "0")];
    let sent = Sender::new(&broker.bootstrap, &plain)
        .send_one(&Rec::to(early_topic).partition(0).value("late"));
    assert_eq!(sent, Err(RDKafkaErrorCode::KafkaStorageError));
    let admin = Admin::new(&broker.bootstrap);
    assert_eq!(admin.create("one-more", 1, &[]), Err(RDKafkaErrorCode::KafkaStorageError));
    // A lower retention is how room is made.
    let lower = [Change::Set("retention.ms", "86400000")];
    assert_eq!(alter_topic(admin.client(), growing, &lower), Ok(()));
}

fn plan(topic: &str) -> Plan {
    let mut plan = Plan::new(topic);
    plan.payload_max = 20_000;
    // Slow, and with little under way: what waits must fit once there is space again.
    plan.rate = 60;
    plan.settings = vec![("queue.buffering.max.messages".to_owned(), "50".to_owned())];
    plan
}

/// Fills the disk, sees that reads go on, frees space with `free`, sees that writes come back.
fn check(what: &str, free: impl FnOnce(&Broker, &Path, &Plan, &str)) {
    let Some(image) = image(what) else { return };
    let data = image.dir().join("data");
    let mut broker = Broker::start_in(Some(&data), &[]);
    let early_topic = early(&broker);
    let ballast = ballast(&broker);
    let settings = [("segment.bytes", "1048576")];
    let topic = Admin::new(&broker.bootstrap).topic(2, &settings);
    let filler = image.dir().join("filler");
    let load = Load::start(&broker.bootstrap, plan(&topic));
    load.wait_acked(1, Duration::from_secs(30)).expect("writes go on while there is space");
    take_space(&filler, 24 * MIB);
    load.wait_acked(100, Duration::from_secs(30)).expect("writes go on while there is space");
    wait_full(&load, &mut broker);
    let acked_when_full = load.acked();
    check_when_full(&broker, &early_topic, &topic);
    // One that starts now gets its producer id, and its record arrives later.
    let late = Sender::new(&broker.bootstrap, &[("enable.idempotence", "true")]);
    late.send(&Rec::to(&early_topic).partition(0).value("late")).expect("queued");
    assert!(broker.exited().is_none(), "the broker is gone\n{}", broker.log_tail(40));
    let errors = load.errors();
    free(&broker, &filler, &plan(&topic), &ballast);
    let back = load.wait_acked(100, Duration::from_secs(60));
    load.pause(true);
    assert!(back.is_some(), "writes do not come back: {}\n{}", load.plight(), broker.log_tail(40));
    assert!(broker.exited().is_none(), "the broker is gone\n{}", broker.log_tail(40));
    late.arrive();
    // A topic that nobody wrote to meanwhile takes records, too.
    Sender::new(&broker.bootstrap, &[]).fill(&early_topic, 0, ["later".to_owned()]);
    let (plan, history, fatal) = load.finish();
    let verdict = load::audit(&broker.bootstrap, &plan, history);
    println!(
        "full disk, {what}: full after {acked_when_full} records, told as {errors:?}, back in \
         {:?}; {verdict}",
        back.unwrap_or_default()
    );
    drop(broker);
    assert!(verdict.is_clean(), "{verdict}");
    assert!(fatal.is_empty(), "producers gave up: {fatal:?}");
}

#[test]
fn space_comes_back_from_outside() {
    check("a file removed", |_, filler, _, _| {
        std::fs::remove_file(filler).expect("the filler goes");
    });
}

#[test]
fn space_comes_back_by_deleting_records() {
    check("records deleted", |broker, _, plan, _| {
        let admin = Admin::new(&broker.bootstrap);
        for partition in 0..plan.partitions {
            let (_, high) = client::watermarks(&broker.bootstrap, &plan.topic, partition);
            let deleted = admin.delete_records(&plan.topic, partition, Offset::Offset(high));
            assert_eq!(deleted, Ok(high));
        }
    });
}

#[test]
fn space_comes_back_by_deleting_a_topic() {
    check("a topic deleted", |broker, _, _, ballast| {
        assert_eq!(Admin::new(&broker.bootstrap).delete(ballast), Ok(()));
    });
}

//! What a restart must keep, after a clean stop and after kill -9.

use std::time::{Duration, Instant};

use compat_tests::broker::Broker;
use compat_tests::client::{self, Admin, Got, PATIENCE, Rec, Sender};
use compat_tests::differ::rules::now_ms;
use rdkafka::Offset;
use rdkafka::admin::ResourceSpecifier;
use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::RDKafkaErrorCode as Code;

/// Runs `before`, the restart, and `after` with what `before` gave.
fn check<T>(leave: fn(&mut Broker), before: impl FnOnce(&str) -> T, after: impl FnOnce(&str, T)) {
    let Some(mut broker) = Broker::restartable(&[]) else { return };
    let kept = before(&broker.bootstrap);
    leave(&mut broker);
    broker.resume();
    after(&broker.bootstrap, kept);
}

fn fill(bootstrap: &str, codec: &str) -> String {
    let topic = Admin::new(bootstrap).topic(2, &[]);
    let sender = Sender::new(bootstrap, &[("compression.type", codec)]);
    for partition in 0..2 {
        sender.fill(&topic, partition, (0..100).map(|n| n.to_string()));
    }
    topic
}

fn records_are_there(bootstrap: &str, topic: &str) {
    for partition in 0..2 {
        let got = client::read(bootstrap, topic, partition, 100);
        assert!(got.iter().enumerate().all(|(n, got)| got.text() == n.to_string()));
        assert_eq!(client::watermarks(bootstrap, topic, partition), (0, 100));
    }
    Sender::new(bootstrap, &[]).fill(topic, 0, ["next".to_owned()]);
    let more = client::poll(&client::assigned(bootstrap, topic, 0, Offset::Offset(100)), 1);
    assert_eq!(more[0].text(), "next");
}

#[test]
fn stop_keeps_records() {
    check(Broker::stop, |at| fill(at, "none"), |at, topic| records_are_there(at, &topic));
}

#[test]
fn kill_keeps_records() {
    check(Broker::kill, |at| fill(at, "none"), |at, topic| records_are_there(at, &topic));
}

#[test]
fn kill_keeps_compressed_records() {
    check(Broker::kill, |at| fill(at, "zstd"), |at, topic| records_are_there(at, &topic));
}

#[test]
fn kill_keeps_keys_headers_and_times() {
    let write = |at: &str| {
        let topic = Admin::new(at).topic(1, &[]);
        let rec = Rec::to(&topic).partition(0).key("k").value("v").header("h", Some(b"1"));
        Sender::new(at, &[]).send_one(&rec.timestamp(now_ms() - 3_600_000)).expect("sent");
        (client::read(at, &topic, 0, 1), topic)
    };
    check(Broker::kill, write, |at, (want, topic): (Vec<Got>, String)| {
        assert_eq!(client::read(at, &topic, 0, 1), want);
    });
}

fn topics_are_the_same(leave: fn(&mut Broker)) {
    let make = |at: &str| {
        let admin = Admin::new(at);
        let (kept, gone) = (admin.topic(5, &[]), admin.topic(1, &[]));
        admin.delete(&gone).expect("deleted");
        admin.add_partitions(&kept, 7).expect("added");
        (kept, gone)
    };
    check(leave, make, |at, (kept, gone)| {
        let admin = Admin::new(at);
        assert_eq!(admin.create(&kept, 1, &[]), Err(Code::TopicAlreadyExists));
        let probe = client::consumer(at, "probe", &[]);
        let metadata = probe.fetch_metadata(None, PATIENCE).expect("metadata");
        let of = |name: &str| metadata.topics().iter().find(|topic| topic.name() == name);
        assert_eq!(of(&kept).map(|topic| topic.partitions().len()), Some(7));
        assert!(of(&gone).is_none());
    });
}

#[test]
fn stop_keeps_topics() {
    topics_are_the_same(Broker::stop);
}

#[test]
fn kill_keeps_topics() {
    topics_are_the_same(Broker::kill);
}

fn configs_are_the_same(leave: fn(&mut Broker)) {
    let make = |at: &str| {
        let admin = Admin::new(at);
        let topic = admin.topic(1, &[("retention.ms", "11111111")]);
        let set = [("retention.ms", "22222222"), ("cleanup.policy", "compact")];
        admin.alter(ResourceSpecifier::Topic(&topic), &set).expect("altered");
        topic
    };
    check(leave, make, |at, topic| {
        let admin = Admin::new(at);
        assert_eq!(admin.setting(&topic, "retention.ms").as_deref(), Some("22222222"));
        assert_eq!(admin.setting(&topic, "cleanup.policy").as_deref(), Some("compact"));
    });
}

#[test]
fn stop_keeps_configs() {
    configs_are_the_same(Broker::stop);
}

#[test]
fn kill_keeps_configs() {
    configs_are_the_same(Broker::kill);
}

fn offsets_are_the_same(leave: fn(&mut Broker)) {
    let make = |at: &str| {
        let topic = fill(at, "none");
        let consumer = client::consumer(at, "the-group", &[]);
        let places =
            client::list(&[(&topic, 0, Offset::Offset(42)), (&topic, 1, Offset::Offset(7))]);
        consumer.commit(&places, CommitMode::Sync).expect("committed");
        topic
    };
    check(leave, make, |at, topic| {
        let consumer = client::consumer(at, "the-group", &[]);
        consumer.subscribe(&[&topic]).expect("subscribed");
        let mut first = std::collections::BTreeMap::new();
        while first.len() < 2 {
            for got in client::poll(&consumer, 1) {
                first.entry(got.partition).or_insert(got.offset);
            }
        }
        assert_eq!(first.into_iter().collect::<Vec<_>>(), [(0, 42), (1, 7)]);
    });
}

#[test]
fn stop_keeps_committed_offsets() {
    offsets_are_the_same(Broker::stop);
}

#[test]
fn kill_keeps_committed_offsets() {
    offsets_are_the_same(Broker::kill);
}

/// A member reads on through the restart without doing anything.
fn member_goes_on(leave: fn(&mut Broker)) {
    let Some(mut broker) = Broker::restartable(&[]) else { return };
    let at = broker.bootstrap.clone();
    let topic = fill(&at, "none");
    let consumer = client::consumer(&at, "the-group", &[("session.timeout.ms", "20000")]);
    consumer.subscribe(&[&topic]).expect("subscribed");
    client::poll(&consumer, 200);
    consumer.commit_consumer_state(CommitMode::Sync).expect("committed");
    leave(&mut broker);
    broker.resume();
    Sender::new(&at, &[]).fill(&topic, 0, ["after".to_owned()]);
    assert_eq!(client::poll(&consumer, 1)[0].text(), "after");
}

#[test]
fn stop_lets_members_go_on() {
    member_goes_on(Broker::stop);
}

#[test]
fn kill_lets_members_go_on() {
    member_goes_on(Broker::kill);
}

#[test]
fn stop_keeps_deleted_records_deleted() {
    let make = |at: &str| {
        let topic = fill(at, "none");
        assert_eq!(Admin::new(at).delete_records(&topic, 0, Offset::Offset(60)), Ok(60));
        topic
    };
    // Kafka writes the start of a log down once a minute and when it stops.
    check(Broker::stop, make, |at, topic| {
        assert_eq!(client::watermarks(at, &topic, 0), (60, 100));
    });
}

#[test]
fn kill_keeps_deleted_groups_deleted() {
    let make = |at: &str| {
        let topic = fill(at, "none");
        let consumer = client::consumer(at, "gone", &[]);
        let place = client::list(&[(&topic, 0, Offset::Offset(42))]);
        consumer.commit(&place, CommitMode::Sync).expect("committed");
        drop(consumer);
        Admin::new(at).delete_group("gone").expect("deleted");
        topic
    };
    check(Broker::kill, make, |at, topic| {
        let consumer = client::consumer(at, "gone", &[]);
        let ask = client::list(&[(&topic, 0, Offset::Invalid)]);
        let mut found = None;
        client::until("the coordinator is back", || {
            match consumer.committed_offsets(ask.clone(), PATIENCE) {
                Ok(answer) => found = Some(answer),
                // Its partition is not open yet; the client passes that on instead of asking again.
                Err(error) => assert_eq!(client::code(&error), Code::NotCoordinator),
            }
            found.is_some()
        });
        let found = found.expect("an answer");
        assert_eq!(found.find_partition(&topic, 0).expect("it").offset(), Offset::Invalid);
    });
}

#[test]
fn cluster_id_stays() {
    let id = |at: &str| {
        let probe = client::consumer(at, "probe", &[]);
        probe.client().fetch_cluster_id(PATIENCE).expect("an id")
    };
    check(Broker::kill, id, |at, want| assert_eq!(id(at), want));
}

#[test]
fn stop_is_quick_with_clients_connected() {
    let Some(mut broker) = Broker::restartable(&[]) else { return };
    let topic = fill(&broker.bootstrap, "none");
    let consumer = client::consumer(
        &broker.bootstrap,
        "g",
        &[("fetch.wait.max.ms", "20000"), ("socket.timeout.ms", "60000")],
    );
    consumer.subscribe(&[&topic]).expect("subscribed");
    client::poll(&consumer, 200);
    let started = std::time::Instant::now();
    broker.stop();
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
}

/// Containers are killed ten seconds after they were asked to stop.
#[test]
fn stop_with_many_partitions_is_quick() {
    const PARTITIONS: i32 = 200;
    let Some(mut broker) = Broker::restartable(&[]) else { return };
    let topic = Admin::new(&broker.bootstrap).topic(PARTITIONS, &[]);
    let sender = Sender::new(&broker.bootstrap, &[]);
    for partition in 0..PARTITIONS {
        sender.send(&Rec::to(&topic).partition(partition).value("v")).expect("queued");
    }
    sender.arrive();
    let asked = Instant::now();
    broker.stop();
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(10), "stopping took {took:?}");
    broker.resume();
    for partition in [0, PARTITIONS - 1] {
        assert_eq!(client::read(&broker.bootstrap, &topic, partition, 1)[0].text(), "v");
    }
}

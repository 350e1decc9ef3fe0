//! The idempotent producer: in order, once, and through a restart of the broker.

use std::sync::OnceLock;
use std::time::Duration;

use compat_tests::broker::Broker;
use compat_tests::client::{self, Admin, Got, Rec, Sender};
use compat_tests::load::{self, Load, Plan};

fn broker() -> &'static str {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    &BROKER.get_or_init(Broker::shared).bootstrap
}

const IDEMPOTENT: (&str, &str) = ("enable.idempotence", "true");

/// 1,000 records in small batches, in order and once.
fn check_in_order(settings: &[(&str, &str)]) {
    let topic = Admin::new(broker()).topic(1, &[]);
    let mut all = vec![IDEMPOTENT, ("batch.num.messages", "10")];
    all.extend_from_slice(settings);
    let sender = Sender::new(broker(), &all);
    sender.fill(&topic, 0, (0..1000).map(|n| n.to_string()));
    let got = client::read(broker(), &topic, 0, 1000);
    assert!(got.iter().enumerate().all(|(n, got)| got.text() == n.to_string()));
    assert_eq!(client::watermarks(broker(), &topic, 0), (0, 1000));
}

#[test]
fn in_order_with_one_in_flight() {
    check_in_order(&[("max.in.flight", "1")]);
}

#[test]
fn in_order_with_five_in_flight() {
    check_in_order(&[("max.in.flight", "5")]);
}

#[test]
fn in_order_compressed() {
    check_in_order(&[("compression.type", "lz4")]);
}

#[test]
fn in_order_gapless() {
    check_in_order(&[("enable.gapless.guarantee", "true")]);
}

#[test]
fn many_partitions_of_one_producer() {
    let topic = Admin::new(broker()).topic(8, &[]);
    let sender = Sender::new(broker(), &[IDEMPOTENT, ("linger.ms", "5")]);
    for n in 0..800 {
        let rec = Rec::to(&topic).partition(n % 8).value((n / 8).to_string());
        sender.send(&rec).expect("queue");
    }
    sender.arrive();
    for partition in 0..8 {
        let got: Vec<String> =
            client::read(broker(), &topic, partition, 100).iter().map(Got::text).collect();
        assert_eq!(got, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn many_producers_of_one_partition() {
    let topic = Admin::new(broker()).topic(1, &[]);
    for n in 0..20 {
        let sender = Sender::new(broker(), &[IDEMPOTENT]);
        let sent = sender.send_one(&Rec::to(&topic).partition(0).value("x"));
        assert_eq!(sent, Ok((0, n)));
    }
}

#[test]
fn goes_on_after_a_refused_record() {
    let topic = Admin::new(broker()).topic(1, &[("max.message.bytes", "1000")]);
    let sender = Sender::new(broker(), &[IDEMPOTENT, ("batch.num.messages", "1")]);
    let rec = Rec::to(&topic).partition(0);
    assert_eq!(sender.send_one(&rec.clone().value("a")), Ok((0, 0)));
    assert!(sender.send_one(&rec.clone().value("x".repeat(5000))).is_err());
    assert_eq!(sender.send_one(&rec.value("b")), Ok((0, 1)));
}

#[test]
fn load_is_clean_without_faults() {
    let topic = Admin::new(broker()).topic(2, &[]);
    let load = Load::start(broker(), Plan::new(&topic));
    load.wait_acked(3000, client::PATIENCE).expect("3,000 records");
    let (plan, history, fatal) = load.finish();
    let verdict = load::audit(broker(), &plan, history);
    assert!(verdict.is_clean() && fatal.is_empty(), "{verdict} {fatal:?}");
    assert_eq!(verdict.acked, verdict.read);
}

/// A producer sends, the broker goes and comes back, the producer goes on: once and in order.
fn check_restart(leave: fn(&mut Broker)) {
    let Some(mut broker) = Broker::restartable(&[]) else { return };
    let topic = Admin::new(&broker.bootstrap).topic(1, &[]);
    let sender = Sender::new(&broker.bootstrap, &[IDEMPOTENT]);
    for round in 0..3 {
        for n in 0..50 {
            let value = format!("{round}-{n}");
            sender.send(&Rec::to(&topic).partition(0).value(value)).expect("queue");
        }
        std::thread::sleep(Duration::from_millis(10));
        leave(&mut broker);
        broker.resume();
    }
    sender.arrive();
    let got: Vec<String> =
        client::read(&broker.bootstrap, &topic, 0, 150).iter().map(Got::text).collect();
    let want: Vec<String> =
        (0..3).flat_map(|round| (0..50).map(move |n| format!("{round}-{n}"))).collect();
    assert_eq!(got, want);
    assert_eq!(client::watermarks(&broker.bootstrap, &topic, 0), (0, 150));
}

#[test]
fn through_a_clean_restart() {
    check_restart(Broker::stop);
}

#[test]
fn through_a_kill() {
    check_restart(Broker::kill);
}

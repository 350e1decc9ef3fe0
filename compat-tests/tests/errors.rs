//! What clients are told when they ask for what is not there or not allowed.

use std::sync::OnceLock;
use std::time::Duration;

use compat_tests::broker::Broker;
use compat_tests::client::{self, Admin, PATIENCE, Rec, Sender};
use compat_tests::settings::unique;
use rdkafka::Offset;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::RDKafkaErrorCode as Code;

fn broker() -> &'static str {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    &BROKER.get_or_init(Broker::shared).bootstrap
}

#[test]
fn produce_to_an_unknown_partition() {
    let topic = Admin::new(broker()).topic(2, &[]);
    let sender = Sender::new(broker(), &[]);
    let sent = sender.send_one(&Rec::to(&topic).partition(7).value("x"));
    assert_eq!(sent, Err(Code::UnknownPartition));
}

#[test]
fn produce_to_an_invalid_name() {
    let sender = Sender::new(broker(), &[("message.timeout.ms", "5000")]);
    let sent = sender.send_one(&Rec::to("no good").value("x"));
    let refused = [Code::InvalidTopic, Code::UnknownTopic, Code::MessageTimedOut];
    assert!(refused.map(Err).contains(&sent), "{sent:?}");
}

#[test]
fn consume_an_unknown_topic() {
    let settings =
        [("allow.auto.create.topics", "false"), ("topic.metadata.propagation.max.ms", "0")];
    let consumer = client::consumer(broker(), &unique("g"), &settings);
    consumer.subscribe(&[&unique("never")]).expect("subscribed");
    assert_eq!(client::poll_error(&consumer), Code::UnknownTopicOrPartition);
}

#[test]
fn consume_an_unknown_partition() {
    let topic = Admin::new(broker()).topic(1, &[]);
    let consumer = client::assigned(broker(), &topic, 9, Offset::Beginning);
    assert_eq!(client::poll_error(&consumer), Code::UnknownPartition);
}

#[test]
fn watermarks_of_an_unknown_partition() {
    let topic = Admin::new(broker()).topic(1, &[]);
    let probe: BaseConsumer = client::base(broker()).create().expect("no client");
    let error = probe.fetch_watermarks(&topic, 9, Duration::from_secs(5)).expect_err("unknown");
    assert_eq!(client::code(&error), Code::UnknownPartition);
}

#[test]
fn metadata_of_an_unknown_topic_without_creation() {
    let mut config = client::base(broker());
    config.set("allow.auto.create.topics", "false");
    let probe: BaseConsumer = config.create().expect("no client");
    let topic = unique("never");
    let metadata = probe.fetch_metadata(Some(&topic), PATIENCE).expect("an answer");
    let error = metadata.topics()[0].error().map(Code::from);
    assert_eq!(error, Some(Code::UnknownTopicOrPartition));
}

#[test]
fn metadata_of_an_invalid_name() {
    let probe: BaseConsumer = client::base(broker()).create().expect("no client");
    let metadata = probe.fetch_metadata(Some("no good"), PATIENCE).expect("an answer");
    assert_eq!(metadata.topics()[0].error().map(Code::from), Some(Code::InvalidTopic));
}

#[test]
fn committed_offset_of_an_unknown_group() {
    let topic = Admin::new(broker()).topic(1, &[]);
    let consumer = client::consumer(broker(), &unique("g"), &[]);
    let ask = client::list(&[(&topic, 0, Offset::Invalid)]);
    let found = consumer.committed_offsets(ask, PATIENCE).expect("an answer");
    assert_eq!(found.find_partition(&topic, 0).expect("it").offset(), Offset::Invalid);
}

#[test]
fn commit_to_an_unknown_partition() {
    let consumer = client::consumer(broker(), &unique("g"), &[]);
    let place = client::list(&[(&unique("never"), 0, Offset::Offset(1))]);
    let error = consumer.commit(&place, CommitMode::Sync).expect_err("unknown");
    assert_eq!(client::code(&error), Code::UnknownTopicOrPartition);
}

#[test]
fn session_timeout_out_of_bounds() {
    let topic = Admin::new(broker()).topic(1, &[]);
    let settings = [
        ("session.timeout.ms", "3600000"),
        ("max.poll.interval.ms", "3600001"),
        ("heartbeat.interval.ms", "3000"),
    ];
    let consumer = client::consumer(broker(), &unique("g"), &settings);
    consumer.subscribe(&[&topic]).expect("subscribed");
    assert_eq!(client::poll_error(&consumer), Code::InvalidSessionTimeout);
}

#[test]
fn assignors_without_a_common_one() {
    let topic = Admin::new(broker()).topic(1, &[]);
    Sender::new(broker(), &[]).fill(&topic, 0, ["x".to_owned()]);
    let group = unique("g");
    let settings = [("partition.assignment.strategy", "range")];
    let first = client::consumer(broker(), &group, &settings);
    first.subscribe(&[&topic]).expect("subscribed");
    client::poll(&first, 1);
    let settings = [("partition.assignment.strategy", "cooperative-sticky")];
    let second = client::consumer(broker(), &group, &settings);
    second.subscribe(&[&topic]).expect("subscribed");
    assert_eq!(client::poll_error(&second), Code::InconsistentGroupProtocol);
}

#[test]
fn group_at_work_takes_no_foreign_commit() {
    let topic = Admin::new(broker()).topic(1, &[]);
    Sender::new(broker(), &[]).fill(&topic, 0, ["x".to_owned()]);
    let group = unique("g");
    let member = client::consumer(broker(), &group, &[]);
    member.subscribe(&[&topic]).expect("subscribed");
    client::poll(&member, 1);
    let stranger = client::consumer(broker(), &group, &[]);
    let place = client::list(&[(&topic, 0, Offset::Offset(1))]);
    let error = stranger.commit(&place, CommitMode::Sync).expect_err("not a member");
    assert_eq!(client::code(&error), Code::UnknownMemberId);
}

#[test]
fn producing_while_the_topic_is_deleted_ends() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    let sender = Sender::new(broker(), &[("message.timeout.ms", "5000")]);
    sender.send_one(&Rec::to(&topic).partition(0).value("x")).expect("sent");
    admin.delete(&topic).expect("deleted");
    // The broker may make it anew when asked for metadata; either end is right, hanging is not.
    let sent = sender.send_one(&Rec::to(&topic).partition(0).value("y"));
    let known = [Code::UnknownTopicOrPartition, Code::UnknownTopic, Code::MessageTimedOut];
    match sent {
        Ok(_) => {}
        Err(error) => {
            assert!(known.contains(&error) || error == Code::UnknownPartition, "{error:?}");
        }
    }
}

#[test]
fn nobody_listens() {
    let mut config = client::base("127.0.0.1:1");
    config.set("log_level", "0");
    let probe: BaseConsumer = config.create().expect("no client");
    let error = probe.fetch_metadata(None, Duration::from_secs(1)).expect_err("nobody");
    let refused = [Code::BrokerTransportFailure, Code::OperationTimedOut, Code::AllBrokersDown];
    assert!(refused.contains(&client::code(&error)), "{error}");
}

#[test]
fn a_broken_client_does_not_disturb_others() {
    use std::io::Write;
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0, 0, 0, 4, 0, 3], &[]] {
        let mut socket = std::net::TcpStream::connect(broker()).expect("connects");
        let _ = socket.write_all(bytes);
    }
    let topic = Admin::new(broker()).topic(1, &[]);
    let sent = Sender::new(broker(), &[]).send_one(&Rec::to(&topic).partition(0).value("x"));
    assert_eq!(sent, Ok((0, 0)));
}

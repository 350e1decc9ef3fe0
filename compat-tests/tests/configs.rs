//! DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, and that a setting acts.

use std::sync::OnceLock;

use compat_tests::broker::Broker;
use compat_tests::client::{self, Admin, Rec, Sender};
use compat_tests::incremental::{Change, alter_topic};
use compat_tests::settings::unique;
use rdkafka::admin::{ConfigSource, ResourceSpecifier};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode as Code;

fn broker() -> &'static str {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    &BROKER.get_or_init(Broker::shared).bootstrap
}

fn broker_id() -> i32 {
    let probe: BaseConsumer = client::base(broker()).create().expect("no client");
    probe.fetch_metadata(None, client::PATIENCE).expect("metadata").brokers()[0].id()
}

#[test]
fn defaults_of_a_topic() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    let want = [
        ("cleanup.policy", "delete"),
        ("compression.type", "producer"),
        ("retention.ms", "604800000"),
        ("segment.bytes", "1073741824"),
        ("min.insync.replicas", "1"),
        ("message.timestamp.type", "CreateTime"),
    ];
    for (name, value) in want {
        assert_eq!(admin.setting(&topic, name).as_deref(), Some(value), "{name}");
    }
}

#[test]
fn what_was_set_is_described_with_its_source() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[("retention.ms", "12345678")]);
    let all = admin.settings(&topic);
    let set = all.get("retention.ms").expect("an entry");
    assert_eq!(set.value.as_deref(), Some("12345678"));
    assert_eq!(set.source, ConfigSource::DynamicTopic);
    assert!(!set.is_default && !set.is_read_only && !set.is_sensitive);
    let unset = all.get("cleanup.policy").expect("an entry");
    assert_eq!(unset.source, ConfigSource::Default);
}

#[test]
fn every_topic_setting_of_kafka_is_described() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    let all = admin.settings(&topic);
    let names = "cleanup.policy compression.type delete.retention.ms file.delete.delay.ms \
        flush.messages flush.ms index.interval.bytes max.compaction.lag.ms max.message.bytes \
        message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.type \
        min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate \
        retention.bytes retention.ms segment.bytes segment.index.bytes segment.jitter.ms \
        segment.ms unclean.leader.election.enable";
    for name in names.split_whitespace() {
        assert!(all.get(name).is_some(), "{name}");
    }
}

#[test]
fn settings_of_the_broker() {
    let admin = Admin::new(broker());
    let all = admin.describe(&ResourceSpecifier::Broker(broker_id())).expect("described");
    let id = all.get("node.id").or(all.get("broker.id")).expect("it has an id");
    assert_eq!(id.value, Some(broker_id().to_string()));
    for name in ["num.partitions", "message.max.bytes", "log.retention.ms", "listeners"] {
        assert!(all.get(name).is_some(), "{name}");
    }
}

#[test]
fn describe_an_unknown_topic() {
    // The rdkafka crate drops the error of a single resource; what is left has no entries.
    let described = Admin::new(broker()).describe(&ResourceSpecifier::Topic(&unique("never")));
    assert!(described.map_or(true, |all| all.entries.is_empty()));
}

#[test]
fn alter_replaces_all() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[("retention.ms", "11111111"), ("segment.bytes", "2000000")]);
    let what = ResourceSpecifier::Topic(&topic);
    admin.alter(what, &[("retention.ms", "22222222")]).expect("altered");
    client::until("the change", || {
        admin.setting(&topic, "retention.ms").as_deref() == Some("22222222")
    });
    assert_eq!(admin.setting(&topic, "segment.bytes").as_deref(), Some("1073741824"));
}

#[test]
fn alter_with_a_bad_value_changes_nothing() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[("retention.ms", "11111111")]);
    // The rdkafka crate drops this error, too; `incremental_bad_value` sees one.
    for set in [[("retention.ms", "soon")], [("no.such.thing", "1")]] {
        let _ = admin.alter(ResourceSpecifier::Topic(&topic), &set);
    }
    assert_eq!(admin.setting(&topic, "retention.ms").as_deref(), Some("11111111"));
}

#[test]
fn alter_validated_only() {
    let admin = Admin::new(broker()).validating();
    let topic = Admin::new(broker()).topic(1, &[]);
    admin.alter(ResourceSpecifier::Topic(&topic), &[("retention.ms", "5")]).expect("valid");
    assert_eq!(admin.setting(&topic, "retention.ms").as_deref(), Some("604800000"));
}

#[test]
fn incremental_set_keeps_the_others() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[("segment.bytes", "2000000")]);
    let change = [Change::Set("retention.ms", "33333333")];
    alter_topic(admin.client(), &topic, &change).expect("altered");
    client::until("the change", || {
        admin.setting(&topic, "retention.ms").as_deref() == Some("33333333")
    });
    assert_eq!(admin.setting(&topic, "segment.bytes").as_deref(), Some("2000000"));
}

#[test]
fn incremental_delete_goes_back_to_the_default() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[("retention.ms", "44444444")]);
    alter_topic(admin.client(), &topic, &[Change::Delete("retention.ms")]).expect("altered");
    client::until("the default", || {
        admin.setting(&topic, "retention.ms").as_deref() == Some("604800000")
    });
}

#[test]
fn incremental_append_and_subtract() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[("cleanup.policy", "delete")]);
    alter_topic(admin.client(), &topic, &[Change::Append("cleanup.policy", "compact")])
        .expect("appended");
    client::until("both", || {
        admin.setting(&topic, "cleanup.policy").as_deref() == Some("delete,compact")
    });
    alter_topic(admin.client(), &topic, &[Change::Subtract("cleanup.policy", "delete")])
        .expect("subtracted");
    client::until("one", || admin.setting(&topic, "cleanup.policy").as_deref() == Some("compact"));
}

#[test]
fn incremental_append_to_what_is_no_list() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    let done = alter_topic(admin.client(), &topic, &[Change::Append("retention.ms", "1")]);
    assert_eq!(done, Err(Code::InvalidConfig));
}

#[test]
fn incremental_bad_value() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    let done = alter_topic(admin.client(), &topic, &[Change::Set("retention.ms", "-7")]);
    assert_eq!(done, Err(Code::InvalidConfig));
}

#[test]
fn incremental_unknown_topic() {
    let admin = Admin::new(broker());
    let change = [Change::Set("retention.ms", "1000000")];
    let done = alter_topic(admin.client(), &unique("never"), &change);
    assert_eq!(done, Err(Code::UnknownTopicOrPartition));
}

#[test]
fn a_changed_limit_acts() {
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    let sender = Sender::new(broker(), &[("batch.num.messages", "1")]);
    let rec = Rec::to(&topic).partition(0).value("x".repeat(5000));
    sender.send_one(&rec).expect("allowed");
    alter_topic(admin.client(), &topic, &[Change::Set("max.message.bytes", "1000")]).expect("set");
    client::until("refused", || sender.send_one(&rec) == Err(Code::MessageSizeTooLarge));
    alter_topic(admin.client(), &topic, &[Change::Delete("max.message.bytes")]).expect("unset");
    client::until("allowed again", || sender.send_one(&rec).is_ok());
}

#[test]
fn a_changed_timestamp_type_acts() {
    use rdkafka::message::Timestamp;
    let admin = Admin::new(broker());
    let topic = admin.topic(1, &[]);
    let change = [Change::Set("message.timestamp.type", "LogAppendTime")];
    alter_topic(admin.client(), &topic, &change).expect("set");
    let sender = Sender::new(broker(), &[]);
    client::until("the broker's time", || {
        let (_, offset) = sender.send_one(&Rec::to(&topic).partition(0).value("x")).expect("sent");
        let from = rdkafka::Offset::Offset(offset);
        let consumer = client::assigned(broker(), &topic, 0, from);
        matches!(client::poll(&consumer, 1)[0].timestamp, Timestamp::LogAppendTime(_))
    });
}

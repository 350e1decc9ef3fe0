//! DescribeConfigs against the recorded answers of Apache Kafka 4.4.0, and cases over ladders.

use std::collections::BTreeMap;

use kraft::controller::Refusal;
use kraft::image::{Configs, Image};
use protocol_compat::error::ErrorCode;

use super::*;

const RECORDED: &str = include_str!("kafka-4.4-described.txt");

/// The settings of the node whose answers were recorded.
pub(super) const SETTINGS: &str = "
    process.roles=broker,controller
    node.id=0
    controller.quorum.bootstrap.servers=127.0.0.1:19093
    listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093
    controller.listener.names=CONTROLLER
    num.partitions=4
    offsets.topic.replication.factor=1
    transaction.state.log.replication.factor=1
    transaction.state.log.min.isr=1
    share.coordinator.state.topic.replication.factor=1
    share.coordinator.state.topic.min.isr=1
    group.initial.rebalance.delay.ms=0
    authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
    allow.everyone.if.no.acl.found=true
    super.users=User:ANONYMOUS
    log.retention.check.interval.ms=1000
    log.initial.task.delay.ms=500
    log.cleaner.backoff.ms=500
    transaction.abort.timed.out.transaction.cleanup.interval.ms=500
    transaction.remove.expired.transaction.cleanup.interval.ms=10000";

/// Where Gracchus means to answer otherwise; each is in docs/differences.md.
const OTHERWISE: [&str; 2] = ["flush.messages", "log.flush.interval.messages"];

pub(super) fn configs(text: &str) -> Arc<Configs> {
    let pairs = text.split(';').filter(|pair| !pair.trim().is_empty());
    let split = |pair: &str| {
        let (key, value) = pair.split_once('=').expect("key=value");
        (key.trim().into(), value.into())
    };
    Arc::new(pairs.map(split).collect())
}

pub(super) fn dynamic(file: &str, cluster: &str, broker: &str) -> DynamicConfig {
    let (dynamic, notices) =
        DynamicConfig::new(Arc::new(good(file).config), configs(cluster), configs(broker));
    assert_eq!(notices, []);
    dynamic
}

const ALL: Wanted<'static> = Wanted { names: &[], synonyms: true, docs: true };

fn line(entry: &Entry) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "null".to_owned());
    let rung = |s: &Synonym| format!("{}:{}={}", s.source.code(), s.name, text(&s.value));
    [
        entry.name.clone(),
        text(&entry.value),
        if entry.read_only { "ro" } else { "rw" }.to_owned(),
        entry.source.code().to_string(),
        if entry.sensitive { "secret" } else { "plain" }.to_owned(),
        entry.kind.code().to_string(),
        entry.synonyms.iter().map(rung).collect::<Vec<_>>().join(" "),
    ]
    .join("|")
}

/// Compares with a chapter of the recording; `?` in it matches anything.
#[track_caller]
fn check_recorded(chapter: &str, entries: &[Entry]) {
    let header = format!("== {chapter}\n");
    let (_, rest) = RECORDED.split_once(&header).expect("the chapter is there");
    let wanted: Vec<&str> = rest.lines().take_while(|line| !line.starts_with("==")).collect();
    let found: Vec<String> = entries.iter().map(line).collect();
    let names = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|l| l.split('|').next().unwrap_or("").to_owned()).collect()
    };
    let wanted_lines: Vec<String> = wanted.iter().map(|line| (*line).to_owned()).collect();
    assert_eq!(names(&found), names(&wanted_lines), "the names of {chapter}");
    for (found, wanted) in found.iter().zip(wanted) {
        let agree = found.split('|').zip(wanted.split('|')).all(|(f, w)| w == "?" || f == w);
        let name = found.split('|').next().unwrap_or("");
        assert_eq!(agree, !OTHERWISE.contains(&name), "{chapter}\n ours  {found}\n Kafka {wanted}");
    }
}

#[test]
fn answers_as_kafka_does() {
    let dynamic = dynamic(SETTINGS, "min.insync.replicas=1", "");
    check_recorded("broker", &dynamic.describe_broker(ALL));
    let topic = configs("cleanup.policy=compact;max.message.bytes=12345;retention.ms=-1");
    check_recorded("topic", &dynamic.describe_topic(&topic, ALL));
    check_recorded("group", &dynamic.describe_group(&configs(""), ALL));
    check_recorded("client metrics", &dynamic.describe_client_metrics(&configs(""), ALL));
}

/// One entry of a broker, or with a topic's overrides of that topic.
#[track_caller]
fn check(dynamic: &DynamicConfig, topic: Option<&str>, name: &str, want: &str) {
    let names = [name.to_owned()];
    let wanted = Wanted { names: &names, ..ALL };
    let entries = match topic {
        Some(overrides) => dynamic.describe_topic(&configs(overrides), wanted),
        None => dynamic.describe_broker(wanted),
    };
    let found = match entries.as_slice() {
        [] => "nothing".to_owned(),
        [entry] => {
            let line = line(entry);
            line.split_once('|').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
        }
        more => panic!("{} entries for {name}", more.len()),
    };
    assert_eq!(found, want, "{name}");
}

#[test]
fn ladders_have_kafkas_corners() {
    let cluster = "no.such.default=7;log.cleaner.io.max.bytes.per.second=1e9;\
        log.cleanup.policy= delete , compact;leader.replication.throttled.rate= 123;\
        log.retention.ms=5000000;log.segment.bytes= 1073741823 ";
    let broker = "no.such.key=5;listener.name.plaintext.max.connections=100000";
    let file = "log.retention.hours=5\nsuper.users=User:a\nlistener.name.x.ssl.key.password=y";
    let d = dynamic(file, cluster, broker);
    let cases = [
        (None, "no.such.key", "null|ro|2|secret|0|2:no.such.key=null"),
        (None, "no.such.default", "null|ro|3|secret|0|3:no.such.default=null"),
        (None, "super.users", "null|ro|4|secret|0|4:super.users=null"),
        (
            None,
            "listener.name.plaintext.max.connections",
            "100000|ro|2|plain|3|2:listener.name.plaintext.max.connections=100000 \
             5:max.connections=2147483647",
        ),
        (None, "max.connections", "2147483647|rw|5|plain|3|5:max.connections=2147483647"),
        (
            None,
            "listener.name.x.ssl.key.password",
            "null|ro|4|secret|9|4:listener.name.x.ssl.key.password=null",
        ),
        (
            None,
            "leader.replication.throttled.rate",
            " 123|rw|3|plain|5|3:leader.replication.throttled.rate= 123",
        ),
        (None, "follower.replication.throttled.rate", "nothing"),
        (
            None,
            "log.cleaner.io.max.bytes.per.second",
            "1.0E9|rw|3|plain|6|3:log.cleaner.io.max.bytes.per.second=1e9 \
             5:log.cleaner.io.max.bytes.per.second=1.7976931348623157E308",
        ),
        (
            None,
            "log.retention.ms",
            "5000000|rw|3|plain|5|3:log.retention.ms=5000000 4:log.retention.hours=5 \
             5:log.retention.hours=168",
        ),
        (
            None,
            "log.retention.hours",
            "5|ro|4|plain|3|4:log.retention.hours=5 5:log.retention.hours=168",
        ),
        (
            Some("retention.ms= 77 "),
            "retention.ms",
            "77|rw|1|plain|5|1:retention.ms=77 3:log.retention.ms=5000000 \
             4:log.retention.hours=5 5:log.retention.hours=168",
        ),
        (
            Some(""),
            "cleanup.policy",
            "delete,compact|rw|3|plain|7|3:log.cleanup.policy= delete , compact \
             5:log.cleanup.policy=delete",
        ),
        (
            Some(""),
            "segment.bytes",
            "1073741823|rw|3|plain|3|3:log.segment.bytes= 1073741823  \
             5:log.segment.bytes=1073741824",
        ),
        (Some(""), "internal.segment.bytes", "nothing"),
        (
            Some("internal.segment.bytes=5"),
            "internal.segment.bytes",
            "5|rw|1|plain|3|1:internal.segment.bytes=5",
        ),
    ];
    for (topic, name, want) in cases {
        check(&d, topic, name, want);
    }
}

#[test]
fn names_that_stand_for_each_other() {
    // Hours alone give the value, yet neither source nor ladder.
    let d = dynamic("log.retention.hours=5", "", "");
    check(&d, None, "log.retention.ms", "null|rw|5|plain|5|");
    check(&d, Some(""), "retention.ms", "18000000|rw|5|plain|5|");
    check(&d, None, "broker.id", "0|ro|5|plain|3|5:broker.id=-1");
    let d = dynamic("broker.id=3", "", "");
    check(&d, None, "broker.id", "3|ro|4|plain|3|4:broker.id=3 5:broker.id=-1");
}

#[test]
fn the_cluster_default_shows_what_was_written() {
    let d = dynamic("", "log.cleanup.policy= delete , compact;no.such=1", "num.io.threads=4");
    let lines: Vec<String> = d.describe_cluster(ALL).iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "log.cleanup.policy| delete , compact|rw|3|plain|7|\
             3:log.cleanup.policy= delete , compact",
            "no.such|null|ro|3|secret|0|3:no.such=null",
        ]
    );
}

#[test]
fn groups_and_subscriptions_have_their_sources() {
    let d = dynamic("group.consumer.session.timeout.ms=46000", "", "");
    let names = ["consumer.session.timeout.ms".to_owned()];
    let wanted = Wanted { names: &names, ..ALL };
    let lines = |entries: Vec<Entry>| entries.iter().map(line).collect::<Vec<_>>().join("\n");
    assert_eq!(
        lines(d.describe_group(&configs("consumer.session.timeout.ms=50000"), wanted)),
        "consumer.session.timeout.ms|50000|rw|8|plain|3|8:consumer.session.timeout.ms=50000 \
         4:group.consumer.session.timeout.ms=46000 5:group.consumer.session.timeout.ms=45000"
    );
    let names = ["interval.ms".to_owned()];
    let wanted = Wanted { names: &names, ..ALL };
    assert_eq!(
        lines(d.describe_client_metrics(&configs("interval.ms=60000"), wanted)),
        "interval.ms|60000|rw|7|plain|3|7:interval.ms=60000"
    );
}

#[test]
fn docs_and_ladders_only_when_wanted() {
    let d = dynamic(SETTINGS, "", "");
    let bare = d.describe_broker(Wanted::default());
    assert!(bare.iter().all(|entry| entry.doc.is_none() && entry.synonyms.is_empty()));
    let undocumented: Vec<String> = d
        .describe_broker(ALL)
        .into_iter()
        .filter(|entry| entry.doc.is_none())
        .map(|entry| entry.name)
        .collect();
    assert_eq!(undocumented, ["allow.everyone.if.no.acl.found", "super.users"]);
}

#[test]
fn resources_that_cannot_be_described() {
    let d = dynamic("node.id=3", "", "");
    let image = Image::default();
    let loggers = BTreeMap::from([("root".to_owned(), "INFO".to_owned())]);
    let code = |kind, name| {
        let found = d.describe(kind, name, &image, &loggers, ALL);
        found.map_or_else(|Refusal { code, .. }| code, |_| ErrorCode::None)
    };
    let cases = [
        (2, "a b", ErrorCode::InvalidTopicException),
        (2, "", ErrorCode::InvalidTopicException),
        (2, "none", ErrorCode::UnknownTopicOrPartition),
        (4, "3", ErrorCode::None),
        (4, "", ErrorCode::None),
        (4, "4711", ErrorCode::InvalidRequest),
        (4, "-1", ErrorCode::InvalidRequest),
        (4, "abc", ErrorCode::InvalidRequest),
        (8, "3", ErrorCode::None),
        (8, "", ErrorCode::InvalidRequest),
        (8, "4", ErrorCode::InvalidRequest),
        (16, "m", ErrorCode::None),
        (16, "", ErrorCode::InvalidRequest),
        (32, "g", ErrorCode::None),
        (32, "", ErrorCode::InvalidRequest),
        (5, "x", ErrorCode::InvalidRequest),
    ];
    for (kind, name, want) in cases {
        assert_eq!(code(kind, name), want, "{kind} {name:?}");
    }
}

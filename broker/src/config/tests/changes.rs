//! Changes of settings against the recorded answers of Apache Kafka 4.4.0, through the checks of
//! the broker and those of the controller; what becomes of lists.

use std::collections::BTreeMap;

use kraft::controller::{
    AlterConfigs, ChangedResource, ConfigOp, Controller, ControllerReply, ControllerRequest,
    IncrementalAlterConfigs, Refusal, ReplacedResource, Settings,
};
use kraft::image::{ELR_FEATURE, Image};
use kraft::record::{ConfigRecord, ConfigResource, MetadataRecord, TopicRecord};
use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::described::{SETTINGS, dynamic};
use super::*;

const RECORDED: &str = include_str!("kafka-4.4-changes.txt");

/// Where Gracchus means to answer otherwise, with our code; each is in docs/differences.md or
/// stands for something that Gracchus does not have.
const OTHERWISE: [(&str, i16); 6] = [
    // No tiered storage, so the broker's local retention is not compared with anything.
    ("change\t4\t0\t42\tlog.local.retention.ms=999999999999", 0),
    ("change\t4\t\t42\tlog.local.retention.ms=999999999999", 0),
    // No Java classes to look for.
    ("change\t4\t0\t42\tmetric.reporters=no.such.Class", 0),
    ("change\t4\t\t42\tmetric.reporters=no.such.Class", 0),
    // Neither a number for us.
    ("change\t2\ta\t0\tmin.cleanable.dirty.ratio=NaN", 40),
    ("change\t2\ta\t0\tmin.cleanable.dirty.ratio=0x1p-1", 40),
];

/// Reads the notation that the recording explains.
fn ops(fields: &[&str]) -> Vec<ConfigOp> {
    fields.iter().filter(|field| !field.is_empty()).map(|field| op(field)).collect()
}

fn op(field: &str) -> ConfigOp {
    let (key, op, value) = match field.split_once('=') {
        None => (field.trim_end_matches('!'), 1, None),
        Some((head, value)) => {
            let (key, op) = match head.split_once('?') {
                Some((key, op)) => (key, op.parse().expect("a number")),
                None if head.ends_with('+') => (head.trim_end_matches('+'), 2),
                None if head.ends_with('-') => (head.trim_end_matches('-'), 3),
                None => (head, 0),
            };
            (key, op, Some(value))
        }
    };
    let value = value.filter(|value| *value != "<null>").map(str::to_owned);
    ConfigOp { key: key.to_owned(), op, value }
}

/// A topic `a`, and eligible leader replicas switched on as in a new cluster.
fn image() -> Image {
    let mut image = Image::default();
    let records = [
        MetadataRecord::Topic(TopicRecord { name: "a".into(), topic_id: Uuid::from_u128(1) }),
        MetadataRecord::FeatureLevel { name: ELR_FEATURE.into(), level: 1 },
        MetadataRecord::Config(ConfigRecord {
            resource: ConfigResource::default_broker(),
            key: "min.insync.replicas".into(),
            value: Some("1".into()),
        }),
    ];
    image.apply_all(1, &records).expect("the records fit");
    image
}

struct World {
    dynamic: DynamicConfig,
    controller: Controller,
    loggers: BTreeMap<String, String>,
}

impl World {
    fn new() -> World {
        let dynamic = dynamic(SETTINGS, "min.insync.replicas=1", "");
        let rules = Arc::new(dynamic.clone());
        let controller = Controller::new(image(), Settings::new(0, "cluster", rules), 0);
        let names = ["root", "kafka.server.ReplicaManager"];
        let loggers = names.map(|name| (name.to_owned(), "INFO".to_owned())).into();
        World { dynamic, controller, loggers }
    }

    fn decide(&mut self, request: &ControllerRequest) -> Result<(), Refusal> {
        let decision = self.controller.decide(0, &mut || 1, request);
        self.controller.apply_pending(&decision.records);
        match decision.reply {
            ControllerReply::AlterConfigs(mut resources)
            | ControllerReply::IncrementalAlterConfigs(mut resources) => {
                resources.pop().expect("one answer").result
            }
            other => panic!("not an answer: {other:?}"),
        }
    }

    fn change(
        &mut self,
        kind: i8,
        name: &str,
        ops: Vec<ConfigOp>,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        if kind == BROKER_LOGGER {
            return check_logger_change(&self.loggers, 0, name, &ops).map(|_| ());
        }
        if kind == 4 {
            self.dynamic.check_broker_change(name, &ops)?;
        }
        let resources = vec![ChangedResource { kind, name: name.to_owned(), ops }];
        let request = IncrementalAlterConfigs { resources, validate_only };
        self.decide(&ControllerRequest::IncrementalAlterConfigs(request))
    }

    fn replace(&mut self, kind: i8, name: &str, ops: Vec<ConfigOp>) -> Result<(), Refusal> {
        let configs: Vec<_> = ops.into_iter().map(|op| (op.key, op.value)).collect();
        if kind == 4 {
            self.dynamic.check_broker_replacement(name, &configs)?;
        }
        let resources = vec![ReplacedResource { kind, name: name.to_owned(), configs }];
        let request = AlterConfigs { resources, validate_only: true };
        self.decide(&ControllerRequest::AlterConfigs(request))
    }
}

fn code(result: &Result<(), Refusal>) -> i16 {
    result.as_ref().map_or_else(|refusal| refusal.code, |()| ErrorCode::None).code()
}

#[test]
fn answers_as_kafka_does() {
    let mut world = World::new();
    let mut wrong = Vec::new();
    for line in RECORDED.lines().skip(2) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [how, kind, name, want, ops @ ..] = fields.as_slice() else { panic!("{line}") };
        let kind = kind.parse().expect("a resource type");
        let result = match *how {
            "change" => world.change(kind, name, self::ops(ops), true),
            _ => world.replace(kind, name, self::ops(ops)),
        };
        let want: i16 = want.parse().expect("an error code");
        let ours =
            OTHERWISE.iter().find(|(known, _)| *known == line).map_or(want, |(_, code)| *code);
        if code(&result) != ours {
            wrong.push(format!("{line}\n    {result:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_exception_is_met() {
    for (line, _) in OTHERWISE {
        assert!(RECORDED.lines().any(|known| known == line), "not recorded: {line}");
    }
}

/// Applies changes to topic `a` one after the other; each is given with the overrides after it.
#[track_caller]
fn check_steps(steps: &[(&str, &str)]) {
    let mut world = World::new();
    for (change, want) in steps {
        let result = world.change(2, "a", ops(&change.split('\t').collect::<Vec<_>>()), false);
        let configs = world.controller.pending().configs(&ConfigResource::topic("a"));
        let pairs = configs.into_iter().flat_map(|configs| configs.iter());
        let now: Vec<String> = pairs.map(|(key, text)| format!("{key}={text}")).collect();
        assert_eq!(now.join(" "), *want, "{change}: {result:?}");
    }
}

#[test]
fn operations_do_what_they_say() {
    check_steps(&[
        ("retention.ms=1000000", "retention.ms=1000000"),
        ("max.message.bytes=50000", "max.message.bytes=50000 retention.ms=1000000"),
        ("retention.ms!", "max.message.bytes=50000"),
        ("retention.ms!", "max.message.bytes=50000"),
        ("max.message.bytes!", ""),
        ("cleanup.policy+=compact", "cleanup.policy=delete,compact"),
        ("cleanup.policy+=compact", "cleanup.policy=delete,compact"),
        ("cleanup.policy-=delete", "cleanup.policy=compact"),
        ("cleanup.policy-=delete", "cleanup.policy=compact"),
        ("cleanup.policy-=compact", "cleanup.policy="),
        ("cleanup.policy+=compact,delete", "cleanup.policy=compact,delete"),
        ("retention.ms+=5", "cleanup.policy=compact,delete"),
        ("retention.ms=9000\tsegment.bytes=1", "cleanup.policy=compact,delete"),
        ("cleanup.policy!", ""),
        ("leader.replication.throttled.replicas+=0:0", "leader.replication.throttled.replicas=0:0"),
        (
            "leader.replication.throttled.replicas+=1:0",
            "leader.replication.throttled.replicas=0:0,1:0",
        ),
        ("leader.replication.throttled.replicas-=0:0", "leader.replication.throttled.replicas=1:0"),
    ]);
}

/// The notices of dynamic settings that the log holds and this version does not take.
#[test]
fn what_cannot_be_read_is_left_out_and_told() {
    let fixed = Arc::new(Config::defaults());
    let cluster = super::described::configs("node.id=5;log.segment.bytes=1;num.io.threads=4");
    let (dynamic, notices) = DynamicConfig::new(fixed, cluster, Arc::default());
    let keys: Vec<&str> = notices.iter().map(|notice| notice.key.as_str()).collect();
    assert_eq!(keys, ["log.segment.bytes", "node.id"]);
    assert_eq!(dynamic.int(keys::LOG_SEGMENT_BYTES), 1 << 30);
    assert_eq!(dynamic.int(keys::NUM_IO_THREADS), 4);
}

#[test]
fn a_brokers_own_settings_win() {
    let dynamic = dynamic("message.max.bytes=5", "message.max.bytes=6", "");
    assert_eq!(dynamic.int(keys::MESSAGE_MAX_BYTES), 6);
    let dynamic = super::described::dynamic("", "message.max.bytes=6", "message.max.bytes=7");
    assert_eq!(dynamic.int(keys::MESSAGE_MAX_BYTES), 7);
}

#[test]
fn secrets_and_long_texts_stay_out_of_messages() {
    let file = "ssl.key.password=hush\nlistener.name.x.ssl.keystore.password=hush";
    let dynamic = super::described::dynamic(file, "", "listener.name.x.ssl.key.password=hush");
    assert!(!format!("{dynamic:?} {:?}", dynamic.fixed()).contains("hush"));
    let mut world = World::new();
    let long = "é".repeat(5000);
    for (kind, name, key) in
        [(2, "a", "retention.ms"), (4, "0", "message.max.bytes"), (2, "a", &long)]
    {
        let refusal = world.change(kind, name, ops(&[&format!("{key}={long}")]), true);
        let message = refusal.expect_err("a bad value").message.expect("a text");
        assert!(message.len() < 500, "{} bytes", message.len());
    }
}

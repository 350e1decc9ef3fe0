//! What tests of the controller share: partitions from text, a die, a small cluster.

use std::sync::Arc;

use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::*;
use crate::image::{Image, Partition};
use crate::record::{Endpoint, FeatureRange, decode_batch, encode_batch};

/// A partition with these replicas, all in sync and led by the first.
pub(super) fn partition(replicas: &str) -> Partition {
    let replicas: Vec<i32> = replicas.split_whitespace().map(|id| id.parse().unwrap()).collect();
    Partition {
        directories: vec![Uuid::nil(); replicas.len()],
        isr: replicas.clone(),
        leader: replicas[0],
        replicas,
        adding: Vec::new(),
        removing: Vec::new(),
        elr: Vec::new(),
        last_known_elr: Vec::new(),
        recovering: false,
        leader_epoch: 0,
        partition_epoch: 0,
    }
}

/// A partition as text: replicas, leader@epoch, ISR, and what else is not empty.
pub(super) fn show(partition: &Partition) -> String {
    let ids = |list: &[i32]| match list {
        [] => "-".to_string(),
        _ => list.iter().map(i32::to_string).collect::<Vec<_>>().join(" "),
    };
    let mut text = format!(
        "{} leader {}@{} isr {}",
        ids(&partition.replicas),
        partition.leader,
        partition.leader_epoch,
        ids(&partition.isr)
    );
    for (name, list) in [
        ("elr", &partition.elr),
        ("last", &partition.last_known_elr),
        ("adding", &partition.adding),
        ("removing", &partition.removing),
    ] {
        if !list.is_empty() {
            text += &format!(" {name} {}", ids(list));
        }
    }
    if partition.recovering {
        text += " recovering";
    }
    text
}

/// A source of chance with a seed (splitmix64).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(super) fn small(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn roll(&mut self) -> u128 {
        u128::from(self.small()) << 64 | u128::from(self.small())
    }
}

/// Rules for tests: `retention.ms` takes numbers, `cleanup.policy` is a list, `unclean...`,
/// `min...`, and for brokers anything goes.
struct TestRules;

impl ConfigRules for TestRules {
    fn check(
        &self,
        resource: &ConfigResource,
        overrides: &Configs,
        _before: &Configs,
    ) -> Result<(), (ErrorCode, String)> {
        if resource.kind == ResourceKind::Broker {
            return Ok(());
        }
        for (key, value) in overrides {
            let good = match &**key {
                "retention.ms" | "min.insync.replicas" => value.parse::<i64>().is_ok(),
                "cleanup.policy" | "unclean.leader.election.enable" => true,
                _ => {
                    let text = format!("Unknown topic config name: {key}");
                    return Err((ErrorCode::InvalidConfig, text));
                }
            };
            if !good {
                let text = format!("Invalid value {value} for configuration {key}");
                return Err((ErrorCode::InvalidConfig, text));
            }
        }
        Ok(())
    }

    fn list_default(&self, _kind: ResourceKind, key: &str) -> Option<String> {
        (key == "cleanup.policy").then(|| "delete".to_string())
    }
}

/// A controller with brokers `1..=n`, all unfenced, and all of Kafka's features. Every decision is
/// committed at once, through its bytes.
pub(super) struct Cluster {
    pub(super) controller: Controller,
    pub(super) now_ms: i64,
    dice: Dice,
    index: i64,
}

pub(super) const CLUSTER_ID: &str = "test-cluster";

impl Cluster {
    pub(super) fn new(brokers: i32) -> Cluster {
        Cluster::with(brokers, |_| {})
    }

    /// With other settings than Kafka's.
    pub(super) fn with(brokers: i32, edit: impl FnOnce(&mut Settings)) -> Cluster {
        let mut settings = Settings::new(9, CLUSTER_ID, Arc::new(TestRules));
        edit(&mut settings);
        let levels = default_levels(&settings.features);
        let first = bootstrap_records(&levels, 1);
        let image = Image::from_records(0, &first).unwrap();
        let mut cluster = Cluster {
            controller: Controller::new(image, settings, 0),
            now_ms: 0,
            dice: Dice::new(1),
            index: 0,
        };
        for id in 1..=brokers {
            cluster.start(id);
        }
        cluster
    }

    pub(super) fn image(&self) -> &Image {
        self.controller.image()
    }

    pub(super) fn index(&self) -> i64 {
        self.index
    }

    /// Commits records as one entry.
    pub(super) fn commit(&mut self, records: &[MetadataRecord]) {
        self.controller.apply_pending(records);
        let records = decode_batch(&encode_batch(records)).unwrap();
        self.index += 1;
        self.controller.commit(self.index, &records).unwrap();
        assert_eq!(self.controller.image(), self.controller.pending());
    }

    /// Decides without committing.
    pub(super) fn decide(&mut self, request: &ControllerRequest) -> Decision {
        let Cluster { controller, dice, now_ms, .. } = self;
        controller.decide(*now_ms, &mut || dice.roll(), request)
    }

    pub(super) fn ask(&mut self, request: ControllerRequest) -> ControllerReply {
        let decision = self.decide(&request);
        self.commit(&decision.records);
        decision.reply
    }

    /// Runs everything that is due.
    pub(super) fn tick(&mut self) {
        while self.controller.next_deadline() <= self.now_ms {
            let records = self.controller.tick(self.now_ms);
            self.commit(&records);
        }
    }

    pub(super) fn registration(&self, id: i32, incarnation: u128) -> RegisterBroker {
        RegisterBroker {
            broker_id: id,
            cluster_id: CLUSTER_ID.to_string(),
            incarnation_id: Uuid::from_u128(incarnation),
            endpoints: vec![Endpoint {
                name: "PLAINTEXT".into(),
                host: format!("host{id}").into(),
                port: 9092,
                security_protocol: 0,
            }],
            features: kafka_features()
                .into_iter()
                .map(|(name, (min_level, max_level))| FeatureRange { name, min_level, max_level })
                .collect(),
            rack: None,
            directories: vec![Uuid::from_u128(1_000 + id as u128)],
            previous_epoch: self.image().broker(id).map_or(-1, |broker| broker.epoch),
        }
    }

    /// Registers a broker anew and lets it catch up.
    pub(super) fn start(&mut self, id: i32) {
        self.register(id);
        self.beat(id);
    }

    /// Registers a broker anew; it stays fenced.
    pub(super) fn register(&mut self, id: i32) {
        let request = self.registration(id, self.dice_roll());
        let reply = self.ask(ControllerRequest::RegisterBroker(request));
        assert!(matches!(reply, ControllerReply::RegisterBroker(Ok(_))), "{reply:?}");
    }

    pub(super) fn dice_roll(&self) -> u128 {
        Dice::new(self.index as u64).roll()
    }

    pub(super) fn heartbeat(&self, id: i32) -> BrokerHeartbeat {
        BrokerHeartbeat {
            broker_id: id,
            broker_epoch: self.image().broker(id).map_or(-1, |broker| broker.epoch),
            applied_index: self.index,
            want_fence: false,
            want_shut_down: false,
            offline_directories: Vec::new(),
        }
    }

    /// An ordinary heartbeat of a broker that has applied everything.
    pub(super) fn beat(&mut self, id: i32) -> BrokerStatus {
        self.beat_with(id, |_| {})
    }

    pub(super) fn beat_with(
        &mut self,
        id: i32,
        edit: impl FnOnce(&mut BrokerHeartbeat),
    ) -> BrokerStatus {
        let mut request = self.heartbeat(id);
        edit(&mut request);
        match self.ask(ControllerRequest::BrokerHeartbeat(request)) {
            ControllerReply::BrokerHeartbeat(Ok(status)) => status,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn fence(&mut self, id: i32) {
        let broker_epoch = self.image().broker(id).unwrap().epoch;
        let request = FenceBroker { broker_id: id, broker_epoch };
        let reply = self.ask(ControllerRequest::FenceBroker(request));
        assert_eq!(reply, ControllerReply::FenceBroker(Ok(())));
    }

    /// Makes a topic with placed replicas.
    pub(super) fn create(&mut self, name: &str, partitions: i32, replication_factor: i16) {
        let mut topic = new_topic(name);
        (topic.partitions, topic.replication_factor) = (partitions, replication_factor);
        self.create_topic(topic);
    }

    /// Makes a topic with these replicas, one list for each partition, split by `/`.
    pub(super) fn create_on(&mut self, name: &str, assignments: &str) {
        let mut topic = new_topic(name);
        topic.assignments = (0..)
            .zip(assignments.split('/'))
            .map(|(index, ids)| {
                (index, ids.split_whitespace().map(|id| id.parse().unwrap()).collect())
            })
            .collect();
        self.create_topic(topic);
    }

    pub(super) fn create_topic(&mut self, topic: NewTopic) {
        let request = CreateTopics { topics: vec![topic], validate_only: false };
        match self.ask(ControllerRequest::CreateTopics(request)) {
            ControllerReply::CreateTopics(topics) => assert!(topics[0].1.is_ok(), "{topics:?}"),
            other => panic!("{other:?}"),
        }
    }

    /// Sets a config of a resource.
    pub(super) fn set(&mut self, kind: ResourceKind, name: &str, key: &str, value: &str) {
        let op = ConfigOp { key: key.into(), op: 0, value: Some(value.into()) };
        let resource = ChangedResource { kind: kind.code(), name: name.into(), ops: vec![op] };
        let request = IncrementalAlterConfigs { resources: vec![resource], validate_only: false };
        match self.ask(ControllerRequest::IncrementalAlterConfigs(request)) {
            ControllerReply::IncrementalAlterConfigs(reply) => {
                assert_eq!(reply[0].result, Ok(()));
            }
            other => panic!("{other:?}"),
        }
    }

    /// A partition as text.
    pub(super) fn show(&self, topic: &str, index: i32) -> String {
        show(self.image().partition(topic, index).expect("the partition exists"))
    }
}

/// A topic with defaults for everything.
pub(super) fn new_topic(name: &str) -> NewTopic {
    NewTopic {
        name: name.to_string(),
        partitions: -1,
        replication_factor: -1,
        assignments: Vec::new(),
        configs: Vec::new(),
    }
}

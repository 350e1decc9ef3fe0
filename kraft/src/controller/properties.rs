//! Random sequences of requests: what must hold after each, whatever happened.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use uuid::Uuid;

use super::fixtures::{CLUSTER_ID, Cluster, Dice, new_topic};
use super::isr::{has_duplicates, within};
use super::*;
use crate::image::changes;
use crate::record::{PartitionChangeRecord, decode_batch, encode_batch};

const BROKERS: i32 = 4;
const TOPICS: u64 = 5;

/// One random request, mostly sensible, against what the cluster is now.
struct Ask<'a> {
    cluster: &'a Cluster,
    dice: &'a mut Dice,
}

impl Ask<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.dice.small() % bound
    }

    fn maybe(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn name(&mut self) -> String {
        let n = self.below(TOPICS);
        if self.maybe(5) { format!("t.{n}") } else { format!("t_{n}") }
    }

    fn broker(&mut self) -> i32 {
        let stranger = u64::from(self.maybe(5));
        1 + self.below(BROKERS as u64 + stranger) as i32
    }

    fn brokers(&mut self) -> Vec<i32> {
        let count = 1 + self.below(4);
        let mut list: Vec<i32> = (0..count).map(|_| self.broker()).collect();
        if !self.maybe(3) {
            let mut seen = BTreeSet::new();
            list.retain(|broker| seen.insert(*broker));
        }
        list
    }

    fn epoch(&mut self, broker: i32) -> i64 {
        let known = self.cluster.image().broker(broker).map_or(0, |broker| broker.epoch);
        if self.maybe(3) { known + 1 } else { known }
    }

    fn request(&mut self) -> ControllerRequest {
        match self.below(20) {
            0..=1 => self.create_topics(),
            2 => self.delete_topics(),
            3 => self.create_partitions(),
            4..=5 => self.alter_configs(),
            6 => self.elect_leaders(),
            7..=9 => self.alter_partition(),
            10..=11 => self.alter_reassignments(),
            12 => self.register(),
            13 => {
                let broker_id = self.broker();
                let broker_epoch = self.epoch(broker_id);
                ControllerRequest::FenceBroker(FenceBroker { broker_id, broker_epoch })
            }
            14 if self.maybe(20) => {
                ControllerRequest::UnregisterBroker(UnregisterBroker { broker_id: self.broker() })
            }
            15 => self.producer_ids_or_features(),
            _ => self.heartbeat(),
        }
    }

    fn create_topics(&mut self) -> ControllerRequest {
        let mut topic = new_topic(&self.name());
        if self.maybe(50) {
            let partitions = 1 + self.below(3) as i32;
            topic.assignments = (0..partitions).map(|index| (index, self.brokers())).collect();
        } else {
            topic.partitions = self.below(5) as i32 - 1;
            topic.replication_factor = self.below(5) as i16 - 1;
        }
        let validate_only = self.maybe(10);
        ControllerRequest::CreateTopics(CreateTopics { topics: vec![topic], validate_only })
    }

    fn delete_topics(&mut self) -> ControllerRequest {
        let topic = TopicRef { name: Some(self.name()), id: Uuid::nil() };
        ControllerRequest::DeleteTopics(DeleteTopics { topics: vec![topic] })
    }

    fn create_partitions(&mut self) -> ControllerRequest {
        let assignments = self.maybe(30).then(|| vec![self.brokers()]);
        let topic = GrowTopic { name: self.name(), count: self.below(7) as i32, assignments };
        let validate_only = self.maybe(10);
        ControllerRequest::CreatePartitions(CreatePartitions { topics: vec![topic], validate_only })
    }

    fn alter_configs(&mut self) -> ControllerRequest {
        let (kind, name) = if self.maybe(70) { (2, self.name()) } else { (4, String::new()) };
        let (key, value) = match self.below(3) {
            0 => ("min.insync.replicas", (1 + self.below(3)).to_string()),
            1 => ("unclean.leader.election.enable", self.maybe(50).to_string()),
            _ => ("retention.ms", self.below(9).to_string()),
        };
        let op = i8::from(self.maybe(30));
        let ops = vec![ConfigOp { key: key.into(), op, value: Some(value) }];
        let resources = vec![ChangedResource { kind, name, ops }];
        let request = IncrementalAlterConfigs { resources, validate_only: false };
        ControllerRequest::IncrementalAlterConfigs(request)
    }

    fn elect_leaders(&mut self) -> ControllerRequest {
        let topics = (!self.maybe(50)).then(|| vec![(self.name(), vec![0, 1])]);
        let election = i8::from(self.maybe(40));
        ControllerRequest::ElectLeaders(ElectLeaders { election, topics })
    }

    fn alter_partition(&mut self) -> ControllerRequest {
        let name = self.name();
        let (topic_id, partition, state) = match self.cluster.image().topic(&name) {
            Some(topic) => {
                let index = self.below(topic.partitions.len() as u64) as i32;
                (topic.id, index, Some(topic.partitions[index as usize].clone()))
            }
            None => (Uuid::nil(), 0, None),
        };
        let leader = state.as_ref().map_or(1, |state| state.leader);
        let mut isr = vec![leader];
        let replicas = state.as_ref().map_or(vec![2], |state| state.replicas.clone());
        isr.extend(replicas.into_iter().filter(|id| *id != leader && self.maybe(60)));
        let wish = IsrChange {
            topic_id,
            partition,
            leader_epoch: state.as_ref().map_or(0, |state| state.leader_epoch)
                + i32::from(self.maybe(3)),
            partition_epoch: state.as_ref().map_or(0, |state| state.partition_epoch)
                - i32::from(self.maybe(3)),
            isr: isr.into_iter().map(|id| (id, self.epoch(id))).collect(),
            recovering: self.maybe(10),
        };
        ControllerRequest::AlterPartition(AlterPartition {
            broker_id: leader,
            broker_epoch: self.epoch(leader),
            partitions: vec![wish],
        })
    }

    fn alter_reassignments(&mut self) -> ControllerRequest {
        let replicas = self.maybe(75).then(|| self.brokers());
        let partition = self.below(3) as i32;
        let topics = vec![(self.name(), vec![Reassignment { partition, replicas }])];
        let allow_factor_change = self.maybe(90);
        ControllerRequest::AlterReassignments(AlterReassignments { topics, allow_factor_change })
    }

    fn register(&mut self) -> ControllerRequest {
        let broker = self.broker();
        let mut request = self.cluster.registration(broker, self.dice.roll());
        if self.maybe(30) {
            request.previous_epoch = -1;
        }
        if self.maybe(20) {
            request.rack = Some("r".into());
        }
        assert_eq!(request.cluster_id, CLUSTER_ID);
        ControllerRequest::RegisterBroker(request)
    }

    fn heartbeat(&mut self) -> ControllerRequest {
        let broker = self.broker();
        let mut request = self.cluster.heartbeat(broker);
        request.broker_epoch = self.epoch(broker);
        request.want_shut_down = self.maybe(10);
        request.want_fence = self.maybe(5);
        if self.maybe(3) {
            request.offline_directories = vec![Uuid::from_u128(1_000 + broker as u128)];
        }
        ControllerRequest::BrokerHeartbeat(request)
    }

    fn producer_ids_or_features(&mut self) -> ControllerRequest {
        if self.maybe(60) {
            let broker_id = self.broker();
            let broker_epoch = self.epoch(broker_id);
            let request = AllocateProducerIds { broker_id, broker_epoch };
            return ControllerRequest::AllocateProducerIds(request);
        }
        let on = self.cluster.image().feature("eligible.leader.replicas.version") == 1;
        let update = FeatureUpdate {
            name: "eligible.leader.replicas.version".into(),
            level: i16::from(!on),
            upgrade_type: if on { 2 } else { 1 },
        };
        let request = UpdateFeatures { updates: vec![update], validate_only: false };
        ControllerRequest::UpdateFeatures(request)
    }
}

/// What must hold of any image.
fn check_image(image: &Image) {
    let mut ids = BTreeSet::new();
    for topic in image.topics() {
        assert!(ids.insert(topic.id), "an id of its own");
        assert_eq!(image.topic_by_id(topic.id), Some(topic));
        for partition in &topic.partitions {
            let text = fixtures::show(partition);
            for list in [
                &partition.replicas,
                &partition.isr,
                &partition.elr,
                &partition.adding,
                &partition.removing,
            ] {
                assert!(!has_duplicates(list), "{text}");
                assert!(within(list, &partition.replicas), "{text}");
            }
            assert!(!partition.isr.iter().any(|id| partition.elr.contains(id)), "{text}");
            assert_eq!(partition.directories.len(), partition.replicas.len());
            match partition.leader() {
                Some(leader) => {
                    assert!(partition.isr.contains(&leader), "{text}");
                    assert!(image.is_active(leader), "a dead leader: {text}");
                    assert!(partition.last_known_elr.is_empty(), "{text}");
                }
                None => assert!(
                    partition.isr.iter().all(|id| {
                        let broker = image.broker(*id).filter(|broker| broker.is_active());
                        broker.is_none_or(|broker| {
                            let home = partition.directory(*id).unwrap();
                            !home.is_nil() && !broker.directories.contains(&home)
                        })
                    }),
                    "someone in sync could lead: {text}"
                ),
            }
            if partition.recovering {
                assert!(partition.isr.len() <= 1, "{text}");
            }
        }
    }
    let mut epochs = BTreeSet::new();
    for broker in image.brokers() {
        assert!(epochs.insert(broker.epoch), "an epoch of its own");
        assert!(broker.epoch <= image.last_broker_epoch());
    }
}

/// What must hold from one image to the next.
fn check_step(old: &Image, new: &Image) {
    assert!(new.next_producer_id() >= old.next_producer_id());
    assert!(new.last_broker_epoch() >= old.last_broker_epoch());
    for topic in new.topics() {
        let Some(before) = old.topic_by_id(topic.id) else { continue };
        assert_eq!(before.name, topic.name);
        assert!(topic.partitions.len() >= before.partitions.len());
        for (was, is) in before.partitions.iter().zip(&topic.partitions) {
            assert!(is.leader_epoch >= was.leader_epoch);
            assert!(is.partition_epoch >= was.partition_epoch);
            if was.leader != is.leader {
                assert!(is.leader_epoch > was.leader_epoch);
            }
            if was.isr != is.isr || was.replicas != is.replicas {
                assert!(is.partition_epoch > was.partition_epoch);
            }
        }
    }
    for broker in new.brokers() {
        let before = old.broker(broker.id).map_or(-1, |before| before.epoch);
        assert!(broker.epoch >= before);
    }
}

/// The differences lead from one image to the other.
fn check_changes(old: &Image, new: &Image) {
    let mut names: BTreeMap<Uuid, usize> =
        old.topics().map(|topic| (topic.id, topic.partitions.len())).collect();
    let changes = changes(old, new);
    for topic in &changes.topics_deleted {
        assert!(names.remove(&topic.id).is_some());
    }
    for topic in &changes.topics_created {
        assert_eq!(names.insert(topic.id, 0), None);
    }
    for created in &changes.partitions_created {
        *names.get_mut(&created.topic.id).unwrap() += 1;
    }
    let want: BTreeMap<Uuid, usize> =
        new.topics().map(|topic| (topic.id, topic.partitions.len())).collect();
    assert_eq!(names, want);
    for changed in &changes.partitions_changed {
        let old = old.topic_by_id(changed.topic.id).unwrap().partition(changed.index);
        assert_eq!(changed.old.as_ref(), old);
        assert_ne!(changed.old.as_ref(), Some(&changed.new));
    }
}

/// Runs `steps` random requests, in batches as the quorum makes them, and checks after each entry.
fn run(seed: u64, steps: usize, elr: bool) {
    let mut dice = Dice::new(seed);
    let mut cluster = Cluster::new(BROKERS);
    if !elr {
        let name = "eligible.leader.replicas.version".into();
        cluster.commit(&[MetadataRecord::FeatureLevel { name, level: 0 }]);
    }
    let first = cluster.image().clone();
    let mut log = Vec::new();
    for _ in 0..steps {
        let old = cluster.image().clone();
        let mut entry = Vec::new();
        for _ in 0..1 + dice.small() % 3 {
            let request = Ask { cluster: &cluster, dice: &mut dice }.request();
            let decision = cluster.decide(&request);
            cluster.controller.apply_pending(&decision.records);
            entry.extend(decision.records);
        }
        if dice.small().is_multiple_of(10) {
            // The entry was lost with the leadership.
            cluster.controller.rollback();
            assert_eq!(cluster.controller.pending(), &old);
            continue;
        }
        cluster.controller.rollback();
        cluster.commit(&entry);
        cluster.now_ms += (dice.small() % 2_000) as i64;
        let deadline_ms = cluster.controller.next_deadline();
        cluster.tick();
        assert!(cluster.controller.next_deadline() >= deadline_ms.min(cluster.now_ms));
        check_image(cluster.image());
        check_step(&old, cluster.image());
        check_changes(&old, cluster.image());
        log.push(entry);
    }
    let snapshot = cluster.image().to_records();
    let read = decode_batch(&encode_batch(&snapshot)).unwrap();
    let restored = Image::from_records(cluster.image().last_applied(), &read).unwrap();
    assert_eq!(&restored, cluster.image(), "a snapshot gives the same image");
    assert!(first.last_applied() < cluster.image().last_applied());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn random_requests_keep_the_image_whole(seed: u64, elr: bool) {
        run(seed, 150, elr);
    }
}

/// Every entry of a run, applied one after the other to an empty image, gives the image of the run.
#[test]
fn replaying_the_log_gives_the_same_image() {
    for seed in 0..10 {
        let mut dice = Dice::new(seed);
        let mut cluster = Cluster::new(BROKERS);
        let mut replica = cluster.image().clone();
        for _ in 0..200 {
            let request = Ask { cluster: &cluster, dice: &mut dice }.request();
            let decision = cluster.decide(&request);
            let entry = decode_batch(&encode_batch(&decision.records)).unwrap();
            replica.apply_all(cluster.index() + 1, &entry).unwrap();
            cluster.commit(&decision.records);
        }
        assert_eq!(&replica, cluster.image());
        assert_eq!(replica.last_applied(), cluster.image().last_applied());
    }
}

/// Records that need not be atomic can be cut anywhere.
#[test]
fn loose_records_make_sense_one_by_one() {
    let mut cluster = Cluster::new(3);
    cluster.create("t", 20, 3);
    let broker_epoch = cluster.image().broker(1).unwrap().epoch;
    let request = ControllerRequest::FenceBroker(FenceBroker { broker_id: 1, broker_epoch });
    let decision = cluster.decide(&request);
    assert!(!decision.atomic && decision.records.len() > 10);
    for record in &decision.records {
        cluster.commit(std::slice::from_ref(record));
        check_image(cluster.image());
    }
    let atomic = cluster.decide(&ControllerRequest::CreateTopics(CreateTopics::default())).atomic;
    assert!(atomic);
    let empty = PartitionChangeRecord::default();
    assert!(decision.records.iter().all(|r| *r != MetadataRecord::PartitionChange(empty.clone())));
}

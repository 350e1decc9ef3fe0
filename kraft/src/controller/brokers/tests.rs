//! The life of brokers, and what it does to their partitions.

use super::super::fixtures::Cluster;
use super::super::request::{ControllerReply, ControllerRequest};
use super::super::{AllocateProducerIds, Controller, ProducerIdBlock};
use super::*;
use crate::record::ResourceKind;

fn register(cluster: &mut Cluster, request: RegisterBroker) -> Result<i64, Refusal> {
    match cluster.ask(ControllerRequest::RegisterBroker(request)) {
        ControllerReply::RegisterBroker(reply) => reply,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_registration(edit: impl FnOnce(&mut RegisterBroker), code: ErrorCode) {
    let mut cluster = Cluster::new(2);
    let before = cluster.image().clone();
    let mut request = cluster.registration(3, 77);
    edit(&mut request);
    assert_eq!(register(&mut cluster, request).unwrap_err().code, code);
    assert_eq!(*cluster.image(), before);
}

#[test]
fn refused_registrations() {
    use ErrorCode::{
        DuplicateBrokerRegistration, InconsistentClusterId, InvalidRegistration, UnsupportedVersion,
    };
    check_registration(|ask| ask.broker_id = 2, DuplicateBrokerRegistration);
    check_registration(|ask| ask.broker_id = -1, InvalidRegistration);
    check_registration(|ask| ask.cluster_id = "other".into(), InconsistentClusterId);
    check_registration(|ask| ask.directories.clear(), InvalidRegistration);
    check_registration(|ask| ask.directories = vec![Uuid::nil()], InvalidRegistration);
    check_registration(|ask| ask.directories.push(ask.directories[0]), InvalidRegistration);
    let taken = Uuid::from_u128(1_001);
    check_registration(|ask| ask.directories.push(taken), InvalidRegistration);
    check_registration(|ask| ask.endpoints.clear(), InvalidRegistration);
    check_registration(|ask| ask.endpoints.push(ask.endpoints[0].clone()), InvalidRegistration);
    check_registration(|ask| ask.features.clear(), UnsupportedVersion);
    check_registration(|ask| ask.features[0].min_level = 9, UnsupportedVersion);
}

#[test]
fn a_broker_is_fenced_until_it_knows_of_itself() {
    let mut cluster = Cluster::new(1);
    cluster.register(2);
    let registered_at = cluster.index();
    let broker = cluster.image().broker(2).unwrap();
    assert!(broker.fenced && broker.epoch == 1);
    let status = cluster.beat_with(2, |ask| ask.applied_index = registered_at - 1);
    assert!(status.is_fenced && !status.is_caught_up);
    let status = cluster.beat_with(2, |ask| {
        (ask.applied_index, ask.want_fence) = (registered_at, true);
    });
    assert!(status.is_fenced && status.is_caught_up);
    let status = cluster.beat_with(2, |ask| ask.applied_index = registered_at);
    assert!(!status.is_fenced && status.is_caught_up);
    assert!(cluster.image().is_active(2));
}

#[test]
fn an_undelivered_registration_is_not_caught_up_with() {
    let mut cluster = Cluster::new(1);
    let request = ControllerRequest::RegisterBroker(cluster.registration(2, 77));
    let decision = cluster.decide(&request);
    cluster.controller.apply_pending(&decision.records);
    let mut beat = cluster.heartbeat(2);
    (beat.broker_epoch, beat.applied_index) = (1, 1_000);
    let decision = cluster.decide(&ControllerRequest::BrokerHeartbeat(beat));
    let ControllerReply::BrokerHeartbeat(Ok(status)) = decision.reply else { panic!() };
    assert!(status.is_fenced && decision.records.is_empty());
}

#[test]
fn the_same_incarnation_amends_its_registration() {
    let mut cluster = Cluster::new(1);
    cluster.create("t", 1, 1);
    let known = cluster.image().broker(1).unwrap().clone();
    let mut request = cluster.registration(1, known.incarnation_id.as_u128());
    request.rack = Some("r".into());
    assert_eq!(register(&mut cluster, request), Ok(known.epoch));
    let broker = cluster.image().broker(1).unwrap();
    assert!(!broker.fenced && broker.rack.as_deref() == Some("r"));
    assert_eq!(cluster.show("t", 0), "1 leader 1@0 isr 1");
}

#[test]
fn heartbeats_of_strangers() {
    let mut cluster = Cluster::new(1);
    for (id, epoch) in [(1, 99), (7, 0)] {
        let mut beat = cluster.heartbeat(id);
        beat.broker_epoch = epoch;
        let reply = cluster.ask(ControllerRequest::BrokerHeartbeat(beat));
        let ControllerReply::BrokerHeartbeat(Err(refusal)) = reply else { panic!("{reply:?}") };
        assert_eq!(refusal.code, ErrorCode::StaleBrokerEpoch);
    }
}

#[test]
fn a_silent_broker_is_fenced() {
    let mut cluster = Cluster::new(3);
    cluster.create_on("t", "1 2 3/2 3 1");
    cluster.now_ms = 5_000;
    for broker in [2, 3] {
        cluster.beat(broker);
    }
    assert_eq!(cluster.controller.next_deadline(), 9_001);
    cluster.now_ms = 9_000;
    cluster.tick();
    assert!(cluster.image().is_active(1));
    cluster.now_ms = 9_001;
    cluster.tick();
    assert!(!cluster.image().is_active(1));
    assert_eq!(cluster.show("t", 0), "1 2 3 leader 2@1 isr 2 3");
    assert_eq!(cluster.show("t", 1), "2 3 1 leader 2@0 isr 2 3"); // No epoch for a shrink.
    assert_eq!(cluster.controller.next_deadline(), 14_001);
}

#[test]
fn a_new_controller_gives_brokers_time() {
    let mut cluster = Cluster::new(1);
    cluster.create("t", 1, 1);
    let settings = cluster.controller.settings_mut().clone();
    cluster.now_ms = 1_000_000;
    cluster.controller = Controller::new(cluster.image().clone(), settings, cluster.now_ms);
    cluster.tick();
    assert!(cluster.image().is_active(1));
    // It has not heard of the broker yet, so a new incarnation may take its place at once.
    let epoch = cluster.image().broker(1).unwrap().epoch;
    let request = cluster.registration(1, 77);
    assert_eq!(register(&mut cluster, request), Ok(epoch + 1));
    cluster.beat(1);
    // Now it has.
    let request = cluster.registration(1, 78);
    let refusal = register(&mut cluster, request).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::DuplicateBrokerRegistration);
}

/// A restart of the only broker of a partition with one replica. `clean`: the broker knows the
/// epoch it had before.
#[track_caller]
fn check_restart(elr: bool, clean: bool, between: &str, after: &str) {
    let mut cluster = Cluster::with(1, |settings| {
        if !elr {
            settings.features.remove("eligible.leader.replicas.version");
        }
    });
    cluster.create("t", 1, 1);
    cluster.now_ms = 60_000; // Its session is over, but nobody has fenced it yet.
    let mut request = cluster.registration(1, 77);
    if !clean {
        request.previous_epoch = -1;
    }
    register(&mut cluster, request).unwrap();
    assert_eq!(cluster.show("t", 0), between, "elr {elr}, clean {clean}");
    cluster.beat(1);
    assert_eq!(cluster.show("t", 0), after, "elr {elr}, clean {clean}");
}

#[test]
fn a_restart_raises_the_leader_epoch() {
    check_restart(true, true, "1 leader -1@1 isr - elr 1 last 1", "1 leader 1@2 isr 1");
    check_restart(true, false, "1 leader -1@1 isr - last 1", "1 leader 1@2 isr 1 recovering");
    check_restart(false, true, "1 leader -1@1 isr 1", "1 leader 1@2 isr 1");
    check_restart(false, false, "1 leader -1@1 isr 1", "1 leader 1@2 isr 1");
}

#[test]
fn controlled_shutdown() {
    let mut cluster = Cluster::new(3);
    cluster.create_on("t", "1 2/2 1");
    let status = cluster.beat_with(1, |ask| ask.want_shut_down = true);
    assert!(status.is_in_controlled_shutdown && !status.should_shut_down);
    let begun = cluster.index();
    assert_eq!(cluster.show("t", 0), "1 2 leader 2@1 isr 2");
    assert_eq!(cluster.show("t", 1), "2 1 leader 2@0 isr 2");
    // 2 and 3 have yet to learn of it.
    cluster.beat_with(2, |ask| ask.applied_index = begun - 1);
    cluster.beat(3);
    assert!(!cluster.beat_with(1, |ask| ask.want_shut_down = true).should_shut_down);
    cluster.beat(2);
    let status = cluster.beat_with(1, |ask| ask.want_shut_down = true);
    assert!(status.should_shut_down && status.is_fenced);
    assert!(cluster.image().broker(1).unwrap().fenced);
    assert!(cluster.beat_with(1, |ask| ask.want_shut_down = true).should_shut_down);
    // It comes back as a new incarnation.
    cluster.start(1);
    assert!(cluster.image().is_active(1));
}

#[test]
fn the_last_broker_may_shut_down() {
    let mut cluster = Cluster::new(1);
    cluster.create("t", 1, 1);
    assert!(cluster.beat_with(1, |ask| ask.want_shut_down = true).is_in_controlled_shutdown);
    assert!(cluster.beat_with(1, |ask| ask.want_shut_down = true).should_shut_down);
    assert_eq!(cluster.show("t", 0), "1 leader -1@1 isr - elr 1 last 1");
    cluster.start(1);
    assert_eq!(cluster.show("t", 0), "1 leader 1@2 isr 1");
}

#[test]
fn a_broker_without_leaderships_shuts_down_at_once() {
    let mut cluster = Cluster::new(2);
    cluster.create_on("t", "1 2");
    assert!(cluster.beat_with(2, |ask| ask.want_shut_down = true).should_shut_down);
    assert_eq!(cluster.show("t", 0), "1 2 leader 1@0 isr 1");
}

#[test]
fn a_broker_may_ask_to_be_fenced() {
    let mut cluster = Cluster::new(2);
    cluster.create_on("t", "1 2");
    assert!(cluster.beat_with(1, |ask| ask.want_fence = true).is_fenced);
    assert_eq!(cluster.show("t", 0), "1 2 leader 2@1 isr 2");
    assert!(!cluster.beat(1).is_fenced);
}

#[test]
fn failed_directories() {
    let mut cluster = Cluster::new(2);
    let (good, bad) = (Uuid::from_u128(2_001), Uuid::from_u128(2_002));
    let mut request = cluster.registration(3, 77);
    request.directories = vec![good, bad];
    register(&mut cluster, request).unwrap();
    cluster.beat(3);
    cluster.create_on("t", "3 1/3 1");
    assert_eq!(cluster.image().partition("t", 0).unwrap().directory(3), Some(Uuid::nil()));
    let topic_id = cluster.image().topic("t").unwrap().id;
    let replica =
        |directory, partition| super::super::AssignedReplica { directory, topic_id, partition };
    let broker_epoch = cluster.image().broker(3).unwrap().epoch;
    let replicas = vec![replica(good, 0), replica(bad, 1)];
    let request = super::super::AssignDirectories { broker_id: 3, broker_epoch, replicas };
    cluster.ask(ControllerRequest::AssignDirectories(request));
    cluster.beat_with(3, |ask| ask.offline_directories = vec![bad]);
    assert_eq!(cluster.show("t", 0), "3 1 leader 3@0 isr 3 1");
    assert_eq!(cluster.show("t", 1), "3 1 leader 1@1 isr 1");
    assert_eq!(cluster.image().broker(3).unwrap().directories, [good]);
    let index = cluster.image().clone();
    cluster.beat_with(3, |ask| ask.offline_directories = vec![bad]);
    assert_eq!(*cluster.image(), index); // Known already.
}

#[test]
fn unregistering() {
    let mut cluster = Cluster::new(2);
    cluster.create_on("t", "1 2");
    let ask = |cluster: &mut Cluster, broker_id| {
        let request = UnregisterBroker { broker_id };
        match cluster.ask(ControllerRequest::UnregisterBroker(request)) {
            ControllerReply::UnregisterBroker(reply) => reply,
            other => panic!("{other:?}"),
        }
    };
    let text = "Broker ID 4711 is not currently registered";
    let want = Refusal::new(ErrorCode::BrokerIdNotRegistered, text);
    assert_eq!(ask(&mut cluster, 4711), Err(want));
    assert_eq!(ask(&mut cluster, 1), Ok(()));
    assert!(cluster.image().broker(1).is_none());
    assert_eq!(cluster.show("t", 0), "1 2 leader 2@1 isr 2");
    // Its epochs are not given out again.
    let request = cluster.registration(1, 77);
    assert_eq!(register(&mut cluster, request), Ok(2));
}

#[test]
fn a_broker_that_forgot_leaves_the_elr() {
    let mut cluster = Cluster::new(3);
    cluster.create_on("t", "1 2 3");
    cluster.set(ResourceKind::Topic, "t", "min.insync.replicas", "3");
    cluster.fence(2);
    cluster.fence(3);
    assert_eq!(cluster.show("t", 0), "1 2 3 leader 1@0 isr 1 elr 2 3");
    let mut request = cluster.registration(2, 77);
    request.previous_epoch = -1;
    register(&mut cluster, request).unwrap();
    assert_eq!(cluster.show("t", 0), "1 2 3 leader 1@0 isr 1 elr 3");
    let request = cluster.registration(3, 78);
    register(&mut cluster, request).unwrap();
    assert_eq!(cluster.show("t", 0), "1 2 3 leader 1@0 isr 1 elr 3");
}

#[test]
fn producer_ids_come_in_blocks() {
    let mut cluster = Cluster::new(2);
    let ask = |cluster: &mut Cluster, broker_id: i32, broker_epoch: i64| {
        let request = AllocateProducerIds { broker_id, broker_epoch };
        match cluster.ask(ControllerRequest::AllocateProducerIds(request)) {
            ControllerReply::AllocateProducerIds(reply) => reply,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(&mut cluster, 1, 0), Ok(ProducerIdBlock { first_id: 0, len: 1_000 }));
    assert_eq!(ask(&mut cluster, 2, 1), Ok(ProducerIdBlock { first_id: 1_000, len: 1_000 }));
    assert_eq!(ask(&mut cluster, 2, 9).unwrap_err().code, ErrorCode::StaleBrokerEpoch);
    let next_producer_id = i64::MAX - 5;
    let (broker_id, broker_epoch) = (1, 0);
    let last = MetadataRecord::ProducerIds { broker_id, broker_epoch, next_producer_id };
    cluster.commit(&[last]);
    assert_eq!(ask(&mut cluster, 1, 0).unwrap_err().code, ErrorCode::UnknownServerError);
}

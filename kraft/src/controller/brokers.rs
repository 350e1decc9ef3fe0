//! The life of a broker: registration, heartbeats, fencing, controlled shutdown, farewell.
//!
//! A broker registers, stays fenced until it has applied its own registration, then leads and joins
//! ISRs until it falls silent or shuts down. When it leaves, its leaderships move and its ISRs
//! shrink in the same records. When it was heard of is `sessions.rs`.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::duplicates;
use super::features::FeatureTable;
use super::request::{
    BrokerHeartbeat, BrokerStatus, FenceBroker, Refusal, RegisterBroker, UnregisterBroker,
};
use super::sessions::Sessions;
use super::view::{Turn, View};
use crate::image::Broker;
use crate::record::{BrokerChangeRecord, BrokerRecord, MetadataRecord};

/// Directory ids below this number mean something else (Kafka's `DirectoryId`): 0 unassigned, 1
/// lost, 2 migrating, the rest kept for later.
const RESERVED_DIRECTORIES: u128 = 100;

/// Where a broker stands, and where a heartbeat may take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fenced,
    Unfenced,
    ControlledShutdown,
    ShutdownNow,
}

impl State {
    fn of(broker: &Broker) -> State {
        match (broker.fenced, broker.in_controlled_shutdown) {
            (true, _) => State::Fenced,
            (false, true) => State::ControlledShutdown,
            (false, false) => State::Unfenced,
        }
    }
}

impl View<'_> {
    pub(super) fn register_broker(
        self,
        sessions: &mut Sessions,
        now_ms: i64,
        request: &RegisterBroker,
    ) -> (Vec<MetadataRecord>, Result<i64, Refusal>) {
        let id = request.broker_id;
        let known = self.image.broker(id);
        let same = known.filter(|broker| broker.incarnation_id == request.incarnation_id);
        let live = known.is_some_and(|b| !b.fenced) && sessions.is_valid(id, now_ms);
        let checked = if live && same.is_none() {
            let text = "Another broker is registered with that broker id.";
            Err(Refusal::new(ErrorCode::DuplicateBrokerRegistration, text))
        } else {
            self.check_registration(request)
        };
        if let Err(refusal) = checked {
            return (Vec::new(), Err(refusal));
        }
        let mut records = Vec::new();
        if same.is_none() {
            // The former incarnation leads nothing any more. Whether its log counts depends on how
            // it ended.
            let clean = known.is_some_and(|broker| broker.epoch == request.previous_epoch);
            let turn = if clean { Turn::Leaves(id) } else { Turn::Forgets(id) };
            records = self.follow(turn, |_| true);
        }
        let broker_epoch = same.map_or(self.image.last_broker_epoch() + 1, |broker| broker.epoch);
        records.push(MetadataRecord::RegisterBroker(BrokerRecord {
            broker_id: id,
            incarnation_id: request.incarnation_id,
            broker_epoch,
            endpoints: request.endpoints.clone(),
            features: request.features.clone(),
            rack: request.rack.clone(),
            fenced: same.is_none_or(|broker| broker.fenced),
            in_controlled_shutdown: same.is_some_and(|broker| broker.in_controlled_shutdown),
            directories: request.directories.clone(),
        }));
        sessions.register(id, now_ms);
        (records, Ok(broker_epoch))
    }

    fn check_registration(self, request: &RegisterBroker) -> Result<(), Refusal> {
        if request.cluster_id != self.settings.cluster_id {
            let text = format!(
                "Expected cluster ID {}, but got cluster ID {}",
                self.settings.cluster_id, request.cluster_id
            );
            return Err(Refusal::new(ErrorCode::InconsistentClusterId, text));
        }
        let invalid = |text: String| Err(Refusal::new(ErrorCode::InvalidRegistration, text));
        if request.broker_id < 0 {
            return invalid(format!("Broker id {} is negative", request.broker_id));
        }
        if let Err(text) = self.check_directories(request) {
            return invalid(text);
        }
        let listeners: Vec<&str> =
            request.endpoints.iter().map(|endpoint| &*endpoint.name).collect();
        if let Some(name) = duplicates(listeners.iter().copied()).first() {
            return invalid(format!("Listener {name} is registered more than once"));
        }
        let needed = self.settings.inter_broker_listener.as_str();
        if !listeners.contains(&needed) {
            return invalid(format!("No endpoint for the inter-broker listener {needed}"));
        }
        self.check_features(request)
    }

    fn check_directories(self, request: &RegisterBroker) -> Result<(), String> {
        let directories = &request.directories;
        if directories.is_empty() {
            return Err("No directories specified in request".into());
        }
        if directories.iter().any(|directory| directory.as_u128() < RESERVED_DIRECTORIES) {
            return Err("Reserved directory ID in request".into());
        }
        let distinct: BTreeSet<&Uuid> = directories.iter().collect();
        if distinct.len() != directories.len() {
            return Err("Duplicate directory ID in request".into());
        }
        for broker in self.image.brokers().filter(|broker| broker.id != request.broker_id) {
            if let Some(taken) = broker.directories.iter().find(|taken| distinct.contains(taken)) {
                let id = broker.id;
                return Err(format!("Broker {id} is already registered with directory {taken}"));
            }
        }
        Ok(())
    }

    /// A broker must be able to work at every finalized level.
    fn check_features(self, request: &RegisterBroker) -> Result<(), Refusal> {
        let offered: FeatureTable = request
            .features
            .iter()
            .map(|feature| (feature.name.clone(), (feature.min_level, feature.max_level)))
            .collect();
        let finalized = self.image.features().map(|(name, level)| (name.clone(), level));
        let offered_only = offered.keys().map(|name| (name.clone(), self.image.feature(name)));
        for (name, level) in finalized.chain(offered_only) {
            let (min, max) = offered.get(&name).copied().unwrap_or((0, 0));
            if !(min..=max).contains(&level) {
                let text = format!(
                    "Unable to register because the broker does not support finalized version \
                     {level} of {name}. The broker wants a version between {min} and {max}, \
                     inclusive."
                );
                return Err(Refusal::new(ErrorCode::UnsupportedVersion, text));
            }
        }
        Ok(())
    }

    pub(super) fn broker_heartbeat(
        self,
        sessions: &mut Sessions,
        now_ms: i64,
        request: &BrokerHeartbeat,
    ) -> (Vec<MetadataRecord>, Result<BrokerStatus, Refusal>) {
        let (id, epoch) = (request.broker_id, request.broker_epoch);
        let known = match self.check_broker_epoch(id, epoch) {
            Ok(()) => self.image.broker(id),
            Err(refusal) => return (Vec::new(), Err(refusal)),
        };
        let known = known.expect("its epoch was just checked");
        let is_caught_up = sessions.is_caught_up(id, request.applied_index);
        let state = State::of(known);
        let next = self.next_state(state, sessions, request, is_caught_up);
        let mut records = match next {
            _ if next == state => Vec::new(),
            State::Fenced | State::ShutdownNow => self.fence_records(id, epoch),
            State::Unfenced => self.unfence_records(known),
            State::ControlledShutdown => self.shutdown_records(id, epoch),
        };
        sessions.touch(id, now_ms, request.applied_index);
        records.extend(self.offline_directories(known, &request.offline_directories, &records));
        let status = BrokerStatus {
            is_caught_up,
            is_fenced: matches!(next, State::Fenced | State::ShutdownNow),
            is_in_controlled_shutdown: next == State::ControlledShutdown,
            should_shut_down: next == State::ShutdownNow,
        };
        (records, Ok(status))
    }

    fn next_state(
        self,
        state: State,
        sessions: &Sessions,
        request: &BrokerHeartbeat,
        is_caught_up: bool,
    ) -> State {
        let id = request.broker_id;
        let leads = || self.partitions().any(|(_, _, partition)| partition.leader == id);
        match state {
            State::Fenced if request.want_shut_down => State::ShutdownNow,
            State::Fenced if !request.want_fence && is_caught_up => State::Unfenced,
            State::Fenced => State::Fenced,
            State::Unfenced if request.want_fence && request.want_shut_down => State::ShutdownNow,
            State::Unfenced if request.want_fence => State::Fenced,
            State::Unfenced if request.want_shut_down && leads() => State::ControlledShutdown,
            State::Unfenced if request.want_shut_down => State::ShutdownNow,
            State::Unfenced => State::Unfenced,
            State::ControlledShutdown if leads() => State::ControlledShutdown,
            State::ControlledShutdown => {
                // Whoever still sends to it as a leader shall have learnt better first.
                let active = self.image.brokers().filter(|broker| broker.is_active());
                if sessions.shutdown_is_known(id, active.map(|broker| broker.id)) {
                    State::ShutdownNow
                } else {
                    State::ControlledShutdown
                }
            }
            State::ShutdownNow => State::ShutdownNow,
        }
    }

    /// Records that fence a broker.
    pub(super) fn fence_records(self, id: i32, epoch: i64) -> Vec<MetadataRecord> {
        let mut records = self.follow(Turn::Leaves(id), |_| true);
        records.push(broker_change(id, epoch, Some(true), None));
        records
    }

    /// Records that let a broker lead again. Whoever was fenced in a controlled shutdown and is
    /// back has given the shutdown up.
    fn unfence_records(self, broker: &Broker) -> Vec<MetadataRecord> {
        let stays = broker.in_controlled_shutdown.then_some(false);
        let mut records = vec![broker_change(broker.id, broker.epoch, Some(false), stays)];
        records.extend(self.follow(Turn::Returns(broker.id), |_| true));
        records
    }

    fn shutdown_records(self, id: i32, epoch: i64) -> Vec<MetadataRecord> {
        let mut records = vec![broker_change(id, epoch, None, Some(true))];
        records.extend(self.follow(Turn::Leaves(id), |_| true));
        records
    }

    /// Records for directories that failed: replicas there leave their ISRs. Partitions that `made`
    /// changes already are left alone; the broker reports again.
    fn offline_directories(
        self,
        broker: &Broker,
        offline: &[Uuid],
        made: &[MetadataRecord],
    ) -> Vec<MetadataRecord> {
        let online = |directory: &&Uuid| !offline.contains(directory);
        let left: Vec<Uuid> = broker.directories.iter().filter(online).copied().collect();
        if left.len() == broker.directories.len() || !made.is_empty() {
            return Vec::new();
        }
        let in_failed = |partition: &crate::image::Partition| {
            partition.directory(broker.id).is_some_and(|directory| offline.contains(&directory))
        };
        let mut records = self.follow(Turn::Leaves(broker.id), in_failed);
        records.push(MetadataRecord::BrokerChange(BrokerChangeRecord {
            broker_id: broker.id,
            broker_epoch: broker.epoch,
            fenced: None,
            in_controlled_shutdown: None,
            directories: Some(left),
        }));
        records
    }

    pub(super) fn fence_broker(
        self,
        request: &FenceBroker,
    ) -> (Vec<MetadataRecord>, Result<(), Refusal>) {
        let FenceBroker { broker_id, broker_epoch } = *request;
        if let Err(refusal) = self.check_broker_epoch(broker_id, broker_epoch) {
            return (Vec::new(), Err(refusal));
        }
        if self.image.broker(broker_id).is_some_and(|broker| broker.fenced) {
            return (Vec::new(), Ok(()));
        }
        (self.fence_records(broker_id, broker_epoch), Ok(()))
    }

    pub(super) fn unregister_broker(
        self,
        request: &UnregisterBroker,
    ) -> (Vec<MetadataRecord>, Result<(), Refusal>) {
        let broker_id = request.broker_id;
        let Some(broker) = self.image.broker(broker_id) else {
            let text = format!("Broker ID {broker_id} is not currently registered");
            return (Vec::new(), Err(Refusal::new(ErrorCode::BrokerIdNotRegistered, text)));
        };
        let mut records = self.follow(Turn::Forgets(broker_id), |_| true);
        let broker_epoch = broker.epoch;
        records.push(MetadataRecord::UnregisterBroker { broker_id, broker_epoch });
        (records, Ok(()))
    }
}

fn broker_change(
    broker_id: i32,
    broker_epoch: i64,
    fenced: Option<bool>,
    in_controlled_shutdown: Option<bool>,
) -> MetadataRecord {
    MetadataRecord::BrokerChange(BrokerChangeRecord {
        broker_id,
        broker_epoch,
        fenced,
        in_controlled_shutdown,
        directories: None,
    })
}

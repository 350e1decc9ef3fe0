//! The controller: decides what may become of the cluster. Requests in, records out; pure.
//!
//! A [`Controller`] lives on the node that leads the quorum, from the moment it leads. It keeps two
//! images: what is committed, and what will be once everything it decided is. The loop around it:
//!
//! 1. for each waiting request: [`Controller::decide`], then [`Controller::apply_pending`] with the
//!    records, which all go into one entry of the log, so that later requests see earlier ones;
//! 2. propose the entry; when it is committed, [`Controller::commit`] and send the replies. A reply
//!    without records waits for the entries before it too, for it may rest on them;
//! 3. when leadership is lost, drop the controller (or [`Controller::rollback`]) and answer
//!    NOT_CONTROLLER to whoever still waits;
//! 4. at [`Controller::next_deadline`]: [`Controller::tick`], whose records go the same way.
//!
//! Only sessions of brokers and the times of the next checks are not in the image; they are lost
//! with the leadership, by design.

mod bootstrap;
mod brokers;
mod change;
mod configs;
mod election;
mod features;
#[cfg(test)]
mod fixtures;
mod isr;
mod leaders;
mod names;
mod partitions;
mod placement;
mod producer_ids;
#[cfg(test)]
mod properties;
mod reassign;
mod request;
mod sessions;
mod tick;
mod topics;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol_compat::error::ErrorCode;

pub use bootstrap::{bootstrap_records, default_levels};
pub use features::{FeatureTable, kafka_features};
pub use placement::{Usable, place};
pub use producer_ids::PRODUCER_ID_BLOCK;
pub use reassign::running_reassignments;
pub use request::*;
pub use topics::RECORDS_MAX;

use sessions::Sessions;
use view::View;

use crate::image::{Configs, Image, ImageError};
use crate::record::{ConfigResource, MetadataRecord, ResourceKind};

/// What the broker knows about configs and the controller does not.
pub trait ConfigRules: Send + Sync {
    /// Whether a resource may have these overrides, all together. `before` are those it has now.
    /// Names of resources are checked already. The error is the code and Kafka's text.
    fn check(
        &self,
        resource: &ConfigResource,
        overrides: &Configs,
        before: &Configs,
    ) -> Result<(), (ErrorCode, String)>;

    /// The default value of a list config, which append and subtract start from; `None` if there is
    /// no such key or it is not a list.
    fn list_default(&self, kind: ResourceKind, key: &str) -> Option<String>;
}

/// What a controller needs to know besides the image; from the node's configuration.
#[derive(Clone)]
pub struct Settings {
    pub node_id: i32,
    pub cluster_id: String,
    /// num.partitions
    pub default_partitions: i32,
    /// default.replication.factor
    pub default_replication_factor: i16,
    /// min.insync.replicas of the configuration file.
    pub min_isr: usize,
    /// unclean.leader.election.enable of the configuration file.
    pub unclean_election: bool,
    /// delete.topic.enable
    pub delete_topics: bool,
    /// broker.session.timeout.ms
    pub session_timeout_ms: i64,
    /// leader.imbalance.check.interval.seconds, or `None` if auto.leader.rebalance.enable is false.
    pub rebalance_interval_ms: Option<i64>,
    /// unclean.leader.election.interval.ms
    pub unclean_interval_ms: i64,
    /// The listener that brokers reach each other by; each must register it.
    pub inter_broker_listener: String,
    /// What this program can finalize.
    pub features: FeatureTable,
    pub rules: Arc<dyn ConfigRules>,
}

impl Settings {
    /// Kafka's defaults, with all features of [`kafka_features`].
    pub fn new(node_id: i32, cluster_id: &str, rules: Arc<dyn ConfigRules>) -> Settings {
        Settings {
            node_id,
            cluster_id: cluster_id.to_string(),
            default_partitions: 1,
            default_replication_factor: 1,
            min_isr: 1,
            unclean_election: false,
            delete_topics: true,
            session_timeout_ms: 9_000,
            rebalance_interval_ms: Some(300_000),
            unclean_interval_ms: 300_000,
            inter_broker_listener: "PLAINTEXT".to_string(),
            features: kafka_features(),
            rules,
        }
    }
}

/// What the controller decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// For the log, in this order.
    pub records: Vec<MetadataRecord>,
    /// Whether the records must be in one entry. If not, a long list may be cut into several, which
    /// make sense one after the other.
    pub atomic: bool,
    /// For whoever asked, once the records are committed.
    pub reply: ControllerReply,
}

/// See the head of this module.
pub struct Controller {
    settings: Settings,
    committed: Image,
    pending: Image,
    sessions: Sessions,
    next_rebalance_ms: i64,
    next_unclean_ms: i64,
}

impl Controller {
    /// Takes over at `now_ms` from whoever led before. `image` must hold everything that earlier
    /// leaders wrote: make it when the first, empty entry of the new term is applied, not before.
    ///
    /// Only differences between the times that a controller is given matter, so they may and should
    /// come from a clock that cannot jump.
    pub fn new(image: Image, settings: Settings, now_ms: i64) -> Controller {
        Controller {
            sessions: Sessions::new(&image, now_ms, settings.session_timeout_ms),
            next_rebalance_ms: match settings.rebalance_interval_ms {
                Some(interval_ms) => now_ms.saturating_add(interval_ms),
                None => i64::MAX,
            },
            next_unclean_ms: now_ms.saturating_add(settings.unclean_interval_ms),
            pending: image.clone(),
            committed: image,
            settings,
        }
    }

    /// What is committed.
    pub fn image(&self) -> &Image {
        &self.committed
    }

    /// What will be once all that was decided is committed.
    pub fn pending(&self) -> &Image {
        &self.pending
    }

    /// The settings, to change what changes at run time.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    fn view(&self) -> View<'_> {
        View { image: &self.pending, settings: &self.settings }
    }

    /// Decides one request against the pending image, which does not change until
    /// [`Controller::apply_pending`]. `random` is asked for topic ids and placement.
    pub fn decide(
        &mut self,
        now_ms: i64,
        random: &mut dyn FnMut() -> u128,
        request: &ControllerRequest,
    ) -> Decision {
        use ControllerReply as Reply;
        use ControllerRequest as Ask;
        let view = View { image: &self.pending, settings: &self.settings };
        let sessions = &mut self.sessions;
        let (records, reply) = match request {
            Ask::CreateTopics(ask) => both(view.create_topics(random, ask), Reply::CreateTopics),
            Ask::DeleteTopics(ask) => both(view.delete_topics(ask), Reply::DeleteTopics),
            Ask::CreatePartitions(ask) => {
                both(view.create_partitions(random, ask), Reply::CreatePartitions)
            }
            Ask::AlterConfigs(ask) => both(view.alter_configs(ask), Reply::AlterConfigs),
            Ask::IncrementalAlterConfigs(ask) => {
                both(view.incremental_alter_configs(ask), Reply::IncrementalAlterConfigs)
            }
            Ask::ElectLeaders(ask) => both(view.elect_leaders(ask), Reply::ElectLeaders),
            Ask::AlterPartition(ask) => both(view.alter_partition(ask), Reply::AlterPartition),
            Ask::AlterReassignments(ask) => {
                both(view.alter_reassignments(ask), Reply::AlterReassignments)
            }
            Ask::AssignDirectories(ask) => {
                both(view.assign_directories(ask), Reply::AssignDirectories)
            }
            Ask::RegisterBroker(ask) => {
                both(view.register_broker(sessions, now_ms, ask), Reply::RegisterBroker)
            }
            Ask::BrokerHeartbeat(ask) => {
                both(view.broker_heartbeat(sessions, now_ms, ask), Reply::BrokerHeartbeat)
            }
            Ask::FenceBroker(ask) => both(view.fence_broker(ask), Reply::FenceBroker),
            Ask::UnregisterBroker(ask) => {
                both(view.unregister_broker(ask), Reply::UnregisterBroker)
            }
            Ask::AllocateProducerIds(ask) => {
                both(view.allocate_producer_ids(ask), Reply::AllocateProducerIds)
            }
            Ask::UpdateFeatures(ask) => both(view.update_features(ask), Reply::UpdateFeatures),
        };
        let atomic = !matches!(
            request,
            Ask::AlterPartition(_)
                | Ask::ElectLeaders(_)
                | Ask::AssignDirectories(_)
                | Ask::BrokerHeartbeat(_)
                | Ask::FenceBroker(_)
        );
        Decision { records, atomic, reply }
    }

    /// Takes decided records as done, so that the next decision sees them.
    pub fn apply_pending(&mut self, records: &[MetadataRecord]) {
        for record in records {
            let applied = self.pending.apply(record);
            assert!(applied.is_ok(), "the controller decided what does not fit: {applied:?}");
        }
    }

    /// An entry of the log is committed: one that this controller decided, or an empty one.
    pub fn commit(&mut self, index: i64, records: &[MetadataRecord]) -> Result<(), ImageError> {
        self.committed.apply_all(index, records)?;
        self.sessions.committed(index, records);
        Ok(())
    }

    /// Forgets everything that was decided and not committed.
    pub fn rollback(&mut self) {
        self.pending = self.committed.clone();
    }
}

fn both<T>(
    (records, reply): (Vec<MetadataRecord>, T),
    wrap: impl Fn(T) -> ControllerReply,
) -> (Vec<MetadataRecord>, ControllerReply) {
    (records, wrap(reply))
}

/// Items that a list names more than once, in order, each once.
fn duplicates<T: Ord + Clone>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(item, _)| item).collect()
}

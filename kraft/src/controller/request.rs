//! What is asked of the controller and what it answers: plain data, free of protocol versions.
//!
//! Handlers turn messages into these and back. Per-item results are [`Refusal`]s with the code and
//! the text that Apache Kafka gives; authorization, quotas and time-outs are the handlers'
//! business.

use std::sync::Arc;

use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use crate::image::Partition;
use crate::record::{Endpoint, FeatureRange};

/// Why something was not done: an error code and, where Kafka gives one, a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    /// `None` where Kafka's ErrorMessage is null.
    pub message: Option<String>,
}

impl Refusal {
    /// A refusal with a text.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: Some(message.into()) }
    }

    /// A refusal without a text.
    pub fn bare(code: ErrorCode) -> Refusal {
        Refusal { code, message: None }
    }
}

/// A result for each named item, in the order of the request.
pub type PerName<T> = Vec<(String, Result<T, Refusal>)>;

/// One request to the controller.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerRequest {
    CreateTopics(CreateTopics),
    DeleteTopics(DeleteTopics),
    CreatePartitions(CreatePartitions),
    AlterConfigs(AlterConfigs),
    IncrementalAlterConfigs(IncrementalAlterConfigs),
    ElectLeaders(ElectLeaders),
    AlterPartition(AlterPartition),
    AlterReassignments(AlterReassignments),
    AssignDirectories(AssignDirectories),
    RegisterBroker(RegisterBroker),
    BrokerHeartbeat(BrokerHeartbeat),
    FenceBroker(FenceBroker),
    UnregisterBroker(UnregisterBroker),
    AllocateProducerIds(AllocateProducerIds),
    UpdateFeatures(UpdateFeatures),
}

/// The answer to a [`ControllerRequest`], in the variant of the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerReply {
    CreateTopics(PerName<CreatedTopic>),
    DeleteTopics(Vec<DeletedTopic>),
    CreatePartitions(PerName<()>),
    AlterConfigs(Vec<AlteredResource>),
    IncrementalAlterConfigs(Vec<AlteredResource>),
    ElectLeaders(ElectedLeaders),
    AlterPartition(Result<Vec<AlteredPartition>, Refusal>),
    AlterReassignments(PerName<Vec<PartitionResult>>),
    AssignDirectories(Result<Vec<AssignedDirectory>, Refusal>),
    /// The broker epoch.
    RegisterBroker(Result<i64, Refusal>),
    BrokerHeartbeat(Result<BrokerStatus, Refusal>),
    FenceBroker(Result<(), Refusal>),
    UnregisterBroker(Result<(), Refusal>),
    AllocateProducerIds(Result<ProducerIdBlock, Refusal>),
    /// For all features together: nothing is applied if one of them cannot be.
    UpdateFeatures(Result<(), Refusal>),
}

/// What became of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionResult {
    pub partition: i32,
    pub result: Result<(), Refusal>,
}

/// CreateTopics (19).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTopics {
    pub topics: Vec<NewTopic>,
    /// All checks, no records.
    pub validate_only: bool,
}

/// A topic to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    pub name: String,
    /// -1: the default, or given by `assignments`.
    pub partitions: i32,
    /// -1: the default, or given by `assignments`.
    pub replication_factor: i16,
    /// Partition index and its replicas; empty = placed by the controller.
    pub assignments: Vec<(i32, Vec<i32>)>,
    /// Overrides. A key given twice is no error: the last one counts.
    pub configs: Vec<(String, Option<String>)>,
}

/// A topic that was made, or with `validate_only` would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    pub topic_id: Uuid,
    pub partitions: i32,
    pub replication_factor: i16,
}

/// DeleteTopics (20).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteTopics {
    pub topics: Vec<TopicRef>,
}

/// A topic by name or by id (the other is `None` or zero).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRef {
    pub name: Option<String>,
    pub id: Uuid,
}

/// What became of one topic to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedTopic {
    /// Known whenever the topic exists or was given by name.
    pub name: Option<String>,
    /// Zero if not known.
    pub id: Uuid,
    pub result: Result<(), Refusal>,
}

/// CreatePartitions (37).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreatePartitions {
    pub topics: Vec<GrowTopic>,
    /// All checks, no records.
    pub validate_only: bool,
}

/// A topic that gets more partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowTopic {
    pub name: String,
    /// Partitions there shall be in all.
    pub count: i32,
    /// Replicas of each new partition; `None` = placed by the controller.
    pub assignments: Option<Vec<Vec<i32>>>,
}

/// AlterConfigs (33): the given configs become the whole set of overrides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlterConfigs {
    pub resources: Vec<ReplacedResource>,
    /// All checks, no records.
    pub validate_only: bool,
}

/// A resource and its new overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedResource {
    /// The number of the protocol: 2 topic, 4 broker, 16 client metrics, 32 group.
    pub kind: i8,
    pub name: String,
    pub configs: Vec<(String, Option<String>)>,
}

/// IncrementalAlterConfigs (44).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncrementalAlterConfigs {
    pub resources: Vec<ChangedResource>,
    /// All checks, no records.
    pub validate_only: bool,
}

/// A resource and what changes in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedResource {
    /// The number of the protocol: 2 topic, 4 broker, 16 client metrics, 32 group.
    pub kind: i8,
    pub name: String,
    pub ops: Vec<ConfigOp>,
}

/// One change of one config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigOp {
    pub key: String,
    /// The number of the protocol: 0 set, 1 delete, 2 append, 3 subtract.
    pub op: i8,
    pub value: Option<String>,
}

/// What became of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredResource {
    pub kind: i8,
    pub name: String,
    pub result: Result<(), Refusal>,
}

/// ElectLeaders (43).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectLeaders {
    /// The number of the protocol: 0 preferred, 1 unclean.
    pub election: i8,
    /// `None` = all partitions.
    pub topics: Option<Vec<(String, Vec<i32>)>>,
}

/// What became of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectedLeaders {
    /// The error of the whole request.
    pub code: ErrorCode,
    pub topics: Vec<(String, Vec<PartitionResult>)>,
}

/// AlterPartition (56): a leader's wish for its ISR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterPartition {
    pub broker_id: i32,
    pub broker_epoch: i64,
    pub partitions: Vec<IsrChange>,
}

/// The ISR that a leader wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsrChange {
    pub topic_id: Uuid,
    pub partition: i32,
    /// As the leader knows it.
    pub leader_epoch: i32,
    /// As the leader knows it.
    pub partition_epoch: i32,
    /// Broker ids and their epochs as the leader knows them (KIP-903); epoch -1 = not checked.
    pub isr: Vec<(i32, i64)>,
    /// Whether the leader still recovers from an unclean election.
    pub recovering: bool,
}

/// What became of one partition: its new state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredPartition {
    pub topic_id: Uuid,
    pub partition: i32,
    pub result: Result<Arc<Partition>, Refusal>,
}

/// AlterPartitionReassignments (45).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterReassignments {
    pub topics: Vec<(String, Vec<Reassignment>)>,
    /// False (v1+): a target with more or fewer replicas is refused.
    pub allow_factor_change: bool,
}

/// Where a partition shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reassignment {
    pub partition: i32,
    /// `None` cancels the running reassignment.
    pub replicas: Option<Vec<i32>>,
}

/// A reassignment that is under way (ListPartitionReassignments, 46).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningReassignment {
    pub partition: i32,
    pub replicas: Vec<i32>,
    pub adding: Vec<i32>,
    pub removing: Vec<i32>,
}

/// AssignReplicasToDirs (73): in which directories a broker keeps its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignDirectories {
    pub broker_id: i32,
    pub broker_epoch: i64,
    pub replicas: Vec<AssignedReplica>,
}

/// A replica and its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedReplica {
    pub directory: Uuid,
    pub topic_id: Uuid,
    pub partition: i32,
}

/// What became of one [`AssignedReplica`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedDirectory {
    pub replica: AssignedReplica,
    pub result: Result<(), Refusal>,
}

/// BrokerRegistration (62).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterBroker {
    pub broker_id: i32,
    pub cluster_id: String,
    /// Drawn by the broker at its start; the same id again amends the registration.
    pub incarnation_id: Uuid,
    pub endpoints: Vec<Endpoint>,
    pub features: Vec<FeatureRange>,
    pub rack: Option<Arc<str>>,
    pub directories: Vec<Uuid>,
    /// The epoch before this start if nothing acknowledged was lost since; -1 if that is not known.
    /// Without it the broker leaves every ELR (KIP-966).
    pub previous_epoch: i64,
}

/// BrokerHeartbeat (63).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerHeartbeat {
    pub broker_id: i32,
    pub broker_epoch: i64,
    /// Index of the last entry of the metadata log that the broker has applied.
    pub applied_index: i64,
    pub want_fence: bool,
    pub want_shut_down: bool,
    /// Directories that failed.
    pub offline_directories: Vec<Uuid>,
}

/// What a broker is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerStatus {
    pub is_caught_up: bool,
    pub is_fenced: bool,
    pub is_in_controlled_shutdown: bool,
    pub should_shut_down: bool,
}

/// A broker is known to be gone, for example because its connection was reset. No API of Kafka's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceBroker {
    pub broker_id: i32,
    pub broker_epoch: i64,
}

/// UnregisterBroker (64).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnregisterBroker {
    pub broker_id: i32,
}

/// AllocateProducerIds (67).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocateProducerIds {
    pub broker_id: i32,
    pub broker_epoch: i64,
}

/// Producer ids that a broker may give out: `first_id .. first_id + len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdBlock {
    pub first_id: i64,
    pub len: i32,
}

/// UpdateFeatures (57).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateFeatures {
    /// If a feature is named twice, the last one counts.
    pub updates: Vec<FeatureUpdate>,
    /// All checks, no records.
    pub validate_only: bool,
}

/// The level that a feature shall have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureUpdate {
    pub name: String,
    /// 0 takes the feature off the finalized list.
    pub level: i16,
    /// The number of the protocol: 1 upgrade, 2 safe downgrade, 3 unsafe downgrade.
    pub upgrade_type: i8,
}

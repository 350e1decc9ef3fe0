//! What is asked of a group coordinator and what it answers, free of the wire and of API versions.
//!
//! An API handler turns a request into one of these and a reply into a response. What a version
//! cannot say (GROUP_ID_NOT_FOUND before OffsetCommit v9, null protocol names before JoinGroup v7,
//! ...) is mapped down there; whatever a version changes in behaviour is a field here.

use std::sync::Arc;

use bytes::Bytes;
use protocol_compat::error::ErrorCode;
use uuid::Uuid;

use super::settings::GroupSettings;

/// A group, member, instance, client, protocol or topic name. Cheap to clone.
pub type Name = Arc<str>;

/// One thing a member can speak: a name and what it says about itself under that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    pub name: Name,
    pub metadata: Bytes,
}

/// JoinGroup.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    pub group: Name,
    /// Empty for a member that has no id yet.
    pub member_id: Name,
    pub instance_id: Option<Name>,
    pub client_id: Name,
    /// As Kafka shows it: `/127.0.0.1`.
    pub client_host: Name,
    pub session_timeout_ms: i32,
    /// v0 has none; the handler passes the session timeout.
    pub rebalance_timeout_ms: i32,
    pub protocol_type: Name,
    /// In order of preference. Of two with one name the first counts.
    pub protocols: Vec<Protocol>,
    /// v4 and later: a new dynamic member must come back with the id it is given.
    pub requires_member_id: bool,
    /// v9 and later: a returning static leader can be told not to assign.
    pub can_skip_assignment: bool,
    /// Why the client joins, for the log (v8 and later).
    pub reason: Option<Name>,
    /// Becomes the tail of a new member id; drawn by the caller.
    pub fresh_uuid: Uuid,
}

/// The answer to JoinGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinReply {
    pub error: ErrorCode,
    /// -1 with an error.
    pub generation: i32,
    pub protocol_type: Option<Name>,
    pub protocol: Option<Name>,
    /// Empty with an error.
    pub leader: Name,
    pub skip_assignment: bool,
    pub member_id: Name,
    /// Everybody, for the leader; empty for the others.
    pub members: Vec<JoinedMember>,
}

/// What the leader is told of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    pub member_id: Name,
    pub instance_id: Option<Name>,
    pub metadata: Bytes,
}

impl JoinReply {
    /// A refusal; `member_id` is echoed (or is the new id that MEMBER_ID_REQUIRED hands out).
    pub fn refused(error: ErrorCode, member_id: Name) -> Self {
        JoinReply {
            error,
            generation: -1,
            protocol_type: None,
            protocol: None,
            leader: Name::from(""),
            skip_assignment: false,
            member_id,
            members: Vec::new(),
        }
    }
}

/// SyncGroup.
#[derive(Clone, Debug)]
pub struct SyncRequest {
    pub group: Name,
    pub generation: i32,
    pub member_id: Name,
    pub instance_id: Option<Name>,
    pub protocol_type: Option<Name>,
    pub protocol: Option<Name>,
    /// v5 and later: a missing protocol type or name is an error.
    pub requires_protocol: bool,
    /// (member id, assignment), from the leader. Of two for one member the last counts.
    pub assignments: Vec<(Name, Bytes)>,
}

/// The answer to SyncGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncReply {
    pub error: ErrorCode,
    pub protocol_type: Option<Name>,
    pub protocol: Option<Name>,
    pub assignment: Bytes,
}

impl SyncReply {
    /// A refusal: no protocol, an empty assignment.
    pub fn refused(error: ErrorCode) -> Self {
        SyncReply { error, protocol_type: None, protocol: None, assignment: Bytes::new() }
    }
}

/// Heartbeat. Its answer is one error code.
#[derive(Clone, Debug)]
pub struct HeartbeatRequest {
    pub group: Name,
    pub generation: i32,
    pub member_id: Name,
    pub instance_id: Option<Name>,
}

/// LeaveGroup, of any version: before v3 a list of one.
#[derive(Clone, Debug)]
pub struct LeaveRequest {
    pub group: Name,
    pub members: Vec<Leaving>,
}

/// One member to remove: by its id, or (an administrator) by its instance id with an empty member
/// id.
#[derive(Clone, Debug)]
pub struct Leaving {
    pub member_id: Name,
    pub instance_id: Option<Name>,
    pub reason: Option<Name>,
}

/// The answer to LeaveGroup. Before v3 the error of the one member is the error of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveReply {
    pub error: ErrorCode,
    /// One per member of the request, in its order; empty with a top-level error.
    pub members: Vec<ErrorCode>,
}

/// OffsetCommit. Unknown topics and partitions are answered by the handler and are not in here.
#[derive(Clone, Debug)]
pub struct CommitRequest {
    pub group: Name,
    /// -1 for a consumer that is no member.
    pub generation: i32,
    pub member_id: Name,
    pub instance_id: Option<Name>,
    /// v2 to v4, when not -1: this commit expires that long from now.
    pub retention_ms: Option<i64>,
    pub topics: Vec<CommitTopic>,
}

/// The commits for one topic.
#[derive(Clone, Debug)]
pub struct CommitTopic {
    pub topic: Name,
    /// The id the topic has now.
    pub topic_id: Uuid,
    pub partitions: Vec<CommitPartition>,
}

/// One commit.
#[derive(Clone, Debug)]
pub struct CommitPartition {
    pub partition: i32,
    /// Any value; Kafka stores negative ones too.
    pub offset: i64,
    /// -1 when not known.
    pub leader_epoch: i32,
    /// `None` is stored as the empty string.
    pub metadata: Option<Name>,
}

/// The answer to OffsetCommit and to OffsetDelete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerPartition {
    /// Counts for every partition when it is not `None`; `partitions` is empty then.
    pub error: ErrorCode,
    /// By topic and partition, in the shape and order of the request.
    pub partitions: Vec<Vec<ErrorCode>>,
}

impl PerPartition {
    /// One error for all.
    pub fn refused(error: ErrorCode) -> Self {
        PerPartition { error, partitions: Vec::new() }
    }
}

/// OffsetFetch for one group.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    pub group: Name,
    /// `None` asks for everything that is committed.
    pub topics: Option<Vec<FetchTopic>>,
    /// Answer UNSTABLE_OFFSET_COMMIT where a transaction holds a commit back.
    pub require_stable: bool,
}

/// The partitions asked of one topic.
#[derive(Clone, Debug)]
pub struct FetchTopic {
    pub topic: Name,
    /// The id asked for; an offset that was committed under another id does not count. Nil: any.
    pub topic_id: Uuid,
    pub partitions: Vec<i32>,
}

/// The answer to OffsetFetch for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchReply {
    pub error: ErrorCode,
    pub topics: Vec<FetchedTopic>,
}

/// The committed offsets of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedTopic {
    pub topic: Name,
    /// As asked; when everything was asked, as committed (nil if the commit had none).
    pub topic_id: Uuid,
    pub partitions: Vec<FetchedPartition>,
}

/// One committed offset; without a commit -1, -1, "" and no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedPartition {
    pub partition: i32,
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: Name,
    pub error: ErrorCode,
}

/// OffsetDelete. Unknown topics and partitions are answered by the handler and are not in here.
#[derive(Clone, Debug)]
pub struct OffsetDeleteRequest {
    pub group: Name,
    pub topics: Vec<(Name, Vec<i32>)>,
}

/// The states of a classic group, as Kafka names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupState {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
    Dead,
}

impl GroupState {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::PreparingRebalance => "PreparingRebalance",
            GroupState::CompletingRebalance => "CompletingRebalance",
            GroupState::Stable => "Stable",
            GroupState::Dead => "Dead",
        }
    }
}

/// The answer to DescribeGroups for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// GROUP_ID_NOT_FOUND with state Dead for a missing group; before v6 the handler drops the
    /// error.
    pub error: ErrorCode,
    pub state: GroupState,
    pub protocol_type: Name,
    /// Empty unless the group is Stable.
    pub protocol: Name,
    pub members: Vec<DescribedMember>,
}

impl Description {
    /// No group to describe, for this reason.
    pub fn refused(error: ErrorCode) -> Self {
        Description {
            error,
            state: GroupState::Dead,
            protocol_type: Name::from(""),
            protocol: Name::from(""),
            members: Vec::new(),
        }
    }
}

/// One member of a described group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMember {
    pub member_id: Name,
    pub instance_id: Option<Name>,
    pub client_id: Name,
    pub client_host: Name,
    /// Empty unless the group is Stable.
    pub metadata: Bytes,
    /// Empty unless the group is Stable.
    pub assignment: Bytes,
}

/// ListGroups. An empty filter lets everything pass; names count in any case.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    pub states: Vec<String>,
    pub types: Vec<String>,
}

/// One row of ListGroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    pub group: Name,
    pub protocol_type: Name,
    pub state: GroupState,
    /// `classic`.
    pub group_type: &'static str,
}

/// A topic that exists no more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeletedTopic {
    pub topic: Name,
    /// Commits under another id (the name was used again) stay. Nil: any.
    pub topic_id: Uuid,
}

/// Anything that can be asked of the coordinator.
#[derive(Clone, Debug)]
pub enum Input {
    Join(JoinRequest),
    Sync(SyncRequest),
    Heartbeat(HeartbeatRequest),
    Leave(LeaveRequest),
    Commit(CommitRequest),
    FetchOffsets(FetchRequest),
    DeleteOffsets(OffsetDeleteRequest),
    Describe(Name),
    List(ListFilter),
    DeleteGroup(Name),
    /// A notice, not an API: the offsets of these topics go, a bounded number per step.
    TopicsDeleted(Vec<DeletedTopic>),
    /// Looks for expired offsets and groups now instead of at the next check.
    Expire,
}

/// The answer to an [`Input`], of the variant of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Join(JoinReply),
    Sync(SyncReply),
    Heartbeat(ErrorCode),
    Leave(LeaveReply),
    Commit(PerPartition),
    FetchOffsets(FetchReply),
    DeleteOffsets(PerPartition),
    Describe(Description),
    List(Result<Vec<ListedGroup>, ErrorCode>),
    DeleteGroup(ErrorCode),
    /// Taken note of; the tombstones follow.
    TopicsDeleted(ErrorCode),
    Expire(ErrorCode),
}

impl Input {
    /// The answer that says only `error`.
    pub fn refusal(&self, error: ErrorCode) -> Reply {
        match self {
            Input::Join(request) => {
                Reply::Join(JoinReply::refused(error, request.member_id.clone()))
            }
            Input::Sync(_) => Reply::Sync(SyncReply::refused(error)),
            Input::Heartbeat(_) => Reply::Heartbeat(error),
            Input::Leave(_) => Reply::Leave(LeaveReply { error, members: Vec::new() }),
            Input::Commit(_) => Reply::Commit(PerPartition::refused(error)),
            Input::FetchOffsets(_) => Reply::FetchOffsets(FetchReply { error, topics: Vec::new() }),
            Input::DeleteOffsets(_) => Reply::DeleteOffsets(PerPartition::refused(error)),
            Input::Describe(_) => Reply::Describe(Description::refused(error)),
            Input::List(_) => Reply::List(Err(error)),
            Input::DeleteGroup(_) => Reply::DeleteGroup(error),
            Input::TopicsDeleted(_) => Reply::TopicsDeleted(error),
            Input::Expire => Reply::Expire(error),
        }
    }

    /// What is wrong with the request before any group is looked at, loading or not: an empty group
    /// id (only the membership APIs and OffsetDelete mind), a session timeout out of bounds,
    /// protocol names left out (Kafka's `GroupCoordinatorService` and `KafkaApis`).
    ///
    /// Errors: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, INCONSISTENT_GROUP_PROTOCOL.
    pub fn check(&self, settings: &GroupSettings) -> Result<(), ErrorCode> {
        match self {
            Input::Join(request) => {
                named(&request.group)?;
                let bounds = settings.min_session_timeout_ms..=settings.max_session_timeout_ms;
                match bounds.contains(&request.session_timeout_ms) {
                    true => Ok(()),
                    false => Err(ErrorCode::InvalidSessionTimeout),
                }
            }
            Input::Sync(request) => {
                let missing = request.protocol_type.is_none() || request.protocol.is_none();
                if request.requires_protocol && missing {
                    return Err(ErrorCode::InconsistentGroupProtocol);
                }
                named(&request.group)
            }
            Input::Heartbeat(request) => named(&request.group),
            Input::Leave(request) => named(&request.group),
            Input::DeleteOffsets(request) => named(&request.group),
            Input::Commit(_)
            | Input::FetchOffsets(_)
            | Input::Describe(_)
            | Input::List(_)
            | Input::DeleteGroup(_)
            | Input::TopicsDeleted(_)
            | Input::Expire => Ok(()),
        }
    }
}

fn named(group: &str) -> Result<(), ErrorCode> {
    match group {
        "" => Err(ErrorCode::InvalidGroupId),
        _ => Ok(()),
    }
}

impl Reply {
    /// The same kind of answer with nothing but an error in it.
    pub fn into_refusal(self, error: ErrorCode) -> Reply {
        match self {
            Reply::Join(_) => Reply::Join(JoinReply::refused(error, Name::from(""))),
            Reply::Sync(_) => Reply::Sync(SyncReply::refused(error)),
            Reply::Heartbeat(_) => Reply::Heartbeat(error),
            Reply::Leave(_) => Reply::Leave(LeaveReply { error, members: Vec::new() }),
            Reply::Commit(_) => Reply::Commit(PerPartition::refused(error)),
            Reply::FetchOffsets(_) => Reply::FetchOffsets(FetchReply { error, topics: Vec::new() }),
            Reply::DeleteOffsets(_) => Reply::DeleteOffsets(PerPartition::refused(error)),
            Reply::Describe(_) => Reply::Describe(Description::refused(error)),
            Reply::List(_) => Reply::List(Err(error)),
            Reply::DeleteGroup(_) => Reply::DeleteGroup(error),
            Reply::TopicsDeleted(_) => Reply::TopicsDeleted(error),
            Reply::Expire(_) => Reply::Expire(error),
        }
    }
}

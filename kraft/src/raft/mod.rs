//! The metadata quorum: one node of a Raft group, driven from outside by ticks, messages and
//! proposals.
//!
//! [`RaftNode`] wraps raft-rs with what it leaves open: storage over [`storage::kv::Kv`], a message
//! codec of its own, snapshots in chunks, log truncation, membership by one change at a time, the
//! check of who speaks. Not here: sockets, time, the meaning of entries (`controller`, `image`).
//!
//! One thread owns a node and loops: take what waits (messages to [`RaftNode::step`], proposals to
//! [`RaftNode::propose`], due ticks to [`RaftNode::tick`]), then while [`RaftNode::has_ready`] call
//! [`RaftNode::ready`] and act on its [`Outputs`] in this order: restore `snapshot` if there is
//! one, apply `committed`, call [`RaftNode::applied`], send `messages`.
//!
//! **What survives.** A node remembers the log and its newest snapshot, not what was applied after
//! it. After a restart the first `Outputs` bring that snapshot and then every entry that is known
//! to be committed; whether that is all that was committed before only a leader tells. A caller
//! with durable state of its own skips the entries it has.

mod codec;
mod log;
mod logger;
mod node;
mod snapshot;

pub use codec::{ENTRY_BYTES_MAX, FRAME_BYTES_MAX, MEMBERS_MAX};
pub use node::RaftNode;
pub use snapshot::SNAPSHOT_BYTES_MAX;

use std::collections::BTreeSet;

use bytes::Bytes;
use storage::kv::KvError;
use thiserror::Error;
use uuid::Uuid;

/// How a node takes part. Ticks are whatever the caller makes them (50 to 100 ms is sensible).
#[derive(Clone, Debug)]
pub struct RaftConfig {
    /// Kafka's `node.id`, 0 or more.
    pub node_id: i32,
    /// Made at random with the data directory and kept beside it: which disk this is. A voter that
    /// comes back with another one is refused by the others until it was removed and added again,
    /// since it may have forgotten its votes.
    pub directory_id: Uuid,
    /// The founding voters; looked at only when the store is empty, and then the same on all of
    /// them. A node that is not among them waits until a leader adds it.
    pub voters: Vec<i32>,
    /// A follower that hears no leader for `t` ticks asks for votes; each term draws `t` in
    /// `election_ticks..2 * election_ticks` from `seed`.
    pub election_ticks: u32,
    /// A leader reminds its followers this often. Less than `election_ticks`.
    pub heartbeat_ticks: u32,
    /// Different on each node, or elections may tie.
    pub seed: u64,
    /// Truncation leaves this many applied entries for followers that are only a little behind.
    pub entries_kept: u64,
    /// Snapshots are stored and sent in pieces of this size.
    pub snapshot_chunk_bytes: u32,
}

impl RaftConfig {
    /// The defaults for a node: election after 10 to 20 ticks, heartbeat each 2nd, 1024 entries
    /// kept, chunks of 256 KiB.
    pub fn new(node_id: i32, directory_id: Uuid, voters: Vec<i32>, seed: u64) -> RaftConfig {
        RaftConfig {
            node_id,
            directory_id,
            voters,
            election_ticks: 10,
            heartbeat_ticks: 2,
            seed,
            entries_kept: 1024,
            snapshot_chunk_bytes: 256 << 10,
        }
    }
}

/// What a node is right now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Takes proposals.
    Leader,
    /// A voter asking for votes (or asking whether it would get them).
    Candidate,
    /// A voter that follows, or waits for, a leader.
    Follower,
    /// Not a voter: a learner, or not yet a member.
    Learner,
}

/// One committed entry. Indexes arrive without a gap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub index: u64,
    pub term: u64,
    /// What was proposed; empty for entries of Raft's own (a new leader, a change of members).
    pub data: Bytes,
}

/// State that replaces all entries up to `index`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateSnapshot {
    pub index: u64,
    pub term: u64,
    /// As given to [`RaftNode::create_snapshot`], on this node or another.
    pub data: Bytes,
}

/// Node ids of the group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Members {
    pub voters: BTreeSet<i32>,
    /// Get every entry, count for nothing.
    pub learners: BTreeSet<i32>,
}

/// One change of the members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberChange {
    /// A node joins without a vote, and `directory_id` is the disk that speaks for it.
    AddLearner { node_id: i32, directory_id: Uuid },
    /// A learner becomes a voter. Wait until it has caught up, or commits will wait for it.
    Promote { node_id: i32 },
    /// A member leaves. The leader cannot remove itself: transfer leadership first.
    Remove { node_id: i32 },
}

/// Where a proposal will be committed, if it will: when the entry at `index` arrives with another
/// term, the proposal is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proposed {
    pub index: u64,
    pub term: u64,
}

/// What a node wants done. Everything its messages depend on is on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outputs {
    /// (node id, frame). May be dropped, doubled, late: Raft copes.
    pub messages: Vec<(i32, Vec<u8>)>,
    /// Restore it before applying `committed`.
    pub snapshot: Option<StateSnapshot>,
    /// Apply in order.
    pub committed: Vec<Entry>,
    /// The members changed to this.
    pub members: Option<Members>,
    /// A peer waits for a snapshot newer than the last: create one at the applied index soon.
    pub snapshot_wanted: bool,
    pub role: Role,
    /// Leader, and its term's first entry was handed out: the caller's state lacks nothing that was
    /// committed before, so it may decide on it.
    pub active: bool,
    /// The leader of `term`, if known.
    pub leader: Option<i32>,
    pub term: u64,
    pub commit_index: u64,
}

/// How far the leader knows a member to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplicationState {
    /// Finding out where the member's log ends.
    Probe,
    /// Sending entries.
    Replicate,
    /// Waiting until the member has fetched a snapshot.
    Snapshot,
}

/// One member as the leader sees it, the leader itself included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberProgress {
    pub node_id: i32,
    pub is_voter: bool,
    /// The last entry known to be on the member's disk.
    pub matched_index: u64,
    pub next_index: u64,
    pub state: ReplicationState,
    /// When it was last heard, in ms since 1970 (Kafka: LastFetchTimestamp).
    pub heard_ms: Option<i64>,
    /// When it last had all of the leader's log (Kafka: LastCaughtUpTimestamp).
    pub caught_up_ms: Option<i64>,
}

/// A look at a node, for DescribeQuorum and metrics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    pub node_id: i32,
    pub role: Role,
    pub leader: Option<i32>,
    pub term: u64,
    pub first_index: u64,
    pub last_index: u64,
    pub commit_index: u64,
    /// As told with [`RaftNode::applied`].
    pub applied_index: u64,
    pub snapshot_index: u64,
    pub members: Members,
    /// By node id; empty unless leader.
    pub progress: Vec<MemberProgress>,
}

/// Why a call failed.
#[derive(Debug, Error)]
pub enum RaftError {
    /// Only the leader takes proposals. Retriable, elsewhere.
    #[error("not the leader of the metadata quorum")]
    NotLeader { leader: Option<i32> },
    /// Too much is uncommitted, a change of members is pending, or leadership is moving. Retriable.
    #[error("the metadata quorum is busy")]
    Busy,
    /// An entry or a snapshot beyond the bounds of this module.
    #[error("{bytes} bytes are more than {max}")]
    TooLarge { bytes: u64, max: u64 },
    /// A change of members that makes no sense now.
    #[error("change of quorum members refused: {0}")]
    Members(&'static str),
    /// A peer's message was dropped, the node is well.
    #[error("message from node {node_id} refused: {why}")]
    Refused { node_id: i32, why: &'static str },
    /// Settings that cannot work.
    #[error("metadata quorum: {0}")]
    Config(String),
    /// The store holds no log of ours. The node must not take part.
    #[error("metadata quorum log is damaged: {0}")]
    Corrupt(String),
    /// The store failed. The node is dead: it cannot know what is on disk. Restart the process.
    #[error("metadata quorum log: {0}")]
    Storage(#[from] KvError),
    /// An earlier call failed with `Storage` or `Corrupt`.
    #[error("the metadata quorum node has failed")]
    Dead,
}

impl RaftError {
    /// Whether the node is lost with it; the process must end, a restart may help.
    pub fn is_fatal(&self) -> bool {
        match self {
            RaftError::Config(_)
            | RaftError::Corrupt(_)
            | RaftError::Storage(_)
            | RaftError::Dead => true,
            RaftError::NotLeader { .. }
            | RaftError::Busy
            | RaftError::TooLarge { .. }
            | RaftError::Members(_)
            | RaftError::Refused { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests;

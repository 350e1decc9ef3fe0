//! One node of the quorum: raft-rs, its log, and the order in which things become durable and
//! visible.
//!
//! The traps of raft-rs that this file answers for: nothing may be stepped between `ready` and
//! `advance`; messages of a follower leave after the sync; the commit index reaches the disk with
//! or before anything that depends on it. Messages of peers are checked in `peers.rs` before
//! raft-rs sees them, because it panics on what an honest peer would not send.

mod peers;

use std::collections::BTreeMap;

use bytes::Bytes;
use raft::eraftpb::{
    ConfChangeType, ConfState, Entry as RaftEntry, EntryType, Message, MessageType,
};
use raft::{
    Config, Error as RaftRsError, INVALID_ID, ProgressState, RawNode, ReadOnlyOption, StateRole,
};
use storage::kv::Kv;
use uuid::Uuid;

use super::codec::{self, ENTRY_BYTES_MAX, Frame, Identity, MEMBERS_MAX, Packet, SnapshotId};
use super::log::{BOOTSTRAP, Log};
use super::logger::logger;
use super::snapshot::{Incoming, Outgoing, SNAPSHOT_BYTES_MAX};
use super::{
    Entry, MemberChange, MemberProgress, Members, Outputs, Proposed, RaftConfig, RaftError,
    ReplicationState, Role, StateSnapshot, Status,
};

/// Entries of one message, unless a single one is larger.
const APPEND_BYTES_MAX: u64 = 1 << 20;
/// Messages of entries on the way to one follower.
const APPENDS_IN_FLIGHT_MAX: usize = 32;
/// Proposed and not committed; beyond it proposals are refused as busy.
const UNCOMMITTED_BYTES_MAX: u64 = 16 << 20;
/// Entries handed out by one turn of raft-rs.
const COMMITTED_BYTES_PER_TURN: u64 = 1 << 20;
/// Entries handed out by one `ready`; the rest waits for the next.
const COMMITTED_BYTES_PER_READY: usize = 4 << 20;
/// A snapshot that was stepped and waits for the next `ready` to be stored.
struct Installed {
    from: u64,
    id: SnapshotId,
    bytes: Bytes,
}

#[derive(Clone, Copy, Default)]
struct Heard {
    heard_ms: Option<i64>,
    caught_up_ms: Option<i64>,
}

/// One node. Owned by one thread; see the module's head for the loop.
pub struct RaftNode {
    raw: RawNode<Log>,
    config: RaftConfig,
    /// Entries up to here were handed out. What raft-rs calls applied: all that it wants to know is
    /// that changes of members took effect, and they do when handed out.
    handed: u64,
    /// Entries up to here are in the caller's state.
    applied: u64,
    /// The stored snapshot, for the first `ready`.
    restored: Option<StateSnapshot>,
    incoming: Option<Incoming>,
    installed: Option<Installed>,
    outgoing: Outgoing,
    /// Driver messages; at most one per step and a few per tick.
    outbox: Vec<(u64, Packet)>,
    heard: BTreeMap<u64, Heard>,
    /// The next `ready` tells the members; the first one does too.
    members_changed: bool,
    dead: bool,
}

impl RaftNode {
    /// Opens or founds the node's log. A sole voter is its own leader when this returns.
    ///
    /// Errors: settings that cannot work, a store of another node, a damaged log.
    pub fn new(config: RaftConfig, kv: Box<dyn Kv>) -> Result<RaftNode, RaftError> {
        check_config(&config)?;
        let identity = Identity { id: raft_id(config.node_id), directory_id: config.directory_id };
        let voters: Vec<u64> = config.voters.iter().map(|node_id| raft_id(*node_id)).collect();
        let log = Log::open(kv, identity, &voters, config.snapshot_chunk_bytes)?;
        let SnapshotId { index, term } = log.snapshot_id();
        let restored = if index > BOOTSTRAP.index {
            Some(StateSnapshot { index, term, data: log.snapshot_bytes()? })
        } else {
            None
        };
        let raw = RawNode::new(&raft_config(&config, index), log, &logger())
            .map_err(|error| RaftError::Config(error.to_string()))?;
        let mut node = RaftNode {
            raw,
            config,
            handed: index,
            applied: if restored.is_some() { 0 } else { index },
            restored,
            incoming: None,
            installed: None,
            outgoing: Outgoing::default(),
            outbox: Vec::new(),
            heard: BTreeMap::new(),
            members_changed: true,
            dead: false,
        };
        node.redraw_election_timeout();
        if node.raw.raft.store().members().voters == [identity.id] {
            node.campaign()?;
        }
        Ok(node)
    }

    /// One tick passed. After a stall, one tick is enough: time that nobody could use is no time.
    pub fn tick(&mut self) -> Result<(), RaftError> {
        self.alive()?;
        self.raw.tick();
        self.redraw_election_timeout();
        self.tick_incoming();
        self.tick_outgoing();
        Ok(())
    }

    /// A frame arrived from `from`, as the transport knows it.
    ///
    /// Errors: `Refused` drops the message and leaves the node well; others are fatal.
    pub fn step(&mut self, now_ms: i64, from: i32, frame: &[u8]) -> Result<(), RaftError> {
        self.alive()?;
        let refused = |why| RaftError::Refused { node_id: from, why };
        let frame = Frame::decode(frame).map_err(|malformed| refused(malformed.0))?;
        if from < 0 || frame.from != raft_id(from) || frame.to != self.raw.raft.id {
            return Err(refused("misaddressed"));
        }
        if frame.from == frame.to {
            return Err(refused("from myself"));
        }
        self.admit(frame.from, frame.directory_id).map_err(refused)?;
        match frame.packet {
            Packet::Raft(message) => self.step_raft(*message).map_err(refused)?,
            Packet::ChunkWanted(id, offset) => self.send_chunk(frame.from, id, offset)?,
            Packet::Chunk(id, offset, bytes) => self.add_chunk(frame.from, id, offset, &bytes),
            Packet::ChunkRefused(id) => self.drop_incoming(frame.from, id),
            Packet::SnapshotEnded(id, ok) => self.end_outgoing(frame.from, id, ok),
        }
        self.redraw_election_timeout();
        self.note_heard(frame.from, now_ms);
        Ok(())
    }

    /// Asks for an entry with this data (not empty) to be committed.
    ///
    /// Errors: `NotLeader`, `Busy`, `TooLarge`.
    pub fn propose(&mut self, data: Bytes) -> Result<Proposed, RaftError> {
        self.alive()?;
        assert!(!data.is_empty(), "empty entries are Raft's own");
        if data.len() > ENTRY_BYTES_MAX {
            let (bytes, max) = (data.len() as u64, ENTRY_BYTES_MAX as u64);
            return Err(RaftError::TooLarge { bytes, max });
        }
        self.leading()?;
        match self.raw.propose(Vec::new(), data.into()) {
            Ok(()) => Ok(self.proposed()),
            Err(RaftRsError::ProposalDropped) => Err(RaftError::Busy),
            Err(error) => panic!("raft refused a proposal: {error}"),
        }
    }

    /// Asks for one change of the members. It takes effect when it is handed out.
    ///
    /// Errors: `NotLeader`; `Busy` while another is pending or before the leader's first entry is
    /// committed (raft-dev: "bug in single-server membership changes"); `Members`.
    pub fn change_members(&mut self, change: MemberChange) -> Result<Proposed, RaftError> {
        self.alive()?;
        self.leading()?;
        let raft = &self.raw.raft;
        if raft.has_pending_conf() || !raft.apply_to_current_term() {
            return Err(RaftError::Busy);
        }
        let change = self.plan(change).map_err(RaftError::Members)?;
        let mut entry = RaftEntry::default();
        entry.set_entry_type(EntryType::EntryConfChange);
        entry.data = change.encode().into();
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgPropose);
        message.from = self.raw.raft.id;
        message.entries = vec![entry].into();
        match self.raw.step(message) {
            Ok(()) => Ok(self.proposed()),
            Err(RaftRsError::ProposalDropped) => Err(RaftError::Busy),
            Err(error) => panic!("raft refused a change of members: {error}"),
        }
    }

    /// Asks for votes now instead of at the next timeout.
    pub fn campaign(&mut self) -> Result<(), RaftError> {
        self.alive()?;
        self.raw.campaign().map_err(|error| RaftError::Corrupt(error.to_string()))?;
        self.redraw_election_timeout();
        Ok(())
    }

    /// Starts to hand leadership to another voter; watch `Outputs` for the outcome. Proposals are
    /// busy meanwhile, one election timeout at most.
    ///
    /// Errors: `NotLeader`, `Members`.
    pub fn transfer_leader(&mut self, to: i32) -> Result<(), RaftError> {
        self.alive()?;
        self.leading()?;
        if to < 0 || !self.raw.raft.store().members().voters.contains(&raft_id(to)) {
            return Err(RaftError::Members("not a voter"));
        }
        self.raw.transfer_leader(raft_id(to));
        Ok(())
    }

    /// Messages to this node were lost (a queue was full, a connection broke): entries are sent
    /// anew.
    pub fn report_unreachable(&mut self, node_id: i32) {
        if node_id >= 0 && !self.dead {
            self.raw.report_unreachable(raft_id(node_id));
        }
    }

    /// Whether [`RaftNode::ready`] has anything to say.
    pub fn has_ready(&self) -> bool {
        let waiting = self.restored.is_some() || self.members_changed || !self.outbox.is_empty();
        !self.dead && (waiting || self.raw.has_ready())
    }

    /// Makes durable what must be, and returns what to do. Call it until [`RaftNode::has_ready`] is
    /// false: large backlogs come in parts.
    ///
    /// Errors: fatal ones only.
    pub fn ready(&mut self) -> Result<Outputs, RaftError> {
        self.alive()?;
        let mut out = Outputs {
            messages: Vec::new(),
            snapshot: self.restored.take(),
            committed: Vec::new(),
            members: None,
            snapshot_wanted: false,
            role: Role::Follower,
            active: false,
            leader: None,
            term: 0,
            commit_index: 0,
        };
        let mut bytes = 0;
        while bytes < COMMITTED_BYTES_PER_READY && self.raw.has_ready() {
            let turned = self.turn(&mut out);
            bytes += self.survive(turned)?;
        }
        let driver = std::mem::take(&mut self.outbox);
        out.messages.extend(driver.into_iter().map(|(to, packet)| self.frame(to, packet)));
        let raft = &self.raw.raft;
        if std::mem::take(&mut self.members_changed) {
            out.members = Some(members(raft.store().members()));
        }
        out.snapshot_wanted = raft.store().take_snapshot_wanted();
        out.role = self.role();
        out.active = out.role == Role::Leader && raft.apply_to_current_term();
        out.leader = node_id(raft.leader_id);
        out.term = raft.term;
        out.commit_index = raft.raft_log.committed;
        Ok(out)
    }

    /// The caller's state holds everything up to `index`.
    pub fn applied(&mut self, index: u64) {
        assert!(index <= self.handed, "applied {index}, handed out {}", self.handed);
        self.applied = self.applied.max(index);
    }

    /// Keeps `data` as the state after `index` (applied, and newer than the last snapshot, else
    /// nothing happens) and truncates the log.
    ///
    /// Errors: `TooLarge`, or fatal ones.
    pub fn create_snapshot(&mut self, index: u64, data: Bytes) -> Result<(), RaftError> {
        self.alive()?;
        assert!(index <= self.applied, "snapshot at {index}, applied {}", self.applied);
        if data.len() as u64 > SNAPSHOT_BYTES_MAX {
            let bytes = data.len() as u64;
            return Err(RaftError::TooLarge { bytes, max: SNAPSHOT_BYTES_MAX });
        }
        if index <= self.raw.raft.store().snapshot_id().index {
            return Ok(());
        }
        let truncate_to = self.truncate_to();
        let fetched = self.outgoing.indexes();
        let log = self.raw.raft.mut_store();
        let created = log.create_snapshot(index, &data, truncate_to, &fetched);
        self.survive(created)
    }

    /// A look at the node.
    pub fn status(&self) -> Status {
        let raft = &self.raw.raft;
        let log = raft.store();
        let members = members(log.members());
        let progress = if raft.state == StateRole::Leader { self.progress() } else { Vec::new() };
        Status {
            node_id: self.config.node_id,
            role: self.role(),
            leader: node_id(raft.leader_id),
            term: raft.term,
            first_index: log.first_index(),
            last_index: raft.raft_log.last_index(),
            commit_index: raft.raft_log.committed,
            applied_index: self.applied,
            snapshot_index: log.snapshot_id().index,
            members,
            progress,
        }
    }

    /// Makes everything durable that is only remembered, for a clean stop.
    pub fn close(mut self) -> Result<(), RaftError> {
        self.alive()?;
        Ok(self.raw.raft.mut_store().sync()?)
    }

    // One turn of raft-rs.

    /// Handles one `Ready`; returns the bytes handed out.
    fn turn(&mut self, out: &mut Outputs) -> Result<usize, RaftError> {
        let mut ready = self.raw.ready();
        let mut messages = ready.take_messages();
        let installed = if ready.snapshot().is_empty() { None } else { self.installed.take() };
        let bytes = installed.as_ref().map(|installed| installed.bytes.clone());
        self.raw.raft.mut_store().persist(&ready, bytes)?;
        // Only from here on may anybody hear of it.
        messages.extend(ready.take_persisted_messages());
        let committed = ready.take_committed_entries();
        let mut light = self.raw.advance_append(ready);
        if let Some(commit) = light.commit_index() {
            self.raw.raft.mut_store().set_commit(commit);
        }
        messages.extend(light.take_messages());
        if let Some(installed) = installed {
            self.hand_out_snapshot(installed, out);
        }
        let mut bytes = self.hand_out(committed, out)?;
        bytes += self.hand_out(light.take_committed_entries(), out)?;
        for message in messages {
            self.route(message, out);
        }
        Ok(bytes)
    }

    fn hand_out_snapshot(&mut self, installed: Installed, out: &mut Outputs) {
        let Installed { from, id, bytes } = installed;
        self.handed = id.index;
        self.raw.advance_apply_to(id.index);
        self.outgoing.clear();
        self.outbox.push((from, Packet::SnapshotEnded(id, true)));
        out.committed.clear(); // The snapshot covers them.
        out.snapshot = Some(StateSnapshot { index: id.index, term: id.term, data: bytes });
        self.members_changed = true;
    }

    fn hand_out(&mut self, entries: Vec<RaftEntry>, out: &mut Outputs) -> Result<usize, RaftError> {
        let mut bytes = 0;
        for entry in entries {
            assert_eq!(entry.index, self.handed + 1, "committed entries have a gap");
            self.handed = entry.index;
            let mut data = entry.data;
            if entry.entry_type != EntryType::EntryNormal {
                self.change(entry.index, &data)?;
                data = Bytes::new();
            }
            bytes += data.len() + 64;
            out.committed.push(Entry { index: entry.index, term: entry.term, data });
        }
        self.raw.advance_apply_to(self.handed);
        Ok(bytes)
    }

    /// A committed change of members takes effect, unless the stored membership has it already.
    fn change(&mut self, index: u64, data: &[u8]) -> Result<(), RaftError> {
        if index <= self.raw.raft.store().members_index() {
            return Ok(());
        }
        let change = codec::MemberChange::decode(data)
            .map_err(|malformed| RaftError::Corrupt(format!("entry {index}: {malformed}")))?;
        // What raft-rs refuses here every node refuses, for the members are the same on all.
        let Ok(changed) = self.raw.apply_conf_change(&change.to_raft()) else { return Ok(()) };
        let log = self.raw.raft.mut_store();
        match change.kind {
            ConfChangeType::RemoveNode => log.set_directory(change.id, None),
            ConfChangeType::AddLearnerNode if !change.directory_id.is_nil() => {
                log.set_directory(change.id, Some(change.directory_id));
            }
            ConfChangeType::AddNode | ConfChangeType::AddLearnerNode => {}
        }
        self.members_changed = true;
        log.set_members(index, changed)?;
        let raft = &mut self.raw.raft;
        if raft.state == StateRole::Leader && raft.prs().get(raft.id).is_none() {
            // Removed by the leader before it. raft-rs would go on leading, and panic when it looks
            // for its own progress.
            raft.become_follower(raft.term, INVALID_ID);
        }
        Ok(())
    }

    fn route(&mut self, message: Message, out: &mut Outputs) {
        if !codec::travels(&message) {
            return;
        }
        if message.get_msg_type() == MessageType::MsgSnapshot {
            let metadata = message.get_snapshot().get_metadata();
            let id = SnapshotId { index: metadata.index, term: metadata.term };
            self.outgoing.start(message.to, id);
        }
        out.messages.push(self.frame(message.to, Packet::Raft(Box::new(message))));
    }

    fn frame(&self, to: u64, packet: Packet) -> (i32, Vec<u8>) {
        let directory_id = self.config.directory_id;
        let frame = Frame { from: self.raw.raft.id, to, directory_id, packet };
        (node_id(to).expect("members have node ids"), frame.encode())
    }

    // Small things.

    fn alive(&self) -> Result<(), RaftError> {
        if self.dead { Err(RaftError::Dead) } else { Ok(()) }
    }

    /// A fatal error kills the node: what is on disk is not known any more.
    fn survive<T>(&mut self, result: Result<T, RaftError>) -> Result<T, RaftError> {
        self.dead |= result.as_ref().is_err_and(RaftError::is_fatal);
        result
    }

    fn leading(&self) -> Result<(), RaftError> {
        let raft = &self.raw.raft;
        if raft.state == StateRole::Leader {
            return Ok(());
        }
        Err(RaftError::NotLeader { leader: node_id(raft.leader_id) })
    }

    fn proposed(&self) -> Proposed {
        let raft = &self.raw.raft;
        Proposed { index: raft.raft_log.last_index(), term: raft.term }
    }

    /// Checks a change against the present members.
    fn plan(&self, change: MemberChange) -> Result<codec::MemberChange, &'static str> {
        let members = members(self.raw.raft.store().members());
        let is_voter = |node_id| members.voters.contains(&node_id);
        let is_learner = |node_id| members.learners.contains(&node_id);
        let (kind, node_id, directory_id) = match change {
            MemberChange::AddLearner { node_id, directory_id } => {
                if node_id < 0 {
                    return Err("not a node id");
                }
                if is_voter(node_id) {
                    return Err("already a voter");
                }
                if members.voters.len() + members.learners.len() >= MEMBERS_MAX {
                    return Err("too many members");
                }
                (ConfChangeType::AddLearnerNode, node_id, directory_id)
            }
            MemberChange::Promote { node_id } => {
                if !is_learner(node_id) {
                    return Err("not a learner");
                }
                (ConfChangeType::AddNode, node_id, Uuid::nil())
            }
            MemberChange::Remove { node_id } => {
                if !is_voter(node_id) && !is_learner(node_id) {
                    return Err("not a member");
                }
                if node_id == self.config.node_id {
                    return Err("the leader cannot remove itself");
                }
                (ConfChangeType::RemoveNode, node_id, Uuid::nil())
            }
        };
        Ok(codec::MemberChange { kind, id: raft_id(node_id), directory_id })
    }

    /// Never what a peer needs after the snapshot it fetches, never the newest applied entries.
    fn truncate_to(&self) -> u64 {
        let raft = &self.raw.raft;
        let leads = raft.state == StateRole::Leader;
        let fetching = raft.prs().iter().filter(|(_, progress)| {
            leads && progress.state == ProgressState::Snapshot && progress.pending_snapshot > 0
        });
        let needed = fetching.map(|(_, progress)| progress.pending_snapshot).min();
        self.applied.saturating_sub(self.config.entries_kept).min(needed.unwrap_or(u64::MAX))
    }

    /// Cheaper than [`RaftNode::status`], as are the next ones.
    pub fn role(&self) -> Role {
        let raft = &self.raw.raft;
        match raft.state {
            StateRole::Leader => Role::Leader,
            StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
            StateRole::Follower if raft.promotable() => Role::Follower,
            StateRole::Follower => Role::Learner,
        }
    }

    /// The term, Kafka's leader epoch of the metadata partition.
    pub fn term(&self) -> u64 {
        self.raw.raft.term
    }

    /// The last entry of the log, committed or not.
    pub fn last_index(&self) -> u64 {
        self.raw.raft.raft_log.last_index()
    }

    /// The last entry known to be committed.
    pub fn commit_index(&self) -> u64 {
        self.raw.raft.raft_log.committed
    }

    fn progress(&self) -> Vec<MemberProgress> {
        let raft = &self.raw.raft;
        let voters = &raft.store().members().voters;
        let mut all: Vec<MemberProgress> = raft
            .prs()
            .iter()
            .map(|(id, progress)| {
                let heard = self.heard.get(id).copied().unwrap_or_default();
                MemberProgress {
                    node_id: node_id(*id).expect("members have node ids"),
                    is_voter: voters.contains(id),
                    matched_index: progress.matched,
                    next_index: progress.next_idx,
                    state: match progress.state {
                        ProgressState::Probe => ReplicationState::Probe,
                        ProgressState::Replicate => ReplicationState::Replicate,
                        ProgressState::Snapshot => ReplicationState::Snapshot,
                    },
                    heard_ms: heard.heard_ms,
                    caught_up_ms: heard.caught_up_ms,
                }
            })
            .collect();
        all.sort_by_key(|member| member.node_id);
        all
    }

    /// raft-rs draws from the thread's generator whenever it resets; this overrules it. A draw per
    /// term depends on nothing but the seed, and two nodes that tie in one term do not in the next.
    fn redraw_election_timeout(&mut self) {
        let ticks = u64::from(self.config.election_ticks);
        let drawn = mix(self.config.seed ^ mix(self.raw.raft.term)) % ticks;
        self.raw.raft.set_randomized_election_timeout((ticks + drawn) as usize);
    }
}

fn raft_config(config: &RaftConfig, applied: u64) -> Config {
    let election_tick = config.election_ticks as usize;
    Config {
        id: raft_id(config.node_id),
        election_tick,
        heartbeat_tick: config.heartbeat_ticks as usize,
        applied,
        max_size_per_msg: APPEND_BYTES_MAX,
        max_inflight_msgs: APPENDS_IN_FLIGHT_MAX,
        check_quorum: true,
        pre_vote: true,
        min_election_tick: election_tick,
        max_election_tick: 2 * election_tick,
        read_only_option: ReadOnlyOption::Safe,
        skip_bcast_commit: false,
        // Joining messages would ignore the size limit.
        batch_append: false,
        priority: 0,
        max_uncommitted_size: UNCOMMITTED_BYTES_MAX,
        max_committed_size_per_ready: COMMITTED_BYTES_PER_TURN,
    }
}

fn check_config(config: &RaftConfig) -> Result<(), RaftError> {
    let refuse = |why: &str| Err(RaftError::Config(why.to_owned()));
    let mut voters = config.voters.clone();
    voters.sort_unstable();
    voters.dedup();
    if config.node_id < 0 || voters.first().is_some_and(|first| *first < 0) {
        return refuse("node ids are 0 or more");
    }
    if voters.len() != config.voters.len() || voters.len() > MEMBERS_MAX {
        return refuse("voters are listed twice or are too many");
    }
    if config.heartbeat_ticks == 0 || config.election_ticks <= config.heartbeat_ticks {
        return refuse("elections need more ticks than heartbeats, and those at least one");
    }
    if config.snapshot_chunk_bytes == 0 || config.snapshot_chunk_bytes > 1 << 20 {
        return refuse("snapshot chunks have 1 byte to 1 MiB");
    }
    Ok(())
}

/// raft-rs reserves 0, Kafka does not.
fn raft_id(node_id: i32) -> u64 {
    u64::try_from(node_id).expect("checked to be 0 or more") + 1
}

fn node_id(raft_id: u64) -> Option<i32> {
    raft_id.checked_sub(1).and_then(|node_id| i32::try_from(node_id).ok())
}

fn members(members: &ConfState) -> Members {
    let ids = |ids: &[u64]| ids.iter().filter_map(|id| node_id(*id)).collect();
    Members { voters: ids(&members.voters), learners: ids(&members.learners) }
}

/// SplitMix64's finalizer.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

//! What peers say: who may speak, which messages raft-rs gets to see, and snapshots in chunks.

use raft::eraftpb::{Message, MessageType};
use raft::{Error as RaftRsError, INVALID_ID, ProgressState, SnapshotStatus, StateRole};
use uuid::Uuid;

use super::super::RaftError;
use super::super::codec::{Packet, SnapshotId};
use super::super::snapshot::{Added, Due, Incoming};
use super::{Installed, RaftNode};

/// A snapshot fetch that stands still this many election timeouts is given up.
const FETCH_IDLE_ELECTIONS: u32 = 4;

impl RaftNode {
    /// Whether this disk may speak for the peer. The first one heard may; a voter keeps it.
    pub(super) fn admit(&mut self, peer: u64, directory_id: Uuid) -> Result<(), &'static str> {
        let log = self.raw.raft.store();
        let known = log.directory(peer);
        if known == Some(directory_id) {
            return Ok(());
        }
        let is_voter = log.members().voters.contains(&peer);
        let is_learner = log.members().learners.contains(&peer);
        if known.is_some() && is_voter {
            return Err("another disk speaks for this voter");
        }
        if known.is_some() {
            self.forget_progress(peer);
        }
        if is_voter || is_learner {
            self.raw.raft.mut_store().set_directory(peer, Some(directory_id));
        }
        Ok(())
    }

    /// A learner came back with an empty disk: start it over.
    fn forget_progress(&mut self, peer: u64) {
        if self.raw.raft.state != StateRole::Leader {
            return;
        }
        if let Some(progress) = self.raw.raft.mut_prs().get_mut(peer) {
            progress.matched = 0;
            progress.pending_snapshot = 0;
            progress.become_probe();
        }
    }

    pub(super) fn step_raft(&mut self, mut message: Message) -> Result<(), &'static str> {
        self.check_message(&message)?;
        if message.get_msg_type() == MessageType::MsgHeartbeat {
            // More than this log has: the leader does not know yet that a learner lost its disk. It
            // will when it sees the answer; until then nothing can be committed here.
            let raft_log = &self.raw.raft.raft_log;
            if message.commit > raft_log.last_index() {
                message.commit = raft_log.committed;
            }
        }
        if message.get_msg_type() == MessageType::MsgSnapshot {
            return self.step_snapshot(message);
        }
        match self.raw.step(message) {
            // A late answer to a question asked of a member that is none any more.
            Ok(()) | Err(RaftRsError::StepPeerNotFound) => Ok(()),
            Err(_) => Err("refused by raft"),
        }
    }

    /// What raft-rs would panic on, or believe, though no honest peer says it.
    fn check_message(&self, message: &Message) -> Result<(), &'static str> {
        let raft = &self.raw.raft;
        if message.term < raft.term {
            return Ok(()); // Answered or ignored without a look at the rest.
        }
        let last_index = raft.raft_log.last_index();
        let same_term = message.term == raft.term;
        match message.get_msg_type() {
            // To raft-rs every index beyond its log has the term 0.
            MessageType::MsgAppend if message.index > 0 && message.log_term == 0 => {
                Err("entries that follow one without a term")
            }
            MessageType::MsgSnapshot if message.get_snapshot().get_metadata().term == 0 => {
                Err("a snapshot without a term")
            }
            MessageType::MsgHeartbeat if message.commit > last_index && raft.promotable() => {
                Err("this voter's disk lost entries that it had acknowledged")
            }
            MessageType::MsgAppend
            | MessageType::MsgHeartbeat
            | MessageType::MsgSnapshot
            | MessageType::MsgTimeoutNow
                if same_term && raft.leader_id != INVALID_ID && raft.leader_id != message.from =>
            {
                Err("a second leader in one term")
            }
            MessageType::MsgAppendResponse
                if same_term && !message.reject && message.index > last_index =>
            {
                Err("acknowledges entries that this log lacks")
            }
            _ => Ok(()),
        }
    }

    fn step_snapshot(&mut self, message: Message) -> Result<(), &'static str> {
        let raft = &self.raw.raft;
        let metadata = message.get_snapshot().get_metadata();
        let (index, term) = (metadata.index, metadata.term);
        if message.term < raft.term || self.installed.is_some() {
            return Ok(());
        }
        if index < raft.raft_log.committed || raft.raft_log.match_term(index, term) {
            // Nothing to fetch: raft-rs only answers, or moves its commit index.
            return self.raw.step(message).map_err(|_| "refused by raft");
        }
        let members = metadata.get_conf_state();
        if !members.voters.contains(&raft.id) && !members.learners.contains(&raft.id) {
            return Err("snapshot of a quorum without this node");
        }
        let id = SnapshotId { index, term };
        match &mut self.incoming {
            Some(incoming) if incoming.id == id && incoming.message.from == message.from => {
                incoming.message = message; // Sent again, maybe in a later term; keep the bytes.
            }
            _ => self.incoming = Some(Incoming::start(message).map_err(|malformed| malformed.0)?),
        }
        self.pursue_incoming();
        Ok(())
    }

    /// The leader has the snapshot no more.
    pub(super) fn drop_incoming(&mut self, from: u64, id: SnapshotId) {
        self.incoming.take_if(|it| it.id == id && it.message.from == from);
    }

    pub(super) fn add_chunk(&mut self, from: u64, id: SnapshotId, offset: u64, chunk: &[u8]) {
        let Some(incoming) = &mut self.incoming else { return };
        if incoming.message.from != from {
            return;
        }
        match incoming.add(id, offset, chunk) {
            Added::Ignored => {}
            Added::More | Added::Complete => self.pursue_incoming(),
            Added::Damaged => self.give_up_incoming(),
        }
    }

    /// Asks for the next chunk, or steps the message when all are there.
    fn pursue_incoming(&mut self) {
        let Some(incoming) = &self.incoming else { return };
        match incoming.state() {
            Added::Ignored | Added::More => {
                let wanted = Packet::ChunkWanted(incoming.id, incoming.offset());
                self.outbox.push((incoming.message.from, wanted));
            }
            Added::Damaged => self.give_up_incoming(),
            Added::Complete => self.install_incoming(),
        }
    }

    fn install_incoming(&mut self) {
        let Some(incoming) = self.incoming.take() else { return };
        let (message, id, bytes) = incoming.into_parts();
        let from = message.from;
        if self.check_message(&message).is_ok() {
            // raft-rs may still decline, silently; then nothing waits to be stored.
            let _ = self.raw.step(message);
        }
        let waits = self.raw.snap().is_some_and(|it| it.get_metadata().index == id.index);
        if waits {
            self.installed = Some(Installed { from, id, bytes });
        } else {
            self.outbox.push((from, Packet::SnapshotEnded(id, false)));
        }
    }

    fn give_up_incoming(&mut self) {
        if let Some(incoming) = self.incoming.take() {
            let ended = Packet::SnapshotEnded(incoming.id, false);
            self.outbox.push((incoming.message.from, ended));
        }
    }

    pub(super) fn tick_incoming(&mut self) {
        let Some(incoming) = &mut self.incoming else { return };
        let retry = self.config.election_ticks;
        match incoming.tick(retry, FETCH_IDLE_ELECTIONS * retry) {
            Due::Nothing => {}
            Due::AskAgain => self.pursue_incoming(),
            Due::GiveUp => self.give_up_incoming(),
        }
    }

    pub(super) fn tick_outgoing(&mut self) {
        if self.raw.raft.state != StateRole::Leader {
            self.outgoing.clear();
            return;
        }
        let idle_max = FETCH_IDLE_ELECTIONS * self.config.election_ticks;
        let prs = self.raw.raft.prs();
        let waits = |peer| prs.get(peer).is_some_and(|pr| pr.state == ProgressState::Snapshot);
        for peer in self.outgoing.tick(idle_max, waits) {
            self.raw.report_snapshot(peer, SnapshotStatus::Failure);
        }
    }

    pub(super) fn send_chunk(
        &mut self,
        peer: u64,
        id: SnapshotId,
        offset: u64,
    ) -> Result<(), RaftError> {
        let chunk = self.raw.raft.store().chunk(id, offset);
        let packet = match self.survive(chunk)? {
            Some(bytes) => {
                self.outgoing.touch(peer, id);
                Packet::Chunk(id, offset, bytes)
            }
            None => {
                self.end_outgoing(peer, id, false);
                Packet::ChunkRefused(id)
            }
        };
        self.outbox.push((peer, packet));
        Ok(())
    }

    pub(super) fn end_outgoing(&mut self, peer: u64, id: SnapshotId, ok: bool) {
        if self.outgoing.end(peer, id) {
            let status = if ok { SnapshotStatus::Finish } else { SnapshotStatus::Failure };
            self.raw.report_snapshot(peer, status);
        }
    }

    pub(super) fn note_heard(&mut self, peer: u64, now_ms: i64) {
        let raft = &self.raw.raft;
        if raft.state != StateRole::Leader {
            self.heard.clear();
            return;
        }
        let Some(progress) = raft.prs().get(peer) else { return };
        let caught_up = progress.matched == raft.raft_log.last_index();
        let heard = self.heard.entry(peer).or_default();
        heard.heard_ms = Some(now_ms);
        if caught_up {
            heard.caught_up_ms = Some(now_ms);
        }
    }
}

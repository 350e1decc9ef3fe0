//! Snapshots on their way: which bytes are there, which are asked for next, when to give up. Pure.
//!
//! A Raft snapshot message carries a descriptor. The follower holds that message back, fetches the
//! bytes chunk by chunk, and steps it when they are all there; until then raft-rs knows of nothing.
//! The leader keeps an eye on each peer that fetches, because raft-rs sends a peer in Snapshot
//! state nothing more until it is told the outcome.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use raft::eraftpb::Message;

use super::codec::{Descriptor, Malformed, SnapshotId};

/// The largest snapshot that is made or accepted. It is held in memory while it travels.
pub const SNAPSHOT_BYTES_MAX: u64 = 256 << 20;

/// A snapshot being fetched.
pub(super) struct Incoming {
    /// Stepped when the bytes are complete.
    pub(super) message: Message,
    pub(super) id: SnapshotId,
    descriptor: Descriptor,
    bytes: Vec<u8>,
    idle_ticks: u32,
}

/// What a chunk did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Added {
    /// Not the chunk waited for: late, doubled, or of another snapshot.
    Ignored,
    /// Ask for the next one.
    More,
    /// All bytes are there and their checksum is right.
    Complete,
    /// All bytes are there and they are not what was announced.
    Damaged,
}

/// What the passing of time asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    Nothing,
    AskAgain,
    GiveUp,
}

impl Incoming {
    pub(super) fn start(message: Message) -> Result<Incoming, Malformed> {
        let metadata = message.get_snapshot().get_metadata();
        let id = SnapshotId { index: metadata.index, term: metadata.term };
        let descriptor = Descriptor::decode(&message.get_snapshot().data)?;
        if descriptor.size > SNAPSHOT_BYTES_MAX {
            return Err(Malformed("snapshot too large"));
        }
        Ok(Incoming { message, id, descriptor, bytes: Vec::new(), idle_ticks: 0 })
    }

    /// Where the next chunk starts.
    pub(super) fn offset(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn add(&mut self, id: SnapshotId, offset: u64, chunk: &[u8]) -> Added {
        if id != self.id || offset != self.offset() || chunk.is_empty() {
            return Added::Ignored;
        }
        if chunk.len() as u64 > self.descriptor.size - offset {
            return Added::Damaged;
        }
        self.bytes.extend_from_slice(chunk);
        self.idle_ticks = 0;
        self.state()
    }

    /// Whether anything is left to fetch; an empty snapshot is complete from the start.
    pub(super) fn state(&self) -> Added {
        if self.offset() < self.descriptor.size {
            Added::More
        } else if crc32c::crc32c(&self.bytes) == self.descriptor.crc {
            Added::Complete
        } else {
            Added::Damaged
        }
    }

    /// Chunks and requests may be lost: ask again every `retry_ticks`, give up after
    /// `idle_ticks_max` without a new byte (the leader is gone, and so may be the snapshot).
    pub(super) fn tick(&mut self, retry_ticks: u32, idle_ticks_max: u32) -> Due {
        self.idle_ticks += 1;
        if self.idle_ticks >= idle_ticks_max {
            Due::GiveUp
        } else if self.idle_ticks.is_multiple_of(retry_ticks) {
            Due::AskAgain
        } else {
            Due::Nothing
        }
    }

    pub(super) fn into_parts(self) -> (Message, SnapshotId, Bytes) {
        (self.message, self.id, self.bytes.into())
    }
}

/// Snapshots that peers of this leader fetch.
#[derive(Default)]
pub(super) struct Outgoing {
    peers: BTreeMap<u64, Fetching>,
}

struct Fetching {
    id: SnapshotId,
    idle_ticks: u32,
}

impl Outgoing {
    pub(super) fn start(&mut self, peer: u64, id: SnapshotId) {
        self.peers.insert(peer, Fetching { id, idle_ticks: 0 });
    }

    /// The peer asked for a chunk: it is alive.
    pub(super) fn touch(&mut self, peer: u64, id: SnapshotId) {
        if let Some(fetching) = self.peers.get_mut(&peer).filter(|fetching| fetching.id == id) {
            fetching.idle_ticks = 0;
        }
    }

    /// Forgets a fetch; whether this one was known.
    pub(super) fn end(&mut self, peer: u64, id: SnapshotId) -> bool {
        let known = self.peers.get(&peer).is_some_and(|fetching| fetching.id == id);
        if known {
            self.peers.remove(&peer);
        }
        known
    }

    pub(super) fn clear(&mut self) {
        self.peers.clear();
    }

    /// Forgets those that `waits` denies, and returns those that were idle too long.
    pub(super) fn tick(&mut self, idle_ticks_max: u32, waits: impl Fn(u64) -> bool) -> Vec<u64> {
        self.peers.retain(|peer, _| waits(*peer));
        self.peers.values_mut().for_each(|fetching| fetching.idle_ticks += 1);
        let idle = |fetching: &Fetching| fetching.idle_ticks >= idle_ticks_max;
        let gone: Vec<u64> = self
            .peers
            .iter()
            .filter(|(_, fetching)| idle(fetching))
            .map(|(peer, _)| *peer)
            .collect();
        self.peers.retain(|_, fetching| !idle(fetching));
        gone
    }

    /// Indexes of the snapshots that must stay.
    pub(super) fn indexes(&self) -> BTreeSet<u64> {
        self.peers.values().map(|fetching| fetching.id.index).collect()
    }
}

#[cfg(test)]
mod tests;

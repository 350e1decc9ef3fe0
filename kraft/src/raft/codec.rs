//! Bytes of quorum messages and of what the Raft log keeps on disk. Bounded: nothing is allocated
//! for a length that the input does not hold.
//!
//! raft-rs would use protobuf; protobuf 2 has an unfixed stack overflow on crafted input
//! (RUSTSEC-2024-0437), so not one of its parsers sees bytes from a socket or a disk. Both layouts
//! start with a version byte, are big-endian, and are promises: golden tests hold them.

use bytes::Bytes;
use raft::eraftpb::{ConfState, Entry, EntryType, HardState, Message, MessageType, Snapshot};
use uuid::Uuid;

/// Version of the frame layout. A frame of another version is refused, never guessed at.
pub const FRAME_VERSION: u8 = 1;
/// Version of every value on disk.
pub(super) const DISK_VERSION: u8 = 1;
/// One entry's data (Kafka: `KafkaRaftClient.MAX_BATCH_SIZE_BYTES`).
pub const ENTRY_BYTES_MAX: usize = 8 << 20;
/// Longest frame: one entry of the largest size, or many small ones with their headers.
pub const FRAME_BYTES_MAX: usize = ENTRY_BYTES_MAX + (1 << 20);
/// Voters and learners together.
pub const MEMBERS_MAX: usize = 4096;
/// Terms are Kafka's leader epochs of the metadata partition.
const TERM_MAX: u64 = i32::MAX as u64;
/// Indexes are Kafka's offsets. Room above it so that adding a length cannot wrap.
const INDEX_MAX: u64 = i64::MAX as u64;
/// raft-rs marks the votes asked for by a leadership transfer with this context.
const TRANSFER: &[u8] = raft::CAMPAIGN_TRANSFER;
const ENTRY_HEADER_LEN: usize = 21;

/// Why bytes were refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("malformed: {0}")]
pub struct Malformed(pub &'static str);

/// One message between two nodes. `from` and `to` are Raft ids (node id + 1).
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Frame {
    pub(super) from: u64,
    pub(super) to: u64,
    /// The sender's directory id: which disk speaks.
    pub(super) directory_id: Uuid,
    pub(super) packet: Packet,
}

/// Names one snapshot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct SnapshotId {
    pub(super) index: u64,
    pub(super) term: u64,
}

/// What the `data` of a Raft snapshot message holds instead of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Descriptor {
    pub(super) size: u64,
    pub(super) crc: u32,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Packet {
    Raft(Box<Message>),
    /// A follower asks for the bytes of a snapshot from `offset` on.
    ChunkWanted(SnapshotId, u64),
    Chunk(SnapshotId, u64, Bytes),
    /// The snapshot asked for is gone, or the offset is not one of its chunks'.
    ChunkRefused(SnapshotId),
    /// The follower installed the snapshot, or gave it up.
    SnapshotEnded(SnapshotId, bool),
}

const KIND_RAFT: u8 = 0;
const KIND_CHUNK_WANTED: u8 = 1;
const KIND_CHUNK: u8 = 2;
const KIND_CHUNK_REFUSED: u8 = 3;
const KIND_SNAPSHOT_ENDED: u8 = 4;

/// The Raft messages that travel, with their numbers in a frame. Anything else (MsgHup, MsgPropose,
/// MsgReadIndex, MsgTransferLeader ...) is local and never accepted from a peer.
const RAFT_KINDS: [(u8, MessageType); 10] = [
    (1, MessageType::MsgAppend),
    (2, MessageType::MsgAppendResponse),
    (3, MessageType::MsgRequestVote),
    (4, MessageType::MsgRequestVoteResponse),
    (5, MessageType::MsgSnapshot),
    (6, MessageType::MsgHeartbeat),
    (7, MessageType::MsgHeartbeatResponse),
    (8, MessageType::MsgTimeoutNow),
    (9, MessageType::MsgRequestPreVote),
    (10, MessageType::MsgRequestPreVoteResponse),
];

/// Whether this message may be sent to a peer at all.
pub(super) fn travels(message: &Message) -> bool {
    RAFT_KINDS.iter().any(|(_, kind)| *kind == message.get_msg_type())
}

impl Frame {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.push(FRAME_VERSION);
        out.push(match &self.packet {
            Packet::Raft(_) => KIND_RAFT,
            Packet::ChunkWanted(..) => KIND_CHUNK_WANTED,
            Packet::Chunk(..) => KIND_CHUNK,
            Packet::ChunkRefused(_) => KIND_CHUNK_REFUSED,
            Packet::SnapshotEnded(..) => KIND_SNAPSHOT_ENDED,
        });
        put_u64(&mut out, self.from);
        put_u64(&mut out, self.to);
        out.extend_from_slice(self.directory_id.as_bytes());
        match &self.packet {
            Packet::Raft(message) => put_message(&mut out, message),
            Packet::ChunkWanted(id, offset) => {
                put_snapshot_id(&mut out, *id);
                put_u64(&mut out, *offset);
            }
            Packet::Chunk(id, offset, bytes) => {
                put_snapshot_id(&mut out, *id);
                put_u64(&mut out, *offset);
                put_bytes(&mut out, bytes);
            }
            Packet::ChunkRefused(id) => put_snapshot_id(&mut out, *id),
            Packet::SnapshotEnded(id, ok) => {
                put_snapshot_id(&mut out, *id);
                out.push(u8::from(*ok));
            }
        }
        out
    }

    /// Reads one frame whole.
    ///
    /// Errors: anything that this module would not have written, surplus bytes included.
    pub(super) fn decode(bytes: &[u8]) -> Result<Frame, Malformed> {
        if bytes.len() > FRAME_BYTES_MAX {
            return Err(Malformed("frame too long"));
        }
        let mut reader = Reader(bytes);
        if reader.u8()? != FRAME_VERSION {
            return Err(Malformed("unknown frame version"));
        }
        let kind = reader.u8()?;
        let (from, to) = (reader.id()?, reader.id()?);
        let directory_id = reader.uuid()?;
        let packet = match kind {
            KIND_RAFT => Packet::Raft(Box::new(message(&mut reader, from, to)?)),
            KIND_CHUNK_WANTED => Packet::ChunkWanted(reader.snapshot_id()?, reader.index()?),
            KIND_CHUNK => {
                let (id, offset) = (reader.snapshot_id()?, reader.index()?);
                Packet::Chunk(id, offset, Bytes::copy_from_slice(reader.bytes()?))
            }
            KIND_CHUNK_REFUSED => Packet::ChunkRefused(reader.snapshot_id()?),
            KIND_SNAPSHOT_ENDED => Packet::SnapshotEnded(reader.snapshot_id()?, reader.bool()?),
            _ => return Err(Malformed("unknown frame kind")),
        };
        reader.end()?;
        Ok(Frame { from, to, directory_id, packet })
    }
}

fn put_message(out: &mut Vec<u8>, message: &Message) {
    let kind = RAFT_KINDS.iter().find(|(_, kind)| *kind == message.get_msg_type());
    out.push(kind.expect("checked with travels() before").0);
    out.push(u8::from(message.reject) | u8::from(message.context[..] == *TRANSFER) << 1);
    put_u64(out, message.term);
    put_u64(out, message.log_term);
    put_u64(out, message.index);
    put_u64(out, message.commit);
    put_u64(out, message.commit_term);
    put_u64(out, message.reject_hint);
    match message.get_msg_type() {
        MessageType::MsgAppend => {
            put_u32(out, message.entries.len() as u32);
            message.entries.iter().for_each(|entry| put_entry(out, entry));
        }
        MessageType::MsgSnapshot => {
            let snapshot = message.get_snapshot();
            let metadata = snapshot.get_metadata();
            put_u64(out, metadata.index);
            put_u64(out, metadata.term);
            put_members(out, metadata.get_conf_state());
            out.extend_from_slice(&snapshot.data);
        }
        _ => {}
    }
}

/// Fields that raft-rs does not use for a type are zero here, so that it never sees them otherwise.
fn message(reader: &mut Reader<'_>, from: u64, to: u64) -> Result<Message, Malformed> {
    let number = reader.u8()?;
    let kind = RAFT_KINDS.iter().find(|(of, _)| *of == number);
    let kind = kind.ok_or(Malformed("unknown message type"))?.1;
    let flags = reader.u8()?;
    if flags > 3 {
        return Err(Malformed("unknown flags"));
    }
    let mut message = Message::default();
    message.set_msg_type(kind);
    message.from = from;
    message.to = to;
    message.reject = flags & 1 != 0;
    if flags & 2 != 0 {
        if kind != MessageType::MsgRequestVote {
            return Err(Malformed("transfer flag on another message"));
        }
        message.context = Bytes::from_static(TRANSFER);
    }
    message.term = reader.term()?;
    if message.term == 0 {
        return Err(Malformed("term 0 is for local messages"));
    }
    message.log_term = reader.term()?;
    message.index = reader.index()?;
    message.commit = reader.index()?;
    message.commit_term = reader.term()?;
    message.reject_hint = reader.index()?;
    match kind {
        MessageType::MsgAppend => message.entries = entries(reader, &message)?.into(),
        MessageType::MsgSnapshot => message.set_snapshot(snapshot(reader, message.term)?),
        _ => {}
    }
    Ok(message)
}

/// Entries follow one another from the message's index on, their terms never fall.
fn entries(reader: &mut Reader<'_>, message: &Message) -> Result<Vec<Entry>, Malformed> {
    let count = reader.u32()? as usize;
    if count > reader.0.len() / ENTRY_HEADER_LEN {
        return Err(Malformed("entries cut off"));
    }
    let mut entries = Vec::with_capacity(count);
    let (mut index, mut term) = (message.index, message.log_term);
    for _ in 0..count {
        let entry = reader.entry()?;
        if entry.index != index + 1 || entry.term < term || entry.term > message.term {
            return Err(Malformed("entries out of order"));
        }
        (index, term) = (entry.index, entry.term);
        entries.push(entry);
    }
    Ok(entries)
}

fn snapshot(reader: &mut Reader<'_>, leader_term: u64) -> Result<Snapshot, Malformed> {
    let id = reader.snapshot_id()?;
    let members = reader.members()?;
    let data = Bytes::copy_from_slice(reader.take(Descriptor::LEN)?);
    if id.index == 0 || id.term == 0 || id.term > leader_term {
        return Err(Malformed("snapshot of no log"));
    }
    if members.voters.is_empty() {
        return Err(Malformed("snapshot without voters"));
    }
    let mut snapshot = Snapshot { data, ..Snapshot::default() };
    let metadata = snapshot.mut_metadata();
    metadata.index = id.index;
    metadata.term = id.term;
    metadata.set_conf_state(members);
    Ok(snapshot)
}

impl Descriptor {
    const LEN: usize = 12;

    pub(super) fn encode(self) -> Bytes {
        let mut out = Vec::with_capacity(Self::LEN);
        put_u64(&mut out, self.size);
        put_u32(&mut out, self.crc);
        out.into()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Descriptor, Malformed> {
        let mut reader = Reader(bytes);
        let descriptor = Descriptor { size: reader.index()?, crc: reader.u32()? };
        reader.end()?;
        Ok(descriptor)
    }
}

/// A change of the membership as an entry holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MemberChange {
    pub(super) kind: raft::eraftpb::ConfChangeType,
    pub(super) id: u64,
    /// The disk that speaks for the node from now on; nil leaves it open.
    pub(super) directory_id: Uuid,
}

impl MemberChange {
    /// The bytes of raft-rs's `ConfChange` for this change: it parses what is proposed locally, and
    /// only that. Fields: type (2), node id (3), context (4).
    pub(super) fn encode(self) -> Vec<u8> {
        let mut out = vec![0x10, self.kind as u8, 0x18];
        let mut id = self.id;
        while id >= 0x80 {
            out.push(id as u8 | 0x80);
            id >>= 7;
        }
        out.extend_from_slice(&[id as u8, 0x22, 16]);
        out.extend_from_slice(self.directory_id.as_bytes());
        out
    }

    /// Reads back exactly what `encode` writes.
    pub(super) fn decode(bytes: &[u8]) -> Result<MemberChange, Malformed> {
        use raft::eraftpb::ConfChangeType;
        let mut reader = Reader(bytes);
        reader.tag(0x10)?;
        let kind = match reader.u8()? {
            0 => ConfChangeType::AddNode,
            1 => ConfChangeType::RemoveNode,
            2 => ConfChangeType::AddLearnerNode,
            _ => return Err(Malformed("unknown member change")),
        };
        reader.tag(0x18)?;
        let mut id = 0;
        for shift in 0..5 {
            let byte = reader.u8()?;
            id |= u64::from(byte & 0x7f) << (7 * shift);
            if byte < 0x80 {
                break;
            }
        }
        reader.tag(0x22)?;
        reader.tag(16)?;
        let change = MemberChange { kind, id, directory_id: reader.uuid()? };
        reader.end()?;
        let canonical = change.encode() == bytes && valid_id(id);
        if canonical { Ok(change) } else { Err(Malformed("not a member change")) }
    }

    pub(super) fn to_raft(self) -> raft::eraftpb::ConfChange {
        let mut change = raft::eraftpb::ConfChange::default();
        change.set_change_type(self.kind);
        change.node_id = self.id;
        change.context = Bytes::copy_from_slice(self.directory_id.as_bytes());
        change
    }
}

/// A value of the log on disk.
pub(super) trait OnDisk: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed>;

    fn to_disk(&self) -> Vec<u8> {
        let mut out = vec![DISK_VERSION];
        self.put(&mut out);
        out
    }

    fn from_disk(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        if reader.u8()? != DISK_VERSION {
            return Err(Malformed("unknown version on disk"));
        }
        let value = Self::read(&mut reader)?;
        reader.end()?;
        Ok(value)
    }
}

impl OnDisk for Entry {
    fn put(&self, out: &mut Vec<u8>) {
        put_entry(out, self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Entry, Malformed> {
        reader.entry()
    }
}

impl OnDisk for HardState {
    fn put(&self, out: &mut Vec<u8>) {
        put_u64(out, self.term);
        put_u64(out, self.vote);
        put_u64(out, self.commit);
    }

    fn read(reader: &mut Reader<'_>) -> Result<HardState, Malformed> {
        let mut hard = HardState::default();
        hard.term = reader.term()?;
        hard.vote = reader.index()?;
        hard.commit = reader.index()?;
        Ok(hard)
    }
}

impl OnDisk for ConfState {
    fn put(&self, out: &mut Vec<u8>) {
        put_members(out, self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<ConfState, Malformed> {
        reader.members()
    }
}

impl OnDisk for SnapshotId {
    fn put(&self, out: &mut Vec<u8>) {
        put_snapshot_id(out, *self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<SnapshotId, Malformed> {
        reader.snapshot_id()
    }
}

/// A snapshot's metadata as it lies beside its chunks.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct StoredSnapshot {
    pub(super) id: SnapshotId,
    pub(super) descriptor: Descriptor,
    /// Every chunk but the last has this many bytes.
    pub(super) chunk_bytes: u32,
    pub(super) members: ConfState,
}

impl OnDisk for StoredSnapshot {
    fn put(&self, out: &mut Vec<u8>) {
        put_snapshot_id(out, self.id);
        out.extend_from_slice(&self.descriptor.encode());
        put_u32(out, self.chunk_bytes);
        put_members(out, &self.members);
    }

    fn read(reader: &mut Reader<'_>) -> Result<StoredSnapshot, Malformed> {
        let id = reader.snapshot_id()?;
        let descriptor = Descriptor::decode(reader.take(Descriptor::LEN)?)?;
        let chunk_bytes = reader.u32()?;
        if chunk_bytes == 0 {
            return Err(Malformed("chunks of no bytes"));
        }
        Ok(StoredSnapshot { id, descriptor, chunk_bytes, members: reader.members()? })
    }
}

/// Who owns this log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    pub(super) id: u64,
    pub(super) directory_id: Uuid,
}

impl OnDisk for Identity {
    fn put(&self, out: &mut Vec<u8>) {
        put_u64(out, self.id);
        out.extend_from_slice(self.directory_id.as_bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Identity, Malformed> {
        Ok(Identity { id: reader.id()?, directory_id: reader.uuid()? })
    }
}

fn valid_id(id: u64) -> bool {
    (1..=i32::MAX as u64 + 1).contains(&id)
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_bytes(out: &mut Vec<u8>, value: &[u8]) {
    put_u32(out, value.len() as u32);
    out.extend_from_slice(value);
}

fn put_snapshot_id(out: &mut Vec<u8>, id: SnapshotId) {
    put_u64(out, id.index);
    put_u64(out, id.term);
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    out.push(u8::from(entry.get_entry_type() != EntryType::EntryNormal));
    put_u64(out, entry.term);
    put_u64(out, entry.index);
    put_bytes(out, &entry.data);
}

/// Joint configurations do not exist here: changes go one member at a time.
fn put_members(out: &mut Vec<u8>, members: &ConfState) {
    assert!(members.voters_outgoing.is_empty() && members.learners_next.is_empty());
    for ids in [&members.voters, &members.learners] {
        put_u32(out, ids.len() as u32);
        ids.iter().for_each(|id| put_u64(out, *id));
    }
}

/// A cursor; nothing is believed that is not there.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(Malformed("cut off"))?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed("cut off"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("surplus bytes")) }
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn bounded(&mut self, max: u64, what: &'static str) -> Result<u64, Malformed> {
        let value = u64::from_be_bytes(self.array()?);
        if value <= max { Ok(value) } else { Err(Malformed(what)) }
    }

    fn index(&mut self) -> Result<u64, Malformed> {
        self.bounded(INDEX_MAX, "index too large")
    }

    fn term(&mut self) -> Result<u64, Malformed> {
        self.bounded(TERM_MAX, "term too large")
    }

    fn id(&mut self) -> Result<u64, Malformed> {
        let id = u64::from_be_bytes(self.array()?);
        if valid_id(id) { Ok(id) } else { Err(Malformed("not a node id")) }
    }

    fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("not a bool")),
        }
    }

    fn tag(&mut self, want: u8) -> Result<(), Malformed> {
        if self.u8()? == want { Ok(()) } else { Err(Malformed("not a member change")) }
    }

    fn uuid(&mut self) -> Result<Uuid, Malformed> {
        Ok(Uuid::from_bytes(self.array()?))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()? as usize;
        self.take(len)
    }

    fn snapshot_id(&mut self) -> Result<SnapshotId, Malformed> {
        Ok(SnapshotId { index: self.index()?, term: self.term()? })
    }

    fn entry(&mut self) -> Result<Entry, Malformed> {
        let changes_members = self.bool()?;
        let mut entry = Entry::default();
        entry.term = self.term()?;
        entry.index = self.index()?;
        let data = self.bytes()?;
        if data.len() > ENTRY_BYTES_MAX {
            return Err(Malformed("entry too large"));
        }
        if changes_members {
            MemberChange::decode(data)?;
            entry.set_entry_type(EntryType::EntryConfChange);
        }
        entry.data = Bytes::copy_from_slice(data);
        Ok(entry)
    }

    fn members(&mut self) -> Result<ConfState, Malformed> {
        let mut members = ConfState::default();
        for ids in [&mut members.voters, &mut members.learners] {
            let count = self.u32()? as usize;
            if count > MEMBERS_MAX || count > self.0.len() / 8 {
                return Err(Malformed("too many members"));
            }
            for _ in 0..count {
                ids.push(self.id()?);
            }
        }
        let mut all = [&members.voters[..], &members.learners[..]].concat();
        all.sort_unstable();
        if all.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Malformed("a member twice"));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests;

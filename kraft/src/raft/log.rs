//! The Raft log and everything else a node must remember, over one [`Kv`]. Implements
//! `raft::Storage`.
//!
//! Keys, all under `raft/`: `i` identity, `h` hard state, `t` the (index, term) up to which the log
//! is truncated, `e<index>` entries, `c<index>` the membership from that index on, `p<id>` whose
//! disk speaks for a member, `m<index>` and `d<index><chunk>` snapshots. Numbers in keys are
//! big-endian.
//!
//! What must be durable together is one batch. Batches without sync may be lost in a crash, but
//! never a later one without an earlier one, so every flushed state is one that `open` accepts. A
//! read error after `open` makes raft-rs panic: the quorum thread cannot go on without its log.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Ready, Storage, StorageError};
use storage::kv::{Kv, KvBatch, KvError, Pairs};
use uuid::Uuid;

use super::RaftError;
use super::codec::{Descriptor, Identity, OnDisk, SnapshotId, StoredSnapshot};

/// The newest entries are also kept in memory: what a leader sends and what is handed out is new.
const CACHE_ENTRIES_MAX: usize = 1024;
const CACHE_BYTES_MAX: usize = 2 << 20;
/// Entries read from the store at a time.
const PAGE: usize = 16;
/// Every voter of a new quorum starts from the same empty snapshot, so that a node that joins later
/// must ask for one and learns the membership from it.
pub(super) const BOOTSTRAP: SnapshotId = SnapshotId { index: 1, term: 1 };

const IDENTITY: &[u8] = b"raft/i";
const HARD_STATE: &[u8] = b"raft/h";
const TRUNCATED: &[u8] = b"raft/t";

/// Keys of one kind, ordered by number.
fn key(kind: u8, number: u64) -> Vec<u8> {
    [&b"raft/"[..], &[kind], &number.to_be_bytes()].concat()
}

fn chunk_key(index: u64, chunk: u32) -> Vec<u8> {
    [&key(b'd', index)[..], &chunk.to_be_bytes()].concat()
}

/// The number in a key that `key` made.
fn number_of(key: &[u8]) -> Result<u64, RaftError> {
    match key.last_chunk::<8>() {
        Some(number) => Ok(u64::from_be_bytes(*number)),
        None => Err(RaftError::Corrupt("a key without a number".to_owned())),
    }
}

pub(super) struct Log {
    kv: Box<dyn Kv>,
    /// As the next batch will store it. Term and vote are on disk; the commit index may be ahead of
    /// it.
    hard: HardState,
    /// The last index that is no longer in the log. Snapshots reach at least as far.
    truncated: SnapshotId,
    last: SnapshotId,
    /// The newest entries, without a gap, up to `last`.
    cache: VecDeque<Entry>,
    cache_bytes: usize,
    /// The newest snapshot.
    snapshot: StoredSnapshot,
    /// Older ones that a peer still fetches.
    older: BTreeSet<u64>,
    /// The membership from an index on: one at or below the newest snapshot, and all later ones.
    members: BTreeMap<u64, ConfState>,
    no_members: ConfState,
    directories: BTreeMap<u64, Uuid>,
    /// Goes out with the next batch; losing it costs nothing.
    pending: KvBatch,
    /// A peer needs a snapshot that we do not have yet.
    snapshot_wanted: Cell<bool>,
    chunk_bytes: u32,
}

impl Log {
    /// Opens or creates the log. A new one starts as a voter of `voters` if the node is among them,
    /// else empty: it waits for a leader to bring a snapshot. Creating is not synced; the first
    /// vote is.
    ///
    /// Errors: the store belongs to another node or disk, or what it holds is no log of ours.
    pub(super) fn open(
        mut kv: Box<dyn Kv>,
        identity: Identity,
        voters: &[u64],
        chunk_bytes: u32,
    ) -> Result<Log, RaftError> {
        assert!(chunk_bytes > 0, "chunks of no bytes");
        match read::<Identity>(&*kv, IDENTITY)? {
            None => create(&mut *kv, identity, voters, chunk_bytes)?,
            Some(stored) if stored == identity => {}
            Some(stored) => {
                let why = format!("the quorum's log belongs to {stored:?}, not {identity:?}");
                return Err(RaftError::Config(why));
            }
        }
        let hard = read(&*kv, HARD_STATE)?.unwrap_or_default();
        let truncated = read(&*kv, TRUNCATED)?.unwrap_or_default();
        let mut log = Log {
            hard,
            truncated,
            last: truncated,
            cache: VecDeque::new(),
            cache_bytes: 0,
            snapshot: no_snapshot(chunk_bytes),
            older: BTreeSet::new(),
            members: BTreeMap::new(),
            no_members: ConfState::default(),
            directories: BTreeMap::new(),
            pending: KvBatch::new(),
            snapshot_wanted: Cell::new(false),
            chunk_bytes,
            kv,
        };
        log.load_entries()?;
        log.load_snapshots()?;
        log.load_members()?;
        log.check()?;
        Ok(log)
    }

    fn load_entries(&mut self) -> Result<(), RaftError> {
        let mut next = self.truncated.index + 1;
        if !self.kv.scan(&key(b'e', 0), &key(b'e', next), 1)?.is_empty() {
            return Err(RaftError::Corrupt("entries below the truncated index".to_owned()));
        }
        loop {
            let page = self.kv.scan(&key(b'e', next), &key(b'f', 0), PAGE)?;
            if page.is_empty() {
                return Ok(());
            }
            for (key, value) in page {
                let entry: Entry = decode(&key, &value)?;
                let in_order = entry.index == next && number_of(&key)? == next;
                if !in_order || entry.term < self.last.term {
                    return Err(RaftError::Corrupt(format!(
                        "entry {next} is missing or misplaced"
                    )));
                }
                next += 1;
                self.cache_entry(entry);
            }
        }
    }

    fn load_snapshots(&mut self) -> Result<(), RaftError> {
        for (key, value) in scan_all(&*self.kv, b'm')? {
            let stored: StoredSnapshot = decode(&key, &value)?;
            // Nobody fetches an older one any more.
            if self.snapshot.id.index > 0 {
                delete_snapshot(&mut self.pending, self.snapshot.id.index);
            }
            self.snapshot = stored;
        }
        Ok(())
    }

    fn load_members(&mut self) -> Result<(), RaftError> {
        for (key, value) in scan_all(&*self.kv, b'c')? {
            self.members.insert(number_of(&key)?, decode(&key, &value)?);
        }
        for (key, value) in scan_all(&*self.kv, b'p')? {
            let stored: Identity = decode(&key, &value)?;
            self.directories.insert(stored.id, stored.directory_id);
        }
        Ok(())
    }

    /// What must hold whatever was flushed last.
    fn check(&self) -> Result<(), RaftError> {
        let (commit, snapshot) = (self.hard.commit, self.snapshot.id.index);
        let known = self.members.range(..=snapshot).next_back().is_some() || snapshot == 0;
        let sound = self.truncated.index <= snapshot
            && snapshot <= commit
            && commit <= self.last.index
            && self.last.term <= self.hard.term
            && known;
        if sound {
            return Ok(());
        }
        let (truncated, last) = (self.truncated.index, self.last);
        let members = self.members.keys().next();
        Err(RaftError::Corrupt(format!(
            "truncated {truncated}, snapshot {snapshot}, commit {commit}, last {last:?}, {:?}, \
             members from {members:?}",
            self.hard
        )))
    }

    // What the node asks.

    pub(super) fn first_index(&self) -> u64 {
        self.truncated.index + 1
    }

    pub(super) fn snapshot_id(&self) -> SnapshotId {
        self.snapshot.id
    }

    /// The newest membership; empty before the first snapshot.
    pub(super) fn members(&self) -> &ConfState {
        self.members.last_key_value().map_or(&self.no_members, |(_, members)| members)
    }

    /// The index that the newest membership came with.
    pub(super) fn members_index(&self) -> u64 {
        self.members.last_key_value().map_or(0, |(index, _)| *index)
    }

    pub(super) fn directory(&self, id: u64) -> Option<Uuid> {
        self.directories.get(&id).copied()
    }

    /// The disk that speaks for a member from now on. Durable with the next synced batch.
    pub(super) fn set_directory(&mut self, id: u64, directory_id: Option<Uuid>) {
        match directory_id {
            Some(directory_id) => {
                self.directories.insert(id, directory_id);
                self.pending.put(key(b'p', id), Identity { id, directory_id }.to_disk());
            }
            None => {
                self.directories.remove(&id);
                self.pending.delete(key(b'p', id));
            }
        }
    }

    /// Whether somebody asked for a snapshot that is not there; asking clears it.
    pub(super) fn take_snapshot_wanted(&self) -> bool {
        self.snapshot_wanted.take()
    }

    /// The bytes of the newest snapshot.
    pub(super) fn snapshot_bytes(&self) -> Result<Bytes, RaftError> {
        let stored = &self.snapshot;
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < stored.descriptor.size {
            match self.chunk(stored.id, bytes.len() as u64)? {
                Some(chunk) => bytes.extend_from_slice(&chunk),
                None => break,
            }
        }
        let whole = bytes.len() as u64 == stored.descriptor.size;
        if !whole || crc32c::crc32c(&bytes) != stored.descriptor.crc {
            let index = stored.id.index;
            return Err(RaftError::Corrupt(format!("snapshot {index} is damaged")));
        }
        Ok(bytes.into())
    }

    /// The chunk of a stored snapshot that starts at `offset`; `None` when there is none.
    pub(super) fn chunk(&self, id: SnapshotId, offset: u64) -> Result<Option<Bytes>, RaftError> {
        let Some(stored) = self.stored(id)? else { return Ok(None) };
        let chunk_bytes = u64::from(stored.chunk_bytes);
        if offset >= stored.descriptor.size || !offset.is_multiple_of(chunk_bytes) {
            return Ok(None);
        }
        let Ok(chunk) = u32::try_from(offset / chunk_bytes) else { return Ok(None) };
        let bytes = self.kv.get(&chunk_key(id.index, chunk))?;
        let want = chunk_bytes.min(stored.descriptor.size - offset);
        match bytes {
            Some(bytes) if bytes.len() as u64 == want => Ok(Some(bytes.into())),
            _ => Err(RaftError::Corrupt(format!("snapshot {} lacks a chunk", id.index))),
        }
    }

    fn stored(&self, id: SnapshotId) -> Result<Option<StoredSnapshot>, RaftError> {
        if self.snapshot.id == id {
            return Ok(Some(self.snapshot.clone()));
        }
        if !self.older.contains(&id.index) {
            return Ok(None);
        }
        let stored: Option<StoredSnapshot> = read(&*self.kv, &key(b'm', id.index))?;
        Ok(stored.filter(|stored| stored.id == id))
    }

    // What the node stores.

    /// Everything a `Ready` wants on disk, in one batch, synced when raft-rs says so. `snapshot`
    /// holds the bytes if the ready brings a snapshot.
    pub(super) fn persist(
        &mut self,
        ready: &Ready,
        snapshot: Option<Bytes>,
    ) -> Result<(), KvError> {
        let mut batch = KvBatch::new();
        if let Some(hard) = ready.hs() {
            self.hard = hard.clone();
        }
        if !ready.snapshot().is_empty() {
            let bytes = snapshot.expect("a snapshot is stepped only with its bytes at hand");
            self.install(&mut batch, ready.snapshot(), bytes);
        }
        self.append(&mut batch, ready.entries());
        if ready.hs().is_some() || !batch.is_empty() {
            batch.put(HARD_STATE, self.hard.to_disk());
            self.write(batch, ready.must_sync())?;
        }
        Ok(())
    }

    /// Remembers a commit index; it reaches the disk with the next batch.
    pub(super) fn set_commit(&mut self, commit: u64) {
        assert!(commit >= self.hard.commit, "the commit index went back");
        self.hard.commit = commit;
    }

    /// Makes all that is only remembered durable.
    pub(super) fn sync(&mut self) -> Result<(), KvError> {
        let mut batch = KvBatch::new();
        batch.put(HARD_STATE, self.hard.to_disk());
        self.write(batch, true)
    }

    /// The membership as of a committed entry, synced together with a commit index that covers it:
    /// a node must not fall back to an older membership after a crash.
    pub(super) fn set_members(&mut self, index: u64, members: ConfState) -> Result<(), KvError> {
        assert!(index <= self.hard.commit, "membership of an uncommitted entry");
        let mut batch = KvBatch::new();
        batch.put(key(b'c', index), members.to_disk());
        batch.put(HARD_STATE, self.hard.to_disk());
        self.members.insert(index, members);
        self.write(batch, true)
    }

    /// Stores a snapshot of the state after `index` and truncates the log up to `truncate_to` at
    /// most. Older snapshots stay while `fetched` names them. Not synced: losing this batch leaves
    /// the older snapshot and the longer log.
    pub(super) fn create_snapshot(
        &mut self,
        index: u64,
        bytes: &Bytes,
        truncate_to: u64,
        fetched: &BTreeSet<u64>,
    ) -> Result<(), RaftError> {
        assert!(index <= self.hard.commit && index > self.snapshot.id.index);
        let members = self.members.range(..=index).next_back();
        let members = members.map(|(_, members)| members.clone()).unwrap_or_default();
        let id = SnapshotId { index, term: self.term_at(index)? };
        let mut batch = KvBatch::new();
        self.older.insert(self.snapshot.id.index);
        self.put_snapshot(&mut batch, id, members, bytes);
        self.drop_older(&mut batch, fetched);
        self.truncate(&mut batch, truncate_to.min(index))?;
        batch.put(HARD_STATE, self.hard.to_disk());
        self.write(batch, false)?;
        Ok(())
    }

    fn drop_older(&mut self, batch: &mut KvBatch, fetched: &BTreeSet<u64>) {
        let gone: Vec<u64> = self.older.difference(fetched).copied().collect();
        for index in gone {
            self.older.remove(&index);
            delete_snapshot(batch, index);
        }
    }

    fn truncate(&mut self, batch: &mut KvBatch, to: u64) -> Result<(), RaftError> {
        if to > self.truncated.index {
            let term = self.term_at(to)?;
            self.truncated = SnapshotId { index: to, term };
            batch.delete_range(key(b'e', 0), key(b'e', to + 1));
            batch.put(TRUNCATED, self.truncated.to_disk());
            while self.cache.front().is_some_and(|entry| entry.index <= to) {
                self.uncache_front();
            }
        }
        let needed = self.members.range(..=self.snapshot.id.index).next_back();
        if let Some(oldest) = needed.map(|(index, _)| *index) {
            self.members = self.members.split_off(&oldest);
            batch.delete_range(key(b'c', 0), key(b'c', oldest));
        }
        Ok(())
    }

    /// A snapshot from the leader replaces everything: log, membership, older snapshots.
    fn install(&mut self, batch: &mut KvBatch, snapshot: &Snapshot, bytes: Bytes) {
        let metadata = snapshot.get_metadata();
        let id = SnapshotId { index: metadata.index, term: metadata.term };
        let members = metadata.get_conf_state().clone();
        assert!(self.hard.commit >= id.index, "a snapshot beyond the commit index");
        batch.delete_range(key(b'e', 0), key(b'f', 0));
        batch.delete_range(key(b'c', 0), key(b'd', 0));
        batch.put(TRUNCATED, id.to_disk());
        batch.put(key(b'c', id.index), members.to_disk());
        (self.truncated, self.last) = (id, id);
        self.cache.clear();
        self.cache_bytes = 0;
        self.members = BTreeMap::from([(id.index, members.clone())]);
        self.older.insert(self.snapshot.id.index);
        self.drop_older(batch, &BTreeSet::new());
        self.put_snapshot(batch, id, members, &bytes);
    }

    fn put_snapshot(
        &mut self,
        batch: &mut KvBatch,
        id: SnapshotId,
        members: ConfState,
        bytes: &Bytes,
    ) {
        let descriptor = Descriptor { size: bytes.len() as u64, crc: crc32c::crc32c(bytes) };
        let chunk_bytes = self.chunk_bytes;
        let stored = StoredSnapshot { id, descriptor, chunk_bytes, members };
        put_snapshot(batch, &stored, bytes);
        self.snapshot = stored;
    }

    /// Appends entries; those they replace and all after them go.
    fn append(&mut self, batch: &mut KvBatch, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        assert!(first.index > self.truncated.index && first.index <= self.last.index + 1);
        if first.index <= self.last.index {
            batch.delete_range(key(b'e', first.index), key(b'f', 0));
            while self.cache.back().is_some_and(|entry| entry.index >= first.index) {
                let gone = self.cache.pop_back().expect("looked at above");
                self.cache_bytes -= gone.data.len();
            }
        }
        for entry in entries {
            batch.put(key(b'e', entry.index), entry.to_disk());
            self.cache_entry(entry.clone());
        }
    }

    fn cache_entry(&mut self, entry: Entry) {
        self.last = SnapshotId { index: entry.index, term: entry.term };
        self.cache_bytes += entry.data.len();
        self.cache.push_back(entry);
        while self.cache.len() > CACHE_ENTRIES_MAX || self.cache_bytes > CACHE_BYTES_MAX {
            self.uncache_front();
        }
    }

    fn uncache_front(&mut self) {
        if let Some(gone) = self.cache.pop_front() {
            self.cache_bytes -= gone.data.len();
        }
    }

    fn write(&mut self, mut batch: KvBatch, sync: bool) -> Result<(), KvError> {
        let mut whole = std::mem::take(&mut self.pending);
        whole.ops.append(&mut batch.ops);
        self.kv.write(whole, sync)
    }

    // Reading entries.

    fn cached(&self, index: u64) -> Option<&Entry> {
        let first = self.cache.front()?.index;
        let at = usize::try_from(index.checked_sub(first)?).ok()?;
        self.cache.get(at)
    }

    /// The term of an entry that the log holds, or of the one before it.
    fn term_at(&self, index: u64) -> Result<u64, RaftError> {
        if index == self.truncated.index {
            return Ok(self.truncated.term);
        }
        if let Some(entry) = self.cached(index) {
            return Ok(entry.term);
        }
        let entry: Option<Entry> = read(&*self.kv, &key(b'e', index))?;
        let missing = || RaftError::Corrupt(format!("entry {index} is gone"));
        entry.map(|entry| entry.term).ok_or_else(missing)
    }

    /// Entries from `low` on, at least one, until `high` or about `max_bytes`.
    fn read_entries(&self, low: u64, high: u64, max_bytes: u64) -> Result<Vec<Entry>, RaftError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut bytes = 0;
        let mut next = low;
        while next < high {
            let page = match self.cached(next) {
                Some(entry) => vec![entry.clone()],
                None => self.read_page(next, high)?,
            };
            for entry in page {
                bytes += entry.data.len() as u64 + 16;
                if bytes > max_bytes && !entries.is_empty() {
                    return Ok(entries);
                }
                next += 1;
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    fn read_page(&self, low: u64, high: u64) -> Result<Vec<Entry>, RaftError> {
        let page = self.kv.scan(&key(b'e', low), &key(b'e', high), PAGE)?;
        let mut entries = Vec::with_capacity(page.len());
        for (key, value) in &page {
            entries.push(decode::<Entry>(key, value)?);
        }
        let in_order = (low..).zip(&entries).all(|(index, entry)| entry.index == index);
        if entries.is_empty() || !in_order {
            return Err(RaftError::Corrupt(format!("entries from {low} on are gone")));
        }
        Ok(entries)
    }
}

impl Storage for Log {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard.clone(), self.members().clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.truncated.index {
            return Err(StorageError::Compacted.into());
        }
        if high > self.last.index + 1 {
            return Err(StorageError::Unavailable.into());
        }
        self.read_entries(low, high, max_size.into().unwrap_or(u64::MAX)).map_err(fatal)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index < self.truncated.index {
            return Err(StorageError::Compacted.into());
        }
        if index > self.last.index {
            return Err(StorageError::Unavailable.into());
        }
        self.term_at(index).map_err(fatal)
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.truncated.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last.index)
    }

    /// The newest snapshot, if its membership has the peer: raft-rs ignores one that has not, and
    /// the leader would wait for ever. Otherwise the applier is asked for a newer one.
    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<Snapshot> {
        let StoredSnapshot { id, descriptor, members, .. } = &self.snapshot;
        let has_peer = members.voters.contains(&to) || members.learners.contains(&to);
        if id.index == 0 || id.index < request_index || !has_peer {
            self.snapshot_wanted.set(true);
            return Err(StorageError::SnapshotTemporarilyUnavailable.into());
        }
        let mut snapshot = Snapshot { data: descriptor.encode(), ..Snapshot::default() };
        let metadata = snapshot.mut_metadata();
        metadata.index = id.index;
        metadata.term = id.term;
        metadata.set_conf_state(members.clone());
        Ok(snapshot)
    }
}

/// raft-rs panics on it, which is meant: see the head of this file.
fn fatal(error: RaftError) -> raft::Error {
    StorageError::Other(Box::new(error)).into()
}

fn read<T: OnDisk>(kv: &dyn Kv, key: &[u8]) -> Result<Option<T>, RaftError> {
    let value = kv.get(key)?;
    value.map(|value| decode(key, &value)).transpose()
}

fn decode<T: OnDisk>(key: &[u8], value: &[u8]) -> Result<T, RaftError> {
    T::from_disk(value)
        .map_err(|error| RaftError::Corrupt(format!("{}: {error}", key.escape_ascii())))
}

/// Every pair of one kind, read in pages.
fn scan_all(kv: &dyn Kv, kind: u8) -> Result<Pairs, KvError> {
    let mut all = Pairs::new();
    let mut from = key(kind, 0);
    loop {
        let page = kv.scan(&from, &key(kind + 1, 0), PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(all) };
        from = [last, &[0][..]].concat();
        all.extend(page);
    }
}

fn no_snapshot(chunk_bytes: u32) -> StoredSnapshot {
    StoredSnapshot {
        id: SnapshotId::default(),
        descriptor: Descriptor { size: 0, crc: crc32c::crc32c(&[]) },
        chunk_bytes,
        members: ConfState::default(),
    }
}

fn create(
    kv: &mut dyn Kv,
    identity: Identity,
    voters: &[u64],
    chunk_bytes: u32,
) -> Result<(), KvError> {
    let mut batch = KvBatch::new();
    batch.put(IDENTITY, identity.to_disk());
    if voters.contains(&identity.id) {
        let mut members = ConfState::default();
        members.voters = voters.to_vec();
        let mut hard = HardState::default();
        hard.term = BOOTSTRAP.term;
        hard.commit = BOOTSTRAP.index;
        let stored = StoredSnapshot { id: BOOTSTRAP, members, ..no_snapshot(chunk_bytes) };
        batch.put(HARD_STATE, hard.to_disk());
        batch.put(TRUNCATED, BOOTSTRAP.to_disk());
        batch.put(key(b'c', BOOTSTRAP.index), stored.members.to_disk());
        put_snapshot(&mut batch, &stored, &[]);
    }
    kv.write(batch, false)
}

fn put_snapshot(batch: &mut KvBatch, stored: &StoredSnapshot, bytes: &[u8]) {
    let index = stored.id.index;
    batch.put(key(b'm', index), stored.to_disk());
    for (chunk, bytes) in bytes.chunks(stored.chunk_bytes as usize).enumerate() {
        batch.put(chunk_key(index, chunk as u32), bytes);
    }
}

fn delete_snapshot(batch: &mut KvBatch, index: u64) {
    batch.delete(key(b'm', index));
    batch.delete_range(key(b'd', index), key(b'd', index + 1));
}

//! Fetch sessions (KIP-227). Pure: the cache and what a request makes of it.
//!
//! A session remembers the partitions that a client follows, so that requests name only what
//! changed and answers carry only what is new. Slots are bounded; a session unused for two minutes
//! makes room for another (Kafka `FetchSession.scala`).

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol_compat::error::ErrorCode;
use uuid::Uuid;

/// A session that was not used for this long may be thrown out for a new one.
pub const EVICTION_MS: i64 = 120_000;

/// What all sessions may take in memory, in bytes, near enough. A session beyond is not opened; one
/// that grows beyond is forgotten, and its client begins anew.
pub const SESSION_BYTES_MAX: usize = 256 << 20;

/// A partition in a session, without its topic's name.
const PARTITION_BYTES: usize = 256;

/// The epoch that opens a session; with any id.
pub const INITIAL_EPOCH: i32 = 0;
/// The epoch that closes a session, or asks for none.
pub const FINAL_EPOCH: i32 = -1;

/// A partition as a client names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Nil when the client names topics by name.
    pub topic_id: Uuid,
    /// Empty when the client names topics by an id that nobody knows.
    pub topic: Arc<str>,
    pub partition: i32,
}

impl Key {
    fn bytes(&self) -> usize {
        PARTITION_BYTES + self.topic.len()
    }
}

/// What the client wants of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    pub fetch_offset: i64,
    pub max_bytes: i32,
    pub current_leader_epoch: i32,
    pub last_fetched_epoch: i32,
}

/// What the last answer said of a partition.
#[derive(Clone, Copy, Debug)]
struct Sent {
    high_watermark: i64,
    log_start_offset: i64,
}

#[derive(Debug)]
struct Cached {
    /// Its place in the order in which partitions are read.
    order: u64,
    want: Want,
    sent: Option<Sent>,
}

#[derive(Debug)]
struct Session {
    epoch: i32,
    by_id: bool,
    used_ms: i64,
    /// What its partitions take.
    bytes: usize,
    partitions: BTreeMap<Key, Cached>,
    order: BTreeMap<u64, Key>,
    next_order: u64,
}

impl Session {
    fn put(&mut self, key: Key, want: Want) {
        if let Some(cached) = self.partitions.get_mut(&key) {
            cached.want = want;
            return;
        }
        let order = self.next_order;
        self.next_order += 1;
        self.bytes += key.bytes();
        self.order.insert(order, key.clone());
        self.partitions.insert(key, Cached { order, want, sent: None });
    }

    fn forget(&mut self, key: &Key) {
        if let Some(cached) = self.partitions.remove(key) {
            self.order.remove(&cached.order);
            self.bytes -= key.bytes();
        }
    }

    fn move_to_end(&mut self, key: &Key) {
        let Some(cached) = self.partitions.get_mut(key) else { return };
        self.order.remove(&cached.order);
        cached.order = self.next_order;
        self.next_order += 1;
        self.order.insert(cached.order, key.clone());
    }

    fn wanted(&self) -> Vec<(Key, Want)> {
        let keys = self.order.values();
        keys.filter_map(|key| Some((key.clone(), self.partitions.get(key)?.want.clone()))).collect()
    }
}

/// The session part of a request.
pub struct Ask {
    pub session_id: i32,
    pub epoch: i32,
    /// Version 13 and later name topics by id.
    pub by_id: bool,
    /// Versions below 7 know no sessions.
    pub sessions: bool,
    pub partitions: Vec<(Key, Want)>,
    pub forgotten: Vec<Key>,
}

/// What a request is about, after the cache was asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Scope {
    pub kind: Kind,
    /// Everything to read, in order.
    pub partitions: Vec<(Key, Want)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No session: the answer has every partition and session id 0.
    Sessionless,
    /// The answer has every partition and opens a session if there is room.
    Full,
    /// The answer has what changed in this session.
    Incremental { session_id: i32 },
}

/// What became of one partition, for the session to remember.
pub struct Outcome {
    pub error: bool,
    pub has_records: bool,
    pub diverging: bool,
    pub high_watermark: i64,
    pub log_start_offset: i64,
}

/// All sessions of the node.
pub struct Sessions {
    slots_max: usize,
    bytes_max: usize,
    /// The sum over all sessions.
    bytes: usize,
    sessions: BTreeMap<i32, Session>,
}

impl Sessions {
    pub fn new(slots_max: usize) -> Sessions {
        let sessions = BTreeMap::new();
        Sessions { slots_max, bytes_max: SESSION_BYTES_MAX, bytes: 0, sessions }
    }

    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// How many partitions all sessions follow.
    pub fn partitions(&self) -> usize {
        self.sessions.values().map(|session| session.partitions.len()).sum()
    }

    /// Finds out what a request is about.
    ///
    /// # Errors
    /// The session errors of Fetch; none of them uses up the epoch.
    pub fn open(&mut self, now_ms: i64, ask: Ask) -> Result<Scope, ErrorCode> {
        if !ask.sessions {
            return Ok(Scope { kind: Kind::Sessionless, partitions: ask.partitions });
        }
        if ask.epoch == INITIAL_EPOCH || ask.epoch == FINAL_EPOCH {
            self.remove(ask.session_id);
            let full = ask.epoch == INITIAL_EPOCH;
            let kind = if full { Kind::Full } else { Kind::Sessionless };
            return Ok(Scope { kind, partitions: ask.partitions });
        }
        let session_id = ask.session_id;
        let Some(session) = self.sessions.get_mut(&session_id) else {
            return Err(ErrorCode::FetchSessionIdNotFound);
        };
        if session.epoch != ask.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.by_id != ask.by_id {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        session.epoch = if session.epoch == i32::MAX { 1 } else { session.epoch + 1 };
        session.used_ms = now_ms;
        self.bytes -= session.bytes;
        for (key, want) in ask.partitions {
            session.put(key, want);
        }
        for key in &ask.forgotten {
            session.forget(key);
        }
        self.bytes += session.bytes;
        let (is_empty, partitions) = (session.partitions.is_empty(), session.wanted());
        if is_empty {
            self.remove(session_id);
            return Ok(Scope { kind: Kind::Sessionless, partitions: Vec::new() });
        }
        if self.bytes > self.bytes_max {
            self.remove(session_id);
            return Err(ErrorCode::FetchSessionIdNotFound);
        }
        Ok(Scope { kind: Kind::Incremental { session_id }, partitions })
    }

    fn remove(&mut self, session_id: i32) {
        if let Some(session) = self.sessions.remove(&session_id) {
            self.bytes -= session.bytes;
        }
    }

    /// Opens a session after a full fetch; 0 when there is no room. `fresh` gives random ids.
    pub fn create(
        &mut self,
        now_ms: i64,
        by_id: bool,
        partitions: Vec<(Key, Want)>,
        mut fresh: impl FnMut() -> i32,
    ) -> i32 {
        if self.sessions.len() >= self.slots_max && !self.evict(now_ms) {
            return 0;
        }
        let mut session = Session {
            epoch: 1,
            by_id,
            used_ms: now_ms,
            bytes: 0,
            partitions: BTreeMap::new(),
            order: BTreeMap::new(),
            next_order: 0,
        };
        for (key, want) in partitions {
            session.put(key, want);
        }
        if self.bytes + session.bytes > self.bytes_max {
            return 0;
        }
        self.bytes += session.bytes;
        loop {
            let id = fresh() & i32::MAX;
            if id != 0 && !self.sessions.contains_key(&id) {
                self.sessions.insert(id, session);
                return id;
            }
        }
    }

    /// Makes room by throwing out the session that was unused longest, if it was long enough.
    fn evict(&mut self, now_ms: i64) -> bool {
        let oldest = self.sessions.iter().min_by_key(|(_, session)| session.used_ms);
        let Some((&id, _)) = oldest.filter(|(_, oldest)| now_ms - oldest.used_ms > EVICTION_MS)
        else {
            return false;
        };
        self.remove(id);
        true
    }

    /// A partition that returned records is read last the next time.
    pub fn move_to_end(&mut self, session_id: i32, key: &Key) {
        if let Some(session) = self.sessions.get_mut(&session_id) {
            session.move_to_end(key);
        }
    }

    /// Remembers what is about to be sent of a partition; whether it must be in an incremental
    /// answer at all.
    pub fn note(&mut self, session_id: i32, key: &Key, outcome: &Outcome) -> bool {
        let Some(session) = self.sessions.get_mut(&session_id) else {
            return true;
        };
        let Some(cached) = session.partitions.get_mut(key) else {
            return true;
        };
        let now = Sent {
            high_watermark: outcome.high_watermark,
            log_start_offset: outcome.log_start_offset,
        };
        let changed = cached.sent.is_none_or(|sent| {
            sent.high_watermark != now.high_watermark
                || sent.log_start_offset != now.log_start_offset
        });
        // After an error everything is news again.
        cached.sent = (!outcome.error).then_some(now);
        changed || outcome.has_records || outcome.error || outcome.diverging
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;

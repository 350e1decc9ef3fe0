//! A partition on this node: its log behind one short lock, its watermarks, and who waits for them.
//!
//! The handle offers append, read, wait, progress and describe; where the work runs is its own
//! business. Syncing is `flush.rs`, roles and the rule of the watermark are `state.rs`, long polls
//! are `waits.rs`, the map of all partitions is `table.rs`.

pub mod flush;
pub mod room;
pub mod state;
pub mod table;
pub mod waits;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicUsize, Ordering};
use std::task::Waker;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use protocol_compat::error::ErrorCode;
use protocol_compat::ids::TopicPartition;
use storage::errors::{AppendError, StorageError};
use storage::flush::Dirty;
use storage::log::{Appended, Log, LogView};
use storage::producers::Origin;
use uuid::Uuid;

use crate::config::TopicSettings;
use flush::Flusher;
use state::Role;
use waits::Waits;

/// What a client names that does not say which epoch it knows.
pub const NO_EPOCH: i32 = -1;

/// One replica of a partition.
pub struct Partition {
    pub tp: TopicPartition,
    pub topic_id: Uuid,
    /// Which entry of `log.dirs` holds it.
    pub dir: usize,
    node_id: i32,
    settings: Arc<ArcSwap<TopicSettings>>,
    state: Mutex<State>,
    flusher: Arc<Flusher>,
    /// The newest offset that consumers may not read yet. Rises only.
    high_watermark: AtomicI64,
    /// Everything below is as durable as the topic asks for: what acks=1 waits for.
    local_ack_end: AtomicI64,
    log_end_offset: AtomicI64,
    log_start_offset: AtomicI64,
    leader_epoch: AtomicI32,
    is_leader: AtomicBool,
    isr_len: AtomicUsize,
    /// Deleted, or its disk failed: no more reads and writes.
    offline: AtomicBool,
    pub waits: Waits,
}

struct State {
    log: Log,
    role: Role,
    /// The node stops: the log takes nothing more.
    closed: bool,
    /// Already in the flusher's open group.
    queued: bool,
    /// Records appended since the last flush began, against `flush.messages`.
    unflushed_records: i64,
    /// When the oldest unflushed record came, by the wall clock.
    unflushed_since_ms: i64,
}

/// What an append did.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub base_offset: i64,
    pub log_start_offset: i64,
    /// The end of the batch: an acknowledgement waits until the watermark is here.
    pub end_offset: i64,
    /// For a repeated batch of an idempotent producer: the time of the original.
    pub duplicate_ms: Option<i64>,
}

/// Who appends, and under which leader epoch it believes to act.
pub struct Append<'a> {
    pub now_ms: i64,
    pub origin: Origin,
    /// Wakes whoever waits for the acknowledgement.
    pub waker: Option<&'a Waker>,
}

/// Why nothing was appended.
#[derive(Debug)]
pub enum WriteError {
    NotLeader,
    Offline,
    Log(AppendError),
}

#[cfg(test)]
mod tests;

impl Partition {
    pub fn new(
        node_id: i32,
        dir: usize,
        log: Log,
        topic_id: Uuid,
        settings: Arc<ArcSwap<TopicSettings>>,
        flusher: Arc<Flusher>,
    ) -> Partition {
        let end = log.log_end_offset();
        Partition {
            tp: log.topic_partition().clone(),
            topic_id,
            dir,
            node_id,
            settings,
            flusher,
            high_watermark: AtomicI64::new(end),
            local_ack_end: AtomicI64::new(end),
            log_end_offset: AtomicI64::new(end),
            log_start_offset: AtomicI64::new(log.log_start_offset()),
            leader_epoch: AtomicI32::new(-1),
            is_leader: AtomicBool::new(false),
            isr_len: AtomicUsize::new(0),
            offline: AtomicBool::new(false),
            waits: Waits::default(),
            state: Mutex::new(State {
                log,
                role: Role::Follower { leader_epoch: -1, leader: None },
                closed: false,
                queued: false,
                unflushed_records: 0,
                unflushed_since_ms: 0,
            }),
        }
    }

    /// Takes the role that the metadata gives.
    pub fn become_leader(&self, leader_epoch: i32, isr: BTreeSet<i32>) {
        let mut state = self.state.lock();
        let known = state.role.leader_epoch();
        if state.role.is_leader() && known == leader_epoch {
            if let Role::Leader { isr: current, .. } = &mut state.role {
                *current = isr;
            }
        } else {
            state.log.assign_epoch(leader_epoch);
            state.role = Role::leader(leader_epoch, isr);
        }
        let end = self.local_ack_end.load(Ordering::Acquire);
        state.role.note_flushed(self.node_id, end);
        self.leader_epoch.store(leader_epoch, Ordering::Release);
        self.isr_len.store(state.role.isr_len(), Ordering::Release);
        self.is_leader.store(true, Ordering::Release);
        self.advance_watermark(&state, 0);
        drop(state);
        self.waits.fire_all();
    }

    /// Appends one validated batch; offsets are assigned in place.
    ///
    /// # Errors
    /// Nothing was written; the log is as before.
    pub fn append(
        self: &Arc<Self>,
        batch: &mut [u8],
        records: i64,
        append: &Append<'_>,
    ) -> Result<Written, WriteError> {
        if append.origin == Origin::Client && !self.flusher.room.is_there(append.now_ms) {
            let path = PathBuf::from(self.tp.to_string());
            let full = StorageError::Full { what: "append to", path };
            return Err(WriteError::Log(AppendError::Storage(full)));
        }
        let mut state = self.state.lock();
        // Under the lock: a log that was closed or renamed away takes nothing more.
        if state.closed || self.is_offline() {
            return Err(WriteError::Offline);
        }
        if !state.role.is_leader() {
            return Err(WriteError::NotLeader);
        }
        let epoch = state.role.leader_epoch();
        let done = state
            .log
            .append(batch, epoch, append.now_ms, append.origin)
            .map_err(WriteError::Log)?;
        let written = Written {
            base_offset: done.base_offset,
            log_start_offset: done.log_start_offset,
            end_offset: done.last_offset + 1,
            duplicate_ms: done.duplicate,
        };
        let durable = self.account(&mut state, &done, batch.len(), records, append.now_ms);
        let submit = durable && !std::mem::replace(&mut state.queued, true);
        drop(state);
        if submit {
            self.flusher.submit(self, append.waker);
        } else if durable {
            self.flusher.join(append.waker);
        }
        Ok(written)
    }

    /// Books an append: moves the ends, and says whether its acknowledgement waits for a flush.
    fn account(
        &self,
        state: &mut State,
        done: &Appended,
        bytes: usize,
        records: i64,
        now_ms: i64,
    ) -> bool {
        if done.duplicate.is_some() {
            // The original may still be on its way to the disk.
            return self.local_ack_end.load(Ordering::Acquire) <= done.last_offset;
        }
        let end = done.last_offset + 1;
        self.log_end_offset.store(end, Ordering::Release);
        self.log_start_offset.store(done.log_start_offset, Ordering::Release);
        if state.unflushed_records == 0 {
            state.unflushed_since_ms = now_ms;
        }
        state.unflushed_records += records;
        let durable = state.unflushed_records >= self.settings.load().flush_messages;
        if !durable {
            self.reached(state, end, i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        durable
    }

    /// Everything below `end` is as durable here as the topic asks for.
    fn reached(&self, state: &mut State, end: i64, bytes: i64) {
        if end <= self.local_ack_end.load(Ordering::Acquire) {
            return;
        }
        self.local_ack_end.store(end, Ordering::Release);
        state.role.note_flushed(self.node_id, end);
        self.advance_watermark(state, bytes);
    }

    fn advance_watermark(&self, state: &State, bytes: i64) {
        let current = self.high_watermark.load(Ordering::Acquire);
        let min_isr = usize::try_from(self.settings.load().min_insync_replicas).unwrap_or(1);
        // The effective minimum never exceeds the number of replicas; one node has one.
        let min_isr = min_isr.min(state.role.isr_len().max(1));
        if let Some(next) = state.role.next_watermark(current, min_isr) {
            self.high_watermark.store(next, Ordering::Release);
            self.waits.charge(bytes.max(1));
        }
    }

    /// The flusher begins: what must be synced for everything appended so far. Nothing of a
    /// partition that is offline: its directory has another name, and its log takes care of itself.
    pub fn begin_flush(&self) -> Option<Dirty> {
        let mut state = self.state.lock();
        state.queued = false;
        state.unflushed_records = 0;
        if self.is_offline() {
            return None;
        }
        state.log.take_dirty()
    }

    /// The flusher is done with what `begin_flush` gave.
    pub fn end_flush(&self, dirty: &Dirty) {
        let mut state = self.state.lock();
        if dirty.is_current() {
            state.log.flushed(dirty.end_offset);
            let bytes: u64 = dirty.files.iter().map(|file| file.to.saturating_sub(file.from)).sum();
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.reached(&mut state, dirty.end_offset, bytes);
        }
    }

    /// Hands the partition to the flusher if it has unflushed records older than `flush.ms`.
    pub fn flush_if_due(self: &Arc<Self>, now_ms: i64) {
        let flush_ms = self.settings.load().flush_ms;
        let mut state = self.state.lock();
        let age_ms = now_ms - state.unflushed_since_ms;
        if state.unflushed_records == 0 || age_ms < flush_ms || state.queued {
            return;
        }
        state.queued = true;
        drop(state);
        self.flusher.submit(self, None);
    }

    /// Whether an acknowledgement for records below `end_offset` may leave.
    pub fn is_acked(&self, acks: i16, end_offset: i64) -> bool {
        let reached = if acks == 1 { &self.local_ack_end } else { &self.high_watermark };
        reached.load(Ordering::Acquire) >= end_offset
    }

    /// The end, for a clean stop: no more appends, everything durable and written down.
    ///
    /// # Errors
    /// The disk's; the next start recovers.
    pub fn close(&self) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        state.closed = true;
        state.log.close()
    }

    /// Tells the next process that a sync may have failed.
    pub fn note_failed_sync(&self) {
        self.flusher.room.note_failed_sync();
    }

    /// A consistent picture for readers; they never take the partition's lock again.
    pub fn view(&self) -> LogView {
        self.state.lock().log.view()
    }

    /// Runs `body` on the log, under the partition's lock.
    pub fn with_log<T>(&self, body: impl FnOnce(&mut Log) -> T) -> T {
        let mut state = self.state.lock();
        let result = body(&mut state.log);
        self.log_start_offset.store(state.log.log_start_offset(), Ordering::Release);
        self.log_end_offset.store(state.log.log_end_offset(), Ordering::Release);
        result
    }

    pub fn high_watermark(&self) -> i64 {
        self.high_watermark.load(Ordering::Acquire)
    }

    /// Where a `read_committed` reader must stop.
    pub fn last_stable_offset(&self) -> i64 {
        self.state.lock().log.last_stable_offset(self.high_watermark())
    }

    pub fn log_start_offset(&self) -> i64 {
        self.log_start_offset.load(Ordering::Acquire)
    }

    pub fn log_end_offset(&self) -> i64 {
        self.log_end_offset.load(Ordering::Acquire)
    }

    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch.load(Ordering::Acquire)
    }

    pub fn is_leader(&self) -> bool {
        self.is_leader.load(Ordering::Acquire)
    }

    pub fn isr_len(&self) -> usize {
        self.isr_len.load(Ordering::Acquire)
    }

    pub fn is_offline(&self) -> bool {
        self.offline.load(Ordering::Acquire)
    }

    /// No more reads and writes; whoever waits is told. Appends under way are done on return.
    pub fn take_offline(&self) {
        let state = self.state.lock();
        self.offline.store(true, Ordering::Release);
        drop(state);
        self.waits.fire_all();
    }

    pub fn settings(&self) -> Arc<TopicSettings> {
        self.settings.load_full()
    }

    /// The answer to a client that names an epoch: too old, too new, or fine (KIP-320).
    pub fn check_epoch(&self, current_leader_epoch: i32) -> ErrorCode {
        let ours = self.leader_epoch();
        match current_leader_epoch {
            NO_EPOCH => ErrorCode::None,
            asked if asked < ours => ErrorCode::FencedLeaderEpoch,
            asked if asked > ours => ErrorCode::UnknownLeaderEpoch,
            _ => ErrorCode::None,
        }
    }
}

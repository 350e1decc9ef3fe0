//! One shard behind its lock: steps it, appends for it, and hands answers to whoever waits.
//!
//! Which shards there are, and finding the one of a group, is `mod.rs`; filling one is `load.rs`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use kraft::machine::{Refused, Released, Shard, Token};
use parking_lot::Mutex;
use protocol_compat::error::ErrorCode;
use tokio::sync::oneshot;

use super::codec;
use super::hard::{Hard, Record};
use super::log::GroupLog;
use super::machine::{GroupMachine, code_of};
use super::messages::{DeletedTopic, Input, Reply};
use super::soft::Soft;

/// Requests of one shard that may wait for an answer (in a join phase, for an assignment, for the
/// watermark). At the bound further ones are answered COORDINATOR_LOAD_IN_PROGRESS, which makes
/// clients come back a little later.
pub const WAITING_MAX: usize = 32_768;

/// The deadline of a shard without timers.
pub const NEVER_MS: i64 = i64::MAX;

/// What became of a request.
pub enum Answer {
    Now(Reply),
    /// Comes from a later step. Never dropped unanswered while the slot lives.
    Later(oneshot::Receiver<Reply>),
}

/// One partition of `__consumer_offsets` in one leader epoch.
pub struct Slot {
    pub partition: i32,
    pub leader_epoch: i32,
    /// When the shard wants to be fired; kept beside the lock so that looking costs nothing.
    deadline_ms: AtomicI64,
    inside: Mutex<Inside>,
}

struct Inside {
    shard: Shard<GroupMachine>,
    waiting: BTreeMap<Token, oneshot::Sender<Reply>>,
    next_token: u64,
    /// Topics that were deleted while the shard was loading.
    deleted: Vec<DeletedTopic>,
}

impl Slot {
    /// A slot whose shard is loading.
    pub fn loading(partition: i32, leader_epoch: i32) -> Self {
        let inside = Inside {
            shard: Shard::new(),
            waiting: BTreeMap::new(),
            next_token: 0,
            deleted: Vec::new(),
        };
        Slot {
            partition,
            leader_epoch,
            deadline_ms: AtomicI64::new(NEVER_MS),
            inside: Mutex::new(inside),
        }
    }

    /// Takes one request. While loading a heartbeat succeeds, as in Kafka: the member is fine, and
    /// will hear soon enough if it is not.
    pub fn submit(&self, log: &dyn GroupLog, now_ms: i64, input: Input) -> Answer {
        let mut inside = self.inside.lock();
        let input = match (inside.shard.ready(), input) {
            (Ok(()), input) => input,
            (Err(Refused::Loading), Input::Heartbeat(_)) => {
                return Answer::Now(Reply::Heartbeat(ErrorCode::None));
            }
            (Err(Refused::Loading), Input::TopicsDeleted(topics)) => {
                inside.deleted.extend(topics);
                return Answer::Now(Reply::TopicsDeleted(ErrorCode::None));
            }
            (Err(why), input) => return Answer::Now(input.refusal(code_of(why))),
        };
        if inside.waiting.len() >= WAITING_MAX {
            return Answer::Now(input.refusal(ErrorCode::CoordinatorLoadInProgress));
        }
        inside.next_token += 1;
        let token = Token(inside.next_token);
        let mut appended = false;
        let append = &mut |records: &[Record]| {
            appended = true;
            self.append(log, now_ms, records)
        };
        let stepped = inside.shard.step(now_ms, token, input, append);
        let released = stepped.expect("a shard that was ready takes the step");
        let own = inside.deliver(released, Some(token));
        let own = own.or(self.catch_up(log, appended, &mut inside, Some(token)));
        self.note_deadline(&inside);
        match own {
            Some(reply) => Answer::Now(reply),
            None => {
                let (sender, receiver) = oneshot::channel();
                inside.waiting.insert(token, sender);
                Answer::Later(receiver)
            }
        }
    }

    /// Runs the timers that are due.
    pub fn fire(&self, log: &dyn GroupLog, now_ms: i64) {
        let mut inside = self.inside.lock();
        let mut appended = false;
        let append = &mut |records: &[Record]| {
            appended = true;
            self.append(log, now_ms, records)
        };
        let released = inside.shard.fire(now_ms, append);
        inside.deliver(released, None);
        self.catch_up(log, appended, &mut inside, None);
        self.note_deadline(&inside);
    }

    /// The log's watermark moved.
    pub fn committed(&self, watermark: i64) {
        let mut inside = self.inside.lock();
        let released = inside.shard.committed(watermark);
        inside.deliver(released, None);
    }

    /// Puts a loaded shard to work. `bounds` is asked under the lock, so that no move of the
    /// watermark falls between. Does nothing if the slot was closed meanwhile.
    pub fn activate<E>(
        &self,
        mut shard: Shard<GroupMachine>,
        now_ms: i64,
        bounds: impl FnOnce() -> Result<(i64, i64), E>,
    ) -> Result<(), E> {
        let mut inside = self.inside.lock();
        if inside.shard.ready() != Err(Refused::Loading) {
            return Ok(());
        }
        let (end_offset, watermark) = bounds()?;
        let mut released = shard.activate(now_ms, end_offset, watermark.min(end_offset));
        if !inside.deleted.is_empty() {
            let notice = Input::TopicsDeleted(std::mem::take(&mut inside.deleted));
            // A notice only arms a timer; nobody waits for its answer.
            let append = &mut |_: &[Record]| -> Result<i64, Refused> { Err(Refused::Storage) };
            let stepped = shard.step(now_ms, Token(0), notice, append);
            released = stepped.expect("an active shard takes the step");
        }
        inside.shard = shard;
        inside.deliver(released, None);
        self.note_deadline(&inside);
        Ok(())
    }

    /// Ends the shard; whoever waits is told why.
    pub fn close(&self, why: Refused) {
        let mut inside = self.inside.lock();
        let released = inside.shard.close(why);
        inside.deliver(released, None);
        assert!(inside.waiting.is_empty(), "a closed shard left somebody waiting");
        self.note_deadline(&inside);
    }

    /// Whether requests are taken.
    pub fn ready(&self) -> Result<(), Refused> {
        self.inside.lock().shard.ready()
    }

    /// The deadline last noted, [`NEVER_MS`] without one.
    pub fn deadline_ms(&self) -> i64 {
        self.deadline_ms.load(Ordering::SeqCst)
    }

    /// Looks at the state; for metrics. Uncommitted records are in it.
    pub fn look<T>(&self, look: impl FnOnce(&Hard, &Soft) -> T) -> T {
        let inside = self.inside.lock();
        look(inside.shard.hard(), inside.shard.soft())
    }

    /// Changes what is not part of a step, such as settings.
    pub fn adjust(&self, adjust: impl FnOnce(&mut Soft)) {
        adjust(self.inside.lock().shard.soft_mut());
    }

    fn note_deadline(&self, inside: &Inside) {
        let deadline_ms = inside.shard.next_deadline().unwrap_or(NEVER_MS);
        self.deadline_ms.store(deadline_ms, Ordering::SeqCst);
    }

    /// A log whose watermark moves with the append itself has nobody else to tell of it.
    fn catch_up(
        &self,
        log: &dyn GroupLog,
        appended: bool,
        inside: &mut Inside,
        own: Option<Token>,
    ) -> Option<Reply> {
        if !appended {
            return None;
        }
        let bounds = log.bounds(self.partition).ok()?;
        let released = inside.shard.committed(bounds.high_watermark);
        inside.deliver(released, own)
    }

    fn append(&self, log: &dyn GroupLog, now_ms: i64, records: &[Record]) -> Result<i64, Refused> {
        let batch = codec::batch(records, now_ms);
        log.append(self.partition, self.leader_epoch, batch, now_ms).map_err(refused_by)
    }
}

impl Inside {
    /// Wakes who waited; the answer to `own` is returned instead.
    fn deliver(&mut self, released: Released<GroupMachine>, own: Option<Token>) -> Option<Reply> {
        let mut answer = None;
        for (token, reply) in released.replies {
            if Some(token) == own {
                answer = Some(reply);
            } else if let Some(waiting) = self.waiting.remove(&token) {
                // The caller may have gone; then the answer goes nowhere.
                let _ = waiting.send(reply);
            }
        }
        // The classic protocol has no effects: their type has no values.
        if let Some(effect) = released.effects.into_iter().next() {
            match effect {}
        }
        answer
    }
}

/// What the log's error means to a coordinator (Kafka's `CoordinatorOperationExceptionHelper`).
fn refused_by(error: ErrorCode) -> Refused {
    match error {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut => Refused::NotEnoughReplicas,
        ErrorCode::NotLeaderOrFollower
        | ErrorCode::FencedLeaderEpoch
        | ErrorCode::UnknownLeaderEpoch => Refused::NotLeader,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => Refused::TooLarge,
        _ => Refused::Storage,
    }
}

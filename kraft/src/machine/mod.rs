//! The contract of an event-sourced machine: decide on an input, write records, apply them, answer.
//!
//! A coordinator (groups, transactions) is a [`Machine`]: plain data and plain functions, no clock,
//! no I/O, no async. A [`Shard`] runs one machine over one log partition. What lies outside: the
//! log (a closure given to each call), the map from [`Token`] to the waiting caller, and the
//! wake-ups that [`Shard::next_deadline`] asks for.

mod parked;
pub mod rig;
mod shard;
mod timers;

pub use parked::Released;
pub use shard::{Shard, TIMER_RETRY_MS};

use std::fmt::Debug;

/// Stands for one waiting caller. The shell keeps the map from token to connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u64);

/// Why an input was not taken, or why what it led to was not written.
///
/// Machines map this to the error code of their API with an exhaustive match (Kafka's rule for
/// groups is `CoordinatorOperationExceptionHelper`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The shard still replays its log. Kafka: COORDINATOR_LOAD_IN_PROGRESS.
    Loading,
    /// The log is not led here, or no longer. Kafka: NOT_COORDINATOR.
    NotLeader,
    /// The process is stopping. Kafka: COORDINATOR_NOT_AVAILABLE.
    Closing,
    /// The log has too few in-sync replicas to take a write. Kafka: COORDINATOR_NOT_AVAILABLE.
    NotEnoughReplicas,
    /// The records do not fit one batch of the log. Kafka: UNKNOWN_SERVER_ERROR (of its own
    /// making).
    TooLarge,
    /// The disk refused the write: full or failed. Kafka: NOT_COORDINATOR for a failed log
    /// directory.
    Storage,
}

/// A state machine whose only durable changes are its records.
///
/// The rules that [`rig::Rig`] checks for any machine: `apply` is a function of hard state and
/// record alone, so replaying the log gives the live hard state; `decide` and `timer` depend on
/// nothing but their arguments.
///
/// **Soft state and failed appends.** `decide` may change soft state at once, before its records
/// are written. If the append then fails, *nothing in the outbox happens*: hard state and timers
/// stay as they were, effects are dropped, and [`Machine::append_failed`] gets the whole outbox. So
/// a machine either changes soft state only in ways that stay true without the records (a token
/// parked, a heartbeat seen), or puts it right there.
pub trait Machine: Sized {
    /// Rebuilt from the log; everything that must survive.
    type Hard: Default;
    /// Parked tokens, pending rounds, caches: lost on failover, by design.
    type Soft: Default;
    /// One request, or one notice from the shell (a topic was deleted, a follower caught up).
    type Input;
    /// One entry of the log.
    type Record;
    /// The answer to one token.
    type Reply;
    /// Something for the shell to do in the world once the records that justify it are committed.
    type Effect;
    /// Names a timer. At most one deadline per key; due timers fire in order of (deadline, key).
    type TimerKey: Clone + Ord + Debug;

    /// Looks at the state (uncommitted records included) and fills `out`. The token's reply may be
    /// given now, or kept in `soft` and given by a later step; each token is answered exactly once.
    fn decide(
        hard: &Self::Hard,
        soft: &mut Self::Soft,
        now_ms: i64,
        token: Token,
        input: Self::Input,
        out: &mut Outbox<Self>,
    );

    /// Changes hard state by one record. Cannot fail; runs the same live and in replay.
    fn apply(hard: &mut Self::Hard, record: &Self::Record);

    /// The log is replayed: build soft state and arm timers. Must not write records or reply; a
    /// machine that wants to write at start arms a timer at `now_ms`.
    fn loaded(hard: &Self::Hard, soft: &mut Self::Soft, now_ms: i64, out: &mut Outbox<Self>);

    /// A timer is due. It is no longer armed. If the append of this step fails, the shard arms it
    /// again [`TIMER_RETRY_MS`] later (Kafka's `CoordinatorTimer` does the same), so a full disk
    /// delays an expiry and does not lose it.
    fn timer(
        hard: &Self::Hard,
        soft: &mut Self::Soft,
        now_ms: i64,
        key: Self::TimerKey,
        out: &mut Outbox<Self>,
    );

    /// The answer that goes out instead of `reply`, which was never true or cannot be confirmed any
    /// more.
    fn refused(reply: Self::Reply, why: Refused) -> Self::Reply;

    /// The records of a step could not be written. `lost` is its whole outbox, none of which
    /// happened. Replies put in `out` leave at once; `out` must hold no records. The default
    /// refuses what `lost` would have answered; a machine whose soft state ran ahead repairs it
    /// here.
    fn append_failed(
        _hard: &Self::Hard,
        _soft: &mut Self::Soft,
        _now_ms: i64,
        why: Refused,
        lost: Outbox<Self>,
        out: &mut Outbox<Self>,
    ) {
        let refuse = |(token, reply)| (token, Self::refused(reply, why));
        out.replies.extend(lost.replies.into_iter().map(refuse));
    }

    /// The shard closes: answer every token that soft state still holds. Only replies are taken
    /// from `out`, and they leave at once. The default holds no tokens.
    fn closing(_hard: &Self::Hard, _soft: &mut Self::Soft, _why: Refused, _out: &mut Outbox<Self>) {
    }
}

/// What one step wants. The shard performs it, all or nothing.
pub struct Outbox<M: Machine> {
    /// Appended in one call, in this order, then applied.
    pub records: Vec<M::Record>,
    /// Sent when the records of this step are committed; without records, when all earlier ones
    /// are.
    pub replies: Vec<(Token, M::Reply)>,
    /// Handed to the shell at the same moment as the replies.
    pub effects: Vec<M::Effect>,
    /// (key, deadline in ms since 1970). Replaces an earlier deadline of the key.
    pub arm: Vec<(M::TimerKey, i64)>,
    /// Done before `arm`, so a key in both ends up armed. Unknown keys are ignored.
    pub cancel: Vec<M::TimerKey>,
}

impl<M: Machine> Outbox<M> {
    /// Adds a record.
    pub fn record(&mut self, record: M::Record) {
        self.records.push(record);
    }

    /// Answers a token.
    pub fn reply(&mut self, token: Token, reply: M::Reply) {
        self.replies.push((token, reply));
    }

    /// Adds an effect.
    pub fn effect(&mut self, effect: M::Effect) {
        self.effects.push(effect);
    }

    /// Arms a timer, or moves it.
    pub fn arm(&mut self, key: M::TimerKey, deadline_ms: i64) {
        self.arm.push((key, deadline_ms));
    }

    /// Disarms a timer.
    pub fn cancel(&mut self, key: M::TimerKey) {
        self.cancel.push(key);
    }
}

impl<M: Machine> Default for Outbox<M> {
    fn default() -> Self {
        Outbox {
            records: Vec::new(),
            replies: Vec::new(),
            effects: Vec::new(),
            arm: Vec::new(),
            cancel: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;

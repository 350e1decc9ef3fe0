//! Runs one machine over one log: Loading -> Active -> Closed. Synchronous and without I/O of its
//! own.
//!
//! A step is: decide, append the records (one call), apply them, park replies and effects at the
//! end offset of that append. One step at a time, so no undo is needed: hard state only ever holds
//! what the log holds. Records that the log later loses (a deposed leader) take the whole shard
//! with them: the shell closes it and loads a new one.

use super::parked::{Parked, Released};
use super::timers::Timers;
use super::{Machine, Outbox, Refused, Token};

/// After a failed append in a timer step the timer is due again this much later (Kafka: 500).
pub const TIMER_RETRY_MS: i64 = 500;

/// Appends the records of one step as one batch and returns the log's end offset (exclusive) after
/// them.
pub type Append<'a, R> = &'a mut dyn FnMut(&[R]) -> Result<i64, Refused>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Loading,
    Active,
    Closed(Refused),
}

/// One machine, its timers and its waiting callers. Lives as long as the leadership of its log.
pub struct Shard<M: Machine> {
    phase: Phase,
    hard: M::Hard,
    soft: M::Soft,
    timers: Timers<M::TimerKey>,
    parked: Parked<M>,
    /// The log's end after the last record that `hard` holds.
    end_offset: i64,
    /// Everything below is committed. May lag behind `end_offset`, also right after loading.
    watermark: i64,
}

impl<M: Machine> Default for Shard<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> Shard<M> {
    /// An empty shard that takes [`Shard::load`] only.
    pub fn new() -> Self {
        Self::with_soft(M::Soft::default())
    }

    /// The same with soft state that the shell prepared: settings, handles, a seed.
    pub fn with_soft(soft: M::Soft) -> Self {
        Shard {
            phase: Phase::Loading,
            hard: M::Hard::default(),
            soft,
            timers: Timers::default(),
            parked: Parked::default(),
            end_offset: 0,
            watermark: 0,
        }
    }

    /// Replays one record of the log. Ignored once closed (a load may outlive the leadership).
    pub fn load(&mut self, record: &M::Record) {
        match self.phase {
            Phase::Loading => M::apply(&mut self.hard, record),
            Phase::Active => panic!("a record was loaded into an active shard"),
            Phase::Closed(_) => {}
        }
    }

    /// The whole log up to `end_offset` is loaded; `watermark` of it is known to be committed.
    /// Requests are taken from here on; their replies wait for what was loaded beyond the watermark
    /// too. Does nothing once closed.
    pub fn activate(&mut self, now_ms: i64, end_offset: i64, watermark: i64) -> Released<M> {
        assert!(watermark <= end_offset, "watermark {watermark} beyond log end {end_offset}");
        match self.phase {
            Phase::Loading => self.phase = Phase::Active,
            Phase::Active => panic!("a shard was activated twice"),
            Phase::Closed(_) => return Released::default(),
        }
        self.end_offset = end_offset;
        self.watermark = watermark;
        let mut out = Outbox::default();
        M::loaded(&self.hard, &mut self.soft, now_ms, &mut out);
        assert!(out.records.is_empty(), "loaded() wrote records");
        assert!(out.replies.is_empty(), "loaded() replied to nobody");
        self.perform(out)
    }

    /// Takes one input. The answer is in some later [`Released`], often in this one.
    ///
    /// Errors: the shard is loading or closed; the input was not looked at and the caller answers.
    pub fn step(
        &mut self,
        now_ms: i64,
        token: Token,
        input: M::Input,
        append: Append<'_, M::Record>,
    ) -> Result<Released<M>, Refused> {
        self.ready()?;
        let mut out = Outbox::default();
        M::decide(&self.hard, &mut self.soft, now_ms, token, input, &mut out);
        Ok(self.finish(now_ms, out, append).unwrap_or_else(|failed| failed))
    }

    /// When [`Shard::fire`] should be called, in ms since 1970.
    pub fn next_deadline(&self) -> Option<i64> {
        self.timers.next_deadline()
    }

    /// The deadline of one timer, if armed.
    pub fn deadline(&self, key: &M::TimerKey) -> Option<i64> {
        self.timers.deadline(key)
    }

    /// Runs the timers that are due, each as a step of its own, by (deadline, key). A timer armed
    /// by one of these steps waits for the next call even if it is due already.
    pub fn fire(&mut self, now_ms: i64, append: Append<'_, M::Record>) -> Released<M> {
        let mut released = Released::default();
        for (deadline_ms, key) in self.timers.due(now_ms) {
            if !self.timers.take(&key, deadline_ms) {
                continue; // An earlier step of this call moved or cancelled it.
            }
            let mut out = Outbox::default();
            M::timer(&self.hard, &mut self.soft, now_ms, key.clone(), &mut out);
            match self.finish(now_ms, out, append) {
                Ok(done) => released.extend(done),
                Err(failed) => {
                    self.timers.arm_if_idle(key, now_ms + TIMER_RETRY_MS);
                    released.extend(failed);
                }
            }
        }
        released
    }

    /// The watermark (exclusive, Kafka's high watermark) moved. Going back is ignored: what was
    /// answered stays answered.
    pub fn committed(&mut self, watermark: i64) -> Released<M> {
        self.watermark = self.watermark.max(watermark);
        self.parked.release(self.watermark)
    }

    /// Ends the shard: every caller still waiting, parked here or in soft state, is answered with
    /// `why`; effects that did not leave yet never will. State is dropped. Closing again does
    /// nothing.
    pub fn close(&mut self, why: Refused) -> Released<M> {
        let mut released = Released::default();
        if matches!(self.phase, Phase::Closed(_)) {
            return released;
        }
        let refuse = |(token, reply)| (token, M::refused(reply, why));
        released.replies.extend(self.parked.drain().replies.into_iter().map(refuse));
        if self.phase == Phase::Active {
            let mut out = Outbox::default();
            M::closing(&self.hard, &mut self.soft, why, &mut out);
            released.replies.extend(out.replies);
        }
        *self = Shard { phase: Phase::Closed(why), ..Self::new() };
        released
    }

    /// Whether requests are taken.
    ///
    /// Errors: `Loading`, or the reason it was closed with.
    pub fn ready(&self) -> Result<(), Refused> {
        match self.phase {
            Phase::Loading => Err(Refused::Loading),
            Phase::Active => Ok(()),
            Phase::Closed(why) => Err(why),
        }
    }

    /// The state the log gives, uncommitted records included.
    pub fn hard(&self) -> &M::Hard {
        &self.hard
    }

    /// The state the log does not give.
    pub fn soft(&self) -> &M::Soft {
        &self.soft
    }

    /// For settings that change while the shard runs; anything else goes through a step.
    pub fn soft_mut(&mut self) -> &mut M::Soft {
        &mut self.soft
    }

    /// The log's end (exclusive) after the last record that the hard state holds.
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// The watermark last heard.
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    /// How many replies wait for the watermark. Replies held in soft state are not counted.
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Appends and applies; `Err` holds what a failed append releases.
    fn finish(
        &mut self,
        now_ms: i64,
        out: Outbox<M>,
        append: Append<'_, M::Record>,
    ) -> Result<Released<M>, Released<M>> {
        if out.records.is_empty() {
            return Ok(self.perform(out));
        }
        match append(&out.records) {
            Ok(end_offset) => {
                assert!(end_offset > self.end_offset, "log end {end_offset} did not grow");
                self.end_offset = end_offset;
                for record in &out.records {
                    M::apply(&mut self.hard, record);
                }
                Ok(self.perform(out))
            }
            Err(why) => Err(self.fail(now_ms, why, out)),
        }
    }

    /// Timers move now; replies and effects wait for the log's present end.
    fn perform(&mut self, out: Outbox<M>) -> Released<M> {
        for key in &out.cancel {
            self.timers.cancel(key);
        }
        for (key, deadline_ms) in out.arm {
            self.timers.arm(key, deadline_ms);
        }
        let outcome = Released { replies: out.replies, effects: out.effects };
        if !outcome.is_empty() {
            self.parked.park(self.end_offset, outcome);
        }
        self.parked.release(self.watermark)
    }

    /// Nothing of `lost` happened. Refusals do not wait for a watermark that may never move.
    fn fail(&mut self, now_ms: i64, why: Refused, lost: Outbox<M>) -> Released<M> {
        let mut out = Outbox::default();
        M::append_failed(&self.hard, &mut self.soft, now_ms, why, lost, &mut out);
        assert!(out.records.is_empty(), "append_failed() wrote records");
        let mut released =
            Released { replies: std::mem::take(&mut out.replies), effects: Vec::new() };
        released.extend(self.perform(out));
        released
    }
}

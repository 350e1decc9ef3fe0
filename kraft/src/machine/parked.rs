//! Replies and effects that wait for a watermark, in the order of their offsets.

use std::collections::VecDeque;

use super::{Machine, Token};

/// What the shell may send and do now, each list in order.
pub struct Released<M: Machine> {
    /// Answers; each token appears once in a shard's life.
    pub replies: Vec<(Token, M::Reply)>,
    /// Work in the world.
    pub effects: Vec<M::Effect>,
}

impl<M: Machine> Released<M> {
    /// Nothing to send and nothing to do.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty() && self.effects.is_empty()
    }

    pub(super) fn extend(&mut self, more: Released<M>) {
        self.replies.extend(more.replies);
        self.effects.extend(more.effects);
    }
}

impl<M: Machine> Default for Released<M> {
    fn default() -> Self {
        Released { replies: Vec::new(), effects: Vec::new() }
    }
}

/// Waiting outcomes. Bounded by the shell: one reply per request in flight, one step per reply or
/// timer.
pub(super) struct Parked<M: Machine> {
    /// By the end offset they wait for; sorted by construction, a step ends after the one before
    /// it.
    waiting: VecDeque<(i64, Released<M>)>,
}

impl<M: Machine> Parked<M> {
    /// Parks an outcome until the watermark reaches `end_offset`.
    pub(super) fn park(&mut self, end_offset: i64, outcome: Released<M>) {
        match self.waiting.back_mut() {
            Some((last_offset, last)) if *last_offset == end_offset => last.extend(outcome),
            back => {
                assert!(back.is_none_or(|(last_offset, _)| *last_offset < end_offset));
                self.waiting.push_back((end_offset, outcome));
            }
        }
    }

    /// Takes what waits for `watermark` or less.
    pub(super) fn release(&mut self, watermark: i64) -> Released<M> {
        let mut released = Released::default();
        while self.waiting.front().is_some_and(|(end_offset, _)| *end_offset <= watermark) {
            released.extend(self.waiting.pop_front().expect("looked at above").1);
        }
        released
    }

    /// Takes everything.
    pub(super) fn drain(&mut self) -> Released<M> {
        self.release(i64::MAX)
    }

    /// How many replies wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.iter().map(|(_, outcome)| outcome.replies.len()).sum()
    }
}

impl<M: Machine> Default for Parked<M> {
    fn default() -> Self {
        Parked { waiting: VecDeque::new() }
    }
}

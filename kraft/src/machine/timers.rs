//! Deadlines by key, in an order that does not depend on how they got there. Knows no clock.

use std::collections::{BTreeMap, BTreeSet};

/// At most one deadline per key. Its size is bounded by the machine's own entities.
pub(super) struct Timers<K> {
    by_key: BTreeMap<K, i64>,
    /// The same pairs, by deadline; changed only together with `by_key`.
    by_deadline: BTreeSet<(i64, K)>,
}

impl<K: Clone + Ord> Timers<K> {
    /// Arms `key`, replacing its earlier deadline.
    pub(super) fn arm(&mut self, key: K, deadline_ms: i64) {
        if let Some(old_ms) = self.by_key.insert(key.clone(), deadline_ms) {
            self.by_deadline.remove(&(old_ms, key.clone()));
        }
        self.by_deadline.insert((deadline_ms, key));
    }

    /// Arms `key` unless it is armed.
    pub(super) fn arm_if_idle(&mut self, key: K, deadline_ms: i64) {
        if !self.by_key.contains_key(&key) {
            self.arm(key, deadline_ms);
        }
    }

    /// Disarms `key`, if armed.
    pub(super) fn cancel(&mut self, key: &K) {
        if let Some(old_ms) = self.by_key.remove(key) {
            self.by_deadline.remove(&(old_ms, key.clone()));
        }
    }

    /// Disarms `key` if it is still armed for exactly this deadline; false means it was moved
    /// meanwhile.
    pub(super) fn take(&mut self, key: &K, deadline_ms: i64) -> bool {
        let armed = self.by_key.get(key) == Some(&deadline_ms);
        if armed {
            self.cancel(key);
        }
        armed
    }

    /// What is due at `now_ms`, by (deadline, key).
    pub(super) fn due(&self, now_ms: i64) -> Vec<(i64, K)> {
        let due = self.by_deadline.iter().take_while(|(deadline_ms, _)| *deadline_ms <= now_ms);
        due.cloned().collect()
    }

    /// The earliest deadline.
    pub(super) fn next_deadline(&self) -> Option<i64> {
        self.by_deadline.first().map(|(deadline_ms, _)| *deadline_ms)
    }

    /// The deadline of one key.
    pub(super) fn deadline(&self, key: &K) -> Option<i64> {
        self.by_key.get(key).copied()
    }
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Timers { by_key: BTreeMap::new(), by_deadline: BTreeSet::new() }
    }
}

//! Work in the background: offsets and groups whose time is over, offsets of topics that are gone.
//!
//! Both walk over all groups of the shard in steps of bounded length and size, and both may start
//! over at any time: what was removed is not found again.

use kraft::machine::Outbox;

use super::classic::state::{Group, State};
use super::hard::{Hard, OffsetValue, Record, Stored};
use super::machine::{GroupMachine, Timer};
use super::messages::{DeletedTopic, Name};
use super::offsets::{same_topic, tombstone};
use super::settings::GroupSettings;
use super::soft::{Purge, Soft};

/// Groups looked at in one step; then other requests have their turn.
pub const GROUPS_PER_STEP: usize = 1_000;

/// A step's tombstones stop growing here, far below any limit on a batch: they are one write.
pub const TOMBSTONE_BYTES_PER_STEP: usize = 256 * 1024;

/// What one record takes in a batch besides its names, at most.
const RECORD_OVERHEAD: usize = 40;

/// How much one step may still do.
struct Budget {
    groups: usize,
    bytes: usize,
}

impl Budget {
    fn new() -> Self {
        Budget { groups: GROUPS_PER_STEP, bytes: TOMBSTONE_BYTES_PER_STEP }
    }

    /// Accounts for one tombstone; false if it has to wait for the next step.
    fn take(&mut self, group: &str, topic: &str) -> bool {
        let cost = RECORD_OVERHEAD + group.len() + topic.len();
        match self.bytes.checked_sub(cost) {
            Some(left) => self.bytes = left,
            None => return false,
        }
        true
    }
}

/// Removes what is expired: offsets, and empty groups that have none (left). Comes back at once
/// while there are groups to look at, else after the check interval.
pub fn expired(hard: &Hard, soft: &mut Soft, now_ms: i64, out: &mut Outbox<GroupMachine>) {
    let mut budget = Budget::new();
    let mut after = soft.sweep_after.take();
    let mut done = true;
    for (id, stored) in hard.groups_after(after.clone().as_ref()) {
        if budget.groups == 0 {
            done = false;
            break;
        }
        budget.groups -= 1;
        let live = soft.live(hard, id);
        if !expire_group(id, stored, live, &soft.settings, now_ms, &mut budget, out) {
            done = false;
            break;
        }
        after = Some(id.clone());
    }
    if done {
        out.arm(Timer::Sweep, now_ms.saturating_add(soft.settings.offsets_check_interval_ms));
    } else {
        soft.sweep_after = after;
        out.arm(Timer::Sweep, now_ms);
    }
}

/// False if the budget did not do.
fn expire_group(
    id: &Name,
    stored: &Stored,
    live: Option<&Group>,
    settings: &GroupSettings,
    now_ms: i64,
    budget: &mut Budget,
    out: &mut Outbox<GroupMachine>,
) -> bool {
    let rule = Rule::of(stored, live);
    let mut left = false;
    for (topic, partitions) in &stored.offsets {
        if live.is_some_and(|live| live.is_subscribed(topic)) {
            left = true;
            continue;
        }
        for (partition, value) in partitions {
            if !rule.is_over(value, settings.offsets_retention_ms, now_ms) {
                left = true;
            } else if budget.take(id, topic) {
                out.record(tombstone(id, topic, *partition));
            } else {
                return false;
            }
        }
    }
    if left || live.is_some() {
        return true;
    }
    let fits = budget.take(id, "");
    if fits {
        out.record(Record::Group { group: id.clone(), value: None });
    }
    fits
}

/// When the clock of an offset starts (KIP-211, Kafka's `offsetExpirationCondition`).
enum Rule {
    /// With its commit: no members to speak of, or a topic that the members do not subscribe to.
    Commit,
    /// When the group became empty, as far as that is known.
    Empty(Option<i64>),
    /// Never: the coordinator cannot tell what the members need.
    Never,
}

impl Rule {
    fn of(stored: &Stored, live: Option<&Group>) -> Rule {
        let Some(live) = live else {
            let value = stored.value.as_ref();
            return match value.filter(|value| value.protocol_type.is_some()) {
                Some(value) => Rule::Empty(value.state_since_ms),
                None => Rule::Commit,
            };
        };
        match live.state {
            _ if live.protocol_type.is_none() => Rule::Commit,
            State::Empty => Rule::Empty(live.state_since_ms),
            State::Stable if live.subscribed.is_some() => Rule::Commit,
            State::Preparing(_) | State::Completing | State::Stable => Rule::Never,
        }
    }

    fn is_over(&self, value: &OffsetValue, retention_ms: i64, now_ms: i64) -> bool {
        let since_ms = match self {
            Rule::Never => return false,
            Rule::Commit | Rule::Empty(None) => value.commit_ms,
            Rule::Empty(Some(empty_since_ms)) => *empty_since_ms,
        };
        match value.expire_ms {
            Some(expire_ms) => now_ms >= expire_ms,
            None => now_ms.saturating_sub(since_ms) >= retention_ms,
        }
    }
}

/// Topics are gone: their offsets go too, from now on step by step.
pub fn topics_deleted(
    soft: &mut Soft,
    now_ms: i64,
    topics: Vec<DeletedTopic>,
    out: &mut Outbox<GroupMachine>,
) {
    soft.purge.topics.extend(topics);
    soft.purge.after = None;
    // What a pass under way has passed by has to be looked at for the new topics.
    soft.purge.found = true;
    out.arm(Timer::Purge, now_ms);
}

/// One step of removing the offsets of deleted topics. Ends with a whole pass that finds nothing,
/// so that nothing is left behind when a write fails.
pub fn purge(hard: &Hard, soft: &mut Soft, now_ms: i64, out: &mut Outbox<GroupMachine>) {
    let purge = &mut soft.purge;
    let mut budget = Budget::new();
    if purge.after.is_none() {
        purge.found = false;
    }
    let mut done = true;
    for (id, stored) in hard.groups_after(purge.after.clone().as_ref()) {
        if budget.groups == 0 || !purge_group(id, stored, purge, &mut budget, out) {
            done = false;
            break;
        }
        budget.groups -= 1;
        purge.after = Some(id.clone());
    }
    purge.found |= !out.records.is_empty();
    if done {
        purge.after = None;
    }
    if done && !purge.found {
        purge.topics.clear();
    } else {
        out.arm(Timer::Purge, now_ms);
    }
}

/// False if the budget did not do.
fn purge_group(
    id: &Name,
    stored: &Stored,
    purge: &Purge,
    budget: &mut Budget,
    out: &mut Outbox<GroupMachine>,
) -> bool {
    for deleted in &purge.topics {
        for (partition, value) in stored.offsets.get(&deleted.topic).into_iter().flatten() {
            if !same_topic(value.topic_id, deleted.topic_id) {
                continue;
            }
            if !budget.take(id, &deleted.topic) {
                return false;
            }
            out.record(tombstone(id, &deleted.topic, *partition));
        }
    }
    true
}

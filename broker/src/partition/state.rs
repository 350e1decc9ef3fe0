//! What a leader knows of its replicas, and how far the high watermark may go. Pure.
//!
//! A record is visible to consumers below the high watermark: the lowest **flushed** end over the
//! in-sync replicas. It never falls on a leader (semantics of Kafka's `Partition`, KIP-966: it does
//! not move while fewer replicas than `min.insync.replicas` are in sync).

use std::collections::{BTreeMap, BTreeSet};

/// The part that this node plays for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes writes; knows how far every in-sync replica has flushed.
    Leader { leader_epoch: i32, isr: BTreeSet<i32>, flushed_ends: BTreeMap<i32, i64> },
    /// Copies from a leader.
    Follower { leader_epoch: i32, leader: Option<i32> },
}

impl Role {
    /// A new leader: it has heard from nobody but itself.
    pub fn leader(leader_epoch: i32, isr: BTreeSet<i32>) -> Role {
        Role::Leader { leader_epoch, isr, flushed_ends: BTreeMap::new() }
    }

    pub fn leader_epoch(&self) -> i32 {
        match self {
            Role::Leader { leader_epoch, .. } | Role::Follower { leader_epoch, .. } => {
                *leader_epoch
            }
        }
    }

    pub fn is_leader(&self) -> bool {
        matches!(self, Role::Leader { .. })
    }

    /// How many replicas are in sync; none for a follower, who does not know.
    pub fn isr_len(&self) -> usize {
        match self {
            Role::Leader { isr, .. } => isr.len(),
            Role::Follower { .. } => 0,
        }
    }

    /// Replica `node` has flushed everything below `end_offset`.
    pub fn note_flushed(&mut self, node: i32, end_offset: i64) {
        if let Role::Leader { flushed_ends, .. } = self {
            let known = flushed_ends.entry(node).or_insert(end_offset);
            *known = (*known).max(end_offset);
        }
    }

    /// Where the high watermark moves to, if it moves.
    pub fn next_watermark(&self, current: i64, min_isr: usize) -> Option<i64> {
        let Role::Leader { isr, flushed_ends, .. } = self else {
            return None;
        };
        if isr.len() < min_isr {
            return None;
        }
        let lowest = lowest_flushed(isr, flushed_ends)?;
        (lowest > current).then_some(lowest)
    }
}

/// The lowest flushed end in the in-sync set; none while one of them has not reported yet.
fn lowest_flushed(isr: &BTreeSet<i32>, ends: &BTreeMap<i32, i64>) -> Option<i64> {
    let mut lowest = None::<i64>;
    for node in isr {
        let end = *ends.get(node)?;
        lowest = Some(lowest.map_or(end, |low| low.min(end)));
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::Role;

    /// `ends` lists `node:flushed_end`; `!` marks a node outside the in-sync set.
    #[track_caller]
    fn check(current: i64, min_isr: usize, ends: &str, want: Option<i64>) {
        let mut isr = std::collections::BTreeSet::new();
        let mut reports = Vec::new();
        for word in ends.split_whitespace() {
            let (node, end) = word.trim_end_matches('!').split_once(':').expect("node:end");
            let node: i32 = node.parse().expect("a node");
            if !word.ends_with('!') {
                isr.insert(node);
            }
            if end != "?" {
                reports.push((node, end.parse::<i64>().expect("an end")));
            }
        }
        let mut role = Role::leader(3, isr);
        for (node, end) in reports {
            role.note_flushed(node, end);
        }
        assert_eq!(role.next_watermark(current, min_isr), want, "{ends}");
    }

    #[test]
    fn the_watermark_is_the_lowest_flushed_end_in_sync() {
        check(0, 1, "1:5", Some(5));
        check(5, 1, "1:5", None);
        check(5, 1, "1:9 2:7 3:8", Some(7));
        check(5, 1, "1:9 2:3! 3:8", Some(8)); // A laggard outside the set holds nobody back.
        check(9, 1, "1:12 2:8", None); // Never back.
        check(0, 1, "1:9 2:?", None); // Not before everybody has reported.
        check(0, 2, "1:9", None); // KIP-966: too few in sync.
    }

    #[test]
    fn reports_never_go_back() {
        let mut role = Role::leader(1, [1].into());
        role.note_flushed(1, 9);
        role.note_flushed(1, 4);
        assert_eq!(role.next_watermark(0, 1), Some(9));
    }
}

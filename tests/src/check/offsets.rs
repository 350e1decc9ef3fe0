//! OFFSET BACK: once a commit was acknowledged, its offset is what the group is told, or that of a
//! commit without an answer: such a request may still be under way and count at any later time.
//! Commits of a group and partition are sent one after another.

use std::collections::BTreeMap;

use super::{Found, Verdict};
use crate::history::{Event, History, Outcome};

/// What a group may be told.
#[derive(Default)]
struct Known {
    /// Acknowledged last; `None` before that.
    settled: Option<i64>,
    /// Sent, and without an answer.
    open: Vec<i64>,
}

pub fn check(history: &History, found: &mut Found) {
    let mut known: BTreeMap<(u32, i32), Known> = BTreeMap::new();
    for event in history.iter() {
        match event {
            Event::CommitInvoke { group, partition, offset } => {
                known.entry((*group, *partition)).or_default().open.push(*offset);
            }
            Event::CommitAnswer { group, partition, offset, outcome } => {
                let known = known.entry((*group, *partition)).or_default();
                if *outcome != Outcome::Unknown {
                    known.open.retain(|open| open != offset);
                }
                if *outcome == Outcome::Ok {
                    known.settled = Some(*offset);
                }
            }
            Event::Committed { group, partition, offset } => {
                let known = known.entry((*group, *partition)).or_default();
                let settled = known.settled.unwrap_or(-1);
                if *offset != settled && !known.open.contains(offset) {
                    let text = format!(
                        "group {group} was told {offset} for {partition}; committed was {settled}, \
                         then perhaps {:?}",
                        known.open
                    );
                    found.add(Verdict::OffsetBack, text);
                }
            }
            _ => {}
        }
    }
}

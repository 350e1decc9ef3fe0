//! The checker of acknowledged records: a pure function from a history to what is wrong with it.
//!
//! One file an invariant. What each promises is in its header; `Facts` gathers what several need.
//! An empty answer over a history without acknowledgements proves nothing: see [`Summary`].

mod duplicate;
mod gap;
mod lost;
mod misplaced;
mod offsets;
mod phantom;
mod reorder;
mod watermark;

use std::collections::BTreeMap;
use std::fmt;

use crate::history::{Event, History, Outcome, RecordId, Seen};

/// Which promise was broken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    Lost,
    Misplaced,
    Duplicate,
    Phantom,
    Reorder,
    Gap,
    Watermark,
    OffsetBack,
}

/// One broken promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    pub verdict: Verdict,
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.verdict, self.text)
    }
}

/// How much a history says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    pub invoked: usize,
    pub acknowledged: usize,
    pub polled: usize,
    pub commits: usize,
    pub kept: usize,
}

/// Every broken promise of a history.
pub fn check(history: &History) -> Vec<Violation> {
    let facts = Facts::new(history);
    let mut found = Found::default();
    lost::check(&facts, &mut found);
    misplaced::check(history, &facts, &mut found);
    duplicate::check(&facts, &mut found);
    phantom::check(history, &facts, &mut found);
    reorder::check(history, &facts, &mut found);
    gap::check(history, &facts, &mut found);
    watermark::check(history, &mut found);
    offsets::check(history, &mut found);
    found.0
}

/// What a history holds, counted.
pub fn summary(history: &History) -> Summary {
    let mut summary = Summary::default();
    for event in history.iter() {
        match event {
            Event::Invoke { .. } => summary.invoked += 1,
            Event::Answer { outcome: Outcome::Ok, .. } => summary.acknowledged += 1,
            Event::Poll { records, .. } => summary.polled += records.len(),
            Event::CommitAnswer { outcome: Outcome::Ok, .. } => summary.commits += 1,
            Event::Final { records, .. } => summary.kept += records.len(),
            _ => {}
        }
    }
    summary
}

#[derive(Default)]
struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, verdict: Verdict, text: String) {
        self.0.push(Violation { verdict, text });
    }
}

/// A record that was sent.
struct Sent {
    partition: i32,
    idempotent: bool,
    outcome: Outcome,
    /// Where it was acknowledged.
    offset: Option<i64>,
}

/// A partition at the end.
#[derive(Default)]
struct Kept {
    log_start: i64,
    high_watermark: i64,
    records: Vec<Seen>,
}

struct Facts {
    sent: BTreeMap<RecordId, Sent>,
    kept: BTreeMap<i32, Kept>,
    /// The highest offset below which somebody wanted records deleted.
    deleted: BTreeMap<i32, i64>,
}

impl Facts {
    fn new(history: &History) -> Facts {
        let mut facts =
            Facts { sent: BTreeMap::new(), kept: BTreeMap::new(), deleted: BTreeMap::new() };
        for event in history.iter() {
            facts.take(event);
        }
        facts
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Invoke { id, partition, idempotent } => {
                let (partition, idempotent) = (*partition, *idempotent);
                let outcome = Outcome::Unknown;
                self.sent.insert(*id, Sent { partition, idempotent, outcome, offset: None });
            }
            Event::Answer { id, outcome, offset } => {
                if let Some(sent) = self.sent.get_mut(id) {
                    sent.outcome = *outcome;
                    sent.offset = (*outcome == Outcome::Ok).then_some(*offset);
                }
            }
            Event::Delete { partition, offset } => {
                let deleted = self.deleted.entry(*partition).or_default();
                *deleted = (*deleted).max(*offset);
            }
            Event::Final { partition, log_start, high_watermark, records } => {
                let (log_start, high_watermark) = (*log_start, *high_watermark);
                let records = records.clone();
                self.kept.insert(*partition, Kept { log_start, high_watermark, records });
            }
            _ => {}
        }
    }

    /// Every record that was read at the end, with its partition.
    fn final_records(&self) -> impl Iterator<Item = (i32, &Seen)> {
        let kept = self.kept.iter();
        kept.flat_map(|(partition, kept)| kept.records.iter().map(move |seen| (*partition, seen)))
    }
}

#[cfg(test)]
mod tests;

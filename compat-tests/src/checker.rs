//! Whether the broker kept its word: what producers were told against what the log holds.
//!
//! The history is gathered by `load`; reading the log back is `load` too. Here is only judgement.

use std::collections::BTreeMap;
use std::fmt;

use crate::records::{Claim, Id};

/// How a send ended for the producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged, at this offset.
    Acked { offset: i64 },
    /// Every attempt ended in a definite refusal: it must not be in the log.
    Refused,
    /// Nobody knows: it may be in the log, once.
    Unknown,
}

/// One invoked record.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub partition: i32,
    pub outcome: Outcome,
}

/// One record found in the log at the end.
#[derive(Clone, Debug)]
pub struct Found {
    pub partition: i32,
    pub offset: i64,
    /// What its value claims, or why it is no record of ours.
    pub claim: Result<Claim, String>,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// Acknowledged and not in the log.
    Lost { id: Id, partition: i32, offset: i64 },
    /// In the log more than once.
    Duplicate { id: Id, partition: i32, offsets: Vec<i64> },
    /// Two records of one writer stand in the wrong order.
    Reorder { earlier: Id, later: Id, partition: i32 },
    /// Never sent, refused, damaged, or of another run.
    Phantom { partition: i32, offset: i64, why: String },
    /// In the log, but not where the acknowledgement said.
    Misplaced { id: Id, acked: (i32, i64), found: (i32, i64) },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Lost { id, partition, offset } => {
                write!(f, "LOST {id:?} acknowledged at {partition}/{offset}")
            }
            Violation::Duplicate { id, partition, offsets } => {
                write!(f, "DUPLICATE {id:?} in partition {partition} at {offsets:?}")
            }
            Violation::Reorder { earlier, later, partition } => {
                write!(f, "REORDER {later:?} before {earlier:?} in partition {partition}")
            }
            Violation::Phantom { partition, offset, why } => {
                write!(f, "PHANTOM at {partition}/{offset}: {why}")
            }
            Violation::Misplaced { id, acked, found } => {
                write!(f, "MISPLACED {id:?} acknowledged at {acked:?}, found at {found:?}")
            }
        }
    }
}

/// What was sent in a run.
#[derive(Debug, Default)]
pub struct History {
    pub run: u64,
    pub sent: BTreeMap<Id, Sent>,
    /// Per partition, the offset before which records were deleted on purpose.
    pub log_start: BTreeMap<i32, i64>,
}

impl History {
    /// Records acknowledged.
    pub fn acked(&self) -> usize {
        self.sent.values().filter(|sent| matches!(sent.outcome, Outcome::Acked { .. })).count()
    }

    /// Judges a whole read of the log, each partition in the order of its offsets.
    pub fn judge(&self, log: &[Found]) -> Vec<Violation> {
        let mut violations = Vec::new();
        let places = self.places(log, &mut violations);
        for (id, sent) in &self.sent {
            self.judge_one(*id, sent, places.get(id).map_or(&[], Vec::as_slice), &mut violations);
        }
        self.judge_order(log, &mut violations);
        violations
    }

    /// Where each record sent was found; what was never sent is a phantom.
    fn places(
        &self,
        log: &[Found],
        violations: &mut Vec<Violation>,
    ) -> BTreeMap<Id, Vec<(i32, i64)>> {
        let mut places: BTreeMap<Id, Vec<(i32, i64)>> = BTreeMap::new();
        for found in log {
            let why = match &found.claim {
                Err(why) => Some(why.clone()),
                Ok(claim) if claim.run != self.run => Some(format!("of run {}", claim.run)),
                Ok(claim) if claim.partition != found.partition => {
                    Some(format!("meant for partition {}", claim.partition))
                }
                Ok(claim) => match self.sent.get(&claim.id) {
                    None => Some(format!("{:?} was never sent", claim.id)),
                    Some(Sent { outcome: Outcome::Refused, .. }) => {
                        Some(format!("{:?} was refused", claim.id))
                    }
                    Some(_) => {
                        let place = (found.partition, found.offset);
                        places.entry(claim.id).or_default().push(place);
                        None
                    }
                },
            };
            if let Some(why) = why {
                let (partition, offset) = (found.partition, found.offset);
                violations.push(Violation::Phantom { partition, offset, why });
            }
        }
        places
    }

    fn judge_one(&self, id: Id, sent: &Sent, at: &[(i32, i64)], out: &mut Vec<Violation>) {
        let partition = sent.partition;
        if at.len() > 1 {
            let offsets = at.iter().map(|place| place.1).collect();
            out.push(Violation::Duplicate { id, partition, offsets });
        }
        let Outcome::Acked { offset } = sent.outcome else { return };
        let start = self.log_start.get(&partition).copied().unwrap_or(0);
        match at.first() {
            None if offset >= start => out.push(Violation::Lost { id, partition, offset }),
            None => {}
            Some(_) if at.contains(&(partition, offset)) => {}
            Some(found) => {
                out.push(Violation::Misplaced { id, acked: (partition, offset), found: *found });
            }
        }
    }

    fn judge_order(&self, log: &[Found], out: &mut Vec<Violation>) {
        let mut highest: BTreeMap<(i32, u32), (i64, Id)> = BTreeMap::new();
        for found in log {
            let Ok(claim) = &found.claim else { continue };
            let key = (found.partition, claim.id.writer);
            if let Some((offset, id)) = highest.get(&key) {
                let partition = found.partition;
                if *id > claim.id && *offset < found.offset {
                    out.push(Violation::Reorder { earlier: claim.id, later: *id, partition });
                    continue;
                }
            }
            highest.insert(key, (found.offset, claim.id));
        }
    }
}

#[cfg(test)]
mod tests;

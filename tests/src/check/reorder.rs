//! REORDER: records of an idempotent writer keep their order, and what was acknowledged before
//! another record was first sent is below it.

use std::collections::BTreeMap;

use super::{Facts, Found, Verdict};
use crate::history::{Event, History, Outcome};

pub fn check(history: &History, facts: &Facts, found: &mut Found) {
    let mut last = BTreeMap::new();
    for (partition, seen) in facts.final_records() {
        let Some(id) = seen.id else { continue };
        if !facts.sent.get(&id).is_some_and(|sent| sent.idempotent) {
            continue;
        }
        if let Some(before) = last.insert((partition, id.writer), id.seq)
            && before > id.seq
        {
            let text = format!("{partition}:{}: {id:?} came after number {before}", seen.offset);
            found.add(Verdict::Reorder, text);
        }
    }
    real_time(history, facts, found);
}

/// Acknowledged offsets only grow for whoever starts later.
fn real_time(history: &History, facts: &Facts, found: &mut Found) {
    let mut highest: BTreeMap<i32, i64> = BTreeMap::new();
    let mut floors = BTreeMap::new();
    for event in history.iter() {
        match event {
            Event::Invoke { id, partition, .. } => {
                floors.insert(*id, highest.get(partition).copied().unwrap_or(-1));
            }
            Event::Answer { id, outcome: Outcome::Ok, offset } => {
                let Some(sent) = facts.sent.get(id) else { continue };
                let floor = floors.get(id).copied().unwrap_or(-1);
                if *offset <= floor {
                    let text = format!("{id:?} got {offset} though {floor} was known before");
                    found.add(Verdict::Reorder, text);
                }
                let highest = highest.entry(sent.partition).or_insert(-1);
                *highest = (*highest).max(*offset);
            }
            _ => {}
        }
    }
}

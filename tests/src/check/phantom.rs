//! PHANTOM: nobody reads a record that was never sent, that was sent elsewhere, that is damaged, or
//! that its writer was told had failed.

use super::{Facts, Found, Verdict};
use crate::history::{Event, History, Outcome, Seen};

pub fn check(history: &History, facts: &Facts, found: &mut Found) {
    for event in history.iter() {
        let (partition, records) = match event {
            Event::Poll { partition, records, .. } => (*partition, records),
            Event::Final { partition, records, .. } => (*partition, records),
            _ => continue,
        };
        for seen in records {
            if let Some(why) = why(facts, partition, seen) {
                let text = format!("{partition}:{}: {:?} {why}", seen.offset, seen.id);
                found.add(Verdict::Phantom, text);
            }
        }
    }
}

fn why(facts: &Facts, partition: i32, seen: &Seen) -> Option<&'static str> {
    let Some(id) = seen.id else { return Some("is no record of this run") };
    let Some(sent) = facts.sent.get(&id) else { return Some("was never sent") };
    if sent.partition != partition || seen.partition != partition {
        return Some("was sent to another partition");
    }
    (sent.outcome == Outcome::Failed).then_some("had failed")
}

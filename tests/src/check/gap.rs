//! GAP: a reader gets every record from its position on, and none below it. Offsets without a
//! record in the final log (there are none without compaction and transactions) may be passed over.

use std::collections::BTreeMap;

use super::{Facts, Found, Verdict};
use crate::history::{Event, History};

pub fn check(history: &History, facts: &Facts, found: &mut Found) {
    let mut positions: BTreeMap<(u32, i32), i64> = BTreeMap::new();
    for event in history.iter() {
        match event {
            Event::Poll { reader, partition, position, records, .. } => {
                let mut at = *positions.entry((*reader, *partition)).or_insert(*position);
                for seen in records {
                    let offset = seen.offset;
                    if offset < at {
                        let text = format!("reader {reader} got {partition}:{offset} again");
                        found.add(Verdict::Gap, text);
                    } else if let Some(missed) = missed(facts, *partition, at, offset) {
                        let place = format!("{partition}:{offset}, and never {partition}:{missed}");
                        found.add(Verdict::Gap, format!("reader {reader} got {place}"));
                    }
                    at = offset + 1;
                }
                positions.insert((*reader, *partition), at);
            }
            Event::Seek { reader, partition, position } => {
                positions.insert((*reader, *partition), *position);
            }
            _ => {}
        }
    }
}

/// The first record of the final log in `from..to`.
fn missed(facts: &Facts, partition: i32, from: i64, to: i64) -> Option<i64> {
    let kept = facts.kept.get(&partition)?;
    kept.records.iter().map(|seen| seen.offset).find(|offset| (from..to).contains(offset))
}

//! MISPLACED: a record is where its acknowledgement said, and an offset never holds two records,
//! over all acknowledgements and reads of the run.

use std::collections::BTreeMap;

use super::{Facts, Found, Verdict};
use crate::history::{Event, History, RecordId};

pub fn check(history: &History, facts: &Facts, found: &mut Found) {
    let mut holds: BTreeMap<(i32, i64), RecordId> = BTreeMap::new();
    let acknowledged = facts.sent.iter();
    for (id, sent) in acknowledged {
        if let Some(offset) = sent.offset {
            hold(&mut holds, (sent.partition, offset), *id, found);
            check_place(facts, *id, (sent.partition, offset), found);
        }
    }
    for event in history.iter() {
        let (partition, records) = match event {
            Event::Poll { partition, records, .. } => (*partition, records),
            Event::Final { partition, records, .. } => (*partition, records),
            _ => continue,
        };
        for seen in records {
            if let Some(id) = seen.id {
                hold(&mut holds, (partition, seen.offset), id, found);
            }
        }
    }
}

/// A record that is there is where its acknowledgement said; one that is not is `lost.rs`'s.
fn check_place(facts: &Facts, id: RecordId, (partition, offset): (i32, i64), found: &mut Found) {
    let Some(kept) = facts.kept.get(&partition).filter(|kept| offset >= kept.log_start) else {
        return;
    };
    let places = || kept.records.iter().filter(|seen| seen.id == Some(id)).map(|seen| seen.offset);
    if places().next().is_some() && places().all(|place| place != offset) {
        let places: Vec<i64> = places().collect();
        let text = format!("{id:?} was acknowledged at {partition}:{offset} and is at {places:?}");
        found.add(Verdict::Misplaced, text);
    }
}

fn hold(
    holds: &mut BTreeMap<(i32, i64), RecordId>,
    place: (i32, i64),
    id: RecordId,
    found: &mut Found,
) {
    let first = *holds.entry(place).or_insert(id);
    if first != id {
        let (partition, offset) = place;
        let text = format!("{partition}:{offset} held {first:?} and later {id:?}");
        found.add(Verdict::Misplaced, text);
    }
}

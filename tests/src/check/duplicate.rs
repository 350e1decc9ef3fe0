//! DUPLICATE: a record of an idempotent writer is in the log once, however often it was sent.

use std::collections::BTreeMap;

use super::{Facts, Found, Verdict};

pub fn check(facts: &Facts, found: &mut Found) {
    let mut places = BTreeMap::new();
    for (partition, seen) in facts.final_records() {
        let Some(id) = seen.id else { continue };
        if !facts.sent.get(&id).is_some_and(|sent| sent.idempotent) {
            continue;
        }
        if let Some((at, first)) = places.insert(id, (partition, seen.offset)) {
            let offset = seen.offset;
            let text = format!("{id:?} is at {at}:{first} and at {partition}:{offset}");
            found.add(Verdict::Duplicate, text);
        }
    }
}

//! LOST: a record that was acknowledged is there at the end, unless somebody had it deleted. The
//! log starts no higher than somebody wanted.

use super::{Facts, Found, Verdict};

pub fn check(facts: &Facts, found: &mut Found) {
    for (partition, kept) in &facts.kept {
        let deleted = facts.deleted.get(partition).copied().unwrap_or(0);
        if kept.log_start > deleted {
            let start = kept.log_start;
            let text =
                format!("partition {partition} starts at {start}; deleted was up to {deleted}");
            found.add(Verdict::Lost, text);
        }
    }
    for (id, sent) in &facts.sent {
        let (Some(offset), Some(kept)) = (sent.offset, facts.kept.get(&sent.partition)) else {
            continue;
        };
        if offset >= kept.log_start && !kept.records.iter().any(|seen| seen.id == Some(*id)) {
            let (partition, end) = (sent.partition, kept.high_watermark);
            let text = format!("{id:?} was acknowledged at {partition}:{offset} (end {end})");
            found.add(Verdict::Lost, text);
        }
    }
}

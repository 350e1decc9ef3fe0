//! WATERMARK: the start and the end of a partition that a reader is told never go down, the final
//! ones are below none of them, and every record that was read is below the end.
//!
//! A crash may undo a deletion, as in Kafka, which writes log starts down at an interval: there the
//! start may fall, never the end.

use std::collections::BTreeMap;

use super::{Found, Verdict};
use crate::history::{Event, History, Seen};

/// The highest start and end that somebody was told.
#[derive(Clone, Copy, Default)]
struct Marks {
    start: i64,
    end: i64,
}

pub fn check(history: &History, found: &mut Found) {
    // Answers to two readers may overtake each other, so each has marks of its own.
    let mut by_reader: BTreeMap<(i32, u32), Marks> = BTreeMap::new();
    for event in history.iter() {
        match event {
            Event::Poll { reader, partition, log_start, high_watermark, records, .. } => {
                let told = Marks { start: *log_start, end: *high_watermark };
                let marks = by_reader.entry((*partition, *reader)).or_default();
                compare(*partition, marks, told, records, found);
            }
            Event::Final { partition, log_start, high_watermark, records } => {
                let told = Marks { start: *log_start, end: *high_watermark };
                let all = by_reader.range_mut((*partition, 0)..=(*partition, u32::MAX));
                for (_, marks) in all {
                    compare(*partition, marks, told, records, found);
                }
            }
            Event::Crash => by_reader.values_mut().for_each(|marks| marks.start = 0),
            _ => {}
        }
    }
}

fn compare(partition: i32, marks: &mut Marks, told: Marks, records: &[Seen], found: &mut Found) {
    if told.start < marks.start || told.end < marks.end {
        let (before, now) = (marks.start..marks.end, told.start..told.end);
        let text = format!("partition {partition} was {before:?} and then {now:?}");
        found.add(Verdict::Watermark, text);
    }
    let last = records.iter().map(|seen| seen.offset).max();
    if let Some(last) = last.filter(|last| *last >= told.end) {
        let text = format!("{partition}:{last} was read with the end at {}", told.end);
        found.add(Verdict::Watermark, text);
    }
    *marks = Marks { start: marks.start.max(told.start), end: marks.end.max(told.end) };
}

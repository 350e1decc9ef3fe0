//! The checker flags histories that were made bad by hand, and only those.

use super::{Verdict, check};
use crate::history::{Event, History, Outcome, RecordId, Seen};

/// Partition 0, writer 1 (idempotent) and writer 2 (not), reader and group 1.
fn sent(writer: u32, seq: u32) -> Event {
    Event::Invoke { id: RecordId { writer, seq }, partition: 0, idempotent: writer == 1 }
}

fn ok(writer: u32, seq: u32, offset: i64) -> Event {
    Event::Answer { id: RecordId { writer, seq }, outcome: Outcome::Ok, offset }
}

fn failed(writer: u32, seq: u32) -> Event {
    Event::Answer { id: RecordId { writer, seq }, outcome: Outcome::Failed, offset: -1 }
}

/// `(offset, writer, seq)` each.
fn seen(records: &[(i64, u32, u32)]) -> Vec<Seen> {
    let seen = records.iter().map(|(offset, writer, seq)| Seen {
        offset: *offset,
        id: Some(RecordId { writer: *writer, seq: *seq }),
        partition: 0,
    });
    seen.collect()
}

fn poll(position: i64, records: &[(i64, u32, u32)], high_watermark: i64) -> Event {
    let records = seen(records);
    Event::Poll { reader: 1, partition: 0, position, records, high_watermark, log_start: 0 }
}

fn started_at(log_start: i64) -> Event {
    let (position, records, high_watermark) = (log_start, Vec::new(), 3);
    Event::Poll { reader: 1, partition: 0, position, records, high_watermark, log_start }
}

fn end(log_start: i64, high_watermark: i64, records: &[(i64, u32, u32)]) -> Event {
    Event::Final { partition: 0, log_start, high_watermark, records: seen(records) }
}

fn commit(offset: i64, outcome: Outcome) -> [Event; 2] {
    let (group, partition) = (1, 0);
    [
        Event::CommitInvoke { group, partition, offset },
        Event::CommitAnswer { group, partition, offset, outcome },
    ]
}

fn told(offset: i64) -> Event {
    Event::Committed { group: 1, partition: 0, offset }
}

#[track_caller]
fn verdicts(events: Vec<Event>, want: &[Verdict]) {
    let mut history = History::default();
    events.into_iter().for_each(|event| history.push(0, event));
    let found = check(&history);
    let mut verdicts: Vec<Verdict> = found.iter().map(|violation| violation.verdict).collect();
    verdicts.dedup();
    assert_eq!(verdicts, want, "{found:#?}");
}

#[test]
fn a_good_history_passes() {
    let (unknown, failed_too) = (Outcome::Unknown, Outcome::Failed);
    let mut events = vec![sent(1, 0), ok(1, 0, 0), sent(2, 0), sent(1, 1), ok(1, 1, 3)];
    events.extend([sent(2, 1), failed(2, 1)]);
    // Writer 2 had no answer and sent again: twice there is allowed.
    events.push(poll(0, &[(0, 1, 0), (1, 2, 0)], 4));
    events.push(poll(2, &[(2, 2, 0), (3, 1, 1)], 4));
    events.push(told(-1));
    events.extend(commit(2, Outcome::Ok));
    events.push(told(2));
    events.extend(commit(4, unknown));
    events.extend(commit(9, failed_too));
    events.extend([told(4), told(4)]);
    events.push(end(0, 4, &[(0, 1, 0), (1, 2, 0), (2, 2, 0), (3, 1, 1)]));
    verdicts(events, &[]);
    verdicts(
        vec![
            sent(1, 0),
            ok(1, 0, 0),
            sent(1, 1),
            ok(1, 1, 1),
            Event::Delete { partition: 0, offset: 1 },
            end(1, 2, &[(1, 1, 1)]),
        ],
        &[],
    );
}

#[test]
fn lost_records_are_found() {
    let base = || vec![sent(1, 0), ok(1, 0, 0), sent(1, 1), ok(1, 1, 1)];
    let with = |last| [base(), vec![last]].concat();
    verdicts(with(end(0, 1, &[(0, 1, 0)])), &[Verdict::Lost]);
    verdicts(with(end(0, 2, &[(1, 1, 1)])), &[Verdict::Lost]);
    // Nobody had asked for the deletion.
    verdicts(with(end(1, 2, &[(1, 1, 1)])), &[Verdict::Lost]);
}

#[test]
fn misplaced_records_are_found() {
    let moved = vec![sent(1, 0), ok(1, 0, 0), end(0, 2, &[(1, 1, 0)])];
    verdicts(moved, &[Verdict::Misplaced]);
    let two = vec![sent(2, 0), sent(2, 1), poll(0, &[(0, 2, 0)], 1), end(0, 1, &[(0, 2, 1)])];
    verdicts(two, &[Verdict::Misplaced]);
    let both = vec![sent(2, 0), sent(2, 1), ok(2, 0, 0), ok(2, 1, 0)];
    verdicts(both, &[Verdict::Misplaced]);
}

#[test]
fn duplicates_of_idempotent_writers_are_found() {
    let twice = vec![sent(1, 0), ok(1, 0, 0), end(0, 2, &[(0, 1, 0), (1, 1, 0)])];
    verdicts(twice, &[Verdict::Duplicate]);
    let unknown = vec![sent(1, 0), end(0, 2, &[(0, 1, 0), (1, 1, 0)])];
    verdicts(unknown, &[Verdict::Duplicate]);
}

#[test]
fn phantoms_are_found() {
    verdicts(vec![end(0, 1, &[(0, 1, 0)])], &[Verdict::Phantom]);
    verdicts(vec![sent(1, 0), failed(1, 0), poll(0, &[(0, 1, 0)], 1)], &[Verdict::Phantom]);
    let strange = Seen { offset: 0, id: None, partition: 0 };
    let records = vec![strange];
    let end = Event::Final { partition: 0, log_start: 0, high_watermark: 1, records };
    verdicts(vec![end], &[Verdict::Phantom]);
    let mut records = seen(&[(0, 1, 0)]);
    records[0].partition = 1;
    let end = Event::Final { partition: 0, log_start: 0, high_watermark: 1, records };
    verdicts(vec![sent(1, 0), end], &[Verdict::Phantom]);
}

#[test]
fn reorderings_are_found() {
    let swapped = vec![sent(1, 0), sent(1, 1), end(0, 2, &[(0, 1, 1), (1, 1, 0)])];
    verdicts(swapped, &[Verdict::Reorder]);
    let before = vec![sent(2, 0), ok(2, 0, 5), sent(2, 1), ok(2, 1, 4)];
    verdicts(before, &[Verdict::Reorder]);
}

#[test]
fn gaps_and_repetitions_are_found() {
    let three = || vec![sent(2, 0), sent(2, 1), sent(2, 2)];
    let all = end(0, 3, &[(0, 2, 0), (1, 2, 1), (2, 2, 2)]);
    let gap = vec![poll(0, &[(0, 2, 0), (2, 2, 2)], 3), all.clone()];
    verdicts([three(), gap].concat(), &[Verdict::Gap]);
    let between = vec![poll(0, &[(0, 2, 0)], 3), poll(1, &[(2, 2, 2)], 3), all.clone()];
    verdicts([three(), between].concat(), &[Verdict::Gap]);
    let again = vec![poll(0, &[(0, 2, 0)], 3), poll(1, &[(0, 2, 0)], 3), all];
    verdicts([three(), again].concat(), &[Verdict::Gap]);
}

#[test]
fn marks_that_fall_are_found() {
    verdicts(vec![poll(0, &[], 3), poll(0, &[], 2)], &[Verdict::Watermark]);
    verdicts(vec![poll(0, &[], 3), end(0, 2, &[])], &[Verdict::Watermark]);
    verdicts(vec![sent(2, 0), poll(0, &[(0, 2, 0)], 0)], &[Verdict::Watermark]);
    let delete = Event::Delete { partition: 0, offset: 2 };
    let fallen = |between: Vec<Event>| {
        let mut events = vec![delete.clone(), started_at(2)];
        events.extend(between);
        [events, vec![end(0, 3, &[])]].concat()
    };
    verdicts(fallen(vec![]), &[Verdict::Watermark]);
    verdicts(fallen(vec![Event::Crash]), &[]);
}

#[test]
fn committed_offsets_that_go_back_are_found() {
    let with = |rest: Vec<Event>| [commit(5, Outcome::Ok).to_vec(), rest].concat();
    verdicts(with(vec![told(-1)]), &[Verdict::OffsetBack]);
    verdicts(with(vec![told(4)]), &[Verdict::OffsetBack]);
    let failed = [commit(7, Outcome::Failed).to_vec(), vec![told(7)]].concat();
    verdicts(with(failed), &[Verdict::OffsetBack]);
    let settled = [commit(7, Outcome::Ok).to_vec(), vec![told(5)]].concat();
    verdicts(with(settled), &[Verdict::OffsetBack]);
}

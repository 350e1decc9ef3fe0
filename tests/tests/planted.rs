//! The checker earns its keep: bugs that are planted into the world or the history are caught.

use storage::disk::sim::{Fault, FaultKind as DiskFault, FaultOp};
use tests::check::{Verdict, check};
use tests::history::{Event, Outcome};
use tests::plan::{FaultKind, Plan};
use tests::world::{Report, run};

/// A run in which the power fails, and fails once more before the end is read.
fn power_cuts(seed: u64) -> Plan {
    Plan {
        faults: vec![FaultKind::PowerCut],
        fault_count: 4,
        power_cut_at_end: true,
        deletions: Vec::new(),
        ..Plan::of(seed)
    }
}

fn has(report: &Report, verdict: Verdict) -> bool {
    report.violations.iter().any(|violation| violation.verdict == verdict)
}

/// A good run, its history changed by `spoil`, must be found bad in this way.
#[track_caller]
fn check_spoiled(verdict: Verdict, spoil: impl FnOnce(&mut Vec<Event>)) {
    let report = run(power_cuts(1), |_| ());
    assert!(report.is_good(), "{}", report.describe());
    let mut events: Vec<Event> = report.history.iter().cloned().collect();
    spoil(&mut events);
    let mut history = tests::history::History::default();
    events.into_iter().for_each(|event| history.push(0, event));
    let found = check(&history);
    assert!(found.iter().any(|violation| violation.verdict == verdict), "{verdict:?}: {found:?}");
}

/// Acknowledged before it is on the disk: syncs answer OK and do nothing.
#[test]
fn a_lying_disk_is_caught() {
    let caught = (1..=5).any(|seed| {
        let report = run(power_cuts(seed), |node| {
            for path in [".log", "journal"] {
                let lie = Fault::io(FaultOp::Sync, path).kind(DiskFault::Lie);
                node.plant(lie);
            }
        });
        has(&report, Verdict::Lost) || has(&report, Verdict::Misplaced)
    });
    assert!(caught, "five runs on a lying disk kept every record");
}

/// A log that was cut below its watermark.
#[test]
fn a_truncated_log_is_caught() {
    check_spoiled(Verdict::Lost, |events| {
        let last = events.iter_mut().rev().find_map(|event| match event {
            Event::Final { records, high_watermark, .. } if records.len() > 3 => {
                Some((records, high_watermark))
            }
            _ => None,
        });
        let (records, high_watermark) = last.expect("a partition with records");
        records.truncate(records.len() - 2);
        *high_watermark -= 2;
    });
}

/// A retry that was appended again.
#[test]
fn an_appended_retry_is_caught() {
    check_spoiled(Verdict::Duplicate, |events| {
        let idempotent: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Invoke { id, idempotent: true, .. } => Some(*id),
                _ => None,
            })
            .collect();
        for event in events {
            if let Event::Final { records, high_watermark, .. } = event {
                let ours =
                    |at: &&tests::history::Seen| at.id.is_some_and(|id| idempotent.contains(&id));
                if let Some(mut again) = records.iter().find(ours).copied() {
                    again.offset = *high_watermark;
                    *high_watermark += 1;
                    records.push(again);
                    return;
                }
            }
        }
        panic!("no idempotent writer in this seed");
    });
}

/// A committed offset that a restart forgot.
#[test]
fn a_forgotten_commit_is_caught() {
    check_spoiled(Verdict::OffsetBack, |events| {
        let (group, partition, offset, outcome) = (99, 0, 7, Outcome::Ok);
        events.push(Event::CommitInvoke { group, partition, offset });
        events.push(Event::CommitAnswer { group, partition, offset, outcome });
        events.push(Event::Committed { group, partition, offset: -1 });
    });
}

/// A reader that is sent past records it has not seen.
#[test]
fn a_skipped_batch_is_caught() {
    check_spoiled(Verdict::Gap, |events| {
        let poll = events.iter_mut().find_map(|event| match event {
            Event::Poll { records, .. } if records.len() > 2 => Some(records),
            _ => None,
        });
        poll.expect("a poll of several records").remove(1);
    });
}

/// Two writers' records that were swapped on the way to the disk.
#[test]
fn swapped_records_are_caught() {
    check_spoiled(Verdict::Misplaced, |events| {
        let records = events.iter_mut().find_map(|event| match event {
            Event::Final { records, .. } if records.len() > 2 => Some(records),
            _ => None,
        });
        let records = records.expect("a partition with records");
        let (first, second) = (records[0].id, records[1].id);
        (records[0].id, records[1].id) = (second, first);
    });
}

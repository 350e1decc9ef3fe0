//! The checker earns its keep: bugs that are planted into the world, or into the history of a good
//! run, are caught.

use std::path::Path;

use storage::disk::sim::{Fault, FaultKind as DiskFault, FaultOp};
use storage::disk::{Disk, OpenMode, SimDisk};
use storage::flush::JOURNAL_FILE;
use tests::check::{Verdict, check};
use tests::history::{Event, Outcome};
use tests::node::{DATA_DIR, SimNode};
use tests::plan::{FaultKind, Plan};
use tests::workload::MemberPlan;
use tests::world::{Report, run};

/// One of so many runs must catch a planted bug.
const SEEDS: u64 = 6;

/// A run with faults of one kind; the power fails once more before the end is read.
fn plan(seed: u64, kind: FaultKind) -> Plan {
    Plan {
        faults: vec![kind],
        fault_count: 5,
        power_cut_at_end: kind == FaultKind::PowerCut,
        deletions: Vec::new(),
        ..Plan::of(seed)
    }
}

/// Some run whose plan was changed by `alter` and whose node by `plant` must be found bad in this
/// way; without the bug all of them are good.
#[track_caller]
fn check_planted(
    verdict: Verdict,
    kind: FaultKind,
    alter: impl Fn(&mut Plan),
    plant: impl Fn(&mut SimNode),
) {
    let mut caught = false;
    for seed in 1..=SEEDS {
        let sound = run(plan(seed, kind), |_| ());
        assert!(sound.is_good(), "{}", sound.describe());
        let mut spoiled = plan(seed, kind);
        alter(&mut spoiled);
        let report = run(spoiled, |node| plant(node));
        caught |= report.violations.iter().any(|violation| violation.verdict == verdict);
        if caught {
            break;
        }
    }
    assert!(caught, "no run of {SEEDS} showed {verdict:?}");
}

/// Every sync of a file whose path holds one of these answers OK and does nothing.
fn lie(node: &mut SimNode, paths: &[&str]) {
    for path in paths {
        node.plant(Fault::io(FaultOp::Sync, path).kind(DiskFault::Lie));
    }
}

/// Cuts a byte off every log, and takes the journal away that would put it back.
fn cut_logs(disk: &SimDisk) {
    let Ok(entries) = disk.list(Path::new(DATA_DIR)) else { return };
    let _ = disk.remove_file(&Path::new(DATA_DIR).join(JOURNAL_FILE));
    for dir in entries.iter().filter(|entry| entry.is_dir && entry.name.starts_with("events-")) {
        let dir = Path::new(DATA_DIR).join(&dir.name);
        let names = disk.list(&dir).expect("a directory");
        let Some(last) = names.iter().rfind(|entry| entry.name.ends_with(".log")) else { continue };
        let file = disk.open(&dir.join(&last.name), OpenMode::Write).expect("a log");
        let len = file.len().expect("a length");
        file.set_len(len.saturating_sub(1)).expect("a cut");
    }
}

/// Acknowledged before it is on the disk, because the disk lies.
#[test]
fn a_lying_disk_is_caught() {
    check_planted(
        Verdict::Lost,
        FaultKind::PowerCut,
        |_| (),
        |node| lie(node, &[".log", "journal"]),
    );
}

/// Acknowledged before it is on the disk, because the broker does not wait.
#[test]
fn an_early_acknowledgement_is_caught() {
    let relaxed = |node: &mut SimNode| node.set("log.flush.interval.messages", "1000000");
    check_planted(Verdict::Lost, FaultKind::PowerCut, |_| (), relaxed);
}

/// A recovery that cuts a batch too many.
#[test]
fn a_log_cut_short_is_caught() {
    let cut = |node: &mut SimNode| node.plant_before_start(cut_logs);
    check_planted(Verdict::Lost, FaultKind::Kill, |_| (), cut);
}

/// A broker that does not look at producers' sequence numbers appends a retry again.
#[test]
fn an_appended_retry_is_caught() {
    let unnumbered = |plan: &mut Plan| plan.writers.iter_mut().for_each(|at| at.numbered = false);
    check_planted(Verdict::Duplicate, FaultKind::Cut, unnumbered, |_| ());
}

/// Committed offsets that are acknowledged before they are on the disk.
#[test]
fn a_forgotten_commit_is_caught() {
    let forget = |node: &mut SimNode| lie(node, &["__consumer_offsets", "journal"]);
    let commit = |plan: &mut Plan| {
        plan.members = vec![MemberPlan { group: 1, partition: 0, commits: 60 }];
        plan.fault_count = 10;
    };
    check_planted(Verdict::OffsetBack, FaultKind::PowerCut, commit, forget);
}

/// A good run, its history changed by `spoil`, must be found bad in this way.
#[track_caller]
fn check_spoiled(verdict: Verdict, spoil: impl FnOnce(&mut Vec<Event>)) {
    let report: Report = run(plan(1, FaultKind::PowerCut), |_| ());
    assert!(report.is_good(), "{}", report.describe());
    let mut events: Vec<Event> = report.history.iter().cloned().collect();
    spoil(&mut events);
    let mut history = tests::history::History::default();
    events.into_iter().for_each(|event| history.push(0, event));
    let found = check(&history);
    assert!(found.iter().any(|violation| violation.verdict == verdict), "{verdict:?}: {found:?}");
}

/// A reader that is sent past records it has not seen.
#[test]
fn a_skipped_batch_is_caught() {
    check_spoiled(Verdict::Gap, |events| {
        let poll = events.iter_mut().find_map(|event| match event {
            Event::Poll { records, .. } if records.len() > 1 => Some(records),
            _ => None,
        });
        poll.expect("a poll of several records").remove(0);
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

/// A record that its writer was told had failed, and that is there all the same.
#[test]
fn a_failure_that_was_none_is_caught() {
    check_spoiled(Verdict::Phantom, |events| {
        let outcome = events.iter_mut().find_map(|event| match event {
            Event::Answer { outcome, .. } if *outcome == Outcome::Ok => Some(outcome),
            _ => None,
        });
        *outcome.expect("an acknowledgement") = Outcome::Failed;
    });
}

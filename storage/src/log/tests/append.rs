//! Appending: offsets, duplicates, refusals, rolls, and writes that fail.

use super::*;
use crate::disk::sim::{Fault, FaultKind, FaultOp};

#[test]
fn offsets_follow_each_other() {
    let mut rig = Rig::new(small());
    assert_eq!(rig.append(timed(&[1, 2, 3], Codec::None)), 0);
    assert_eq!(rig.append(timed(&[1], Codec::Zstd)), 3);
    let mut batch = timed(&[5, 6], Codec::None);
    let appended = rig.log.append(&mut batch, 9, NOW, Origin::Client).expect("an append");
    let want = Appended { base_offset: 4, last_offset: 5, log_start_offset: 0, duplicate: None };
    assert_eq!(appended, want);
    let header = BatchHeader::parse(&batch).expect("a header");
    assert_eq!((header.base_offset, header.partition_leader_epoch), (4, 9));
    assert_eq!(read_all(&rig.log.view(), 4)[0].1, batch, "what is stored is what is in the buffer");
    assert_eq!(rig.log.log_end_offset(), 6);
    assert_eq!(rig.log.leader_epochs().encode(), "0\n2\n0 0\n9 4\n");
}

#[test]
fn refusals_leave_the_log_alone() {
    let mut rig = Rig::new(small());
    rig.fill(3);
    let before = rig.read_from(0);
    let mut check = |batch: Vec<u8>, want: &str| {
        let error = rig.try_append(batch, Origin::Client).expect_err("a refusal");
        assert_eq!(error.to_string(), want);
        assert_eq!(rig.read_from(0), before);
    };
    check(vec![], "not a record batch: needs 61 bytes, has 0");
    check(sized(1001, 1), "a batch of 1001 bytes does not fit a segment of 1000");
    check([sized(100, 1), vec![0]].concat(), "not a record batch: 101 bytes for a batch of 100");
    check(
        in_txn(1, 0, 0, 1, true),
        "producer 1: no transaction is open here and none was verified",
    );
}

#[test]
fn duplicates_answer_as_the_first_time() {
    let mut rig = Rig::new(small());
    rig.fill(1);
    for sequence in 0..5 {
        assert_eq!(rig.append(of_producer(7, 0, sequence * 2, 2)), 1 + i64::from(sequence) * 2);
    }
    for sequence in 0..5 {
        let again = rig.try_append(of_producer(7, 0, sequence * 2, 2), Origin::Client);
        let again = again.expect("a duplicate");
        assert_eq!(again.base_offset, 1 + i64::from(sequence) * 2);
        assert_eq!(again.last_offset, again.base_offset + 1);
        assert_eq!(again.duplicate, Some(NOW));
    }
    assert_eq!(rig.log.log_end_offset(), 11);
    // A sixth pushes the first one out of the window, also over restarts, clean or not.
    rig.append(of_producer(7, 0, 10, 2));
    for restart in [
        |_: &mut Rig| {},
        Rig::restart,
        |rig: &mut Rig| {
            rig.checkpoint();
            rig.kill();
            rig.open().expect("a log");
        },
    ] {
        restart(&mut rig);
        let old = rig.try_append(of_producer(7, 0, 0, 2), Origin::Client).expect_err("too old");
        assert!(matches!(old, AppendError::OutOfOrderSequence { last: 11, got: 0, .. }), "{old}");
        let again = rig.try_append(of_producer(7, 0, 2, 2), Origin::Client).expect("a duplicate");
        assert_eq!(again.base_offset, 3);
    }
}

#[test]
fn rolls_when_full() {
    let mut rig = Rig::new(small());
    rig.fill(10);
    assert_eq!(rig.bases(), [0]);
    rig.fill(11);
    assert_eq!(rig.bases(), [0, 10, 20]);
    rig.flush();
    let names = rig.names();
    let want = [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000010.index",
        "00000000000000000010.log",
        "00000000000000000010.snapshot",
        "00000000000000000010.timeindex",
        "00000000000000000020.log",
        "00000000000000000020.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ];
    assert_eq!(names, want);
    assert_eq!(rig.read_from(0).len(), 21);
}

#[test]
fn rolls_by_time_of_records() {
    let mut rig = Rig::new(LogConfig { segment_ms: 1000, ..small() });
    rig.append(sized(100, NOW));
    rig.append(sized(100, NOW + 1000));
    assert_eq!(rig.bases(), [0]);
    rig.append(sized(100, NOW + 1001));
    assert_eq!(rig.bases(), [0, 2]);
    // Records without a time: the clock decides, from when the segment was made.
    rig.append(sized(100, -1));
    rig.log.roll(4, NOW).expect("a roll");
    rig.append(sized(100, -1));
    rig.now_ms += 1000;
    rig.append(sized(100, -1));
    assert_eq!(rig.bases(), [0, 2, 4]);
    rig.now_ms += 1;
    rig.append(sized(100, -1));
    assert_eq!(rig.bases(), [0, 2, 4, 6]);
    // The first batch is read again after a restart.
    rig.append(sized(100, NOW));
    rig.restart();
    rig.now_ms += 1001;
    rig.append(sized(100, -1));
    assert_eq!(rig.bases(), [0, 2, 4, 6, 8]);
}

#[test]
fn replica_batches_keep_offsets_and_epochs() {
    let mut leader = Rig::new(LogConfig { segment_bytes: 1 << 20, ..small() });
    for epoch in [1, 1, 4, 4, 4, 9] {
        let mut batch = sized(100, NOW);
        leader.log.append(&mut batch, epoch, NOW, Origin::Client).expect("an append");
    }
    leader.fill(40);
    let mut wire = leader.bytes("00000000000000000000.log");
    wire.extend_from_slice(&sized(100, 0)[..70]);
    let mut follower = Rig::new(small());
    let appended = follower.log.append_replica(&wire, NOW).expect("an append");
    let want = Appended { base_offset: 0, last_offset: 45, log_start_offset: 0, duplicate: None };
    assert_eq!(appended, Some(want));
    assert_eq!(follower.read_from(0), leader.read_from(0));
    assert_eq!(follower.bases(), [0, 10, 20, 30, 40]);
    assert_eq!(follower.log.leader_epochs(), leader.log.leader_epochs());
    assert_eq!(follower.log.append_replica(&[0; 10], NOW).expect("nothing"), None);
    let behind = follower.log.append_replica(&wire, NOW).expect_err("old offsets");
    assert!(matches!(behind, AppendError::OffsetsBehind { got: 0, log_end_offset: 46 }));
    let end = wire.len() - 1;
    wire.truncate(end - 69);
    wire[end - 70] ^= 1;
    let mut other = Rig::new(small());
    let damaged = other.log.append_replica(&wire, NOW).expect_err("a bad checksum");
    assert!(matches!(damaged, AppendError::Malformed(_)), "{damaged}");
    assert_eq!(other.log.log_end_offset(), 0);
}

#[test]
fn offsets_too_far_apart_roll() {
    let at = |offset: i64| {
        let mut batch = sized(100, NOW);
        protocol_compat::batch::assign(&mut batch, offset, 0);
        batch
    };
    let far = i64::from(i32::MAX);
    let mut rig = Rig::new(small());
    for offset in [5, 5 + far, 2 * far + 2, 4 * far, 4 * far + 1] {
        rig.log.append_replica(&at(offset), NOW).expect("an append");
    }
    // The first segment spans 0 to far; a batch begins its own segment only if it must.
    assert_eq!(rig.bases(), [0, 6, 5 + far + 1, 4 * far]);
    let read: Vec<i64> = rig.read_from(0).iter().map(|(base, _)| *base).collect();
    assert_eq!(read, [5, 5 + far, 2 * far + 2, 4 * far, 4 * far + 1]);
    rig.checkpoint();
    for offset in [0, 6, far, far + 6, 4 * far] {
        let slice = rig.log.view().read(offset, 1, i64::MAX, true).expect("a read");
        assert_eq!(slice.map(|slice| slice.base_offset >= offset), Some(true));
    }
    rig.kill();
    rig.start.recovery_point = 0;
    rig.open().expect("a log");
    assert_eq!(rig.report.cut, None, "a gap that no segment can hold is no lost tail");
    let found = rig.log.view().offset_for_timestamp(NOW, i64::MAX).expect("a look-up");
    assert_eq!(found.map(|found| found.offset), Some(5));
}

/// How a process ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Stop,
    Kill,
    PowerCut,
}

/// A disk that fails at the N-th call of a kind and `count - 1` more: the log goes on as if nothing
/// had been. Large and small batches take turns, so that after a failed one the next may go into
/// the segment where it was to go or not.
#[track_caller]
fn check_failing(config: LogConfig, fault: Fault, end: End) {
    let mut rig = Rig::new(config);
    rig.fill(2);
    let what = format!("{fault:?} {end:?}");
    let is_full = fault.kind == FaultKind::Full;
    rig.disk.inject(fault);
    let mut kept = rig.read_from(0).len();
    for size in [150, 80, 260].repeat(5) {
        match rig.try_append(sized(size, NOW), Origin::Client) {
            Ok(_) => kept += 1,
            Err(AppendError::Storage(StorageError::Full { .. })) => assert!(is_full),
            Err(AppendError::Storage(StorageError::Io { .. })) => assert!(!is_full),
            Err(other) => panic!("{other}"),
        }
        rig.flush();
    }
    rig.disk.clear_faults();
    assert_eq!((rig.log.log_end_offset(), rig.read_from(0).len()), (kept as i64, kept), "{what}");
    match end {
        End::Stop => rig.restart(),
        End::Kill => rig.kill(),
        End::PowerCut => rig.crash(),
    }
    rig.open().expect("a log");
    assert_eq!(rig.read_from(0).len(), kept, "{what}");
    // What the last append left behind may be cut.
    let cut = rig.report.cut.as_ref().map_or(kept as i64, |cut| cut.offset);
    assert!(cut == kept as i64 && (end != End::Stop || rig.report.cut.is_none()), "{what}");
}

#[test]
fn failed_calls_leave_nothing_behind() {
    let ops = [FaultOp::Write, FaultOp::Create, FaultOp::Open, FaultOp::Rename];
    let kinds = [FaultKind::Full, FaultKind::Io];
    for (op, kind) in ops.into_iter().flat_map(|op| kinds.map(|kind| (op, kind))) {
        let ends = [End::Stop, End::Kill, End::PowerCut];
        for (nth, end) in (0..24).flat_map(|nth| ends.map(|end| (nth, end))) {
            let fault = Fault::io(op, "").nth(nth).kind(kind);
            check_failing(small(), fault.clone(), end);
            // What cleans up after a failed call fails as well.
            check_failing(small(), Fault { count: 2, ..fault.clone() }, end);
            if end == End::Kill && nth < 8 {
                check_failing(LogConfig { preallocate: true, ..small() }, fault, end);
            }
        }
    }
}

#[test]
fn a_full_disk_heals() {
    let mut rig = Rig::new(LogConfig { segment_bytes: 64 << 10, ..small() });
    rig.fill(2);
    rig.flush();
    rig.disk.set_capacity(64 << 10);
    let mut appended = 2;
    let error = loop {
        match rig.try_append(sized(3000, NOW), Origin::Client) {
            Ok(_) => appended += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, AppendError::Storage(StorageError::Full { .. })), "{error}");
    assert!(rig.try_append(sized(3000, NOW), Origin::Client).is_err());
    assert_eq!(rig.read_from(0).len(), appended);
    rig.disk.set_capacity(1 << 30);
    rig.append(sized(3000, NOW));
    assert_eq!(rig.read_from(0).len(), appended + 1);
}

#[test]
fn busy_segments_reserve_room() {
    let config = LogConfig { segment_bytes: 4 << 20, ..LogConfig::default() };
    let mut rig = Rig::new(config);
    for _ in 0..60 {
        rig.append(sized(64 << 10, NOW));
    }
    // A failing reservation changes nothing.
    rig.disk.inject(Fault::io(FaultOp::Allocate, "").kind(FaultKind::Full));
    for _ in 0..60 {
        rig.append(sized(64 << 10, NOW));
    }
    assert_eq!(rig.read_from(0).len(), 120);
    rig.restart();
    assert_eq!(rig.read_from(0).len(), 120);
}

#[test]
fn transactions_bound_the_stable_offset() {
    let mut rig = Rig::new(small());
    rig.append(in_txn(1, 0, 0, 2, true)); // 0, 1
    rig.append(in_txn(2, 0, 0, 1, true)); // 2
    rig.append(sized(100, NOW)); // 3
    assert_eq!(rig.log.last_stable_offset(4), 0);
    let plain = rig.try_append(in_txn(1, 0, 2, 1, false), Origin::Client).expect_err("plain");
    assert!(matches!(plain, AppendError::InvalidTxnState { producer_id: 1, .. }), "{plain}");
    rig.try_append(marker(1, 0, true, 3), Origin::Coordinator).expect("a marker"); // 4
    assert_eq!(rig.log.last_stable_offset(4), 0, "its marker is not below the high watermark");
    assert_eq!(rig.log.last_stable_offset(5), 2);
    rig.try_append(marker(2, 0, false, 0), Origin::Coordinator).expect("a marker"); // 5
    let fenced = rig.try_append(marker(1, 0, false, 2), Origin::Coordinator).expect_err("older");
    assert!(matches!(fenced, AppendError::CoordinatorFenced { current: 3, got: 2, .. }));
    assert_eq!(rig.log.last_stable_offset(6), 6);
    let aborted = |from, upper| rig.log.view().aborted_transactions(from, upper).expect("a list");
    let want =
        AbortedTxn { producer_id: 1, first_offset: 0, last_offset: 4, last_stable_offset: 2 };
    assert_eq!(aborted(0, 6), [want]);
    assert_eq!(aborted(4, 5), [want]);
    assert_eq!(aborted(5, 6), []);
    assert_eq!(aborted(0, 0), []);
}

#[test]
fn room_that_is_reserved_and_not_used_can_be_given_back() {
    let mut rig = Rig::new(LogConfig { segment_bytes: 64 << 20, ..LogConfig::default() });
    let usable = |rig: &Rig| rig.disk.space(Path::new(DIR)).expect("a disk").usable;
    (0..12).for_each(|_| {
        rig.append(sized(100_000, NOW));
    });
    let before = usable(&rig);
    rig.append(sized(100_000, NOW));
    rig.log.give_back_room();
    // What a step reserves is far more than one batch.
    assert!(usable(&rig) > before + (8 << 20), "{before} {}", usable(&rig));
    assert_eq!(rig.append(sized(100, NOW)), 13);
    assert_eq!(rig.read_from(12).len(), 2);
}

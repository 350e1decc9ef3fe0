//! Truncation, and starting anew at an offset.

use super::*;

/// Thirty batches of 100 bytes, one record each, epoch n / 4, ten to a segment.
fn thirty() -> Rig {
    let mut rig = Rig::new(small());
    for n in 0..30 {
        let mut batch = sized(100, NOW + n);
        rig.log.append(&mut batch, n as i32 / 4, NOW, Origin::Client).expect("an append");
    }
    rig
}

/// What must hold of a log that was cut to `end`, then and after any kind of restart.
#[track_caller]
fn check_cut(rig: &mut Rig, end: i64) {
    let check = |rig: &Rig| {
        assert_eq!(rig.log.log_end_offset(), end);
        let bases: Vec<i64> = rig.read_from(0).iter().map(|(base, _)| *base).collect();
        assert_eq!(bases, (0..end).collect::<Vec<_>>());
        let entries = rig.log.leader_epochs().entries();
        let want: Vec<(i32, i64)> = (0..end).step_by(4).map(|at| (at as i32 / 4, at)).collect();
        let got: Vec<(i32, i64)> = entries.iter().map(|e| (e.epoch, e.start_offset)).collect();
        assert_eq!(got, want);
        for time in 0..end {
            let found = rig.log.view().offset_for_timestamp(NOW + time, end).expect("a look-up");
            assert_eq!(found.map(|found| found.offset), Some(time));
        }
        let late = rig.log.view().offset_for_timestamp(NOW + end, i64::MAX).expect("a look-up");
        assert_eq!(late, None);
        let beyond = rig.log.view().read(end + 1, 100, i64::MAX, true).expect_err("out of range");
        assert!(matches!(beyond, ReadError::OffsetOutOfRange { .. }));
    };
    check(rig);
    rig.crash();
    rig.open().expect("a log");
    check(rig);
    rig.restart();
    check(rig);
}

#[test]
fn cut_anywhere_and_stay_cut() {
    for end in 0..30 {
        for flushed in [false, true] {
            let mut rig = thirty();
            rig.start.recovery_point = 0;
            if flushed {
                rig.checkpoint();
                rig.start.recovery_point = end;
            } else if end > 0 {
                // The cut makes durable what it keeps; the names of the segments too.
                rig.flush();
            }
            assert!(rig.log.truncate_to(end, NOW).expect("a cut"));
            assert_eq!(rig.log.flushed_end(), end);
            check_cut(&mut rig, end);
            let mut batch = sized(100, NOW + end);
            let appended = rig.log.append(&mut batch, 99, NOW, Origin::Client).expect("an append");
            assert_eq!(appended.base_offset, end);
            assert_eq!(rig.log.leader_epochs().latest().map(|e| e.start_offset), Some(end));
        }
    }
}

#[test]
fn nothing_to_cut() {
    let mut rig = thirty();
    rig.log.assign_epoch(50);
    assert!(!rig.log.truncate_to(30, NOW).expect("nothing"));
    assert_eq!(rig.log.leader_epochs().latest().map(|e| e.epoch), Some(7), "epoch 50 had nothing");
    assert!(!rig.log.truncate_to(99, NOW).expect("nothing"));
    assert_eq!(rig.log.log_end_offset(), 30);
}

#[test]
fn a_batch_goes_whole() {
    let mut rig = Rig::new(small());
    rig.append(timed(&[1, 2, 3], Codec::None));
    rig.append(timed(&[1, 2, 3], Codec::None));
    assert!(rig.log.truncate_to(5, NOW).expect("a cut"));
    assert_eq!(rig.log.log_end_offset(), 3);
    assert_eq!(rig.read_from(0).len(), 1);
}

#[test]
fn groups_under_way_are_void() {
    let mut rig = thirty();
    let early = rig.log.take_dirty().expect("dirty");
    assert!(early.is_current());
    rig.log.truncate_to(15, NOW).expect("a cut");
    assert!(!early.is_current(), "the flusher must not report it");
    assert_eq!(rig.log.flushed_end(), 15.min(rig.log.flushed_end()));
    let dirty = rig.log.take_dirty().expect("the cut itself");
    let active = dirty.files.last().expect("the active segment");
    assert_eq!((active.from, active.to), (500, 500));
    assert!(active.path.ends_with("00000000000000000010.log"));
    sync(&rig.disk, &dirty).expect("a sync");
    rig.log.flushed(dirty.end_offset);
    assert_eq!(rig.log.flushed_end(), 15);
    rig.fill(1);
    let dirty = rig.log.take_dirty().expect("dirty");
    let active = dirty.files.last().expect("the active segment");
    assert_eq!((active.from, active.to), (500, 600));
}

#[test]
fn producers_go_back_too() {
    let mut rig = Rig::new(small());
    for n in 0..40 {
        rig.append(of_producer(n % 2, 0, (n / 2) as i32, 1));
        if n % 7 == 0 {
            rig.checkpoint();
        }
    }
    for end in (0..40).rev() {
        rig.log.truncate_to(end, NOW).expect("a cut");
        for id in 0..2 {
            let batches = (end - id + 1) / 2;
            let last = rig.log.producers().get(id).map(|producer| producer.last_sequence());
            assert_eq!(last, (batches > 0).then_some(batches as i32 - 1), "{id} at {end}");
        }
    }
}

#[test]
fn aborted_transactions_go_back_too() {
    let mut rig = Rig::new(small());
    let mut aborts = Vec::new();
    for n in 0..12 {
        rig.append(in_txn(1, 0, n, 1, true));
        let at = rig.try_append(marker(1, 0, true, 0), Origin::Coordinator).expect("a marker");
        aborts.push(at.base_offset);
        rig.fill(1);
    }
    for end in (0..36).rev() {
        if end % 5 == 0 {
            rig.restart();
        }
        rig.log.truncate_to(end, NOW).expect("a cut");
        let found = rig.log.view().aborted_transactions(0, i64::MAX).expect("a list");
        let got: Vec<i64> = found.iter().map(|txn| txn.last_offset).collect();
        let want: Vec<i64> = aborts.iter().copied().filter(|at| *at < end).collect();
        assert_eq!(got, want, "cut to {end}");
        let open = end % 3 == 1;
        assert_eq!(rig.log.producers().open_transactions().len(), usize::from(open));
    }
}

#[test]
fn start_over() {
    let mut rig = thirty();
    rig.checkpoint();
    rig.start.recovery_point = 0;
    rig.log.truncate_fully_and_start_at(100, NOW).expect("a new start");
    let check = |rig: &mut Rig| {
        assert_eq!(rig.bases(), [100]);
        assert_eq!((rig.log.log_start_offset(), rig.log.log_end_offset()), (100, 100));
        assert_eq!(rig.log.leader_epochs().latest(), None);
        assert_eq!(rig.log.size_bytes(), 0);
        assert!(rig.log.view().read(100, 10, i64::MAX, true).expect("a read").is_none());
    };
    check(&mut rig);
    rig.start = LogStart { log_start_offset: 100, recovery_point: 100, clean: false };
    rig.crash();
    rig.open().expect("a log");
    check(&mut rig);
    assert_eq!(rig.append(sized(100, NOW)), 100);
    // Below the first segment: the same.
    rig.log.truncate_to(50, NOW).expect("a cut");
    assert_eq!((rig.log.log_start_offset(), rig.log.log_end_offset()), (50, 50));
    assert_eq!(rig.append(sized(100, NOW)), 50);
}

#[test]
fn a_log_that_ends_before_its_start_begins_there() {
    let mut rig = thirty();
    rig.checkpoint();
    rig.kill();
    rig.start.log_start_offset = 31;
    rig.open().expect("a log");
    assert_eq!((rig.log.log_start_offset(), rig.log.log_end_offset()), (31, 31));
    assert_eq!(rig.bases(), [31]);
}

#[test]
fn deletion_renames_the_directory() {
    let mut rig = thirty();
    let (disk, view) = (rig.disk.clone(), rig.log.view());
    let slice = view.read(0, 100, 30, true).expect("a read").expect("a slice");
    let path = rig.log.mark_deleted(HEX).expect("a rename");
    assert_eq!(path, PathBuf::from(format!("/data/topic-0.{HEX}-delete")));
    assert!(disk.stat(DIR.as_ref()).expect("a stat").is_none());
    assert!(disk.stat(&path.join("00000000000000000000.log")).expect("a stat").is_some());
    assert_eq!(slice.file.read_at(&mut [0; 100], 0).expect("a read"), 100);
}

#[test]
fn cut_within_a_gap() {
    let at = |offset: i64| {
        let mut batch = sized(100, NOW);
        protocol_compat::batch::assign(&mut batch, offset, 0);
        batch
    };
    let mut rig = Rig::new(small());
    for offset in [0, 10, 20] {
        rig.log.append_replica(&at(offset), NOW).expect("an append");
    }
    rig.log.truncate_to(15, NOW).expect("a cut");
    assert_eq!(rig.log.log_end_offset(), 11, "where the batches end");
    rig.checkpoint();
    rig.kill();
    rig.open().expect("a log");
    assert_eq!(rig.log.log_end_offset(), 11);
    rig.log.append_replica(&at(15), NOW).expect("an append");
    // All of a segment goes.
    rig.log.truncate_to(0, NOW).expect("a cut");
    assert_eq!((rig.log.log_start_offset(), rig.log.log_end_offset()), (0, 0));
}

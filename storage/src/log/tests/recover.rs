//! Recovery: torn tails, damaged and missing files, what a kill left half done.

use super::*;
use crate::disk::sim::{Fault, FaultOp};

const LAST: &str = "00000000000000000020.log";

/// Twenty-five batches of 100 bytes, ten to a segment, of one producer; flushed, with nothing
/// noted.
fn twenty_five() -> Rig {
    let mut rig = Rig::new(small());
    for n in 0..25 {
        let mut batch = of_producer(1, 0, n, 1);
        let pad = sized(100, NOW);
        assert!(batch.len() <= pad.len());
        batch = {
            let builder = BatchBuilder::new(0, Codec::None).producer(1, 0, n, false);
            let mut builder = builder;
            builder.append(NOW + i64::from(n), None, Some(&[b'x'; 32]), &[]);
            builder.build().to_vec()
        };
        assert_eq!(batch.len(), 100);
        rig.log.append(&mut batch, n / 10, NOW, Origin::Client).expect("an append");
    }
    rig.flush();
    rig
}

/// Opens after an unclean stop and checks that the first `batches` batches are all there is.
#[track_caller]
fn check_opened(rig: &mut Rig, batches: i64) {
    rig.kill();
    rig.open().expect("a log");
    assert_eq!(rig.log.log_end_offset(), batches);
    let bases: Vec<i64> = rig.read_from(0).iter().map(|(base, _)| *base).collect();
    assert_eq!(bases, (0..batches).collect::<Vec<_>>());
    assert_eq!(rig.log.flushed_end(), rig.start.recovery_point.min(batches));
    let last = rig.log.producers().get(1).map_or(-1, |producer| producer.last_sequence());
    assert_eq!(i64::from(last), batches - 1);
    for time in 0..batches {
        let found = rig.log.view().offset_for_timestamp(NOW + time, i64::MAX).expect("a look-up");
        assert_eq!(found.map(|found| found.offset), Some(time));
    }
    let epochs: Vec<_> =
        rig.log.leader_epochs().entries().iter().map(|e| (e.epoch, e.start_offset)).collect();
    let want: Vec<_> = (0..batches).step_by(10).map(|at| (at as i32 / 10, at)).collect();
    assert_eq!(epochs, want);
    // And it goes on from there.
    rig.flush();
    let mut next = of_producer(1, 0, last + 1, 1);
    let appended = rig.log.append(&mut next, 3, NOW, Origin::Client).expect("an append");
    assert_eq!(appended.base_offset, batches);
}

#[track_caller]
fn check_corrupt(rig: &mut Rig, want: &str) {
    rig.kill();
    match rig.open() {
        Err(StorageError::Corrupt { what, .. }) => assert_eq!(what, want),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cut_at_every_byte() {
    for len in 0..=500 {
        let mut rig = twenty_five();
        rig.set_len(LAST, len);
        check_opened(&mut rig, 20 + len as i64 / 100);
        assert_eq!(rig.report.cut.is_some(), len % 100 != 0);
        assert_eq!(rig.report.cut.as_ref().map_or(0, |cut| cut.bytes), len % 100);
    }
}

#[test]
fn zeros_and_garbage_at_the_end() {
    for from in 400..500 {
        let mut rig = twenty_five();
        rig.write(LAST, &vec![0; 500 - from], from as u64);
        // Times and sequences end in zeros, maybe: then nothing is missing.
        let whole = rig.bytes(LAST)[400..] == twenty_five().bytes(LAST)[400..];
        check_opened(&mut rig, if whole { 25 } else { 24 });
    }
    for extra in [1, 11, 12, 60, 61, 100, 4096, 20_000] {
        for byte in [0, 0xff, 0x02] {
            let mut rig = twenty_five();
            rig.write(LAST, &vec![byte; extra], 500);
            check_opened(&mut rig, 25);
            assert_eq!(rig.report.cut.as_ref().map(|cut| cut.bytes), Some(extra as u64));
        }
    }
}

#[test]
fn any_byte_flipped() {
    for at in 400..500 {
        // Offsets that rise and leader epochs are beyond the checksum, in Kafka as here.
        if at < 408 || (412..416).contains(&at) {
            continue;
        }
        let mut rig = twenty_five();
        rig.disk.corrupt(&rig.path(LAST), at, 0x40).expect("a flip");
        check_opened(&mut rig, 24);
        assert!(!rig.report.cut.as_ref().is_some_and(|cut| cut.sound_batch_follows));
    }
}

#[test]
fn damage_takes_all_that_follows() {
    let mut rig = twenty_five();
    rig.disk.corrupt(&rig.path("00000000000000000010.log"), 350, 1).expect("a flip");
    check_opened(&mut rig, 13);
    let cut = rig.report.cut.clone().expect("a cut");
    assert_eq!((cut.offset, cut.bytes, cut.segments), (13, 1200, 1));
    assert!(cut.sound_batch_follows, "which is worth an error in the log");
    assert_eq!(rig.bases(), [0, 10]);
    assert!(!rig.names().iter().any(|name| name.starts_with("00000000000000000020")));
}

#[test]
fn damage_below_the_recovery_point_is_corruption() {
    let noted = |at: i64| {
        let mut rig = twenty_five();
        rig.start.recovery_point = at;
        rig
    };
    let mut rig = noted(25);
    rig.set_len(LAST, 499);
    check_corrupt(&mut rig, "a batch of 100 bytes, 99 are there");
    let mut rig = noted(25);
    rig.set_len(LAST, 400);
    check_corrupt(&mut rig, "log ends at 24, it was flushed up to 25");
    let mut rig = noted(22);
    rig.disk.corrupt(&rig.path(LAST), 116, 1).expect("a flip");
    check_corrupt(&mut rig, "magic 3 is not 2");
    // Above it: cut.
    let mut rig = noted(22);
    rig.disk.corrupt(&rig.path(LAST), 216, 1).expect("a flip");
    check_opened(&mut rig, 22);
    let mut rig = noted(11);
    rig.set_len("00000000000000000010.log", 50);
    check_corrupt(&mut rig, "50 bytes are no batch header");
    // A whole segment is missing.
    let mut rig = noted(21);
    rig.disk.remove_file(&rig.path(LAST)).expect("a removal");
    check_corrupt(&mut rig, "log ends at 20, it was flushed up to 21");
}

#[test]
fn a_lost_tail_takes_the_segments_after_it() {
    let mut rig = twenty_five();
    rig.set_len("00000000000000000010.log", 700);
    check_opened(&mut rig, 17);
    let cut = rig.report.cut.clone().expect("a cut");
    assert_eq!((cut.bytes, cut.segments), (500, 1));
    assert_eq!(cut.what, "nothing from 17 to 20");
}

#[test]
fn only_the_end_is_read() {
    let mut rig = Rig::new(LogConfig { segment_bytes: 10 << 20, ..LogConfig::default() });
    for _ in 0..5000 {
        rig.append(sized(1000, NOW));
    }
    rig.checkpoint();
    for _ in 0..20 {
        rig.append(sized(1000, NOW));
    }
    rig.kill();
    rig.open().expect("a log");
    assert!(rig.report.batches < 50, "{:?}", rig.report);
    rig.restart();
    assert!(rig.report.clean);
    assert!(rig.report.batches < 10, "{:?}", rig.report);
}

/// A clean open costs the same few calls whatever lies in the log.
#[test]
fn a_clean_open_is_cheap() {
    let reads = |batches: usize| {
        let mut rig = Rig::new(LogConfig { segment_bytes: 100_000, ..LogConfig::default() });
        for _ in 0..batches {
            rig.append(sized(1000, NOW));
        }
        rig.log.close().expect("a close");
        rig.start.recovery_point = batches as i64;
        rig.start.clean = true;
        let before = rig.disk.stats();
        rig.open().expect("a log");
        let after = rig.disk.stats();
        assert_eq!(after.writes, before.writes);
        // Nothing was appended: closing again writes nothing.
        rig.log.close().expect("a close");
        assert!(rig.log.take_dirty().is_none());
        after.reads - before.reads
    };
    assert_eq!(reads(0), 1);
    assert!(reads(50) <= 8, "{}", reads(50));
    assert_eq!(reads(550), reads(50));
}

/// The batches are read once; closing writes the snapshot though nothing was appended.
#[test]
fn a_clean_open_that_lacks_its_snapshot() {
    let mut rig = twenty_five();
    rig.restart();
    let snapshot = "00000000000000000025.snapshot";
    let want = rig.bytes(snapshot);
    rig.disk.remove_file(&rig.path(snapshot)).expect("a removal");
    rig.disk.sync_dir(&rig.path("")).expect("a sync");
    for reads_batches in [true, false] {
        rig.restart();
        assert!(rig.report.clean);
        assert_eq!(rig.report.batches >= 5, reads_batches, "{:?}", rig.report);
        assert_eq!(rig.log.producers().get(1).map(|producer| producer.last_sequence()), Some(24));
    }
    assert_eq!(rig.bytes(snapshot), want);
}

#[test]
fn a_clean_stop_that_was_none() {
    let mut rig = twenty_five();
    rig.restart();
    assert!(rig.report.clean);
    rig.start.clean = true;
    rig.start.recovery_point = 25;
    rig.set_len(LAST, 450);
    check_corrupt(&mut rig, "50 bytes are no batch header");
    // The marker of another tool, and no recovery point: checked like an unclean stop.
    rig.start.recovery_point = 0;
    check_opened(&mut rig, 24);
    assert!(!rig.report.clean);
}

#[test]
fn indexes_are_made_anew() {
    let files = |rig: &Rig| -> Vec<(String, Vec<u8>)> {
        let names = rig.names().into_iter().filter(|name| name.contains("index"));
        names.map(|name| (name.clone(), rig.bytes(&name))).collect()
    };
    let mut rig = twenty_five();
    rig.restart();
    let want = files(&rig);
    assert_eq!(want.len(), 6);
    for (name, bytes) in &want {
        for damage in 0..4 {
            let mut rig = twenty_five();
            rig.restart();
            match damage {
                0 => rig.disk.remove_file(&rig.path(name)).expect("a removal"),
                1 => rig.set_len(name, 0),
                2 => rig.set_len(name, (bytes.len() as u64).saturating_sub(5)),
                _ => rig.write(name, &[0; 10_000], bytes.len() as u64),
            }
            rig.start.recovery_point = 0;
            check_opened(&mut rig, 25);
            rig.log.truncate_to(25, NOW).expect("a cut");
            rig.restart();
            let got = files(&rig);
            assert_eq!(got, want, "{name} {damage}");
        }
        // After a clean stop only an absent file of a sealed segment, or any of the last, is
        // noticed.
        let mut rig = twenty_five();
        rig.restart();
        rig.disk.remove_file(&rig.path(name)).expect("a removal");
        rig.start.clean = true;
        rig.start.recovery_point = 25;
        rig.kill();
        rig.open().expect("a log");
        assert_eq!(rig.read_from(0).len(), 25);
        rig.fill(1);
        rig.log.truncate_to(25, NOW).expect("a cut");
        rig.restart();
        assert_eq!(files(&rig), want, "{name}");
    }
}

#[test]
fn a_snapshot_that_is_damaged_is_passed_over() {
    let mut rig = twenty_five();
    rig.start.recovery_point = 25;
    for name in ["00000000000000000020.snapshot", "00000000000000000010.snapshot"] {
        rig.disk.corrupt(&rig.path(name), 9, 1).expect("a flip");
        rig.kill();
        rig.open().expect("a log");
        assert!(!rig.names().contains(&name.to_owned()));
        assert_eq!(rig.log.producers().get(1).map(|p| p.last_sequence()), Some(24));
        assert_eq!(rig.log.producers().get(1).map(|p| p.marks().len()), Some(5));
    }
}

#[test]
fn leader_epochs_come_from_the_log_if_need_be() {
    let want = "0\n3\n0 0\n1 10\n2 20\n";
    for text in ["", "0\n1\n0 0\n", "0\n2\n0 0\n1 10\n", "0\n2\n0 0\n", "garbage", want] {
        for recovery_point in [0, 5, 10, 20, 25] {
            let mut rig = twenty_five();
            rig.set_len("leader-epoch-checkpoint", 0);
            rig.write("leader-epoch-checkpoint", text.as_bytes(), 0);
            rig.start.recovery_point = recovery_point;
            rig.kill();
            rig.open().expect("a log");
            assert_eq!(rig.log.leader_epochs().encode(), want, "{text:?} {recovery_point}");
        }
        let mut rig = twenty_five();
        rig.restart();
        rig.disk.remove_file(&rig.path("leader-epoch-checkpoint")).expect("a removal");
        rig.start.clean = true;
        rig.kill();
        rig.open().expect("a log");
        assert_eq!(rig.log.leader_epochs().encode(), want);
    }
}

#[test]
fn leftovers_go() {
    let mut rig = twenty_five();
    for name in [
        "00000000000000000003.log.deleted",
        "00000000000000000003.snapshot.deleted",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.timeindex.cleaned",
        // At or above what was not finished: of the same group, so useless.
        "00000000000000000005.log.swap",
        "00000000000000000025.snapshot.tmp",
        "leader-epoch-checkpoint.tmp",
        // Without their log.
        "00000000000000000007.index",
        "00000000000000000007.txnindex",
    ] {
        rig.write(name, b"x", 0);
    }
    rig.write("something else", b"x", 0);
    check_opened(&mut rig, 25);
    assert_eq!(rig.report.leftovers_removed, 9);
    let names = rig.names();
    assert!(names.contains(&"something else".to_owned()));
    assert!(!names.iter().any(|name| name.contains("0003") || name.contains("0007")));
}

#[test]
fn a_finished_compaction_is_completed() {
    let mut rig = twenty_five();
    // The first two segments as one with every second batch.
    let (first, second) =
        (rig.bytes("00000000000000000000.log"), rig.bytes("00000000000000000010.log"));
    let kept: Vec<u8> =
        [first, second].concat().chunks(100).step_by(2).flatten().copied().collect();
    rig.write("00000000000000000000.log.swap", &kept, 0);
    rig.kill();
    rig.start.recovery_point = 20;
    rig.open().expect("a log");
    assert_eq!(rig.bases(), [0, 20], "the second one went into the first");
    let bases: Vec<i64> = rig.read_from(0).iter().map(|(base, _)| *base).collect();
    assert_eq!(bases, (0..20).step_by(2).chain(20..25).collect::<Vec<_>>());
    let slice = rig.log.view().read(19, 1, 25, true).expect("a read").expect("a slice");
    assert_eq!(slice.base_offset, 20);
}

#[test]
fn odd_directories() {
    // Absent.
    let disk = SimDisk::new(SimConfig::seeded(1));
    let open = |disk: &SimDisk, start: LogStart| {
        Log::open(disk.shared(), DIR.as_ref(), tp(), small(), start, NOW).expect("a log").0
    };
    let start = LogStart { log_start_offset: 7, ..LogStart::default() };
    let log = open(&disk, start);
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.topic_id()), (7, 7, None));
    // An empty last segment, unclean and clean.
    let mut rig = twenty_five();
    rig.log.roll(25, NOW).expect("a roll");
    rig.flush();
    check_opened(&mut rig, 25);
    // Log start above the first segment.
    let mut rig = twenty_five();
    rig.start.log_start_offset = 13;
    rig.kill();
    rig.open().expect("a log");
    assert_eq!(rig.log.log_start_offset(), 13);
    assert_eq!(rig.bases(), [0, 10, 20]);
    assert_eq!(rig.read_from(13).len(), 12);
    assert_eq!(rig.log.topic_id(), Some(Uuid::from_u128(7)));
    // A topic id that cannot be read.
    rig.write("partition.metadata", b"version: 1\n", 0);
    rig.kill();
    rig.open().expect("a log");
    assert_eq!(rig.log.topic_id(), None);
    // It is written again once the id is known, and durable with a flush.
    rig.write("partition.metadata", &[0; 100], 0);
    rig.log.adopt(Uuid::from_u128(7)).expect("written");
    rig.flush();
    rig.kill();
    rig.open().expect("a log");
    assert_eq!(rig.log.topic_id(), Some(Uuid::from_u128(7)));
    // There is a log already.
    let id = Uuid::nil();
    let again = Log::create(rig.disk.shared(), DIR.as_ref(), tp(), id, small(), NOW);
    assert!(again.is_err());
}

#[test]
fn a_full_disk_does_not_keep_a_log_from_opening() {
    use crate::disk::sim::FaultKind;
    let mut rig = twenty_five();
    for name in ["00000000000000000000.index", "00000000000000000010.timeindex"] {
        rig.disk.remove_file(&rig.path(name)).expect("a removal");
    }
    rig.kill();
    for op in [FaultOp::Create, FaultOp::Write] {
        rig.disk.inject(Fault::io(op, "").kind(FaultKind::Full));
    }
    rig.open().expect("a log");
    assert_eq!(rig.read_from(0).len(), 25);
    rig.disk.clear_faults();
    check_opened(&mut rig, 25);
}

#[test]
fn aborted_transactions_are_found_again() {
    let mut rig = Rig::new(small());
    for n in 0..20 {
        rig.append(in_txn(1, 0, n * 2, 2, true));
        rig.append(sized(100, NOW));
        rig.try_append(marker(1, 0, n % 3 != 0, 0), Origin::Coordinator).expect("a marker");
        if n == 9 {
            rig.checkpoint();
        }
    }
    let aborted = |rig: &Rig| rig.log.view().aborted_transactions(0, i64::MAX).expect("a list");
    let want = aborted(&rig);
    assert_eq!(want.len(), 13);
    rig.flush();
    for recovery_point in [rig.start.recovery_point, 0] {
        rig.kill();
        rig.start.recovery_point = recovery_point;
        rig.open().expect("a log");
        assert_eq!(aborted(&rig), want);
        rig.restart();
        assert_eq!(aborted(&rig), want);
    }
    // A file that is of nothing in the log.
    rig.write("00000000000000000000.txnindex", &[0; 340], 0);
    rig.start.recovery_point = 0;
    rig.kill();
    rig.open().expect("a log");
    assert_eq!(aborted(&rig), want);
}

#[test]
fn a_first_batch_that_is_torn() {
    for len in 0..100 {
        let mut rig = Rig::new(small());
        rig.append(sized(100, NOW));
        rig.flush();
        rig.set_len("00000000000000000000.log", len);
        rig.kill();
        rig.open().expect("a log");
        assert_eq!(rig.log.log_end_offset(), 0);
        assert_eq!(rig.append(sized(100, NOW)), 0);
    }
}

#[test]
fn the_tail_of_a_killed_process_is_durable_once_flushed() {
    let mut rig = Rig::new(LogConfig::default());
    rig.fill(3);
    rig.checkpoint();
    rig.fill(2);
    rig.kill();
    rig.open().expect("a log");
    assert_eq!((rig.log.flushed_end(), rig.log.log_end_offset()), (3, 5));
    rig.log.flush_recovered(false).expect("a sync");
    assert_eq!((rig.log.flushed_end(), rig.log.log_end_offset()), (5, 5));
    rig.crash();
    rig.open().expect("a log");
    assert_eq!(rig.log.log_end_offset(), 5);
}

#[test]
fn a_tail_whose_sync_failed_is_written_again() {
    for (again, kept) in [(false, 3), (true, 9)] {
        let mut rig = Rig::new(LogConfig { segment_bytes: 300, ..LogConfig::default() });
        rig.fill(3);
        rig.checkpoint();
        rig.fill(6);
        // After this the pages count as clean.
        rig.disk.inject(Fault::io(FaultOp::Sync, ""));
        let dirty = rig.log.take_dirty().expect("new records");
        assert!(dirty.files.len() > 2, "the tail has several segments");
        assert!(dirty.files.iter().all(|dirty| dirty.file.sync_data().is_err()));
        rig.disk.clear_faults();
        rig.kill();
        rig.open().expect("a log");
        assert_eq!(rig.log.log_end_offset(), 9);
        rig.log.flush_recovered(again).expect("a sync");
        rig.crash();
        rig.open().expect("a log");
        assert_eq!(rig.log.log_end_offset(), kept, "again: {again}");
    }
}

//! Reading: which bytes a view gives out, also while the log moves on.

use super::*;

/// Reads from a log of six batches of 100 bytes and 1, 2, 3, 1, 2, 3 records: offsets 0, 1-2, 3-5,
/// 6, 7-8, 9-11, three to a segment.
#[track_caller]
fn check(offset: i64, max: usize, upper: i64, whole: bool, want: Option<(i64, u64, usize)>) {
    let log = six_batches();
    let slice = log.view().read(offset, max, upper, whole).expect("a read");
    let got = slice.map(|slice| (slice.base_offset, slice.position, slice.len));
    assert_eq!(got, want, "from {offset}, {max} bytes, below {upper}");
}

fn padded(records: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0, Codec::None);
    let per_record = 39 / records - 8;
    let value = vec![b'x'; per_record + 1];
    (1..records).for_each(|_| builder.append(NOW, None, Some(&value), &[]));
    let left = 100 - 61 - (records - 1) * (value.len() + 7) - 7;
    builder.append(NOW, None, Some(&vec![b'x'; left]), &[]);
    let batch = builder.build().to_vec();
    assert_eq!(batch.len(), 100);
    batch
}

fn six_batches() -> Log {
    let mut rig = Rig::new(LogConfig { segment_bytes: 300, ..small() });
    for records in [1, 2, 3, 1, 2, 3] {
        rig.append(padded(records));
    }
    assert_eq!(rig.bases(), [0, 6]);
    rig.log
}

#[test]
fn slices_begin_with_the_batch_asked_for() {
    check(0, 1000, 12, true, Some((0, 0, 300)));
    check(1, 1000, 12, true, Some((1, 100, 200)));
    check(2, 1000, 12, true, Some((1, 100, 200)));
    check(5, 1000, 12, true, Some((3, 200, 100)));
    check(6, 1000, 12, true, Some((6, 0, 300)));
    check(11, 1000, 12, true, Some((9, 200, 100)));
}

#[test]
fn slices_end_where_they_are_told_even_within_a_batch() {
    check(0, 150, 12, false, Some((0, 0, 150)));
    check(0, 250, 12, true, Some((0, 0, 250)));
    check(0, 1, 12, false, Some((0, 0, 1)));
    check(0, 0, 12, false, None);
    // The first batch is whole whatever the limit.
    check(0, 0, 12, true, Some((0, 0, 100)));
    check(0, 1, 12, true, Some((0, 0, 100)));
}

#[test]
fn slices_stay_below_the_upper_offset() {
    check(0, 1000, 0, true, None);
    check(0, 1000, 1, true, Some((0, 0, 100)));
    check(0, 1000, 3, true, Some((0, 0, 200)));
    check(0, 1000, 6, true, Some((0, 0, 300)));
    check(6, 1000, 7, true, Some((6, 0, 100)));
    check(6, 1000, 6, true, None);
    check(7, 1000, 9, true, Some((7, 100, 100)));
    // An upper offset within a batch leaves the batch out.
    check(0, 1000, 2, true, Some((0, 0, 100)));
    check(1, 1000, 2, true, None);
}

#[test]
fn outside_the_log() {
    let mut log = six_batches();
    let check = |log: &Log, offset: i64, want: &str| {
        let got = match log.view().read(offset, 1000, i64::MAX, true) {
            Ok(None) => "nothing".to_owned(),
            Ok(Some(slice)) => format!("{} bytes", slice.len),
            Err(error) => error.to_string(),
        };
        assert_eq!(got, want);
    };
    check(&log, 12, "nothing");
    check(&log, 13, "offset 13 is outside 0..=12");
    check(&log, -1, "offset -1 is outside 0..=12");
    log.advance_log_start(4).expect("a new start");
    check(&log, 3, "offset 3 is outside 4..=12");
    check(&log, 4, "100 bytes");
    log.advance_log_start(2).expect("no change");
    check(&log, 3, "offset 3 is outside 4..=12");
    log.advance_log_start(12).expect("a new start");
    check(&log, 12, "nothing");
    let beyond = log.advance_log_start(13).expect_err("beyond the end");
    assert!(matches!(beyond, ReadError::OffsetOutOfRange { offset: 13, start: 12, end: 12 }));
}

/// More batches than are remembered, over sealed and active segments, before and after the indexes
/// are written: every offset is found.
#[test]
fn every_offset_is_found() {
    let mut rig = Rig::new(LogConfig { segment_bytes: 20_000, ..small() });
    let mut bases = Vec::new();
    for records in (1..=3).cycle().take(500) {
        bases.push(rig.append(padded(records)));
    }
    let check = |rig: &Rig| {
        let view = rig.log.view();
        let end = view.log_end_offset();
        for offset in 0..end {
            let slice = view.read(offset, 1, end, true).expect("a read").expect("a batch");
            let at = bases.partition_point(|base| *base <= offset) - 1;
            assert_eq!(slice.base_offset, bases[at]);
            let slice = view.read(0, usize::MAX, offset, true).expect("a read");
            let below = bases.iter().take_while(|base| **base <= offset).count() - 1;
            let want = below.min(200) * 100;
            assert_eq!(slice.map_or(0, |slice| slice.len), want, "below {offset}");
        }
    };
    check(&rig);
    rig.checkpoint();
    check(&rig);
    rig.restart();
    check(&rig);
    rig.kill();
    rig.open().expect("a log");
    check(&rig);
    assert!(rig.report.batches < 20, "only the end was looked at: {:?}", rig.report);
}

#[test]
fn an_index_of_another_log_does_no_harm() {
    let mut rig = Rig::new(LogConfig { segment_bytes: 5_000, ..small() });
    rig.fill(120);
    rig.restart();
    let want = rig.read_from(0);
    let index = rig.bytes("00000000000000000000.index");
    for entry in (0..index.len()).step_by(8) {
        for (byte, value) in [(3, 0xff), (7, 13), (6, 0xff), (4, 0x7f)] {
            let mut damaged = index.clone();
            damaged[entry + byte] ^= value;
            rig.write("00000000000000000000.index", &damaged, 0);
            rig.restart();
            assert_eq!(rig.read_from(0), want);
            for offset in 0..50 {
                let slice = rig.log.view().read(offset, 1, 120, true).expect("a read");
                assert_eq!(slice.map(|slice| slice.base_offset), Some(offset));
            }
        }
    }
}

#[test]
fn readers_need_no_writer() {
    let mut rig = Rig::new(small());
    let view = rig.log.view();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let start = view.log_start_offset();
                    // The start may move while we read; nothing else may go wrong.
                    let mut at = start;
                    loop {
                        let end = view.log_end_offset();
                        match view.read(at, 250, end, true) {
                            Ok(Some(slice)) => {
                                let mut bytes = vec![0; slice.len];
                                slice.file.read_at(&mut bytes, slice.position).expect("a read");
                                let (header, _) = batches(&bytes).next().expect("a batch").unwrap();
                                assert!(header.base_offset <= at.max(slice.base_offset));
                                at = header.next_offset();
                                assert!(at <= end);
                            }
                            Ok(None) => break,
                            Err(ReadError::OffsetOutOfRange { .. }) => break,
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
            });
        }
        for round in 0..300 {
            rig.fill(5);
            if round % 20 == 0 {
                let end = rig.log.log_end_offset();
                rig.log.advance_log_start(end - 10).expect("a new start");
                rig.log.retain(end, NOW).expect("retention");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn who_must_not_wait_is_told_what_is_not_in_memory() {
    let mut rig = Rig::new(LogConfig { segment_bytes: 300, ..small() });
    for records in [1, 2, 3, 1, 2, 3] {
        rig.append(padded(records));
    }
    let (patient, hasty) = (rig.log.view(), rig.log.view().from_memory());
    let base = |view: &LogView, offset| {
        let slice = view.read(offset, 1000, 12, true);
        slice.map(|slice| slice.expect("records").base_offset)
    };
    assert_eq!(base(&hasty, 2).expect("all is in memory"), 1);
    rig.disk.set_cold(1);
    assert!(base(&hasty, 2).is_err_and(|error| error.is_cold()));
    assert_eq!(base(&patient, 2).expect("it waits"), 1);
    // The place of the newest batches is known, and their bytes were written just now.
    assert_eq!(base(&hasty, 8).expect("the tail"), 7);
    assert!(hasty.read(13, 1000, 12, true).is_err_and(|error| !error.is_cold()));
}

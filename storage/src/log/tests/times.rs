//! Offsets by timestamp and the largest timestamp.

use super::*;

fn rig() -> Rig {
    Rig::new(LogConfig { index_interval_bytes: 100, segment_bytes: 400, ..LogConfig::default() })
}

fn offset_at(log: &Log, timestamp: i64) -> Option<(i64, i64)> {
    let found = log.view().offset_for_timestamp(timestamp, i64::MAX).expect("a look-up");
    found.map(|found| (found.offset, found.timestamp_ms))
}

/// The first record as late as each of 1 to 9, by offset, `-` for none.
#[track_caller]
fn check(rig: &Rig, want: &str) {
    let got: Vec<String> = (1..=9)
        .map(|time| offset_at(&rig.log, time).map_or("-".into(), |(offset, _)| offset.to_string()))
        .collect();
    assert_eq!(got.join(" "), want);
}

/// The same after the indexes went to files, after a restart and after a recovery.
#[track_caller]
fn check_always(rig: &mut Rig, want: &str) {
    check(rig, want);
    rig.checkpoint();
    check(rig, want);
    rig.restart();
    check(rig, want);
    rig.kill();
    rig.open().expect("a log");
    check(rig, want);
    rig.start.recovery_point = 0;
    rig.kill();
    rig.open().expect("a log");
    check(rig, want);
}

#[test]
fn exact_to_the_record() {
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let mut one = rig();
        one.append(timed(&[2, 4, 6, 8], codec));
        check_always(&mut one, "0 0 1 1 2 2 3 3 -");
        let mut many = rig();
        for time in [2, 4, 6, 8] {
            many.append(timed(&[time], codec));
        }
        check_always(&mut many, "0 0 1 1 2 2 3 3 -");
        let mut mixed = rig();
        mixed.append(timed(&[5, 1, 9, 3], codec));
        check_always(&mut mixed, "0 0 0 0 0 2 2 2 2");
        let mut segments = rig();
        for times in [[5, 1], [2, 2], [7, 1], [1, 1], [1, 1], [3, 9], [8, 8], [1, 1]] {
            segments.append(timed(&times, codec));
        }
        assert!(segments.bases().len() > 1);
        check_always(&mut segments, "0 0 0 0 0 4 4 11 11");
    }
}

#[test]
fn append_time_counts_for_every_record() {
    let mut rig = rig();
    for now in [3, 6] {
        let mut batch = timed(&[8, 9], Codec::None);
        protocol_compat::batch::set_append_time(&mut batch, now);
        rig.append(batch);
    }
    check_always(&mut rig, "0 0 0 2 2 2 - - -");
    assert_eq!(offset_at(&rig.log, 1), Some((0, 3)));
}

#[test]
fn bounds_of_the_log() {
    let mut rig = rig();
    for time in [2, 4, 6, 8] {
        rig.append(timed(&[time, time + 1], Codec::None));
    }
    rig.log.advance_log_start(3).expect("a new start");
    check(&rig, "3 3 3 3 3 4 5 6 7");
    // In the middle of a batch, the late record before it.
    let mut late = self::rig();
    late.append(timed(&[9, 1], Codec::None));
    late.append(timed(&[3], Codec::None));
    late.log.advance_log_start(1).expect("a new start");
    check(&late, "1 2 2 - - - - - -");
    let below = |upper| rig.log.view().offset_for_timestamp(6, upper).expect("a look-up");
    assert_eq!(below(4), None);
    assert_eq!(below(5).map(|found| found.offset), Some(4));
    let empty = self::rig();
    check(&empty, "- - - - - - - - -");
}

#[test]
fn highest_timestamp() {
    let check = |batches: &[&[i64]], want: Option<(i64, i64)>| {
        let mut rig = rig();
        for times in batches {
            rig.append(timed(times, Codec::None));
        }
        for _ in 0..2 {
            let found = rig.log.view().max_timestamp().expect("a look-up");
            assert_eq!(found.map(|found| (found.offset, found.timestamp_ms)), want, "{batches:?}");
            rig.restart();
        }
    };
    check(&[], None);
    check(&[&[-1], &[-1, -1]], None);
    check(&[&[5]], Some((0, 5)));
    check(&[&[1, 9, 9, 3]], Some((1, 9)));
    check(&[&[1, 2], &[7], &[3, 7, 7], &[7]], Some((2, 7)));
    check(&[&[1, 2], &[3], &[4], &[5], &[6], &[1, 8], &[8], &[2], &[2], &[2]], Some((7, 8)));
    check(&[&[0]], Some((0, 0)));
}

#[test]
fn epochs_come_along() {
    let mut rig = rig();
    for epoch in [3, 3, 5] {
        let mut batch = timed(&[i64::from(epoch)], Codec::None);
        rig.log.append(&mut batch, epoch, NOW, Origin::Client).expect("an append");
    }
    let found = rig.log.view().offset_for_timestamp(4, i64::MAX).expect("a look-up");
    let want = TimedOffset { timestamp_ms: 5, offset: 2, leader_epoch: 5 };
    assert_eq!(found, Some(want));
    assert_eq!(rig.log.view().max_timestamp().expect("a look-up"), Some(want));
}

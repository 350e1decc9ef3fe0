//! Retention by start offset, size and time, and the deletion of files after it.

use super::*;

/// Thirty batches of 100 bytes, ten to a segment, the n-th at `NOW + n`: bases 0, 10, 20.
fn thirty(config: LogConfig) -> Rig {
    let mut rig = Rig::new(config);
    for n in 0..30 {
        rig.append(sized(100, NOW + n));
    }
    assert_eq!(rig.bases(), [0, 10, 20]);
    rig
}

#[track_caller]
fn check(rig: &mut Rig, high_watermark: i64, now_ms: i64, want: &[i64]) {
    let before = rig.log.size_bytes();
    let done = rig.log.retain(high_watermark, now_ms).expect("retention");
    assert_eq!(rig.bases(), want);
    assert_eq!(done.log_start_offset, rig.log.log_start_offset());
    assert_eq!(done.bytes, before - rig.log.size_bytes());
}

fn kept(retention_bytes: i64, retention_ms: i64) -> LogConfig {
    LogConfig { retention_bytes, retention_ms, ..small() }
}

#[test]
fn by_start_offset() {
    let mut rig = thirty(LogConfig { delete: false, ..kept(0, 0) });
    check(&mut rig, 30, NOW, &[0, 10, 20]);
    rig.log.advance_log_start(9).expect("a new start");
    check(&mut rig, 30, NOW, &[0, 10, 20]);
    rig.log.advance_log_start(10).expect("a new start");
    check(&mut rig, 30, NOW, &[10, 20]);
    rig.log.advance_log_start(30).expect("a new start");
    check(&mut rig, 30, NOW, &[20]);
    assert_eq!(rig.log.log_start_offset(), 30);
}

#[test]
fn by_size() {
    // The log stays at or above the size kept.
    check(&mut thirty(kept(3000, -1)), 30, NOW, &[0, 10, 20]);
    check(&mut thirty(kept(2001, -1)), 30, NOW, &[0, 10, 20]);
    check(&mut thirty(kept(2000, -1)), 30, NOW, &[10, 20]);
    check(&mut thirty(kept(1999, -1)), 30, NOW, &[10, 20]);
    check(&mut thirty(kept(1, -1)), 30, NOW, &[20]);
    check(&mut thirty(kept(0, -1)), 30, NOW, &[30]);
    check(&mut thirty(kept(-1, -1)), 30, NOW, &[0, 10, 20]);
    check(&mut thirty(LogConfig { delete: false, ..kept(0, -1) }), 30, NOW, &[0, 10, 20]);
}

#[test]
fn by_time() {
    // The newest records of the segments are of NOW + 9, + 19, + 29.
    check(&mut thirty(kept(-1, 100)), 30, NOW + 109, &[0, 10, 20]);
    check(&mut thirty(kept(-1, 100)), 30, NOW + 110, &[10, 20]);
    check(&mut thirty(kept(-1, 100)), 30, NOW + 120, &[20]);
    // The active segment goes as well; the log is empty then and keeps its offsets.
    let mut rig = thirty(kept(-1, 100));
    check(&mut rig, 30, NOW + 130, &[30]);
    check(&mut rig, 30, NOW + 1000, &[30]);
    assert_eq!((rig.log.log_start_offset(), rig.log.log_end_offset()), (30, 30));
    assert_eq!(rig.append(sized(100, NOW)), 30);
    // One record from the future keeps a segment and all that come after it.
    let mut rig = Rig::new(kept(-1, 100));
    rig.append(sized(100, NOW + 1_000_000));
    rig.fill(25);
    check(&mut rig, 26, NOW + 5000, &[0, 10, 20]);
    rig.log.set_config(kept(1500, 100));
    check(&mut rig, 26, NOW, &[10, 20]);
    // A clock that went back deletes nothing.
    check(&mut thirty(kept(-1, 100)), 30, i64::MIN, &[0, 10, 20]);
}

#[test]
fn by_time_of_the_file_where_records_have_none() {
    let mut rig = Rig::new(kept(-1, 100));
    for _ in 0..15 {
        rig.append(sized(100, -1));
    }
    check(&mut rig, 15, NOW + 100, &[0, 10]);
    check(&mut rig, 15, NOW + 101, &[15]);
}

#[test]
fn nothing_at_or_above_the_high_watermark() {
    check(&mut thirty(kept(0, 0)), 9, NOW + 1000, &[0, 10, 20]);
    check(&mut thirty(kept(0, 0)), 10, NOW + 1000, &[10, 20]);
    check(&mut thirty(kept(0, 0)), 29, NOW + 1000, &[20]);
    check(&mut thirty(kept(0, 0)), 30, NOW + 1000, &[30]);
}

#[test]
fn deleted_files_stay_for_a_while() {
    let mut rig = thirty(kept(2000, -1));
    rig.flush();
    let slice = rig.log.view().read(0, 1000, 30, true).expect("a read").expect("a slice");
    check(&mut rig, 30, NOW, &[10, 20]);
    let deleted: Vec<String> =
        rig.names().into_iter().filter(|name| name.ends_with(".deleted")).collect();
    let want = [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
    ];
    assert_eq!(deleted, want);
    let mut bytes = vec![0; slice.len];
    assert_eq!(slice.file.read_at(&mut bytes, 0).expect("a read"), 1000);
    rig.log.purge_deleted(NOW + 59_999);
    assert!(rig.names().contains(&want[0].to_owned()));
    rig.log.purge_deleted(NOW + 60_000);
    assert!(!rig.names().iter().any(|name| name.ends_with(".deleted")));
    rig.log.set_config(kept(1000, -1));
    check(&mut rig, 30, NOW, &[20]);
    assert!(rig.names().contains(&"00000000000000000010.snapshot.deleted".to_owned()));
    rig.restart();
    assert_eq!(rig.report.leftovers_removed, 4);
    assert_eq!(rig.bases(), [20]);
}

/// The roll that precedes the deletion of everything leaves a snapshot to the next flush; the
/// deletion cannot wait for that.
#[test]
fn the_producers_of_all_that_goes_are_kept_once() {
    let mut rig = Rig::new(kept(-1, 100));
    rig.append(of_producer(7, 0, 0, 5));
    rig.flush();
    let end = rig.log.log_end_offset();
    check(&mut rig, end, NOW + 1_000_000_000, &[end]);
    let snapshot = "00000000000000000005.snapshot";
    assert!(rig.names().contains(&snapshot.to_owned()));
    assert!(!rig.log.is_snapshot_waiting(end), "its file has its name");
    rig.flush();
    assert!(rig.names().contains(&snapshot.to_owned()));
}

#[test]
fn offsets_never_shift() {
    let mut rig = Rig::new(kept(-1, 100));
    for round in 1..20 {
        rig.fill(7);
        rig.now_ms += 101;
        let now_ms = rig.now_ms;
        rig.log.retain(round * 7, now_ms).expect("retention");
        let offsets = (rig.log.log_start_offset(), rig.log.log_end_offset());
        assert_eq!(offsets, (round * 7, round * 7));
        match round % 3 {
            0 => rig.restart(),
            1 => {
                rig.checkpoint();
                rig.crash();
                rig.open().expect("a log");
            }
            _ => {}
        }
        let read = rig.log.view().read(round * 7, 100, i64::MAX, true).expect("a read");
        assert!(read.is_none());
        assert_eq!(rig.log.log_start_offset(), round * 7);
    }
}

#[test]
fn epochs_and_producers_of_what_is_left() {
    let mut rig = Rig::new(kept(1000, -1));
    for n in 0..30 {
        let mut batch = of_producer(n % 3, 0, (n / 3) as i32, 1);
        rig.log.append(&mut batch, n as i32 / 4, NOW, Origin::Client).expect("an append");
    }
    rig.log.retain(30, NOW).expect("retention");
    let start = rig.log.log_start_offset();
    assert!(start > 4);
    let first = rig.log.leader_epochs().entries()[0];
    assert_eq!((first.epoch, first.start_offset), (start as i32 / 4, start));
    // A producer is known by its last batch even if that is gone.
    assert_eq!(rig.log.producers().len(), 3);
    let again = rig.try_append(of_producer(0, 0, 9, 1), Origin::Client).expect("a duplicate");
    assert_eq!(again.duplicate, Some(NOW));
}

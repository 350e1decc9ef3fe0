//! Bytes on the disk that must never change: they are Apache Kafka's.

use super::*;

/// Bytes as hex, entries apart.
#[track_caller]
fn check(bytes: &[u8], entry: usize, want: &[&str]) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let got: Vec<String> = bytes.chunks(entry).map(hex).collect();
    assert_eq!(got, want);
}

/// Eight batches of two records at `NOW`, +10, +5, +20, +20, +20, +30, +1, an index entry for every
/// second batch or so, then a roll.
fn rolled() -> Rig {
    let config = LogConfig { index_interval_bytes: 100, ..LogConfig::default() };
    let mut rig = Rig::new(config);
    for (n, late) in [0, 10, 5, 20, 20, 20, 30, 1].into_iter().enumerate() {
        let mut batch = timed(&[NOW, NOW + late], Codec::None);
        assert_eq!(batch.len(), if late < 64 { 77 } else { 78 });
        rig.log.append(&mut batch, n as i32 / 3, NOW, Origin::Client).expect("an append");
    }
    rig.log.roll(16, NOW).expect("a roll");
    rig.flush();
    rig
}

#[test]
fn indexes() {
    let rig = rolled();
    // One entry when more than 100 bytes were written since the last one: before batches 2, 4, 6.
    let index = ["000000050000009a", "0000000900000134", "0000000d000001ce"];
    check(&rig.bytes("00000000000000000000.index"), 8, &index);
    // Highest time so far and its batch's last offset; at the roll nothing is later any more.
    let time_index =
        ["0000018bcfe5680a00000003", "0000018bcfe5681400000007", "0000018bcfe5681e0000000d"];
    check(&rig.bytes("00000000000000000000.timeindex"), 12, &time_index);
}

#[test]
fn a_segment_of_one_batch() {
    let mut rig = Rig::new(LogConfig::default());
    rig.append(timed(&[NOW, NOW + 1], Codec::None));
    rig.restart();
    check(&rig.bytes("00000000000000000000.index"), 8, &[]);
    check(&rig.bytes("00000000000000000000.timeindex"), 12, &["0000018bcfe5680100000001"]);
    let snapshot = rig.bytes("00000000000000000002.snapshot");
    check(&snapshot, 10, &["000148674bc700000000"]);
}

#[test]
fn aborted_transactions() {
    let mut rig = Rig::new(LogConfig::default());
    rig.append(in_txn(0x0102, 3, 0, 2, true));
    rig.append(in_txn(5, 0, 0, 1, true));
    rig.try_append(marker(0x0102, 3, true, 9), Origin::Coordinator).expect("a marker");
    rig.try_append(marker(7, 0, true, 9), Origin::Coordinator).expect("a marker of nothing");
    rig.restart();
    let want = ["00000000000000000102000000000000000000000000000000030000000000000002"];
    check(&rig.bytes("00000000000000000000.txnindex"), 34, &want);
    let snapshot = rig.bytes("00000000000000000005.snapshot");
    assert_eq!(snapshot.len(), 10 + 3 * 46);
    // Id, epoch, last sequence, last offset, delta, timestamp, coordinator epoch, open since.
    let want = [
        "0000000000000005 0000 00000000 0000000000000002 00000000 0000018bcfe56800 ffffffff \
         0000000000000002",
        "0000000000000007 0000 ffffffff ffffffffffffffff 00000000 0000018bcfe56800 00000009 \
         ffffffffffffffff",
        "0000000000000102 0003 00000001 0000000000000001 00000001 0000018bcfe56800 00000009 \
         ffffffffffffffff",
    ];
    let want = want.map(|text| text.replace(' ', ""));
    check(&snapshot[10..], 46, &want.each_ref().map(|text| text.as_str()));
}

#[test]
fn texts() {
    let mut rig = rolled();
    let text = |rig: &Rig, name: &str| String::from_utf8(rig.bytes(name)).expect("text");
    assert_eq!(text(&rig, "leader-epoch-checkpoint"), "0\n3\n0 0\n1 6\n2 12\n");
    let want = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw";
    assert_eq!(text(&rig, "partition.metadata"), want);
    assert_eq!(want.len(), 43);
    rig.restart();
    assert_eq!(rig.log.topic_id(), Some(Uuid::from_u128(7)));
}

/// Kafka reserves the file in full while a segment is active; a directory of a Kafka that crashed
/// has such files.
#[test]
fn preallocated_indexes_are_read() {
    for recovery_point in [0, 16] {
        let mut rig = rolled();
        rig.fill(1);
        rig.checkpoint();
        rig.append(sized(200, NOW + 5));
        rig.fill(3);
        rig.flush();
        for (name, len) in [("index", 10_485_760), ("timeindex", 10_485_756)] {
            let name = format!("00000000000000000016.{name}");
            rig.write(&name, &[], 0);
            rig.set_len(&name, len);
        }
        rig.start.recovery_point = recovery_point;
        rig.kill();
        rig.open().expect("a log");
        assert_eq!(rig.log.log_end_offset(), 21);
        assert_eq!(rig.read_from(16).len(), 5);
        rig.restart();
        assert!(rig.bytes("00000000000000000016.index").len() <= 24);
    }
}

/// Bytes between index entries are counted anew after a start, and the time of the stop stays.
#[test]
fn a_segment_that_goes_on_after_a_stop() {
    let mut rig = Rig::new(LogConfig { index_interval_bytes: 100, ..LogConfig::default() });
    for stage in [&[0, 10][..], &[5, 20, 30], &[30, 1]] {
        for late in stage {
            rig.append(timed(&[NOW, NOW + late], Codec::None));
        }
        rig.restart();
        assert!(rig.report.clean);
    }
    check(&rig.bytes("00000000000000000000.index"), 8, &["0000000900000134"]);
    let time_index = ["0000018bcfe5680a00000003", "0000018bcfe5681e00000009"];
    check(&rig.bytes("00000000000000000000.timeindex"), 12, &time_index);
}

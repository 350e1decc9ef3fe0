//! One long course of everything a log does, with the power failing at its first call, its second,
//! and so on to its last: what was acknowledged is there afterwards, and nothing torn is.

use super::model::{Course, Op};

fn script() -> Vec<Op> {
    let mut ops = vec![Op::NewEpoch];
    for round in 0..3u8 {
        for n in 0..12 {
            ops.push(Op::Plain { records: n, late: n * 5 });
            ops.push(Op::Produce { id: n, txn: n % 4 == 1 });
            match n {
                3 => ops.push(Op::Flush),
                5 => ops.push(Op::End { id: 1, abort: round != 1 }),
                6 => ops.push(Op::Take),
                8 => ops.push(Op::Checkpoint),
                9 => ops.push(Op::Sync),
                10 => ops.push(Op::NewEpoch),
                _ => {}
            }
        }
        ops.push(match round {
            0 => Op::Retain { bytes: 2500 },
            1 => Op::Truncate(200),
            _ => Op::AdvanceStart(100),
        });
        ops.push(if round == 1 { Op::Restart } else { Op::Flush });
    }
    ops
}

#[test]
fn power_fails_at_every_call() {
    let script = script();
    for calls in 0.. {
        let mut course = Course::new(calls);
        course.rig.disk.cut_power_after(calls);
        script.iter().for_each(|op| course.step_quickly(op));
        course.check();
        if course.crashes == 0 {
            assert!(calls > 150, "the script makes many calls: {calls}");
            return;
        }
    }
}

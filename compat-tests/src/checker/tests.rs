//! Bad histories, made by hand: each must be found, and nothing else.

use super::*;

const RUN: u64 = 9;

/// `sent`: "seq@offset" acknowledged, "seq?" unknown, "seq!" refused; all of writer 1 to partition
/// 0. `log`: "offset:seq", with "xSEQ" damaged, "rSEQ" of another run, "pSEQ" meant for partition
/// 1, "wSEQ" of writer 2. `want`: the kinds of violation, in order.
#[track_caller]
fn check(sent: &str, log_start: i64, log: &str, want: &str) {
    let mut history = History { run: RUN, ..History::default() };
    history.log_start.insert(0, log_start);
    for word in sent.split_whitespace() {
        let (seq, outcome) = if let Some(seq) = word.strip_suffix('?') {
            (seq, Outcome::Unknown)
        } else if let Some(seq) = word.strip_suffix('!') {
            (seq, Outcome::Refused)
        } else {
            let (seq, offset) = word.split_once('@').expect("seq@offset");
            (seq, Outcome::Acked { offset: offset.parse().expect("an offset") })
        };
        let id = Id { writer: 1, seq: seq.parse().expect("a seq") };
        history.sent.insert(id, Sent { partition: 0, outcome });
    }
    let log: Vec<Found> = log.split_whitespace().map(found).collect();
    let kinds: Vec<String> = history
        .judge(&log)
        .iter()
        .map(|violation| violation.to_string().split(' ').next().unwrap_or("").to_owned())
        .collect();
    assert_eq!(kinds.join(" "), want, "{:?}", history.judge(&log));
}

fn found(word: &str) -> Found {
    let (offset, what) = word.split_once(':').expect("offset:what");
    let mark = what.trim_end_matches(|c: char| c.is_ascii_digit());
    let seq = what[mark.len()..].parse().expect("a seq");
    let writer = if mark == "w" { 2 } else { 1 };
    let run = if mark == "r" { RUN + 1 } else { RUN };
    let partition = i32::from(mark == "p");
    let claim = match mark {
        "x" => Err("the CRC does not match".to_owned()),
        _ => Ok(Claim { run, id: Id { writer, seq }, partition }),
    };
    Found { partition: 0, offset: offset.parse().expect("an offset"), claim }
}

#[test]
fn a_good_history_has_no_violations() {
    check("", 0, "", "");
    check("1@0 2@1 3@2", 0, "0:1 1:2 2:3", "");
}

#[test]
fn offsets_may_have_gaps() {
    check("1@0 2@5 3@9", 0, "0:1 5:2 9:3", "");
}

#[test]
fn an_unknown_record_may_be_there_once_or_not() {
    check("1@0 2? 3@1", 0, "0:1 1:3", "");
    check("1@0 2? 3@2", 0, "0:1 1:2 2:3", "");
}

#[test]
fn lost_first() {
    check("1@0 2@1", 0, "1:2", "LOST");
}

#[test]
fn lost_in_the_middle() {
    check("1@0 2@1 3@2", 0, "0:1 2:3", "LOST");
}

#[test]
fn lost_tail() {
    check("1@0 2@1 3@2", 0, "0:1", "LOST LOST");
}

#[test]
fn lost_everything() {
    check("1@0 2@1", 0, "", "LOST LOST");
}

#[test]
fn deleted_on_purpose_is_not_lost() {
    check("1@0 2@1 3@2", 2, "2:3", "");
    check("1@0 2@1 3@2", 1, "2:3", "LOST");
}

#[test]
fn duplicate_of_an_acknowledged_record() {
    check("1@0", 0, "0:1 1:1", "DUPLICATE");
    check("1@1", 0, "0:1 1:1", "DUPLICATE");
}

#[test]
fn duplicate_of_an_unknown_record() {
    check("1?", 0, "0:1 1:1", "DUPLICATE");
}

#[test]
fn three_times_is_one_violation() {
    check("1@0", 0, "0:1 1:1 2:1", "DUPLICATE");
}

#[test]
fn misplaced() {
    check("1@0 2@1", 0, "0:1 4:2", "MISPLACED");
}

#[test]
fn two_acknowledgements_of_one_place() {
    check("1@0 2@0", 0, "0:1", "LOST");
    check("1@0 2@0", 0, "0:1 1:2", "MISPLACED");
}

#[test]
fn reordered() {
    check("1@1 2@0", 0, "0:2 1:1", "REORDER");
    check("1? 2@0", 0, "0:2 1:1", "REORDER");
}

#[test]
fn reordered_far_apart() {
    check("1@4 2@1 3@2", 0, "1:2 2:3 4:1", "REORDER");
}

#[test]
fn a_retried_batch_after_later_ones_is_both() {
    check("1@0 2@1", 0, "0:1 1:2 2:1", "DUPLICATE REORDER");
}

#[test]
fn phantom_never_sent() {
    check("1@0", 0, "0:1 1:7", "PHANTOM");
    check("1@0", 0, "0:1 1:w1", "PHANTOM");
}

#[test]
fn phantom_refused() {
    check("1@0 2!", 0, "0:1 1:2", "PHANTOM");
}

#[test]
fn phantom_damaged() {
    check("1@0", 0, "0:x1", "PHANTOM LOST");
}

#[test]
fn phantom_of_another_run() {
    check("1@0", 0, "0:r1", "PHANTOM LOST");
}

#[test]
fn phantom_of_another_partition() {
    check("1@0", 0, "0:p1", "PHANTOM LOST");
}

#[test]
fn partitions_are_apart() {
    let mut history = History { run: RUN, ..History::default() };
    let ids = [Id { writer: 1, seq: 1 }, Id { writer: 2, seq: 1 }];
    for (partition, id) in (0..).zip(ids) {
        history.sent.insert(id, Sent { partition, outcome: Outcome::Acked { offset: 0 } });
    }
    let log = |at: [i32; 2]| -> Vec<Found> {
        let claim = |partition, id| Ok(Claim { run: RUN, id, partition });
        let all = (0..).zip(ids).zip(at);
        all.map(|((p, id), partition)| Found { partition, offset: 0, claim: claim(p, id) })
            .collect()
    };
    assert_eq!(history.judge(&log([0, 1])), []);
    // Both went to the other's partition: found nowhere they may be.
    assert_eq!(history.judge(&log([1, 0])).len(), 4);
}

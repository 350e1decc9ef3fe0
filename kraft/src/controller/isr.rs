//! What happens to the in-sync replicas and their relatives. Pure: lists in, lists out.
//!
//! Which ISR a leader may ask for (AlterPartition, KIP-903), when a reassignment is done, and who
//! is an eligible leader replica (KIP-966). Elections are `election.rs`; records are `change.rs`.

use protocol_compat::error::ErrorCode;

use super::request::{IsrChange, Refusal};
use crate::image::Partition;

/// `list` without the brokers that `gone` holds.
pub fn without(list: &[i32], gone: &[i32]) -> Vec<i32> {
    list.iter().copied().filter(|broker| !gone.contains(broker)).collect()
}

/// Whether every broker of `part` is in `whole`.
pub fn within(part: &[i32], whole: &[i32]) -> bool {
    part.iter().all(|broker| whole.contains(broker))
}

/// Whether a list names a broker twice.
pub fn has_duplicates(list: &[i32]) -> bool {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// The replicas and the ISR after a reassignment that is done; `None` if it is not.
///
/// It is done when the ISR, without the replicas on their way out, holds every replica that stays.
pub fn finish_reassignment(
    replicas: &[i32],
    isr: &[i32],
    adding: &[i32],
    removing: &[i32],
) -> Option<(Vec<i32>, Vec<i32>)> {
    if adding.is_empty() && removing.is_empty() {
        return None;
    }
    let (staying, in_sync) = (without(replicas, removing), without(isr, removing));
    let done = !staying.is_empty() && !in_sync.is_empty() && within(&staying, &in_sync);
    done.then_some((staying, in_sync))
}

/// The eligible leader replicas once the ISR is `isr`: nobody while the ISR reaches `min_isr`, for
/// then the high watermark moves without them; else whoever was in the ISR or eligible before and
/// is not in the ISR now. `unclean` lost what it had and is not eligible.
pub fn eligible(
    before: &Partition,
    isr: &[i32],
    replicas: &[i32],
    min_isr: usize,
    unclean: Option<i32>,
) -> Vec<i32> {
    if isr.len() >= min_isr {
        return Vec::new();
    }
    let mut all: Vec<i32> = before.elr.iter().chain(&before.isr).copied().collect();
    all.sort_unstable();
    all.dedup();
    all.retain(|broker| {
        !isr.contains(broker) && replicas.contains(broker) && Some(*broker) != unclean
    });
    all
}

/// Whether the leader `sender` may have the ISR it asks for. `ineligible` says of a broker and the
/// epoch the leader knows it under whether it must not join.
pub fn check_wish(
    partition: &Partition,
    sender: i32,
    wish: &IsrChange,
    ineligible: &dyn Fn(i32, i64) -> bool,
) -> Result<(), Refusal> {
    let isr: Vec<i32> = wish.isr.iter().map(|(broker, _)| *broker).collect();
    let code = if wish.leader_epoch > partition.leader_epoch
        || wish.partition_epoch > partition.partition_epoch
    {
        // The leader knows more than this node: another controller is active.
        ErrorCode::NotController
    } else if wish.leader_epoch < partition.leader_epoch {
        ErrorCode::FencedLeaderEpoch
    } else if sender != partition.leader {
        ErrorCode::InvalidRequest
    } else if wish.partition_epoch < partition.partition_epoch {
        ErrorCode::InvalidUpdateVersion
    } else if !within(&isr, &partition.replicas)
        || has_duplicates(&isr)
        || !isr.contains(&partition.leader)
        || (wish.recovering && (isr.len() > 1 || !partition.recovering))
    {
        ErrorCode::InvalidRequest
    } else if wish.isr.iter().any(|(broker, epoch)| ineligible(*broker, *epoch)) {
        ErrorCode::IneligibleReplica
    } else {
        return Ok(());
    };
    Err(Refusal::bare(code))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::partition;
    use super::*;

    /// Lists are `replicas / isr / adding / removing`; `want` is `replicas / isr`, or "-".
    #[track_caller]
    fn check_finish(lists: &str, want: &str) {
        let lists: Vec<Vec<i32>> = lists.split('/').map(ids).collect();
        let got = finish_reassignment(&lists[0], &lists[1], &lists[2], &lists[3]);
        let want: Option<Vec<Vec<i32>>> = (want != "-").then(|| want.split('/').map(ids).collect());
        assert_eq!(got.map(|(replicas, isr)| vec![replicas, isr]), want, "{lists:?}");
    }

    fn ids(text: &str) -> Vec<i32> {
        text.split_whitespace().map(|id| id.parse().unwrap()).collect()
    }

    #[test]
    fn reassignments_end_when_the_new_replicas_are_in_sync() {
        check_finish("1 2 3 / 1 2 3 / /", "-"); // None is running.
        check_finish("4 2 1 / 1 2 / 4 / 1", "-"); // 4 lags.
        check_finish("4 2 1 / 1 2 4 / 4 / 1", "4 2 / 2 4");
        check_finish("4 2 1 / 1 4 / 4 / 1", "-"); // 2 lags.
        check_finish("2 1 / 1 2 / / 1", "2 / 2");
        check_finish("2 1 / 1 / / 1", "-"); // Nobody would be left in sync.
        check_finish("1 2 / 1 2 / 2 /", "1 2 / 1 2");
    }

    /// `before` is `isr / elr` of replicas 1 2 3.
    #[track_caller]
    fn check_eligible(before: &str, isr: &str, min_isr: usize, unclean: i32, want: &str) {
        let mut partition = partition("1 2 3");
        let (old_isr, elr) = before.split_once('/').unwrap();
        (partition.isr, partition.elr) = (ids(old_isr), ids(elr));
        let unclean = Some(unclean).filter(|id| *id != 0);
        let got = eligible(&partition, &ids(isr), &[1, 2, 3], min_isr, unclean);
        assert_eq!(got, ids(want), "{before} -> {isr}, min {min_isr}, unclean {unclean:?}");
    }

    #[test]
    fn who_is_eligible() {
        check_eligible("1 2 3 /", "1 2", 2, 0, ""); // The ISR is big enough.
        check_eligible("1 2 3 /", "1", 2, 0, "2 3");
        check_eligible("1 2 /", "1", 2, 0, "2");
        check_eligible("1 / 2", "", 2, 0, "1 2");
        check_eligible("1 / 2", "1", 2, 2, ""); // 2 came back without its log.
        check_eligible("1 / 2 3", "1 2", 2, 0, ""); // Back to strength.
        check_eligible("1 / 2 3", "1 2", 3, 0, "3");
        check_eligible("1 /", "", 1, 0, "1"); // The only replica.
        check_eligible("1 /", "", 1, 1, "");
    }

    /// The partition: replicas 1 2 3, leader 1, leader epoch 5, partition epoch 7. Broker 3 must
    /// not join, nor broker 2 under epoch 8.
    #[track_caller]
    fn check_wish_code(sender: i32, epochs: (i32, i32), isr: &[(i32, i64)], want: ErrorCode) {
        let mut partition = partition("1 2 3");
        (partition.leader_epoch, partition.partition_epoch) = (5, 7);
        let wish = IsrChange {
            topic_id: uuid::Uuid::nil(),
            partition: 0,
            leader_epoch: epochs.0,
            partition_epoch: epochs.1,
            isr: isr.to_vec(),
            recovering: false,
        };
        let ineligible = |broker, epoch| broker == 3 || (broker, epoch) == (2, 8);
        let got = check_wish(&partition, sender, &wish, &ineligible);
        let got = got.map_or_else(|refusal| refusal.code, |()| ErrorCode::None);
        assert_eq!(got, want, "sender {sender}, epochs {epochs:?}, isr {isr:?}");
    }

    #[test]
    fn what_a_leader_may_ask_for() {
        let isr = [(1, 9), (2, 9)];
        check_wish_code(1, (5, 7), &isr, ErrorCode::None);
        check_wish_code(1, (5, 7), &[(1, -1)], ErrorCode::None);
        check_wish_code(1, (6, 7), &isr, ErrorCode::NotController);
        check_wish_code(1, (5, 8), &isr, ErrorCode::NotController);
        check_wish_code(1, (4, 7), &isr, ErrorCode::FencedLeaderEpoch);
        check_wish_code(2, (5, 7), &isr, ErrorCode::InvalidRequest);
        check_wish_code(1, (5, 6), &isr, ErrorCode::InvalidUpdateVersion);
        check_wish_code(2, (5, 6), &isr, ErrorCode::InvalidRequest); // The sender comes first.
        check_wish_code(1, (5, 7), &[(1, 9), (4, 9)], ErrorCode::InvalidRequest);
        check_wish_code(1, (5, 7), &[(1, 9), (1, 9)], ErrorCode::InvalidRequest);
        check_wish_code(1, (5, 7), &[(2, 9)], ErrorCode::InvalidRequest);
        check_wish_code(1, (5, 7), &[], ErrorCode::InvalidRequest);
        check_wish_code(1, (5, 7), &[(1, 9), (3, 9)], ErrorCode::IneligibleReplica);
        check_wish_code(1, (5, 7), &[(1, 9), (2, 8)], ErrorCode::IneligibleReplica);
    }

    #[test]
    fn a_recovering_leader_stays_alone() {
        let mut partition = partition("1 2 3");
        let mut wish = IsrChange {
            topic_id: uuid::Uuid::nil(),
            partition: 0,
            leader_epoch: 0,
            partition_epoch: 0,
            isr: vec![(1, 9)],
            recovering: true,
        };
        let fine = |_, _| false;
        assert!(check_wish(&partition, 1, &wish, &fine).is_err()); // It had recovered before.
        partition.recovering = true;
        assert!(check_wish(&partition, 1, &wish, &fine).is_ok());
        wish.isr.push((2, 9));
        assert!(check_wish(&partition, 1, &wish, &fine).is_err());
        wish.recovering = false;
        assert!(check_wish(&partition, 1, &wish, &fine).is_ok());
    }
}

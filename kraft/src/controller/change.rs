//! From a wish for a partition to the record that brings it about. Pure.
//!
//! Every change of a partition goes through [`change`], so that election, ELR, reassignment and
//! epochs always follow together (Kafka's `PartitionChangeBuilder`).

use uuid::Uuid;

use super::election::{Candidates, Elected, Election, elect};
use super::isr::{eligible, finish_reassignment, within};
use crate::image::Partition;
use crate::record::{NO_LEADER, PartitionChangeRecord};

/// What a partition shall become.
#[derive(Clone, Debug)]
pub struct Target {
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
    pub adding: Vec<i32>,
    pub removing: Vec<i32>,
    pub recovering: bool,
    /// A broker that keeps its replica in another directory than before.
    pub moved: Option<(i32, Uuid)>,
    /// A broker that came back without knowing that its log is whole.
    pub unclean: Option<i32>,
    pub election: Election,
}

impl Target {
    /// The partition as it is, but led by whoever should lead now.
    pub fn keep(partition: &Partition, election: Election) -> Target {
        Target {
            replicas: partition.replicas.clone(),
            isr: partition.isr.clone(),
            adding: partition.adding.clone(),
            removing: partition.removing.clone(),
            recovering: partition.recovering,
            moved: None,
            unclean: None,
            election,
        }
    }
}

/// What surrounds the partition.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// Whether eligible leader replicas are kept (KIP-966). If not, the last member never leaves
    /// the ISR.
    pub elr: bool,
    /// min.insync.replicas of the topic, not above its replication factor.
    pub min_isr: usize,
    /// Whether a broker may lead: alive, directory online.
    pub acceptable: &'a dyn Fn(i32) -> bool,
    /// Where a broker puts a new replica; zero = it has not said.
    pub new_directory: &'a dyn Fn(i32) -> Uuid,
}

/// The record that makes `partition` what `target` says; `None` if it is that already.
pub fn change(
    at: (Uuid, i32),
    partition: &Partition,
    mut target: Target,
    conditions: &Conditions<'_>,
) -> Option<PartitionChangeRecord> {
    let empty = PartitionChangeRecord { topic_id: at.0, partition: at.1, ..Default::default() };
    let mut record = empty.clone();
    let Target { replicas, isr, adding, removing, .. } = &target;
    if let Some((replicas, isr)) = finish_reassignment(replicas, isr, adding, removing) {
        (target.replicas, target.isr) = (replicas, isr);
        target.adding.clear();
        target.removing.clear();
    }
    let mut elr = Vec::new();
    if conditions.elr {
        let Target { isr, replicas, unclean, .. } = &target;
        elr = eligible(partition, isr, replicas, conditions.min_isr, *unclean);
    }
    let elected = hold_election(partition, &target, &elr, conditions);
    if elected.leader != partition.leader {
        record.leader = Some(elected.leader);
    } else if !within(&partition.replicas, &target.replicas) {
        // A replica is dropped: the leader must notice, so its epoch rises.
        record.leader = Some(partition.leader);
    }
    if elected.leader != NO_LEADER && !target.isr.contains(&elected.leader) {
        // A leader from outside the ISR starts alone.
        target.isr = vec![elected.leader];
        elr.retain(|broker| *broker != elected.leader);
    }
    if elected.unclean {
        elr.clear();
        target.recovering = true;
    }
    // Without ELR an ISR never runs empty: its last members are those who may lead again.
    if (conditions.elr || !target.isr.is_empty()) && target.isr != partition.isr {
        record.isr = Some(target.isr.clone());
    }
    record.elr = differs(&elr, &partition.elr);
    record.last_known_elr = last_known(partition, &record, conditions.elr);
    put_assignment(&mut record, partition, &target, conditions);
    record.recovering = (target.recovering != partition.recovering).then_some(target.recovering);
    (record != empty).then_some(record)
}

fn hold_election(
    partition: &Partition,
    target: &Target,
    elr: &[i32],
    conditions: &Conditions<'_>,
) -> Elected {
    let last_known_leader = match partition.last_known_elr.as_slice() {
        [leader] if conditions.elr => Some(*leader),
        _ => None,
    };
    let candidates = Candidates {
        leader: partition.leader,
        replicas: &target.replicas,
        isr: &target.isr,
        elr,
        last_known_leader,
        acceptable: conditions.acceptable,
    };
    elect(target.election, &candidates)
}

/// The last leader is remembered when the ISR runs empty, and forgotten when there is a leader
/// again.
fn last_known(before: &Partition, record: &PartitionChangeRecord, elr: bool) -> Option<Vec<i32>> {
    let leader = record.leader.unwrap_or(before.leader);
    let wanted = if !elr || leader != NO_LEADER {
        Vec::new()
    } else if record.isr.as_ref().is_some_and(Vec::is_empty) && before.leader != NO_LEADER {
        vec![before.leader]
    } else {
        return None;
    };
    differs(&wanted, &before.last_known_elr)
}

fn put_assignment(
    record: &mut PartitionChangeRecord,
    before: &Partition,
    target: &Target,
    conditions: &Conditions<'_>,
) {
    let directory = |broker: &i32| match target.moved {
        Some((moved, directory)) if moved == *broker => directory,
        _ => before.directory(*broker).unwrap_or_else(|| (conditions.new_directory)(*broker)),
    };
    let directories: Vec<Uuid> = target.replicas.iter().map(directory).collect();
    record.directories = (directories != before.directories).then_some(directories);
    record.replicas = differs(&target.replicas, &before.replicas);
    record.removing = differs(&target.removing, &before.removing);
    record.adding = differs(&target.adding, &before.adding);
}

fn differs(wanted: &[i32], before: &[i32]) -> Option<Vec<i32>> {
    (wanted != before).then(|| wanted.to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{partition, show};
    use super::*;

    /// One partition with replicas 1 2 3, led by 1, all in sync; min.insync.replicas 2.
    struct Case {
        partition: Partition,
        dead: Vec<i32>,
        elr: bool,
    }

    impl Case {
        fn new(elr: bool) -> Case {
            Case { partition: partition("1 2 3"), dead: Vec::new(), elr }
        }

        /// Changes the partition and shows what it is then.
        fn go(&mut self, edit: impl FnOnce(&mut Target)) -> String {
            let mut target = Target::keep(&self.partition, Election::Online);
            edit(&mut target);
            let acceptable = |id: i32| !self.dead.contains(&id);
            let conditions = Conditions {
                elr: self.elr,
                min_isr: 2,
                acceptable: &acceptable,
                new_directory: &|_| Uuid::nil(),
            };
            match change((Uuid::nil(), 0), &self.partition, target, &conditions) {
                None => "same".to_string(),
                Some(record) => {
                    self.partition = self.partition.merge(&record);
                    show(&self.partition)
                }
            }
        }

        /// The broker dies, is fenced, and leaves the ISR.
        fn lose(&mut self, broker: i32) -> String {
            self.dead.push(broker);
            self.go(|target| target.isr.retain(|id| *id != broker))
        }

        /// The broker is unfenced.
        fn back(&mut self, broker: i32) -> String {
            self.dead.retain(|id| *id != broker);
            self.go(|_| {})
        }
    }

    #[test]
    fn with_elr_the_isr_may_run_empty() {
        let mut case = Case::new(true);
        assert_eq!(case.go(|_| {}), "same");
        assert_eq!(case.lose(3), "1 2 3 leader 1@0 isr 1 2");
        assert_eq!(case.lose(1), "1 2 3 leader 2@1 isr 2 elr 1");
        assert_eq!(case.lose(2), "1 2 3 leader -1@2 isr - elr 1 2 last 2");
        assert_eq!(case.back(3), "same"); // 3 was out of sync long before.
        assert_eq!(case.back(1), "1 2 3 leader 1@3 isr 1 elr 2");
        assert_eq!(case.go(|target| target.isr = vec![1, 3]), "1 2 3 leader 1@3 isr 1 3");
    }

    #[test]
    fn without_elr_the_last_member_stays() {
        let mut case = Case::new(false);
        assert_eq!(case.lose(3), "1 2 3 leader 1@0 isr 1 2");
        assert_eq!(case.lose(1), "1 2 3 leader 2@1 isr 2");
        assert_eq!(case.lose(2), "1 2 3 leader -1@2 isr 2");
        assert_eq!(case.back(1), "same");
        assert_eq!(case.back(2), "1 2 3 leader 2@3 isr 2");
    }

    #[test]
    fn who_lost_its_log_leads_only_as_the_last_known_leader() {
        let mut case = Case::new(true);
        case.lose(3);
        case.lose(1);
        case.lose(2);
        // Both come back without knowing that their logs are whole.
        let forget = |broker: i32| move |target: &mut Target| target.unclean = Some(broker);
        assert_eq!(case.go(forget(1)), "1 2 3 leader -1@2 isr - elr 2 last 2");
        assert_eq!(case.back(1), "same");
        assert_eq!(case.go(forget(2)), "1 2 3 leader -1@2 isr - last 2");
        assert_eq!(case.back(2), "1 2 3 leader 2@3 isr 2 recovering");
        assert_eq!(case.go(|target| target.recovering = false), "1 2 3 leader 2@3 isr 2");
    }

    #[test]
    fn unclean_elections_throw_the_rest_out() {
        for elr in [false, true] {
            let mut case = Case::new(elr);
            case.dead = vec![1, 2];
            let got = case.go(|target| {
                target.isr.clear();
                target.election = Election::Unclean;
                target.unclean = Some(3);
            });
            assert_eq!(got, "1 2 3 leader 3@1 isr 3 recovering", "elr {elr}");
        }
    }

    #[test]
    fn a_reassignment_ends_by_itself() {
        let mut case = Case::new(true);
        let start = |target: &mut Target| {
            target.replicas = vec![4, 2, 3, 1];
            (target.adding, target.removing) = (vec![4], vec![1]);
        };
        assert_eq!(case.go(start), "4 2 3 1 leader 1@0 isr 1 2 3 adding 4 removing 1");
        assert_eq!(case.go(|t| t.isr = vec![1, 2, 3, 4]), "4 2 3 leader 4@1 isr 2 3 4");
    }

    #[test]
    fn dropping_a_replica_raises_the_leader_epoch() {
        let mut case = Case::new(true);
        let start = |target: &mut Target| {
            target.replicas = vec![1, 2, 3];
            target.removing = vec![3];
        };
        assert_eq!(case.go(start), "1 2 leader 1@1 isr 1 2");
    }

    #[test]
    fn the_epoch_of_the_partition_rises_with_each_change() {
        let mut case = Case::new(true);
        case.lose(3);
        case.lose(2);
        assert_eq!((case.partition.leader_epoch, case.partition.partition_epoch), (0, 2));
        let moved = Uuid::from_u128(7);
        case.go(|target| target.moved = Some((2, moved)));
        assert_eq!(case.partition.directories[1], moved);
        assert_eq!((case.partition.leader_epoch, case.partition.partition_epoch), (0, 3));
    }
}

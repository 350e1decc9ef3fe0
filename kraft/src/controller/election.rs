//! Who leads a partition. Pure: looks at lists of broker ids and at who may lead.
//!
//! Rules of Kafka's `PartitionChangeBuilder`, with ELR and the last known leader (KIP-966), except
//! that a last known leader must be alive. What else changes with the leader is `change.rs`.

use crate::record::NO_LEADER;

/// How far an election may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// The first replica if it can lead, else as `Online`.
    Preferred,
    /// Only a replica that holds every committed record.
    Online,
    /// As `Online`, but rather a replica that lost records than no leader.
    Unclean,
}

/// What an election looks at.
#[derive(Clone, Copy)]
pub struct Candidates<'a> {
    /// The present leader, or [`NO_LEADER`].
    pub leader: i32,
    /// Replicas, in order of preference, as they will be after the change.
    pub replicas: &'a [i32],
    /// The ISR as it will be.
    pub isr: &'a [i32],
    /// The eligible leader replicas as they will be.
    pub elr: &'a [i32],
    /// Who led last, if ISR and ELR ran empty; `None` if nobody or if the ELR feature is off.
    pub last_known_leader: Option<i32>,
    /// Whether a broker is alive and has the replica's directory online.
    pub acceptable: &'a dyn Fn(i32) -> bool,
}

/// The outcome of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elected {
    /// [`NO_LEADER`] if nobody can lead.
    pub leader: i32,
    /// The leader may lack committed records.
    pub unclean: bool,
}

impl Candidates<'_> {
    /// In the ISR, or in the ELR when the ISR is empty, and alive.
    fn is_clean(&self, broker: i32) -> bool {
        let eligible =
            self.isr.contains(&broker) || (self.isr.is_empty() && self.elr.contains(&broker));
        eligible && (self.acceptable)(broker)
    }

    fn last_known(&self) -> Option<i32> {
        let lost_all = self.isr.is_empty() && self.elr.is_empty();
        self.last_known_leader
            .filter(|leader| lost_all && self.replicas.contains(leader))
            .filter(|leader| (self.acceptable)(*leader))
    }

    fn any_alive(&self) -> Option<i32> {
        self.replicas.iter().copied().find(|replica| (self.acceptable)(*replica))
    }
}

/// Elects. A present leader that still can lead stays, unless the preferred one is wanted and can.
pub fn elect(election: Election, candidates: &Candidates<'_>) -> Elected {
    let preferred = (election == Election::Preferred)
        .then(|| candidates.replicas.first().copied())
        .flatten()
        .filter(|replica| candidates.is_clean(*replica));
    let clean = preferred
        .or_else(|| Some(candidates.leader).filter(|leader| candidates.is_clean(*leader)))
        .or_else(|| candidates.replicas.iter().copied().find(|r| candidates.is_clean(*r)));
    if let Some(leader) = clean {
        return Elected { leader, unclean: false };
    }
    let unclean = candidates
        .last_known()
        .or_else(|| candidates.any_alive().filter(|_| election == Election::Unclean));
    match unclean {
        Some(leader) => Elected { leader, unclean: true },
        None => Elected { leader: NO_LEADER, unclean: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `replicas`: in order, `*` leads now, `+` in the ISR, `~` in the ELR, `^` led last,
    /// `!` cannot lead. `want`: leader, with `?` if unclean; "-" for none.
    #[track_caller]
    fn check(election: Election, replicas: &str, want: &str) {
        let (mut leader, mut last_known_leader) = (NO_LEADER, None);
        let (mut all, mut isr, mut elr, mut dead) = (vec![], vec![], vec![], vec![]);
        for word in replicas.split_whitespace() {
            let id: i32 = word.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
            all.push(id);
            for mark in word.chars().filter(|c| !c.is_ascii_digit()) {
                match mark {
                    '*' => leader = id,
                    '+' => isr.push(id),
                    '~' => elr.push(id),
                    '^' => last_known_leader = Some(id),
                    '!' => dead.push(id),
                    _ => panic!("unknown mark"),
                }
            }
        }
        let acceptable = |id: i32| !dead.contains(&id);
        let candidates = Candidates {
            leader,
            replicas: &all,
            isr: &isr,
            elr: &elr,
            last_known_leader,
            acceptable: &acceptable,
        };
        let got = elect(election, &candidates);
        let mark = if got.unclean { "?" } else { "" };
        let text = match got.leader {
            NO_LEADER => "-".to_string(),
            id => format!("{id}{mark}"),
        };
        assert_eq!(text, want, "{election:?} {replicas}");
    }

    #[test]
    fn a_leader_that_can_lead_stays() {
        check(Election::Online, "1+ 2+* 3+", "2");
        check(Election::Unclean, "1+ 2+* 3+", "2");
        check(Election::Preferred, "1+! 2+* 3+", "2");
        check(Election::Preferred, "1 2+* 3+", "2"); // The preferred one is out of sync.
    }

    #[test]
    fn the_preferred_leader_takes_over() {
        check(Election::Preferred, "1+ 2+* 3+", "1");
        check(Election::Preferred, "1+* 2+ 3+", "1");
    }

    #[test]
    fn the_first_in_sync_replica_follows() {
        check(Election::Online, "1+*! 2 3+", "3");
        check(Election::Online, "1*! 2+ 3+", "2");
        check(Election::Preferred, "1+*! 2 3+", "3");
        check(Election::Online, "1+! 2+ 3", "2"); // There was no leader.
    }

    #[test]
    fn nobody_leads_when_the_isr_is_dead() {
        check(Election::Online, "1+*! 2 3", "-");
        check(Election::Preferred, "1+*! 2 3", "-");
        check(Election::Online, "1*! 2 3", "-");
    }

    #[test]
    fn unclean_takes_any_replica_alive() {
        check(Election::Unclean, "1+*! 2 3", "2?");
        check(Election::Unclean, "1+*! 2! 3", "3?");
        check(Election::Unclean, "1+*! 2! 3!", "-");
        check(Election::Unclean, "1+*! 2! 3+", "3");
    }

    #[test]
    fn the_elr_counts_only_when_the_isr_is_empty() {
        check(Election::Online, "1 2~ 3", "2");
        check(Election::Online, "1 2~! 3", "-");
        check(Election::Online, "1+! 2~ 3", "-");
        check(Election::Unclean, "1 2 3~", "3"); // Clean before unclean.
    }

    #[test]
    fn the_last_known_leader_is_the_last_resort() {
        check(Election::Online, "1 2^ 3", "2?");
        check(Election::Preferred, "1 2^ 3", "2?");
        check(Election::Online, "1 2^! 3", "-");
        check(Election::Unclean, "1 2^! 3", "1?");
        check(Election::Online, "1 2^ 3~!", "-"); // Someone in the ELR may come back.
        check(Election::Online, "1+! 2^ 3", "-");
    }
}

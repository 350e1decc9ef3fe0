//! On which brokers the replicas of new partitions go. Pure: brokers and a source of chance in.
//!
//! Kafka's `StripedReplicaPlacer`: leaders go round the racks and their live brokers; the other
//! replicas go to one rack after the other, live brokers before fenced ones; no broker twice. When
//! every live broker has led once, the order is shuffled, so that the same sets do not come again.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::request::Refusal;
use protocol_compat::error::ErrorCode;

/// A broker that may get replicas. Brokers on their way out are left out by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usable {
    pub id: i32,
    pub rack: Option<Arc<str>>,
    pub fenced: bool,
}

/// Replicas for `partitions` new partitions, `factor` each; the first of each is the preferred
/// leader.
///
/// Refuses with INVALID_REPLICATION_FACTOR if there are not enough brokers, or none alive.
pub fn place(
    brokers: &[Usable],
    partitions: usize,
    factor: usize,
    random: &mut dyn FnMut() -> u128,
) -> Result<Vec<Vec<i32>>, Refusal> {
    let refuse = |text: String| Err(Refusal::new(ErrorCode::InvalidReplicationFactor, text));
    if factor == 0 {
        return refuse(format!(
            "Invalid replication factor {factor}: the replication factor must be positive."
        ));
    }
    if brokers.iter().all(|broker| broker.fenced) {
        return refuse(
            "All brokers are currently fenced or have all their log directories cordoned.".into(),
        );
    }
    if factor > brokers.len() {
        return refuse(format!(
            "The target replication factor of {factor} cannot be reached because only {} broker(s) \
             are registered or some brokers have all their log directories cordoned.",
            brokers.len()
        ));
    }
    let mut racks = Racks::new(brokers, random);
    Ok((0..partitions).map(|_| racks.next(factor, random)).collect())
}

/// A number below `bound`, which is not 0.
fn below(bound: usize, random: &mut dyn FnMut() -> u128) -> usize {
    (random() % bound as u128) as usize
}

fn shuffle<T>(items: &mut [T], random: &mut dyn FnMut() -> u128) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last + 1, random));
    }
}

/// Brokers of one rack and state, dealt in turn. Each round starts one further than the one before.
#[derive(Default)]
struct Deck {
    brokers: Vec<i32>,
    start: usize,
    dealt: usize,
    round: usize,
}

impl Deck {
    /// The next broker of this round; `None` once each was dealt.
    fn next(&mut self, round: usize) -> Option<i32> {
        if self.brokers.is_empty() {
            return None;
        }
        if self.round != round {
            self.round = round;
            self.dealt = 0;
            self.start = (self.start + 1) % self.brokers.len();
        }
        if self.dealt == self.brokers.len() {
            return None;
        }
        self.dealt += 1;
        Some(self.brokers[(self.start + self.dealt - 1) % self.brokers.len()])
    }
}

#[derive(Default)]
struct Rack {
    live: Deck,
    fenced: Deck,
}

struct Racks {
    racks: Vec<Rack>,
    /// The rack that leads next.
    turn: usize,
    /// Partitions placed so far.
    round: usize,
    live: usize,
}

impl Racks {
    fn new(brokers: &[Usable], random: &mut dyn FnMut() -> u128) -> Racks {
        let mut racks: BTreeMap<Option<Arc<str>>, Rack> = BTreeMap::new();
        for broker in brokers {
            let rack = racks.entry(broker.rack.clone()).or_default();
            let deck = if broker.fenced { &mut rack.fenced } else { &mut rack.live };
            deck.brokers.push(broker.id);
        }
        let mut racks: Vec<Rack> = racks.into_values().collect();
        for deck in racks.iter_mut().flat_map(|rack| [&mut rack.live, &mut rack.fenced]) {
            deck.brokers.sort_unstable();
            if !deck.brokers.is_empty() {
                deck.start = below(deck.brokers.len(), random);
            }
        }
        let turn = below(racks.len(), random);
        let live = brokers.iter().filter(|broker| !broker.fenced).count();
        Racks { racks, turn, round: 0, live }
    }

    fn next(&mut self, factor: usize, random: &mut dyn FnMut() -> u128) -> Vec<i32> {
        // One live broker alone would be shuffled for ever.
        if self.live > 1 && self.round > 0 && self.round.is_multiple_of(self.live) {
            self.shuffle(random);
        }
        let (round, count) = (self.round, self.racks.len());
        let turns = |from: usize| (from..from + count).map(move |turn| turn % count);
        let mut replicas = Vec::with_capacity(factor);
        // The leader comes from the first rack in turn that has a live broker left.
        let mut leading = None;
        for rack in turns(self.turn) {
            if let Some(broker) = self.racks[rack].live.next(round) {
                replicas.push(broker);
                leading = Some(rack);
                break;
            }
        }
        assert!(leading.is_some(), "a broker is alive and was not dealt in this round");
        // The others come from all racks in turn; the leader's rack is passed over once.
        let mut rack = self.turn;
        while replicas.len() < factor {
            if leading == Some(rack) {
                leading = None;
            } else {
                let rack = &mut self.racks[rack];
                replicas.extend(rack.live.next(round).or_else(|| rack.fenced.next(round)));
            }
            rack = (rack + 1) % count;
        }
        self.round += 1;
        self.turn = (self.turn + 1) % count;
        replicas
    }

    fn shuffle(&mut self, random: &mut dyn FnMut() -> u128) {
        shuffle(&mut self.racks, random);
        for rack in &mut self.racks {
            shuffle(&mut rack.live.brokers, random);
            shuffle(&mut rack.fenced.brokers, random);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Dice;
    use super::*;

    /// `brokers`: `id@rack`, `!` = fenced; no rack without `@`.
    fn usable(brokers: &str) -> Vec<Usable> {
        let parse = |word: &str| {
            let fenced = word.ends_with('!');
            let word = word.trim_end_matches('!');
            let (id, rack) = word.split_once('@').map_or((word, None), |(id, r)| (id, Some(r)));
            Usable { id: id.parse().unwrap(), rack: rack.map(Arc::from), fenced }
        };
        brokers.split_whitespace().map(parse).collect()
    }

    /// Places many partitions under many seeds: no broker twice, leaders live, leaders and replicas
    /// spread, each set over as many racks as there are.
    #[track_caller]
    fn check(brokers: &str, factor: usize) {
        let usable = usable(brokers);
        let racks = |ids: &[i32]| {
            let mut racks: Vec<_> =
                usable.iter().filter(|b| ids.contains(&b.id)).map(|b| &b.rack).collect();
            racks.sort();
            racks.dedup();
            racks.len()
        };
        let all: Vec<i32> = usable.iter().map(|broker| broker.id).collect();
        for seed in 0..50 {
            let mut dice = Dice::new(seed);
            let placed = place(&usable, 120, factor, &mut || dice.roll()).unwrap();
            let mut led: BTreeMap<i32, usize> = BTreeMap::new();
            for replicas in &placed {
                assert_eq!(replicas.len(), factor);
                assert!(!super::super::isr::has_duplicates(replicas), "{replicas:?}");
                assert!(usable.iter().any(|b| b.id == replicas[0] && !b.fenced));
                assert_eq!(racks(replicas), factor.min(racks(&all)), "{replicas:?}");
                *led.entry(replicas[0]).or_default() += 1;
            }
            let live = usable.iter().filter(|broker| !broker.fenced).count();
            assert_eq!(led.len(), live, "every live broker leads, seed {seed}");
        }
    }

    #[test]
    fn replicas_spread_over_brokers_and_racks() {
        check("1", 1);
        check("1 2 3", 1);
        check("1 2 3", 3);
        check("1 2 3!", 3);
        check("1@a 2@b 3@c", 2);
        check("1@a 2@a 3@b 4@b", 2);
        check("1@a 2@a 3@b 4@b 5@c 6@c", 3);
        check("1@a 2@a 3@b 4@b! 5@c!", 3);
        check("1@a 2@a 3@b", 3);
    }

    #[test]
    fn leaders_take_turns() {
        for seed in 0..50 {
            let mut dice = Dice::new(seed);
            let placed = place(&usable("1 2 3 4"), 4, 3, &mut || dice.roll()).unwrap();
            let mut leaders: Vec<i32> = placed.iter().map(|replicas| replicas[0]).collect();
            leaders.sort_unstable();
            assert_eq!(leaders, [1, 2, 3, 4], "seed {seed}");
        }
    }

    #[test]
    fn too_few_brokers() {
        let mut none = || 0;
        for (brokers, factor) in [("1 2", 3), ("", 1), ("1! 2!", 1), ("1", 0)] {
            let refusal = place(&usable(brokers), 1, factor, &mut none).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::InvalidReplicationFactor, "{brokers} {factor}");
        }
    }
}

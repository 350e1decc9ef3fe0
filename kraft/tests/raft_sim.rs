//! The quorum under faults: whole clusters in virtual time, from a seed.
//!
//! Each seed draws its own mix of faults (`sim/plan.rs`), runs them against 1, 3 or 5 voters and
//! some learners with disks that lose what was not synced (`sim/world.rs`), and checks after every
//! step what Raft promises (`sim/check.rs`). Then all is healed and the cluster must come together.
//! More seeds, or one alone: `RAFT_SEEDS=17..18 RAFT_VOTERS=3 cargo test -p kraft --test raft_sim
//! more`.

mod sim;

use std::ops::Range;

use sim::{Summary, run};

/// Runs seeds; the faults that they met together, so that a sweep which tests nothing is noticed.
fn sweep(voters: usize, seeds: Range<u64>) -> Summary {
    let mut all = Summary::default();
    for seed in seeds {
        all.add(&run(voters, seed));
    }
    all
}

#[test]
fn one_voter() {
    let all = sweep(1, 0..40);
    assert!(all.crashes > 40 && all.committed > 1000, "{all:?}");
}

#[test]
fn three_voters() {
    let all = sweep(3, 1000..1100);
    assert!(all.crashes > 100 && all.committed > 3000, "{all:?}");
    assert!(all.snapshots_installed > 50 && all.leaders > 120, "{all:?}");
    assert!(all.member_changes > 50 && all.failed_writes > 20, "{all:?}");
}

#[test]
fn five_voters() {
    let all = sweep(5, 2000..2040);
    assert!(all.crashes > 30 && all.committed > 1000, "{all:?}");
    assert!(all.snapshots_installed > 20 && all.leaders > 50, "{all:?}");
}

/// Seeds that once found something, with what they found.
#[test]
fn seeds_that_failed_before() {
    run(3, 10268); // A leader that was removed by the one before it: raft-rs panics.
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for (voters, seed) in [(1, 1), (3, 2), (3, 3), (3, 4), (5, 5), (5, 6)] {
        assert_eq!(run(voters, seed), run(voters, seed), "voters {voters}, seed {seed}");
    }
    assert_ne!(run(3, 7).trace, run(3, 8).trace);
}

#[test]
fn more() {
    let Ok(seeds) = std::env::var("RAFT_SEEDS") else { return };
    let (from, to) = seeds.split_once("..").expect("RAFT_SEEDS is from..to");
    let seeds = from.parse().expect("a number")..to.parse().expect("a number");
    let sizes = std::env::var("RAFT_VOTERS").unwrap_or("1,3,5".to_owned());
    for voters in sizes.split(',').map(|size| size.parse().expect("a number")) {
        println!("{voters} voters: {:?}", sweep(voters, seeds.clone()));
    }
}

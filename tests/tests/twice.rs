//! The same seed twice is the same run: every byte on the network and every fault at the same time.

use std::thread;

use tests::trace;
use tests::world::run_seed;

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

#[test]
fn a_seed_run_twice_leaves_one_trace() {
    for seed in SEEDS {
        // Side by side, so that something shared by the process would show, too.
        let other = thread::spawn(move || run_seed(seed).trace);
        let first = run_seed(seed).trace;
        let second = other.join().expect("the second run panicked");
        assert!(first.len() > 100, "seed {seed} did next to nothing");
        let differs = first.iter().zip(&second).position(|(one, two)| one != two);
        if let Some(at) = differs {
            let before = &first[at.saturating_sub(5)..at];
            let (one, two) = (&first[at], &second[at]);
            panic!("seed {seed}, event {at}: {one:?} and {two:?}, after {before:#?}");
        }
        assert_eq!(first.len(), second.len(), "seed {seed}: one run went on longer");
        assert_eq!(trace::hash(&first), trace::hash(&second));
    }
}

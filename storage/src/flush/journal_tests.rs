//! Where groups go: never over one that replay may need, back to the start before the file grows.

use super::*;
use crate::disk::{SimConfig, SimDisk};
use crate::flush::format::{Context, SegmentKey};

const STAMP: Stamp = Stamp { secret: 1, incarnation: 1 };

fn journal(disk: &SimDisk, size: u64) -> Journal {
    Journal::create(disk, Path::new("j"), STAMP, size, BLOCK).unwrap()
}

fn group(journal: &mut Journal, len: u32) -> GroupBuilder {
    let mut group = journal.builder();
    let key = SegmentKey { dir: "t-0".to_owned(), base_offset: 0 };
    group.put_bytes(&key, uuid::Uuid::nil(), 0, Context::of(0, b""), len);
    group
}

/// The block, counted from the start of the ring, at which the last group begins.
fn last(journal: &Journal) -> u64 {
    journal.kept.back().map_or(u64::MAX, |last| (last.start - RING_START) / BLOCK)
}

#[test]
fn kept_groups_are_never_overwritten() {
    for seed in 0..20_u64 {
        let disk = SimDisk::new(SimConfig::seeded(seed));
        let mut journal = journal(&disk, RING_START + 12 * BLOCK);
        let mut random = seed;
        let mut next = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            (random >> 33) % bound
        };
        let mut needed_from = 1;
        for _ in 0..300 {
            let new = group(&mut journal, next(9_000) as u32);
            if !journal.fits(new.len()) {
                assert!(journal.mark().is_ok());
                assert!(journal.kept.is_empty() && journal.fits(new.len()));
            }
            if next(3) == 0 {
                needed_from = journal.next_sequence() - next(2);
            }
            let needed = needed_from.min(journal.next_sequence());
            assert!(journal.append(new, needed).is_ok());
            let first = journal.kept.front().unwrap().sequence;
            let sequences = journal.kept.iter().map(|kept| kept.sequence);
            assert!(sequences.eq(first..journal.next_sequence()), "the last one is always kept");
            let mut blocks: Vec<u64> = Vec::new();
            for kept in &journal.kept {
                assert!(kept.start >= RING_START && kept.end <= journal.size);
                blocks.extend((kept.start..kept.end).step_by(BLOCK as usize));
            }
            let count = blocks.len();
            blocks.sort_unstable();
            blocks.dedup();
            assert_eq!(blocks.len(), count, "seed {seed}");
        }
    }
}

#[test]
fn an_idle_journal_stays_small() {
    let disk = SimDisk::new(SimConfig::seeded(1));
    let mut journal = journal(&disk, RING_START + 100 * BLOCK);
    let mut starts = Vec::new();
    for _ in 0..5 {
        let sequence = journal.next_sequence();
        let new = group(&mut journal, 100);
        assert!(journal.append(new, sequence).is_ok());
        starts.push(last(&journal));
    }
    // The last group is in the way once; then there is room on both sides.
    assert_eq!(starts, [0, 1, 0, 1, 0]);
    assert!(journal.mark().is_ok());
    let new = group(&mut journal, 100);
    assert!(journal.append(new, 1).is_ok());
    assert_eq!(last(&journal), 0, "a mark frees all");
}

#[test]
fn fills_ahead_in_steps_up_to_its_size() {
    let disk = SimDisk::new(SimConfig::seeded(1));
    let mut journal = journal(&disk, RING_START + 3 * BLOCK);
    assert_eq!(journal.filled, RING_START + BLOCK);
    assert!(!journal.fill_ahead(BLOCK).unwrap(), "the cursor is far enough from the end");
    for end in [2, 3, 3] {
        let new = group(&mut journal, 10);
        assert!(journal.append(new, 1).is_ok());
        journal.fill_ahead(BLOCK).unwrap();
        assert_eq!(journal.filled, RING_START + end * BLOCK);
    }
    assert!(!journal.fill_ahead(BLOCK).unwrap());
    assert!(!journal.fits(10));
}

#[test]
fn an_old_file_is_used_again() {
    let disk = SimDisk::new(SimConfig::seeded(1));
    let size = RING_START + 4 * BLOCK;
    let mut old = journal(&disk, size);
    let new = group(&mut old, 3 * BLOCK as u32);
    assert!(old.append(new, 1).is_ok());
    let next = Journal::create(&disk, Path::new("j"), STAMP, size, BLOCK).unwrap();
    assert_eq!((next.filled, next.cursor), (size, RING_START));
}
